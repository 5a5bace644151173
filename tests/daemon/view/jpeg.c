// JPEGs: decoded ones show the encoded picture at any size, and the file finds room.
#include "daemon/view/rendition.h"

#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "tests/test.h"

enum { SIDE_MAX = 96, BEST = 100, LEVELS_OFF = 4 };

static void show_gradient(struct image *image)
{
    for (int p = 0; p < 3; p++)
        for (int y = 0; y < plane_rows(image->format, p, image->height); y++)
            for (size_t x = 0; x < plane_row_bytes(image->format, p, image->width); x++)
                image->plane[p].data[y * image->plane[p].stride + (ptrdiff_t)x] =
                    (uint8_t)(40 + (size_t)p * 30 + x + (size_t)y);
}

// Returns the largest difference between the file's luma and the picture's.
static int luma_off(const uint8_t *file, size_t size, const struct image *image)
{
    struct jpeg_decompress_struct context;
    struct jpeg_error_mgr errors;
    uint8_t row[SIDE_MAX * 3], *rows[] = {row};
    int most = 0;
    context.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&context);
    jpeg_mem_src(&context, file, size);
    jpeg_read_header(&context, TRUE);
    CHECK((int)context.image_width == image->width && (int)context.image_height == image->height,
          "%ux%u", context.image_width, context.image_height);
    context.out_color_space = JCS_YCbCr;
    jpeg_start_decompress(&context);
    while (context.output_scanline < context.output_height) {
        const ptrdiff_t y = context.output_scanline;
        jpeg_read_scanlines(&context, rows, 1);
        for (int x = 0; x < image->width; x++) {
            const int off = abs(row[x * 3] - image->plane[0].data[y * image->plane[0].stride + x]);
            most = off > most ? off : most;
        }
    }
    CHECK(errors.num_warnings == 0, "%ld warnings", errors.num_warnings);
    jpeg_finish_decompress(&context);
    jpeg_destroy_decompress(&context);
    return most;
}

static void test_sizes(enum pixel_format format)
{
    static const int sides[][2] = {{64, 32}, {63, 31}, {1, 1}, {17, 96}, {96, 9}, {72, 24}};
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        struct image image = {.format = format, .width = sides[i][0], .height = sides[i][1]};
        uint8_t *pixels = malloc(image_lay_out(&image, NULL)); // exact size
        struct jpeg *jpeg;
        const uint8_t *file;
        size_t size;
        image_lay_out(&image, pixels);
        show_gradient(&image);
        CHECK(jpeg_open(&jpeg, format, image.width, image.height, BEST) == 0, "open");
        for (int again = 0; again < 2; again++) {
            CHECK(jpeg_encode(jpeg, &image, &file, &size) == 0, "encode");
            const int off = luma_off(file, size, &image);
            CHECK(off <= LEVELS_OFF, "%dx%d: %d levels", image.width, image.height, off);
        }
        jpeg_close(jpeg);
        free(pixels);
    }
}

// Noise needs more room than estimated.
static void test_room(void)
{
    struct image image = {.format = PIXEL_YUV444P, .width = SIDE_MAX, .height = SIDE_MAX};
    uint8_t pixels[SIDE_MAX * SIDE_MAX * 3];
    struct jpeg *jpeg;
    const uint8_t *file;
    size_t size = 0;
    image_lay_out(&image, pixels);
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(rand() % 256);
    CHECK(jpeg_open(&jpeg, image.format, image.width, image.height, BEST) == 0, "open");
    for (int i = 0; i < 3; i++) {
        CHECK(jpeg_encode(jpeg, &image, &file, &size) == 0 && size > sizeof pixels / 2, "%zu",
              size);
        CHECK(luma_off(file, size, &image) <= 2 * LEVELS_OFF, "another picture");
    }
    jpeg_close(jpeg);
}

int main(void)
{
    TEST(test_sizes(PIXEL_YUV420P));
    TEST(test_sizes(PIXEL_YUV444P));
    TEST(test_room());
    return test_end();
}
