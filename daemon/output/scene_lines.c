#include "daemon/output/scene_lines.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "daemon/base/clock.h"

// --- one line

// Appends a number of at least 0 with `places` decimals, limited to the range of int64_t.
static char *put_rounded(char *to, double value, int places)
{
    double unit = 1;
    for (int i = 0; i < places; i++)
        unit *= 10;
    return json_put_decimal(to, (int64_t)fmin(value * unit + 0.5, 0x1p62), places);
}

static char *put_luma(char *to, const struct luma_statistics *luma)
{
    const double pixels = luma->pixels, mean = (double)luma->sum / pixels;
    to = put_rounded(json_put(to, ",\"luma\":{\"mean\":"), mean, 2);
    const double variance = (double)luma->squares / pixels - mean * mean;
    to = put_rounded(json_put(to, ",\"variance\":"), variance > 0 ? variance : 0, 2);
    to = json_put_unsigned(json_put(to, ",\"min\":"), luma->min);
    to = json_put_unsigned(json_put(to, ",\"max\":"), luma->max);
    to = put_rounded(json_put(to, ",\"black\":"), luma->black / pixels, 4);
    to = put_rounded(json_put(to, ",\"white\":"), luma->white / pixels, 4);
    to = put_rounded(json_put(to, ",\"sharpness\":"), (double)luma->laplacian / pixels, 3);
    to = json_put(to, ",\"histogram\":");
    for (int i = 0; i < STATISTICS_BINS; i++)
        to = json_put_unsigned(json_put(to, i ? "," : "["), luma->histogram[i]);
    return json_put(to, "]}");
}

static char *put_grid(char *to, const struct scene_record *record)
{
    to = json_put_signed(json_put(to, ",\"grid\":{\"columns\":"), record->columns);
    to = json_put_signed(json_put(to, ",\"rows\":"), record->rows);
    to = json_put(to, ",\"means\":");
    for (int i = 0; i < record->columns * record->rows; i++)
        to = json_put_unsigned(json_put(to, i ? "," : "["), record->grid[i]);
    return json_put(to, "]}");
}

static char *put_fingerprint(char *to, uint64_t fingerprint)
{
    static const char hex[] = "0123456789abcdef";
    to = json_put(to, ",\"fingerprint\":\"");
    for (int shift = 60; shift >= 0; shift -= 4)
        *to++ = hex[fingerprint >> shift & 15];
    return json_put(to, "\"");
}

static char *put_motion(char *to, const struct scene_record *record)
{
    const struct motion_boxes *motion = &record->motion;
    to = json_put(to, record->info.scene.light ? ",\"light\":true" : "");
    to = json_put(to, record->info.scene.learning ? ",\"learning\":true" : "");
    to = json_put(to, record->info.scene.moving ? ",\"moving\":true" : ",\"moving\":false");
    to = json_put_unsigned(json_put(to, ",\"changed\":"), motion->changed);
    to = json_put(to, ",\"boxes\":[");
    for (uint32_t i = 0; i < motion->count; i++) {
        const struct motion_box *box = &motion->box[i];
        to = json_put_signed(json_put(to, i ? ",[" : "["), box->x1);
        to = json_put_signed(json_put(to, ","), box->y1);
        to = json_put_signed(json_put(to, ","), box->x2);
        to = json_put(json_put_signed(json_put(to, ","), box->y2), "]");
    }
    return json_put(to, "]");
}

static char *put_alarms(char *to, const char *key, unsigned alarms)
{
    const char *separator = "";
    to = json_put(json_put(json_put(to, ",\""), key), "\":[");
    for (int i = 0; i < ALARMS; i++) {
        if (!(alarms >> i & 1))
            continue;
        to = json_put_text(json_put(to, separator), alarm_name((enum alarm)i));
        separator = ",";
    }
    return json_put(to, "]");
}

size_t scene_line(char to[SCENE_LINE_BYTES_MAX], const char *camera, const char *output,
                  uint64_t sequence, const struct scene_record *record)
{
    const struct frame_info *info = &record->info;
    char *end = json_put_text(json_put(to, "{\"camera\":"), camera);
    if (output) {
        end = json_put_text(json_put(end, ",\"output\":"), output);
        end = json_put_unsigned(json_put(end, ",\"seq\":"), sequence);
    }
    end = json_put_unsigned(json_put(end, ",\"epoch\":"), info->epoch);
    end = json_put_seconds(json_put(end, ",\"time\":"), info->capture_ns);
    end = json_put_seconds(json_put(end, ",\"pts\":"), info->pts_ns);
    end = json_put_signed(json_put(end, ",\"width\":"), info->source_width);
    end = json_put_signed(json_put(end, ",\"height\":"), info->source_height);
    end = put_grid(put_luma(end, &record->luma), record);
    end = put_motion(put_fingerprint(end, info->scene.fingerprint), record);
    end = put_alarms(end, "alarms", record->alarms);
    if (record->raised)
        end = put_alarms(end, "raised", record->raised);
    if (record->cleared)
        end = put_alarms(end, "cleared", record->cleared);
    return (size_t)(json_put(end, "}\n") - to);
}

// --- the lines of an output

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
    struct scene_lines *lines = calloc(1, sizeof *lines);
    if (!lines)
        return -ENOMEM;
    lines->ledger = ledger;
    pthread_mutex_init(&lines->lock, NULL);
    condition_init(&lines->room);
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
        condition_wait(&lines->room, &lines->lock, monotonic_ns() + GLANCE_NS);
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

static bool take_record(struct scene_lines *lines)
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
    while (take_record(lines)) {
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
