#include "config/mistakes.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "config/expand.h"
#include "config/url.h"

void mistake(struct mistakes *m, struct place at, const char *key, const char *format, ...)
{
    char key_shown[KEY_MAX], text[1024], what[1024];
    struct mistake *one = &m->list[m->n];
    va_list args;
    m->total++;
    if (m->n == MISTAKES_MAX)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    expand_hide(what, sizeof what, text, false);
    *one = (struct mistake){.at = at, .order = m->n};
    if (asprintf(&one->text, "%s: %s", shown(*key ? key : "yaml", key_shown, sizeof key_shown),
                 what) >= 0)
        m->n++;
}

void mistake_print(FILE *f, const struct config_files *files, struct place at, const char *key,
                   const char *why)
{
    char what[1024];
    fprintf(f, "%s:%d:%d: %s: %s\n", config_files_path(files, at), at.line, at.column, key,
            expand_hide(what, sizeof what, why, false));
}

static int compare_places(const void *left, const void *right)
{
    const struct mistake *a = left, *b = right;
    if (a->at.file != b->at.file)
        return a->at.file - b->at.file;
    if (a->at.line != b->at.line)
        return a->at.line < b->at.line ? -1 : 1;
    if (a->at.column != b->at.column)
        return a->at.column < b->at.column ? -1 : 1;
    return a->order - b->order;
}

void mistakes_print(struct mistakes *m, const char *before, const struct config_files *files,
                    FILE *f)
{
    qsort(m->list, (size_t)m->n, sizeof *m->list, compare_places);
    for (int i = 0; i < m->n; i++) {
        const struct mistake *one = &m->list[i];
        fprintf(f, "%s%s:%d:%d: %s\n", before, config_files_path(files, one->at), one->at.line,
                one->at.column, one->text);
    }
    if (m->total > m->n)
        fprintf(f, "%s%s: %d more mistakes were not printed\n", before, files->path[0],
                m->total - m->n);
}

void mistakes_free(struct mistakes *m)
{
    for (int i = 0; i < m->n; i++)
        free(m->list[i].text);
    m->n = m->total = 0;
}

int config_files_add(struct config_files *files, const char *path)
{
    char **grown = reallocarray(files->path, (size_t)files->n + 1, sizeof *grown);
    char *copy = strdup(path);
    if (grown)
        files->path = grown;
    if (!grown || !copy) {
        free(copy);
        return -ENOMEM;
    }
    files->path[files->n++] = copy;
    return 0;
}

const char *config_files_path(const struct config_files *files, struct place at)
{
    return files->path[at.file];
}

void config_files_free(struct config_files *files)
{
    for (int i = 0; i < files->n; i++)
        free(files->path[i]);
    free(files->path);
    *files = (struct config_files){0};
}
