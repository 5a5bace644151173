#include "config/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 4096 };

int program_parse(struct program *ret, const char *const text[], int n, const char **wrong)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += strlen(text[i]) + 1;
    *wrong = n > 0 && !text[0][0]         ? "names no program"
             : bytes > BYTES_MAX          ? "is too long"
             : n > 1 && text[0][0] != '/' ? "does not begin with the absolute path of a program"
                                          : NULL;
    if (*wrong)
        return -EINVAL;
    char *to = ret->text = malloc(bytes);
    if (!to)
        return -ENOMEM;
    ret->bytes = bytes;
    for (int i = 0; i < n; i++)
        to = stpcpy(to, text[i]) + 1;
    return 0;
}

int program_copy(struct program *ret, const struct program *from)
{
    *ret = (struct program){0};
    if (from->bytes == 0)
        return 0;
    ret->text = malloc(from->bytes);
    if (!ret->text)
        return -ENOMEM;
    memcpy(ret->text, from->text, from->bytes);
    ret->bytes = from->bytes;
    return 0;
}

void program_free(struct program *program)
{
    if (program->text)
        explicit_bzero(program->text, program->bytes);
    free(program->text);
    *program = (struct program){0};
}

bool program_equal(const struct program *a, const struct program *b)
{
    return a->bytes == b->bytes && (a->bytes == 0 || memcmp(a->text, b->text, a->bytes) == 0);
}

void program_arguments(const struct program *program, char *argv[PROGRAM_MAX + 3])
{
    static char shell[] = "/bin/sh", option[] = "-c";
    int n = 0;
    if (program->bytes > 0 && strlen(program->text) + 1 == program->bytes) {
        argv[n++] = shell;
        argv[n++] = option;
    }
    for (size_t at = 0; at < program->bytes; at += strlen(program->text + at) + 1)
        argv[n++] = program->text + at;
    argv[n] = NULL;
}
