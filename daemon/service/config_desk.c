#include "daemon/service/config_desk.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/load.h"
#include "config/object.h"
#include "config/print.h"
#include "daemon/service/json_answer.h"
#include "daemon/service/mistakes_json.h"
#include "daemon/service/status.h"
#include "daemon/supervisor/machine_check.h"

enum { READINGS_MAX = 4 }; // at a time: each may block a thread of the work queue

// A read of the file, or of a text in its place, for a response.
struct reading {
    struct work work;
    struct config_desk *desk;
    struct http_exchange *exchange; // NULL: the client is gone
    const char *file;               // NULL: the configuration came from standard input
    const struct config *started;
    char *given; // text in place of the file; NULL: none
    // Results of the work:
    struct config *config;
    char *errors;
    size_t errors_size;
};

// --- may block, any thread

static void run(struct work *work)
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

// --- the loop thread

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
    const struct config *running = reload_config(reading->desk->reload);
    json_t *changes = json_array();
    if (reading->config)
        config_difference(running, reading->config, add_change, changes);
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "path",
                     status_string(reading->file ? reading->file : FILE_STDIN), "text",
                     reading->config ? effective_json(reading->config) : json_null(), "running",
                     effective_json(running), "mistakes", mistakes_json(reading->errors), "changes",
                     changes);
}

static void done(struct work *work)
{
    struct reading *reading = (struct reading *)((char *)work - offsetof(struct reading, work));
    reading->desk->readings--;
    if (reading->exchange && !reading->errors)
        http_refuse(reading->exchange, 503, "%s", strerror(ENOMEM));
    else if (reading->exchange)
        json_answer(reading->exchange, 200,
                    reading->given ? json_pack("{s:o}", "mistakes", mistakes_json(reading->errors))
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
static void start(struct config_desk *desk, struct http_exchange *exchange, char *given)
{
    const struct reload *reload = desk->reload;
    struct reading *reading = desk->readings < READINGS_MAX ? calloc(1, sizeof *reading) : NULL;
    if (!reading) {
        http_refuse(exchange, 503, "other configurations are being read: try again");
        free(given);
        return;
    }
    *reading = (struct reading){
        .work = {.run = run, .done = done},
        .desk = desk,
        .exchange = exchange,
        .file = reload_has_file(reload) ? reload->file : NULL,
        .started = reload->started,
        .given = given,
    };
    desk->readings++;
    http_hold(exchange, reading_lost_its_client, reading);
    work_start(reload->work, &reading->work);
}

void config_desk_show(struct config_desk *desk, struct http_exchange *exchange)
{
    start(desk, exchange, NULL);
}

void config_desk_check(struct config_desk *desk, struct http_exchange *exchange)
{
    size_t size;
    const char *body = http_body(exchange, &size);
    json_t *json = json_loadb(body, size, 0, NULL);
    const char *text = json_string_value(json_object_get(json, "text"));
    char *given = text ? strdup(text) : NULL;
    if (given)
        start(desk, exchange, given);
    else
        http_refuse(exchange, 400, "the body is {\"text\": \"a configuration\"}");
    json_decref(json);
}

// --- a reload

struct reloading {
    struct http_exchange *exchange; // NULL: the client is gone
    struct reload_request request;
};

static void refuse(struct http_exchange *exchange, int status, const char *errors)
{
    json_t *mistakes = mistakes_json(errors);
    char *first = strndup(errors, strcspn(errors, "\n"));
    json_answer(exchange, status,
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
        json_answer(reloading->exchange, 200,
                    json_pack("{s:s}", "done", reload_text(result, text, sizeof text)));
    else if (reloading->exchange)
        refuse(reloading->exchange, rc == -EINVAL ? 409 : 503, errors);
    free(reloading);
}

static void reloading_lost_its_client(void *opaque)
{
    ((struct reloading *)opaque)->exchange = NULL;
}

void config_desk_reload(struct config_desk *desk, struct http_exchange *exchange)
{
    struct reloading *reloading = calloc(1, sizeof *reloading);
    if (!reloading) {
        http_refuse(exchange, 503, "%s", strerror(ENOMEM));
        return;
    }
    reloading->exchange = exchange;
    reloading->request.done = reloaded;
    http_hold(exchange, reloading_lost_its_client, reloading);
    reload_start(desk->reload, &reloading->request);
}
