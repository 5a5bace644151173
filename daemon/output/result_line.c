#include "daemon/output/result_line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/labels.h"

// Each function writes at `to` and returns the end. Numbers are written here, not by printf: it
// takes ten times as long, and asks the locale for the decimal point.

static char *put(char *to, const char *text)
{
    return stpcpy(to, text);
}

static char *put_unsigned(char *to, uint64_t n)
{
    char digits[20];
    int i = 0;
    do
        digits[i++] = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    while (i > 0)
        *to++ = digits[--i];
    return to;
}

static char *put_signed(char *to, int64_t n)
{
    if (n < 0)
        *to++ = '-';
    return put_unsigned(to, n < 0 ? -(uint64_t)n : (uint64_t)n);
}

// n * 10^-places, without zeros at the end.
static char *put_decimal(char *to, int64_t n, int places)
{
    uint64_t rest = n < 0 ? -(uint64_t)n : (uint64_t)n, unit = 1;
    for (int i = 0; i < places; i++)
        unit *= 10;
    if (n < 0)
        *to++ = '-';
    to = put_unsigned(to, rest / unit);
    rest %= unit;
    if (rest > 0)
        *to++ = '.';
    for (; rest > 0; rest %= unit) {
        unit /= 10;
        *to++ = (char)('0' + rest / unit);
    }
    return to;
}

static int64_t round_to_integer(double value)
{
    return (int64_t)(value < 0 ? value - 0.5 : value + 0.5);
}

// A finite number, with four places where it is of no great size.
static char *put_score(char *to, double score)
{
    int exponent = 0;
    for (; score >= 1e9 || score <= -1e9; exponent++)
        score /= 10;
    to = put_decimal(to, round_to_integer(score * 1e4), 4);
    return exponent ? put_unsigned(put(to, "e"), (uint64_t)exponent) : to;
}

static char *put_pixels(char *to, float at)
{
    return put_decimal(to, round_to_integer((double)at * 100), 2);
}

// Bytes of the UTF-8 character at `text`; 0: it is none.
static int character_bytes(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    const int n = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
    if (c[0] > 0xf4 || (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) ||
        (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f))
        return 0;
    for (int i = 1; i < n; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

// A text in quotes; what is no UTF-8 becomes a question mark.
static char *put_text(char *to, const char *text)
{
    static const char hex[] = "0123456789abcdef";
    *to++ = '"';
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        const int n = character_bytes(text);
        if (c == '"' || c == '\\') {
            *to++ = '\\';
            *to++ = (char)c;
        } else if (c < ' ') {
            to = put(to, "\\u00");
            *to++ = hex[c >> 4];
            *to++ = hex[c & 15];
        } else if (n == 0) {
            *to++ = '?';
        } else {
            memcpy(to, text, (size_t)n);
            to += n;
            text += n - 1;
        }
    }
    *to++ = '"';
    return to;
}

int line_labels_open(struct line_labels *ret, const struct labels *labels)
{
    *ret = (struct line_labels){0};
    for (const char *label = NULL; (label = labels_next(labels, label));)
        ret->n++;
    if (ret->n == 0)
        return 0;
    ret->text = malloc(6 * labels->bytes + 2 * (size_t)ret->n);
    ret->end = calloc((size_t)ret->n, sizeof *ret->end);
    if (!ret->text || !ret->end) {
        line_labels_close(ret);
        return -ENOMEM;
    }
    char *to = ret->text;
    int i = 0;
    for (const char *label = NULL; (label = labels_next(labels, label));) {
        to = put_text(to, label);
        ret->end[i++] = (size_t)(to - ret->text);
    }
    return 0;
}

void line_labels_close(struct line_labels *labels)
{
    free(labels->text);
    free(labels->end);
    *labels = (struct line_labels){0};
}

static char *put_label(char *to, const struct line_labels *labels, int class_id)
{
    if (class_id >= labels->n)
        return to;
    const size_t from = class_id > 0 ? labels->end[class_id - 1] : 0,
                 bytes = labels->end[class_id] - from;
    to = put(to, ",\"label\":");
    memcpy(to, labels->text + from, bytes);
    return to + bytes;
}

static char *put_object(char *to, const struct found *found, int i,
                        const struct line_labels *labels)
{
    const struct framed_detection *object = &found->list[i];
    to = put_pixels(put(to, "{\"box\":["), object->x1);
    to = put_pixels(put(to, ","), object->y1);
    to = put_pixels(put(to, ","), object->x2);
    to = put_pixels(put(to, ","), object->y2);
    to = put_score(put(to, "],\"score\":"), (double)object->score);
    to = put_unsigned(put(to, ",\"class\":"), object->class_id);
    to = put_label(to, labels, object->class_id);
    if (object->track != 0)
        to = put_signed(put(to, ",\"track\":"), object->track);
    if (found->index[i] != i)
        to = put_unsigned(put(to, ",\"index\":"), found->index[i]);
    return put(to, "}");
}

// Of nanoseconds, in seconds to the microsecond.
static char *put_seconds(char *to, int64_t ns)
{
    return put_decimal(to, ns / 1000, 6);
}

static char *put_frame(char *to, const struct found *found)
{
    to = put_text(put(to, "{\"camera\":"), found->camera);
    to = put_text(put(to, ",\"output\":"), found->output);
    if (*found->region)
        to = put_text(put(to, ",\"region\":"), found->region);
    if (found->parts > 1) {
        to = put_signed(put(to, ",\"part\":"), found->part);
        to = put_signed(put(to, ",\"parts\":"), found->parts);
    }
    if (found->object >= 0) {
        to = put_unsigned(put(to, ",\"parent_seq\":"), found->parent_sequence);
        to = put_signed(put(to, ",\"object\":"), found->object);
    }
    to = put_unsigned(put(to, ",\"seq\":"), found->sequence);
    to = put_unsigned(put(to, ",\"epoch\":"), found->frame.epoch);
    to = put_seconds(put(to, ",\"time\":"), found->frame.capture_ns);
    to = put_seconds(put(to, ",\"pts\":"), found->frame.pts_ns);
    const int64_t latency_ns = found->result_ns - found->frame.received_ns;
    to = put_decimal(put(to, ",\"latency_ms\":"), latency_ns / 100000, 1);
    to = put_signed(put(to, ",\"width\":"), found->frame.source_width);
    to = put_signed(put(to, ",\"height\":"), found->frame.source_height);
    if (found->model != 0)
        to = put_unsigned(put(to, ",\"model\":"), found->model);
    return found->late ? put(to, ",\"late\":true") : to;
}

size_t result_line(char to[LINE_BYTES_MAX], const struct found *found,
                   const struct line_labels *labels)
{
    char *end = put(put_frame(to, found), ",\"objects\":[");
    for (int i = 0; i < found->n; i++) {
        if (i > 0)
            *end++ = ',';
        end = put_object(end, found, i, labels);
    }
    return (size_t)(put(end, "]}\n") - to);
}
