#include "daemon/device/devices.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/machine.h"
#include "daemon/base/retry.h"
#include "daemon/codec/hardware_record.h"
#include "daemon/codec/nvdec.h"
#include "kernels/processors.h"

enum {
    LOGGED_REOPEN_TRIES = 2, // logged failures to reopen a GPU
    HEADROOM = 16,           // divisor of the limit, for device_reserve_spare
};
static const int64_t STEADY_NS = 60 * INT64_C(1000000000); // a GPU that worked this long is well
static const int64_t NEVER_NS = INT64_MAX;

struct device {
    const struct backend_driver *driver;
    struct backend_options options;
    char label[16];          // for the log: "cpu", "cuda", one of several "cuda:0"
    _Atomic size_t reserved; // bytes of its memory
    _Atomic bool failed;     // a GPU, until it is open again; written under the lock
    // Under the lock:
    // Its leases, counted by their cameras; number -1: the CPU. The limit is constant while there
    // are leases.
    struct placement_gpu place;
    struct backend *backend;       // NULL: not open
    struct decode_device *nvdec;   // NULL: not open
    bool wants_nvdec;              // cameras need it: it is opened with the device
    bool had_nvdec;                // it was open
    bool busy;                     // a thread opens or closes it, without the lock
    struct device_lease *watchers; // leases with device_on_failure
    // For the keeper, of a GPU:
    struct retry backoff;
    int64_t opened_ns, next_try_ns;
    int failed_tries;
};

struct devices {
    const struct config *config;
    struct device device[GPUS_MAX + 1]; // the GPUs, and then the CPU
    int n_gpus;
    _Atomic uint64_t fallbacks;
    struct memory_reserve reserve;
    struct hardware_record verified_decoders;
    pthread_mutex_t lock;
    pthread_cond_t changed; // any change under the lock
    bool closing;
    pthread_t keeper;
    bool has_keeper;
};

static struct device *device_cpu(struct devices *devices)
{
    return &devices->device[devices->n_gpus];
}

static void log_of_camera(enum log_level level, const char *camera, const char *text)
{
    log_camera(camera);
    log_event(level, "%s", text);
    log_camera(NULL);
}

// Returns the first GPU that works, else the CPU.
static struct device *first_device(struct devices *devices)
{
    struct device *device = devices->device;
    while (atomic_load(&device->failed)) // the CPU never has
        device++;
    return device;
}

// --- opening and closing a device

static void begin_busy(struct devices *devices, struct device *device)
{
    device->busy = true;
    pthread_mutex_unlock(&devices->lock);
}

static void end_busy(struct devices *devices, struct device *device)
{
    pthread_mutex_lock(&devices->lock);
    device->busy = false;
    pthread_cond_broadcast(&devices->changed);
}

// Opens the backend, and NVDEC if cameras want it, unless they are open. Returns 0 or a negative
// errno, of NVDEC if the backend is open. Needs the lock, like shut_down: both release it while
// they call the driver.
static int open_device(struct devices *devices, struct device *device)
{
    const struct backend_driver *driver = device->driver;
    struct backend *backend = device->backend;
    struct decode_device *nvdec = device->nvdec;
    const bool wants_nvdec = device->wants_nvdec && !nvdec;
    int rc = 0;
    begin_busy(devices, device);
    if (!backend && (rc = driver->open(&backend, &device->options)) < 0) {
        end_busy(devices, device);
        return rc;
    }
    if (!device->backend)
        log_event(LOG_LEVEL_INFO, "backend %s: %s", device->label, driver->describe(backend));
    if (wants_nvdec)
        rc = decode_device_open(&nvdec, device->options.device, devices->config->cuda.decoders);
    end_busy(devices, device);
    device->nvdec = nvdec;
    device->had_nvdec |= nvdec != NULL;
    if (device->backend) // leases read the limit without the lock
        return rc;
    device->backend = backend;
    device->place.limit = driver->device_bytes
                              ? budget_limit(devices->config, driver->device_bytes(backend))
                              : SIZE_MAX;
    if (driver->device_uuid)
        memcpy(device->place.uuid, driver->device_uuid(backend), sizeof device->place.uuid);
    return rc;
}

static void shut_down(struct devices *devices, struct device *device)
{
    struct decode_device *const nvdec = device->nvdec;
    struct backend *const backend = device->backend;
    device->nvdec = NULL;
    device->backend = NULL;
    begin_busy(devices, device);
    decode_device_close(nvdec);
    if (backend)
        device->driver->close(backend);
    end_busy(devices, device);
}

// --- the keeper

// Delays the next try for a GPU that fails soon after each opening.
static void plan_next_try(struct device *gpu)
{
    const int64_t now_ns = monotonic_ns();
    if (gpu->opened_ns && now_ns - gpu->opened_ns > STEADY_NS)
        retry_reset(&gpu->backoff);
    gpu->opened_ns = 0;
    gpu->next_try_ns = now_ns + retry_next_ns(&gpu->backoff, false);
}

static void close_failed(struct devices *devices, struct device *gpu)
{
    shut_down(devices, gpu);
    begin_busy(devices, gpu);
    if (gpu->driver->reset)
        gpu->driver->reset(&gpu->options);
    end_busy(devices, gpu);
    gpu->failed_tries = 0;
    plan_next_try(gpu);
}

static void reopen(struct devices *devices, struct device *gpu)
{
    bool wanted;
    int rc;
    do {
        wanted = gpu->wants_nvdec;
        rc = open_device(devices, gpu);
    } while (gpu->wants_nvdec != wanted);
    if (!gpu->backend || (rc < 0 && gpu->had_nvdec)) {
        shut_down(devices, gpu);
        plan_next_try(gpu);
        if (gpu->failed_tries++ < LOGGED_REOPEN_TRIES)
            log_event(LOG_LEVEL_WARNING, "backend %s cannot be opened again: %s%s", gpu->label,
                      strerror(-rc),
                      gpu->failed_tries == LOGGED_REOPEN_TRIES
                          ? "; later tries are not logged (a restart of framed may bring it back)"
                          : "");
        return;
    }
    gpu->opened_ns = monotonic_ns();
    atomic_store(&gpu->failed, false);
    log_event(LOG_LEVEL_INFO, "backend %s is back", gpu->label);
    if (rc < 0)
        log_event(LOG_LEVEL_WARNING, "backend %s has no NVDEC: the cpu goes on decoding",
                  gpu->label);
}

// Closes one of the decoders that cameras left on the device. Returns false if there is none. No
// other thread closes `nvdec` meanwhile.
static bool close_abandoned(struct devices *devices, struct device *device)
{
    struct decode_device *const nvdec = device->nvdec;
    if (!nvdec || !atomic_load(&nvdec->abandoned))
        return false;
    pthread_mutex_unlock(&devices->lock);
    nvdec_close_abandoned(nvdec);
    pthread_mutex_lock(&devices->lock);
    return true;
}

// True if there was something to do; the lock was released meanwhile. Else *wake_ns becomes no
// later than the device's next try.
static bool tend_device(struct devices *devices, struct device *device, int64_t *wake_ns)
{
    if (device->busy)
        return false;
    if (close_abandoned(devices, device))
        return true;
    if (device->place.taken.cameras > 0)
        return false;
    if (!atomic_load(&device->failed)) {
        const bool idle =
            device->backend && device == device_cpu(devices) && first_device(devices) != device;
        if (idle)
            shut_down(devices, device);
        return idle;
    }
    if (device->backend) {
        close_failed(devices, device);
        return true;
    }
    if (monotonic_ns() >= device->next_try_ns) {
        reopen(devices, device);
        return true;
    }
    if (device->next_try_ns < *wake_ns)
        *wake_ns = device->next_try_ns;
    return false;
}

// The thread that closes a failed GPU once it has no leases, reopens it with back-off, closes the
// CPU while it is not needed, and the decoders that cameras left behind on NVDEC.
static void *keep_devices(void *opaque)
{
    struct devices *devices = opaque;
    pthread_setname_np(pthread_self(), "devices");
    pthread_mutex_lock(&devices->lock);
    while (!devices->closing) {
        int64_t wake_ns = NEVER_NS;
        bool tended = false;
        for (int i = 0; i <= devices->n_gpus && !devices->closing; i++)
            tended |= tend_device(devices, &devices->device[i], &wake_ns);
        if (!tended && !devices->closing)
            condition_wait(&devices->changed, &devices->lock, wake_ns);
    }
    pthread_mutex_unlock(&devices->lock);
    return NULL;
}

// --- from the start to the end

static struct device *add_device(struct devices *devices, const struct backend_driver *driver,
                                 int gpu, bool is_one_of_many)
{
    const struct config *config = devices->config;
    struct device *device = device_cpu(devices);
    *device = (struct device){
        .driver = driver,
        .options = {.workers = config->cpu.workers,
                    .pin = config->cpu.pin,
                    .device = gpu,
                    .streams = config->cuda.streams,
                    .band_bytes = (size_t)config->cuda.band.n},
        .place.number = gpu,
    };
    snprintf(device->label, sizeof device->label, is_one_of_many ? "%s:%d" : "%s", driver->name,
             gpu);
    return device;
}

struct gpu_list devices_wanted(const struct config *config, const struct backend_driver *gpu)
{
    struct gpu_list wanted = config->cuda.devices;
    const int count = wanted.n == 0 && gpu->count ? gpu->count() : 1;
    for (int i = 0; config->cuda.devices.n == 0 && i < count && i < GPUS_MAX; i++)
        wanted.number[wanted.n++] = i;
    return wanted;
}

// Keeps the GPUs that open. Returns 0, or -ENODEV if a GPU is demanded and missing. A machine
// without any GPU logs no missing ones.
static int add_gpus(struct devices *devices, const struct backend_driver *gpu)
{
    const struct config *config = devices->config;
    const struct gpu_list wanted = devices_wanted(config, gpu);
    const bool is_listed = config->cuda.devices.n > 0 && (!gpu->count || gpu->count() > 0);
    const bool demanded = config->backend == BACKEND_CUDA;
    int rc = -ENODEV, missing = 0;
    for (int i = 0; i < wanted.n; i++) {
        rc = open_device(devices, add_device(devices, gpu, wanted.number[i], wanted.n > 1));
        devices->n_gpus += rc == 0;
        missing += rc < 0;
        if (rc < 0 && is_listed)
            log_event(demanded ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING,
                      "GPU %d of cuda.devices is missing: %s", wanted.number[i], strerror(-rc));
    }
    if (!demanded || (devices->n_gpus > 0 && (missing == 0 || !is_listed)))
        return 0;
    log_event(LOG_LEVEL_ERROR, "backend cuda is demanded but missing: %s", strerror(-rc));
    return -ENODEV;
}

// Opens the CPU at once if there is no GPU, else when it is needed.
static int add_devices(struct devices *devices, const struct backend_driver *gpu,
                       const struct backend_driver *cpu)
{
    const struct config *config = devices->config;
    int rc = 0;
    if (config->backend == BACKEND_CUDA && !gpu) {
        log_event(LOG_LEVEL_ERROR, "backend cuda is demanded but missing: built without CUDA");
        rc = -ENODEV;
    } else if (config->backend != BACKEND_CPU && gpu) {
        rc = add_gpus(devices, gpu);
    }
    if (rc < 0)
        return rc;
    // The number is for NVDEC, which may decode for the CPU.
    add_device(devices, cpu, config->cuda.devices.number[0], false)->place.number = -1;
    if (devices->n_gpus == 0) {
        rc = open_device(devices, devices->device);
        if (rc < 0)
            log_event(LOG_LEVEL_ERROR, "backend cpu: %s", strerror(-rc));
    }
    return rc;
}

static const char *camera_that_demands_nvdec(const struct config *config)
{
    for (int i = 0; i < config->n_cameras; i++)
        if (config->cameras[i].decode.by == DECODE_NVDEC)
            return config->cameras[i].name;
    return NULL;
}

// Returns 0 also if NVDEC will be opened with a GPU that is expected back.
static int add_nvdec_of(struct devices *devices, struct device *device)
{
    while (device->busy && !atomic_load(&device->failed))
        pthread_cond_wait(&devices->changed, &devices->lock);
    device->wants_nvdec = true;
    return atomic_load(&device->failed) || device->nvdec ? 0 : open_device(devices, device);
}

// Opens NVDEC if frames may stay on the device; else only if a camera demands it. Returns 0, or
// -ENODEV: camera *demanding (NULL: none does) demands NVDEC, which no device has.
static int add_nvdec(struct devices *devices, const struct config *config, const char **demanding)
{
    const int n = devices->n_gpus > 0 ? devices->n_gpus : 1;
    bool wanted = false;
    int missing = 0;
    *demanding = camera_that_demands_nvdec(config);
    for (int i = 0; i < config->n_cameras; i++)
        wanted |= budget_wants_nvdec(&config->cameras[i], devices->device->driver);
    for (int i = 0; wanted && i < n; i++)
        missing += add_nvdec_of(devices, &devices->device[i]) < 0;
    return *demanding && missing == n ? -ENODEV : 0;
}

int devices_open_with(struct devices **ret, const struct config *config,
                      const struct backend_driver *gpu, const struct backend_driver *cpu)
{
    const char *demanding;
    struct devices *devices = calloc(1, sizeof *devices);
    if (!devices) {
        log_event(LOG_LEVEL_ERROR, "backend: %s", strerror(ENOMEM));
        return -ENOMEM;
    }
    devices->config = config;
    memory_reserve_plan(&devices->reserve, SIZE_MAX, 0);
    pthread_mutex_init(&devices->lock, NULL);
    condition_init(&devices->changed);
    pthread_mutex_lock(&devices->lock);
    int rc = add_devices(devices, gpu, cpu);
    if (rc == 0) {
        rc = add_nvdec(devices, config, &demanding);
        if (rc < 0)
            log_of_camera(LOG_LEVEL_ERROR, demanding, "NVDEC is demanded but missing");
    }
    pthread_mutex_unlock(&devices->lock);
    if (rc == 0) {
        rc = -pthread_create(&devices->keeper, NULL, keep_devices, devices);
        devices->has_keeper = rc == 0;
        if (rc < 0)
            log_event(LOG_LEVEL_ERROR, "backend: no thread: %s", strerror(-rc));
    }
    if (rc < 0) {
        devices_close(devices);
        return rc;
    }
    *ret = devices;
    return 0;
}

char *pinning_left_out(const struct config *config)
{
    const struct pin *pin = &config->cpu.pin;
    const struct processors allowed = processors_allowed();
    const struct processors rest = processors_without(&pin->list, &allowed);
    char missing[PROCESSORS_TEXT], known[PROCESSORS_TEXT], *text;
    if (pin->how != PINNING_LIST || processors_count(&rest) == 0 || processors_count(&allowed) == 0)
        return NULL;
    const int n =
        asprintf(&text, "cpu.pin: this process may not use %s, which is left out (only %s)",
                 processors_text(&rest, missing), processors_text(&allowed, known));
    return n < 0 ? NULL : text;
}

static void read_verified_decoders(struct devices *devices)
{
    char text[512];
    const int rc = hardware_record_read(&devices->verified_decoders, NULL);
    hardware_record_describe(&devices->verified_decoders, text, sizeof text);
    if (rc == -ESTALE)
        log_event(LOG_LEVEL_WARNING,
                  "`framed verify` ran with other libraries: `decode: auto` takes no hardware "
                  "decoder but NVDEC until framed verify --decoders has run again");
    else if (rc < 0 && rc != -ENOENT)
        log_event(LOG_LEVEL_WARNING, "the record of `framed verify` cannot be read: %s",
                  strerror(-rc));
    else if (text[0])
        log_event(LOG_LEVEL_INFO, "without NVDEC `decode: auto` takes %s", text);
}

struct memory_reserve *devices_memory_reserve(struct devices *devices)
{
    return &devices->reserve;
}

const struct hardware_record *devices_verified_decoders(const struct devices *devices)
{
    return &devices->verified_decoders;
}

int devices_open(struct devices **ret, const struct config *config)
{
    const struct backend_driver *gpu = NULL;
#ifdef FRAMED_CUDA
    gpu = &cuda_backend;
#endif
    char *left_out = pinning_left_out(config);
    if (left_out)
        log_event(LOG_LEVEL_WARNING, "%s", left_out);
    free(left_out);
    const int rc = devices_open_with(ret, config, gpu, &cpu_backend);
    if (rc == 0)
        read_verified_decoders(*ret);
    return rc;
}

void devices_close(struct devices *devices)
{
    if (!devices)
        return;
    pthread_mutex_lock(&devices->lock);
    devices->closing = true;
    pthread_cond_broadcast(&devices->changed);
    pthread_mutex_unlock(&devices->lock);
    if (devices->has_keeper)
        pthread_join(devices->keeper, NULL);
    pthread_mutex_lock(&devices->lock);
    for (int i = 0; i <= devices->n_gpus; i++)
        shut_down(devices, &devices->device[i]);
    pthread_mutex_unlock(&devices->lock);
    pthread_cond_destroy(&devices->changed);
    pthread_mutex_destroy(&devices->lock);
    free(devices);
}

int devices_provide(struct devices *devices, const struct config *config, char *why, size_t size)
{
    const char *demanding;
    pthread_mutex_lock(&devices->lock);
    const int rc = add_nvdec(devices, config, &demanding);
    pthread_mutex_unlock(&devices->lock);
    if (rc < 0)
        snprintf(why, size, "NVDEC, which camera %s demands, is missing", demanding);
    return rc;
}

// Under the lock. A picture may be larger than planned.
static struct placement_gpu placement_of(const struct device *gpu)
{
    struct placement_gpu ret = gpu->place;
    const size_t reserved = atomic_load(&gpu->reserved);
    if (ret.taken.bytes < reserved)
        ret.taken.bytes = reserved;
    return ret;
}

// The devices that work, for the budget.
static struct machine present_machine(struct devices *devices)
{
    pthread_mutex_lock(&devices->lock);
    const struct device *device = first_device(devices);
    struct machine machine = {.driver = device->driver, .nvdec = device->nvdec != NULL};
    for (int i = 0; i < devices->n_gpus; i++)
        if (!atomic_load(&devices->device[i].failed))
            machine.gpus[machine.n_gpus++] = placement_of(&devices->device[i]);
    pthread_mutex_unlock(&devices->lock);
    return machine;
}

// True if one of the GPUs, failed or not, is the camera's choice.
static bool has_chosen_gpu(struct devices *devices, const struct gpu_choice *choice)
{
    bool found = choice->by == GPU_AUTO;
    pthread_mutex_lock(&devices->lock);
    for (int i = 0; i < devices->n_gpus; i++)
        found |= placement_is_chosen(&devices->device[i].place, choice);
    pthread_mutex_unlock(&devices->lock);
    return found;
}

// Warns of cameras whose chosen GPU is missing or not framed's; backend cuda: returns -ENODEV.
static int check_choices(struct devices *devices, const struct config *config, char *why,
                         size_t size)
{
    for (int i = 0; devices->n_gpus > 0 && i < config->n_cameras; i++) {
        const struct camera_config *camera = &config->cameras[i];
        if (has_chosen_gpu(devices, &camera->device))
            continue;
        if (config->backend == BACKEND_CUDA) {
            snprintf(why, size, "the GPU that camera %s chooses is missing", camera->name);
            return -ENODEV;
        }
        log_of_camera(LOG_LEVEL_WARNING, camera->name,
                      "the GPU that `device` chooses is missing: as with auto");
    }
    return 0;
}

int devices_admit(struct devices *devices, const struct config *config, char *why, size_t size)
{
    const struct machine machine = present_machine(devices);
    int rc = check_choices(devices, config, why, size);
    if (rc == 0)
        rc = budget_check(config, &machine, why, size);
    if (rc < 0)
        return rc;
    memory_reserve_plan(&devices->reserve, budget_host_limit(),
                        budget_sum(config, &machine).reserved);
    const char *demanding = camera_that_demands_nvdec(config);
    if (demanding && devices->n_gpus > 0 && machine.n_gpus == 0)
        log_of_camera(LOG_LEVEL_WARNING, demanding,
                      "NVDEC is demanded and its device has failed: the cpu decodes "
                      "until it is back");
    return 0;
}

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

// Returns the camera's device for now, under the lock. Its home becomes the GPU that it chooses,
// else the first that it gets.
static struct device *choose_device(struct devices *devices, const struct gpu_choice *choice,
                                    const struct gpu_share *share, struct device_place *place)
{
    struct placement_gpu gpus[GPUS_MAX];
    for (int i = 0; i < devices->n_gpus; i++) {
        struct device *gpu = &devices->device[i];
        gpus[i] = placement_of(gpu);
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
        rc = open_device(devices, device);
    if (rc == 0) {
        placement_add(&device->place.taken, &share, 1);
        *lease = (struct device_lease){
            .device = device,
            .driver = device->driver,
            .backend = device->backend,
            .nvdec = device->nvdec,
            .number = device->place.number,
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
    placement_add(&device->place.taken, &lease->share, -1);
    pthread_cond_broadcast(&devices->changed);
    pthread_mutex_unlock(&devices->lock);
    *lease = (struct device_lease){.place = lease->place};
}

bool device_is_stale(const struct device_lease *lease)
{
    const struct devices *devices = lease->devices;
    const struct device_place *place = &lease->place;
    if (!lease->device)
        return false;
    if (place->home && is_usable(devices, place->home, place))
        return lease->device != place->home;
    if (lease->device == device_cpu(lease->devices))
        return has_usable(devices, place);
    return !is_usable(devices, lease->device, place);
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

int device_reserve(const struct device_lease *lease, size_t bytes, size_t *left)
{
    struct device *device = lease->device;
    return memory_take(&device->reserved, device->place.limit, bytes, left) ? 0 : -ENOSPC;
}

int device_reserve_spare(const struct device_lease *lease, size_t bytes, size_t *left)
{
    struct device *device = lease->device;
    const size_t limit = device->place.limit - device->place.limit / HEADROOM;
    return memory_take(&device->reserved, limit, bytes, left) ? 0 : -ENOSPC;
}

void device_unreserve(const struct device_lease *lease, size_t bytes)
{
    atomic_fetch_sub(&lease->device->reserved, bytes);
}

// --- status and metrics

const char *devices_backend_name(struct devices *devices)
{
    return first_device(devices)->driver->name;
}

// Under the lock.
static struct device_status status_of(struct device *device)
{
    const bool works = !atomic_load(&device->failed) && device->backend;
    struct device_status status = {
        .number = device->place.number,
        .works = works,
        .cameras = device->place.taken.cameras,
        .reserved = atomic_load(&device->reserved),
        .limit = device->backend ? device->place.limit : SIZE_MAX,
        .has_nvdec = works && device->nvdec,
        .has_busy = works && device->driver->busy,
    };
    memcpy(status.uuid, device->place.uuid, sizeof status.uuid);
    if (works)
        snprintf(status.description, sizeof status.description, "%s",
                 device->driver->describe(device->backend));
    if (status.has_nvdec)
        status.nvdec_busy_ns = decode_device_busy_ns(device->nvdec);
    if (status.has_busy)
        status.busy = device->driver->busy(device->backend);
    return status;
}

int devices_status(struct devices *devices, struct device_status ret[DEVICES_MAX])
{
    pthread_mutex_lock(&devices->lock);
    for (int i = 0; i <= devices->n_gpus; i++)
        ret[i] = status_of(&devices->device[i]);
    pthread_mutex_unlock(&devices->lock);
    return devices->n_gpus + 1;
}

void devices_memory(struct devices *devices, const struct config *config,
                    struct devices_memory *ret)
{
    const struct machine machine = present_machine(devices);
    ret->device_limit = machine.n_gpus > 0 ? 0 : SIZE_MAX;
    for (int i = 0; i < machine.n_gpus; i++)
        ret->device_limit += machine.gpus[i].limit;
    ret->need = budget_sum(config, &machine).all;
}

uint64_t devices_fallbacks(const struct devices *devices)
{
    return atomic_load(&devices->fallbacks);
}
