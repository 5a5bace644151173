#include "daemon/device/budget.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "config/url.h"
#include "daemon/base/machine.h"
#include "daemon/base/number.h"
#include "daemon/base/region.h"
#include "daemon/codec/buffers.h"
#include "daemon/codec/packet_history.h"

// --- placement

bool placement_is_chosen(const struct placement_gpu *gpu, const struct gpu_choice *choice)
{
    if (choice->by == GPU_BY_UUID)
        return memcmp(gpu->uuid, choice->uuid, sizeof choice->uuid) == 0;
    return choice->by == GPU_BY_NUMBER && gpu->number == choice->number;
}

static bool has_memory(const struct placement_gpu *gpu, size_t bytes)
{
    return gpu->taken.bytes <= gpu->limit && bytes <= gpu->limit - gpu->taken.bytes;
}

static bool has_more_room(const struct placement_gpu *a, const struct placement_gpu *b,
                          size_t bytes)
{
    if (has_memory(a, bytes) != has_memory(b, bytes))
        return has_memory(a, bytes);
    if (a->taken.pixels != b->taken.pixels)
        return a->taken.pixels < b->taken.pixels;
    const double of_a = (double)a->taken.bytes * (double)b->limit;
    const double of_b = (double)b->taken.bytes * (double)a->limit;
    return of_a != of_b ? of_a < of_b : a->taken.cameras < b->taken.cameras;
}

int placement_choose(const struct placement_gpu gpus[], int n, const struct gpu_choice *choice,
                     size_t bytes)
{
    int best = -1;
    for (int i = 0; i < n; i++) {
        if (!gpus[i].usable)
            continue;
        if (placement_is_chosen(&gpus[i], choice))
            return i;
        if (best < 0 || has_more_room(&gpus[i], &gpus[best], bytes))
            best = i;
    }
    return best;
}

void placement_add(struct gpu_share *to, const struct gpu_share *share, int sign)
{
    to->bytes += (size_t)sign * share->bytes;
    to->pixels += (uint64_t)sign * share->pixels;
    to->cameras += sign * share->cameras;
}

// --- the budget

enum {
    DEVICE_PERCENT = 95, // of a device, for cameras
    // Assumed for a stream until its first picture.
    WIDTH = 1920,
    HEIGHT = 1080,
    PIXEL_BITS = 12, // 4:2:0
    PICTURES = 16,   // the most reference pictures of H.264
    SURFACES = 22,   // for one more, and five that libavcodec adds
    MACROBLOCK_BYTES = 200,
    BITS_OF_PIXELS = 10,    // per bit of a packet, on average
    CAMERA_BYTES = 5 << 19, // its input, decoder and thread, and malloc's share
    PACKETS = 5, // at once: in libavformat, in the decoder, its unescaped copy, larger ones
    PACKETS_A_SECOND = 25,
    COPY_BYTES = 1 << 20,       // of a copy's muxer
    ANALYSIS_BYTES = 512 << 10, // tables and background; on the GPU: cells and background
    // For `detections`: lines that wait, and frames that clients may send results for; and the
    // additional memory of such frames in batches.
    LINES_BYTES = 1600 << 10,
    REMEMBERED_BYTES = 1400 << 10,
    KEPT_PICTURES_MAX = 256,
    PICTURES_A_SECOND = 30, // if the stream has no rate
    // CUDA on the host: its kernels and NVDEC's library, once per process; and per camera the
    // driver's share of its streams and its decoder.
    CUDA_BYTES = 30 << 20,
    CUDA_CAMERA_BYTES = 3 << 20,
    // NVDEC.
    SURFACES_MAX = 32,     // of one decoder
    DECODED_PITCH = 64,    // bytes, of a surface to decode into
    MAPPED_PITCH = 512,    // bytes, of a surface to hand out
    SURFACE_ROWS = 32,     // two rows of macroblocks, for interlaced pictures
    DEVICE_PAGE = 2 << 20, // the driver allocates such pages, or equal parts of one
};

// State of an NVDEC decoder beside its surfaces: bytes, and bytes per pixel of its pictures.
static const struct {
    size_t fixed, per_pixel;
} nvdec_state[] = {
    [STREAM_OTHER] = {5 << 20, 8}, // H.265, which needs the most after VP9
    [STREAM_H264] = {5 << 20, 2},
    [STREAM_VP9] = {51 << 20, 2},
};

static size_t surface_bytes(size_t row_bytes, size_t rows, size_t pitch)
{
    const size_t bytes = round_up(row_bytes, pitch) * round_up(rows, SURFACE_ROWS) * 3 / 2;
    return bytes > DEVICE_PAGE ? round_up(bytes, DEVICE_PAGE) : DEVICE_PAGE / (DEVICE_PAGE / bytes);
}

int frames_in_flight(const struct backend_driver *driver)
{
    return driver->depth > 0 && driver->depth < FRAMES_IN_FLIGHT_MAX ? driver->depth
                                                                     : FRAMES_IN_FLIGHT_MAX;
}

// libavcodec has as many surfaces to decode into as to hand out.
size_t budget_nvdec(enum stream_codec codec, int width, int height, int bits, int surfaces)
{
    const size_t row = (size_t)width * (bits > 8 ? 2 : 1), rows = (size_t)height;
    if (surfaces == 0)
        surfaces = SURFACES + FRAMES_HELD_MAX;
    if (surfaces > SURFACES_MAX)
        surfaces = SURFACES_MAX;
    return (size_t)surfaces *
               (surface_bytes(row, rows, DECODED_PITCH) + surface_bytes(row, rows, MAPPED_PITCH)) +
           nvdec_state[codec].fixed + nvdec_state[codec].per_pixel * (size_t)width * rows;
}

// --- one camera

static int64_t area(const struct dimensions *size)
{
    return (int64_t)size->width * size->height;
}

// `picture` may be larger than the stream's present size.
struct stream_memory budget_stream(const struct camera_config *camera)
{
    struct stream_memory stream = camera->stream;
    struct dimensions size = {stream.width, stream.height};
    if (area(&camera->picture) > area(&size))
        size = camera->picture;
    if (area(&size) == 0)
        size = (struct dimensions){WIDTH, HEIGHT};
    if (stream.width == 0) {
        stream.pictures = PICTURES;
        stream.surfaces = SURFACES;
        stream.macroblock_bytes = MACROBLOCK_BYTES;
    }
    if (stream.pixel_bits == 0)
        stream.pixel_bits = PIXEL_BITS;
    stream.width = size.width;
    stream.height = size.height;
    if (stream.packet_bytes == 0)
        stream.packet_bytes = (int)(area(&size) / BITS_OF_PIXELS / 8);
    return stream;
}

static struct image picture_of(const struct stream_memory *stream,
                               const struct backend_driver *driver, bool nvdec)
{
    struct image source = {
        .format = nvdec ? PIXEL_NV12 : PIXEL_YUV420P,
        .width = stream->width,
        .height = stream->height,
        .memory = !driver->takes_cuda ? MEMORY_HOST
                  : nvdec             ? MEMORY_CUDA
                                      : MEMORY_PINNED,
    };
    source.colour = colour_resolve(source.colour, source.height);
    image_lay_out(&source, NULL);
    return source;
}

// Host memory with NVDEC: downloaded pictures, and packets from which the cpu could take over.
static size_t nvdec_host_bytes(const struct stream_memory *stream, const struct image *source,
                               int depth)
{
    size_t downloaded = source->memory == MEMORY_CUDA ? 0 : (size_t)depth + 1;
    return downloaded * dpb_picture_bytes(stream, source) +
           (size_t)PACKETS_KEPT_MAX * (size_t)stream->packet_bytes;
}

static void add(struct memory_need *sum, struct memory_need need)
{
    sum->device += need.device;
    sum->pinned += need.pinned;
}

static struct memory_need slots_need(const struct output_config *output, size_t size,
                                     bool takes_cuda)
{
    bool on_device = output->memory != RING_HOST && takes_cuda;
    struct memory_need need =
        pool_region_need(on_device ? REGION_DEVICE : REGION_SHARED, output->slots, size);
    if (output->detections.sink.kind != SINK_NONE)
        need.pinned += LINES_BYTES + (output->capacity > 1 ? REMEMBERED_BYTES : 0);
    return need;
}

// Packets of a second that wait to be written, and packets that wait for a request.
static size_t copy_bytes(const struct output_config *output, int packet_bytes)
{
    const int64_t seconds = 1 + output->before.ns / 1000000000;
    return (size_t)seconds * PACKETS_A_SECOND * (size_t)packet_bytes;
}

int budget_kept_pictures(const struct crops_config *crops, int num, int den)
{
    const double rate = num > 0 && den > 0 ? (double)num / den : PICTURES_A_SECOND;
    const double count = (double)crops->keep.ns / 1e9 * rate + 2;
    return count < KEPT_PICTURES_MAX ? (int)count : KEPT_PICTURES_MAX;
}

int budget_planned_pictures(const struct camera_config *camera, const struct output_config *output)
{
    const bool slower = camera->fps > 0 && camera->fps < PICTURES_A_SECOND;
    return budget_kept_pictures(&output->crops, slower ? (int)ceil(camera->fps) : 0, 1);
}

// Needs beside the slots and the decoder's pictures: a plan of its own, and the kept pictures,
// which are copied if they are on the device.
static struct memory_need crops_need(const struct camera_config *camera,
                                     const struct output_config *output,
                                     const struct backend_driver *driver,
                                     const struct stream_memory *stream, const struct image *source,
                                     const struct op *op)
{
    const size_t kept = (size_t)budget_planned_pictures(camera, output);
    const struct op *ops[CROPS_MAX];
    struct image copy = *source;
    struct memory_need need;
    for (int i = 0; i < output->capacity; i++)
        ops[i] = op;
    need = driver->plan_need(source, ops, output->capacity, frames_in_flight(driver));
    if (source->memory == MEMORY_CUDA)
        need.device +=
            round_up((kept + FRAMES_IN_FLIGHT_MAX + 1) * image_lay_out(&copy, NULL), DEVICE_PAGE);
    else
        need.pinned += kept * dpb_picture_bytes(stream, source);
    return need;
}

// Returns the need of the outputs. *waiting: of packets while the disks or servers of copies hang.
// A clip then adds all that it remembers.
static struct memory_need outputs_need(const struct camera_config *camera,
                                       const struct backend_driver *driver,
                                       const struct stream_memory *stream,
                                       const struct image *source, size_t *waiting)
{
    struct op op[CAMERA_OUTPUTS_MAX];
    const struct op *ops[CAMERA_OUTPUTS_MAX];
    struct memory_need need = {0};
    int made = 0, n = 0;
    for (int i = 0; i < camera->n_outputs; i++) {
        const struct output_config *output = &camera->outputs[i];
        struct op_params params;
        if (output->kernel == KERNEL_COPY) {
            const size_t bytes = copy_bytes(output, stream->packet_bytes);
            need.pinned += COPY_BYTES + bytes;
            *waiting += COPY_WAITING_BYTES + (output->before.ns > 0 ? bytes : 0);
        }
        if (output->kernel == KERNEL_STATS)
            need.pinned += LINES_BYTES;
        if (!output_config_has_op(output))
            continue;
        output_config_op(output, &params);
        if (op_init(&op[made], &params, source) < 0)
            continue;
        const size_t elements = output->crops.of ? (size_t)output->capacity : 1;
        if (!output->is_batch) // else budget_batch counts them
            add(&need, slots_need(output, op[made].dst_bytes * elements, driver->takes_cuda));
        if (output->crops.of)
            add(&need, crops_need(camera, output, driver, stream, source, &op[made]));
        else
            ops[n++] = &op[made];
        made++;
    }
    if (n > 0)
        add(&need, driver->plan_need(source, ops, n, frames_in_flight(driver)));
    for (int i = 0; i < made; i++)
        op_finish(&op[i]);
    return need;
}

// True if the picture size is only assumed, for lack of better: it refuses no configuration. A
// known size refuses none either: the decoder may run without the memory of this plan.
static bool reserves_later(const struct camera_config *camera)
{
    return camera->picture.width == 0 && config_url_kind(camera->url) == URL_FILE;
}

size_t budget_decoder(const struct camera_config *camera)
{
    struct camera_config own = *camera;
    own.stream = (struct stream_memory){0};
    const struct stream_memory stream = budget_stream(&own);
    const struct image source = picture_of(&stream, &cpu_backend, false);
    return reserves_later(camera) ? 0
                                  : dpb_bytes(&stream, &source, camera->threads, FRAMES_HELD_MAX);
}

bool budget_wants_nvdec(const struct camera_config *camera, const struct backend_driver *driver)
{
    return camera->decode.by == DECODE_NVDEC ||
           (camera->decode.by == DECODE_AUTO && driver->takes_cuda);
}

struct budget budget_camera(const struct camera_config *camera, const struct backend_driver *driver,
                            bool nvdec)
{
    const struct stream_memory stream = budget_stream(camera);
    const struct image source = picture_of(&stream, driver, nvdec);
    const int depth = frames_in_flight(driver), bits = stream.pixel_bits > PIXEL_BITS ? 10 : 8;
    struct memory_need decoder = {0};
    struct budget ret = {0};
    size_t waiting = 0;
    if (camera->paused.line)
        return ret; // it is checked once resumed
    if (nvdec)
        decoder.device = budget_nvdec(stream.codec, source.width, source.height, bits,
                                      stream.surfaces + FRAMES_HELD_MAX);
    else
        decoder.pinned = dpb_bytes(&stream, &source, camera->threads, depth);
    ret.certain = outputs_need(camera, driver, &stream, &source, &waiting);
    if (camera_config_analyses(camera))
        add(&ret.certain, (struct memory_need){nvdec ? ANALYSIS_BYTES : 0, ANALYSIS_BYTES});
    ret.certain.pinned += CAMERA_BYTES + (driver->takes_cuda || nvdec ? CUDA_CAMERA_BYTES : 0);
    ret.certain.pinned +=
        nvdec ? nvdec_host_bytes(&stream, &source, depth) : PACKETS * (size_t)stream.packet_bytes;
    ret.reserved = ret.certain.pinned + (nvdec ? 0 : budget_decoder(camera));
    ret.all = ret.certain;
    add(&ret.all, decoder);
    ret.all.pinned += waiting;
    if (!reserves_later(camera))
        add(&ret.certain, decoder);
    return ret;
}

struct gpu_share budget_share(const struct camera_config *camera,
                              const struct backend_driver *driver, bool nvdec)
{
    const struct stream_memory stream = budget_stream(camera);
    const bool decodes = nvdec && budget_wants_nvdec(camera, driver);
    return (struct gpu_share){
        .bytes = budget_camera(camera, driver, decodes).certain.device,
        .pixels = decodes ? (uint64_t)stream.width * (uint64_t)stream.height : 0,
        .cameras = 1,
    };
}

// --- batches

// Returns the camera's share in the batch; NULL: it has none.
static const struct output_config *find_share(const struct camera_config *camera, const char *batch)
{
    for (int i = 0; i < camera->n_outputs; i++)
        if (camera->outputs[i].is_batch && strcmp(camera->outputs[i].name, batch) == 0)
            return &camera->outputs[i];
    return NULL;
}

// Elements of all members have the same size.
struct memory_need budget_batch(const struct config *config, const struct output_config *batch,
                                const struct backend_driver *driver)
{
    for (int i = 0; i < config->n_cameras; i++) {
        const struct output_config *share = find_share(&config->cameras[i], batch->name);
        const struct stream_memory stream = budget_stream(&config->cameras[i]);
        const struct image source = picture_of(&stream, driver, false);
        struct op_params params;
        struct op op;
        if (!share)
            continue;
        output_config_op(share, &params);
        if (op_init(&op, &params, &source) < 0)
            continue;
        const size_t size = op.dst_bytes * (size_t)share->capacity;
        op_finish(&op);
        return slots_need(share, size, driver->takes_cuda);
    }
    return (struct memory_need){0};
}

// --- all of them

struct memory_need budget_shared(const struct config *config, const struct machine *machine)
{
    bool cuda = machine->driver->takes_cuda && config->n_cameras > 0;
    for (int i = 0; i < config->n_cameras; i++)
        cuda |= machine->nvdec && budget_wants_nvdec(&config->cameras[i], machine->driver);
    return (struct memory_need){.pinned = cuda ? CUDA_BYTES : 0};
}

static struct memory_need batches_need(const struct config *config,
                                       const struct backend_driver *driver)
{
    struct memory_need need = {0};
    for (int i = 0; i < config->n_batches; i++)
        add(&need, budget_batch(config, &config->batches[i], driver));
    return need;
}

struct budget budget_sum(const struct config *config, const struct machine *machine)
{
    const struct backend_driver *driver = machine->driver;
    struct memory_need common = batches_need(config, driver);
    add(&common, budget_shared(config, machine));
    struct budget sum = {common, common, common.pinned};
    for (int i = 0; i < config->n_cameras; i++) {
        const struct camera_config *camera = &config->cameras[i];
        const struct budget its =
            budget_camera(camera, driver, machine->nvdec && budget_wants_nvdec(camera, driver));
        add(&sum.all, its.all);
        add(&sum.certain, its.certain);
        sum.reserved += its.reserved;
    }
    return sum;
}

size_t budget_limit(const struct config *config, size_t device_bytes)
{
    size_t room = device_bytes ? device_bytes / 100 * DEVICE_PERCENT : SIZE_MAX;
    size_t allowed = (size_t)config->cuda.memory.n;
    return allowed && allowed < room ? allowed : room;
}

static double in_unit(size_t bytes, const char **unit)
{
    bool large = bytes >= (size_t)1 << 30;
    *unit = large ? "GiB" : "MiB";
    return (double)bytes / (large ? 1 << 30 : 1 << 20);
}

static int check_one(size_t need, const char *what, size_t limit, const char *limits, char *why,
                     size_t size)
{
    const char *need_unit, *limit_unit;
    double needed = in_unit(need, &need_unit), allowed = in_unit(limit, &limit_unit);
    if (need <= limit)
        return 0;
    snprintf(why, size,
             "cameras need %.1f %s of %s, %s %.1f %s (`picture`, `slots` and `decode_threads` make "
             "it less; `framed check` lists each camera)",
             needed, need_unit, what, limits, allowed, limit_unit);
    return -ENOSPC;
}

static size_t box_bytes(void)
{
    return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
}

size_t budget_host_limit(void)
{
    const size_t group = cgroup_memory_limit(CGROUP_MEMBERSHIP, CGROUP_ROOT);
    return group < box_bytes() ? group : box_bytes();
}

// Places all cameras as they would go to the GPUs.
static void place_cameras(const struct config *config, struct machine *machine)
{
    for (int i = 0; i < machine->n_gpus; i++) {
        machine->gpus[i].usable = true;
        machine->gpus[i].taken = (struct gpu_share){0};
    }
    for (int i = 0; i < config->n_cameras; i++) {
        const struct camera_config *camera = &config->cameras[i];
        if (camera->paused.line)
            continue;
        const struct gpu_share share = budget_share(camera, machine->driver, machine->nvdec);
        const int gpu =
            placement_choose(machine->gpus, machine->n_gpus, &camera->device, share.bytes);
        placement_add(&machine->gpus[gpu].taken, &share, 1);
    }
}

// Batches are on one GPU, or on the host if there are several.
int budget_check(const struct config *config, const struct machine *machine, char *why, size_t size)
{
    const size_t of_batches = batches_need(config, machine->driver).device;
    const size_t host = budget_sum(config, machine).certain.pinned, limit = budget_host_limit();
    struct machine placed = *machine;
    char what[40] = "device memory";
    int rc = 0;
    if (placed.n_gpus == 0)
        placed.gpus[placed.n_gpus++] = (struct placement_gpu){.limit = budget_limit(config, 0)};
    const bool several = placed.n_gpus > 1;
    place_cameras(config, &placed);
    for (const struct placement_gpu *gpu = placed.gpus;
         rc == 0 && gpu < placed.gpus + placed.n_gpus; gpu++) {
        const bool own = gpu->limit == (size_t)config->cuda.memory.n;
        if (several)
            snprintf(what, sizeof what, "the memory of GPU %d", gpu->number);
        rc = check_one(gpu->taken.bytes + of_batches, what, gpu->limit,
                       own ? "cuda.memory allows" : "the device has room for", why, size);
    }
    return rc < 0 ? rc
                  : check_one(host + (several ? of_batches : 0),
                              machine->driver->takes_cuda ? "page-locked memory" : "memory", limit,
                              limit < box_bytes() ? "its control group (MemoryMax=) allows"
                                                  : "this box has",
                              why, size);
}
