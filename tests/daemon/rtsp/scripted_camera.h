// A camera that answers requests with given texts, and a session that plays from it on a thread of
// its own. Both run by turns: the session's thread runs until it waits. Its time is the test's own:
// it may jump.
#ifndef FRAMED_TESTS_DAEMON_RTSP_SCRIPTED_CAMERA_H
#define FRAMED_TESTS_DAEMON_RTSP_SCRIPTED_CAMERA_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/rtsp/session.h"
#include "tests/test.h"

static const int64_t MS = 1000000, S = 1000000000;

#define SDP                                                                                        \
    "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\n"                      \
    "m=audio 0 RTP/AVP 0\r\na=control:track0\r\nm=video 0 RTP/AVP 96\r\n"                          \
    "a=rtpmap:96 H264/90000\r\na=control:track1\r\na=fmtp:96 packetization-mode=1\r\n"             \
    "a=rtcp-fb:96 nack pli\r\n"
#define OK       "RTSP/1.0 200 OK\r\nCSeq: {cseq}\r\n"
#define DESCRIBE "Content-Base: rtsp://127.0.0.1/base/\r\nContent-Length: {sdp}\r\n\r\n" SDP
#define SESSION  "Session: 77;timeout=60\r\n"
#define TCP      "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n"

// "METHOD" or "METHOD part of the request" and its reply, used once, unless it is the last for that
// request. {cseq}, {sdp} (its length) and {port} (the camera's) are replaced.
struct answer {
    const char *to, *text;
    bool given;
};

struct camera {
    int listener, fd, port, accepted;
    char in[64 << 10];
    size_t n;
    struct answer answers[24];
    int n_answers;
    char requests[40][16 << 10];
    int n_requests;
    bool mute;               // accepts, but answers nothing
    uint8_t frames[8 << 10]; // received interleaved frames
    size_t n_frames;
    void (*between)(struct camera *, const char *request); // before the reply
    void (*after)(struct camera *, const char *request);   // after it
    uint16_t sequence;
    uint32_t timestamp;
    uint8_t ssrc, payload_type; // the last byte of the SSRC; 0: 96
};

struct player {
    struct camera_config config;
    struct rtsp_memory memory;
    struct rtsp_session *session;
    char url[256];
    int64_t skew_ns; // offset of the test's time
    int rc, units;
    struct rtsp_unit last;
    uint8_t data[256]; // the last unit's first bytes
    pthread_t thread;
    sem_t turn, waits; // the thread may run; it waits
    struct pollfd fds[4];
    int n_fds;
    int64_t due_ns; // end of its wait
    int wanted;     // units to read
    _Atomic bool stop;
    int64_t goodbye_ns; // limit for closing after *stop
    bool over;
};

static inline int listen_somewhere(int *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 8) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &(socklen_t){sizeof at}) < 0)
        abort();
    *port = ntohs(at.sin_port);
    return fd;
}

static inline void camera_open(struct camera *c)
{
    *c = (struct camera){.fd = -1, .timestamp = 90000, .ssrc = 4};
    c->listener = listen_somewhere(&c->port);
}

static inline void camera_close(struct camera *c)
{
    if (c->fd >= 0)
        close(c->fd);
    close(c->listener);
}

static inline void answer_with(struct camera *c, const char *to, const char *text)
{
    c->answers[c->n_answers++] = (struct answer){to, text, false};
}

// Adds a plain camera's answers, after the test's own.
static inline void answer_plainly(struct camera *c)
{
    answer_with(c, "DESCRIBE", OK DESCRIBE);
    answer_with(c, "SETUP", OK SESSION TCP "\r\n");
    answer_with(c, "PLAY", OK "Session: 77\r\n\r\n");
    answer_with(c, "OPTIONS", OK "Public: OPTIONS, DESCRIBE, GET_PARAMETER\r\n\r\n");
    answer_with(c, "GET_PARAMETER", OK "\r\n");
    answer_with(c, "TEARDOWN", OK "\r\n");
}

static inline void camera_send(const struct camera *c, const void *data, size_t n)
{
    if (send(c->fd, data, n, MSG_NOSIGNAL) != (ssize_t)n && errno != EPIPE && errno != ECONNRESET)
        abort();
}

static inline size_t rtp_packet(struct camera *c, uint8_t *to, uint8_t nal_type, bool marker)
{
    const uint8_t packet[] = {
        0x80,
        (uint8_t)((c->payload_type ? c->payload_type : 96) | (marker ? 0x80 : 0)),
        (uint8_t)(c->sequence >> 8),
        (uint8_t)c->sequence,
        (uint8_t)(c->timestamp >> 24),
        (uint8_t)(c->timestamp >> 16),
        (uint8_t)(c->timestamp >> 8),
        (uint8_t)c->timestamp,
        1,
        2,
        3,
        c->ssrc,
        nal_type,
        0x88,
        0x84,
        (uint8_t)c->sequence};
    c->sequence++;
    memcpy(to, packet, sizeof packet);
    return sizeof packet;
}

static inline void send_frame(const struct camera *c, int channel, const void *data, size_t n)
{
    uint8_t frame[2048] = {'$', (uint8_t)channel, (uint8_t)(n >> 8), (uint8_t)n};
    memcpy(frame + 4, data, n);
    camera_send(c, frame, n + 4);
}

// Sends a picture of one packet.
static inline void send_picture(struct camera *c, int channel)
{
    uint8_t packet[64];
    c->timestamp += 3600;
    send_frame(c, channel, packet, rtp_packet(c, packet, 0x65, true));
}

static inline const char *write_answer(const struct camera *c, const char *text, int cseq, char *to,
                                       size_t size)
{
    const struct {
        const char *name;
        int value;
    } values[] = {{"{cseq}", cseq}, {"{sdp}", (int)strlen(SDP)}, {"{port}", c->port}};
    size_t n = 0;
    while (*text && n < size - 16) {
        bool found = false;
        for (size_t i = 0; i < 3 && !found; i++) {
            if ((found = !strncmp(text, values[i].name, strlen(values[i].name)))) {
                n += (size_t)snprintf(to + n, size - n, "%d", values[i].value);
                text += strlen(values[i].name);
            }
        }
        if (!found)
            to[n++] = *text++;
    }
    to[n] = 0;
    return to;
}

static inline bool is_answer_to(const struct answer *answer, const char *request)
{
    const size_t method = strcspn(answer->to, " ");
    return !strncmp(answer->to, request, method) && request[method] == ' ' &&
           (!answer->to[method] || strstr(request, answer->to + method + 1));
}

static inline void answer_request(struct camera *c, const char *request)
{
    char text[4096];
    struct answer *chosen = NULL;
    const char *cseq = strstr(request, "CSeq: ");
    if (c->between)
        c->between(c, request);
    for (int i = 0; i < c->n_answers; i++) {
        if (!is_answer_to(&c->answers[i], request))
            continue;
        chosen = &c->answers[i];
        if (!chosen->given)
            break;
    }
    if (chosen && *chosen->text) {
        chosen->given = true;
        write_answer(c, chosen->text, cseq ? atoi(cseq + 6) : -1, text, sizeof text);
        camera_send(c, text, strlen(text));
    } else if (chosen) {
        chosen->given = true; // an empty text: no answer
    }
    if (c->after)
        c->after(c, request);
}

static inline void take_bytes(struct camera *c, size_t n)
{
    memmove(c->in, c->in + n, c->n - n);
    c->n -= n;
    c->in[c->n] = 0;
}

static inline void camera_step(struct camera *c)
{
    int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
        if (c->fd >= 0)
            close(c->fd);
        c->fd = fd;
        c->n = 0;
        c->accepted++;
    }
    ssize_t n = c->fd >= 0 ? recv(c->fd, c->in + c->n, sizeof c->in - 1 - c->n, MSG_DONTWAIT) : -1;
    if (n > 0)
        c->n += (size_t)n;
    c->in[c->n] = 0;
    while (c->n && !c->mute) {
        if (c->in[0] == '$') {
            const size_t bytes =
                c->n >= 4 ? 4 + ((size_t)(uint8_t)c->in[2] << 8) + (uint8_t)c->in[3] : 4;
            if (c->n < bytes || c->n_frames + bytes > sizeof c->frames)
                return;
            memcpy(c->frames + c->n_frames, c->in, bytes);
            c->n_frames += bytes;
            take_bytes(c, bytes);
            continue;
        }
        char *end = strstr(c->in, "\r\n\r\n");
        if (!end || c->n_requests >= 40)
            return;
        char *request = c->requests[c->n_requests++];
        const size_t bytes = (size_t)(end + 4 - c->in);
        snprintf(request, sizeof c->requests[0], "%.*s", (int)bytes, c->in);
        take_bytes(c, bytes);
        if (strncmp(request, "RTSP/", 5))
            answer_request(c, request);
    }
}

// --- the player

static _Thread_local struct player *self; // of the session's thread
static void (*on_wait)(void);             // called when a test's own thread waits

static inline int64_t player_now(const struct player *p)
{
    return monotonic_ns() + p->skew_ns;
}

// Replaces the system's.
int clock_gettime(clockid_t clock, struct timespec *ret)
{
    const int rc = (int)syscall(SYS_clock_gettime, clock, ret);
    if (self && clock == CLOCK_MONOTONIC) {
        const int64_t ns = ret->tv_sec * S + ret->tv_nsec + self->skew_ns;
        *ret = (struct timespec){ns / S, ns % S};
    }
    return rc;
}

// Ends the thread's turn.
static inline void player_wait(struct player *p, struct pollfd *fds, int n, int64_t ns)
{
    for (int i = 0; i < n; i++)
        p->fds[i] = fds[i];
    p->n_fds = n;
    p->due_ns = monotonic_ns() + ns;
    sem_post(&p->waits);
    sem_wait(&p->turn);
}

// Replaces the system's.
int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
    (void)mask;
    const int64_t ns = timeout->tv_sec * S + timeout->tv_nsec;
    if (self)
        player_wait(self, fds, (int)n, ns);
    else if (on_wait)
        on_wait();
    return poll(fds, n, self ? 0 : on_wait ? 5 : (int)(ns / MS));
}

static inline int player_play(struct player *p)
{
    return rtsp_session_play(p->session, monotonic_ns() + p->config.connect_timeout.ns, 3600 * S);
}

static inline void player_take_unit(struct player *p)
{
    const struct access_unit *unit = &p->last.unit;
    memcpy(p->data, unit->data, unit->bytes < sizeof p->data ? unit->bytes : sizeof p->data);
    p->units++;
}

static inline void *player_run(void *opaque)
{
    struct player *p = self = opaque;
    sem_wait(&p->turn);
    int rc = player_play(p);
    while (rc == 0 || rc == -EAGAIN) {
        while (p->units >= p->wanted && !p->stop)
            player_wait(p, NULL, 0, S);
        rc = rtsp_session_read(p->session, &p->last);
        if (rc == 0)
            player_take_unit(p);
        else if (rc == -ERESTART)
            rc = player_play(p);
    }
    if (rc == -ECANCELED) {
        rtsp_session_close(p->session, p->goodbye_ns);
        p->session = NULL;
        rc = -ESHUTDOWN;
    }
    p->rc = rc;
    p->over = true;
    sem_post(&p->waits);
    return NULL;
}

static inline void player_open_url(struct player *p, const char *url)
{
    p->config.url = (char *)url;
    if (!p->config.connect_timeout.ns)
        p->config.connect_timeout.ns = 10 * S;
    p->rc = p->units = p->wanted = p->n_fds = 0;
    p->stop = p->over = false;
    p->goodbye_ns = p->due_ns = 0;
    int rc = rtsp_session_open(&p->session, &p->config, &p->memory, &p->stop);
    CHECK(rc == 0, "opening %s: %s", p->url, strerror(-rc));
    sem_init(&p->turn, 0, 0);
    sem_init(&p->waits, 0, 0);
    pthread_create(&p->thread, NULL, player_run, p);
}

__attribute__((format(printf, 2, 3))) static inline void player_open(struct player *p,
                                                                     const char *url, ...)
{
    va_list arguments;
    va_start(arguments, url);
    vsnprintf(p->url, sizeof p->url, url, arguments);
    va_end(arguments);
    player_open_url(p, p->url);
}

static inline void player_step(struct player *p)
{
    if (p->over)
        return;
    sem_post(&p->turn);
    sem_wait(&p->waits);
}

// Requests the end of the session, with time for a goodbye.
static inline void player_leave(struct player *p)
{
    p->goodbye_ns = S;
    p->stop = true;
}

static inline void player_close(struct player *p)
{
    p->stop = true;
    while (!p->over)
        player_step(p);
    pthread_join(p->thread, NULL);
    rtsp_session_close(p->session, 0);
    p->session = NULL;
    sem_destroy(&p->turn);
    sem_destroy(&p->waits);
}

// Runs both for `ms`, until the session ends, or until `units` units have come.
static inline void play_on(struct camera *c, struct player *p, int ms, int units)
{
    const int64_t end = monotonic_ns() + ms * MS;
    p->wanted = units;
    while (monotonic_ns() < end && !p->rc && p->units < units) {
        struct pollfd fds[6];
        int n = p->n_fds;
        memcpy(fds, p->fds, sizeof p->fds);
        fds[n++] = (struct pollfd){.fd = c->listener, .events = POLLIN};
        if (c->fd >= 0)
            fds[n++] = (struct pollfd){.fd = c->fd, .events = c->mute ? 0 : POLLIN};
        const int64_t wait = p->due_ns - player_now(p);
        poll(fds, (nfds_t)n, wait <= 0 ? 0 : wait < 10 * MS ? (int)(wait / MS) + 1 : 10);
        camera_step(c);
        player_step(p);
    }
}

// Returns the number of requests that begin with `method`.
static inline int count_requests(const struct camera *c, const char *method)
{
    int count = 0;
    for (int i = 0; i < c->n_requests; i++)
        count += !strncmp(c->requests[i], method, strlen(method)) &&
                 c->requests[i][strlen(method)] == ' ';
    return count;
}

// Returns the `index`-th request (from 0) of that method, or "".
static inline const char *find_request(const struct camera *c, const char *method, int index)
{
    for (int i = 0; i < c->n_requests; i++)
        if (!strncmp(c->requests[i], method, strlen(method)) &&
            c->requests[i][strlen(method)] == ' ' && index-- == 0)
            return c->requests[i];
    return "";
}

// Returns the number of interleaved RTCP packets of that type, on any channel.
static inline int count_reports(const struct camera *c, int type)
{
    int count = 0;
    for (size_t at = 0; at + 8 <= c->n_frames;) {
        const size_t bytes = ((size_t)c->frames[at + 2] << 8) + c->frames[at + 3];
        for (size_t i = at + 4; i + 4 <= at + 4 + bytes;
             i += 4 * (((size_t)c->frames[i + 2] << 8) + c->frames[i + 3] + 1))
            count += c->frames[i + 1] == type;
        at += 4 + bytes;
    }
    return count;
}

#endif
