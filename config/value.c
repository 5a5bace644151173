#include "config/value.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/expand.h"

static const char out_of_range[] = "is out of range";
static const char out_of_memory[] = "needs more memory than there is";

// --- plain values: each parser sets the member and returns NULL, or returns the mistake

static bool in_range(const struct config_row *row, double value)
{
    return (row->min == 0 && row->max == 0) || (value >= row->min && value <= row->max);
}

static bool is_zero_word(const struct config_row *row, const char *text)
{
    return row->zero && strcmp(row->zero, text) == 0;
}

static const char *parse_bool(const struct config_row *row, void *member, const char *text)
{
    (void)row;
    if (strcmp(text, "true") && strcmp(text, "false"))
        return "is not a boolean";
    *(bool *)member = *text == 't';
    return NULL;
}

static const char *parse_int(const struct config_row *row, void *member, const char *text)
{
    int value = 0;
    if (!is_zero_word(row, text)) {
        if (!whole_read(text, strlen(text), &value))
            return "is not a whole number";
        if (!in_range(row, value))
            return out_of_range;
    }
    *(int *)member = value;
    return NULL;
}

static const char *parse_number(const struct config_row *row, void *member, const char *text)
{
    double value;
    if (!number_read(text, strlen(text), &value))
        return "is not a number";
    if (!in_range(row, value))
        return out_of_range;
    *(double *)member = value;
    return NULL;
}

static const char *parse_fraction(const struct config_row *row, void *member, const char *text)
{
    const size_t over = strcspn(text, "/");
    const char *under = text + over + 1;
    double a, b = 1;
    if (!number_read(text, over, &a) || (text[over] && !number_read(under, strlen(under), &b)))
        return "is not a number or fraction";
    if (b == 0 || !in_range(row, a / b))
        return out_of_range;
    ((struct fraction *)member)->value = a / b;
    return NULL;
}

static const char *parse_percent(const struct config_row *row, void *member, const char *text)
{
    const size_t n = strcspn(text, "%");
    int value;
    if (strcmp(text + n, "%") != 0 || !whole_read(text, n, &value))
        return "is not a whole number with a %";
    if (!in_range(row, value))
        return out_of_range;
    ((struct percent *)member)->n = value;
    return NULL;
}

static const char *parse_choice(const struct config_row *row, void *member, const char *text)
{
    for (const struct config_choice *c = row->choices; c->name; c++) {
        if (!strcmp(c->name, text)) {
            *(int *)member = c->value; // an enum is as large as an int
            return NULL;
        }
    }
    return "is not one of the choices";
}

static const char *read_quantity(const struct config_row *row, const char *text,
                                 const struct unit_name *units, double *ret)
{
    if (is_zero_word(row, text))
        return NULL;
    const char *wrong = quantity_read(text, units, ret);
    return wrong ? wrong : in_range(row, *ret) ? NULL : out_of_range;
}

static const char *parse_duration(const struct config_row *row, void *member, const char *text)
{
    double seconds = 0;
    const char *wrong = read_quantity(row, text, duration_units, &seconds);
    if (!wrong)
        ((struct duration *)member)->ns = llround(seconds * 1e9);
    return wrong;
}

static const char *parse_bytes(const struct config_row *row, void *member, const char *text)
{
    double bytes = 0;
    const char *wrong = read_quantity(row, text, size_units, &bytes);
    if (!wrong)
        ((struct bytes *)member)->n = llround(bytes);
    return wrong;
}

static const char *parse_batch_wait(const struct config_row *row, void *member, const char *text)
{
    const bool automatic = !strcmp(text, "auto");
    double seconds = 0;
    const char *wrong = automatic ? NULL : read_quantity(row, text, duration_units, &seconds);
    if (!wrong)
        ((struct batch_wait *)member)->ns = automatic ? WAIT_AUTO : llround(seconds * 1e9);
    return wrong;
}

// A size if its unit is one of bytes, else a duration within the row's limits.
static const struct config_row split_size = {.min = 0x1p20, .max = 0x1p40};

static const char *parse_split(const struct config_row *row, void *member, const char *text)
{
    const char *unit = text + strspn(text, "0123456789.");
    const bool bytes = strlen(unit) == 3 && !strcmp(unit + 1, "iB");
    double value = 0;
    const char *wrong = NULL;
    if (strcmp(text, "0") != 0)
        wrong =
            read_quantity(bytes ? &split_size : row, text, bytes ? size_units : span_units, &value);
    if (!wrong)
        *(struct split *)member = bytes ? (struct split){.bytes = llround(value)}
                                        : (struct split){.ns = llround(value * 1e9)};
    return wrong;
}

static const char *parse_dimensions(const struct config_row *row, void *member, const char *text)
{
    const char *x = strchr(text, 'x');
    struct dimensions d = {0};
    if (!is_zero_word(row, text)) {
        if (!x || !whole_read(text, (size_t)(x - text), &d.width) ||
            !whole_read(x + 1, strlen(x + 1), &d.height))
            return "is not WIDTHxHEIGHT";
        if (!in_range(row, d.width) || !in_range(row, d.height))
            return out_of_range;
    }
    *(struct dimensions *)member = d;
    return NULL;
}

static const char *parse_filemode(const struct config_row *row, void *member, const char *text)
{
    const size_t digits = strspn(text, "01234567");
    if (text[digits] || digits < 3 || digits > 4)
        return "is not an octal mode";
    const long mode = strtol(text, NULL, 8);
    if (!in_range(row, (double)mode))
        return out_of_range;
    ((struct filemode *)member)->mode = (int)mode;
    return NULL;
}

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, tolower(c)) : NULL;
    return at ? (int)(at - digits) : -1;
}

// Colons may stand between the bytes, as openssl prints them.
static const char *parse_fingerprint(const struct config_row *row, void *member, const char *text)
{
    (void)row;
    struct fingerprint fingerprint = {.set = true};
    for (size_t i = 0; i < sizeof fingerprint.sha256; i++) {
        text += i > 0 && *text == ':';
        const int high = hex_digit(text[0]), low = high < 0 ? -1 : hex_digit(text[1]);
        if (low < 0)
            return "is not a SHA-256 fingerprint";
        fingerprint.sha256[i] = (uint8_t)(high << 4 | low);
        text += 2;
    }
    if (*text)
        return "is not a SHA-256 fingerprint";
    *(struct fingerprint *)member = fingerprint;
    return NULL;
}

// Reads the whole number at *at, and moves *at behind it. More than 9 digits give INT_MAX, which is
// out of any range.
static bool read_processor(const char **at, int *ret)
{
    const char *from = *at;
    const size_t n = strspn(from, "0123456789");
    *at += n;
    *ret = INT_MAX;
    return n > 9 ? *from != '0' : whole_read(from, n, ret);
}

// Parses "auto", "none" or processors and runs of them: "0-3,8".
static const char *parse_pin(const struct config_row *row, void *member, const char *text)
{
    static const char no_list[] = "is not a list of processors";
    const bool automatic = !strcmp(text, "auto"), none = !strcmp(text, "none");
    struct pin pin = {.how = none ? PINNING_NONE : automatic ? PINNING_AUTO : PINNING_LIST};
    const char *at = text;
    while (pin.how == PINNING_LIST) {
        int first, last;
        if (!read_processor(&at, &first))
            return no_list;
        last = first;
        if (*at == '-' && (at++, !read_processor(&at, &last)))
            return no_list;
        if (*at && *at != ',')
            return no_list;
        if (!in_range(row, first) || !in_range(row, last))
            return out_of_range;
        if (last < first)
            return no_list;
        for (int i = first; i <= last; i++)
            processors_add(&pin.list, i);
        if (!*at++)
            break;
    }
    *(struct pin *)member = pin;
    return NULL;
}

// Parses "auto", a number, or a UUID as nvidia-smi prints it: GPU-, then 32 hex digits in groups of
// 8, 4, 4, 4 and 12.
static const char *parse_gpu(const struct config_row *row, void *member, const char *text)
{
    static const char no_gpu[] = "is neither a number nor a UUID of a GPU";
    struct gpu_choice gpu = {.by = GPU_AUTO};
    if (strncmp(text, "GPU-", 4) == 0) {
        gpu.by = GPU_BY_UUID;
        text += 4;
        for (size_t i = 0; i < sizeof gpu.uuid; i++) {
            if ((i == 4 || i == 6 || i == 8 || i == 10) && *text++ != '-')
                return no_gpu;
            const int high = hex_digit(text[0]), low = high < 0 ? -1 : hex_digit(text[1]);
            if (low < 0)
                return no_gpu;
            gpu.uuid[i] = (uint8_t)(high << 4 | low);
            text += 2;
        }
        if (*text)
            return no_gpu;
    } else if (strcmp(text, "auto") != 0) {
        gpu.by = GPU_BY_NUMBER;
        if (!whole_read(text, strlen(text), &gpu.number))
            return no_gpu;
        if (!in_range(row, gpu.number))
            return out_of_range;
    }
    *(struct gpu_choice *)member = gpu;
    return NULL;
}

// Does not check that libavcodec has a decoder of that name.
static const char *parse_decoder(const struct config_row *row, void *member, const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    static const char not_a_decoder[] = "is not one of the choices";
    static const char *const words[] = {"auto", "cpu", "nvdec"};
    const size_t length = strspn(text, letters);
    struct decoder_choice decoder = {.by = DECODE_HARDWARE};
    (void)row;
    if (length == 0 || length >= DECODER_NAME_MAX || (text[length] && text[length] != ':'))
        return not_a_decoder;
    memcpy(decoder.name, text, length);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(decoder.name, words[i]) == 0)
            decoder = (struct decoder_choice){.by = (enum decode)i};
    if (text[length]) {
        text += length + 1;
        const size_t bytes = strspn(text, NAME_CHARACTERS "/.,:");
        if (decoder.by != DECODE_HARDWARE || bytes == 0 || bytes >= DECODER_DEVICE_MAX ||
            text[bytes])
            return not_a_decoder;
        memcpy(decoder.device, text, strlen(text));
    }
    *(struct decoder_choice *)member = decoder;
    return NULL;
}

static bool equal_decoder(const void *a, const void *b)
{
    const struct decoder_choice *p = a, *q = b;
    return p->by == q->by && !strcmp(p->name, q->name) && !strcmp(p->device, q->device);
}

static bool equal_gpu(const void *a, const void *b)
{
    const struct gpu_choice *p = a, *q = b;
    return p->by == q->by && p->number == q->number && !memcmp(p->uuid, q->uuid, sizeof p->uuid);
}

static bool equal_number(const void *a, const void *b)
{
    return *(const double *)a == *(const double *)b;
}

static bool equal_pin(const void *a, const void *b)
{
    const struct pin *p = a, *q = b;
    return p->how == q->how && !memcmp(&p->list, &q->list, sizeof p->list);
}

// --- lists

// Reads `n` numbers; `whole` if they count pixels or levels.
static const char *read_list(const struct config_row *row, const char *const text[], int n,
                             bool whole, double ret[])
{
    for (int i = 0; i < n; i++) {
        const size_t length = strlen(text[i]);
        int number = 0;
        if (whole ? !whole_read(text[i], length, &number) : !number_read(text[i], length, &ret[i]))
            return whole ? "has an entry that is not a whole number"
                         : "has an entry that is not a number";
        if (whole)
            ret[i] = number;
        if (!in_range(row, ret[i]))
            return out_of_range;
    }
    return NULL;
}

static const char *parse_levels(const struct config_row *row, void *member,
                                const char *const text[], int n)
{
    double v[3];
    struct levels levels = {.n = n};
    if (n == 1 && !strcmp(text[0], "mean")) {
        *(struct levels *)member = (struct levels){.mean = true};
        return NULL;
    }
    const char *wrong = read_list(row, text, n, true, v);
    if (wrong)
        return wrong;
    for (int i = 0; i < n; i++)
        levels.v[i] = (uint8_t)v[i];
    *(struct levels *)member = levels;
    return NULL;
}

static bool equal_levels(const void *a, const void *b)
{
    const struct levels *p = a, *q = b;
    return p->mean == q->mean && p->n == q->n && !memcmp(p->v, q->v, (size_t)p->n * sizeof p->v[0]);
}

static const char *parse_channels(const struct config_row *row, void *member,
                                  const char *const text[], int n)
{
    struct channels channels = {.n = n};
    const char *wrong = read_list(row, text, n, false, channels.v);
    if (!wrong)
        *(struct channels *)member = channels;
    return wrong;
}

static bool equal_numbers(const double a[], const double b[], int n)
{
    for (int i = 0; i < n; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

static bool equal_channels(const void *a, const void *b)
{
    const struct channels *p = a, *q = b;
    return p->n == q->n && equal_numbers(p->v, q->v, p->n);
}

static const char *parse_affine(const struct config_row *row, void *member,
                                const char *const text[], int n)
{
    struct affine affine = {.set = true};
    const char *wrong = read_list(row, text, n, false, affine.m);
    if (!wrong)
        *(struct affine *)member = affine;
    return wrong;
}

static bool equal_affine(const void *a, const void *b)
{
    const struct affine *p = a, *q = b;
    return p->set == q->set && (!p->set || equal_numbers(p->m, q->m, 6));
}

static const char *parse_crop(const struct config_row *row, void *member, const char *const text[],
                              int n)
{
    double v[4];
    const char *wrong = read_list(row, text, n, true, v);
    if (wrong)
        return wrong;
    if (v[2] < 1 || v[3] < 1)
        return "has no area";
    *(struct crop *)member = (struct crop){true, {(int)v[0], (int)v[1], (int)v[2], (int)v[3]}};
    return NULL;
}

static bool equal_crop(const void *a, const void *b)
{
    const struct crop *p = a, *q = b;
    return p->set == q->set && (!p->set || !memcmp(&p->rect, &q->rect, sizeof p->rect));
}

// Parses numbers of GPUs, each once, or the row's word for all of them.
static const char *parse_gpus(const struct config_row *row, void *member, const char *const text[],
                              int n)
{
    double v[GPUS_MAX];
    struct gpu_list gpus = {0};
    const bool all = n == 1 && is_zero_word(row, text[0]);
    const char *wrong = all ? NULL : read_list(row, text, n, true, v);
    for (int i = 0; !wrong && !all && i < n; i++) {
        for (int before = 0; before < i; before++)
            wrong = v[before] == v[i] ? "names a GPU twice" : wrong;
        gpus.number[gpus.n++] = (int)v[i];
    }
    if (!wrong)
        *(struct gpu_list *)member = gpus;
    return wrong;
}

static bool equal_gpus(const void *a, const void *b)
{
    const struct gpu_list *p = a, *q = b;
    return p->n == q->n && !memcmp(p->number, q->number, (size_t)p->n * sizeof p->number[0]);
}

static const char *parse_class(const struct config_row *row, struct class_choice *ret,
                               const char *text)
{
    const size_t length = strlen(text);
    if (whole_read(text, length, &ret->number))
        return in_range(row, ret->number) ? NULL : out_of_range;
    if (length == 0 || length >= sizeof ret->name)
        return "has an entry that is neither a number nor a label of 1 to 31 bytes";
    memcpy(ret->name, text, length);
    return NULL;
}

static const char *parse_classes(const struct config_row *row, void *member,
                                 const char *const text[], int n)
{
    struct classes classes = {0};
    const bool all = n == 1 && is_zero_word(row, text[0]);
    const char *wrong = NULL;
    for (int i = 0; !wrong && !all && i < n; i++)
        wrong = parse_class(row, &classes.list[classes.n++], text[i]);
    if (!wrong)
        *(struct classes *)member = classes;
    return wrong;
}

static bool equal_classes(const void *a, const void *b)
{
    const struct classes *p = a, *q = b;
    return p->n == q->n && !memcmp(p->list, q->list, (size_t)p->n * sizeof p->list[0]);
}

static const char *parse_endpoints(const struct config_row *row, void *member,
                                   const char *const text[], int n)
{
    (void)row;
    return endpoints_parse(member, text, n);
}

static int add_node_label(const struct config_row *row, void *member, const char *name,
                          const char *const text[], struct place place, const char **wrong)
{
    (void)row, (void)place;
    return node_labels_add(member, name, text[0], wrong);
}

static void free_node_labels(void *member)
{
    *(struct node_labels *)member = (struct node_labels){0};
}

// --- values that own memory

static void free_string(void *member)
{
    free(*(char **)member);
    *(char **)member = NULL;
}

static const char *parse_string(const struct config_row *row, void *member, const char *text)
{
    if (is_zero_word(row, text)) {
        free_string(member);
        return NULL;
    }
    if (!*text)
        return "is empty";
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c < ' ' || *c == 127)
            return "contains a control character";
    }
    char *copy = strdup(text);
    if (!copy)
        return out_of_memory;
    free(*(char **)member);
    *(char **)member = copy;
    return NULL;
}

static bool equal_string(const void *a, const void *b)
{
    const char *p = *(char *const *)a, *q = *(char *const *)b;
    return p && q ? !strcmp(p, q) : p == q;
}

static int own_string(void *member)
{
    char **text = member;
    if (!*text)
        return 0;
    *text = strdup(*text);
    return *text ? 0 : -ENOMEM;
}

// A control_address and an http_address begin with a sink_address, so all share these functions.
static const char *set_address(void *member, const void *address, size_t size, int status,
                               const char *wrong)
{
    if (status == 0) {
        address_free(member);
        memcpy(member, address, size);
    }
    return status == -ENOMEM ? out_of_memory : wrong;
}

static const char *parse_sink(const struct config_row *row, void *member, const char *text)
{
    (void)row;
    struct sink_address address;
    const char *wrong = NULL;
    int status = address_parse(&address, text, &wrong);
    return set_address(member, &address, sizeof address, status, wrong);
}

static const char *parse_control(const struct config_row *row, void *member, const char *text)
{
    (void)row;
    struct control_address address;
    const char *wrong = NULL;
    int status = address_parse_control(&address, text, &wrong);
    return set_address(member, &address, sizeof address, status, wrong);
}

static const char *parse_http(const struct config_row *row, void *member, const char *text)
{
    (void)row;
    struct http_address address;
    const char *wrong = NULL;
    int status = address_parse_http(&address, text, &wrong);
    return set_address(member, &address, sizeof address, status, wrong);
}

static bool equal_address(const void *a, const void *b)
{
    return address_equal(a, b);
}

static int own_address(void *member)
{
    const struct sink_address shared = *(struct sink_address *)member;
    return address_copy(member, &shared);
}

static void free_address(void *member)
{
    address_free(member);
}

static bool equal_control(const void *a, const void *b)
{
    const struct control_address *p = a, *q = b;
    return p->off == q->off && address_equal(&p->at, &q->at);
}

static const char *parse_name_patterns(const struct config_row *row, void *member,
                                       const char *const text[], int n)
{
    (void)row;
    struct name_patterns patterns;
    const char *wrong = NULL;
    const int status = name_patterns_parse(&patterns, text, n, &wrong);
    if (status == 0) {
        name_patterns_free(member);
        *(struct name_patterns *)member = patterns;
    }
    return status == -ENOMEM ? out_of_memory : wrong;
}

static bool equal_name_patterns(const void *a, const void *b)
{
    return name_patterns_equal(a, b);
}

static int own_name_patterns(void *member)
{
    const struct name_patterns shared = *(struct name_patterns *)member;
    return name_patterns_copy(member, &shared);
}

static void free_name_patterns(void *member)
{
    name_patterns_free(member);
}

static const char *parse_labels(const struct config_row *row, void *member,
                                const char *const text[], int n)
{
    (void)row;
    struct labels labels;
    const char *wrong = NULL;
    const int status = labels_parse(&labels, text, n, &wrong);
    if (status == 0) {
        text_list_free(member);
        *(struct labels *)member = labels;
    }
    return status == -ENOMEM ? out_of_memory : wrong;
}

static const char *parse_program(const struct config_row *row, void *member,
                                 const char *const text[], int n)
{
    (void)row;
    struct program program;
    const char *wrong = NULL;
    const int status = program_parse(&program, text, n, &wrong);
    if (status == 0) {
        text_list_free(member);
        *(struct program *)member = program;
    }
    return status == -ENOMEM ? out_of_memory : wrong;
}

// Functions for labels and a program, which are both a list of texts.
static bool equal_texts(const void *a, const void *b)
{
    return text_list_equal(a, b);
}

static int own_texts(void *member)
{
    const struct text_list shared = *(struct text_list *)member;
    return text_list_copy(member, &shared);
}

static void free_texts(void *member)
{
    text_list_free(member);
}

static const char *parse_polygons(const struct config_row *row, void *member,
                                  const char *const text[], int n)
{
    (void)row;
    struct polygons polygons;
    const char *wrong = NULL;
    const int status = polygons_parse(&polygons, text, n, &wrong);
    if (status == 0) {
        polygons_free(member);
        *(struct polygons *)member = polygons;
    }
    return status == -ENOMEM ? out_of_memory : wrong;
}

static bool equal_polygons(const void *a, const void *b)
{
    return polygons_equal(a, b);
}

static int own_polygons(void *member)
{
    const struct polygons shared = *(struct polygons *)member;
    return polygons_copy(member, &shared);
}

static void free_polygons(void *member)
{
    polygons_free(member);
}

static int add_option(const struct config_row *row, void *member, const char *name,
                      const char *const text[], struct place place, const char **wrong)
{
    (void)row, (void)wrong;
    struct demuxer_options *options = member;
    for (int i = 0; i < options->n; i++)
        if (!strcmp(options->list[i].name, name))
            return -EEXIST;
    if (!options->list)
        options->list = calloc(OPTIONS_MAX, sizeof *options->list);
    char *copy = strdup(name), *value = strdup(text[0]);
    if (!options->list || !copy || !value) {
        free(copy);
        secret_free(value);
        return -ENOMEM;
    }
    options->list[options->n++] = (struct demuxer_option){copy, value, place};
    return 0;
}

// Compares the order too, in which the demuxer gets them.
static bool equal_options(const void *a, const void *b)
{
    const struct demuxer_options *p = a, *q = b;
    bool equal = p->n == q->n;
    for (int i = 0; equal && i < p->n; i++)
        equal = !strcmp(p->list[i].name, q->list[i].name) &&
                !strcmp(p->list[i].value, q->list[i].value);
    return equal;
}

static void free_options(void *member)
{
    struct demuxer_options *options = member;
    for (int i = 0; i < options->n; i++) {
        free(options->list[i].name);
        secret_free(options->list[i].value);
    }
    free(options->list);
    *options = (struct demuxer_options){0};
}

static int own_options(void *member)
{
    struct demuxer_options *options = member;
    const struct demuxer_options shared = *options;
    *options = (struct demuxer_options){0};
    for (int i = 0; i < shared.n; i++) {
        const struct demuxer_option *option = &shared.list[i];
        if (add_option(NULL, options, option->name, (const char *const *)&option->value,
                       option->place, NULL) < 0) {
            free_options(options);
            return -ENOMEM;
        }
    }
    return 0;
}

static int add_roi(const struct config_row *row, void *member, const char *name,
                   const char *const text[], struct place place, const char **wrong)
{
    (void)place;
    struct crop crop;
    *wrong = parse_crop(row, &crop, text, 4);
    return *wrong ? -EINVAL : rois_add(member, name, crop.rect, wrong);
}

static bool equal_rois(const void *a, const void *b)
{
    return rois_equal(a, b);
}

static int own_rois(void *member)
{
    const struct rois shared = *(struct rois *)member;
    return rois_copy(member, &shared);
}

static void free_rois(void *member)
{
    rois_free(member);
}

static const char *parse_roi(const struct config_row *row, void *member, const char *text)
{
    return parse_string(row, &((struct roi_choice *)member)->name, text);
}

// Different regions under one name are different values.
static bool equal_roi(const void *a, const void *b)
{
    const struct roi_choice *p = a, *q = b;
    return equal_string(&p->name, &q->name) && rois_equal(&p->chosen, &q->chosen);
}

static void free_roi(void *member)
{
    struct roi_choice *roi = member;
    free_string(&roi->name);
    rois_free(&roi->chosen);
}

static int own_roi(void *member)
{
    struct roi_choice *roi = member;
    const int chosen = own_rois(&roi->chosen), name = own_string(&roi->name);
    if (chosen < 0 || name < 0)
        free_roi(roi);
    return chosen < 0 ? chosen : name;
}

// Refuses a dot after the slash: the file made beside it in /dev/shm has one before the name.
static const char *parse_shared(const struct config_row *row, void *member, const char *text)
{
    const size_t length = strlen(text);
    if (text[0] != '/')
        return "does not begin with a slash";
    if (length > SHARED_NAME_MAX)
        return "is too long";
    if (length < 2 || text[1] == '.' || strspn(text + 1, NAME_CHARACTERS ".") != length - 1)
        return "is not the name of a shared memory object";
    return parse_string(row, &((struct shared_name *)member)->name, text);
}

static bool equal_shared(const void *a, const void *b)
{
    const struct shared_name *p = a, *q = b;
    return equal_string(&p->name, &q->name);
}

static int own_shared(void *member)
{
    return own_string(&((struct shared_name *)member)->name);
}

static void free_shared(void *member)
{
    free_string(&((struct shared_name *)member)->name);
}

// The file is read after all keys beside it.
static const char *parse_lut(const struct config_row *row, void *member, const char *text)
{
    return parse_string(row, &((struct lut_file *)member)->path, text);
}

// A file whose content has changed is a different value.
static bool equal_lut(const void *a, const void *b)
{
    const struct lut_file *p = a, *q = b;
    return equal_string(&p->path, &q->path) && lut_equal(p->lut, q->lut);
}

static int own_lut(void *member)
{
    struct lut_file *file = member;
    lut_ref(file->lut);
    return own_string(&file->path);
}

static void free_lut(void *member)
{
    struct lut_file *file = member;
    lut_unref(file->lut);
    file->lut = NULL;
    free_string(&file->path);
}

// --- the table

#define TEXT(number)    #number
#define TEXT_OF(number) TEXT(number)

static const struct type {
    const char *allowed, *schemas; // allowed values of a row, for describe_print
    const char *(*parse)(const struct config_row *, void *member, const char *text);
    const char *(*parse_list)(const struct config_row *, void *member, const char *const text[],
                              int n);
    int list;     // entries of a list; 0: never a list
    bool single;  // may also be one entry without brackets
    bool shorter; // may be a list of fewer entries
    bool quoted;  // its default is a text in JSON, though it may look like a number
    bool text;    // value_is_text
    size_t size;  // of a member that is equal if its bytes are; else 0, and `equal` is set
    bool (*equal)(const void *a, const void *b);
    int (*own)(void *member); // types that own memory have it and `free`
    void (*free)(void *member);
    // Maps: most pairs, entries of each value, and the function that adds a pair.
    int pairs, entries;
    int (*add)(const struct config_row *, void *member, const char *name, const char *const text[],
               struct place, const char **wrong);
} types[VALUE_TYPES] = {
    [VALUE_BOOL] = {"true | false", "{\"type\": \"boolean\"}", parse_bool, .size = sizeof(bool)},
    [VALUE_INT] = {"@range", "@integer", parse_int, .size = sizeof(int)},
    [VALUE_NUMBER] = {"@range", "@number", parse_number, .equal = equal_number},
    [VALUE_CHOICE] = {"@choices", "{\"enum\": [@names]}", parse_choice, .size = sizeof(int)},
    [VALUE_FRACTION] = {"a number or a fraction like 1/255, @range",
                        "@number, {\"type\": \"string\", "
                        "\"pattern\": \"^[0-9.eE+-]+/[0-9.eE+-]+$\"}",
                        parse_fraction, .equal = equal_number},
    [VALUE_DURATION] = {"@durations", "@duration", parse_duration, .quoted = true,
                        .size = sizeof(struct duration)},
    [VALUE_BYTES] = {"@sizes", "@size", parse_bytes, .quoted = true, .size = sizeof(struct bytes)},
    [VALUE_SPLIT] = {"0, @spans; or 1MiB to 1024GiB; units GiB, MiB, KiB",
                     "{\"enum\": [0, \"0\"]}, @span, @size", parse_split, .quoted = true,
                     .size = sizeof(struct split)},
    [VALUE_PERCENT] = {"@range", "{\"type\": \"string\", \"pattern\": \"^[0-9]+%$\"}",
                       parse_percent, .quoted = true, .size = sizeof(struct percent)},
    [VALUE_CLASSES] =
        {"a number or label, or a list such as [2, car], numbers @range",
         "@integer, {\"type\": \"string\", \"minLength\": 1}, {\"type\": \"array\", \"items\": "
         "{\"anyOf\": [@integer, {\"type\": \"string\", \"minLength\": 1}]}, \"minItems\": 1, "
         "\"maxItems\": " TEXT_OF(CLASSES_MAX) "}",
         .parse_list = parse_classes, .list = CLASSES_MAX, .shorter = true, .single = true,
         .equal = equal_classes},
    [VALUE_BATCH_WAIT] = {"auto, or @durations", "{\"const\": \"auto\"}, @duration",
                          parse_batch_wait, .quoted = true, .size = sizeof(struct batch_wait)},
    [VALUE_NAME_PATTERNS] =
        {"1 to " TEXT_OF(
             NAME_PATTERNS_MAX) " names of cameras with * and ? in quotes; \"!NAME\" takes out",
         "{\"$ref\": \"#/definitions/pattern\"}, {\"type\": \"array\", \"items\": {\"anyOf\": "
         "[{\"$ref\": \"#/definitions/pattern\"}, {\"$ref\": \"#/definitions/expanded\"}]}, "
         "\"minItems\": 1, \"maxItems\": " TEXT_OF(NAME_PATTERNS_MAX) "}",
         .parse_list = parse_name_patterns, .list = NAME_PATTERNS_MAX, .single = true,
         .shorter = true, .equal = equal_name_patterns, .own = own_name_patterns,
         .free = free_name_patterns},
    [VALUE_LABELS] = {"1 to " TEXT_OF(LABELS_MAX) " texts, the first of class 0",
                      "{\"type\": \"string\", \"minLength\": 1}, {\"type\": \"array\", \"items\": "
                      "{\"type\": [\"string\", \"number\", \"boolean\"]}, \"minItems\": 1, "
                      "\"maxItems\": " TEXT_OF(LABELS_MAX) "}",
                      .parse_list = parse_labels, .list = LABELS_MAX, .single = true,
                      .shorter = true, .equal = equal_texts, .own = own_texts, .free = free_texts},
    [VALUE_PROGRAM] = {"a line for /bin/sh, or [/PROGRAM, ARGUMENT...], up to " TEXT_OF(
                           PROGRAM_MAX) " texts",
                       "{\"type\": \"string\", \"minLength\": 1}, {\"type\": \"array\", \"items\": "
                       "{\"type\": [\"string\", \"number\", \"boolean\"]}, \"minItems\": 1, "
                       "\"maxItems\": " TEXT_OF(PROGRAM_MAX) "}",
                       .parse_list = parse_program, .list = PROGRAM_MAX, .single = true,
                       .shorter = true, .text = true, .equal = equal_texts, .own = own_texts,
                       .free = free_texts},
    [VALUE_DIMENSIONS] = {"WIDTHxHEIGHT, each @range",
                          "{\"type\": \"string\", \"pattern\": \"^[1-9][0-9]*x[1-9][0-9]*$\"}",
                          parse_dimensions, .size = sizeof(struct dimensions)},
    // YAML 1.1 reads 0660 as an octal number, YAML 1.2 as a decimal one.
    [VALUE_FILEMODE] = {"octal, 0000 to 0777",
                        "{\"type\": \"integer\", \"minimum\": 0, \"maximum\": 777}, "
                        "{\"type\": \"string\", \"pattern\": \"^0?[0-7]{3}$\"}",
                        parse_filemode, .quoted = true, .size = sizeof(struct filemode)},
    [VALUE_FINGERPRINT] = {"64 hex digits, with or without colons between the bytes",
                           "{\"type\": \"string\", \"pattern\": "
                           "\"^[0-9a-fA-F]{2}(:?[0-9a-fA-F]{2}){31}$\"}",
                           parse_fingerprint, .quoted = true, .size = sizeof(struct fingerprint)},
    [VALUE_PIN] = {"auto | none | numbers @range and runs like \"0-3,8\"",
                   "@integer, {\"type\": \"string\", \"pattern\": "
                   "\"^(auto|none|[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)$\"}",
                   parse_pin, .equal = equal_pin},
    [VALUE_GPUS] =
        {"one number or a list such as [0, 1], @range",
         "@integer, {\"type\": \"array\", \"items\": {\"anyOf\": [@integer, "
         "{\"$ref\": \"#/definitions/expanded\"}]}, \"minItems\": 1, \"maxItems\": " TEXT_OF(
             GPUS_MAX) ", \"uniqueItems\": true}",
         .parse_list = parse_gpus, .list = GPUS_MAX, .shorter = true, .single = true,
         .equal = equal_gpus},
    [VALUE_GPU] =
        {"auto, @range, or a UUID: GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
         "@integer, {\"type\": \"string\", \"pattern\": \"^(auto|[0-9]+|GPU-[0-9a-fA-F]{8}"
         "(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$\"}",
         parse_gpu, .equal = equal_gpu},
    [VALUE_DECODER] = {"auto | cpu | nvdec | vaapi | qsv | v4l2m2m | rkmpp | another hardware "
                       "decoder's name; :DEVICE may follow the last five",
                       "{\"type\": \"string\", \"pattern\": "
                       "\"^[a-z0-9_]{1,23}(:[A-Za-z0-9/_.,:-]{1,95})?$\"}",
                       parse_decoder, .equal = equal_decoder},
    [VALUE_LEVELS] = {"mean, or one or a list of three, @range",
                      "@integer, @integer3, {\"const\": \"mean\"}", .parse_list = parse_levels,
                      .list = 3, .single = true, .equal = equal_levels},
    [VALUE_CHANNELS] = {"one or a list of three, @range", "@number, @number3",
                        .parse_list = parse_channels, .list = 3, .single = true,
                        .equal = equal_channels},
    [VALUE_AFFINE] = {"six numbers, @range", "@number6", .parse_list = parse_affine, .list = 6,
                      .equal = equal_affine},
    [VALUE_CROP] = {"[x, y, width, height] in pixels", "@integer4", .parse_list = parse_crop,
                    .list = 4, .equal = equal_crop},
    [VALUE_STRING] = {"text", "{\"type\": \"string\", \"minLength\": 1}", parse_string,
                      .text = true, .equal = equal_string, .own = own_string, .free = free_string},
    [VALUE_SINK] = {"unix:PATH, ring:PATH, tcp:HOST:PORT, tcp:PORT, file:PATH or rtsp://HOST/PATH",
                    "{\"type\": \"string\", \"pattern\": \"^(unix|ring|tcp|file|rtsp):.\"}",
                    parse_sink, .equal = equal_address, .own = own_address, .free = free_address},
    // YAML 1.1 reads off as false.
    [VALUE_CONTROL] = {"auto | off | a path",
                       "{\"enum\": [\"auto\", \"off\", false]}, "
                       "{\"type\": \"string\", \"pattern\": \"/\"}",
                       parse_control, .equal = equal_control, .own = own_address,
                       .free = free_address},
    [VALUE_HTTP] = {"off, HOST:PORT, PORT (on loopback) or unix:PATH",
                    "{\"type\": \"integer\", \"minimum\": 0, \"maximum\": 65535}, "
                    "{\"const\": false}, {\"type\": \"string\", \"pattern\": "
                    "\"^(off|unix:.+|(.+:)?[0-9]{1,5})$\"}",
                    parse_http, .equal = equal_address, .own = own_address, .free = free_address},
    [VALUE_OPTIONS] = {"up to " TEXT_OF(OPTIONS_MAX) " of name: value",
                       "{\"type\": \"object\", \"maxProperties\": " TEXT_OF(
                           OPTIONS_MAX) ", \"additionalProperties\": "
                                        "{\"type\": [\"string\", \"number\", \"boolean\"]}}",
                       .text = true, .equal = equal_options, .own = own_options,
                       .free = free_options, .pairs = OPTIONS_MAX, .entries = 1, .add = add_option},
    [VALUE_ENDPOINTS] =
        {"1 to " TEXT_OF(ENDPOINTS_MAX) " of http://HOST:PORT or https://HOST:PORT",
         "{\"$ref\": \"#/definitions/endpoint\"}, {\"type\": \"array\", \"items\": {\"anyOf\": "
         "[{\"$ref\": \"#/definitions/endpoint\"}, {\"$ref\": \"#/definitions/expanded\"}]}, "
         "\"minItems\": 1, \"maxItems\": " TEXT_OF(ENDPOINTS_MAX) ", \"uniqueItems\": true}",
         .parse_list = parse_endpoints, .list = ENDPOINTS_MAX, .single = true, .shorter = true,
         .size = sizeof(struct endpoints)},
    [VALUE_NODE_LABELS] =
        {"up to " TEXT_OF(NODE_LABELS_MAX) " of name: label, of A-Z a-z 0-9 . _ -",
         "{\"type\": \"object\", \"maxProperties\": " TEXT_OF(
             NODE_LABELS_MAX) ", \"patternProperties\": {\"^[A-Za-z0-9._-]{1,31}$\": "
                              "{\"anyOf\": [{\"type\": [\"integer\", \"boolean\"]}, {\"type\": "
                              "\"string\", \"pattern\": \"^[A-Za-z0-9._-]{1,63}$\"}, "
                              "{\"$ref\": \"#/definitions/expanded\"}]}}, "
                              "\"additionalProperties\": false}",
         .size = sizeof(struct node_labels), .free = free_node_labels, .pairs = NODE_LABELS_MAX,
         .entries = 1, .add = add_node_label},
    [VALUE_ROIS] =
        {"up to " TEXT_OF(ROIS_MAX) " of name: [x, y, width, height] in pixels",
         "{\"type\": \"object\", \"maxProperties\": " TEXT_OF(
             ROIS_MAX) ", \"patternProperties\": {\"^[A-Za-z0-9_-]{1,23}$\": @integer4}, "
                       "\"additionalProperties\": false, "
                       "\"not\": {\"required\": [\"" ROI_ALL "\"]}}",
         .equal = equal_rois, .own = own_rois, .free = free_rois, .pairs = ROIS_MAX, .entries = 4,
         .add = add_roi},
    [VALUE_POLYGONS] =
        {"1 to " TEXT_OF(POLYGONS_MAX) " polygons, each 3 to " TEXT_OF(
             POLYGON_POINTS_MAX) " points in pixels: [\"x,y x,y x,y\"]",
         "{\"$ref\": \"#/definitions/polygon\"}, {\"type\": \"array\", \"items\": {\"anyOf\": "
         "[{\"$ref\": \"#/definitions/polygon\"}, {\"$ref\": \"#/definitions/expanded\"}]}, "
         "\"minItems\": 1, \"maxItems\": " TEXT_OF(POLYGONS_MAX) "}",
         .parse_list = parse_polygons, .list = POLYGONS_MAX, .single = true, .shorter = true,
         .equal = equal_polygons, .own = own_polygons, .free = free_polygons},
    [VALUE_ROI] = {"a name of `rois` of the camera, or " ROI_ALL,
                   "{\"type\": \"string\", \"pattern\": \"^[A-Za-z0-9_-]{1,23}$\"}", parse_roi,
                   .equal = equal_roi, .own = own_roi, .free = free_roi},
    [VALUE_SHARED] = {"a slash and 1 to 38 of A-Z a-z 0-9 . _ -, no dot behind the slash",
                      "{\"type\": \"string\", \"pattern\": "
                      "\"^/[A-Za-z0-9_-][A-Za-z0-9._-]{0,37}$\"}",
                      parse_shared, .equal = equal_shared, .own = own_shared, .free = free_shared},
    [VALUE_LUT] = {"a .cube file", "{\"type\": \"string\", \"minLength\": 1}", parse_lut,
                   .text = true, .equal = equal_lut, .own = own_lut, .free = free_lut},
};

static const struct type *type_of(const struct config_row *row)
{
    assert(row->type < VALUE_TYPES);
    return &types[row->type];
}

void *value_member(const struct config_row *row, void *object)
{
    return (char *)object + row->offset;
}

bool value_is_list(const struct config_row *row)
{
    return type_of(row)->list > 0;
}

int value_pairs(const struct config_row *row)
{
    return type_of(row)->pairs;
}

bool value_is_text(const struct config_row *row)
{
    return type_of(row)->text;
}

bool value_may_be_secret(const struct config_row *row)
{
    switch (row->type) {
    case VALUE_SINK:
    case VALUE_CONTROL:
    case VALUE_HTTP:
    case VALUE_DECODER:
    case VALUE_CLASSES:
    case VALUE_NAME_PATTERNS:
    case VALUE_LABELS:
    case VALUE_ENDPOINTS:
    case VALUE_NODE_LABELS:
    case VALUE_ROI:
    case VALUE_SHARED:
        return true;
    default:
        return value_is_text(row);
    }
}

int value_parse(const struct config_row *row, void *object, const char *const text[], int n,
                const char **wrong)
{
    const struct type *type = type_of(row);
    if (!type->list)
        *wrong = type->parse(row, value_member(row, object), text[0]);
    else if (n == type->list || (n == 1 && type->single) || (n < type->list && type->shorter))
        *wrong = type->parse_list(row, value_member(row, object), text, n);
    else
        *wrong = "has the wrong number of entries";
    return !*wrong ? 0 : *wrong == out_of_memory ? -ENOMEM : -EINVAL;
}

int value_add(const struct config_row *row, void *object, const char *name,
              const char *const text[], int n, struct place place, const char **wrong)
{
    const struct type *type = type_of(row);
    *wrong = n == type->entries ? NULL : "has the wrong number of entries";
    return *wrong ? -EINVAL : type->add(row, value_member(row, object), name, text, place, wrong);
}

bool value_equal(const struct config_row *row, const void *left, const void *right)
{
    const void *a = (const char *)left + row->offset, *b = (const char *)right + row->offset;
    const struct type *type = type_of(row);
    return type->size ? memcmp(a, b, type->size) == 0 : type->equal(a, b);
}

int value_own(const struct config_row *row, void *object)
{
    return type_of(row)->own ? type_of(row)->own(value_member(row, object)) : 0;
}

void value_free(const struct config_row *row, void *object)
{
    if (type_of(row)->free)
        type_of(row)->free(value_member(row, object));
}

void value_print_allowed(FILE *f, const struct config_row *row)
{
    if (row->zero)
        fprintf(f, "%s, or ", row->zero);
    describe_print(f, row, type_of(row)->allowed);
}

void value_print_schemas(FILE *f, const struct config_row *row)
{
    describe_print(f, row, type_of(row)->schemas);
    if (row->zero)
        fprintf(f, ", {\"const\": \"%s\"}", row->zero);
}

void value_print_default(FILE *f, const struct config_row *row)
{
    const bool number = !row->text[strspn(row->text, "0123456789.-")] && !type_of(row)->quoted;
    const char *quote = number || row->type == VALUE_BOOL ? "" : "\"";
    fprintf(f, "%s%s%s", quote, row->text, quote);
}
