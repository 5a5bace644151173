#include "daemon/codec/nvdec.h"

#include <errno.h>
#include <libavutil/hwcontext.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/codec/decode_options.h"
#include "daemon/source/libav_version.h"

enum {
    EXTRA_MAX = 12, // of NVDEC's 32 surfaces; a stream may need 18 for itself
    // Each decoder works on one of the device's engines, so twice as many threads as engines leave
    // some idle. More threads keep all engines busy in any order; hundreds would fight over the
    // context.
    THREADS_AUTO = 48,
    // Threads left inside while a decoder is opened, which needs the driver's lock.
    THREADS_OPENING = 14,
    // Decoders with a turn: one is opened, and the others bring their next packet in time.
    TURNS = 3,
};

// --- semaphores

struct fair_semaphore_waiter {
    pthread_cond_t turn; // its own, so that a leaving thread wakes exactly one
    bool in;
    struct fair_semaphore_waiter *next;
};

void fair_semaphore_init(struct fair_semaphore *semaphore, int places)
{
    *semaphore =
        (struct fair_semaphore){.room = places, .places = places, .since_ns = monotonic_ns()};
    semaphore->last = &semaphore->first;
    pthread_mutex_init(&semaphore->mutex, NULL);
}

void fair_semaphore_finish(struct fair_semaphore *semaphore)
{
    pthread_mutex_destroy(&semaphore->mutex);
}

// Under the lock. Adds the time so far, and changes the room.
static void change_room(struct fair_semaphore *semaphore, int places)
{
    const int64_t now_ns = monotonic_ns();
    const int taken = semaphore->places - (semaphore->room > 0 ? semaphore->room : 0);
    semaphore->used_ns += (uint64_t)taken * (uint64_t)(now_ns - semaphore->since_ns);
    semaphore->since_ns = now_ns;
    semaphore->room += places;
}

// Under the lock.
static void wait_in_line(struct fair_semaphore *semaphore)
{
    struct fair_semaphore_waiter waiter = {.turn = PTHREAD_COND_INITIALIZER};
    *semaphore->last = &waiter;
    semaphore->last = &waiter.next;
    while (!waiter.in)
        pthread_cond_wait(&waiter.turn, &semaphore->mutex);
    pthread_cond_destroy(&waiter.turn);
}

void fair_semaphore_enter(struct fair_semaphore *semaphore)
{
    pthread_mutex_lock(&semaphore->mutex);
    if (semaphore->room > 0)
        change_room(semaphore, -1);
    else
        wait_in_line(semaphore);
    pthread_mutex_unlock(&semaphore->mutex);
}

void fair_semaphore_take(struct fair_semaphore *semaphore, int places)
{
    pthread_mutex_lock(&semaphore->mutex);
    change_room(semaphore, -places);
    pthread_mutex_unlock(&semaphore->mutex);
}

// Places go straight to the first in line, so that no later arrival can take them.
void fair_semaphore_leave(struct fair_semaphore *semaphore, int places)
{
    struct fair_semaphore_waiter *first;
    pthread_mutex_lock(&semaphore->mutex);
    change_room(semaphore, places);
    while (semaphore->room > 0 && (first = semaphore->first)) {
        if (!(semaphore->first = first->next))
            semaphore->last = &semaphore->first;
        semaphore->room--;
        first->in = true;
        pthread_cond_signal(&first->turn);
    }
    pthread_mutex_unlock(&semaphore->mutex);
}

uint64_t fair_semaphore_used_ns(struct fair_semaphore *semaphore)
{
    pthread_mutex_lock(&semaphore->mutex);
    change_room(semaphore, 0);
    const uint64_t used_ns = semaphore->used_ns;
    pthread_mutex_unlock(&semaphore->mutex);
    return used_ns;
}

// --- the order of the driver's users

void nvdec_enter(struct nvdec *nvdec)
{
    if (!nvdec->device)
        return;
    nvdec->opening_before_ns = fair_semaphore_used_ns(&nvdec->device->opening);
    fair_semaphore_enter(&nvdec->device->inside);
}

void nvdec_leave(struct nvdec *nvdec)
{
    struct decode_device *device = nvdec->device;
    if (!device)
        return;
    const uint64_t opening_ns = fair_semaphore_used_ns(&device->opening);
    nvdec->held_up_ns += (int64_t)(opening_ns - nvdec->opening_before_ns);
    fair_semaphore_leave(&device->inside, nvdec->opens ? device->opening_places : 1);
    if (nvdec->opens)
        fair_semaphore_leave(&device->opening, 1);
    nvdec->opens = false;
}

// libavcodec opens the driver's decoder after this returns. A waiting thread gives its place inside
// to decoding threads. It then waits for none of them, because others wait behind it to open.
static void wait_to_open(struct nvdec *nvdec)
{
    if (nvdec->opens)
        return;
    fair_semaphore_leave(&nvdec->device->inside, 1);
    fair_semaphore_enter(&nvdec->device->opening);
    fair_semaphore_take(&nvdec->device->inside, nvdec->device->opening_places);
    nvdec->opens = true;
}

bool nvdec_turn_came(struct nvdec_turn *turn, struct decode_device *device)
{
    if (turn->device)
        return true;
    int left = atomic_load(&device->turns);
    while (left > 0 && !atomic_compare_exchange_weak(&device->turns, &left, left - 1))
        ;
    turn->device = left > 0 ? device : NULL;
    return turn->device;
}

void nvdec_turn_end(struct nvdec_turn *turn)
{
    if (turn->device)
        atomic_fetch_add(&turn->device->turns, 1);
    turn->device = NULL;
}

// --- decoders

bool nvdec_is_exact(enum AVCodecID id)
{
    return id == AV_CODEC_ID_H264 || id == AV_CODEC_ID_HEVC || id == AV_CODEC_ID_AV1 ||
           id == AV_CODEC_ID_VP8 || id == AV_CODEC_ID_VP9;
}

// libavcodec's first choice for the codec may differ: for AV1 it is a library for the cpu. The
// cuvid decoders, which have their own methods, cannot fall back.
const AVCodec *device_decoder(enum AVHWDeviceType device, enum AVCodecID id,
                              enum AVPixelFormat *format)
{
    const AVCodecHWConfig *config;
    const AVCodec *codec;
    for (void *at = NULL; nvdec_is_exact(id) && (codec = av_codec_iterate(&at));)
        for (int i = 0; codec->id == id && av_codec_is_decoder(codec) &&
                        (config = avcodec_get_hw_config(codec, i));
             i++) {
            *format = config->pix_fmt;
            if (config->device_type == device &&
                (config->methods & AV_CODEC_HW_CONFIG_METHOD_HW_DEVICE_CTX) &&
                !(config->methods & AV_CODEC_HW_CONFIG_METHOD_INTERNAL))
                return codec;
        }
    return NULL;
}

const AVCodec *nvdec_find(enum AVCodecID id)
{
    enum AVPixelFormat format;
    return device_decoder(AV_HWDEVICE_TYPE_CUDA, id, &format);
}

// libavcodec calls again without a format whose set-up failed; NONE makes the packet fail.
static enum AVPixelFormat choose_cuda(AVCodecContext *codec, const enum AVPixelFormat *formats)
{
    struct nvdec *nvdec = codec->opaque;
    for (; *formats != AV_PIX_FMT_NONE; formats++) {
        if (*formats == AV_PIX_FMT_CUDA) {
            wait_to_open(nvdec);
            return AV_PIX_FMT_CUDA;
        }
    }
    nvdec->refused = true;
    return AV_PIX_FMT_NONE;
}

// --- the set-up

// Frames that are out keep their surfaces. libavcodec adds five to the stream's need: for the
// picture being decoded, and the one that it has ready.
static int prepare(AVCodecContext *codec, const struct decode_device *device, int in_flight)
{
    codec->hw_device_ctx = av_buffer_ref(device->context);
    codec->get_format = choose_cuda;
    libav_take_surfaces(codec);
    codec->extra_hw_frames = in_flight < EXTRA_MAX ? in_flight : EXTRA_MAX;
    codec->thread_count = 1; // NVDEC works while we wait; more threads only add delay
    return codec->hw_device_ctx ? 0 : -ENOMEM;
}

// --- decoders that nobody waits for

void nvdec_abandon(struct decode_device *device, AVCodecContext *context)
{
    AVCodecContext *next = atomic_load(&device->abandoned);
    do
        context->opaque = next; // its callbacks are not called again
    while (!atomic_compare_exchange_weak(&device->abandoned, &next, context));
}

bool nvdec_close_abandoned(struct decode_device *device)
{
    AVCodecContext *context = atomic_load(&device->abandoned);
    while (context && !atomic_compare_exchange_weak(&device->abandoned, &context, context->opaque))
        ;
    if (!context)
        return false;
    const int64_t begun_ns = monotonic_ns();
    avcodec_free_context(&context);
    usleep((useconds_t)((monotonic_ns() - begun_ns) / 1000));
    return true;
}

// --- the device

static int open_context(AVBufferRef **ret, int ordinal)
{
    AVDictionary *options = NULL;
    char name[16];
    snprintf(name, sizeof(name), "%d", ordinal);
    int rc = av_dict_set(&options, "primary_ctx", "1", 0);
    if (rc >= 0)
        rc = av_hwdevice_ctx_create(ret, AV_HWDEVICE_TYPE_CUDA, name, options, 0);
    av_dict_free(&options);
    return rc;
}

int decode_device_open(struct decode_device **ret, int ordinal, int threads)
{
    struct decode_device *device = calloc(1, sizeof(*device));
    *ret = NULL;
    if (!device)
        return -ENOMEM;
    if (open_context(&device->context, ordinal) < 0) {
        free(device);
        return -ENODEV;
    }
    device->find = nvdec_find;
    device->prepare = prepare;
    threads = threads > 0 ? threads : THREADS_AUTO;
    device->opening_places = threads > THREADS_OPENING ? threads - THREADS_OPENING + 1 : 1;
    fair_semaphore_init(&device->inside, threads);
    fair_semaphore_init(&device->opening, 1);
    device->turns = TURNS;
    *ret = device;
    return 0;
}

uint64_t decode_device_busy_ns(struct decode_device *device)
{
    return fair_semaphore_used_ns(&device->inside) / (uint64_t)device->inside.places;
}

void decode_device_close(struct decode_device *device)
{
    if (!device)
        return;
    while (nvdec_close_abandoned(device))
        ;
    av_buffer_unref(&device->context);
    fair_semaphore_finish(&device->opening);
    fair_semaphore_finish(&device->inside);
    free(device);
}
