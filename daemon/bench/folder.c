#include "daemon/bench/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int folder_make(char path[64])
{
    const char *under = getenv("TMPDIR");
    if (!under || strlen(under) > 36)
        under = "/tmp";
    snprintf(path, 64, "%s/framed-bench-XXXXXX", under);
    if (mkdtemp(path))
        return 0;
    int rc = -errno;
    path[0] = '\0';
    return rc;
}

void folder_remove(const char *path)
{
    DIR *folder = *path ? opendir(path) : NULL;
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder));)
        unlinkat(dirfd(folder), entry->d_name, 0); // but . and .., which it refuses
    closedir(folder);
    rmdir(path);
}
