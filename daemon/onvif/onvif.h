// ONVIF cameras: WS-Discovery, which finds them, and what a camera reports about itself.
#ifndef FRAMED_DAEMON_ONVIF_ONVIF_H
#define FRAMED_DAEMON_ONVIF_ONVIF_H

#include <libxml/tree.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// --- WS-Discovery: sends a request to a multicast group on every interface of this box, and reads
// the responses, which anybody may send

enum { WS_DISCOVERY_HOST_MAX = INET6_ADDRSTRLEN + IF_NAMESIZE + 1 };

// One response. Texts are printable UTF-8, "" if absent.
struct ws_match {
    char host[WS_DISCOVERY_HOST_MAX]; // source address of the response: "fe80::1%eth0"
    char endpoint[128];               // identifies the device at any address
    // URL of the device service: the response's URL with its host replaced by `host`. So nobody can
    // make framed send to another address than the response's source.
    char url[384];
    char secure_url[384];     // the same with https; "": not offered
    char name[64], model[64]; // from its scopes
};

// Parses the response from `host`. Returns 0; -EBADMSG: malformed, or not from a camera.
int ws_discovery_read(struct ws_match *ret, const char *host, const char *data, size_t size);

// Sends several requests, since datagrams get lost, and calls `found` once for each device when it
// responds. Blocks for `seconds`. Returns 0, or a negative errno: no interface to send on.
int ws_discovery_run(double seconds, void (*found)(void *opaque, const struct ws_match *),
                     void *opaque);

// --- a camera's identity and stream URLs

enum { ONVIF_STREAMS_MAX = 8 };

struct onvif_stream {
    char name[64], token[128]; // of its profile
    char url[512];             // rtsp or rtsps; without user and password
    char codec[16];            // as the camera writes it ("H264"); "": unknown
    int width, height;         // 0: unknown
    int fps;                   // maximum; 0: unknown
};

// Texts are printable UTF-8, "" if unknown.
struct onvif_camera {
    char host[WS_DISCOVERY_HOST_MAX];
    char url[384]; // of its device service
    char name[64], manufacturer[64], model[64], firmware[64];
    struct onvif_stream streams[ONVIF_STREAMS_MAX];
    int n_streams;
    bool wants_login; // it refused a request, without or with the password
    char error[192];  // a clause; "": no error
};

// Queries the device of `match` for at most 5 s and fills in *ret in any case. Any thread, after
// curl_global_init. Logs in with `user`, once, by https if the device offers it; NULL: no login.
void onvif_camera_ask(struct onvif_camera *ret, const struct ws_match *match, const char *user,
                      const char *password);

// Parsers of responses for onvif_camera_ask. They read whatever is present.
void onvif_read_information(struct onvif_camera *, const xmlNode *envelope);
void onvif_read_profiles(struct onvif_camera *, const xmlNode *envelope);
// False: it contains no stream that framed could play.
bool onvif_read_stream_url(struct onvif_stream *, const xmlNode *envelope);
// Returns the seconds that the camera's clock is ahead of `now` (UTC); 0: unknown.
int64_t onvif_read_clock(const xmlNode *envelope, int64_t now);
// Replaces the path of the device service's URL by the path of the media service.
void onvif_read_media_url(char *url, size_t size, const xmlNode *envelope);

#endif
