// bench-peers: our kernels next to a user's alternatives, on one core, on one real 1080p picture,
// in one run. `make bench-peers` builds and runs it.
#include <errno.h>
#include <getopt.h>
#include <glob.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/versions.h"
#include "tests/bench/peers/race.h"

static const char default_clips[] = "../shared/media/*.mp4";

struct options {
    const char *clip, *only;
    int cpu; // -1: the last one available to this process
};

// --- rows

static const char *const dtypes[] = {"u8", "s8", "f16", "f32"};
static const enum dtype measured[] = {DTYPE_U8, DTYPE_F16, DTYPE_F32};

static struct op_params warp_params(int side, enum dtype dtype, enum layout layout)
{
    struct op_params params = {.kind = OP_WARP,
                               .warp = {.width = side,
                                        .height = side,
                                        .dtype = dtype,
                                        .layout = layout,
                                        .fill = {114, 114, 114},
                                        .scale = dtype == DTYPE_U8 ? 1 : 1 / 255.0,
                                        .std = {1, 1, 1}}};
    return params;
}

// u8 is packed like the libraries' results; floats are planar as detectors expect.
static struct row letterbox(int side, enum pixel_format source, enum dtype dtype, bool cold)
{
    const bool u8 = dtype == DTYPE_U8;
    struct row row = {.source = source, .cold = cold, .limit = u8 ? "libyuv" : "memory"};
    row.params = warp_params(side, dtype, u8 ? LAYOUT_NHWC : LAYOUT_NCHW);
    snprintf(row.name, sizeof row.name, "letterbox %dx%d, %s to %s %s, %s", side, side,
             pixel_format_name(source), dtypes[dtype], u8 ? "packed" : "planar",
             cold ? "cold" : "hot");
    if (side == 608 && u8)
        row.goal = (struct goal){0.30, 0.40};
    else if (side == 640 && u8 && !cold)
        row.goal = (struct goal){0.60, 0.90};
    else if (side == 640 && !u8)
        row.goal = cold ? (struct goal){0.45, 0.50} : (struct goal){0.66, 0.80};
    return row;
}

// Rotates by 10 degrees around the centre, to a third of the size.
static struct row rotated(enum pixel_format source, enum dtype dtype)
{
    const double angle = 10 * M_PI / 180, a = cos(angle) / 3, b = sin(angle) / 3;
    const double x = (CLIP_WIDTH - 1) / 2.0, y = (CLIP_HEIGHT - 1) / 2.0, to = (640 - 1) / 2.0;
    const double matrix[6] = {a, -b, to - a * x + b * y, b, a, to - b * x - a * y};
    struct row row = {.source = source, .limit = "scalar"};
    row.params = warp_params(640, dtype, LAYOUT_NCHW);
    row.params.warp.has_affine = true;
    memcpy(row.params.warp.affine, matrix, sizeof matrix);
    snprintf(row.name, sizeof row.name, "rotated by 10 degrees, a third, %s to %s planar, hot",
             pixel_format_name(source), dtypes[dtype]);
    if (dtype == DTYPE_U8)
        row.goal = (struct goal){0.12, 0.15};
    return row;
}

static struct row converted(enum pixel_format format, enum matrix matrix)
{
    const bool packed = format == PIXEL_YUV24;
    struct row row = {.source = PIXEL_BGRA, .limit = packed ? "copy" : "libyuv"};
    row.params =
        (struct op_params){.kind = OP_YUV, .yuv = {.format = format, .colour.matrix = matrix}};
    row.goal = packed ? (struct goal){0.95, 1.50} : (struct goal){0.75, 1.00};
    snprintf(row.name, sizeof row.name, "bgra to %s, %s, hot", pixel_format_name(format),
             matrix == MATRIX_BT601 ? "bt601" : "bt601-8bit");
    return row;
}

enum { ROWS_MAX = 64 };

static int list_rows(struct row rows[ROWS_MAX])
{
    static const enum pixel_format sources[] = {PIXEL_YUV420P, PIXEL_NV12};
    int n = 0;
    for (int s = 0; s < 2; s++)
        for (int d = 0; d < 3; d++) {
            rows[n++] = letterbox(640, sources[s], measured[d], false);
            rows[n++] = letterbox(640, sources[s], measured[d], true);
            rows[n++] = letterbox(608, sources[s], measured[d], false);
            rows[n++] = rotated(sources[s], measured[d]);
        }
    rows[n++] = converted(PIXEL_YUV24, MATRIX_BT601);
    rows[n++] = converted(PIXEL_YUV24, MATRIX_BT601_8BIT);
    rows[n++] = converted(PIXEL_NV12, MATRIX_BT601);
    rows[n++] = converted(PIXEL_NV12, MATRIX_BT601_8BIT);
    return n;
}

// --- the run

static int pin(int *cpu)
{
    cpu_set_t set;
    if (*cpu < 0) {
        if (sched_getaffinity(0, sizeof set, &set) != 0)
            return -errno;
        for (int i = 0; i < CPU_SETSIZE; i++)
            if (CPU_ISSET(i, &set))
                *cpu = i;
    }
    CPU_ZERO(&set);
    CPU_SET(*cpu, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0 ? 0 : -errno;
}

struct clips {
    struct clip yuv420p, nv12, bgra;
};

static const struct clip *clip_in(const struct clips *clips, enum pixel_format format)
{
    return format == PIXEL_NV12   ? &clips->nv12
           : format == PIXEL_BGRA ? &clips->bgra
                                  : &clips->yuv420p;
}

static int open_clips(struct clips *clips, const char *path)
{
    int rc = clip_open(&clips->yuv420p, path);
    if (rc >= 0)
        rc = clip_convert(&clips->nv12, &clips->yuv420p, PIXEL_NV12);
    if (rc >= 0)
        rc = clip_convert(&clips->bgra, &clips->yuv420p, PIXEL_BGRA);
    if (rc < 0)
        fprintf(stderr, "bench-peers: %s: no picture could be decoded\n", path);
    return rc;
}

static int run_rows(struct race *race, const struct clips *clips, const char *only)
{
    static struct row rows[ROWS_MAX];
    const int n = list_rows(rows);
    int rc = 0;
    printf("%-12s %9s %9s %11s %10s  %s\n", "cpu ms", "median", "min", "to limit", "of minima",
           "to reach");
    for (int i = 0; rc == 0 && i < n; i++)
        if (!only || strstr(rows[i].name, only))
            rc = race_run(race, &rows[i], clip_in(clips, rows[i].source));
    if (rc < 0)
        fprintf(stderr, "bench-peers: %s\n", strerror(-rc));
    printf("%d of %d reached, %d wrong\n", race->reached, race->goals, race->wrong);
    return rc;
}

static int measure(const struct options *options)
{
    struct clips clips = {0};
    struct race race;
    int cpu = options->cpu, rc = pin(&cpu);
    if (rc < 0) {
        fprintf(stderr, "bench-peers: --cpu %d: %s\n", cpu, strerror(-rc));
        return EXIT_FAILURE;
    }
    printf("bench-peers: %s as %dx%d, one thread on processor %d, best version %s\n", options->clip,
           CLIP_WIDTH, CLIP_HEIGHT, cpu, version_find(NULL)->name);
    rc = race_open(&race);
    if (rc == 0)
        rc = open_clips(&clips, options->clip);
    if (rc >= 0)
        rc = run_rows(&race, &clips, options->only);
    clip_close(&clips.yuv420p);
    clip_close(&clips.nv12);
    clip_close(&clips.bgra);
    race_close(&race);
    return rc < 0 || race.wrong > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int usage(FILE *to, int code)
{
    fprintf(to,
            "usage: bench-peers [--clip FILE] [--cpu N] [--only TEXT]\n"
            "  --clip FILE  the pictures (default: the first of %s)\n"
            "  --cpu N      the processor to run on (default: the last allowed)\n"
            "  --only TEXT  the rows whose name holds it\n",
            default_clips);
    return code;
}

static bool parse(struct options *options, int argc, char **argv)
{
    static const struct option known[] = {{"clip", required_argument, NULL, 'c'},
                                          {"cpu", required_argument, NULL, 'p'},
                                          {"only", required_argument, NULL, 'o'},
                                          {0}};
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        char *end = "";
        if (option == 'c')
            options->clip = optarg;
        else if (option == 'p')
            options->cpu = (int)strtol(optarg, &end, 10);
        else if (option == 'o')
            options->only = optarg;
        if (option == '?' || *end || options->cpu >= CPU_SETSIZE)
            return false;
    }
    return optind == argc;
}

int main(int argc, char **argv)
{
    struct options options = {.cpu = -1};
    glob_t found = {0};
    if (!parse(&options, argc, argv))
        return usage(stderr, 2);
    if (!options.clip && glob(default_clips, 0, NULL, &found) == 0)
        options.clip = found.gl_pathv[0];
    if (!options.clip) {
        fputs("bench-peers: --clip FILE: real pictures are wanted\n", stderr);
        return 2;
    }
    const int code = measure(&options);
    globfree(&found);
    return code;
}
