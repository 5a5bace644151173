#include "daemon/service/routes.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/load.h"
#include "config/object.h"
#include "config/print.h"
#include "config/value.h"
#include "daemon/service/status.h"
#include "daemon/supervisor/machine_check.h"

// --- mistakes

// Finds ":LINE:COLUMN: KEY: " after a file's name, which may contain colons. False: not found.
static bool find_place(char *line, int *at_line, int *at_column, char **key, char **text)
{
    for (char *c = strchr(line, ':'); c; c = strchr(c + 1, ':')) {
        int used = 0;
        if (sscanf(c, ":%9d:%9d: %n", at_line, at_column, &used) != 2 || used == 0)
            continue;
        *key = c + used;
        *text = strstr(*key, ": ");
        if (!*text)
            return false;
        *c = 0;
        **text = 0;
        *text += 2;
        return true;
    }
    return false;
}

static json_t *mistake_json(char *line)
{
    int at_line, at_column;
    char *key, *text;
    if (!find_place(line, &at_line, &at_column, &key, &text))
        return json_pack("{s:o}", "text", status_string(line));
    return json_pack("{s:o, s:i, s:i, s:o, s:o}", "file", status_string(line), "line", at_line,
                     "column", at_column, "key", status_string(key), "text", status_string(text));
}

// Returns the lines that config_load and a reload print as [{"file", "line", "column", "key",
// "text"}]; {"text"} alone for a line without a place. NULL: no memory.
static json_t *mistakes_json(const char *lines)
{
    json_t *list = json_array();
    for (size_t n; *lines; lines += n + (lines[n] == '\n')) {
        n = strcspn(lines, "\n");
        char *line = strndup(lines, n);
        if (line && n > 0)
            json_array_append_new(list, mistake_json(line));
        free(line);
    }
    return list;
}

// --- reads

enum { CONFIG_READS_MAX = 4 }; // at a time: each may block a thread of the work queue

// A read of the file, or of a text in its place, for a response.
struct reading {
    struct work work;
    struct routes_context *context;
    struct http_exchange *exchange; // NULL: the client is gone
    const char *file;               // NULL: the configuration came from standard input
    const struct config *started;
    char *given; // text in place of the file; NULL: none
    // Results of the work:
    struct config *config;
    char *errors;
    size_t errors_size;
};

// --- reads: may block, any thread

static void read_config(struct work *work)
{
    struct reading *reading = (struct reading *)((char *)work - offsetof(struct reading, work));
    const struct file_change change = {.path = reading->file, .text = reading->given};
    const struct file_changes changes = {.list = &change, .n = reading->given ? 1 : 0};
    const bool given = reading->given;
    struct stat st;
    const struct config_load_options options = {.running = reading->started,
                                                .judge = given ? NULL : machine_check_descriptors,
                                                .closed = given,
                                                .changes = &changes};
    FILE *errors = open_memstream(&reading->errors, &reading->errors_size);
    if (!errors)
        return;
    if (!reading->file && given)
        config_load_closed(&reading->config, reading->given, "-", errors);
    else if (!reading->file)
        fputs("what came from standard input cannot be read again\n", errors);
    else if (!given && stat(reading->file, &st) == 0 && !S_ISREG(st.st_mode))
        fprintf(errors, "%s: is not a file\n", reading->file); // a pipe may never get a writer
    else
        config_load_with(&reading->config, reading->file, &options, errors);
    fclose(errors);
}

// --- reads, on the loop thread

static void add_change(void *opaque, const char *path, enum config_change change, const char *keys)
{
    static const char *const words[] = {
        [CHANGE_ADDED] = "added", [CHANGE_REMOVED] = "removed", [CHANGE_CHANGED] = "changed"};
    const bool many = strchr(keys, ',');
    json_t *text = change == CHANGE_CHANGED ? json_sprintf("%s%s%s change%s", path,
                                                           *path ? ": " : "", keys, many ? "" : "s")
                                            : json_sprintf("%s is %s", path, words[change]);
    json_array_append_new(
        opaque, json_pack("{s:s, s:s, s:o}", "path", path, "change", words[change], "text", text));
}

static json_t *effective_json(const struct config *config)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (to)
        config_print_effective(to, config);
    json_t *json = to && fclose(to) == 0 ? status_string(text) : json_null();
    free(text);
    return json;
}

static json_t *shown_json(const struct reading *reading)
{
    const struct config *running = reload_config(reading->context->reload);
    json_t *changes = json_array();
    if (reading->config)
        config_difference(running, reading->config, add_change, changes);
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "path",
                     status_string(reading->file ? reading->file : FILE_STDIN), "text",
                     reading->config ? effective_json(reading->config) : json_null(), "running",
                     effective_json(running), "mistakes", mistakes_json(reading->errors), "changes",
                     changes);
}

static void reading_done(struct work *work)
{
    struct reading *reading = (struct reading *)((char *)work - offsetof(struct reading, work));
    reading->context->config_reads--;
    if (reading->exchange && !reading->errors)
        http_refuse(reading->exchange, 503, "%s", strerror(ENOMEM));
    else if (reading->exchange)
        http_answer_json(reading->exchange, 200,
                         reading->given
                             ? json_pack("{s:o}", "mistakes", mistakes_json(reading->errors))
                             : shown_json(reading));
    config_free(reading->config);
    free(reading->errors);
    if (reading->given)
        explicit_bzero(reading->given, strlen(reading->given));
    free(reading->given);
    free(reading);
}

static void reading_lost_its_client(void *opaque)
{
    ((struct reading *)opaque)->exchange = NULL;
}

// Takes ownership of the text; NULL: reads the file itself.
static void start_reading(struct routes_context *context, struct http_exchange *exchange,
                          char *given)
{
    const struct reload *reload = context->reload;
    struct reading *reading =
        context->config_reads < CONFIG_READS_MAX ? calloc(1, sizeof *reading) : NULL;
    if (!reading) {
        http_refuse(exchange, 503, "other configurations are being read: try again");
        free(given);
        return;
    }
    *reading = (struct reading){
        .work = {.run = read_config, .done = reading_done},
        .context = context,
        .exchange = exchange,
        .file = reload_has_file(reload) ? reload->file : NULL,
        .started = reload->started,
        .given = given,
    };
    context->config_reads++;
    http_hold(exchange, reading_lost_its_client, reading);
    work_start(reload->work, &reading->work);
}

void routes_show_config(void *context, struct http_exchange *exchange)
{
    start_reading(context, exchange, NULL);
}

void routes_check_config(void *context, struct http_exchange *exchange)
{
    size_t size;
    const char *body = http_body(exchange, &size);
    json_t *json = json_loadb(body, size, 0, NULL);
    const char *text = json_string_value(json_object_get(json, "text"));
    char *given = text ? strdup(text) : NULL;
    if (given)
        start_reading(context, exchange, given);
    else
        http_refuse(exchange, 400, "the body is {\"text\": \"a configuration\"}");
    json_decref(json);
}

// --- a reload

struct reloading {
    struct http_exchange *exchange; // NULL: the client is gone
    struct reload_request request;
};

static void refuse_reload(struct http_exchange *exchange, int status, const char *errors)
{
    json_t *mistakes = mistakes_json(errors);
    char *first = strndup(errors, strcspn(errors, "\n"));
    http_answer_json(exchange, status,
                     json_pack("{s:o, s:o}", "error",
                               status_string(first && *first ? first : "nothing has changed"),
                               "mistakes", mistakes));
    free(first);
}

static void reloaded(struct reload_request *request, int rc, const struct reload_result *result,
                     const char *errors)
{
    struct reloading *reloading =
        (struct reloading *)((char *)request - offsetof(struct reloading, request));
    char text[160] = "";
    if (reloading->exchange && rc == 0)
        http_answer_json(reloading->exchange, 200,
                         json_pack("{s:s}", "done", reload_text(result, text, sizeof text)));
    else if (reloading->exchange)
        refuse_reload(reloading->exchange, rc == -EINVAL ? 409 : 503, errors);
    free(reloading);
}

static void reloading_lost_its_client(void *opaque)
{
    ((struct reloading *)opaque)->exchange = NULL;
}

void routes_reload(void *opaque, struct http_exchange *exchange)
{
    const struct routes_context *context = opaque;
    struct reloading *reloading = calloc(1, sizeof *reloading);
    if (!reloading) {
        http_refuse(exchange, 503, "%s", strerror(ENOMEM));
        return;
    }
    reloading->exchange = exchange;
    reloading->request.done = reloaded;
    http_hold(exchange, reloading_lost_its_client, reloading);
    reload_start(context->reload, &reloading->request);
}

// --- a camera's keys

// Returns the code unit of a valid \uXXXX in JSON, else 0.
static unsigned code_unit_of(const char *json)
{
    char digits[5] = "";
    if (json[0] != '\\' || json[1] != 'u')
        return 0;
    memcpy(digits, json + 2, 4);
    return (unsigned)strtoul(digits, NULL, 16);
}

// Converts valid JSON to YAML: a character beyond U+FFFF is two \u in JSON and one \U in YAML; a
// literal dollar sign is doubled. All else is the same.
static char *yaml_of(const char *json, bool expands)
{
    char *yaml = malloc(2 * strlen(json) + 1), *to = yaml;
    while (yaml && *json) {
        const unsigned high = code_unit_of(json);
        if (!expands && (*json == '$' || high == '$')) {
            to = mempcpy(to, "$$", 2);
            json += *json == '$' ? 1 : 6;
            continue;
        }
        if (high >> 10 == 0xd800 >> 10) {
            const unsigned low = code_unit_of(json + 6);
            to += sprintf(to, "\\U%08x", 0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff));
            json += 12;
            continue;
        }
        if (*json == '\\')
            *to++ = *json++;
        *to++ = *json++;
    }
    if (yaml)
        *to = 0;
    return yaml;
}

int camera_body_yaml(char **ret, const char *body, size_t length, bool expands, char *why,
                     size_t size)
{
    json_error_t error;
    json_t *json = json_loadb(body, length, JSON_REJECT_DUPLICATES, &error);
    const int rc = json_is_object(json) ? 0 : -EINVAL;
    char *near = json ? NULL : strstr(error.text, " near ");
    if (near)
        *near = 0; // the rest may be a password
    if (!json)
        snprintf(why, size, "line %d, column %d: %s", error.line, error.column, error.text);
    else if (rc < 0)
        snprintf(why, size, "a camera is an object: {\"url\": ..., \"outputs\": ...}");
    json_decref(json);
    if (rc < 0)
        return rc;
    *ret = yaml_of(body, expands);
    return *ret ? 0 : -ENOMEM;
}

// A change under way.
struct http_edit {
    struct http_exchange *exchange; // NULL: the client is gone
    struct reload_request request;
};

// --- the response to an edit

static json_t *edit_json(const struct edit *edit)
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
    http_answer_json(exchange, own ? 400 : 409,
                     json_pack("{s:o, s:o}", "error", error, "mistakes", mistakes));
}

static void edit_done(struct reload_request *request, int rc, const struct reload_result *result,
                      const char *errors)
{
    struct http_edit *edit =
        (struct http_edit *)((char *)request - offsetof(struct http_edit, request));
    struct http_exchange *exchange = edit->exchange;
    const int first = (int)strcspn(errors, "\n");
    (void)result; // other changes may have shared the reload
    if (exchange && rc == 0)
        http_answer_json(exchange, 200, edit_json(request->edit));
    else if (exchange && rc == -EALREADY)
        http_answer_json(exchange, 200,
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

// --- the request of an edit

static void edit_lost_its_client(void *opaque)
{
    struct http_edit *edit = opaque;
    edit->exchange = NULL;
}

static void begin_edit(const struct routes_context *context, struct http_exchange *exchange,
                       enum edit_kind kind, const char *yaml)
{
    struct reload *reload = context->reload;
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
    edit->request.done = edit_done;
    http_hold(exchange, edit_lost_its_client, edit);
    reload_start(reload, &edit->request);
}

void routes_put_camera(void *context, struct http_exchange *exchange)
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
        begin_edit(context, exchange, EDIT_PUT, yaml);
    else
        http_refuse(exchange, rc == -EINVAL ? 400 : 503, "%s",
                    rc == -EINVAL ? why : strerror(ENOMEM));
    secret_free(yaml);
}

void routes_delete_camera(void *context, struct http_exchange *exchange)
{
    begin_edit(context, exchange, EDIT_DELETE, NULL);
}

void routes_pause_camera(void *context, struct http_exchange *exchange)
{
    begin_edit(context, exchange, EDIT_PAUSE, NULL);
}

void routes_resume_camera(void *context, struct http_exchange *exchange)
{
    begin_edit(context, exchange, EDIT_RESUME, NULL);
}
