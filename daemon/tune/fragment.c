#include "daemon/tune/fragment.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/bench/json.h"

static const double MIB = 1 << 20;

static char *describe(const struct figures *figures, char *to, size_t size)
{
    int n = snprintf(to, size, "%.1f frames/s, %.2f cores, p99 %.1f ms, %.0f MiB", figures->rate,
                     figures->cores, figures->p99_ms, figures->resident / MIB);
    if (figures->lost > 0 && n < (int)size)
        snprintf(to + n, size - (size_t)n, ", %.2f %% lost", 100 * figures->lost);
    return to;
}

static const char *value_of(const struct finding *finding, const struct pick *pick, int i)
{
    return finding->settings->list[i].value[pick->value[i]];
}

void fragment_make(struct fragment *ret, const struct finding *finding)
{
    const struct settings *settings = finding->settings;
    const struct search_result *result = finding->result;
    char with[80], without[80];
    *ret = (struct fragment){.n = 1};
    ret->edits[0] = (struct edit){"tuned", finding->fingerprint, NULL};
    for (int i = 0; i < settings->n; i++) {
        if (result->pick.value[i] == settings->list[i].start)
            continue;
        char *comment = ret->comments[ret->n];
        snprintf(comment, FRAGMENT_COMMENT, "%s; with %s: %s",
                 describe(&result->with[i], with, sizeof with),
                 settings->list[i].value[result->without_value[i]],
                 describe(&result->without[i], without, sizeof without));
        ret->edits[ret->n++] =
            (struct edit){settings->list[i].key, value_of(finding, &result->pick, i), comment};
    }
}

// --- YAML

static void print_comparison(FILE *to, const struct finding *finding)
{
    const struct comparison *grid = &finding->grid;
    const struct figures best = trials_median(&grid->of_best);
    const struct figures own = trials_median(&finding->result->before);
    const struct settings *settings = finding->settings;
    char figures[100];
    fprintf(to, "# the best of a grid of %d: %s\n#  ", grid->tried,
            describe(&best, figures, sizeof figures));
    for (int i = 0; i < settings->n; i++)
        fprintf(to, " %s: %s%s", settings->list[i].key, value_of(finding, &grid->best, i),
                i + 1 < settings->n ? "," : "");
    fprintf(to, "\n# as it is, that is %.1f %% of the frames/s of that\n",
            100 * own.rate / best.rate);
}

static void print_head(FILE *to, const struct finding *finding)
{
    const struct figures before = trials_median(&finding->result->before);
    char figures[100];
    fprintf(to, "# framed tune: %s\n# %s, %d trials of %g s, which differ by %.1f %%\n",
            finding->file, finding->load, finding->trials, finding->seconds,
            100 * trials_noise(&finding->result->before, finding->objective));
    fprintf(to, "# as it is: %s\n", describe(&before, figures, sizeof figures));
}

static void print_outcome(FILE *to, const struct finding *finding, bool changed)
{
    const struct figures after = trials_median(&finding->result->after);
    char figures[100];
    if (changed)
        fprintf(to, "# as below: %s\n", describe(&after, figures, sizeof figures));
    else
        fputs("# nothing is better than that by more than trials differ\n", to);
}

int fragment_print_yaml(FILE *to, const struct finding *finding)
{
    static const char base[] = "tuned: x\n";
    struct fragment fragment;
    char *text, why[256];
    size_t length;
    print_head(to, finding);
    if (finding->grid.tried) {
        print_comparison(to, finding);
        return 0;
    }
    fragment_make(&fragment, finding);
    int rc =
        edit_keys(&text, &length, base, strlen(base), fragment.edits, fragment.n, why, sizeof why);
    if (rc < 0)
        return rc;
    print_outcome(to, finding, fragment.n > 1);
    fwrite(text, 1, length, to);
    free(text);
    return 0;
}

// --- JSON

static void print_figures(FILE *to, const char *name, const struct figures *figures)
{
    const struct {
        const char *name;
        double value;
    } members[] = {{"rate", figures->rate},
                   {"cores", figures->cores},
                   {"p99_ms", figures->p99_ms},
                   {"resident", figures->resident},
                   {"lost", figures->lost}};
    fprintf(to, "\"%s\": {", name);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        fprintf(to, "%s\"%s\": ", i ? ", " : "", members[i].name);
        print_json_number(to, members[i].value);
    }
    putc('}', to);
}

static void print_text(FILE *to, const char *name, const char *text, const char *end)
{
    fprintf(to, "\"%s\": ", name);
    print_json_string(to, text);
    fputs(end, to);
}

static void print_change(FILE *to, const struct finding *finding, int i)
{
    const struct search_result *result = finding->result;
    const struct setting *setting = &finding->settings->list[i];
    fputs("    {", to);
    print_text(to, "key", setting->key, ", ");
    print_text(to, "value", value_of(finding, &result->pick, i), ", ");
    print_text(to, "before", setting->value[setting->start], ", ");
    print_figures(to, "with", &result->with[i]);
    fputs(", ", to);
    print_figures(to, "without", &result->without[i]);
    putc('}', to);
}

static void print_grid(FILE *to, const struct finding *finding)
{
    const struct comparison *grid = &finding->grid;
    const struct figures best = trials_median(&grid->of_best);
    const struct figures own = trials_median(&finding->result->before);
    fprintf(to, ",\n  \"grid\": {\"tried\": %d, ", grid->tried);
    for (int i = 0; i < finding->settings->n; i++)
        print_text(to, finding->settings->list[i].key, value_of(finding, &grid->best, i), ", ");
    print_figures(to, "best", &best);
    fputs(", \"ratio\": ", to);
    print_json_number(to, own.rate / best.rate);
    putc('}', to);
}

void fragment_print_json(FILE *to, const struct finding *finding)
{
    const struct settings *settings = finding->settings;
    const struct search_result *result = finding->result;
    const struct figures before = trials_median(&result->before);
    const struct figures after = trials_median(&result->after);
    const char *between = "\n";
    fputs("{\n  ", to);
    print_text(to, "version", FRAMED_VERSION_TEXT, ",\n  ");
    print_text(to, "tuned", finding->fingerprint, ",\n  ");
    print_text(to, "load", finding->load, ",\n  ");
    fprintf(to, "\"trials\": %d,\n  \"seconds\": %g,\n  ", finding->trials, finding->seconds);
    fputs("\"noise\": ", to);
    print_json_number(to, trials_noise(&result->before, finding->objective));
    fputs(",\n  ", to);
    print_figures(to, "before", &before);
    fputs(",\n  ", to);
    print_figures(to, "after", &after);
    fputs(",\n  \"changes\": [", to);
    for (int i = 0; i < settings->n; i++) {
        if (result->pick.value[i] == settings->list[i].start)
            continue;
        fputs(between, to);
        print_change(to, finding, i);
        between = ",\n";
    }
    fputs("]", to);
    if (finding->grid.tried)
        print_grid(to, finding);
    fputs("\n}\n", to);
}
