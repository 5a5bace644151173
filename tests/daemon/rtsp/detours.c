// A session's requests when a server requires something else: passwords, redirections, other URLs,
// other transports, refusals.
#include "daemon/rtsp/session.h"

#include "daemon/base/log.h"
#include "tests/daemon/recorded_log.h"
#include "tests/daemon/rtsp/scripted_camera.h"

#define UNAUTHORIZED  "RTSP/1.0 401 Unauthorized\r\nCSeq: {cseq}\r\n"
#define MD5_OF(nonce) "WWW-Authenticate: Digest realm=\"r\", nonce=\"" nonce "\"\r\n"
#define STALE         "WWW-Authenticate: Digest realm=\"r\", nonce=\"c\", stale=TRUE\r\n"
#define SHA256        "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\", algorithm=SHA-256\r\n"
#define BASIC         "WWW-Authenticate: Basic realm=\"r\"\r\n"

static void send_after_play(struct camera *c, const char *request)
{
    if (!strncmp(request, "PLAY ", 5))
        send_picture(c, 0);
}

static void open_camera(struct camera *c)
{
    camera_open(c);
    c->after = send_after_play;
}

// Plays with a user, up to the first unit.
static void play_signed(struct camera *c, struct player *p)
{
    player_open(p, "rtsp://admin:secret@127.0.0.1:%d/a", c->port);
    play_on(c, p, 500, 1);
}

static void test_password(void)
{
    static const struct {
        const char *challenge, *scheme;
    } cases[] = {
        {UNAUTHORIZED BASIC "\r\n", "Basic YWRtaW46c2VjcmV0\r\n"},
        {UNAUTHORIZED MD5_OF("n") "\r\n", "Digest "},
        {UNAUTHORIZED SHA256 MD5_OF("n") "\r\n", "algorithm=SHA-256"},
        {"RTSP/1.0 404 Not Found\r\nCSeq: {cseq}\r\n" MD5_OF("n") "\r\n", "Digest "},
    };
    for (int i = 0; i < 4; i++) {
        struct camera c;
        struct player p = {0};
        open_camera(&c);
        answer_with(&c, "DESCRIBE", cases[i].challenge);
        answer_plainly(&c);
        play_signed(&c, &p);
        CHECK(p.units == 1 && count_requests(&c, "DESCRIBE") == 2, "case %d: %s", i,
              p.session->why);
        CHECK(!strstr(find_request(&c, "DESCRIBE", 0), "Authorization"), "signed unasked");
        const char *methods[] = {"DESCRIBE", "SETUP", "PLAY"};
        for (int m = 0; m < 3; m++) {
            const char *request = find_request(&c, methods[m], m == 0);
            const char *header = strstr(request, "\r\nAuthorization: ");
            CHECK(header && strstr(header, cases[i].scheme) && !strstr(request, "admin:secret"),
                  "case %d: %s", i, request);
            CHECK(header < strstr(request, "\r\nUser-Agent"), "order: %s", request);
        }
        player_close(&p);
        camera_close(&c);
    }
}

// One signed attempt per connection, for any wording of the camera's refusals.
static void test_wrong_password(void)
{
    static const struct {
        const char *url, *first, *second, *why;
        int requests;
        bool other;
    } cases[] = {
        {"rtsp://admin:secret@127.0.0.1:%d/a", UNAUTHORIZED MD5_OF("a") "\r\n",
         UNAUTHORIZED MD5_OF("b") "\r\n", "refused the user name or password", 2, false},
        {"rtsp://admin:secret@127.0.0.1:%d/a", UNAUTHORIZED MD5_OF("a") SHA256 "\r\n",
         UNAUTHORIZED MD5_OF("b") SHA256 "\r\n", "refused the user name or password", 2, true},
        {"rtsp://admin:secret@127.0.0.1:%d/a", UNAUTHORIZED BASIC MD5_OF("a") "\r\n",
         UNAUTHORIZED BASIC MD5_OF("b") "\r\n", "refused the user name or password", 2, false},
        {"rtsp://admin:secret@127.0.0.1:%d/a", UNAUTHORIZED STALE "\r\n", UNAUTHORIZED STALE "\r\n",
         "refused the user name or password", 3, false},
        {"rtsp://admin:secret@127.0.0.1:%d/a", UNAUTHORIZED "\r\n", "",
         "refused the user name or password", 1, false},
        {"rtsp://127.0.0.1:%d/a", UNAUTHORIZED MD5_OF("a") "\r\n", "", "wants a user name", 1,
         false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct camera c;
        struct player p = {0};
        open_camera(&c);
        answer_with(&c, "DESCRIBE", cases[i].first);
        answer_with(&c, "DESCRIBE", cases[i].second);
        player_open(&p, cases[i].url, c.port);
        play_on(&c, &p, 200, 1);
        CHECK(p.rc == -EACCES && strstr(p.session->why, cases[i].why), "%d: %s", p.rc,
              p.session->why);
        CHECK(count_requests(&c, "DESCRIBE") == cases[i].requests, "case %zu: %d requests", i,
              count_requests(&c, "DESCRIBE"));
        CHECK(p.memory.first_challenge == cases[i].other, "case %zu", i);
        player_close(&p);
        if (cases[i].other) { // the next session uses the first, and if that fails too, the best
            play_signed(&c, &p);
            const char *request = find_request(&c, "DESCRIBE", 3);
            CHECK(strstr(request, "Authorization: Digest") && !strstr(request, "algorithm"), "%s",
                  request);
            CHECK(p.rc == -EACCES && !p.memory.first_challenge, "%d", p.rc);
            player_close(&p);
        }
        camera_close(&c);
    }
}

// No password is sent in clear text once the camera has offered Digest, whatever it offers later.
static void test_no_clear_password(void)
{
    struct camera c;
    struct player p = {0};
    open_camera(&c);
    answer_with(&c, "DESCRIBE", UNAUTHORIZED BASIC MD5_OF("a") "\r\n");
    answer_with(&c, "DESCRIBE", UNAUTHORIZED BASIC "\r\n");
    for (int connection = 0; connection < 3; connection++) {
        play_signed(&c, &p);
        CHECK(p.rc == (connection ? -EPERM : -EACCES), "%d: %d, %s", connection, p.rc,
              p.session->why);
        CHECK(!connection || strstr(p.session->why, "no password in clear"), "%s", p.session->why);
        player_close(&p);
    }
    for (int i = 0; i < c.n_requests; i++)
        CHECK(!strstr(c.requests[i], "Basic"), "%s", c.requests[i]);
    CHECK(c.n_requests == 4, "%d", c.n_requests);
    camera_close(&c);
}

static void test_stale_nonce(void)
{
    struct camera c;
    struct player p = {0};
    open_camera(&c);
    answer_with(&c, "DESCRIBE", UNAUTHORIZED MD5_OF("a") "\r\n");
    answer_with(&c, "SETUP", UNAUTHORIZED MD5_OF("b") "\r\n"); // DESCRIBE was accepted
    answer_with(&c, "PLAY",
                UNAUTHORIZED
                "WWW-Authenticate: Digest realm=\"r\", nonce=\"c\", stale=TRUE\r\n\r\n");
    answer_with(&c, "GET_PARAMETER", UNAUTHORIZED MD5_OF("d") "\r\n");
    answer_with(&c, "GET_PARAMETER", OK "\r\n");
    answer_with(&c, "GET_PARAMETER", UNAUTHORIZED MD5_OF("d") "\r\n"); // as before: refused
    answer_plainly(&c);
    c.n_answers -= 1 + 1; // except GET_PARAMETER's and TEARDOWN's of the plain camera
    play_signed(&c, &p);
    CHECK(p.units == 1 && count_requests(&c, "SETUP") == 2 && count_requests(&c, "PLAY") == 2,
          "%d: %s", p.rc, p.session->why);
    CHECK(strstr(find_request(&c, "PLAY", 1), "nonce=\"c\""), "%s", find_request(&c, "PLAY", 1));
    play_on(&c, &p, 50, 99);
    for (int i = 0; i < 5; i++) {
        p.skew_ns += 30 * S;
        play_on(&c, &p, 50, 99);
    }
    CHECK(p.rc == 0 && count_requests(&c, "GET_PARAMETER") == 3, "%d, %d keep-alives", p.rc,
          count_requests(&c, "GET_PARAMETER"));
    player_close(&p);
    camera_close(&c);
}

static void test_redirections(void)
{
    struct camera c, other;
    struct player p = {0};
    char moved[256];
    open_camera(&c); // to another path
    answer_with(&c, "DESCRIBE /a", UNAUTHORIZED BASIC "\r\n");
    answer_with(&c, "DESCRIBE /a",
                "RTSP/1.0 302 Moved\r\nLocation: rtsp://127.0.0.1:{port}/b\r\n\r\n");
    answer_with(&c, "DESCRIBE /b", UNAUTHORIZED MD5_OF("b") "\r\n");
    answer_plainly(&c);
    player_open(&p, "rtsp://admin:secret@127.0.0.1:%d/a", c.port);
    play_on(&c, &p, 500, 1);
    CHECK(p.units == 1 && strstr(find_request(&c, "DESCRIBE", 3), "username=\"admin\""), "%d: %s",
          p.rc, find_request(&c, "DESCRIBE", 3));
    player_close(&p);
    camera_close(&c);

    static const char *const hosts[] = {"127.0.0.1", "localhost", "LOCALHOST"};
    for (int i = 0; i < 3; i++) { // to another port, to another name
        p = (struct player){0};
        open_camera(&c);
        open_camera(&other);
        snprintf(moved, sizeof moved, "RTSP/1.0 302 Moved\r\nLocation: rtsp://%s:%d/b\r\n\r\n",
                 hosts[i], other.port);
        answer_with(&c, "DESCRIBE", UNAUTHORIZED BASIC "\r\n");
        answer_with(&c, "DESCRIBE", moved);
        answer_with(&other, "DESCRIBE", UNAUTHORIZED BASIC "\r\n");
        player_open(&p, "rtsp://admin:secret@127.0.0.1:%d/a", c.port);
        play_on(&c, &p, 200, 1);
        play_on(&other, &p, 500, 1);
        CHECK(p.rc == -EACCES &&
                  strstr(p.session->why, "wants a user name and a password, and those") &&
                  other.n_requests == 1 && !strstr(other.requests[0], "Authorization"),
              "%s: %d, %s", hosts[i], p.rc, other.requests[0]);
        player_close(&p);
        camera_close(&other);
        camera_close(&c);
    }

    open_camera(&c); // in a circle
    answer_with(&c, "DESCRIBE",
                "RTSP/1.0 301 Moved\r\nLocation: rtsp://127.0.0.1:{port}/c\r\n\r\n");
    player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
    play_on(&c, &p, 500, 1);
    CHECK(p.rc == -ELOOP && count_requests(&c, "DESCRIBE") == 6, "%d after %d requests", p.rc,
          count_requests(&c, "DESCRIBE"));
    player_close(&p);
    camera_close(&c);
}

static void test_other_urls(void)
{
    struct camera c;
    struct player p = {0};
    open_camera(&c);
    answer_with(&c, "SETUP rtsp://127.0.0.1/live/a/track1 ",
                "RTSP/1.0 404 Not Found\r\nCSeq: 0\r\n\r\n");
    answer_with(&c, "DESCRIBE",
                "RTSP/1.0 200 OK\r\nCSeq: 0\r\nx-Accept-Dynamic-Rate: 1\r\n"
                "Content-Base: 127.0.0.1/live/a\r\nContent-Length: {sdp}\r\n\r\n" SDP);
    answer_plainly(&c);
    player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
    play_on(&c, &p, 500, 1);
    CHECK(p.units == 1 && count_requests(&c, "SETUP") == 2, "%d: %s", p.rc, p.session->why);
    CHECK(strstr(find_request(&c, "SETUP", 1), "SETUP rtsp://127.0.0.1/live/track1 RTSP/1.0"), "%s",
          find_request(&c, "SETUP", 1));
    CHECK(strstr(find_request(&c, "SETUP", 1), "\r\nx-Dynamic-Rate: 0\r\n"), "%s",
          find_request(&c, "SETUP", 1));
    CHECK(strstr(find_request(&c, "PLAY", 0), "PLAY rtsp://127.0.0.1/live/a RTSP/1.0"), "%s",
          find_request(&c, "PLAY", 0));
    player_close(&p);
    camera_close(&c);
}

static void test_refusals(void)
{
    static const struct {
        const char *to, *reply;
        int rc;
        const char *why;
    } cases[] = {
        {"DESCRIBE", "RTSP/1.0 404 Stream Not Found\r\n\r\n", -ENOENT,
         "answered DESCRIBE with 404 Stream Not Found"},
        {"DESCRIBE", "RTSP/1.0 403 Forbidden\r\n\r\n", -EPERM,
         "answered DESCRIBE with 403 Forbidden: this user or this box may not see the stream"},
        {"PLAY", "RTSP/1.0 403 No\r\n\r\n", -EPERM, "answered PLAY with 403 No: this user"},
        {"SETUP", "RTSP/1.0 453 Not Enough Bandwidth\r\n\r\n", -EUSERS, "SETUP with 453"},
        {"PLAY", "RTSP/1.0 503 Service Unavailable\r\n\r\n", -EUSERS, "PLAY with 503"},
        {"SETUP", "RTSP/1.0 461 Unsupported transport\r\n\r\n", -EPROTO, "SETUP with 461"},
        {"DESCRIBE", "HTTP/1.1 400 Bad Request\r\n\r\n", -EPROTO, "not in RTSP"},
        {"DESCRIBE", "RTSP/1.0 200 OK\r\n\r\n", -EPROTO, "in no way that framed can read"},
        {"DESCRIBE",
         "RTSP/1.0 200 OK\r\nContent-Length: 66\r\n\r\nm=audio 0 RTP/AVP 0\r\n"
         "m=video 0 RTP/AVP 99\r\na=rtpmap:99 VP9/90000\r\n",
         -EMEDIUMTYPE, "offers no H.264, H.265 or JPEG video, but: audio PCMU, video VP9"},
        {"DESCRIBE", "RTSP/1.0 200 OK\r\nContent-Length: 21\r\n\r\nm=audio 0 RTP/AVP 0\r\n",
         -EINVAL, "offers no H.264, H.265 or JPEG video, but: audio PCMU"},
        {"DESCRIBE", "RTSP/1.0 302 Moved\r\n\r\n", -EPROTO, "not to a URL of RTSP"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct camera c;
        struct player p = {0};
        open_camera(&c);
        answer_plainly(&c);
        for (int a = 0; a < c.n_answers; a++)
            if (!strcmp(c.answers[a].to, cases[i].to))
                c.answers[a].text = cases[i].reply;
        player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
        play_on(&c, &p, 300, 1);
        CHECK(p.rc == cases[i].rc && strstr(p.session->why, cases[i].why), "%d: %s", p.rc,
              p.session->why);
        player_close(&p);
        camera_close(&c);
    }
}

// The choice among several video tracks is logged once per camera, not per connection.
static void test_several_tracks(void)
{
    static const struct {
        const char *media, *line; // NULL: nothing is logged
    } cases[] = {
        {"m=audio 0 RTP/AVP 0\r\nm=video 0 RTP/AVP 98\r\na=rtpmap:98 VP9/90000\r\n"
         "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=framesize:96 1920-1080\r\n"
         "a=control:track1\r\nm=video 0 RTP/AVP 97\r\na=rtpmap:97 H265/90000\r\n"
         "a=x-dimensions:640,480\r\nm=video 0 RTP/AVP 99\r\n",
         " offers 4 video tracks: framed takes H264 1920x1080 and passes over VP9, H265 640x480, "
         "payload type 99\n"},
        {"m=audio 0 RTP/AVP 0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct camera c;
        struct player p = {0};
        char reply[2048];
        open_camera(&c);
        snprintf(reply, sizeof reply, OK "Content-Length: %zu\r\n\r\n%s", strlen(cases[i].media),
                 cases[i].media);
        answer_with(&c, "DESCRIBE", reply);
        answer_plainly(&c);
        for (int again = 0; again < 2; again++) {
            record();
            player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
            play_on(&c, &p, 500, 1);
            player_close(&p);
            const char *said = log_text(), *line = again ? NULL : cases[i].line;
            CHECK(p.units == 1 && (line ? strstr(said, line) != NULL : !*said),
                  "case %zu, connection %d: %d units, %s", i, again, p.units, said);
            c.answers[0].given = false;
        }
        camera_close(&c);
    }
}

// A camera that changes the SSRC with each picture: all are accepted, and one line reports it.
static void test_changes_of_source(void)
{
    struct camera c;
    struct player p = {0};
    open_camera(&c);
    answer_plainly(&c);
    record();
    for (int connection = 0; connection < 2; connection++) {
        player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
        play_on(&c, &p, 500, 1);
        for (int i = 1; i < 10; i++) {
            c.ssrc++;
            send_picture(&c, 0);
            play_on(&c, &p, 500, i + 1);
        }
        CHECK(p.units == 10 && !rtsp_session_statistics(p.session).foreign, "%d units", p.units);
        player_close(&p);
    }
    const char *said = log_text(), *line = strstr(said, " changed the source (SSRC) of its stream");
    CHECK(line && !strchr(line, '\n')[1], "%s", said);
    camera_close(&c);
}

// A camera that sends BYE for each source goes on with the next one; a last BYE ends the stream.
static void test_goodbye_of_each_source(void)
{
    struct camera c;
    struct player p = {0};
    uint8_t bye[] = {0x80, 201, 0, 1, 1, 2, 3, 4, 0x81, 203, 0, 1, 1, 2, 3, 4};
    open_camera(&c);
    answer_plainly(&c);
    player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
    play_on(&c, &p, 500, 1);
    for (int i = 1; i < 6; i++) {
        bye[7] = bye[15] = c.ssrc++;
        send_frame(&c, 1, bye, sizeof bye);
        send_frame(&c, 1, bye, sizeof bye); // again, after the next one's first packet too
        send_picture(&c, 0);
        send_frame(&c, 1, bye, sizeof bye);
        play_on(&c, &p, 500, i + 1);
        p.skew_ns += 600 * MS;
    }
    CHECK(p.units == 6 && !p.rc && c.accepted == 1, "%d units, %d: %s", p.units, p.rc,
          p.session->why);
    bye[7] = bye[15] = c.ssrc;
    send_frame(&c, 1, bye, sizeof bye);
    play_on(&c, &p, 100, 99);
    CHECK(!p.rc, "at once");
    p.skew_ns += 500 * MS;
    play_on(&c, &p, 100, 99);
    CHECK(p.rc == -ENODATA && strstr(p.session->why, "ended the stream"), "%d", p.rc);
    player_close(&p);
    camera_close(&c);
}

// User, password and query of thousands of letters, as in tokens, are sent whole.
static void test_long_login(void)
{
    static char letters[4001], expected[4200], url[12500];
    static struct camera c;
    struct player p = {0};
    memset(letters, 'x', 4000);
    for (int digest = 0; digest < 2; digest++) {
        open_camera(&c);
        answer_with(&c, "DESCRIBE",
                    digest ? UNAUTHORIZED MD5_OF("n") "\r\n" : UNAUTHORIZED BASIC "\r\n");
        answer_plainly(&c);
        snprintf(url, sizeof url, "rtsp://%.900s:%s@127.0.0.1:%d/a?jwt=%.2500s", letters, letters,
                 c.port, letters);
        player_open_url(&p, url);
        play_on(&c, &p, 500, 1);
        snprintf(expected, sizeof expected, "/a?jwt=%.2500s RTSP/1.0\r\n", letters);
        CHECK(p.units == 1 && strstr(find_request(&c, "DESCRIBE", 1), expected), "%d: %s", p.rc,
              p.session->why);
        snprintf(expected, sizeof expected, digest ? "username=\"%.900s\"" : "Basic eHh4", letters);
        CHECK(strstr(find_request(&c, "DESCRIBE", 1), expected), "%d", digest);
        player_close(&p);
        camera_close(&c);
    }
}

// The camera sends the second of two formats: the next connection selects that one.
static void test_other_format(void)
{
    static const char media[] = "m=video 0 RTP/AVP 98 96\r\na=rtpmap:98 H265/90000\r\n"
                                "a=rtpmap:96 H264/90000\r\na=control:track1\r\n";
    struct camera c;
    struct player p = {0};
    char reply[512];
    open_camera(&c);
    snprintf(reply, sizeof reply, OK "Content-Length: %zu\r\n\r\n%s", strlen(media), media);
    answer_with(&c, "DESCRIBE", reply);
    answer_plainly(&c);
    player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
    play_on(&c, &p, 300, 1);
    CHECK(!p.rc && p.session->media.payload_type == 98, "the first of the list");
    for (int i = 0; i < 16 && !p.rc; i++)
        send_picture(&c, 0);
    play_on(&c, &p, 500, 1);
    CHECK(p.rc == -ETIME && p.units == 0 && strstr(p.session->why, "sends payload type 96, not 98"),
          "%d: %s", p.rc, p.session->why);
    player_close(&p);
    c.answers[0].given = false;
    player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
    play_on(&c, &p, 500, 1);
    CHECK(!p.rc && p.units == 1 && p.session->media.codec == SDP_H264, "%d", p.rc);
    player_close(&p);
    camera_close(&c);
}

// Opens a camera with that media description. `reply` has 512 bytes and must outlive it.
static void open_described(struct camera *c, struct player *p, char *reply, const char *media)
{
    open_camera(c);
    snprintf(reply, 512, OK "Content-Length: %zu\r\n\r\n%s", strlen(media), media);
    answer_with(c, "DESCRIBE", reply);
    answer_plainly(c);
    c->after = NULL;
    player_open(p, "rtsp://127.0.0.1:%d/a", c->port);
    play_on(c, p, 300, 1);
}

// If only another payload type arrives, it is adopted, unless it is named for another codec or
// track.
static void test_adopted_formats(void)
{
    static const struct {
        const char *media;
        uint8_t type;
        bool adopted;
    } cases[] = {
        {"m=video 0 RTP/AVP 96 97\r\na=rtpmap:96 H264/90000\r\na=rtpmap:97 rtx/90000\r\n", 98,
         true},
        {"m=video 0 RTP/AVP 96 97\r\na=rtpmap:96 H264/90000\r\na=rtpmap:97 rtx/90000\r\n", 35,
         true},
        {"m=video 0 RTP/AVP 96 97\r\na=rtpmap:96 H264/90000\r\na=rtpmap:97 rtx/90000\r\n", 97,
         false},
        {"m=video 0 RTP/AVP 96 97\r\na=rtpmap:96 H264/90000\r\n", 97, true},
        {"m=video 0 RTP/AVP 96\r\na=rtpmap:97 H264/90000\r\n", 96, true},
        {"m=audio 0 RTP/AVP 97\r\na=rtpmap:97 MPEG4-GENERIC/16000\r\n"
         "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n",
         97, false},
        {"m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n"
         "m=video 0 RTP/AVP 97\r\na=rtpmap:97 H264/90000\r\n",
         97, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct camera c;
        struct player p = {0};
        char reply[512];
        open_described(&c, &p, reply, cases[i].media);
        c.payload_type = cases[i].type;
        for (int n = 0; n < 55 && !p.rc; n++)
            send_picture(&c, 0);
        play_on(&c, &p, cases[i].adopted ? 2000 : 200, 6);
        CHECK(!p.rc && p.units == (cases[i].adopted ? 6 : 0), "case %zu: %d units, %s", i, p.units,
              p.session->why);
        player_close(&p);
        camera_close(&c);
    }
}

// Another listed format beside ours has no effect, until ours falls silent.
static void test_format_beside_ours(void)
{
    struct camera c;
    struct player p = {0};
    char reply[512];
    open_described(&c, &p, reply,
                   "m=video 0 RTP/AVP 96 98\r\na=rtpmap:98 H265/90000\r\n"
                   "a=rtpmap:96 H264/90000\r\n");
    for (int n = 0; n < 3; n++) {
        c.payload_type = 96;
        send_picture(&c, 0);
        c.sequence += 1000;
        c.payload_type = 98;
        for (int i = 0; i < 20; i++)
            send_picture(&c, 0);
        c.sequence -= 1020;
        play_on(&c, &p, 200, 99);
    }
    CHECK(!p.rc && p.units == 3, "%d units, %d: %s", p.units, p.rc, p.session->why);
    p.skew_ns += S;
    for (int i = 0; i < 16; i++)
        send_picture(&c, 0);
    play_on(&c, &p, 500, 99);
    CHECK(p.rc == -ETIME, "%d: %s", p.rc, p.session->why);
    player_close(&p);
    camera_close(&c);
}

int main(void)
{
    log_record_open();
    log_level(LOG_LEVEL_INFO);
    TEST(test_several_tracks());
    TEST(test_changes_of_source());
    TEST(test_goodbye_of_each_source());
    TEST(test_other_format());
    TEST(test_adopted_formats());
    TEST(test_format_beside_ours());
    TEST(test_long_login());
    TEST(test_password());
    TEST(test_wrong_password());
    TEST(test_no_clear_password());
    TEST(test_stale_nonce());
    TEST(test_redirections());
    TEST(test_other_urls());
    TEST(test_refusals());
    return test_end();
}
