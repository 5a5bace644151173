// The metrics of what was found in pictures: results that clients of rings sent back, and analyses.
#include <stdio.h>

#include "daemon/service/metrics.h"

// --- results

void metrics_each_results(const struct metrics *metrics,
                          void (*each)(void *opaque, struct outlet *), void *opaque)
{
    for (int i = 0; i < metrics->n_cameras; i++) {
        const struct subscriptions *outputs = metrics->cameras[i]->subscriptions;
        for (int o = 0; o < outputs->n; o++)
            if (!outputs->list[o].output->parent && outputs->list[o].output->outlet->results)
                each(opaque, outputs->list[o].output->outlet);
    }
    const struct outlet *batch = NULL;
    while ((batch = metrics_next_batch(metrics, batch)))
        if (batch->results)
            each(opaque, (struct outlet *)batch);
}

struct results_print {
    FILE *to;
    void (*print)(FILE *, const char *labels, const struct results *);
    int n; // outputs that count results
};

static void print_one_results(void *opaque, struct outlet *outlet)
{
    struct results_print *of = opaque;
    char labels[128];
    if (!outlet->results->counts)
        return;
    of->n++;
    snprintf(labels, sizeof labels, "{camera=\"%s\",output=\"%s\"", outlet->camera,
             outlet->config->name);
    if (of->print)
        of->print(of->to, labels, outlet->results);
}

static void print_result_counts(FILE *to, const char *labels, const struct results *results)
{
    metrics_print_sample(to, "framed_results_total", labels, NULL, NULL, results->results);
}

static void print_result_frames(FILE *to, const char *labels, const struct results *results)
{
    metrics_print_sample(to, "framed_result_frames_total", labels, ",stage=\"", "lent",
                         results->lent);
    metrics_print_sample(to, "framed_result_frames_total", labels, ",stage=\"", "answered",
                         results->results);
}

static void print_late(FILE *to, const char *labels, const struct results *results)
{
    metrics_print_sample(to, "framed_results_late_total", labels, NULL, NULL, results->late);
}

static void print_wrong(FILE *to, const char *labels, const struct results *results)
{
    for (int i = 0; i < RESULT_WRONGS; i++)
        metrics_print_sample(to, "framed_results_wrong_total", labels, ",reason=\"",
                             result_wrong_names[i], results->wrong[i]);
}

static void print_objects(FILE *to, const char *labels, const struct results *results)
{
    metrics_print_sample(to, "framed_result_objects_total", labels, NULL, NULL, results->objects);
}

static void print_dropped(FILE *to, const char *labels, const struct results *results)
{
    for (int i = 0; i < OBJECT_DROPS; i++)
        metrics_print_sample(to, "framed_result_objects_dropped_total", labels, ",reason=\"",
                             object_drop_names[i], results->dropped[i]);
}

static void print_result_lines_lost(FILE *to, const char *labels, const struct results *results)
{
    metrics_print_sample(to, "framed_result_lines_lost_total", labels, NULL, NULL,
                         results->lines.lost);
}

static void print_result_lines(FILE *to, const char *labels, const struct results *results)
{
    metrics_print_sample(to, "framed_result_lines_total", labels, ",stage=\"", "offered",
                         results->lines.offered);
    metrics_print_sample(to, "framed_result_lines_total", labels, ",stage=\"", "delivered",
                         results->lines.delivered);
}

static void print_result_seconds(FILE *to, const char *labels, const struct results *results)
{
    metrics_print_latency(to, "framed_result_seconds", labels, &results->latency);
}

static void print_results(FILE *to, const struct metrics *metrics)
{
    static const struct {
        const char *name, *type, *help;
        void (*print)(FILE *, const char *labels, const struct results *);
    } families[] = {
        {"framed_results_total", "counter",
         "Results that clients of a ring sent back, without the wrong ones.", print_result_counts},
        {"framed_results_late_total", "counter",
         "Results of frames that were older than max_age, or taken away before.", print_late},
        {"framed_results_wrong_total", "counter", "Results that were refused, by reason.",
         print_wrong},
        {"framed_result_frames_total", "counter",
         "Frames and elements that each client was lent, and those it sent a result of.",
         print_result_frames},
        {"framed_result_objects_total", "counter", "Objects in results.", print_objects},
        {"framed_result_objects_dropped_total", "counter",
         "Objects that were left out of results, by reason.", print_dropped},
        {"framed_result_lines_total", "counter",
         "Lines of detections, each for each reader, that were offered and those delivered.",
         print_result_lines},
        {"framed_result_lines_lost_total", "counter",
         "Lines of detections that a reader was too slow for, or that could not be written.",
         print_result_lines_lost},
        {"framed_result_seconds", "histogram",
         "Time from receiving a frame's packet to its result.", print_result_seconds},
    };
    struct results_print of = {.to = to};
    metrics_each_results(metrics, print_one_results, &of);
    for (size_t i = 0; of.n > 0 && i < sizeof families / sizeof families[0]; i++) {
        metrics_print_head(to, families[i].name, families[i].type, families[i].help);
        of.print = families[i].print;
        metrics_each_results(metrics, print_one_results, &of);
    }
}

// --- analyses

typedef void print_scene_fn(FILE *, const char *labels, struct scene_report *);

static void print_analysed(FILE *to, const char *labels, struct scene_report *report)
{
    metrics_print_sample(to, "framed_pictures_analysed_total", labels, NULL, NULL,
                         atomic_load(&report->analysed));
}

static void print_moving(FILE *to, const char *labels, struct scene_report *report)
{
    metrics_print_sample(to, "framed_pictures_moving_total", labels, NULL, NULL,
                         atomic_load(&report->moving));
}

static void print_alarms(FILE *to, const char *labels, struct scene_report *report)
{
    for (int i = 0; i < ALARMS; i++)
        metrics_print_sample(to, "framed_alarm", labels, ",alarm=\"", alarm_name((enum alarm)i),
                             atomic_load(&report->alarms) >> i & 1);
}

static void print_raised_alarms(FILE *to, const char *labels, struct scene_report *report)
{
    for (int i = 0; i < ALARMS; i++)
        metrics_print_sample(to, "framed_alarms_total", labels, ",alarm=\"",
                             alarm_name((enum alarm)i), atomic_load(&report->raised[i]));
}

// Prints for each camera whose pictures are analysed. Returns their number.
static int each_scene(FILE *to, const struct metrics *metrics, print_scene_fn *print)
{
    char labels[64]; // names are short
    int n = 0;
    for (int i = 0; i < metrics->n_cameras; i++) {
        struct camera *camera = metrics->cameras[i];
        if (atomic_load(&camera->report.scene.analysed) == 0)
            continue;
        snprintf(labels, sizeof labels, "{camera=\"%s\"", camera->config->name);
        if (print)
            print(to, labels, &camera->report.scene);
        n++;
    }
    return n;
}

typedef void print_stats_lines_fn(FILE *, const char *labels, const struct line_account *);

static void print_stats_lines(FILE *to, const char *labels, const struct line_account *account)
{
    metrics_print_sample(to, "framed_lines_total", labels, ",stage=\"", "offered",
                         account->offered);
    metrics_print_sample(to, "framed_lines_total", labels, ",stage=\"", "delivered",
                         account->delivered);
}

static void print_stats_lines_lost(FILE *to, const char *labels, const struct line_account *account)
{
    metrics_print_sample(to, "framed_lines_lost_total", labels, NULL, NULL, account->lost);
}

static int each_stats_lines(FILE *to, const struct metrics *metrics, print_stats_lines_fn *print)
{
    char labels[128];
    int n = 0;
    for (int i = 0; i < metrics->n_cameras; i++) {
        const struct subscriptions *outputs = metrics->cameras[i]->subscriptions;
        for (int o = outputs->n_packets; o < outputs->n; o++, n++) {
            const struct output *output = outputs->list[o].output;
            snprintf(labels, sizeof labels, "{camera=\"%s\",output=\"%s\"",
                     metrics->cameras[i]->config->name, output->config->name);
            if (print)
                print(to, labels, &output->outlet->scene->account);
        }
    }
    return n;
}

static void print_scenes(FILE *to, const struct metrics *metrics)
{
    static const struct {
        const char *name, *type, *help;
        print_scene_fn *print;
    } families[] = {
        {"framed_pictures_analysed_total", "counter", "Pictures that were analysed.",
         print_analysed},
        {"framed_pictures_moving_total", "counter", "Analysed pictures in which something moved.",
         print_moving},
        {"framed_alarm", "gauge", "1 while the alarm is raised.", print_alarms},
        {"framed_alarms_total", "counter", "Times that the alarm was raised.", print_raised_alarms},
    };
    const int scenes = each_scene(to, metrics, NULL);
    for (size_t i = 0; scenes > 0 && i < sizeof families / sizeof families[0]; i++) {
        metrics_print_head(to, families[i].name, families[i].type, families[i].help);
        each_scene(to, metrics, families[i].print);
    }
    if (each_stats_lines(to, metrics, NULL) == 0)
        return;
    metrics_print_head(to, "framed_lines_total", "counter",
                       "Lines of kernel stats, each for each reader, that were offered and those "
                       "delivered.");
    each_stats_lines(to, metrics, print_stats_lines);
    metrics_print_head(to, "framed_lines_lost_total", "counter",
                       "Lines of kernel stats that a reader was too slow for, or that could not be "
                       "written.");
    each_stats_lines(to, metrics, print_stats_lines_lost);
}

void metrics_print_findings(FILE *to, const struct metrics *metrics)
{
    print_results(to, metrics);
    print_scenes(to, metrics);
}
