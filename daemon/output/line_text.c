#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/types.h"
#include "daemon/output/lines.h"

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

// Puts a key, with what comes before it, and seconds to the microsecond.
static char *put_seconds(char *to, const char *key, int64_t ns)
{
    return json_put_decimal(json_put(to, key), ns / 1000, 6);
}

// Puts when the picture was taken.
static char *put_time(char *to, const struct frame_info *info)
{
    to = json_put_unsigned(json_put(to, ",\"epoch\":"), info->epoch);
    to = put_seconds(to, ",\"time\":", info->capture_ns);
    return put_seconds(to, ",\"pts\":", info->pts_ns);
}

static char *put_size(char *to, const struct frame_info *info)
{
    to = json_put_signed(json_put(to, ",\"width\":"), info->source_width);
    return json_put_signed(json_put(to, ",\"height\":"), info->source_height);
}

// --- a result

static int64_t round_to_integer(double value)
{
    return (int64_t)(value < 0 ? value - 0.5 : value + 0.5);
}

// Writes a finite number with four decimals, and with an exponent from 1e9 on.
static char *put_score(char *to, double score)
{
    int exponent = 0;
    for (; score >= 1e9 || score <= -1e9; exponent++)
        score /= 10;
    to = json_put_decimal(to, round_to_integer(score * 1e4), 4);
    return exponent ? json_put_unsigned(json_put(to, "e"), (uint64_t)exponent) : to;
}

static char *put_pixels(char *to, float at)
{
    return json_put_decimal(to, round_to_integer((double)at * 100), 2);
}

int line_labels_open(struct line_labels *ret, const struct labels *labels)
{
    *ret = (struct line_labels){0};
    for (const char *label = NULL; (label = text_list_next(&labels->list, label));)
        ret->n++;
    if (ret->n == 0)
        return 0;
    ret->text = malloc(6 * labels->list.bytes + 2 * (size_t)ret->n);
    ret->end = calloc((size_t)ret->n, sizeof *ret->end);
    if (!ret->text || !ret->end) {
        line_labels_close(ret);
        return -ENOMEM;
    }
    char *to = ret->text;
    int i = 0;
    for (const char *label = NULL; (label = text_list_next(&labels->list, label));) {
        to = json_put_text(to, label);
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
    to = json_put(to, ",\"label\":");
    memcpy(to, labels->text + from, bytes);
    return to + bytes;
}

static char *put_object(char *to, const struct found *found, int i,
                        const struct line_labels *labels)
{
    const struct framed_detection *object = &found->list[i];
    to = put_pixels(json_put(to, "{\"box\":["), object->x1);
    to = put_pixels(json_put(to, ","), object->y1);
    to = put_pixels(json_put(to, ","), object->x2);
    to = put_pixels(json_put(to, ","), object->y2);
    to = put_score(json_put(to, "],\"score\":"), (double)object->score);
    to = json_put_unsigned(json_put(to, ",\"class\":"), object->class_id);
    to = put_label(to, labels, object->class_id);
    if (object->track != 0)
        to = json_put_signed(json_put(to, ",\"track\":"), object->track);
    if (found->index[i] != i)
        to = json_put_unsigned(json_put(to, ",\"index\":"), found->index[i]);
    return json_put(to, "}");
}

static char *put_frame(char *to, const struct found *found)
{
    to = json_put_text(json_put(to, "{\"camera\":"), found->camera);
    to = json_put_text(json_put(to, ",\"output\":"), found->output);
    if (*found->region)
        to = json_put_text(json_put(to, ",\"region\":"), found->region);
    if (found->parts > 1) {
        to = json_put_signed(json_put(to, ",\"part\":"), found->part);
        to = json_put_signed(json_put(to, ",\"parts\":"), found->parts);
    }
    if (found->object >= 0) {
        to = json_put_unsigned(json_put(to, ",\"parent_seq\":"), found->parent_sequence);
        to = json_put_signed(json_put(to, ",\"object\":"), found->object);
    }
    to = json_put_unsigned(json_put(to, ",\"seq\":"), found->sequence);
    to = put_time(to, &found->frame);
    const int64_t latency_ns = found->result_ns - found->frame.received_ns;
    to = json_put_decimal(json_put(to, ",\"latency_ms\":"), latency_ns / 100000, 1);
    to = put_size(to, &found->frame);
    if (found->model != 0)
        to = json_put_unsigned(json_put(to, ",\"model\":"), found->model);
    return found->late ? json_put(to, ",\"late\":true") : to;
}

size_t result_line(char to[LINE_BYTES_MAX], const struct found *found,
                   const struct line_labels *labels)
{
    char *end = json_put(put_frame(to, found), ",\"objects\":[");
    for (int i = 0; i < found->n; i++) {
        if (i > 0)
            *end++ = ',';
        end = put_object(end, found, i, labels);
    }
    return (size_t)(json_put(end, "]}\n") - to);
}

// --- an analysis

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
    end = put_size(put_time(end, info), info);
    end = put_grid(put_luma(end, &record->luma), record);
    end = put_motion(put_fingerprint(end, info->scene.fingerprint), record);
    end = put_alarms(end, "alarms", record->alarms);
    if (record->raised)
        end = put_alarms(end, "raised", record->raised);
    if (record->cleared)
        end = put_alarms(end, "cleared", record->cleared);
    return (size_t)(json_put(end, "}\n") - to);
}
