// Frames in device memory: what libframed imports has the bytes that the other end wrote. Without a
// GPU nothing of it can be tried.
#include <dlfcn.h>

#include "client/framed.h"
#include "tests/client/fake_daemon.h"
#include "tests/test.h"

// CUDA's driver, as far as a daemon needs it: the structs have the layout of its cuda.h.
struct properties {
    int type, handle_types, location_type, location_id;
    void *metadata;
    unsigned char flags[8];
};

struct access {
    int location_type, location_id, flags;
};

struct driver {
    int (*init)(unsigned);
    int (*device_uuid)(uint8_t[16], int);
    int (*context_retain)(void **, int);
    int (*context_set)(void *);
    int (*granularity)(size_t *, const struct properties *, int);
    int (*create)(uint64_t *, size_t, const struct properties *, unsigned long long);
    int (*export)(int *, uint64_t, int, unsigned long long);
    int (*reserve)(uint64_t *, size_t, size_t, uint64_t, unsigned long long);
    int (*map)(uint64_t, size_t, size_t, uint64_t, unsigned long long);
    int (*set_access)(uint64_t, size_t, const struct access *, size_t);
    int (*fill)(uint64_t, unsigned char, size_t);
    int (*copy_down)(void *, uint64_t, size_t);
};

struct memory {
    uint64_t address;
    size_t bytes;
    int fd;
};

static bool load(struct driver *driver)
{
    const struct {
        void *to;
        const char *name;
    } functions[] = {
        {&driver->init, "cuInit"},
        {&driver->device_uuid, "cuDeviceGetUuid"},
        {&driver->context_retain, "cuDevicePrimaryCtxRetain"},
        {&driver->context_set, "cuCtxSetCurrent"},
        {&driver->granularity, "cuMemGetAllocationGranularity"},
        {&driver->create, "cuMemCreate"},
        {&driver->export, "cuMemExportToShareableHandle"},
        {&driver->reserve, "cuMemAddressReserve"},
        {&driver->map, "cuMemMap"},
        {&driver->set_access, "cuMemSetAccess"},
        {&driver->fill, "cuMemsetD8_v2"},
        {&driver->copy_down, "cuMemcpyDtoH_v2"},
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *function, *context;
    for (size_t i = 0; library && i < sizeof functions / sizeof functions[0]; i++) {
        function = dlsym(library, functions[i].name);
        memcpy(functions[i].to, &function, sizeof function);
    }
    return library && driver->init(0) == 0 && driver->context_retain(&context, 0) == 0 &&
           driver->context_set(context) == 0;
}

// Memory of device 0 for two frames, of levels 70 and 71.
static bool allocate(const struct driver *driver, struct memory *memory)
{
    enum { DESCRIPTOR = 1, PINNED = 1, ON_DEVICE = 1, READ_WRITE = 3 };
    const struct properties properties = {
        .type = PINNED, .handle_types = DESCRIPTOR, .location_type = ON_DEVICE};
    const struct access access = {ON_DEVICE, 0, READ_WRITE};
    uint64_t handle;
    return driver->granularity(&memory->bytes, &properties, 0) == 0 &&
           driver->create(&handle, memory->bytes, &properties, 0) == 0 &&
           driver->export(&memory->fd, handle, DESCRIPTOR, 0) == 0 &&
           driver->reserve(&memory->address, memory->bytes, 0, 0, 0) == 0 &&
           driver->map(memory->address, memory->bytes, 0, handle, 0) == 0 &&
           driver->set_access(memory->address, memory->bytes, &access, 1) == 0 &&
           driver->fill(memory->address, 70, FAKE_STRIDE) == 0 &&
           driver->fill(memory->address + FAKE_STRIDE, 71, FAKE_STRIDE) == 0;
}

static bool say_hello(const struct fake_daemon *daemon, const struct driver *driver,
                      const struct memory *memory)
{
    struct framed_ring_hello hello = fake_hello(0);
    const int fds[2] = {daemon->memfd, memory->fd};
    hello.memory = FRAMED_RING_CUDA;
    hello.slot_offset = 0;
    hello.device_bytes = memory->bytes;
    return driver->device_uuid(hello.device_uuid, 0) == 0 &&
           fake_send_fds(daemon, &hello, sizeof hello, fds, 2);
}

static void test_import(const struct driver *driver)
{
    struct fake_daemon daemon;
    struct framed_view view;
    struct memory memory;
    uint8_t bytes[FAKE_BYTES];
    fake_open(&daemon, "ring");
    CHECK(allocate(driver, &memory), "no device memory");
    struct framed_reader *reader = framed_open(daemon.name, FRAMED_ONCE);
    CHECK(framed_next(reader, &view, 0) == 0 && fake_accept(&daemon), "no connection");
    CHECK(say_hello(&daemon, driver, &memory), "no hello");
    for (uint32_t slot = 0; slot < 2; slot++) {
        fake_say_frame(&daemon, slot, 1 + slot, 0);
        CHECK(framed_next(reader, &view, 0) == 1, "%s", framed_error(reader));
        CHECK(view.memory == FRAMED_RING_CUDA && view.device == 0, "memory %u of device %d",
              view.memory, view.device);
        CHECK(driver->copy_down(bytes, (uint64_t)(uintptr_t)view.data, sizeof bytes) == 0, "copy");
        CHECK(bytes[0] == 70 + slot && bytes[FAKE_BYTES - 1] == 70 + slot, "level %d", bytes[0]);
        CHECK(framed_whole(reader, &view), "whole");
    }
    framed_close(reader);
    close(memory.fd);
    fake_close(&daemon);
}

int main(void)
{
    struct driver driver;
    if (load(&driver))
        TEST(test_import(&driver));
    else
        SKIP("no GPU");
    return test_end();
}
