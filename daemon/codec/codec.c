#include "daemon/codec/codec.h"

#include <errno.h>

#include "daemon/codec/buffers.h"
#include "daemon/codec/decode_options.h"
#include "daemon/codec/early_output.h"
#include "daemon/codec/hardware.h"
#include "daemon/codec/packet.h"
#include "daemon/codec/picture.h"
#include "daemon/source/libav_version.h"

static const int64_t NO_SERIAL = 0; // serials start at 1

// Threads that decode several pictures at once delay each picture by some packets. libdav1d has no
// thread_type; for other codecs the flag would also change the order of pictures.
static void forbid_delay(AVCodecContext *context)
{
    context->thread_type = FF_THREAD_SLICE;
    // Decoding several slices of H.264 at a time, libavcodec neither conceals nor reports damage.
    if (context->codec_id == AV_CODEC_ID_H264)
        context->thread_count = 1;
    if (context->codec_id == AV_CODEC_ID_AV1)
        context->flags |= AV_CODEC_FLAG_LOW_DELAY;
}

// True if pictures are shown as soon as they are decoded. libavcodec would hold them back, and it
// cannot order keyframes alone, whose POC continues from pictures that it did not get.
static bool shows_at_once(const struct decode_options *options)
{
    return options->low_delay || options->pictures == PICTURES_KEYFRAMES;
}

static int set_up(struct codec *codec, AVCodecContext *context,
                  const struct decode_options *options, struct buffers *buffers)
{
    context->pkt_timebase = (AVRational){1, 1000000000};
    // Damaged pictures must come out, with a flag; crops must be exact.
    context->flags |= AV_CODEC_FLAG_OUTPUT_CORRUPT | AV_CODEC_FLAG_UNALIGNED;
    libav_carry_serials(context);
    if (codec->nvdec.device) {
        context->opaque = &codec->nvdec;
        const int rc =
            codec->nvdec.device->prepare(context, codec->nvdec.device, options->in_flight);
        return rc == 0 && codec->early ? early_output_follow(codec->early, context) : rc;
    }
    context->apply_cropping = 0; // hashes are of whole pictures; picture_map crops
    context->thread_count = options->threads;
    if (shows_at_once(options))
        forbid_delay(context);
    buffers_serve(buffers, context, codec->early);
    return 0;
}

int codec_open(struct codec *codec, const AVCodecParameters *parameters,
               const struct decode_options *options, struct decode_device *device,
               struct buffers *buffers, struct pictures *pictures)
{
    enum AVCodecID id = parameters->codec_id;
    const AVCodec *decoder = device ? device->find(id) : avcodec_find_decoder(id);
    AVCodecContext *context = decoder ? avcodec_alloc_context3(decoder) : NULL;
    if (!context)
        return decoder ? -ENOMEM : -ENOTSUP;
    *codec = (struct codec){.nvdec.device = device, .pictures = pictures, .first = NO_SERIAL + 1};
    int rc = avcodec_parameters_to_context(context, parameters);
    if (rc >= 0 && shows_at_once(options) &&
        early_output_open(&codec->early, parameters) == -ENOMEM)
        rc = AVERROR(ENOMEM);
    if (rc >= 0)
        rc = set_up(codec, context, options, buffers);
    if (rc >= 0)
        rc = avcodec_open2(context, decoder, NULL);
    if (rc < 0) {
        avcodec_free_context(&context);
        early_output_close(codec->early);
        *codec = (struct codec){0};
        return rc == AVERROR(ENOMEM) ? -ENOMEM : -ENOTSUP;
    }
    codec->context = context;
    return 0;
}

int codec_open_hardware(struct codec *codec, const AVCodecParameters *parameters,
                        const struct decode_options *options, const struct decoder_choice *choice,
                        struct buffers *buffers, struct pictures *pictures, char *why, size_t size)
{
    AVCodecContext *context = avcodec_alloc_context3(NULL);
    *codec = (struct codec){.pictures = pictures};
    int rc = context && avcodec_parameters_to_context(context, parameters) >= 0 ? 0 : -ENOMEM;
    if (rc == 0)
        rc = hardware_open(&codec->hardware, parameters, choice, shows_at_once(options), buffers,
                           why, size);
    if (rc < 0) {
        avcodec_free_context(&context);
        return rc;
    }
    context->codec_descriptor = avcodec_descriptor_get(parameters->codec_id);
    context->pkt_timebase = (AVRational){1, 1000000000};
    codec->context = context;
    return 0;
}

bool codec_on_nvdec(const struct codec *codec)
{
    return codec->context && codec->nvdec.device;
}

bool codec_on_device(const struct codec *codec)
{
    return codec->hardware || codec_on_nvdec(codec);
}

static void close_codec(struct codec *codec, bool waits)
{
    if (!codec->context)
        return;
    nvdec_enter(&codec->nvdec);
    pictures_reap(codec->pictures);
    early_output_close(codec->early);
    hardware_close(codec->hardware);
    if (waits)
        avcodec_free_context(&codec->context);
    nvdec_leave(&codec->nvdec);
    if (codec->context)
        nvdec_abandon(codec->nvdec.device, codec->context);
    av_packet_free(&codec->idr);
    *codec = (struct codec){0};
}

void codec_close(struct codec *codec)
{
    close_codec(codec, true);
}

void codec_abandon(struct codec *codec)
{
    close_codec(codec, !codec->nvdec.device);
}

// --- H.264 on a device: libavcodec's flush would close the decoder in the driver
//
// So we do not flush it. An IDR picture also ends the sequence before it: sending pictures after
// one brings out the held-back ones. At the end of a stream we send the last IDR picture again. Its
// pictures, and pictures of a flushed stream, are dropped.

static int keep_idr(struct codec *codec, const AVPacket *packet)
{
    av_packet_free(&codec->idr);
    if (!(codec->idr = av_packet_clone(packet)))
        return AVERROR(ENOMEM);
    codec->idr->pts = codec->idr->dts = AV_NOPTS_VALUE;
    return 0;
}

// Call before sending a packet. Keeps an IDR picture; any other first one flushes after all.
static int begin_packet(struct codec *codec, const AVPacket *packet,
                        const struct packet_facts *facts)
{
    if (!codec_on_nvdec(codec) || codec->context->codec_id != AV_CODEC_ID_H264)
        return 0;
    const bool idr = (packet->flags & AV_PKT_FLAG_KEY) && facts->start == PICTURE_BEGINS_LOWEST;
    if (codec->unflushed && !idr)
        avcodec_flush_buffers(codec->context);
    codec->unflushed = false;
    return idr ? keep_idr(codec, packet) : 0;
}

// Sends the last IDR picture again. Returns false when all held-back pictures are out.
static bool push(struct codec *codec)
{
    if (!codec->draining || !codec->idr || codec->early ||
        codec->pushes >= codec->context->has_b_frames)
        return false;
    codec->pushes++;
    return libav_send(codec->context, codec->idr, NO_SERIAL) >= 0;
}

// --- calls

int codec_send(struct codec *codec, const AVPacket *packet, const struct packet_facts *facts)
{
    int rc = 0;
    codec->draining |= !packet;
    if (codec->hardware) {
        rc = hardware_send(codec->hardware, packet, facts, codec->keyframes_only);
        hardware_describe(codec->hardware, codec->context);
        return rc;
    }
    nvdec_enter(&codec->nvdec);
    pictures_reap(codec->pictures);
    if (packet)
        rc = begin_packet(codec, packet, facts);
    else if (codec->early)
        early_output_end(codec->early, codec->context);
    if (rc >= 0 && packet && codec->early)
        rc = early_output_send(codec->early, codec->context, packet, facts, codec->keyframes_only);
    else if (rc >= 0 && (packet || !codec->idr))
        rc = libav_send(codec->context, packet, packet ? facts->serial : NO_SERIAL);
    nvdec_leave(&codec->nvdec);
    return rc;
}

static bool is_wanted(struct codec *codec, AVFrame *frame)
{
    if (codec->idr && libav_serial(frame) < codec->first)
        return false;
    return !codec->early || early_output_wants(codec->early, frame);
}

static int receive(struct codec *codec, AVFrame *frame)
{
    int rc;
    do
        rc = avcodec_receive_frame(codec->context, frame);
    while ((rc == 0 && !is_wanted(codec, frame)) || (rc == AVERROR(EAGAIN) && push(codec)));
    return rc == AVERROR(EAGAIN) && codec->draining ? AVERROR_EOF : rc;
}

// libavcodec decodes a packet when it is sent, and then has its picture ready. In some codecs a
// packet may contain several pictures, and the rest are decoded on request.
static bool has_work_left(const struct codec *codec)
{
    enum AVCodecID id = codec->context->codec_id;
    return codec->draining || (id != AV_CODEC_ID_H264 && id != AV_CODEC_ID_HEVC);
}

int codec_receive(struct codec *codec, AVFrame *frame)
{
    if (codec->hardware)
        return hardware_receive(codec->hardware, frame);
    bool works = has_work_left(codec);
    if (works)
        nvdec_enter(&codec->nvdec);
    int rc = receive(codec, frame);
    if (works)
        nvdec_leave(&codec->nvdec);
    const bool waits = rc == AVERROR(EAGAIN) || rc == AVERROR_EOF;
    return waits && codec->early && early_output_next(codec->early, frame) ? 0 : rc;
}

int64_t codec_late(struct codec *codec)
{
    if (codec->hardware)
        return hardware_late(codec->hardware);
    return codec->early ? early_output_late(codec->early) : 0;
}

int codec_map(struct codec *codec, struct picture *picture, bool keep_on_device, struct frame *ret,
              const char **converted)
{
    bool copies = picture_on_device(picture) && !keep_on_device;
    if (copies)
        nvdec_enter(&codec->nvdec);
    int rc = picture_map(picture, keep_on_device, ret, converted);
    if (copies)
        nvdec_leave(&codec->nvdec);
    return rc;
}

void codec_flush(struct codec *codec, int64_t first)
{
    codec->draining = false;
    codec->pushes = 0;
    codec->first = first;
    codec->unflushed = codec->idr;
    if (codec->hardware) {
        hardware_flush(codec->hardware);
        return;
    }
    nvdec_enter(&codec->nvdec);
    pictures_reap(codec->pictures);
    if (codec->early)
        early_output_begin(codec->early);
    if (!codec->unflushed)
        avcodec_flush_buffers(codec->context);
    nvdec_leave(&codec->nvdec);
}

bool codec_failed(const struct codec *codec, int error)
{
    return codec_on_device(codec) &&
           (codec->nvdec.refused ||
            (error != AVERROR_INVALIDDATA && error != AVERROR(EAGAIN) && error != AVERROR_EOF));
}
