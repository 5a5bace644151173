// Fingerprints for scripts, and their cost.
//
// usage: bench-fingerprint luma < PICTURES      32 x 32 bytes each: prints a fingerprint per line
//        bench-fingerprint pictures < PICTURES  each: width and height, s32, then its luma
//        bench-fingerprint time                 on the CPU
//        bench-fingerprint cuda [PICTURES]      on a GPU
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/versions.h"
#include "tests/bench/fingerprint/time_cuda.h"
#include "tests/bench/peers/times.h"

static bool read_all(void *to, size_t bytes)
{
    return fread(to, 1, bytes, stdin) == bytes;
}

static int print_lumas(void)
{
    static uint8_t luma[1][FINGERPRINT_LUMA];
    uint64_t fingerprint;
    while (read_all(luma, sizeof luma)) {
        fingerprint_reference(luma, &fingerprint, 1);
        printf("%016llx\n", (unsigned long long)fingerprint);
    }
    return 0;
}

// Tables for pictures of one size, and memory for the cells of any size.
static struct {
    struct statistics statistics;
    struct fingerprint_cells fingerprint;
    struct luma_statistics luma;
    uint32_t cells[STATISTICS_CELLS_MAX * STATISTICS_CELLS_MAX];
} tables;

static int tables_init(const struct image *image)
{
    const struct statistics_params params = {.black = 16, .white = 235};
    const int rc = statistics_init(&tables.statistics, &params, image);
    return rc ? rc
              : fingerprint_cells_init(&tables.fingerprint, tables.statistics.columns,
                                       tables.statistics.column_edges, tables.statistics.rows,
                                       tables.statistics.row_edges);
}

static int print_pictures(const struct version *version)
{
    struct image image = {.format = PIXEL_GRAY};
    int32_t size[2];
    int rc = 0;
    while (!rc && read_all(size, sizeof size) && size_is_valid(size[0], size[1])) {
        const size_t bytes = (size_t)size[0] * (size_t)size[1];
        uint8_t *memory = malloc(bytes), luma[1][FINGERPRINT_LUMA];
        uint64_t fingerprint;
        image.width = size[0];
        image.height = size[1];
        image_lay_out(&image, memory);
        rc = memory && read_all(memory, bytes) ? tables_init(&image) : -1;
        if (!rc) {
            version->statistics(&tables.statistics, &image, &tables.luma, tables.cells);
            fingerprint_luma(&tables.fingerprint, tables.cells, luma[0]);
            fingerprint_reference(luma, &fingerprint, 1);
            printf("%016llx\n", (unsigned long long)fingerprint);
        }
        free(memory);
    }
    return rc ? 1 : 0;
}

// Returns microseconds of processor time per picture.
static double time_bits(const uint8_t (*luma)[FINGERPRINT_LUMA])
{
    static struct times times;
    uint64_t fingerprint;
    for (times.n = 0; times.n < TIMES_MAX; times.n++) {
        const double begin = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
        for (int i = 0; i < 16; i++)
            fingerprint_reference(luma, &fingerprint, 1);
        times.ms[times.n] = (clock_ms(CLOCK_PROCESS_CPUTIME_ID) - begin) * 1e3 / 16;
    }
    times_sum_up(&times);
    return times.median;
}

static double time_luma(uint8_t luma[FINGERPRINT_LUMA])
{
    static struct times times;
    for (times.n = 0; times.n < TIMES_MAX; times.n++) {
        const double begin = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
        for (int i = 0; i < 16; i++)
            fingerprint_luma(&tables.fingerprint, tables.cells, luma);
        times.ms[times.n] = (clock_ms(CLOCK_PROCESS_CPUTIME_ID) - begin) * 1e3 / 16;
    }
    times_sum_up(&times);
    return times.median;
}

static void print_times(const uint8_t (*luma)[FINGERPRINT_LUMA])
{
    uint8_t of_cells[FINGERPRINT_LUMA];
    printf("bits: %.3f us\n", time_bits(luma));
    printf("luma from %d x %d cells: %.3f us\n", tables.statistics.columns, tables.statistics.rows,
           time_luma(of_cells));
}

static int measure(int n, bool cuda)
{
    uint8_t(*luma)[FINGERPRINT_LUMA] = malloc((size_t)n * sizeof luma[0]);
    const struct image image = {.format = PIXEL_GRAY, .width = 1920, .height = 1080};
    int rc = luma ? tables_init(&image) : -1;
    for (int i = 0; !rc && i < n * FINGERPRINT_LUMA; i++)
        luma[i / FINGERPRINT_LUMA][i % FINGERPRINT_LUMA] = (uint8_t)(rand() >> 8);
    for (int i = 0; !rc && i < tables.statistics.columns * tables.statistics.rows; i++)
        tables.cells[i] = (uint32_t)rand() % (12 * 12 * 255);
#ifdef FRAMED_CUDA
    if (!rc && cuda)
        rc = time_cuda(luma, n, &tables.fingerprint, tables.cells);
#endif
    if (!rc && !cuda)
        print_times(luma);
    free(luma);
    return rc ? 1 : 0;
}

int main(int argc, char **argv)
{
    const struct version *version = version_find(getenv("FRAMED_CPU"));
    if (argc == 2 && !strcmp(argv[1], "luma"))
        return print_lumas();
    if (version && argc == 2 && !strcmp(argv[1], "pictures"))
        return print_pictures(version);
    if (argc == 2 && !strcmp(argv[1], "time"))
        return measure(1, false);
#ifdef FRAMED_CUDA
    const int n = argc > 2 && atoi(argv[2]) > 0 ? atoi(argv[2]) : 165;
    if (argc >= 2 && !strcmp(argv[1], "cuda"))
        return measure(n, true);
#endif
    fprintf(stderr, "usage: bench-fingerprint luma | pictures | time | cuda [PICTURES]\n");
    return 2;
}
