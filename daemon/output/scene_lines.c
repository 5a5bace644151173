#include "daemon/output/scene_lines.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "daemon/base/clock.h"

enum { RECORDS = 16 };
static const int64_t GLANCE_NS = 50000000; // interval at which a wait checks *stop

struct scene_lines {
    struct ledger *ledger;
    struct line_queue *queue;
    struct line_account account;
    char line[SCENE_LINE_BYTES_MAX];
    struct pending {
        uint64_t sequence;
        struct scene_record record;
    } taken;              // the record that the loop writes
    pthread_mutex_t lock; // guards all below
    pthread_cond_t room;
    int first, n;
    struct pending pending[RECORDS];
};

int scene_lines_open(struct scene_lines **ret, struct ledger *ledger)
{
    pthread_condattr_t attributes;
    struct scene_lines *lines = calloc(1, sizeof *lines);
    if (!lines)
        return -ENOMEM;
    lines->ledger = ledger;
    pthread_mutex_init(&lines->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&lines->room, &attributes);
    pthread_condattr_destroy(&attributes);
    int rc = line_queue_open(&lines->queue);
    if (rc < 0)
        scene_lines_close(lines);
    else
        *ret = lines;
    return rc;
}

void scene_lines_close(struct scene_lines *lines)
{
    if (!lines)
        return;
    line_queue_close(lines->queue);
    pthread_cond_destroy(&lines->room);
    pthread_mutex_destroy(&lines->lock);
    free(lines);
}

static void wait_for_room(struct scene_lines *lines, const _Atomic bool *stop)
{
    while (lines->n == RECORDS && !atomic_load(stop)) {
        const int64_t until_ns = monotonic_ns() + GLANCE_NS;
        const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
        pthread_cond_timedwait(&lines->room, &lines->lock, &until);
    }
}

bool scene_lines_add(struct scene_lines *lines, uint64_t sequence,
                     const struct scene_record *record, const _Atomic bool *stop)
{
    pthread_mutex_lock(&lines->lock);
    if (stop)
        wait_for_room(lines, stop);
    const bool full = lines->n == RECORDS;
    lines->first = (lines->first + full) % RECORDS;
    lines->n -= full;
    lines->pending[(lines->first + lines->n++) % RECORDS] = (struct pending){sequence, *record};
    const bool first = lines->n == 1;
    pthread_mutex_unlock(&lines->lock);
    if (full)
        ledger_lose(lines->ledger, LOSS_OVERFLOW);
    return first;
}

static bool take(struct scene_lines *lines)
{
    pthread_mutex_lock(&lines->lock);
    const bool any = lines->n > 0;
    if (any) {
        lines->taken = lines->pending[lines->first];
        lines->first = (lines->first + 1) % RECORDS;
        lines->n--;
        pthread_cond_signal(&lines->room);
    }
    pthread_mutex_unlock(&lines->lock);
    return any;
}

void scene_lines_write(struct scene_lines *lines, const char *camera, const char *output,
                       bool has_reader, enum loss reason)
{
    while (take(lines)) {
        if (!has_reader) {
            ledger_lose(lines->ledger, reason);
            continue;
        }
        const struct pending *taken = &lines->taken;
        const size_t bytes =
            scene_line(lines->line, camera, output, taken->sequence, &taken->record);
        line_queue_add(lines->queue, lines->line, bytes, taken->record.info.capture_ns);
        ledger_emit(lines->ledger);
    }
}

struct line_queue *scene_lines_queue(struct scene_lines *lines)
{
    return lines->queue;
}

struct line_account *scene_lines_account(struct scene_lines *lines)
{
    return &lines->account;
}
