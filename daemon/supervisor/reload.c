#include "daemon/supervisor/reload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/load.h"
#include "daemon/base/clock.h"
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

static int apply(struct reload *reload, const struct config *config, FILE *errors,
                 struct reload_result *ret)
{
    struct reconfigure *plan = NULL;
    int rc = reconfigure_open(&plan, reload->cameras, config, reload->file, errors);
    if (rc == 0)
        rc = reload->prepare(reload->opaque, config, reload->file, errors);
    if (rc == -ENOMEM)
        fprintf(errors, "%s: %s\n", reload->file, strerror(ENOMEM));
    if (rc == 0) {
        log_level(config->log.level);
        warn_of_writers(config);
        reconfigure_apply(plan, ret);
        reload->commit(reload->opaque);
    }
    reconfigure_close(plan);
    return rc;
}

// The loop would wait for a pipe's writer. Of a folder, reading it has a better reason.
static bool may_wait(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static bool is_standard_input(const struct reload *reload)
{
    return !reload->file || strcmp(reload->file, "-") == 0;
}

static int attempt(struct reload *reload, FILE *errors, struct reload_result *ret)
{
    struct config *config = NULL;
    if (is_standard_input(reload)) {
        fputs("what came from standard input cannot be read again\n", errors);
        return -EINVAL;
    }
    if (may_wait(reload->file)) {
        fprintf(errors, "%s: is not a file, which alone can be read again\n", reload->file);
        return -EINVAL;
    }
    const struct config_load_options options = {.running = reload->running,
                                                .judge = machine_check_descriptors};
    if (config_load_with(&config, reload->file, &options, errors) != 0)
        return -EINVAL;
    int rc = apply(reload, config, errors, ret);
    config_free(config);
    return rc;
}

// Each line to the log, and to whoever asked.
static void tell(const char *text, FILE *errors)
{
    for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
        log_event(LOG_LEVEL_ERROR, "reload: %.*s", (int)(end - text), text);
        if (errors)
            fprintf(errors, "%.*s\n", (int)(end - text), text);
    }
}

// Scrubbed whole and then cut: half a URL would not be known for one.
static void keep_first(struct reload *reload, const char *text)
{
    char *line = strndup(text, strcspn(text, "\n"));
    log_scrub(reload->error, sizeof reload->error, line ? line : "");
    free(line);
}

int reload_run(struct reload *reload, FILE *errors, struct reload_result *ret)
{
    char *text = NULL, done[160];
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    int rc = stream ? attempt(reload, stream, ret) : -ENOMEM;
    if (stream)
        fclose(stream);
    reload->tried_ns = realtime_ns();
    keep_first(reload, text ? text : "");
    if (text)
        tell(text, errors);
    free(text);
    reload->is_applied = rc == 0;
    if (rc == 0)
        reload->loaded_ns = reload->tried_ns;
    reload->applied += rc == 0;
    reload->refused += rc < 0;
    if (rc == 0)
        log_event(LOG_LEVEL_INFO, "reloaded %s: %s", reload->file,
                  reload_text(ret, done, sizeof done));
    else
        log_event(LOG_LEVEL_ERROR, "not reloaded: nothing has changed");
    return rc;
}

// Links are followed anew each time: they may lead to another file by now.
bool reload_is_of(const struct reload *reload, const char *path, FILE *errors)
{
    if (is_standard_input(reload))
        return true; // reload_run has the better reason
    char *own = realpath(reload->file, NULL);
    const bool same = own && strcmp(own, path) == 0;
    if (!same)
        fprintf(errors, "the framed that answers runs with %s, not with %s\n",
                own ? own : reload->file, path);
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
