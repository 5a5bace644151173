// Memory that a configuration needs: figures computed by hand, and growth: more of anything never
// needs less.
#include "daemon/device/budget.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/load.h"
#include "daemon/work/work.h"
#include "tests/test.h"

enum {
    TENSOR = 640 * 640 * 3,
    SLOTS = 4096 + 6 * TENSOR, // a page of words before the default six
    PICTURE = 767 * 4096,      // 1920x1090 in 4:2:0 plus 192 bytes, as libavcodec pads it
    MIB = 1 << 20,
    SURFACE = 4 * MIB, // 1920x1088 in pages of 2 MiB
    STATE = 5 * MIB + 1920 * 1080 * 8,
    NVDEC = 54 * SURFACE + STATE, // 17 + 5 + 5 that are held, to decode into and to hand out
    SHARED = 30 * MIB,            // CUDA's own, for any number of cameras
    BESIDE = 120 * 68 * 200,      // for its macroblocks
    CAMERA = 5 << 19,             // with any pictures
    // One CPU thread: 16 kept pictures, the current one and those in flight.
    PACKET = 1920 * 1080 / 80,
    DECODED = CAMERA + (16 + 1 + 2) * PICTURE + 18 * BESIDE + 5 * PACKET,
    DECODED_FOR_GPU = DECODED + 2 * PICTURE + 3 * MIB,
    THREAD = PICTURE + BESIDE + (2 << 20),
    CUDA_CAMERA = CAMERA + 3 * MIB,
    PACKETS = 300 * PACKET,       // kept for the CPU to take over from NVDEC
    SOURCE = 1920 * 1080 * 3 / 2, // without padding, as it is uploaded
};

// A device that keeps the results of each job, and its source unless that is on the device.
static struct memory_need need_of(const struct image *src, const struct op *const ops[], int n,
                                  int depth)
{
    struct image tight = *src;
    size_t job = src->memory == MEMORY_CUDA ? 0 : image_lay_out(&tight, NULL);
    for (int i = 0; i < n; i++)
        job += ops[i]->dst_bytes;
    CHECK(n > 0 && depth == FRAMES_IN_FLIGHT_MAX, "%d ops, depth %d", n, depth);
    return (struct memory_need){.device = (size_t)depth * job};
}

static const struct backend_driver gpu = {.name = "gpu", .takes_cuda = true, .plan_need = need_of};
static const struct machine cpu = {.driver = &cpu_backend}, without_nvdec = {.driver = &gpu},
                            cpu_with_nvdec = {.driver = &cpu_backend, .nvdec = true},
                            with_nvdec = {.driver = &gpu, .nvdec = true};

// Loads one camera with these keys, its output's keys, and the required ones.
static struct config *load(const char *top, const char *camera, const char *output)
{
    char text[1024];
    struct config *config = NULL;
    int n = snprintf(text, sizeof text,
                     "%s\ncameras: {gate: {url: 'pipe:0', %s outputs: {o: {sink: 'ring:/r', %s}}}}",
                     top, camera, output);
    CHECK(config_load_text(&config, text, (size_t)n, "test", stderr) == 0, "%s", text);
    return config;
}

static struct memory_need need(const char *camera, const char *output,
                               const struct backend_driver *driver, bool nvdec)
{
    struct memory_need ret = {0};
    struct config *config = load("", camera, output);
    if (config)
        ret = budget_camera(config->cameras, driver, nvdec).all;
    config_free(config);
    return ret;
}

// cuMemGetInfo's figures of a decoder on an H200, KiB: the plan is never below, and little above.
static void test_nvdec(void)
{
    static const struct {
        enum stream_codec codec;
        int width, height, bits, surfaces, kib;
    } measured[] = {
        {STREAM_H264, 320, 192, 8, 8, 5734},       {STREAM_H264, 320, 192, 8, 24, 9318},
        {STREAM_H264, 640, 368, 8, 8, 12698},      {STREAM_H264, 640, 368, 8, 24, 30106},
        {STREAM_H264, 768, 432, 8, 8, 13619},      {STREAM_H264, 768, 432, 8, 24, 33075},
        {STREAM_H264, 1280, 720, 8, 8, 39322},     {STREAM_H264, 1280, 720, 8, 24, 104858},
        {STREAM_H264, 1920, 1088, 8, 8, 72602},    {STREAM_H264, 1920, 1088, 8, 24, 203674},
        {STREAM_H264, 2560, 1440, 8, 16, 203776},  {STREAM_H264, 3840, 2160, 8, 24, 650342},
        {STREAM_OTHER, 320, 192, 8, 24, 10240},    {STREAM_OTHER, 768, 432, 8, 8, 16589},
        {STREAM_OTHER, 1280, 720, 8, 16, 75059},   {STREAM_OTHER, 1920, 1088, 8, 8, 82739},
        {STREAM_OTHER, 3840, 2160, 8, 24, 676659}, {STREAM_OTHER, 640, 368, 10, 8, 23142},
        {STREAM_OTHER, 1280, 720, 10, 8, 77619},   {STREAM_OTHER, 1920, 1088, 10, 24, 363315},
        {STREAM_OTHER, 3840, 2160, 10, 8, 443187}, {STREAM_VP9, 320, 192, 8, 8, 54170},
        {STREAM_VP9, 1920, 1088, 8, 16, 183194},   {STREAM_VP9, 3840, 2160, 8, 24, 691098},
    };
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        const size_t used = (size_t)measured[i].kib << 10;
        const size_t plan = budget_nvdec(measured[i].codec, measured[i].width, measured[i].height,
                                         measured[i].bits, measured[i].surfaces);
        CHECK(plan >= used && plan <= used / 10 * 13, "%dx%d, %d bits, %d surfaces: %zu of %zu",
              measured[i].width, measured[i].height, measured[i].bits, measured[i].surfaces, plan,
              used);
    }
    CHECK(budget_nvdec(STREAM_OTHER, 1920, 1080, 8, 27) == NVDEC, "%zu",
          budget_nvdec(STREAM_OTHER, 1920, 1080, 8, 27));
    CHECK(budget_nvdec(STREAM_OTHER, 1920, 1080, 8, 0) == NVDEC, "surfaces are not known");
    CHECK(budget_nvdec(STREAM_OTHER, 1920, 1080, 8, 40) == 64 * SURFACE + STATE,
          "it has 32 surfaces");
}

static void test_figures(void)
{
    const struct {
        const char *camera, *output;
        const struct backend_driver *driver;
        bool nvdec;
        size_t device, pinned;
    } cases[] = {
        {"", "", &cpu_backend, false, 0, DECODED + SLOTS},
        {"decode_threads: 4,", "", &cpu_backend, false, 0, DECODED + 3 * THREAD + SLOTS},
        {"", "memory: cuda", &cpu_backend, false, 0, DECODED + SLOTS},
        {"", "", &cpu_backend, true, NVDEC, CUDA_CAMERA + PACKETS + 3 * PICTURE + SLOTS},
        {"", "", &gpu, false, 4 * (SOURCE + TENSOR), DECODED_FOR_GPU + SLOTS},
        {"", "", &gpu, true, NVDEC + 4 * TENSOR, CUDA_CAMERA + PACKETS + SLOTS},
        {"", "slots: 3", &gpu, true, NVDEC + 4 * TENSOR,
         CUDA_CAMERA + PACKETS + SLOTS - 3 * TENSOR},
        {"", "tensor: {dtype: f32}", &gpu, true, NVDEC + 16 * TENSOR,
         CUDA_CAMERA + PACKETS + 4096 + 24 * TENSOR},
        {"", "memory: cuda", &gpu, true, NVDEC + 4 * TENSOR + (8 << 20),
         CUDA_CAMERA + PACKETS + 4096},
        {"", "kernel: yuv, format: nv12", &gpu, true, NVDEC + 4 * SOURCE,
         CUDA_CAMERA + PACKETS + 4096 + 18665472},
        {"", "size: 1x1, tensor: {order: gray}", &gpu, true, NVDEC + 4,
         CUDA_CAMERA + PACKETS + 4096 + 4096},
        // No output can be made of such a picture.
        {"", "crop: [1900, 0, 64, 64]", &gpu, true, NVDEC, CUDA_CAMERA + PACKETS},
        {"picture: 1980x1080,", "crop: [1900, 0, 64, 64]", &gpu, true,
         NVDEC + 60 * 1080 * 8 + 4 * TENSOR,
         CUDA_CAMERA + PACKETS + 300 * (60 * 1080 / 80) + SLOTS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct memory_need got =
            need(cases[i].camera, cases[i].output, cases[i].driver, cases[i].nvdec);
        CHECK(got.device == cases[i].device, "row %zu: device %zu, not %zu", i, got.device,
              cases[i].device);
        CHECK(got.pinned == cases[i].pinned, "row %zu: pinned %zu, not %zu", i, got.pinned,
              cases[i].pinned);
    }
}

// A known stream is planned with its real figures; `picture` may expect more.
static void test_stream(void)
{
    static const struct stream_memory small = {.width = 320,
                                               .height = 180,
                                               .pixel_bits = 12,
                                               .pictures = 4,
                                               .surfaces = 11,
                                               .macroblock_bytes = 141,
                                               .packet_bytes = 1000};
    const size_t picture = 28 * 4096, beside = 20 * 12 * 141, deep = 55 * 4096;
    struct config *config = load("", "", "");
    struct camera_config *camera = config->cameras;
    camera->stream = small;
    struct memory_need need = budget_camera(camera, &cpu_backend, false).all;
    CHECK(need.pinned == CAMERA + (4 + 1 + 2) * picture + 6 * beside + 5 * 1000 + SLOTS, "cpu: %zu",
          need.pinned);
    need = budget_camera(camera, &gpu, true).all;
    CHECK(need.pinned == CUDA_CAMERA + 300 * 1000 + SLOTS, "nvdec: %zu", need.pinned);
    CHECK(need.device == budget_nvdec(STREAM_OTHER, 320, 180, 8, 16) + 4 * TENSOR, "nvdec: %zu",
          need.device);
    camera->stream.pixel_bits = 24;
    need = budget_camera(camera, &cpu_backend, false).all;
    CHECK(need.pinned == CAMERA + 7 * deep + 6 * beside + 5 * 1000 + SLOTS, "10 bits: %zu",
          need.pinned);
    camera->picture = (struct dimensions){160, 90};
    CHECK(budget_stream(camera).width == 320, "it is larger than was expected");
    camera->picture = (struct dimensions){640, 360};
    CHECK(budget_stream(camera).width == 640 && budget_stream(camera).pictures == 4,
          "more is expected");
    camera->paused = (struct place){.line = 1, .column = 1};
    need = budget_camera(camera, &gpu, true).all;
    CHECK(need.pinned == 0 && need.device == 0, "paused: %zu %zu", need.pinned, need.device);
    config_free(config);
}

// A camera with picture analysis needs more memory, where its pictures are.
static void test_analysis(void)
{
    const struct memory_need plain = need("", "", &gpu, true), cpu = need("", "", &gpu, false);
    const struct memory_need stats = need("stats: true,", "", &gpu, true);
    const struct memory_need gate = need("", "gate: motion", &gpu, false);
    CHECK(stats.device == plain.device + (512 << 10) && stats.pinned == plain.pinned + (512 << 10),
          "nvdec: %zu and %zu", stats.device, stats.pinned);
    CHECK(gate.device == cpu.device && gate.pinned == cpu.pinned + (512 << 10), "cpu: %zu and %zu",
          gate.device, gate.pinned);
}

// The drivers' own plans: more of anything never needs less.
static void test_growth(const struct backend_driver *driver, bool nvdec)
{
    static const char *const cameras[] = {"picture: 640x480,", "picture: 1280x720,", "",
                                          "picture: 3840x2160,"};
    static const char *const outputs[] = {"slots: 3", "slots: 6", "slots: 60", "slots: 256"};
    struct memory_need before = {0}, now;
    for (int i = 0; i < 4; i++, before = now) {
        now = need(cameras[i], "", driver, nvdec);
        CHECK(now.pinned + now.device > before.pinned + before.device &&
                  now.pinned >= before.pinned && now.device >= before.device,
              "%s: %s", driver->name, cameras[i]);
    }
    before = (struct memory_need){0};
    for (int i = 0; i < 4; i++, before = now) {
        now = need("", outputs[i], driver, nvdec);
        CHECK(now.pinned > before.pinned && now.device >= before.device, "%s: %s", driver->name,
              outputs[i]);
    }
}

// The cameras are decoded in the right places, and all of them count.
static void test_sum(void)
{
    static const char text[] = "cameras:\n"
                               "  a: {url: x, outputs: {o: {sink: 'ring:/a'}}}\n"
                               "  b: {url: x, decode: cpu, outputs: {o: {sink: 'ring:/b'}}}\n"
                               "  c: {url: x, decode: nvdec, outputs: {o: {sink: 'ring:/c'}}}\n";
    struct config *config = NULL;
    CHECK(config_load_text(&config, text, strlen(text), "test", stderr) == 0, "%s", text);
    if (!config)
        return;
    struct memory_need on_gpu = budget_sum(config, &with_nvdec).all,
                       without = budget_sum(config, &without_nvdec).all,
                       on_cpu = budget_sum(config, &cpu_with_nvdec).all;
    CHECK(on_gpu.device == 2 * (size_t)NVDEC + 4 * (3 * TENSOR + SOURCE), "%zu", on_gpu.device);
    CHECK(on_gpu.pinned == SHARED + DECODED_FOR_GPU + 2 * (CUDA_CAMERA + PACKETS) + 3 * SLOTS,
          "%zu", on_gpu.pinned);
    CHECK(without.device == 12 * (TENSOR + SOURCE), "%zu", without.device);
    CHECK(without.pinned == SHARED + 3 * (DECODED_FOR_GPU + SLOTS), "%zu", without.pinned);
    CHECK(on_cpu.device == NVDEC, "%zu: only where it is demanded", on_cpu.device);
    config_free(config);
}

// Pictures that are kept beside the decoder's, and their copies on a device.
static void test_crops(void)
{
    static const char crops[] = "}, p: {sink: 'ring:/p', crops: {of: o, most: 4, keep: 1s}";
    const size_t slots = 4096 + 6 * 4 * TENSOR;
    size_t more = need("", crops, &cpu_backend, false).pinned - DECODED - SLOTS;
    CHECK(more == slots + 32 * PICTURE, "%zu: of a second, at 30/s", more);
    more = need("fps: 9.5,", crops, &cpu_backend, false).pinned - DECODED - SLOTS;
    CHECK(more == slots + 12 * PICTURE, "%zu: of a slower camera", more);
    const struct memory_need before = need("", "", &gpu, true), after = need("", crops, &gpu, true);
    const size_t copies = (37 * (size_t)SOURCE + (2 << 20) - 1) >> 21 << 21;
    CHECK(after.pinned - before.pinned == slots, "%zu on the host", after.pinned - before.pinned);
    CHECK(after.device - before.device == 4 * 4 * TENSOR + copies, "%zu on the device",
          after.device - before.device);
}

static void test_batch(void)
{
    size_t host[2], device[2];
    for (int i = 0; i < 2; i++) {
        static const char *const cameras[] = {"a: {url: x}", "a: {url: x}, b: {url: y}"};
        char text[512];
        struct config *config = NULL;
        int n = snprintf(text, sizeof text,
                         "batches: {d: {cameras: '*', count: 5, slots: 3, size: 64x64, sink: "
                         "'ring:/r'}}\ncameras: {%s}",
                         cameras[i]);
        CHECK(config_load_text(&config, text, (size_t)n, "test", stderr) == 0, "%s", text);
        const size_t slots = 4096 + 3 * 5 * 64 * 64 * 3;
        if (!config)
            return;
        host[i] = budget_batch(config, &config->batches[0], &cpu_backend).pinned;
        CHECK(host[i] == slots, "%zu, not %zu", host[i], slots);
        size_t sum = budget_shared(config, &cpu).pinned + host[i];
        for (int c = 0; c < config->n_cameras; c++)
            sum += budget_camera(&config->cameras[c], &cpu_backend, false).all.pinned;
        CHECK(budget_sum(config, &cpu).all.pinned == sum, "counted not once");
        config->cameras[0].outputs[0].memory = RING_CUDA;
        device[i] = budget_batch(config, &config->batches[0], &gpu).device;
        CHECK(device[i] > slots - 4096, "%zu of the device", device[i]);
        config_free(config);
    }
    CHECK(host[0] == host[1] && device[0] == device[1], "by the number of cameras");
}

static void test_limit(void)
{
    struct config config = {0};
    CHECK(budget_limit(&config, 0) == SIZE_MAX, "nothing is known");
    CHECK(budget_limit(&config, 1000) == 950, "%zu", budget_limit(&config, 1000));
    config.cuda.memory.n = 900;
    CHECK(budget_limit(&config, 0) == 900 && budget_limit(&config, 1000) == 900, "cuda.memory");
    config.cuda.memory.n = 1000;
    CHECK(budget_limit(&config, 1000) == 950, "more than the device has");
}

#define HINT                                                                                       \
    "(`picture`, `slots` and `decode_threads` make it less; `framed check` lists each camera)"

static void check(const struct config *config, size_t device, const char *expected)
{
    char why[256] = "", want[256] = "";
    const struct machine one = {&gpu, true, {{.limit = budget_limit(config, device)}}, 1};
    int rc = budget_check(config, &one, why, sizeof why);
    if (*expected)
        snprintf(want, sizeof want, "%s " HINT, expected);
    CHECK(rc == (*expected ? -ENOSPC : 0) && !strcmp(why, want), "%d: '%s'", rc, why);
}

static void test_check(void)
{
    const size_t need = NVDEC + 4 * TENSOR; // 241.5 MiB
    struct config *config = load("cuda: {memory: 128MiB}", "", "");
    check(config, 0, "cameras need 241.5 MiB of device memory, cuda.memory allows 128.0 MiB");
    config->cuda.memory.n = (int64_t)need;
    check(config, 0, "");
    check(config, (size_t)16 << 30, "");
    config->cuda.memory.n--;
    check(config, 0, "cameras need 241.5 MiB of device memory, cuda.memory allows 241.5 MiB");
    config->cuda.memory.n = 0;
    check(config, 0, "");
    check(config, 128 << 20,
          "cameras need 241.5 MiB of device memory, the device has room for 121.6 MiB");
    config_free(config);
    config = load("cuda: {memory: 2GiB}", "picture: 8192x8192,", "");
    check(config, 0, "cameras need 5.6 GiB of device memory, cuda.memory allows 2.0 GiB");
    config_free(config);
}

// A file's size never causes a refusal, neither the assumed nor a measured one: its decoder has no
// plan and takes its memory from the reserve.
static void test_file(void)
{
    static char file[] = "x";
    const char *refusal = "cameras need 241.5 MiB of device memory, cuda.memory allows 128.0 MiB";
    const size_t beside = CAMERA + 5 * PACKET + SLOTS;
    struct config *config = load("cuda: {memory: 128MiB}", "", "");
    struct camera_config *camera = config->cameras;
    char *const url = camera->url;
    check(config, 0, refusal);
    CHECK(budget_decoder(camera) == (16 + 1 + 5) * PICTURE + 18 * BESIDE, "%zu",
          budget_decoder(camera));
    CHECK(budget_sum(config, &cpu).reserved == beside + budget_decoder(camera), "%zu",
          budget_sum(config, &cpu).reserved);
    camera->url = file;
    check(config, 0, "");
    CHECK(budget_decoder(camera) == 0, "%zu", budget_decoder(camera));
    CHECK(budget_sum(config, &cpu).reserved == beside, "%zu", budget_sum(config, &cpu).reserved);
    CHECK(budget_camera(camera, &cpu_backend, false).all.pinned == DECODED + SLOTS,
          "not as printed");
    camera->stream = budget_stream(camera);
    check(config, 0, "");
    CHECK(budget_decoder(camera) == 0, "seen: %zu", budget_decoder(camera));
    CHECK(budget_sum(config, &cpu).reserved == beside, "seen: %zu",
          budget_sum(config, &cpu).reserved);
    camera->stream = (struct stream_memory){0};
    camera->picture = (struct dimensions){1920, 1080};
    check(config, 0, refusal);
    CHECK(budget_decoder(camera) > 0, "`picture` plans nothing");
    camera->url = url;
    config_free(config);
}

static void check_two(const struct config *config, size_t first, size_t second,
                      const char *expected)
{
    const struct machine two = {
        &gpu, true, {{.number = 3, .limit = first}, {.number = 1, .limit = second}}, 2};
    char why[256] = "", want[256] = "";
    int rc = budget_check(config, &two, why, sizeof why);
    if (*expected)
        snprintf(want, sizeof want, "%s " HINT, expected);
    CHECK(rc == (*expected ? -ENOSPC : 0) && !strcmp(why, want), "%d: '%s'", rc, why);
}

// Each GPU must have room for its cameras.
static void test_check_two(void)
{
    const size_t need = NVDEC + 4 * TENSOR; // 241.5 MiB
    struct config *config = load("", "", "");
    struct camera_config cameras[3] = {*config->cameras, *config->cameras, *config->cameras};
    struct config three = *config;
    three.cameras = cameras;
    three.n_cameras = 3;
    check_two(&three, 2 * need, need, "");
    check_two(&three, need, 2 * need, "");
    check_two(&three, 2 * need, need - 1,
              "cameras need 241.5 MiB of the memory of GPU 1, the device has room for 241.5 MiB");
    cameras[0].device = (struct gpu_choice){.by = GPU_BY_NUMBER, .number = 1};
    cameras[2].device = cameras[0].device;
    check_two(&three, need, 2 * need, "");
    check_two(&three, 2 * need, need,
              "cameras need 483.0 MiB of the memory of GPU 1, the device has room for 241.5 MiB");
    config_free(config);
}

// A file requests no more of a GPU than it is charged with: the camera after it finds room.
static void test_check_file_and_camera(void)
{
    static char file[] = "x";
    const size_t need = NVDEC + 4 * TENSOR;
    struct config *config = load("", "", "");
    struct camera_config cameras[2] = {*config->cameras, *config->cameras};
    struct config two = *config;
    cameras[0].url = file;
    two.cameras = cameras;
    two.n_cameras = 2;
    check_two(&two, need - 1, need, "");
    config_free(config);
}

// 3 PiB of slots, more than a configuration can request for one output.
static void test_check_host(void)
{
    struct config *config = load("", "", "size: 16384x16384, tensor: {dtype: f32}");
    char why[256] = "";
    config->cameras->outputs->slots = 1 << 20;
    int rc = budget_check(config, &cpu, why, sizeof why);
    CHECK(rc == -ENOSPC && strstr(why, "cameras need 3145728.1 GiB of memory, "), "%d: '%s'", rc,
          why);
    rc = budget_check(config, &with_nvdec, why, sizeof why);
    CHECK(rc == -ENOSPC && strstr(why, " GiB of page-locked memory, "), "%d: '%s'", rc, why);
    config_free(config);
}

int main(void)
{
    TEST(test_analysis());
    TEST(test_nvdec());
    TEST(test_figures());
    TEST(test_stream());
    TEST(test_growth(&cpu_backend, false));
    TEST(test_growth(&gpu, false));
    TEST(test_growth(&gpu, true));
#ifdef FRAMED_CUDA
    TEST(test_growth(&cuda_backend, false));
    TEST(test_growth(&cuda_backend, true));
#endif
    TEST(test_sum());
    TEST(test_batch());
    TEST(test_crops());
    TEST(test_limit());
    TEST(test_check());
    TEST(test_file());
    TEST(test_check_two());
    TEST(test_check_file_and_camera());
    TEST(test_check_host());
    return test_end();
}
