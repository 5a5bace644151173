#include "config/edit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/page.h"

enum { INDENT = 2, COMMENT_COLUMN = 28 };

// What a text gets in place of its bytes from `start` to `end`.
struct patch {
    size_t start, end;
    char *text;
    size_t length;
};

// --- writing a scalar

static void print_scalar(FILE *to, const char *value)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    if (value[strspn(value, plain)] == '\0') {
        fputs(value, to);
        return;
    }
    putc('"', to);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            putc('\\', to);
        putc(*value, to);
    }
    putc('"', to);
}

// --- replacing

static int replace(struct page *page, const struct spot *spot, const struct edit *edit,
                   struct patch *ret, FILE *to)
{
    const yaml_node_t *value = page_node(page, spot->pair->value);
    ret->start = page_offset(page, value->start_mark);
    ret->end = page_offset(page, value->end_mark);
    if (value->type != YAML_SCALAR_NODE)
        return page_refuse(page, value->start_mark, "is not a plain value");
    if (value->data.scalar.style == YAML_LITERAL_SCALAR_STYLE ||
        value->data.scalar.style == YAML_FOLDED_SCALAR_STYLE ||
        memchr("&!*", page->text[ret->start], 3))
        return page_refuse(page, value->start_mark, "is written in a form that is not edited");
    if (strcmp((const char *)value->data.scalar.value, edit->value) == 0)
        fwrite(page->text + ret->start, 1, ret->end - ret->start, to);
    else
        print_scalar(to, edit->value);
    return 0;
}

// --- adding to a mapping in braces

static int add_to_flow(struct page *page, const struct spot *spot, const struct edit *edit,
                       struct patch *ret, FILE *to)
{
    const yaml_node_t *mapping = spot->mapping;
    const bool empty = mapping->data.mapping.pairs.start == mapping->data.mapping.pairs.top;
    int braces = 0;
    ret->start = ret->end = page_offset(page, mapping->start_mark) + 1;
    if (page->text[ret->start - 1] != '{')
        return page_refuse(page, mapping->start_mark, "has an anchor or a tag");
    for (const char *c = spot->rest; *c; c++) {
        fputs(*c == '.' ? ": {" : (char[]){*c, 0}, to);
        braces += *c == '.';
    }
    fputs(": ", to);
    print_scalar(to, edit->value);
    while (braces-- > 0)
        putc('}', to);
    fputs(empty ? "" : ", ", to);
    return 0;
}

// --- adding a line to a block

// Where the last thing of a node ends that is not white space or a comment.
static int last_byte(struct page *page, const yaml_node_t *node, size_t *ret)
{
    for (;;) {
        const yaml_node_t *before = node;
        if (node->type == YAML_MAPPING_NODE &&
            node->data.mapping.style == YAML_BLOCK_MAPPING_STYLE) {
            before = page_node(page, node->data.mapping.pairs.top[-1].key);
            node = page_node(page, node->data.mapping.pairs.top[-1].value);
        } else if (node->type == YAML_SEQUENCE_NODE &&
                   node->data.sequence.style == YAML_BLOCK_SEQUENCE_STYLE) {
            node = page_node(page, node->data.sequence.items.top[-1]);
        } else {
            break;
        }
        if (node->start_mark.index < before->start_mark.index)
            return page_refuse(page, before->start_mark, "is followed by an alias");
    }
    if (node->type == YAML_SCALAR_NODE && (node->data.scalar.style == YAML_LITERAL_SCALAR_STYLE ||
                                           node->data.scalar.style == YAML_FOLDED_SCALAR_STYLE))
        return page_refuse(page, node->start_mark,
                           "is a text in lines, behind which nothing is added");
    *ret = page_offset(page, node->end_mark);
    return 0;
}

// Where the line behind that begins.
static int next_line(struct page *page, const yaml_node_t *node, size_t *ret)
{
    int rc = last_byte(page, node, ret);
    if (rc < 0)
        return rc;
    const char *text = page->text, *end = text + page->length, *at = text + *ret;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    if (at < end && *at == '#')
        while (at < end && *at != '\n')
            at++;
    if (at < end && *at == '\r')
        at++;
    if (at < end && *at != '\n')
        return page_refuse(page, node->end_mark, "is not the last thing in its line");
    *ret = (size_t)(at - text) + (at < end);
    return 0;
}

// The column of a block's keys, which must have their lines to themselves.
static int column_of(struct page *page, const yaml_node_t *mapping, int *ret)
{
    const yaml_node_t *key = page_node(page, mapping->data.mapping.pairs.start->key);
    const size_t at = page_offset(page, key->start_mark);
    *ret = (int)key->start_mark.column;
    for (int i = 1; i <= *ret; i++)
        if (page->text[at - (size_t)i] != ' ')
            return page_refuse(page, key->start_mark, "does not begin its line");
    return 0;
}

static const char *line_break(const struct page *page)
{
    const char *first = memchr(page->text, '\n', page->length);
    return first && first > page->text && first[-1] == '\r' ? "\r\n" : "\n";
}

static void print_lines(FILE *to, const char *rest, int column, const struct edit *edit,
                        const char *end)
{
    const char *dot;
    for (; (dot = strchr(rest, '.')); rest = dot + 1, column += INDENT)
        fprintf(to, "%*s%.*s:%s", column, "", (int)(dot - rest), rest, end);
    const long from = ftell(to);
    fprintf(to, "%*s%s: ", column, "", rest);
    print_scalar(to, edit->value);
    const int width = (int)(ftell(to) - from);
    if (edit->comment)
        fprintf(to, "%*s# %s", width < COMMENT_COLUMN ? COMMENT_COLUMN - width : 1, "",
                edit->comment);
    fputs(end, to);
}

static int add_to_block(struct page *page, const struct spot *spot, const struct edit *edit,
                        struct patch *ret, FILE *to)
{
    const bool root = spot->mapping == yaml_document_get_root_node(&page->document);
    const char *end = line_break(page);
    int column;
    int rc = column_of(page, spot->mapping, &column);
    if (rc == 0)
        rc = next_line(page, spot->mapping, &ret->start);
    if (rc < 0)
        return rc;
    if (root && !page->document.end_implicit)
        return page_refuse(page, page->document.end_mark,
                           "ends the document, behind which nothing is");
    if (root)
        ret->start = page->length;
    ret->end = ret->start;
    if (ret->start > 0 && page->text[ret->start - 1] != '\n')
        fputs(end, to);
    print_lines(to, spot->rest, column, edit, end);
    return 0;
}

// --- one edit, and all

static int make_patch(struct page *page, const struct edit *edit, struct patch *ret)
{
    struct spot spot;
    *ret = (struct patch){0};
    FILE *to = open_memstream(&ret->text, &ret->length);
    int rc = to ? page_locate(page, edit->key, &spot) : -ENOMEM;
    if (rc == 0 && spot.pair)
        rc = replace(page, &spot, edit, ret, to);
    else if (rc == 0 && spot.mapping->data.mapping.style == YAML_FLOW_MAPPING_STYLE)
        rc = add_to_flow(page, &spot, edit, ret, to);
    else if (rc == 0)
        rc = add_to_block(page, &spot, edit, ret, to);
    if (to && fclose(to) != 0)
        rc = -ENOMEM;
    return rc;
}

static char *patched(const struct page *page, const struct patch *patch, size_t *length)
{
    *length = page->length - (patch->end - patch->start) + patch->length;
    char *text = malloc(*length + 1);
    if (!text)
        return NULL;
    memcpy(text, page->text, patch->start);
    memcpy(text + patch->start, patch->text, patch->length);
    memcpy(text + patch->start + patch->length, page->text + patch->end, page->length - patch->end);
    text[*length] = '\0';
    return text;
}

static int apply(char **ret, size_t *ret_length, const char *text, size_t length,
                 const struct edit *edit, char *why, size_t size)
{
    struct page page;
    struct patch patch;
    int rc = page_open(&page, text, length, why, size);
    if (rc < 0)
        return rc;
    rc = make_patch(&page, edit, &patch);
    if (rc == 0) {
        *ret = patched(&page, &patch, ret_length);
        rc = *ret ? 0 : -ENOMEM;
    }
    free(patch.text);
    page_close(&page);
    return rc;
}

// Nothing but what is read back was written.
static int verify(const char *text, size_t length, const struct edit *edit, char *why, size_t size)
{
    char *value = NULL;
    int rc = edit_find(&value, text, length, edit->key, why, size);
    if (rc == 0 && (!value || strcmp(value, edit->value) != 0)) {
        snprintf(why, size, "1:1: %s would not read as %s here", edit->key, edit->value);
        rc = -EINVAL;
    }
    free(value);
    return rc;
}

int edit_keys(char **ret, size_t *ret_length, const char *text, size_t length,
              const struct edit edits[], int n, char *why, size_t size)
{
    char *now = strndup(text, length);
    int rc = now ? 0 : -ENOMEM;
    for (int i = 0; rc == 0 && i < n; i++) {
        char *next = NULL;
        rc = apply(&next, &length, now, length, &edits[i], why, size);
        if (rc == 0) {
            free(now);
            now = next;
        }
    }
    for (int i = 0; rc == 0 && i < n; i++)
        rc = verify(now, length, &edits[i], why, size);
    if (rc < 0) {
        free(now);
        return rc;
    }
    *ret = now;
    *ret_length = length;
    return 0;
}

int edit_find(char **ret, const char *text, size_t length, const char *key, char *why, size_t size)
{
    struct page page;
    struct spot spot;
    *ret = NULL;
    int rc = page_open(&page, text, length, why, size);
    if (rc < 0)
        return rc;
    rc = page_locate(&page, key, &spot);
    if (rc == 0 && spot.pair) {
        const yaml_node_t *value = page_node(&page, spot.pair->value);
        if (value->type != YAML_SCALAR_NODE)
            rc = page_refuse(&page, value->start_mark, "is not a plain value");
        if (rc == 0 && !(*ret = strdup((const char *)value->data.scalar.value)))
            rc = -ENOMEM;
    }
    page_close(&page);
    return rc;
}
