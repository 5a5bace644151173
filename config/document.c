#include "config/document.h"

#include <errno.h>
#include <string.h>

// The time that libyaml takes grows with the square of both.
enum { NESTING_MAX = 32, ANCHORS_MAX = 256 };

struct place document_place(yaml_mark_t mark)
{
    return (struct place){.line = (int)mark.line + 1, .column = (int)mark.column + 1};
}

// The place of a byte. Like libyaml it counts columns in characters.
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

static int count_event(const yaml_event_t *event, int *depth, int *anchors)
{
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return 0;
    case YAML_SCALAR_EVENT:
        *anchors += event->data.scalar.anchor != NULL;
        return 0;
    case YAML_SEQUENCE_START_EVENT:
        *anchors += event->data.sequence_start.anchor != NULL;
        return ++*depth;
    case YAML_MAPPING_START_EVENT:
        *anchors += event->data.mapping_start.anchor != NULL;
        return ++*depth;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        --*depth;
        return 0;
    default:
        return 0;
    }
}

// Checks the limits in one pass over the events, before libyaml builds nodes from them.
static int check_events(const char *text, size_t length, struct mistakes *m)
{
    yaml_parser_t parser;
    yaml_event_t event;
    int depth = 0, anchors = 0, documents = 0, status = 0;
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
        int deep = count_event(&event, &depth, &anchors);
        documents += event.type == YAML_DOCUMENT_START_EVENT;
        end = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        if (deep > NESTING_MAX)
            mistake(m, at, "yaml", "is nested too deeply (at most %d levels)", NESTING_MAX);
        else if (anchors > ANCHORS_MAX)
            mistake(m, at, "yaml", "has too many anchors (at most %d)", ANCHORS_MAX);
        else if (documents > 1)
            mistake(m, at, "yaml", "has a second document (one document per file)");
        else
            continue;
        status = -EINVAL;
    }
    yaml_parser_delete(&parser);
    return status;
}

int document_parse(yaml_document_t *ret, const char *text, size_t length, struct mistakes *m)
{
    yaml_parser_t parser;
    int status = check_events(text, length, m);
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
