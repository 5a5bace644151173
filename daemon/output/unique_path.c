#include "daemon/output/unique_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int unique_path_numbered(const char *path, int number, char to[PATH_BYTES])
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

int unique_path_rename(const char *from, const char *to, int number)
{
    char path[PATH_BYTES];
    int rc = -EEXIST;
    for (int i = number; rc == -EEXIST && i < COPIES_MAX; i++) {
        rc = unique_path_numbered(to, i, path);
        if (rc == 0)
            rc = rename_new(from, path);
    }
    return rc;
}
