// Sockets with any number of readers, each at its own pace.
//
// A reader that stalls in the middle of a frame pins that frame's slot. Pinned slots cannot be
// reused, so enough stalled readers would leave the camera none: once fewer than UNPINNED_MIN would
// be left, the one that stalls next copies the rest of its frame into memory of its own. Under
// `overflow: wait` it does not: there the slowest reader sets the pace, and a reader that leaves
// hands what it has not read whole to the next one that comes.
//
// Under `max_age` the kernel's buffers hold one frame a reader: the next one begins when the reader
// has taken the one before. So a reader that stalls finds one old frame behind its stall, not all
// that the kernel had room for. A unix socket wakes the loop when it is read; a tcp socket does
// not, so that readers which are behind are looked at by a timer.
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/output/socket_client.h"

enum {
    UNPINNED_MIN = 2, // slots: one to fill while another is read
    // The part of a frame that a reader may still have to take when the next one begins. With none
    // left the reader has nothing to read until the loop has seen that it took the frame.
    REST_PART = 8,
    // Between two looks at readers that are behind: for each of them while one reads on, so that
    // many cost the loop no more than one does, and where none has read for long.
    LOOK_NS_MIN = 100 * 1000,
    LOOK_NS_MAX = 16 * 1000 * 1000,
};

struct socket_sink {
    struct server server;
    int netlink; // for unread_tcp
    int look_ns; // until the next look
    int behind;  // readers that the last look found behind, or 1
};

// The alarm: looks at the tcp readers that are behind.
static void look(struct server *server)
{
    struct socket_sink *sink = (struct socket_sink *)server;
    int behind = 0;
    for (int i = 0; i < server->n_clients; i++)
        behind += ((const struct socket_client *)server->clients[i])->behind > 0;
    sink->behind = behind > 0 ? behind : 1;
    sink->look_ns = sink->look_ns < LOOK_NS_MAX / 2 ? 2 * sink->look_ns : LOOK_NS_MAX;
    for (int i = server->n_clients - 1; i >= 0; i--)
        if (((struct socket_client *)server->clients[i])->behind > 0)
            server_move(server, server->clients[i]);
}

// Whether the reader has taken what was sent. An error is none of this place: sending tells it.
static bool has_taken(struct socket_sink *sink, struct socket_client *client)
{
    int fd = client->base.fd;
    const struct output_config *config = sink->server.sink.context.config;
    int64_t rest = (int64_t)(client->frame_size / REST_PART), before = client->behind;
    if (config->max_age.ns == 0)
        return true;
    if (config->sink.kind == SINK_UNIX)
        return unread_unix(fd) <= rest;
    int64_t unread = unread_tcp(&client->unread, sink->netlink, fd);
    client->behind = unread > rest ? unread : 0;
    if (client->behind != before)
        sink->look_ns = LOOK_NS_MIN * sink->behind;
    if (client->behind)
        server_set_alarm(&sink->server, sink->look_ns);
    return !client->behind;
}

// -ENODATA: nothing is ready for the client. -EAGAIN: it has not taken the frame before.
static int begin_frame(struct server *server, struct socket_client *client)
{
    bool there = client->base.next < pool_head(server->sink.context.pool);
    if (there && !has_taken((struct socket_sink *)server, client))
        return -EAGAIN;
    struct result *slot = sink_begin(&server->sink, &client->base.next);
    server_retire(server, LOSS_LATE);
    return slot ? client_begin(client, &server->sink, slot) : -ENODATA;
}

// The kernel takes no more of the frame: -EAGAIN, or -ENOMEM.
static int block(struct server *server, struct socket_client *client)
{
    struct pool *pool = server->sink.context.pool;
    if (server_waits(server) || !client->slot ||
        pool_pinned(pool) <= pool_count(pool) - UNPINNED_MIN)
        return -EAGAIN;
    int rc = client_spill(client, pool);
    server_retire(server, LOSS_CLIENT);
    return rc < 0 ? rc : -EAGAIN;
}

static int send_ready(struct server *server, struct server_client *base)
{
    struct socket_client *client = (struct socket_client *)base;
    int rc = 0;
    while (rc == 0 && (client_is_busy(client) || (rc = begin_frame(server, client)) == 0)) {
        rc = client_send(client);
        if (rc == 0) {
            client_end(client, server->sink.context.pool, true);
            server_retire(server, LOSS_CLIENT);
        }
    }
    if (rc == -EAGAIN)
        return block(server, client);
    return rc == -ENODATA ? 0 : rc;
}

static int discard(struct server *server, struct server_client *base)
{
    (void)server;
    return client_discard((const struct socket_client *)base) ? 0 : -EAGAIN;
}

static bool is_busy(struct server *server, const struct server_client *base)
{
    (void)server;
    return base->blocked || client_is_busy((const struct socket_client *)base);
}

static void leave(struct server *server, struct server_client *base)
{
    struct socket_client *client = (struct socket_client *)base;
    client_end(client, server->sink.context.pool, false);
    free(client->spill);
}

static void close_netlink(struct server *server)
{
    struct socket_sink *sink = (struct socket_sink *)server;
    if (sink->netlink >= 0)
        close(sink->netlink);
}

static const struct server_driver driver = {
    .client_size = sizeof(struct socket_client),
    .send = send_ready,
    .receive = discard,
    .busy = is_busy,
    .leave = leave,
    .alarm = look,
    .close = close_netlink,
};

static int open_sink(struct sink **ret, const struct sink_context *context, char *why, size_t size)
{
    struct server *server;
    int rc =
        server_open(&server, sizeof(struct socket_sink), &driver, &socket_sink, context, why, size);
    if (rc < 0)
        return rc;
    struct socket_sink *sink = (struct socket_sink *)server;
    sink->behind = 1;
    sink->netlink = context->config->sink.kind == SINK_TCP ? unread_open_netlink() : -1;
    *ret = &server->sink;
    return 0;
}

const struct sink_driver socket_sink = {
    .open = open_sink,
    .pump = server_pump,
    .finish = server_finish,
    .clients = server_clients,
    .listener = server_listener,
    .check_path = server_check_path,
    .yield = server_yield,
    .port = server_port,
};
