// Texts one after the other in one piece of memory.
#ifndef FRAMED_CONFIG_TEXT_LIST_H
#define FRAMED_CONFIG_TEXT_LIST_H

#include <stdbool.h>

#include "config/types.h"

int text_list_open(struct text_list *, const char *const text[], int n); // 0 or -ENOMEM
int text_list_copy(struct text_list *, const struct text_list *from);    // 0 or -ENOMEM
void text_list_free(struct text_list *); // overwrites the texts, which may be secrets; empties it
bool text_list_equal(const struct text_list *, const struct text_list *);
// Returns the text after `text`, or the first one for NULL. NULL: there is none.
const char *text_list_next(const struct text_list *, const char *text);

#endif
