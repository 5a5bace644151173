// The metrics of availability and alerts.
#include <inttypes.h>
#include <stdio.h>

#include "daemon/alert/judge.h"
#include "daemon/service/metrics.h"

static void print_availability(FILE *to, const struct metrics *metrics)
{
    bool any = false; // an availability is known; else the metric is left out
    for (int i = 0; i < metrics->n_cameras; i++) {
        if (metrics->cameras[i]->availability.known_s == 0)
            continue;
        if (!any)
            metrics_print_head(to, "framed_camera_availability_ratio", "gauge",
                               "Share of the known time of seven days in which the camera "
                               "delivered pictures.");
        any = true;
        fprintf(to, "framed_camera_availability_ratio{camera=\"%s\"} %.6f\n",
                metrics->cameras[i]->config->name, metrics->cameras[i]->availability.share);
    }
    metrics_print_head(to, "framed_camera_availability_known_seconds", "gauge",
                       "The known time of seven days.");
    for (int i = 0; i < metrics->n_cameras; i++)
        fprintf(to, "framed_camera_availability_known_seconds{camera=\"%s\"} %" PRId64 "\n",
                metrics->cameras[i]->config->name, metrics->cameras[i]->availability.known_s);
}

static void print_raised(FILE *to, const struct metrics *metrics)
{
    metrics_print_head(to, "framed_camera_alert", "gauge", "1 while the alert is raised.");
    for (int i = 0; i < metrics->n_cameras; i++)
        for (int kind = 0; kind < ALERT_KINDS; kind++)
            fprintf(to, "framed_camera_alert{camera=\"%s\",kind=\"%s\"} %d\n",
                    metrics->cameras[i]->config->name, alert_kind_name((enum alert_kind)kind),
                    (int)(metrics->cameras[i]->alerts >> kind & 1));
}

static void print_deliveries(FILE *to, struct alerts *alerts)
{
    bool headed = false;
    for (int i = 0; alerts && i < TARGETS; i++) {
        const char *target = alert_target_name((enum alert_target)i);
        int pending;
        const struct outbox_counts counts = alerts_count(alerts, (enum alert_target)i, &pending);
        if (!alerts_has_target(alerts, (enum alert_target)i))
            continue;
        if (!headed)
            metrics_print_head(to, "framed_alert_events_total", "counter",
                               "Events of alerts: delivered, lost, and tries that failed.");
        headed = true;
        fprintf(to,
                "framed_alert_events_total{target=\"%s\",result=\"delivered\"} %" PRIu64 "\n"
                "framed_alert_events_total{target=\"%s\",result=\"lost\"} %" PRIu64 "\n"
                "framed_alert_events_total{target=\"%s\",result=\"failed\"} %" PRIu64 "\n",
                target, counts.delivered, target, counts.lost, target, counts.failed);
    }
    headed = false;
    for (int i = 0; alerts && i < TARGETS; i++) {
        int pending;
        alerts_count(alerts, (enum alert_target)i, &pending);
        if (!alerts_has_target(alerts, (enum alert_target)i))
            continue;
        if (!headed)
            metrics_print_head(to, "framed_alert_events_pending", "gauge",
                               "Events of alerts that are still to be delivered.");
        headed = true;
        fprintf(to, "framed_alert_events_pending{target=\"%s\"} %d\n",
                alert_target_name((enum alert_target)i), pending);
    }
}

void metrics_print_alerts(FILE *to, const struct metrics *metrics)
{
    print_availability(to, metrics);
    print_raised(to, metrics);
    print_deliveries(to, metrics->alerts);
}
