// What the warp kernels read of an op, packed by the host. A block is the struct with its four
// tables behind it and, where the axes do not mix, the tables of warp_axis.cuh behind these.
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/warp_block.cuh"

static size_t aligned(size_t bytes)
{
    return (bytes + 15) & ~(size_t)15;
}

static size_t positions_bytes(const struct warp *warp)
{
    return 2 * ((size_t)warp->width + warp->height) * sizeof *warp->colx;
}

size_t warp_axis_offset(const struct warp *warp)
{
    return aligned(aligned(sizeof *warp) + positions_bytes(warp));
}

static size_t axis_bytes(const struct warp *warp)
{
    return warp->height * sizeof(struct axis_row) +
           axis_columns(warp->width) * (2 * sizeof(struct axis_column) + sizeof(uint16_t));
}

// Whether no sum before a channel's last one saturates, or only where the level is 0 or 255 all the
// same: then they can be regrouped.
static bool sums_are_exact(const struct yuv_to_rgb *c)
{
    const int reach = mulhrs(16384, abs(c->y)) + abs(c->offset) + 1;
    return reach + abs(c->gu) / 2 + 1 <= INT16_MAX && abs(c->bu) <= 16384;
}

// The tables of positions start with 0 and are monotone where they add to the other axis. Windows
// of one column have no neighbours.
bool warp_has_axes(const struct warp *warp)
{
    if (warp->rowx[warp->height - 1] != 0 || warp->coly[warp->width - 1] != 0)
        return false;
    if (source_is_rgb(warp->source))
        return warp->x1 - warp->x0 >= 2;
    const int sub = position_sub(warp->chroma_x);
    return (warp->x1 - 1) >> sub > warp->x0 >> sub && sums_are_exact(&warp->rgb);
}

size_t warp_block_bytes(const struct op *op)
{
    const struct warp *warp = &op->warp;
    return warp_axis_offset(warp) + (warp_has_axes(warp) ? axis_bytes(warp) : 0);
}

static struct axis_column column_at(struct taps taps, int last, int step)
{
    const int left = taps.t0 == last ? last - 1 : taps.t0;
    const int weight = taps.t0 != taps.t1 ? taps.w : taps.t0 > left ? WEIGHT_ONE : 0;
    return {(uint32_t)(left * step), (uint32_t)(weight << 16 | (WEIGHT_ONE - weight))};
}

static void columns_pack(const struct warp *warp, struct axis_column *luma)
{
    struct axis_column *chroma = luma + axis_columns(warp->width);
    uint16_t *coverage = (uint16_t *)(chroma + axis_columns(warp->width));
    const int step = component_of(warp->source, 0).step;
    const int chroma_step = component_of(warp->source, 1).step;
    for (int i = 0; i < axis_columns(warp->width); i++) {
        const int32_t s = warp->colx[i < warp->width ? i : warp->width - 1];
        const int32_t p = position_of(warp->luma, s);
        luma[i] = column_at(taps_at(p, warp->x0, warp->x1 - 1), warp->x1 - 1, step);
        chroma[i] = column_at(chroma_taps(warp->chroma_x, s, warp->x0, warp->x1),
                              (warp->x1 - 1) >> position_sub(warp->chroma_x), chroma_step);
        coverage[i] = (uint16_t)coverage_axis(p, warp->x0, warp->x1);
    }
}

// A row that weighs nothing is not read.
static void rows_pack(const struct warp *warp, struct axis_row *row)
{
    for (int y = 0; y < warp->height; y++) {
        const int32_t p = position_of(warp->luma, warp->rowy[y]);
        const struct taps l = taps_at(p, warp->y0, warp->y1 - 1);
        const struct taps c = chroma_taps(warp->chroma_y, warp->rowy[y], warp->y0, warp->y1);
        row[y] = {.luma = {(uint16_t)l.t0, (uint16_t)(l.w ? l.t1 : l.t0)},
                  .luma_weight = (uint16_t)l.w,
                  .coverage = (uint16_t)coverage_axis(p, warp->y0, warp->y1),
                  .chroma = {(uint16_t)c.t0, (uint16_t)(c.w ? c.t1 : c.t0)},
                  .chroma_weight = (uint16_t)c.w,
                  .unused = 0};
    }
}

static int32_t *append(uint8_t *host, uint8_t *device, size_t *used, const int32_t *table, int n)
{
    const size_t at = *used;
    memcpy(host + at, table, n * sizeof *table);
    *used += n * sizeof *table;
    return (int32_t *)(device + at);
}

void warp_block_pack(const struct op *op, uint8_t *host, uint8_t *device)
{
    const struct warp *warp = &op->warp;
    struct warp *copy = (struct warp *)host;
    size_t used = aligned(sizeof *warp);
    *copy = *warp;
    copy->colx = append(host, device, &used, warp->colx, warp->width);
    copy->rowx = append(host, device, &used, warp->rowx, warp->height);
    copy->coly = append(host, device, &used, warp->coly, warp->width);
    copy->rowy = append(host, device, &used, warp->rowy, warp->height);
    if (!warp_has_axes(warp))
        return;
    struct axis_row *rows = (struct axis_row *)(host + warp_axis_offset(warp));
    rows_pack(warp, rows);
    columns_pack(warp, (struct axis_column *)(rows + warp->height));
}
