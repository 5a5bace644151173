// Any .cube file: a text that is no LUT is refused with a line number and a message; a LUT gives
// levels that are all within its nodes.
#include <errno.h>
#include <string.h>

#include "config/cube.h"
#include "tests/fuzz/turns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(const struct lut *lut)
{
    uint8_t rgb[256][3];
    for (int i = 0; i < 256; i++)
        memcpy(rgb[i], (uint8_t[]){(uint8_t)i, (uint8_t)(i * 7), (uint8_t)(255 - i)}, 3);
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 256; i++)
            MUST(lut->cell[c][i] <= lut->points - 2 && lut->weight[c][i] <= WEIGHT_ONE);
    for (int i = 0; i < 256; i++)
        lut_pixel(lut, rgb[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lut *lut = NULL;
    char wrong[CUBE_MISTAKE_MAX] = "";
    int line = -1, lines = 1;
    const int error = cube_parse(&lut, (const char *)data, size, (enum lut_interpolation)(size % 2),
                                 &line, wrong);
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n';
    MUST(line >= 0 && line <= lines);
    MUST((error == 0) == (lut != NULL) && (error == -EINVAL) == (wrong[0] != 0));
    MUST(strlen(wrong) < sizeof wrong);
    if (lut)
        look_up(lut);
    lut_unref(lut);
    return 0;
}
