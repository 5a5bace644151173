// The drop-in files of a configuration: those of the folder beside FILE.yaml that is called FILE.d,
// whose names end in .yaml and do not begin with a dot, in the order of their names' bytes.
#ifndef FRAMED_CONFIG_DROP_INS_H
#define FRAMED_CONFIG_DROP_INS_H

#include "config/mistakes.h"

// A file of the configuration as it would be.
struct file_change {
    const char *path;
    const char *text; // that it holds; NULL: it is gone
    // The camera that a cluster has assigned with this text, which may hold nothing else and no
    // references; NULL: the text is the user's.
    const char *assigned;
};

struct file_changes {
    const struct file_change *list;
    int n;
};

// NULL: the file stays as it is. `changes` may be NULL.
const struct file_change *file_changes_find(const struct file_changes *changes, const char *path);

// "/etc/framed/framed.d" of "/etc/framed/framed.yaml", to be freed. NULL: no memory.
char *drop_ins_folder(const char *file);
// Appends the paths of the drop-in files of `folder` to `files`, as they will be with `changes`
// (NULL: none). A folder that is not there has no files. 0 or negative errno.
int drop_ins_list(struct config_files *files, const char *folder,
                  const struct file_changes *changes);

#endif
