// The text of a configuration beside its YAML document: where keys and values stand in it, by the
// byte.
#ifndef FRAMED_CONFIG_PAGE_H
#define FRAMED_CONFIG_PAGE_H

#include "config/document.h"

struct page {
    const char *text;
    size_t length;
    yaml_document_t document;
    char *why; // what page_refuse said
    size_t size;
};

// Where a key is, or is to be.
struct spot {
    const yaml_node_t *mapping;
    const yaml_node_pair_t *pair; // NULL: `mapping` has no such key
    const char *rest;             // the key's words from there on
};

// The page keeps `text` and `why`. 0; -EINVAL: no YAML; -ENOMEM. Only then page_close.
int page_open(struct page *, const char *text, size_t length, char *why, size_t size);
void page_close(struct page *);
int page_refuse(struct page *, yaml_mark_t at, const char *what); // -EINVAL

const yaml_node_t *page_node(struct page *, int index);
size_t page_offset(const struct page *, yaml_mark_t); // bytes from the start of the text
// Finds a dotted key from the top. 0, or -EINVAL where an alias repeats what it leads through.
int page_locate(struct page *, const char *key, struct spot *ret);

#endif
