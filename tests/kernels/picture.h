// Pictures for tests of kernels: random and extreme samples, every kind of stride, rows that end at
// the end of their memory. It addresses samples itself, without the code under test.
#ifndef FRAMED_TESTS_KERNELS_PICTURE_H
#define FRAMED_TESTS_KERNELS_PICTURE_H

#include <stdlib.h>
#include <string.h>

#include "kernels/image.h"
#include "tests/kernels/random.h"

enum content { CONTENT_RANDOM, CONTENT_ZERO, CONTENT_MAX, CONTENT_CHECKER, CONTENTS };
enum strides { STRIDES_TIGHT, STRIDES_PADDED, STRIDES_NEGATIVE, STRIDES };

struct picture {
    struct image image;
    uint8_t *memory[PLANES_MAX];
};

// All source formats, indexed below SOURCES.
static const enum pixel_format sources[] = {
    PIXEL_BGRA,      PIXEL_RGBA,    PIXEL_BGR24,     PIXEL_RGB24,   PIXEL_GBRP,    PIXEL_NV12,
    PIXEL_YUV420P,   PIXEL_P010,    PIXEL_YUV420P10, PIXEL_YUV444P, PIXEL_YUV422P, PIXEL_YUV422P10,
    PIXEL_YUV444P10, PIXEL_YUYV422, PIXEL_UYVY422,   PIXEL_NV21,    PIXEL_GRAY,
};
enum { SOURCES = sizeof sources / sizeof *sources };

static inline bool is_422(enum pixel_format format)
{
    return format == PIXEL_YUV422P || format == PIXEL_YUV422P10 || format == PIXEL_YUYV422 ||
           format == PIXEL_UYVY422;
}

static inline bool is_420(enum pixel_format format)
{
    return format == PIXEL_NV12 || format == PIXEL_NV21 || format == PIXEL_YUV420P ||
           format == PIXEL_P010 || format == PIXEL_YUV420P10;
}

static inline bool is_10bit(enum pixel_format format)
{
    return format == PIXEL_P010 || format == PIXEL_YUV420P10 || format == PIXEL_YUV422P10 ||
           format == PIXEL_YUV444P10;
}

// Columns and rows of pixels that share a sample of component c.
static inline int shared_x(enum pixel_format format, int c)
{
    return c > 0 && (is_420(format) || is_422(format)) ? 2 : 1;
}

static inline int shared_y(enum pixel_format format, int c)
{
    return c > 0 && is_420(format) ? 2 : 1;
}

static inline int components(enum pixel_format format)
{
    return format == PIXEL_GRAY ? 1 : 3;
}

// Returns the address of sample (x, y) of component c (R, G, B or Y, U, V), in its own plane.
static inline uint8_t *sample_address(const struct image *image, int c, int x, int y)
{
    static const char places[PIXEL_FORMATS][3][4] = {
        // plane, offset, step in bytes
        [PIXEL_BGRA] = {{0, 2, 4}, {0, 1, 4}, {0, 0, 4}},
        [PIXEL_RGBA] = {{0, 0, 4}, {0, 1, 4}, {0, 2, 4}},
        [PIXEL_BGR24] = {{0, 2, 3}, {0, 1, 3}, {0, 0, 3}},
        [PIXEL_RGB24] = {{0, 0, 3}, {0, 1, 3}, {0, 2, 3}},
        [PIXEL_GBRP] = {{2, 0, 1}, {0, 0, 1}, {1, 0, 1}},
        [PIXEL_NV12] = {{0, 0, 1}, {1, 0, 2}, {1, 1, 2}},
        [PIXEL_YUV420P] = {{0, 0, 1}, {1, 0, 1}, {2, 0, 1}},
        [PIXEL_P010] = {{0, 0, 2}, {1, 0, 4}, {1, 2, 4}},
        [PIXEL_YUV420P10] = {{0, 0, 2}, {1, 0, 2}, {2, 0, 2}},
        [PIXEL_YUV444P] = {{0, 0, 1}, {1, 0, 1}, {2, 0, 1}},
        [PIXEL_YUV422P] = {{0, 0, 1}, {1, 0, 1}, {2, 0, 1}},
        [PIXEL_YUV422P10] = {{0, 0, 2}, {1, 0, 2}, {2, 0, 2}},
        [PIXEL_YUV444P10] = {{0, 0, 2}, {1, 0, 2}, {2, 0, 2}},
        [PIXEL_YUYV422] = {{0, 0, 2}, {0, 1, 4}, {0, 3, 4}},
        [PIXEL_UYVY422] = {{0, 1, 2}, {0, 0, 4}, {0, 2, 4}},
        [PIXEL_NV21] = {{0, 0, 1}, {1, 1, 2}, {1, 0, 2}},
        [PIXEL_GRAY] = {{0, 0, 1}},
        [PIXEL_YUV24] = {{0, 0, 3}, {0, 1, 3}, {0, 2, 3}},
    };
    const char *place = places[image->format][c];
    const struct plane *plane = &image->plane[(int)place[0]];
    return plane->data + y * plane->stride + place[1] + (ptrdiff_t)x * place[2];
}

static inline int sample_get(const struct image *image, int c, int x, int y)
{
    const uint8_t *at = sample_address(image, c, x, y);
    if (image->format == PIXEL_P010)
        return (at[0] | at[1] << 8) >> 6;
    if (is_10bit(image->format))
        return (at[0] | at[1] << 8) & 1023;
    return *at;
}

// `spare`: the unused bits of a 16-bit sample.
static inline void sample_put(const struct image *image, int c, int x, int y, int value, int spare)
{
    uint8_t *at = sample_address(image, c, x, y);
    const int word = image->format == PIXEL_P010 ? value << 6 | (spare & 63) : value | spare << 10;
    at[0] = (uint8_t)(is_10bit(image->format) ? word : value);
    if (is_10bit(image->format))
        at[1] = (uint8_t)(word >> 8);
}

static inline int component_width(const struct image *image, int c)
{
    const int shared = shared_x(image->format, c);
    return (image->width + shared - 1) / shared;
}

static inline int component_height(const struct image *image, int c)
{
    const int shared = shared_y(image->format, c);
    return (image->height + shared - 1) / shared;
}

static inline void picture_fill(const struct image *image, enum content content,
                                struct random *random)
{
    const int max = is_10bit(image->format) ? 1023 : 255;
    for (int c = 0; c < components(image->format); c++) {
        const int phase = random_in(random, 0, 1);
        for (int y = 0; y < component_height(image, c); y++) {
            for (int x = 0; x < component_width(image, c); x++) {
                const uint64_t bits = random_next(random);
                const int values[CONTENTS] = {(int)(bits >> 8) & max, 0, max,
                                              (x + y + phase) % 2 ? max : 0};
                sample_put(image, c, x, y, values[content], (int)bits & 63);
            }
        }
    }
}

enum { PADDING = 12 }; // bytes between rows that are not tight; keeps 4-byte elements aligned

// Gives `picture` a plane in separate memory that ends with the last byte of a row.
static inline void picture_plane(struct picture *picture, int i, size_t row, int rows,
                                 enum strides strides)
{
    const ptrdiff_t stride = (ptrdiff_t)row + (strides == STRIDES_TIGHT ? 0 : PADDING);
    const size_t bytes = (size_t)stride * (rows - 1) + row;
    const bool upward = strides == STRIDES_NEGATIVE;
    picture->memory[i] = malloc(bytes);
    memset(picture->memory[i], UNTOUCHED, bytes);
    picture->image.plane[i].data = picture->memory[i] + (upward ? stride * (rows - 1) : 0);
    picture->image.plane[i].stride = upward ? -stride : stride;
}

static inline struct picture picture_new(enum pixel_format format, int width, int height,
                                         enum strides strides)
{
    struct picture picture = {.image = {.format = format, .width = width, .height = height}};
    for (int i = 0; i < pixel_format_planes(format); i++)
        picture_plane(&picture, i, plane_row_bytes(format, i, width), plane_rows(format, i, height),
                      strides);
    return picture;
}

// Makes a picture of mostly random samples, with rows of any stride.
static inline struct picture picture_sized(enum pixel_format format, int width, int height,
                                           struct random *random)
{
    const enum strides strides = (enum strides)random_in(random, 0, STRIDES - 1);
    struct picture picture = picture_new(format, width, height, strides);
    const int pick = random_in(random, 0, 7);
    picture_fill(&picture.image, pick < CONTENTS ? (enum content)pick : CONTENT_RANDOM, random);
    return picture;
}

// Makes a picture of at most side_max by side_max pixels.
static inline struct picture picture_random(enum pixel_format format, int side_max,
                                            struct random *random)
{
    const int width = random_in(random, 1, side_max);
    const int height = random_in(random, 1, side_max);
    return picture_sized(format, width, height, random);
}

static inline void picture_free(struct picture *picture)
{
    for (int i = 0; i < PLANES_MAX; i++)
        free(picture->memory[i]);
}

#endif
