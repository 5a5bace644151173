#include "config/value.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/schema.h"
#include "config/url.h"

static void print_quoted(FILE *f, const char *text, bool double_dollars)
{
    putc('"', f);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putc('\\', f);
        if (*text == '$' && double_dollars)
            putc('$', f);
        if ((unsigned char)*text < ' ')
            fprintf(f, "\\x%02x", (unsigned)*text);
        else
            putc(*text, f);
    }
    putc('"', f);
}

void value_print_text(FILE *f, const char *text)
{
    print_quoted(f, text, false);
}

// A value is an expanded text, so a dollar sign in it is literal.
static void print_text(FILE *f, const char *text)
{
    print_quoted(f, text, true);
}

static void print_own(FILE *f, const struct config_row *row, const char *text, enum secrecy secrets)
{
    char shown[4 * 4096];
    if (secrets == SECRETS_HIDDEN)
        text = row->secret ? "***" : config_url_shown(text, shown, sizeof shown);
    print_text(f, text);
}

// Prints the fewest digits that are read as the same number.
static void print_number(FILE *f, double value)
{
    const bool common = value == 0 || (fabs(value) >= 1e-4 && fabs(value) < 1e15);
    char text[32];
    double same;
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (number_read(text, strlen(text), &same) && same == value &&
            !(common && strchr(text, 'e')))
            break;
    }
    fputs(text, f);
}

// Prints the value in the largest unit that makes it a whole number, else in the smallest.
static void print_quantity(FILE *f, double value, const struct unit_name *units)
{
    while (units[1].name && value / units->factor != (double)(int64_t)(value / units->factor))
        units++;
    print_number(f, value / units->factor);
    fputs(units->name, f);
}

static void print_ns(FILE *f, int64_t ns, const struct unit_name *units)
{
    if (ns % 1000000 == 0 && ns % 1000000000 != 0)
        fprintf(f, "%" PRId64 "ms", ns / 1000000);
    else
        print_quantity(f, (double)ns / 1e9, units);
}

static void print_fraction(FILE *f, double value)
{
    const double under = 1 / value;
    if (under >= 2 && under == (double)(int)under)
        fprintf(f, "1/%d", (int)under);
    else
        print_number(f, value);
}

static void print_numbers(FILE *f, const double v[], int n)
{
    for (int i = 0; i < n; i++) {
        fputs(i ? ", " : n > 1 ? "[" : "", f);
        print_number(f, v[i]);
    }
    if (n > 1)
        putc(']', f);
}

static void print_rect(FILE *f, const struct rect *rect)
{
    fprintf(f, "[%d, %d, %d, %d]", rect->x, rect->y, rect->width, rect->height);
}

static void print_hex(FILE *f, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fprintf(f, "%02x", bytes[i]);
}

static void print_pin(FILE *f, const struct pin *pin)
{
    char text[PROCESSORS_TEXT];
    if (pin->how == PINNING_LIST)
        fprintf(f, "\"%s\"", processors_text(&pin->list, text));
    else
        fputs(pin->how == PINNING_NONE ? "none" : "auto", f);
}

static void print_gpu(FILE *f, const struct gpu_choice *gpu)
{
    if (gpu->by == GPU_BY_NUMBER) {
        fprintf(f, "%d", gpu->number);
    } else if (gpu->by == GPU_AUTO) {
        fputs("auto", f);
    } else {
        fputs("GPU-", f);
        for (size_t i = 0; i < sizeof gpu->uuid; i++)
            fprintf(f, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", gpu->uuid[i]);
    }
}

static void print_address(FILE *f, const struct config_row *row, const struct sink_address *address,
                          enum secrecy secrets)
{
    const char *host = address_host(address);
    const bool brackets = strchr(host, ':');
    if (address->kind == SINK_TCP && !address->host)
        fprintf(f, "\"tcp:%d\"", address->port);
    else if (address->kind == SINK_TCP)
        fprintf(f, "\"tcp:%s%s%s:%d\"", brackets ? "[" : "", host, brackets ? "]" : "",
                address->port);
    else if (address->url)
        print_own(f, row, address->url, secrets);
    else {
        char text[PATH_MAX + 16];
        snprintf(text, sizeof text, "%s%s", address_scheme(address->kind),
                 address->path ? address->path : "");
        print_text(f, text);
    }
}

// Hides secret texts, but not the name of a program.
static void print_texts(FILE *f, const struct config_row *row, const struct text_list *texts,
                        enum secrecy secrets)
{
    const char *between = "[", *first = text_list_next(texts, NULL);
    const bool line = row->type == VALUE_PROGRAM && !text_list_next(texts, first); // for a shell
    for (const char *text = NULL; (text = text_list_next(texts, text));) {
        fputs(between, f);
        if (row->type == VALUE_PROGRAM && text == first && !line)
            print_text(f, text);
        else
            print_own(f, row, text, secrets);
        between = ", ";
    }
    putc(']', f);
}

static void print_list(FILE *f, const struct config_row *row, const void *member)
{
    const char *between = "[";
    if (row->type == VALUE_GPUS) {
        const struct gpu_list *gpus = member;
        for (int i = 0; i < gpus->n; i++, between = ", ")
            fprintf(f, "%s%d", between, gpus->number[i]);
    } else if (row->type == VALUE_CLASSES) {
        const struct classes *classes = member;
        for (int i = 0; i < classes->n; i++, between = ", ") {
            fputs(between, f);
            if (classes->list[i].name[0])
                print_text(f, classes->list[i].name);
            else
                fprintf(f, "%d", classes->list[i].number);
        }
    } else if (row->type == VALUE_ENDPOINTS) {
        const struct endpoints *endpoints = member;
        for (int i = 0; i < endpoints->n; i++, between = ", ") {
            fputs(between, f);
            print_text(f, endpoints->url[i]);
        }
    } else if (row->type == VALUE_NAME_PATTERNS) {
        const struct name_patterns *patterns = member;
        for (int i = 0; i < patterns->n; i++, between = ", ") {
            fputs(between, f);
            print_text(f, patterns->list[i]);
        }
    } else {
        const struct polygons *polygons = member;
        for (int i = 0; i < polygons->n; i++, between = ", ") {
            fprintf(f, "%s\"", between);
            for (int p = 0; p < polygons->list[i].n; p++)
                fprintf(f, "%s%d,%d", p ? " " : "", polygons->list[i].point[p].x,
                        polygons->list[i].point[p].y);
            putc('"', f);
        }
    }
    putc(']', f);
}

static void print_map(FILE *f, const struct config_row *row, const void *member,
                      enum secrecy secrets)
{
    const char *between = "{";
    if (row->type == VALUE_ROIS) {
        const struct rois *rois = member;
        for (int i = 0; i < rois->n; i++, between = ", ") {
            fprintf(f, "%s%s: ", between, rois->list[i].name);
            print_rect(f, &rois->list[i].rect);
        }
    } else if (row->type == VALUE_NODE_LABELS) {
        const struct node_labels *labels = member;
        for (int i = 0; i < labels->n; i++, between = ", ") {
            fputs(between, f);
            print_text(f, labels->list[i].name);
            fputs(": ", f);
            print_text(f, labels->list[i].value);
        }
    } else {
        const struct demuxer_options *options = member;
        for (int i = 0; i < options->n; i++, between = ", ") {
            const char *name = options->list[i].name;
            fputs(between, f);
            print_text(f, name);
            fputs(": ", f);
            print_own(f, row, options->list[i].value, secrets);
        }
    }
    putc('}', f);
}

static bool is_empty_list(const struct config_row *row, const void *member)
{
    return (row->type == VALUE_GPUS && ((const struct gpu_list *)member)->n == 0) ||
           (row->type == VALUE_CLASSES && ((const struct classes *)member)->n == 0);
}

static bool is_zero(const struct config_row *row, const void *member)
{
    switch (row->type) {
    case VALUE_INT:
        return *(const int *)member == 0;
    case VALUE_DURATION:
        return ((const struct duration *)member)->ns == 0;
    case VALUE_BYTES:
        return ((const struct bytes *)member)->n == 0;
    case VALUE_DIMENSIONS:
        return ((const struct dimensions *)member)->width == 0;
    case VALUE_STRING:
        return !*(char *const *)member;
    default:
        return is_empty_list(row, member);
    }
}

static void print_levels(FILE *f, const struct levels *levels)
{
    const double v[3] = {levels->v[0], levels->v[1], levels->v[2]};
    if (levels->mean)
        fputs("mean", f);
    else
        print_numbers(f, v, levels->n);
}

static void print_split(FILE *f, const struct split *split)
{
    if (split->bytes > 0)
        print_quantity(f, (double)split->bytes, size_units);
    else if (split->ns > 0)
        print_ns(f, split->ns, span_units);
    else
        putc('0', f);
}

static void print_decoder(FILE *f, const struct decoder_choice *decoder)
{
    static const char *const words[] = {[DECODE_AUTO] = "auto", [DECODE_CPU] = "cpu", "nvdec"};
    if (decoder->by == DECODE_HARDWARE)
        fprintf(f, "\"%s%s%s\"", decoder->name, *decoder->device ? ":" : "", decoder->device);
    else
        fputs(words[decoder->by], f);
}

static void print_others(FILE *f, const struct config_row *row, const void *member,
                         enum secrecy secrets)
{
    const struct control_address *control = member;
    const struct http_address *http = member;
    const struct text_list *texts = member;
    const struct affine *affine = member;
    const struct fingerprint *fingerprint = member;
    const struct batch_wait *wait = member;
    switch (row->type) {
    case VALUE_AFFINE:
        print_numbers(f, affine->m, 6);
        break;
    case VALUE_BATCH_WAIT:
        if (wait->ns == WAIT_AUTO)
            fputs("auto", f);
        else
            print_ns(f, wait->ns, duration_units);
        break;
    case VALUE_CONTROL:
        if (control->off || control->at.kind == SINK_NONE)
            fputs(control->off ? "off" : "auto", f);
        else
            print_address(f, row, &control->at, secrets);
        break;
    case VALUE_HTTP:
        if (http->at.kind == SINK_NONE)
            fputs("off", f);
        else
            print_address(f, row, &http->at, secrets);
        break;
    case VALUE_CROP:
        print_rect(f, &((const struct crop *)member)->rect);
        break;
    case VALUE_DECODER:
        print_decoder(f, member);
        break;
    case VALUE_FINGERPRINT:
        putc('"', f);
        print_hex(f, fingerprint->sha256, sizeof fingerprint->sha256);
        putc('"', f);
        break;
    case VALUE_GPU:
        print_gpu(f, member);
        break;
    case VALUE_LABELS:
    case VALUE_PROGRAM:
        print_texts(f, row, texts, secrets);
        break;
    case VALUE_PIN:
        print_pin(f, member);
        break;
    case VALUE_OPTIONS:
    case VALUE_ROIS:
    case VALUE_NODE_LABELS:
        print_map(f, row, member, secrets);
        break;
    default: // lists
        print_list(f, row, member);
    }
}

bool value_is_set(const struct config_row *row, const void *object)
{
    const void *member = (const char *)object + row->offset;
    switch (row->type) {
    case VALUE_STRING:
    case VALUE_SHARED:
    case VALUE_ROI:
    case VALUE_LUT:
        return *(char *const *)member != NULL || row->zero; // the name or path is the first member
    case VALUE_DIMENSIONS:
        return ((const struct dimensions *)member)->width > 0 || row->zero;
    case VALUE_AFFINE:
        return ((const struct affine *)member)->set;
    case VALUE_CROP:
        return ((const struct crop *)member)->set;
    case VALUE_FINGERPRINT:
        return ((const struct fingerprint *)member)->set;
    case VALUE_SINK:
        return ((const struct sink_address *)member)->kind != SINK_NONE;
    case VALUE_LABELS:
    case VALUE_PROGRAM:
        return ((const struct text_list *)member)->text != NULL;
    case VALUE_NAME_PATTERNS:
        return ((const struct name_patterns *)member)->n > 0;
    case VALUE_OPTIONS:
        return ((const struct demuxer_options *)member)->n > 0;
    case VALUE_ROIS:
        return ((const struct rois *)member)->n > 0;
    case VALUE_POLYGONS:
        return ((const struct polygons *)member)->n > 0;
    case VALUE_ENDPOINTS:
        return ((const struct endpoints *)member)->n > 0;
    case VALUE_NODE_LABELS:
        return ((const struct node_labels *)member)->n > 0;
    default:
        return !is_empty_list(row, member) || row->zero;
    }
}

void value_print(FILE *f, const struct config_row *row, const void *object, enum secrecy secrets)
{
    const void *member = (const char *)object + row->offset;
    if (row->zero && is_zero(row, member)) {
        fputs(row->zero, f);
        return;
    }
    switch (row->type) {
    case VALUE_BOOL:
        fputs(*(const bool *)member ? "true" : "false", f);
        break;
    case VALUE_INT:
        fprintf(f, "%d", *(const int *)member);
        break;
    case VALUE_NUMBER:
        print_number(f, *(const double *)member);
        break;
    case VALUE_FRACTION:
        print_fraction(f, ((const struct fraction *)member)->value);
        break;
    case VALUE_CHOICE:
        fputs(row_choice(row, *(const int *)member), f);
        break;
    case VALUE_STRING:
        print_own(f, row, *(char *const *)member, secrets);
        break;
    case VALUE_SHARED:
    case VALUE_ROI:
    case VALUE_LUT:
        print_text(f, *(char *const *)member);
        break;
    case VALUE_DURATION:
        print_ns(f, ((const struct duration *)member)->ns, duration_units);
        break;
    case VALUE_BYTES:
        print_quantity(f, (double)((const struct bytes *)member)->n, size_units);
        break;
    case VALUE_SPLIT:
        print_split(f, member);
        break;
    case VALUE_PERCENT:
        fprintf(f, "%d%%", ((const struct percent *)member)->n);
        break;
    case VALUE_DIMENSIONS:
        fprintf(f, "%dx%d", ((const struct dimensions *)member)->width,
                ((const struct dimensions *)member)->height);
        break;
    case VALUE_FILEMODE:
        fprintf(f, "\"%04o\"", (unsigned)((const struct filemode *)member)->mode);
        break;
    case VALUE_LEVELS:
        print_levels(f, member);
        break;
    case VALUE_CHANNELS:
        print_numbers(f, ((const struct channels *)member)->v,
                      ((const struct channels *)member)->n);
        break;
    case VALUE_SINK:
        print_address(f, row, member, secrets);
        break;
    default:
        print_others(f, row, member, secrets);
    }
}

// --- descriptions

static void print_choices(FILE *f, const struct config_choice *choices, const char *format,
                          const char *between)
{
    for (const struct config_choice *c = choices; c->name; c++) {
        fputs(c == choices ? "" : between, f);
        fprintf(f, format, c->name);
    }
}

// Prints the schema of a number or, with `n`, of a list of n numbers. Any entry of a list may be a
// text with ${NAME}.
static void print_number_schema(FILE *f, const struct config_row *row, const char *type, int n)
{
    if (n > 0)
        fputs("{\"type\": \"array\", \"items\": {\"anyOf\": [", f);
    fprintf(f, "{\"type\": \"%s\", \"minimum\": %.10g, \"maximum\": %.10g}", type, row->min,
            row->max);
    if (n > 0)
        fprintf(f,
                ", {\"$ref\": \"#/definitions/expanded\"}]}, \"minItems\": %d, \"maxItems\": %d}",
                n, n);
}

// Prints the schema of a quantity, and of a bare 0 if 0 is in range.
static void print_quantity_schema(FILE *f, const struct config_row *row,
                                  const struct unit_name *units)
{
    const bool zero = row->min == 0;
    fprintf(f, "%s{\"type\": \"string\", \"pattern\": \"^(%s([0-9]+[.]?[0-9]*|[.][0-9]+)(",
            zero ? "{\"const\": 0}, " : "", zero ? "0|" : "");
    for (const char *before = ""; units->name; units++, before = "|")
        fprintf(f, "%s%s", before, units->name);
    fputs("))$\"}", f);
}

// Prints the value in the largest unit that it reaches.
static void print_limit(FILE *f, double value, const struct unit_name *units)
{
    while (units[1].name && value < units->factor)
        units++;
    if (value == 0)
        fputc('0', f);
    else
        fprintf(f, "%g%s", value / units->factor, units->name);
}

// Prints "100ms to 1h; units h, m, s, ms".
static void print_range(FILE *f, double min, double max, const struct unit_name *units)
{
    print_limit(f, min, units);
    fputs(" to ", f);
    print_limit(f, max, units);
    for (const char *before = "; units "; units->name; units++, before = ", ")
        fprintf(f, "%s%s", before, units->name);
}

static void print_word(FILE *f, const struct config_row *row, const char *word, int n)
{
    if (!strcmp(word, "range"))
        fprintf(f, row->unit ? "%.10g to %.10g %s" : "%.10g to %.10g", row->min, row->max,
                row->unit);
    else if (!strcmp(word, "choices"))
        print_choices(f, row->choices, "%s", " | ");
    else if (!strcmp(word, "names"))
        print_choices(f, row->choices, "\"%s\"", ", ");
    else if (!strcmp(word, "durations"))
        print_range(f, row->min, row->max, duration_units);
    else if (!strcmp(word, "spans"))
        print_range(f, row->min, row->max, span_units);
    else if (!strcmp(word, "sizes"))
        print_range(f, row->min, row->max, size_units);
    else if (!strcmp(word, "duration"))
        print_quantity_schema(f, row, duration_units);
    else if (!strcmp(word, "span"))
        print_quantity_schema(f, row, span_units);
    else if (!strcmp(word, "size"))
        print_quantity_schema(f, row, size_units);
    else if (!strcmp(word, "integer"))
        print_number_schema(f, row, "integer", n);
    else if (!strcmp(word, "number"))
        print_number_schema(f, row, "number", n);
    else
        assert(!"a word of the table");
}

void describe_print(FILE *f, const struct config_row *row, const char *text)
{
    const char *at;
    for (; (at = strchr(text, '@')); text = at) {
        char word[16] = "";
        int n = 0;
        fwrite(text, 1, (size_t)(at++ - text), f);
        const size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        for (at += length; *at >= '0' && *at <= '9'; at++)
            n = 10 * n + *at - '0';
        print_word(f, row, word, n);
    }
    fputs(text, f);
}
