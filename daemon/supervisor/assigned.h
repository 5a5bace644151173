// The cameras that a cluster has given to this box. Their texts stand in memory alone, each as if
// it were a drop-in file, and every reload reads them beside the files. Loop thread, but for
// assigned_changes and assigned_mark while a reload reads.
#ifndef FRAMED_DAEMON_SUPERVISOR_ASSIGNED_H
#define FRAMED_DAEMON_SUPERVISOR_ASSIGNED_H

#include <stdio.h>

#include "daemon/supervisor/edit.h"

struct assigned_camera {
    char camera[24];
    char *path, *text;
    uint32_t generation;
    const _Atomic int64_t *fence_ns; // outlives the camera
};

// Zeroed it is empty.
struct assigned {
    struct assigned_camera *list;
    int n;
};

// What the files are to be read with: the changes of the edits, and the cameras that none of them
// is about. The list is to be freed; the texts are the edits' and the cameras'. 0 or -ENOMEM.
int assigned_changes(const struct assigned *, struct edit *const edits[], int n_edits,
                     struct file_changes *ret);
// Marks those of the configuration's cameras that a cluster has given, by those changes. Returns
// how many of the edits give a text without their camera, each with a line in `errors`.
int assigned_mark(const struct assigned *, struct edit *const edits[], int n_edits, struct config *,
                  FILE *errors);
// Room for what these edits may add, so that assigned_commit cannot fail. 0 or -ENOMEM.
int assigned_prepare(struct assigned *, int n_edits);
// The edits' configuration runs now. An edit's text is moved, not copied.
void assigned_commit(struct assigned *, struct edit *const edits[], int n_edits);
void assigned_free(struct assigned *);

#endif
