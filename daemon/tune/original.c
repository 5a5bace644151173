#include "daemon/tune/original.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGEST = 1 << 20 }; // bytes of a configuration

static int read_all(int fd, struct original *original)
{
    original->length = (size_t)original->stat.st_size;
    original->text = malloc(original->length + 1);
    if (!original->text)
        return -ENOMEM;
    size_t at = 0;
    ssize_t n = 1;
    while (n > 0 && at < original->length) {
        n = read(fd, original->text + at, original->length - at);
        at += n > 0 ? (size_t)n : 0;
    }
    original->text[at] = '\0';
    return n < 0 ? -errno : at < original->length ? -EIO : 0;
}

int original_read(struct original *ret, const char *path)
{
    *ret = (struct original){.length = 0};
    if (!realpath(path, ret->path))
        return -errno;
    int fd = open(ret->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a fifo has no end to wait for
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, &ret->stat) != 0           ? -errno
             : !S_ISREG(ret->stat.st_mode)        ? -EINVAL
             : ret->stat.st_size > (off_t)LARGEST ? -EFBIG
                                                  : read_all(fd, ret);
    close(fd);
    if (rc < 0)
        original_free(ret);
    return rc;
}

void original_free(struct original *original)
{
    free(original->text);
    original->text = NULL;
}

// The folder's part of the path; "/" for the root.
static void folder_of(const struct original *original, char folder[4096])
{
    const char *slash = strrchr(original->path, '/');
    const int n = slash > original->path ? (int)(slash - original->path) : 1;
    snprintf(folder, 4096, "%.*s", n, original->path);
}

int original_writable(const struct original *original, char *why, size_t size)
{
    char folder[4096];
    folder_of(original, folder);
    if (original->stat.st_nlink > 1) {
        snprintf(why, size, "has several names, of which only one would be changed");
        return -EMLINK;
    }
    if (access(folder, W_OK) != 0) {
        snprintf(why, size, "its folder cannot be written to: %s", strerror(errno));
        return -EACCES;
    }
    return 0;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_unchanged(const struct original *original)
{
    struct stat now;
    return stat(original->path, &now) == 0 && now.st_ino == original->stat.st_ino &&
           now.st_size == original->stat.st_size &&
           same_time(&now.st_mtim, &original->stat.st_mtim);
}

static int fill(int fd, const struct original *original, const char *text, size_t length)
{
    const struct stat *like = &original->stat;
    for (size_t at = 0; at < length;) {
        ssize_t n = write(fd, text + at, length - at);
        if (n < 0)
            return -errno;
        at += (size_t)n;
    }
    struct stat own;
    if (fstat(fd, &own) != 0)
        return -errno;
    // The owner first: a change of it may take bits of the mode.
    if ((own.st_uid != like->st_uid || own.st_gid != like->st_gid) &&
        fchown(fd, like->st_uid, like->st_gid) != 0)
        return -errno;
    return fchmod(fd, like->st_mode & 07777) == 0 && fsync(fd) == 0 ? 0 : -errno;
}

// A file like the original at `path`, whole or not at all.
static int put(const struct original *original, const char *path, const char *text, size_t length)
{
    char partial[4096 + 16];
    snprintf(partial, sizeof partial, "%s.XXXXXX", path);
    int fd = mkostemp(partial, O_CLOEXEC); // 0600: it may hold passwords
    if (fd < 0)
        return -errno;
    int rc = fill(fd, original, text, length);
    if (close(fd) != 0 && rc == 0)
        rc = -errno;
    if (rc == 0 && rename(partial, path) != 0)
        rc = -errno;
    if (rc < 0)
        unlink(partial);
    return rc;
}

static void sync_folder(const struct original *original)
{
    char folder[4096];
    folder_of(original, folder);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd); // not every file system can; both names are there all the same
        close(fd);
    }
}

int original_replace(const struct original *original, const char *text, size_t length, char *why,
                     size_t size)
{
    char backup[4096 + 8];
    int rc = original_writable(original, why, size);
    if (rc < 0)
        return rc;
    if (!is_unchanged(original)) {
        snprintf(why, size, "was changed meanwhile");
        return -EBUSY;
    }
    snprintf(backup, sizeof backup, "%s.bak", original->path);
    rc = put(original, backup, original->text, original->length);
    if (rc == 0)
        rc = put(original, original->path, text, length);
    if (rc < 0)
        snprintf(why, size, "cannot be written: %s", strerror(-rc));
    else
        sync_folder(original);
    return rc;
}
