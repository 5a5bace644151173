#include "tests/faults/disk.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static struct disk_fault fault;
static _Atomic bool armed, halved;
static _Atomic int calls;

// A call may be running and still read the last order: NULL leaves that in place.
void disk_break(const struct disk_fault *order)
{
    atomic_store(&armed, false);
    atomic_store(&halved, false);
    atomic_store(&calls, 0);
    if (order)
        fault = *order;
    atomic_store(&armed, order != NULL);
}

int disk_calls(void)
{
    return atomic_load(&calls);
}

static bool is_in(const char *folder, const char *path)
{
    size_t n = strlen(folder);
    return !strncmp(path, folder, n) && path[n] == '/';
}

// Returns the error that this call must fail with, or 0.
static int error_of(const char *path)
{
    if (!atomic_load(&armed) || !is_in(fault.folder, path))
        return 0;
    int number = atomic_fetch_add(&calls, 1) + 1;
    return number >= fault.first && number <= fault.last ? fault.error : 0;
}

static const char *path_of(int fd, char path[PATH_MAX])
{
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = 0;
    return path;
}

static int error_of_file(int fd)
{
    char path[PATH_MAX];
    return atomic_load(&armed) ? error_of(path_of(fd, path)) : 0;
}

// True while the file that the variable names exists beside `path`.
static bool has_sign(const char *variable, const char *path)
{
    const char *sign = getenv(variable), *slash = sign ? strrchr(sign, '/') : NULL;
    char folder[PATH_MAX];
    if (!slash || access(sign, F_OK) < 0)
        return false;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - sign), sign);
    return is_in(folder, path);
}

// --- the calls

// Looks up the C library's function only once: a sanitizer opens files while no lookup is possible.
#define REAL(call)                                                                                 \
    ({                                                                                             \
        static _Atomic(void *) found;                                                              \
        if (!atomic_load(&found))                                                                  \
            atomic_store(&found, dlsym(RTLD_NEXT, #call));                                         \
        (__typeof__(&call))atomic_load(&found);                                                    \
    })
#define FAIL(error)                                                                                \
    do {                                                                                           \
        int wrong = error;                                                                         \
        if (wrong) {                                                                               \
            errno = wrong;                                                                         \
            return -1;                                                                             \
        }                                                                                          \
    } while (0)

int open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list more;
        va_start(more, flags);
        mode = va_arg(more, mode_t);
        va_end(more);
    }
    FAIL(error_of(path));
    FAIL((flags & O_CREAT) && has_sign("FRAMED_DISK_FULL", path) ? ENOSPC : 0);
    return REAL(open)(path, flags, mode);
}

int flock(int fd, int operation)
{
    FAIL(error_of_file(fd));
    return REAL(flock)(fd, operation);
}

int fchmod(int fd, mode_t mode)
{
    FAIL(error_of_file(fd));
    return REAL(fchmod)(fd, mode);
}

int fstat(int fd, struct stat *st)
{
    FAIL(error_of_file(fd));
    return REAL(fstat)(fd, st);
}

int lstat(const char *path, struct stat *st)
{
    FAIL(error_of(path));
    return REAL(lstat)(path, st);
}

int ftruncate(int fd, off_t size)
{
    FAIL(error_of_file(fd));
    return REAL(ftruncate)(fd, size);
}

int unlink(const char *path)
{
    FAIL(error_of(path));
    return REAL(unlink)(path);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    FAIL(error_of(from));
    return REAL(renameat2)(from_folder, from, to_folder, to, flags);
}

static ssize_t write_half(int fd, const struct iovec *piece, int n, off_t offset)
{
    struct iovec half[2];
    size_t left = 0;
    for (int i = 0; i < n; i++)
        left += piece[i].iov_len;
    left /= 2;
    for (int i = 0; i < n; i++) {
        size_t length = piece[i].iov_len < left ? piece[i].iov_len : left;
        half[i] = (struct iovec){piece[i].iov_base, length};
        left -= length;
    }
    return REAL(pwritev)(fd, half, n, offset);
}

ssize_t pwritev(int fd, const struct iovec *piece, int n, off_t offset)
{
    char path[PATH_MAX];
    int error = error_of_file(fd);
    if (getenv("FRAMED_DISK_FULL") && has_sign("FRAMED_DISK_FULL", path_of(fd, path)))
        error = ENOSPC;
    while (getenv("FRAMED_DISK_HANGS") && has_sign("FRAMED_DISK_HANGS", path_of(fd, path)))
        usleep(10000);
    if (n > 2 || (!error && !atomic_load(&halved)))
        return REAL(pwritev)(fd, piece, n, offset);
    if (!atomic_exchange(&halved, !atomic_load(&halved)))
        return write_half(fd, piece, n, offset);
    errno = error ? error : fault.error ? fault.error : ENOSPC;
    return -1;
}
