// Rows: a 4K picture to its 640x640 tiles in one job, next to as many jobs for one crop of that
// size.
#include <errno.h>
#include <semaphore.h>

#include "daemon/base/clock.h"
#include "daemon/base/region.h"
#include "kernels/image.h"
#include "tests/bench/bench.h"
#include "tests/bench/floor.h"
#include "tests/bench/sample.h"

enum { ROUNDS = 31, WARM_UP = 3, WIDTH = 3840, HEIGHT = 2160, SIDE = 640, OVERLAP = 20 };
static const char group[] = "tiles";

// The picture, its tiles, and everything a job for them needs.
struct sheet {
    const struct backend_driver *driver;
    struct backend *backend;
    struct op op[TILES_MAX];
    const struct op *ops[TILES_MAX];
    int n;
    struct region source, results;
    struct image picture;
};

static int open_ops(struct sheet *sheet)
{
    const struct tiling tiling = {.size = SIDE, .overlap = OVERLAP, .full = true};
    struct op_params params = {.kind = OP_WARP, .warp = {.width = SIDE, .height = SIDE}};
    struct rect tiles[TILES_MAX];
    const int n = tiles_make(tiles, &tiling, (struct rect){0, 0, WIDTH, HEIGHT});
    int rc = n < 0 ? n : 0;
    params.warp.scale = 1;
    for (int i = 0; i < 3; i++) {
        params.warp.fill[i] = 114;
        params.warp.std[i] = 1;
    }
    for (; rc == 0 && sheet->n < n; sheet->n += rc == 0) {
        params.warp.crop = tiles[sheet->n];
        sheet->ops[sheet->n] = &sheet->op[sheet->n];
        rc = op_init(&sheet->op[sheet->n], &params, &sheet->picture);
    }
    return rc;
}

static int open_memory(struct sheet *sheet, const struct footage *footage)
{
    const size_t page = 4096, bytes = image_lay_out(&sheet->picture, NULL);
    const size_t results = (size_t)sheet->n * sheet->op[0].dst_bytes;
    int rc =
        region_open(&sheet->source, REGION_PRIVATE, (bytes + page - 1) / page * page, NULL, NULL);
    if (rc == 0)
        rc = region_open(&sheet->results, REGION_PRIVATE, (results + page - 1) / page * page, NULL,
                         NULL);
    if (rc < 0)
        return rc;
    region_pin(&sheet->source, sheet->driver, sheet->backend);
    region_pin(&sheet->results, sheet->driver, sheet->backend);
    image_lay_out(&sheet->picture, sheet->source.base);
    sheet->picture.memory = sheet->source.memory;
    return footage_fill(footage, 0, &sheet->picture);
}

static void sheet_close(struct sheet *sheet)
{
    region_close(&sheet->results);
    region_close(&sheet->source);
    for (int i = 0; i < sheet->n; i++)
        op_finish(&sheet->op[i]);
    sheet->driver->close(sheet->backend);
}

static int sheet_open(struct sheet *sheet, const struct backend_driver *driver,
                      const struct footage *footage)
{
    const struct backend_options options = {.workers = 1};
    *sheet = (struct sheet){.driver = driver};
    sheet->picture = (struct image){.format = PIXEL_NV12, .width = WIDTH, .height = HEIGHT};
    int rc = driver->open(&sheet->backend, &options);
    if (rc < 0)
        return rc;
    rc = open_ops(sheet);
    if (rc == 0)
        rc = open_memory(sheet, footage);
    if (rc < 0)
        sheet_close(sheet);
    return rc;
}

// --- jobs

struct landing {
    sem_t done;
    int status;
    int64_t ns; // CLOCK_MONOTONIC
};

static void land(struct job *job, int status)
{
    struct landing *landing = job->opaque;
    landing->ns = monotonic_ns();
    landing->status = status;
    sem_post(&landing->done);
}

// Runs jobs one after another, each with the next `each` of the first n tiles. *ret: seconds from
// the first submit to the last result.
static int run_jobs(struct sheet *sheet, struct plan *const plans[], int n, int each, double *ret)
{
    struct job_result results[TILES_MAX] = {0};
    struct landing landing = {0};
    struct job job = {.src = sheet->picture, .n = each, .done = land, .opaque = &landing};
    const int64_t start = monotonic_ns();
    int rc = 0;
    sem_init(&landing.done, 0, 0);
    for (int i = 0; i < n; i++) {
        results[i].data = sheet->results.base + (size_t)i * sheet->op[0].dst_bytes;
        results[i].memory = sheet->results.memory;
    }
    for (int i = 0; i < n && rc == 0; i += each) {
        job.results = &results[i];
        rc = interrupted() ? -EINTR : sheet->driver->submit(plans[i], &job);
        while (rc == 0 && sem_wait(&landing.done) != 0)
            ;
        rc = rc < 0 ? rc : landing.status;
    }
    *ret = (double)(landing.ns - start) / 1e9;
    sem_destroy(&landing.done);
    return rc;
}

static int time_jobs(struct sheet *sheet, int n, int each, double seconds[ROUNDS])
{
    struct plan *plans[TILES_MAX] = {0};
    double warm_up;
    int rc = 0;
    for (int i = 0; i < n && rc == 0; i += each)
        rc = sheet->driver->plan_open(sheet->backend, &plans[i], &sheet->picture, &sheet->ops[i],
                                      each, 1);
    for (int i = -WARM_UP; i < ROUNDS && rc == 0; i++)
        rc = run_jobs(sheet, plans, n, each, i < 0 ? &warm_up : &seconds[i]);
    for (int i = 0; i < n; i++)
        sheet->driver->plan_close(plans[i]);
    return rc;
}

static void add_us(struct bench *bench, const char *name, double seconds, double limit_seconds,
                   const char *limit_is)
{
    struct row row = row_named(group, "4K nv12 to %s", name);
    row.value = seconds * 1e6;
    row.unit = "us";
    row_limit(&row, limit_seconds * 1e6, "%s", limit_is);
    report_add(&bench->report, &row);
}

// Compares with one job per crop, one after another: over the whole picture, which uses as much
// memory, and over one repeated crop, which stays in the caches.
static int job_rows(struct bench *bench, struct sheet *sheet, const char *who, double *ret)
{
    double crops[ROUNDS], crop[ROUNDS], all[ROUNDS];
    char name[64], limit_is[64];
    int rc = time_jobs(sheet, sheet->n, sheet->n, all);
    if (rc == 0)
        rc = time_jobs(sheet, sheet->n, 1, crops);
    if (rc == 0)
        rc = time_jobs(sheet, 1, 1, crop);
    if (rc < 0)
        return rc;
    *ret = sample_median(all, ROUNDS);
    snprintf(name, sizeof name, "%d u8 tiles, one job, %s", sheet->n, who);
    snprintf(limit_is, sizeof limit_is, "%d jobs for a tile each", sheet->n);
    add_us(bench, name, *ret, sample_median(crops, ROUNDS), limit_is);
    snprintf(limit_is, sizeof limit_is, "%d x a job for the same tile", sheet->n);
    add_us(bench, name, *ret, sheet->n * sample_median(crop, ROUNDS), limit_is);
    return 0;
}

static int cpu_rows(struct bench *bench, struct sheet *sheet)
{
    static const char who[] = "cpu, one core";
    struct image shape = sheet->picture;
    const size_t read = image_lay_out(&shape, NULL);
    const size_t written = (size_t)sheet->n * sheet->op[0].dst_bytes;
    double seconds, floor[ROUNDS];
    char name[64], limit_is[64];
    int rc = job_rows(bench, sheet, who, &seconds);
    if (rc == 0)
        rc = floor_measure(1, read, written, ROUNDS, floor);
    if (rc < 0)
        return rc;
    snprintf(name, sizeof name, "%d u8 tiles, one job, %s", sheet->n, who);
    snprintf(limit_is, sizeof limit_is, "memcpy of its %.2f MB on one core",
             (double)(read + written) / 1e6);
    add_us(bench, name, seconds, sample_median(floor, ROUNDS), limit_is);
    return 0;
}

static int kernel_rows(struct bench *bench, const struct sheet *sheet)
{
    double seconds[ROUNDS];
    char name[64];
    int rc = bench->driver->elements(bench->device, &sheet->picture, sheet->ops, sheet->n, ROUNDS,
                                     seconds);
    if (rc < 0)
        return rc;
    snprintf(name, sizeof name, "%d u8 tiles, the kernels of one job", sheet->n);
    add_us(bench, name, sample_median(seconds, ROUNDS), 60e-6, "60 us");
    return 0;
}

int bench_tiles(struct bench *bench)
{
    struct sheet sheet;
    double seconds;
    int rc = 0;
    if (bench->cpu && (rc = sheet_open(&sheet, &cpu_backend, &bench->footage)) == 0) {
        rc = cpu_rows(bench, &sheet);
        sheet_close(&sheet);
    }
    if (rc < 0 || !bench->device || (rc = sheet_open(&sheet, bench->cuda, &bench->footage)) < 0)
        return rc;
    rc = kernel_rows(bench, &sheet);
    if (rc == 0)
        rc = job_rows(bench, &sheet, "with copies", &seconds);
    sheet_close(&sheet);
    return rc;
}
