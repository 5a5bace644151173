// Rows: pictures of 32 cameras that are ready at once on the device: one job each, as in the
// daemon, next to one launch for all, which would need a collector.
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "tests/bench/bench.h"
#include "tests/bench/sample.h"

enum { ROUNDS = 101, CAMERAS = 32 };
static const char group[] = "ready";

static double median_of(const struct measure_cost costs[ROUNDS], size_t member)
{
    double each[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        each[i] = *(const double *)((const char *)&costs[i] + member) / CAMERAS;
    return sample_median(each, ROUNDS);
}

static void add_rows(struct bench *bench, const struct measure_cost jobs[ROUNDS],
                     const struct measure_cost together[ROUNDS])
{
    static const struct {
        const char *name;
        size_t member;
    } costs[] = {
        {"from the first submit to the last result", offsetof(struct measure_cost, wall)},
        {"processor time of submit", offsetof(struct measure_cost, submit)},
        {"processor time in all", offsetof(struct measure_cost, cpu)},
        {"busy time of the device's kernels", offsetof(struct measure_cost, kernel)},
    };
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
        struct row row =
            row_named(group, "a job for each of %d cameras, %s", CAMERAS, costs[i].name);
        row.value = median_of(jobs, costs[i].member) * 1e6;
        row.unit = "us";
        row_limit(&row, median_of(together, costs[i].member) * 1e6, "one launch of all");
        report_add(&bench->report, &row);
    }
}

// 1080p pictures to f16 tensors; the driver takes the sources from the host, where they are tight.
static int measure(struct bench *bench, const struct image src[CAMERAS], const struct op *op)
{
    static struct measure_cost jobs[ROUNDS], together[ROUNDS];
    int rc = bench->driver->ready(bench->device, src, CAMERAS, op, false, ROUNDS, jobs);
    if (rc == 0)
        rc = bench->driver->ready(bench->device, src, CAMERAS, op, true, ROUNDS, together);
    if (rc == 0)
        add_rows(bench, jobs, together);
    return rc;
}

int bench_ready(struct bench *bench)
{
    struct op_params params = {.kind = OP_WARP, .warp = {.width = 640, .height = 640}};
    struct image src[CAMERAS] = {{.format = PIXEL_NV12, .width = 1920, .height = 1080}};
    struct op op;
    if (!bench->device)
        return 0;
    const size_t bytes = image_lay_out(&src[0], NULL);
    uint8_t *memory = malloc(CAMERAS * bytes);
    params.warp.dtype = DTYPE_F16;
    params.warp.scale = 1 / 255.0;
    for (int i = 0; i < 3; i++)
        params.warp.std[i] = 1;
    int rc = memory ? op_init(&op, &params, &src[0]) : -ENOMEM;
    if (rc < 0) {
        free(memory);
        return rc;
    }
    for (int i = 0; i < CAMERAS && rc == 0; i++) {
        src[i] = src[0];
        image_lay_out(&src[i], memory + (size_t)i * bytes);
        rc = footage_fill(&bench->footage, i, &src[i]);
    }
    if (rc == 0)
        rc = measure(bench, src, &op);
    op_finish(&op);
    free(memory);
    return rc;
}
