// What the warp kernels read of an op, packed by the host: the struct, with its tables behind it.
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/warp_block.cuh"
#include "kernels/geometry.h"

enum { TABLES_OFFSET = (sizeof(struct warp) + 15) & ~15 };

// Whether no sum before a channel's last one saturates, or only where the level is 0 or 255 all the
// same: then they can be regrouped.
static bool sums_are_exact(const struct yuv_to_rgb *c)
{
    const int reach = mulhrs(16384, abs(c->y)) + abs(c->offset) + 1;
    return reach + abs(c->gu) / 2 + 1 <= INT16_MAX && abs(c->bu) <= 16384;
}

bool warp_has_axes(const struct warp *warp)
{
    if (!warp->rows)
        return false;
    if (source_is_rgb(warp->source))
        return warp->x1 - warp->x0 >= 2;
    const int sub = position_sub(warp->chroma_x);
    return (warp->x1 - 1) >> sub > warp->x0 >> sub && sums_are_exact(&warp->rgb);
}

size_t warp_block_bytes(const struct op *op)
{
    return TABLES_OFFSET + warp_tables_bytes(&op->warp);
}

// Where a table of the op's will lie, whose block starts at `block`.
template <typename T> static T *in_block(const struct warp *warp, const void *block, const T *table)
{
    const ptrdiff_t offset = (const uint8_t *)table - (const uint8_t *)warp->colx;
    return table ? (T *)((uint8_t *)block + TABLES_OFFSET + offset) : NULL;
}

const struct warp_row *warp_block_rows(const struct warp *warp, const void *block)
{
    return in_block(warp, block, warp->rows);
}

void warp_block_pack(const struct op *op, uint8_t *host, uint8_t *device)
{
    const struct warp *warp = &op->warp;
    struct warp *copy = (struct warp *)host;
    *copy = *warp;
    copy->colx = in_block(warp, device, warp->colx);
    copy->coly = in_block(warp, device, warp->coly);
    copy->rowx = in_block(warp, device, warp->rowx);
    copy->rowy = in_block(warp, device, warp->rowy);
    copy->rows = in_block(warp, device, warp->rows);
    copy->luma_columns = in_block(warp, device, warp->luma_columns);
    copy->chroma_columns = in_block(warp, device, warp->chroma_columns);
    copy->coverage_columns = in_block(warp, device, warp->coverage_columns);
    memcpy(host + TABLES_OFFSET, warp->colx, warp_tables_bytes(warp));
}
