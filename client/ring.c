#include "client/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    DRAIN_MAX = 1024, // messages taken before the newest frame is shown
};

struct message {
    _Alignas(8) uint8_t bytes[HEADER_BYTES_MAX];
    size_t size;
    int fds[2];
    int n_fds;
};

// A frame or batch announced by a message.
struct notice {
    struct framed_header header; // only of a frame
    struct framed_batch batch;   // batch.count is 0 for a frame
    uint32_t slot;
    uint64_t ticket;
};

void ring_reset(struct ring *ring)
{
    memory_drop(ring->memory);
    ring->memory = NULL;
    ring->hello.slots = 0;
    ring->n_returns = 0;
}

void ring_close(struct ring *ring)
{
    ring_reset(ring);
    free(ring->headers);
}

// --- receiving

static void take_descriptors(struct message *message, struct msghdr *received)
{
    for (struct cmsghdr *control = CMSG_FIRSTHDR(received); control;
         control = CMSG_NXTHDR(received, control)) {
        if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS)
            continue;
        message->n_fds = (int)((control->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(message->fds, CMSG_DATA(control), (size_t)message->n_fds * sizeof(int));
    }
}

// Returns 0, -EAGAIN, -EPIPE (the daemon has ended), -EPROTO (the message is too long) or -EMFILE
// (the kernel could not give this process all the message's descriptors).
static int receive(int fd, struct message *message)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof message->fds)];
    struct iovec piece = {message->bytes, sizeof message->bytes};
    struct msghdr received = {.msg_iov = &piece,
                              .msg_iovlen = 1,
                              .msg_control = control,
                              .msg_controllen = sizeof control};
    ssize_t n;
    do
        n = recvmsg(fd, &received, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && (errno == EINTR || errno == ECONNRESET)); // ECONNRESET comes once, before data
    message->n_fds = 0;
    if (n < 0)
        return -errno;
    take_descriptors(message, &received);
    if (n == 0)
        return -EPIPE;
    message->size = (size_t)n;
    if (received.msg_flags & MSG_CTRUNC && message->n_fds < 2)
        return -EMFILE;
    return received.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EPROTO : 0;
}

static bool starts_with(const struct message *message, const char magic[4])
{
    return message->size >= 4 && memcmp(message->bytes, magic, 4) == 0;
}

// --- hellos

// Returns true if `n` pieces, `stride` bytes apart, lie within `bytes` from `offset`.
static bool fits(uint64_t offset, uint64_t n, uint64_t stride, uint64_t bytes)
{
    return offset <= bytes && (n == 0 || stride <= (bytes - offset) / n);
}

static bool is_on_device(const struct framed_ring_hello *hello)
{
    return hello->memory != FRAMED_RING_HOST;
}

static bool hello_is_good(const struct framed_ring_hello *hello, int n_fds)
{
    const uint64_t bytes = is_on_device(hello) ? hello->device_bytes : hello->memfd_bytes;
    const uint64_t headers =
        (uint64_t)hello->slots * hello->batch; // of all slots, each at least our size
    return hello->version == FRAMED_VERSION && hello->hello_bytes >= sizeof *hello &&
           hello->memory <= FRAMED_RING_CUDA_IPC &&
           n_fds == (hello->memory == FRAMED_RING_CUDA ? 2 : 1) && hello->slots > 0 &&
           hello->slot_bytes > 0 && hello->slot_bytes <= hello->slot_stride &&
           fits(hello->slot_offset, hello->slots, hello->slot_stride, bytes) &&
           hello->state_offset % 8 == 0 &&
           fits(hello->state_offset, hello->slots, 8, hello->memfd_bytes) &&
           fits(hello->header_offset, headers, sizeof(struct framed_element_header),
                hello->memfd_bytes) &&
           memchr(hello->shared, 0, sizeof hello->shared);
}

static int take_hello(struct ring *ring, const struct message *message)
{
    struct framed_ring_hello_cuda_ipc whole = {0};
    const struct framed_ring_hello *hello = &whole.hello;
    struct framed_memory *memory;
    if (message->size < sizeof *hello)
        return -EPROTO;
    memcpy(&whole, message->bytes, message->size < sizeof whole ? message->size : sizeof whole);
    if (!hello_is_good(hello, message->n_fds) ||
        (hello->memory == FRAMED_RING_CUDA_IPC && message->size < sizeof whole))
        return -EPROTO;
    int rc = memory_map(&memory, message->fds[0], hello->memfd_bytes, !hello->shared[0]);
    if (rc < 0)
        return rc;
    memory->device.bytes = hello->device_bytes;
    if (hello->memory == FRAMED_RING_CUDA)
        rc = cuda_import(&memory->device, message->fds[1], hello->device_uuid);
    else if (hello->memory == FRAMED_RING_CUDA_IPC)
        rc = cuda_import_ipc(&memory->device, whole.handle, hello->device_uuid);
    if (rc < 0) {
        memory_drop(memory);
        return rc;
    }
    memory_drop(ring->memory);
    ring->memory = memory;
    ring->hello = *hello;
    memcpy(ring->handle, whole.handle, sizeof ring->handle);
    ring->n_memories++;
    return 0;
}

// --- frames and batches

static int take_batch(const struct ring *ring, const struct message *message, struct notice *notice)
{
    struct framed_batch *batch = &notice->batch;
    if (message->size < sizeof *batch)
        return -EPROTO;
    memcpy(batch, message->bytes, sizeof *batch);
    if (!batch_is_good(batch) || batch->bytes > message->size || batch->count > ring->hello.batch ||
        batch->payload_bytes > ring->hello.slot_bytes ||
        !fits(ring->hello.header_offset, (uint64_t)ring->hello.slots * ring->hello.batch,
              batch->header_bytes, ring->hello.memfd_bytes))
        return -EPROTO;
    notice->slot = batch->slot;
    notice->ticket = batch->ticket;
    return 0;
}

// The slot and ticket follow the header, which may be longer than ours.
static int take_frame(const struct ring *ring, const struct message *message, struct notice *notice)
{
    struct framed_header *header = &notice->header;
    struct framed_ring_return place;
    notice->batch.count = 0;
    if (message->size < sizeof(struct framed_ring_frame))
        return -EPROTO;
    memcpy(header, message->bytes, sizeof *header);
    if (ring->hello.batch != 0 || header->payload_bytes > ring->hello.slot_bytes ||
        !header_is_good(header, 0, header->payload_bytes) ||
        header->header_bytes > message->size - sizeof place)
        return -EPROTO;
    memcpy(&place, message->bytes + header->header_bytes, sizeof place);
    notice->slot = place.slot;
    notice->ticket = place.ticket;
    return 0;
}

// Returns 1 for a frame or batch, 0 for a hello, or -EAGAIN, -EPIPE, -EPROTO or another errno.
static int take_message(struct ring *ring, int fd, struct notice *notice)
{
    struct message message;
    int rc = receive(fd, &message);
    if (rc == 0 && starts_with(&message, FRAMED_RING_MAGIC)) {
        rc = take_hello(ring, &message);
    } else if (rc == 0) {
        const bool is_batch = starts_with(&message, FRAMED_BATCH_MAGIC);
        rc = is_batch ? take_batch(ring, &message, notice) : take_frame(ring, &message, notice);
        if (rc == 0)
            rc = notice->slot < ring->hello.slots && notice->ticket != 0 ? 1 : -EPROTO;
    }
    for (int i = 0; i < message.n_fds; i++)
        close(message.fds[i]);
    return rc;
}

bool ring_has(const uint64_t *state, uint64_t ticket)
{
    atomic_thread_fence(memory_order_acquire); // orders the caller's earlier reads
    return atomic_load_explicit((const _Atomic uint64_t *)state, memory_order_acquire) == ticket;
}

const uint64_t *ring_state(const struct ring *ring, uint32_t slot)
{
    return (const uint64_t *)(const void *)(ring->memory->host + ring->hello.state_offset) + slot;
}

// Copies the headers of a batch's elements from memory that the daemon can change. -EPROTO,
// -ENOMEM.
static int copy_headers(struct ring *ring, const struct notice *notice)
{
    const struct framed_ring_hello *hello = &ring->hello;
    const size_t header_bytes = notice->batch.header_bytes;
    const size_t bytes = hello->batch * header_bytes;
    if (ring->headers_bytes < bytes) {
        free(ring->headers);
        ring->headers = malloc(bytes);
        ring->headers_bytes = ring->headers ? bytes : 0;
        if (!ring->headers)
            return -ENOMEM;
    }
    memcpy(ring->headers, ring->memory->host + hello->header_offset + notice->slot * bytes,
           notice->batch.count * header_bytes);
    return 0;
}

// Returns 1 and fills `view`, or 0 if the slot was revoked.
static int show(struct ring *ring, const struct notice *notice, struct framed_view *view)
{
    const struct framed_ring_hello *hello = &ring->hello;
    const struct framed_memory *memory = ring->memory;
    const uint64_t *state = ring_state(ring, notice->slot);
    const uint64_t offset = hello->slot_offset + notice->slot * hello->slot_stride;
    const bool on_device = is_on_device(hello);
    if (!ring_has(state, notice->ticket))
        return 0;
    *view = (struct framed_view){
        .data = on_device ? (const void *)(uintptr_t)(memory->device.address + offset)
                          : memory->host + offset,
        .memory = hello->memory,
        .device = on_device ? memory->device.device : -1,
        .slot = notice->slot,
        .memory_number = ring->n_memories,
        .ticket = notice->ticket,
        .state = state,
        .offset = offset,
        .memory_bytes = on_device ? hello->device_bytes : hello->memfd_bytes,
        .shared = hello->shared[0] ? hello->shared : NULL,
        .ipc_handle = hello->memory == FRAMED_RING_CUDA_IPC ? ring->handle : NULL,
    };
    if (notice->batch.count == 0) {
        view->header = notice->header;
        view->bytes = notice->header.payload_bytes;
        return 1;
    }
    const int rc = copy_headers(ring, notice);
    if (rc < 0 || !ring_has(state, notice->ticket))
        return rc;
    if (!take_elements(ring->headers, &notice->batch))
        return -EPROTO;
    view->elements = ring->headers;
    view->header = view->elements[0].header;
    view->batch = notice->batch;
    view->bytes = notice->batch.payload_bytes;
    return 1;
}

// --- returns

void ring_flush(struct ring *ring, int fd)
{
    const size_t size = (size_t)ring->n_returns * sizeof ring->returns[0];
    while (size > 0 && send(fd, ring->returns, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        if (errno == EPIPE || errno == ECONNRESET)
            break;
        else if (errno != EINTR)
            return; // EAGAIN, or the kernel has no memory: they stay due
    ring->n_returns = 0;
}

int ring_return(struct ring *ring, int fd, uint32_t slot, uint64_t ticket)
{
    if (ring->n_returns == RING_RETURNS_MAX)
        ring_flush(ring, fd);
    if (ring->n_returns == RING_RETURNS_MAX)
        return -ENOBUFS;
    ring->returns[ring->n_returns++] = (struct framed_ring_return){.slot = slot, .ticket = ticket};
    return 0;
}

int ring_send_result(struct ring *ring, int fd, const struct framed_ring_result *result,
                     const struct framed_detection *found)
{
    struct iovec pieces[] = {
        {(void *)(uintptr_t)result, sizeof *result},
        {(void *)(uintptr_t)found, result->count * sizeof *found},
    };
    const struct msghdr message = {.msg_iov = pieces, .msg_iovlen = result->count ? 2 : 1};
    ssize_t n;
    ring_flush(ring, fd);
    if (ring->n_returns > 0)
        return -EAGAIN;
    do
        n = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n >= 0)
        return 0;
    return errno == EAGAIN || errno == ENOBUFS ? -EAGAIN : -EPIPE;
}

int ring_next(struct ring *ring, int fd, bool newest, struct framed_view *view, uint64_t *skipped)
{
    struct notice latest, notice;
    bool has_latest = false, is_enough = false;
    int rc = 0;
    for (int i = 0; i < DRAIN_MAX && !is_enough; i++) {
        rc = take_message(ring, fd, &notice);
        if (rc < 0)
            break;
        if (has_latest) { // replaced by a newer one, or by a hello, after which it cannot be found
            (*skipped)++;
            rc = ring_return(ring, fd, latest.slot, latest.ticket) < 0 ? -ENOBUFS : rc;
        }
        latest = notice;
        has_latest = rc == 1;
        is_enough = rc < 0 || (has_latest && !newest);
    }
    if (rc < 0 && rc != -EAGAIN && !(rc == -EPIPE && has_latest))
        return rc;
    const int shown = has_latest ? show(ring, &latest, view) : 0;
    if (shown == 0 && has_latest) {
        (*skipped)++;
        return ring_return(ring, fd, latest.slot, latest.ticket);
    }
    return shown;
}
