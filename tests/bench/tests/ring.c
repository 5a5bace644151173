// Tests the bench's ring client against this test's own sender: it compares the right frames,
// counts correctly, and returns every slot.
#include "tests/bench/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/test.h"

enum { BYTES = 8192, APART = 10, KNOWN = 3, TICKET = 7 };

struct sender {
    int peer, memfd;
    uint8_t *memory; // a slot, followed by its word
};

static void open_pair(struct sender *sender, struct ring *ring)
{
    int ends[2];
    const size_t size = BYTES + 8;
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "errno %d", errno);
    sender->peer = ends[0];
    sender->memfd = memfd_create("ring", MFD_CLOEXEC);
    CHECK(ftruncate(sender->memfd, (off_t)size) == 0, "errno %d", errno);
    sender->memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, sender->memfd, 0);
    CHECK(sender->memory != MAP_FAILED, "errno %d", errno);
    *ring = (struct ring){.fd = ends[1]};
}

static void close_pair(struct sender *sender, struct ring *ring)
{
    ring_close(ring);
    munmap(sender->memory, BYTES + 8);
    close(sender->memfd);
    close(sender->peer);
}

static void send_hello(const struct sender *sender)
{
    struct framed_ring_hello hello = {.magic = FRAMED_RING_MAGIC,
                                      .version = FRAMED_VERSION,
                                      .slots = 1,
                                      .slot_stride = BYTES,
                                      .slot_bytes = BYTES,
                                      .state_offset = BYTES,
                                      .memfd_bytes = BYTES + 8};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
                            .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS}};
    struct iovec part = {.iov_base = &hello, .iov_len = sizeof hello};
    const struct msghdr message = {.msg_iov = &part,
                                   .msg_iovlen = 1,
                                   .msg_control = control.bytes,
                                   .msg_controllen = sizeof control.bytes};
    memcpy(CMSG_DATA(&control.header), &sender->memfd, sizeof(int));
    CHECK(sendmsg(sender->peer, &message, 0) == (ssize_t)sizeof hello, "errno %d", errno);
}

// Sends a frame filled with `level`; its slot is taken back at once if `torn`.
static void exchange(const struct sender *sender, struct ring *ring,
                     const struct expected *expected, uint64_t sequence, uint64_t lost, int level,
                     bool torn)
{
    const uint64_t word = torn ? TICKET + 1 : TICKET;
    struct framed_ring_frame frame = {
        .header = {.payload_bytes = BYTES, .sequence = sequence, .lost = lost}, .ticket = TICKET};
    struct framed_ring_return back;
    struct framed_header header;
    memset(sender->memory, level, BYTES);
    memcpy(sender->memory + BYTES, &word, sizeof word);
    CHECK(send(sender->peer, &frame, sizeof frame, 0) == (ssize_t)sizeof frame, "errno %d", errno);
    CHECK(ring_read(ring, expected, &header) == 1, "no frame");
    CHECK(header.sequence == sequence, "sequence %llu", (unsigned long long)header.sequence);
    CHECK(recv(sender->peer, &back, sizeof back, MSG_DONTWAIT) == (ssize_t)sizeof back &&
              back.ticket == TICKET,
          "the slot is not given back");
}

struct step {
    uint64_t sequence;
    int level; // frames 0, 10 and 20 should have 1, 2 and 3
    bool torn;
    int checked, wrong; // after this step
};

static void play(const char *name, const struct step *steps, int n, uint64_t lost)
{
    struct sender sender;
    struct ring ring;
    struct framed_header header;
    uint8_t *frames = malloc(KNOWN * BYTES);
    const struct expected expected = {frames, BYTES, KNOWN, APART};
    uint64_t torn = 0;
    if (!frames)
        return;
    for (int i = 0; i < KNOWN; i++)
        memset(frames + (size_t)i * BYTES, i + 1, BYTES);
    open_pair(&sender, &ring);
    CHECK(ring_read(&ring, &expected, &header) == -EAGAIN, "a message from nowhere");
    send_hello(&sender);
    CHECK(ring_read(&ring, &expected, &header) == 0, "the hello is refused");
    for (int i = 0; i < n; i++) {
        // Half of the missing frames are lost; the others were thinned.
        exchange(&sender, &ring, &expected, steps[i].sequence,
                 (steps[i].sequence - (uint64_t)i) / 2, steps[i].level, steps[i].torn);
        torn += steps[i].torn;
        CHECK(ring.checked == steps[i].checked && ring.wrong == steps[i].wrong,
              "%s: step %d: %d checked, %d wrong", name, i, ring.checked, ring.wrong);
    }
    CHECK(ring.torn == torn, "%s: %llu torn", name, (unsigned long long)ring.torn);
    CHECK(ring.lost == lost, "%s: %llu lost", name, (unsigned long long)ring.lost);
    close_pair(&sender, &ring);
    free(frames);
}

int main(void)
{
    const struct step first[] = {{0, 1, false, 1, 0}, {1, 9, false, 1, 0}, {10, 9, false, 1, 0}};
    const struct step late[] = {{3, 9, false, 0, 0}, {9, 9, false, 0, 0}, {10, 2, false, 1, 0}};
    const struct step wrong[] = {{7, 9, false, 0, 0}, {20, 2, false, 1, 1}, {21, 9, false, 1, 1}};
    const struct step torn[] = {{0, 9, true, 0, 0}, {10, 2, false, 1, 0}};
    const struct step never[] = {{29, 9, false, 0, 0}, {30, 9, false, 0, 0}};
    play("from the first on", first, 3, 4);
    play("late", late, 3, 3);
    play("other bytes", wrong, 3, 6);
    play("taken back", torn, 2, 4);
    play("too late", never, 2, 0);
    return test_end();
}
