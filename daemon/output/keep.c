#include "daemon/output/keep.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/address.h"
#include "daemon/base/clock.h"
#include "daemon/output/unique_path.h"

static const int64_t LOOK_NS = 60 * INT64_C(1000000000);

struct kept_file {
    char *path;
    int64_t bytes, modified_ns; // CLOCK_REALTIME
};

struct kept_files {
    struct kept_file *list;
    size_t n, room;
    int64_t bytes; // of all files
};

void keep_init(struct keep *keep, const struct output_config *config)
{
    *keep = (struct keep){.config = config};
}

void keep_file_finished(struct keep *keep)
{
    keep->next_ns = 0;
}

bool keep_is_due(const struct keep *keep, int64_t writing_bytes)
{
    const struct split *limit = &keep->config->keep;
    if (!limit->ns && !limit->bytes)
        return false;
    return monotonic_ns() >= keep->next_ns || (limit->bytes && keep->finished_bytes > 0 &&
                                               keep->finished_bytes + writing_bytes > limit->bytes);
}

static int add_file(struct kept_files *files, const char *path)
{
    struct stat st;
    if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    if (files->n == files->room) {
        const size_t room = 2 * files->room + 64;
        struct kept_file *list = reallocarray(files->list, room, sizeof *list);
        if (!list)
            return -ENOMEM;
        files->list = list;
        files->room = room;
    }
    struct kept_file *file = &files->list[files->n];
    *file = (struct kept_file){
        .path = strdup(path),
        .bytes = st.st_size,
        .modified_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec,
    };
    if (!file->path)
        return -ENOMEM;
    files->n++;
    files->bytes += file->bytes;
    return 0;
}

static int find_files(const char *pattern, struct kept_files *files)
{
    char folder[PATH_BYTES], path[PATH_BYTES];
    const char *slash = strrchr(pattern, '/');
    const int length = slash ? (int)(slash + 1 - pattern) : 0;
    snprintf(folder, sizeof folder, "%.*s", length, pattern);
    DIR *entries = opendir(length ? folder : ".");
    if (!entries)
        return -errno;
    int rc = 0;
    for (struct dirent *entry; rc == 0 && (entry = readdir(entries));)
        if (pattern_matches(pattern, entry->d_name) &&
            snprintf(path, sizeof path, "%s%s", folder, entry->d_name) < PATH_BYTES)
            rc = add_file(files, path);
    closedir(entries);
    return rc;
}

static int compare_ages(const void *a, const void *b)
{
    const struct kept_file *first = a, *second = b;
    if (first->modified_ns != second->modified_ns)
        return first->modified_ns < second->modified_ns ? -1 : 1;
    return strcmp(first->path, second->path);
}

void keep_enforce(struct keep *keep, int64_t writing_bytes)
{
    const struct split *limit = &keep->config->keep;
    struct kept_files files = {0};
    if (!keep_is_due(keep, writing_bytes))
        return;
    keep->next_ns = monotonic_ns() + LOOK_NS;
    keep->failed[0] = 0;
    keep->error = find_files(keep->config->sink.path, &files);
    if (files.n > 0)
        qsort(files.list, files.n, sizeof *files.list, compare_ages);
    const int64_t now_ns = realtime_ns();
    for (size_t i = 0; i < files.n; i++) {
        const struct kept_file *file = &files.list[i];
        const bool old = limit->ns && now_ns - file->modified_ns > limit->ns;
        if (!old && (!limit->bytes || files.bytes + writing_bytes <= limit->bytes))
            break;
        if (unlink(file->path) == 0 || errno == ENOENT) {
            files.bytes -= file->bytes;
        } else if (keep->error == 0) {
            keep->error = -errno;
            snprintf(keep->failed, sizeof keep->failed, "%s", file->path);
        }
    }
    // Undeletable files, or an open file above the limit, cause only one scan a minute.
    keep->finished_bytes =
        limit->bytes && files.bytes + writing_bytes > limit->bytes ? 0 : files.bytes;
    for (size_t i = 0; i < files.n; i++)
        free(files.list[i].path);
    free(files.list);
}
