#include "daemon/supervisor/assigned.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/value.h"

static const struct edit *find_edit(struct edit *const edits[], int n, const char *path)
{
    for (int i = 0; i < n; i++)
        if (edit_is_in_memory(edits[i]) && strcmp(edit_path(edits[i]), path) == 0)
            return edits[i];
    return NULL;
}

static struct assigned_camera *find(const struct assigned *assigned, const char *path)
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
        const struct assigned_camera *given = find(assigned, path);
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

static void free_camera(struct assigned_camera *camera)
{
    free(camera->path);
    secret_free(camera->text);
}

static void commit(struct assigned *assigned, struct edit *edit)
{
    struct assigned_camera *camera = find(assigned, edit_path(edit));
    if (camera) {
        free_camera(camera);
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
            commit(assigned, edits[i]);
}

void assigned_free(struct assigned *assigned)
{
    for (int i = 0; i < assigned->n; i++)
        free_camera(&assigned->list[i]);
    free(assigned->list);
}
