// Rows: the whole daemon with each combination of some settings, in turns, next to each other.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/process.h"
#include "tests/bench/bench.h"
#include "tests/bench/sample.h"
#include "tests/bench/session.h"

static const double RATE_S = 5, LIVE_S = 10, MIB = 1 << 20;
static const double SETTLE_S = 5; // cameras show their keyframe interval in this time

enum { RATE, CPU, P99, RESIDENT, LOST, CPU_MORE, FIGURES };

static const struct {
    const char *name, *heading, *unit;
    int decimals, width; // width of its column
} figures[FIGURES] = {
    [RATE] = {"rate", "frames/s", "frames/s", 0, 20},
    [CPU] = {"CPU", "cores", "cores", 2, 17},
    [P99] = {"received to finished p99", "p99 ms", "ms", 1, 19},
    [RESIDENT] = {"resident memory", "MiB", "MiB", 0, 16},
    [LOST] = {"lost", "frames lost", "frames", 0, 14},
    // Relative to the first combination in the same turn: other load on the machine changes slowly.
    [CPU_MORE] = {"CPU of each camera more than in the first line", "+% a camera", "% of a core", 2,
                  22},
};

struct combination {
    struct setting settings[SETTINGS_MAX];
    char name[200]; // "cuda.streams=4, defaults.slots=6"
    double figure[FIGURES][TRY_RUNS_MAX];
    int runs; // completed
};

// The last key's values change fastest. Returns the number of combinations.
static int make_combinations(const struct bench_options *options,
                             struct combination ret[TRY_COMBINATIONS_MAX])
{
    int n = 1;
    for (int i = 0; i < options->n_tries; i++)
        n *= options->tries[i].n;
    for (int k = 0; k < n; k++) {
        size_t used = 0;
        ret[k].name[0] = '\0';
        for (int i = 0, below = n; i < options->n_tries; i++) {
            const struct try *try = &options->tries[i];
            below /= try->n;
            const char *value = try->value[k / below % try->n];
            ret[k].settings[i] = (struct setting){try->key, value};
            if (used < sizeof ret[k].name)
                used += (size_t)snprintf(ret[k].name + used, sizeof ret[k].name - used, "%s%s=%s",
                                         i ? ", " : "", try->key, value);
        }
    }
    return n;
}

static struct testbed_options testbed_with(const struct bench_options *options, int cameras,
                                           const struct combination *combination)
{
    struct testbed_options ret = {.clip = options->clip,
                                  .width = 1920,
                                  .height = 1080,
                                  .cameras = cameras,
                                  .realtime = options->live,
                                  .dtype = options->dtypes[0],
                                  .backend = options->backend,
                                  .decoders = options->decoders,
                                  .n_settings = options->n_tries};
    memcpy(ret.settings, combination->settings, sizeof ret.settings);
    return ret;
}

int try_check(const struct bench_options *options)
{
    if (!options->rows[ROWS_TRY])
        return EXIT_OK;
    struct combination *all = calloc(TRY_COMBINATIONS_MAX, sizeof *all);
    char why[300];
    int rc = all ? 0 : -ENOMEM;
    const int n = all ? make_combinations(options, all) : 0;
    for (int k = 0; rc == 0 && k < n; k++) {
        const struct testbed_options testbed = testbed_with(options, 1, &all[k]);
        rc = testbed_check(&testbed, why, sizeof why);
    }
    free(all);
    if (rc < 0)
        fprintf(stderr, "framed-bench: --try: %s\n", rc == -EINVAL ? why : strerror(-rc));
    return rc == 0 ? EXIT_OK : rc == -EINVAL ? EXIT_USAGE : EXIT_RUNTIME;
}

// --- measuring

static double seconds_of(const struct bench_options *options)
{
    return options->seconds > 0 ? options->seconds : options->live ? LIVE_S : RATE_S;
}

// `first` has already run in this turn, unless it is the same one or was left out.
static int run_once(struct bench *bench, int cameras, struct combination *combination,
                    const struct combination *first)
{
    struct testbed_options options = testbed_with(&bench->options, cameras, combination);
    struct session session;
    struct window window;
    options.width = bench->footage.width;
    options.height = bench->footage.height;
    int rc = session_open(&session, bench, &options);
    if (rc < 0)
        return rc;
    rc = session.server ? interrupt_wait(SETTLE_S) : 0;
    if (rc == 0)
        rc = session_window(&session, seconds_of(&bench->options), &window);
    if (rc == 0) {
        const int run = combination->runs;
        const double more = first == combination ? 0
                            : first->runs > run  ? window.cores - first->figure[CPU][run]
                                                 : NAN;
        const double values[FIGURES] = {
            [RATE] = (double)window.consumed.frames / window.seconds,
            [CPU] = window.cores,
            [P99] = window.consumed.p99_ms,
            [RESIDENT] = window.resident / MIB,
            [LOST] = (double)window.consumed.lost,
            [CPU_MORE] = 100 * more / cameras,
        };
        for (int i = 0; i < FIGURES; i++)
            combination->figure[i][run] = values[i];
        combination->runs++;
    }
    session_close(&session);
    return rc;
}

// Takes turns, so that other load on this machine affects all combinations. Leaves out a failed
// combination from then on. Returns 0 or the last error; -EINTR ends it at once.
static int run_all(struct bench *bench, int cameras, struct combination *all, int n)
{
    int failed = 0;
    for (int run = 0; run < bench->options.runs; run++)
        for (int k = 0; k < n; k++) {
            if (all[k].runs < run)
                continue;
            if (isatty(STDERR_FILENO))
                fprintf(stderr, "run %d of %d: %s\n", run * n + k + 1, bench->options.runs * n,
                        all[k].name);
            int rc = run_once(bench, cameras, &all[k], all);
            if (rc == -EINTR)
                return rc;
            if (rc < 0) {
                report_note(&bench->report, "%s is left out", all[k].name);
                failed = rc;
            }
        }
    return failed;
}

// --- results

static void print_heading(struct bench *bench, int cameras, int width)
{
    static const char *const dtypes[] = {"u8", "s8", "f16", "f32"};
    FILE *to = bench->report.to;
    fprintf(to, "\ntry, %d camera%s %s to %s tensors: median (least-most) of %d run%s of %g s\n",
            cameras, cameras == 1 ? "" : "s",
            bench->options.live ? "at their own pace" : "at full speed",
            dtypes[bench->options.dtypes[0]], bench->options.runs,
            bench->options.runs == 1 ? "" : "s", seconds_of(&bench->options));
    fprintf(to, "  %-*s", width, "");
    for (int i = 0; i < FIGURES; i++)
        fprintf(to, " %*s", figures[i].width, figures[i].heading);
    putc('\n', to);
}

static void add_figure(struct bench *bench, int cameras, struct combination *combination, int i)
{
    const size_t n = (size_t)combination->runs;
    double *samples = combination->figure[i];
    struct row row = row_named("try", "%d camera%s, %s: %s", cameras, cameras == 1 ? "" : "s",
                               combination->name, figures[i].name);
    char cell[96];
    row.unit = figures[i].unit;
    row.value = sample_median(samples, n);
    row.least = sample_percentile(samples, n, 0);
    row.most = sample_percentile(samples, n, 100);
    report_keep(&bench->report, &row);
    if (bench->report.json)
        return;
    snprintf(cell, sizeof cell, "%.*f (%.*f-%.*f)", figures[i].decimals, row.value,
             figures[i].decimals, row.least, figures[i].decimals, row.most);
    fprintf(bench->report.to, " %*s", figures[i].width, cell);
}

static void print_all(struct bench *bench, int cameras, struct combination *all, int n)
{
    int width = 0;
    for (int k = 0; k < n; k++)
        width = (int)strlen(all[k].name) > width ? (int)strlen(all[k].name) : width;
    if (!bench->report.json)
        print_heading(bench, cameras, width);
    for (int k = 0; k < n; k++) {
        if (all[k].runs < bench->options.runs)
            continue;
        if (!bench->report.json)
            fprintf(bench->report.to, "  %-*s", width, all[k].name);
        for (int i = 0; i < FIGURES; i++)
            add_figure(bench, cameras, &all[k], i);
        if (!bench->report.json)
            putc('\n', bench->report.to);
    }
}

int bench_try(struct bench *bench)
{
    int rc = 0;
    for (int i = 0; rc != -EINTR && i < bench->options.n_cameras; i++) {
        const int cameras = bench->options.cameras[i];
        struct combination *all = calloc(TRY_COMBINATIONS_MAX, sizeof *all);
        if (!all)
            return -ENOMEM;
        const int n = make_combinations(&bench->options, all);
        const int failed = run_all(bench, cameras, all, n);
        if (failed != -EINTR)
            print_all(bench, cameras, all, n);
        rc = failed < 0 ? failed : rc;
        free(all);
    }
    return rc;
}
