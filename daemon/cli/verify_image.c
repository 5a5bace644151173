#include "daemon/cli/verify_image.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/object.h"
#include "daemon/base/process.h"
#include "daemon/decode/decoder.h"
#include "daemon/input/demux.h"
#include "kernels/backend.h"
#include "kernels/cpu/versions.h"

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
        rc = decoder_open(&file->decoder, demux_parameters(file->demux), &options);
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
        orientation = demux_orientation(file->demux);
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

int verify_image(const char *path, const struct output_config *output)
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
