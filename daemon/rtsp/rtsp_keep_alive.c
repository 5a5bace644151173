#include "daemon/rtsp/rtsp_keep_alive.h"

static const int64_t SECOND_NS = 1000000000;
enum {
    TIMEOUT_DEFAULT = 60, // seconds
    PERIOD_MAX = 30,      // seconds between two requests
};

void rtsp_keep_alive_start(struct rtsp_keep_alive *k, int timeout_s, int64_t now_ns)
{
    *k = (struct rtsp_keep_alive){
        .timeout_ns = (timeout_s ? timeout_s : TIMEOUT_DEFAULT) * SECOND_NS,
        .play_ns = now_ns,
        .get_listed = k->get_listed,
    };
    rtsp_keep_alive_sent(k, now_ns);
    k->sent = false;
}

const char *rtsp_keep_alive_method(const struct rtsp_keep_alive *k, int failed)
{
    // EvoStream accepts GET_PARAMETER without listing it, so it comes second at the latest.
    static const char *const listed[] = {"GET_PARAMETER", "OPTIONS", "SET_PARAMETER"};
    static const char *const unlisted[] = {"OPTIONS", "GET_PARAMETER", "SET_PARAMETER"};
    return (k->get_listed ? listed : unlisted)[(unsigned)failed % 3];
}

void rtsp_keep_alive_sent(struct rtsp_keep_alive *k, int64_t now_ns)
{
    const int64_t half = k->timeout_ns / 2, most = PERIOD_MAX * SECOND_NS;
    k->sent = true;
    k->due_ns = now_ns + (half < most ? half : most);
}

bool rtsp_keep_alive_works(const struct rtsp_keep_alive *k, int64_t media_ns)
{
    return k->play_ns && media_ns - k->play_ns > 3 * k->timeout_ns;
}

// Servers check their sessions now and then, and count from PLAY or from a later request.
bool rtsp_keep_alive_failed(const struct rtsp_keep_alive *k, int64_t media_ns)
{
    const int64_t lived = media_ns - k->play_ns;
    return k->play_ns && k->sent && lived > k->timeout_ns - 2 * SECOND_NS &&
           lived < k->timeout_ns * 3 / 2 + 5 * SECOND_NS;
}
