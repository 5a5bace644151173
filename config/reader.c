#include "config/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/url.h"
#include "config/value.h"

// --- documents

// libyaml's time grows with the square of these.
enum { NESTING_MAX = 32, ANCHORS_MAX = 256, DIRECTIVES_MAX = 64 };
// The most that a file of the largest size can have without an alias.
enum { NODES_MAX = 1 << 20 };
// Bytes of all keys and values: each alias of a text makes a copy of it.
enum { BYTES_MAX = 8 << 20 };

static struct place mark_place(yaml_mark_t mark)
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
    struct place at = mark_place(parser->problem_mark);
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
        struct place at = mark_place(event.start_mark);
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

// --- nodes

enum {
    SHOWN_MAX = 64,
    ALLOWED_MAX = 256,
    SEGMENT_MIN = 8, // minimum bytes of a secret URL's segment to be kept as a secret
};

static const char tagged[] = "has a YAML tag, which is not supported";

size_t reader_enter(struct reader *r, const char *key)
{
    size_t n = strlen(r->path);
    char word[KEY_MAX];
    snprintf(r->path + n, sizeof r->path - n, "%s%s", n ? "." : "", shown(key, word, sizeof word));
    return n;
}

void reader_leave(struct reader *r, size_t n)
{
    r->path[n] = 0;
}

const yaml_node_t *reader_node(struct reader *r, int index)
{
    return yaml_document_get_node(&r->document, index);
}

struct place reader_place(struct reader *r, int index)
{
    struct place at = mark_place(reader_node(r, index)->start_mark);
    at.file = r->mistakes.file;
    return at;
}

void reader_refuse(struct reader *r, int index, const struct config_row *row, const char *what)
{
    char allowed[ALLOWED_MAX];
    mistake(&r->mistakes, reader_place(r, index), r->path, "%s (%s)", what,
            row ? row_allowed(row, allowed, sizeof allowed) : "key: value");
}

static bool has_tag(const yaml_node_t *node)
{
    static const char *const known[] = {[YAML_SCALAR_NODE] = YAML_DEFAULT_SCALAR_TAG,
                                        [YAML_SEQUENCE_NODE] = YAML_DEFAULT_SEQUENCE_TAG,
                                        [YAML_MAPPING_NODE] = YAML_DEFAULT_MAPPING_TAG};
    return node->tag && strcmp((const char *)node->tag, known[node->type]) != 0;
}

static bool is_null(const yaml_node_t *node)
{
    const char *text = (const char *)node->data.scalar.value;
    return node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (!*text || !strcmp(text, "~") || !strcmp(text, "null"));
}

const yaml_node_t *reader_mapping(struct reader *r, int index, const struct config_row *row)
{
    const yaml_node_t *node = reader_node(r, index);
    const char *wrong = has_tag(node)                     ? tagged
                        : is_null(node)                   ? "has no value"
                        : node->type != YAML_MAPPING_NODE ? "is not a mapping"
                                                          : NULL;
    if (!wrong)
        return node;
    reader_refuse(r, index, row, wrong);
    return NULL;
}

static const char *scalar_wrong(const yaml_node_t *node)
{
    if (has_tag(node))
        return tagged;
    if (node->type != YAML_SCALAR_NODE)
        return node->type == YAML_MAPPING_NODE ? "cannot be a mapping" : "cannot be a list";
    if (strlen((const char *)node->data.scalar.value) != node->data.scalar.length)
        return "contains a zero byte";
    return is_null(node) ? "has no value" : NULL;
}

const char *reader_key(struct reader *r, int index)
{
    const yaml_node_t *node = reader_node(r, index);
    const char *wrong = scalar_wrong(node);
    const bool merges = !wrong && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
                        strcmp((const char *)node->data.scalar.value, "<<") == 0;
    if (!wrong && !merges)
        return (const char *)node->data.scalar.value;
    if (merges) {
        const size_t path = reader_enter(r, "<<");
        mistake(&r->mistakes, reader_place(r, index), r->path,
                "merge keys are not supported (write the keys out, or put common keys into "
                "`defaults`)");
        reader_leave(r, path);
        return NULL;
    }
    mistake(&r->mistakes, reader_place(r, index), r->path, "a key %s (key: value)", wrong);
    return NULL;
}

static int keep_literal(const struct reader *r, const char *secret)
{
    return r->literals ? expand_keep_literal(secret) : 0;
}

// Keeps the secrets of `text`, a value without its references. Returns true if it has any.
static bool keep_literals(struct reader *r, const struct config_row *row, const char *text)
{
    size_t length;
    const char *login = config_url_login(text, &length);
    const bool whole = *text && row->secret;
    // A user name occurs in many other texts.
    if (whole && strcmp(row_word(row), "user") != 0)
        r->no_memory |= keep_literal(r, text) < 0;
    if (r->literals)
        r->no_memory |= expand_keep_literal_url(text) < 0;
    return whole || (login && length > 1 && memchr(login, ':', length - 1)) ||
           strchr(config_url_query(text), '=');
}

// Keeps the parts of a secret URL, as its path is a secret too.
static void keep_segments(struct reader *r, char *url)
{
    char *rest = NULL;
    for (char *part = strtok_r(url, "/:@?#&=", &rest); part;
         part = strtok_r(NULL, "/:@?#&=", &rest))
        if (strlen(part) >= SEGMENT_MIN)
            r->no_memory |= keep_literal(r, part) < 0;
}

// Notes a literal secret, visible to everybody who can read the file.
static void note_secret(struct reader *r, int index, const struct config_row *row)
{
    char *own = NULL;
    if (!value_may_be_secret(row) ||
        expand_own(&own, (const char *)reader_node(r, index)->data.scalar.value) < 0)
        return;
    if (keep_literals(r, row, own) && !r->secret.line)
        r->secret = reader_place(r, index);
    if (row->secret && strstr(own, "://"))
        keep_segments(r, own);
    secret_free(own);
}

// Expands the references in a scalar's text, for secret_free. Returns false if a mistake was noted,
// or there is no memory.
static bool read_scalar(struct reader *r, int index, const struct config_row *row,
                        struct expanded *ret)
{
    const yaml_node_t *node = reader_node(r, index);
    const char *wrong = scalar_wrong(node);
    const struct expand_options options = {r->references, r->unit, value_may_be_secret(row)};
    char why[ALLOWED_MAX];
    if (wrong) {
        reader_refuse(r, index, row, wrong);
        return false;
    }
    int status = expand_for(ret, (const char *)node->data.scalar.value, &options, why, sizeof why);
    if (status == -EINVAL)
        mistake(&r->mistakes, reader_place(r, index), r->path, "%s", why);
    r->no_memory |= status == -ENOMEM;
    note_secret(r, index, row);
    return status == 0;
}

// Shows a scalar as it stands in the file, so that no looked-up value appears. A text can be
// anything, so it is not shown.
static void refuse_value(struct reader *r, int index, const struct config_row *row,
                         const char *wrong)
{
    const yaml_node_t *node = reader_node(r, index);
    char raw[SHOWN_MAX], what[SHOWN_MAX + 128];
    if (node->type == YAML_SCALAR_NODE && !value_is_text(row)) {
        shown((const char *)node->data.scalar.value, raw, sizeof raw);
        snprintf(what, sizeof what, "'%s' %s", raw, wrong);
        wrong = what;
    }
    reader_refuse(r, index, row, wrong);
}

// Texts of a value: of a scalar, or of each entry of a list.
struct texts {
    char *text[VALUE_LIST_MAX];
    int n;
    bool any, unknown; // see struct expanded
};

static void free_texts(struct texts *texts)
{
    for (int i = 0; i < texts->n; i++)
        secret_free(texts->text[i]);
}

// --- values as they are shown

// Returns a scalar's text to show, to be freed. NULL: no memory.
static char *show_scalar(const struct config_row *row, const yaml_node_t *node)
{
    const char *text = (const char *)node->data.scalar.value;
    char *own = row->secret ? expand_without_defaults(text) : strdup(text);
    const size_t size = own ? strlen(own) + sizeof "***" : 0;
    char *ret = own ? malloc(size) : NULL;
    if (ret)
        config_url_shown(own, ret, size);
    secret_free(own);
    return ret;
}

// Prints an entry of a list or map. A literal of a secret row becomes ***.
static void print_entry(struct reader *r, FILE *to, int index, const struct config_row *row)
{
    const yaml_node_t *node = reader_node(r, index);
    const bool literal = !strstr((const char *)node->data.scalar.value, "${");
    char *text = row->secret && literal ? strdup("***") : show_scalar(row, node);
    if (text)
        value_print_text(to, text);
    r->no_memory |= !text;
    free(text);
}

static void print_written(struct reader *r, FILE *to, int index, const struct config_row *row)
{
    const yaml_node_t *node = reader_node(r, index);
    if (node->type == YAML_SCALAR_NODE) {
        print_entry(r, to, index, row);
    } else if (node->type == YAML_SEQUENCE_NODE) {
        const yaml_node_item_t *item = node->data.sequence.items.start;
        const struct config_row name = {.key = row->key, .type = row->type}; // program: not secret
        for (const char *between = "["; item < node->data.sequence.items.top; between = ", ") {
            const bool first = item == node->data.sequence.items.start;
            fputs(between, to);
            print_entry(r, to, *item++, first && row->type == VALUE_PROGRAM ? &name : row);
        }
        putc(']', to);
    } else {
        const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
        for (const char *between = "{"; pair < node->data.mapping.pairs.top; between = ", ") {
            fputs(between, to);
            value_print_text(to, (const char *)reader_node(r, pair->key)->data.scalar.value);
            fputs(": ", to);
            print_written(r, to, pair->value, row);
            pair++;
        }
        putc('}', to);
    }
}

// Sets r->written for a value that was read without a mistake.
static void note_written(struct reader *r, int index, const struct config_row *row)
{
    const yaml_node_t *node = reader_node(r, index);
    size_t size;
    if (!value_is_list(row) && !value_pairs(row)) {
        r->written = show_scalar(row, node);
    } else {
        FILE *to = open_memstream(&r->written, &size);
        if (to) {
            print_written(r, to, index, row);
            fclose(to);
        }
    }
    r->no_memory |= !r->written;
}

// Reads texts, for free_texts. Returns false if a mistake was noted.
static bool read_texts(struct reader *r, int index, const struct config_row *row, bool list_allowed,
                       struct texts *ret)
{
    const yaml_node_t *node = reader_node(r, index);
    const bool list = node->type == YAML_SEQUENCE_NODE;
    const int *entry = list ? node->data.sequence.items.start : &index;
    const ptrdiff_t n = list ? node->data.sequence.items.top - entry : 1;
    const char *wrong = NULL;
    *ret = (struct texts){0};
    if (list && has_tag(node))
        wrong = tagged;
    else if (list && !list_allowed)
        wrong = "cannot be a list";
    else if (n < 1 || n > VALUE_LIST_MAX)
        wrong = "has the wrong number of entries";
    if (wrong) {
        reader_refuse(r, index, row, wrong);
        return false;
    }
    while (ret->n < n) {
        struct expanded expanded;
        if (!read_scalar(r, entry[ret->n], row, &expanded))
            return false;
        ret->text[ret->n++] = expanded.text;
        ret->any |= expanded.any;
        ret->unknown |= expanded.unknown;
    }
    return true;
}

// Returns true if the member holds the pair; sets *any if a reference took part.
static bool read_pair(struct reader *r, const yaml_node_pair_t *pair, const char *name,
                      const struct config_row *row, void *object, bool *any)
{
    struct texts texts;
    const char *wrong;
    int status = -EINVAL;
    if (read_texts(r, pair->value, row, !value_is_text(row), &texts) &&
        (!texts.unknown || value_is_text(row))) {
        status = value_add(row, object, name, (const char *const *)texts.text, texts.n,
                           reader_place(r, pair->key), &wrong);
        if (status == -EEXIST)
            mistake(&r->mistakes, reader_place(r, pair->key), r->path,
                    "is already given (each key once)");
        if (status == -EINVAL)
            refuse_value(r, pair->value, row, wrong);
        r->no_memory |= status == -ENOMEM;
    }
    *any |= texts.any;
    free_texts(&texts);
    return status == 0;
}

// Reads "name: value" pairs, which replace the member's.
static bool read_map(struct reader *r, int index, const struct config_row *row, void *object)
{
    bool good = true, any = false;
    const yaml_node_t *node = reader_mapping(r, index, row);
    if (!node)
        return false;
    value_free(row, object);
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    if (node->data.mapping.pairs.top - pair > value_pairs(row)) {
        reader_refuse(r, index, row, "has too many entries");
        return false;
    }
    for (; pair < node->data.mapping.pairs.top; pair++) {
        const char *name = reader_key(r, pair->key);
        if (name) {
            const size_t path = reader_enter(r, name);
            good &= read_pair(r, pair, name, row, object, &any);
            reader_leave(r, path);
        }
        good &= name != NULL;
    }
    if (good && any)
        note_written(r, index, row);
    return good;
}

bool reader_value(struct reader *r, int index, const struct config_row *row, void *object)
{
    struct texts texts;
    const char *wrong;
    int status = -EINVAL;
    r->written = NULL;
    if (value_pairs(row))
        return read_map(r, index, row, object);
    const bool read = read_texts(r, index, row, value_is_list(row), &texts);
    if (read && (!texts.unknown || value_is_text(row))) {
        status = value_parse(row, object, (const char *const *)texts.text, texts.n, &wrong);
        if (status == -EINVAL)
            refuse_value(r, index, row, wrong);
        r->no_memory |= status == -ENOMEM;
    }
    const bool known = status == 0 && !texts.unknown;
    if (known && texts.any)
        note_written(r, index, row);
    free_texts(&texts);
    return known;
}
