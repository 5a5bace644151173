#include "config/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20 }; // bytes

const char *file_name(const char *path)
{
    return strcmp(path, FILE_STDIN) ? path : "stdin";
}

// Reads all of `f`, at most FILE_MAX bytes; the caller frees *ret.
static int read_stream(FILE *f, char **ret, size_t *length)
{
    char *text = malloc(FILE_MAX + 1);
    if (!text)
        return -ENOMEM;
    *length = fread(text, 1, FILE_MAX + 1, f);
    int status = ferror(f) ? -errno : *length > FILE_MAX ? -EFBIG : 0;
    if (status < 0)
        free(text);
    else
        *ret = text;
    return status;
}

// Returns true if the file is the folder owner's, or root's with a single name. A second name of
// root's file may be a hard link that the folder's owner made.
static bool is_for_root(const struct stat *st, const char *path)
{
    struct stat folder;
    char *name = strdup(path);
    bool good = name && stat(dirname(name), &folder) == 0 &&
                (st->st_uid == folder.st_uid || (st->st_uid == 0 && st->st_nlink == 1));
    free(name);
    return good;
}

int file_read_in_folder(char **ret, size_t *length, const char *path)
{
    const bool root = geteuid() == 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (root ? O_NOFOLLOW : 0));
    struct stat st;
    int status = fd < 0 || fstat(fd, &st) < 0      ? -errno
                 : !S_ISREG(st.st_mode)            ? -ENOTSUP
                 : root && !is_for_root(&st, path) ? -EPERM
                                                   : 0;
    FILE *f = status == 0 ? fdopen(fd, "r") : NULL;
    if (status == 0)
        status = f ? read_stream(f, ret, length) : -errno;
    if (f)
        fclose(f);
    else if (fd >= 0)
        close(fd);
    return status;
}

int file_read(char **ret, size_t *length, const char *path)
{
    bool input = !strcmp(path, FILE_STDIN);
    FILE *f = input ? stdin : fopen(path, "re");
    int status = f ? read_stream(f, ret, length) : -errno;
    if (f && !input)
        fclose(f);
    return status;
}
