// Keeps an RTSP session alive: chooses the request and its period, and detects a request that a
// camera ignores. Pure.
#ifndef FRAMED_DAEMON_RTSP_RTSP_KEEP_ALIVE_H
#define FRAMED_DAEMON_RTSP_RTSP_KEEP_ALIVE_H

#include <stdbool.h>
#include <stdint.h>

struct rtsp_keep_alive {
    int64_t timeout_ns, play_ns; // of the session; when PLAY was answered
    int64_t due_ns;              // of the next request; INT64_MAX: none
    bool get_listed;             // OPTIONS' reply lists GET_PARAMETER
    bool sent;
};

// `timeout_s` 0: the camera named none.
void rtsp_keep_alive_start(struct rtsp_keep_alive *, int timeout_s, int64_t now_ns);
// Returns the method to use after `failed` others did not keep sessions of this camera alive.
const char *rtsp_keep_alive_method(const struct rtsp_keep_alive *, int failed);
void rtsp_keep_alive_sent(struct rtsp_keep_alive *, int64_t now_ns); // schedules the next one
// Returns true if media flowed until `media_ns`, longer than a session lives without a keep-alive.
bool rtsp_keep_alive_works(const struct rtsp_keep_alive *, int64_t media_ns);
// Returns true if media stopped after `media_ns` as if the camera had ignored its keep-alive.
bool rtsp_keep_alive_failed(const struct rtsp_keep_alive *, int64_t media_ns);

#endif
