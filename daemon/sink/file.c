// Frames one after another in a file. A job on libuv's thread pool opens the file where need be and
// writes one whole frame, so that a slow disk delays nobody but this sink; on any error the file is
// cut back to the last whole frame.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "daemon/sink/driver.h"
#include "daemon/sink/protocol.h"

enum {
    RETRY_MS = 1000,
    PATH_BYTES = 4096,
    COPIES_MAX = 1000000, // of old files beside the present one
};

struct file_sink {
    struct sink sink;
    gid_t group;
    uv_work_t job;
    uv_timer_t timer; // from a failure to the next attempt; once finishing: the grace
    bool busy;        // the job has the members below, else the loop has
    bool failing;     // since the last attempt; waiting for the timer or for a frame to try
    bool waiting;     // failing, and it is too early for another attempt
    bool finishing;
    uint64_t next; // ordinal from which on slots are taken

    struct slot *slot; // that is written, pinned
    int status;        // of that: 0 or negative errno
    int fd;            // -1: none is open
    dev_t device;      // of the open file
    ino_t inode;
    off_t whole;             // bytes of whole frames in it
    struct slot_info stream; // of its first frame
    struct reader reader;    // of the frames written
};

static const struct output_config *config_of(const struct file_sink *file)
{
    return file->sink.context.config;
}

// --- the file; on the loop at the start, in the job later

// "gate.y4m" and 3 make "gate.3.y4m".
static int numbered(const char *path, int number, char to[PATH_BYTES])
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    size_t stem = dot && dot > name ? (size_t)(dot - path) : strlen(path);
    int n = snprintf(to, PATH_BYTES, "%.*s.%d%s", (int)stem, path, number, path + stem);
    return n < PATH_BYTES ? 0 : -ENAMETOOLONG;
}

static int rename_new(const char *from, const char *to)
{
    struct stat st;
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL)
        return -errno;
    // A file system without the flag, as NFS is.
    if (lstat(to, &st) == 0)
        return -EEXIST;
    return rename(from, to) < 0 ? -errno : 0;
}

// Whoever writes a file holds its lock, so that two outputs with one path do not push each other's
// file aside. A file that cannot be asked counts as free.
static bool is_written(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool written = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return written;
}

// Gives what stands at the path the first free name with a number. Only files are moved; one with
// nothing in it is deleted.
static int move_aside(const char *path)
{
    char to[PATH_BYTES];
    struct stat st;
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISREG(st.st_mode))
        return -EEXIST;
    if (is_written(path))
        return -EBUSY;
    if (st.st_size == 0)
        return unlink(path) < 0 ? -errno : 0;
    int rc = -EEXIST;
    for (int i = 1; rc == -EEXIST && i < COPIES_MAX; i++) {
        rc = numbered(path, i, to);
        if (rc == 0)
            rc = rename_new(path, to);
    }
    return rc;
}

static void close_file(struct file_sink *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
    file->whole = 0;
}

static int open_file(struct file_sink *file)
{
    const struct output_config *config = config_of(file);
    mode_t mode = (mode_t)config->mode.mode & ~(mode_t)0111;
    struct stat st;
    int rc = move_aside(config->sink.path);
    if (rc < 0)
        return rc;
    file->fd = open(config->sink.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file->fd < 0)
        return -errno;
    // fchmod: the mode is what the configuration says, whatever the umask.
    if (flock(file->fd, LOCK_EX | LOCK_NB) < 0 || fchmod(file->fd, mode) < 0 ||
        (file->group != (gid_t)-1 && fchown(file->fd, (uid_t)-1, file->group) < 0) ||
        fstat(file->fd, &st) < 0) {
        rc = -errno;
        close_file(file);
        return rc;
    }
    file->device = st.st_dev;
    file->inode = st.st_ino;
    return 0;
}

// Whether the open file is still what the path names: it may have been deleted or moved away.
static bool is_in_place(const struct file_sink *file)
{
    struct stat st;
    return file->fd >= 0 && lstat(config_of(file)->sink.path, &st) == 0 &&
           st.st_dev == file->device && st.st_ino == file->inode;
}

static bool continues(const struct file_sink *file)
{
    return file->whole == 0 ||
           protocol_continues(config_of(file)->protocol, &file->stream, &file->slot->info);
}

// --- the job

static int write_all(int fd, struct iovec *piece, int n, off_t offset)
{
    while (n > 0) {
        ssize_t written = pwritev(fd, piece, n, offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? -errno : -EIO;
        offset += written;
        for (; n > 0 && (size_t)written >= piece->iov_len; piece++, n--)
            written -= (ssize_t)piece->iov_len;
        if (n > 0) {
            piece->iov_base = (char *)piece->iov_base + written;
            piece->iov_len -= (size_t)written;
        }
    }
    return 0;
}

static int append(struct file_sink *file, const struct reader *reader)
{
    const struct sink_context *context = &file->sink.context;
    char header[PROTOCOL_HEADER_MAX];
    size_t size = protocol_header(context->config->protocol, file->slot, context->camera,
                                  context->config->name, reader, file->whole == 0, header);
    struct iovec piece[2] = {{header, size}, {file->slot->data, file->slot->size}};
    int rc = write_all(file->fd, piece, 2, file->whole);
    if (rc == 0)
        file->whole += (off_t)(size + file->slot->size);
    else if (ftruncate(file->fd, file->whole) < 0)
        close_file(file); // it ends in a part of a frame: the next one goes to a new file
    return rc;
}

static void write_frame(uv_work_t *job)
{
    struct file_sink *file = job->data;
    const struct slot_info *info = &file->slot->info;
    struct reader reader = file->reader;

    reader_take(&reader, info);
    file->status = 0;
    if (!is_in_place(file) || !continues(file)) {
        close_file(file);
        file->status = open_file(file);
    }
    if (file->status == 0 && file->whole == 0)
        file->stream = *info;
    if (file->status == 0)
        file->status = append(file, &reader);
    if (file->status == 0)
        file->reader = reader; // a frame that failed is lost to the file as well
}

// --- the loop

static void next_frame(struct file_sink *file);

static void timer_closed(uv_handle_t *handle)
{
    struct file_sink *file = handle->data;
    struct sink_context context = file->sink.context;
    free(file);
    context.closed(context.opaque);
}

static void end(struct file_sink *file, enum loss reason)
{
    if (is_in_place(file) && file->whole == 0)
        unlink(config_of(file)->sink.path); // nothing was ever in it
    close_file(file);
    slots_retire(file->sink.context.slots, UINT64_MAX, reason);
    uv_close((uv_handle_t *)&file->timer, timer_closed);
}

static void try_again(uv_timer_t *timer)
{
    struct file_sink *file = timer->data;
    file->waiting = false;
    next_frame(file);
}

static void tell(struct file_sink *file)
{
    const char *path = config_of(file)->sink.path;
    if (file->status < 0 && !file->failing)
        sink_event(&file->sink, LOG_LEVEL_ERROR, "cannot write %s: %s: frames are lost", path,
                   strerror(-file->status));
    if (file->status == 0 && file->failing)
        sink_event(&file->sink, LOG_LEVEL_INFO, "writing %s again", path);
    file->failing = file->status < 0;
}

static void frame_written(uv_work_t *job, int status)
{
    struct file_sink *file = job->data;
    struct slots *slots = file->sink.context.slots;
    (void)status; // jobs are never cancelled
    file->busy = false;
    slots_unpin(slots, file->slot, file->status == 0);
    slots_retire(slots, file->next, LOSS_SINK);
    tell(file);
    if (file->failing && !file->finishing) {
        file->waiting = true;
        uv_timer_start(&file->timer, try_again, RETRY_MS, 0);
    }
    next_frame(file);
}

// Starts the job on the next frame, if there is one and it may start.
static void next_frame(struct file_sink *file)
{
    struct slots *slots = file->sink.context.slots;
    if (file->busy || uv_is_closing((uv_handle_t *)&file->timer))
        return;
    if (file->waiting)
        slots_retire(slots, UINT64_MAX, LOSS_SINK);
    file->slot = sink_begin(&file->sink, &file->next);
    slots_retire(slots, file->next, LOSS_LATE);
    if (file->slot) {
        file->busy = true;
        uv_queue_work(file->sink.context.loop, &file->job, write_frame, frame_written);
    } else if (file->finishing) {
        end(file, LOSS_SINK);
    }
}

static void pump(struct sink *base)
{
    slots_publish(base->context.slots);
    next_frame((struct file_sink *)base);
}

static void grace_over(uv_timer_t *timer)
{
    struct file_sink *file = timer->data;
    slots_retire(file->sink.context.slots, UINT64_MAX, LOSS_STOPPING);
    next_frame(file); // ends the sink now, or when the frame under way is written
}

static void finish(struct sink *base, int grace_ms)
{
    struct file_sink *file = (struct file_sink *)base;
    if (uv_is_closing((uv_handle_t *)&file->timer))
        return;
    file->finishing = true;
    file->waiting = false; // a last attempt
    uv_timer_start(&file->timer, grace_over, (uint64_t)grace_ms, 0);
    pump(base);
}

static int open_sink(struct sink **ret, const struct sink_context *context, char *why, size_t size)
{
    const char *path = context->config->sink.path;
    struct file_sink *file = calloc(1, sizeof *file);
    if (!file) {
        snprintf(why, size, "out of memory");
        return -ENOMEM;
    }
    file->sink = (struct sink){.driver = &file_sink, .context = *context};
    file->fd = -1;
    int rc = sink_group(context->config, &file->group, why, size);
    if (rc == 0) {
        rc = open_file(file);
        if (rc == -EEXIST)
            snprintf(why, size, "%s exists and is not a file", path);
        else if (rc == -EBUSY)
            snprintf(why, size, "%s is being written by another output or process", path);
        else if (rc < 0)
            snprintf(why, size, "cannot write %s: %s", path, strerror(-rc));
    }
    if (rc < 0) {
        free(file);
        return rc;
    }
    uv_timer_init(context->loop, &file->timer);
    file->timer.data = file->job.data = file;
    slots_listeners(context->slots, 1);
    *ret = &file->sink;
    return 0;
}

static int clients(const struct sink *sink)
{
    (void)sink;
    return 1;
}

const struct sink_driver file_sink = {
    .open = open_sink,
    .pump = pump,
    .finish = finish,
    .clients = clients,
};
