#include "daemon/view/rendition.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h> // needs FILE

enum {
    COMPONENTS = 3,
    ROWS_MAX = 2 * DCTSIZE, // of a component, that are encoded together
};

struct jpeg {
    struct jpeg_compress_struct context;
    struct jpeg_error_mgr errors;
    jmp_buf failed;
    uint8_t *file;   // the last one, of libjpeg; NULL: none
    uint8_t *padded; // rows whose last block extends beyond the picture
};

// Keeps libjpeg from ending the process. Only memory can be short: all parameters are valid.
static void fail(j_common_ptr context)
{
    longjmp(*(jmp_buf *)context->client_data, 1);
}

static void say_nothing(j_common_ptr context)
{
    (void)context;
}

static size_t whole_blocks(size_t bytes)
{
    return (bytes + DCTSIZE - 1) / DCTSIZE * DCTSIZE;
}

static void set_up(struct jpeg *jpeg, enum pixel_format format, int width, int height, int quality)
{
    struct jpeg_compress_struct *context = &jpeg->context;
    context->err = jpeg_std_error(&jpeg->errors);
    jpeg->errors.error_exit = fail;
    jpeg->errors.output_message = say_nothing;
    context->client_data = &jpeg->failed;
    jpeg_create_compress(context);
    context->image_width = (JDIMENSION)width;
    context->image_height = (JDIMENSION)height;
    context->input_components = COMPONENTS;
    context->in_color_space = JCS_YCbCr;
    jpeg_set_defaults(context);
    jpeg_set_quality(context, quality, TRUE);
    context->raw_data_in = TRUE;
    for (int c = 0; c < COMPONENTS; c++) {
        const int samples = c == 0 && format_is_420(format) ? 2 : 1;
        context->comp_info[c].h_samp_factor = context->comp_info[c].v_samp_factor = samples;
    }
}

int jpeg_open(struct jpeg **ret, enum pixel_format format, int width, int height, int quality)
{
    struct jpeg *jpeg = calloc(1, sizeof *jpeg);
    if (!jpeg)
        return -ENOMEM;
    jpeg->padded = malloc((size_t)COMPONENTS * ROWS_MAX * whole_blocks((size_t)width));
    if (!jpeg->padded || setjmp(jpeg->failed)) {
        jpeg_close(jpeg);
        return -ENOMEM;
    }
    set_up(jpeg, format, width, height, quality);
    *ret = jpeg;
    return 0;
}

void jpeg_close(struct jpeg *jpeg)
{
    if (!jpeg)
        return;
    jpeg_destroy_compress(&jpeg->context);
    free(jpeg->padded);
    free(jpeg->file);
    free(jpeg);
}

// Returns the row itself, or a copy in `to` filled up to whole blocks with its last sample.
static uint8_t *whole_row(uint8_t *row, size_t bytes, uint8_t *to)
{
    const size_t whole = whole_blocks(bytes);
    if (bytes == whole)
        return row;
    memcpy(to, row, bytes);
    memset(to + bytes, row[bytes - 1], whole - bytes);
    return to;
}

// Writes the rows from row `y` of the picture on; repeats the last row of a component at its end.
static void put_rows(struct jpeg *jpeg, const struct image *image, int y)
{
    struct jpeg_compress_struct *context = &jpeg->context;
    const size_t room = whole_blocks((size_t)image->width);
    uint8_t *row[COMPONENTS][ROWS_MAX], **rows[COMPONENTS], *to = jpeg->padded;
    for (int c = 0; c < COMPONENTS; c++) {
        const struct plane *plane = &image->plane[c];
        const int last = plane_rows(image->format, c, image->height) - 1;
        const int first = plane_rows(image->format, c, y);
        const int n = DCTSIZE * context->comp_info[c].v_samp_factor;
        for (int i = 0; i < n; i++, to += room) {
            uint8_t *from = plane->data + (first + i < last ? first + i : last) * plane->stride;
            row[c][i] = whole_row(from, plane_row_bytes(image->format, c, image->width), to);
        }
        rows[c] = row[c];
    }
    jpeg_write_raw_data(context, rows, (JDIMENSION)(DCTSIZE * context->max_v_samp_factor));
}

int jpeg_encode(struct jpeg *jpeg, const struct image *image, const uint8_t **file, size_t *size)
{
    struct jpeg_compress_struct *context = &jpeg->context;
    unsigned char *written = NULL;
    unsigned long bytes = 0;
    free(jpeg->file);
    jpeg->file = NULL;
    if (setjmp(jpeg->failed)) {
        jpeg_abort_compress(context);
        return -ENOMEM;
    }
    jpeg_mem_dest(context, &written, &bytes);
    jpeg_start_compress(context, TRUE);
    while (context->next_scanline < context->image_height)
        put_rows(jpeg, image, (int)context->next_scanline);
    jpeg_finish_compress(context);
    *file = jpeg->file = written;
    *size = bytes;
    return 0;
}
