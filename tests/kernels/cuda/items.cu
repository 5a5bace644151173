// Tests launches of 1 to CUDA_ITEMS_MAX items against the reference, byte by byte: separate cameras
// with their own geometries, layouts, bands and alignments, and guards around the results.
#include "kernels/cuda/cuda.h"
#include "kernels/fixed.h"
#include "tests/kernels/cuda/camera.h"

enum { GUARD = 64, GUARD_BYTE = 0xA5, SIDE_MAX = 150, ROOM = 64 << 20 };

// Shape of a launch; the last mixes the others, so that one call makes several launches.
enum shape { SHAPE_AXIS, SHAPE_WHOLE, SHAPE_PIXEL, SHAPE_ANY, SHAPES };

static uint64_t state = 20240229;

static int random_in(int lo, int hi) // both ends included
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return lo + (int)((state >> 33) % (uint64_t)(hi - lo + 1));
}

// --- memory: the device's, and a copy of it on the host at the same offsets

static struct {
    uint8_t *host, *device;
    size_t used;
} room;

static bool room_open(void)
{
    room.host = (uint8_t *)malloc(ROOM);
    return room.host && !cudaMalloc((void **)&room.device, ROOM);
}

static void room_close(void)
{
    cudaFree(room.device);
    free(room.host);
}

// Returns the offset of `bytes` unused bytes.
static size_t room_take(size_t bytes, size_t align)
{
    const size_t at = (room.used + align - 1) / align * align;
    room.used = at + bytes;
    CHECK(room.used <= ROOM, "%zu bytes of %d", room.used, ROOM);
    return at;
}

// --- one item

struct item {
    struct image src; // on the host
    struct op op;
    struct band band;
    size_t block, dst;
    uint8_t *expected; // the result and its guards
    size_t bytes;
};

// Places the source at any alignment its samples allow, with any row padding.
static void source_init(struct item *item, struct cuda_item *to)
{
    const int sample = source_is_10bit(item->src.format) ? 2 : 1;
    for (int p = 0; p < pixel_format_planes(item->src.format); p++) {
        const size_t row = plane_row_bytes(item->src.format, p, item->src.width);
        const int rows = plane_rows(item->src.format, p, item->src.height);
        const size_t stride = row + sample * random_in(0, 8);
        const size_t at = room_take(stride * rows + sample, 16) + (random_in(0, 3) ? 0 : sample);
        for (size_t i = 0; i < stride * rows; i++)
            room.host[at + i] = (uint8_t)random_in(0, 255);
        item->src.plane[p] = {room.host + at, (ptrdiff_t)stride};
        to->src.plane[p] = {room.device + at, (ptrdiff_t)stride};
    }
}

// Sets a window of whole steps, possibly mirrored: every output pixel is a source pixel.
static void whole_params(struct warp_params *warp, struct image *src)
{
    const int step = random_in(1, 3);
    warp->fit = FIT_STRETCH;
    warp->crop = {random_in(0, 5), random_in(0, 5), warp->width * step, warp->height * step};
    src->width = warp->crop.x + warp->crop.width + random_in(0, 5);
    src->height = warp->crop.y + warp->crop.height + random_in(0, 5);
}

static void axis_params(struct warp_params *warp, const struct image *src)
{
    warp->fit = (enum fit)random_in(FIT_LETTERBOX, FIT_NONE);
    warp->rotate = 180 * random_in(0, 1);
    if (random_in(0, 2) == 0)
        warp->crop = {random_in(0, src->width / 4), random_in(0, src->height / 4),
                      random_in(2, src->width / 2), random_in(2, src->height / 2)};
}

static void item_init(struct item *item, struct cuda_item *to, enum pixel_format format,
                      enum dtype dtype, enum shape shape)
{
    struct op_params params;
    memset(&params, 0, sizeof params);
    memset(item, 0, sizeof *item);
    memset(to, 0, sizeof *to);
    params.kind = OP_WARP;
    params.warp = warp_params(random_in(2, SIDE_MAX), random_in(2, SIDE_MAX));
    params.warp.dtype = dtype;
    params.warp.layout = (enum layout)random_in(LAYOUT_NCHW, LAYOUT_NHWC);
    params.warp.order = (enum order)random_in(ORDER_RGB, ORDER_GRAY);
    params.warp.flip = (enum flip)random_in(FLIP_NONE, FLIP_BOTH);
    params.warp.scale = random_in(0, 1) ? 1 : 0.3;
    for (int c = 0; c < 3; c++)
        params.warp.fill[c] = (uint8_t)random_in(0, 255);
    item->src.format = format;
    item->src.width = random_in(8, SIDE_MAX);
    item->src.height = random_in(8, SIDE_MAX);
    if (shape == SHAPE_ANY)
        shape = (enum shape)random_in(SHAPE_AXIS, SHAPE_PIXEL);
    if (shape == SHAPE_WHOLE)
        whole_params(&params.warp, &item->src);
    else if (shape == SHAPE_AXIS)
        axis_params(&params.warp, &item->src);
    else
        params.warp.rotate = random_in(1, 179);
    source_init(item, to);

    CHECK(op_init(&item->op, &params, &item->src) == 0, "op_init");
    item->band.y1 = params.warp.height;
    if (random_in(0, 1)) {
        item->band.y0 = random_in(0, params.warp.height - 1);
        item->band.y1 = random_in(item->band.y0 + 1, params.warp.height);
    }
}

static size_t element_bytes(enum dtype dtype)
{
    return dtype == DTYPE_F32 ? 4 : dtype == DTYPE_F16 ? 2 : 1;
}

// Places the op's block and the room for its result, and computes the expected bytes.
static void item_place(struct item *item, struct cuda_item *to)
{
    const struct warp *warp = &item->op.warp;
    struct image dst;
    item->block = room_take(warp_cuda.block_bytes(&item->op), 16);
    warp_cuda.block_pack(&item->op, room.host + item->block, room.device + item->block, NULL);
    item->bytes = item->op.dst_bytes + 2 * GUARD;
    item->dst = room_take(item->bytes + 4, 16) + (random_in(0, 2) ? 0 : element_bytes(warp->dtype));
    memset(room.host + item->dst, GUARD_BYTE, item->bytes);
    item->expected = (uint8_t *)malloc(item->bytes);
    memset(item->expected, GUARD_BYTE, item->bytes);
    op_lay_out(&item->op, &dst, item->expected + GUARD);
    op_reference(&dst, &item->src, &item->op, item->band, false);

    to->dst = room.device + item->dst + GUARD;
    to->block = room.device + item->block;
    to->op = &item->op;
    to->band = item->band;
}

static void item_check(const struct item *item, int i, int n, enum shape shape)
{
    const struct warp *warp = &item->op.warp;
    size_t at = 0;
    while (at < item->bytes && item->expected[at] == room.host[item->dst + at])
        at++;
    CHECK(at == item->bytes,
          "item %d of %d, shape %d: %02x, not %02x, in byte %zd of %zu: %s %dx%d -> %dx%d dtype %d "
          "layout %d order %d, rows %d to %d",
          i, n, shape, room.host[item->dst + at], item->expected[at], (ptrdiff_t)at - GUARD,
          item->op.dst_bytes, pixel_format_name(item->src.format), item->src.width,
          item->src.height, warp->width, warp->height, warp->dtype, warp->layout, warp->order,
          item->band.y0, item->band.y1);
}

// --- launches

static void test_launch(enum pixel_format format, enum dtype dtype, enum shape shape, int n)
{
    static struct item item[CUDA_ITEMS_MAX];
    struct cuda_item items[CUDA_ITEMS_MAX];
    room.used = 0;
    for (int i = 0; i < n; i++) {
        item_init(&item[i], &items[i], format, dtype, shape);
        item_place(&item[i], &items[i]);
    }
    CHECK(!cudaMemcpy(room.device, room.host, room.used, cudaMemcpyHostToDevice), "upload");
    CHECK(!warp_cuda.launch(items, n, cudaStreamLegacy), "warp_cuda.launch");
    CHECK(!cudaMemcpy(room.host, room.device, room.used, cudaMemcpyDeviceToHost), "download");
    for (int i = 0; i < n; i++) {
        item_check(&item[i], i, n, shape);
        free(item[i].expected);
        op_finish(&item[i].op);
    }
}

int main(void)
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) || !devices) {
        SKIP("no CUDA device");
        return test_end();
    }
    CHECK(room_open(), "no memory");
    for (int i = PIXEL_NONE; i < PIXEL_FORMATS; i++) {
        const enum pixel_format format = (enum pixel_format)i;
        for (int shape = 0; shape < SHAPES && pixel_layout_of(format).uses & FORMAT_SOURCE; shape++)
            for (int n = 1; n <= CUDA_ITEMS_MAX; n++)
                TEST(test_launch(format, (enum dtype)random_in(DTYPE_U8, DTYPE_F32),
                                 (enum shape)shape, n));
    }
    room_close();
    return test_end();
}
