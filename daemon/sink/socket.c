// Sockets with any number of readers, each at its own pace.
//
// A reader that stalls in the middle of a frame pins that frame's slot. Pinned slots cannot be
// reused, so enough stalled readers would leave the camera none: once fewer than UNPINNED_MIN would
// be left, the one that stalls next copies the rest of its frame into memory of its own. Under
// `overflow: wait` it does not: there the slowest reader sets the pace, and a reader that leaves
// hands what it has not read whole to the next one that comes.
#include <errno.h>
#include <stdlib.h>

#include "daemon/sink/client.h"

enum { UNPINNED_MIN = 2 }; // slots: one to fill while another is read

// -ENODATA: nothing is ready for the client.
static int begin_frame(struct server *server, struct client *client)
{
    struct slot *slot = sink_begin(&server->sink, &client->peer.next);
    server_retire(server, LOSS_LATE);
    return slot ? client_begin(client, &server->sink, slot) : -ENODATA;
}

// The kernel takes no more of the frame: -EAGAIN, or -ENOMEM.
static int block(struct server *server, struct client *client)
{
    struct slots *slots = server->sink.context.slots;
    if (server_waits(server) || !client->slot ||
        slots_pinned(slots) <= slots_count(slots) - UNPINNED_MIN)
        return -EAGAIN;
    int rc = client_spill(client, slots);
    server_retire(server, LOSS_CLIENT);
    return rc < 0 ? rc : -EAGAIN;
}

static int move(struct server *server, struct peer *peer)
{
    struct client *client = (struct client *)peer;
    int rc = 0;
    while (rc == 0 && (client_is_busy(client) || (rc = begin_frame(server, client)) == 0)) {
        rc = client_send(client);
        if (rc == 0) {
            client_end(client, server->sink.context.slots, true);
            server_retire(server, LOSS_CLIENT);
        }
    }
    if (rc == -EAGAIN)
        return block(server, client);
    return rc == -ENODATA ? 0 : rc;
}

static int discard(struct server *server, struct peer *peer)
{
    (void)server;
    return client_discard((const struct client *)peer) ? 0 : -EAGAIN;
}

static bool is_busy(struct server *server, const struct peer *peer)
{
    (void)server;
    return client_is_busy((const struct client *)peer);
}

static void leave(struct server *server, struct peer *peer)
{
    struct client *client = (struct client *)peer;
    client_end(client, server->sink.context.slots, false);
    free(client->spill);
}

static const struct server_driver driver = {
    .peer_size = sizeof(struct client),
    .move = move,
    .read = discard,
    .busy = is_busy,
    .leave = leave,
};

static int open_sink(struct sink **ret, const struct sink_context *context, char *why, size_t size)
{
    struct server *server;
    int rc = server_open(&server, sizeof *server, &driver, &socket_sink, context, why, size);
    if (rc == 0)
        *ret = &server->sink;
    return rc;
}

const struct sink_driver socket_sink = {
    .open = open_sink,
    .pump = server_pump,
    .finish = server_finish,
    .clients = server_clients,
    .listener = server_listener,
    .yield = server_yield,
    .port = server_port,
};
