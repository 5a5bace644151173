// Rows: transfer rates of memory and of the link to the device.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/region.h"
#include "tests/bench/bench.h"
#include "tests/bench/floor.h"
#include "tests/bench/link.h"
#include "tests/bench/sample.h"

enum { ROUNDS = 15 };
static const char group[] = "copies";

// An 8K frame as BGRA and as packed YUV.
enum { UP_BYTES = 7680 * 4320 * 4, DOWN_BYTES = 7680 * 4320 * 3 };

static void add_rate(struct bench *bench, const char *name, double bytes, double seconds,
                     double limit_seconds, const char *limit_is)
{
    struct row row = row_named(group, "%s", name);
    row.value = bytes / seconds / 1e9;
    row.unit = "GB/s";
    if (limit_seconds > 0)
        row_limit(&row, bytes / limit_seconds / 1e9, "%s", limit_is);
    report_add(&bench->report, &row);
}

// --- the device

static int device_rows(struct bench *bench)
{
    enum { BYTES = 1 << 30 }; // far more than any cache
    double seconds[ROUNDS];
    int rc = bench->driver->device_copy(bench->device, BYTES, ROUNDS, seconds);
    if (rc < 0)
        return rc;
    bench->device_copy = 2.0 * BYTES / sample_median(seconds, ROUNDS);
    if (!bench->options.rows[ROWS_COPIES])
        return 0;
    const double peak = bench->driver->memory_peak(bench->device);
    struct row row = row_named(group, "device to device, read + written");
    row.value = bench->device_copy / 1e9;
    row.unit = "GB/s";
    if (peak > 0)
        row_limit(&row, peak / 1e9, "the memory's clock times its width");
    report_add(&bench->report, &row);
    return 0;
}

static void link_rows(struct bench *bench, const struct link_times *own,
                      const struct link_times *ours, const struct link_times *pageable)
{
    static const char runtime[] = "memory that the CUDA runtime page-locked";
    static const char alone[] = "the same, pinned";
    add_rate(bench, "up, pinned by the backend", UP_BYTES, ours->up, own->up, runtime);
    add_rate(bench, "down, pinned by the backend", DOWN_BYTES, ours->down, own->down, runtime);
    add_rate(bench, "up, pageable", UP_BYTES, pageable->up, ours->up, alone);
    add_rate(bench, "down, pageable", DOWN_BYTES, pageable->down, ours->down, alone);
    struct row row = row_named(group, "132.7 MB up and 99.5 MB down together");
    row.value = ours->both * 1e3;
    row.unit = "ms";
    row_limit(&row, (ours->up > ours->down ? ours->up : ours->down) * 1e3,
              "the slower direction alone");
    report_add(&bench->report, &row);
}

static int measure_with(struct bench *bench, uint8_t *memory, struct link_times *ret)
{
    if (!memory)
        return -ENOMEM;
    for (size_t i = 0; i < UP_BYTES; i++)
        memory[i] = (uint8_t)(i * 2654435761u >> 24);
    memset(memory + UP_BYTES, 0x5A, DOWN_BYTES);
    return link_measure(bench, memory, UP_BYTES, memory + UP_BYTES, DOWN_BYTES, 1, ret);
}

static int measure_pinned(struct bench *bench, const struct backend_driver *driver,
                          struct link_times *ret)
{
    const struct backend_options options = {0};
    struct backend *backend = NULL;
    struct region region = {0};
    int rc = driver->open(&backend, &options);
    if (rc == 0)
        rc = region_open(&region, REGION_PRIVATE, UP_BYTES + DOWN_BYTES, NULL, NULL);
    if (rc == 0) {
        region_pin(&region, driver, backend);
        if (region.memory != MEMORY_PINNED)
            report_note(&bench->report, "the backend could not pin memory: copies are slow");
        rc = measure_with(bench, region.base, ret);
    }
    region_close(&region);
    if (backend)
        driver->close(backend);
    return rc;
}

static int copy_rows(struct bench *bench, const struct backend_driver *driver)
{
    struct link_times own, ours, pageable;
    uint8_t *memory = bench->driver->alloc(bench->device, UP_BYTES + DOWN_BYTES);
    int rc = measure_with(bench, memory, &own);
    bench->driver->free(bench->device, memory);
    if (rc == 0)
        rc = measure_pinned(bench, driver, &ours);
    memory = malloc(UP_BYTES + DOWN_BYTES);
    if (rc == 0)
        rc = measure_with(bench, memory, &pageable);
    free(memory);
    if (rc == 0)
        link_rows(bench, &own, &ours, &pageable);
    return rc;
}

// --- the CPU

static int memcpy_rows(struct bench *bench)
{
    double one[ROUNDS], all[ROUNDS];
    int rc = floor_measure(1, DOWN_BYTES, DOWN_BYTES, ROUNDS, one);
    if (rc == 0)
        rc = floor_measure(bench->workers, DOWN_BYTES, DOWN_BYTES, ROUNDS, all);
    if (rc < 0)
        return rc;
    const double bytes = 2.0 * DOWN_BYTES, every = sample_median(all, ROUNDS);
    add_rate(bench, "memcpy on one core, read + written", bytes, sample_median(one, ROUNDS), every,
             "memcpy on every core");
    add_rate(bench, "memcpy on every core, read + written", bytes, every, 0, NULL);
    return 0;
}

int bench_copies(struct bench *bench)
{
    int rc = 0;
    if (bench->device)
        rc = device_rows(bench);
    if (rc == 0 && bench->device && bench->options.rows[ROWS_COPIES])
        rc = copy_rows(bench, bench->cuda);
    if (rc == 0 && bench->options.rows[ROWS_COPIES] && bench->cpu)
        rc = memcpy_rows(bench);
    return rc;
}
