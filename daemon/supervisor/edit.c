#include "daemon/supervisor/edit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/value.h"

// The files may contain passwords.
enum { FOLDER_MODE = 0700, FILE_MODE = 0600 };

const char *edit_name_wrong(const char *camera)
{
    const size_t n = strlen(camera);
    if (n == 0 || n >= sizeof((struct edit *)NULL)->camera)
        return "has 1 to 23 characters";
    if (strspn(camera, NAME_CHARACTERS) != n)
        return "has only letters, digits, _ and -";
    return NULL;
}

// --- the files

static int add_file(struct edit *edit, const char *kind, const char *text)
{
    const int i = edit->n++;
    const char *camera = edit->camera;
    if (asprintf(&edit->path[i], "%s/%s-%s.yaml", edit->folder, kind, camera) < 0)
        edit->path[i] = NULL;
    // The dot keeps it from being read; the next change of the same file overwrites it.
    if (asprintf(&edit->draft[i], "%s/.%s-%s.yaml", edit->folder, kind, camera) < 0)
        edit->draft[i] = NULL;
    edit->change[i] =
        (struct file_change){.path = edit->path[i],
                             .text = text,
                             .assigned = edit->kind == EDIT_ASSIGN ? edit->camera : NULL};
    return edit->path[i] && edit->draft[i] ? 0 : -ENOMEM;
}

static int add_camera(struct edit *edit, const char *json)
{
    const int n = asprintf(&edit->text,
                           "# What framed's API put: it replaces or removes this file.\n"
                           "{\"cameras\": {\"%s\":\n%s\n}}\n",
                           edit->camera, json);
    if (n < 0)
        edit->text = NULL;
    return n < 0 ? -ENOMEM : add_file(edit, "api", edit->text);
}

static int add_pause(struct edit *edit)
{
    const int n = asprintf(&edit->text,
                           "# Until the camera is resumed.\n"
                           "{\"paused\": [\"%s\"]}\n",
                           edit->camera);
    if (n < 0)
        edit->text = NULL;
    return n < 0 ? -ENOMEM : add_file(edit, "paused", edit->text);
}

static int add_assigned(struct edit *edit, const char *text)
{
    edit->text = strdup(text);
    return edit->text ? add_file(edit, "cluster", edit->text) : -ENOMEM;
}

static int add_files(struct edit *edit, const char *text)
{
    switch (edit->kind) {
    case EDIT_PUT:
        return add_camera(edit, text);
    case EDIT_ASSIGN:
        return add_assigned(edit, text);
    case EDIT_UNASSIGN:
        return add_file(edit, "cluster", NULL);
    case EDIT_PAUSE:
        return add_pause(edit);
    case EDIT_RESUME:
        return add_file(edit, "paused", NULL);
    default: { // its pause goes last: it must not start in between
        const int rc = add_file(edit, "api", NULL);
        return rc == 0 ? add_file(edit, "paused", NULL) : rc;
    }
    }
}

int edit_open(struct edit **ret, enum edit_kind kind, const char *camera, const char *file,
              const char *text)
{
    struct edit *edit = calloc(1, sizeof *edit);
    int rc = edit ? 0 : -ENOMEM;
    if (edit) {
        edit->kind = kind;
        snprintf(edit->camera, sizeof edit->camera, "%s", camera);
        edit->folder = drop_ins_folder(file);
        rc = edit->folder ? add_files(edit, text) : -ENOMEM;
    }
    if (rc < 0)
        edit_close(edit);
    else
        *ret = edit;
    return rc;
}

void edit_close(struct edit *edit)
{
    if (!edit)
        return;
    for (int i = 0; i < edit->n; i++) {
        free(edit->path[i]);
        free(edit->draft[i]);
    }
    free(edit->folder);
    secret_free(edit->text);
    free(edit);
}

const char *edit_path(const struct edit *edit)
{
    return edit->path[0];
}

bool edit_is_in_memory(const struct edit *edit)
{
    return edit->kind == EDIT_ASSIGN || edit->kind == EDIT_UNASSIGN;
}

const char *edit_done_text(const struct edit *edit)
{
    static const char *const texts[] = {[EDIT_PUT] = "put",
                                        [EDIT_DELETE] = "removed",
                                        [EDIT_PAUSE] = "paused",
                                        [EDIT_RESUME] = "resumed",
                                        [EDIT_ASSIGN] = "assigned by the cluster",
                                        [EDIT_UNASSIGN] = "given up to the cluster"};
    return texts[edit->kind];
}

// --- what runs

static bool stands_elsewhere(const struct edit *edit, const struct config *config, struct place at,
                             const char *what, char *why, size_t size)
{
    const char *path = config_files_path(&config->files, at);
    if (strcmp(path, edit->path[0]) == 0)
        return false;
    snprintf(why, size, "camera %s %s %s:%d:%d, where it is to be changed by hand", edit->camera,
             what, path, at.line, at.column);
    return true;
}

int edit_check(struct edit *edit, const struct config *running, char *why, size_t size)
{
    const struct camera_config *camera = NULL;
    for (int i = 0; i < running->n_cameras; i++)
        if (strcmp(running->cameras[i].name, edit->camera) == 0)
            camera = &running->cameras[i];
    const bool pauses = edit->kind == EDIT_PAUSE || edit->kind == EDIT_RESUME;
    if (!camera && edit_is_in_memory(edit))
        return 0;                          // one given up may be there under another name
    if (!camera && edit->kind == EDIT_PUT) // drops an old pause of that name
        return edit->n == 1 ? add_file(edit, "paused", NULL) : 0;
    if (!camera) {
        snprintf(why, size, "there is no camera %s", edit->camera);
        return -ENOENT;
    }
    if (!pauses)
        return stands_elsewhere(edit, running, camera->place, "stands in", why, size) ? -EEXIST : 0;
    if (!camera->paused.line == (edit->kind == EDIT_RESUME)) {
        snprintf(why, size, "camera %s is %spaused", edit->camera,
                 camera->paused.line ? "already " : "not ");
        return -EALREADY;
    }
    if (edit->kind == EDIT_RESUME &&
        stands_elsewhere(edit, running, camera->paused, "is paused in", why, size))
        return -EEXIST;
    return 0;
}

// --- the disk

static int fail(const char *path, char *why, size_t size)
{
    const int rc = -errno;
    snprintf(why, size, "%s cannot be written: %s", path, strerror(errno));
    return rc;
}

static int write_draft(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    int rc = fd < 0 ? -errno : 0;
    for (size_t left = strlen(text); rc == 0 && left > 0;) {
        const ssize_t n = write(fd, text, left);
        if (n < 0 && errno != EINTR)
            rc = -errno;
        text += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
    if (rc == 0 && fsync(fd) < 0)
        rc = -errno;
    if (fd >= 0)
        close(fd);
    errno = -rc;
    return rc;
}

int edit_write(const struct edit *edit, char *why, size_t size)
{
    for (int i = 0; i < edit->n && !edit_is_in_memory(edit); i++) {
        if (!edit->change[i].text)
            continue;
        if (mkdir(edit->folder, FOLDER_MODE) < 0 && errno != EEXIST)
            return fail(edit->folder, why, size);
        if (write_draft(edit->draft[i], edit->change[i].text) < 0) {
            const int rc = fail(edit->path[i], why, size);
            edit_abandon(edit);
            return rc;
        }
    }
    return 0;
}

int edit_commit(const struct edit *edit, char *why, size_t size)
{
    for (int i = 0; i < edit->n && !edit_is_in_memory(edit); i++) {
        const bool stays = edit->change[i].text;
        if (stays ? rename(edit->draft[i], edit->path[i]) < 0
                  : unlink(edit->path[i]) < 0 && errno != ENOENT)
            return fail(edit->path[i], why, size);
    }
    return 0;
}

void edit_abandon(const struct edit *edit)
{
    for (int i = 0; i < edit->n && !edit_is_in_memory(edit); i++)
        if (edit->change[i].text)
            unlink(edit->draft[i]);
}

static bool is_draft(const char *name)
{
    return strncmp(name, ".api-", strlen(".api-")) == 0 ||
           strncmp(name, ".paused-", strlen(".paused-")) == 0;
}

void edit_clean(const char *file)
{
    char *folder = drop_ins_folder(file);
    DIR *dir = folder ? opendir(folder) : NULL;
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        if (is_draft(entry->d_name))
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    free(folder);
}

void edit_sync(const struct edit *edit)
{
    int fd = edit_is_in_memory(edit) ? -1 : open(edit->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

// --- cameras that a cluster has assigned

static const struct edit *find_edit(struct edit *const edits[], int n, const char *path)
{
    for (int i = 0; i < n; i++)
        if (edit_is_in_memory(edits[i]) && strcmp(edit_path(edits[i]), path) == 0)
            return edits[i];
    return NULL;
}

static struct assigned_camera *find_assigned(const struct assigned *assigned, const char *path)
{
    for (int i = 0; i < assigned->n; i++)
        if (strcmp(assigned->list[i].path, path) == 0)
            return &assigned->list[i];
    return NULL;
}

int assigned_changes(const struct assigned *assigned, struct edit *const edits[], int n_edits,
                     struct file_changes *ret)
{
    struct file_change *list =
        calloc((size_t)(assigned->n + n_edits * EDIT_FILES) + 1, sizeof *list);
    if (!list)
        return -ENOMEM;
    *ret = (struct file_changes){.list = list};
    for (int i = 0; i < n_edits; i++)
        for (int c = 0; c < edits[i]->n; c++)
            list[ret->n++] = edits[i]->change[c];
    for (int i = 0; i < assigned->n; i++) {
        const struct assigned_camera *camera = &assigned->list[i];
        if (!find_edit(edits, n_edits, camera->path))
            list[ret->n++] = (struct file_change){
                .path = camera->path, .text = camera->text, .assigned = camera->camera};
    }
    return 0;
}

static bool has_camera(const struct config *config, const struct edit *edit)
{
    for (int i = 0; i < config->n_cameras; i++)
        if (strcmp(config->cameras[i].name, edit->camera) == 0 &&
            strcmp(config_files_path(&config->files, config->cameras[i].place), edit_path(edit)) ==
                0)
            return true;
    return false;
}

int assigned_mark(const struct assigned *assigned, struct edit *const edits[], int n_edits,
                  struct config *config, FILE *errors)
{
    int mistakes = 0;
    for (int i = 0; i < n_edits; i++)
        if (edits[i]->kind == EDIT_ASSIGN && !has_camera(config, edits[i])) {
            fprintf(errors, "%s:1:1: cameras: has no camera %s\n", edit_path(edits[i]),
                    edits[i]->camera);
            mistakes++;
        }
    for (int i = 0; i < config->n_cameras; i++) {
        struct camera_config *camera = &config->cameras[i];
        const char *path = config_files_path(&config->files, camera->place);
        const struct edit *edit = find_edit(edits, n_edits, path);
        const struct assigned_camera *given = find_assigned(assigned, path);
        if (edit || given) {
            camera->generation = edit ? edit->generation : given->generation;
            camera->fence_ns = edit ? edit->fence_ns : given->fence_ns;
        }
    }
    return mistakes;
}

int assigned_prepare(struct assigned *assigned, int n_edits)
{
    struct assigned_camera *list =
        realloc(assigned->list, sizeof *list * ((size_t)assigned->n + (size_t)n_edits + 1));
    if (!list)
        return -ENOMEM;
    assigned->list = list;
    return 0;
}

static void free_assigned(struct assigned_camera *camera)
{
    free(camera->path);
    secret_free(camera->text);
}

static void commit_edit(struct assigned *assigned, struct edit *edit)
{
    struct assigned_camera *camera = find_assigned(assigned, edit_path(edit));
    if (camera) {
        free_assigned(camera);
        *camera = assigned->list[--assigned->n];
    }
    if (edit->kind != EDIT_ASSIGN)
        return;
    assigned->list[assigned->n++] = (struct assigned_camera){.path = edit->path[0],
                                                             .text = edit->text,
                                                             .generation = edit->generation,
                                                             .fence_ns = edit->fence_ns};
    memcpy(assigned->list[assigned->n - 1].camera, edit->camera, sizeof edit->camera);
    edit->path[0] = NULL;
    edit->text = NULL;
}

void assigned_commit(struct assigned *assigned, struct edit *const edits[], int n_edits)
{
    for (int i = 0; i < n_edits; i++)
        if (edit_is_in_memory(edits[i]))
            commit_edit(assigned, edits[i]);
}

void assigned_free(struct assigned *assigned)
{
    for (int i = 0; i < assigned->n; i++)
        free_assigned(&assigned->list[i]);
    free(assigned->list);
}
