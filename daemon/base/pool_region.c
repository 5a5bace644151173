#include "daemon/base/pool_region.h"

#include <errno.h>
#include <stdlib.h>

enum {
    PAGE = 4096,            // slots start on a page, after the words
    ALIGN = 256,            // of slots: for the widest loads and stores of a GPU
    EXPORT_PIECE = 2 << 20, // exported device memory is allocated in pieces of this size
};

static size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

static size_t stride_of(size_t size)
{
    return round_up(size, ALIGN);
}

static size_t words_of(int n)
{
    return round_up((size_t)n * sizeof(uint64_t), PAGE);
}

struct memory_need pool_region_need(enum region_kind kind, int n, size_t size)
{
    size_t slots = (size_t)n * stride_of(size);
    if (region_is_on_device(kind))
        return (struct memory_need){round_up(slots, EXPORT_PIECE), words_of(n)};
    return (struct memory_need){0, words_of(n) + round_up(slots, PAGE)};
}

// Words and headers are always on the host: clients read them with the CPU.
static int open_regions(struct pool_region *region, const struct pool_region_place *place, int n)
{
    const size_t slots = (size_t)n * region->stride;
    region->headers = words_of(n);
    size_t front = region->headers + round_up((size_t)n * region->header_stride, PAGE);
    if (!region_is_on_device(place->kind)) {
        region->first = front;
        return place->object ? region_open_named(&region->host, front + slots, place->object)
                             : region_open(&region->host, place->kind, front + slots, NULL, NULL);
    }
    int rc = region_open(&region->device, place->kind, slots, place->driver, place->backend);
    if (rc == 0)
        rc = region_open(&region->host, REGION_SHARED, front, NULL, NULL);
    return rc;
}

int pool_region_open(struct pool_region **ret, const struct pool_region_place *place, int n,
                     size_t size, size_t header_bytes)
{
    struct pool_region *region = calloc(1, sizeof *region);
    if (!region)
        return -ENOMEM;
    region->stride = stride_of(size);
    region->header_stride = header_bytes;
    int rc = open_regions(region, place, n);
    if (rc < 0) {
        pool_region_close(region);
        return rc;
    }
    *ret = region;
    return 0;
}

void pool_region_close(struct pool_region *region)
{
    region_close(&region->device);
    region_close(&region->host);
    free(region);
}

bool pool_region_on_device(const struct pool_region *region)
{
    return region->device.base != NULL;
}

void *pool_region_data(const struct pool_region *region, int number)
{
    uint8_t *base = pool_region_on_device(region) ? region->device.base : region->host.base;
    return base + region->first + (size_t)number * region->stride;
}

void *pool_region_headers(const struct pool_region *region, int number)
{
    return region->host.base + region->headers + (size_t)number * region->header_stride;
}

_Atomic uint64_t *pool_region_word(const struct pool_region *region, int number)
{
    return (_Atomic uint64_t *)(void *)region->host.base + number;
}
