#include "daemon/output/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// --- JSON, piece by piece

char *json_put(char *to, const char *text)
{
    return stpcpy(to, text);
}

char *json_put_unsigned(char *to, uint64_t n)
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

char *json_put_signed(char *to, int64_t n)
{
    if (n < 0)
        *to++ = '-';
    return json_put_unsigned(to, n < 0 ? -(uint64_t)n : (uint64_t)n);
}

char *json_put_decimal(char *to, int64_t n, int places)
{
    uint64_t rest = n < 0 ? -(uint64_t)n : (uint64_t)n, unit = 1;
    for (int i = 0; i < places; i++)
        unit *= 10;
    if (n < 0)
        *to++ = '-';
    to = json_put_unsigned(to, rest / unit);
    rest %= unit;
    if (rest > 0)
        *to++ = '.';
    for (; rest > 0; rest %= unit) {
        unit /= 10;
        *to++ = (char)('0' + rest / unit);
    }
    return to;
}

// Returns the bytes of the UTF-8 character at `text`; 0 if it is invalid.
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

char *json_put_text(char *to, const char *text)
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
            to = json_put(to, "\\u00");
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

char *json_put_seconds(char *to, int64_t ns)
{
    return json_put_decimal(to, ns / 1000, 6);
}

// --- the queue

int line_queue_open(struct line_queue **ret)
{
    struct line_queue *queue = calloc(1, sizeof *queue);
    if (queue)
        queue->text = malloc(LINE_QUEUE_BYTES);
    if (!queue || !queue->text) {
        free(queue);
        return -ENOMEM;
    }
    *ret = queue;
    return 0;
}

void line_queue_close(struct line_queue *queue)
{
    if (queue)
        free(queue->text);
    free(queue);
}

static struct line *line_at(struct line_queue *queue, uint64_t number)
{
    return &queue->line[number % LINE_QUEUE_LINES];
}

// Stores lines back to back; a line that does not fit at the end goes to the start.
void line_queue_add(struct line_queue *queue, const char *text, size_t bytes, int64_t time_ns)
{
    const bool wraps = queue->end + bytes > LINE_QUEUE_BYTES;
    char *at = queue->text + (wraps ? 0 : queue->end);
    if (queue->next - queue->first == LINE_QUEUE_LINES)
        queue->first++;
    for (; queue->first < queue->next; queue->first++) {
        const struct line *oldest = line_at(queue, queue->first);
        const bool behind_end = wraps && oldest->text >= queue->text + queue->end;
        const bool in_place = oldest->text < at + bytes && oldest->text + oldest->bytes > at;
        if (!behind_end && !in_place)
            break;
    }
    memcpy(at, text, bytes);
    *line_at(queue, queue->next++) = (struct line){at, bytes, time_ns};
    queue->end = (size_t)(at - queue->text) + bytes;
}

void line_queue_offer(struct line_queue *queue, struct line_account *account, int readers)
{
    account->offered += (queue->next - queue->offered) * (uint64_t)readers;
    queue->offered = queue->next;
}

uint64_t line_queue_skip(const struct line_queue *queue, uint64_t *reader)
{
    const uint64_t lost = *reader < queue->first ? queue->first - *reader : 0;
    *reader += lost;
    return lost;
}

const struct line *line_queue_get(const struct line_queue *queue, uint64_t reader)
{
    return reader < queue->next ? line_at((struct line_queue *)queue, reader) : NULL;
}
