// Identity and stream URLs that an ONVIF camera reports.
#ifndef FRAMED_DAEMON_ONVIF_ONVIF_CAMERA_H
#define FRAMED_DAEMON_ONVIF_ONVIF_CAMERA_H

#include <libxml/tree.h>
#include <stdbool.h>

#include "daemon/onvif/ws_discovery.h"

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
