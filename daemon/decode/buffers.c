#include "daemon/decode/buffers.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <libavutil/imgutils.h>
#include <pthread.h>
#include <stdlib.h>

#include "daemon/base/region.h"
#include "daemon/decode/early_output.h"
#include "daemon/decode/pixel_format_map.h"

enum {
    ALIGN = 64,   // of planes and strides: what the widest SIMD of libavcodec and libswscale wants
    OVERREAD = 16 // bytes behind a plane that they may touch
};

struct buffer {
    struct region region;
    struct buffers *owner;
    struct buffer *previous, *next; // buffers::all
};

struct buffers {
    pthread_mutex_t sizing;     // pool and bytes; taken before `mutex`
    struct early_output *early; // of the context that is served
    AVBufferPool *pool;         // of one geometry; NULL before the first
    size_t bytes;
    pthread_mutex_t mutex;               // what follows, and the regions of all buffers
    struct buffer *all;                  // idle or in use
    const struct backend_driver *driver; // NULL: nobody pins
    struct backend *backend;
    bool closed;
};

int buffers_open(struct buffers **ret)
{
    struct buffers *buffers = calloc(1, sizeof(*buffers));
    if (!buffers)
        return -ENOMEM;
    pthread_mutex_init(&buffers->sizing, NULL);
    pthread_mutex_init(&buffers->mutex, NULL);
    *ret = buffers;
    return 0;
}

static void unlock(struct buffers *buffers)
{
    bool last = buffers->closed && !buffers->all;
    pthread_mutex_unlock(&buffers->mutex);
    if (!last)
        return;
    pthread_mutex_destroy(&buffers->mutex);
    pthread_mutex_destroy(&buffers->sizing);
    free(buffers);
}

void buffers_trim(struct buffers *buffers)
{
    pthread_mutex_lock(&buffers->sizing);
    av_buffer_pool_uninit(&buffers->pool);
    pthread_mutex_unlock(&buffers->sizing);
}

void buffers_close(struct buffers *buffers)
{
    if (!buffers)
        return;
    buffers_trim(buffers);
    pthread_mutex_lock(&buffers->mutex);
    buffers->closed = true;
    unlock(buffers);
}

// --- the backend

void buffers_join(struct buffers *buffers, const struct backend_driver *driver,
                  struct backend *backend)
{
    pthread_mutex_lock(&buffers->mutex);
    buffers->driver = driver;
    buffers->backend = backend;
    for (struct buffer *buffer = buffers->all; buffer; buffer = buffer->next)
        region_pin(&buffer->region, driver, backend);
    pthread_mutex_unlock(&buffers->mutex);
}

void buffers_leave(struct buffers *buffers)
{
    pthread_mutex_lock(&buffers->mutex);
    buffers->driver = NULL;
    buffers->backend = NULL;
    for (struct buffer *buffer = buffers->all; buffer; buffer = buffer->next)
        region_unpin(&buffer->region);
    pthread_mutex_unlock(&buffers->mutex);
}

// One that could not be pinned makes all MEMORY_HOST: what is made for one kind of memory would be
// made anew with every change.
enum memory buffers_memory(struct buffers *buffers, const AVFrame *frame)
{
    bool own = false, pinned = true;
    if (!frame->buf[0] || frame->buf[1])
        return MEMORY_HOST;
    pthread_mutex_lock(&buffers->mutex);
    for (struct buffer *buffer = buffers->all; buffer; buffer = buffer->next) {
        own |= buffer->region.base == frame->buf[0]->data;
        pinned &= buffer->region.memory == MEMORY_PINNED;
    }
    pthread_mutex_unlock(&buffers->mutex);
    return own && pinned ? MEMORY_PINNED : MEMORY_HOST;
}

// --- buffers: libav's pool keeps the idle ones

static void link_buffer(struct buffers *buffers, struct buffer *buffer)
{
    buffer->next = buffers->all;
    if (buffers->all)
        buffers->all->previous = buffer;
    buffers->all = buffer;
}

static void unlink_buffer(struct buffers *buffers, struct buffer *buffer)
{
    *(buffer->previous ? &buffer->previous->next : &buffers->all) = buffer->next;
    if (buffer->next)
        buffer->next->previous = buffer->previous;
}

// Closing the region under the lock lets buffers_leave rely on finding all that is pinned.
static void free_buffer(void *opaque, uint8_t *data)
{
    (void)data;
    struct buffer *buffer = opaque;
    struct buffers *buffers = buffer->owner;
    pthread_mutex_lock(&buffers->mutex);
    unlink_buffer(buffers, buffer);
    region_close(&buffer->region);
    free(buffer);
    unlock(buffers);
}

static AVBufferRef *make_buffer(void *opaque, size_t bytes)
{
    struct buffers *buffers = opaque;
    struct buffer *buffer = calloc(1, sizeof(*buffer));
    if (!buffer)
        return NULL;
    if (region_open(&buffer->region, REGION_PRIVATE, bytes, NULL, NULL) < 0) {
        free(buffer);
        return NULL;
    }
    buffer->owner = buffers;
    pthread_mutex_lock(&buffers->mutex);
    link_buffer(buffers, buffer);
    if (buffers->driver)
        region_pin(&buffer->region, buffers->driver, buffers->backend);
    pthread_mutex_unlock(&buffers->mutex);
    AVBufferRef *ref = av_buffer_create(buffer->region.base, bytes, free_buffer, buffer, 0);
    if (!ref)
        free_buffer(buffer, NULL);
    return ref;
}

static AVBufferRef *get(struct buffers *buffers, size_t bytes)
{
    pthread_mutex_lock(&buffers->sizing);
    if (buffers->bytes != bytes)
        av_buffer_pool_uninit(&buffers->pool);
    if (!buffers->pool)
        buffers->pool = av_buffer_pool_init2(bytes, buffers, make_buffer, NULL);
    buffers->bytes = bytes;
    AVBufferRef *ref = buffers->pool ? av_buffer_pool_get(buffers->pool) : NULL;
    pthread_mutex_unlock(&buffers->sizing);
    return ref;
}

// --- planes

// Widens until each plane's rows begin aligned.
static int align_rows(int linesize[4], enum AVPixelFormat format, int width, const int align[])
{
    for (bool aligned = false; !aligned; width += width & -width) {
        int rc = av_image_fill_linesizes(linesize, format, width);
        if (rc < 0)
            return rc;
        aligned = true;
        for (int i = 0; i < 4; i++)
            aligned &= linesize[i] % (align[i] > ALIGN ? align[i] : ALIGN) == 0;
    }
    return 0;
}

// The frame's planes one behind the other, room for width x height pixels, in one buffer.
static int fill(struct buffers *buffers, AVFrame *frame, int width, int height, const int align[])
{
    size_t size[4], offset[4], bytes = 0;
    ptrdiff_t stride[4];
    int rc = align_rows(frame->linesize, frame->format, width, align);
    for (int i = 0; i < 4; i++)
        stride[i] = frame->linesize[i];
    if (rc >= 0)
        rc = av_image_fill_plane_sizes(size, frame->format, height, stride);
    if (rc < 0)
        return rc;
    for (int i = 0; i < 4; i++) {
        offset[i] = bytes;
        bytes += size[i] ? (size[i] + OVERREAD + ALIGN - 1) / ALIGN * ALIGN : 0;
    }
    if (!(frame->buf[0] = get(buffers, bytes)))
        return AVERROR(ENOMEM);
    for (int i = 0; i < 4; i++)
        frame->data[i] = size[i] ? frame->buf[0]->data + offset[i] : NULL;
    frame->extended_data = frame->data;
    return 0;
}

int buffers_keep(struct buffers *buffers, AVFrame *frame, enum AVPixelFormat format, int width,
                 int height)
{
    static const int no_more[4] = {0};
    if (frame->buf[0] && frame->format == (int)format && frame->width == width &&
        frame->height == height)
        return 0;
    av_frame_unref(frame);
    frame->format = format;
    frame->width = width;
    frame->height = height;
    return fill(buffers, frame, width, height, no_more);
}

static int get_buffer(AVCodecContext *context, AVFrame *frame, int flags)
{
    int align[AV_NUM_DATA_POINTERS], width = frame->width, height = frame->height;
    struct buffers *buffers = context->opaque;
    int rc;
    if (!(context->codec->capabilities & AV_CODEC_CAP_DR1) ||
        pixel_format_map_format(frame->format) == PIXEL_NONE) {
        rc = avcodec_default_get_buffer2(context, frame, flags);
    } else {
        avcodec_align_dimensions2(context, &width, &height, align);
        rc = fill(buffers, frame, width, height, align);
    }
    if (rc >= 0)
        early_output_handed(buffers->early, frame);
    return rc;
}

void buffers_serve(struct buffers *buffers, AVCodecContext *context, struct early_output *early)
{
    buffers->early = early;
    context->opaque = buffers;
    context->get_buffer2 = get_buffer;
#if LIBAVCODEC_VERSION_MAJOR < 60 // later ones take it for granted
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    context->thread_safe_callbacks = 1;
#pragma GCC diagnostic pop
#endif
}
