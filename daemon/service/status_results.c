#include "daemon/service/status_results.h"

#include <jansson.h>

static void sample(void *opaque, struct output *output)
{
    const bool *turn = opaque;
    if (*turn)
        latency_turn(&output->results->recent, &output->results->latency);
}

void status_results_sample(const struct metrics *metrics, bool turn)
{
    metrics_each_results(metrics, sample, &turn);
}

// Null below 0.
static json_t *seconds(int64_t ns)
{
    return ns < 0 ? json_null() : json_real((double)ns / 1e9);
}

static json_t *counts_json(const char *const names[], const uint64_t counts[], int n)
{
    json_t *json = json_object();
    for (int i = 0; json && i < n; i++)
        json_object_set_new(json, names[i], json_integer((json_int_t)counts[i]));
    return json;
}

static json_t *cameras_json(const struct results *results, int64_t now)
{
    json_t *list = json_array();
    for (int i = 0; list && i < results->n_last_found; i++) {
        const struct last_found *last = results->last_found[i];
        json_array_append_new(
            list, json_pack("{s:s, s:I, s:I, s:I, s:o, s:i}", "name", last->camera, "results",
                            (json_int_t)last->results, "objects", (json_int_t)last->objects, "late",
                            (json_int_t)last->late, "age_s", seconds(now - last->result_ns),
                            "objects_last", last->n));
    }
    return list;
}

static json_t *latency_json(const struct results *results)
{
    return json_pack("{s:o, s:o}", "p50_s",
                     seconds(latency_quantile_ns(&results->recent, &results->latency, 0.5)),
                     "p99_s",
                     seconds(latency_quantile_ns(&results->recent, &results->latency, 0.99)));
}

json_t *status_account_json(const struct line_account *account)
{
    return json_pack("{s:I, s:I, s:I}", "offered", (json_int_t)account->offered, "delivered",
                     (json_int_t)account->delivered, "lost", (json_int_t)account->lost);
}

// A line is made only for a reader, so readers are counted beside their losses.
static json_t *lines_json(const struct result_lines *lines, const struct line_account *account)
{
    json_t *json = lines ? status_account_json(account) : json_null();
    if (lines && json) {
        json_object_set_new(json, "open", json_boolean(lines->sink != NULL));
        json_object_set_new(json, "clients",
                            json_integer(lines->sink ? sink_clients(lines->sink) : 0));
    }
    return json;
}

json_t *status_results_json(const struct output *output, int64_t now)
{
    const struct results *results = output->results;
    if (!results || !results->counts)
        return json_null();
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "lent",
                     (json_int_t)results->lent, "unanswered",
                     (json_int_t)(results->lent - results->answered), "results",
                     (json_int_t)results->results, "objects", (json_int_t)results->objects, "late",
                     (json_int_t)results->late, "wrong",
                     counts_json(result_wrong_names, results->wrong, RESULT_WRONGS), "dropped",
                     counts_json(object_drop_names, results->dropped, OBJECT_DROPS), "latency",
                     latency_json(results), "lines", lines_json(output->lines, &results->lines),
                     "cameras", cameras_json(results, now));
}
