#include "daemon/output/server.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ACCEPT_PAUSE_MS = 250,
    ACCEPTS_A_TURN = 16,
    EVENTS_A_TURN = 64,
};

// --- clients

static void remove_client(struct server *server, struct server_client *client)
{
    int i = 0;
    server->driver->leave(server, client);
    if (server->sink.context.pool)
        pool_detach(server->sink.context.pool, &client->consumer);
    while (server->clients[i] != client)
        i++;
    server->clients[i] = server->clients[--server->n_clients];
    close(client->fd);
    free(client);
}

// Edge-triggered: otherwise a client that only closed its own direction would be reported forever.
// A client that is gone is reported as EPOLLHUP. EPOLLOUT is watched only while blocked: otherwise
// every frame that the client reads would wake the loop.
static int watch_client(struct server *server, int operation, struct server_client *client)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET | (client->blocked ? EPOLLOUT : 0),
                                .data.ptr = client};
    return epoll_ctl(server->epoll, operation, client->fd, &event) < 0 ? -errno : 0;
}

// Sends a client its ready data. Afterwards the client may be gone and another one in its place.
static void send_ready(struct server *server, struct server_client *client)
{
    bool was_blocked = client->blocked;
    int rc = server->driver->send(server, client);
    const bool goes_on = rc == -EINPROGRESS;
    client->blocked = rc == -EAGAIN || goes_on;
    if (client->blocked)
        rc = 0;
    if (rc == 0 && (goes_on || client->blocked != was_blocked))
        rc = watch_client(server, EPOLL_CTL_MOD, client); // also reports pending events
    if (rc < 0)
        remove_client(server, client);
}

static void pump_server(struct sink *base)
{
    struct server *server = (struct server *)base;
    if (server->driver->pump)
        server->driver->pump(server);
    // Backwards: a dropped client's place goes to the last one, which had its turn.
    for (int i = server->n_clients - 1; i >= 0; i--)
        if (!server->clients[i]->blocked)
            send_ready(server, server->clients[i]);
    server_close_when_drained(server);
}

static int discard_received(const struct server_client *client)
{
    char bytes[16384];
    for (int i = 0; i < 4; i++) {
        ssize_t n = recv(client->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EINTR))
            return 0;
    }
    return -EAGAIN;
}

static void client_event(struct server *server, struct server_client *client, uint32_t events)
{
    int rc = 0;
    if (events & (EPOLLHUP | EPOLLERR))
        rc = -EPIPE;
    else if (events & EPOLLIN)
        rc = server->driver->receive ? server->driver->receive(server, client)
                                     : discard_received(client);
    if (rc == -EAGAIN)
        rc = watch_client(server, EPOLL_CTL_MOD, client); // reports unread data again
    if (rc < 0)
        remove_client(server, client);
    else if (events & EPOLLOUT)
        send_ready(server, client);
}

// --- listening

static int watch_listener(struct server *server, int operation, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = server};
    return epoll_ctl(server->epoll, operation, server->listener.fd, &event) < 0 ? -errno : 0;
}

// Sends frames at once. Detects a client that died silently, with frames in flight or none, after a
// minute; also one that reads nothing for a minute, since the kernel cannot tell these apart.
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

// Names the program at the other end of a unix socket. Reads only kernel memory, not a disk.
static void name_program(struct server_client *client)
{
    struct ucred peer;
    socklen_t length = sizeof peer;
    char path[40], program[17] = "";
    if (getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
        return;
    snprintf(path, sizeof path, "/proc/%d/comm", (int)peer.pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, program, sizeof program - 1);
    program[n > 0 ? strcspn(program, "\n") : 0] = 0;
    if (fd >= 0)
        close(fd);
    snprintf(client->name, sizeof client->name, "%s:%d", *program ? program : "?", (int)peer.pid);
}

static void name_host(struct server_client *client)
{
    struct sockaddr_storage peer;
    socklen_t length = sizeof peer;
    char host[NI_MAXHOST], port[NI_MAXSERV];
    if (getpeername(client->fd, (struct sockaddr *)&peer, &length) == 0 &&
        getnameinfo((struct sockaddr *)&peer, length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(client->name, sizeof client->name,
                 strchr(host, ':') ? "[%.50s]:%.8s" : "%.50s:%.8s", host, port);
}

static int add_client(struct server *server, int fd)
{
    if (server->n_clients >= server->sink.context.config->clients)
        return -EUSERS;
    struct server_client *client = calloc(1, server->driver->client_size);
    if (!client)
        return -ENOMEM;
    client->fd = fd;
    int rc = watch_client(server, EPOLL_CTL_ADD, client);
    if (rc < 0) {
        free(client);
        return rc;
    }
    if (server->listener.path) {
        name_program(client);
    } else {
        tune_tcp(fd);
        name_host(client);
    }
    server->clients[server->n_clients++] = client;
    if (server->sink.context.pool)
        pool_attach(server->sink.context.pool, &client->consumer);
    if (server->driver->enter)
        server->driver->enter(server, client);
    send_ready(server, client);
    return 0;
}

static void resume_accepting(uv_timer_t *timer)
{
    watch_listener(timer->data, EPOLL_CTL_MOD, EPOLLIN);
}

// Out of descriptors or memory: the connection stays queued, and the listener readable.
static void pause_accepting(struct server *server, int reason)
{
    sink_event(&server->sink, LOG_LEVEL_WARNING, "cannot accept a client: %s", strerror(reason));
    watch_listener(server, EPOLL_CTL_MOD, 0);
    uv_timer_start(&server->timer, resume_accepting, ACCEPT_PAUSE_MS, 0);
}

static void accept_clients(struct server *server)
{
    for (int i = 0; i < ACCEPTS_A_TURN; i++) {
        int fd = accept4(server->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
            pause_accepting(server, errno);
        if (fd < 0)
            return; // level-triggered: other queued connections are reported again
        int rc = add_client(server, fd);
        if (rc == -EUSERS)
            sink_event(&server->sink, LOG_LEVEL_WARNING,
                       "a client was refused: there are %d already (key clients)",
                       server->n_clients);
        else if (rc < 0)
            sink_event(&server->sink, LOG_LEVEL_WARNING, "a client was refused: %s", strerror(-rc));
        if (rc < 0)
            close(fd);
    }
}

static void sockets_ready(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    struct server *server = poll->data;
    struct epoll_event event[EVENTS_A_TURN];
    int n = epoll_wait(server->epoll, event, EVENTS_A_TURN, 0);
    for (int i = 0; i < n; i++) {
        if (event[i].data.ptr == server)
            accept_clients(server);
        else
            client_event(server, event[i].data.ptr, event[i].events);
    }
    server_close_when_drained(server);
}

// --- life

static int start_watching(struct server *server)
{
    uv_loop_t *loop = server->sink.context.loop;
    server->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (server->epoll < 0)
        return -errno;
    int rc = watch_listener(server, EPOLL_CTL_ADD, EPOLLIN);
    if (rc == 0)
        rc = uv_poll_init(loop, &server->poll, server->epoll);
    if (rc < 0) {
        close(server->epoll);
        return rc;
    }
    uv_timer_init(loop, &server->timer);
    server->poll.data = server->timer.data = server;
    server->handles = 2;
    uv_poll_start(&server->poll, UV_READABLE, sockets_ready); // fails only on a closing handle
    return 0;
}

static bool is_given(const struct sink_context *context)
{
    return context->listener && context->listener->fd >= 0;
}

static int get_listener(struct server *server, char *why, size_t size)
{
    const struct sink_context *context = &server->sink.context;
    if (is_given(context)) {
        server->listener = *context->listener;
        return 0;
    }
    const struct listener_options options = sink_listener_options(context->config);
    return listener_serve(&server->listener, &options, why, size);
}

static int open_resources(struct server *server, char *why, size_t size)
{
    const struct sink_context *context = &server->sink.context;
    int rc = server->driver->prepare ? server->driver->prepare(context, why, size) : 0;
    if (rc < 0)
        return rc;
    rc = get_listener(server, why, size);
    if (rc == 0 && (rc = start_watching(server)) < 0) {
        snprintf(why, size, "cannot watch the socket: %s", strerror(-rc));
        if (!is_given(context))
            listener_close(&server->listener);
    }
    if (rc < 0 && server->driver->release)
        server->driver->release(context);
    return rc;
}

int server_open(struct sink **ret, const struct server_driver *driver,
                const struct sink_context *context, char *why, size_t size)
{
    struct server *server = calloc(1, driver->size);
    struct server_client **clients =
        calloc((size_t)context->config->clients, sizeof(struct server_client *));
    int rc = server && clients ? 0 : -ENOMEM;
    if (rc == 0) {
        server->clients = clients;
        server->sink = (struct sink){.driver = &server_sink, .context = *context};
        server->driver = driver;
        rc = open_resources(server, why, size);
    } else {
        snprintf(why, size, "out of memory");
    }
    if (rc < 0) {
        free(clients);
        free(server);
        return rc;
    }
    if (driver->begin)
        driver->begin(server);
    if (is_given(context))
        *context->listener = (struct listener){.fd = -1};
    *ret = &server->sink;
    return 0;
}

void server_handle_closed(uv_handle_t *handle)
{
    struct server *server = handle->data;
    if (--server->handles > 0)
        return;
    struct sink_context context = server->sink.context;
    close(server->epoll);
    free(server->clients);
    free(server);
    context.closed(context.opaque);
}

static void close_server(struct server *server)
{
    if (server->sink.context.pool)
        pool_set_sink(server->sink.context.pool, POOL_SINK_STOPPED);
    while (server->n_clients > 0)
        remove_client(server, server->clients[0]);
    listener_close(&server->listener);
    if (server->driver->release)
        server->driver->release(&server->sink.context);
    if (server->driver->close)
        server->driver->close(server);
    uv_close((uv_handle_t *)&server->poll, server_handle_closed);
    uv_close((uv_handle_t *)&server->timer, server_handle_closed);
}

void server_close_when_drained(struct server *server)
{
    if (!server->finishing || uv_is_closing((uv_handle_t *)&server->poll))
        return;
    struct pool *pool = server->sink.context.pool;
    if (pool && pool_is_filling(pool))
        return;
    for (int i = 0; i < server->n_clients; i++)
        if (server->clients[i]->blocked ||
            (pool && pool_is_busy(pool, &server->clients[i]->consumer)))
            return;
    close_server(server);
}

static void grace_over(uv_timer_t *timer)
{
    close_server(timer->data);
}

static void finish_server(struct sink *base, int grace_ms)
{
    struct server *server = (struct server *)base;
    if (uv_is_closing((uv_handle_t *)&server->poll))
        return;
    server->finishing = true;
    if (base->context.pool)
        pool_set_sink(base->context.pool, POOL_SINK_FINISHING);
    listener_close(&server->listener);
    uv_timer_start(&server->timer, grace_over, (uint64_t)grace_ms, 0);
    pump_server(base);
}

static int count_clients(const struct sink *sink)
{
    return ((const struct server *)sink)->n_clients;
}

const struct sink_driver server_sink = {
    .pump = pump_server, .finish = finish_server, .clients = count_clients};

// First accepts the clients that connected before the socket was removed.
static void replace_listener(struct server *server, const struct listener *fresh)
{
    accept_clients(server);
    struct listener before = server->listener;
    server->listener = *fresh;
    int rc = watch_listener(server, EPOLL_CTL_ADD, EPOLLIN);
    if (rc < 0) {
        sink_event(&server->sink, LOG_LEVEL_ERROR, "cannot watch the socket: %s", strerror(-rc));
        server->listener = before;
        before = *fresh;
    }
    listener_close(&before);
}

// Returns NULL for other sinks, and for NULL.
static struct server *server_of(const struct sink *sink)
{
    return sink && sink->driver == &server_sink ? (struct server *)sink : NULL;
}

void sink_check_path(struct sink *sink)
{
    struct server *server = server_of(sink);
    struct listener fresh;
    char what[512];
    if (server && listener_is_gone(&server->listener)) {
        const struct listener_options options = sink_listener_options(sink->context.config);
        int rc = listener_restore(&fresh, &server->listener, &options, what, sizeof what);
        if (what[0])
            sink_event(sink, LOG_LEVEL_WARNING, "%s", what);
        if (rc == 0)
            replace_listener(server, &fresh);
    }
    if (server && server->driver->check)
        server->driver->check(server);
}

// Closing the descriptor alone would not end epoll's reports for a duplicate of it.
void sink_yield(struct sink *sink, struct listener *ret)
{
    struct server *server = server_of(sink);
    if (server && server->listener.fd >= 0) {
        epoll_ctl(server->epoll, EPOLL_CTL_DEL, server->listener.fd, NULL);
        if (ret)
            *ret = server->listener;
        else
            listener_close(&server->listener);
        server->listener = (struct listener){.fd = -1};
    }
    if (server && server->driver->release)
        server->driver->release(&sink->context);
}

const struct listener *sink_listener(const struct sink *sink)
{
    const struct server *server = server_of(sink);
    return server ? &server->listener : NULL;
}

struct sink_client sink_client(const struct sink *sink, int i)
{
    const struct server *server = server_of(sink);
    const struct server_client *client = server ? server->clients[i] : NULL;
    struct sink_client found = {.name = client ? client->name : NULL};
    if (client && sink->context.pool)
        found.report = pool_report(sink->context.pool, &client->consumer);
    return found;
}

int sink_port(const struct sink *sink)
{
    const struct listener *listener = sink_listener(sink);
    return listener ? listener_port(listener) : 0;
}
