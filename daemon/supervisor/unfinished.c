#include "daemon/supervisor/unfinished.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/output/segment.h"

enum { SCAN_MS = 60000 };
// A writer locks a file just after creating it: only files at rest are tried.
static const int64_t REST_NS = 10 * INT64_C(1000000000);

struct unfinished_sink {
    char *path;
    int folder_bytes; // of path, the last slash included
    bool timed;       // path is a pattern
};

static void files_free(struct unfinished_files *files)
{
    for (int i = 0; i < files->n; i++)
        free(files->file[i].path);
    *files = (struct unfinished_files){0};
}

// --- the scan, on any thread

// Keeps the oldest files.
static void add_file(struct unfinished_files *files, const char *path, const struct stat *st)
{
    const struct unfinished_file file = {
        .path = strdup(path),
        .bytes = st->st_size,
        .modified_ns = st->st_mtim.tv_sec * INT64_C(1000000000) + st->st_mtim.tv_nsec,
    };
    int at = files->n;
    if (!file.path)
        return;
    files->count++;
    files->bytes += file.bytes;
    while (at > 0 && files->file[at - 1].modified_ns > file.modified_ns)
        at--;
    if (at == UNFINISHED_LISTED) {
        free(file.path);
        return;
    }
    if (files->n == UNFINISHED_LISTED)
        free(files->file[--files->n].path);
    memmove(&files->file[at + 1], &files->file[at],
            (size_t)(files->n - at) * sizeof files->file[0]);
    files->file[at] = file;
    files->n++;
}

static bool ends_in_part(const char *name)
{
    const size_t length = strlen(name), part = strlen(SEGMENT_PART);
    return length > part && strcmp(name + length - part, SEGMENT_PART) == 0;
}

// True if a sink of the folder finishes the file at its next start, unless it already has.
static bool is_finished_later(const struct unfinished_sink sinks[], int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (sinks[i].timed && segment_is_leftover(sinks[i].path, name))
            return true;
    return false;
}

static bool rests(const char *path, struct stat *st)
{
    if (lstat(path, st) < 0 || !S_ISREG(st->st_mode))
        return false;
    return realtime_ns() - st->st_mtim.tv_sec * INT64_C(1000000000) > REST_NS;
}

// All sinks have the same folder.
static void scan_folder(const struct unfinished_sink sinks[], int n, struct unfinished_files *found)
{
    char folder[PATH_BYTES], path[PATH_BYTES];
    struct stat st;
    snprintf(folder, sizeof folder, "%.*s", sinks->folder_bytes, sinks->path);
    DIR *files = opendir(*folder ? folder : ".");
    if (!files)
        return; // the sinks report it
    for (struct dirent *file; (file = readdir(files));) {
        if (ends_in_part(file->d_name) && !is_finished_later(sinks, n, file->d_name) &&
            snprintf(path, sizeof path, "%s%s", folder, file->d_name) < PATH_BYTES &&
            rests(path, &st) && !segment_is_written(path))
            add_file(found, path, &st);
    }
    closedir(files);
}

static int compare_folders(const void *a, const void *b)
{
    const struct unfinished_sink *first = a, *second = b;
    if (first->folder_bytes != second->folder_bytes)
        return first->folder_bytes < second->folder_bytes ? -1 : 1;
    return memcmp(first->path, second->path, (size_t)first->folder_bytes);
}

static struct unfinished *unfinished_of(struct work *work)
{
    return (struct unfinished *)((char *)work - offsetof(struct unfinished, scan));
}

static void scan_folders(struct work *work)
{
    struct unfinished *unfinished = unfinished_of(work);
    struct unfinished_sink *sinks = unfinished->sinks;
    const int n = unfinished->n_sinks;
    if (n > 0)
        qsort(sinks, (size_t)n, sizeof *sinks, compare_folders);
    for (int from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && compare_folders(&sinks[from], &sinks[to]) == 0; to++)
            ;
        scan_folder(&sinks[from], to - from, &unfinished->found);
    }
}

// --- the loop thread

static void free_sinks(struct unfinished *unfinished)
{
    for (int i = 0; i < unfinished->n_sinks; i++)
        free(unfinished->sinks[i].path);
    free(unfinished->sinks);
    unfinished->sinks = NULL;
    unfinished->n_sinks = 0;
}

static void add_sink(struct unfinished *unfinished, const struct sink_address *address)
{
    char *path = address->kind == SINK_FILE ? strdup(address->path) : NULL;
    if (!path)
        return;
    const char *slash = strrchr(path, '/');
    unfinished->sinks[unfinished->n_sinks++] = (struct unfinished_sink){
        .path = path,
        .folder_bytes = slash ? (int)(slash + 1 - path) : 0,
        .timed = address->timed,
    };
}

// Copies the sinks: a reload may close an output while its folder is read.
static void copy_sinks(struct unfinished *unfinished)
{
    const struct cameras *cameras = unfinished->cameras;
    size_t n = 0;
    for (int i = 0; i < cameras->n; i++)
        n += 2 * (size_t)cameras->list[i]->subscriptions->n;
    unfinished->sinks = calloc(n + 1, sizeof *unfinished->sinks);
    for (int i = 0; unfinished->sinks && i < cameras->n; i++) {
        const struct subscriptions *outputs = cameras->list[i]->subscriptions;
        for (int o = 0; o < outputs->n; o++) {
            const struct output_config *output = outputs->list[o].output->config;
            add_sink(unfinished, &output->sink);
            add_sink(unfinished, &output->detections.sink);
        }
    }
}

static void folders_were_scanned(struct work *work)
{
    struct unfinished *unfinished = unfinished_of(work);
    files_free(&unfinished->files);
    unfinished->files = unfinished->found;
    unfinished->found = (struct unfinished_files){0};
    free_sinks(unfinished);
    unfinished->scanning = false;
    if (unfinished->again)
        unfinished_scan(unfinished);
}

static void scan_again(uv_timer_t *timer)
{
    unfinished_scan(timer->data);
}

void unfinished_open(struct unfinished *unfinished, struct work_queue *work,
                     const struct cameras *cameras)
{
    *unfinished = (struct unfinished){
        .cameras = cameras,
        .work = work,
        .scan = {.run = scan_folders, .done = folders_were_scanned},
    };
    uv_timer_init(work->loop, &unfinished->timer);
    unfinished->timer.data = unfinished;
}

void unfinished_scan(struct unfinished *unfinished)
{
    unfinished->again = unfinished->scanning;
    if (unfinished->scanning || unfinished->stopped)
        return;
    copy_sinks(unfinished);
    unfinished->scanning = true;
    work_start(unfinished->work, &unfinished->scan);
    uv_timer_start(&unfinished->timer, scan_again, SCAN_MS, 0);
}

void unfinished_stop(struct unfinished *unfinished)
{
    unfinished->stopped = true;
    uv_timer_stop(&unfinished->timer);
}

void unfinished_close(struct unfinished *unfinished)
{
    files_free(&unfinished->files);
    uv_close((uv_handle_t *)&unfinished->timer, NULL);
}
