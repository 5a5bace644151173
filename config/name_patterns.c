#include "config/name_patterns.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

// Allows only characters of names, * and ?, so that no other character is special to fnmatch.
static const char *name_pattern_wrong(const char *pattern)
{
    pattern += *pattern == '!';
    const size_t length = strlen(pattern);
    if (!length)
        return "has an empty pattern";
    if (length > NAME_PATTERN_MAX)
        return "has a pattern that is too long";
    if (strspn(pattern, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-*?") !=
        length)
        return "has a pattern with characters other than letters, digits, _ - * and ?";
    return NULL;
}

int name_patterns_parse(struct name_patterns *ret, const char *const text[], int n,
                        const char **wrong)
{
    for (int i = 0; i < n; i++)
        if ((*wrong = name_pattern_wrong(text[i])))
            return -EINVAL;
    // This list shares the texts, and the copy owns its own.
    return name_patterns_copy(ret, &(struct name_patterns){(char **)text, n});
}

int name_patterns_copy(struct name_patterns *ret, const struct name_patterns *from)
{
    *ret = (struct name_patterns){0};
    if (from->n == 0)
        return 0;
    ret->list = calloc((size_t)from->n, sizeof *ret->list);
    for (; ret->list && ret->n < from->n; ret->n++)
        if (!(ret->list[ret->n] = strdup(from->list[ret->n])))
            break;
    if (ret->n == from->n)
        return 0;
    name_patterns_free(ret);
    return -ENOMEM;
}

void name_patterns_free(struct name_patterns *patterns)
{
    for (int i = 0; i < patterns->n; i++)
        free(patterns->list[i]);
    free(patterns->list);
    *patterns = (struct name_patterns){0};
}

bool name_patterns_equal(const struct name_patterns *a, const struct name_patterns *b)
{
    bool equal = a->n == b->n;
    for (int i = 0; equal && i < a->n; i++)
        equal = !strcmp(a->list[i], b->list[i]);
    return equal;
}

bool name_pattern_fits(const char *pattern, const char *name)
{
    return fnmatch(pattern + (*pattern == '!'), name, 0) == 0;
}

bool name_patterns_choose(const struct name_patterns *patterns, const char *name)
{
    int i = patterns->n - 1;
    while (i >= 0 && !name_pattern_fits(patterns->list[i], name))
        i--;
    return i >= 0 && *patterns->list[i] != '!';
}
