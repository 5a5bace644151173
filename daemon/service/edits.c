#include "daemon/service/edits.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "config/value.h"
#include "daemon/service/camera_body.h"
#include "daemon/service/json_answer.h"
#include "daemon/service/mistakes_json.h"
#include "daemon/service/status.h"
#include "daemon/supervisor/reload.h"

// A change under way.
struct http_edit {
    struct http_exchange *exchange; // NULL: the client is gone
    struct reload_request request;
};

// --- the response

static json_t *done_json(const struct edit *edit)
{
    const bool writes = edit->kind == EDIT_PUT || edit->kind == EDIT_PAUSE;
    return json_pack("{s:s, s:s, s:o*}", "camera", edit->camera, "done", edit_done_text(edit),
                     "file", writes ? status_string(edit_path(edit)) : NULL);
}

// Converts the mistakes' places in the future file into places in the body. True if all mistakes
// are in the body and none in other files.
static bool place_in_body(json_t *mistakes, const struct edit *edit)
{
    json_t *mistake;
    size_t i;
    bool own = json_array_size(mistakes) > 0;
    json_array_foreach(mistakes, i, mistake)
    {
        const char *file = json_string_value(json_object_get(mistake, "file"));
        json_t *line = json_object_get(mistake, "line");
        const bool is = file && strcmp(file, edit_path(edit)) == 0;
        own &= is;
        if (!is)
            continue;
        json_object_del(mistake, "file");
        if (json_integer_value(line) > EDIT_LINES_BEFORE) {
            json_integer_set(line, json_integer_value(line) - EDIT_LINES_BEFORE);
        } else { // a mistake of the whole camera, whose name stands before the body
            json_integer_set(line, 1);
            json_integer_set(json_object_get(mistake, "column"), 1);
        }
    }
    return own;
}

static void refuse_mistakes(struct http_exchange *exchange, const struct edit *edit,
                            const char *errors)
{
    json_t *mistakes = mistakes_json(errors);
    const bool own = place_in_body(mistakes, edit);
    const json_t *first = json_array_get(mistakes, 0);
    const char *key = json_string_value(json_object_get(first, "key")),
               *text = json_string_value(json_object_get(first, "text"));
    json_t *error = json_sprintf("%s%s%s", key ? key : "", key ? ": " : "", text ? text : "");
    json_answer(exchange, own ? 400 : 409,
                json_pack("{s:o, s:o}", "error", error, "mistakes", mistakes));
}

static void done(struct reload_request *request, int rc, const struct reload_result *result,
                 const char *errors)
{
    struct http_edit *edit =
        (struct http_edit *)((char *)request - offsetof(struct http_edit, request));
    struct http_exchange *exchange = edit->exchange;
    const int first = (int)strcspn(errors, "\n");
    (void)result; // other changes may have shared the reload
    if (exchange && rc == 0)
        json_answer(exchange, 200, done_json(request->edit));
    else if (exchange && rc == -EALREADY)
        json_answer(exchange, 200,
                    json_pack("{s:s, s:s%}", "camera", request->edit->camera, "done", errors,
                              (size_t)first));
    else if (exchange && rc == -EINVAL)
        refuse_mistakes(exchange, request->edit, errors);
    else if (exchange)
        http_refuse(exchange,
                    rc == -ENOENT   ? 404
                    : rc == -EEXIST ? 409
                                    : 503,
                    "%.*s", first, errors);
    edit_close(request->edit);
    free(edit);
}

// --- the request

static void client_has_gone(void *opaque)
{
    struct http_edit *edit = opaque;
    edit->exchange = NULL;
}

static void begin(struct reload *reload, struct http_exchange *exchange, enum edit_kind kind,
                  const char *yaml)
{
    const char *name = http_part(exchange, 0), *wrong = edit_name_wrong(name);
    if (wrong || !reload_has_file(reload)) {
        http_refuse(exchange, wrong ? 400 : 409, "%s %s",
                    wrong ? "a camera's name" : "a configuration from standard input has no folder",
                    wrong ? wrong : "to keep changes in");
        return;
    }
    struct http_edit *edit = calloc(1, sizeof *edit);
    if (!edit || edit_open(&edit->request.edit, kind, name, reload->file, yaml) < 0) {
        free(edit);
        http_refuse(exchange, 503, "%s", strerror(ENOMEM));
        return;
    }
    edit->exchange = exchange;
    edit->request.done = done;
    http_hold(exchange, client_has_gone, edit);
    reload_start(reload, &edit->request);
}

void edits_put(struct reload *reload, struct http_exchange *exchange)
{
    size_t size;
    const char *body = http_body(exchange, &size);
    char *yaml = NULL, why[256];
    const char *expand = http_argument(exchange, "expand");
    if (expand && strcmp(expand, "true") != 0 && strcmp(expand, "false") != 0) {
        http_refuse(exchange, 400, "expand is true or false");
        return;
    }
    const bool expands = expand && *expand == 't';
    const int rc = camera_body_yaml(&yaml, body, size, expands, why, sizeof why);
    if (rc == 0)
        begin(reload, exchange, EDIT_PUT, yaml);
    else
        http_refuse(exchange, rc == -EINVAL ? 400 : 503, "%s",
                    rc == -EINVAL ? why : strerror(ENOMEM));
    secret_free(yaml);
}

void edits_delete(struct reload *reload, struct http_exchange *exchange)
{
    begin(reload, exchange, EDIT_DELETE, NULL);
}

void edits_pause(struct reload *reload, struct http_exchange *exchange)
{
    begin(reload, exchange, EDIT_PAUSE, NULL);
}

void edits_resume(struct reload *reload, struct http_exchange *exchange)
{
    begin(reload, exchange, EDIT_RESUME, NULL);
}
