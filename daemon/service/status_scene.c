#include "daemon/service/status_scene.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/output/scene_lines.h"

static json_t *alarms_json(unsigned alarms)
{
    json_t *list = json_array();
    for (int i = 0; i < ALARMS; i++)
        if (alarms >> i & 1)
            json_array_append_new(list, json_string(alarm_name((enum alarm)i)));
    return list;
}

json_t *status_scene_json(struct camera *camera, int64_t now)
{
    struct scene_report *report = &camera->report.scene;
    struct scene_record record;
    if (!scene_report_last(report, &record))
        return json_null();
    const double pixels = record.luma.pixels;
    return json_pack("{s:I, s:I, s:f, s:f, s:f, s:b, s:o}", "analysed",
                     (json_int_t)atomic_load(&report->analysed), "moved",
                     (json_int_t)atomic_load(&report->moving), "age_s",
                     (double)(now - record.info.received_ns) / 1e9, "mean",
                     (double)record.luma.sum / pixels, "sharpness",
                     (double)record.luma.laplacian / pixels, "moving", record.info.scene.moving,
                     "alarms", alarms_json(record.alarms));
}

char *status_scenes_text(const struct metrics *metrics)
{
    static const char *const separators[] = {"", ","};
    char line[SCENE_LINE_BYTES_MAX], *text = NULL;
    size_t bytes;
    bool any = false;
    FILE *to = open_memstream(&text, &bytes);
    if (!to)
        return NULL;
    fputs("{\"scenes\":[", to);
    for (int i = 0; i < metrics->n_cameras; i++) {
        struct camera *camera = metrics->cameras[i];
        struct scene_record record;
        if (!metrics_wants_camera(metrics, camera) ||
            !scene_report_last(&camera->report.scene, &record))
            continue;
        const size_t n = scene_line(line, camera->config->name, NULL, 0, &record);
        fprintf(to, "%s%.*s", separators[any], (int)n - 1, line);
        any = true;
    }
    fputs("]}\n", to);
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}
