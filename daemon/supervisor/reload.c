#include "daemon/supervisor/reload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/load.h"
#include "daemon/base/clock.h"
#include "daemon/base/groups.h"
#include "daemon/base/log.h"
#include "daemon/output/file_writers.h"
#include "daemon/supervisor/machine_check.h"
#include "daemon/supervisor/reconfigure.h"

static void warn_of_writers(const struct config *config)
{
    int threads = writers_missing(config);
    if (threads)
        log_event(LOG_LEVEL_WARNING,
                  "more files than the %d threads that write them: a disk that hangs may stop "
                  "others until framed is started anew",
                  threads);
}

static bool is_standard_input(const struct reload *reload)
{
    return !reload->file || strcmp(reload->file, "-") == 0;
}

static struct reload *reload_of(struct work *work)
{
    return (struct reload *)((char *)work - offsetof(struct reload, read));
}

// --- what may block, on any thread

// A pipe's writer may never come. Of a folder, reading it has a better reason.
static bool may_wait(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static void read_config(struct work *work)
{
    struct reload *reload = reload_of(work);
    const struct config_load_options options = {.running = reload->running,
                                                .judge = machine_check_descriptors};
    char why[256];
    reload->rc = -EINVAL;
    if (is_standard_input(reload)) {
        fputs("what came from standard input cannot be read again\n", reload->errors);
    } else if (may_wait(reload->file)) {
        fprintf(reload->errors, "%s: is not a file, which alone can be read again\n", reload->file);
    } else if (config_load_with(&reload->config, reload->file, &options, reload->errors) == 0) {
        groups_look_up(reload->config);
        reload->mistakes =
            devices_provide(reload->cameras->context.devices, reload->config, why, sizeof why) < 0;
        if (reload->mistakes)
            fprintf(reload->errors, "%s: %s\n", reload->file, why);
        reload->rc = 0;
    }
}

// --- the loop thread

static int apply(struct reload *reload, struct reload_result *ret)
{
    const struct config *config = reload->config;
    struct reconfigure *plan = NULL;
    int rc = reconfigure_open(&plan, reload->cameras, config, reload->file, reload->mistakes,
                              reload->errors);
    if (rc == 0)
        rc = reload->prepare(reload->opaque, config, reload->file, reload->errors);
    if (rc == -ENOMEM)
        fprintf(reload->errors, "%s: %s\n", reload->file, strerror(ENOMEM));
    if (rc == 0) {
        log_level(config->log.level);
        warn_of_writers(config);
        reconfigure_apply(plan, ret);
        reload->commit(reload->opaque);
    }
    reconfigure_close(plan);
    return rc;
}

static void log_lines(const char *text)
{
    for (const char *end; (end = strchr(text, '\n')); text = end + 1)
        log_event(LOG_LEVEL_ERROR, "reload: %.*s", (int)(end - text), text);
}

// Scrubbed whole and then cut: half a URL would not be known for one.
static void keep_first(struct reload *reload, const char *text)
{
    char *line = strndup(text, strcspn(text, "\n"));
    log_scrub(reload->error, sizeof reload->error, line ? line : "");
    free(line);
}

static void keep_account(struct reload *reload, int rc, const struct reload_result *result,
                         const char *text)
{
    reload->tried_ns = realtime_ns();
    keep_first(reload, text);
    log_lines(text);
    reload->is_applied = rc == 0;
    reload->applied += rc == 0;
    reload->refused += rc < 0;
    if (rc == 0) {
        reload->loaded_ns = reload->tried_ns;
        log_event(LOG_LEVEL_INFO, "reloaded %s: %s", reload->file,
                  reload_text(result, reload->done, sizeof reload->done));
    } else {
        log_event(LOG_LEVEL_ERROR, "not reloaded: nothing has changed");
    }
}

static void answer_first(struct reload *reload, int rc, const struct reload_result *result,
                         const char *errors)
{
    struct reload_request *request = reload->first;
    reload->first = request->next;
    if (!reload->first)
        reload->last = &reload->first;
    request->done(request, rc, result, errors);
}

static void start_first(struct reload *reload)
{
    while (reload->first) {
        reload->errors = reload->closed ? NULL : open_memstream(&reload->text, &reload->text_size);
        if (reload->errors) {
            reload->began(reload->opaque);
            work_start(reload->work, &reload->read);
            return;
        }
        if (reload->closed) {
            answer_first(reload, -ESHUTDOWN, NULL, "framed is stopping\n");
        } else {
            keep_account(reload, -ENOMEM, NULL, "");
            answer_first(reload, -ENOMEM, NULL, "");
        }
    }
}

static void config_was_read(struct work *work)
{
    struct reload *reload = reload_of(work);
    struct reload_result result;
    int rc = reload->rc;
    if (rc == 0 && !reload->closed)
        rc = apply(reload, &result);
    config_free(reload->config);
    reload->config = NULL;
    fclose(reload->errors);
    const char *text = reload->text ? reload->text : "";
    if (!reload->closed) {
        keep_account(reload, rc, &result, text);
        reload->ended(reload->opaque, rc);
        answer_first(reload, rc, &result, text);
    }
    free(reload->text);
    reload->text = NULL;
    start_first(reload);
}

void reload_open(struct reload *reload)
{
    reload->last = &reload->first;
    reload->read = (struct work){.run = read_config, .done = config_was_read};
}

void reload_start(struct reload *reload, struct reload_request *request)
{
    request->next = NULL;
    *reload->last = request;
    reload->last = &request->next;
    if (reload->first == request)
        start_first(reload);
}

void reload_close(struct reload *reload)
{
    reload->closed = true;
}

// Links are followed anew each time: they may lead to another file by now.
bool reload_is_of(const struct reload *reload, const char *path, FILE *errors)
{
    if (is_standard_input(reload))
        return true; // read_config has the better reason
    char *own = realpath(reload->file, NULL);
    const bool same = own && strcmp(own, path) == 0;
    if (!same)
        fprintf(errors, "this daemon runs with %s, not with %s\n", own ? own : reload->file, path);
    free(own);
    return same;
}

struct part {
    int n;
    const char *noun, *verb;
};

static void add_parts(const struct part parts[], int n, char *to, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < n; i++)
        if (parts[i].n > 0 && used < size)
            used += (size_t)snprintf(to + used, size - used, "%s%d %s%s %s", used ? ", " : "",
                                     parts[i].n, parts[i].noun, parts[i].n == 1 ? "" : "s",
                                     parts[i].verb);
}

char *reload_text(const struct reload_result *result, char *to, size_t size)
{
    const struct part parts[] = {
        {result->kept, "camera", "kept"},
        {result->added, "camera", "added"},
        {result->removed, "camera", "removed"},
        {result->changed, "camera", "changed"},
        {result->outputs_added, "output", "of those kept added"},
        {result->outputs_removed, "output", "of those kept removed"},
        {result->outputs_changed, "output", "of those kept changed"},
    };
    add_parts(parts, sizeof parts / sizeof parts[0], to, size);
    return to;
}
