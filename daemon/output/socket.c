// Sockets with any number of clients, each at its own pace.
//
// A client that stalls in the middle of a frame holds the result, whose slot cannot be reused, so
// enough stalled clients would leave the camera none. Once the pool is short of free slots, the
// client that stalls next copies the rest of its frame into memory of its own. Under `overflow:
// wait` it does not: there the slowest client sets the pace, and a client that leaves hands what it
// has not read whole to the next one that comes.
//
// Under `max_age` the kernel's buffers hold one frame a client: the next one begins when the client
// has read the one before. So a client that stalls finds one old frame behind its stall, not all
// that the kernel had room for. A unix socket wakes the loop when it is read; a tcp socket does
// not, so a timer checks the clients that are behind.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "daemon/output/protocol.h"
#include "daemon/output/server.h"
#include "daemon/output/unread.h"

enum {
    // The part of a frame that a client may still have to read when the next one begins. With none
    // left the client has nothing to read until the loop has seen that it read the frame.
    REST_PART = 8,
    // Between two checks of clients that are behind: for each of them while one reads on, so that
    // many cost the loop no more than one does, and where none has read for long.
    CHECK_NS_MIN = 100 * 1000,
    CHECK_NS_MAX = 16 * 1000 * 1000,
};

struct socket_client {
    struct server_client base;
    struct result_format format; // of its first frame
    struct unread unread;        // of tcp
    int64_t behind; // bytes that it has to read before the next frame begins, on tcp; else 0

    // The frame on its way: `sent` bytes of header and payload are with the kernel. The payload
    // lies in the result that the client holds, or in `spill` once that is detached.
    bool sending;
    char *header;
    size_t header_size, header_capacity;
    const char *payload;
    size_t payload_size;
    size_t frame_size; // of header and payload, of the last frame begun
    size_t sent;
    char *spill;
    size_t spill_capacity;
};

struct socket_sink {
    struct server server;
    int netlink;  // for unread_tcp
    int check_ns; // until the next check
    int behind;   // clients that the last check found behind, or 1
};

// The alarm: checks the tcp clients that are behind.
static void check_behind(struct server *server)
{
    struct socket_sink *sink = (struct socket_sink *)server;
    int behind = 0;
    for (int i = 0; i < server->n_clients; i++)
        behind += ((const struct socket_client *)server->clients[i])->behind > 0;
    sink->behind = behind > 0 ? behind : 1;
    sink->check_ns = sink->check_ns < CHECK_NS_MAX / 2 ? 2 * sink->check_ns : CHECK_NS_MAX;
    for (int i = server->n_clients - 1; i >= 0; i--)
        if (((struct socket_client *)server->clients[i])->behind > 0)
            server_send(server, server->clients[i]);
}

// Whether the client has read what was sent. An error is not reported here: sending reports it.
static bool has_read(struct socket_sink *sink, struct socket_client *client)
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
        sink->check_ns = CHECK_NS_MIN * sink->behind;
    if (client->behind)
        server_set_alarm(&sink->server, sink->check_ns);
    return !client->behind;
}

static int grow(char **buffer, size_t *capacity, size_t needed)
{
    if (*capacity >= needed)
        return 0;
    char *larger = realloc(*buffer, needed);
    if (!larger)
        return -ENOMEM;
    *buffer = larger;
    *capacity = needed;
    return 0;
}

// Begins the next result that is ready for the client. -ENODATA: there is none. -EAGAIN: the client
// has not read the one before. -ESTALE: the protocol cannot go on with it on this connection.
// -ENOMEM.
static int begin_frame(struct server *server, struct socket_client *client)
{
    const struct output_config *config = server->sink.context.config;
    struct pool *pool = server->sink.context.pool;
    struct server_client *base = &client->base;
    if (pool_has_next(pool, &base->consumer) && !has_read((struct socket_sink *)server, client))
        return -EAGAIN;
    const struct result *result = pool_acquire(pool, &base->consumer);
    if (!result)
        return -ENODATA;
    bool first = !base->position.begun;
    if (first)
        client->format = result->format;
    else if (!protocol_continues(config->protocol, &client->format, &result->format))
        return -ESTALE;
    int rc = grow(&client->header, &client->header_capacity, protocol_header_max(result));
    if (rc < 0)
        return rc;
    stream_advance(&base->position, result);
    client->header_size = protocol_header(config, result, &base->position, first, client->header);
    client->payload = result->data;
    client->payload_size = protocol_payload_size(config, result);
    client->frame_size = client->header_size + client->payload_size;
    client->sent = 0;
    client->sending = true;
    return 0;
}

// The bytes not yet sent, in at most two pieces.
static int get_rest(const struct socket_client *client, struct iovec piece[2])
{
    size_t sent = client->sent, header = client->header_size;
    int n = 0;
    if (sent < header)
        piece[n++] = (struct iovec){client->header + sent, header - sent};
    size_t offset = sent > header ? sent - header : 0;
    if (offset < client->payload_size)
        piece[n++] =
            (struct iovec){(char *)client->payload + offset, client->payload_size - offset};
    return n;
}

// 0: all of the frame is with the kernel; -EAGAIN; other negative errno: the client is gone.
static int send_rest(struct socket_client *client)
{
    struct iovec piece[2];
    struct msghdr message = {.msg_iov = piece};
    while ((message.msg_iovlen = (size_t)get_rest(client, piece)) > 0) {
        ssize_t n = sendmsg(client->base.fd, &message, MSG_NOSIGNAL);
        if (n >= 0)
            client->sent += (size_t)n;
        else if (errno != EINTR)
            return -errno;
    }
    return 0;
}

// The kernel takes no more of the frame. Where the pool is short of slots, copies the rest and
// gives up the slot. -EAGAIN, or -ENOMEM.
static int detach_stalled(struct server *server, struct socket_client *client)
{
    struct pool *pool = server->sink.context.pool;
    struct consumer *consumer = &client->base.consumer;
    struct iovec piece[2];
    size_t size = 0;
    if (server_waits(server) || !consumer->held || !pool_is_short(pool))
        return -EAGAIN;
    // Room for a whole frame, so that no later one of this size asks again.
    int rc = grow(&client->spill, &client->spill_capacity,
                  protocol_header_max(consumer->held) + consumer->held->size);
    if (rc < 0)
        return rc;
    int n = get_rest(client, piece);
    for (int i = 0; i < n; i++) {
        memcpy(client->spill + size, piece[i].iov_base, piece[i].iov_len);
        size += piece[i].iov_len;
    }
    client->payload = client->spill;
    client->payload_size = size;
    client->header_size = client->sent = 0;
    rc = pool_detach_payload(pool, consumer);
    return rc < 0 ? rc : -EAGAIN;
}

static int send_ready(struct server *server, struct server_client *base)
{
    struct socket_client *client = (struct socket_client *)base;
    int rc = 0;
    while (rc == 0 && (client->sending || (rc = begin_frame(server, client)) == 0)) {
        rc = send_rest(client);
        if (rc == 0) {
            client->sending = false;
            pool_release(server->sink.context.pool, &base->consumer, true);
        }
    }
    if (rc == -EAGAIN)
        return detach_stalled(server, client);
    return rc == -ENODATA ? 0 : rc;
}

static void free_buffers(struct server *server, struct server_client *base)
{
    struct socket_client *client = (struct socket_client *)base;
    (void)server;
    free(client->header);
    free(client->spill);
}

static void close_netlink(struct server *server)
{
    struct socket_sink *sink = (struct socket_sink *)server;
    if (sink->netlink >= 0)
        close(sink->netlink);
}

static const struct server_driver socket_driver = {
    .client_size = sizeof(struct socket_client),
    .send = send_ready,
    .receive = server_discard_received,
    .leave = free_buffers,
    .alarm = check_behind,
    .close = close_netlink,
};

static int open_sink(struct sink **ret, const struct sink_context *context, char *why, size_t size)
{
    struct server *server;
    int rc = server_open(&server, sizeof(struct socket_sink), &socket_driver, &socket_sink, context,
                         why, size);
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
    .client = server_client,
    .listener = server_listener,
    .check_path = server_check_path,
    .yield = server_yield,
    .port = server_port,
};
