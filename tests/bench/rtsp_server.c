#include "tests/bench/rtsp_server.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "tests/bench/rtsp_peer.h"

enum { BACKLOG = 1024, EVENTS = 64, PORT_TRIES = 200, DRAIN = 2048 };
static const double LINK = 100e6;
static const int64_t NEVER = INT64_MAX;

struct rtsp_server {
    struct rtsp_cameras cameras;
    struct rtp_clip rtp;
    _Atomic int64_t *sent;    // memory of all records' sent_ns
    struct rtsp_peer **peers; // n
    size_t n;
    int listener, epoll, timer, stop;
    pthread_t thread;
    bool started;
};

// --- sockets

static int open_socket(int type, int port, int *bound)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const int on = 1, fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (type & SOCK_STREAM)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, size) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    *bound = ntohs(address.sin_port);
    return fd;
}

// Binds an even port and the next one.
static int open_udp_pair(struct rtsp_cameras *cameras)
{
    for (int i = 0; i < PORT_TRIES; i++) {
        int ignored;
        cameras->rtp_fd = open_socket(SOCK_DGRAM, 0, &cameras->udp_port);
        if (cameras->rtp_fd < 0)
            return cameras->rtp_fd;
        if (cameras->udp_port % 2 == 0) {
            cameras->rtcp_fd = open_socket(SOCK_DGRAM, cameras->udp_port + 1, &ignored);
            if (cameras->rtcp_fd >= 0)
                return 0;
        }
        close(cameras->rtp_fd);
        cameras->rtp_fd = -1;
    }
    return -EADDRINUSE;
}

static int watch_fd(struct rtsp_server *server, int operation, int fd, uint32_t events, void *of)
{
    struct epoll_event event = {.events = events, .data.ptr = of};
    return epoll_ctl(server->epoll, operation, fd, &event) == 0 ? 0 : -errno;
}

// --- the thread

static void drop_peer(struct rtsp_server *server, struct rtsp_peer *peer)
{
    for (size_t i = 0; i < server->n; i++)
        if (server->peers[i] == peer)
            server->peers[i] = server->peers[--server->n];
    rtsp_peer_close(peer);
    free(peer);
}

static void accept_peer(struct rtsp_server *server)
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    const int on = 1;
    const int fd = accept4(server->listener, (struct sockaddr *)&address, &size, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    struct rtsp_peer *peer = malloc(sizeof *peer);
    struct rtsp_peer **peers = realloc(server->peers, (server->n + 1) * sizeof *peers);
    server->peers = peers ? peers : server->peers;
    if (!peer || !peers || watch_fd(server, EPOLL_CTL_ADD, fd, EPOLLIN, peer) < 0) {
        free(peer);
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    rtsp_peer_open(peer, &server->cameras, fd, &address);
    server->peers[server->n++] = peer;
}

// A full socket is watched for room; until then nothing is due for it.
static void serve_peer(struct rtsp_server *server, struct rtsp_peer *peer, uint32_t events)
{
    int rc = events & (EPOLLIN | EPOLLHUP | EPOLLERR) ? rtsp_peer_read(peer) : 0;
    if (rc == 0 || rc == -EAGAIN)
        rc = rtp_sender_send(&peer->sender);
    if (rc < 0 && rc != -EAGAIN) {
        drop_peer(server, peer);
        return;
    }
    const bool full = rc == -EAGAIN;
    if (full != peer->sender.full) {
        peer->sender.full = full;
        watch_fd(server, EPOLL_CTL_MOD, peer->fd, EPOLLIN | (full ? EPOLLOUT : 0), peer);
    }
}

static bool due(const struct rtsp_peer *peer, int64_t now)
{
    return peer->sender.playing && !peer->sender.full && peer->sender.due_ns <= now;
}

// Sends everything due and sets the timer to the next due time.
static void serve_due(struct rtsp_server *server)
{
    int64_t now = monotonic_ns(), next = NEVER;
    for (size_t i = server->n; i-- > 0;)
        if (due(server->peers[i], now))
            serve_peer(server, server->peers[i], 0);
    for (size_t i = 0; i < server->n; i++) {
        const struct rtp_sender *sender = &server->peers[i]->sender;
        if (sender->playing && !sender->full && sender->due_ns < next)
            next = sender->due_ns;
    }
    const int64_t at = next == NEVER ? 0 : next > 1 ? next : 1; // 0 stops the timer
    const struct itimerspec when = {.it_value = {at / 1000000000, at % 1000000000}};
    timerfd_settime(server->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

// Discards UDP input: clients' hole punching (not needed here) and reports.
static void drain(int fd)
{
    char bytes[DRAIN];
    while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) >= 0)
        ;
}

static void *run(void *opaque)
{
    struct rtsp_server *server = opaque;
    struct epoll_event events[EVENTS];
    uint64_t ticks;
    prctl(PR_SET_TIMERSLACK, 1);
    for (;;) {
        const int n = epoll_wait(server->epoll, events, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            void *of = events[i].data.ptr;
            if (of == &server->stop)
                return NULL;
            if (of == &server->listener)
                accept_peer(server);
            else if (of == &server->timer)
                (void)!read(server->timer, &ticks, sizeof ticks);
            else if (of == &server->cameras.rtp_fd || of == &server->cameras.rtcp_fd)
                drain(*(int *)of);
            else
                serve_peer(server, of, events[i].events);
        }
        serve_due(server);
    }
}

// --- opening

static int open_records(struct rtsp_server *server)
{
    const size_t cameras = (size_t)server->cameras.n, units = (size_t)server->rtp.clip->n;
    server->cameras.records = calloc(cameras, sizeof *server->cameras.records);
    server->sent = calloc(cameras * units, sizeof *server->sent);
    if (!server->cameras.records || !server->sent)
        return -ENOMEM;
    for (size_t i = 0; i < cameras; i++)
        server->cameras.records[i].sent_ns = server->sent + i * units;
    return 0;
}

static int open_sockets(struct rtsp_server *server, int port)
{
    struct rtsp_cameras *cameras = &server->cameras;
    server->listener = open_socket(SOCK_STREAM | SOCK_NONBLOCK, port, &cameras->port);
    if (server->listener < 0)
        return server->listener;
    if (listen(server->listener, BACKLOG) != 0)
        return -errno;
    int rc = open_udp_pair(cameras);
    if (rc < 0)
        return rc;
    server->epoll = epoll_create1(EPOLL_CLOEXEC);
    server->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    server->stop = eventfd(0, EFD_CLOEXEC);
    int *const fds[] = {&server->listener, &server->timer, &server->stop, &cameras->rtp_fd,
                        &cameras->rtcp_fd};
    for (int i = 0; rc == 0 && i < 5; i++)
        rc = watch_fd(server, EPOLL_CTL_ADD, *fds[i], EPOLLIN, fds[i]);
    return rc;
}

int rtsp_server_open(struct rtsp_server **ret, const struct rtsp_server_options *options)
{
    struct rtsp_server *server = calloc(1, sizeof *server);
    if (!server)
        return -ENOMEM;
    server->listener = server->epoll = server->timer = server->stop = -1;
    server->cameras = (struct rtsp_cameras){.rtp = &server->rtp,
                                            .n = options->cameras,
                                            .rtp_fd = -1,
                                            .rtcp_fd = -1,
                                            .link = options->link > 0 ? options->link : LINK,
                                            .withhold = options->withhold,
                                            .spread = options->spread};
    int rc = rtp_clip_open(&server->rtp, options->clip);
    if (rc == 0)
        rc = open_records(server);
    if (rc == 0)
        rc = open_sockets(server, options->port);
    if (rc == 0)
        rc = -pthread_create(&server->thread, NULL, run, server);
    server->started = rc == 0;
    if (rc < 0)
        rtsp_server_close(server);
    else
        *ret = server;
    return rc;
}

void rtsp_server_close(struct rtsp_server *server)
{
    const uint64_t one = 1;
    if (!server)
        return;
    if (server->started && write(server->stop, &one, sizeof one) == (ssize_t)sizeof one)
        pthread_join(server->thread, NULL);
    while (server->n > 0)
        drop_peer(server, server->peers[0]);
    const int fds[] = {server->listener, server->epoll,          server->timer,
                       server->stop,     server->cameras.rtp_fd, server->cameras.rtcp_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(server->peers);
    free(server->cameras.records);
    free(server->sent);
    if (server->rtp.clip)
        rtp_clip_close(&server->rtp);
    free(server);
}

// --- what was sent

int rtsp_server_pictures(const struct rtsp_server *server)
{
    return server->rtp.clip->n;
}

void rtsp_server_url(const struct rtsp_server *server, int camera, char url[64])
{
    snprintf(url, 64, "rtsp://127.0.0.1:%d/%d", server->cameras.port, camera);
}

struct rtsp_counts rtsp_server_counts(const struct rtsp_server *server)
{
    struct rtsp_counts counts = {0};
    for (int i = 0; i < server->cameras.n; i++) {
        const struct rtp_record *record = &server->cameras.records[i];
        const double latest_ms = (double)atomic_load(&record->latest_ns) / 1e6;
        counts.pictures += atomic_load(&record->pictures);
        counts.packets += atomic_load(&record->packets);
        counts.withheld += atomic_load(&record->withheld);
        counts.latest_ms = latest_ms > counts.latest_ms ? latest_ms : counts.latest_ms;
    }
    return counts;
}

int64_t rtsp_server_accepted(const struct rtsp_server *server, int camera)
{
    return atomic_load(&server->cameras.records[camera].accepted_ns);
}

int64_t rtsp_server_sent(const struct rtsp_server *server, int camera, int64_t index)
{
    return index < 0
               ? 0
               : atomic_load(&server->cameras.records[camera].sent_ns[index % server->rtp.clip->n]);
}

int64_t rtsp_server_index(const struct rtsp_server *server, int camera, int64_t capture_ns)
{
    const struct rtp_record *record = &server->cameras.records[camera];
    const struct clip_units *clip = server->rtp.clip;
    const double seconds = (double)(capture_ns - atomic_load(&record->wall_ns)) / 1e9;
    const double pictures = seconds * clip->rate_num / clip->rate_den + 0.5;
    return atomic_load(&record->accepted_ns) == 0 || pictures < 0 ? -1 : (int64_t)pictures;
}
