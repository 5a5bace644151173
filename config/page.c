#include "config/page.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int page_refuse(struct page *page, yaml_mark_t at, const char *what)
{
    const struct place place = document_place(at);
    snprintf(page->why, page->size, "%d:%d: %s", place.line, place.column, what);
    return -EINVAL;
}

int page_open(struct page *page, const char *text, size_t length, char *why, size_t size)
{
    struct mistakes mistakes = {.n = 0};
    *page = (struct page){.text = text, .length = length, .why = why, .size = size};
    int rc = document_parse(&page->document, text, length, &mistakes);
    if (rc == -EINVAL)
        snprintf(why, size, "%d:%d: %s", mistakes.list[0].at.line, mistakes.list[0].at.column,
                 mistakes.list[0].text);
    mistakes_free(&mistakes);
    return rc;
}

void page_close(struct page *page)
{
    yaml_document_delete(&page->document);
}

const yaml_node_t *page_node(struct page *page, int index)
{
    return yaml_document_get_node(&page->document, index);
}

// libyaml counts characters.
size_t page_offset(const struct page *page, yaml_mark_t mark)
{
    size_t at = 0;
    for (size_t characters = 0; at < page->length; at++) {
        if (((unsigned char)page->text[at] & 0xc0) == 0x80)
            continue;
        if (characters++ == mark.index)
            break;
    }
    return at;
}

// --- finding

static int count_in(const yaml_node_t *node, int index)
{
    int n = 0;
    if (node->type == YAML_MAPPING_NODE) {
        const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
        for (; pair < node->data.mapping.pairs.top; pair++)
            n += (pair->key == index) + (pair->value == index);
    } else if (node->type == YAML_SEQUENCE_NODE) {
        const yaml_node_item_t *item = node->data.sequence.items.start;
        for (; item < node->data.sequence.items.top; item++)
            n += *item == index;
    }
    return n;
}

// Whether a node stands at several places, by an alias: a change at one would be one at all.
static bool is_shared(struct page *page, int index)
{
    int n = 0;
    const yaml_node_t *node = page->document.nodes.start;
    for (; node < page->document.nodes.top; node++)
        n += count_in(node, index);
    return n > 1;
}

// The pair of `key`, or of the section that its first words name: then *word is their length, else
// 0.
static const yaml_node_pair_t *find_pair(struct page *page, const yaml_node_t *mapping,
                                         const char *key, size_t *word)
{
    const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start, *section = NULL;
    *word = 0;
    for (; pair < mapping->data.mapping.pairs.top; pair++) {
        const yaml_node_t *node = page_node(page, pair->key);
        const char *name = (const char *)node->data.scalar.value;
        if (node->type != YAML_SCALAR_NODE)
            continue;
        if (strcmp(name, key) == 0) {
            *word = 0;
            return pair;
        }
        if (strncmp(name, key, strlen(name)) == 0 && key[strlen(name)] == '.') {
            *word = strlen(name);
            section = pair;
        }
    }
    return section;
}

int page_locate(struct page *page, const char *key, struct spot *ret)
{
    const yaml_node_t *node = yaml_document_get_root_node(&page->document);
    size_t word = 1;
    *ret = (struct spot){.rest = key};
    while (word > 0) {
        if (!node || node->type != YAML_MAPPING_NODE)
            return page_refuse(page, node ? node->start_mark : (yaml_mark_t){0},
                               "is not a mapping");
        ret->mapping = node;
        ret->pair = find_pair(page, node, ret->rest, &word);
        if (!ret->pair)
            return 0;
        if (is_shared(page, ret->pair->value))
            return page_refuse(page, page_node(page, ret->pair->key)->start_mark,
                               "has a value that an alias repeats");
        node = page_node(page, ret->pair->value);
        ret->rest += word + (word > 0);
    }
    return 0;
}
