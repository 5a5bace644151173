// Sockets with any number of clients, each at its own pace.
//
// A client that stalls in the middle of a frame holds the result, whose slot cannot be reused, so
// enough stalled clients would leave the camera none. When the pool is short of free slots, the
// next client to stall copies the rest of its frame into memory of its own. Under `overflow: wait`
// it does not: the slowest client sets the pace, and results that a leaving client has not read
// whole go to the next client.
//
// Under `max_age` the kernel buffers about one frame per client, so that a client finds only one
// old frame after a stall. A unix socket reports how much its peer has not read: the next frame
// begins when the client has read the previous one. A tcp socket only reports unsent bytes: these
// are kept few; the peer's receive buffer is out of reach.
#include <errno.h>
#include <limits.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "daemon/output/protocol.h"
#include "daemon/output/server.h"

enum {
    // The next frame begins when this fraction of the previous one is still unread (unix) or unsent
    // (tcp). With nothing left the client would idle until the loop's next turn.
    REST_PART = 8,
    TURN_BYTES = 256 << 10, // copied by the loop thread for one client before the next one's turn
};

struct socket_client {
    struct server_client base;
    struct result_format format; // of its first frame

    // The frame being sent: the kernel has `sent` bytes of header and payload. The payload lies in
    // the result that the client holds, or in `spill` once that is detached.
    bool sending;
    char *header;
    size_t header_size, header_capacity;
    const char *payload;
    size_t payload_size;
    size_t frame_size; // of header and payload of the last frame begun
    size_t sent;
    char *spill;
    size_t spill_capacity;
};

// Returns true if the client has read the last frame, as far as the kernel reports it. Ignores
// errors: sending reports them.
static bool has_read_frame(const struct output_config *config, const struct socket_client *client)
{
    int unread;
    return config->max_age.ns == 0 || config->sink.kind != SINK_UNIX ||
           ioctl(client->base.fd, SIOCOUTQ, &unread) < 0 ||
           unread <= (int64_t)(client->frame_size / REST_PART) + 1;
}

// Limits the unsent bytes that the kernel takes from us for a tcp client.
static void limit_unsent(const struct socket_client *client)
{
    const size_t part = client->frame_size / REST_PART;
    const int unsent = part < INT_MAX ? (int)part + 1 : INT_MAX; // 0 would mean no limit
    setsockopt(client->base.fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
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

// Begins the client's next ready result. Returns 0; -ENODATA: none; -EAGAIN: the client has not
// read the previous one; -ESTALE: the protocol cannot continue with it on this connection; -ENOMEM.
static int begin_frame(struct server *server, struct socket_client *client)
{
    const struct output_config *config = server->sink.context.config;
    struct pool *pool = server->sink.context.pool;
    struct server_client *base = &client->base;
    if (pool_has_next(pool, &base->consumer) && !has_read_frame(config, client))
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
    const size_t frame_size = client->header_size + client->payload_size;
    const bool resized = frame_size != client->frame_size;
    client->frame_size = frame_size;
    if (resized && config->max_age.ns > 0 && config->sink.kind == SINK_TCP)
        limit_unsent(client);
    client->sent = 0;
    client->sending = true;
    return 0;
}

static size_t count_rest(const struct socket_client *client)
{
    return client->header_size + client->payload_size - client->sent;
}

// Returns the pieces, at most two, of the first `size` unsent bytes.
static int get_rest(const struct socket_client *client, size_t size, struct iovec piece[2])
{
    size_t sent = client->sent, header = client->header_size;
    size_t of_header = sent < header ? header - sent : 0;
    of_header = of_header < size ? of_header : size;
    int n = 0;
    if (of_header > 0)
        piece[n++] = (struct iovec){client->header + sent, of_header};
    if (size > of_header)
        piece[n++] =
            (struct iovec){(char *)client->payload + (sent + of_header - header), size - of_header};
    return n;
}

// Sends the rest and subtracts it from *budget. Returns 0: the kernel has the whole frame; -EAGAIN;
// -EINPROGRESS: the budget is used up; another negative errno: the client is gone.
static int send_rest(struct socket_client *client, size_t *budget)
{
    struct iovec piece[2];
    struct msghdr message = {.msg_iov = piece};
    size_t rest;
    while ((rest = count_rest(client)) > 0) {
        if (*budget == 0)
            return -EINPROGRESS;
        message.msg_iovlen = (size_t)get_rest(client, rest < *budget ? rest : *budget, piece);
        ssize_t n = sendmsg(client->base.fd, &message, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return -errno;
        client->sent += n > 0 ? (size_t)n : 0;
        *budget -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

// Handles a full socket. If the pool is short of slots, copies the rest of the frame and releases
// the slot. Returns -EAGAIN or -ENOMEM.
static int detach_stalled(struct server *server, struct socket_client *client)
{
    struct pool *pool = server->sink.context.pool;
    struct consumer *consumer = &client->base.consumer;
    struct iovec piece[2];
    size_t size = 0;
    if (pool_waits(pool) || !consumer->held || !pool_is_short(pool))
        return -EAGAIN;
    // Room for a whole frame, so that later ones of this size need no more.
    int rc = grow(&client->spill, &client->spill_capacity,
                  protocol_header_max(consumer->held) + consumer->held->size);
    if (rc < 0)
        return rc;
    int n = get_rest(client, count_rest(client), piece);
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
    size_t budget = TURN_BYTES;
    int rc = 0;
    while (rc == 0 && (client->sending || (rc = begin_frame(server, client)) == 0)) {
        rc = send_rest(client, &budget);
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

const struct server_driver socket_server = {
    .size = sizeof(struct server),
    .client_size = sizeof(struct socket_client),
    .send = send_ready,
    .leave = free_buffers,
};
