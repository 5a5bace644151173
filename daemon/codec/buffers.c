#include "daemon/codec/buffers.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/machine.h"
#include "daemon/base/number.h"
#include "daemon/base/region.h"
#include "daemon/codec/early_output.h"
#include "daemon/codec/pixel_format_map.h"
#include "daemon/source/libav_version.h"

enum {
    H264_PICTURES_MAX = 16,      // kept by a stream of any level
    HEVC_PICTURES = 6,           // kept by a stream as large as its level allows
    NVDEC_EXTRA = 5,             // surfaces that libavcodec adds to those the stream needs
    PACKET_BYTES_MAX = 64 << 20, // a file may claim any bit rate
    // Motion vectors, reference indices and types: the sizes of libavcodec's tables.
    H264_MACROBLOCK = 141,
    HEVC_MACROBLOCK = 200,
    // Pictures on the host, with the padding that libavcodec requests: see get_buffer().
    PAGE = 4096,
    PICTURE_COLUMNS = 128,
    PICTURE_ROWS = 32,
    ROWS_BEHIND = 2,        // H.264's motion compensation touches one of each plane
    BYTES_BEHIND = 192,     // after all planes
    LAID_OUT_BITS = 12,     // per pixel of `source`: 4:2:0
    THREAD_BYTES = 2 << 20, // per thread of the decoder
};

// --- the memory of a stream: H.264 by table A-1 of the standard

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

// H.265: sections A.4.1 and A.4.2.
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

// Pictures by their standards, surfaces as libavcodec requests from NVDEC.
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
    ret->surfaces += NVDEC_EXTRA;
    const enum AVPixelFormat samples = samples_of(context);
    ret->pixel_bits = bits_of(samples);
    // Pictures in flight are then libswscale's results, made from one more decoded picture.
    if (ret->pixel_bits > 0 && pixel_format_map_format(samples) == PIXEL_NONE) {
        ret->pictures++;
        ret->pixel_bits = bounds_max(ret->pixel_bits, bits_of(pixel_format_map_converted(samples)));
    }
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

// --- the buffers of a decoder

enum {
    ALIGN = 64,    // of planes and strides, for the widest SIMD of libavcodec and libswscale
    OVERREAD = 16, // bytes that these may touch after a plane
    SERVED = 128,  // packets whose frames are counted: more than are decoded at a time
};

// Who fills them: a decoder and libswscale may alternate.
enum use { BY_DECODER, BY_COPY, USES };

struct buffer {
    struct region region;
    size_t bytes; // as requested
    enum use use;
    bool idle;
    struct buffers *owner;
    struct buffer *next; // buffers::all
};

struct buffers {
    struct early_output *early; // of the served context
    struct memory_share share;
    // H.265, by serial. A thread of libavcodec writes the entry of the packet that it decodes,
    // ahead of the picture's output. In VP9, several may decode one packet.
    struct served {
        int64_t serial; // of the packet
        int frames;     // get_buffer2() calls made while decoding the packet
        const AVBuffer *first;
    } served[SERVED];
    _Atomic bool refused; // written under the lock

    pthread_mutex_t lock; // guards the rest
    struct buffer *all;   // idle or in use
    size_t bytes[USES];   // of idle buffers; those of another size are freed after their use
    const struct backend_driver *driver; // NULL: not pinned
    struct backend *backend;
    bool closed;
    size_t needed, extra; // bytes of the whole decoder, and the part beyond its plan
    size_t left;          // bytes in the reserve at the last refusal
    int width, height;
    bool reported; // the refusal
};

int buffers_open(struct buffers **ret, const struct memory_share *share)
{
    struct buffers *buffers = calloc(1, sizeof(*buffers));
    if (!buffers)
        return -ENOMEM;
    pthread_mutex_init(&buffers->lock, NULL);
    if (share)
        buffers->share = *share;
    *ret = buffers;
    return 0;
}

// Under the lock. Frees idle buffers that have another size than those to come. Those in use are
// freed later.
static void free_idle(struct buffers *buffers)
{
    for (struct buffer **at = &buffers->all, *buffer; (buffer = *at);) {
        if (!buffer->idle || buffer->bytes == buffers->bytes[buffer->use]) {
            at = &buffer->next;
            continue;
        }
        *at = buffer->next;
        region_close(&buffer->region);
        free(buffer);
    }
}

// The last of the owner and the buffers in use frees all.
static void unlock(struct buffers *buffers)
{
    const bool last = buffers->closed && !buffers->all;
    pthread_mutex_unlock(&buffers->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&buffers->lock);
    free(buffers);
}

static void trim(struct buffers *buffers)
{
    buffers->bytes[BY_DECODER] = buffers->bytes[BY_COPY] = 0;
    free_idle(buffers);
    if (buffers->extra > 0)
        memory_reserve_give(buffers->share.memory, buffers->extra);
    buffers->extra = buffers->needed = 0;
    buffers->refused = false;
}

void buffers_trim(struct buffers *buffers)
{
    pthread_mutex_lock(&buffers->lock);
    trim(buffers);
    pthread_mutex_unlock(&buffers->lock);
}

void buffers_close(struct buffers *buffers)
{
    if (!buffers)
        return;
    pthread_mutex_lock(&buffers->lock);
    trim(buffers);
    buffers->closed = true;
    unlock(buffers);
}

// --- the backend

void buffers_join(struct buffers *buffers, const struct backend_driver *driver,
                  struct backend *backend)
{
    pthread_mutex_lock(&buffers->lock);
    buffers->driver = driver;
    buffers->backend = backend;
    for (struct buffer *buffer = buffers->all; buffer; buffer = buffer->next)
        region_pin(&buffer->region, driver, backend);
    pthread_mutex_unlock(&buffers->lock);
}

void buffers_leave(struct buffers *buffers)
{
    pthread_mutex_lock(&buffers->lock);
    buffers->driver = NULL;
    buffers->backend = NULL;
    for (struct buffer *buffer = buffers->all; buffer; buffer = buffer->next)
        region_unpin(&buffer->region);
    pthread_mutex_unlock(&buffers->lock);
}

// One buffer that could not be pinned makes all of them MEMORY_HOST: a plan is made for one kind of
// memory, and would be remade at every change.
enum memory buffers_memory(struct buffers *buffers, const AVFrame *frame)
{
    bool own = false, pinned = true;
    if (!frame->buf[0] || frame->buf[1])
        return MEMORY_HOST;
    pthread_mutex_lock(&buffers->lock);
    for (struct buffer *buffer = buffers->all; buffer; buffer = buffer->next) {
        own |= buffer->region.base == frame->buf[0]->data;
        pinned &= buffer->region.memory == MEMORY_PINNED;
    }
    pthread_mutex_unlock(&buffers->lock);
    return own && pinned ? MEMORY_PINNED : MEMORY_HOST;
}

// --- one buffer

// Under the lock. Returns an idle buffer or a new one; NULL: no memory.
static struct buffer *take_buffer(struct buffers *buffers, enum use use, size_t bytes)
{
    if (buffers->bytes[use] != bytes) {
        buffers->bytes[use] = bytes;
        free_idle(buffers);
    }
    struct buffer *buffer = buffers->all;
    while (buffer && !(buffer->idle && buffer->use == use))
        buffer = buffer->next;
    if (!buffer) {
        if (!(buffer = calloc(1, sizeof *buffer)) ||
            region_open(&buffer->region, REGION_PRIVATE, bytes, NULL, NULL) < 0) {
            free(buffer);
            return NULL;
        }
        buffer->bytes = bytes;
        buffer->use = use;
        buffer->owner = buffers;
        buffer->next = buffers->all;
        buffers->all = buffer;
        if (buffers->driver)
            region_pin(&buffer->region, buffers->driver, buffers->backend);
    }
    buffer->idle = false;
    return buffer;
}

// Any thread. Closes the region under the lock: buffers_leave must find every pinned one.
static void release_buffer(void *opaque, uint8_t *data)
{
    (void)data;
    struct buffer *buffer = opaque;
    struct buffers *buffers = buffer->owner;
    pthread_mutex_lock(&buffers->lock);
    buffer->idle = true;
    free_idle(buffers);
    unlock(buffers);
}

// --- the limit

// Takes the bytes beyond the decoder's plan from the reserve. `needed` 0: of all buffers. Returns 0
// or AVERROR(ENOMEM).
static int reserve(struct buffers *buffers, int width, int height, size_t needed)
{
    const struct memory_share *share = &buffers->share;
    pthread_mutex_lock(&buffers->lock);
    for (struct buffer *buffer = needed ? NULL : buffers->all; buffer; buffer = buffer->next)
        needed += buffer->region.bytes;
    const size_t extra = needed > share->planned ? needed - share->planned : 0;
    buffers->width = width;
    buffers->height = height;
    if (needed != buffers->needed || buffers->refused) {
        if (buffers->extra > 0)
            memory_reserve_give(share->memory, buffers->extra);
        buffers->refused = extra > 0 && !memory_reserve_take(share->memory, extra, &buffers->left);
        buffers->extra = buffers->refused ? 0 : extra;
        buffers->reported &= buffers->needed == needed;
        buffers->needed = needed;
    }
    const int rc = buffers->refused ? AVERROR(ENOMEM) : 0;
    pthread_mutex_unlock(&buffers->lock);
    return rc;
}

// The same for all that a decoder takes, by what it decodes now.
static int reserve_decoder(struct buffers *buffers, const AVCodecContext *context)
{
    struct stream_memory stream = {0};
    const struct image source = {
        .format = PIXEL_YUV420P, .width = context->width, .height = context->height};
    if (!buffers->share.memory || source.width <= 0 || source.height <= 0)
        return 0;
    dpb_measure(&stream, context);
    return reserve(buffers, source.width, source.height,
                   dpb_bytes(&stream, &source, buffers->share.threads, buffers->share.in_flight));
}

bool buffers_refused(const struct buffers *buffers)
{
    return buffers->refused;
}

void buffers_refusal(struct buffers *buffers, char *text, size_t size)
{
    text[0] = 0;
    pthread_mutex_lock(&buffers->lock);
    if (buffers->refused && !buffers->reported)
        snprintf(text, size,
                 "pictures of %dx%d need %zu MiB of memory, %zu are planned and %zu more are left: "
                 "they are not decoded (`picture` plans for larger ones)",
                 buffers->width, buffers->height, buffers->needed >> 20,
                 buffers->share.planned >> 20, buffers->left >> 20);
    buffers->reported |= buffers->refused;
    pthread_mutex_unlock(&buffers->lock);
}

// --- planes

// Widens until the rows of each plane start aligned.
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

static size_t padded(size_t plane)
{
    return plane ? round_up(plane + OVERREAD, ALIGN) : 0;
}

// Gives the frame memory for width x height pixels: its planes one after another.
static int fill_planes(struct buffers *buffers, enum use use, AVFrame *frame, int width, int height,
                       const int align[])
{
    ptrdiff_t stride[4];
    size_t size[4], bytes = 0;
    int rc = align_rows(frame->linesize, frame->format, width, align);
    for (int i = 0; i < 4; i++)
        stride[i] = frame->linesize[i];
    if (rc >= 0)
        rc = av_image_fill_plane_sizes(size, frame->format, height, stride);
    if (rc < 0)
        return rc;
    for (int i = 0; i < 4; i++)
        bytes += padded(size[i]);
    pthread_mutex_lock(&buffers->lock);
    struct buffer *buffer = take_buffer(buffers, use, bytes);
    pthread_mutex_unlock(&buffers->lock);
    if (!buffer)
        return AVERROR(ENOMEM);
    frame->buf[0] = av_buffer_create(buffer->region.base, bytes, release_buffer, buffer, 0);
    if (!frame->buf[0]) {
        release_buffer(buffer, NULL);
        return AVERROR(ENOMEM);
    }
    uint8_t *at = buffer->region.base;
    for (int i = 0; i < 4; i++) {
        frame->data[i] = size[i] ? at : NULL;
        at += padded(size[i]);
    }
    frame->extended_data = frame->data;
    return 0;
}

int buffers_fill(struct buffers *buffers, AVFrame *frame, enum AVPixelFormat format, int width,
                 int height)
{
    static const int no_more[4] = {0};
    frame->format = format;
    frame->width = width;
    frame->height = height;
    return fill_planes(buffers, BY_COPY, frame, width, height, no_more);
}

int buffers_keep(struct buffers *buffers, AVFrame *frame, enum AVPixelFormat format, int width,
                 int height)
{
    int rc = buffers_fill(buffers, frame, format, width, height);
    if (rc >= 0 && buffers->share.memory)
        rc = reserve(buffers, width, height, 0);
    if (rc < 0)
        av_frame_unref(frame);
    return rc;
}

// --- libavcodec's call

static void count_served(struct buffers *buffers, const AVFrame *frame)
{
    const int64_t serial = libav_serial(frame);
    struct served *served = &buffers->served[(uint64_t)serial % SERVED];
    if (served->serial != serial)
        *served = (struct served){serial, 0, frame->buf[0]->buffer};
    served->frames++;
}

// The picture itself is the first frame. If film grain is applied, libavcodec gives out another.
bool buffers_stood_in(const struct buffers *buffers, const AVFrame *picture)
{
    const int64_t serial = libav_serial(picture);
    const struct served *served = &buffers->served[(uint64_t)serial % SERVED];
    if (served->serial != serial || !picture->buf[0])
        return false;
    return served->frames > (picture->buf[0]->buffer == served->first ? 1 : 2);
}

// Runs on each of libavcodec's threads.
static int get_buffer(AVCodecContext *context, AVFrame *frame, int flags)
{
    int align[AV_NUM_DATA_POINTERS], width = frame->width, height = frame->height;
    struct buffers *buffers = context->opaque;
    const bool ours = (context->codec->capabilities & AV_CODEC_CAP_DR1) &&
                      pixel_format_map_format(frame->format) != PIXEL_NONE;
    int rc = reserve_decoder(buffers, context);
    if (rc >= 0 && !ours) {
        rc = avcodec_default_get_buffer2(context, frame, flags);
    } else if (rc >= 0) {
        avcodec_align_dimensions2(context, &width, &height, align);
        rc = fill_planes(buffers, BY_DECODER, frame, width, height, align);
    }
    if (rc >= 0) {
        if (context->codec_id == AV_CODEC_ID_HEVC)
            count_served(buffers, frame);
        early_output_handed(buffers->early, frame);
    }
    return rc;
}

void buffers_serve(struct buffers *buffers, AVCodecContext *context, struct early_output *early)
{
    buffers->early = early;
    context->opaque = buffers;
    context->get_buffer2 = get_buffer;
    libav_allow_threaded_callbacks(context);
    pthread_mutex_lock(&buffers->lock);
    buffers->bytes[BY_COPY] = 0; // a device's decoder has ended
    free_idle(buffers);
    pthread_mutex_unlock(&buffers->lock);
}
