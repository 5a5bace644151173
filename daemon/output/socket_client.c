#include "daemon/output/socket_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

bool client_is_busy(const struct socket_client *client)
{
    return client->slot || client->carries;
}

int client_begin(struct socket_client *client, const struct sink *sink, struct result *slot)
{
    const struct output_config *config = sink->context.config;
    bool first = !client->base.reader.begun;
    if (!first && !protocol_continues(config->protocol, &client->stream, &slot->info)) {
        pool_unpin(sink->context.pool, slot, false);
        return -ESTALE;
    }
    if (first)
        client->stream = slot->info;
    reader_take(&client->base.reader, &slot->info);
    client->slot = slot;
    client->header_size =
        protocol_header(config->protocol, slot, sink->context.camera, config->name,
                        &client->base.reader, first, client->header);
    client->payload = slot->data;
    client->payload_size = slot->size;
    client->frame_size = client->header_size + slot->size;
    client->sent = 0;
    return 0;
}

// The bytes not yet sent, in at most two pieces.
static int rest(const struct socket_client *client, struct iovec piece[2])
{
    size_t sent = client->sent, header = client->header_size;
    int n = 0;
    if (sent < header)
        piece[n++] = (struct iovec){(char *)client->header + sent, header - sent};
    size_t offset = sent > header ? sent - header : 0;
    if (offset < client->payload_size)
        piece[n++] =
            (struct iovec){(char *)client->payload + offset, client->payload_size - offset};
    return n;
}

int client_send(struct socket_client *client)
{
    struct iovec piece[2];
    struct msghdr message = {.msg_iov = piece};
    while ((message.msg_iovlen = (size_t)rest(client, piece)) > 0) {
        ssize_t n = sendmsg(client->base.fd, &message, MSG_NOSIGNAL);
        if (n >= 0)
            client->sent += (size_t)n;
        else if (errno != EINTR)
            return -errno;
    }
    return 0;
}

static int reserve_spill(struct socket_client *client)
{
    // For a whole frame, so that no later one of this size asks again.
    size_t capacity = PROTOCOL_HEADER_MAX + client->slot->size;
    if (client->spill_capacity >= capacity)
        return 0;
    char *larger = realloc(client->spill, capacity);
    if (!larger)
        return -ENOMEM;
    client->spill = larger;
    client->spill_capacity = capacity;
    return 0;
}

int client_spill(struct socket_client *client, struct pool *pool)
{
    struct iovec piece[2];
    size_t size = 0;
    int n = rest(client, piece);
    if (reserve_spill(client) < 0)
        return -ENOMEM;
    for (int i = 0; i < n; i++) {
        memcpy(client->spill + size, piece[i].iov_base, piece[i].iov_len);
        size += piece[i].iov_len;
    }
    client->payload = client->spill;
    client->payload_size = size;
    client->header_size = client->sent = 0;
    pool_carry(pool, client->slot, &client->receipt);
    client->slot = NULL;
    client->carries = true;
    return 0;
}

void client_end(struct socket_client *client, struct pool *pool, bool delivered)
{
    if (client->slot)
        pool_unpin(pool, client->slot, delivered);
    else if (client->carries)
        pool_redeem(pool, &client->receipt, delivered);
    client->slot = NULL;
    client->carries = false;
}

bool client_discard(const struct socket_client *client)
{
    char bytes[16384];
    for (int i = 0; i < 4; i++) {
        ssize_t n = recv(client->base.fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EINTR))
            return true;
    }
    return false;
}
