// Frames in device memory: memory that libframed imports has the bytes that the other end wrote.
// Needs a GPU.
#include <sys/wait.h>

#include "client/framed.h"
#include "tests/client/cuda_driver.h"
#include "tests/client/fake_daemon.h"
#include "tests/test.h"

struct memory {
    uint64_t address;
    size_t bytes;
    int fd;
};

// Allocates memory of device 0 for two frames, of levels 70 and 71.
static bool allocate(const struct driver *driver, struct memory *memory)
{
    enum { DESCRIPTOR = 1, PINNED = 1, ON_DEVICE = 1, READ_WRITE = 3 };
    const struct driver_properties properties = {
        .type = PINNED, .handle_types = DESCRIPTOR, .location_type = ON_DEVICE};
    const struct driver_access access = {ON_DEVICE, 0, READ_WRITE};
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

// --- memory by a handle, which only another process can open

// The other process: owns memory of device 0 with a frame of level 90, until its pipe is closed.
static void own_memory(int to, int from)
{
    struct driver driver;
    uint8_t handle[64], byte;
    uint64_t address;
    if (driver_load(&driver) && driver.allocate(&address, 2 << 20) == 0 &&
        driver.fill(address, 90, FAKE_STRIDE) == 0 && driver.ipc_handle(handle, address) == 0 &&
        write(to, handle, sizeof handle) == sizeof handle)
        while (read(from, &byte, 1) > 0)
            ;
    _exit(0);
}

struct owner {
    pid_t process;
    int pipe; // closing it ends the process
    uint8_t handle[64];
};

// Returns false without a GPU. Must run before this process uses CUDA.
static bool start_owner(struct owner *owner)
{
    int from[2], to[2];
    if (pipe(from) != 0 || pipe(to) != 0)
        abort();
    owner->process = fork();
    if (owner->process == 0) {
        close(from[0]);
        close(to[1]);
        own_memory(from[1], to[0]);
    }
    close(from[1]);
    close(to[0]);
    owner->pipe = to[1];
    const bool good = read(from[0], owner->handle, 64) == 64;
    close(from[0]);
    return good;
}

static void end_owner(const struct owner *owner)
{
    close(owner->pipe);
    waitpid(owner->process, NULL, 0);
}

static void test_handle(const struct driver *driver, const struct owner *owner)
{
    struct fake_daemon daemon;
    struct framed_view view;
    uint8_t bytes[FAKE_BYTES];
    fake_open(&daemon, "ring");
    struct framed_reader *reader = framed_open(daemon.name, FRAMED_ONCE);
    CHECK(framed_next(reader, &view, 0) == 0 && fake_accept(&daemon), "no connection");
    struct framed_ring_hello_cuda_ipc hello = {.hello = fake_hello(0)};
    hello.hello.hello_bytes = sizeof hello;
    hello.hello.memory = FRAMED_RING_CUDA_IPC;
    hello.hello.slot_offset = 0;
    hello.hello.device_bytes = 2 << 20;
    memcpy(hello.handle, owner->handle, sizeof hello.handle);
    CHECK(driver->device_uuid(hello.hello.device_uuid, 0) == 0, "no uuid");
    for (uint64_t i = 1; i <= 2; i++) { // the second hello opens memory that is open already
        fake_send_with(&daemon, &hello, sizeof hello, daemon.memfd, 1);
        fake_say_frame(&daemon, 0, i, 0);
        CHECK(framed_next(reader, &view, 0) == 1, "%s", framed_error(reader));
        CHECK(view.memory == FRAMED_RING_CUDA_IPC && view.device == 0 && view.ipc_handle &&
                  memcmp(view.ipc_handle, owner->handle, 64) == 0,
              "memory %u of device %d", view.memory, view.device);
        CHECK(driver->copy_down(bytes, (uint64_t)(uintptr_t)view.data, sizeof bytes) == 0, "copy");
        CHECK(bytes[0] == 90 && bytes[FAKE_BYTES - 1] == 90, "level %d", bytes[0]);
    }
    framed_close(reader);
    fake_close(&daemon);
}

int main(void)
{
    struct driver driver;
    struct owner owner;
    const bool has_owner = start_owner(&owner);
    if (driver_load(&driver)) {
        TEST(test_import(&driver));
        CHECK(has_owner, "the other process has no GPU");
        TEST(test_handle(&driver, &owner));
    } else {
        SKIP("no GPU");
    }
    end_owner(&owner);
    return test_end();
}
