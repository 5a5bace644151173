#include "daemon/tune/tune.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/url.h"
#include "daemon/base/log.h"
#include "daemon/bench/interrupt.h"
#include "daemon/cli/check.h"
#include "daemon/daemon.h"
#include "daemon/input/libav_log.h"
#include "daemon/supervisor/machine_check.h"
#include "daemon/tune/fragment.h"
#include "daemon/tune/options.h"
#include "daemon/tune/original.h"
#include "daemon/tune/stage.h"

static const double MIB = 1 << 20;

// What all steps share. One thread, the main one.
struct tune {
    struct tune_options options;
    struct config *config;
    struct original original;
    struct facilities facilities;
    struct settings settings;
    struct stage stage;
    struct search_options search;
    struct search_result result;
    struct finding finding;
};

static int fail(const struct tune *tune, int code, const char *what)
{
    fprintf(stderr, "%s: %s\n", tune->options.config, what);
    return code;
}

// --- one trial

static void print_pick(const struct tune *tune, const struct pick *pick)
{
    struct edit edits[SEARCH_SETTINGS_MAX];
    const int n = settings_edits(&tune->settings, pick, edits);
    for (int i = 0; i < n; i++)
        fprintf(stderr, "%s%s: %s", i ? ", " : "", edits[i].key, edits[i].value);
    fputs(n ? "" : "as it is", stderr);
}

static void print_progress(const struct tune *tune, const struct pick *pick, int rc,
                           const struct figures *figures)
{
    if (rc == -EINTR)
        return;
    fprintf(stderr, "trial %d: ", tune->finding.trials);
    print_pick(tune, pick);
    if (rc == -ENOEXEC)
        fprintf(stderr, ": does not run: %s\n", tune->stage.complaint);
    else if (rc < 0)
        fprintf(stderr, ": %s\n", strerror(-rc));
    else
        fprintf(stderr, ": %.1f frames/s, %.2f cores, p99 %.1f ms, %.0f MiB, %.2f %% lost\n",
                figures->rate, figures->cores, figures->p99_ms, figures->resident / MIB,
                100 * figures->lost);
}

static int trial(void *opaque, const struct pick *pick, struct figures *ret)
{
    struct tune *tune = opaque;
    struct edit edits[SEARCH_SETTINGS_MAX];
    char *text, why[256];
    size_t length;
    const int n = settings_edits(&tune->settings, pick, edits);
    int rc = edit_keys(&text, &length, tune->original.text, tune->original.length, edits, n, why,
                       sizeof why);
    if (rc < 0)
        return rc;
    tune->finding.trials++;
    rc = stage_trial(&tune->stage, text, length, ret);
    print_progress(tune, pick, rc, ret);
    free(text);
    return rc;
}

static bool matters(void *opaque, const struct pick *pick, int setting)
{
    return settings_matter(&((const struct tune *)opaque)->settings, pick, setting);
}

// --- before the first

static int load(struct tune *tune)
{
    const char *path = tune->options.config;
    int rc = original_read(&tune->original, path);
    if (rc < 0) {
        fail(tune, EXIT_CONFIG, rc == -EINVAL ? "is not a file" : strerror(-rc));
        return EXIT_CONFIG;
    }
    if (config_load_text(&tune->config, tune->original.text, tune->original.length, path, stderr))
        return EXIT_CONFIG;
    for (int i = 0; i < tune->config->n_cameras && !tune->options.clip; i++)
        if (config_url_kind(tune->config->cameras[i].url) == URL_PIPE)
            return fail(tune, EXIT_CONFIG,
                        "a camera reads a pipe, which no trial can have for "
                        "itself (--clip FILE stands for it)");
    return config_judge_loaded(tune->config, path, machine_check_process, stderr) ? EXIT_CONFIG
                                                                                  : EXIT_OK;
}

// That all can be written at the end is known at the start.
static int look_ahead(struct tune *tune)
{
    const struct edit edit = {"tuned", "x", NULL};
    char why[300], place[360], *text = NULL;
    size_t length;
    int rc = settings_find(&tune->settings, &tune->facilities, tune->original.text,
                           tune->original.length, why, sizeof why);
    if (rc == 0)
        rc = edit_keys(&text, &length, tune->original.text, tune->original.length, &edit, 1, why,
                       sizeof why);
    free(text);
    if (rc < 0) {
        snprintf(place, sizeof place, "%s", rc == -EINVAL ? why : strerror(-rc));
        fprintf(stderr, "%s:%s%s\n", tune->options.config, rc == -EINVAL ? "" : " ", place);
        return EXIT_CONFIG;
    }
    if (tune->options.write && original_writable(&tune->original, why, sizeof why) < 0)
        return fail(tune, EXIT_RUNTIME, why);
    return EXIT_OK;
}

static void prepare_search(struct tune *tune)
{
    tune->search = (struct search_options){.n = tune->settings.n,
                                           .objective = tune->stage.objective,
                                           .trial = trial,
                                           .matters = matters,
                                           .opaque = tune};
    for (int i = 0; i < tune->settings.n; i++) {
        const struct setting *setting = &tune->settings.list[i];
        tune->search.setting[i] =
            (struct search_setting){.n = setting->n, .series = setting->series};
        tune->search.start.value[i] = setting->start;
    }
}

static void describe_load(struct tune *tune)
{
    struct finding *finding = &tune->finding;
    const struct stage *stage = &tune->stage;
    struct fingerprint box;
    fingerprint_read(&box, tune->facilities.device);
    fingerprint_text(&box, finding->fingerprint);
    snprintf(finding->file, sizeof finding->file, "%.199s", tune->options.config);
    snprintf(finding->load, sizeof finding->load, "%d camera%s, %d output%s, %s%.100s%s",
             stage->cameras, stage->cameras == 1 ? "" : "s", stage->outputs,
             stage->outputs == 1 ? "" : "s", tune->options.clip ? "all of them " : "as they are",
             tune->options.clip ? tune->options.clip : "",
             stage->objective == OBJECTIVE_RATE ? " at full speed" : " at its own pace");
    finding->settings = &tune->settings;
    finding->result = &tune->result;
    finding->objective = stage->objective;
    finding->seconds = stage->seconds;
}

static int prepare(struct tune *tune)
{
    int code = load(tune);
    if (code != EXIT_OK)
        return code;
    settings_look(&tune->facilities, tune->config);
    code = look_ahead(tune);
    if (code != EXIT_OK)
        return code;
    int rc = stage_open(&tune->stage, tune->config, tune->options.clip, tune->options.live,
                        tune->options.seconds);
    if (rc < 0)
        return fail(tune, EXIT_RUNTIME, strerror(-rc));
    prepare_search(tune);
    describe_load(tune);
    return EXIT_OK;
}

// --- the search, and its outcome

static int compare_with_grid(struct tune *tune)
{
    struct comparison *grid = &tune->finding.grid;
    struct search_result *result = &tune->result;
    enum verdict verdict;
    int rc = search_grid(&tune->search, &grid->best, &grid->tried);
    result->pick = tune->search.start;
    if (rc == 0)
        rc = search_duel(&tune->search, &result->pick, &grid->best, &result->before, &grid->of_best,
                         &verdict);
    result->after = result->before;
    return rc;
}

static int search(struct tune *tune)
{
    int rc =
        tune->options.grid ? compare_with_grid(tune) : search_run(&tune->search, &tune->result);
    if (rc == 0)
        return EXIT_OK;
    char what[500];
    snprintf(what, sizeof what, "%s%s",
             rc == -EINTR     ? "stopped by a signal"
             : rc == -ENOEXEC ? "does not run on this box: "
                              : strerror(-rc),
             rc == -ENOEXEC ? tune->stage.complaint : "");
    const bool no_device = rc == -ENOEXEC && tune->stage.code == EXIT_NO_DEVICE;
    return fail(tune, no_device ? EXIT_NO_DEVICE : EXIT_RUNTIME, what);
}

static int print(const struct tune *tune)
{
    int rc = 0;
    if (tune->options.json)
        fragment_print_json(stdout, &tune->finding);
    else
        rc = fragment_print_yaml(stdout, &tune->finding);
    if (rc == 0 && fflush(stdout) != 0)
        rc = -errno;
    return rc < 0 ? fail(tune, EXIT_RUNTIME, strerror(-rc)) : EXIT_OK;
}

// The configuration with the finding in it has passed the same check as any before it is written.
static int put(const struct tune *tune, const char *text, size_t length)
{
    struct config *config = NULL;
    char why[300];
    if (config_load_text(&config, text, length, tune->options.config, stderr) != 0)
        return fail(tune, EXIT_RUNTIME, "is left as it is");
    config_free(config);
    if (length == tune->original.length && memcmp(text, tune->original.text, length) == 0)
        return EXIT_OK; // that is how it is
    if (original_replace(&tune->original, text, length, why, sizeof why) < 0)
        return fail(tune, EXIT_RUNTIME, why);
    return EXIT_OK;
}

static int write_back(const struct tune *tune)
{
    struct fragment fragment;
    char *text, why[300];
    size_t length;
    fragment_make(&fragment, &tune->finding);
    int rc = edit_keys(&text, &length, tune->original.text, tune->original.length, fragment.edits,
                       fragment.n, why, sizeof why);
    if (rc < 0)
        return fail(tune, EXIT_RUNTIME, rc == -EINVAL ? why : strerror(-rc));
    int code = put(tune, text, length);
    free(text);
    return code;
}

static int run(struct tune *tune)
{
    int code = prepare(tune);
    if (code == EXIT_OK)
        code = search(tune);
    if (code == EXIT_OK)
        code = print(tune);
    if (code == EXIT_OK && tune->options.write)
        code = write_back(tune);
    stage_close(&tune->stage);
    original_free(&tune->original);
    config_free(tune->config);
    return code;
}

int tune_main(int argc, char **argv)
{
    struct tune tune = {.config = NULL};
    const struct tune_options *options = &tune.options;
    bool help;
    int code = tune_options_parse(&tune.options, argc, argv, &help);
    if (code != EXIT_OK || help)
        return code;
    code = check_cpu("tune");
    if (code != EXIT_OK)
        return code;
    if (options->rehearsal) {
        const struct rehearsal rehearsal = {options->rehearsal, options->clip, options->live};
        return rehearsal_run(options->config, &rehearsal);
    }
    interrupt_block();
    log_open(LOG_LEVEL_ERROR);
    libav_log_open();
    return run(&tune);
}
