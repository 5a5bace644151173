// Runs framed with one camera and one output, to a ring or to a unix socket.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "tests/bench/latency/reader.h"

static int write_config(const struct reader *reader, const char *sink)
{
    const struct reader_want *want = &reader->want;
    FILE *file = fopen(reader->config, "we");
    if (!file)
        return -errno;
    fprintf(file,
            "log: {level: warning}\ncontrol: off\ncameras:\n  camera:\n    url: %s\n"
            "    transport: %s\n    %s\n    outputs:\n      o: {%s, sink: \"%s:%s\"}\n",
            want->url, want->udp ? "udp" : "tcp", want->keys,
            want->decoded ? "kernel: yuv, format: yuv420p"
                          : "size: 640x640, fit: stretch, "
                            "tensor: {dtype: u8, layout: nhwc, order: rgb}",
            sink, reader->sink);
    return fclose(file) == 0 ? 0 : -errno;
}

static int start_framed(struct reader *reader, const struct reader_want *want, const char *sink)
{
    *reader = (struct reader){.want = *want, .fd = -1, .ring.fd = -1, .child.out = -1};
    snprintf(reader->sink, sizeof reader->sink, "%s/sink", want->folder);
    snprintf(reader->config, sizeof reader->config, "%s/framed.yaml", want->folder);
    snprintf(reader->log, sizeof reader->log, "%s/framed.log", want->folder);
    int rc = write_config(reader, sink);
    char *const argv[] = {(char *)want->program, "run", "-c", reader->config, NULL};
    return rc < 0 ? rc : child_start(&reader->child, argv, reader->log, false);
}

// Waits for the socket. The pause is short, so that the first picture finds its client.
static int pause_before_retry(const struct reader *reader)
{
    const struct timespec pause = {.tv_nsec = 200000};
    nanosleep(&pause, NULL);
    return child_runs(&reader->child) ? 0 : -ESRCH;
}

// --- the ring

static void look_at_frame(void *opaque, const struct framed_header *header, const uint8_t *bytes)
{
    struct reader *reader = opaque;
    const int64_t now = monotonic_ns();
    const bool good = header->payload_bytes == reader_picture_bytes(&reader->want);
    reader->seen = (struct picture_seen){good ? reader_number(&reader->want, bytes) : -1, now};
}

static int start_ring(struct reader *reader, const struct reader_want *want)
{
    return start_framed(reader, want, "ring");
}

static int take_ring(struct reader *reader, struct picture_seen *ret)
{
    struct framed_header header;
    if (reader->ring.fd < 0) {
        reader->ring = (struct ring){.fd = -1, .look = look_at_frame, .opaque = reader};
        if (ring_connect(&reader->ring, reader->sink) < 0)
            return pause_before_retry(reader);
    }
    if (!reader_wait(reader->ring.fd))
        return child_runs(&reader->child) ? 0 : -ESRCH;
    const int rc = ring_read(&reader->ring, NULL, &header);
    *ret = reader->seen;
    return rc == -EAGAIN ? 0 : rc;
}

// --- the socket

static int connect_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static int start_socket(struct reader *reader, const struct reader_want *want)
{
    return start_framed(reader, want, "unix");
}

static int take_socket(struct reader *reader, struct picture_seen *ret)
{
    struct framed_header header;
    const size_t bytes = sizeof header + reader_picture_bytes(&reader->want);
    if (reader->fd < 0) {
        reader->fd = connect_socket(reader->sink);
        if (reader->fd < 0)
            return pause_before_retry(reader);
    }
    const int rc = reader_fill(reader, bytes, &ret->at_ns);
    if (rc <= 0)
        return rc;
    memcpy(&header, reader->bytes, sizeof header);
    if (header.payload_bytes != bytes - sizeof header)
        return -EPROTO;
    ret->number = reader_number(&reader->want, reader->bytes + sizeof header);
    return 1;
}

const struct reader_kind reader_framed_ring = {"framed, ring", start_ring, take_ring};
const struct reader_kind reader_framed_socket = {"framed, socket", start_socket, take_socket};
