#include "daemon/onvif/onvif.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "config/url.h"
#include "daemon/base/clock.h"
#include "daemon/onvif/soap.h"

#define DEVICE "xmlns=\"http://www.onvif.org/ver10/device/wsdl\""
#define MEDIA  "xmlns=\"http://www.onvif.org/ver10/media/wsdl\""

static const int64_t ASK_NS = 5 * INT64_C(1000000000);

// --- responses

void onvif_read_information(struct onvif_camera *camera, const xmlNode *envelope)
{
    const xmlNode *all = xml_find(envelope, "Body/GetDeviceInformationResponse");
    char model[sizeof camera->model];
    xml_text(all, "Manufacturer", camera->manufacturer, sizeof camera->manufacturer);
    xml_text(all, "FirmwareVersion", camera->firmware, sizeof camera->firmware);
    if (*xml_text(all, "Model", model, sizeof model))
        memcpy(camera->model, model, sizeof model);
}

static int number(const xmlNode *node, const char *path, int max)
{
    char text[16], *end;
    const double value = strtod(xml_text(node, path, text, sizeof text), &end);
    return end > text && !*end && value > 0 && value <= max ? (int)value : 0;
}

void onvif_read_profiles(struct onvif_camera *camera, const xmlNode *envelope)
{
    const xmlNode *profile = xml_find(envelope, "Body/GetProfilesResponse/Profiles");
    for (; profile && camera->n_streams < ONVIF_STREAMS_MAX; profile = xml_next(profile)) {
        struct onvif_stream stream = {0};
        const xmlNode *encoder = xml_find(profile, "VideoEncoderConfiguration");
        xmlChar *token = xmlGetProp(profile, (const xmlChar *)"token");
        if (token && *token && strlen((const char *)token) < sizeof stream.token) {
            memcpy(stream.token, token, strlen((const char *)token));
            xml_text(profile, "Name", stream.name, sizeof stream.name);
            xml_text(encoder, "Encoding", stream.codec, sizeof stream.codec);
            stream.width = number(encoder, "Resolution/Width", 1 << 16);
            stream.height = number(encoder, "Resolution/Height", 1 << 16);
            stream.fps = number(encoder, "RateControl/FrameRateLimit", 1000);
            camera->streams[camera->n_streams++] = stream;
        }
        xmlFree(token);
    }
}

// Replaces the URL's parameters that equal the `n` bytes at `text` by ***.
static void hide_parameters(char *url, size_t size, const char *text, size_t n)
{
    char rest[512];
    for (char *at = url; n > 0 && (at = strchr(at, '='));) {
        const size_t length = strcspn(++at, "&;#/");
        if (length != n || strncmp(at, text, n) != 0)
            continue;
        snprintf(rest, sizeof rest, "%s", at + n);
        snprintf(at, size - (size_t)(at - url), "***%s", rest);
    }
}

// Copies a URL without the user and password before its host, and masks parameters that repeat
// them. The other parameters stay, since the stream needs them.
static void copy_without_login(char *to, size_t size, const char *url)
{
    const char *authority = strstr(url, "://") + 3;
    const char *path = authority + strcspn(authority, "/?#"), *host = authority;
    for (const char *p = authority; p < path; p++)
        host = *p == '@' ? p + 1 : host;
    snprintf(to, size, "%.*s%s", (int)(authority - url), url, host);
    if (host == authority)
        return;
    const size_t user = strcspn(authority, ":@");
    hide_parameters(to, size, authority, user);
    if (authority[user] == ':')
        hide_parameters(to, size, authority + user + 1, (size_t)(host - authority) - user - 2);
}

bool onvif_read_stream_url(struct onvif_stream *stream, const xmlNode *envelope)
{
    char url[sizeof stream->url];
    xml_text(envelope, "Body/GetStreamUriResponse/MediaUri/Uri", url, sizeof url);
    const bool whole = strlen(url) + 1 < sizeof url && !strpbrk(url, " \"'\\<>`");
    const bool rtsp = strncasecmp(url, "rtsp://", 7) == 0 || strncasecmp(url, "rtsps://", 8) == 0;
    if (!whole || !rtsp || !config_url_has_host(url))
        return false;
    copy_without_login(stream->url, sizeof stream->url, url);
    if (!config_url_has_host(stream->url)) // a URL that ends in @ is all login
        *stream->url = 0;
    return *stream->url;
}

int64_t onvif_read_clock(const xmlNode *envelope, int64_t now)
{
    const xmlNode *utc =
        xml_find(envelope, "Body/GetSystemDateAndTimeResponse/SystemDateAndTime/UTCDateTime");
    char text[16];
    struct tm tm = {
        .tm_year = number(utc, "Date/Year", 9999) - 1900,
        .tm_mon = number(utc, "Date/Month", 12) - 1,
        .tm_mday = number(utc, "Date/Day", 31),
        .tm_hour = number(utc, "Time/Hour", 23),
        .tm_min = number(utc, "Time/Minute", 59),
        .tm_sec = number(utc, "Time/Second", 60),
    };
    const bool said = *xml_text(utc, "Time/Second", text, sizeof text) && tm.tm_year >= 70 &&
                      tm.tm_mon >= 0 && tm.tm_mday > 0;
    return said ? (int64_t)timegm(&tm) - now : 0;
}

void onvif_read_media_url(char *url, size_t size, const xmlNode *envelope)
{
    char theirs[384];
    xml_text(envelope, "Body/GetCapabilitiesResponse/Capabilities/Media/XAddr", theirs,
             sizeof theirs);
    const char *authority = strstr(theirs, "://");
    const char *path = authority ? strchr(authority + 3, '/') : NULL;
    const size_t ours =
        strcspn(strstr(url, "://") + 3, "/") + (size_t)(strstr(url, "://") + 3 - url);
    if (path && ours + strlen(path) < size)
        memcpy(url + ours, path, strlen(path) + 1);
}

// --- requests

static int ask_clock(struct soap *soap, const char *url)
{
    xmlDoc *answer;
    const int rc = soap_call(soap, url, "<GetSystemDateAndTime " DEVICE "/>", &answer);
    if (rc == 0) {
        soap_set_clock(soap, onvif_read_clock(xmlDocGetRootElement(answer), time(NULL)));
        xmlFreeDoc(answer);
    }
    return rc;
}

static int ask_information(struct soap *soap, struct onvif_camera *camera)
{
    xmlDoc *answer;
    const int rc = soap_call(soap, camera->url, "<GetDeviceInformation " DEVICE "/>", &answer);
    if (rc == 0) {
        onvif_read_information(camera, xmlDocGetRootElement(answer));
        xmlFreeDoc(answer);
    }
    return rc;
}

static int ask_profiles(struct soap *soap, struct onvif_camera *camera, char *media, size_t size)
{
    xmlDoc *answer;
    int rc = soap_call(soap, camera->url,
                       "<GetCapabilities " DEVICE "><Category>Media</Category></GetCapabilities>",
                       &answer);
    if (rc == 0) {
        onvif_read_media_url(media, size, xmlDocGetRootElement(answer));
        xmlFreeDoc(answer);
        rc = soap_call(soap, media, "<GetProfiles " MEDIA "/>", &answer);
    }
    if (rc == 0) {
        onvif_read_profiles(camera, xmlDocGetRootElement(answer));
        xmlFreeDoc(answer);
    }
    return rc;
}

// Returns the request for a profile's stream, for free(); NULL: no memory.
static char *stream_question(const char *profile)
{
    char *body = NULL;
    xmlChar *token = xmlEncodeSpecialChars(NULL, (const xmlChar *)profile);
    if (!token ||
        asprintf(&body,
                 "<GetStreamUri " MEDIA "><StreamSetup>"
                 "<Stream xmlns=\"http://www.onvif.org/ver10/schema\">RTP-Unicast</Stream>"
                 "<Transport xmlns=\"http://www.onvif.org/ver10/schema\"><Protocol>RTSP</Protocol>"
                 "</Transport></StreamSetup><ProfileToken>%s</ProfileToken></GetStreamUri>",
                 (const char *)token) < 0)
        body = NULL;
    xmlFree(token);
    return body;
}

static int ask_stream_url(struct soap *soap, const char *media, struct onvif_stream *stream)
{
    xmlDoc *answer;
    char *body = stream_question(stream->token);
    if (!body)
        return -ENOMEM;
    const int rc = soap_call(soap, media, body, &answer);
    if (rc == 0) {
        onvif_read_stream_url(stream, xmlDocGetRootElement(answer));
        xmlFreeDoc(answer);
    }
    free(body);
    return rc;
}

// Removes streams without a known URL.
static int ask_streams(struct soap *soap, struct onvif_camera *camera)
{
    char media[sizeof camera->url];
    memcpy(media, camera->url, sizeof media);
    int rc = ask_profiles(soap, camera, media, sizeof media), n = 0;
    for (int i = 0; i < camera->n_streams; i++) {
        if (rc == 0)
            rc = ask_stream_url(soap, media, &camera->streams[i]);
        if (*camera->streams[i].url)
            camera->streams[n++] = camera->streams[i];
    }
    camera->n_streams = n;
    return rc;
}

void onvif_camera_ask(struct onvif_camera *ret, const struct ws_match *match, const char *user,
                      const char *password)
{
    const struct soap_options options = {user, password, monotonic_ns() + ASK_NS};
    struct soap *soap = NULL;
    *ret = (struct onvif_camera){0};
    memcpy(ret->host, match->host, sizeof ret->host);
    memcpy(ret->url, user && *match->secure_url ? match->secure_url : match->url, sizeof ret->url);
    memcpy(ret->name, match->name, sizeof ret->name);
    memcpy(ret->model, match->model, sizeof ret->model);
    int rc = soap_open(&soap, &options);
    if (rc == 0)
        rc = ask_clock(soap, ret->url);
    if (rc == 0 || rc == -EIO) // the camera may respond to the rest without a clock
        rc = ask_information(soap, ret);
    if (rc == 0)
        rc = ask_streams(soap, ret);
    ret->wants_login = rc == -EACCES;
    if (rc < 0)
        snprintf(ret->error, sizeof ret->error, "%s", soap ? soap_why(soap) : strerror(-rc));
    else if (ret->n_streams == 0)
        snprintf(ret->error, sizeof ret->error, "names no RTSP stream");
    soap_close(soap);
}
