#include "kernels/fingerprint.h"

#include <errno.h>

const int16_t fingerprint_table[FINGERPRINT_FREQUENCIES][FINGERPRINT_SIDE] = {
    {4091,  4052,  3973,  3857,  3703,  3513,  3290,  3035,  2751,  2440,  2106,
     1751,  1380,  995,   601,   201,   -201,  -601,  -995,  -1380, -1751, -2106,
     -2440, -2751, -3035, -3290, -3513, -3703, -3857, -3973, -4052, -4091},
    {4076,  3920,  3612,  3166,  2598,  1931,  1189,  401,   -401,  -1189, -1931,
     -2598, -3166, -3612, -3920, -4076, -4076, -3920, -3612, -3166, -2598, -1931,
     -1189, -401,  401,   1189,  1931,  2598,  3166,  3612,  3920,  4076},
    {4052,  3703,  3035,  2106,  995,  -201, -1380, -2440, -3290, -3857, -4091,
     -3973, -3513, -2751, -1751, -601, 601,  1751,  2751,  3513,  3973,  4091,
     3857,  3290,  2440,  1380,  201,  -995, -2106, -3035, -3703, -4052},
    {4017,  3406,  2276,  799,   -799,  -2276, -3406, -4017, -4017, -3406, -2276,
     -799,  799,   2276,  3406,  4017,  4017,  3406,  2276,  799,   -799,  -2276,
     -3406, -4017, -4017, -3406, -2276, -799,  799,   2276,  3406,  4017},
    {3973, 3035, 1380, -601, -2440, -3703, -4091, -3513, -2106, -201,  1751,
     3290, 4052, 3857, 2751, 995,   -995,  -2751, -3857, -4052, -3290, -1751,
     201,  2106, 3513, 4091, 3703,  2440,  601,   -1380, -3035, -3973},
    {3920, 2598, 401,   -1931, -3612, -4076, -3166, -1189, 1189, 3166, 4076,
     3612, 1931, -401,  -2598, -3920, -3920, -2598, -401,  1931, 3612, 4076,
     3166, 1189, -1189, -3166, -4076, -3612, -1931, 401,   2598, 3920},
    {3857,  2106,  -601,  -3035, -4091, -3290, -995, 1751, 3703,  3973, 2440,
     -201,  -2751, -4052, -3513, -1380, 1380,  3513, 4052, 2751,  201,  -2440,
     -3973, -3703, -1751, 995,   3290,  4091,  3035, 601,  -2106, -3857},
    {3784,  1567,  -1567, -3784, -3784, -1567, 1567,  3784,  3784,  1567,  -1567,
     -3784, -3784, -1567, 1567,  3784,  3784,  1567,  -1567, -3784, -3784, -1567,
     1567,  3784,  3784,  1567,  -1567, -3784, -3784, -1567, 1567,  3784},
};

// --- from sums of cells to the 32 x 32 luma

// Returns false for invalid edges.
static bool axis_init(struct fingerprint_axis *axis, int cells, const int32_t edges[])
{
    bool valid = cells >= 1 && cells <= FINGERPRINT_CELLS_MAX && edges[0] == 0;
    for (int i = 0; valid && i < cells; i++)
        valid = edges[i] < edges[i + 1] && edges[i + 1] <= IMAGE_SIDE_MAX;
    axis->cells = cells;
    for (int i = 0; valid && i < FINGERPRINT_SIDE; i++) {
        const int begin = cells * i, end = begin + cells; // in 1/32 cell
        const int first = begin / FINGERPRINT_SIDE, last = (end - 1) / FINGERPRINT_SIDE;
        const int first_end = last > first ? (first + 1) * FINGERPRINT_SIDE : end;
        const int last_begin = last > first ? last * FINGERPRINT_SIDE : end;
        axis->first[i] = (int16_t)first;
        axis->last[i] = (int16_t)last;
        axis->first_share[i] = (uint8_t)(first_end - begin);
        axis->last_share[i] = (uint8_t)(end - last_begin);
        axis->pixels[i] = (uint32_t)((first_end - begin) * (edges[first + 1] - edges[first]) +
                                     (end - last_begin) * (edges[last + 1] - edges[last]));
        for (int cell = first + 1; cell < last; cell++)
            axis->pixels[i] += (uint32_t)(FINGERPRINT_SIDE * (edges[cell + 1] - edges[cell]));
    }
    return valid;
}

int fingerprint_cells_init(struct fingerprint_cells *cells, int columns,
                           const int32_t column_edges[], int rows, const int32_t row_edges[])
{
    if (!axis_init(&cells->x, columns, column_edges) || !axis_init(&cells->y, rows, row_edges))
        return -EINVAL;
    for (int i = 0; i < FINGERPRINT_LUMA; i++) {
        const uint64_t pixels = cells->y.pixels[i / FINGERPRINT_SIDE];
        cells->reciprocal[i] = UINT64_MAX / (pixels * cells->x.pixels[i % FINGERPRINT_SIDE]);
    }
    return 0;
}

// Sums a row of areas over each column of cells, in 1/32 level.
static void columns_sum(const struct fingerprint_cells *cells, const uint32_t *sums, int y,
                        uint64_t column[])
{
    const int columns = cells->x.cells, first = cells->y.first[y], last = cells->y.last[y];
    const uint32_t first_share = cells->y.first_share[y], last_share = cells->y.last_share[y];
    for (int i = 0; i < columns; i++)
        column[i] = (uint64_t)sums[first * columns + i] * first_share;
    for (int j = first + 1; j < last; j++)
        for (int i = 0; i < columns; i++)
            column[i] += (uint64_t)sums[j * columns + i] * FINGERPRINT_SIDE;
    for (int i = 0; last_share && i < columns; i++)
        column[i] += (uint64_t)sums[last * columns + i] * last_share;
}

void fingerprint_luma(const struct fingerprint_cells *cells, const uint32_t *sums,
                      uint8_t luma[FINGERPRINT_LUMA])
{
    const struct fingerprint_axis *axis = &cells->x;
    uint64_t column[FINGERPRINT_CELLS_MAX];
    for (int y = 0; y < FINGERPRINT_SIDE; y++) {
        columns_sum(cells, sums, y, column);
        for (int x = 0; x < FINGERPRINT_SIDE; x++) {
            const int at = y * FINGERPRINT_SIDE + x;
            uint64_t whole = 0;
            for (int i = axis->first[x] + 1; i < axis->last[x]; i++)
                whole += column[i];
            const uint64_t sum = column[axis->first[x]] * axis->first_share[x] +
                                 column[axis->last[x]] * axis->last_share[x] +
                                 whole * FINGERPRINT_SIDE;
            luma[at] = fingerprint_mean(sum, (uint64_t)axis->pixels[x] * cells->y.pixels[y],
                                        cells->reciprocal[at]);
        }
    }
}

// --- from the luma to the bits

static uint64_t fingerprint_of(const uint8_t luma[FINGERPRINT_LUMA])
{
    int32_t rows[FINGERPRINT_SIDE][FINGERPRINT_FREQUENCIES], numbers[FINGERPRINT_BITS];
    for (int y = 0; y < FINGERPRINT_SIDE; y++)
        for (int v = 0; v < FINGERPRINT_FREQUENCIES; v++) {
            int32_t sum = 1 << (FINGERPRINT_DROPPED - 1);
            for (int x = 0; x < FINGERPRINT_SIDE; x++)
                sum += luma[y * FINGERPRINT_SIDE + x] * fingerprint_table[v][x];
            rows[y][v] = sum >> FINGERPRINT_DROPPED;
        }
    for (int u = 0; u < FINGERPRINT_FREQUENCIES; u++)
        for (int v = 0; v < FINGERPRINT_FREQUENCIES; v++) {
            int32_t sum = 0;
            for (int y = 0; y < FINGERPRINT_SIDE; y++)
                sum += fingerprint_table[u][y] * rows[y][v];
            numbers[u * FINGERPRINT_FREQUENCIES + v] = sum;
        }
    uint64_t bits = 0;
    for (int i = 0; i < FINGERPRINT_BITS; i++) {
        int below = 0;
        for (int j = 0; j < FINGERPRINT_BITS; j++)
            below += numbers[j] < numbers[i];
        bits |= (uint64_t)(below >= FINGERPRINT_BITS / 2) << i;
    }
    return bits;
}

void fingerprint_reference(const uint8_t (*luma)[FINGERPRINT_LUMA], uint64_t *ret, int n)
{
    for (int i = 0; i < n; i++)
        ret[i] = fingerprint_of(luma[i]);
}
