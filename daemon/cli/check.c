#include "daemon/cli/commands.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "config/expand.h"
#include "config/load.h"
#include "config/mistakes.h"
#include "config/object.h"
#include "daemon/base/log.h"
#include "daemon/base/process.h"
#include "daemon/codec/decoder.h"
#include "daemon/device/budget.h"
#include "daemon/device/devices.h"
#include "daemon/source/libav_log.h"
#include "daemon/supervisor/machine_check.h"
#include "kernels/cpu/versions.h"

#ifdef FRAMED_CUDA
static void ask_gpu(struct machine *basis, const struct config *config, int number)
{
    // The backend measures nothing if streams and band are given.
    const struct backend_options options = {.device = number, .streams = 1, .band_bytes = 1 << 20};
    struct backend *backend;
    if (basis->driver->open(&backend, &options) < 0)
        return;
    struct placement_gpu *gpu = &basis->gpus[basis->n_gpus++];
    gpu->number = number;
    gpu->limit = budget_limit(config, basis->driver->device_bytes(backend));
    memcpy(gpu->uuid, basis->driver->device_uuid(backend), sizeof gpu->uuid);
    basis->driver->close(backend);
}

// Chooses cuda if a device works, or if the configuration requires it: another machine may run it.
static void choose(struct machine *basis, const struct config *config)
{
    *basis = (struct machine){.driver = &cuda_backend, .nvdec = true};
    const struct gpu_list wanted = devices_wanted(config, basis->driver);
    for (int i = 0; config->backend != BACKEND_CPU && i < wanted.n; i++)
        ask_gpu(basis, config, wanted.number[i]);
    if (basis->n_gpus == 0 && config->backend != BACKEND_CUDA)
        basis->driver = &cpu_backend;
}
#else
// The driver becomes NULL if this build cannot run the configuration.
static void choose(struct machine *basis, const struct config *config)
{
    const bool runs = config->backend != BACKEND_CUDA;
    *basis = (struct machine){.driver = runs ? &cpu_backend : NULL, .nvdec = true};
}
#endif

// Prints the cameras that the patterns chose, which the file does not show.
static void print_batch(const struct config *config, const struct output_config *batch)
{
    const char *before = "";
    printf("batch %s, %d element%s: ", batch->name, batch->capacity,
           batch->capacity == 1 ? "" : "s");
    for (int i = 0; i < config->n_cameras; i++)
        for (int o = 0; o < config->cameras[i].n_outputs; o++) {
            const struct output_config *output = &config->cameras[i].outputs[o];
            if (!output->is_batch || strcmp(output->name, batch->name) != 0)
                continue;
            printf("%s%s", before, config->cameras[i].name);
            before = " ";
        }
    putchar('\n');
}

// Prints the effect of `keep`, which the file does not show.
static void print_crops(const struct camera_config *camera)
{
    for (int i = 0; i < camera->n_outputs; i++) {
        const struct output_config *output = &camera->outputs[i];
        if (output->crops.of)
            printf("crops %s of camera %s, up to %d a batch: %d pictures are kept\n", output->name,
                   camera->name, output->capacity, budget_planned_pictures(camera, output));
    }
}

static void print_good(const struct config *config, const char *file)
{
    int outputs = 0;
    for (int i = 0; i < config->n_cameras; i++)
        for (int o = 0; o < config->cameras[i].n_outputs; o++)
            outputs += !config->cameras[i].outputs[o].is_batch;
    printf("%s: good: %d camera%s, %d output%s", file, config->n_cameras,
           config->n_cameras == 1 ? "" : "s", outputs, outputs == 1 ? "" : "s");
    if (config->n_batches > 0)
        printf(", %d batch%s", config->n_batches, config->n_batches == 1 ? "" : "es");
    if (config->files.n > 1)
        printf(", %d drop-in file%s", config->files.n - 1, config->files.n == 2 ? "" : "s");
    putchar('\n');
    for (int i = 0; i < config->n_batches; i++)
        print_batch(config, &config->batches[i]);
    for (int i = 0; i < config->n_cameras; i++)
        print_crops(&config->cameras[i]);
}

static void print_row(const char *name, const char *picture, const struct memory_need *need,
                      bool device)
{
    printf("%-24s %12s", name, picture);
    if (device)
        printf(" %11.1f", (double)need->device / (1 << 20));
    printf(" %11.1f\n", (double)need->pinned / (1 << 20));
}

static void print_camera(const struct camera_config *camera, const struct backend_driver *driver,
                         bool device)
{
    char picture[32];
    const struct stream_memory stream = budget_stream(camera);
    struct memory_need need = budget_camera(camera, driver, budget_wants_nvdec(camera, driver)).all;
    snprintf(picture, sizeof picture, "%dx%d%s", stream.width, stream.height,
             camera->stream.width > 0 ? "" : "*");
    print_row(camera->name, picture, &need, device);
}

static bool any_is_assumed(const struct config *config)
{
    for (int i = 0; i < config->n_cameras; i++)
        if (config->cameras[i].stream.width == 0)
            return true;
    return false;
}

static void print_table(const struct config *config, const struct machine *basis)
{
    const struct memory_need sum = budget_sum(config, basis).all;
    const bool device = sum.device > 0;
    printf("memory in MiB with backend %s%s:\n%-24s %12s", basis->driver->name,
           basis->driver->takes_cuda && basis->n_gpus == 0 ? ", which does not answer here" : "",
           "camera", "picture");
    if (device)
        printf(" %11s", "device");
    printf(" %11s\n", "host");
    for (int i = 0; i < config->n_cameras; i++)
        print_camera(&config->cameras[i], basis->driver, device);
    const struct memory_need shared = budget_shared(config, basis);
    if (shared.device + shared.pinned > 0)
        print_row("cuda, shared by all", "", &shared, device);
    for (int i = 0; i < config->n_batches; i++) {
        const struct memory_need need = budget_batch(config, &config->batches[i], basis->driver);
        char name[64];
        snprintf(name, sizeof name, "batch %s", config->batches[i].name);
        print_row(name, "", &need, device);
    }
    print_row("sum", "", &sum, device);
    if (any_is_assumed(config))
        puts("* assumed until the camera runs, with as many pictures as H.264 allows; the sum has "
             "the decoders of files without `picture`, the limits do not count them");
}

// Every build has NVDEC, through libavcodec; only opening it shows whether it works. One GPU with
// it is enough.
static void print_missing_nvdec(const struct config *config, const struct machine *basis)
{
    struct decode_device *device = NULL;
    const struct camera_config *camera = config->cameras, *end = camera + config->n_cameras;
    const int n = basis->n_gpus > 0 ? basis->n_gpus : 1;
    int rc = -ENODEV;
    while (camera < end && camera->decode.by != DECODE_NVDEC)
        camera++;
    if (camera == end)
        return;
    for (int i = 0; rc < 0 && i < n; i++)
        rc = decode_device_open(
            &device, basis->n_gpus > 0 ? basis->gpus[i].number : config->cuda.devices.number[0], 0);
    if (rc < 0)
        printf("camera %s needs NVDEC, which does not work here\n", camera->name);
    decode_device_close(device);
}

static const struct placement_gpu *find_gpu(const struct machine *basis,
                                            const struct gpu_choice *choice)
{
    for (int i = 0; i < basis->n_gpus; i++)
        if (placement_is_chosen(&basis->gpus[i], choice))
            return &basis->gpus[i];
    return NULL;
}

static void print_missing_gpus(const struct config *config, const struct machine *basis)
{
    for (int i = 0; basis->n_gpus > 0 && i < config->n_cameras; i++)
        if (config->cameras[i].device.by != GPU_AUTO &&
            !find_gpu(basis, &config->cameras[i].device))
            printf("camera %s chooses a GPU that is not here\n", config->cameras[i].name);
}

// Adds a line for the folder of a sink that does not exist yet but will, since the unit makes it.
// `lines` are the lines printed to `f` so far: each folder is printed once.
static void add_folder_to_be(const struct sink_address *address, FILE *f, char *const *lines)
{
    char folder[PATH_MAX], hidden[2 * PATH_MAX], line[sizeof hidden + 64];
    const char *slash = address->path ? strrchr(address->path, '/') : NULL;
    if (!slash)
        return;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - address->path), address->path);
    if (!machine_check_is_made_by_unit(folder) || access(folder, F_OK) == 0)
        return;
    snprintf(line, sizeof line, "%s does not exist yet: the unit makes it when it starts\n",
             expand_hide(hidden, sizeof hidden, folder, false));
    fflush(f);
    if (!strstr(*lines, line))
        fputs(line, f);
}

static void print_folders_to_be(const struct config *config)
{
    char *lines = NULL;
    size_t size;
    FILE *f = open_memstream(&lines, &size);
    if (!f)
        return;
    for (int i = 0; i < config->n_cameras; i++)
        for (int o = 0; o < config->cameras[i].n_outputs; o++)
            add_folder_to_be(&config->cameras[i].outputs[o].sink, f, &lines);
    fclose(f);
    fputs(lines ? lines : "", stdout);
    free(lines);
}

// Returns how many source pixels an output pixel is wide or high, the larger of the two.
static double reduction_of(const struct output_config *output, const struct stream_memory *stream)
{
    const struct image picture = {.width = stream->width, .height = stream->height};
    struct op_params params;
    struct warp_params geometry;
    double m[6];
    int width, height;
    output_config_op(output, &params);
    if (output->kernel == KERNEL_WARP)
        geometry = params.warp;
    else if (!output->resized ||
             yuv_geometry(&geometry, &width, &height, &params.yuv, &picture) < 0)
        return 1;
    if (warp_src_to_dst(&geometry, &picture, m) < 0)
        return 1;
    const double area = fabs(m[0] * m[4] - m[1] * m[3]);
    return fmax(hypot(m[0], m[1]), hypot(m[3], m[4])) / area;
}

// Prints once, for the first such output, that bilinear samples leave out pixels.
static void print_left_out_pixels(const struct config *config)
{
    const struct output_config *first = NULL;
    const struct camera_config *its_camera = NULL;
    int more = 0;
    for (int i = 0; i < config->n_cameras; i++) {
        const struct camera_config *camera = &config->cameras[i];
        const struct stream_memory stream = budget_stream(camera);
        const bool known = camera->stream.width > 0 || camera->picture.width > 0;
        for (int o = 0; known && o < camera->n_outputs; o++) {
            const struct output_config *output = &camera->outputs[o];
            if (!output_config_has_op(output) || output->filter != FILTER_BILINEAR ||
                reduction_of(output, &stream) <= 2)
                continue;
            more += first != NULL;
            its_camera = first ? its_camera : camera;
            first = first ? first : output;
        }
    }
    if (!first)
        return;
    const struct stream_memory stream = budget_stream(its_camera);
    printf("output %s of %s reduces %dx%d %.3g times: filter bilinear leaves out pixels in between "
           "(area and triangle take all; most YOLO models are validated with bilinear)",
           first->name, its_camera->name, stream.width, stream.height,
           reduction_of(first, &stream));
    if (more > 0)
        printf("; %d more output%s likewise", more, more == 1 ? "" : "s");
    putchar('\n');
}

static void print_writable(const struct output_config *output, const char *camera)
{
    if (!output->shared.name)
        return;
    const char *group =
        object_shown(&output_table, output, "group", output->group ? output->group : "");
    printf("%s %s%s%s: `shared` lets all who may open its ring (mode %04o%s%s) change its frames "
           "before others read them\n",
           camera ? "output" : "batch", output->name, camera ? " of " : "", camera ? camera : "",
           (unsigned)output->mode.mode, *group ? ", group " : "", group);
}

static void print_lut(const struct output_config *output, const char *camera)
{
    const struct lut *lut = output->lut.lut;
    if (!lut)
        return;
    printf("%s %s%s%s: colours through %s", camera ? "output" : "batch", output->name,
           camera ? " of " : "", camera ? camera : "",
           object_shown(&output_table, output, "lut", output->lut.path));
    if (lut->curve_points > 0)
        printf(", 1D of %d points", lut->curve_points);
    if (lut->cube_points > 0)
        printf(", 3D of %d points, %s", lut->cube_points,
               output->interpolation == LUT_TETRAHEDRAL ? "tetrahedral" : "trilinear");
    putchar('\n');
}

static void print_hashes(const struct config *config)
{
    int n = 0;
    for (int i = 0; i < config->n_cameras; i++)
        n += config->cameras[i].check_hashes && config->cameras[i].decode.by != DECODE_CPU;
    if (n > 0)
        printf(
            "`check_hashes` of %d camera%s without `decode: cpu`: pictures that hardware decodes "
            "are not compared\n",
            n, n == 1 ? "" : "s");
}

// Prints the outputs with a LUT, then the outputs whose memory other programs can write to.
static void print_remarks(const struct config *config)
{
    print_hashes(config);
    for (int i = 0; i < config->n_cameras; i++)
        for (int o = 0; o < config->cameras[i].n_outputs; o++)
            if (!config->cameras[i].outputs[o].is_batch)
                print_lut(&config->cameras[i].outputs[o], config->cameras[i].name);
    for (int i = 0; i < config->n_batches; i++)
        print_lut(&config->batches[i], NULL);
    for (int i = 0; i < config->n_cameras; i++)
        for (int o = 0; o < config->cameras[i].n_outputs; o++)
            if (!config->cameras[i].outputs[o].is_batch)
                print_writable(&config->cameras[i].outputs[o], config->cameras[i].name);
    for (int i = 0; i < config->n_batches; i++)
        print_writable(&config->batches[i], NULL);
}

static void print_missing_processors(const struct config *config)
{
    char *rest = pinning_left_out(config);
    if (rest)
        puts(rest);
    free(rest);
}

char *check_readers(const struct config *config)
{
    const struct place at = config->secret;
    const char *file = config_files_path(&config->files, at);
    struct stat st;
    char *text;
    if (!at.line || stat(file, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH))
        return NULL;
    int n = asprintf(&text,
                     "%s:%d:%d: everybody on this machine can read this secret (chmod o-r, or "
                     "${NAME} of a credential)",
                     file, at.line, at.column);
    return n < 0 ? NULL : text;
}

static void warn_of_readers(const struct config *config)
{
    char *warning = check_readers(config);
    if (warning)
        fprintf(stderr, "warning: %s\n", warning);
    free(warning);
}

// Warns of outputs that the assumed picture cannot fill.
static void warn_of_geometry(const struct config *config)
{
    struct mistakes *warnings = calloc(1, sizeof *warnings);
    if (!warnings)
        return;
    machine_check_auto_pictures(warnings, config);
    mistakes_print(warnings, "warning: ", &config->files, stderr);
    mistakes_free(warnings);
    free(warnings);
}

int check_box(struct config *config, const char *file, bool probes)
{
    char why[256];
    log_open(LOG_LEVEL_ERROR);
    libav_log_open();
    warn_of_readers(config);
    struct machine basis;
    choose(&basis, config);
    if (!basis.driver) {
        fprintf(stderr, "%s: backend: cuda: this framed was built without CUDA\n", file);
        return EXIT_NO_DEVICE;
    }
    int code = EXIT_OK;
    if (probes)
        code = probe_cameras(config, file);
    else
        warn_of_geometry(config);
    int rc = budget_check(config, &basis, why, sizeof why);
    if (rc == 0)
        print_good(config, file);
    print_table(config, &basis);
    print_missing_gpus(config, &basis);
    print_missing_nvdec(config, &basis);
    print_missing_processors(config);
    print_left_out_pixels(config);
    print_remarks(config);
    print_folders_to_be(config);
    if (rc == 0)
        return code;
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", file, why);
    return EXIT_CONFIG;
}

int check_cpu(const char *command)
{
    const char *name = getenv("FRAMED_CPU"), *between = " ";
    if (version_find(name))
        return EXIT_OK;
    fprintf(stderr, "%s: FRAMED_CPU=%s: is not among the versions for this CPU:", command, name);
    for (int i = 0; versions[i]; i++) {
        if (!versions[i]->runs())
            continue;
        fprintf(stderr, "%s%s", between, versions[i]->name);
        between = ", ";
    }
    fputc('\n', stderr);
    return EXIT_USAGE;
}
