#include "config/program.h"

#include <errno.h>
#include <string.h>

#include "config/text_list.h"

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
    return *wrong ? -EINVAL : text_list_open(&ret->list, text, n);
}

void program_arguments(const struct program *program, char *argv[PROGRAM_MAX + 3])
{
    static char shell[] = "/bin/sh", option[] = "-c";
    const char *word = text_list_next(&program->list, NULL);
    int n = 0;
    if (word && !text_list_next(&program->list, word)) {
        argv[n++] = shell;
        argv[n++] = option;
    }
    for (; word; word = text_list_next(&program->list, word))
        argv[n++] = (char *)word;
    argv[n] = NULL;
}
