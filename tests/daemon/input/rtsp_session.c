#include "daemon/input/rtsp_session.h"

#include "tests/daemon/input/scripted_camera.h"

static const char *const HEADER_ORDER = "CSeq: 1\r\nUser-Agent: framed/";

static void picture_after_play(struct camera *c, const char *request)
{
    if (!strncmp(request, "PLAY ", 5))
        for (int i = 0; i < 3; i++)
            send_picture(c, 0);
}

// A camera that plays plainly, and a player of it that has `units` units.
static void play_plainly(struct camera *c, struct player *p, int units)
{
    camera_open(c);
    c->after = picture_after_play;
    answer_plainly(c);
    player_open(p, "rtsp://127.0.0.1:%d/a", c->port);
    play_on(c, p, 2000, units);
}

static void test_session_plays(void)
{
    struct camera c;
    struct player p = {0};
    char expected[512];
    play_plainly(&c, &p, 3);
    CHECK(p.rc == 0 && p.units == 3, "%d, %d units: %s", p.rc, p.units,
          rtsp_session_why(p.session));
    snprintf(expected, sizeof expected,
             "DESCRIBE rtsp://127.0.0.1:%d/a RTSP/1.0\r\nCSeq: 1\r\nUser-Agent: framed/%s\r\n"
             "Accept: application/sdp\r\n\r\n",
             c.port, FRAMED_VERSION_TEXT);
    CHECK(!strcmp(c.requests[0], expected), "%s", c.requests[0]);
    CHECK(strstr(c.requests[1], "SETUP rtsp://127.0.0.1/base/track1 RTSP/1.0\r\nCSeq: 2\r\n") &&
              strstr(c.requests[1], "\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n") &&
              !strstr(c.requests[1], "Session:"),
          "%s", c.requests[1]);
    CHECK(strstr(c.requests[2], "PLAY rtsp://127.0.0.1/base/ RTSP/1.0\r\nCSeq: 3\r\n") &&
              strstr(c.requests[2], "\r\nSession: 77\r\n") &&
              strstr(c.requests[2], "\r\nRange: npt=0.000-\r\n"),
          "%s", c.requests[2]);
    CHECK(strstr(c.requests[0], HEADER_ORDER), "%s", c.requests[0]);
    CHECK(p.last.unit.keyframe && !p.last.unit.damaged && p.last.capture_ns == INT64_MIN,
          "the last unit");
    CHECK(!strcmp(rtsp_session_transport(p.session), "tcp"), "transport");
    player_close(&p);
    camera_close(&c);
}

int main(void)
{
    TEST(test_session_plays());
    return test_end();
}
