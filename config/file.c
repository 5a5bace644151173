#include "config/file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 1 << 20 }; // bytes

const char *file_name(const char *path)
{
    return strcmp(path, FILE_STDIN) ? path : "stdin";
}

// Reads all of `f`, at most FILE_MAX bytes, for the caller to free.
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

int file_read(char **ret, size_t *length, const char *path)
{
    bool input = !strcmp(path, FILE_STDIN);
    FILE *f = input ? stdin : fopen(path, "re");
    int status = f ? read_stream(f, ret, length) : -errno;
    if (f && !input)
        fclose(f);
    return status;
}
