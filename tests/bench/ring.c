#include "tests/bench/ring.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { PAGE = 4096, FDS_MAX = 4 };

void ring_path(const char *folder, int i, char path[96])
{
    snprintf(path, 96, "%s/%d.sock", folder, i);
}

int ring_connect(struct ring *ring, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval patience = {.tv_sec = 2};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    ring->fd = fd;
    return 0;
}

static void unmap(struct ring *ring)
{
    if (ring->map)
        munmap((void *)ring->map, ring->hello.memfd_bytes);
    ring->map = NULL;
}

void ring_close(struct ring *ring)
{
    unmap(ring);
    if (ring->fd >= 0)
        close(ring->fd);
    ring->fd = -1;
}

// --- hello

static int accept_hello(struct ring *ring, const struct framed_ring_hello *hello, int memfd)
{
    unmap(ring);
    if (memcmp(hello->magic, FRAMED_RING_MAGIC, 4) != 0 || hello->version != FRAMED_VERSION ||
        hello->memory > FRAMED_RING_CUDA || memfd < 0)
        return -EPROTO;
    void *map = mmap(NULL, hello->memfd_bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, memfd, 0);
    if (map == MAP_FAILED)
        return -errno;
    ring->map = map;
    ring->hello = *hello;
    return 0;
}

// --- frames

static void touch(struct ring *ring, const uint8_t *frame, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += PAGE)
        ring->touched += ((const volatile uint8_t *)frame)[i];
}

// Returns the expected frame, or NULL if it is unknown.
static const uint8_t *expectation(const struct ring *ring, const struct framed_header *header,
                                  const struct expected *expected)
{
    const int64_t picture =
        ring->picture ? ring->picture(ring->opaque, header) : (int64_t)header->sequence;
    const int64_t i = picture / expected->apart;
    if (picture < 0 || picture % expected->apart != 0 || i >= expected->n)
        return NULL;
    return expected->frames + (size_t)i * expected->bytes;
}

// The fence keeps the frame's reads before the read of its word; an acquiring load would only order
// the reads after it.
static bool still_ours(const struct ring *ring, const struct framed_ring_frame *frame)
{
    const uint8_t *state = ring->map + ring->hello.state_offset + 8 * (size_t)frame->slot;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n((const uint64_t *)state, __ATOMIC_RELAXED) == frame->ticket;
}

static int give_back(const struct ring *ring, const struct framed_ring_frame *frame)
{
    const struct framed_ring_return back = {.slot = frame->slot, .ticket = frame->ticket};
    return send(ring->fd, &back, sizeof back, MSG_NOSIGNAL) == (ssize_t)sizeof back ? 0 : -errno;
}

// Touches the frame and may compare it. A frame overwritten meanwhile is not counted as compared.
static void look(struct ring *ring, const struct framed_ring_frame *frame, const uint8_t *bytes,
                 const struct expected *expected)
{
    const uint8_t *right =
        expected && !ring->checked ? expectation(ring, &frame->header, expected) : NULL;
    const bool wrong = right && (frame->header.payload_bytes != expected->bytes ||
                                 memcmp(bytes, right, expected->bytes) != 0);
    if (ring->look)
        ring->look(ring->opaque, &frame->header, bytes);
    touch(ring, bytes, frame->header.payload_bytes);
    if (!still_ours(ring, frame)) {
        ring->torn++;
        return;
    }
    ring->checked += right != NULL;
    ring->wrong += wrong;
}

static int take_frame(struct ring *ring, const struct framed_ring_frame *frame,
                      const struct expected *expected)
{
    const struct framed_header *header = &frame->header;
    const bool here = ring->hello.memory == FRAMED_RING_HOST;
    const size_t offset = ring->hello.slot_offset + frame->slot * ring->hello.slot_stride;
    if (!ring->map || frame->slot >= ring->hello.slots ||
        (here && offset + header->payload_bytes > ring->hello.memfd_bytes))
        return -EPROTO;
    if (ring->begun)
        ring->lost += header->lost - ring->before;
    ring->begun = true;
    ring->before = header->lost;
    if (here)
        look(ring, frame, ring->map + offset, expected);
    return give_back(ring, frame);
}

// --- messages

union message {
    struct framed_ring_hello hello;
    struct framed_ring_frame frame;
};

// Receives one message. Its first file descriptor goes to *memfd, others are closed.
static ssize_t receive(int fd, union message *message, int *memfd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control;
    struct iovec part = {.iov_base = message, .iov_len = sizeof *message};
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof control.bytes};
    *memfd = -1;
    ssize_t n = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return -errno;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
        int fds[FDS_MAX];
        const size_t bytes = c->cmsg_len - CMSG_LEN(0);
        if (c->cmsg_type != SCM_RIGHTS || bytes > sizeof fds)
            continue;
        memcpy(fds, CMSG_DATA(c), bytes);
        for (size_t i = 0; i < bytes / sizeof(int); i++) {
            if (*memfd < 0)
                *memfd = fds[i];
            else
                close(fds[i]);
        }
    }
    return n;
}

int ring_read(struct ring *ring, const struct expected *expected, struct framed_header *header)
{
    union message message;
    int memfd, rc = -EPROTO;
    if (ring->fd < 0)
        return -ENOTCONN;
    ssize_t n = receive(ring->fd, &message, &memfd);
    if (n == -EAGAIN)
        return -EAGAIN;
    if (n == (ssize_t)sizeof message.hello) {
        rc = accept_hello(ring, &message.hello, memfd);
    } else if (n == (ssize_t)sizeof message.frame) {
        rc = take_frame(ring, &message.frame, expected);
        *header = message.frame.header;
        rc = rc == 0 ? 1 : rc;
    }
    if (memfd >= 0)
        close(memfd);
    if (rc < 0)
        ring_close(ring);
    return rc;
}
