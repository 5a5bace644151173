#include "config/text_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int text_list_open(struct text_list *list, const char *const text[], int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += strlen(text[i]) + 1;
    char *to = list->text = malloc(bytes);
    if (!to)
        return -ENOMEM;
    list->bytes = bytes;
    for (int i = 0; i < n; i++)
        to = stpcpy(to, text[i]) + 1;
    return 0;
}

int text_list_copy(struct text_list *list, const struct text_list *from)
{
    *list = (struct text_list){0};
    if (from->bytes == 0)
        return 0;
    list->text = malloc(from->bytes);
    if (!list->text)
        return -ENOMEM;
    memcpy(list->text, from->text, from->bytes);
    list->bytes = from->bytes;
    return 0;
}

void text_list_free(struct text_list *list)
{
    if (list->text)
        explicit_bzero(list->text, list->bytes);
    free(list->text);
    *list = (struct text_list){0};
}

bool text_list_equal(const struct text_list *a, const struct text_list *b)
{
    return a->bytes == b->bytes && (a->bytes == 0 || memcmp(a->text, b->text, a->bytes) == 0);
}

const char *text_list_next(const struct text_list *list, const char *text)
{
    const char *next = text ? text + strlen(text) + 1 : list->text;
    return next && next < list->text + list->bytes ? next : NULL;
}
