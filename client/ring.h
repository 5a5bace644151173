// The client's side of a ring across connections: hellos, frames and batches, returns.
#ifndef FRAMED_CLIENT_RING_H
#define FRAMED_CLIENT_RING_H

#include <stdbool.h>

#include "client/framed.h"
#include "client/memory.h"

enum { RING_RETURNS_MAX = 256 }; // per message

struct ring {
    struct framed_ring_hello hello; // of this connection; hello.slots is 0: none yet
    uint8_t handle[64];             // cudaIpcMemHandle_t, with FRAMED_RING_CUDA_IPC
    struct framed_memory *memory;   // of the hello
    uint32_t n_memories;            // hellos so far, on all connections
    struct framed_ring_return returns[RING_RETURNS_MAX]; // not yet sent
    int n_returns;
    void *headers; // our own copy of the element headers of the last batch shown
    size_t headers_bytes;
};

void ring_reset(struct ring *); // prepares another connection
void ring_close(struct ring *);

// Takes messages up to the first frame or batch, or with `newest` all that have arrived, and shows
// the last. Returns 1 and fills `view`, whose memory is ring->memory, or 0 if there is none yet.
// `skipped` counts frames returned unread. -EPIPE: the daemon has ended. -EPROTO: it violates the
// protocol. -EMFILE: no descriptor was free for the ring's memory. Other negative errno.
int ring_next(struct ring *, int fd, bool newest, struct framed_view *view, uint64_t *skipped);

// Queues a slot's return for ring_flush. -ENOBUFS: the daemon has accepted none of the last 256.
int ring_return(struct ring *, int fd, uint32_t slot, uint64_t ticket);
// Sends the returns; ring->n_returns remain if the socket accepts none now. Drops them if the
// daemon is gone, which ring_next reports.
void ring_flush(struct ring *, int fd);

// Sends the returns, then the results, without waiting. -EAGAIN: the daemon accepts nothing now;
// -EPIPE: it is gone.
int ring_send_result(struct ring *, int fd, const struct framed_ring_result *,
                     const struct framed_detection *found);

// Returns true if the slot has held the frame of this ticket since the last call.
bool ring_has(const uint64_t *state, uint64_t ticket);
// Returns the state word of a slot of the hello.
const uint64_t *ring_state(const struct ring *, uint32_t slot);

#endif
