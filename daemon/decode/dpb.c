#include "daemon/decode/dpb.h"

#include <libavcodec/avcodec.h>
#include <libavutil/pixdesc.h>
#include <math.h>

#include "daemon/base/number.h"
#include "daemon/decode/pixel_format_map.h"

enum {
    H264_PICTURES_MAX = 16,      // kept by a stream of any level
    HEVC_PICTURES = 6,           // kept by a stream as large as its level allows
    NVDEC_SPARE = 5,             // surfaces that libavcodec adds to those the stream needs
    PACKET_BYTES_MAX = 64 << 20, // a file may claim any bit rate
    // Motion vectors, reference indices and types: the sizes of libavcodec's tables.
    H264_MACROBLOCK = 141,
    HEVC_MACROBLOCK = 200,
    // Pictures on the host, with the padding that libavcodec requests: see decode/buffers.c.
    PAGE = 4096,
    PICTURE_COLUMNS = 128,
    PICTURE_ROWS = 32,
    ROWS_BEHIND = 2,        // H.264's motion compensation touches one of each plane
    BYTES_BEHIND = 192,     // after all planes
    LAID_OUT_BITS = 12,     // per pixel of `source`: 4:2:0
    THREAD_BYTES = 2 << 20, // per thread of the decoder
};

// --- H.264: table A-1 of the standard

static int h264_level_macroblocks(int level)
{
    static const struct {
        int level, macroblocks;
    } levels[] = {{9, 396},     {10, 396},    {11, 900},    {12, 2376},   {13, 2376},
                  {20, 2376},   {21, 4752},   {22, 8100},   {30, 8100},   {31, 18000},
                  {32, 20480},  {40, 32768},  {41, 32768},  {42, 34816},  {50, 110400},
                  {51, 184320}, {52, 184320}, {60, 696320}, {61, 696320}, {62, 696320}};
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        if (levels[i].level == level)
            return levels[i].macroblocks;
    return INT32_MAX;
}

// Pictures that wait for output and are not references count toward the level's maximum. If the
// stream does not limit how many may wait, NVDEC gets surfaces for as many as the level allows.
static void measure_h264(struct stream_memory *ret, const AVCodecContext *context)
{
    int macroblocks = (context->coded_width + 15) / 16 * ((context->coded_height + 15) / 16);
    int most = h264_level_macroblocks(context->level) / bounds_max(macroblocks, 1);
    most = bounds_max(bounds_min(most, H264_PICTURES_MAX), context->refs);
    ret->pictures = bounds_min(context->refs + context->has_b_frames, most);
    ret->surfaces =
        context->refs + bounds_max(context->has_b_frames, bounds_min(most, H264_PICTURES_MAX - 1));
    ret->macroblock_bytes = H264_MACROBLOCK;
}

// --- H.265: sections A.4.1 and A.4.2

static int64_t hevc_level_pixels(int level)
{
    static const struct {
        int level, pixels;
    } levels[] = {{30, 36864},  {60, 122880},   {63, 245760},   {90, 552960},
                  {93, 983040}, {123, 2228224}, {156, 8912896}, {186, 35651584}};
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        if (level <= levels[i].level)
            return levels[i].pixels;
    return INT32_MAX;
}

static void measure_hevc(struct stream_memory *ret, const AVCodecContext *context)
{
    int64_t most = hevc_level_pixels(context->level);
    int64_t pixels = (int64_t)context->coded_width * context->coded_height;
    ret->pictures = pixels <= most / 4       ? 16
                    : pixels <= most / 2     ? 2 * HEVC_PICTURES
                    : pixels <= most / 4 * 3 ? 4 * HEVC_PICTURES / 3
                                             : HEVC_PICTURES;
    ret->surfaces = ret->pictures + 1;
    ret->macroblock_bytes = HEVC_MACROBLOCK;
}

// --- the others: pictures by their standards, surfaces as libavcodec requests from NVDEC

static void measure_other(struct stream_memory *ret, const AVCodecContext *context)
{
    ret->macroblock_bytes = H264_MACROBLOCK;
    if (context->codec_descriptor->props & AV_CODEC_PROP_INTRA_ONLY) {
        ret->pictures = ret->surfaces = ret->macroblock_bytes = 0;
        return;
    }
    switch (context->codec_id) {
    case AV_CODEC_ID_VP9:
    case AV_CODEC_ID_AV1:
        ret->pictures = 9;
        ret->surfaces = 10;
        break;
    case AV_CODEC_ID_VP8:
        ret->pictures = ret->surfaces = 3;
        break;
    default:
        ret->pictures = ret->surfaces = 2 + context->has_b_frames;
        break;
    }
}

// On a device pix_fmt only means that the samples are there.
static enum AVPixelFormat samples_of(const AVCodecContext *context)
{
    return context->hw_frames_ctx ? context->sw_pix_fmt : context->pix_fmt;
}

static int bits_of(enum AVPixelFormat samples)
{
    const AVPixFmtDescriptor *format = av_pix_fmt_desc_get(samples);
    return format ? av_get_padded_bits_per_pixel(format) : 0;
}

// Pictures in flight are libswscale's results, which are made from one more decoded picture.
static void add_converted(struct stream_memory *ret, enum AVPixelFormat samples)
{
    ret->pictures++;
    ret->pixel_bits = bounds_max(ret->pixel_bits, bits_of(pixel_format_map_converted(samples)));
}

enum stream_codec dpb_codec(int codec_id)
{
    return codec_id == AV_CODEC_ID_H264  ? STREAM_H264
           : codec_id == AV_CODEC_ID_VP9 ? STREAM_VP9
                                         : STREAM_OTHER;
}

void dpb_measure(struct stream_memory *ret, const AVCodecContext *context)
{
    ret->codec = dpb_codec(context->codec_id);
    ret->width = context->width;
    ret->height = context->height;
    if (context->codec_id == AV_CODEC_ID_H264)
        measure_h264(ret, context);
    else if (context->codec_id == AV_CODEC_ID_HEVC)
        measure_hevc(ret, context);
    else
        measure_other(ret, context);
    ret->surfaces += NVDEC_SPARE;
    ret->pixel_bits = bits_of(samples_of(context));
    if (ret->pixel_bits > 0 && pixel_format_map_format(samples_of(context)) == PIXEL_NONE)
        add_converted(ret, samples_of(context));
}

// --- bytes

static size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

size_t dpb_picture_bytes(const struct stream_memory *stream, const struct image *source)
{
    struct image padded = *source;
    padded.width = (int)round_up((size_t)source->width, PICTURE_COLUMNS);
    padded.height = (int)round_up((size_t)source->height, PICTURE_ROWS) + ROWS_BEHIND;
    size_t bytes = image_lay_out(&padded, NULL) / LAID_OUT_BITS * (size_t)stream->pixel_bits;
    return round_up(bytes + BYTES_BEHIND, PAGE);
}

// The tables exist once for each picture and once for the stream.
size_t dpb_bytes(const struct stream_memory *stream, const struct image *source, int threads,
                 int in_flight)
{
    size_t macroblocks = round_up((size_t)stream->width, 16) * round_up((size_t)stream->height, 16);
    size_t tables = macroblocks / 256 * (size_t)stream->macroblock_bytes;
    return (size_t)(stream->pictures + threads + in_flight) * dpb_picture_bytes(stream, source) +
           (size_t)(stream->pictures + threads + 1) * tables + (size_t)(threads - 1) * THREAD_BYTES;
}

int dpb_packet_bytes(const AVCodecParameters *parameters, int num, int den)
{
    if (num <= 0 || den <= 0 || parameters->bit_rate <= 0)
        return 0;
    return (int)fmin((double)parameters->bit_rate / 8 * den / num, PACKET_BYTES_MAX);
}
