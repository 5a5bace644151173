// The metrics of previews, which belong to no output.
#include <stdio.h>

#include "daemon/service/metrics.h"

static void print_sample(FILE *to, const char *name, const char *type, const char *help,
                         double value)
{
    metrics_print_head(to, name, type, help);
    fprintf(to, "%s %.9g\n", name, value);
}

void metrics_print_view(FILE *to, const struct metrics *metrics)
{
    if (!metrics->previews)
        return;
    const struct preview_counts counts = previews_counts(metrics->previews);
    print_sample(to, "framed_viewers", "gauge", "Streams of pictures that clients look at.",
                 metrics->viewers);
    print_sample(to, "framed_previews", "gauge", "Kinds of pictures that are asked for now.",
                 counts.kinds);
    print_sample(to, "framed_previews_total", "counter", "JPEGs made.", (double)counts.made);
    print_sample(to, "framed_previews_dropped_total", "counter",
                 "JPEGs that were due and gave way to newer ones.", (double)counts.dropped);
    print_sample(to, "framed_preview_seconds_total", "counter",
                 "Processor time of scaling and encoding them.", (double)counts.busy_ns / 1e9);
}
