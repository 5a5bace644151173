// bench-statistics: statistics of a 1080p luma on one core, next to a plain read of it, OpenCV's
// calls and ffmpeg's signalstats. `make bench-statistics` makes the clip and runs it.
//
// usage: bench-statistics CLIP    64 pictures of 1920x1080 yuv420p, raw
//
// All take turns. "hot": the best time over one repeated picture. "memory": PICTURES consecutive
// pictures, more than the caches hold; the median over pictures of each one's best time of ROUNDS.
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/cpu/versions.h"
#include "tests/bench/peers/times.h"
#include "tests/bench/statistics/peer.h"

enum { WIDTH = 1920, HEIGHT = 1080, LUMA = WIDTH * HEIGHT, CLIP = 64 };
enum { PICTURES = TIMES_MAX, HOT_TIMES = 200, ROUNDS = 6, ROWS_MAX = 16 };

struct row {
    char name[24];
    bool all, opencv;
    const struct version *version; // NULL without opencv: a plain read only
    double hot, memory[PICTURES];
};

struct bench {
    uint8_t *luma;                   // PICTURES tight pictures
    struct statistics statistics[2]; // the light pass, all
    struct row row[ROWS_MAX];
    int rows;
};

// --- the timed work

typedef uint64_t line __attribute__((vector_size(64), aligned(1), may_alias));

#ifdef __x86_64__
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static uint64_t
read_sum(const uint8_t *luma)
{
    line sum[4] = {0};
    for (int i = 0; i < LUMA; i += 4 * (int)sizeof(line))
        for (int k = 0; k < 4; k++)
            sum[k] += *(const line *)(luma + i + k * (int)sizeof(line));
    sum[0] += sum[1] + sum[2] + sum[3];
    return sum[0][0] + sum[0][1] + sum[0][2] + sum[0][3] + sum[0][4] + sum[0][5] + sum[0][6] +
           sum[0][7];
}

static void run(const struct bench *bench, const struct row *row, const uint8_t *luma)
{
    static uint32_t cells[STATISTICS_CELLS_MAX * STATISTICS_CELLS_MAX];
    uint64_t kept = 0;
    struct opencv_statistics opencv;
    struct luma_statistics statistics;
    const struct image image = {.format = PIXEL_GRAY,
                                .width = WIDTH,
                                .height = HEIGHT,
                                .plane = {{(uint8_t *)luma, WIDTH}}};
    if (row->opencv)
        opencv_statistics(luma, WIDTH, HEIGHT, row->all, &opencv);
    else if (row->version)
        row->version->statistics(&bench->statistics[row->all], &image, &statistics, cells);
    else
        kept = read_sum(luma);
    __asm__ volatile("" ::"r"(kept)); // keeps the sum from being optimised away
}

static double time_of(const struct bench *bench, const struct row *row, const uint8_t *luma)
{
    const double begin = clock_ms(CLOCK_MONOTONIC);
    run(bench, row, luma);
    return clock_ms(CLOCK_MONOTONIC) - begin;
}

static void time_row(const struct bench *bench, struct row *row, bool first)
{
    for (int i = 0; i < PICTURES; i++) {
        const double ms = time_of(bench, row, bench->luma + (size_t)i * LUMA);
        row->memory[i] = first || ms < row->memory[i] ? ms : row->memory[i];
    }
    run(bench, row, bench->luma);
    for (int i = 0; i < (row->opencv ? HOT_TIMES / 10 : HOT_TIMES); i++) {
        const double ms = time_of(bench, row, bench->luma);
        row->hot = (first && i == 0) || ms < row->hot ? ms : row->hot;
    }
}

// Returns ffmpeg's processor time in seconds for the clip through a filter; negative: it failed.
static double ffmpeg_seconds(const char *clip, const char *filter)
{
    const char *const arguments[] = {
        "ffmpeg", "-v",  "error", "-filter_threads", "1", "-f", "rawvideo", "-s", "1920x1080", "-i",
        clip,     "-vf", filter,  "-threads",        "1", "-f", "null",     "-",  NULL,
    };
    struct rusage usage;
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        execvp(arguments[0], (char *const *)arguments);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &usage) < 0 || status != 0)
        return -1;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

// --- the values

static bool values_are_opencvs(const struct bench *bench, const struct version *version)
{
    static uint32_t cells[STATISTICS_CELLS_MAX * STATISTICS_CELLS_MAX];
    const double pixels = LUMA;
    int wrong = 0;
    for (int i = 0; i < CLIP; i++) {
        struct image image = {.format = PIXEL_GRAY, .width = WIDTH, .height = HEIGHT};
        uint8_t grid[STATISTICS_COLUMNS * STATISTICS_ROWS];
        struct opencv_statistics o;
        struct luma_statistics s;
        image.plane[0] = (struct plane){bench->luma + (size_t)i * LUMA, WIDTH};
        version->statistics(&bench->statistics[true], &image, &s, cells);
        statistics_grid(&bench->statistics[true], cells, grid);
        opencv_statistics(image.plane[0].data, WIDTH, HEIGHT, true, &o);
        const double mean = (double)s.sum / pixels;
        wrong += fabs(mean - o.mean) > 1e-9 || s.min != o.min || s.max != o.max ||
                 fabs(sqrt((double)s.squares / pixels - mean * mean) - o.deviation) > 1e-9 ||
                 fabs((double)s.laplacian / pixels - o.laplacian) > 1e-9;
        for (int k = 0; k < STATISTICS_BINS; k++)
            wrong += (double)s.histogram[k] != (double)o.histogram[k];
        for (int k = 0; k < STATISTICS_COLUMNS * STATISTICS_ROWS; k++)
            wrong += abs(grid[k] - o.grid[k]) > 1; // OpenCV rounds a float, half to even
    }
    return wrong == 0;
}

// --- the table

static void add_row(struct bench *bench, bool all, bool opencv, const struct version *version)
{
    struct row *row = &bench->row[bench->rows++];
    *row = (struct row){.all = all, .opencv = opencv, .version = version};
    if (opencv || version)
        snprintf(row->name, sizeof row->name, "%s, %s", opencv ? "OpenCV" : version->name,
                 all ? "everything" : "light pass");
    else
        snprintf(row->name, sizeof row->name, "reading it");
}

static double median_of(const struct row *row)
{
    struct times times = {.n = PICTURES};
    memcpy(times.ms, row->memory, sizeof times.ms);
    times_sum_up(&times);
    return times.median;
}

// Prints each row relative to the first, the plain read, and to OpenCV's row of the same pass.
static void print(const struct bench *bench, double ffmpeg_ms)
{
    const struct row *opencv = &bench->row[1];
    printf("%-22s %8s %9s %10s %14s\n", "ms a 1080p luma", "hot", "memory", "x reading",
           "x OpenCV");
    for (int i = 0; i < bench->rows; i++) {
        const struct row *row = &bench->row[i];
        const double memory = median_of(row);
        printf("%-22s %8.4f %9.4f %10.2f", row->name, row->hot, memory,
               memory / median_of(&bench->row[0]));
        if (row->version)
            printf(" %14.3f", memory / median_of(&opencv[row->all]));
        putchar('\n');
    }
    if (ffmpeg_ms >= 0)
        printf("%-22s %8s %9.4f %10.2f\n", "ffmpeg's signalstats", "", ffmpeg_ms,
               ffmpeg_ms / median_of(&bench->row[0]));
}

static int clip_read(struct bench *bench, const char *path)
{
    FILE *file = fopen(path, "rb");
    int rc = file ? 0 : -errno;
    for (int i = 0; i < CLIP && rc == 0; i++)
        if (fread(bench->luma + (size_t)i * LUMA, 1, LUMA, file) != LUMA ||
            fseek(file, LUMA / 2, SEEK_CUR) != 0)
            rc = -ENODATA;
    for (int i = CLIP; i < PICTURES && rc == 0; i++)
        memcpy(bench->luma + (size_t)i * LUMA, bench->luma + (size_t)(i % CLIP) * LUMA, LUMA);
    if (file)
        fclose(file);
    return rc;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    bench.luma = aligned_alloc(4096, (size_t)PICTURES * LUMA);
    int rc = argc != 2 ? -EINVAL : bench.luma ? clip_read(&bench, argv[1]) : -ENOMEM;
    if (rc < 0) {
        fprintf(stderr, "usage: bench-statistics CLIP (64 raw pictures of 1920x1080): %s\n",
                strerror(-rc));
        free(bench.luma);
        return 2;
    }
    const struct image image = {.format = PIXEL_GRAY, .width = WIDTH, .height = HEIGHT};
    for (int all = 0; all < 2; all++)
        statistics_init(&bench.statistics[all], &(struct statistics_params){0, 0, 16, 235, all},
                        &image);
    add_row(&bench, false, false, NULL);
    add_row(&bench, false, true, NULL);
    add_row(&bench, true, true, NULL);
    for (int i = 0; versions[i]->statistics != statistics_reference; i++)
        for (int all = 0; all < 2 && versions[i]->runs(); all++)
            add_row(&bench, all, false, versions[i]);
    const bool equal = values_are_opencvs(&bench, version_find(NULL));
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < bench.rows; i++)
            time_row(&bench, &bench.row[i], round == 0);
    const double with = ffmpeg_seconds(argv[1], "signalstats"),
                 without = ffmpeg_seconds(argv[1], "null");
    print(&bench, with < 0 || without < 0 ? -1 : (with - without) * 1e3 / CLIP);
    printf("values %s\n", equal ? "equal OpenCV's" : "differ from OpenCV's");
    free(bench.luma);
    return !equal;
}
