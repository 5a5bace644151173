#include "daemon/codec/pixel_format_map.h"

#include <libavutil/frame.h>
#include <libavutil/pixdesc.h>

#include "daemon/source/libav_version.h"

static const struct {
    enum AVPixelFormat av;
    enum pixel_format ours;
} formats[] = {
    {AV_PIX_FMT_YUV420P, PIXEL_YUV420P},
    {AV_PIX_FMT_YUVJ420P, PIXEL_YUV420P},
    {AV_PIX_FMT_NV12, PIXEL_NV12},
    {AV_PIX_FMT_P010LE, PIXEL_P010},
    {AV_PIX_FMT_YUV420P10LE, PIXEL_YUV420P10},
    {AV_PIX_FMT_NV21, PIXEL_NV21},
    {AV_PIX_FMT_YUV422P, PIXEL_YUV422P},
    {AV_PIX_FMT_YUVJ422P, PIXEL_YUV422P},
    {AV_PIX_FMT_YUV422P10LE, PIXEL_YUV422P10},
    {AV_PIX_FMT_YUYV422, PIXEL_YUYV422},
    {AV_PIX_FMT_UYVY422, PIXEL_UYVY422},
    {AV_PIX_FMT_YUV444P, PIXEL_YUV444P},
    {AV_PIX_FMT_YUVJ444P, PIXEL_YUV444P},
    {AV_PIX_FMT_YUV444P10LE, PIXEL_YUV444P10},
    {AV_PIX_FMT_GRAY8, PIXEL_GRAY},
    {AV_PIX_FMT_BGRA, PIXEL_BGRA},
    {AV_PIX_FMT_BGR0, PIXEL_BGRA},
    {AV_PIX_FMT_RGBA, PIXEL_RGBA},
    {AV_PIX_FMT_RGB0, PIXEL_RGBA},
    {AV_PIX_FMT_BGR24, PIXEL_BGR24},
    {AV_PIX_FMT_RGB24, PIXEL_RGB24},
    {AV_PIX_FMT_GBRP, PIXEL_GBRP},
};

enum pixel_format pixel_format_map_format(enum AVPixelFormat av)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
        if (formats[i].av == av)
            return formats[i].ours;
    }
    return PIXEL_NONE;
}

enum AVPixelFormat pixel_format_map_without_range(enum AVPixelFormat format)
{
    static const enum AVPixelFormat full[][2] = {{AV_PIX_FMT_YUVJ411P, AV_PIX_FMT_YUV411P},
                                                 {AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUV420P},
                                                 {AV_PIX_FMT_YUVJ422P, AV_PIX_FMT_YUV422P},
                                                 {AV_PIX_FMT_YUVJ440P, AV_PIX_FMT_YUV440P},
                                                 {AV_PIX_FMT_YUVJ444P, AV_PIX_FMT_YUV444P}};
    for (size_t i = 0; i < sizeof full / sizeof *full; i++)
        if (full[i][0] == format)
            return full[i][1];
    return format;
}

static enum matrix matrix_of(const AVFrame *av)
{
    switch (av->colorspace) {
    case AVCOL_SPC_BT709:
    case AVCOL_SPC_SMPTE240M: // within 2 % of it
        return MATRIX_BT709;
    case AVCOL_SPC_BT470BG:
    case AVCOL_SPC_SMPTE170M:
    case AVCOL_SPC_FCC: // within 1 % of it
        return MATRIX_BT601;
    case AVCOL_SPC_BT2020_NCL:
    case AVCOL_SPC_BT2020_CL:
        return MATRIX_BT2020;
    default:
        return MATRIX_UNSPECIFIED;
    }
}

static bool is_yuv(const AVPixFmtDescriptor *format)
{
    return !(format->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL));
}

// Luma alone, with alpha or without it.
static bool is_gray(enum AVPixelFormat format)
{
    const AVPixFmtDescriptor *desc = av_pix_fmt_desc_get(format);
    return desc->nb_components <= 2 && is_yuv(desc);
}

// Gray without a range is full range, as in libswscale, mpv and OpenCV.
static enum range range_of(const AVFrame *av, enum AVPixelFormat format)
{
    if (av->color_range == AVCOL_RANGE_UNSPECIFIED && is_gray(format))
        return RANGE_FULL;
    if (av->color_range == AVCOL_RANGE_JPEG ||
        pixel_format_map_without_range(av->format) != (enum AVPixelFormat)av->format)
        return RANGE_FULL;
    return av->color_range == AVCOL_RANGE_MPEG ? RANGE_LIMITED : RANGE_UNSPECIFIED;
}

// Half a line counts for less than half a column: the nearest siting keeps the column.
static enum siting siting_of(const AVFrame *av)
{
    switch (av->chroma_location) {
    case AVCHROMA_LOC_LEFT:
    case AVCHROMA_LOC_BOTTOMLEFT:
        return SITING_LEFT;
    case AVCHROMA_LOC_CENTER:
    case AVCHROMA_LOC_TOP:
    case AVCHROMA_LOC_BOTTOM:
        return SITING_CENTER;
    case AVCHROMA_LOC_TOPLEFT:
        return SITING_TOPLEFT;
    default:
        return SITING_UNSPECIFIED;
    }
}

enum field_order pixel_format_map_field_order(const AVFrame *av, enum AVCodecID codec)
{
    if (!libav_is_interlaced(av))
        return FIELDS_NONE;
    if (codec == AV_CODEC_ID_HEVC) // a picture is one field there
        return FIELDS_UNKNOWN;
    return libav_is_top_first(av) ? FIELDS_TOP_FIRST : FIELDS_BOTTOM_FIRST;
}

bool pixel_format_map_is_hdr(const AVFrame *av)
{
    return av->color_trc == AVCOL_TRC_SMPTE2084 || av->color_trc == AVCOL_TRC_ARIB_STD_B67;
}

const char *pixel_format_map_other_matrix(const AVFrame *av, enum AVPixelFormat format)
{
    const AVPixFmtDescriptor *desc = av_pix_fmt_desc_get(format);
    const bool known = matrix_of(av) != MATRIX_UNSPECIFIED && av->colorspace != AVCOL_SPC_BT2020_CL;
    if (known || is_gray(format) || !is_yuv(desc) || av->colorspace == AVCOL_SPC_UNSPECIFIED)
        return NULL;
    const char *name = av_color_space_name(av->colorspace);
    return name ? name : "of a reserved number";
}

struct colour pixel_format_map_colour(const AVFrame *av, enum AVPixelFormat format, bool converted)
{
    struct colour colour = {matrix_of(av), range_of(av, format), siting_of(av)};
    if (converted && av_pix_fmt_desc_get(format)->log2_chroma_w == 0)
        colour.siting = SITING_LEFT;
    else if (converted && colour.siting == SITING_TOPLEFT)
        colour.siting = SITING_LEFT;
    return colour;
}

// YUV stays YUV, so matrix and range stay too.
enum AVPixelFormat pixel_format_map_converted(enum AVPixelFormat from)
{
    const AVPixFmtDescriptor *desc = av_pix_fmt_desc_get(from);
    if (!is_yuv(desc) || (desc->flags & AV_PIX_FMT_FLAG_BAYER))
        return desc->flags & AV_PIX_FMT_FLAG_PLANAR ? AV_PIX_FMT_GBRP : AV_PIX_FMT_BGRA;
    return desc->comp[0].depth > 8 ? AV_PIX_FMT_YUV420P10LE : AV_PIX_FMT_YUV420P;
}
