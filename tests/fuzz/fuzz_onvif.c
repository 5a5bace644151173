// Any answers of a camera to WS-Discovery and SOAP: texts end, are UTF-8 without control
// characters, and contain no password of an RTSP URL; requests go only to the address of an answer.
#include <stdlib.h>
#include <string.h>

#include "config/url.h"
#include "daemon/onvif/onvif.h"
#include "daemon/onvif/soap.h"
#include "tests/fuzz/turns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const hosts[] = {"192.0.2.7", "fe80::7%eth0"};
static const char *const origins[] = {"192.0.2.7", "[fe80::7%25eth0]"};

static void check_text(const char *text, size_t size)
{
    const size_t length = strnlen(text, size);
    MUST(length < size);
    for (size_t i = 0; i < length; i++) {
        const unsigned char byte = (unsigned char)text[i];
        MUST(byte >= ' ' && byte != 0x7f);
        MUST(byte != 0xc2 || (unsigned char)text[i + 1] >= 0xa0); // C1
    }
    // A cut character leaves a lead byte at the end, or a continuation byte at the beginning.
    MUST(length == 0 || ((unsigned char)text[length - 1] & 0xc0) != 0xc0);
    MUST(((unsigned char)text[0] & 0xc0) != 0x80);
}

static void check_match(const uint8_t *data, size_t size)
{
    for (int i = 0; i < 2; i++) {
        struct ws_match match;
        if (ws_discovery_read(&match, hosts[i], (const char *)data, size) < 0)
            continue;
        check_text(match.name, sizeof match.name);
        check_text(match.model, sizeof match.model);
        check_text(match.endpoint, sizeof match.endpoint);
        check_text(match.url, sizeof match.url);
        MUST(strcmp(match.host, hosts[i]) == 0);
        MUST(strncmp(match.url, "http://", 7) == 0 || strncmp(match.url, "https://", 8) == 0);
        const char *authority = strstr(match.url, "://") + 3;
        MUST(strncmp(authority, origins[i], strlen(origins[i])) == 0);
        MUST(strchr(":/?#", authority[strlen(origins[i])]));
        MUST(strcspn(authority, "@") >= strcspn(authority, "/?#"));
    }
}

static void check_camera(const xmlNode *envelope)
{
    struct onvif_camera camera = {.url = "http://192.0.2.7:80/onvif/device_service"};
    onvif_read_information(&camera, envelope);
    onvif_read_profiles(&camera, envelope);
    onvif_read_media_url(camera.url, sizeof camera.url, envelope);
    check_text(camera.manufacturer, sizeof camera.manufacturer);
    check_text(camera.model, sizeof camera.model);
    check_text(camera.firmware, sizeof camera.firmware);
    check_text(camera.url, sizeof camera.url);
    MUST(strncmp(camera.url, "http://192.0.2.7:80/", 20) == 0);
    MUST(camera.n_streams >= 0 && camera.n_streams <= ONVIF_STREAMS_MAX);
    for (int i = 0; i < camera.n_streams; i++) {
        const struct onvif_stream *stream = &camera.streams[i];
        check_text(stream->name, sizeof stream->name);
        check_text(stream->codec, sizeof stream->codec);
        MUST(*stream->token && strnlen(stream->token, sizeof stream->token) < sizeof stream->token);
        MUST(stream->width >= 0 && stream->height >= 0 && stream->fps >= 0 && stream->fps <= 1000);
    }
    struct onvif_stream stream = {0};
    if (onvif_read_stream_url(&stream, envelope)) {
        check_text(stream.url, sizeof stream.url);
        MUST(config_url_kind(stream.url) == URL_RTSP && config_url_has_host(stream.url));
        MUST(!strchr(stream.url, '@') ||
             strchr(stream.url, '@') > strchr(strstr(stream.url, "://") + 3, '/'));
    }
    onvif_read_clock(envelope, 1700000000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_match(data, size);
    xmlDoc *document = xml_read((const char *)data, size);
    if (document)
        check_camera(xmlDocGetRootElement(document));
    xmlFreeDoc(document);
    return 0;
}
