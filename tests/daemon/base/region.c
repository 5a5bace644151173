// Memory for frames: pages that are present, seals that hold, and pinning that is undone.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/region.h"
#include "tests/daemon/fake_driver.h"
#include "tests/test.h"

enum { BYTES = 100000, PAGES = 25, LARGE_PAGE = 2 << 20 };

static bool is_zero(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i])
            return false;
    return true;
}

static void test_host(enum region_kind kind)
{
    struct region region = {0};
    unsigned char there[PAGES] = {0};
    int missing = 0;
    CHECK(region_open(&region, kind, BYTES, NULL, NULL) == 0, "open");
    CHECK(region.bytes == PAGES * 4096 && region.memory == MEMORY_HOST, "%zu", region.bytes);
    CHECK(mincore(region.base, region.bytes, there) == 0, "mincore: %s", strerror(errno));
    for (int i = 0; i < PAGES; i++)
        missing += !(there[i] & 1);
    CHECK(missing == 0, "%d pages are not there", missing);
    CHECK(is_zero(region.base, region.bytes), "not zeroed");
    memset(region.base, 1, region.bytes);
    CHECK((region.fd >= 0) == (kind == REGION_SHARED), "descriptor %d", region.fd);
    region_close(&region);
    CHECK(!region.base, "still there");
    region_close(&region);
}

// A region with room for a large page begins with one, and takes no more than it reports.
static void test_large(void)
{
    struct region region = {0};
    unsigned char there[(LARGE_PAGE + BYTES) / 4096 + 1] = {0};
    CHECK(region_open(&region, REGION_PRIVATE, LARGE_PAGE + BYTES, NULL, NULL) == 0, "open");
    CHECK(region.bytes == LARGE_PAGE + PAGES * 4096, "%zu", region.bytes);
    CHECK((uintptr_t)region.base % LARGE_PAGE == 0, "at %p", (void *)region.base);
    CHECK(mincore(region.base, region.bytes, there) == 0, "mincore: %s", strerror(errno));
    CHECK(there[0] & there[region.bytes / 4096 - 1] & 1, "pages are not there");
    CHECK(is_zero(region.base, region.bytes), "not zeroed");
    CHECK(mincore(region.base + region.bytes, 4096, there) < 0 && errno == ENOMEM, "room is left");
    CHECK(mincore(region.base - 4096, 4096, there) < 0 && errno == ENOMEM, "room is left ahead");
    region_close(&region);
}

// Another process can only read through the descriptor.
static void test_seals(void)
{
    struct region region = {0};
    CHECK(region_open(&region, REGION_SHARED, BYTES, NULL, NULL) == 0, "open");
    void *writable = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, region.fd, 0);
    CHECK(writable == MAP_FAILED, "it can be mapped to write");
    uint8_t *view = mmap(NULL, region.bytes, PROT_READ, MAP_SHARED, region.fd, 0);
    CHECK(view != MAP_FAILED, "map: %s", strerror(errno));
    CHECK(mprotect(view, 4096, PROT_READ | PROT_WRITE) < 0, "the view became writable");
    CHECK(write(region.fd, "x", 1) < 0 && errno == EPERM, "written");
    CHECK(ftruncate(region.fd, 0) < 0 && ftruncate(region.fd, 1 << 20) < 0, "size changed");
    CHECK(fallocate(region.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) < 0, "a hole");
    CHECK(fcntl(region.fd, F_ADD_SEALS, F_SEAL_WRITE) < 0, "sealed further");
    CHECK(fcntl(region.fd, F_GETFD) & FD_CLOEXEC, "it passes exec");
    region.base[5000] = 42;
    CHECK(view[5000] == 42, "another memory");
    region_close(&region);
    CHECK(view[5000] == 42, "a view ends with the region");
    munmap(view, PAGES * 4096);
}

static void test_failure(void)
{
    struct region region = {0};
    size_t huge = (size_t)1 << 46;
    CHECK(region_open(&region, REGION_PRIVATE, huge, NULL, NULL) == -ENOMEM, "private");
    CHECK(region_open(&region, REGION_DEVICE, BYTES, NULL, NULL) == -ENOTSUP, "no device");
    CHECK(!region.base, "something is left");
}

static void test_pin(void)
{
    struct region region = {0};
    CHECK(region_open(&region, REGION_SHARED, BYTES, NULL, NULL) == 0, "open");
    region_pin(&region, &fake_driver, NULL);
    CHECK(pinned == 1 && region.memory == MEMORY_PINNED, "not pinned");
    region_unpin(&region);
    region_unpin(&region);
    CHECK(pinned == 0 && region.memory == MEMORY_HOST, "%d pinned", pinned);
    pin_refusal = -ENOMEM;
    region_pin(&region, &fake_driver, NULL);
    CHECK(region.memory == MEMORY_HOST, "pinned all the same");
    region_close(&region);
    CHECK(pinned == 0, "unpinned what was not pinned");
    pin_refusal = 0;
    CHECK(region_open(&region, REGION_PRIVATE, BYTES, NULL, NULL) == 0, "open");
    region_pin(&region, &fake_driver, NULL);
    region_close(&region);
    CHECK(pinned == 0, "closed while pinned");
}

static void test_device(enum region_kind kind)
{
    struct region region = {0};
    CHECK(region_open(&region, kind, 5000, &fake_driver, NULL) == 0, "open");
    CHECK((region.fd >= 0) == (kind == REGION_DEVICE), "descriptor %d", region.fd);
    CHECK((memcmp(region.handle, "the handle of it", 17) == 0) == (kind == REGION_DEVICE_IPC),
          "a handle or none");
    CHECK(region.memory == MEMORY_CUDA && region.base == device_memory &&
              region.bytes == sizeof device_memory &&
              memcmp(region.uuid, "the-uuid-of-it.", 16) == 0,
          "not the export");
    region_unpin(&region);
    region_close(&region);
    CHECK(exports == 0 && pinned == 0, "left open");
    CHECK(region_open(&region, kind, BYTES, &fake_driver, NULL) == -ENOMEM, "too large");
}

int main(void)
{
    TEST(test_host(REGION_PRIVATE));
    TEST(test_host(REGION_SHARED));
    TEST(test_large());
    TEST(test_seals());
    TEST(test_failure());
    TEST(test_pin());
    TEST(test_device(REGION_DEVICE));
    TEST(test_device(REGION_DEVICE_IPC));
    return test_end();
}
