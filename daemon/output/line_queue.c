#include "daemon/output/line_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
