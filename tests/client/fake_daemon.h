// A scripted daemon with one output, on the test's own thread: frames of 8 x 6 RGB bytes, or
// batches of up to three of them, over a ring or a unix socket.
#ifndef FRAMED_TESTS_CLIENT_FAKE_DAEMON_H
#define FRAMED_TESTS_CLIENT_FAKE_DAEMON_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/wire.h"

enum {
    FAKE_WIDTH = 8,
    FAKE_HEIGHT = 6,
    FAKE_BYTES = 3 * FAKE_WIDTH * FAKE_HEIGHT,
    FAKE_SLOTS = 4,
    FAKE_BATCH = 3,
    FAKE_STRIDE = 4096, // of slots; the first follows the words and the headers
    FAKE_HEADERS = 64,
    FAKE_FIRST = 8192,
    FAKE_MEMORY = FAKE_FIRST + FAKE_SLOTS * FAKE_STRIDE,
};

struct fake_daemon {
    char folder[32];
    struct sockaddr_un address;
    char name[64]; // for framed_open
    int listener, peer, memfd;
    uint8_t *memory;
};

static inline void fake_listen(struct fake_daemon *daemon)
{
    const bool is_ring = daemon->name[0] == 'r';
    unlink(daemon->address.sun_path);
    daemon->listener =
        socket(AF_UNIX, (is_ring ? SOCK_SEQPACKET : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bind(daemon->listener, (struct sockaddr *)&daemon->address, sizeof daemon->address) != 0 ||
        listen(daemon->listener, 4) != 0)
        abort();
}

// kind: "ring" or "unix".
static inline void fake_open(struct fake_daemon *daemon, const char *kind)
{
    *daemon = (struct fake_daemon){.folder = "/tmp/framed-test-XXXXXX", .peer = -1};
    daemon->address.sun_family = AF_UNIX;
    if (!mkdtemp(daemon->folder))
        abort();
    snprintf(daemon->address.sun_path, sizeof daemon->address.sun_path, "%s/s", daemon->folder);
    snprintf(daemon->name, sizeof daemon->name, "%s:%s/s", kind, daemon->folder);
    daemon->memfd = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (ftruncate(daemon->memfd, FAKE_MEMORY) != 0)
        abort();
    daemon->memory = mmap(NULL, FAKE_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, daemon->memfd, 0);
    if (daemon->memory == MAP_FAILED || fcntl(daemon->memfd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
        abort();
    fake_listen(daemon);
}

static inline void fake_hang_up(struct fake_daemon *daemon)
{
    if (daemon->peer >= 0)
        close(daemon->peer);
    daemon->peer = -1;
}

static inline void fake_stop_listening(struct fake_daemon *daemon)
{
    close(daemon->listener);
    unlink(daemon->address.sun_path);
    daemon->listener = -1;
}

static inline void fake_close(struct fake_daemon *daemon)
{
    fake_hang_up(daemon);
    if (daemon->listener >= 0)
        fake_stop_listening(daemon);
    munmap(daemon->memory, FAKE_MEMORY);
    close(daemon->memfd);
    rmdir(daemon->folder);
}

// Returns false if no connection is pending.
static inline bool fake_accept(struct fake_daemon *daemon)
{
    fake_hang_up(daemon);
    daemon->peer = accept4(daemon->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    return daemon->peer >= 0;
}

static inline uint64_t *fake_state(const struct fake_daemon *daemon, uint32_t slot)
{
    return (uint64_t *)(void *)daemon->memory + slot;
}

static inline uint8_t *fake_slot(const struct fake_daemon *daemon, uint32_t slot)
{
    return daemon->memory + FAKE_FIRST + slot * FAKE_STRIDE;
}

static inline struct framed_element_header *fake_headers(const struct fake_daemon *daemon,
                                                         uint32_t slot)
{
    return (struct framed_element_header *)(void *)(daemon->memory + FAKE_HEADERS) +
           slot * FAKE_BATCH;
}

// --- valid messages

static inline struct framed_ring_hello fake_hello(uint32_t batch)
{
    return (struct framed_ring_hello){
        .magic = {'F', 'R', 'N', 'G'},
        .version = FRAMED_VERSION,
        .hello_bytes = sizeof(struct framed_ring_hello),
        .slots = FAKE_SLOTS,
        .slot_offset = FAKE_FIRST,
        .slot_stride = FAKE_STRIDE,
        .slot_bytes = (batch ? batch : 1) * FAKE_BYTES,
        .memfd_bytes = FAKE_MEMORY,
        .batch = batch,
        .header_offset = batch ? FAKE_HEADERS : 0,
    };
}

static inline struct framed_header fake_header(uint64_t sequence)
{
    return (struct framed_header){
        .magic = {'F', 'R', 'M', 'D'},
        .version = FRAMED_VERSION,
        .header_bytes = sizeof(struct framed_header),
        .payload_bytes = FAKE_BYTES,
        .sequence = sequence,
        .width = FAKE_WIDTH,
        .height = FAKE_HEIGHT,
        .source_width = 2 * FAKE_WIDTH,
        .source_height = 2 * FAKE_HEIGHT,
        .format = "rgb",
        .dtype = "u8",
        .layout = {'n', 'c', 'h', 'w'},
        .planes = 3,
        .plane_offset = {0, FAKE_BYTES / 3, 2 * FAKE_BYTES / 3},
        .plane_stride = {FAKE_WIDTH, FAKE_WIDTH, FAKE_WIDTH},
        .src_to_dst = {0.5f, 0, -0.25f, 0, 0.5f, -0.25f},
        .dst_to_src = {2, 0, 0.5f, 0, 2, 0.5f},
        .camera = "gate",
        .output = "detector",
    };
}

static inline struct framed_ring_frame fake_frame(uint32_t slot, uint64_t ticket)
{
    return (struct framed_ring_frame){fake_header(ticket), slot, 0, ticket};
}

static inline struct framed_element_header fake_element(uint64_t sequence, uint32_t i)
{
    struct framed_element_header element = {.header = fake_header(sequence), .region = "door"};
    element.header.header_bytes = sizeof element;
    element.header.batch_index = i;
    for (int plane = 0; plane < 3; plane++)
        element.header.plane_offset[plane] += (uint64_t)i * FAKE_BYTES;
    snprintf(element.header.camera, sizeof element.header.camera, "gate%u", i);
    return element;
}

static inline struct framed_batch fake_batch(uint32_t slot, uint64_t ticket, uint32_t count)
{
    return (struct framed_batch){
        .magic = {'F', 'R', 'B', 'T'},
        .version = FRAMED_VERSION,
        .bytes = sizeof(struct framed_batch),
        .count = count,
        .capacity = FAKE_BATCH,
        .closed_by = FRAMED_CLOSED_FULL,
        .header_bytes = sizeof(struct framed_element_header),
        .element_bytes = FAKE_BYTES,
        .payload_bytes = (uint64_t)count * FAKE_BYTES,
        .sequence = ticket,
        .slot = slot,
        .elements = count,
        .ticket = ticket,
    };
}

// --- sending and receiving

static inline bool fake_send(const struct fake_daemon *daemon, const void *bytes, size_t size)
{
    return send(daemon->peer, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
}

static inline bool fake_send_fds(const struct fake_daemon *daemon, const void *bytes, size_t size,
                                 const int fds[], int n)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = "";
    struct iovec piece = {(void *)(uintptr_t)bytes, size};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (n > 0) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
        memcpy(CMSG_DATA(rights), fds, (size_t)n * sizeof(int));
    }
    return sendmsg(daemon->peer, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
}

// Sends with n copies of one descriptor, four at most.
static inline bool fake_send_with(const struct fake_daemon *daemon, const void *bytes, size_t size,
                                  int fd, int n)
{
    const int fds[4] = {fd, fd, fd, fd};
    return fake_send_fds(daemon, bytes, size, fds, n);
}

static inline bool fake_say_hello(const struct fake_daemon *daemon, uint32_t batch)
{
    const struct framed_ring_hello hello = fake_hello(batch);
    return fake_send_with(daemon, &hello, sizeof hello, daemon->memfd, 1);
}

// Puts a frame of one level into a slot, and announces it.
static inline bool fake_say_frame(const struct fake_daemon *daemon, uint32_t slot, uint64_t ticket,
                                  uint8_t level)
{
    const struct framed_ring_frame frame = fake_frame(slot, ticket);
    *fake_state(daemon, slot) = ticket;
    memset(fake_slot(daemon, slot), level, FAKE_BYTES);
    return fake_send(daemon, &frame, sizeof frame);
}

// Receives the next message, of `max` bytes at most. Returns its size, or -1 if there is none.
static inline ssize_t fake_take(const struct fake_daemon *daemon, void *to, size_t max)
{
    return recv(daemon->peer, to, max, MSG_DONTWAIT);
}

// Receives pending returns of slots, `max` at most.
static inline int fake_take_returns(const struct fake_daemon *daemon,
                                    struct framed_ring_return returned[], int max)
{
    int n = 0;
    ssize_t size = 0;
    while (n < max && size >= 0) {
        size =
            recv(daemon->peer, returned + n, (size_t)(max - n) * sizeof returned[0], MSG_DONTWAIT);
        if (size == 0)
            break;
        n += size > 0 ? (int)(size / (ssize_t)sizeof returned[0]) : 0;
    }
    return n;
}

#endif
