#include "config/drop_ins.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX ".yaml"

static size_t stem_length(const char *name)
{
    const size_t n = strlen(name), suffix = strlen(SUFFIX);
    return n > suffix && strcmp(name + n - suffix, SUFFIX) == 0 ? n - suffix : n;
}

char *drop_ins_folder(const char *file)
{
    char *folder;
    return asprintf(&folder, "%.*s.d", (int)stem_length(file), file) < 0 ? NULL : folder;
}

static bool is_drop_in(const char *name)
{
    return *name != '.' && name[stem_length(name)] == '.';
}

const struct file_change *file_changes_find(const struct file_changes *changes, const char *path)
{
    for (int i = 0; changes && i < changes->n; i++)
        if (strcmp(changes->list[i].path, path) == 0)
            return &changes->list[i];
    return NULL;
}

static bool has(const struct config_files *files, int from, const char *path)
{
    for (int i = from; i < files->n; i++)
        if (strcmp(files->path[i], path) == 0)
            return true;
    return false;
}

static int add_present(struct config_files *files, DIR *dir, const char *folder,
                       const struct file_changes *changes)
{
    int rc = 0;
    errno = 0;
    for (const struct dirent *entry; rc == 0 && (entry = readdir(dir)); errno = 0) {
        char *path;
        if (!is_drop_in(entry->d_name))
            continue;
        if (asprintf(&path, "%s/%s", folder, entry->d_name) < 0)
            return -ENOMEM;
        const struct file_change *change = file_changes_find(changes, path);
        if (!change || change->text)
            rc = config_files_add(files, path);
        free(path);
    }
    return rc < 0 ? rc : -errno;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int drop_ins_list(struct config_files *files, const char *folder,
                  const struct file_changes *changes)
{
    const int before = files->n;
    const size_t length = strlen(folder);
    DIR *dir = opendir(folder);
    int rc = dir ? add_present(files, dir, folder, changes) : errno == ENOENT ? 0 : -errno;
    if (dir)
        closedir(dir);
    for (int i = 0; rc == 0 && changes && i < changes->n; i++) {
        const struct file_change *change = &changes->list[i];
        if (change->text && strncmp(change->path, folder, length) == 0 &&
            change->path[length] == '/' && !has(files, before, change->path))
            rc = config_files_add(files, change->path);
    }
    qsort(files->path + before, (size_t)(files->n - before), sizeof *files->path, compare_paths);
    return rc;
}
