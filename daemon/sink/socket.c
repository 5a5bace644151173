// Sockets with any number of readers, each at its own pace.
//
// A reader that stalls in the middle of a frame pins that frame's slot. Pinned slots cannot be
// reused, so enough stalled readers would leave the camera none: once fewer than UNPINNED_MIN would
// be left, the one that stalls next copies the rest of its frame into memory of its own. Under
// `overflow: wait` it does not: there the slowest reader sets the pace, and a reader that leaves
// hands what it has not read whole to the next one that comes.
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/sink/client.h"
#include "daemon/sink/listener.h"

enum {
    CLIENTS_MAX = 64,
    UNPINNED_MIN = 2, // slots: one to fill while another is read
    ACCEPT_PAUSE_MS = 250,
    ACCEPTS_A_TURN = 16,
    EVENTS_A_TURN = 64,
};

struct socket_sink {
    struct sink sink;
    struct listener listener;
    int epoll; // listener and clients; the loop watches it as one descriptor
    uv_poll_t poll;
    uv_timer_t timer; // while listening: of a pause in accepting; then: the end of the grace
    int handles;      // open ones among the two above
    bool finishing;
    int n_clients;
    struct client *clients[CLIENTS_MAX];
};

static bool waits(const struct socket_sink *sink)
{
    return sink->sink.context.config->overflow == OVERFLOW_WAIT;
}

// Lets go of the slots that every client has passed; to be called after each change. Under `wait`
// what is ready stays for the next client when there is none.
static void retire(struct socket_sink *sink, enum loss reason)
{
    struct slots *slots = sink->sink.context.slots;
    uint64_t slowest = UINT64_MAX, fastest = 0;
    for (int i = 0; i < sink->n_clients; i++) {
        uint64_t next = sink->clients[i]->next;
        slowest = next < slowest ? next : slowest;
        fastest = next > fastest ? next : fastest;
    }
    if (sink->n_clients == 0 && waits(sink) && !sink->finishing)
        return;
    slots_passed(slots, fastest);
    slots_retire(slots, slowest, reason);
}

static void remove_client(struct socket_sink *sink, struct client *client)
{
    int i = 0;
    while (sink->clients[i] != client)
        i++;
    sink->clients[i] = sink->clients[--sink->n_clients];
    client_end(client, sink->sink.context.slots, false);
    close(client->fd);
    free(client->spill);
    free(client);
    slots_listeners(sink->sink.context.slots, sink->n_clients);
}

static void handle_closed(uv_handle_t *handle)
{
    struct socket_sink *sink = handle->data;
    if (--sink->handles > 0)
        return;
    struct sink_context context = sink->sink.context;
    close(sink->epoll);
    free(sink);
    context.closed(context.opaque);
}

static void close_all(struct socket_sink *sink, enum loss reason)
{
    while (sink->n_clients > 0)
        remove_client(sink, sink->clients[0]);
    retire(sink, reason);
    listener_close(&sink->listener);
    uv_close((uv_handle_t *)&sink->poll, handle_closed);
    uv_close((uv_handle_t *)&sink->timer, handle_closed);
}

static void close_when_drained(struct socket_sink *sink)
{
    if (!sink->finishing || uv_is_closing((uv_handle_t *)&sink->poll))
        return;
    for (int i = 0; i < sink->n_clients; i++)
        if (client_is_busy(sink->clients[i]))
            return;
    close_all(sink, LOSS_CLIENT);
}

// --- sending

static void drop_client(struct socket_sink *sink, struct client *client)
{
    remove_client(sink, client);
    retire(sink, LOSS_CLIENT);
}

// -ENODATA: nothing is ready for the client.
static int begin_frame(struct socket_sink *sink, struct client *client)
{
    struct slot *slot = sink_begin(&sink->sink, &client->next);
    retire(sink, LOSS_LATE);
    return slot ? client_begin(client, &sink->sink, slot) : -ENODATA;
}

static int block_client(struct socket_sink *sink, struct client *client)
{
    struct slots *slots = sink->sink.context.slots;
    client->blocked = true;
    if (waits(sink) || !client->slot || slots_pinned(slots) <= slots_count(slots) - UNPINNED_MIN)
        return 0;
    int rc = client_spill(client, slots);
    retire(sink, LOSS_CLIENT);
    return rc;
}

// Gives the client all that is ready and that the kernel takes.
static void move_client(struct socket_sink *sink, struct client *client)
{
    int rc = 0;
    while (rc == 0 && (client_is_busy(client) || (rc = begin_frame(sink, client)) == 0)) {
        rc = client_send(client);
        if (rc == 0) {
            client_end(client, sink->sink.context.slots, true);
            retire(sink, LOSS_CLIENT);
        }
    }
    if (rc == -EAGAIN)
        rc = block_client(sink, client);
    if (rc < 0 && rc != -ENODATA)
        drop_client(sink, client);
}

static void pump(struct sink *base)
{
    struct socket_sink *sink = (struct socket_sink *)base;
    slots_publish(sink->sink.context.slots);
    // Backwards: a client that is dropped leaves its place to the last one, which had its turn.
    for (int i = sink->n_clients - 1; i >= 0; i--)
        if (!sink->clients[i]->blocked)
            move_client(sink, sink->clients[i]);
    retire(sink, LOSS_CLIENT);
    close_when_drained(sink);
}

// --- listening

// Edge triggered, or a reader that only closed its own direction would be reported for ever. It
// goes on reading; one that is gone altogether is reported as EPOLLHUP.
static int watch(struct socket_sink *sink, int operation, struct client *client)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = client};
    return epoll_ctl(sink->epoll, operation, client->fd, &event) < 0 ? -errno : 0;
}

static int watch_listener(struct socket_sink *sink, int operation, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = sink};
    return epoll_ctl(sink->epoll, operation, sink->listener.fd, &event) < 0 ? -errno : 0;
}

// Frames leave at once. A peer that died without a word is noticed after a minute, with frames on
// their way or none; so is one that reads nothing for as long, since the kernel cannot tell.
static void tune_tcp(int fd)
{
    const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},   {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 15}, {IPPROTO_TCP, TCP_KEEPINTVL, 15},
        {IPPROTO_TCP, TCP_KEEPCNT, 3},   {IPPROTO_TCP, TCP_USER_TIMEOUT, 60000},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                   sizeof options[i].value);
}

static int add_client(struct socket_sink *sink, int fd)
{
    struct slots *slots = sink->sink.context.slots;
    if (sink->n_clients == CLIENTS_MAX)
        return -EUSERS;
    struct client *client = calloc(1, sizeof *client);
    if (!client)
        return -ENOMEM;
    client->fd = fd;
    int rc = watch(sink, EPOLL_CTL_ADD, client);
    if (rc < 0) {
        free(client);
        return rc;
    }
    if (!sink->listener.path)
        tune_tcp(fd);
    client->next = waits(sink) && sink->n_clients == 0 ? 0 : slots_head(slots);
    sink->clients[sink->n_clients++] = client;
    slots_listeners(slots, sink->n_clients);
    move_client(sink, client);
    return 0;
}

static void resume_accepting(uv_timer_t *timer)
{
    watch_listener(timer->data, EPOLL_CTL_MOD, EPOLLIN);
}

// Out of descriptors or memory: the connection stays in the queue, and the listener readable.
static void pause_accepting(struct socket_sink *sink, int reason)
{
    sink_event(&sink->sink, LOG_LEVEL_WARNING, "cannot accept a client: %s", strerror(reason));
    watch_listener(sink, EPOLL_CTL_MOD, 0);
    uv_timer_start(&sink->timer, resume_accepting, ACCEPT_PAUSE_MS, 0);
}

static void accept_clients(struct socket_sink *sink)
{
    for (int i = 0; i < ACCEPTS_A_TURN; i++) {
        int fd = accept4(sink->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
            pause_accepting(sink, errno);
        if (fd < 0)
            return; // level triggered: what else is in the queue comes back
        int rc = add_client(sink, fd);
        if (rc < 0) {
            sink_event(&sink->sink, LOG_LEVEL_WARNING, "a client was refused: %s",
                       rc == -EUSERS ? "there are 64 already" : strerror(-rc));
            close(fd);
        }
    }
}

static void client_event(struct socket_sink *sink, struct client *client, uint32_t events)
{
    if (events & (EPOLLHUP | EPOLLERR)) {
        drop_client(sink, client);
        return;
    }
    if ((events & EPOLLIN) && !client_discard(client))
        watch(sink, EPOLL_CTL_MOD, client); // reports again what is still there
    if (events & EPOLLOUT) {
        client->blocked = false;
        move_client(sink, client);
    }
}

static void sockets_ready(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    struct socket_sink *sink = poll->data;
    struct epoll_event event[EVENTS_A_TURN];
    int n = epoll_wait(sink->epoll, event, EVENTS_A_TURN, 0);
    for (int i = 0; i < n; i++) {
        if (event[i].data.ptr == sink)
            accept_clients(sink);
        else
            client_event(sink, event[i].data.ptr, event[i].events);
    }
    close_when_drained(sink);
}

// --- life

static int start(struct socket_sink *sink)
{
    uv_loop_t *loop = sink->sink.context.loop;
    sink->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (sink->epoll < 0)
        return -errno;
    int rc = watch_listener(sink, EPOLL_CTL_ADD, EPOLLIN);
    if (rc == 0)
        rc = uv_poll_init(loop, &sink->poll, sink->epoll);
    if (rc < 0) {
        close(sink->epoll);
        return rc;
    }
    uv_timer_init(loop, &sink->timer);
    sink->poll.data = sink->timer.data = sink;
    sink->handles = 2;
    uv_poll_start(&sink->poll, UV_READABLE, sockets_ready); // fails on a closing handle only
    return 0;
}

static int open_sink(struct sink **ret, const struct sink_context *context, char *why, size_t size)
{
    struct socket_sink *sink = calloc(1, sizeof *sink);
    if (!sink) {
        snprintf(why, size, "out of memory");
        return -ENOMEM;
    }
    sink->sink = (struct sink){.driver = &socket_sink, .context = *context};
    int rc = listener_open(&sink->listener, context->config, why, size);
    if (rc < 0) {
        free(sink);
        return rc;
    }
    rc = start(sink);
    if (rc < 0) {
        snprintf(why, size, "cannot watch the socket: %s", strerror(-rc));
        listener_close(&sink->listener);
        free(sink);
        return rc;
    }
    *ret = &sink->sink;
    return 0;
}

static void grace_over(uv_timer_t *timer)
{
    close_all(timer->data, LOSS_STOPPING);
}

static void finish(struct sink *base, int grace_ms)
{
    struct socket_sink *sink = (struct socket_sink *)base;
    if (uv_is_closing((uv_handle_t *)&sink->poll))
        return;
    sink->finishing = true;
    listener_close(&sink->listener);
    uv_timer_start(&sink->timer, grace_over, (uint64_t)grace_ms, 0);
    pump(base);
}

static int clients(const struct sink *sink)
{
    return ((const struct socket_sink *)sink)->n_clients;
}

static int port(const struct sink *sink)
{
    return listener_port(&((const struct socket_sink *)sink)->listener);
}

const struct sink_driver socket_sink = {
    .open = open_sink,
    .pump = pump,
    .finish = finish,
    .clients = clients,
    .port = port,
};
