// The client's side of a ring on one connection after another: hellos, frames and batches, returns.
#ifndef FRAMED_CLIENT_RING_H
#define FRAMED_CLIENT_RING_H

#include <stdbool.h>

#include "client/framed.h"
#include "client/memory.h"

enum { RING_RETURNS_MAX = 256 }; // in one message

struct ring {
    struct framed_ring_hello hello; // of this connection; hello.slots is 0: none yet
    uint8_t handle[64];             // cudaIpcMemHandle_t, with FRAMED_RING_CUDA_IPC
    struct framed_memory *memory;   // of the hello
    uint32_t n_memories;            // hellos so far, of all connections
    struct framed_ring_return returns[RING_RETURNS_MAX]; // not yet sent
    int n_returns;
    void *headers; // of the elements of the batch shown last: our copy, which nobody changes
    size_t headers_bytes;
};

void ring_reset(struct ring *); // for another connection
void ring_close(struct ring *);

// Takes messages until a frame or batch is there, or with `newest` until no more are there, and
// shows the last. 1: `view` has it; ring->memory is where it lies. 0: nothing yet. `skipped` counts
// those that were given back unread. -EPIPE: the daemon has ended. -EPROTO: it does not keep to the
// protocol. -EMFILE: no descriptor was free for the ring's memory. Other negative errno.
int ring_next(struct ring *, int fd, bool newest, struct framed_view *view, uint64_t *skipped);

// Gives a slot back, with the next ring_flush. -ENOBUFS: the daemon has taken none of the last 256.
int ring_return(struct ring *, int fd, uint32_t slot, uint64_t ticket);
// Sends the returns; ring->n_returns are left because the socket takes none now. A daemon that is
// gone needs none: ring_next says that it is.
void ring_flush(struct ring *, int fd);

// Sends a message of what was found now or never, behind the returns. -EAGAIN: the daemon takes
// nothing now; -EPIPE: it is gone.
int ring_send_result(struct ring *, int fd, const struct framed_ring_result *,
                     const struct framed_detection *found);

// Whether the slot has the frame of this ticket, and has had it since the last call.
bool ring_has(const uint64_t *state, uint64_t ticket);
// The state word of a slot of the hello.
const uint64_t *ring_state(const struct ring *, uint32_t slot);

#endif
