#include "daemon/view/jpeg.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <libavutil/opt.h>
#include <stdlib.h>

struct jpeg {
    AVCodecContext *context;
    AVFrame *frame;
    AVPacket *packet;
};

static int open_encoder(struct jpeg *jpeg, enum pixel_format format, int width, int height,
                        int quantiser)
{
    const AVCodec *codec = avcodec_find_encoder(AV_CODEC_ID_MJPEG);
    if (!codec)
        return -EINVAL;
    jpeg->context = avcodec_alloc_context3(codec);
    jpeg->frame = av_frame_alloc();
    jpeg->packet = av_packet_alloc();
    if (!jpeg->context || !jpeg->frame || !jpeg->packet)
        return -ENOMEM;
    AVCodecContext *context = jpeg->context;
    context->width = jpeg->frame->width = width;
    context->height = jpeg->frame->height = height;
    context->pix_fmt = format == PIXEL_YUV420P ? AV_PIX_FMT_YUVJ420P : AV_PIX_FMT_YUVJ444P;
    context->time_base = (AVRational){1, 25};                       // which a JPEG does not have
    context->flags = AV_CODEC_FLAG_QSCALE | AV_CODEC_FLAG_BITEXACT; // no comment in the file
    context->global_quality = quantiser * FF_QP2LAMBDA;
    context->thread_count = 1;
    av_opt_set(context->priv_data, "huffman", "default", 0); // the best tables cost a second pass
    jpeg->frame->format = context->pix_fmt;
    jpeg->frame->quality = context->global_quality;
    const int rc = avcodec_open2(context, codec, NULL);
    return rc == AVERROR(ENOMEM) ? -ENOMEM : rc < 0 ? -EINVAL : 0;
}

int jpeg_open(struct jpeg **ret, enum pixel_format format, int width, int height, int quantiser)
{
    struct jpeg *jpeg = calloc(1, sizeof *jpeg);
    if (!jpeg)
        return -ENOMEM;
    const int rc = open_encoder(jpeg, format, width, height, quantiser);
    if (rc < 0)
        jpeg_close(jpeg);
    else
        *ret = jpeg;
    return rc;
}

void jpeg_close(struct jpeg *jpeg)
{
    if (!jpeg)
        return;
    av_packet_free(&jpeg->packet);
    av_frame_free(&jpeg->frame);
    avcodec_free_context(&jpeg->context);
    free(jpeg);
}

int jpeg_encode(struct jpeg *jpeg, const struct image *image, const uint8_t **file, size_t *size)
{
    for (int p = 0; p < pixel_format_planes(image->format); p++) {
        jpeg->frame->data[p] = image->plane[p].data;
        jpeg->frame->linesize[p] = (int)image->plane[p].stride;
    }
    jpeg->frame->pts++;
    av_packet_unref(jpeg->packet);
    int rc = avcodec_send_frame(jpeg->context, jpeg->frame);
    if (rc == 0)
        rc = avcodec_receive_packet(jpeg->context, jpeg->packet);
    *file = jpeg->packet->data;
    *size = (size_t)jpeg->packet->size;
    return rc < 0 ? -ENOMEM : 0; // all else was asked of jpeg_open
}
