#include "daemon/camera/picture.h"

#include <errno.h>
#include <libavutil/frame.h>
#include <libavutil/hwcontext.h>
#include <libavutil/pixdesc.h>
#include <pthread.h>
#include <stdlib.h>

#include "daemon/camera/scaler.h"

struct picture {
    struct pictures *pool;
    struct picture *next; // pictures::idle
    AVFrame *decoded;
    AVFrame *host; // a download or conversion of it; keeps its buffer for the next one
};

struct pictures {
    pthread_mutex_t mutex; // guards idle, out and closed
    struct picture *idle;
    int out;
    bool closed;
    // The taking thread's own:
    struct scaler scaler;
    AVFrame *download; // between a device and the scaler
};

// --- the pool

int pictures_open(struct pictures **ret)
{
    struct pictures *pool = calloc(1, sizeof(*pool));
    if (!pool)
        return -ENOMEM;
    if (!(pool->download = av_frame_alloc())) {
        free(pool);
        return -ENOMEM;
    }
    pthread_mutex_init(&pool->mutex, NULL);
    *ret = pool;
    return 0;
}

static void picture_free(struct picture *picture)
{
    av_frame_free(&picture->decoded);
    av_frame_free(&picture->host);
    free(picture);
}

static void pool_free(struct pictures *pool)
{
    for (struct picture *picture; (picture = pool->idle);) {
        pool->idle = picture->next;
        picture_free(picture);
    }
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

void pictures_close(struct pictures *pool)
{
    if (!pool)
        return;
    scaler_close(&pool->scaler);
    av_frame_free(&pool->download);
    pthread_mutex_lock(&pool->mutex);
    pool->closed = true;
    bool last = pool->out == 0;
    pthread_mutex_unlock(&pool->mutex);
    if (last)
        pool_free(pool);
}

static struct picture *picture_new(struct pictures *pool)
{
    struct picture *picture = calloc(1, sizeof(*picture));
    if (!picture)
        return NULL;
    picture->pool = pool;
    picture->decoded = av_frame_alloc();
    picture->host = av_frame_alloc();
    if (picture->decoded && picture->host)
        return picture;
    picture_free(picture);
    return NULL;
}

struct picture *picture_take(struct pictures *pool)
{
    pthread_mutex_lock(&pool->mutex);
    struct picture *picture = pool->idle;
    if (picture)
        pool->idle = picture->next;
    else
        picture = picture_new(pool);
    pool->out += picture != NULL;
    pthread_mutex_unlock(&pool->mutex);
    return picture;
}

void picture_release(void *opaque)
{
    struct picture *picture = opaque;
    if (!picture)
        return;
    struct pictures *pool = picture->pool;
    av_frame_unref(picture->decoded);
    pthread_mutex_lock(&pool->mutex);
    picture->next = pool->idle;
    pool->idle = picture;
    bool last = --pool->out == 0 && pool->closed;
    pthread_mutex_unlock(&pool->mutex);
    if (last)
        pool_free(pool);
}

AVFrame *picture_frame(struct picture *picture)
{
    return picture->decoded;
}

// --- what libav's formats and colours are to us

static const struct {
    enum AVPixelFormat av;
    enum pixel_format ours;
} formats[] = {
    {AV_PIX_FMT_YUV420P, PIXEL_YUV420P},
    {AV_PIX_FMT_YUVJ420P, PIXEL_YUV420P},
    {AV_PIX_FMT_NV12, PIXEL_NV12},
    {AV_PIX_FMT_P010LE, PIXEL_P010},
    {AV_PIX_FMT_YUV420P10LE, PIXEL_YUV420P10},
    {AV_PIX_FMT_BGRA, PIXEL_BGRA},
    {AV_PIX_FMT_BGR0, PIXEL_BGRA},
    {AV_PIX_FMT_RGBA, PIXEL_RGBA},
    {AV_PIX_FMT_RGB0, PIXEL_RGBA},
    {AV_PIX_FMT_BGR24, PIXEL_BGR24},
    {AV_PIX_FMT_RGB24, PIXEL_RGB24},
    {AV_PIX_FMT_GBRP, PIXEL_GBRP},
};

static enum pixel_format format_of(int av)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
        if ((int)formats[i].av == av)
            return formats[i].ours;
    }
    return PIXEL_NONE;
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

static enum range range_of(const AVFrame *av)
{
    if (av->color_range == AVCOL_RANGE_JPEG ||
        format_without_range(av->format) != (enum AVPixelFormat)av->format)
        return RANGE_FULL;
    return av->color_range == AVCOL_RANGE_MPEG ? RANGE_LIMITED : RANGE_UNSPECIFIED;
}

// Rows half a line off count for less than columns: the nearest siting keeps the column.
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

static int download(AVFrame *to, const AVFrame *from, enum AVPixelFormat format)
{
    int rc = frame_keep_buffer(to, format, from->width, from->height);
    return rc < 0 ? rc : av_hwframe_transfer_data(to, from, 0);
}

// --- the image

static struct colour colour_of(const AVFrame *av, enum AVPixelFormat format, bool converted)
{
    struct colour colour = {matrix_of(av), range_of(av), siting_of(av)};
    if (converted && av_pix_fmt_desc_get(format)->log2_chroma_w == 0)
        colour.siting = SITING_LEFT;
    else if (converted && colour.siting == SITING_TOPLEFT)
        colour.siting = SITING_LEFT;
    return colour;
}

// Cuts off what libavcodec leaves to be cut off at the left and the top of a picture on a device.
static void set_planes(struct image *image, const AVFrame *shown, enum AVPixelFormat format,
                       size_t left, size_t top)
{
    const AVPixFmtDescriptor *desc = av_pix_fmt_desc_get(format);
    for (int c = desc->nb_components - 1; c >= 0; c--) {
        const AVComponentDescriptor *component = &desc->comp[c];
        bool chroma = c == 1 || c == 2;
        int across = chroma ? desc->log2_chroma_w : 0, down = chroma ? desc->log2_chroma_h : 0;
        ptrdiff_t stride = shown->linesize[component->plane];
        image->plane[component->plane] = (struct plane){
            shown->data[component->plane] + (ptrdiff_t)(top >> down) * stride +
                (ptrdiff_t)(left >> across) * component->step,
            stride,
        };
    }
}

int picture_map(struct picture *picture, bool keep_on_device, struct frame *ret,
                const char **converted)
{
    AVFrame *decoded = picture->decoded, *shown = decoded;
    const AVHWFramesContext *device =
        decoded->hw_frames_ctx ? (const void *)decoded->hw_frames_ctx->data : NULL;
    enum AVPixelFormat format = device ? device->sw_format : decoded->format;
    bool readable = format_of(format) != PIXEL_NONE;
    int rc = 0;
    if (decoded->width > IMAGE_SIDE_MAX || decoded->height > IMAGE_SIDE_MAX)
        return -ENOTSUP;
    if (device && !(keep_on_device && readable)) {
        shown = readable ? picture->host : picture->pool->download;
        rc = download(shown, decoded, format);
    }
    if (rc >= 0 && !readable) {
        rc = scaler_convert(&picture->pool->scaler, picture->host, shown);
        shown = picture->host;
    }
    if (rc < 0)
        return rc > -4096 ? rc : -EIO;
    *converted = readable ? NULL : av_get_pix_fmt_name(format);
    if (!readable)
        format = shown->format;
    ret->image = (struct image){
        .format = format_of(format),
        .width = decoded->width - (int)decoded->crop_left,
        .height = decoded->height - (int)decoded->crop_top,
        .memory = shown == decoded && device ? MEMORY_CUDA : MEMORY_HOST,
        .colour = colour_of(decoded, device ? device->sw_format : decoded->format, !readable),
    };
    set_planes(&ret->image, shown, format, decoded->crop_left, decoded->crop_top);
    ret->owner = picture;
    ret->release = picture_release;
    if (shown != decoded)
        av_frame_unref(decoded); // gives its surface back to the decoder
    return 0;
}
