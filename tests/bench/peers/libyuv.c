#include <libyuv.h>
#include <stdlib.h>

#include "tests/bench/peers/peer.h"

struct libyuv {
    const struct op *op;
    struct rect box;
    struct image small; // the picture scaled to the box
    uint8_t *small_memory, *packed;
};

static void close_libyuv(void *opaque)
{
    struct libyuv *own = opaque;
    free(own->small_memory);
    free(own->packed);
    free(own);
}

static void *open_libyuv(const struct op *op, const struct image *src, const char **does)
{
    const bool letterbox =
        peer_is_letterbox(op) && (peer_is_packed_u8(op) || peer_is_planar_f32(op));
    const bool nv12 = src->format == PIXEL_NV12;
    if (!letterbox && !(op->kind == OP_YUV && op->dst.format == PIXEL_NV12))
        return NULL;
    struct libyuv *own = calloc(1, sizeof *own);
    if (!own)
        return NULL;
    *does = "ARGBToNV12";
    own->op = op;
    if (!letterbox)
        return own;
    own->box = peer_box(op);
    own->small =
        (struct image){.format = src->format, .width = own->box.width, .height = own->box.height};
    own->small_memory = malloc(image_lay_out(&own->small, NULL));
    own->packed = malloc((size_t)own->box.width * (size_t)own->box.height * 3);
    if (!own->small_memory || !own->packed) {
        close_libyuv(own);
        return NULL;
    }
    image_lay_out(&own->small, own->small_memory);
    if (peer_is_packed_u8(op))
        *does = nv12 ? "NV12Scale bilinear + NV12ToRAW" : "I420Scale bilinear + I420ToRAW";
    else
        *does = nv12 ? "NV12Scale + NV12ToRAW + a loop" : "I420Scale + I420ToRAW + a loop";
    return own;
}

static void scale(const struct libyuv *own, const struct image *src, uint8_t *to, int stride)
{
    const struct plane *s = src->plane, *d = own->small.plane;
    const int width = own->box.width, height = own->box.height;
    const int ss[] = {(int)s[0].stride, (int)s[1].stride, (int)s[2].stride};
    const int ds[] = {(int)d[0].stride, (int)d[1].stride, (int)d[2].stride};
    if (src->format == PIXEL_NV12) {
        NV12Scale(s[0].data, ss[0], s[1].data, ss[1], src->width, src->height, d[0].data, ds[0],
                  d[1].data, ds[1], width, height, kFilterBilinear);
        NV12ToRAW(d[0].data, ds[0], d[1].data, ds[1], to, stride, width, height);
        return;
    }
    I420Scale(s[0].data, ss[0], s[1].data, ss[1], s[2].data, ss[2], src->width, src->height,
              d[0].data, ds[0], d[1].data, ds[1], d[2].data, ds[2], width, height, kFilterBilinear);
    I420ToRAW(d[0].data, ds[0], d[1].data, ds[1], d[2].data, ds[2], to, stride, width, height);
}

static void planes_of(const struct libyuv *own, float *to)
{
    const size_t plane = (size_t)own->op->dst.width * (size_t)own->op->dst.height;
    const size_t first = (size_t)own->box.y * (size_t)own->box.width;
    const size_t n = (size_t)own->box.width * (size_t)own->box.height;
    for (size_t c = 0; c < 3; c++)
        for (size_t i = 0; i < n; i++)
            to[c * plane + first + i] = own->packed[3 * i + c] * (1 / 255.f);
}

static void run_libyuv(void *opaque, const struct image *src, uint8_t *to)
{
    const struct libyuv *own = opaque;
    const int width = own->op->dst.width, height = own->op->dst.height;
    if (own->op->kind == OP_YUV) {
        ARGBToNV12(src->plane[0].data, (int)src->plane[0].stride, to, width,
                   to + (size_t)width * (size_t)height, width, width, height);
    } else if (peer_is_packed_u8(own->op)) {
        scale(own, src, to + (size_t)own->box.y * (size_t)width * 3, width * 3);
    } else {
        scale(own, src, own->packed, own->box.width * 3);
        planes_of(own, (float *)to);
    }
}

const struct peer libyuv_peer = {"libyuv", open_libyuv, run_libyuv, close_libyuv, true};
