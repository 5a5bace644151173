#include <libswscale/swscale.h>
#include <stdlib.h>

#include "tests/bench/peers/peer.h"

struct swscale {
    const struct op *op;
    struct rect box; // the part of the result that it fills
    struct SwsContext *context;
};

static enum AVPixelFormat format_of(enum pixel_format format)
{
    return format == PIXEL_BGRA   ? AV_PIX_FMT_BGRA
           : format == PIXEL_NV12 ? AV_PIX_FMT_NV12
                                  : AV_PIX_FMT_YUV420P;
}

static void close_swscale(void *opaque)
{
    struct swscale *own = opaque;
    sws_freeContext(own->context);
    free(own);
}

static void *open_swscale(const struct op *op, const struct image *src, const char **does)
{
    const bool yuv = op->kind == OP_YUV && op->dst.format == PIXEL_NV12;
    const bool letterbox =
        peer_is_letterbox(op) && (peer_is_packed_u8(op) || peer_is_planar_f32(op));
    struct swscale *own = yuv || letterbox ? calloc(1, sizeof *own) : NULL;
    if (!own)
        return NULL;
    own->op = op;
    own->box = letterbox ? peer_box(op) : (struct rect){0, 0, op->dst.width, op->dst.height};
    *does = yuv                     ? "bgra to nv12"
            : peer_is_packed_u8(op) ? "bilinear to rgb24"
                                    : "bilinear to gbrpf32";
    own->context = sws_getContext(src->width, src->height, format_of(src->format), own->box.width,
                                  own->box.height,
                                  yuv                     ? AV_PIX_FMT_NV12
                                  : peer_is_packed_u8(op) ? AV_PIX_FMT_RGB24
                                                          : AV_PIX_FMT_GBRPF32LE,
                                  SWS_BILINEAR, NULL, NULL, NULL);
    if (!own->context) {
        close_swscale(own);
        return NULL;
    }
    return own;
}

static void run_swscale(void *opaque, const struct image *src, uint8_t *to)
{
    const struct swscale *own = opaque;
    const uint8_t *from[4] = {src->plane[0].data, src->plane[1].data, src->plane[2].data};
    const int from_stride[4] = {(int)src->plane[0].stride, (int)src->plane[1].stride,
                                (int)src->plane[2].stride};
    const int width = own->op->dst.width;
    const size_t pixels = (size_t)width * (size_t)own->op->dst.height;
    const size_t first = (size_t)own->box.y * (size_t)width;
    uint8_t *planes[4] = {to + 3 * first};
    int stride[4] = {3 * width};
    if (own->op->kind == OP_YUV) {
        planes[1] = to + pixels;
        stride[0] = stride[1] = width;
    } else if (peer_is_planar_f32(own->op)) {
        static const size_t order[] = {1, 2, 0}; // G, B, R
        for (int p = 0; p < 3; p++) {
            planes[p] = to + (order[p] * pixels + first) * sizeof(float);
            stride[p] = width * (int)sizeof(float);
        }
    }
    sws_scale(own->context, from, from_stride, 0, src->height, planes, stride);
}

const struct peer swscale_peer = {"swscale", open_swscale, run_swscale, close_swscale, true};
