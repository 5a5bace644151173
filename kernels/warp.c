// The reference of warp: it is the specification, faster versions give the same bytes.
#include "kernels/element.h"
#include "kernels/sample.h"

enum { RUN = 256 }; // pixels whose levels are made before they are stored as elements

static inline FRAMED_HD void make_run(const struct image *src, const struct warp *warp,
                                      enum pixel_format format, int x, int y, int n,
                                      uint8_t level[3][RUN])
{
    for (int i = 0; i < n; i++) {
        const int32_t sx = warp->colx[x + i] + warp->rowx[y];
        const int32_t sy = warp->coly[x + i] + warp->rowy[y];
        uint8_t pixel[3] = {0};
        warp_levels(src, warp, format, sx, sy, pixel);
        for (int c = 0; c < 3; c++)
            level[c][i] = pixel[c];
    }
}

// The levels of n output pixels from (x, y) on, channels in the tensor's order.
static void make_levels(const struct image *src, const struct warp *warp, int x, int y, int n,
                        uint8_t level[3][RUN])
{
    switch (warp->source) {
#define CASE(format)                                                                               \
    case format:                                                                                   \
        make_run(src, warp, format, x, y, n, level);                                               \
        break;
        FOR_EACH_SOURCE(CASE)
#undef CASE
    default:
        break;
    }
}

// Channel c of n elements, `step` elements from one to the next.
static void store_channel(void *to, int step, const struct warp *warp, int c,
                          const uint8_t level[RUN], int n)
{
    switch (warp->dtype) {
    case DTYPE_U8:
    case DTYPE_S8:
        for (int i = 0; i < n; i++)
            ((uint8_t *)to)[i * step] = warp->table.u8[c][level[i]];
        break;
    case DTYPE_F16:
        for (int i = 0; i < n; i++)
            ((uint16_t *)to)[i * step] = warp->table.f16[c][level[i]];
        break;
    case DTYPE_F32:
        for (int i = 0; i < n; i++)
            ((float *)to)[i * step] = warp->table.f32[c][level[i]];
        break;
    }
}

static void store_levels(const struct image *dst, const struct warp *warp, int x, int y, int n,
                         uint8_t level[3][RUN])
{
    const bool planar = warp->layout == LAYOUT_NCHW;
    const int step = planar ? 1 : warp->channels;
    const size_t bytes = element_bytes(warp->dtype);
    for (int c = 0; c < warp->channels; c++) {
        const struct plane *plane = &dst->plane[planar ? c : 0];
        const size_t first = (size_t)x * step + (planar ? 0 : c);
        store_channel(plane->data + (ptrdiff_t)y * plane->stride + first * bytes, step, warp, c,
                      level[c], n);
    }
}

void warp_ref(const struct image *dst, const struct image *src, const struct warp *warp,
              struct band band, bool filled)
{
    (void)filled;
    uint8_t level[3][RUN];
    for (int y = band.y0; y < band.y1; y++) {
        for (int x = 0; x < warp->width; x += RUN) {
            const int n = warp->width - x < RUN ? warp->width - x : RUN;
            make_levels(src, warp, x, y, n, level);
            store_levels(dst, warp, x, y, n, level);
        }
    }
}
