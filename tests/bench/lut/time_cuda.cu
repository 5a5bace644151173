// Times pictures of 1920x1080 through a colour table on a GPU.
//
// usage: bench-lut-cuda [FRAMES.rgb]
//
// FRAMES.rgb: natural pictures of that size, packed RGB; without it, slopes with noise. Each line
// is one kernel and table: microseconds per picture, medians of RUNS rounds over pictures that take
// turns and together exceed the caches, with one picture per launch in one stream and with LAUNCH
// pictures per call; next to them a copy of as many bytes as the kernel reads and writes. The
// program fails if a result differs from the CPU's in any byte.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/versions.h"
#include "kernels/cuda/cuda.h"
#include "tests/kernels/random.h"

enum { WIDTH = 1920, HEIGHT = 1080, FRAMES = 2, PICTURES = 64, LAUNCH = 32, RUNS = 31, WARM = 3 };

static const size_t RGB_BYTES = (size_t)WIDTH * HEIGHT * 3;

struct bench {
    uint8_t *rgb; // FRAMES pictures
    cudaStream_t stream;
    cudaEvent_t begin, end;
    int wrong; // number of wrong results
};

static void try_(cudaError_t error)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "bench-lut-cuda: %s\n", cudaGetErrorString(error));
    exit(1);
}

static void *device_new(size_t bytes)
{
    void *memory = NULL;
    try_(cudaMalloc(&memory, bytes));
    return memory;
}

// --- pictures

static void frames_draw(struct bench *b)
{
    struct random random = {1};
    for (size_t i = 0; i < FRAMES * RGB_BYTES; i++) {
        const int c = (int)(i % 3), x = (int)(i / 3 % WIDTH), y = (int)(i / 3 / WIDTH % HEIGHT);
        const int slope = (c + 1) * x / 32 + (3 - c) * y / 24 + (int)(i / RGB_BYTES) * 40;
        const int folded = slope % 400 < 200 ? slope % 400 : 400 - slope % 400;
        b->rgb[i] = (uint8_t)(20 + folded + (int)(random_next(&random) & 7));
    }
}

static void frames_read(struct bench *b, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fread(b->rgb, RGB_BYTES, FRAMES, file) != FRAMES) {
        fprintf(stderr, "bench-lut-cuda: %s: not %d pictures\n", path, FRAMES);
        exit(1);
    }
    fclose(file);
}

static struct image rgb_image(const struct bench *b, int frame)
{
    struct image image = {};
    image.format = PIXEL_RGB24;
    image.width = WIDTH;
    image.height = HEIGHT;
    image_lay_out(&image, b->rgb + frame * RGB_BYTES);
    return image;
}

// Returns a frame in another format, tight, on the host.
static struct image frame_as(const struct bench *b, int frame, enum pixel_format format)
{
    const struct image rgb = rgb_image(b, frame);
    struct image image = rgb;
    image.format = format;
    uint8_t *memory = (uint8_t *)malloc(image_lay_out(&image, NULL));
    image_lay_out(&image, memory);
    if (format == PIXEL_BGRA) {
        for (size_t i = 0; i < RGB_BYTES / 3; i++)
            for (int c = 0; c < 4; c++)
                memory[4 * i + c] = c == 3 ? 255 : rgb.plane[0].data[3 * i + 2 - c];
        return image;
    }
    struct op op;
    struct op_params params = {};
    const struct band all = {0, HEIGHT};
    params.kind = OP_YUV;
    params.yuv.format = format;
    if (op_init(&op, &params, &rgb) != 0)
        exit(1);
    op_reference(&image, &rgb, &op, all, false);
    op_finish(&op);
    return image;
}

// --- tables

// Makes a grade that mixes the channels and bends each.
static struct lut *lut_graded(int points, enum lut_interpolation interpolation)
{
    struct lut_params params = {};
    struct lut *lut = NULL;
    float *nodes = (float *)malloc((size_t)points * points * points * 3 * sizeof *nodes);
    for (int i = 0; i < points * points * points; i++) {
        const float r = (float)(i % points) / (float)(points - 1);
        const float g = (float)(i / points % points) / (float)(points - 1);
        const float b = (float)(i / points / points) / (float)(points - 1);
        nodes[3 * i] = 0.8f * r * (1.6f - 0.6f * r) + 0.2f * g;
        nodes[3 * i + 1] = 0.9f * g * (0.5f + 0.5f * g) + 0.1f * b;
        nodes[3 * i + 2] = 0.3f + 0.5f * b + 0.2f * r * g;
    }
    params.points = points;
    params.nodes = nodes;
    params.interpolation = interpolation;
    for (int c = 0; c < 3; c++)
        params.last[c] = 1;
    if (lut_make(&lut, &params) != 0)
        exit(1);
    free(nodes);
    return lut;
}

// --- one kernel

struct work {
    struct op op;
    struct cuda_item items[PICTURES];
    struct image frame[FRAMES]; // on the host
    size_t source_bytes;
    uint8_t *sources, *results, *block, *lut, *copies;
    int launch; // pictures per call
};

static const struct cuda_op *kernels_of(const struct work *w)
{
    return cuda_ops[w->op.kind];
}

static void tables_place(struct work *w, const struct lut *lut)
{
    const size_t bytes = kernels_of(w)->block_bytes(&w->op);
    uint8_t *host = (uint8_t *)calloc(1, bytes + 16);
    w->block = (uint8_t *)device_new(bytes + 16);
    if (lut) {
        w->lut = (uint8_t *)device_new(lut_bytes(lut));
        try_(cudaMemcpy(w->lut, lut, lut_bytes(lut), cudaMemcpyHostToDevice));
    }
    kernels_of(w)->block_pack(&w->op, host, w->block, (const struct lut *)w->lut);
    try_(cudaMemcpy(w->block, host, bytes, cudaMemcpyHostToDevice));
    free(host);
}

static void work_init(struct work *w, const struct bench *b, enum pixel_format source,
                      const struct op_params *params, const struct lut *lut)
{
    memset(w, 0, sizeof *w);
    for (int i = 0; i < FRAMES; i++)
        w->frame[i] = frame_as(b, i, source);
    if (op_init(&w->op, params, &w->frame[0]) != 0)
        exit(1);
    struct image layout = w->frame[0];
    w->source_bytes = image_lay_out(&layout, NULL);
    w->sources = (uint8_t *)device_new(PICTURES * w->source_bytes);
    w->results = (uint8_t *)device_new(PICTURES * w->op.dst_bytes);
    w->copies = (uint8_t *)device_new(PICTURES * (w->source_bytes + w->op.dst_bytes));
    tables_place(w, lut);
    for (int i = 0; i < PICTURES; i++) {
        struct cuda_item *item = &w->items[i];
        item->src = layout;
        image_lay_out(&item->src, w->sources + i * w->source_bytes);
        item->src.memory = MEMORY_CUDA;
        item->dst = w->results + i * w->op.dst_bytes;
        item->block = w->block;
        item->op = &w->op;
        item->band.y1 = w->op.dst.height;
        try_(cudaMemcpy(item->src.plane[0].data, w->frame[i % FRAMES].plane[0].data,
                        w->source_bytes, cudaMemcpyHostToDevice));
    }
    try_(kernels_of(w)->load(&w->op));
}

static void work_finish(struct work *w)
{
    for (int i = 0; i < FRAMES; i++)
        free(w->frame[i].plane[0].data);
    cudaFree(w->sources);
    cudaFree(w->results);
    cudaFree(w->copies);
    cudaFree(w->block);
    cudaFree(w->lut);
    op_finish(&w->op);
}

typedef cudaError_t round_fn(struct bench *, const struct work *);

static cudaError_t kernel_round(struct bench *b, const struct work *w)
{
    for (int i = 0; i < PICTURES; i += w->launch)
        CUDA_TRY(kernels_of(w)->launch(w->items + i, w->launch, b->stream));
    return cudaSuccess;
}

// Copies half of the bytes, so that reads and writes together equal the kernel's.
static cudaError_t copy_round(struct bench *b, const struct work *w)
{
    const size_t half = (w->source_bytes + w->op.dst_bytes) / 2;
    for (int i = 0; i < PICTURES; i++)
        CUDA_TRY(cudaMemcpyAsync(w->copies + 2 * i * half, w->copies + (2 * i + 1) * half, half,
                                 cudaMemcpyDeviceToDevice, b->stream));
    return cudaSuccess;
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

// Returns microseconds per picture without the host's launch cost.
static float time_round(struct bench *b, const struct work *w, round_fn *round)
{
    float us[RUNS];
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    try_(cudaStreamBeginCapture(b->stream, cudaStreamCaptureModeThreadLocal));
    try_(round(b, w));
    try_(cudaStreamEndCapture(b->stream, &graph));
    try_(cudaGraphInstantiate(&ready, graph, 0));
    for (int i = -WARM; i < RUNS; i++) {
        float ms;
        try_(cudaEventRecord(b->begin, b->stream));
        try_(cudaGraphLaunch(ready, b->stream));
        try_(cudaEventRecord(b->end, b->stream));
        try_(cudaEventSynchronize(b->end));
        try_(cudaEventElapsedTime(&ms, b->begin, b->end));
        if (i >= 0)
            us[i] = ms * 1e3f / PICTURES;
    }
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
    qsort(us, RUNS, sizeof *us, ascending);
    return us[RUNS / 2];
}

// Counts pictures whose result differs from the CPU's.
static int count_wrong(const struct work *w)
{
    uint8_t *expected = (uint8_t *)malloc(w->op.dst_bytes);
    uint8_t *got = (uint8_t *)malloc(w->op.dst_bytes);
    const struct band all = {0, w->op.dst.height};
    const struct version *version = versions[0];
    int wrong = 0;
    for (int i = 0; !version->runs(); version = versions[++i])
        ;
    for (int i = 0; i < FRAMES; i++) {
        struct image dst;
        op_lay_out(&w->op, &dst, expected);
        version->run[w->op.kind](&dst, &w->frame[i], &w->op, all, false);
        for (int k = i; k < PICTURES; k += FRAMES) {
            try_(cudaMemcpy(got, w->items[k].dst, w->op.dst_bytes, cudaMemcpyDeviceToHost));
            wrong += memcmp(got, expected, w->op.dst_bytes) != 0;
        }
    }
    free(expected);
    free(got);
    return wrong;
}

static void measure(struct bench *b, const char *name, const char *table, enum pixel_format source,
                    const struct op_params *params, const struct lut *lut)
{
    struct work w;
    work_init(&w, b, source, params, lut);
    float us[2];
    for (int i = 0; i < 2; i++) {
        w.launch = i ? LAUNCH : 1;
        try_(cudaMemset(w.results, 0x5A, PICTURES * w.op.dst_bytes));
        us[i] = time_round(b, &w, kernel_round);
    }
    const float copy = time_round(b, &w, copy_round);
    const int wrong = count_wrong(&w);
    printf("%-26s %-14s %6.2f us alone, %6.2f of %d, copy %5.2f%s\n", name, table, us[0], us[1],
           LAUNCH, copy, wrong ? ", WRONG BYTES" : "");
    fflush(stdout);
    b->wrong += wrong;
    work_finish(&w);
}

// --- all

static struct op_params yuv_of(const struct lut *lut)
{
    struct op_params params = {};
    params.kind = OP_YUV;
    params.yuv.format = PIXEL_NV12;
    params.yuv.colour.range = RANGE_FULL; // forces a conversion of colours even without a table
    params.yuv.geometry.lut = lut;
    return params;
}

static struct op_params warp_of(const struct lut *lut, int width, int height, enum filter filter)
{
    struct op_params params = {};
    params.kind = OP_WARP;
    params.warp.width = width;
    params.warp.height = height;
    params.warp.filter = filter;
    params.warp.scale = 1;
    for (int c = 0; c < 3; c++)
        params.warp.std[c] = 1;
    params.warp.lut = lut;
    return params;
}

static void measure_table(struct bench *b, const char *table, const struct lut *lut)
{
    const struct op_params yuv = yuv_of(lut), warp = warp_of(lut, WIDTH, HEIGHT, FILTER_BILINEAR);
    const struct op_params half = warp_of(lut, WIDTH / 3 * 2, HEIGHT / 3 * 2, FILTER_BILINEAR);
    const struct op_params area = warp_of(lut, WIDTH / 3 * 2, HEIGHT / 3 * 2, FILTER_AREA);
    measure(b, "yuv, bgra to nv12", table, PIXEL_BGRA, &yuv, lut);
    measure(b, "yuv, nv12 to nv12", table, PIXEL_NV12, &yuv, lut);
    measure(b, "warp, bgra to u8", table, PIXEL_BGRA, &warp, lut);
    measure(b, "warp, nv12 to u8", table, PIXEL_NV12, &warp, lut);
    measure(b, "warp, nv12 to u8 720p", table, PIXEL_NV12, &half, lut);
    measure(b, "warp, nv12 to u8 720p area", table, PIXEL_NV12, &area, lut);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int points;
        enum lut_interpolation interpolation;
    } tables[] = {{"33 trilinear", 33, LUT_TRILINEAR},
                  {"33 tetrahedral", 33, LUT_TETRAHEDRAL},
                  {"65 trilinear", 65, LUT_TRILINEAR}};
    struct bench b = {};
    b.rgb = (uint8_t *)malloc(FRAMES * RGB_BYTES);
    if (argc > 1)
        frames_read(&b, argv[1]);
    else
        frames_draw(&b);
    try_(cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking));
    try_(cudaEventCreate(&b.begin));
    try_(cudaEventCreate(&b.end));
    measure_table(&b, "none", NULL);
    for (const auto &table : tables) {
        struct lut *lut = lut_graded(table.points, table.interpolation);
        measure_table(&b, table.name, lut);
        lut_unref(lut);
    }
    if (b.wrong)
        fprintf(stderr, "bench-lut-cuda: %d pictures are wrong\n", b.wrong);
    free(b.rgb);
    return b.wrong ? 1 : 0;
}
