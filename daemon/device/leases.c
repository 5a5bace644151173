#include "daemon/device/device_set.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "daemon/base/log.h"

enum { HEADROOM = 16 }; // divisor of the limit

// --- the device for a camera

static unsigned bit_of(const struct devices *devices, const struct device *gpu)
{
    return 1u << (gpu - devices->device);
}

// True if the camera may go to that GPU now.
static bool is_usable(const struct devices *devices, const struct device *gpu,
                      const struct device_place *place)
{
    return !atomic_load(&gpu->failed) && !(place->avoided & bit_of(devices, gpu));
}

static bool has_usable(const struct devices *devices, const struct device_place *place)
{
    for (int i = 0; i < devices->n_gpus; i++)
        if (is_usable(devices, &devices->device[i], place))
            return true;
    return false;
}

static bool has_usable_home(const struct device_lease *lease)
{
    const struct device *home = lease->place.home;
    return home && is_usable(lease->devices, home, &lease->place);
}

struct placement_gpu device_placement(const struct device *gpu)
{
    struct placement_gpu ret = {
        .number = gpu->options.device,
        .uuid = gpu->driver->device_uuid ? gpu->uuid : NULL,
        .usable = true,
        .taken = gpu->taken,
        .limit = gpu->limit,
    };
    // A picture may be larger than planned.
    if (ret.taken.bytes < atomic_load(&gpu->reserved))
        ret.taken.bytes = atomic_load(&gpu->reserved);
    return ret;
}

// Returns the camera's device for now, under the lock. Its home becomes the GPU that it chooses,
// else the first that it gets.
static struct device *choose_device(struct devices *devices, const struct gpu_choice *choice,
                                    const struct gpu_share *share, struct device_place *place)
{
    struct placement_gpu gpus[GPUS_MAX];
    for (int i = 0; i < devices->n_gpus; i++) {
        struct device *gpu = &devices->device[i];
        gpus[i] = device_placement(gpu);
        gpus[i].usable = is_usable(devices, gpu, place);
        if (placement_is_chosen(&gpus[i], choice))
            place->home = gpu;
    }
    if (place->home && is_usable(devices, place->home, place))
        return place->home;
    const int best = placement_choose(gpus, devices->n_gpus, choice, share->bytes);
    if (best < 0)
        return device_cpu(devices);
    if (!place->home)
        place->home = &devices->device[best];
    return &devices->device[best];
}

static void add_share(struct gpu_share *taken, const struct gpu_share *share)
{
    taken->bytes += share->bytes;
    taken->pixels += share->pixels;
    taken->cameras += share->cameras;
}

static void subtract_share(struct gpu_share *taken, const struct gpu_share *share)
{
    taken->bytes -= share->bytes;
    taken->pixels -= share->pixels;
    taken->cameras -= share->cameras;
}

int device_acquire(struct devices *devices, const struct camera_config *camera,
                   struct device_lease *lease)
{
    static const struct gpu_choice any = {.by = GPU_AUTO};
    const struct gpu_choice *choice = camera ? &camera->device : &any;
    struct gpu_share share = {.cameras = 1};
    struct device *device;
    int rc = 0;
    if (camera && devices->n_gpus > 1) // else there is nothing to choose
        share = budget_share(camera, devices->device->driver, true);
    pthread_mutex_lock(&devices->lock);
    while ((device = choose_device(devices, choice, &share, &lease->place))->busy)
        pthread_cond_wait(&devices->changed, &devices->lock);
    if (!device->backend) // the CPU, opened on demand
        rc = device_open_backend(devices, device);
    if (rc == 0) {
        device->n_leases++;
        add_share(&device->taken, &share);
        *lease = (struct device_lease){
            .device = device,
            .driver = device->driver,
            .backend = device->backend,
            .nvdec = device->nvdec,
            .number = device == device_cpu(devices) ? -1 : device->options.device,
            .devices = devices,
            .share = share,
            .place = lease->place,
        };
    }
    pthread_mutex_unlock(&devices->lock);
    return rc;
}

void device_release(struct device_lease *lease)
{
    struct devices *devices = lease->devices;
    struct device *device = lease->device;
    if (!device)
        return;
    pthread_mutex_lock(&devices->lock);
    struct device_lease **link = &device->watchers;
    while (*link && *link != lease)
        link = &(*link)->next;
    if (*link)
        *link = lease->next;
    subtract_share(&device->taken, &lease->share);
    if (--device->n_leases == 0)
        pthread_cond_broadcast(&devices->changed);
    pthread_mutex_unlock(&devices->lock);
    *lease = (struct device_lease){.place = lease->place};
}

bool device_is_stale(const struct device_lease *lease)
{
    if (!lease->device)
        return false;
    if (has_usable_home(lease))
        return lease->device != lease->place.home;
    if (lease->device == device_cpu(lease->devices))
        return has_usable(lease->devices, &lease->place);
    return !is_usable(lease->devices, lease->device, &lease->place);
}

void device_avoid(struct device_lease *lease)
{
    lease->place.avoided |= bit_of(lease->devices, lease->device);
    lease->place.home = NULL;
}

void device_reconsider(struct device_lease *lease)
{
    lease->place.avoided = 0;
}

// --- failure

void device_on_failure(struct device_lease *lease, void (*failed)(void *), void *opaque)
{
    struct device *device = lease->device;
    lease->failed = failed;
    lease->opaque = opaque;
    pthread_mutex_lock(&lease->devices->lock);
    lease->next = device->watchers;
    device->watchers = lease;
    if (atomic_load(&device->failed))
        failed(opaque);
    pthread_mutex_unlock(&lease->devices->lock);
}

// Names the devices that take over from a failed GPU.
static const char *successor(const struct devices *devices)
{
    const struct device *found = NULL;
    for (int i = 0; i < devices->n_gpus; i++) {
        const struct device *gpu = &devices->device[i];
        if (atomic_load(&gpu->failed))
            continue;
        if (found)
            return "the other GPUs take over";
        found = gpu;
    }
    return found ? "the other GPU takes over" : "cpu takes over";
}

void device_failed(const struct device_lease *lease, int error)
{
    struct devices *devices = lease->devices;
    struct device *device = lease->device;
    if (device == device_cpu(devices)) {
        log_event(LOG_LEVEL_ERROR, "backend %s failed: %s", device->label, strerror(-error));
        return;
    }
    pthread_mutex_lock(&devices->lock);
    const bool first = !atomic_exchange(&device->failed, true);
    pthread_cond_broadcast(&devices->changed);
    for (struct device_lease *other = device->watchers; first && other; other = other->next)
        other->failed(other->opaque);
    pthread_mutex_unlock(&devices->lock);
    if (!first)
        return;
    atomic_fetch_add(&devices->fallbacks, 1);
    log_event(LOG_LEVEL_ERROR, "backend %s failed: %s; %s", device->label, strerror(-error),
              successor(devices));
}

// --- memory

static int reserve(struct device *device, size_t limit, size_t bytes, size_t *left)
{
    size_t reserved = atomic_load(&device->reserved);
    do {
        *left = reserved < limit ? limit - reserved : 0;
        if (bytes > *left)
            return -ENOSPC;
    } while (!atomic_compare_exchange_weak(&device->reserved, &reserved, reserved + bytes));
    return 0;
}

int device_reserve(const struct device_lease *lease, size_t bytes, size_t *left)
{
    return reserve(lease->device, lease->device->limit, bytes, left);
}

int device_reserve_spare(const struct device_lease *lease, size_t bytes, size_t *left)
{
    const size_t limit = lease->device->limit;
    return reserve(lease->device, limit - limit / HEADROOM, bytes, left);
}

void device_unreserve(const struct device_lease *lease, size_t bytes)
{
    atomic_fetch_sub(&lease->device->reserved, bytes);
}
