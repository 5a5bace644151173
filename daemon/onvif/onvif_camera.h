// What an ONVIF camera says of itself: what it is, and where its streams are.
#ifndef FRAMED_DAEMON_ONVIF_ONVIF_CAMERA_H
#define FRAMED_DAEMON_ONVIF_ONVIF_CAMERA_H

#include <libxml/tree.h>
#include <stdbool.h>

#include "daemon/onvif/ws_discovery.h"

enum { ONVIF_STREAMS_MAX = 8 };

struct onvif_stream {
    char name[64], token[128]; // of its profile
    char url[512];             // rtsp or rtsps; without a user and a password
    char codec[16];            // as the camera writes it ("H264"); "": not said
    int width, height;         // 0: not said
    int fps;                   // at most; 0: not said
};

// Texts are printable UTF-8, "" where the camera does not say.
struct onvif_camera {
    char host[WS_DISCOVERY_HOST_MAX];
    char url[384]; // of its device service
    char name[64], manufacturer[64], model[64], firmware[64];
    struct onvif_stream streams[ONVIF_STREAMS_MAX];
    int n_streams;
    bool wants_login; // has refused what it was asked, without or with the password
    char error[192];  // a clause; "": it has said all
};

// Asks the device of `match` for at most 5 s and fills in *ret in any case. Any thread, after
// curl_global_init. With a user it logs in, once, by https where the device offers that; NULL: it
// asks without a login.
void onvif_camera_ask(struct onvif_camera *ret, const struct ws_match *match, const char *user,
                      const char *password);

// Of answers, for onvif_camera_ask. They take what there is.
void onvif_read_information(struct onvif_camera *, const xmlNode *envelope);
void onvif_read_profiles(struct onvif_camera *, const xmlNode *envelope);
// False: it names no stream that framed could play.
bool onvif_read_stream_url(struct onvif_stream *, const xmlNode *envelope);
// Seconds that the camera's clock is before `now` (of UTC); 0: it does not say.
int64_t onvif_read_clock(const xmlNode *envelope, int64_t now);
// Replaces the path of the device service's URL by that of the media service.
void onvif_read_media_url(char *url, size_t size, const xmlNode *envelope);

#endif
