#include "daemon/codec/picture.h"

#include <errno.h>
#include <libavutil/frame.h>
#include <libavutil/hwcontext.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
#include <stdatomic.h>
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
    struct picture *next; // in one of the pool's lists
    AVFrame *decoded;
    AVFrame *host; // its download or conversion; keeps its buffer for the next one
};

// Any thread adds to an atomic list, and takes all of it at once.
struct pictures {
    _Atomic(struct picture *) free;
    _Atomic(struct picture *) released; // with frames on the device, for the decoder to return
    _Atomic int users;                  // pictures that are out, and the owner
    _Atomic bool closed;
    // Used by the taking thread only:
    struct picture *idle;
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
    pool->users = 1;
    *ret = pool;
    return 0;
}

static void add_to(_Atomic(struct picture *) *list, struct picture *picture)
{
    picture->next = atomic_load(list);
    while (!atomic_compare_exchange_weak(list, &picture->next, picture))
        ;
}

static void free_all(struct picture *list)
{
    for (struct picture *picture; (picture = list);) {
        list = picture->next;
        av_frame_free(&picture->decoded);
        av_frame_free(&picture->host);
        free(picture);
    }
}

// The last user frees the pool.
static void end_use(struct pictures *pool)
{
    if (atomic_fetch_sub(&pool->users, 1) > 1)
        return;
    free_all(pool->idle);
    free_all(pool->free);
    free_all(pool->released);
    free(pool);
}

void pictures_reap(struct pictures *pool)
{
    struct picture *released = atomic_exchange(&pool->released, NULL);
    for (struct picture *picture; (picture = released);) {
        released = picture->next;
        av_frame_unref(picture->decoded);
        picture_release(picture);
    }
}

void pictures_close(struct pictures *pool)
{
    if (!pool)
        return;
    scaler_close(&pool->scaler);
    av_frame_free(&pool->download);
    atomic_store(&pool->closed, true);
    pictures_reap(pool);
    end_use(pool);
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
    free_all(picture);
    return NULL;
}

struct picture *picture_take(struct pictures *pool)
{
    if (!pool->idle)
        pool->idle = atomic_exchange(&pool->free, NULL);
    struct picture *picture = pool->idle;
    if (picture)
        pool->idle = picture->next;
    else
        picture = picture_new(pool);
    if (picture)
        atomic_fetch_add(&pool->users, 1);
    return picture;
}

// A frame on the device waits for the decoder's thread. If the pool closes at the same time, either
// thread returns it.
void picture_release(void *opaque)
{
    struct picture *picture = opaque;
    if (!picture)
        return;
    struct pictures *pool = picture->pool;
    if (picture->decoded->hw_frames_ctx && !atomic_load(&pool->closed)) {
        atomic_fetch_add(&pool->users, 1); // the decoder's thread may end the picture's use first
        add_to(&pool->released, picture);
        if (atomic_load(&pool->closed))
            pictures_reap(pool);
        end_use(pool);
        return;
    }
    av_frame_unref(picture->decoded);
    add_to(&pool->free, picture);
    end_use(pool);
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
