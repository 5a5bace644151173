#include "config/value.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/address.h"

const struct value_unit duration_units[] = {{"h", 3600}, {"m", 60}, {"s", 1}, {"ms", 1e-3}, {0}};
const struct value_unit size_units[] = {{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {0}};

static const char out_of_range[] = "is out of range";
static const char out_of_memory[] = "needs more memory than there is";

// Each returns NULL when the text was read into the member, or what is wrong with it.
typedef const char *parse_fn(const struct row *, void *member, const char *const text[], int n);

static bool in_range(const struct row *row, double value)
{
    return (row->min == 0 && row->max == 0) || (value >= row->min && value <= row->max);
}

// A plain decimal number; what strtod takes besides (hex, inf, nan, blanks) is none.
static bool read_number(const char *text, double *ret)
{
    if (!*text || text[strspn(text, "0123456789+-.eE")])
        return false;
    char *end;
    double value = strtod(text, &end);
    if (*end || !isfinite(value))
        return false;
    *ret = value;
    return true;
}

// A whole number without leading zeros, which YAML 1.1 would read as octal.
static bool read_whole(const char *text, int *ret)
{
    const char *digits = text + (*text == '-');
    size_t n = strspn(digits, "0123456789");
    if (!n || n > 9 || digits[n] || (*digits == '0' && n > 1))
        return false;
    *ret = atoi(text);
    return true;
}

// "250ms", "8MiB", a bare 0, or the row's word for 0.
static const char *read_quantity(const struct row *row, const char *text,
                                 const struct value_unit *units, double *ret)
{
    size_t n = strspn(text, "0123456789.");
    char digits[32];
    double number = 0;
    if (row->zero && !strcmp(text, row->zero)) {
        *ret = 0;
        return NULL;
    }
    if (n >= sizeof digits)
        return out_of_range;
    memcpy(digits, text, n);
    digits[n] = 0;
    if (!read_number(digits, &number))
        return "is not a number with a unit";
    while (units->name && strcmp(units->name, text + n))
        units++;
    if (!units->name && text[n])
        return "has an unknown unit";
    if (!units->name && number != 0)
        return "has no unit";
    number *= units->name ? units->factor : 1;
    if (!in_range(row, number))
        return out_of_range;
    *ret = number;
    return NULL;
}

static const char *parse_bool(const struct row *row, void *member, const char *const text[], int n)
{
    (void)row, (void)n;
    if (strcmp(text[0], "true") && strcmp(text[0], "false"))
        return "is not a boolean";
    *(bool *)member = text[0][0] == 't';
    return NULL;
}

static const char *parse_int(const struct row *row, void *member, const char *const text[], int n)
{
    (void)n;
    int value = 0;
    if (!(row->zero && !strcmp(text[0], row->zero)) && !read_whole(text[0], &value))
        return "is not a whole number";
    if (!in_range(row, value))
        return out_of_range;
    *(int *)member = value;
    return NULL;
}

static const char *parse_number(const struct row *row, void *member, const char *const text[],
                                int n)
{
    (void)n;
    double value;
    if (!read_number(text[0], &value))
        return "is not a number";
    if (!in_range(row, value))
        return out_of_range;
    *(double *)member = value;
    return NULL;
}

static const char *parse_string(const struct row *row, void *member, const char *const text[],
                                int n)
{
    (void)row, (void)n;
    if (!*text[0])
        return "is empty";
    for (const unsigned char *c = (const unsigned char *)text[0]; *c; c++) {
        if (*c < ' ' || *c == 127)
            return "has a control character in it";
    }
    char *copy = strdup(text[0]);
    if (!copy)
        return out_of_memory;
    free(*(char **)member);
    *(char **)member = copy;
    return NULL;
}

static const char *parse_choice(const struct row *row, void *member, const char *const text[],
                                int n)
{
    (void)n;
    for (const struct choice *c = row->choices; c->name; c++) {
        if (!strcmp(c->name, text[0])) {
            *(int *)member = c->value; // an enum is as large as an int
            return NULL;
        }
    }
    return "is not one of the choices";
}

static const char *parse_duration(const struct row *row, void *member, const char *const text[],
                                  int n)
{
    (void)n;
    double seconds;
    const char *wrong = read_quantity(row, text[0], duration_units, &seconds);
    if (!wrong)
        ((struct duration *)member)->ns = llround(seconds * 1e9);
    return wrong;
}

static const char *parse_bytes(const struct row *row, void *member, const char *const text[], int n)
{
    (void)n;
    double bytes;
    const char *wrong = read_quantity(row, text[0], size_units, &bytes);
    if (!wrong)
        ((struct bytes *)member)->n = llround(bytes);
    return wrong;
}

static const char *parse_dimensions(const struct row *row, void *member, const char *const text[],
                                    int n)
{
    (void)n;
    const char *x = strchr(text[0], 'x');
    char width[16];
    struct dimensions d = {0};
    if (row->zero && !strcmp(text[0], row->zero)) {
        *(struct dimensions *)member = d;
        return NULL;
    }
    if (!x || x - text[0] >= (ptrdiff_t)sizeof width)
        return "is not WIDTHxHEIGHT";
    memcpy(width, text[0], (size_t)(x - text[0]));
    width[x - text[0]] = 0;
    if (!read_whole(width, &d.width) || !read_whole(x + 1, &d.height))
        return "is not WIDTHxHEIGHT";
    if (!in_range(row, d.width) || !in_range(row, d.height))
        return out_of_range;
    *(struct dimensions *)member = d;
    return NULL;
}

// `n` numbers, `whole` where they count pixels or levels.
static const char *read_list(const struct row *row, const char *const text[], int n, bool whole,
                             double ret[])
{
    for (int i = 0; i < n; i++) {
        int level;
        if (whole ? !read_whole(text[i], &level) : !read_number(text[i], &ret[i]))
            return whole ? "has an entry that is not a whole number"
                         : "has an entry that is not a number";
        if (whole)
            ret[i] = level;
        if (!in_range(row, ret[i]))
            return out_of_range;
    }
    return NULL;
}

static const char *parse_levels(const struct row *row, void *member, const char *const text[],
                                int n)
{
    double v[3];
    if (n != 1 && n != 3)
        return "has the wrong number of entries";
    const char *wrong = read_list(row, text, n, true, v);
    if (wrong)
        return wrong;
    struct levels *levels = member;
    *levels = (struct levels){.n = n};
    for (int i = 0; i < n; i++)
        levels->v[i] = (uint8_t)v[i];
    return NULL;
}

static const char *parse_channels(const struct row *row, void *member, const char *const text[],
                                  int n)
{
    struct channels channels = {.n = n};
    if (n != 1 && n != 3)
        return "has the wrong number of entries";
    const char *wrong = read_list(row, text, n, false, channels.v);
    if (!wrong)
        *(struct channels *)member = channels;
    return wrong;
}

static const char *parse_affine(const struct row *row, void *member, const char *const text[],
                                int n)
{
    struct affine affine = {.set = true};
    if (n != 6)
        return "has the wrong number of entries";
    const char *wrong = read_list(row, text, n, false, affine.m);
    if (!wrong)
        *(struct affine *)member = affine;
    return wrong;
}

static const char *parse_crop(const struct row *row, void *member, const char *const text[], int n)
{
    double v[4];
    if (n != 4)
        return "has the wrong number of entries";
    const char *wrong = read_list(row, text, n, true, v);
    if (wrong)
        return wrong;
    if (v[2] < 1 || v[3] < 1)
        return "has no area";
    *(struct crop *)member = (struct crop){true, {(int)v[0], (int)v[1], (int)v[2], (int)v[3]}};
    return NULL;
}

static const char *parse_fraction(const struct row *row, void *member, const char *const text[],
                                  int n)
{
    (void)n;
    const char *slash = strchr(text[0], '/');
    char over[32];
    double a, b = 1;
    size_t length = slash ? (size_t)(slash - text[0]) : strlen(text[0]);
    if (length >= sizeof over)
        return "is not a number or fraction";
    memcpy(over, text[0], length);
    over[length] = 0;
    if (!read_number(over, &a) || (slash && !read_number(slash + 1, &b)))
        return "is not a number or fraction";
    if (b == 0 || !in_range(row, a / b))
        return out_of_range;
    ((struct fraction *)member)->value = a / b;
    return NULL;
}

static const char *parse_filemode(const struct row *row, void *member, const char *const text[],
                                  int n)
{
    (void)n;
    size_t digits = strspn(text[0], "01234567");
    if (text[0][digits] || digits < 3 || digits > 4)
        return "is not an octal mode";
    long mode = strtol(text[0], NULL, 8);
    if (!in_range(row, (double)mode))
        return out_of_range;
    ((struct filemode *)member)->mode = (int)mode;
    return NULL;
}

static const char *parse_split(const struct row *row, void *member, const char *const text[], int n)
{
    (void)n;
    static const struct row sizes = {.min = (double)SPLIT_BYTES_MIN,
                                     .max = (double)SPLIT_BYTES_MAX};
    const char *unit = text[0] + strspn(text[0], "0123456789.");
    bool bytes = strlen(unit) == 3 && !strcmp(unit + 1, "iB");
    double value = 0;
    const char *wrong = !strcmp(text[0], "0") ? NULL
                        : bytes               ? read_quantity(&sizes, text[0], size_units, &value)
                                              : read_quantity(row, text[0], duration_units, &value);
    if (!wrong)
        *(struct split *)member = bytes ? (struct split){.bytes = llround(value)}
                                        : (struct split){.ns = llround(value * 1e9)};
    return wrong;
}

// The whole number at *at, which moves behind it; INT_MAX stands for one of many digits.
static bool read_next(const char **at, int *ret)
{
    char digits[8];
    const char *from = *at;
    size_t n = strspn(from, "0123456789");
    *at += n;
    *ret = INT_MAX;
    if (n >= sizeof digits)
        return *from != '0';
    memcpy(digits, from, n);
    digits[n] = 0;
    return read_whole(digits, ret);
}

static const char *parse_processors(const struct row *row, const char *at, struct processors *ret)
{
    static const char no_list[] = "is no list of processors";
    do {
        int first, last;
        if (!read_next(&at, &first))
            return no_list;
        last = first;
        if (*at == '-' && (at++, !read_next(&at, &last)))
            return no_list;
        if (*at && *at != ',')
            return no_list;
        if (!in_range(row, first) || !in_range(row, last))
            return out_of_range;
        if (last < first)
            return no_list;
        for (int i = first; i <= last; i++)
            processors_add(ret, i);
    } while (*at++ == ',');
    return NULL;
}

static const char *parse_pin(const struct row *row, void *member, const char *const text[], int n)
{
    (void)n;
    struct pin pin = {.how = PINNING_LIST};
    const char *wrong = NULL;
    if (!strcmp(text[0], "auto"))
        pin.how = PINNING_AUTO;
    else if (!strcmp(text[0], "none"))
        pin.how = PINNING_NONE;
    else
        wrong = parse_processors(row, text[0], &pin.list);
    if (!wrong)
        *(struct pin *)member = pin;
    return wrong;
}

static const char *parse_sink(const struct row *row, void *member, const char *const text[], int n)
{
    (void)row, (void)n;
    struct sink_address address;
    const char *wrong = NULL;
    if (address_parse(&address, text[0], &wrong) == -ENOMEM)
        return out_of_memory;
    if (wrong)
        return wrong;
    address_free(member);
    *(struct sink_address *)member = address;
    return NULL;
}

static const char *parse_control(const struct row *row, void *member, const char *const text[],
                                 int n)
{
    (void)row, (void)n;
    struct control_address address;
    const char *wrong = NULL;
    if (address_parse_control(&address, text[0], &wrong) == -ENOMEM)
        return out_of_memory;
    if (wrong)
        return wrong;
    address_free(&((struct control_address *)member)->at);
    *(struct control_address *)member = address;
    return NULL;
}

static const char *parse_http(const struct row *row, void *member, const char *const text[], int n)
{
    (void)row, (void)n;
    struct http_address address;
    const char *wrong = NULL;
    if (address_parse_http(&address, text[0], &wrong) == -ENOMEM)
        return out_of_memory;
    if (wrong)
        return wrong;
    address_free(&((struct http_address *)member)->at);
    *(struct http_address *)member = address;
    return NULL;
}

static const struct {
    parse_fn *parse;
    bool list; // takes more than one entry
} types[] = {
    [VALUE_BOOL] = {.parse = parse_bool},
    [VALUE_INT] = {.parse = parse_int},
    [VALUE_NUMBER] = {.parse = parse_number},
    [VALUE_STRING] = {.parse = parse_string},
    [VALUE_CHOICE] = {.parse = parse_choice},
    [VALUE_DURATION] = {.parse = parse_duration},
    [VALUE_BYTES] = {.parse = parse_bytes},
    [VALUE_DIMENSIONS] = {.parse = parse_dimensions},
    [VALUE_LEVELS] = {.parse = parse_levels, .list = true},
    [VALUE_CHANNELS] = {.parse = parse_channels, .list = true},
    [VALUE_AFFINE] = {.parse = parse_affine, .list = true},
    [VALUE_CROP] = {.parse = parse_crop, .list = true},
    [VALUE_FRACTION] = {.parse = parse_fraction},
    [VALUE_FILEMODE] = {.parse = parse_filemode},
    [VALUE_SPLIT] = {.parse = parse_split},
    [VALUE_PIN] = {.parse = parse_pin},
    [VALUE_SINK] = {.parse = parse_sink},
    [VALUE_CONTROL] = {.parse = parse_control},
    [VALUE_HTTP] = {.parse = parse_http},
};

void *value_member(const struct row *row, void *object)
{
    return (char *)object + row->offset;
}

bool value_is_list(const struct row *row)
{
    return types[row->type].list;
}

int value_parse(const struct row *row, void *object, const char *const text[], int n,
                const char **wrong)
{
    assert(n == 1 || value_is_list(row));
    *wrong = types[row->type].parse(row, value_member(row, object), text, n);
    return !*wrong ? 0 : *wrong == out_of_memory ? -ENOMEM : -EINVAL;
}
