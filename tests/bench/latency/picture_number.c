#include "tests/bench/latency/picture_number.h"

// Layout of tests/bench/latency/clips: a black block, a white one, then the bits, lowest first.
enum { COLUMNS = 20, ROWS = 20, BLOCKS = 12, BLACK = 85, WHITE = 170, SAMPLES = 4 };

// Returns the mean of a grid of samples in the middle of a block.
static int block_level(const struct picture_view *view, int column, int row)
{
    const int side_x = view->width / COLUMNS, side_y = view->height / ROWS;
    int sum = 0;
    for (int i = 0; i < SAMPLES * SAMPLES; i++) {
        const int x = column * side_x + side_x / 4 + i % SAMPLES * side_x / (2 * SAMPLES);
        const int y = row * side_y + side_y / 4 + i / SAMPLES * side_y / (2 * SAMPLES);
        sum += view->data[(size_t)y * view->stride + (size_t)x * view->step];
    }
    return sum / (SAMPLES * SAMPLES);
}

static int row_number(const struct picture_view *view, int row)
{
    int number = 0;
    for (int i = 0; i < BLOCKS; i++) {
        const int level = block_level(view, i, row);
        const int bit = level > WHITE ? 1 : level < BLACK ? 0 : -1;
        if (bit < 0 || (i < 2 && bit != i))
            return -1;
        number |= i < 2 ? 0 : bit << (i - 2);
    }
    return number;
}

int picture_number(const struct picture_view *view)
{
    const int top = row_number(view, 0), bottom = row_number(view, ROWS - 1);
    return top == bottom ? top : -1;
}
