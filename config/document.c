#include "config/document.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// libyaml's time grows with the square of these.
enum { NESTING_MAX = 32, ANCHORS_MAX = 256, DIRECTIVES_MAX = 64 };
// The most that a file of the largest size can have without an alias.
enum { NODES_MAX = 1 << 20 };
// Bytes of all keys and values: each alias of a text makes a copy of it.
enum { BYTES_MAX = 8 << 20 };

struct place document_place(yaml_mark_t mark)
{
    return (struct place){.line = (int)mark.line + 1, .column = (int)mark.column + 1};
}

// Returns the place of a byte. Counts columns in characters, like libyaml.
static struct place byte_place(const char *text, size_t offset)
{
    struct place place = {.line = 1, .column = 1};
    for (size_t i = 0; i < offset; i++) {
        if (text[i] == '\n')
            place = (struct place){.line = place.line + 1, .column = 1};
        else if (((unsigned char)text[i] & 0xc0) != 0x80)
            place.column++;
    }
    return place;
}

static void open_parser(yaml_parser_t *parser, const char *text, size_t length)
{
    yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(parser, (const unsigned char *)text, length);
}

static int syntax_mistake(const yaml_parser_t *parser, const char *text, size_t length,
                          struct mistakes *m)
{
    if (parser->error == YAML_MEMORY_ERROR ||
        !parser->problem) // libyaml does not always report that memory ran out
        return -ENOMEM;
    struct place at = document_place(parser->problem_mark);
    if (parser->error == YAML_READER_ERROR)
        at = byte_place(text, parser->problem_offset < length ? parser->problem_offset : length);
    at.file = m->file;
    const char *context = parser->context;
    mistake(m, at, "yaml", "%s%s%s%s", parser->problem, context ? " (" : "", context ? context : "",
            context ? ")" : "");
    return -EINVAL;
}

// Number of nodes and bytes of their scalars, with aliases written out.
struct amount {
    long nodes, bytes;
};

// A node with an anchor, and the amount that each alias of it adds.
struct anchor {
    char *name;
    struct amount before, own; // own.nodes is 0 until the node ends
    int depth;
};

struct census {
    int depth, anchors, documents;
    struct amount all;
    struct anchor anchor[ANCHORS_MAX];
};

static void begin_anchor(struct census *census, const yaml_char_t *name)
{
    if (name && ++census->anchors <= ANCHORS_MAX)
        census->anchor[census->anchors - 1] =
            (struct anchor){strdup((const char *)name), census->all, {0}, census->depth};
}

static struct amount amount_since(const struct census *census, struct amount before)
{
    return (struct amount){census->all.nodes - before.nodes, census->all.bytes - before.bytes};
}

static void end_anchors(struct census *census)
{
    for (int i = 0; i < census->anchors && i < ANCHORS_MAX; i++) {
        struct anchor *anchor = &census->anchor[i];
        if (!anchor->own.nodes && anchor->depth == census->depth)
            anchor->own = amount_since(census, anchor->before);
    }
}

// An alias within its own anchor adds the amount up to the alias.
static void count_alias(struct census *census, const yaml_char_t *name)
{
    for (int i = census->anchors < ANCHORS_MAX ? census->anchors : ANCHORS_MAX; i-- > 0;) {
        const struct anchor *anchor = &census->anchor[i];
        if (!anchor->name || strcmp(anchor->name, (const char *)name) != 0)
            continue;
        const struct amount own =
            anchor->own.nodes ? anchor->own : amount_since(census, anchor->before);
        census->all.nodes += own.nodes;
        census->all.bytes += own.bytes;
        return;
    }
}

static void count_event(const yaml_event_t *event, struct census *census)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        census->documents++;
        return;
    case YAML_ALIAS_EVENT:
        count_alias(census, event->data.alias.anchor);
        return;
    case YAML_SCALAR_EVENT:
        begin_anchor(census, event->data.scalar.anchor);
        break;
    case YAML_SEQUENCE_START_EVENT:
        begin_anchor(census, event->data.sequence_start.anchor);
        census->depth++;
        break;
    case YAML_MAPPING_START_EVENT:
        begin_anchor(census, event->data.mapping_start.anchor);
        census->depth++;
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        census->depth--;
        end_anchors(census);
        return;
    default:
        return;
    }
    census->all.nodes++;
    if (event->type == YAML_SCALAR_EVENT) {
        census->all.bytes += (long)event->data.scalar.length;
        end_anchors(census);
    }
}

static bool is_too_much(const struct census *census, struct place at, struct mistakes *m)
{
    if (census->depth > NESTING_MAX)
        mistake(m, at, "yaml", "is nested too deeply (at most %d levels)", NESTING_MAX);
    else if (census->anchors > ANCHORS_MAX)
        mistake(m, at, "yaml", "has too many anchors (at most %d)", ANCHORS_MAX);
    else if (census->all.nodes > NODES_MAX)
        mistake(m, at, "yaml", "has too many values with its aliases written out (at most %d)",
                NODES_MAX);
    else if (census->all.bytes > BYTES_MAX)
        mistake(m, at, "yaml", "has too long a text with its aliases written out (at most %d MiB)",
                BYTES_MAX >> 20);
    else if (census->documents > 1)
        mistake(m, at, "yaml", "has a second document (one document per file)");
    else
        return false;
    return true;
}

// Returns the line of the directive (%...) above the document that exceeds the limit, else 0.
static int find_directive(const char *text, size_t length)
{
    int line = 1, directives = 0;
    for (const char *end = text + length; text < end; line++) {
        const char *next = memchr(text, '\n', (size_t)(end - text));
        if (!strchr("%# \t\r\n", *text) || (*text == '%' && ++directives > DIRECTIVES_MAX))
            break;
        text = next ? next + 1 : end;
    }
    return directives > DIRECTIVES_MAX ? line : 0;
}

// Checks the limits in one pass over the events, before libyaml builds nodes from them.
static int check_events(const char *text, size_t length, struct mistakes *m)
{
    yaml_parser_t parser;
    yaml_event_t event;
    struct census census = {0};
    int status = 0;
    bool end = false;
    if (!yaml_parser_initialize(&parser))
        return -ENOMEM;
    open_parser(&parser, text, length);
    while (!status && !end) {
        if (!yaml_parser_parse(&parser, &event)) {
            status = syntax_mistake(&parser, text, length, m);
            break;
        }
        struct place at = document_place(event.start_mark);
        at.file = m->file;
        count_event(&event, &census);
        end = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        if (is_too_much(&census, at, m))
            status = -EINVAL;
    }
    yaml_parser_delete(&parser);
    for (int i = 0; i < ANCHORS_MAX; i++)
        free(census.anchor[i].name);
    return status;
}

int document_parse(yaml_document_t *ret, const char *text, size_t length, struct mistakes *m)
{
    static const char mark[] = "\xef\xbb\xbf"; // byte order mark: libyaml counts it as an indent
    yaml_parser_t parser;
    if (length >= strlen(mark) && memcmp(text, mark, strlen(mark)) == 0) {
        text += strlen(mark);
        length -= strlen(mark);
    }
    const int directive = find_directive(text, length);
    if (directive)
        mistake(m, (struct place){.line = directive, .column = 1, .file = m->file}, "yaml",
                "has too many directives (at most %d)", DIRECTIVES_MAX);
    int status = directive ? -EINVAL : check_events(text, length, m);
    if (status < 0)
        return status;
    if (!yaml_parser_initialize(&parser))
        return -ENOMEM;
    open_parser(&parser, text, length);
    if (!yaml_parser_load(&parser, ret))
        status = syntax_mistake(&parser, text, length, m);
    yaml_parser_delete(&parser);
    return status;
}
