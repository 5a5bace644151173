// A device that replaces NVDEC: a second decoder on the CPU. Its pictures are compared one by one.
#ifndef FRAMED_TESTS_DAEMON_CODEC_FAKE_DEVICE_H
#define FRAMED_TESTS_DAEMON_CODEC_FAKE_DEVICE_H

#include <unistd.h>

#include "daemon/codec/nvdec.h"
#include "tests/daemon/codec/decoding.h"

enum { PICTURES_MAX = 1000 };

// --- the device: a decoder that fails on request

static struct {
    struct decode_device device;
    int prepared, asked; // decoders; chosen formats: NVDEC opens a decoder for each
    int pictures_left;   // until it fails; below 0: never
    int opening_us;      // duration of opening a decoder
    bool refuses;
} fake = {.pictures_left = -1};

static inline enum AVPixelFormat choose_format(AVCodecContext *context,
                                               const enum AVPixelFormat *formats)
{
    fake.asked++;
    fair_semaphore_enter(&fake.device.opening);
    usleep((useconds_t)fake.opening_us);
    fair_semaphore_leave(&fake.device.opening, 1);
    if (!fake.refuses)
        return avcodec_default_get_format(context, formats);
    ((struct nvdec *)context->opaque)->refused = true;
    return AV_PIX_FMT_NONE;
}

static inline int get_buffer(AVCodecContext *context, AVFrame *frame, int flags)
{
    if (fake.pictures_left == 0)
        return AVERROR_EXTERNAL;
    fake.pictures_left -= fake.pictures_left > 0;
    return avcodec_default_get_buffer2(context, frame, flags);
}

static inline int prepare(AVCodecContext *context, const struct decode_device *device,
                          int in_flight)
{
    CHECK(device == &fake.device && in_flight == 4, "%d", in_flight);
    context->thread_count = 1;
    context->get_format = choose_format;
    context->get_buffer2 = get_buffer;
    fake.prepared++;
    return 0;
}

static const AVCodec *find(enum AVCodecID id)
{
    return id == AV_CODEC_ID_MJPEG ? NULL : avcodec_find_decoder(id);
}

static inline void fake_open(void)
{
    fake.device =
        (struct decode_device){.find = find, .prepare = prepare, .opening_places = 1, .turns = 1};
    fair_semaphore_init(&fake.device.inside, 1);
    fair_semaphore_init(&fake.device.opening, 1);
}

static inline void fake_close(void)
{
    while (nvdec_close_abandoned(&fake.device))
        ;
    fair_semaphore_finish(&fake.device.opening);
    fair_semaphore_finish(&fake.device.inside);
}

static const struct decode_target with_device = {.driver = &cpu_backend, .device = &fake.device};
static const struct decode_options anywhere = {.in_flight = 4, .threads = 1};

static inline bool on_device(const struct run *run)
{
    return !strncmp(decoder_describe(run->decoder), "nvdec ", 6);
}

// --- pictures, compared by content

struct sequence {
    int n;
    struct {
        uint64_t hash;
        int64_t pts_ns;
        uint32_t flags;
    } picture[PICTURES_MAX];
};

// Chroma in two planes has the same hash as in one.
static inline uint64_t hash_of(const struct image *image)
{
    uint64_t hash = 0xcbf29ce484222325;
    const int planes = pixel_format_planes(image->format);
    for (int p = 0; p < planes && p < 2; p++) {
        const int together = planes == 3 && p == 1 ? 2 : 1;
        const size_t bytes = plane_row_bytes(image->format, p, image->width);
        for (int y = 0; y < plane_rows(image->format, p, image->height); y++)
            for (size_t x = 0; x < bytes * (size_t)together; x++) {
                const struct plane *plane = &image->plane[p + (together == 2 && x % 2)];
                const uint8_t byte =
                    plane->data[y * plane->stride + (ptrdiff_t)(x / (size_t)together)];
                hash = (hash ^ byte) * 0x100000001b3;
            }
    }
    return hash;
}

static inline void add(struct sequence *sequence, struct frame *frame)
{
    if (sequence->n < PICTURES_MAX) {
        sequence->picture[sequence->n].hash = hash_of(&frame->image);
        sequence->picture[sequence->n].pts_ns = frame->info.pts_ns;
        sequence->picture[sequence->n].flags = frame->info.flags;
        sequence->n++;
    }
    frame_release(frame);
}

static inline void decode_all(struct sequence *sequence, const char *file)
{
    struct run run;
    struct frame frame;
    sequence->n = 0;
    if (!run_open(&run, file, &on_cpu))
        return;
    while (sequence->n < PICTURES_MAX && run_next(&run, &frame))
        add(sequence, &frame);
    run_close(&run);
}

// Compares `got` with `whole`, less the `missing` pictures from `gap` on.
static inline bool same(const struct sequence *got, const struct sequence *whole, int gap,
                        int missing, const char *what)
{
    CHECK(got->n + missing == whole->n, "%s: %d pictures of %d", what, got->n, whole->n);
    for (int i = 0; i < got->n && i + missing < whole->n; i++) {
        int j = i < gap ? i : i + missing;
        bool equal = got->picture[i].hash == whole->picture[j].hash &&
                     got->picture[i].pts_ns == whole->picture[j].pts_ns &&
                     got->picture[i].flags == whole->picture[j].flags;
        CHECK(equal, "%s: picture %d", what, i);
        if (!equal)
            return false;
    }
    return got->n + missing == whole->n;
}

static struct sequence whole, got; // large

// Decodes up to `n` pictures.
static inline void decode_some(struct run *run, int n)
{
    struct frame frame;
    for (int i = 0; i < n && run_next(run, &frame); i++)
        add(&got, &frame);
}

static inline void change(struct run *run, const struct decode_target *use)
{
    decoder_leave(run->decoder);
    int rc = decoder_join(run->decoder, use);
    CHECK(rc == 0, "%s", strerror(-rc));
}

// Clips of 128x96, with a keyframe every 12 pictures.
static const char *const clip[][2] = {
    {"-c:v libx264 -bf 3 -g 12 -x264-params scenecut=0", "closed.mp4"},
    {"-c:v libx264 -bf 3 -g 12 -x264-params scenecut=0:open-gop=1", "open.mp4"},
    {"-c:v libx264 -bf 0 -g 12 -x264-params scenecut=0:repeat-headers=1", "flat.ts"},
    {"-c:v libx265 -bf 3 -x265-params log-level=none:keyint=12:scenecut=0", "open.mkv"},
    {"-c:v libvpx-vp9 -g 12 -deadline good -cpu-used 8 -auto-alt-ref 1", "vp9.mkv"},
};

#endif
