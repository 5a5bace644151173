#include "daemon/service/reply.h"

#include <errno.h>
#include <jansson.h>
#include <libavutil/base64.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/process.h"
#include "daemon/service/status.h"

// Frees `json`.
static char *text_of(json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}

static json_t *lines_json(const char *lines)
{
    json_t *list = json_array();
    for (size_t n; *lines; lines += n + (lines[n] == '\n')) {
        n = strcspn(lines, "\n");
        char *line = strndup(lines, n);
        if (line && n > 0)
            json_array_append_new(list, status_string(line));
        free(line);
    }
    return list;
}

static json_t *done_json(const struct reload_result *result)
{
    char done[160];
    return json_pack("{s:b, s:s, s:{s:i, s:i, s:i, s:i}, s:{s:i, s:i, s:i}}", "ok", 1, "done",
                     reload_text(result, done, sizeof done), "cameras", "kept", result->kept,
                     "added", result->added, "removed", result->removed, "changed", result->changed,
                     "outputs", "added", result->outputs_added, "removed", result->outputs_removed,
                     "changed", result->outputs_changed);
}

char *reply_refusal(int rc, const char *errors)
{
    return text_of(json_pack("{s:b, s:i, s:o}", "ok", 0, "exit_code",
                             rc == -EINVAL ? EXIT_CONFIG : EXIT_RUNTIME, "errors",
                             lines_json(errors)));
}

char *reply_reload(int rc, const struct reload_result *result, const char *errors)
{
    if (rc == 0)
        return text_of(done_json(result));
    return reply_refusal(rc, errors);
}

char *reply_done(const char *done)
{
    return text_of(json_pack("{s:b, s:o}", "ok", 1, "done", status_string(done)));
}

char *reply_jpeg(const uint8_t *file, size_t size)
{
    const size_t room = AV_BASE64_SIZE(size);
    char *text = malloc(room);
    json_t *jpeg =
        text && av_base64_encode(text, (int)room, file, (int)size) ? json_string(text) : NULL;
    free(text);
    return text_of(json_pack("{s:b, s:o}", "ok", 1, "jpeg", jpeg));
}

char *reply_unknown(void)
{
    return strdup("{\"error\":\"unknown request (status, reload, pause CAMERA, resume CAMERA, "
                  "record CAMERA MILLISECONDS, "
                  "snap CAMERA[/OUTPUT[/PLANE]] WIDTH)\"}");
}

char *reply_metrics(const struct metrics *metrics)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    metrics_print(to, metrics);
    json_t *json = fclose(to) == 0 ? status_string(text) : NULL;
    free(text);
    return text_of(json_pack("{s:b, s:o}", "ok", 1, "metrics", json));
}
