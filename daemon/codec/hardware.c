#include "daemon/codec/hardware.h"

#include <errno.h>
#include <libavutil/pixdesc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/codec/buffers.h"
#include "daemon/codec/early_output.h"
#include "daemon/codec/nvdec.h"
#include "daemon/codec/packet.h"
#include "daemon/source/libav_log.h"
#include "daemon/source/libav_version.h"

// The first limits each call up to the first picture, when drivers open their decoder, and the wait
// for a next picture. The second limits later calls: more would overflow sockets of RTP over UDP.
static const int64_t DEADLINE_NS = INT64_C(3000000000), LATER_DEADLINE_NS = INT64_C(500000000);

enum {
    SURFACES = 6,        // on the device, besides the stream's own need
    UNANSWERED_MAX = 18, // packets without a picture from a library, which may hold back 16
    READY_MAX = 64,      // more than a decoder holds back at the end
    STAMPS = 512,        // packets whose time stamps are kept
};

struct stamp { // of a packet
    int64_t serial, pts, duration;
    bool keyframe;
};

struct hardware {
    struct hardware_decoder decoder;
    struct decoder_choice choice;
    struct hardware *next; // in `hanging`

    pthread_mutex_t lock; // guards the members down to `buffers`
    pthread_cond_t changed;
    int (*task)(struct hardware *); // running on the thread; NULL: it waits for one
    bool left;                      // the owner has; the thread frees all
    struct buffers *buffers;

    // Owned by the thread during a task, otherwise by the owner:
    AVCodecParameters *parameters;
    AVCodecContext *context;    // NULL: not open
    struct early_output *early; // NULL: libavcodec decides the order and the time of output
    AVPacket *packet;           // to send
    struct packet_facts facts;  // of the packet
    bool end;                   // sent instead of a packet
    int64_t deadline_ns;
    bool keyframes_only;
    bool refused;
    AVFrame *ready[READY_MAX]; // pictures on the host, in order
    int n_ready;
    struct stamp stamps[STAMPS];
    int rc;
    bool data_missing; // libavcodec missed a reference picture
    char driver[128];

    // Owner only:
    bool hangs;
    bool keyed, shown;     // a keyframe went in, a picture came, since the last flush
    int unanswered;        // packets since the last picture
    int64_t unanswered_ns; // when the first of these was sent
};

// --- names

static bool takes_device(const AVCodec *codec, enum AVHWDeviceType device)
{
    const AVCodecHWConfig *config;
    for (int i = 0; (config = avcodec_get_hw_config(codec, i)); i++)
        if (config->device_type == device)
            return true;
    return false;
}

static const AVCodec *find_library(const char *name, enum AVCodecID id)
{
    const AVCodec *codec = avcodec_find_decoder_by_name(name);
    const int hardware = AV_CODEC_CAP_HARDWARE | AV_CODEC_CAP_HYBRID;
    return codec && codec->id == id && (codec->capabilities & hardware) ? codec : NULL;
}

int hardware_find(struct hardware_decoder *ret, const char *name, enum AVCodecID id)
{
    char full[64];
    ret->device = av_hwdevice_find_type_by_name(name);
    if (!nvdec_is_exact(id))
        return -ENOTSUP;
    if (ret->device && (ret->codec = device_decoder(ret->device, id, &ret->format)))
        return 0;
    snprintf(full, sizeof full, "%s_%s", avcodec_get_name(id), name);
    if (!(ret->codec = find_library(full, id)) && !(ret->codec = find_library(name, id)))
        return -ENOTSUP;
    if (!takes_device(ret->codec, ret->device))
        ret->device = AV_HWDEVICE_TYPE_NONE;
    ret->format = AV_PIX_FMT_NONE;
    return 0;
}

const char *const *hardware_names(void)
{
    static const char *const names[] = {"vaapi", "qsv", "v4l2m2m", "rkmpp", "cuda", NULL};
    return names;
}

bool hardware_is_known(const char *name)
{
    static const enum AVCodecID ids[] = {AV_CODEC_ID_H264, AV_CODEC_ID_HEVC, AV_CODEC_ID_AV1,
                                         AV_CODEC_ID_VP8, AV_CODEC_ID_VP9};
    struct hardware_decoder decoder;
    for (const char *const *known = hardware_names(); *known; known++)
        if (strcmp(name, *known) == 0)
            return true;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (hardware_find(&decoder, name, ids[i]) == 0)
            return true;
    return false;
}

const char *hardware_name(const struct decoder_choice *choice, char to[HARDWARE_NAME_MAX])
{
    snprintf(to, HARDWARE_NAME_MAX, "%s%s%s", choice->by == DECODE_CPU ? "cpu" : choice->name,
             choice->device[0] ? ":" : "", choice->device);
    return to;
}

// --- drivers that hang

static pthread_mutex_t hanging_lock = PTHREAD_MUTEX_INITIALIZER;
static struct hardware *hanging; // decoders whose owner has left during a call of the driver

static void note_hanging(struct hardware *hardware)
{
    pthread_mutex_lock(&hanging_lock);
    hardware->next = hanging;
    hanging = hardware;
    pthread_mutex_unlock(&hanging_lock);
}

static void forget_hanging(struct hardware *hardware)
{
    pthread_mutex_lock(&hanging_lock);
    struct hardware **at = &hanging;
    while (*at && *at != hardware)
        at = &(*at)->next;
    if (*at)
        *at = hardware->next;
    pthread_mutex_unlock(&hanging_lock);
}

static bool driver_hangs(const struct decoder_choice *choice)
{
    bool found = false;
    pthread_mutex_lock(&hanging_lock);
    for (const struct hardware *at = hanging; at && !found; at = at->next)
        found = strcmp(at->choice.name, choice->name) == 0 &&
                strcmp(at->choice.device, choice->device) == 0;
    pthread_mutex_unlock(&hanging_lock);
    return found;
}

// --- the thread: opening

static bool is_library(const struct hardware *hardware)
{
    return hardware->decoder.format == AV_PIX_FMT_NONE;
}

static enum AVPixelFormat choose_format(AVCodecContext *context, const enum AVPixelFormat *formats)
{
    struct hardware *hardware = context->opaque;
    for (const enum AVPixelFormat *format = formats; *format != AV_PIX_FMT_NONE; format++) {
        const bool on_device = av_pix_fmt_desc_get(*format)->flags & AV_PIX_FMT_FLAG_HWACCEL;
        if (is_library(hardware) ? !on_device : *format == hardware->decoder.format)
            return *format;
    }
    // libavcodec calls again without a format whose set-up failed.
    hardware->refused = !is_library(hardware);
    return is_library(hardware) ? formats[0] : AV_PIX_FMT_NONE;
}

static int get_buffer(AVCodecContext *context, AVFrame *frame, int flags)
{
    struct hardware *hardware = context->opaque;
    int rc = avcodec_default_get_buffer2(context, frame, flags);
    if (rc >= 0)
        early_output_handed(hardware->early, frame);
    return rc;
}

static int open_device(const struct hardware *hardware, AVBufferRef **ret)
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

static int open_context(struct hardware *hardware)
{
    const bool library = is_library(hardware);
    AVCodecContext *context = avcodec_alloc_context3(hardware->decoder.codec);
    if (!context)
        return AVERROR(ENOMEM);
    int rc = avcodec_parameters_to_context(context, hardware->parameters);
    // A library carries integers in its own time base: milliseconds are exact in all of them.
    context->pkt_timebase = (AVRational){1, library ? 1000 : 1000000000};
    context->flags |= AV_CODEC_FLAG_OUTPUT_CORRUPT | AV_CODEC_FLAG_UNALIGNED;
    context->apply_cropping = library;
    libav_carry_serials(context);
    context->opaque = hardware;
    context->get_format = choose_format;
    context->thread_count = 1;
    if (!library) {
        context->get_buffer2 = get_buffer;
        context->extra_hw_frames = SURFACES;
    }
    if (rc >= 0 && hardware->decoder.device != AV_HWDEVICE_TYPE_NONE &&
        (!library || hardware->choice.device[0]))
        rc = open_device(hardware, &context->hw_device_ctx);
    if (rc >= 0 && hardware->decoder.format == AV_PIX_FMT_CUDA) {
        libav_take_surfaces(context);
        if (hardware->early && early_output_follow(hardware->early, context) < 0)
            rc = AVERROR(ENOMEM);
    }
    if (rc >= 0)
        rc = avcodec_open2(context, hardware->decoder.codec, NULL);
    if (rc < 0)
        avcodec_free_context(&context);
    hardware->context = context;
    return rc;
}

// --- the thread: packets and pictures

// A library returns only the time stamp of a packet, so the serial replaces it.
static void note_stamp(struct hardware *hardware, AVPacket *packet)
{
    const int64_t serial = hardware->facts.serial;
    hardware->stamps[(uint64_t)serial % STAMPS] =
        (struct stamp){serial, packet->pts, packet->duration, packet->flags & AV_PKT_FLAG_KEY};
    packet->pts = serial;
    packet->dts = AV_NOPTS_VALUE;
    packet->duration = 0;
}

static int restore_stamp(const struct hardware *hardware, AVFrame *frame)
{
    const int64_t serial = frame->pts;
    const struct stamp *stamp = &hardware->stamps[(uint64_t)serial % STAMPS];
    if (serial <= 0 || stamp->serial != serial)
        return AVERROR_EXTERNAL;
    libav_set_serial(frame, serial);
    frame->pts = frame->best_effort_timestamp = stamp->pts;
    libav_set_duration(frame, stamp->duration);
    libav_set_keyframe(frame, stamp->keyframe);
    if (stamp->keyframe)
        frame->pict_type = AV_PICTURE_TYPE_I;
    return 0;
}

// The buffers are gone once the owner has left.
static int keep(struct hardware *hardware, AVFrame *frame, enum AVPixelFormat format, int width,
                int height)
{
    pthread_mutex_lock(&hardware->lock);
    const int rc = hardware->left ? AVERROR_EXIT
                                  : buffers_keep(hardware->buffers, frame, format, width, height);
    pthread_mutex_unlock(&hardware->lock);
    return rc;
}

static int copy_to_host(struct hardware *hardware, const AVFrame *from)
{
    const AVHWFramesContext *device =
        from->hw_frames_ctx ? (const void *)from->hw_frames_ctx->data : NULL;
    AVFrame *to = hardware->n_ready < READY_MAX ? av_frame_alloc() : NULL;
    if (!to)
        return AVERROR(ENOMEM);
    int rc = keep(hardware, to, device ? device->sw_format : (enum AVPixelFormat)from->format,
                  from->width, from->height);
    if (rc >= 0)
        rc = device ? av_hwframe_transfer_data(to, from, 0) : av_frame_copy(to, from);
    if (rc >= 0)
        rc = av_frame_copy_props(to, from);
    if (rc < 0)
        av_frame_free(&to);
    else
        hardware->ready[hardware->n_ready++] = to;
    return rc;
}

static int next_picture(struct hardware *hardware, AVFrame *frame)
{
    int rc;
    do
        rc = avcodec_receive_frame(hardware->context, frame);
    while (rc == 0 && hardware->early && !early_output_wants(hardware->early, frame));
    if ((rc == AVERROR(EAGAIN) || rc == AVERROR_EOF) && hardware->early &&
        early_output_next(hardware->early, frame))
        rc = 0;
    else if (rc == 0 && is_library(hardware))
        rc = restore_stamp(hardware, frame);
    return rc;
}

// A device has few surfaces: copies at once. Returns AVERROR(EAGAIN), AVERROR_EOF or an error.
static int take_pictures(struct hardware *hardware)
{
    AVFrame *frame = av_frame_alloc();
    int rc = frame ? 0 : AVERROR(ENOMEM);
    while (rc == 0) {
        rc = next_picture(hardware, frame);
        if (rc == 0)
            rc = copy_to_host(hardware, frame);
        av_frame_unref(frame);
    }
    av_frame_free(&frame);
    return rc;
}

static int give_packet(struct hardware *hardware, const AVPacket *packet)
{
    if (hardware->early && packet)
        return early_output_send(hardware->early, hardware->context, packet, &hardware->facts,
                                 hardware->keyframes_only);
    if (hardware->early)
        early_output_end(hardware->early, hardware->context);
    return libav_send(hardware->context, packet, hardware->facts.serial);
}

// A library may refuse a packet until its pictures are taken, and may need time for the pictures
// that it holds at the end. Its calls return: it does not hang.
static int send_packet(struct hardware *hardware)
{
    const int64_t until_ns = monotonic_ns() + hardware->deadline_ns / 2;
    AVPacket *packet = hardware->end ? NULL : hardware->packet;
    int rc = AVERROR(EAGAIN);
    if (packet && is_library(hardware))
        note_stamp(hardware, packet);
    for (;; usleep(1000)) {
        if (rc == AVERROR(EAGAIN))
            rc = give_packet(hardware, packet);
        const int taken = take_pictures(hardware);
        if (hardware->refused)
            return AVERROR(ENOSYS);
        if (taken != AVERROR(EAGAIN) && taken != AVERROR_EOF)
            return rc < 0 && rc != AVERROR(EAGAIN) ? rc : taken;
        if (rc != AVERROR(EAGAIN) && (rc < 0 || !hardware->end || taken == AVERROR_EOF))
            return rc;
        if (monotonic_ns() > until_ns)
            return AVERROR(ENODATA);
    }
}

static void drop_ready(struct hardware *hardware)
{
    while (hardware->n_ready > 0)
        av_frame_free(&hardware->ready[--hardware->n_ready]);
}

static int flush_context(struct hardware *hardware)
{
    drop_ready(hardware);
    if (hardware->early)
        early_output_begin(hardware->early);
    avcodec_flush_buffers(hardware->context);
    return 0;
}

static int close_context(struct hardware *hardware)
{
    drop_ready(hardware);
    early_output_close(hardware->early);
    hardware->early = NULL;
    avcodec_free_context(&hardware->context);
    return 0;
}

// --- the thread

static void free_all(struct hardware *hardware)
{
    av_packet_free(&hardware->packet);
    avcodec_parameters_free(&hardware->parameters);
    pthread_cond_destroy(&hardware->changed);
    pthread_mutex_destroy(&hardware->lock);
    free(hardware);
}

static void *run_hardware(void *opaque)
{
    struct hardware *hardware = opaque;
    pthread_setname_np(pthread_self(), "hardware decode");
    pthread_mutex_lock(&hardware->lock);
    while (hardware->task || !hardware->left) {
        if (!hardware->task) {
            pthread_cond_wait(&hardware->changed, &hardware->lock);
            continue;
        }
        pthread_mutex_unlock(&hardware->lock);
        const int rc = hardware->task(hardware);
        pthread_mutex_lock(&hardware->lock);
        hardware->rc = rc;
        hardware->data_missing = libav_thread()->data_missing;
        libav_thread()->data_missing = false;
        snprintf(hardware->driver, sizeof hardware->driver, "%s", libav_thread()->driver);
        hardware->task = NULL;
        pthread_cond_broadcast(&hardware->changed);
    }
    pthread_mutex_unlock(&hardware->lock);
    close_context(hardware); // if the owner did not wait for it
    forget_hanging(hardware);
    free_all(hardware);
    return NULL;
}

// --- the owner

static int run_task(struct hardware *hardware, int (*task)(struct hardware *))
{
    if (hardware->hangs)
        return AVERROR(ETIMEDOUT);
    const int64_t until_ns = monotonic_ns() + hardware->deadline_ns;
    int rc = 0;
    pthread_mutex_lock(&hardware->lock);
    hardware->task = task;
    pthread_cond_broadcast(&hardware->changed);
    while (hardware->task && rc == 0)
        rc = condition_wait(&hardware->changed, &hardware->lock, until_ns);
    hardware->hangs = hardware->task;
    rc = hardware->hangs ? AVERROR(ETIMEDOUT) : hardware->rc;
    pthread_mutex_unlock(&hardware->lock);
    if (!hardware->hangs)
        libav_thread()->data_missing |= hardware->data_missing;
    return rc;
}

static int start_thread(struct hardware **ret, const AVCodecParameters *parameters)
{
    pthread_t id;
    struct hardware *hardware = calloc(1, sizeof *hardware);
    if (!hardware)
        return -ENOMEM;
    pthread_mutex_init(&hardware->lock, NULL);
    condition_init(&hardware->changed);
    hardware->packet = av_packet_alloc();
    hardware->parameters = avcodec_parameters_alloc();
    if (!hardware->packet || !hardware->parameters ||
        avcodec_parameters_copy(hardware->parameters, parameters) < 0 ||
        pthread_create(&id, NULL, run_hardware, hardware) != 0) {
        free_all(hardware);
        return -ENOMEM;
    }
    pthread_detach(id);
    *ret = hardware;
    return 0;
}

int hardware_open(struct hardware **ret, const AVCodecParameters *parameters,
                  const struct decoder_choice *choice, bool early, struct buffers *buffers,
                  char *why, size_t size)
{
    struct hardware_decoder decoder;
    struct hardware *hardware = NULL;
    snprintf(why, size, "libavcodec has no such decoder of %s",
             avcodec_get_name(parameters->codec_id));
    int rc = hardware_find(&decoder, choice->name, parameters->codec_id);
    if (rc < 0)
        return rc;
    snprintf(why, size, "its driver has not returned from a call");
    if (driver_hangs(choice))
        return -EBUSY;
    snprintf(why, size, "%s", strerror(ENOMEM));
    rc = start_thread(&hardware, parameters);
    if (rc < 0)
        return rc;
    hardware->decoder = decoder;
    hardware->choice = *choice;
    hardware->buffers = buffers;
    hardware->deadline_ns = DEADLINE_NS;
    if (early && !is_library(hardware) &&
        early_output_open(&hardware->early, parameters) == -ENOMEM)
        rc = -ENOMEM;
    if (rc == 0 && (rc = run_task(hardware, open_context)) < 0) {
        hardware_why(hardware, rc, why, size);
        rc = hardware->hangs ? -ETIMEDOUT : rc == AVERROR(ENOMEM) ? -ENOMEM : -ENODEV;
    }
    if (rc < 0)
        hardware_close(hardware);
    else
        *ret = hardware;
    return rc;
}

void hardware_close(struct hardware *hardware)
{
    if (!hardware)
        return;
    run_task(hardware, close_context);
    if (hardware->hangs)
        note_hanging(hardware);
    pthread_mutex_lock(&hardware->lock);
    hardware->left = true;
    pthread_cond_broadcast(&hardware->changed);
    pthread_mutex_unlock(&hardware->lock);
}

// Returns true if a picture is overdue. The last packet may have none, as a second field.
static bool is_silent(struct hardware *hardware)
{
    const int64_t now_ns = monotonic_ns();
    const int most = is_library(hardware) ? UNANSWERED_MAX : hardware->context->has_b_frames + 2;
    if (hardware->n_ready > 0) {
        hardware->unanswered = 0;
        hardware->shown = true;
        hardware->deadline_ns = LATER_DEADLINE_NS;
    } else if (!hardware->end && hardware->unanswered++ == 0) {
        hardware->unanswered_ns = now_ns;
    }
    if (hardware->end)
        return hardware->keyed && hardware->unanswered > hardware->shown;
    return hardware->keyed && hardware->unanswered > most &&
           now_ns - hardware->unanswered_ns > DEADLINE_NS;
}

int hardware_send(struct hardware *hardware, const AVPacket *packet,
                  const struct packet_facts *facts, bool keyframes_only)
{
    if (hardware->hangs)
        return AVERROR(ETIMEDOUT);
    hardware->end = !packet;
    if (facts)
        hardware->facts = *facts;
    hardware->keyframes_only = keyframes_only;
    av_packet_unref(hardware->packet);
    int rc = packet ? av_packet_ref(hardware->packet, packet) : 0;
    if (rc >= 0)
        rc = run_task(hardware, send_packet);
    if (packet)
        hardware->keyed |= packet->flags & AV_PKT_FLAG_KEY;
    return rc >= 0 && is_silent(hardware) ? AVERROR(ENODATA) : rc;
}

int hardware_receive(struct hardware *hardware, AVFrame *frame)
{
    av_frame_unref(frame); // as avcodec_receive_frame: it may hold a picture that was dropped
    if (hardware->hangs)
        return AVERROR(ETIMEDOUT);
    if (hardware->n_ready == 0)
        return hardware->end ? AVERROR_EOF : AVERROR(EAGAIN);
    av_frame_move_ref(frame, hardware->ready[0]);
    av_frame_free(&hardware->ready[0]);
    memmove(&hardware->ready[0], &hardware->ready[1],
            (size_t)--hardware->n_ready * sizeof hardware->ready[0]);
    return 0;
}

int64_t hardware_late(struct hardware *hardware)
{
    return hardware->early && !hardware->hangs ? early_output_late(hardware->early) : 0;
}

void hardware_flush(struct hardware *hardware)
{
    hardware->end = hardware->keyed = hardware->shown = false;
    hardware->unanswered = 0;
    run_task(hardware, flush_context); // the next call reports a hang
}

void hardware_describe(const struct hardware *hardware, AVCodecContext *to)
{
    const AVCodecContext *from = hardware->hangs ? NULL : hardware->context;
    if (!from)
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

void hardware_why(const struct hardware *hardware, int error, char *why, size_t size)
{
    if (hardware->hangs)
        snprintf(why, size, "no answer for %g s", (double)hardware->deadline_ns / 1e9);
    else if (error == AVERROR(ENODATA))
        snprintf(why, size, "it gives no pictures");
    else
        av_strerror(error, why, size);
}

const char *hardware_driver(const struct hardware *hardware)
{
    return hardware->hangs ? "" : hardware->driver;
}
