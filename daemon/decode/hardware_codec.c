#include "daemon/decode/hardware_codec.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/decode/buffers.h"
#include "daemon/decode/early_output.h"
#include "daemon/decode/hardware_context.h"
#include "daemon/input/libav_log.h"

// A driver opens its decoder with the first packets. The rest of the second in which the next
// picture is due is the cpu's, for what came since the last keyframe.
static const int64_t OPEN_NS = INT64_C(3000000000), ANSWER_NS = INT64_C(500000000);
// So much earlier a library that takes no packet is given up: its calls come back, it does not
// hang.
static const int64_t FULL_NS = INT64_C(150000000);

// A library decides itself how many pictures it looks ahead before it gives out the first one. The
// standards need 16 at most.
enum { LOOKS_AHEAD_MAX = 16 };

enum task { TASK_NONE, TASK_OPEN, TASK_SEND, TASK_TAKE, TASK_FLUSH };

struct hardware_codec {
    AVCodecParameters *parameters;

    pthread_mutex_t lock; // of what follows
    pthread_cond_t changed;
    enum task task;  // that the thread is at; TASK_NONE: it waits for one
    bool left, gone; // the owner, and the thread: the last of them frees all
    struct buffers *buffers;

    // Of the task: the thread's while it is at one, else the owner's.
    AVPacket *packet; // to be sent
    int64_t serial;
    int64_t full_ns; // how long the decoder may take no packet
    bool end;        // sent in a packet's place
    bool keyframes_only;
    int rc;
    char driver[128];
    bool data_missing; // libavcodec missed a picture that another is made from
    struct hardware_context decoder;

    // The owner's:
    bool hangs;
    bool begun;            // a picture came since the last flush
    bool keyed;            // a keyframe went in
    int unanswered;        // packets since the last picture
    int64_t unanswered_ns; // when the first of these went in
};

// --- the thread

// The buffers go with the owner.
static int keep(void *opaque, AVFrame *frame, enum AVPixelFormat format, int width, int height)
{
    struct hardware_codec *hardware = opaque;
    pthread_mutex_lock(&hardware->lock);
    const int rc = hardware->left ? AVERROR_EXIT
                                  : buffers_keep(hardware->buffers, frame, format, width, height);
    pthread_mutex_unlock(&hardware->lock);
    return rc;
}

static int perform(struct hardware_codec *hardware, enum task task)
{
    switch (task) {
    case TASK_OPEN:
        return hardware_context_open(&hardware->decoder, hardware->parameters);
    case TASK_SEND:
        return hardware_context_send(&hardware->decoder, hardware->end ? NULL : hardware->packet,
                                     hardware->serial, hardware->keyframes_only, hardware->full_ns);
    case TASK_TAKE:
        return hardware_context_take(&hardware->decoder);
    default:
        hardware_context_flush(&hardware->decoder);
        return 0;
    }
}

static void free_all(struct hardware_codec *hardware)
{
    av_packet_free(&hardware->packet);
    avcodec_parameters_free(&hardware->parameters);
    pthread_cond_destroy(&hardware->changed);
    pthread_mutex_destroy(&hardware->lock);
    free(hardware);
}

static void *run(void *opaque)
{
    struct hardware_codec *hardware = opaque;
    pthread_setname_np(pthread_self(), "hardware decode");
    pthread_mutex_lock(&hardware->lock);
    for (;;) {
        while (hardware->task == TASK_NONE && !hardware->left)
            pthread_cond_wait(&hardware->changed, &hardware->lock);
        if (hardware->left)
            break;
        pthread_mutex_unlock(&hardware->lock);
        const int rc = perform(hardware, hardware->task);
        pthread_mutex_lock(&hardware->lock);
        hardware->rc = rc;
        hardware->data_missing = libav_thread()->data_missing;
        libav_thread()->data_missing = false;
        snprintf(hardware->driver, sizeof hardware->driver, "%s", libav_thread()->driver);
        hardware->task = TASK_NONE;
        pthread_cond_broadcast(&hardware->changed);
    }
    pthread_mutex_unlock(&hardware->lock);
    hardware_context_close(&hardware->decoder);
    pthread_mutex_lock(&hardware->lock);
    const bool last = hardware->gone;
    hardware->gone = true;
    pthread_cond_broadcast(&hardware->changed);
    pthread_mutex_unlock(&hardware->lock);
    if (last)
        free_all(hardware);
    return NULL;
}

// --- the owner

// Under the lock. Whether `done` came true in time.
static bool wait_for(struct hardware_codec *hardware, int64_t ns,
                     bool (*done)(const struct hardware_codec *))
{
    const int64_t until_ns = monotonic_ns() + ns;
    const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    int rc = 0;
    while (!done(hardware) && rc == 0)
        rc = pthread_cond_timedwait(&hardware->changed, &hardware->lock, &until);
    return done(hardware);
}

static bool is_idle(const struct hardware_codec *hardware)
{
    return hardware->task == TASK_NONE;
}

static bool is_gone(const struct hardware_codec *hardware)
{
    return hardware->gone;
}

static int order(struct hardware_codec *hardware, enum task task, int64_t ns)
{
    if (hardware->hangs)
        return AVERROR(ETIMEDOUT);
    pthread_mutex_lock(&hardware->lock);
    hardware->task = task;
    pthread_cond_broadcast(&hardware->changed);
    hardware->hangs = !wait_for(hardware, ns, is_idle);
    pthread_mutex_unlock(&hardware->lock);
    if (hardware->hangs)
        return AVERROR(ETIMEDOUT);
    libav_thread()->data_missing |= hardware->data_missing;
    return hardware->rc;
}

static int start(struct hardware_codec **ret, const AVCodecParameters *parameters)
{
    pthread_condattr_t attributes;
    pthread_t id;
    struct hardware_codec *hardware = calloc(1, sizeof *hardware);
    if (!hardware)
        return -ENOMEM;
    pthread_mutex_init(&hardware->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&hardware->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    hardware->packet = av_packet_alloc();
    hardware->parameters = avcodec_parameters_alloc();
    if (!hardware->packet || !hardware->parameters ||
        avcodec_parameters_copy(hardware->parameters, parameters) < 0 ||
        pthread_create(&id, NULL, run, hardware) != 0) {
        free_all(hardware);
        return -ENOMEM;
    }
    pthread_detach(id);
    *ret = hardware;
    return 0;
}

int hardware_codec_open(struct hardware_codec **ret, const AVCodecParameters *parameters,
                        const struct decoder_choice *choice, bool early, struct buffers *buffers,
                        char *why, size_t size)
{
    struct hardware_decoder decoder;
    struct hardware_codec *hardware = NULL;
    int rc = hardware_decoder_find(&decoder, choice->name, parameters->codec_id);
    if (rc == 0)
        rc = start(&hardware, parameters);
    if (rc < 0)
        return rc;
    hardware->decoder.decoder = decoder;
    hardware->decoder.choice = *choice;
    hardware->decoder.keep = keep;
    hardware->decoder.opaque = hardware;
    hardware->buffers = buffers;
    if (early && decoder.format != AV_PIX_FMT_NONE)
        rc = early_output_open(&hardware->decoder.early, parameters);
    if (rc == -ENOTSUP) // of this codec
        rc = 0;
    if (rc == 0)
        rc = order(hardware, TASK_OPEN, OPEN_NS);
    if (rc < 0) {
        snprintf(why, size, "%s", hardware->hangs ? "no answer for 3 s" : av_err2str(rc));
        rc = hardware->hangs ? -ETIMEDOUT : rc == AVERROR(ENOMEM) ? -ENOMEM : -ENODEV;
        hardware_codec_close(hardware);
        return rc;
    }
    *ret = hardware;
    return 0;
}

void hardware_codec_close(struct hardware_codec *hardware)
{
    if (!hardware)
        return;
    pthread_mutex_lock(&hardware->lock);
    hardware->left = true;
    pthread_cond_broadcast(&hardware->changed);
    if (!hardware->hangs)
        wait_for(hardware, ANSWER_NS, is_gone);
    const bool last = hardware->gone;
    hardware->gone = true;
    pthread_mutex_unlock(&hardware->lock);
    if (last)
        free_all(hardware);
}

// Whether packets went in for long enough that a picture is due.
static bool is_silent(struct hardware_codec *hardware)
{
    const int64_t now_ns = monotonic_ns();
    if (hardware->decoder.n_ready > 0) {
        hardware->begun = true;
        hardware->unanswered = 0;
        return false;
    }
    if (hardware->unanswered++ == 0)
        hardware->unanswered_ns = now_ns;
    const bool library = hardware->decoder.decoder.format == AV_PIX_FMT_NONE;
    const int held = hardware->decoder.context->has_b_frames + 2 +
                     (library && !hardware->begun ? LOOKS_AHEAD_MAX : 0);
    return hardware->keyed && hardware->unanswered > held &&
           now_ns - hardware->unanswered_ns > (hardware->begun ? ANSWER_NS : OPEN_NS);
}

int hardware_codec_send(struct hardware_codec *hardware, const AVPacket *packet, int64_t serial,
                        bool keyframes_only)
{
    const int64_t answer_ns = hardware->begun ? ANSWER_NS : OPEN_NS;
    if (hardware->hangs)
        return AVERROR(ETIMEDOUT);
    hardware->end = !packet;
    hardware->serial = serial;
    hardware->full_ns = answer_ns - FULL_NS;
    hardware->keyframes_only = keyframes_only;
    av_packet_unref(hardware->packet);
    int rc = packet ? av_packet_ref(hardware->packet, packet) : 0;
    if (rc >= 0)
        rc = order(hardware, TASK_SEND, answer_ns);
    if (packet)
        hardware->keyed |= packet->flags & AV_PKT_FLAG_KEY;
    return rc >= 0 && packet && is_silent(hardware) ? AVERROR(ETIMEDOUT) : rc;
}

int hardware_codec_receive(struct hardware_codec *hardware, AVFrame *frame)
{
    int rc = 0;
    av_frame_unref(frame); // as avcodec_receive_frame: it may hold a picture that was dropped
    if (hardware->hangs)
        return AVERROR(ETIMEDOUT);
    if (hardware->decoder.n_ready == 0 && hardware->end && !hardware->decoder.ended)
        rc = order(hardware, TASK_TAKE, ANSWER_NS);
    if (rc < 0)
        return rc;
    if (hardware->decoder.n_ready == 0)
        return hardware->end ? AVERROR_EOF : AVERROR(EAGAIN);
    av_frame_move_ref(frame, hardware->decoder.ready[0]);
    av_frame_free(&hardware->decoder.ready[0]);
    memmove(&hardware->decoder.ready[0], &hardware->decoder.ready[1],
            (size_t)--hardware->decoder.n_ready * sizeof hardware->decoder.ready[0]);
    return 0;
}

int64_t hardware_codec_late(struct hardware_codec *hardware)
{
    return hardware->decoder.early && !hardware->hangs ? early_output_late(hardware->decoder.early)
                                                       : 0;
}

void hardware_codec_flush(struct hardware_codec *hardware)
{
    hardware->end = hardware->keyed = hardware->begun = false;
    hardware->unanswered = 0;
    order(hardware, TASK_FLUSH, ANSWER_NS); // whether it hangs the next call says
}

void hardware_codec_describe(const struct hardware_codec *hardware, AVCodecContext *to)
{
    const AVCodecContext *from = hardware->decoder.context;
    if (hardware->hangs || !from)
        return;
    to->has_b_frames = from->has_b_frames;
    to->framerate = from->framerate;
    to->width = from->width;
    to->height = from->height;
    to->coded_width = from->coded_width;
    to->coded_height = from->coded_height;
    to->refs = from->refs;
    to->level = from->level;
    to->pix_fmt = from->sw_pix_fmt != AV_PIX_FMT_NONE ? from->sw_pix_fmt : from->pix_fmt;
}

bool hardware_codec_hangs(const struct hardware_codec *hardware)
{
    return hardware->hangs;
}

bool hardware_codec_refuses(const struct hardware_codec *hardware)
{
    return !hardware->hangs && hardware->decoder.refused;
}

const char *hardware_codec_driver(const struct hardware_codec *hardware)
{
    return hardware->hangs ? "" : hardware->driver;
}

int64_t hardware_codec_copy_ns(const struct hardware_codec *hardware, int *pictures)
{
    *pictures = hardware->decoder.copies;
    return hardware->decoder.copy_ns;
}
