// Decoding runs: a clip from its file to its pictures, in the way of a camera.
#ifndef FRAMED_TESTS_DAEMON_CODEC_DECODING_H
#define FRAMED_TESTS_DAEMON_CODEC_DECODING_H

#include <errno.h>

#include "daemon/codec/decoder.h"
#include "daemon/device/devices.h"
#include "daemon/wire.h"
#include "tests/daemon/clips.h"

static _Atomic bool stop;

// The results of decoding a clip once.
struct run {
    struct demux *demux;
    struct decoder *decoder;
    int frames, damaged, keyframes, lost, notices;
    bool flushed;
    int64_t first_pts, last_pts;
    struct camera_config config;
};

static const struct decode_options on_cpu = {.decode.by = DECODE_CPU, .in_flight = 4};
static const struct decode_target no_device = {.driver = &cpu_backend};

static inline bool run_join(struct run *run, const char *file, const struct decode_options *options,
                            const struct decode_target *use)
{
    const struct duration long_enough = {10 * INT64_C(1000000000)};
    const struct camera_config config = {
        .url = (char *)file,
        .connect_timeout = long_enough,
        .media_timeout = long_enough,
        .close_timeout = long_enough,
    };
    char why[256];
    *run = (struct run){.last_pts = INT64_MIN, .config = config};
    int rc = demux_open(&run->demux, &run->config, NULL, &stop, NULL, why, sizeof(why));
    if (rc == 0)
        rc = decoder_open(&run->decoder, run->demux->parameters, options);
    if (rc == 0)
        rc = decoder_join(run->decoder, use);
    CHECK(rc == 0, "%s: %s", file, strerror(-rc));
    if (rc < 0) {
        decoder_close(run->decoder);
        demux_close(run->demux);
    }
    return rc == 0;
}

static inline uint64_t image_digest(const struct image *image)
{
    uint64_t digest = 14695981039346656037u;
    for (int p = 0; p < pixel_format_planes(image->format); p++) {
        size_t row_bytes = plane_row_bytes(image->format, p, image->width);
        for (int y = 0; y < plane_rows(image->format, p, image->height); y++) {
            const uint8_t *row = image->plane[p].data + y * image->plane[p].stride;
            for (size_t x = 0; x < row_bytes; x++)
                digest = (digest ^ row[x]) * 1099511628211u;
        }
    }
    return digest;
}

static inline bool run_open(struct run *run, const char *file, const struct decode_options *options)
{
    return run_join(run, file, options, &no_device);
}

static inline void run_close(struct run *run)
{
    decoder_close(run->decoder);
    demux_close(run->demux);
}

// Sends the next packet to the decoder, or the end.
static inline int send_next(struct run *run)
{
    struct packet packet;
    int rc = demux_read(run->demux, &packet);
    CHECK(rc == 0 || rc == -ENODATA || rc == -EPROTO, "%s", strerror(-rc));
    rc = decoder_send(run->decoder, rc == 0 ? &packet : NULL);
    CHECK(rc == 0, "%s", strerror(-rc));
    return rc;
}

// Receives the next picture, as a camera does. Returns false at the end.
static inline bool run_next(struct run *run, struct frame *frame)
{
    int rc;
    while ((rc = decoder_receive(run->decoder, frame)) == -EAGAIN || (rc == 0 && frame->lost)) {
        run->lost += rc == 0;
        if (rc == -EAGAIN)
            send_next(run);
    }
    run->notices += decoder_notice(run->decoder) != NULL;
    CHECK(rc == 0 || rc == -ENODATA, "%s", strerror(-rc));
    if (rc < 0)
        return false;
    if (run->frames++ == 0)
        run->first_pts = frame->info.pts_ns;
    run->damaged += (frame->info.flags & FRAMED_FLAG_DAMAGED) != 0;
    run->keyframes += (frame->info.flags & FRAMED_FLAG_KEYFRAME) != 0;
    run->last_pts = frame->info.pts_ns;
    return true;
}

static inline struct run run_through(const char *file, const struct decode_options *options,
                                     const struct decode_target *use)
{
    struct run run;
    struct frame frame;
    if (!run_join(&run, file, options, use))
        return run;
    while (run_next(&run, &frame))
        frame_release(&frame);
    run_close(&run);
    return run;
}

// Compares the picture with a tightly packed frame; returns the number of differing bytes.
static inline size_t differing(const struct image *image, const unsigned char *tight)
{
    size_t differ = 0;
    for (int p = 0; p < pixel_format_planes(image->format); p++) {
        size_t row_bytes = plane_row_bytes(image->format, p, image->width);
        for (int y = 0; y < plane_rows(image->format, p, image->height); y++) {
            const uint8_t *row = image->plane[p].data + y * image->plane[p].stride;
            for (size_t x = 0; x < row_bytes; x++)
                differ += row[x] != tight[x];
            tight += row_bytes;
        }
    }
    return differ;
}

#endif
