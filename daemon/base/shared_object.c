#include "daemon/base/shared_object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/types.h"

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

int shared_object_allocate(size_t bytes)
{
    int fd = open_file();
    if (fd < 0)
        return fd;
    int rc;
    do
        rc = -posix_fallocate(fd, 0, (off_t)bytes);
    while (rc == -EINTR);
    if (rc == 0)
        return fd;
    close(fd);
    return rc == -ENOSPC ? -ENOMEM : rc;
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
