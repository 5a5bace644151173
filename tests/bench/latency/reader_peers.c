// framed's peers: a GStreamer pipeline with an appsink, which prints each picture's number and time
// (gstreamer.c), and the ffmpeg program with raw pictures to a pipe.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "tests/bench/latency/reader.h"

enum { PIPE_BYTES = 1 << 20 };

static void prepare(struct reader *reader, const struct reader_want *want, const char *name)
{
    *reader = (struct reader){.want = *want, .fd = -1, .ring.fd = -1, .child.out = -1};
    snprintf(reader->log, sizeof reader->log, "%s/%s.log", want->folder, name);
}

// --- GStreamer

static int start_gstreamer(struct reader *reader, const struct reader_want *want)
{
    prepare(reader, want, "gstreamer");
    char *const argv[] = {(char *)want->program,
                          (char *)want->url,
                          want->codec == CLIP_H264 ? "h264" : "h265",
                          want->udp ? "udp" : "tcp",
                          want->decoded ? "decoded" : "tensor",
                          NULL};
    return child_start(&reader->child, argv, reader->log, true);
}

static int take_gstreamer(struct reader *reader, struct picture_seen *ret)
{
    long long at_ns;
    const char *line = child_line(&reader->child, 0.02);
    if (!line)
        return child_runs(&reader->child) ? 0 : -ESRCH;
    if (sscanf(line, "%d %lld", &ret->number, &at_ns) != 2)
        return -EPROTO;
    ret->at_ns = at_ns;
    return 1;
}

// --- ffmpeg

// Omits `-fflags nobuffer`: it discards the pictures read to probe the stream and makes none of the
// others arrive sooner.
static int start_ffmpeg(struct reader *reader, const struct reader_want *want)
{
    prepare(reader, want, "ffmpeg");
    char *const argv[] = {(char *)want->program,
                          "-v",
                          "error",
                          "-nostdin",
                          "-flags",
                          "low_delay",
                          "-probesize",
                          "32",
                          "-fpsprobesize",
                          "0",
                          "-rtsp_transport",
                          want->udp ? "udp" : "tcp",
                          "-i",
                          (char *)want->url,
                          "-an",
                          "-fps_mode",
                          "passthrough",
                          "-vf",
                          want->decoded ? "null" : "scale=640:640:flags=bilinear",
                          "-pix_fmt",
                          want->decoded ? "yuv420p" : "rgb24",
                          "-f",
                          "rawvideo",
                          "-flush_packets",
                          "1",
                          "pipe:1",
                          NULL};
    const int rc = child_start(&reader->child, argv, reader->log, true);
    if (rc < 0)
        return rc;
    fcntl(reader->child.out, F_SETPIPE_SZ, PIPE_BYTES); // an unprivileged user's limit
    reader->fd = fcntl(reader->child.out, F_DUPFD_CLOEXEC, 0);
    return reader->fd < 0 ? -errno : 0;
}

static int take_ffmpeg(struct reader *reader, struct picture_seen *ret)
{
    const int rc = reader_fill(reader, reader_picture_bytes(&reader->want), &ret->at_ns);
    if (rc > 0)
        ret->number = reader_number(&reader->want, reader->bytes);
    return rc;
}

const struct reader_kind reader_gstreamer = {"GStreamer", start_gstreamer, take_gstreamer};
const struct reader_kind reader_ffmpeg = {"ffmpeg", start_ffmpeg, take_ffmpeg};
