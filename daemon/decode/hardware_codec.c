#include "daemon/decode/hardware_codec.h"

#include <errno.h>
#include <libavutil/hwcontext.h>
#include <libavutil/pixdesc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/decode/buffers.h"
#include "daemon/decode/early_output.h"
#include "daemon/decode/hardware_decoder.h"
#include "daemon/decode/nvdec.h"
#include "daemon/input/libav_log.h"

enum {
    READY_MAX = 32, // pictures on the host that nobody has asked for
    STAMPS = 512,   // packets whose time stamps are known
    SURFACES = 6,   // on the device, beside those that the stream needs
};

// A driver opens its decoder with the first packets. The rest of the second in which the next
// picture is due is the cpu's, for what came since the last keyframe.
static const int64_t OPEN_NS = INT64_C(3000000000), ANSWER_NS = INT64_C(500000000);

enum task { TASK_NONE, TASK_OPEN, TASK_SEND, TASK_TAKE, TASK_FLUSH };

struct stamp { // of a packet
    int64_t serial, pts, duration;
    bool keyframe;
};

struct hardware_codec {
    struct hardware_decoder decoder;
    struct decoder_choice choice;
    AVCodecParameters *parameters;

    pthread_mutex_t lock; // of what follows
    pthread_cond_t changed;
    enum task task;  // that the thread is at; TASK_NONE: it waits for one
    bool left, gone; // the owner, and the thread: the last of them frees all
    struct buffers *buffers;

    // Of the task: the thread's while it is at one, else the owner's.
    AVPacket *packet; // to be sent
    int64_t serial;
    bool end; // sent in a packet's place
    bool keyframes_only;
    int rc;
    bool refused; // the device does not take the stream
    char driver[128];
    bool data_missing; // libavcodec missed a picture that another is made from
    AVFrame *ready[READY_MAX];
    int n_ready;
    bool ended; // all pictures came
    int64_t copy_ns;
    int copies;
    AVCodecContext *context; // NULL: not open
    struct early_output *early;
    struct stamp stamps[STAMPS];

    // The owner's:
    bool hangs;
    bool begun;            // a picture came
    bool keyed;            // a keyframe went in
    int unanswered;        // packets since the last picture
    int64_t unanswered_ns; // when the first of these went in
};

// --- the thread: set-up

static enum AVPixelFormat choose_format(AVCodecContext *context, const enum AVPixelFormat *formats)
{
    const enum AVPixelFormat wanted = ((struct hardware_codec *)context->opaque)->decoder.format;
    for (const enum AVPixelFormat *format = formats; *format != AV_PIX_FMT_NONE; format++) {
        const bool on_device = av_pix_fmt_desc_get(*format)->flags & AV_PIX_FMT_FLAG_HWACCEL;
        if (wanted == AV_PIX_FMT_NONE ? !on_device : *format == wanted)
            return *format;
    }
    // libavcodec asks again without a format whose set-up failed.
    ((struct hardware_codec *)context->opaque)->refused = wanted != AV_PIX_FMT_NONE;
    return wanted == AV_PIX_FMT_NONE ? formats[0] : AV_PIX_FMT_NONE;
}

static int get_buffer(AVCodecContext *context, AVFrame *frame, int flags)
{
    int rc = avcodec_default_get_buffer2(context, frame, flags);
    if (rc >= 0 && LIBAVCODEC_VERSION_MAJOR == 59) // as nvdec.c
        early_output_handed(((struct hardware_codec *)context->opaque)->early, frame);
    return rc;
}

static int open_device(const struct hardware_codec *hardware, AVBufferRef **ret)
{
    const enum AVHWDeviceType type = hardware->decoder.device;
    const char *device = hardware->choice.device;
    AVDictionary *options = NULL;
    int rc = 0;
    if (type == AV_HWDEVICE_TYPE_CUDA) // one context for all cameras
        rc = av_dict_set(&options, "primary_ctx", "1", 0);
    if (type == AV_HWDEVICE_TYPE_QSV && device[0])
        rc = av_dict_set(&options, "child_device", device, 0);
    if (rc >= 0)
        rc = av_hwdevice_ctx_create(ret, type, device[0] ? device : NULL, options, 0);
    av_dict_free(&options);
    return rc;
}

static int open_context(struct hardware_codec *hardware)
{
    const struct hardware_decoder *decoder = &hardware->decoder;
    const bool library = decoder->format == AV_PIX_FMT_NONE;
    AVCodecContext *context = avcodec_alloc_context3(decoder->codec);
    if (!context)
        return AVERROR(ENOMEM);
    int rc = avcodec_parameters_to_context(context, hardware->parameters);
    // A library carries whole numbers of its own time base: milliseconds are exact in all of them.
    context->pkt_timebase = (AVRational){1, library ? 1000 : 1000000000};
    context->flags |= AV_CODEC_FLAG_OUTPUT_CORRUPT | AV_CODEC_FLAG_UNALIGNED;
    context->apply_cropping = library;
    context->opaque = hardware;
    context->get_format = choose_format;
    context->thread_count = 1;
    if (!library) {
        context->get_buffer2 = get_buffer;
        context->extra_hw_frames = SURFACES;
    }
    if (rc >= 0 && decoder->device != AV_HWDEVICE_TYPE_NONE &&
        (!library || hardware->choice.device[0]))
        rc = open_device(hardware, &context->hw_device_ctx);
    if (rc >= 0)
        rc = avcodec_open2(context, decoder->codec, NULL);
    if (rc < 0)
        avcodec_free_context(&context);
    hardware->context = context;
    return rc;
}

// --- the thread: pictures

// A library gives nothing but the time stamp back, which was the packet's serial.
static int restore_stamps(const struct hardware_codec *hardware, AVFrame *frame)
{
    const int64_t serial = frame->pts;
    const struct stamp *stamp = &hardware->stamps[(uint64_t)serial % STAMPS];
    if (serial <= 0 || stamp->serial != serial)
        return AVERROR_EXTERNAL;
    frame->reordered_opaque = serial;
    frame->pts = frame->best_effort_timestamp = stamp->pts;
    frame->pkt_duration = stamp->duration;
    frame->key_frame = stamp->keyframe;
    if (stamp->keyframe)
        frame->pict_type = AV_PICTURE_TYPE_I;
    return 0;
}

static int copy_to_host(struct hardware_codec *hardware, const AVFrame *from)
{
    const AVHWFramesContext *device =
        from->hw_frames_ctx ? (const void *)from->hw_frames_ctx->data : NULL;
    const int64_t begun_ns = monotonic_ns();
    AVFrame *to = av_frame_alloc();
    if (!to)
        return AVERROR(ENOMEM);
    pthread_mutex_lock(&hardware->lock); // the buffers go with the owner
    int rc = hardware->left
                 ? AVERROR_EXIT
                 : buffers_keep(hardware->buffers, to,
                                device ? device->sw_format : (enum AVPixelFormat)from->format,
                                from->width, from->height);
    pthread_mutex_unlock(&hardware->lock);
    if (rc >= 0)
        rc = device ? av_hwframe_transfer_data(to, from, 0) : av_frame_copy(to, from);
    if (rc >= 0)
        rc = av_frame_copy_props(to, from);
    if (rc < 0) {
        av_frame_free(&to);
        return rc;
    }
    hardware->copy_ns += monotonic_ns() - begun_ns;
    hardware->copies++;
    hardware->ready[hardware->n_ready++] = to;
    return 0;
}

static int next_picture(struct hardware_codec *hardware, AVFrame *frame)
{
    int rc;
    do
        rc = avcodec_receive_frame(hardware->context, frame);
    while (rc == 0 && hardware->early && !early_output_wants(hardware->early, frame));
    if ((rc == AVERROR(EAGAIN) || rc == AVERROR_EOF) && hardware->early &&
        early_output_next(hardware->early, frame))
        rc = nvdec_map(hardware->context, frame);
    else if (rc == 0 && hardware->decoder.format == AV_PIX_FMT_NONE)
        rc = restore_stamps(hardware, frame);
    return rc;
}

// Copies what there is, as far as there is room: a device has few surfaces.
static int take_pictures(struct hardware_codec *hardware)
{
    AVFrame *frame = av_frame_alloc();
    int rc = frame ? 0 : AVERROR(ENOMEM);
    while (rc == 0 && hardware->n_ready < READY_MAX) {
        rc = next_picture(hardware, frame);
        if (rc == 0)
            rc = copy_to_host(hardware, frame);
        av_frame_unref(frame);
    }
    hardware->ended = rc == AVERROR_EOF;
    av_frame_free(&frame);
    return rc == AVERROR(EAGAIN) || rc == AVERROR_EOF ? 0 : rc;
}

static void note_stamps(struct hardware_codec *hardware)
{
    AVPacket *packet = hardware->packet;
    hardware->context->reordered_opaque = hardware->serial;
    hardware->stamps[(uint64_t)hardware->serial % STAMPS] = (struct stamp){
        .serial = hardware->serial,
        .pts = packet->pts,
        .duration = packet->duration,
        .keyframe = packet->flags & AV_PKT_FLAG_KEY,
    };
    if (hardware->decoder.format != AV_PIX_FMT_NONE)
        return;
    packet->pts = hardware->serial;
    packet->dts = AV_NOPTS_VALUE;
    packet->duration = 0;
}

// A library may take no packet until it has given out pictures.
static int send(struct hardware_codec *hardware)
{
    const AVPacket *packet = hardware->end ? NULL : hardware->packet;
    const int64_t until_ns = monotonic_ns() + OPEN_NS;
    int rc;
    if (packet)
        note_stamps(hardware);
    while ((rc = avcodec_send_packet(hardware->context, packet)) == AVERROR(EAGAIN)) {
        if (monotonic_ns() > until_ns)
            return AVERROR(ETIMEDOUT);
        rc = take_pictures(hardware);
        if (rc < 0)
            return rc;
        usleep(1000);
    }
    if (hardware->early && packet)
        early_output_sent(hardware->early, hardware->context, packet, hardware->serial,
                          hardware->keyframes_only, rc);
    else if (hardware->early)
        early_output_end(hardware->early);
    const int taken = take_pictures(hardware);
    if (hardware->refused)
        return AVERROR(ENOSYS);
    return rc < 0 ? rc : taken;
}

static void drop_ready(struct hardware_codec *hardware)
{
    while (hardware->n_ready > 0)
        av_frame_free(&hardware->ready[--hardware->n_ready]);
}

static int flush(struct hardware_codec *hardware)
{
    drop_ready(hardware);
    if (hardware->early)
        early_output_begin(hardware->early);
    avcodec_flush_buffers(hardware->context);
    hardware->ended = false;
    return 0;
}

// --- the thread

static int perform(struct hardware_codec *hardware, enum task task)
{
    switch (task) {
    case TASK_OPEN:
        return open_context(hardware);
    case TASK_SEND:
        return send(hardware);
    case TASK_TAKE:
        return take_pictures(hardware);
    default:
        return flush(hardware);
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
    drop_ready(hardware);
    early_output_close(hardware->early);
    avcodec_free_context(&hardware->context);
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
    hardware->decoder = decoder;
    hardware->choice = *choice;
    hardware->buffers = buffers;
    if (early && decoder.format != AV_PIX_FMT_NONE)
        rc = early_output_open(&hardware->early, parameters);
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
    if (hardware->n_ready > 0) {
        hardware->begun = true;
        hardware->unanswered = 0;
        return false;
    }
    if (hardware->unanswered++ == 0)
        hardware->unanswered_ns = now_ns;
    return hardware->keyed && hardware->unanswered > hardware->context->has_b_frames + 2 &&
           now_ns - hardware->unanswered_ns > (hardware->begun ? ANSWER_NS : OPEN_NS);
}

int hardware_codec_send(struct hardware_codec *hardware, const AVPacket *packet, int64_t serial,
                        bool keyframes_only)
{
    if (hardware->hangs)
        return AVERROR(ETIMEDOUT);
    hardware->end = !packet;
    hardware->serial = serial;
    hardware->keyframes_only = keyframes_only;
    av_packet_unref(hardware->packet);
    int rc = packet ? av_packet_ref(hardware->packet, packet) : 0;
    if (rc >= 0)
        rc = order(hardware, TASK_SEND, hardware->begun ? ANSWER_NS : OPEN_NS);
    if (packet)
        hardware->keyed |= packet->flags & AV_PKT_FLAG_KEY;
    return rc >= 0 && packet && is_silent(hardware) ? AVERROR(ETIMEDOUT) : rc;
}

int hardware_codec_receive(struct hardware_codec *hardware, AVFrame *frame)
{
    int rc = 0;
    if (hardware->hangs)
        return AVERROR(ETIMEDOUT);
    if (hardware->n_ready == 0 && hardware->end && !hardware->ended)
        rc = order(hardware, TASK_TAKE, ANSWER_NS);
    if (rc < 0)
        return rc;
    if (hardware->n_ready == 0)
        return hardware->end ? AVERROR_EOF : AVERROR(EAGAIN);
    av_frame_move_ref(frame, hardware->ready[0]);
    av_frame_free(&hardware->ready[0]);
    memmove(&hardware->ready[0], &hardware->ready[1],
            (size_t)--hardware->n_ready * sizeof hardware->ready[0]);
    return 0;
}

int64_t hardware_codec_late(struct hardware_codec *hardware)
{
    return hardware->early && !hardware->hangs ? early_output_late(hardware->early) : 0;
}

void hardware_codec_flush(struct hardware_codec *hardware)
{
    hardware->end = hardware->keyed = false;
    hardware->unanswered = 0;
    order(hardware, TASK_FLUSH, ANSWER_NS); // whether it hangs the next call says
}

void hardware_codec_describe(const struct hardware_codec *hardware, AVCodecContext *to)
{
    const AVCodecContext *from = hardware->context;
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
    return !hardware->hangs && hardware->refused;
}

const char *hardware_codec_driver(const struct hardware_codec *hardware)
{
    return hardware->hangs ? "" : hardware->driver;
}

int64_t hardware_codec_copy_ns(const struct hardware_codec *hardware, int *pictures)
{
    *pictures = hardware->copies;
    return hardware->copy_ns;
}
