// libframed: reads the frames of a framed daemon, from a socket or, without a copy, from a ring.
//
//     struct framed_reader *reader = framed_open("ring:/run/framed/gate.ring", FRAMED_NEWEST);
//     struct framed_view view;
//     while (framed_next(reader, &view, -1) > 0)
//         detect(view.data, &view.header);
//
// A reader belongs to one thread at a time; several readers are independent. It connects by itself,
// and again whenever the daemon restarts. After the first frames it allocates nothing until frames
// become larger. The names that begin with FRAMED_ or framed_ and are not here are in wire.h.
#ifndef FRAMED_H
#define FRAMED_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/wire.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct framed_reader;
struct framed_memory;

enum framed_open_flags {
    FRAMED_NEWEST = 1, // skip to the newest frame; else each frame in turn
    FRAMED_ONCE = 2,   // framed_next fails where the connection fails or ends; else it tries again
};

// A frame or a batch, where it lies. It ends with framed_release, or with the next framed_next or
// framed_close of its reader.
struct framed_view {
    const void *data; // the payload: C x H x W or the like; of a batch batch.count times that
    uint64_t bytes;   // of the payload
    uint32_t memory;  // enum framed_ring_memory: of all but FRAMED_RING_HOST a device pointer
    int32_t device;   // CUDA's number of the device, in its primary context; -1: host memory
    struct framed_header header;                  // of the frame, or of the batch's first element
    struct framed_batch batch;                    // batch.count is 0: a single frame
    const struct framed_element_header *elements; // batch.count of them; NULL: a single frame
    uint32_t slot;                                // of a ring
    uint32_t memory_number; // of a ring, from 1: another number, and it may be other memory
    uint64_t ticket;        // of a ring; 0: not from a ring
    // For programs that open the ring's memory themselves. Else, and of a socket, 0 and NULL:
    uint64_t offset;           // of `data` from the start of the memory
    uint64_t memory_bytes;     // of all of it
    const char *shared;        // name of the POSIX object, with `shared:`
    const uint8_t *ipc_handle; // cudaIpcMemHandle_t, with `memory: cuda-ipc`
    uint64_t reserved[4];
};

// Opens a reader of `unix:PATH`, `tcp:HOST:PORT` or `ring:PATH`, the address of an output's sink.
// flags: enum framed_open_flags. The connection is made in framed_next. NULL and errno: EINVAL (not
// an address, or unknown flags), ENAMETOOLONG (the path does not fit a unix socket's address),
// ENOMEM, EMFILE.
struct framed_reader *framed_open(const char *address, unsigned flags);

// Waits for a frame or batch for up to timeout_ms (-1: for ever; 0: only looks). 1: `view` has it.
// 0: not in this time. -1 and errno, with FRAMED_ONCE alone: the connection could not be made
// (connect's errno), ended (EPIPE), or what came is not framed's protocol (EPROTO); framed_error
// has the text. Without FRAMED_ONCE it tries again after 0.1, 0.2, 0.4 ... 5 s, for ever. A signal
// does not end the wait. The name of a tcp address may take the resolver longer than timeout_ms.
int framed_next(struct framed_reader *, struct framed_view *view, int timeout_ms);

// A file descriptor of the reader's for poll, select or epoll: it is readable when framed_next has
// something to do, also a new connection. Then call framed_next with timeout 0 until it returns 0.
// The caller must not read it or close it.
int framed_fd(const struct framed_reader *);

// Whether what was read of the view up to now was that frame: 1, or 0 where the daemon has given
// its slot to another frame meanwhile (wire.h, the ring, 4). Ask behind the reading. Frames of
// sockets are always whole.
int framed_whole(const struct framed_reader *, const struct framed_view *view);

// Gives the view back; of a ring its slot is free for another frame. -1 and errno ESTALE: the slot
// was taken away before. EINVAL: it is not the reader's latest view.
int framed_release(struct framed_reader *, struct framed_view *view);

// Ends the connection and all else of the reader. NULL does nothing.
void framed_close(struct framed_reader *);

// Why the last connection could not be made or ended; "" where there was none that did. Valid until
// the next call for the reader.
const char *framed_error(const struct framed_reader *);

struct framed_counts {
    uint64_t frames;      // and batches, that framed_next gave
    uint64_t skipped;     // given back unread: a newer one was there, or the slot was gone
    uint64_t torn;        // views whose slot was taken away before they were released
    uint64_t lost;        // frames or batches that the daemon had no room for, by its own count
    uint64_t connections; // that were made
};

// What the reader has counted since it was opened.
void framed_count(const struct framed_reader *, struct framed_counts *);

// Keeps the memory of the view that is out mapped beyond its reader, until framed_drop, for
// languages that cannot tell when a pointer is used last. The frame does not stay: later frames go
// to the same memory. NULL: there is no view.
struct framed_memory *framed_hold(const struct framed_reader *);

// Ends a framed_hold, in any thread. NULL does nothing.
void framed_drop(struct framed_memory *);

// --- from the payload to the camera's picture

enum framed_map_flags { FRAMED_CLIP = 1 }; // to the picture: 0 to source_width, 0 to source_height

// Maps boxes in the payload of a frame or element to boxes in the camera's picture, in place: n
// boxes of four floats x1, y1, x2, y2, each `stride` floats behind the one before (4 where they are
// packed, 8 in an array of struct framed_detection). Afterwards x1 <= x2 and y1 <= y2; where the
// matrix rotates by other than quarter turns, it is the smallest upright box around the four
// corners.
void framed_to_source(const struct framed_header *, float *boxes, size_t n, size_t stride,
                      unsigned flags);

// The same for points x, y: `stride` is 2 where they are packed.
void framed_points_to_source(const struct framed_header *, float *points, size_t n, size_t stride,
                             unsigned flags);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
