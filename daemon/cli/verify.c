// framed verify: compares the tensors of presets with their frameworks', and decoders with the cpu.
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/object.h"
#include "config/url.h"
#include "config/value.h"
#include "daemon/base/log.h"
#include "daemon/base/process.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/verify.h"
#include "daemon/codec/decoder.h"
#include "daemon/source/demux.h"
#include "daemon/source/libav_log.h"
#include "kernels/backend.h"
#include "kernels/cpu/versions.h"

// --- the vectors

// Falls from 255 to 0 and rises again.
static int wave(int t, int period)
{
    return abs(t % period * 2 - period) * 255 / period;
}

// Makes a BGR picture by the formula of scripts/verify_vectors; NULL: no memory.
static uint8_t *picture_new(int width, int height)
{
    uint8_t *picture = malloc((size_t)width * (size_t)height * 3), *level = picture;
    for (int y = 0; picture && y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < 3; c++) {
                const int slopes =
                    wave(3 * x + 2 * y + 90 * c, 1111) + wave(7 * y + x + 333 * c, 1777);
                const int edge = wave(2 * x + y + 31 * c, 340) * 20 - 2423;
                const int edges = edge < 0 ? 0 : edge > 255 ? 255 : edge;
                *level++ = (uint8_t)((slopes + 2 * edges) / 4);
            }
    return picture;
}

// Makes an output with the values of the preset, and of `key` (or NULL). Returns 0 or -ENOMEM.
static int output_of_preset(struct output_config *output, int preset, const char *key,
                            const char *value)
{
    const char *wrong;
    int rc = object_init(&output_table, output);
    if (rc < 0)
        return rc;
    output->size = (struct dimensions){640, 640};
    output->preset = (enum preset)preset;
    preset_values(output);
    return key ? value_parse(table_find(&output_table, key), output, &value, 1, &wrong) : 0;
}

// Makes a vector's op, with a tensor of levels, channels side by side. Errors as op_init.
static int op_of_vector(struct op *op, const struct verify_vector *vector, int preset,
                        const struct image *src)
{
    struct output_config output = {0};
    struct op_params params;
    int rc = output_of_preset(&output, preset, vector->key, vector->value);
    if (rc == 0) {
        output_config_op(&output, &params);
        params.warp.layout = LAYOUT_NHWC;
        params.warp.dtype = DTYPE_U8;
        params.warp.scale = 1;
        for (int c = 0; c < 3; c++) {
            params.warp.mean[c] = 0;
            params.warp.std[c] = 1;
        }
        rc = op_init(op, &params, src);
    }
    object_free(&output_table, &output);
    return rc;
}

// Returns true if the tensor has the vector's size and the matrix maps the picture's edges to the
// edges of vector->at. The picture may reach beyond the tensor.
static bool same_geometry(const struct verify_vector *vector, const struct op *op)
{
    const double *m = op->src_to_dst;
    const struct rect *at = &vector->at;
    const double left = m[2] + 0.5 - m[0] / 2, right = left + m[0] * vector->source_width;
    const double top = m[5] + 0.5 - m[4] / 2, below = top + m[4] * vector->source_height;
    const double far = fabs(fmax(left, 0) - at->x) + fabs(fmax(top, 0) - at->y) +
                       fabs(fmin(right, op->dst.width) - at->x - at->width) +
                       fabs(fmin(below, op->dst.height) - at->y - at->height);
    return op->dst.width == vector->width && op->dst.height == vector->height && far < 1e-6;
}

// Returns pixel i of `count` along an axis, by the formula of scripts/verify_vectors: the first
// four are the ends of the picture (`first`, `length`) and the pixels next to them.
static int kept(int i, int first, int length, int size, int count, int shift)
{
    const int ends[] = {first - 1, first, first + length - 1, first + length};
    if (i < 4)
        return ends[i] < 0 ? 0 : ends[i] < size ? ends[i] : size - 1;
    return ((2 * i - 7) * size / (2 * (count - 4)) + shift) % size;
}

struct difference {
    int largest, padding; // of levels: the largest in the picture and in the padding
    int sum, levels;      // in the picture: the sum without signs, and the number of levels
};

static struct difference difference_of(const struct verify_vector *vector, const struct image *dst)
{
    struct difference ret = {0};
    const struct rect *at = &vector->at;
    for (int r = 0; r < VERIFY_ROWS; r++) {
        const int y = kept(r, at->y, at->height, vector->height, VERIFY_ROWS, 0);
        for (int i = 0; i < 3 * VERIFY_COLUMNS; i++) {
            const int x = kept(i / 3, at->x, at->width, vector->width, VERIFY_COLUMNS, 5 * r);
            const char digits[3] = {vector->levels[r][2 * i], vector->levels[r][2 * i + 1], 0};
            const int ours = dst->plane[0].data[y * dst->plane[0].stride + 3 * x + i % 3];
            const int apart = abs(ours - (int)strtol(digits, NULL, 16));
            const bool inside =
                x >= at->x && x < at->x + at->width && y >= at->y && y < at->y + at->height;
            int *largest = inside ? &ret.largest : &ret.padding;
            *largest = apart > *largest ? apart : *largest;
            ret.sum += inside ? apart : 0;
            ret.levels += inside;
        }
    }
    return ret;
}

// Prints a line and adds to `all`. Returns 0; 1: the geometry differs, or a level is too far from
// the framework's; or a negative errno.
static int compare(const struct verify_vector *vector, int preset, struct difference *all)
{
    const int width = vector->source_width, height = vector->source_height;
    uint8_t *picture = picture_new(width, height), *result = NULL;
    struct image src = {.format = PIXEL_BGR24, .width = width, .height = height}, dst;
    struct op op = {0};
    src.plane[0] = (struct plane){picture, 3 * (ptrdiff_t)width};
    int rc = picture ? op_of_vector(&op, vector, preset, &src) : -ENOMEM;
    if (rc < 0)
        goto out;
    rc = -ENOMEM;
    if (!(result = malloc(op.dst_bytes)))
        goto out;
    printf("%-17s%-12s %4dx%-4d to %4dx%-4d  ", vector->preset, vector->key ? vector->value : "",
           width, height, op.dst.width, op.dst.height);
    rc = 1;
    if (!same_geometry(vector, &op)) {
        printf("not %dx%d with the picture at %d,%d of size %dx%d\n", vector->width, vector->height,
               vector->at.x, vector->at.y, vector->at.width, vector->at.height);
        goto out;
    }
    op_lay_out(&op, &dst, result);
    version_find(NULL)->run[op.kind](&dst, &src, &op, (struct band){0, dst.height}, false);
    const struct difference found = difference_of(vector, &dst);
    rc = found.largest > vector->largest || found.padding > 0;
    printf("largest %d, mean %.4f, padding %d%s\n", found.largest, (double)found.sum / found.levels,
           found.padding, rc ? ": too much" : "");
    all->sum += found.sum;
    all->levels += found.levels;
out:
    free(result);
    op_finish(&op);
    free(picture);
    return rc;
}

// Vectors of one preset and key are adjacent.
static bool last_of_case(const struct verify_vector *vector)
{
    const struct verify_vector *next = vector + 1;
    return next == verify_vectors + verify_vectors_n || strcmp(next->preset, vector->preset) != 0 ||
           strcmp(next->value ? next->value : "", vector->value ? vector->value : "") != 0;
}

// Compares the vectors of a preset; NULL: of all.
static int compare_vectors(const struct config_choice *preset)
{
    struct difference all = {0};
    int code = EXIT_OK;
    for (int i = 0; i < verify_vectors_n; i++) {
        const struct verify_vector *vector = &verify_vectors[i];
        const struct config_choice *choice = table_find(&output_table, "preset")->choices;
        while (strcmp(choice->name, vector->preset) != 0)
            choice++;
        if (preset && preset->value != choice->value)
            continue;
        const int rc = compare(vector, choice->value, &all);
        if (rc < 0)
            fprintf(stderr, "framed verify: %s\n", strerror(-rc));
        code = rc ? EXIT_RUNTIME : code;
        if (!last_of_case(vector))
            continue;
        if (all.sum > vector->mean * all.levels) {
            printf("%s: mean %.4f of all its pictures: too much\n", vector->preset,
                   (double)all.sum / all.levels);
            code = EXIT_RUNTIME;
        }
        all = (struct difference){0};
    }
    return code;
}

// --- a picture file

static const _Atomic bool never; // only deadlines stop it

struct image_file {
    struct camera_config camera;
    struct backend *backend;
    struct demux *demux;
    struct decoder *decoder;
    struct frame frame; // its first picture
};

static int open_file(struct image_file *file, const char *path, char *why, size_t size)
{
    const struct decode_options options = {
        .decode.by = DECODE_CPU, .threads = 1, .in_flight = 1, .damaged = DAMAGED_DROP};
    if (object_init(&camera_table, &file->camera) < 0 || !(file->camera.url = strdup(path)))
        return -ENOMEM;
    int rc = demux_open(&file->demux, &file->camera, NULL, &never, NULL, why, size);
    if (rc == 0)
        rc = decoder_open(&file->decoder, file->demux->parameters, &options);
    if (rc == 0)
        rc = cpu_backend.open(&file->backend, &(struct backend_options){.workers = 1});
    if (rc == 0)
        rc =
            decoder_join(file->decoder, &(struct decode_target){&cpu_backend, file->backend, NULL});
    return rc;
}

static void close_file(struct image_file *file)
{
    frame_release(&file->frame);
    demux_close(file->demux);
    if (file->decoder)
        decoder_leave(file->decoder);
    decoder_close(file->decoder);
    if (file->backend)
        cpu_backend.close(file->backend);
    object_free(&camera_table, &file->camera);
}

// Sets the orientation as the camera's thread does.
static int decode_first(struct image_file *file)
{
    struct packet packet;
    bool ended = false;
    int rc;
    while ((rc = decoder_receive(file->decoder, &file->frame)) == -EAGAIN ||
           (rc == 0 && file->frame.lost)) {
        frame_release(&file->frame);
        if (ended)
            return -ENODATA;
        rc = demux_read(file->demux, &packet);
        ended = rc == -ENODATA;
        if (rc == 0 || ended)
            rc = decoder_send(file->decoder, ended ? NULL : &packet);
        if (rc < 0)
            return rc;
    }
    int orientation = decoder_orientation(file->decoder);
    if (orientation == -ENODATA)
        orientation = file->demux->orientation;
    file->frame.image.orientation =
        orientation < 0 ? ORIENTATION_UPRIGHT : (enum orientation)orientation;
    return rc;
}

// The tensor is planes of floats.
static void print_tensor(const char *path, const struct image *src, const struct op *op,
                         const float *tensor)
{
    const double *m = op->src_to_dst;
    const size_t pixels = (size_t)op->dst.width * (size_t)op->dst.height;
    unsigned char digest[SHA256_DIGEST_LENGTH];
    printf("%s\n  picture  %dx%d %s\n  tensor   1x%dx%dx%d f32\n", path, src->width, src->height,
           pixel_format_name(src->format), op->warp.channels, op->dst.height, op->dst.width);
    printf("  matrix   [[%.9g, %.9g, %.9g], [%.9g, %.9g, %.9g]]\n", m[0], m[1], m[2], m[3], m[4],
           m[5]);
    printf("  means   ");
    for (int c = 0; c < op->warp.channels; c++) {
        double sum = 0;
        for (size_t i = 0; i < pixels; i++)
            sum += tensor[(size_t)c * pixels + i];
        printf(" %.6f", sum / (double)pixels);
    }
    printf("\n  sha256   ");
    SHA256((const unsigned char *)tensor, op->dst_bytes, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        printf("%02x", digest[i]);
    putchar('\n');
}

static int print_file(const struct image_file *file, const char *path,
                      const struct output_config *output)
{
    const struct image *src = &file->frame.image;
    struct op_params params;
    struct op op = {0};
    struct image dst;
    output_config_op(output, &params);
    int rc = op_init(&op, &params, src);
    if (rc < 0)
        return rc;
    float *tensor = malloc(op.dst_bytes);
    if (tensor) {
        op_lay_out(&op, &dst, tensor);
        version_find(NULL)->run[op.kind](&dst, src, &op, (struct band){0, dst.height}, false);
        print_tensor(path, src, &op, tensor);
    } else {
        rc = -ENOMEM;
    }
    free(tensor);
    op_finish(&op);
    return rc;
}

// Decodes the first picture of `path`, a picture or a video, as the daemon does, and prints the
// result of the output, a warp: sizes, matrix, the means and a digest of the tensor. Returns
// EXIT_OK, or EXIT_RUNTIME after printing one line to stderr.
static int verify_image(const char *path, const struct output_config *output)
{
    struct image_file file = {0};
    char why[DEMUX_WHY_MAX] = "";
    int rc = open_file(&file, path, why, sizeof why);
    if (rc == 0)
        rc = decode_first(&file);
    if (rc == 0)
        rc = print_file(&file, path, output);
    if (rc < 0 && *why)
        fprintf(stderr, "framed verify: %s\n", why);
    else if (rc < 0)
        fprintf(stderr, "framed verify: %s: %s\n", path,
                rc == -ENODATA   ? "there is no whole picture in it"
                : rc == -ENOTSUP ? "no decoder for this picture"
                : rc == -EINVAL || rc == -EDOM || rc == -ERANGE
                    ? "this preset makes no tensor of its size"
                    : strerror(-rc));
    close_file(&file);
    return rc < 0 ? EXIT_RUNTIME : EXIT_OK;
}

// --- the command line

struct verify {
    const struct config_choice *preset; // NULL: all
    const char *size;                   // of image tensors; NULL: the preset's, or 640x640
    int images;                         // their number: they are the last arguments
    bool decoders, again;               // only decoders; only if libraries changed
    struct decoder_choice decoder[VERIFY_DECODERS_MAX]; // these; n_decoders 0: all
    int n_decoders;
};

static void usage(FILE *to)
{
    fputs(
        "usage: framed verify [--preset NAME [--size WIDTHxHEIGHT] [IMAGE...]]\n"
        "       framed verify --decoders | --decoder NAME... | --again\n"
        "Makes tensors of fixed pictures by each preset, or by one, and prints how far their\n"
        "levels are from those that the preset's framework makes: 2 at most, and 0.01 in the "
        "mean.\n"
        "Then it decodes built-in clips by each decoder of this box, prints which of them give "
        "the\n"
        "cpu's pictures and how fast, and keeps that for `decode: auto`.\n"
        "Of each IMAGE, a picture or a video whose first picture it takes, it prints the tensor's\n"
        "size, matrix, means and digest.\n\n"
        "  --preset NAME       one preset alone\n"
        "  --size WxH          of the tensors of images (640x640; of torchvision 1333x800)\n"
        "  --decoders          decoders alone\n"
        "  --decoder NAME      this one alone, as `decode` has it: vaapi:/dev/dri/renderD129\n"
        "  --again             decoders, if they were verified with other libraries\n",
        to);
}

static int take_decoder(struct verify *verify, const char *text)
{
    const char *wrong;
    struct camera_config camera = {0};
    const struct config_row *row = table_find(&camera_table, "decode");
    if (verify->n_decoders == VERIFY_DECODERS_MAX)
        return command_line_refuse("framed verify", text, "is one decoder too many");
    if (value_parse(row, &camera, &text, 1, &wrong) < 0 || camera.decode.by == DECODE_AUTO ||
        camera.decode.by == DECODE_CPU)
        return command_line_refuse("framed verify", text, "is no name of a hardware decoder");
    if (camera.decode.by == DECODE_NVDEC)
        strcpy(camera.decode.name, "nvdec");
    verify->decoder[verify->n_decoders++] = camera.decode;
    verify->decoders = true;
    return EXIT_OK;
}

static int take(void *opaque, int option, const char *text)
{
    struct verify *verify = opaque;
    const struct config_choice *choice = table_find(&output_table, "preset")->choices;
    switch (option) {
    case 's':
        verify->size = text;
        return EXIT_OK;
    case 'd':
        return take_decoder(verify, text);
    case 'D':
    case 'a':
        verify->decoders = true;
        verify->again |= option == 'a';
        return EXIT_OK;
    }
    while (choice->name && strcmp(choice->name, text) != 0)
        choice++;
    verify->preset = choice;
    return choice->name ? EXIT_OK
                        : command_line_refuse("framed verify", text,
                                              "is no preset (framed.yaml(5) lists them)");
}

static int take_image(void *opaque, const char *text)
{
    struct verify *verify = opaque;
    if (config_url_kind(text) != URL_FILE)
        return command_line_refuse("framed verify", text, "is no file");
    verify->images++;
    return EXIT_OK;
}

static int print_images(const struct verify *verify, char *const images[])
{
    struct output_config output = {0};
    const char *wrong = NULL;
    int code = EXIT_OK;
    int rc = output_of_preset(&output, verify->preset->value, NULL, NULL);
    if (rc == 0 && verify->size)
        rc = value_parse(table_find(&output_table, "size"), &output, &verify->size, 1, &wrong);
    output.tensor.dtype = DTYPE_F32;
    if (rc < 0)
        code = wrong ? command_line_refuse("framed verify", "--size", wrong) : EXIT_RUNTIME;
    for (int i = 0; rc == 0 && i < verify->images; i++)
        if (verify_image(images[i], &output) != EXIT_OK)
            code = EXIT_RUNTIME;
    object_free(&output_table, &output);
    return code;
}

int verify_main(int argc, char **argv)
{
    static const struct option options[] = {{"preset", required_argument, NULL, 'p'},
                                            {"size", required_argument, NULL, 's'},
                                            {"decoders", no_argument, NULL, 'D'},
                                            {"decoder", required_argument, NULL, 'd'},
                                            {"again", no_argument, NULL, 'a'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    static const struct command_line line = {"framed verify", ":h", options,
                                             usage,           take, take_image};
    struct verify verify = {0};
    bool help;
    int code = command_line_read(&line, argc, argv, &verify, &help);
    if (code != EXIT_OK || help)
        return code;
    if (!verify.preset && (verify.images || verify.size)) {
        fputs("framed verify: images and a size want a --preset\n", stderr);
        return EXIT_USAGE;
    }
    if (verify.preset && verify.preset->value == PRESET_FRAMED && !verify.images)
        return command_line_refuse("framed verify", verify.preset->name,
                                   "is no preset of another framework, and no image is named");
    if (verify.decoders && verify.preset)
        return command_line_refuse("framed verify", verify.preset->name,
                                   "is a preset: decoders are verified without");
    log_open(LOG_LEVEL_WARNING);
    libav_log_open();
    if (verify.again)
        return verify_decoders_again();
    if (verify.decoders)
        return verify_decoders(verify.decoder, verify.n_decoders);
    const int images = verify.images ? print_images(&verify, argv + argc - verify.images) : EXIT_OK;
    code = compare_vectors(verify.preset);
    if (!verify.preset && verify_decoders(NULL, 0) != EXIT_OK)
        code = EXIT_RUNTIME;
    return images == EXIT_OK ? code : images;
}
