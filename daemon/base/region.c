#include "daemon/base/region.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/types.h"
#include "daemon/base/number.h"

// --- shared objects

#define FOLDER "/dev/shm" // where libc's shm_open has its objects

enum {
    MARK = S_ISVTX,
    TRIES = 8, // against others that take and free the same name at the same time
};

struct path {
    char text[sizeof FOLDER + SHARED_NAME_MAX + sizeof "..4194304"]; // the largest process id
};

static struct path path_of(const char *name)
{
    struct path path;
    snprintf(path.text, sizeof path.text, FOLDER "%s", name);
    return path;
}

// The file that will replace the one of a name is made here. No name begins with a dot.
static struct path temporary_of(const char *name)
{
    struct path path;
    snprintf(path.text, sizeof path.text, FOLDER "/.%s.%d", name + 1, (int)getpid());
    return path;
}

static bool is_file(const struct stat *st, int fd)
{
    struct stat own;
    return fd >= 0 && fstat(fd, &own) == 0 && own.st_dev == st->st_dev && own.st_ino == st->st_ino;
}

// Locks the file that has the name, unless it is our own file `own` (-1: none). Returns 0: no file;
// 1: our own, or an abandoned one, locked by *ret; -EAGAIN: the file changed meanwhile; or another
// negative errno, as shared_object_open.
static int lock_former(const char *name, int own, int *ret, char *why, size_t size)
{
    const struct path path = path_of(name);
    struct stat st;
    *ret = -1;
    if (lstat(path.text, &st) < 0 && errno == ENOENT)
        return 0;
    if (is_file(&st, own))
        return 1;
    int fd = open(path.text, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return -EAGAIN;
    int rc = fd < 0 || fstat(fd, &st) < 0 ? -errno : 1;
    if (rc == -ELOOP || (rc == 1 && !(S_ISREG(st.st_mode) && (st.st_mode & MARK)))) {
        snprintf(why, size, "%s exists and is not framed's", path.text);
        rc = -EEXIST;
    } else if (rc < 0) {
        snprintf(why, size, "cannot look at %s: %s", path.text, strerror(-rc));
    } else if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        snprintf(why, size, "another program has the shared memory %s", name);
        rc = -EADDRINUSE;
    } else if (lstat(path.text, &st) < 0 || !is_file(&st, fd)) {
        rc = -EAGAIN;
    }
    if (rc == 1)
        *ret = fd;
    else if (fd >= 0)
        close(fd);
    return rc;
}

// Links a file without a name to the path. Returns 0 or a negative errno; -EEXIST: path is taken.
static int link_file(int fd, const char *path)
{
    char of_fd[32];
    snprintf(of_fd, sizeof of_fd, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, of_fd, AT_FDCWD, path, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int replace_file(const char *name, int fd)
{
    const struct path path = path_of(name), temporary = temporary_of(name);
    unlink(temporary.text); // left by a run with this process id that was killed here
    int rc = link_file(fd, temporary.text);
    if (rc == 0 && rename(temporary.text, path.text) < 0) {
        rc = -errno;
        unlink(temporary.text);
    }
    return rc;
}

// Gives the name to the file of `fd`, replacing our own file or an abandoned one.
static int take_name(const char *name, int own, int fd, char *why, size_t size)
{
    int rc = -EAGAIN;
    for (int i = 0; i < TRIES && rc == -EAGAIN; i++) {
        int former;
        const int found = lock_former(name, own, &former, why, size);
        rc = found;
        if (found < 0)
            continue;
        rc = found ? replace_file(name, fd) : link_file(fd, path_of(name).text);
        if (former >= 0)
            close(former);
        if (rc == -EEXIST && !found)
            rc = -EAGAIN;
        else if (rc < 0)
            snprintf(why, size, "cannot make the shared memory %s: %s", name, strerror(-rc));
    }
    if (rc == -EAGAIN)
        snprintf(why, size, "another program has the shared memory %s", name);
    return rc;
}

static int prepare_file(const struct shared_object *object, int fd)
{
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 ||
        (object->group != (gid_t)-1 && fchown(fd, (uid_t)-1, object->group) < 0) ||
        fchmod(fd, (mode_t)object->mode | MARK) < 0)
        return -errno;
    return 0;
}

// Replaces the present file. Under the lock.
static int put_file(struct shared_object *object, int fd, size_t bytes, char *why, size_t size)
{
    int rc = prepare_file(object, fd);
    if (rc < 0)
        snprintf(why, size, "cannot make the shared memory %s: %s", object->name, strerror(-rc));
    else
        rc = take_name(object->name, object->fd, fd, why, size);
    if (rc < 0)
        return rc;
    if (object->fd >= 0)
        close(object->fd);
    object->fd = fd;
    object->bytes = bytes;
    return 0;
}

static int open_file(void)
{
    int fd = open(FOLDER, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

void shared_object_init(struct shared_object *object)
{
    *object = (struct shared_object){.fd = -1};
    pthread_mutex_init(&object->lock, NULL);
}

int shared_object_check(const char *name, char *why, size_t size)
{
    int former;
    int rc = lock_former(name, -1, &former, why, size);
    if (former >= 0)
        close(former);
    return rc < 0 && rc != -EAGAIN ? rc : 0;
}

int shared_object_open(struct shared_object *object, const char *name, int mode, gid_t group,
                       char *why, size_t size)
{
    int fd = open_file();
    if (fd < 0) {
        snprintf(why, size, "cannot make the shared memory %s: %s", name, strerror(-fd));
        return fd;
    }
    pthread_mutex_lock(&object->lock);
    object->name = name;
    object->mode = mode;
    object->group = group;
    int rc = put_file(object, fd, 0, why, size);
    pthread_mutex_unlock(&object->lock);
    if (rc < 0)
        close(fd);
    return rc;
}

// Returns true if the file at the name is ours. Under the lock.
static bool has_name(const struct shared_object *object, struct stat *st)
{
    return object->fd >= 0 && lstat(path_of(object->name).text, st) == 0 && is_file(st, object->fd);
}

void shared_object_close(struct shared_object *object)
{
    struct stat st;
    pthread_mutex_lock(&object->lock);
    if (has_name(object, &st))
        unlink(path_of(object->name).text);
    if (object->fd >= 0)
        close(object->fd);
    object->fd = -1;
    pthread_mutex_unlock(&object->lock);
}

bool shared_object_is_lost(struct shared_object *object)
{
    struct stat st;
    pthread_mutex_lock(&object->lock);
    const bool lost = !has_name(object, &st) || (size_t)st.st_size < object->bytes;
    pthread_mutex_unlock(&object->lock);
    return lost;
}

static int allocate_bytes(int fd, size_t bytes)
{
    int rc;
    do
        rc = -posix_fallocate(fd, 0, (off_t)bytes);
    while (rc == -EINTR);
    return rc == -ENOSPC ? -ENOMEM : rc;
}

int shared_object_allocate(size_t bytes)
{
    int fd = open_file();
    if (fd < 0)
        return fd;
    int rc = allocate_bytes(fd, bytes);
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}

int shared_object_publish(struct shared_object *object, int fd, size_t bytes, int *read_only)
{
    char of_fd[32], why[256];
    snprintf(of_fd, sizeof of_fd, "/proc/self/fd/%d", fd);
    *read_only = open(of_fd, O_RDONLY | O_CLOEXEC);
    if (*read_only < 0)
        return -errno;
    pthread_mutex_lock(&object->lock);
    int rc = object->fd < 0 ? -ESHUTDOWN : put_file(object, fd, bytes, why, sizeof why);
    pthread_mutex_unlock(&object->lock);
    if (rc < 0)
        close(*read_only);
    return rc;
}

// --- regions

enum { LARGE_PAGE = 2 << 20 };

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t whole_pages(size_t bytes)
{
    return round_up(bytes, page_bytes());
}

// Populates every page now, so that no frame waits for one. Only shared regions report a lack of
// memory, when they allocate: MAP_POPULATE does not report pages that it could not get.
static int map_pages(struct region *region, int flags)
{
    void *base =
        mmap(NULL, region->bytes, PROT_READ | PROT_WRITE, flags | MAP_POPULATE, region->fd, 0);
    if (base == MAP_FAILED)
        return -ENOMEM;
    region->base = base;
    return 0;
}

// A picture is read at many rows at once, too many small pages for the TLB. So pictures request
// large pages, where the system grants them, before the first touch.
static int map_large(struct region *region)
{
    const size_t room = region->bytes + LARGE_PAGE;
    uint8_t *begin = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (begin == MAP_FAILED)
        return -ENOMEM;
    const size_t before = -(uintptr_t)begin % LARGE_PAGE;
    region->base = begin + before;
    if (before > 0)
        munmap(begin, before);
    munmap(region->base + region->bytes, LARGE_PAGE - before);
    madvise(region->base, region->bytes, MADV_HUGEPAGE);
    for (size_t i = 0; i < region->bytes; i += page_bytes())
        ((volatile uint8_t *)region->base)[i] = 0;
    return 0;
}

static int open_private(struct region *region)
{
    return region->bytes < LARGE_PAGE ? map_pages(region, MAP_PRIVATE | MAP_ANONYMOUS)
                                      : map_large(region);
}

// Prevents holders of the descriptor from changing its size or writing to it; our own mapping
// exists already and stays writable. A seal that the kernel does not support is skipped.
static void seal_descriptor(int fd)
{
    const int seals[] = {F_SEAL_GROW | F_SEAL_SHRINK, F_SEAL_FUTURE_WRITE, F_SEAL_SEAL};
    for (size_t i = 0; i < sizeof seals / sizeof seals[0]; i++)
        fcntl(fd, F_ADD_SEALS, seals[i]);
}

static int open_shared(struct region *region)
{
    region->fd = memfd_create("framed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (region->fd < 0)
        return -errno;
    int rc = allocate_bytes(region->fd, region->bytes);
    if (rc == 0)
        rc = map_pages(region, MAP_SHARED);
    if (rc < 0) {
        close(region->fd);
        return rc;
    }
    seal_descriptor(region->fd);
    return 0;
}

int region_open_named(struct region *ret, size_t bytes, struct shared_object *object)
{
    struct region region = {.kind = REGION_SHARED, .bytes = whole_pages(bytes), .named = true};
    const int fd = region.fd = shared_object_allocate(region.bytes);
    if (fd < 0)
        return fd;
    int rc = map_pages(&region, MAP_SHARED);
    if (rc == 0) {
        rc = shared_object_publish(object, fd, region.bytes, &region.fd);
        if (rc < 0)
            munmap(region.base, region.bytes);
    }
    if (rc < 0)
        close(fd);
    else
        *ret = region;
    return rc;
}

static int open_device(struct region *region, const struct backend_driver *driver,
                       struct backend *backend)
{
    if (!driver || !driver->export_open)
        return -ENOTSUP;
    const enum export_kind kind =
        region->kind == REGION_DEVICE_IPC ? EXPORT_IPC : EXPORT_DESCRIPTOR;
    int rc = driver->export_open(backend, &region->device, kind, region->bytes);
    if (rc < 0)
        return rc;
    region->base = region->device.address;
    region->bytes = region->device.bytes;
    region->fd = region->device.fd;
    region->memory = MEMORY_CUDA;
    region->driver = driver;
    region->backend = backend;
    memcpy(region->uuid, region->device.uuid, sizeof region->uuid);
    memcpy(region->handle, region->device.handle, sizeof region->handle);
    return 0;
}

int region_open(struct region *ret, enum region_kind kind, size_t bytes,
                const struct backend_driver *driver, struct backend *backend)
{
    struct region region = {.kind = kind, .bytes = whole_pages(bytes), .fd = -1};
    int rc = region_is_on_device(kind) ? open_device(&region, driver, backend)
             : kind == REGION_SHARED   ? open_shared(&region)
                                       : open_private(&region);
    if (rc == 0)
        *ret = region;
    return rc;
}

void region_close(struct region *region)
{
    if (!region->base)
        return;
    if (region_is_on_device(region->kind)) {
        region->driver->export_close(region->backend, &region->device);
    } else {
        region_unpin(region);
        munmap(region->base, region->bytes);
        if (region->fd >= 0)
            close(region->fd);
    }
    *region = (struct region){.fd = -1};
}

void region_pin(struct region *region, const struct backend_driver *driver, struct backend *backend)
{
    const int rc = driver->pin(backend, region->base, region->bytes);
    region_unpin(region);
    if (rc < 0)
        return;
    region->memory = MEMORY_PINNED;
    region->driver = driver;
    region->backend = backend;
}

void region_unpin(struct region *region)
{
    if (region->memory != MEMORY_PINNED)
        return;
    region->driver->unpin(region->backend, region->base);
    region->memory = MEMORY_HOST;
    region->driver = NULL;
    region->backend = NULL;
}

// --- regions of pools

enum {
    PAGE = 4096,            // slots start on a page, after the words
    ALIGN = 256,            // of slots: for the widest loads and stores of a GPU
    EXPORT_PIECE = 2 << 20, // exported device memory is allocated in pieces of this size
};

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
