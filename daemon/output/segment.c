#include "daemon/output/segment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "config/address.h"
#include "daemon/base/clock.h"

#define NS INT64_C(1000000000)
enum { COPIES_MAX = 1000000 }; // files with the same name

// --- unique names: a number is added to a name that is taken, and nothing is ever overwritten

// Makes "gate.3.y4m" of "gate.y4m" and 3; keeps the name for 0. Returns 0 or -ENAMETOOLONG.
static int number_path(const char *path, int number, char to[PATH_BYTES])
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    size_t stem = dot && dot > name ? (size_t)(dot - path) : strlen(path);
    int n = number == 0
                ? snprintf(to, PATH_BYTES, "%s", path)
                : snprintf(to, PATH_BYTES, "%.*s.%d%s", (int)stem, path, number, path + stem);
    return n < PATH_BYTES ? 0 : -ENAMETOOLONG;
}

static int rename_new(const char *from, const char *to)
{
    struct stat st;
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL)
        return -errno;
    // File systems without the flag, such as NFS.
    if (lstat(to, &st) == 0)
        return -EEXIST;
    return rename(from, to) < 0 ? -errno : 0;
}

// Renames `from` to `to`, with the first free number from `number` on. 0 or a negative errno.
static int rename_unique(const char *from, const char *to, int number)
{
    char path[PATH_BYTES];
    int rc = -EEXIST;
    for (int i = number; rc == -EEXIST && i < COPIES_MAX; i++) {
        rc = number_path(to, i, path);
        if (rc == 0)
            rc = rename_new(from, path);
    }
    return rc;
}

int segment_give_name(const char *part)
{
    char final[PATH_BYTES];
    snprintf(final, sizeof final, "%.*s", (int)(strlen(part) - strlen(SEGMENT_PART)), part);
    return rename_unique(part, final, 0);
}

// --- the state of the file

void segment_init(struct segment *segment, const struct output_config *config, gid_t group)
{
    segment->config = config;
    segment->group = group;
    segment->fd = -1;
    segment->change_ns = INT64_MIN;
    segment->keep.config = config;
}

bool segment_may_change(struct segment *segment)
{
    const int64_t now_ns = monotonic_ns(), minute_ns = 60 * NS;
    const int64_t earliest_ns = now_ns - SEGMENT_CHANGES * minute_ns;
    const int64_t last_ns = segment->change_ns > earliest_ns ? segment->change_ns : earliest_ns;
    segment->refused_change |= last_ns + minute_ns > now_ns;
    if (last_ns + minute_ns > now_ns)
        return false;
    segment->change_ns = last_ns + minute_ns;
    return true;
}

static void close_file(struct segment *segment)
{
    if (segment->fd >= 0)
        close(segment->fd);
    segment->fd = -1;
    segment->whole = 0;
}

// Returns true if the path still names the open file, which may have been deleted or moved away.
// Errors other than a missing path count as true.
static bool is_in_place(const struct segment *segment)
{
    struct stat st;
    if (lstat(segment->path, &st) < 0)
        return errno != ENOENT && errno != ENOTDIR;
    return st.st_dev == segment->device && st.st_ino == segment->inode;
}

// --- making the file

// The writer of a file holds its lock, so that two outputs with one path do not move each other's
// file aside. A file that cannot be opened counts as free.
bool segment_is_written(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool written = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return written;
}

int segment_folder(const char *path, char to[PATH_BYTES])
{
    const char *slash = strrchr(path, '/');
    const int bytes = slash ? (int)(slash + 1 - path) : 0;
    snprintf(to, PATH_BYTES, "%.*s", slash ? bytes : 1, slash ? path : ".");
    return bytes;
}

// Returns 1 for a file that no output writes, 0 if there is none, or a negative errno.
static int check_plain(const char *path, struct stat *st)
{
    if (lstat(path, st) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISREG(st->st_mode))
        return -EEXIST;
    return segment_is_written(path) ? -EBUSY : 1;
}

int segment_check(const struct output_config *config)
{
    char folder[PATH_BYTES];
    struct stat st;
    segment_folder(config->sink.path, folder);
    if (access(folder, W_OK | X_OK) < 0)
        return -errno;
    int rc = config->sink.timed ? 0 : check_plain(config->sink.path, &st);
    return rc < 0 ? rc : 0;
}

// Renames a file at the path to the first free name with a number. Moves only files; deletes an
// empty one.
static int move_aside(const char *path)
{
    struct stat st;
    int rc = check_plain(path, &st);
    if (rc <= 0)
        return rc;
    if (st.st_size == 0)
        return unlink(path) < 0 ? -errno : 0;
    return rename_unique(path, path, 1);
}

static mode_t mode_of(const struct segment *segment)
{
    return (mode_t)segment->config->mode.mode & ~(mode_t)0111;
}

static int create_file(struct segment *segment)
{
    segment->fd = open(segment->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode_of(segment));
    return segment->fd < 0 ? -errno : 0;
}

static int create_plain(struct segment *segment)
{
    snprintf(segment->path, PATH_BYTES, "%s", segment->config->sink.path);
    int rc = move_aside(segment->path);
    return rc < 0 ? rc : create_file(segment);
}

// Uses the first number whose name is free, both unfinished and finished.
static int create_part(struct segment *segment, int64_t time_ns)
{
    char name[PATH_BYTES], numbered[PATH_BYTES];
    struct stat st;
    int rc = pattern_at(segment->config->sink.path, (time_t)(time_ns / NS), name, sizeof name);
    for (int i = 0; rc == 0 && i < COPIES_MAX; i++) {
        rc = number_path(name, i, numbered);
        if (rc < 0 || lstat(numbered, &st) == 0)
            continue;
        if (snprintf(segment->path, PATH_BYTES, "%s" SEGMENT_PART, numbered) >= PATH_BYTES)
            return -ENAMETOOLONG;
        rc = create_file(segment);
        if (rc != -EEXIST)
            return rc;
        rc = 0;
    }
    return rc < 0 ? rc : -EEXIST;
}

// Locks the new file and sets its configured mode and group. fchmod ignores the umask.
static int own_file(struct segment *segment)
{
    struct stat st;
    if (fstat(segment->fd, &st) < 0)
        return -errno;
    segment->device = st.st_dev;
    segment->inode = st.st_ino;
    if (flock(segment->fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? -EBUSY : -errno;
    // A search for leftovers may have taken the file before it was locked.
    if (!is_in_place(segment))
        return -EBUSY;
    if (fchmod(segment->fd, mode_of(segment)) < 0 ||
        (segment->group != (gid_t)-1 && segment->group != st.st_gid &&
         fchown(segment->fd, (uid_t)-1, segment->group) < 0))
        return -errno;
    return 0;
}

// Returns the begin of the run of `segment` that a time lies in; 0: there are no runs. Runs are
// counted in local time: a day's first one begins at midnight.
static int64_t run_of(const struct output_config *config, int64_t time_ns)
{
    const time_t seconds = (time_t)(time_ns / NS);
    struct tm local;
    if (config->segment.ns == 0)
        return 0;
    localtime_r(&seconds, &local);
    return time_ns - (time_ns + local.tm_gmtoff * NS) % config->segment.ns;
}

int segment_open(struct segment *segment, int64_t time_ns)
{
    int rc = segment->config->sink.timed ? create_part(segment, time_ns) : create_plain(segment);
    if (rc < 0)
        return rc;
    rc = own_file(segment);
    if (rc < 0) {
        if (is_in_place(segment)) // else the name is another file's by now
            unlink(segment->path);
        close_file(segment);
        return rc;
    }
    segment->run_ns = run_of(segment->config, time_ns);
    return 0;
}

// --- its content

// Accepts the run before as well, since times go back slightly when the camera's own clock becomes
// known. Another run begins a file, and so does a change to or from summer time.
static bool is_of_run(const struct segment *segment, int64_t time_ns)
{
    const int64_t later_ns = segment->run_ns - run_of(segment->config, time_ns);
    return later_ns == 0 || later_ns == segment->config->segment.ns;
}

static bool has_room(const struct segment *segment, int64_t bytes)
{
    int64_t limit = segment->config->segment.bytes;
    return limit == 0 || segment->whole == 0 || segment->whole + bytes <= limit;
}

bool segment_continues(const struct segment *segment, int64_t time_ns, int64_t bytes)
{
    return is_in_place(segment) && is_of_run(segment, time_ns) && has_room(segment, bytes);
}

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

int segment_append(struct segment *segment, struct iovec *pieces, int n)
{
    off_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += (off_t)pieces[i].iov_len;
    int rc = write_all(segment->fd, pieces, n, segment->whole);
    if (rc == 0)
        segment->whole += bytes;
    else
        segment_cut(segment);
    return rc;
}

int segment_write(struct segment *segment, const void *data, size_t size, off_t offset)
{
    struct iovec piece = {(void *)data, size};
    return write_all(segment->fd, &piece, 1, offset);
}

void segment_cut(struct segment *segment)
{
    if (segment->fd < 0)
        return;
    if (ftruncate(segment->fd, segment->whole) < 0)
        close_file(segment); // later frames go to a new file
    else if (segment->whole == 0 && segment->config->sink.timed)
        segment_finish(segment); // the file's name must have the time of its first frame
}

// --- its end

int segment_finish(struct segment *segment)
{
    int rc = 0;
    if (segment->fd < 0)
        return 0;
    if (is_in_place(segment)) {
        if (segment->whole == 0)
            rc = unlink(segment->path) < 0 ? -errno : 0;
        else if (segment->config->sink.timed)
            rc = segment_give_name(segment->path);
        segment->keep.next_ns = 0;
    }
    if (rc == 0)
        close_file(segment);
    return rc;
}

int segment_end(struct segment *segment)
{
    const int rc = segment_finish(segment);
    close_file(segment);
    return rc;
}

// --- finished files that are kept

int segment_find_files(struct segment_files *ret, const char *pattern,
                       bool matches(const char *pattern, const char *name))
{
    char folder[PATH_BYTES], *path;
    struct dirent **entries = NULL;
    const int bytes = segment_folder(pattern, folder);
    const int n = scandir(folder, &entries, NULL, NULL);
    *ret = (struct segment_files){.list = n > 0 ? calloc((size_t)n, sizeof *ret->list) : NULL};
    int rc = n < 0 ? -errno : n > 0 && !ret->list ? -ENOMEM : 0;
    for (int i = 0; i < n; i++) {
        if (rc == 0 && matches(pattern, entries[i]->d_name)) {
            if (asprintf(&path, "%.*s%s", bytes, pattern, entries[i]->d_name) < 0)
                rc = -ENOMEM;
            else
                ret->list[ret->n++].path = path;
        }
        free(entries[i]);
    }
    free(entries);
    return rc;
}

void segment_free_files(struct segment_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        free(files->list[i].path);
    free(files->list);
}

static const int64_t LOOK_NS = 60 * NS;

bool keep_is_due(const struct keep *keep, int64_t writing_bytes)
{
    const struct split *limit = &keep->config->keep;
    if (!limit->ns && !limit->bytes)
        return false;
    return monotonic_ns() >= keep->next_ns || (limit->bytes && keep->finished_bytes > 0 &&
                                               keep->finished_bytes + writing_bytes > limit->bytes);
}

// What is no file is neither old nor large.
static void look_at_file(struct segment_file *file)
{
    struct stat st;
    const bool regular = lstat(file->path, &st) == 0 && S_ISREG(st.st_mode);
    file->bytes = regular ? st.st_size : 0;
    file->modified_ns = regular ? st.st_mtim.tv_sec * NS + st.st_mtim.tv_nsec : INT64_MAX;
}

static int compare_ages(const void *a, const void *b)
{
    const struct segment_file *first = a, *second = b;
    if (first->modified_ns != second->modified_ns)
        return first->modified_ns < second->modified_ns ? -1 : 1;
    return strcmp(first->path, second->path);
}

static void delete_file(struct keep *keep, const struct segment_file *file)
{
    if (unlink(file->path) == 0 || errno == ENOENT) {
        keep->finished_bytes -= file->bytes;
    } else if (keep->error == 0) {
        keep->error = -errno;
        snprintf(keep->failed, sizeof keep->failed, "%s", file->path);
    }
}

void keep_enforce(struct keep *keep, int64_t writing_bytes)
{
    const struct split *limit = &keep->config->keep;
    const int64_t oldest_ns = realtime_ns() - (limit->ns ? limit->ns : INT64_MAX / 2);
    const int64_t most = limit->bytes ? limit->bytes - writing_bytes : INT64_MAX;
    struct segment_files files;
    if (!keep_is_due(keep, writing_bytes))
        return;
    keep->next_ns = monotonic_ns() + LOOK_NS;
    keep->failed[0] = 0;
    keep->finished_bytes = 0;
    keep->error = segment_find_files(&files, keep->config->sink.path, pattern_matches);
    for (size_t i = 0; i < files.n; i++) {
        look_at_file(&files.list[i]);
        keep->finished_bytes += files.list[i].bytes;
    }
    if (files.n > 0)
        qsort(files.list, files.n, sizeof *files.list, compare_ages);
    for (size_t i = 0; i < files.n && files.list[i].modified_ns < INT64_MAX &&
                       (files.list[i].modified_ns < oldest_ns || keep->finished_bytes > most);
         i++)
        delete_file(keep, &files.list[i]);
    // Undeletable files, or an open file above the limit, cause only one scan a minute.
    if (keep->finished_bytes > most)
        keep->finished_bytes = 0;
    segment_free_files(&files);
}
