#include "tests/bench/peers/clip.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/peers/peer.h"

static size_t frame_bytes(const struct image *image)
{
    struct image shape = *image;
    return image_lay_out(&shape, NULL);
}

static int make_frame(struct image *image, enum pixel_format format)
{
    // Library functions without a matrix in their names use bt601.
    *image = (struct image){.format = format,
                            .width = CLIP_WIDTH,
                            .height = CLIP_HEIGHT,
                            .colour = {MATRIX_BT601, RANGE_LIMITED, SITING_LEFT}};
    uint8_t *memory = aligned_alloc(4096, (frame_bytes(image) + 4095) / 4096 * 4096);
    if (!memory)
        return -ENOMEM;
    image_lay_out(image, memory);
    return 0;
}

static enum AVPixelFormat format_of(enum pixel_format format)
{
    return format == PIXEL_BGRA   ? AV_PIX_FMT_BGRA
           : format == PIXEL_NV12 ? AV_PIX_FMT_NV12
                                  : AV_PIX_FMT_YUV420P;
}

static int put(struct image *to, const uint8_t *const from[], const int stride[], int width,
               int height, enum AVPixelFormat format)
{
    struct SwsContext *context =
        sws_getContext(width, height, format, to->width, to->height, format_of(to->format),
                       SWS_BICUBIC, NULL, NULL, NULL);
    uint8_t *planes[4] = {to->plane[0].data, to->plane[1].data, to->plane[2].data};
    const int strides[4] = {(int)to->plane[0].stride, (int)to->plane[1].stride,
                            (int)to->plane[2].stride};
    if (!context)
        return -EINVAL;
    sws_scale(context, from, stride, 0, height, planes, strides);
    sws_freeContext(context);
    return 0;
}

// --- decoding

struct reader {
    AVFormatContext *format;
    AVCodecContext *codec;
    AVPacket *packet;
    AVFrame *frame;
    int stream;
};

static void reader_close(struct reader *reader)
{
    av_frame_free(&reader->frame);
    av_packet_free(&reader->packet);
    avcodec_free_context(&reader->codec);
    avformat_close_input(&reader->format);
}

static int reader_open(struct reader *reader, const char *path)
{
    const AVCodec *codec;
    int rc = avformat_open_input(&reader->format, path, NULL, NULL);
    if (rc >= 0)
        rc = avformat_find_stream_info(reader->format, NULL);
    if (rc >= 0)
        rc = av_find_best_stream(reader->format, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
    if (rc < 0)
        return rc;
    reader->stream = rc;
    reader->codec = avcodec_alloc_context3(codec);
    reader->packet = av_packet_alloc();
    reader->frame = av_frame_alloc();
    if (!reader->codec || !reader->packet || !reader->frame)
        return -ENOMEM;
    rc = avcodec_parameters_to_context(reader->codec,
                                       reader->format->streams[reader->stream]->codecpar);
    return rc < 0 ? rc : avcodec_open2(reader->codec, codec, NULL);
}

static int send_packet(struct reader *reader)
{
    int rc = av_read_frame(reader->format, reader->packet);
    if (rc == AVERROR_EOF)
        return avcodec_send_packet(reader->codec, NULL);
    if (rc >= 0 && reader->packet->stream_index == reader->stream)
        rc = avcodec_send_packet(reader->codec, reader->packet);
    av_packet_unref(reader->packet);
    return rc;
}

static int next_frame(struct reader *reader)
{
    int rc;
    while ((rc = avcodec_receive_frame(reader->codec, reader->frame)) == AVERROR(EAGAIN)) {
        rc = send_packet(reader);
        if (rc < 0)
            return rc;
    }
    return rc;
}

static int read_frames(struct clip *clip, struct reader *reader)
{
    int n = 0, rc = 0;
    while (n < CLIP_FRAMES && (rc = next_frame(reader)) >= 0) {
        const AVFrame *frame = reader->frame;
        rc = make_frame(&clip->frame[n], PIXEL_YUV420P);
        if (rc == 0)
            rc = put(&clip->frame[n++], (const uint8_t *const *)frame->data, frame->linesize,
                     frame->width, frame->height, frame->format);
        if (rc < 0)
            return rc;
    }
    if (n == 0)
        return rc < 0 ? rc : -ENODATA;
    for (int i = n; i < CLIP_FRAMES; i++) {
        struct image *to = &clip->frame[i];
        rc = make_frame(to, PIXEL_YUV420P);
        if (rc < 0)
            return rc;
        memcpy(to->plane[0].data, clip->frame[i % n].plane[0].data, frame_bytes(to));
    }
    return 0;
}

int clip_open(struct clip *clip, const char *path)
{
    struct reader reader = {0};
    *clip = (struct clip){0};
    int rc = reader_open(&reader, path);
    if (rc >= 0)
        rc = read_frames(clip, &reader);
    reader_close(&reader);
    return rc;
}

int clip_convert(struct clip *clip, const struct clip *from, enum pixel_format format)
{
    *clip = (struct clip){0};
    for (int i = 0; i < CLIP_FRAMES; i++) {
        const struct image *src = &from->frame[i];
        const uint8_t *const planes[4] = {src->plane[0].data, src->plane[1].data,
                                          src->plane[2].data};
        const int stride[4] = {(int)src->plane[0].stride, (int)src->plane[1].stride,
                               (int)src->plane[2].stride};
        int rc = make_frame(&clip->frame[i], format);
        if (rc == 0)
            rc = put(&clip->frame[i], planes, stride, src->width, src->height,
                     format_of(src->format));
        if (rc < 0)
            return rc;
    }
    return 0;
}

void clip_close(struct clip *clip)
{
    for (int i = 0; i < CLIP_FRAMES; i++)
        free(clip->frame[i].plane[0].data);
    *clip = (struct clip){0};
}
