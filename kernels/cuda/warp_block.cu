// What the warp kernels read of an op, packed by the host: the struct, with its tables behind it.
#include <string.h>

#include "kernels/cuda/warp_block.cuh"
#include "kernels/geometry.h"

enum { TABLES_OFFSET = (sizeof(struct warp) + 15) & ~15 };

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
