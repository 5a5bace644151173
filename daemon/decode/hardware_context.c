#include "daemon/decode/hardware_context.h"

#include <errno.h>
#include <libavutil/hwcontext.h>
#include <libavutil/pixdesc.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/decode/early_output.h"
#include "daemon/input/libav_version.h"

enum { SURFACES = 6 }; // on the device, beside those that the stream needs

static enum AVPixelFormat choose_format(AVCodecContext *context, const enum AVPixelFormat *formats)
{
    const enum AVPixelFormat wanted = ((struct hardware_context *)context->opaque)->decoder.format;
    for (const enum AVPixelFormat *format = formats; *format != AV_PIX_FMT_NONE; format++) {
        const bool on_device = av_pix_fmt_desc_get(*format)->flags & AV_PIX_FMT_FLAG_HWACCEL;
        if (wanted == AV_PIX_FMT_NONE ? !on_device : *format == wanted)
            return *format;
    }
    // libavcodec asks again without a format whose set-up failed.
    ((struct hardware_context *)context->opaque)->refused = wanted != AV_PIX_FMT_NONE;
    return wanted == AV_PIX_FMT_NONE ? formats[0] : AV_PIX_FMT_NONE;
}

static int get_buffer(AVCodecContext *context, AVFrame *frame, int flags)
{
    int rc = avcodec_default_get_buffer2(context, frame, flags);
    if (rc >= 0)
        early_output_handed(((struct hardware_context *)context->opaque)->early, frame);
    return rc;
}

static int open_device(const struct hardware_context *hardware, AVBufferRef **ret)
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

int hardware_context_open(struct hardware_context *hardware, const AVCodecParameters *parameters)
{
    const struct hardware_decoder *decoder = &hardware->decoder;
    const bool library = decoder->format == AV_PIX_FMT_NONE;
    AVCodecContext *context = avcodec_alloc_context3(decoder->codec);
    if (!context)
        return AVERROR(ENOMEM);
    int rc = avcodec_parameters_to_context(context, parameters);
    // A library carries whole numbers of its own time base: milliseconds are exact in all of them.
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
    if (rc >= 0 && decoder->device != AV_HWDEVICE_TYPE_NONE &&
        (!library || hardware->choice.device[0]))
        rc = open_device(hardware, &context->hw_device_ctx);
    if (rc >= 0 && decoder->format == AV_PIX_FMT_CUDA) {
        libav_take_surfaces(context);
        if (hardware->early && early_output_follow(hardware->early, context) < 0)
            rc = AVERROR(ENOMEM);
    }
    if (rc >= 0)
        rc = avcodec_open2(context, decoder->codec, NULL);
    if (rc < 0)
        avcodec_free_context(&context);
    hardware->context = context;
    return rc;
}

// --- pictures

// A library gives nothing but the time stamp back, which was the packet's serial.
static int restore_stamps(const struct hardware_context *hardware, AVFrame *frame)
{
    const int64_t serial = frame->pts;
    const struct hardware_stamp *stamp = &hardware->stamps[(uint64_t)serial % HARDWARE_STAMPS];
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

static int copy_to_host(struct hardware_context *hardware, const AVFrame *from)
{
    const AVHWFramesContext *device =
        from->hw_frames_ctx ? (const void *)from->hw_frames_ctx->data : NULL;
    const int64_t begun_ns = monotonic_ns();
    AVFrame *to = av_frame_alloc();
    if (!to)
        return AVERROR(ENOMEM);
    int rc = hardware->keep(hardware->opaque, to,
                            device ? device->sw_format : (enum AVPixelFormat)from->format,
                            from->width, from->height);
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

static int next_picture(struct hardware_context *hardware, AVFrame *frame)
{
    int rc;
    do
        rc = avcodec_receive_frame(hardware->context, frame);
    while (rc == 0 && hardware->early && !early_output_wants(hardware->early, frame));
    if ((rc == AVERROR(EAGAIN) || rc == AVERROR_EOF) && hardware->early &&
        early_output_next(hardware->early, frame))
        rc = 0;
    else if (rc == 0 && hardware->decoder.format == AV_PIX_FMT_NONE)
        rc = restore_stamps(hardware, frame);
    return rc;
}

// Copies what there is, as far as there is room: a device has few surfaces.
int hardware_context_take(struct hardware_context *hardware)
{
    AVFrame *frame = av_frame_alloc();
    int rc = frame ? 0 : AVERROR(ENOMEM);
    while (rc == 0 && hardware->n_ready < HARDWARE_READY_MAX) {
        rc = next_picture(hardware, frame);
        if (rc == 0)
            rc = copy_to_host(hardware, frame);
        av_frame_unref(frame);
    }
    hardware->ended = rc == AVERROR_EOF;
    av_frame_free(&frame);
    return rc == AVERROR(EAGAIN) || rc == AVERROR_EOF ? 0 : rc;
}

static void note_stamps(struct hardware_context *hardware, AVPacket *packet, int64_t serial)
{
    hardware->stamps[(uint64_t)serial % HARDWARE_STAMPS] = (struct hardware_stamp){
        .serial = serial,
        .pts = packet->pts,
        .duration = packet->duration,
        .keyframe = packet->flags & AV_PKT_FLAG_KEY,
    };
    if (hardware->decoder.format != AV_PIX_FMT_NONE)
        return;
    packet->pts = serial;
    packet->dts = AV_NOPTS_VALUE;
    packet->duration = 0;
}

static int send_packet(struct hardware_context *hardware, const AVPacket *packet, int64_t serial,
                       bool keyframes_only)
{
    if (hardware->early && packet)
        return early_output_send(hardware->early, hardware->context, packet, serial,
                                 keyframes_only);
    if (hardware->early)
        early_output_end(hardware->early, hardware->context);
    return libav_send(hardware->context, packet, serial);
}

// A library may take no packet until it has given out pictures.
int hardware_context_send(struct hardware_context *hardware, AVPacket *packet, int64_t serial,
                          bool keyframes_only, int64_t full_ns)
{
    const int64_t until_ns = monotonic_ns() + full_ns;
    int rc;
    if (packet)
        note_stamps(hardware, packet, serial);
    while ((rc = send_packet(hardware, packet, serial, keyframes_only)) == AVERROR(EAGAIN)) {
        if (monotonic_ns() > until_ns)
            return AVERROR(ETIMEDOUT);
        rc = hardware_context_take(hardware);
        if (rc < 0)
            return rc;
        usleep(1000);
    }
    const int taken = hardware_context_take(hardware);
    if (hardware->refused)
        return AVERROR(ENOSYS);
    return rc < 0 ? rc : taken;
}

static void drop_ready(struct hardware_context *hardware)
{
    while (hardware->n_ready > 0)
        av_frame_free(&hardware->ready[--hardware->n_ready]);
}

void hardware_context_flush(struct hardware_context *hardware)
{
    drop_ready(hardware);
    if (hardware->early)
        early_output_begin(hardware->early);
    avcodec_flush_buffers(hardware->context);
    hardware->ended = false;
}

void hardware_context_close(struct hardware_context *hardware)
{
    drop_ready(hardware);
    early_output_close(hardware->early);
    hardware->early = NULL;
    avcodec_free_context(&hardware->context);
}
