// The metrics of a box in a cluster.
#include <stdio.h>

#include "daemon/base/clock.h"
#include "daemon/cluster/member.h"
#include "daemon/service/metrics.h"
#include "daemon/service/status_cluster.h"

static void print_sample(FILE *to, const char *name, const char *type, const char *help,
                         double value)
{
    metrics_print_head(to, name, type, help);
    fprintf(to, "%s %.9g\n", name, value);
}

void metrics_print_cluster(FILE *to, const struct metrics *metrics)
{
    if (!metrics->member)
        return;
    const struct member_health health = member_health(metrics->member);
    const double alone_s = health.alone_ns ? (double)(boottime_ns() - health.alone_ns) / 1e9 : 0;
    print_sample(to, "framed_cluster_member", "gauge", "Whether this box is in its cluster.",
                 health.state == MEMBER_IN);
    print_sample(to, "framed_cluster_alone_seconds", "gauge",
                 "Since etcd answered this box no more; 0: it answers.", alone_s);
    print_sample(to, "framed_cluster_nodes", "gauge", "Boxes that live.", health.nodes);
    print_sample(to, "framed_cluster_cameras", "gauge", "Cameras of the site.", health.cameras);
    print_sample(to, "framed_cluster_unplaced", "gauge",
                 "Cameras of the site that the plan gives to no box.", health.unplaced);
    print_sample(to, "framed_cluster_troubled", "gauge",
                 "Cameras of the site that do not run, by what boxes report.",
                 status_cluster_counts(metrics).troubled);
    print_sample(to, "framed_cluster_plan", "gauge", "Version of the plan.",
                 (double)health.version);
    print_sample(to, "framed_cluster_lost_total", "counter", "Times that the lease was lost.",
                 (double)health.lost);
    print_sample(to, "framed_cluster_plans_total", "counter", "Plans that this box wrote.",
                 (double)health.plans);
}
