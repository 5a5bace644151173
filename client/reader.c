// The reader: its successive connections, and the current view.
#include "client/reader.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

// --- the address: `unix:PATH`, `tcp:HOST:PORT` or `ring:PATH`

enum address_kind { ADDRESS_UNIX, ADDRESS_TCP, ADDRESS_RING };

struct address {
    enum address_kind kind;
    struct sockaddr_un path; // unix and ring only
    char host[256], port[6]; // tcp only
};

static int parse_path(struct address *address, const char *path)
{
    if (path[0] == '\0')
        return -EINVAL;
    if (strlen(path) >= sizeof address->path.sun_path)
        return -ENAMETOOLONG;
    address->path.sun_family = AF_UNIX;
    strcpy(address->path.sun_path, path);
    return 0;
}

// HOST:PORT, with or without brackets around HOST.
static int parse_host(struct address *address, const char *text)
{
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text || strlen(colon + 1) >= sizeof address->port)
        return -EINVAL;
    size_t length = (size_t)(colon - text);
    if (text[0] == '[' && colon[-1] == ']') {
        text++;
        length -= 2;
    }
    if (length == 0 || length >= sizeof address->host)
        return -EINVAL;
    memcpy(address->host, text, length);
    strcpy(address->port, colon + 1);
    const size_t digits = strspn(address->port, "0123456789");
    return digits > 0 && address->port[digits] == '\0' ? 0 : -EINVAL;
}

// Returns 0, -EINVAL or -ENAMETOOLONG.
static int address_parse(struct address *address, const char *text)
{
    *address = (struct address){0};
    if (strncmp(text, "tcp:", 4) == 0) {
        address->kind = ADDRESS_TCP;
        return parse_host(address, text + 4);
    }
    address->kind = strncmp(text, "ring:", 5) == 0 ? ADDRESS_RING : ADDRESS_UNIX;
    return address->kind == ADDRESS_RING || strncmp(text, "unix:", 5) == 0
               ? parse_path(address, text + 5)
               : -EINVAL;
}

// Gives up a silent host: one that answers no connection for about 15 s, or one that vanishes with
// a connection open.
static void limit_silence(int fd)
{
    const int on = 1, idle_s = 10, between_s = 5, probes = 3, attempts = 3;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof between_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &attempts, sizeof attempts);
}

static int connect_socket(int family, int type, const struct sockaddr *to, socklen_t size)
{
    const int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (family != AF_UNIX)
        limit_silence(fd);
    if (connect(fd, to, size) == 0 || errno == EINPROGRESS)
        return fd;
    const int rc = -errno;
    close(fd);
    return rc;
}

static int connect_tcp(const struct address *address, unsigned attempt)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    if (getaddrinfo(address->host, address->port, &wanted, &found) != 0)
        return -EADDRNOTAVAIL;
    unsigned n = 0;
    for (const struct addrinfo *at = found; at; at = at->ai_next)
        n++;
    const struct addrinfo *chosen = found;
    for (unsigned i = attempt % n; i > 0; i--)
        chosen = chosen->ai_next;
    const int rc =
        connect_socket(chosen->ai_family, SOCK_STREAM, chosen->ai_addr, chosen->ai_addrlen);
    freeaddrinfo(found);
    return rc;
}

// Returns a non-blocking socket whose connection may still be under way: when it becomes writable,
// the connection is made or has failed. `attempt` counts from 0 and selects one of a host's
// addresses. Negative errno; -EADDRNOTAVAIL: the host's name cannot be resolved.
static int address_connect(const struct address *address, unsigned attempt)
{
    if (address->kind == ADDRESS_TCP)
        return connect_tcp(address, attempt);
    return connect_socket(AF_UNIX, address->kind == ADDRESS_RING ? SOCK_SEQPACKET : SOCK_STREAM,
                          (const struct sockaddr *)&address->path, sizeof address->path);
}

// --- the reader

enum {
    RETRY_MS_MIN = 100,
    RETRY_MS_MAX = 5000,
};

enum state { WAITING, CONNECTING, CONNECTED };

struct framed_reader {
    struct address address;
    char name[300];
    unsigned flags;
    pid_t process;    // that opened it: after a fork the child shares its connection
    int epoll, timer; // framed_fd's descriptor; the time of the next connection
    int fd;           // of the connection; -1: none
    enum state state;
    bool wants_write;  // epoll reports when the socket takes bytes
    unsigned attempts; // since the last frame
    struct ring ring;
    struct stream stream;
    struct framed_counts counts;
    uint64_t lost_now; // frames lost on this connection
    int reason;        // negative errno that ended the last connection
    char error[400];

    // The current view.
    bool is_out, of_batch;
    struct framed_memory *memory; // of its payload
    const uint64_t *state_word;   // ring only
    uint32_t slot;
    uint64_t ticket;
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void set_timer(const struct framed_reader *reader, int ms)
{
    const struct itimerspec when = {
        .it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L + 1}};
    timerfd_settime(reader->timer, 0, &when, NULL);
}

static bool is_ring(const struct framed_reader *reader)
{
    return reader->address.kind == ADDRESS_RING;
}

// --- open and close

static int watch(int epoll, int fd, uint32_t events, int operation)
{
    struct epoll_event event = {.events = events};
    return epoll_ctl(epoll, operation, fd, &event) == 0 ? 0 : -errno;
}

static int open_descriptors(struct framed_reader *reader)
{
    reader->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (reader->epoll < 0)
        return -errno;
    reader->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (reader->timer < 0)
        return -errno;
    set_timer(reader, 0);
    return watch(reader->epoll, reader->timer, EPOLLIN, EPOLL_CTL_ADD);
}

struct framed_reader *framed_open(const char *address, unsigned flags)
{
    struct framed_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    reader->epoll = reader->timer = reader->fd = -1;
    reader->flags = flags;
    reader->process = getpid();
    stream_reset(&reader->stream);
    int rc = flags & ~(unsigned)(FRAMED_NEWEST | FRAMED_ONCE) ? -EINVAL : 0;
    if (rc == 0)
        rc = address_parse(&reader->address, address);
    reader->stream.is_tcp = reader->address.kind == ADDRESS_TCP;
    if (rc == 0)
        rc = open_descriptors(reader);
    if (rc == 0) {
        snprintf(reader->name, sizeof reader->name, "%s", address);
        return reader;
    }
    framed_close(reader);
    errno = -rc;
    return NULL;
}

static void close_descriptor(int fd)
{
    if (fd >= 0)
        close(fd);
}

void framed_close(struct framed_reader *reader)
{
    if (!reader)
        return;
    memory_drop(reader->memory);
    ring_close(&reader->ring);
    stream_close(&reader->stream);
    close_descriptor(reader->fd);
    close_descriptor(reader->timer);
    close_descriptor(reader->epoll);
    free(reader);
}

int framed_fd(const struct framed_reader *reader)
{
    return reader->epoll;
}

const char *framed_error(const struct framed_reader *reader)
{
    return reader->error;
}

void framed_count(const struct framed_reader *reader, struct framed_counts *ret)
{
    *ret = reader->counts;
    ret->lost += reader->lost_now;
}

// --- the connection

static const char *text_of(int rc)
{
    switch (rc) {
    case -EPIPE:
        return "framed closed the connection";
    case -EPROTO:
        return "what came is not framed's protocol";
    case -EADDRNOTAVAIL:
        return "the host's name is not known";
    case -EACCES:
        return "permission denied: root and members of the socket's group may read it "
               "(adduser USER framed, then log in again)";
    case -EMFILE:
        return "this process has no free file descriptor (ulimit -n), or may not have that of the "
               "ring's memory";
    case -EPERM:
        return "the reader belongs to the process that opened it: open another one after a fork";
    case -ENODEV:
        return "the frames are on a GPU that is not visible here";
    default:
        return strerror(-rc);
    }
}

static void set_error(struct framed_reader *reader, int rc)
{
    snprintf(reader->error, sizeof reader->error, "%s: %s", reader->name, text_of(rc));
}

// Ends the connection and schedules the next one. The current view stays.
static void disconnect(struct framed_reader *reader, int rc)
{
    close_descriptor(reader->fd); // removes it from epoll too
    reader->fd = -1;
    reader->state = WAITING;
    reader->reason = rc;
    reader->counts.lost += reader->lost_now;
    reader->lost_now = 0;
    ring_reset(&reader->ring);
    stream_reset(&reader->stream);
    set_error(reader, rc);
    int ms = RETRY_MS_MIN;
    for (unsigned i = 0; i < reader->attempts && ms < RETRY_MS_MAX; i++)
        ms *= 2;
    set_timer(reader, ms < RETRY_MS_MAX ? ms : RETRY_MS_MAX);
    reader->attempts++;
}

// Returns true when the next connection is due.
static bool is_due(const struct framed_reader *reader)
{
    uint64_t times;
    return read(reader->timer, &times, sizeof times) == sizeof times;
}

static int start_connection(struct framed_reader *reader)
{
    const int fd = address_connect(&reader->address, reader->attempts);
    if (fd < 0)
        return fd;
    reader->fd = fd;
    reader->state = CONNECTING;
    reader->wants_write = true;
    return watch(reader->epoll, fd, EPOLLIN | EPOLLOUT, EPOLL_CTL_ADD);
}

// Turns notifications of a writable socket on or off.
static int set_wants_write(struct framed_reader *reader, bool wants)
{
    if (wants == reader->wants_write)
        return 0;
    reader->wants_write = wants;
    return watch(reader->epoll, reader->fd, wants ? EPOLLIN | EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
}

// Returns 0 also while the connection is under way.
static int finish_connection(struct framed_reader *reader)
{
    struct sockaddr_storage peer;
    socklen_t size = sizeof peer, error_size = sizeof(int);
    int error = 0;
    if (getsockopt(reader->fd, SOL_SOCKET, SO_ERROR, &error, &error_size) != 0 || error != 0)
        return error != 0 ? -error : -errno;
    if (getpeername(reader->fd, (struct sockaddr *)&peer, &size) != 0)
        return errno == ENOTCONN ? 0 : -errno;
    reader->state = CONNECTED;
    reader->counts.connections++;
    return set_wants_write(reader, false);
}

// --- frames

// Remembers the view that the caller gets.
static void lend(struct framed_reader *reader, struct framed_view *view,
                 struct framed_memory *memory)
{
    view->connection = reader->counts.connections;
    reader->is_out = true;
    reader->of_batch = view->batch.count > 0;
    reader->memory = memory;
    memory_hold(memory);
    reader->slot = view->slot;
    reader->ticket = view->ticket;
    reader->state_word = view->state;
    reader->lost_now = view->batch.count > 0 ? view->batch.lost : view->header.lost;
    reader->counts.frames++;
    reader->attempts = 0;
}

static int flush(struct framed_reader *reader)
{
    ring_flush(&reader->ring, reader->fd);
    return set_wants_write(reader, reader->ring.n_returns > 0);
}

static int receive(struct framed_reader *reader, struct framed_view *view)
{
    const bool newest = reader->flags & FRAMED_NEWEST;
    uint64_t *skipped = &reader->counts.skipped;
    struct framed_memory *memory;
    int rc;
    if (is_ring(reader)) {
        rc = ring_next(&reader->ring, reader->fd, newest, view, skipped);
        memory = reader->ring.memory;
    } else {
        rc = stream_next(&reader->stream, reader->fd, newest, view, &memory, skipped);
    }
    if (rc == 1)
        lend(reader, view, memory);
    if (rc < 0 || !is_ring(reader))
        return rc;
    const int flushed = flush(reader);
    return rc == 1 || flushed == 0 ? rc : flushed;
}

// Makes all progress possible now. Returns 1 with a view, 0, or with FRAMED_ONCE negative errno.
static int advance(struct framed_reader *reader, struct framed_view *view)
{
    int rc = 0;
    if (reader->state == WAITING) {
        if (reader->reason != 0 && (reader->flags & FRAMED_ONCE))
            return reader->reason;
        if (!is_due(reader))
            return 0;
        rc = start_connection(reader);
    }
    if (rc == 0 && reader->state == CONNECTING)
        rc = finish_connection(reader);
    if (rc == 0 && reader->state == CONNECTED)
        rc = receive(reader, view);
    if (rc >= 0)
        return rc;
    disconnect(reader, rc);
    return reader->flags & FRAMED_ONCE ? rc : 0;
}

// Waits for something to do. Returns false after end_ms; if that is below 0, there is no limit.
static bool wait_until(const struct framed_reader *reader, int64_t end_ms)
{
    struct epoll_event event;
    int64_t left_ms = -1;
    if (end_ms >= 0) {
        left_ms = end_ms - now_ms();
        if (left_ms <= 0)
            return false;
    }
    epoll_wait(reader->epoll, &event, 1, left_ms > INT_MAX ? INT_MAX : (int)left_ms);
    return true;
}

// A child of the process that opened the reader would take its frames, and return slots that the
// parent still reads. Sets errno if false.
static bool is_owner(struct framed_reader *reader)
{
    if (reader->process == getpid())
        return true;
    set_error(reader, -EPERM);
    errno = EPERM;
    return false;
}

int framed_next(struct framed_reader *reader, struct framed_view *view, int timeout_ms)
{
    const int64_t end_ms = timeout_ms < 0 ? -1 : now_ms() + timeout_ms;
    *view = (struct framed_view){.device = -1};
    if (!is_owner(reader))
        return -1;
    if (reader->is_out)
        framed_release(reader, NULL, NULL, 0);
    int rc;
    do
        rc = advance(reader, view);
    while (rc == 0 && wait_until(reader, end_ms));
    if (rc >= 0)
        return rc;
    errno = -rc;
    return -1;
}

int framed_whole(const struct framed_reader *reader, const struct framed_view *view)
{
    return reader->is_out && view->ticket == reader->ticket &&
           (!reader->state_word || ring_has(reader->state_word, reader->ticket));
}

// --- returns and results

// Returns 0, or negative errno: the results are lost.
static int send_result(struct framed_reader *reader, const struct framed_ring_result *result,
                       const struct framed_detection *found)
{
    const int rc =
        reader->fd < 0 ? -EPIPE : ring_send_result(&reader->ring, reader->fd, result, found);
    reader->counts.results += rc == 0;
    reader->counts.unsent += rc < 0;
    return rc;
}

static struct framed_ring_result result_of(uint32_t slot, uint64_t ticket, int n, unsigned flags)
{
    return (struct framed_ring_result){
        .magic = {'F', 'R', 'R', 'S'},
        .version = FRAMED_VERSION,
        .flags = (uint16_t)flags,
        .slot = slot,
        .ticket = ticket,
        .count = (uint32_t)n,
    };
}

int framed_send(struct framed_reader *reader, const struct framed_view *view, uint32_t element,
                const struct framed_detection *found, int n, unsigned flags, uint32_t model)
{
    if (!is_owner(reader))
        return -1;
    struct framed_ring_result result = result_of(view->slot, view->ticket, n, flags);
    const uint32_t elements = view->batch.count > 0 ? view->batch.count : 1;
    result.element = element;
    result.model = model;
    int rc = 0;
    if (n < 0 || n > FRAMED_DETECTIONS_MAX || (n > 0 && !found) || element >= elements ||
        flags & ~(unsigned)FRAMED_RESULT_IN_SOURCE || view->connection == 0)
        rc = -EINVAL;
    else if (!is_ring(reader))
        rc = -ENOTSUP;
    else if (view->connection != reader->counts.connections)
        rc = -ESTALE;
    else
        rc = send_result(reader, &result, found);
    if (is_ring(reader) && reader->state == CONNECTED)
        set_wants_write(reader, reader->ring.n_returns > 0);
    errno = -rc;
    return rc < 0 ? -1 : 0;
}

// Returns the slot to the daemon with the results, or alone if those cannot be sent. The result is
// 0, or negative errno if the results were not sent.
static int give_back(struct framed_reader *reader, const struct framed_detection *found, int n)
{
    const struct framed_ring_result result =
        result_of(reader->slot, reader->ticket, n, FRAMED_RESULT_RETURN | FRAMED_RESULT_IN_SOURCE);
    const int sent = found ? send_result(reader, &result, found) : -ENODATA;
    int rc = 0;
    if (sent < 0)
        rc = ring_return(&reader->ring, reader->fd, reader->slot, reader->ticket);
    rc = rc < 0 ? rc : flush(reader);
    if (rc < 0)
        disconnect(reader, rc);
    return found ? sent : 0;
}

int framed_release(struct framed_reader *reader, struct framed_view *view,
                   const struct framed_detection *found, int n)
{
    const bool has_results = found && n >= 0;
    if (!is_owner(reader))
        return -1;
    if (!reader->is_out || (view && view->ticket != reader->ticket) ||
        (has_results && (n > FRAMED_DETECTIONS_MAX || reader->of_batch))) {
        errno = EINVAL;
        return -1;
    }
    const bool is_whole = !reader->state_word || ring_has(reader->state_word, reader->ticket);
    reader->counts.torn += !is_whole;
    reader->is_out = false;
    memory_drop(reader->memory);
    reader->memory = NULL;
    if (view)
        *view = (struct framed_view){.device = -1};
    int rc = has_results ? -ENOTSUP : 0;
    if (is_ring(reader))
        rc = give_back(reader, has_results ? found : NULL, n);
    if (rc == 0 && !is_whole)
        rc = -ESTALE;
    errno = -rc;
    return rc < 0 ? -1 : 0;
}

struct framed_memory *framed_hold(const struct framed_reader *reader)
{
    if (reader->is_out)
        memory_hold(reader->memory);
    return reader->is_out ? reader->memory : NULL;
}

void framed_drop(struct framed_memory *memory)
{
    memory_drop(memory);
}
