// The search among made-up measurements: what it finds, keeps, leaves out, and in what order it
// tries.
#include "daemon/tune/search.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "tests/test.h"

enum { SETTINGS = 3, VALUES = 6, LOG_MAX = 4000, RUNS = 60 };

// A box: what each value of each setting multiplies the rate, CPU and memory by; 0: as 1.
struct box {
    double rate[SETTINGS][VALUES], cores[SETTINGS][VALUES], resident[SETTINGS][VALUES];
    double lost[SETTINGS][VALUES], p99[SETTINGS][VALUES];
    double together;          // factor of the rate where settings 0 and 1 are both at value 1
    double noise;             // up to this part more or less
    bool idle[SETTINGS];      // the setting does not matter
    int broken;               // value of setting 0 with which nothing runs; 0: none
    int interrupted;          // the trial that a signal ends; 0: none
    uint64_t seed;            // of the noise
    struct pick log[LOG_MAX]; // every trial
    int n;
};

static double factor(double f)
{
    return f > 0 ? f : 1;
}

static double noisy(struct box *box, double value)
{
    box->seed = box->seed * 6364136223846793005 + 1442695040888963407;
    return value * (1 + box->noise * ((double)(box->seed >> 33) / (1U << 30) - 1));
}

static int trial(void *opaque, const struct pick *pick, struct figures *ret)
{
    struct box *box = opaque;
    struct figures figures = {.rate = 1000, .cores = 2, .p99_ms = 10, .resident = 1e8};
    if (box->n < LOG_MAX)
        box->log[box->n] = *pick;
    if (++box->n == box->interrupted)
        return -EINTR;
    if (box->broken && pick->value[0] == box->broken)
        return -ENOEXEC;
    for (int i = 0; i < SETTINGS; i++) {
        figures.rate *= factor(box->rate[i][pick->value[i]]);
        figures.cores *= factor(box->cores[i][pick->value[i]]);
        figures.resident *= factor(box->resident[i][pick->value[i]]);
        figures.p99_ms *= factor(box->p99[i][pick->value[i]]);
        figures.lost += box->lost[i][pick->value[i]];
    }
    if (pick->value[0] == 1 && pick->value[1] == 1)
        figures.rate *= factor(box->together);
    figures.rate = noisy(box, figures.rate);
    figures.cores = noisy(box, figures.cores);
    *ret = figures;
    return 0;
}

static bool matters(void *opaque, const struct pick *pick, int setting)
{
    (void)pick;
    return !((struct box *)opaque)->idle[setting];
}

static struct search_options options_of(struct box *box)
{
    struct search_options options = {
        .n = SETTINGS, .trial = trial, .matters = matters, .opaque = box};
    for (int i = 0; i < SETTINGS; i++)
        options.setting[i].n = VALUES;
    return options;
}

static void expect(const char *name, struct box *box, enum objective objective, int a, int b, int c)
{
    struct search_options options = options_of(box);
    struct search_result result;
    options.objective = objective;
    int rc = search_run(&options, &result);
    const int *v = result.pick.value;
    CHECK(rc == 0 && v[0] == a && v[1] == b && v[2] == c, "%s: %d, %d %d %d", name, rc, v[0], v[1],
          v[2]);
}

static void test_best(void)
{
    struct box box = {.rate = {{1, 1.5, 1.2}, {1, 0.5, 1.1}, {1, 1, 1, 1.3}}};
    expect("best", &box, OBJECTIVE_RATE, 1, 2, 3);
    for (int i = 0; i < 3; i++)
        CHECK(box.log[i].value[0] == 0, "trial %d is not of the start", i);
    CHECK(box.log[3].value[0] == 1 && box.log[3].value[1] == 0, "the first setting is not first");
}

static void test_ties(void)
{
    struct box same = {0}, cpu = {.cores = {{1, 1, 0.8}}}, memory = {.resident = {{1, 0.7}}};
    struct box small = {.rate = {{1, 1.015}}, .cores = {{1, 1, 0.97}}, .resident = {{1, 0.95}}};
    struct box dear = {.rate = {{1, 1.1}}, .cores = {{1, 1.5}}};
    struct box lossy = {.rate = {{1, 2}}, .lost = {{0, 0.01}}};
    expect("all the same", &same, OBJECTIVE_RATE, 0, 0, 0);
    expect("less CPU", &cpu, OBJECTIVE_RATE, 2, 0, 0);
    expect("less memory", &memory, OBJECTIVE_RATE, 1, 0, 0);
    expect("too little to count", &small, OBJECTIVE_RATE, 0, 0, 0);
    expect("frames before CPU", &dear, OBJECTIVE_RATE, 1, 0, 0);
    expect("fast by losing", &lossy, OBJECTIVE_RATE, 0, 0, 0);
}

static void test_live(void)
{
    struct box cpu = {.rate = {{1, 2}}, .cores = {{1, 1, 0.8}}};
    struct box latency = {.p99 = {{1, 0.5}}, .cores = {{1, 1, 1, 1.2}}};
    struct box lossy = {.lost = {{0.1, 0, 0, 0.1, 0.1, 0.1}}, .cores = {{1, 1.5, 1.4}}};
    expect("CPU, not frames", &cpu, OBJECTIVE_LIVE, 2, 0, 0);
    expect("latency", &latency, OBJECTIVE_LIVE, 1, 0, 0);
    expect("nothing lost, whatever it takes", &lossy, OBJECTIVE_LIVE, 2, 0, 0);
}

// One setting's best value is another beside what a later one turns out to have.
static void test_together(void)
{
    struct box box = {.rate = {{1, 0.9}, {1, 1.1}}, .together = 2};
    expect("together", &box, OBJECTIVE_RATE, 1, 1, 0);
}

static void test_left_out(void)
{
    struct box idle = {.rate = {{1, 2}, {1, 2}}, .idle = {true}};
    struct box broken = {.rate = {{1, 1, 2}}, .broken = 1};
    struct box series = {.rate = {{1, 0.9, 0.8, 0.7, 0.6, 0.5}}, .idle = {false, true, true}};
    struct search_options options = options_of(&series);
    struct search_result result;
    expect("one that does not matter", &idle, OBJECTIVE_RATE, 0, 1, 0);
    expect("one that does not run", &broken, OBJECTIVE_RATE, 2, 0, 0);
    options.setting[0].series = true;
    CHECK(search_run(&options, &result) == 0 && result.pick.value[0] == 0, "series");
    CHECK(series.n == 3 + 3, "%d trials of a series that falls", series.n);
}

static void test_interrupted(void)
{
    for (int at = 1; at < 30; at++) {
        struct box box = {.rate = {{1, 1.01, 1.5}}, .noise = 0.02, .interrupted = at};
        struct search_options options = options_of(&box);
        struct search_result result;
        CHECK(search_run(&options, &result) == -EINTR, "trial %d", at);
        CHECK(box.n == at, "%d trials, interrupted in %d", box.n, at);
    }
}

// What is clearly better is found in all runs, and nearly all come to the same choice.
static void test_noise(void)
{
    int chosen = 0, kept = 0;
    for (int run = 0; run < RUNS; run++) {
        struct box clear = {.rate = {{1, 1.3, 1.15}, {1, 0.9, 0.8}}, .noise = 0.04};
        struct box same = {.rate = {{1, 1.005, 0.99}}, .noise = 0.04};
        struct search_options options = options_of(&clear);
        struct search_result result;
        clear.seed = same.seed = (uint64_t)run * 977 + 1;
        CHECK(search_run(&options, &result) == 0 && result.pick.value[0] == 1, "run %d", run);
        chosen += result.pick.value[1] == 0 && result.pick.value[2] == 0;
        options.opaque = &same;
        CHECK(search_run(&options, &result) == 0, "run %d", run);
        kept += memcmp(&result.pick, &options.start, sizeof result.pick) == 0;
    }
    CHECK(chosen >= RUNS * 19 / 20 && kept >= RUNS * 19 / 20, "%d and %d of %d runs", chosen, kept,
          RUNS);
}

static void test_figures(void)
{
    struct box box = {.rate = {{1, 1.5}}, .cores = {{1, 1.2}}};
    struct search_options options = options_of(&box);
    struct search_result result;
    CHECK(search_run(&options, &result) == 0, "run");
    CHECK(trials_median(&result.before).rate == 1000 && trials_median(&result.after).rate == 1500,
          "%g, %g", trials_median(&result.before).rate, trials_median(&result.after).rate);
    CHECK(result.with[0].rate == 1500 && result.without[0].rate == 1000, "%g, %g",
          result.with[0].rate, result.without[0].rate);
    CHECK(result.without_value[0] == 0, "%d", result.without_value[0]);
}

static void test_grid(void)
{
    struct box box = {.rate = {{1, 1, 1, 1.1}, {1, 1, 1, 1, 1, 1.2}}, .idle = {false, false, true}};
    struct search_options options = options_of(&box);
    struct pick best;
    int tried;
    options.setting[0].n = 2;
    options.start.value[0] = 1;
    CHECK(search_grid(&options, &best, &tried) == 0, "grid");
    CHECK(tried == 2 * 3, "%d combinations", tried);
    CHECK(best.value[1] == 5 && best.value[2] == 0, "%d %d", best.value[1], best.value[2]);
    box.interrupted = box.n + 3;
    CHECK(search_grid(&options, &best, &tried) == -EINTR, "grid interrupted");
}

static struct trials trials_of(int n, const double rates[])
{
    struct trials trials = {.n = n};
    for (int i = 0; i < n; i++)
        trials.list[i] = (struct figures){.rate = rates[i], .cores = 1, .resident = 1};
    return trials;
}

static void test_judge(void)
{
    static const struct {
        int n;
        double challenger[6], holder[6];
        enum verdict verdict;
    } cases[] = {
        {3, {110, 111, 112}, {100, 101, 102}, VERDICT_BETTER},
        {3, {100, 101, 102}, {110, 111, 112}, VERDICT_WORSE},
        {3, {101, 101, 101}, {100, 100, 100}, VERDICT_SAME},
        {3, {104, 110, 118}, {100, 101, 104}, VERDICT_OPEN},
        {3, {80, 101, 120}, {99, 100, 101}, VERDICT_SAME},
        {6,
         {60, 110, 110, 111, 109, 110},
         {100, 101, 100, 102, 99, 100},
         VERDICT_BETTER}, // one was disturbed
        {3, {60, 110, 110}, {100, 101, 100}, VERDICT_OPEN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct trials challenger = trials_of(cases[i].n, cases[i].challenger);
        const struct trials holder = trials_of(cases[i].n, cases[i].holder);
        enum verdict verdict = trials_judge(&challenger, &holder, OBJECTIVE_RATE, false);
        CHECK(verdict == cases[i].verdict, "case %zu: %d", i, verdict);
        if (verdict == VERDICT_OPEN)
            CHECK(trials_judge(&challenger, &holder, OBJECTIVE_RATE, true) == VERDICT_SAME,
                  "case %zu is not settled", i);
    }
}

int main(void)
{
    test_judge();
    test_best();
    test_ties();
    test_live();
    test_together();
    test_left_out();
    test_interrupted();
    test_noise();
    test_figures();
    test_grid();
    return test_end("search");
}
