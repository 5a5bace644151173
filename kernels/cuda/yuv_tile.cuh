// Reads and writes four neighbours of a row as words, wholly inside a picture with aligned planes.
#ifndef FRAMED_KERNELS_CUDA_YUV_TILE_CUH
#define FRAMED_KERNELS_CUDA_YUV_TILE_CUH

#include "kernels/yuv.h"

enum { TILE = 4 };

// --- read

// Loads 4, 8, 12 or 16 bytes.
static __device__ inline void load(const uint8_t *at, int bytes, unsigned word[TILE])
{
    if (bytes == 16) {
        const uint4 v = __ldg((const uint4 *)at);
        word[0] = v.x;
        word[1] = v.y;
        word[2] = v.z;
        word[3] = v.w;
    } else if (bytes == 8) {
        const uint2 v = __ldg((const uint2 *)at);
        word[0] = v.x;
        word[1] = v.y;
    } else {
        for (int i = 0; i < bytes / 4; i++)
            word[i] = __ldg((const unsigned *)at + i);
    }
}

static __device__ inline int byte_of(const unsigned *word, int i)
{
    return word[i / 4] >> 8 * (i % 4) & 255;
}

// Returns the bytes of TILE samples of the first component. Addresses must be a multiple of this,
// except for the 12 of a 24-bit format, which are loaded as three words.
static inline FRAMED_HD int tile_bytes(enum pixel_format format)
{
    return TILE * component_of(format, 0).step;
}

// Reads samples of an RGB source.
template <enum pixel_format FORMAT>
static __device__ inline void read_rgb(const struct image *src, int x, int y, int rgb[3][TILE])
{
    unsigned word[TILE];
    for (int c = 0; c < 3; c++) {
        const struct component k = component_of(FORMAT, c);
        if (c == 0 || FORMAT == PIXEL_GBRP) {
            const struct plane *plane = &src->plane[k.plane];
            load(plane->data + (ptrdiff_t)y * plane->stride + x * k.step, tile_bytes(FORMAT), word);
        }
        for (int i = 0; i < TILE; i++)
            rgb[c][i] = byte_of(word, i * k.step + k.offset);
    }
}

// Reads luma samples, like sample_load.
template <enum pixel_format FORMAT>
static __device__ inline void read_luma(const struct image *src, int x, int y, int luma[TILE])
{
    const struct pixel_layout layout = pixel_layout_of(FORMAT);
    const struct component k = layout.component[0];
    unsigned word[TILE];
    load(src->plane[0].data + (ptrdiff_t)y * src->plane[0].stride + x * k.step, tile_bytes(FORMAT),
         word);
    for (int i = 0; i < TILE; i++) {
        const int at = i * k.step + k.offset;
        luma[i] = word[at / 4] >> (8 * (at % 4) + layout.shift) & ((1 << layout.bits) - 1);
    }
}

template <enum pixel_format FORMAT>
static __device__ inline int horizontal(int left, int right, int w)
{
    return source_is_10bit(FORMAT) ? horizontal10(left, right, w) : horizontal8(left, right, w);
}

// Makes one row of component c at pixels x to x + 3. If chroma is halved, their taps are samples
// x/2 - 1 to x/2 + 2: an even pixel x lies at most one sample before x/2, an odd one at most one
// after it.
template <enum pixel_format FORMAT>
static __device__ inline void chroma_row(const struct image *src, const struct yuv *yuv, int c,
                                         int x, int row, int h[TILE])
{
    const struct component k = component_of(FORMAT, c);
    const uint8_t *start = component_row(src, k, row);
    const bool halved = position_sub(yuv->chroma_x) > 0;
    const int first = halved ? x / 2 - 1 : x, last = (yuv->width - 1) >> halved;
    const int even = halved ? position_of(yuv->chroma_x, 0) + WEIGHT_ONE : 0;
    const int odd = halved ? position_of(yuv->chroma_x, 65536) : 0;
    int sample[TILE];
    for (int i = 0; i < TILE; i++)
        sample[i] = sample_load(FORMAT, start + clamp_to(first + i, 0, last) * k.step);
    for (int i = 0; i < TILE; i++) {
        const int left = halved ? sample[(i + 1) / 2] : sample[i];
        h[i] = horizontal<FORMAT>(left, sample[(i + 1) / 2 + 1], i % 2 ? odd : even);
    }
}

// Like chroma_at, for four pixels.
template <enum pixel_format FORMAT>
static __device__ inline void read_chroma(const struct image *src, const struct yuv *yuv, int c,
                                          int x, int y, int chroma[TILE])
{
    if (!source_has_chroma(FORMAT)) {
        for (int i = 0; i < TILE; i++)
            chroma[i] = 0;
        return;
    }
    const struct taps rows = chroma_taps(yuv->chroma_y, y * 65536, 0, yuv->height);
    int above[TILE], below[TILE];
    chroma_row<FORMAT>(src, yuv, c, x, rows.t0, above);
    chroma_row<FORMAT>(src, yuv, c, x, rows.t1, below);
    for (int i = 0; i < TILE; i++)
        chroma[i] = vertical(above[i], below[i], rows.w);
}

// Rounds like vertical().
static __device__ inline int vertical21(int above, int below, int weight)
{
    return (above * (2 * (WEIGHT_ONE - weight)) + (below * (2 * weight) + 16384)) >> 15;
}

// Returns a sum with 21 fraction bits rounded to 6, ready for further terms.
static __device__ inline int rounded21(int sum)
{
    return (sum & ~32767) | 16384;
}

static __device__ inline int level_of21(int sum)
{
    return __vimin_s32_relu(sum >> 21, 255);
}

// Like chroma_at, for four pixels of each of two rows.
template <enum pixel_format FORMAT>
static __device__ inline void read_chroma_rows(const struct image *src, const struct yuv *yuv,
                                               int c, int x, int y, int first[TILE],
                                               int second[TILE])
{
    const struct taps near = chroma_taps(yuv->chroma_y, y * 65536, 0, yuv->height);
    const struct taps far = chroma_taps(yuv->chroma_y, (y + 1) * 65536, 0, yuv->height);
    const bool apart = far.t0 == near.t1; // else both lie between the same rows
    int row[3][TILE];
    chroma_row<FORMAT>(src, yuv, c, x, near.t0, row[0]);
    chroma_row<FORMAT>(src, yuv, c, x, near.t1, row[1]);
    chroma_row<FORMAT>(src, yuv, c, x, far.t1, row[2]);
    for (int i = 0; i < TILE; i++) {
        first[i] = vertical21(row[0][i], row[1][i], near.w);
        second[i] = vertical21(apart ? row[1][i] : row[0][i], row[2][i], far.w);
    }
}

// Like rgb_at, for four pixels.
template <enum pixel_format FORMAT>
static __device__ inline void read_as_rgb(const struct image *src, const struct yuv *yuv, int x,
                                          int y, int rgb[3][TILE])
{
    if (source_is_rgb(FORMAT)) {
        read_rgb<FORMAT>(src, x, y, rgb);
    } else {
        int luma[TILE], u[TILE], v[TILE];
        read_luma<FORMAT>(src, x, y, luma);
        read_chroma<FORMAT>(src, yuv, 1, x, y, u);
        read_chroma<FORMAT>(src, yuv, 2, x, y, v);
        for (int i = 0; i < TILE; i++) {
            const int h = horizontal<FORMAT>(luma[i], luma[i], 0);
            const struct rgb6 q = yuv_to_rgb6(&yuv->rgb, h, u[i], v[i]);
            rgb[0][i] = level_of(q.r);
            rgb[1][i] = level_of(q.g);
            rgb[2][i] = level_of(q.b);
        }
    }
}

// The same for two rows, whose chroma lies in at most three rows. Needs sums_are_exact(&yuv->rgb):
// sums with 21 fraction bits replace yuv_to_rgb6's.
template <enum pixel_format FORMAT>
static __device__ inline void read_rows_as_rgb(const struct image *src, const struct yuv *yuv,
                                               int x, int y, int rgb[2][3][TILE])
{
    if (source_is_rgb(FORMAT)) {
        for (int row = 0; row < 2; row++)
            read_rgb<FORMAT>(src, x, y + row, rgb[row]);
        return;
    }
    int chroma[2][2][TILE] = {{{0}}}; // U and V of each row
    for (int c = 1; source_has_chroma(FORMAT) && c < 3; c++)
        read_chroma_rows<FORMAT>(src, yuv, c, x, y, chroma[0][c - 1], chroma[1][c - 1]);
    const struct yuv_to_rgb *k = &yuv->rgb;
    const int unit = k->y * (source_is_10bit(FORMAT) ? 32 : 128);
    const int black = k->offset * 32768 + 16384 - k->y * 16384;
#pragma unroll
    for (int row = 0; row < 2; row++) {
        int luma[TILE];
        read_luma<FORMAT>(src, x, y + row, luma);
#pragma unroll
        for (int i = 0; i < TILE; i++) {
            const int u = chroma[row][0][i], v = chroma[row][1][i];
            const int grey = rounded21(luma[i] * unit + black);
            rgb[row][0][i] = level_of21(v * k->rv + grey);
            rgb[row][1][i] = level_of21(v * k->gv + rounded21(u * k->gu + grey));
            rgb[row][2][i] = level_of21(u * (k->bu + 32768) + grey);
        }
    }
}

// --- written

static __device__ inline unsigned packed(int a, int b, int c, int d)
{
    return (unsigned)a | (unsigned)b << 8 | (unsigned)c << 16 | (unsigned)d << 24;
}

static __device__ inline void write_four(const struct image *dst, int plane, int x, int y,
                                         const int level[TILE])
{
    uint8_t *row = dst->plane[plane].data + (ptrdiff_t)y * dst->plane[plane].stride;
    *(unsigned *)(row + x) = packed(level[0], level[1], level[2], level[3]);
}

static __device__ inline void write_444(const struct image *dst, enum pixel_format format, int x,
                                        int y, int level[3][TILE])
{
    if (format == PIXEL_YUV444P) {
        for (int c = 0; c < 3; c++)
            write_four(dst, c, x, y, level[c]);
        return;
    }
    const int *Y = level[0], *U = level[1], *V = level[2];
    unsigned *to = (unsigned *)(dst->plane[0].data + (ptrdiff_t)y * dst->plane[0].stride + 3 * x);
    to[0] = packed(Y[0], U[0], V[0], Y[1]);
    to[1] = packed(U[1], V[1], Y[2], U[2]);
    to[2] = packed(V[2], Y[3], U[3], V[3]);
}

// Two chroma samples of a 4:2:0 row; x and y count pixels.
static __device__ inline void write_chroma(const struct image *dst, enum pixel_format format, int x,
                                           int y, const int u[2], const int v[2])
{
    if (format == PIXEL_NV12) {
        const int uv[TILE] = {u[0], v[0], u[1], v[1]};
        write_four(dst, 1, x, y / 2, uv);
        return;
    }
    const int *level[2] = {u, v};
    for (int c = 0; c < 2; c++) {
        const struct plane *plane = &dst->plane[1 + c];
        *(uint16_t *)(plane->data + (ptrdiff_t)(y / 2) * plane->stride + x / 2) =
            (uint16_t)(level[c][0] | level[c][1] << 8);
    }
}

#endif
