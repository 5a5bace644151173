// The metrics of the analyses of cameras' pictures.
#include <stdio.h>

#include "daemon/service/metrics.h"

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

static void print_raised(FILE *to, const char *labels, struct scene_report *report)
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

typedef void print_lines_fn(FILE *, const char *labels, const struct line_account *);

static void print_lines(FILE *to, const char *labels, const struct line_account *account)
{
    metrics_print_sample(to, "framed_lines_total", labels, ",stage=\"", "offered",
                         account->offered);
    metrics_print_sample(to, "framed_lines_total", labels, ",stage=\"", "delivered",
                         account->delivered);
}

static void print_lines_lost(FILE *to, const char *labels, const struct line_account *account)
{
    metrics_print_sample(to, "framed_lines_lost_total", labels, NULL, NULL, account->lost);
}

static int each_lines(FILE *to, const struct metrics *metrics, print_lines_fn *print)
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
                print(to, labels, scene_lines_account(output->scene));
        }
    }
    return n;
}

void metrics_print_scenes(FILE *to, const struct metrics *metrics)
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
        {"framed_alarms_total", "counter", "Times that the alarm was raised.", print_raised},
    };
    const int scenes = each_scene(to, metrics, NULL);
    for (size_t i = 0; scenes > 0 && i < sizeof families / sizeof families[0]; i++) {
        metrics_print_head(to, families[i].name, families[i].type, families[i].help);
        each_scene(to, metrics, families[i].print);
    }
    if (each_lines(to, metrics, NULL) == 0)
        return;
    metrics_print_head(to, "framed_lines_total", "counter",
                       "Lines of kernel stats, each for each reader, that were offered and those "
                       "delivered.");
    each_lines(to, metrics, print_lines);
    metrics_print_head(to, "framed_lines_lost_total", "counter",
                       "Lines of kernel stats that a reader was too slow for, or that could not be "
                       "written.");
    each_lines(to, metrics, print_lines_lost);
}
