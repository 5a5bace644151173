// Motion in a clip: reads raw 8-bit gray pictures on stdin, prints a line of JSON per picture.
//
// usage: bench-motion-clip WIDTH HEIGHT RATE [SENSITIVITY] [MIN_AREA]. The environment variable
// KERNEL selects a version of the kernel; default: the fastest.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/cpu/versions.h"
#include "kernels/motion.h"
#include "kernels/statistics.h"

struct clip {
    struct statistics statistics;
    struct motion motion;
    uint8_t *luma;
    uint32_t *sums;
    struct motion_state *state;
    struct motion_changes *changes;
    struct motion_boxes boxes;
    void *workspace;
};

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *memory(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!p) {
        fputs("bench-motion-clip: no memory\n", stderr);
        exit(1);
    }
    return memset(p, 0, bytes);
}

static struct image picture_of(const struct clip *clip, int width, int height)
{
    struct image image = {.format = PIXEL_GRAY, .width = width, .height = height};
    image.plane[0] = (struct plane){clip->luma, width};
    return image;
}

static int clip_init(struct clip *clip, int argc, char **argv)
{
    const int width = argc > 3 ? atoi(argv[1]) : 0, height = argc > 3 ? atoi(argv[2]) : 0;
    struct motion_params params = motion_defaults();
    const char *why = "";
    if (width < 1 || height < 1)
        return -1;
    params.rate_num = (int)(atof(argv[3]) * 1000 + 0.5);
    params.rate_den = params.rate_num ? 1000 : 0;
    params.sensitivity = argc > 4 ? atoi(argv[4]) : params.sensitivity;
    params.min_area = argc > 5 ? atoi(argv[5]) : 0;
    const struct statistics_params light = {.black = 16, .white = 235};
    const struct image image = picture_of(clip, width, height);
    if (statistics_init(&clip->statistics, &light, &image) ||
        motion_init(&clip->motion, &params, &clip->statistics, &why)) {
        fprintf(stderr, "bench-motion-clip: %s\n", why);
        return -1;
    }
    clip->luma = memory((size_t)width * (size_t)height);
    clip->sums = memory(sizeof(uint32_t) * MOTION_CELLS_MAX);
    clip->state = memory(motion_state_bytes(&clip->motion));
    clip->changes = memory(motion_changes_bytes(&clip->motion));
    clip->workspace = memory(motion_workspace_bytes(&clip->motion));
    return 0;
}

static void result_print(long n, const struct motion_boxes *boxes, int64_t ns)
{
    static const char *const truth[] = {"false", "true"};
    printf("{\"n\":%ld,\"changed\":%u,\"light\":%s,\"jump\":%s,\"learning\":%s,\"moving\":%s,"
           "\"boxes\":[",
           n, boxes->changed, truth[!!(boxes->flags & MOTION_LIGHT)],
           truth[!!(boxes->flags & MOTION_JUMP)], truth[!!(boxes->flags & MOTION_LEARNING)],
           truth[boxes->moving]);
    for (uint32_t i = 0; i < boxes->count; i++) {
        const struct motion_box *b = &boxes->box[i];
        printf("%s[%d,%d,%d,%d,%u]", i ? "," : "", b->x1, b->y1, b->x2, b->y2, b->cells);
    }
    printf("],\"ns\":%lld}\n", (long long)ns);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct clip clip;
    const struct version *version = version_find(getenv("KERNEL"));
    if (!version || clip_init(&clip, argc, argv)) {
        fputs("usage: bench-motion-clip WIDTH HEIGHT RATE [SENSITIVITY] [MIN_AREA] < GRAY8\n",
              stderr);
        return 1;
    }
    const struct image image = picture_of(&clip, clip.statistics.width, clip.statistics.height);
    const size_t bytes = (size_t)image.width * (size_t)image.height;
    for (long n = 0; fread(clip.luma, 1, bytes, stdin) == bytes; n++) {
        struct luma_statistics luma;
        const int64_t start = now_ns();
        version->statistics(&clip.statistics, &image, &luma, clip.sums);
        version->motion(&clip.motion, clip.state, clip.sums, clip.changes, clip.workspace);
        motion_boxes(&clip.motion, clip.changes, &clip.boxes, clip.workspace);
        result_print(n, &clip.boxes, now_ns() - start);
    }
    return 0;
}
