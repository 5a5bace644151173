#include "kernels/format.h"

#include <string.h>

const char *pixel_format_name(enum pixel_format format)
{
    return pixel_layout_of(format).name;
}

// Number of chroma samples for `side` pixels along an axis.
static int subsampled(int side, int sub)
{
    return (side + (1 << sub) - 1) >> sub;
}

// A row is as long as the plane's longest component.
size_t plane_row_bytes(enum pixel_format format, int plane, int width)
{
    const struct pixel_layout layout = pixel_layout_of(format);
    size_t most = 0;
    for (int c = 0; c < COMPONENTS_MAX; c++) {
        const struct component k = layout.component[c];
        const size_t samples = subsampled(width, c > 0 ? layout.sub_x : 0);
        if (k.plane == plane && samples * k.step > most)
            most = samples * k.step;
    }
    return most;
}

// A plane with luma has all rows.
int plane_rows(enum pixel_format format, int plane, int height)
{
    return subsampled(height, plane > 0 ? pixel_layout_of(format).sub_y : 0);
}

enum pixel_format pixel_format_read_as(enum pixel_format format)
{
    const struct pixel_layout layout = pixel_layout_of(format);
    for (int i = 0; i < PIXEL_FORMATS; i++) {
        const struct pixel_layout other = pixel_layout_of((enum pixel_format)i);
        if (other.uses & layout.uses & FORMAT_SOURCE && other.bits == layout.bits &&
            other.shift == layout.shift && source_is_rgb(other.format) == source_is_rgb(format) &&
            memcmp(other.component, layout.component, sizeof layout.component) == 0)
            return other.format;
    }
    return format;
}
