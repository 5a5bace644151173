#include "daemon/output/scene_line.h"

#include "daemon/output/json_text.h"

#include <math.h>

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
