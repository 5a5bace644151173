// Tests the CUDA backend with every kind of memory: sources on the host, page-locked or on the
// device, padded and upside down; results page-locked, plain, or on the device for other processes.
// submit must never wait for the device.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/kernels/cuda/call.h"

static void test_placement(struct backend *backend, const struct camera *camera,
                           enum placement placement, enum memory results, bool gates)
{
    struct source source, pinned;
    struct call call;
    struct plan *plan;
    struct gate gate;
    char what[64];
    snprintf(what, sizeof what, "placement %d", placement);
    source_init(&source, camera, placement);
    source_init(&pinned, camera, PINNED);
    call_init(&call, backend, camera, &source.image, results);
    CHECK(cuda->plan_open(backend, &plan, &source.image, camera->ops, OPS, 1) == 0, "%s", what);

    for (int round = 0; round < 2; round++) { // the second round reuses the slot
        const bool gated = gates && placement == DEVICE;
        if (gated)
            gate_close(&gate, PATIENCE);
        if (placement == DEVICE)
            CHECK(!decode_into(&source, &pinned.image), "decode");
        CHECK(cuda->submit(plan, &call.job) == 0, "%s", what);
        if (gated) {
            CHECK(sem_trywait(&call.done), "%s: done before the frame was", what);
            CHECK(gate_open(&gate), "submit waited for the device");
        }
        call_check(&call, camera, what);
    }
    call.results[1].data = NULL;
    CHECK(cuda->submit(plan, &call.job) == 0, "%s", what);
    call_check(&call, camera, "one result left out");
    CHECK(call.calls == 3, "done was called %d times", call.calls);

    cuda->plan_close(plan);
    call_finish(&call, backend);
    source_finish(&pinned);
    source_finish(&source);
}

static void test_placements(const struct backend_options *options, bool gates)
{
    static const enum pixel_format formats[] = {
        PIXEL_BGRA, PIXEL_GBRP,    PIXEL_NV12,      PIXEL_YUV420P, PIXEL_P010,
        PIXEL_NV21, PIXEL_YUV422P, PIXEL_YUV444P10, PIXEL_UYVY422, PIXEL_GRAY};
    static const enum memory results[] = {MEMORY_PINNED, MEMORY_HOST, MEMORY_CUDA};
    struct backend *backend;
    int n = 0;
    CHECK(cuda->open(&backend, options) == 0, "open");
    for (enum pixel_format format : formats) {
        struct camera camera;
        camera_init(&camera, format, 131, 77);
        for (int placement = 0; placement < PLACEMENTS; placement++)
            test_placement(backend, &camera, (enum placement)placement, results[n++ % 3], gates);
        camera_finish(&camera);
    }
    cuda->close(backend);
}

// --- memory allocated elsewhere

// Results declared page-locked are downloaded in place, no matter which allocator they come from.
static void test_pin(struct backend *backend)
{
    const size_t bytes = 1 << 16;
    int fd = memfd_create("slots", MFD_CLOEXEC);
    CHECK(fd >= 0 && !ftruncate(fd, bytes), "memfd");
    void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    struct cudaPointerAttributes attributes;
    CHECK(!cuda->pin(backend, shared, bytes), "pin");
    CHECK(!cudaPointerGetAttributes(&attributes, shared) && attributes.type == cudaMemoryTypeHost,
          "a pinned range is not page-locked");
    CHECK(cuda->pin(backend, shared, bytes) == -EIO, "pinned twice");
    cuda->unpin(backend, NULL);
    cuda->unpin(backend, shared);
    CHECK(!cudaPointerGetAttributes(&attributes, shared) &&
              attributes.type == cudaMemoryTypeUnregistered,
          "an unpinned range is page-locked");
    CHECK(!cuda->pin(backend, shared, bytes), "pin"); // close must unpin it
    munmap(shared, bytes);
    close(fd);
}

static bool is_page_locked(const void *memory)
{
    struct cudaPointerAttributes attributes;
    return !cudaPointerGetAttributes(&attributes, memory) && attributes.type == cudaMemoryTypeHost;
}

// Pins by backends of the machine's first and last device, which may be the same. Whichever unpins
// first, the memory stays locked for the other.
static void test_pin_by_two(void)
{
    const size_t bytes = 1 << 16;
    struct backend_options options = {};
    struct backend *backend[2];
    void *memory = aligned_alloc(4096, bytes);
    for (int i = 0; i < 2; i++) {
        options.device = i * (cuda->count() - 1);
        CHECK(cuda->open(&backend[i], &options) == 0, "open %d", i);
    }
    for (int first = 0; first < 2; first++) {
        CHECK(!cuda->pin(backend[0], memory, bytes), "pin");
        CHECK(!cuda->pin(backend[1], memory, bytes), "pinned by another");
        cuda->unpin(backend[first], memory);
        CHECK(is_page_locked(memory), "%d took the other's lock", first);
        cuda->unpin(backend[first], memory);
        CHECK(is_page_locked(memory), "%d unpins what it has not pinned", first);
        cuda->unpin(backend[!first], memory);
        CHECK(!is_page_locked(memory), "%d left it locked", !first);
    }
    CHECK(!cuda->pin(backend[0], memory, bytes) && !cuda->pin(backend[1], memory, bytes), "pin");
    cuda->close(backend[0]);
    CHECK(is_page_locked(memory), "close took the other's lock");
    cuda->close(backend[1]);
    CHECK(!is_page_locked(memory), "close left it locked");
    free(memory);
}

static void test_export(struct backend *backend)
{
    struct device_export memory;
    struct cudaDeviceProp properties;
    static uint8_t bytes[4096];
    CHECK(!cuda->export_open(backend, &memory, EXPORT_DESCRIPTOR, 5000), "export_open");
    CHECK(memory.bytes >= 5000 && memory.fd >= 0, "%zu bytes, fd %d", memory.bytes, memory.fd);
    CHECK(fcntl(memory.fd, F_GETFD) == FD_CLOEXEC, "children inherit the memory");
    CHECK(!cudaMemcpy(bytes, (uint8_t *)memory.address + 5000 - sizeof bytes, sizeof bytes,
                      cudaMemcpyDeviceToHost),
          "memcpy");
    CHECK(bytes_unlike(bytes, sizeof bytes, 0) == 0, "not zeroed");
    memset(bytes, 7, sizeof bytes);
    CHECK(!cuda->export_write(backend, (uint8_t *)memory.address + 100, bytes, 1000), "write");
    CHECK(!cudaMemcpy(bytes, memory.address, sizeof bytes, cudaMemcpyDeviceToHost), "memcpy");
    CHECK(bytes_unlike(bytes, 100, 0) == 0 && bytes_unlike(bytes + 100, 1000, 7) == 0 &&
              bytes_unlike(bytes + 1100, 2000, 0) == 0,
          "written elsewhere");
    CHECK(!cudaGetDeviceProperties(&properties, 0), "properties");
    CHECK(!memcmp(memory.uuid, properties.uuid.bytes, sizeof memory.uuid), "another device's uuid");
    CHECK(!memcmp(memory.uuid, cuda->device_uuid(backend), sizeof memory.uuid), "two uuids");
    const int fd = memory.fd;
    cuda->export_close(backend, &memory);
    CHECK(fcntl(fd, F_GETFD) < 0, "the descriptor is still open");
    CHECK(cuda->export_open(backend, &memory, EXPORT_DESCRIPTOR, (size_t)1 << 50) == -ENOMEM,
          "a petabyte");
    CHECK(!memory.address && memory.fd < 0, "something is left of a petabyte");
}

// Copies a picture from tight to padded rows; only the picture's own bytes may be written.
static void test_picture_copy(struct backend *backend, enum pixel_format format)
{
    enum { PAD = 64, FILL = 0 };
    struct camera camera;
    struct device_export memory;
    camera_init(&camera, format, 322, 101);
    struct image tight = camera.src, padded = camera.src;
    const size_t bytes = image_lay_out(&tight, NULL);
    padded.width += PAD;
    const size_t room = image_lay_out(&padded, NULL);
    CHECK(!cuda->export_open(backend, &memory, EXPORT_DESCRIPTOR, bytes + room), "export_open");
    image_lay_out(&tight, memory.address);
    image_lay_out(&padded, (uint8_t *)memory.address + bytes);
    padded.width -= PAD;
    CHECK(!cuda->export_write(backend, memory.address, camera.src.plane[0].data, bytes), "write");
    CHECK(!cuda->picture_copy(backend, &padded, &tight), "copy");
    uint8_t *copied = (uint8_t *)malloc(room);
    CHECK(!cudaMemcpy(copied, (uint8_t *)memory.address + bytes, room, cudaMemcpyDeviceToHost),
          "memcpy");
    size_t wrong = 0;
    for (int p = 0; p < pixel_format_planes(format); p++) {
        const struct plane *from = &camera.src.plane[p], *to = &padded.plane[p];
        const size_t row = plane_row_bytes(format, p, camera.src.width);
        const uint8_t *at = copied + (to->data - ((uint8_t *)memory.address + bytes));
        for (int y = 0; y < plane_rows(format, p, camera.src.height); y++, at += to->stride) {
            wrong += memcmp(at, from->data + y * from->stride, row) != 0;
            wrong += bytes_unlike(at + row, to->stride - row, FILL);
        }
    }
    CHECK(wrong == 0, "%zu rows or bytes of %s", wrong, pixel_format_name(format));
    free(copied);
    cuda->export_close(backend, &memory);
    camera_finish(&camera);
}

// A process that opens received handles as programs with CUDA's runtime do, and answers with the
// first bytes.
struct importer {
    pid_t process;
    int to, from;
};

enum { IMPORTED = 4096 };

static void import_handles(int from, int to)
{
    static uint8_t bytes[IMPORTED];
    cudaIpcMemHandle_t handle;
    while (read(from, &handle, sizeof handle) == sizeof handle) {
        void *memory = NULL;
        memset(bytes, 0xff, sizeof bytes);
        if (cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess) {
            cudaMemcpy(bytes, memory, sizeof bytes, cudaMemcpyDeviceToHost);
            cudaIpcCloseMemHandle(memory);
        }
        if (write(to, bytes, sizeof bytes) != sizeof bytes)
            break;
    }
    _exit(0);
}

// Call before this process initialises CUDA.
static struct importer start_importer(void)
{
    int to[2], from[2];
    if (pipe(to) || pipe(from))
        abort();
    const pid_t process = fork();
    if (process == 0) {
        close(to[1]);
        close(from[0]);
        import_handles(to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    return {process, to[1], from[0]};
}

static void end_importer(const struct importer *importer)
{
    close(importer->to);
    close(importer->from);
    waitpid(importer->process, NULL, 0);
}

static void test_ipc(struct backend *backend, const struct importer *importer)
{
    struct device_export memory;
    static uint8_t bytes[IMPORTED];
    for (int round = 0; round < 3; round++) {
        CHECK(!cuda->export_open(backend, &memory, EXPORT_IPC, 5000), "export_open");
        CHECK(memory.bytes == 2 << 20 && memory.fd < 0, "%zu bytes, fd %d", memory.bytes,
              memory.fd);
        CHECK(!cudaMemcpy(bytes, memory.address, sizeof bytes, cudaMemcpyDeviceToHost) &&
                  bytes_unlike(bytes, sizeof bytes, 0) == 0,
              "not zeroed");
        memset(bytes, 7 + round, sizeof bytes);
        CHECK(!cuda->export_write(backend, memory.address, bytes, sizeof bytes), "write");
        CHECK(write(importer->to, memory.handle, sizeof memory.handle) == sizeof memory.handle &&
                  read(importer->from, bytes, sizeof bytes) == sizeof bytes,
              "no answer");
        CHECK(bytes_unlike(bytes, sizeof bytes, (uint8_t)(7 + round)) == 0, "it reads %d, not %d",
              bytes[0], 7 + round);
        CHECK(!memcmp(memory.uuid, cuda->device_uuid(backend), sizeof memory.uuid), "two uuids");
        cuda->export_close(backend, &memory);
    }
    CHECK(cuda->export_open(backend, &memory, EXPORT_IPC, (size_t)1 << 50) == -ENOMEM,
          "a petabyte");
    CHECK(!memory.address, "something is left of a petabyte");
}

// A plan without room leaves the backend unchanged, and plan_need reports its size in advance.
static void test_need(struct backend *backend)
{
    struct camera camera;
    struct source source;
    struct call call;
    struct plan *plan;
    const int far_too_many = 1 << 30;
    camera_init(&camera, PIXEL_NV12, 320, 200);
    source_init(&source, &camera, HOST);
    call_init(&call, backend, &camera, &source.image, MEMORY_HOST);
    struct memory_need need = cuda->plan_need(&source.image, camera.ops, OPS, 3);
    size_t results = 0;
    for (int i = 0; i < OPS; i++)
        results += camera.op[i].dst_bytes;
    CHECK(need.device >= 3 * (96000 + results) && need.device < 16 << 20, "%zu", need.device);
    CHECK(need.pinned >= 3 * 96000 && need.pinned < 1 << 20, "%zu", need.pinned);
    need = cuda->plan_need(&source.image, camera.ops, OPS, far_too_many);
    CHECK(need.device > cuda->device_bytes(backend), "%zu", need.device);
    CHECK(cuda->plan_open(backend, &plan, &source.image, camera.ops, OPS, far_too_many) == -ENOMEM,
          "more than the device has");
    CHECK(!cuda->plan_open(backend, &plan, &source.image, camera.ops, OPS, 1), "plan_open");
    CHECK(!cuda->submit(plan, &call.job), "submit after -ENOMEM");
    call_check(&call, &camera, "after -ENOMEM");
    cuda->plan_close(plan);

    struct image pinned = source.image;
    pinned.memory = MEMORY_PINNED;
    need = cuda->plan_need(&pinned, camera.ops, OPS, 3);
    CHECK(need.pinned > 3 * 160 * sizeof(struct warp_column), "%zu for tables that come with jobs",
          need.pinned);
    camera.op[MOVES].moves = false;
    need = cuda->plan_need(&pinned, camera.ops, OPS, 3);
    CHECK(need.pinned == 0, "%zu for sources that are uploaded in place", need.pinned);
    CHECK(!cuda->plan_open(backend, &plan, &pinned, camera.ops, OPS, 1), "plan_open");
    CHECK(cuda->submit(plan, &call.job) == -EINVAL, "a host source where there is no staging");
    cuda->plan_close(plan);
    call_finish(&call, backend);
    source_finish(&source);
    camera_finish(&camera);
}

static void test_memory(const struct backend_options *options)
{
    struct backend *backend;
    CHECK(cuda->open(&backend, options) == 0, "open");
    test_pin(backend);
    test_export(backend);
    test_picture_copy(backend, PIXEL_NV12);
    test_picture_copy(backend, PIXEL_P010);
    test_picture_copy(backend, PIXEL_BGRA);
    test_need(backend);
    cuda->close(backend);
}

// libavcodec joins the primary context only if it has exactly this flag.
static void test_context_flags(void)
{
    enum { SCHED_BLOCKING_SYNC = 4 };
    int (*get_state)(int device, unsigned *flags, int *active);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    unsigned flags = 0;
    int active = 0;
    CHECK(driver, "a device, but no driver");
    if (!driver)
        return;
    *(void **)&get_state = dlsym(driver, "cuDevicePrimaryCtxGetState");
    CHECK(get_state(0, &flags, &active) == 0 && active, "no primary context");
    CHECK(flags == SCHED_BLOCKING_SYNC, "the primary context has the flags %u", flags);
    dlclose(driver);
}

int main(void)
{
    struct backend_options options = {}, bands = {}, many = {};
    struct backend *backend = NULL;
    const struct importer importer = start_importer();

    bands.band_bytes = many.band_bytes = 1;
    many.streams = 3;
    options.device = 1 << 20;
    CHECK(cuda->open(&backend, &options) == -ENODEV && !backend, "there is no such device");
    options.device = 0;
    cuda->close(NULL);
    cuda->plan_close(NULL);
    int error = cuda->open(&backend, &options);
    CHECK(error == 0 || error == -ENODEV, "open: %d", error);
    if (error) {
        SKIP("no CUDA device");
        end_importer(&importer);
        return test_end();
    }
    TEST(test_context_flags());
    TEST(test_ipc(backend, &importer));
    end_importer(&importer);
    const bool gates = gates_work();
    cuda->close(backend);
    TEST(test_pin_by_two());
    TEST(test_memory(&options));
    TEST(test_placements(&options, gates));
    TEST(test_placements(&bands, gates));
    TEST(test_placements(&many, gates));
    return test_end();
}
