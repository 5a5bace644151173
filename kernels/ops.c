#include "kernels/ops.h"

#include <errno.h>
#include <stdatomic.h>

const struct op_type *const op_types[OP_KINDS] = {
    [OP_WARP] = &warp_type,
    [OP_YUV] = &yuv_type,
};

int op_init(struct op *op, const struct op_params *params, const struct image *src)
{
    static _Atomic uint64_t serial;
    *op = (struct op){
        .kind = params->kind,
        .serial = ++serial,
        .src_to_dst = {1, 0, 0, 0, 1, 0},
        .dst_to_src = {1, 0, 0, 0, 1, 0},
    };
    if (!(pixel_layout_of(src->format).uses & FORMAT_SOURCE) ||
        !size_is_valid(src->width, src->height))
        return -EINVAL;
    return op_types[params->kind]->init(op, params, src);
}

void op_finish(struct op *op)
{
    if (op_types[op->kind]->finish)
        op_types[op->kind]->finish(op);
    *op = (struct op){0};
}

// Returns the op's first warp; NULL: none.
static const struct warp *warp_of(const struct op *op)
{
    return op->kind == OP_WARP ? &op->warp : op->yuv.warps;
}

const struct lut *op_lut(const struct op *op)
{
    const struct warp *warp = warp_of(op);
    return warp ? warp->lut : NULL;
}

static enum pixel_format source_of(const struct op *op)
{
    const struct warp *warp = warp_of(op);
    return warp ? warp->source : op->yuv.source;
}

bool op_replaces(const struct op *op, const struct op *planned)
{
    bool same = op->kind == planned->kind && op->batch == planned->batch &&
                op->dst.format == planned->dst.format && op->dst.width == planned->dst.width &&
                op->dst.height == planned->dst.height && source_of(op) == source_of(planned) &&
                lut_equal(op_lut(op), op_lut(planned));
    for (int i = 0; i < PLANES_MAX; i++)
        same = same && op->dst.plane[i].stride == planned->dst.plane[i].stride;
    return same;
}

void op_lay_out(const struct op *op, struct image *dst, void *base)
{
    *dst = op->dst;
    for (int i = 0; i < image_planes(dst); i++)
        dst->plane[i].data = (uint8_t *)((uintptr_t)base + (uintptr_t)dst->plane[i].data);
}

struct band op_source_rows(const struct op *op, struct band out)
{
    return op_types[op->kind]->source_rows(op, out);
}

void op_reference(const struct image *dst, const struct image *src, const struct op *op,
                  struct band band, bool filled)
{
    op_types[op->kind]->reference(dst, src, op, band, filled);
}
