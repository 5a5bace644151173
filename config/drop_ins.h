// Drop-in files of a configuration: in the folder FILE.d beside FILE.yaml, the files whose names
// end in .yaml and do not begin with a dot, in the order of their names' bytes.
#ifndef FRAMED_CONFIG_DROP_INS_H
#define FRAMED_CONFIG_DROP_INS_H

#include "config/mistakes.h"

// A proposed change to a file of the configuration.
struct file_change {
    const char *path;
    const char *text; // new content; NULL: the file is removed
    // The camera that a cluster has assigned with this text. The text may contain nothing else, and
    // no references. NULL: the text is the user's.
    const char *assigned;
};

struct file_changes {
    const struct file_change *list;
    int n;
};

// Returns NULL if the file does not change. `changes` may be NULL.
const struct file_change *file_changes_find(const struct file_changes *changes, const char *path);

// Returns "/etc/framed/framed.d" for "/etc/framed/framed.yaml", to be freed. NULL: no memory.
char *drop_ins_folder(const char *file);
// Appends the paths of the drop-in files in `folder` to `files`, with `changes` applied (NULL:
// none). A missing folder has no files. Returns 0 or a negative errno.
int drop_ins_list(struct config_files *files, const char *folder,
                  const struct file_changes *changes);

#endif
