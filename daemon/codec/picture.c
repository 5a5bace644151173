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

// --- the scaler

struct picture {
    struct pictures *pool;
    struct picture *next; // released
    AVFrame *frame;       // as decoded; or its download or conversion
};

struct pictures {
    // With frames on the device, for the decoder to return. Any thread adds to the list, and takes
    // all of it at once.
    _Atomic(struct picture *) released;
    _Atomic int users; // pictures that are out, and the owner
    _Atomic bool closed;
    // The owner's:
    struct buffers *buffers;
    // Converts pictures of this format and size; NULL before the first. Levels, matrix and range
    // stay the same.
    struct SwsContext *scaler;
    int format, width, height;
};

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

static int choose_scaler(struct pictures *pool, const AVFrame *from, enum AVPixelFormat target)
{
    if (pool->scaler && pool->format == from->format && pool->width == from->width &&
        pool->height == from->height)
        return 0;
    sws_freeContext(pool->scaler);
    pool->scaler = sws_alloc_context();
    int rc = pool->scaler ? set_up_scaler(pool->scaler, from, target) : -ENOMEM;
    if (rc < 0) {
        sws_freeContext(pool->scaler);
        pool->scaler = NULL;
    }
    pool->format = from->format;
    pool->width = from->width;
    pool->height = from->height;
    return rc;
}

// Chroma of 4:4:4 comes out left-sited. -ENOTSUP: libswscale does not read the format.
static int convert(struct pictures *pool, AVFrame *to, const AVFrame *from)
{
    const int rc = choose_scaler(pool, from, to->format);
    return rc < 0 ? rc
                  : sws_scale(pool->scaler, (const uint8_t *const *)from->data, from->linesize, 0,
                              from->height, to->data, to->linesize);
}

// --- pictures

int pictures_open(struct pictures **ret, struct buffers *buffers)
{
    struct pictures *pool = calloc(1, sizeof(*pool));
    if (!pool)
        return -ENOMEM;
    pool->buffers = buffers;
    pool->users = 1;
    *ret = pool;
    return 0;
}

// The last user frees the pool.
static void end_use(struct pictures *pool)
{
    if (atomic_fetch_sub(&pool->users, 1) == 1)
        free(pool);
}

static void free_picture(struct picture *picture)
{
    struct pictures *pool = picture->pool;
    av_frame_free(&picture->frame);
    free(picture);
    end_use(pool);
}

void pictures_reap(struct pictures *pool)
{
    struct picture *released = atomic_exchange(&pool->released, NULL);
    for (struct picture *picture; (picture = released);) {
        released = picture->next;
        free_picture(picture);
    }
}

void pictures_close(struct pictures *pool)
{
    if (!pool)
        return;
    sws_freeContext(pool->scaler);
    atomic_store(&pool->closed, true);
    pictures_reap(pool);
    end_use(pool);
}

struct picture *picture_take(struct pictures *pool)
{
    struct picture *picture = calloc(1, sizeof(*picture));
    if (!picture || !(picture->frame = av_frame_alloc())) {
        free(picture);
        return NULL;
    }
    picture->pool = pool;
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
    if (!picture->frame->hw_frames_ctx || atomic_load(&pool->closed)) {
        free_picture(picture);
        return;
    }
    atomic_fetch_add(&pool->users, 1); // the decoder's thread may end the picture's use first
    picture->next = atomic_load(&pool->released);
    while (!atomic_compare_exchange_weak(&pool->released, &picture->next, picture))
        ;
    if (atomic_load(&pool->closed))
        pictures_reap(pool);
    end_use(pool);
}

AVFrame *picture_frame(struct picture *picture)
{
    return picture->frame;
}

bool picture_on_device(const struct picture *picture)
{
    return picture->frame->hw_frames_ctx != NULL;
}

enum AVPixelFormat picture_format(const struct picture *picture)
{
    const AVFrame *frame = picture->frame;
    return frame->hw_frames_ctx ? ((AVHWFramesContext *)frame->hw_frames_ctx->data)->sw_format
                                : frame->format;
}

// --- the image

// Downloads the frame, or converts it to `format`. A decoder's surface returns to it.
static int replace_frame(struct picture *picture, enum AVPixelFormat format)
{
    struct pictures *pool = picture->pool;
    AVFrame *from = picture->frame, *to = av_frame_alloc();
    int rc =
        to ? buffers_fill(pool->buffers, to, format, from->width, from->height) : AVERROR(ENOMEM);
    if (rc >= 0)
        rc = from->hw_frames_ctx ? av_hwframe_transfer_data(to, from, 0) : convert(pool, to, from);
    if (rc >= 0)
        picture->frame = to;
    av_frame_free(rc >= 0 ? &from : &to);
    return rc;
}

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

int picture_map(struct picture *picture, bool keep_on_device, struct frame *ret,
                const char **converted)
{
    AVFrame *frame = picture->frame;
    enum AVPixelFormat format = picture_format(picture);
    const bool readable = pixel_format_map_format(format) != PIXEL_NONE;
    if (frame->width > IMAGE_SIDE_MAX || frame->height > IMAGE_SIDE_MAX)
        return -ENOTSUP;
    av_frame_apply_cropping(frame, AV_FRAME_CROP_UNALIGNED); // libavcodec has checked the numbers
    const size_t left = frame->crop_left, top = frame->crop_top;
    const struct colour colour = pixel_format_map_colour(frame, format, !readable);
    *converted = readable ? NULL : av_get_pix_fmt_name(format);
    int rc = 0;
    if (picture_on_device(picture) && !(keep_on_device && readable))
        rc = replace_frame(picture, format);
    if (rc >= 0 && !readable)
        rc = replace_frame(picture, format = pixel_format_map_converted(format));
    if (rc < 0)
        return rc > -4096 ? rc : -EIO;
    frame = picture->frame;
    const AVHWFramesContext *device =
        frame->hw_frames_ctx ? (const void *)frame->hw_frames_ctx->data : NULL;
    ret->image = (struct image){
        .format = pixel_format_map_format(format),
        .width = frame->width - (int)left,
        .height = frame->height - (int)top,
        .memory = device ? MEMORY_CUDA : buffers_memory(picture->pool->buffers, frame),
        .colour = colour,
    };
    set_planes(&ret->image, frame, format, left, top);
    ret->surfaces = device ? device->initial_pool_size : 0;
    ret->owner = picture;
    ret->release = picture_release;
    return 0;
}
