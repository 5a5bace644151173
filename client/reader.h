// Parts of the reader: checks of headers, memory of payloads, the client's side of a ring and of a
// socket.
#ifndef FRAMED_CLIENT_READER_H
#define FRAMED_CLIENT_READER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/framed.h"

// --- headers
// A header that passes has its sizes, offsets and texts in bounds: a reader that uses them stays
// inside the payload.

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the wire is little-endian, and so must the machine be"
#endif

enum {
    HEADER_BYTES_MAX = 4096, // of one header: later versions may be longer than ours
    ELEMENTS_MAX = 4096,     // of a batch
};
static const uint64_t PAYLOAD_BYTES_MAX = (uint64_t)1 << 32;

// Checks the header of a frame with a payload of `bytes` bytes, which begins `first` bytes after
// the origin of its plane offsets.
bool header_is_good(const struct framed_header *, uint64_t first, uint64_t bytes);

// Checks a batch, which begins with its magic, without the headers of its elements.
bool batch_is_good(const struct framed_batch *);

// Shortens the `batch->count` headers from batch->header_bytes each to our size, in place. Returns
// false if an element of the checked batch has a bad header.
bool take_elements(void *headers, const struct framed_batch *batch);

// --- memory

struct cuda_memory {
    uint64_t address; // a device pointer
    uint64_t bytes;   // set before the import
    int device;       // the driver's device number
    bool is_ipc;      // imported by cuda_import_ipc
    void *library;
};

// Both import memory of the daemon into the primary context of the device with this UUID, and
// retain that context. -ENODEV: no driver, or the device is not visible here; -EIO: the driver
// refused. cuda_import maps the allocation of a file descriptor, for reading; the caller keeps the
// descriptor.
int cuda_import(struct cuda_memory *, int fd, const uint8_t uuid[16]);
// Maps the allocation of a cudaIpcMemHandle_t, for reading and writing: CUDA has no other way.
int cuda_import_ipc(struct cuda_memory *, const uint8_t handle[64], const uint8_t uuid[16]);

// Memory of payloads: the pages that the daemon shares, its device memory, or a buffer of ours.
// Every user that may still read it holds a reference.
struct framed_memory {
    atomic_uint holders;
    uint8_t *host; // page aligned; the daemon's pages are read-only
    uint64_t host_bytes;
    struct cuda_memory device; // device.address is 0 if there is none
};

// Both return a memory with one reference. Negative errno.
int memory_allocate(struct framed_memory **ret, uint64_t bytes);
// Maps the daemon's memfd; the caller keeps `fd`. -EPROTO: it is smaller than `bytes`, or with
// `sealed` could shrink below that, which would kill a reader.
int memory_map(struct framed_memory **ret, int fd, uint64_t bytes, bool sealed);

void memory_hold(struct framed_memory *);
void memory_drop(struct framed_memory *); // NULL does nothing

// --- a ring, across connections: hellos, frames and batches, returns

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

// --- a unix or tcp socket: reads frames and batches into its own buffers

enum stream_part { STREAM_HEAD, STREAM_ELEMENTS, STREAM_PAYLOAD };

// A frame or batch while it is read, and then until the next one is complete.
struct stream_frame {
    struct framed_memory *payload; // NULL: nothing read yet
    void *headers;                 // of a batch's elements
    size_t headers_bytes;
    uint64_t payload_bytes;
    struct framed_batch batch; // batch.count is 0 for a frame
    struct framed_header header;
};

struct stream {
    struct stream_frame frame[2];
    int reading; // index in `frame`
    enum stream_part part;
    _Alignas(8) uint8_t head[HEADER_BYTES_MAX];
    uint64_t got, wanted; // bytes of the part
    bool is_tcp;          // set before the first call
    int wake_bytes;       // minimum of received bytes at which the socket wakes its reader
};

void stream_reset(struct stream *); // for another connection; the shown view stays
void stream_close(struct stream *);

// Reads up to the end of a frame or batch, or with `newest` until no more bytes have arrived, and
// shows the last complete one. Returns 1 and fills `view`, valid until the next call, and *memory,
// its payload; or 0 if none is complete. `skipped` counts complete ones that were not shown.
// -EPIPE: the stream has ended; -EPROTO: it is not framed's; other negative errno.
int stream_next(struct stream *, int fd, bool newest, struct framed_view *view,
                struct framed_memory **memory, uint64_t *skipped);

#endif
