#include "daemon/codec/picture.h"

#include <errno.h>
#include <libavutil/frame.h>
#include <libavutil/hwcontext.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
#include <pthread.h>
#include <stdlib.h>

#include "daemon/codec/buffers.h"
#include "daemon/codec/pixel_format_map.h"

// Converts pictures to a format that kernels read, by libswscale, if libavcodec returns another.
// Levels, matrix and range stay the same. Zeroed, it is ready.
struct scaler {
    struct SwsContext *sws; // for pictures of this format and size; NULL before the first
    int format, width, height;
};

struct picture {
    struct pictures *pool;
    struct picture *next; // pictures::idle or pictures::released
    AVFrame *decoded;
    AVFrame *host; // its download or conversion; keeps its buffer for the next one
};

struct pictures {
    pthread_mutex_t mutex; // guards the members down to `closed`
    struct picture *idle;
    struct picture *released; // with frames on the device, for the decoder to return
    int out;
    bool closed;
    // Used by the taking thread only:
    struct buffers *buffers;
    struct scaler scaler;
    AVFrame *download; // between a device and the scaler
};

// --- the scaler

// Chroma halved across becomes left-sited; halved down, it lies between the rows.
static int set_up_scaler(struct SwsContext *sws, const AVFrame *from, enum AVPixelFormat target)
{
    enum AVPixelFormat source = pixel_format_map_without_range(from->format);
    const struct {
        const char *name;
        int64_t value;
    } options[] = {
        {"srcw", from->width},
        {"srch", from->height},
        {"src_format", source},
        {"dstw", from->width},
        {"dsth", from->height},
        {"dst_format", target},
        {"sws_flags",
         SWS_BILINEAR | SWS_ACCURATE_RND | SWS_BITEXACT | SWS_FULL_CHR_H_INP | SWS_FULL_CHR_H_INT},
        {"src_h_chr_pos", 0},
        {"dst_h_chr_pos", 0},
        {"src_v_chr_pos", av_pix_fmt_desc_get(source)->log2_chroma_h ? 128 : 0},
        {"dst_v_chr_pos", 128},
    };
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
        if (av_opt_set_int(sws, options[i].name, options[i].value, 0) < 0)
            return -EINVAL;
    }
    if (sws_init_context(sws, NULL, NULL) < 0)
        return -ENOTSUP;
    // The same range on both sides, whichever it is: levels keep their values.
    const int *matrix = sws_getCoefficients(SWS_CS_DEFAULT);
    sws_setColorspaceDetails(sws, matrix, 1, matrix, 1, 0, 1 << 16, 1 << 16);
    return 0;
}

static void scaler_close(struct scaler *scaler)
{
    sws_freeContext(scaler->sws);
    *scaler = (struct scaler){0};
}

static int choose_scaler(struct scaler *scaler, const AVFrame *from, enum AVPixelFormat target)
{
    if (scaler->sws && scaler->format == from->format && scaler->width == from->width &&
        scaler->height == from->height)
        return 0;
    scaler_close(scaler);
    scaler->sws = sws_alloc_context();
    int rc = scaler->sws ? set_up_scaler(scaler->sws, from, target) : -ENOMEM;
    if (rc < 0) {
        scaler_close(scaler);
        return rc;
    }
    scaler->format = from->format;
    scaler->width = from->width;
    scaler->height = from->height;
    return 0;
}

// Fills `to`, in memory of `buffers` unless it has its own. Chroma of 4:4:4 comes out left-sited.
// Returns 0; -ENOTSUP: libswscale does not read the format; another negative AVERROR.
static int scaler_convert(struct scaler *scaler, struct buffers *buffers, AVFrame *to,
                          const AVFrame *from)
{
    enum AVPixelFormat target = pixel_format_map_converted(from->format);
    int rc = choose_scaler(scaler, from, target);
    if (rc < 0)
        return rc;
    rc = buffers_fill(buffers, to, target, from->width, from->height);
    if (rc < 0)
        return rc;
    rc = sws_scale(scaler->sws, (const uint8_t *const *)from->data, from->linesize, 0, from->height,
                   to->data, to->linesize);
    return rc < 0 ? rc : 0;
}

// --- the pool

int pictures_open(struct pictures **ret, struct buffers *buffers)
{
    struct pictures *pool = calloc(1, sizeof(*pool));
    if (!pool)
        return -ENOMEM;
    if (!(pool->download = av_frame_alloc())) {
        free(pool);
        return -ENOMEM;
    }
    pool->buffers = buffers;
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

void pictures_reap(struct pictures *pool)
{
    pthread_mutex_lock(&pool->mutex);
    struct picture *released = pool->released;
    pool->released = NULL;
    pthread_mutex_unlock(&pool->mutex);
    for (struct picture *picture; (picture = released);) {
        released = picture->next;
        av_frame_unref(picture->decoded);
        picture_release(picture);
    }
}

// Counts itself as a picture that is out, so that one released meanwhile is not the last.
void pictures_close(struct pictures *pool)
{
    if (!pool)
        return;
    scaler_close(&pool->scaler);
    av_frame_free(&pool->download);
    pthread_mutex_lock(&pool->mutex);
    pool->closed = true;
    pool->out++;
    pthread_mutex_unlock(&pool->mutex);
    pictures_reap(pool);
    pthread_mutex_lock(&pool->mutex);
    bool last = --pool->out == 0;
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

// Leaves a frame on the device for the decoder's thread to return. False if the pool is closed.
static bool leave_to_decoder(struct picture *picture)
{
    struct pictures *pool = picture->pool;
    pthread_mutex_lock(&pool->mutex);
    bool left = !pool->closed;
    if (left) {
        picture->next = pool->released;
        pool->released = picture;
    }
    pthread_mutex_unlock(&pool->mutex);
    return left;
}

void picture_release(void *opaque)
{
    struct picture *picture = opaque;
    if (!picture || (picture->decoded->hw_frames_ctx && leave_to_decoder(picture)))
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

bool picture_on_device(const struct picture *picture)
{
    return picture->decoded->hw_frames_ctx != NULL;
}

static int download(struct buffers *buffers, AVFrame *to, const AVFrame *from,
                    enum AVPixelFormat format)
{
    int rc = buffers_fill(buffers, to, format, from->width, from->height);
    return rc < 0 ? rc : av_hwframe_transfer_data(to, from, 0);
}

// --- the image

// Applies the left and top crop that libavcodec leaves to us for a picture on a device.
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

// Chooses the frame to read: the decoded one, of `format`, or its download or conversion.
static int choose_shown(struct picture *picture, bool keep_on_device, AVFrame **ret,
                        enum AVPixelFormat format)
{
    struct pictures *pool = picture->pool;
    AVFrame *shown = picture->decoded;
    bool readable = pixel_format_map_format(format) != PIXEL_NONE;
    int rc = 0;
    if (shown->hw_frames_ctx && !(keep_on_device && readable)) {
        shown = readable ? picture->host : pool->download;
        rc = download(pool->buffers, shown, picture->decoded, format);
    }
    if (rc >= 0 && !readable) {
        rc = scaler_convert(&pool->scaler, pool->buffers, picture->host, shown);
        shown = picture->host;
    }
    *ret = shown;
    return rc;
}

enum AVPixelFormat picture_format(const struct picture *picture)
{
    const AVFrame *decoded = picture->decoded;
    return decoded->hw_frames_ctx ? ((AVHWFramesContext *)decoded->hw_frames_ctx->data)->sw_format
                                  : decoded->format;
}

int picture_map(struct picture *picture, bool keep_on_device, struct frame *ret,
                const char **converted)
{
    AVFrame *decoded = picture->decoded, *shown;
    const AVHWFramesContext *device =
        decoded->hw_frames_ctx ? (const void *)decoded->hw_frames_ctx->data : NULL;
    enum AVPixelFormat format = picture_format(picture);
    bool readable = pixel_format_map_format(format) != PIXEL_NONE;
    if (decoded->width > IMAGE_SIDE_MAX || decoded->height > IMAGE_SIDE_MAX)
        return -ENOTSUP;
    av_frame_apply_cropping(decoded, AV_FRAME_CROP_UNALIGNED); // libavcodec has checked the numbers
    int rc = choose_shown(picture, keep_on_device, &shown, format);
    if (rc < 0)
        return rc > -4096 ? rc : -EIO;
    *converted = readable ? NULL : av_get_pix_fmt_name(format);
    ret->image = (struct image){
        .width = decoded->width - (int)decoded->crop_left,
        .height = decoded->height - (int)decoded->crop_top,
        .memory = shown == decoded && device ? MEMORY_CUDA
                                             : buffers_memory(picture->pool->buffers, shown),
        .colour = pixel_format_map_colour(decoded, format, !readable),
    };
    if (!readable)
        format = shown->format;
    ret->image.format = pixel_format_map_format(format);
    set_planes(&ret->image, shown, format, decoded->crop_left, decoded->crop_top);
    ret->surfaces = ret->image.memory == MEMORY_CUDA ? device->initial_pool_size : 0;
    ret->owner = picture;
    ret->release = picture_release;
    if (shown != decoded)
        av_frame_unref(decoded); // returns its surface to the decoder
    return 0;
}
