// The differences between the APIs of FFmpeg 5.1, 6.1 and 7.1. All conditions on a version are in
// this file; its functions behave alike with each version.
#ifndef FRAMED_DAEMON_SOURCE_LIBAV_VERSION_H
#define FRAMED_DAEMON_SOURCE_LIBAV_VERSION_H

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <stdbool.h>
#include <stdint.h>

// --- serials: the number of a packet, which the picture decoded from it carries

#if LIBAVCODEC_VERSION_MAJOR >= 60
// Call before avcodec_open2.
static inline void libav_carry_serials(AVCodecContext *context)
{
    context->flags |= AV_CODEC_FLAG_COPY_OPAQUE;
}

// Calls avcodec_send_packet with the packet's serial. NULL is the end.
static inline int libav_send(AVCodecContext *context, const AVPacket *packet, int64_t serial)
{
    AVPacket *own = packet ? av_packet_clone(packet) : NULL;
    if (packet && !own)
        return AVERROR(ENOMEM);
    if (own)
        own->opaque = (void *)(intptr_t)serial;
    const int rc = avcodec_send_packet(context, own);
    av_packet_free(&own);
    return rc;
}

static inline int64_t libav_serial(const AVFrame *frame)
{
    return (intptr_t)frame->opaque;
}

static inline void libav_set_serial(AVFrame *frame, int64_t serial)
{
    frame->opaque = (void *)(intptr_t)serial;
}
#else
static inline void libav_carry_serials(AVCodecContext *context)
{
    (void)context;
}

static inline int libav_send(AVCodecContext *context, const AVPacket *packet, int64_t serial)
{
    if (packet)
        context->reordered_opaque = serial;
    return avcodec_send_packet(context, packet);
}

static inline int64_t libav_serial(const AVFrame *frame)
{
    return frame->reordered_opaque;
}

static inline void libav_set_serial(AVFrame *frame, int64_t serial)
{
    frame->reordered_opaque = serial;
}
#endif

// --- facts of a picture

#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 30, 100)
#define LIBAV_DURATION duration
#else
#define LIBAV_DURATION pkt_duration
#endif

static inline int64_t libav_duration(const AVFrame *frame)
{
    return frame->LIBAV_DURATION;
}

static inline void libav_set_duration(AVFrame *frame, int64_t duration)
{
    frame->LIBAV_DURATION = duration;
}

#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)
#define LIBAV_FLAG(frame, flag, member) ((frame)->flags & (flag))
#else
#define LIBAV_FLAG(frame, flag, member) ((frame)->member)
#endif

static inline bool libav_is_keyframe(const AVFrame *frame)
{
    return LIBAV_FLAG(frame, AV_FRAME_FLAG_KEY, key_frame);
}

static inline bool libav_is_interlaced(const AVFrame *frame)
{
    return LIBAV_FLAG(frame, AV_FRAME_FLAG_INTERLACED, interlaced_frame);
}

static inline bool libav_is_top_first(const AVFrame *frame)
{
    return LIBAV_FLAG(frame, AV_FRAME_FLAG_TOP_FIELD_FIRST, top_field_first);
}

static inline void libav_set_keyframe(AVFrame *frame, bool keyframe)
{
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)
    frame->flags = keyframe ? frame->flags | AV_FRAME_FLAG_KEY : frame->flags & ~AV_FRAME_FLAG_KEY;
#else
    frame->key_frame = keyframe;
#endif
}

// --- contexts

// Lets callbacks of frame threads run on those threads.
static inline void libav_allow_threaded_callbacks(AVCodecContext *context)
{
    (void)context; // since 60: always
#if LIBAVCODEC_VERSION_MAJOR < 60
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    context->thread_safe_callbacks = 1;
#pragma GCC diagnostic pop
#endif
}

// Makes NVDEC's pictures its own surfaces, not copies of them.
static inline void libav_take_surfaces(AVCodecContext *context)
{
    (void)context; // before the flag: always
#ifdef AV_HWACCEL_FLAG_UNSAFE_OUTPUT
    context->hwaccel_flags |= AV_HWACCEL_FLAG_UNSAFE_OUTPUT;
#endif
}

// --- containers

#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 30, 100)
static inline const void *libav_side_data(const AVStream *stream, enum AVPacketSideDataType type,
                                          size_t *size)
{
    const AVCodecParameters *parameters = stream->codecpar;
    const AVPacketSideData *data =
        av_packet_side_data_get(parameters->coded_side_data, parameters->nb_coded_side_data, type);
    *size = data ? data->size : 0;
    return data ? data->data : NULL;
}
#else
static inline const void *libav_side_data(const AVStream *stream, enum AVPacketSideDataType type,
                                          size_t *size)
{
    *size = 0;
    return av_stream_get_side_data(stream, type, size);
}
#endif

// The type of the bytes passed to AVIOContext's write callback.
#if LIBAVFORMAT_VERSION_MAJOR >= 61
typedef const uint8_t libav_written;
#else
typedef uint8_t libav_written;
#endif

#endif
