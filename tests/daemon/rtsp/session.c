#include "daemon/rtsp/session.h"

#include "tests/daemon/rtsp/scripted_camera.h"

static const char *const HEADER_ORDER = "CSeq: 1\r\nUser-Agent: framed/";

static void picture_after_play(struct camera *c, const char *request)
{
    if (!strncmp(request, "PLAY ", 5))
        for (int i = 0; i < 3; i++)
            send_picture(c, 0);
}

// Opens a camera that plays plainly, and a player that has received `units` units.
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
    CHECK(p.rc == 0 && p.units == 3, "%d, %d units: %s", p.rc, p.units, p.session->why);
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

// Data before PLAY's reply are the start of the stream.
static void picture_before_reply(struct camera *c, const char *request)
{
    if (!strncmp(request, "PLAY ", 5))
        send_picture(c, 0);
}

static void test_media_before_the_reply(void)
{
    struct camera c;
    struct player p = {0};
    camera_open(&c);
    c.between = picture_before_reply;
    c.after = picture_after_play;
    answer_plainly(&c);
    player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
    play_on(&c, &p, 2000, 4);
    CHECK(p.units == 4 && rtsp_session_statistics(p.session).lost == 0, "%d units", p.units);
    player_close(&p);
    camera_close(&c);
}

static void pictures_on_10(struct camera *c, const char *request)
{
    uint8_t report[] = {0x80, 200, 0, 6, 1, 2, 3, 4};
    if (strncmp(request, "PLAY ", 5))
        return;
    for (int i = 0; i < 3; i++) {
        send_frame(c, 10, report, sizeof report); // RTCP on the even channel, and cut short
        send_frame(c, 3, "audio of nobody", 15);
        send_picture(c, 10);
    }
}

static void test_channels(void)
{
    static const char *const transports[] = {
        "Transport: RTP/AVP/TCP;unicast;interleaved=10-11;ssrc= d6d6627\r\n", // as announced
        "Transport: RTP/AVP;unicast;interleaved=10\r\n",                      // a single one
        "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n",                 // but it keeps to 10
        "",
    };
    for (int i = 0; i < 4; i++) {
        struct camera c;
        struct player p = {0};
        char setup[256];
        camera_open(&c);
        c.after = pictures_on_10;
        snprintf(setup, sizeof setup, OK SESSION "%s\r\n", transports[i]);
        answer_with(&c, "SETUP", setup);
        answer_plainly(&c);
        player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
        play_on(&c, &p, 1000, 3);
        CHECK(p.rc == 0 && p.units == 3, "%s: %d, %d units", transports[i], p.rc, p.units);
        p.skew_ns += 1100 * MS;
        play_on(&c, &p, 200, 99);
        CHECK(c.n_frames > 4 && c.frames[1] == 11, "reports go to channel %d", c.frames[1]);
        player_close(&p);
        camera_close(&c);
    }
}

// Reads the next unit, whose packets have been sent.
static bool read_sent(struct camera *c, struct player *p)
{
    const int units = p->units;
    play_on(c, p, 2000, units + 1);
    return p->units == units + 1;
}

// Pictures that are ready when the owner returns are distinguished from awaited ones.
static void test_waited_units(void)
{
    struct camera c;
    struct player p = {0};
    play_plainly(&c, &p, 3);
    for (int i = 0; i < 8; i++)
        send_picture(&c, 0);
    poll(NULL, 0, 20);
    for (int i = 0; i < 8; i++) {
        CHECK(read_sent(&c, &p) && (i == 0 || !p.last.waited), "picture %d of a backlog", i);
        p.skew_ns += 1000 * S;
    }
    for (int i = 0; i < 4; i++) {
        play_on(&c, &p, 100, p.units + 1);
        CHECK(p.units == 11 + i, "nothing is sent");
        p.skew_ns += 2000 * S;
        send_picture(&c, 0);
        CHECK(read_sent(&c, &p) && p.last.waited, "picture %d that was waited for", i);
        p.skew_ns += 1000 * S; // decoding
    }
    player_close(&p);
    camera_close(&c);
}

static void test_reports_and_keyframes(void)
{
    struct camera c;
    struct player p = {0};
    play_plainly(&c, &p, 3);
    play_on(&c, &p, 100, 99);
    CHECK(count_reports(&c, 201) == 0, "a report at once");
    p.skew_ns += S;
    play_on(&c, &p, 100, 99);
    CHECK(count_reports(&c, 201) == 1, "%d reports after 1 s", count_reports(&c, 201));
    p.skew_ns += 4 * S;
    play_on(&c, &p, 100, 99);
    CHECK(count_reports(&c, 201) == 1, "%d reports after 5 s", count_reports(&c, 201));
    p.skew_ns += S;
    play_on(&c, &p, 100, 99);
    CHECK(count_reports(&c, 201) == 2, "%d reports after 6 s", count_reports(&c, 201));
    for (int i = 0; i < 3; i++) {
        p.session->wants_keyframe = true;
        play_on(&c, &p, 50, 99);
    }
    CHECK(count_reports(&c, 206) == 1, "%d requests in 0.15 s", count_reports(&c, 206));
    p.skew_ns += S;
    play_on(&c, &p, 100, 99);
    CHECK(count_reports(&c, 206) == 2, "%d requests in 1 s", count_reports(&c, 206));
    player_close(&p);
    camera_close(&c);
}

static void test_teardown(void)
{
    struct camera c;
    struct player p = {0};
    play_plainly(&c, &p, 3);
    play_on(&c, &p, 100, 99);
    player_leave(&p);
    play_on(&c, &p, 300, 99);
    CHECK(p.rc == -ESHUTDOWN, "%d", p.rc);
    CHECK(strstr(find_request(&c, "TEARDOWN", 0), "\r\nSession: 77\r\n"), "%s",
          find_request(&c, "TEARDOWN", 0));
    CHECK(count_reports(&c, 203) == 1, "no BYE");
    player_close(&p);
    camera_close(&c);

    camera_open(&c); // one that does not answer TEARDOWN
    answer_with(&c, "TEARDOWN", "");
    c.after = picture_after_play;
    answer_plainly(&c);
    player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
    play_on(&c, &p, 1000, 3);
    player_leave(&p);
    play_on(&c, &p, 100, 99);
    CHECK(p.rc == 0, "over at once: %d", p.rc);
    p.skew_ns += S / 2;
    play_on(&c, &p, 50, 99);
    CHECK(p.rc == -ESHUTDOWN && count_requests(&c, "TEARDOWN") == 1, "%d", p.rc);
    player_close(&p);

    camera_close(&c);
    play_plainly(&c, &p, 3); // and a session that is closed silently
    player_close(&p);
    for (int i = 0; i < 20 && !count_requests(&c, "TEARDOWN"); i++) {
        usleep(1000);
        camera_step(&c);
    }
    CHECK(count_requests(&c, "TEARDOWN") == 1, "closed without TEARDOWN");
    camera_close(&c);
}

// Units that came before the end are read before it is reported.
static void goodbye_after_play(struct camera *c, const char *request)
{
    const uint8_t bye[] = {0x80, 201, 0, 1, 1, 2, 3, 4, 0x81, 203, 0, 1, 1, 2, 3, 4};
    const uint8_t foreign[] = {0x81, 203, 0, 1, 9, 9, 9, 9};
    picture_after_play(c, request);
    if (strncmp(request, "PLAY ", 5))
        return;
    send_frame(c, 1, foreign, sizeof foreign);
    send_picture(c, 0);
    send_frame(c, 1, bye, sizeof bye);
}

static void hang_up_after_play(struct camera *c, const char *request)
{
    picture_after_play(c, request);
    if (!strncmp(request, "PLAY ", 5))
        shutdown(c->fd, SHUT_WR);
}

// A first picture waits a moment for more packets of it, which do not come any more.
static void hang_up_after_picture(struct camera *c, const char *request)
{
    if (strncmp(request, "PLAY ", 5))
        return;
    send_picture(c, 0);
    shutdown(c->fd, SHUT_WR);
}

static void test_ends(void)
{
    void (*const ends[])(struct camera *, const char *) = {goodbye_after_play, hang_up_after_play,
                                                           hang_up_after_picture};
    static const int units[] = {4, 3, 1};
    for (int i = 0; i < 3; i++) {
        struct camera c;
        struct player p = {0};
        camera_open(&c);
        c.after = ends[i];
        answer_plainly(&c);
        player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
        play_on(&c, &p, 1000, 99);
        CHECK(p.rc == -ENODATA && p.units == units[i], "%d after %d units", p.rc, p.units);
        CHECK(strstr(p.session->why, i ? "ended the connection" : "ended the stream"), "%s",
              p.session->why);
        player_close(&p);
        camera_close(&c);
    }
}

static void test_deadline(void)
{
    static const struct {
        const char *mute, *why;
    } cases[] = {{"DESCRIBE", "did not answer DESCRIBE within 10 s"},
                 {"SETUP", "did not answer SETUP within 10 s"},
                 {"PLAY", "did not answer PLAY within 10 s"},
                 {NULL, NULL}}; // the limit without pictures is the owner's decision
    for (int i = 0; i < 4; i++) {
        struct camera c;
        struct player p = {0};
        camera_open(&c);
        answer_plainly(&c);
        for (int j = 0; cases[i].mute && j < c.n_answers; j++)
            if (!strcmp(c.answers[j].to, cases[i].mute))
                c.answers[j].text = "";
        player_open(&p, "rtsp://user:secret@127.0.0.1:%d/a", c.port);
        play_on(&c, &p, 150, 99);
        CHECK(p.rc == 0, "%d at once", p.rc);
        p.skew_ns += 10 * S;
        play_on(&c, &p, 50, 99);
        if (cases[i].why)
            CHECK(p.rc == -ETIMEDOUT && strstr(p.session->why, cases[i].why), "%d: %s", p.rc,
                  p.session->why);
        else
            CHECK(p.rc == 0 && p.session->play_ns && !p.session->open, "%d", p.rc);
        CHECK(!strstr(p.session->why, "secret"), "a secret");
        player_close(&p);
        camera_close(&c);
    }
}

static struct player *late;

static void pause_after_reply(struct camera *c, const char *request)
{
    (void)c;
    if (!strncmp(request, "DESCRIBE ", 9))
        late->skew_ns += 3601 * S;
}

// A process that was stopped for longer than the limit of an answer reads the reply that came.
static void test_late_reader(void)
{
    struct camera c;
    struct player p = {.config.connect_timeout.ns = 7200 * S};
    late = &p;
    camera_open(&c);
    c.after = pause_after_reply;
    answer_plainly(&c);
    player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
    play_on(&c, &p, 200, 99);
    CHECK(p.rc == 0 && c.accepted == 1 && p.session->play_ns, "%d, %d connections", p.rc,
          c.accepted);
    player_close(&p);
    camera_close(&c);
}

static void test_keep_alive(void)
{
    struct camera c;
    struct player p = {0};
    camera_open(&c);
    c.after = picture_after_play;
    answer_with(&c, "SETUP",
                "RTSP/1.0 200 OK\r\nCSeq: {cseq}\r\nSession: 5 ; timeout = 20\r\n\r\n");
    answer_with(&c, "PLAY", "RTSP/1.0 200 OK\r\nSession: 6;timeout=120\r\n\r\n"); // no CSeq
    answer_with(&c, "GET_PARAMETER", "");
    answer_with(&c, "GET_PARAMETER", "RTSP/1.0 400 Bad Request\r\nCSeq: {cseq}\r\n\r\n");
    answer_plainly(&c);
    player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
    play_on(&c, &p, 1000, 3);
    CHECK(p.memory.session_s == 20, "a session of %d s", p.memory.session_s);
    CHECK(
        strstr(find_request(&c, "OPTIONS", 0), "\r\nSession: 5\r\n") ||
            (play_on(&c, &p, 50, 99), strstr(find_request(&c, "OPTIONS", 0), "\r\nSession: 5\r\n")),
        "OPTIONS after PLAY: %s", find_request(&c, "OPTIONS", 0));
    play_on(&c, &p, 50, 99);
    CHECK(count_requests(&c, "GET_PARAMETER") == 0, "at once");
    p.skew_ns += 10 * S; // half of the smallest timeout
    play_on(&c, &p, 50, 99);
    CHECK(count_requests(&c, "GET_PARAMETER") == 1, "%d requests",
          count_requests(&c, "GET_PARAMETER"));
    CHECK(strstr(find_request(&c, "GET_PARAMETER", 0),
                 "GET_PARAMETER rtsp://127.0.0.1/base/ RTSP/1.0\r\nCSeq: 5\r\n") &&
              strstr(find_request(&c, "GET_PARAMETER", 0), "\r\nSession: 5\r\n"),
          "%s", find_request(&c, "GET_PARAMETER", 0));
    p.skew_ns += 10 * S; // the first was not answered, and the second is refused
    play_on(&c, &p, 50, 99);
    CHECK(p.rc == 0 && count_requests(&c, "GET_PARAMETER") == 2, "%d, %d requests", p.rc,
          count_requests(&c, "GET_PARAMETER"));
    const int64_t pinged = player_now(&p);
    rtsp_session_ping(p.session);
    play_on(&c, &p, 50, 99);
    CHECK(count_requests(&c, "GET_PARAMETER") == 3, "no ping");
    CHECK(p.session->heard_ns >= pinged, "the ping's answer was not heard");
    player_close(&p);
    camera_close(&c);
}

// Media that stop when the session times out: another method is used next time.
static void test_keep_alive_is_learnt(void)
{
    static const char *const methods[] = {"OPTIONS", "GET_PARAMETER", "SET_PARAMETER"};
    struct player p = {0};
    for (int i = 0; i < 3; i++) {
        struct camera c;
        camera_open(&c);
        c.after = picture_after_play;
        answer_with(&c, "SETUP", OK "Session: 5;timeout=20\r\n" TCP "\r\n");
        answer_with(&c, "OPTIONS", OK "Public: DESCRIBE, PLAY\r\n\r\n");
        answer_plainly(&c);
        player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
        play_on(&c, &p, 1000, 3);
        play_on(&c, &p, 50, 99);
        for (int second = 0; second < 21; second++) {
            p.skew_ns += S;
            send_picture(&c, 0);
            play_on(&c, &p, 20, 999);
        }
        CHECK(count_requests(&c, methods[i]) >= 1 + !i, "no %s in session %d", methods[i], i);
        CHECK(p.memory.keep_alive == i, "learnt too early: %d", p.memory.keep_alive);
        shutdown(c.fd, SHUT_RDWR);
        play_on(&c, &p, 200, 999);
        CHECK(p.rc == -ENODATA && p.memory.keep_alive == (i + 1) % 3, "%d, learnt %d", p.rc,
              p.memory.keep_alive);
        player_close(&p);
        camera_close(&c);
    }
}

static void test_stop_while_connecting(void)
{
    struct camera c;
    struct player p = {0};
    camera_open(&c);
    answer_with(&c, "SETUP", "");
    player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
    player_leave(&p);
    play_on(&c, &p, 1000, 99);
    camera_step(&c);
    CHECK(p.rc == -ESHUTDOWN && c.accepted == 0, "%d, %d connections", p.rc, c.accepted);
    player_close(&p);

    answer_plainly(&c);
    player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
    play_on(&c, &p, 100, 99);
    CHECK(count_requests(&c, "SETUP") == 1, "no SETUP");
    player_leave(&p);
    play_on(&c, &p, 100, 99);
    CHECK(p.rc == 0, "without the name of the session: %d", p.rc);
    camera_send(&c, "RTSP/1.0 200 OK\r\nSession: 9\r\n\r\n", 31);
    play_on(&c, &p, 100, 99);
    CHECK(strstr(find_request(&c, "TEARDOWN", 0), "\r\nSession: 9\r\n") && p.rc == -ESHUTDOWN,
          "%d: %s", p.rc, find_request(&c, "TEARDOWN", 0));
    player_close(&p);
    camera_close(&c);
}

// Cameras send requests too, and answers without a request.
static void ask_after_play(struct camera *c, const char *request)
{
    static const char asked[] = "OPTIONS rtsp://x/ RTSP/1.0\r\nCSeq: 41\r\n\r\n"
                                "ANNOUNCE rtsp://x/ RTSP/1.0\nCSeq: 42\n\n"
                                "RTSP/1.0 400 Bad Request\r\nCSeq: 77\r\n\r\n";
    picture_after_play(c, request);
    if (!strncmp(request, "GET_PARAMETER ", 14))
        camera_send(c, asked, strlen(asked));
}

static void test_requests_of_the_camera(void)
{
    struct camera c;
    struct player p = {0};
    camera_open(&c);
    c.after = ask_after_play;
    answer_plainly(&c);
    player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
    play_on(&c, &p, 1000, 3);
    play_on(&c, &p, 50, 99);
    rtsp_session_ping(p.session);
    play_on(&c, &p, 100, 99);
    CHECK(p.rc == 0 &&
              !strcmp(find_request(&c, "RTSP/1.0", 0), "RTSP/1.0 200 OK\r\nCSeq: 41\r\n\r\n"),
          "%d, %s", p.rc, find_request(&c, "RTSP/1.0", 0));
    CHECK(!strcmp(find_request(&c, "RTSP/1.0", 1),
                  "RTSP/1.0 501 Not Implemented\r\nCSeq: 42\r\n\r\n"),
          "%s", find_request(&c, "RTSP/1.0", 1));
    player_close(&p);
    camera_close(&c);
}

int main(void)
{
    TEST(test_session_plays());
    TEST(test_media_before_the_reply());
    TEST(test_channels());
    TEST(test_waited_units());
    TEST(test_reports_and_keyframes());
    TEST(test_teardown());
    TEST(test_ends());
    TEST(test_deadline());
    TEST(test_late_reader());
    TEST(test_keep_alive());
    TEST(test_keep_alive_is_learnt());
    TEST(test_stop_while_connecting());
    TEST(test_requests_of_the_camera());
    return test_end();
}
