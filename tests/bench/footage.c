#include "tests/bench/footage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/decoder.h"
#include "daemon/device/devices.h"
#include "kernels/ops.h"

enum { WIDTH = 1920, HEIGHT = 1080 };

// --- a clip's pictures

static int keep(struct footage *footage, const struct image *from)
{
    struct image *to = &footage->picture[footage->n];
    *to = *from;
    uint8_t *memory = malloc(image_lay_out(to, NULL));
    if (!memory)
        return -ENOMEM;
    image_lay_out(to, memory);
    to->memory = MEMORY_HOST;
    for (int p = 0; p < pixel_format_planes(to->format); p++) {
        const struct plane *a = &from->plane[p], *b = &to->plane[p];
        for (int y = 0; y < plane_rows(to->format, p, to->height); y++)
            memcpy(b->data + y * b->stride, a->data + y * a->stride, (size_t)b->stride);
    }
    footage->n++;
    return 0;
}

struct reel {
    struct camera_config config;
    struct demux *demux;
    struct decoder *decoder;
};

// Returns the next picture; -ENODATA at the end.
static int next_picture(struct reel *reel, struct frame *frame)
{
    int rc;
    while ((rc = decoder_receive(reel->decoder, frame)) == -EAGAIN || (rc == 0 && frame->lost)) {
        struct packet packet;
        if (rc == 0)
            continue;
        rc = demux_read(reel->demux, &packet);
        rc = decoder_send(reel->decoder, rc == 0 ? &packet : NULL);
        if (rc < 0)
            return rc;
    }
    return rc;
}

// Decodes on the CPU on every machine: these pictures are compared with the daemon's.
static int open_reel(struct reel *reel, const char *clip, const _Atomic bool *stop, char *why,
                     size_t size)
{
    const struct duration patience = {10 * INT64_C(1000000000)};
    reel->config = (struct camera_config){.url = (char *)clip,
                                          .connect_timeout = patience,
                                          .media_timeout = patience,
                                          .close_timeout = patience};
    const struct decode_options options = {.decode.by = DECODE_CPU, .threads = 1, .in_flight = 1};
    const struct decode_target use = {.driver = &cpu_backend};
    int rc = demux_open(&reel->demux, &reel->config, NULL, stop, NULL, why, size);
    if (rc < 0)
        return rc;
    rc = decoder_open(&reel->decoder, reel->demux->parameters, &options);
    if (rc == 0)
        rc = decoder_join(reel->decoder, &use);
    if (rc < 0)
        snprintf(why, size, "%s", strerror(-rc));
    return rc;
}

static int read_clip(struct footage *footage, struct reel *reel)
{
    struct frame frame;
    int rc = 0;
    for (int i = 0; rc == 0 && footage->n < FOOTAGE_MAX; i++) {
        rc = next_picture(reel, &frame);
        if (rc == 0 && i % FOOTAGE_APART == 0)
            rc = keep(footage, &frame.image);
        if (rc == 0)
            frame_release(&frame);
    }
    return footage->n > 0 ? 0 : rc;
}

static int open_clip(struct footage *footage, const char *clip)
{
    const _Atomic bool stop = false;
    struct reel reel = {0};
    char why[128] = "", stream[DEMUX_DESCRIPTION_MAX];
    int rc = open_reel(&reel, clip, &stop, why, sizeof why);
    if (rc == 0)
        rc = read_clip(footage, &reel);
    if (rc == 0)
        snprintf(footage->describe, sizeof footage->describe, "%.100s (%.90s)", clip,
                 demux_describe(reel.demux, stream));
    else
        snprintf(footage->describe, sizeof footage->describe, "%.60s: %s", clip,
                 *why ? why : strerror(-rc));
    decoder_close(reel.decoder);
    demux_close(reel.demux);
    return rc;
}

// --- made pictures

static uint32_t scramble(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

// Smooth noise: random levels on a lattice of `cell` pixels with bilinear interpolation. 0 to 255.
static int shade(int x, int y, int cell, uint32_t seed)
{
    const int cx = x / cell, cy = y / cell, fx = x % cell, fy = y % cell;
    int level[4];
    for (int i = 0; i < 4; i++)
        level[i] =
            scramble((uint32_t)(cx + (i & 1)) * 9176u + (uint32_t)(cy + (i >> 1)) * 77711u + seed) &
            255;
    const int above = level[0] * (cell - fx) + level[1] * fx;
    const int below = level[2] * (cell - fx) + level[3] * fx;
    return (above * (cell - fy) + below * fy) / (cell * cell);
}

static uint8_t made_level(int x, int y, int c, uint32_t seed)
{
    const uint32_t own = seed + (uint32_t)c * 31u;
    const int soft = shade(x, y, 240, own), fine = shade(x, y, 24, own + 7);
    const int edge = shade(x, y, 160, seed + 99) > 140 ? 40 : 0;
    const int grain = (int)(scramble((uint32_t)(y * WIDTH + x) * 3u + own) & 15);
    return (uint8_t)((5 * soft + 2 * fine) / 10 + edge + grain);
}

static int make_picture(struct footage *footage)
{
    struct image *image = &footage->picture[footage->n];
    *image = (struct image){.format = PIXEL_RGB24, .width = WIDTH, .height = HEIGHT};
    uint8_t *memory = malloc(image_lay_out(image, NULL));
    if (!memory)
        return -ENOMEM;
    image_lay_out(image, memory);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            for (int c = 0; c < 3; c++)
                *memory++ = made_level(x, y, c, (uint32_t)footage->n * 1000u);
    footage->n++;
    return 0;
}

int footage_open(struct footage *footage, const char *clip)
{
    *footage = (struct footage){0};
    int rc = clip ? open_clip(footage, clip) : make_picture(footage);
    if (rc < 0)
        return rc;
    footage->width = footage->picture[0].width;
    footage->height = footage->picture[0].height;
    if (!clip)
        snprintf(footage->describe, sizeof footage->describe,
                 "a made picture of shades, edges and grain (--clip FILE takes real ones)");
    return 0;
}

void footage_close(struct footage *footage)
{
    for (int i = 0; i < footage->n; i++)
        free(footage->picture[i].plane[0].data);
    *footage = (struct footage){0};
}

// --- in the requested size and format

// Runs the reference over the whole picture.
static int apply(const struct op_params *params, const struct image *src, void *to)
{
    struct op op;
    struct image dst;
    int rc = op_init(&op, params, src);
    if (rc < 0)
        return rc;
    const struct band all = {0, op.dst.height};
    op_lay_out(&op, &dst, to);
    op_reference(&dst, src, &op, all, false);
    op_finish(&op);
    return 0;
}

static void to_bgra(const struct image *image, const uint8_t *rgb)
{
    uint8_t *to = image->plane[0].data;
    for (size_t i = 0; i < (size_t)image->width * (size_t)image->height; i++, to += 4, rgb += 3) {
        to[0] = rgb[2];
        to[1] = rgb[1];
        to[2] = rgb[0];
        to[3] = 255;
    }
}

int footage_fill(const struct footage *footage, int i, const struct image *image)
{
    const struct op_params stretch = {.kind = OP_WARP,
                                      .warp = {.width = image->width,
                                               .height = image->height,
                                               .fit = FIT_STRETCH,
                                               .layout = LAYOUT_NHWC,
                                               .scale = 1,
                                               .std = {1, 1, 1}}};
    const struct op_params convert = {.kind = OP_YUV, .yuv.format = image->format};
    struct image rgb = {.format = PIXEL_RGB24, .width = image->width, .height = image->height};
    uint8_t *memory = malloc(image_lay_out(&rgb, NULL));
    if (!memory)
        return -ENOMEM;
    image_lay_out(&rgb, memory);
    int rc = apply(&stretch, &footage->picture[i % footage->n], memory);
    if (rc == 0 && image->format == PIXEL_BGRA)
        to_bgra(image, memory);
    else if (rc == 0)
        rc = apply(&convert, &rgb, image->plane[0].data);
    free(memory);
    return rc;
}
