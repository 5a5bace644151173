// Times statistics and motion on a GPU.
//
// usage: bench-analysis [RUNS]
//
// Prints medians of RUNS launches over 1080p nv12 pictures read from memory: the sets of pictures
// take turns and are larger than the caches. Shares compare with the speed of a copy that reads and
// writes the same number of bytes. Times are the GPU's, for launches already queued; "from idle"
// includes the host's launch, with the GPU waiting for it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/launch.h"
#include "tests/kernels/random.h"

enum {
    WIDTH = 1920,
    HEIGHT = 1080,
    PITCH = 2048,
    PICTURES = 320,
    RUNS = 101,
    WARM = 3,
    QUEUE_CYCLES = 400000, // the host queues the work meanwhile
    CAMERAS = 165
};

static const size_t PICTURE = (size_t)PITCH * HEIGHT;

struct bench {
    int runs;
    uint8_t *pictures, *workspaces, *copy;
    struct luma_statistics *results;
    uint32_t *cells;
    cudaStream_t stream;
    cudaEvent_t begin, end;
};

static void try_(cudaError_t error)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "bench-analysis: %s\n", cudaGetErrorString(error));
    exit(1);
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

struct times { // us
    double median, least, most;
};

static __global__ void busy_kernel(long long cycles)
{
    const long long begin = clock64();
    while (clock64() - begin < cycles)
        ;
}

typedef cudaError_t work_fn(struct bench *, int run, void *);

// `prepare` is not timed; NULL: nothing to prepare.
static struct times time_work(struct bench *b, work_fn *prepare, work_fn *work, void *argument,
                              bool from_idle)
{
    float *us = (float *)malloc((size_t)b->runs * sizeof *us);
    for (int i = 0; i < b->runs + WARM; i++) {
        float ms = 0;
        if (prepare)
            try_(prepare(b, i, argument));
        try_(cudaStreamSynchronize(b->stream));
        if (!from_idle)
            busy_kernel<<<1, 1, 0, b->stream>>>(QUEUE_CYCLES);
        try_(cudaEventRecord(b->begin, b->stream));
        try_(work(b, i, argument));
        try_(cudaEventRecord(b->end, b->stream));
        try_(cudaEventSynchronize(b->end));
        try_(cudaEventElapsedTime(&ms, b->begin, b->end));
        if (i >= WARM)
            us[i - WARM] = ms * 1e3f;
    }
    qsort(us, (size_t)b->runs, sizeof *us, ascending);
    const struct times times = {us[b->runs / 2], us[0], us[b->runs - 1]};
    free(us);
    return times;
}

static struct image image_of(void)
{
    struct image image = {};
    image.format = PIXEL_NV12;
    image.width = WIDTH;
    image.height = HEIGHT;
    return image;
}

// --- statistics

struct launch {
    struct statistics statistics;
    int n;
};

static cudaError_t statistics_work(struct bench *b, int run, void *argument)
{
    const struct launch *l = (const struct launch *)argument;
    static struct statistics_cuda_picture pictures[PICTURES];
    for (int i = 0; i < l->n; i++) {
        const int k = (run * l->n + i) % PICTURES;
        struct statistics_cuda_picture *p = &pictures[i];
        p->statistics = &l->statistics;
        p->src = image_of();
        p->src.plane[0] = {b->pictures + k * PICTURE, PITCH};
        p->workspace = b->workspaces + (size_t)k * STATISTICS_CUDA_BYTES;
        p->ret = &b->results[k];
        p->cells = b->cells + (size_t)k * l->statistics.columns * l->statistics.rows;
    }
    return statistics_cuda_launch(pictures, l->n, b->stream);
}

static cudaError_t copy_work(struct bench *b, int run, void *argument)
{
    const int n = *(const int *)argument, at = run * n % PICTURES;
    return cudaMemcpy2DAsync(b->copy, WIDTH, b->pictures + at * PICTURE, PITCH, WIDTH,
                             (size_t)HEIGHT * (at + n <= PICTURES ? n : PICTURES - at),
                             cudaMemcpyDeviceToDevice, b->stream);
}

static cudaError_t large_copy_work(struct bench *b, int, void *)
{
    const size_t half = PICTURES / 2 * PICTURE;
    return cudaMemcpyAsync(b->pictures + half, b->pictures, half, cudaMemcpyDeviceToDevice,
                           b->stream);
}

static void time_statistics(struct bench *b, double rate, bool all, int n)
{
    struct launch launch = {};
    struct statistics_params params = {};
    const struct image image = image_of();
    params.black = 16;
    params.white = 235;
    params.all = all;
    statistics_init(&launch.statistics, &params, &image);
    launch.n = n;
    const struct times times = time_work(b, NULL, statistics_work, &launch, false);
    const struct times idle = time_work(b, NULL, statistics_work, &launch, true);
    printf(
        "%-10s %3d a launch: %6.2f us a picture (least %.2f), %5.1f %% of copy; from idle %.2f\n",
        all ? "everything" : "light", n, times.median / n, times.least / n,
        100 * (WIDTH * HEIGHT / rate * 1e6) / times.median * n, idle.median / n);
}

static void bench_statistics(struct bench *b, const char *what)
{
    int n = 32;
    const double half = PICTURES / 2.0 * PICTURE;
    const double rate = 2 * half / (time_work(b, NULL, large_copy_work, NULL, false).median / 1e6);
    printf("%s\ncopy: %.0f GB/s read and written; of 32 pictures %.2f us each\n", what, rate / 1e9,
           time_work(b, NULL, copy_work, &n, false).median / n);
    for (int all = 0; all < 2; all++) {
        static const int counts[] = {1, 8, 32, 128};
        for (int i = 0; i < 4; i++)
            time_statistics(b, rate, all, counts[i]);
    }
}

// --- motion

struct cameras {
    struct motion motion;
    struct motion_cuda camera[CAMERAS];
    const struct motion_cuda *pointers[CAMERAS];
    uint8_t *memory;
    uint32_t *sums, *lights[2]; // for all cameras: the sums they read, two variants of light
    size_t bytes;               // size of one set of sums
    int n;                      // number of cameras in a step
    bool changing;              // the light alternates between steps
};

static void cameras_init(struct cameras *c, cudaStream_t stream)
{
    struct motion_params params = motion_defaults();
    struct statistics statistics;
    struct statistics_params grid = {};
    struct random random = {1};
    grid.white = 255;
    const struct image image = image_of();
    statistics_init(&statistics, &grid, &image);
    motion_init(&c->motion, &params, &statistics, NULL);
    const int cells = c->motion.columns * c->motion.rows;
    const size_t bytes = motion_cuda_bytes(&c->motion);
    const size_t found = (motion_changes_bytes(&c->motion) + 255) / 256 * 256;
    c->bytes = (size_t)cells * CAMERAS * sizeof *c->sums;
    uint32_t *host = (uint32_t *)malloc(c->bytes);
    try_(cudaMalloc((void **)&c->memory, (bytes + found) * CAMERAS));
    try_(cudaMalloc((void **)&c->sums, c->bytes));
    for (int light = 0; light < 2; light++) {
        const int area = WIDTH / c->motion.columns * HEIGHT / c->motion.rows;
        for (int i = 0; i < cells * CAMERAS; i++)
            host[i] = (uint32_t)((60 + i % 90) * area + random_in(&random, 0, area)) *
                      (light ? 11 : 10) / 10;
        try_(cudaMalloc((void **)&c->lights[light], c->bytes));
        try_(cudaMemcpy(c->lights[light], host, c->bytes, cudaMemcpyHostToDevice));
    }
    for (int i = 0; i < CAMERAS; i++) {
        uint8_t *changes = c->memory + bytes * CAMERAS + i * found;
        try_(motion_cuda_init(&c->camera[i], &c->motion, c->memory + i * bytes, c->sums + i * cells,
                              (struct motion_changes *)changes, stream));
        c->pointers[i] = &c->camera[i];
    }
    free(host);
}

static cudaError_t motion_prepare(struct bench *b, int run, void *argument)
{
    const struct cameras *c = (const struct cameras *)argument;
    return cudaMemcpyAsync(c->sums, c->lights[c->changing ? run % 2 : 0], c->bytes,
                           cudaMemcpyDeviceToDevice, b->stream);
}

static cudaError_t motion_work(struct bench *b, int, void *argument)
{
    const struct cameras *c = (const struct cameras *)argument;
    return motion_cuda_launch(c->pointers, c->n, b->stream);
}

static void bench_motion(struct bench *b)
{
    static struct cameras cameras;
    cameras_init(&cameras, b->stream);
    for (int changing = 0; changing < 2; changing++)
        for (int n = 1; n <= CAMERAS; n += CAMERAS - 1) {
            struct times times, idle;
            cameras.n = n;
            cameras.changing = changing;
            times = time_work(b, motion_prepare, motion_work, &cameras, false);
            idle = time_work(b, motion_prepare, motion_work, &cameras, true);
            printf("motion, %d x %d cells, %s: %3d cameras %.1f us (least %.1f, most %.1f), "
                   "from idle %.1f\n",
                   cameras.motion.columns, cameras.motion.rows,
                   changing ? "another light each time" : "still", n, times.median, times.least,
                   times.most, idle.median);
        }
}

// --- all

static void pictures_fill(struct bench *b, bool noise)
{
    struct random random = {1};
    uint8_t *host = (uint8_t *)malloc(PICTURE);
    for (size_t i = 0; i < PICTURE; i++)
        host[i] = noise ? (uint8_t)random_next(&random)
                        : (uint8_t)(60 + i % PITCH / 12 + (random_next(&random) & 7));
    for (int i = 0; i < PICTURES; i++)
        try_(cudaMemcpy(b->pictures + i * PICTURE, host, PICTURE, cudaMemcpyHostToDevice));
    free(host);
}

int main(int argc, char **argv)
{
    struct bench b = {};
    b.runs = argc > 1 && atoi(argv[1]) > 0 ? atoi(argv[1]) : RUNS;
    try_(cudaMalloc((void **)&b.pictures, PICTURES * PICTURE));
    try_(cudaMalloc((void **)&b.copy, PICTURES * PICTURE));
    try_(cudaMalloc((void **)&b.workspaces, PICTURES * STATISTICS_CUDA_BYTES));
    try_(cudaMemset(b.workspaces, 0, PICTURES * STATISTICS_CUDA_BYTES));
    try_(cudaMalloc((void **)&b.results, PICTURES * sizeof *b.results));
    try_(cudaMalloc((void **)&b.cells, PICTURES * 160 * 90 * sizeof *b.cells));
    try_(cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking));
    try_(cudaEventCreate(&b.begin));
    try_(cudaEventCreate(&b.end));
    try_(statistics_cuda_load());
    try_(motion_cuda_load());
    pictures_fill(&b, true);
    bench_statistics(&b, "noise");
    pictures_fill(&b, false);
    bench_statistics(&b, "slopes");
    bench_motion(&b);
    return 0;
}
