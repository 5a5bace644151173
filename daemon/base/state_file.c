#include "daemon/base/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *state_folder(void)
{
    const char *folders = getenv("STATE_DIRECTORY");
    const size_t length = folders ? strcspn(folders, ":") : 0;
    return length > 0 ? strndup(folders, length) : NULL;
}

int state_file_write(const char *path, const char *text, unsigned mode)
{
    char part[PATH_MAX];
    const size_t bytes = strlen(text);
    if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part)
        return -ENAMETOOLONG;
    unlink(part); // the folder may belong to another user, who may have put a link there
    const int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    errno = ENOSPC; // for a short write
    const bool written = write(fd, text, bytes) == (ssize_t)bytes;
    int rc = written && fchmod(fd, mode) == 0 && fsync(fd) == 0 ? 0 : -errno;
    close(fd);
    if (rc == 0 && rename(part, path) < 0)
        rc = -errno;
    if (rc < 0)
        unlink(part);
    return rc;
}
