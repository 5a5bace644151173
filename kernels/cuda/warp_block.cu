// Packs, on the host, a warp for the kernels that read it: the struct, followed by its tables.
#include <string.h>

#include "kernels/cuda/warp_block.cuh"
#include "kernels/warp.h"

enum { TABLES_OFFSET = (sizeof(struct warp) + 15) & ~15 };

// Returns the offset of a filter's tables.
static size_t filter_offset(const struct warp *warp)
{
    return (TABLES_OFFSET + warp_tables_bytes(warp) + 15) & ~(size_t)15;
}

size_t warp_block_bytes(const struct warp *warp)
{
    return (filter_offset(warp) + warp->filtered.bytes + 15) & ~(size_t)15;
}

size_t warp_block_room(const struct warp *warp)
{
    const bool filtered = warp->filter != FILTER_BILINEAR;
    return (filter_offset(warp) + (filtered ? filter_tables_room(warp) : 0) + 15) & ~(size_t)15;
}

// Returns the address of a warp's table in the block that starts at `block`.
template <typename T> static T *in_block(const struct warp *warp, const void *block, const T *table)
{
    const ptrdiff_t offset = (const uint8_t *)table - (const uint8_t *)warp->colx;
    return table ? (T *)((uint8_t *)block + TABLES_OFFSET + offset) : NULL;
}

const struct warp_row *warp_block_rows(const struct warp *warp, const void *block)
{
    return in_block(warp, block, warp->rows);
}

// Returns the same for a filter's table.
template <typename T> static T *in_filter(const struct warp *warp, const void *block, T *table)
{
    const ptrdiff_t offset = (const uint8_t *)table - (const uint8_t *)warp->filtered.luma_x.spans;
    return (T *)((uint8_t *)block + filter_offset(warp) + offset);
}

static void filter_pack(const struct warp *warp, struct filter_tables *to, uint8_t *host,
                        uint8_t *device)
{
    struct filter_axis *const axes[] = {&to->luma_x, &to->luma_y, &to->chroma_x, &to->chroma_y};
    for (int i = 0; i < 4; i++) {
        axes[i]->spans = in_filter(warp, device, axes[i]->spans);
        axes[i]->weights = in_filter(warp, device, axes[i]->weights);
    }
    to->coverage_x = in_filter(warp, device, to->coverage_x);
    to->coverage_y = in_filter(warp, device, to->coverage_y);
    memcpy(host + filter_offset(warp), warp->filtered.luma_x.spans, to->bytes);
}

void warp_block_pack(const struct warp *warp, uint8_t *host, uint8_t *device, const struct lut *lut)
{
    struct warp *copy = (struct warp *)host;
    *copy = *warp;
    copy->lut = lut;
    copy->colx = in_block(warp, device, warp->colx);
    copy->coly = in_block(warp, device, warp->coly);
    copy->rowx = in_block(warp, device, warp->rowx);
    copy->rowy = in_block(warp, device, warp->rowy);
    copy->rows = in_block(warp, device, warp->rows);
    copy->luma_columns = in_block(warp, device, warp->luma_columns);
    copy->chroma_columns = in_block(warp, device, warp->chroma_columns);
    copy->coverage_columns = in_block(warp, device, warp->coverage_columns);
    memcpy(host + TABLES_OFFSET, warp->colx, warp_tables_bytes(warp));
    if (filter_weighs(warp->filter))
        filter_pack(warp, &copy->filtered, host, device);
}
