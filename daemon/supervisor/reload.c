#include "daemon/supervisor/reload.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/load.h"
#include "config/schema.h"
#include "daemon/base/access.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/supervisor/machine_check.h"

void reload_warn_of_gone(const struct config *config)
{
    for (int i = 0; i < config->n_gone; i++) {
        char *text = gone_is_first(config, i) ? gone_text(config, i) : NULL;
        if (text)
            log_event(LOG_LEVEL_WARNING, "%s", text);
        free(text);
    }
}

bool reload_has_file(const struct reload *reload)
{
    return reload->file && strcmp(reload->file, "-") != 0;
}

static struct reload *reload_of(struct work *work, size_t offset)
{
    return (struct reload *)((char *)work - offset);
}

// --- what may block, on any thread

// A pipe's writer may never come. For a folder, reading it gives a better reason.
static bool may_wait(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static int write_edits(struct reload *reload)
{
    char why[PATH_MAX + 128];
    int i = 0, rc = 0;
    while (i < reload->n && reload->edits[i] && rc == 0)
        rc = edit_write(reload->edits[i++], why, sizeof why);
    if (rc < 0)
        fprintf(reload->errors, "%s\n", why);
    while (rc < 0 && i-- > 0)
        edit_abandon(reload->edits[i]);
    return rc;
}

static void load(struct reload *reload)
{
    struct file_changes changes = {0};
    const int edits = reload->edits[0] ? reload->n : 0;
    const struct config_load_options options = {
        .running = reload_config(reload), .judge = machine_check_descriptors, .changes = &changes};
    char why[256];
    int rc = assigned_changes(&reload->assigned, reload->edits, edits, &changes);
    if (rc == 0)
        rc = config_load_with(&reload->config, reload->file, &options, reload->errors);
    free((void *)changes.list);
    if (rc != 0)
        return;
    if (assigned_mark(&reload->assigned, reload->edits, edits, reload->config, reload->errors) > 0)
        return;
    groups_look_up(reload->config);
    reload->mistakes =
        devices_provide(reload->cameras->context.devices, reload->config, why, sizeof why) < 0;
    if (reload->mistakes)
        fprintf(reload->errors, "%s: %s\n", reload->file, why);
    reload->rc = write_edits(reload);
}

static void read_config(struct work *work)
{
    struct reload *reload = reload_of(work, offsetof(struct reload, read));
    reload->rc = -EINVAL;
    if (!reload_has_file(reload))
        fputs("what came from standard input cannot be read again\n", reload->errors);
    else if (may_wait(reload->file))
        fprintf(reload->errors, "%s: is not a file, which alone can be read again\n", reload->file);
    else
        load(reload);
}

// One sync is enough: all written edits are in one folder.
static void sync_edits(struct work *work)
{
    const struct reload *reload = reload_of(work, offsetof(struct reload, sync));
    int i = 0;
    while (i < reload->n - 1 && edit_is_in_memory(reload->edits[i]))
        i++;
    edit_sync(reload->edits[i]);
}

// --- the loop thread

static int commit_edits(struct reload *reload)
{
    char why[PATH_MAX + 128];
    int rc = 0;
    for (int i = 0; rc == 0 && i < reload->n && reload->edits[i]; i++)
        rc = edit_commit(reload->edits[i], why, sizeof why);
    if (rc < 0)
        fprintf(reload->errors, "%s\n", why);
    return rc;
}

static int apply(struct reload *reload)
{
    const struct config *config = reload->config;
    const int edits = reload->edits[0] ? reload->n : 0;
    struct reconfigure *plan = NULL;
    int rc = reconfigure_open(&plan, reload->cameras, config, reload->file, reload->mistakes,
                              reload->errors);
    if (rc == 0)
        rc = reload->prepare(reload->opaque, config, reload->file, reload->errors);
    if (rc == 0 && edits > 0 && (rc = assigned_prepare(&reload->assigned, edits)) < 0)
        reload->abandon(reload->opaque);
    if (rc == -ENOMEM)
        fprintf(reload->errors, "%s: %s\n", reload->file, strerror(ENOMEM));
    if (rc == 0 && (rc = commit_edits(reload)) < 0)
        reload->abandon(reload->opaque);
    if (rc == 0) {
        log_level(config->log.level);
        if (edits == 0)
            reload_warn_of_gone(config);
        reconfigure_apply(plan, &reload->result);
        reload->commit(reload->opaque);
        config_free(reload->loaded);
        reload->loaded = reload->config;
        reload->config = NULL;
        assigned_commit(&reload->assigned, reload->edits, edits);
    }
    reconfigure_close(plan);
    return rc;
}

static void log_lines(const char *text)
{
    for (const char *end; (end = strchr(text, '\n')); text = end + 1)
        log_event(LOG_LEVEL_ERROR, "reload: %.*s", (int)(end - text), text);
}

// Scrubs the whole line before cutting it: half a URL would not be recognized as one.
static void keep_first(struct reload *reload, const char *text)
{
    char *line = strndup(text, strcspn(text, "\n"));
    log_scrub(reload->error, sizeof reload->error, line ? line : "");
    free(line);
}

static void keep_account(struct reload *reload, int rc, const char *text)
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
                  reload_text(&reload->result, reload->done, sizeof reload->done));
    } else {
        log_event(LOG_LEVEL_ERROR, "not reloaded: nothing has changed");
    }
}

// A refused edit concerns its caller only: the files are unchanged. An applied edit has read all of
// the files.
static void keep_edits(struct reload *reload, int rc, const char *text)
{
    for (int i = 0; i < reload->n; i++) {
        const struct edit *edit = reload->edits[i];
        log_camera(edit->camera);
        if (rc == 0 && edit_is_in_memory(edit))
            log_event(LOG_LEVEL_INFO, "%s", edit_done_text(edit));
        else if (rc == 0)
            log_event(LOG_LEVEL_INFO, "%s: %s", edit_done_text(edit), edit_path(edit));
        else
            log_event(LOG_LEVEL_WARNING, "not %s: %.*s", edit_done_text(edit),
                      (int)strcspn(text, "\n"), text);
        log_camera(NULL);
        if (rc == 0)
            reload->edited(reload->opaque, edit);
    }
    if (rc < 0)
        return;
    reload->loaded_ns = realtime_ns();
    reload->is_applied = true;
    reload->error[0] = 0;
}

static void answer_first(struct reload *reload, int rc, const char *errors)
{
    struct reload_request *request = reload->first;
    reload->first = request->next;
    if (!reload->first)
        reload->last = &reload->first;
    request->done(request, rc, &reload->result, errors);
}

static bool is_in_batch(const struct reload *reload, const struct edit *edit)
{
    for (int i = 0; i < reload->n; i++)
        if (strcmp(reload->edits[i]->camera, edit->camera) == 0)
            return true;
    return false;
}

// Takes the first request, and later edits that can share its reload: edits of other cameras.
// Answers requests that cannot be made.
static void take_batch(struct reload *reload)
{
    char why[PATH_MAX + 128], line[sizeof why + 2];
    reload->n = 0;
    while (reload->first && reload->n == 0) {
        struct reload_request *request = reload->first;
        const int rc = reload->closed ? -ESHUTDOWN
                       : request->edit
                           ? edit_check(request->edit, reload_config(reload), why, sizeof why)
                           : 0;
        snprintf(line, sizeof line, "%s\n",
                 rc == -ESHUTDOWN ? "framed is stopping"
                 : rc == -ENOMEM  ? strerror(ENOMEM)
                                  : why);
        if (rc < 0)
            answer_first(reload, rc, line);
        else
            reload->edits[reload->n++] = request->edit;
    }
    struct reload_request *next = reload->n && reload->edits[0] ? reload->first->next : NULL;
    while (next && next->edit && reload->n < reload->most && !is_in_batch(reload, next->edit) &&
           edit_check(next->edit, reload_config(reload), why, sizeof why) == 0) {
        reload->edits[reload->n++] = next->edit;
        next = next->next;
    }
}

static void start_first(struct reload *reload)
{
    reload->busy = true;
    for (take_batch(reload); reload->n > 0; take_batch(reload)) {
        reload->result = (struct reload_result){0};
        reload->errors = open_memstream(&reload->text, &reload->text_size);
        if (reload->errors) {
            reload->began(reload->opaque, !reload->edits[0]);
            work_start(reload->work, &reload->read);
            return;
        }
        if (!reload->edits[0])
            keep_account(reload, -ENOMEM, "");
        answer_first(reload, -ENOMEM, "");
    }
    reload->busy = false;
}

static void end_batch(struct reload *reload, int rc)
{
    const char *text = reload->text ? reload->text : "";
    const bool whole = !reload->edits[0];
    if (whole)
        keep_account(reload, rc, text);
    else
        keep_edits(reload, rc, text);
    reload->most = whole ? reload->most : 2 * reload->most;
    if (reload->most > RELOAD_EDITS_MAX)
        reload->most = RELOAD_EDITS_MAX;
    reload->ended(reload->opaque, whole, rc);
    for (; reload->n > 0; reload->n--)
        answer_first(reload, rc, text);
}

static void go_on(struct reload *reload)
{
    free(reload->text);
    reload->text = NULL;
    start_first(reload);
}

static void edits_were_synced(struct work *work)
{
    struct reload *reload = reload_of(work, offsetof(struct reload, sync));
    end_batch(reload, 0);
    go_on(reload);
}

// Retries edits that were refused together in smaller groups: each gets its own answer.
static void config_was_read(struct work *work)
{
    struct reload *reload = reload_of(work, offsetof(struct reload, read));
    const bool edits = reload->edits[0];
    int rc = reload->closed ? -ESHUTDOWN : reload->rc;
    const bool written = edits && reload->rc == 0;
    if (rc == 0)
        rc = apply(reload);
    config_free(reload->config);
    reload->config = NULL;
    fclose(reload->errors);
    for (int i = 0; written && rc < 0 && i < reload->n; i++)
        edit_abandon(reload->edits[i]);
    if (rc == 0 && edits) {
        work_start(reload->work, &reload->sync);
        return;
    }
    if (rc < 0 && reload->n > 1)
        reload->most = reload->n / 2;
    else if (!reload->closed)
        end_batch(reload, rc);
    go_on(reload);
}

void reload_open(struct reload *reload)
{
    if (reload_has_file(reload))
        edit_clean(reload->file);
    reload->last = &reload->first;
    reload->most = RELOAD_EDITS_MAX;
    reload->read = (struct work){.run = read_config, .done = config_was_read};
    reload->sync = (struct work){.run = sync_edits, .done = edits_were_synced};
}

void reload_start(struct reload *reload, struct reload_request *request)
{
    request->next = NULL;
    *reload->last = request;
    reload->last = &request->next;
    if (!reload->busy)
        start_first(reload);
}

void reload_close(struct reload *reload)
{
    reload->closed = true;
}

void reload_free(struct reload *reload)
{
    config_free(reload->loaded);
    assigned_free(&reload->assigned);
}

const struct config *reload_config(const struct reload *reload)
{
    return reload->loaded ? reload->loaded : reload->started;
}

// Follows links each time: they may lead to another file by now.
bool reload_is_of(const struct reload *reload, const char *path, FILE *errors)
{
    if (!reload_has_file(reload))
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
