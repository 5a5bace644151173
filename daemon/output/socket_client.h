// One connected reader of a socket sink: a cursor over the pool's ready slots and the frame that it
// is being sent. Loop thread only.
#ifndef FRAMED_DAEMON_OUTPUT_SOCKET_CLIENT_H
#define FRAMED_DAEMON_OUTPUT_SOCKET_CLIENT_H

#include "daemon/output/protocol.h"
#include "daemon/output/server.h"
#include "daemon/output/unread.h"

struct socket_client {
    struct server_client base;
    struct slot_info stream; // of its first frame
    struct unread unread;    // of tcp
    int64_t behind; // bytes that it has to take before the next frame begins, on tcp; else 0

    // The frame on its way: `sent` bytes of header and payload are with the kernel. The payload
    // lies in the pinned slot, or in `spill` once the slot was given up.
    struct result *slot;
    bool carries;
    struct slot_receipt receipt;
    char header[PROTOCOL_HEADER_MAX];
    size_t header_size;
    const char *payload;
    size_t payload_size;
    size_t frame_size; // of header and payload, of the last frame begun
    size_t sent;
    char *spill;
    size_t spill_capacity;
};

bool client_is_busy(const struct socket_client *); // a frame is on its way
// Starts a frame from a pinned slot, which the client takes over. -ESTALE, with the slot unpinned:
// the protocol cannot go on with it on this connection.
int client_begin(struct socket_client *, const struct sink *, struct result *);
// Sends what the kernel takes: 0: all of the frame; -EAGAIN; other negative errno: the reader is
// gone.
int client_send(struct socket_client *);
// Copies the rest of the frame and gives up the slot. -ENOMEM: the frame is as it was.
int client_spill(struct socket_client *, struct pool *);
// The frame is over; `delivered`: all of it is with the kernel. Nothing happens when none is.
void client_end(struct socket_client *, struct pool *, bool delivered);
// Reads and forgets what the reader sent. False: there is more, and the turn of others comes first.
bool client_discard(const struct socket_client *);

#endif
