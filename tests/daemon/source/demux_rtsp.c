// A demux on a camera that a thread of the test plays: the demux's memory of the camera, and the
// number of its requests.
#include "daemon/source/demux.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libavcodec/codec_par.h>
#include <libavutil/log.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "tests/test.h"

static const int64_t MS = 1000000, PICTURE_NS = 40000000;
static const char SDP[] = "v=0\r\ns=x\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n";

enum { LINKS_MAX = 8 };

struct link { // a client's connection
    int fd;
    char in[8192];
    size_t n;
    bool deaf, udp;
    int64_t kept_ns;    // PLAY, or the last keep-alive that counts; 0: does not play
    int64_t picture_ns; // time of the next picture
    uint16_t sequence;
};

struct camera {
    pthread_t thread;
    int listener;
    char url[64], with_user[64];
    struct camera_config config; // of the demux that open_demux opens
    struct link links[LINKS_MAX];
    int n_links;
    uint8_t sent; // pictures over all links, each with different bytes
    _Atomic bool answers;
    const char *deaf_from; // from this request on, a connection gets no answers; NULL: answers all
    int64_t session_ns;    // media stop after this time without GET_PARAMETER; 0: never
    _Atomic int64_t period_ns; // between two pictures, and before the first; 0: 40 ms and none
    bool upon_play;            // sends the first picture at once
    bool sets; // sends its parameter sets, which its SDP lacks, before the first picture
    _Atomic bool stop, still, asks_password; // no password is right
    _Atomic int accepted, refused, parameters;
};

static void send_picture(struct camera *c, struct link *link, int64_t period_ns)
{
    const uint32_t timestamp = (uint32_t)(period_ns / 1000 * 9 / 100) * link->sequence;
    uint8_t frame[] = {
        '$',
        0,
        0,
        16,
        0x80,
        96 | 0x80,
        (uint8_t)(link->sequence >> 8),
        (uint8_t)link->sequence,
        (uint8_t)(timestamp >> 24),
        (uint8_t)(timestamp >> 16),
        (uint8_t)(timestamp >> 8),
        (uint8_t)timestamp,
        1,
        2,
        3,
        4,
        0x65,
        0x88,
        0x84,
        c->sent++,
    };
    link->sequence++;
    link->picture_ns += period_ns;
    send(link->fd, frame, sizeof frame, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static const uint8_t sets[] = {0,    0,    0, 1, 0x67, 66, 0,    30,   0x95, 0xa0,
                               0x50, 0x7c, 0, 0, 0,    1,  0x68, 0xce, 0x3c, 0x80};

static void send_sets(const struct link *link)
{
    uint8_t frame[16 + sizeof sets] = {'$', 0, 0, 12 + sizeof sets, 0x80, 96, 0xff, 0xff};
    frame[12] = 1;
    frame[13] = 2;
    frame[14] = 3;
    frame[15] = 4;
    memcpy(frame + 16, sets, sizeof sets);
    send(link->fd, frame, sizeof frame, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void answer(struct camera *c, struct link *link, const char *request)
{
    char reply[1024];
    link->deaf |= c->deaf_from && !strncmp(request, c->deaf_from, strlen(c->deaf_from));
    const char *cseq = strstr(request, "CSeq: ");
    const char *more = "Session: 7;timeout=2\r\n", *status = "200 OK", *body = "";
    if (c->asks_password) {
        c->refused += !strncmp(request, "DESCRIBE ", 9) && strstr(request, "Authorization:");
        status = "401 Unauthorized";
        more = "WWW-Authenticate: Basic realm=\"x\"\r\n";
    } else if (!strncmp(request, "DESCRIBE ", 9)) {
        body = SDP;
    } else if (!strncmp(request, "SETUP ", 6)) {
        link->udp = strstr(request, "client_port=");
        more = link->udp ? "Session: 7;timeout=2\r\nTransport: RTP/AVP;unicast;server_port=9-10\r\n"
                         : "Session: 7;timeout=2\r\nTransport: RTP/AVP/TCP;interleaved=0-1\r\n";
    } else if (!strncmp(request, "PLAY ", 5) && !link->udp) {
        link->kept_ns = monotonic_ns();
        link->picture_ns = link->kept_ns + (c->upon_play ? 0 : c->period_ns);
    } else if (!strncmp(request, "GET_PARAMETER ", 14)) {
        c->parameters++;
        link->kept_ns = monotonic_ns();
    }
    int n =
        snprintf(reply, sizeof reply, "RTSP/1.0 %s\r\nCSeq: %d\r\n%sContent-Length: %zu\r\n\r\n%s",
                 status, cseq ? atoi(cseq + 6) : 0, more, strlen(body), body);
    if (!link->deaf)
        send(link->fd, reply, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (c->sets && !strncmp(request, "PLAY ", 5))
        send_sets(link);
}

static void take_bytes(struct link *link, size_t n)
{
    link->n -= n;
    memmove(link->in, link->in + n, link->n);
    link->in[link->n] = 0;
}

static void serve(struct camera *c, struct link *link)
{
    const int64_t now_ns = monotonic_ns();
    ssize_t n = recv(link->fd, link->in + link->n, sizeof link->in - 1 - link->n, MSG_DONTWAIT);
    link->n += n > 0 ? (size_t)n : 0;
    link->in[link->n] = 0;
    while (link->n >= 4 && c->answers) {
        const bool report = link->in[0] == '$';
        const char *end = strstr(link->in, "\r\n\r\n");
        const size_t bytes =
            report ? 4 + (size_t)(uint8_t)link->in[3] : (size_t)(end + 4 - link->in);
        if ((!report && !end) || link->n < bytes)
            break;
        if (!report)
            answer(c, link, link->in);
        take_bytes(link, bytes);
    }
    const bool kept = !c->session_ns || now_ns - link->kept_ns < c->session_ns;
    while (link->kept_ns && kept && !c->still && link->picture_ns <= now_ns)
        send_picture(c, link, c->period_ns ? c->period_ns : PICTURE_NS);
}

static void *play(void *opaque)
{
    struct camera *c = opaque;
    while (!c->stop) {
        struct pollfd fds[1 + LINKS_MAX] = {{.fd = c->listener, .events = POLLIN}};
        for (int i = 0; i < c->n_links; i++)
            fds[1 + i] = (struct pollfd){.fd = c->links[i].fd};
        poll(fds, 1 + (nfds_t)c->n_links, 5);
        int fd = c->n_links < LINKS_MAX ? accept(c->listener, NULL, NULL) : -1;
        if (fd >= 0) {
            c->links[c->n_links++] = (struct link){.fd = fd};
            c->accepted++;
        }
        for (int i = 0; i < c->n_links; i++)
            serve(c, &c->links[i]);
    }
    return NULL;
}

static void camera_start(struct camera *c)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    c->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bind(c->listener, (struct sockaddr *)&at, sizeof at) < 0 || listen(c->listener, 8) < 0 ||
        getsockname(c->listener, (struct sockaddr *)&at, &(socklen_t){sizeof at}) < 0)
        abort();
    snprintf(c->url, sizeof c->url, "rtsp://127.0.0.1:%d/", ntohs(at.sin_port));
    snprintf(c->with_user, sizeof c->with_user, "rtsp://u:p@127.0.0.1:%d/", ntohs(at.sin_port));
    pthread_create(&c->thread, NULL, play, c);
}

static void camera_stop(struct camera *c)
{
    c->stop = true;
    pthread_join(c->thread, NULL);
    for (int i = 0; i < c->n_links; i++)
        close(c->links[i].fd);
    close(c->listener);
}

// --- the client

static _Atomic bool stop;

static struct camera_config config_of(const char *url, int connect_ms, int media_ms)
{
    return (struct camera_config){
        .name = "gate",
        .url = (char *)url,
        .connect_timeout = {connect_ms * MS},
        .media_timeout = {media_ms * MS},
        .close_timeout = {500 * MS},
    };
}

// Starts the camera and connects to it. If that fails, fails the test and returns NULL.
static struct demux *open_demux(struct camera *c, bool with_user, struct demux_memory *memory,
                                int media_ms)
{
    struct demux *demux = NULL;
    char why[256];
    camera_start(c);
    const enum transport transport = c->config.transport;
    c->config = config_of(with_user ? c->with_user : c->url, 2000, media_ms);
    c->config.transport = transport;
    const int rc = demux_open(&demux, &c->config, memory, &stop, NULL, why, sizeof why);
    CHECK(rc == 0, "%s", why);
    return demux;
}

static _Atomic int pause_ms; // of the process, in its next wait

// Replaces the system's.
int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
    (void)mask;
    poll(NULL, 0, atomic_exchange(&pause_ms, 0));
    return poll(fds, n, (int)(timeout->tv_nsec / MS) + 1);
}

// Returns 0, or demux_read's error.
static int read_for(struct demux *demux, int ms)
{
    const int64_t end_ns = monotonic_ns() + ms * MS;
    struct packet packet;
    int rc = 0;
    while ((rc == 0 || rc == -EREMCHG) && monotonic_ns() < end_ns)
        rc = demux_read(demux, &packet);
    return rc == -EREMCHG ? 0 : rc;
}

// A camera that accepts only GET_PARAMETER as a keep-alive, but does not list it, falls silent at
// its timeout: the next connection sends it, as learnt from the first.
static void test_keep_alive_is_learnt(void)
{
    struct camera c = {.answers = true, .session_ns = 2000 * MS};
    struct demux_memory memory = {0};
    struct demux *demux = open_demux(&c, false, &memory, 1000);
    int rc = demux ? read_for(demux, 6000) : -ECANCELED;
    demux_close(demux);
    CHECK(rc == -ETIMEDOUT && c.accepted == 1, "%s, %d connections", strerror(-rc), c.accepted);
    char why[256];
    rc = demux_open(&demux, &c.config, &memory, &stop, NULL, why, sizeof why);
    if (rc == 0) {
        rc = read_for(demux, 4000);
        demux_close(demux);
    }
    CHECK(rc == 0 && memory.rtsp.keep_alive == 1 && c.parameters >= 2,
          "%s, method %d, %d times GET_PARAMETER", strerror(-rc), memory.rtsp.keep_alive,
          c.parameters);
    camera_stop(&c);
}

// Reads until `n` packets came, or `ms` are over. Returns their number; *rc is demux_read's last
// result.
static int count_packets(struct demux *demux, int n, int ms, int *rc)
{
    const int64_t end_ns = monotonic_ns() + ms * MS;
    struct packet packet;
    int count = 0;
    for (*rc = 0; count < n && *rc == 0 && monotonic_ns() < end_ns; count++)
        *rc = demux_read(demux, &packet);
    return count - (*rc < 0);
}

// A camera with rare pictures, and none right after PLAY, keeps its only session though neither its
// first picture nor its second comes within connect_timeout.
static void test_slow_camera_keeps_its_session(void)
{
    struct camera c = {.answers = true, .period_ns = 2600 * MS};
    struct demux_memory memory = {0};
    struct demux *demux = open_demux(&c, false, &memory, 0);
    int rc = -ECANCELED;
    const int packets = demux ? count_packets(demux, 3, 20000, &rc) : 0;
    demux_close(demux);
    CHECK(packets == 3 && c.accepted == 1, "%d packets, %s, %d connections", packets, strerror(-rc),
          c.accepted);
    camera_stop(&c);
}

// Returns how many of `n` packets, after the first ones, the demux waited for. Decoding each takes
// `decoding_ms`.
static int count_waited(int64_t period_ms, int64_t decoding_ms, int n)
{
    enum { FIRST = 5 };
    struct camera c = {.answers = true, .period_ns = period_ms * MS};
    struct demux_memory memory = {0};
    struct packet packet;
    struct demux *demux = open_demux(&c, false, &memory, 5000);
    int rc = demux ? 0 : -ECANCELED, waited = 0;
    for (int i = 0; i < FIRST + n && rc == 0; i++) {
        rc = demux_read(demux, &packet);
        waited += rc == 0 && i >= FIRST && packet.waited;
        poll(NULL, 0, (int)decoding_ms);
    }
    CHECK(rc == 0, "%s", strerror(-rc));
    demux_close(demux);
    camera_stop(&c);
    return waited;
}

// If decoding takes longer than the camera's interval, the demux waits for no packet.
static void test_backlog_is_told(void)
{
    const int idle = count_waited(60, 5, 20), busy = count_waited(15, 60, 20);
    CHECK(idle > 10 && busy < 5, "waited for %d of 20, busy: %d", idle, busy);
}

// Some cameras answer no request after PLAY. Without a sign that a camera is slow, its first
// connection may just as well be dead.
static void test_slow_camera_answers_nothing(void)
{
    static const struct {
        const char *name, *deaf_from;
        bool upon_play;
        int media_ms, connections;
    } cases[] = {
        {"no sign", "OPTIONS", false, 0, 2},
        {"a media_timeout", "OPTIONS", false, 20000, 1},
        {"a picture in place of PLAY's answer", "PLAY", true, 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct camera c = {.answers = true,
                           .period_ns = 2600 * MS,
                           .upon_play = cases[i].upon_play,
                           .deaf_from = cases[i].deaf_from};
        struct demux_memory memory = {0};
        struct demux *demux = open_demux(&c, false, &memory, cases[i].media_ms);
        int rc = -ECANCELED;
        const int packets = demux ? count_packets(demux, 2, 20000, &rc) : 0;
        demux_close(demux);
        CHECK(packets == 2 && c.accepted == cases[i].connections,
              "%s: %d packets, %s, %d connections", cases[i].name, packets, strerror(-rc),
              c.accepted);
        camera_stop(&c);
    }
}

// UDP is given up after media_timeout, which then restarts: TCP gets as much time.
static void test_tcp_gets_its_own_time(void)
{
    struct camera c = {.answers = true, .period_ns = 2600 * MS, .config.transport = TRANSPORT_UDP};
    struct demux_memory memory = {0};
    struct demux *demux = open_demux(&c, false, &memory, 3500);
    int rc = -ECANCELED;
    const int packets = demux ? count_packets(demux, 1, 20000, &rc) : 0;
    demux_close(demux);
    CHECK(packets == 1 && rc == 0 && c.accepted == 2 && memory.rtsp.udp_fails,
          "%d packets, %s, %d connections", packets, strerror(-rc), c.accepted);
    camera_stop(&c);
}

// A camera that has become slow, but answers, keeps its session after one that was too short, until
// it is fast again.
static void test_slowed_camera_keeps_its_session(void)
{
    for (int upon_play = 0; upon_play < 2; upon_play++) {
        struct camera c = {.answers = true, .period_ns = 6000 * MS, .upon_play = upon_play};
        struct demux_memory memory = {.intervals = 16, .interval_ns = PICTURE_NS};
        struct demux *demux = open_demux(&c, false, &memory, 0);
        char why[256];
        int rc = -ECANCELED;
        const int first = demux ? count_packets(demux, 3, 20000, &rc) : 0;
        demux_close(demux);
        CHECK(rc == -ETIMEDOUT && first == upon_play, "%d packets, %s", first, strerror(-rc));
        if (demux_open(&demux, &c.config, &memory, &stop, NULL, why, sizeof why) == 0) {
            const int second = count_packets(demux, 1 + upon_play, 20000, &rc);
            CHECK(second == 1 + upon_play && rc == 0 && c.accepted == 2,
                  "%d packets, %s, %d connections", second, strerror(-rc), c.accepted);
            CHECK(memory.silence_ns > 6000 * MS, "%lld ns", (long long)memory.silence_ns);
            c.period_ns = PICTURE_NS;
            count_packets(demux, 12, 20000, &rc);
            CHECK(rc == 0 && memory.silence_ns == 0, "quick again: %s, %lld ns", strerror(-rc),
                  (long long)memory.silence_ns);
            demux_close(demux);
        }
        camera_stop(&c);
    }
}

// A camera that has answered before, but is dead after PLAY, soon gets another connection.
static void test_dead_connection_is_replaced(void)
{
    struct camera c = {.answers = true, .period_ns = 60000 * MS, .deaf_from = "OPTIONS"};
    struct demux_memory memory = {.answers = true};
    struct demux *demux = open_demux(&c, false, &memory, 0);
    if (demux)
        read_for(demux, 2500);
    demux_close(demux);
    CHECK(c.accepted == 2, "%d connections", c.accepted);
    camera_stop(&c);
}

// A connection that dies after its first picture ends soon; the next one that does gets the time of
// a slow camera.
static void test_connection_dies_behind_its_first_picture(void)
{
    struct camera c = {
        .answers = true, .period_ns = 60000 * MS, .upon_play = true, .deaf_from = "OPTIONS"};
    struct demux_memory memory = {0};
    const int64_t begun_ns = monotonic_ns();
    struct demux *demux = open_demux(&c, false, &memory, 0);
    int rc = -ECANCELED;
    const int packets = demux ? count_packets(demux, 2, 20000, &rc) : 0;
    const int64_t ms = (monotonic_ns() - begun_ns) / MS;
    demux_close(demux);
    CHECK(packets == 1 && rc == -ETIMEDOUT && ms < 4500, "%d packets, %s after %lld ms", packets,
          strerror(-rc), (long long)ms);
    CHECK(memory.deaf, "the next connection ends as soon");
    camera_stop(&c);
}

// `media_timeout` applies before any rhythm is known, to a camera that still answers.
static void test_media_timeout_holds_at_once(void)
{
    struct camera c = {.answers = true, .period_ns = 400 * MS};
    struct demux_memory memory = {0};
    struct demux *demux = open_demux(&c, false, &memory, 1000);
    int rc = -ECANCELED;
    int packets = demux ? count_packets(demux, 2, 10000, &rc) : 0;
    const int64_t begun_ns = monotonic_ns();
    c.still = true;
    packets += demux ? count_packets(demux, 3, 20000, &rc) : 0; // one may be on its way
    const int64_t ms = (monotonic_ns() - begun_ns) / MS;
    CHECK(packets >= 2 && packets <= 3 && rc == -ETIMEDOUT && ms >= 1000 && c.accepted == 1,
          "%d packets, %s after %lld ms, %d connections", packets, strerror(-rc), (long long)ms,
          c.accepted);
    CHECK(ms < 4500, "the patience of 5 s, not media_timeout: %lld ms", (long long)ms);
    demux_close(demux);
    camera_stop(&c);
}

// Pictures that arrived while the process was stopped are no silence.
static void test_stopped_process_keeps_its_session(void)
{
    struct camera c = {.answers = true};
    struct demux_memory memory = {0};
    struct demux *demux = open_demux(&c, false, &memory, 0);
    int rc = demux ? read_for(demux, 600) : -ECANCELED;
    CHECK(rc == 0 && memory.intervals >= 8, "%s, %d intervals", strerror(-rc), memory.intervals);
    pause_ms = 1500;
    rc = demux ? read_for(demux, 100) : -ECANCELED;
    CHECK(rc == 0 && pause_ms == 0, "%s", strerror(-rc));
    demux_close(demux);
    camera_stop(&c);
}

// Returns the number of connections within 2.2 s to a camera that answers none.
static int connections_without_answer(bool with_user, bool accepted)
{
    struct camera c = {0};
    struct demux_memory memory = {.accepted = accepted};
    struct demux *demux;
    char why[256];
    camera_start(&c);
    const struct camera_config config = config_of(with_user ? c.with_user : c.url, 2200, 0);
    int rc = demux_open(&demux, &config, &memory, &stop, NULL, why, sizeof why);
    CHECK(rc == -ETIMEDOUT, "%s: %s", strerror(-rc), why);
    const int connections = c.accepted;
    camera_stop(&c);
    return connections;
}

static void test_password_is_tried_once(void)
{
    const int unknown = connections_without_answer(true, false);
    const int accepted = connections_without_answer(true, true);
    const int none = connections_without_answer(false, false);
    CHECK(unknown == 1 && accepted == 2 && none == 2, "%d, %d, %d connections", unknown, accepted,
          none);
}

static void test_password_is_wanted(void)
{
    struct camera c = {.answers = true, .asks_password = true};
    struct demux *demux;
    char why[256];
    camera_start(&c);
    const struct camera_config config = config_of(c.url, 2200, 0);
    int rc = demux_open(&demux, &config, NULL, &stop, NULL, why, sizeof why);
    CHECK(rc == -EACCES && strstr(why, "wants a user name and a password"), "%s: %s", strerror(-rc),
          why);
    camera_stop(&c);
}

static void *begin_to_answer(void *opaque)
{
    struct camera *c = opaque;
    const struct timespec late = {1, 800 * MS};
    nanosleep(&late, NULL);
    c->answers = true;
    return NULL;
}

// A camera answers late, after its second connection has begun, and refuses the password: only one
// login attempt is made.
static void test_late_refusal_counts_once(void)
{
    struct camera c = {.asks_password = true};
    struct demux_memory memory = {.accepted = true};
    struct demux *demux;
    pthread_t thread;
    char why[256];
    camera_start(&c);
    pthread_create(&thread, NULL, begin_to_answer, &c);
    const struct camera_config config = config_of(c.with_user, 4000, 0);
    int rc = demux_open(&demux, &config, &memory, &stop, NULL, why, sizeof why);
    CHECK(rc == -EACCES && strstr(why, "refused the user name"), "%s: %s", strerror(-rc), why);
    CHECK(c.accepted == 2 && c.refused == 1 && !memory.accepted, "%d connections, %d refused",
          c.accepted, c.refused);
    pthread_join(thread, NULL);
    camera_stop(&c);
}

// Copies of later keyframes, which come without parameter sets, need those from the stream's start.
static void test_sets_are_of_the_stream(void)
{
    struct camera c = {.answers = true, .sets = true};
    struct demux_memory memory = {0};
    struct demux *demux = open_demux(&c, false, &memory, 2000);
    if (demux) {
        const int rc = read_for(demux, 300);
        const AVCodecParameters *stream = demux->parameters;
        CHECK(rc == 0 && stream->extradata_size == sizeof sets &&
                  !memcmp(stream->extradata, sets, sizeof sets),
              "%s, %d bytes of sets", strerror(-rc), stream->extradata_size);
        demux_close(demux);
    }
    camera_stop(&c);
}

int main(void)
{
    av_log_set_level(AV_LOG_QUIET); // its pictures cannot be decoded
    TEST(test_keep_alive_is_learnt());
    TEST(test_password_is_tried_once());
    TEST(test_password_is_wanted());
    TEST(test_late_refusal_counts_once());
    TEST(test_slow_camera_keeps_its_session());
    TEST(test_backlog_is_told());
    TEST(test_slow_camera_answers_nothing());
    TEST(test_tcp_gets_its_own_time());
    TEST(test_slowed_camera_keeps_its_session());
    TEST(test_dead_connection_is_replaced());
    TEST(test_connection_dies_behind_its_first_picture());
    TEST(test_media_timeout_holds_at_once());
    TEST(test_stopped_process_keeps_its_session());
    TEST(test_sets_are_of_the_stream());
    return test_end();
}
