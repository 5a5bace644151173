// A cluster node without real cameras: it follows a member's orders and reports running cameras as
// daemon/cluster/cluster.c does. Starting or stopping a camera only prints a line:
//   run CAMERA GENERATION NS      stop CAMERA NS
// in CLOCK_BOOTTIME. SIGTERM leaves the cluster, SIGKILL simulates a crash.
//
// usage: bench-cluster URL[,URL...] NODE ROOM LEASE_S
#include <err.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "config/config.h"
#include "config/types.h"
#include "daemon/base/clock.h"
#include "daemon/cluster/member.h"

enum { TEND_MS = 1000, LEAVE_MS = 700 };

struct stub {
    char camera[PLAN_NAME_SIZE];
    uint32_t generation;
    int64_t revision;
    struct stub *next;
};

struct node {
    struct member *member;
    double room;
    int wake; // eventfd: orders are pending
    struct member_orders orders;
    struct stub *first;
    int64_t obeys;
};

// Costs differ between cameras and vary a little between measurements.
static double cost_of(const char *camera)
{
    unsigned sum = 0;
    for (; *camera; camera++)
        sum = 31 * sum + (unsigned char)*camera;
    return 0.5 + sum % 1000 / 1000.0 + (double)(monotonic_ns() / 1000 % 100) / 10000;
}

static const struct member_order *find_order(const struct node *node, const char *camera)
{
    for (int i = 0; i < node->orders.n; i++)
        if (strcmp(node->orders.list[i].camera, camera) == 0)
            return &node->orders.list[i];
    return NULL;
}

static void stop_stubs(struct node *node)
{
    for (struct stub **link = &node->first; *link;) {
        struct stub *stub = *link;
        if (find_order(node, stub->camera)) {
            link = &stub->next;
            continue;
        }
        printf("stop %s %" PRId64 "\n", stub->camera, boottime_ns());
        *link = stub->next;
        free(stub);
    }
}

static struct stub *find_stub(const struct node *node, const char *camera)
{
    struct stub *stub = node->first;
    while (stub && strcmp(stub->camera, camera) != 0)
        stub = stub->next;
    return stub;
}

static void follow_order(struct node *node, const struct member_order *order)
{
    struct stub *stub = find_stub(node, order->camera);
    if (stub && stub->generation == order->generation && stub->revision == order->revision)
        return;
    if (!stub) {
        if (!node->orders.may_start || !(stub = calloc(1, sizeof *stub)))
            return;
        memcpy(stub->camera, order->camera, sizeof stub->camera);
        stub->next = node->first;
        node->first = stub;
    }
    stub->generation = order->generation;
    stub->revision = order->revision;
    printf("run %s %u %" PRId64 "\n", stub->camera, stub->generation, boottime_ns());
}

static void report(struct node *node)
{
    struct member_facts facts = {.obeys = node->obeys, .room = node->room};
    int n = 0;
    for (const struct stub *stub = node->first; stub; stub = stub->next)
        n++;
    facts.running = calloc((size_t)n + 1, sizeof *facts.running);
    if (!facts.running)
        return;
    for (const struct stub *stub = node->first; stub; stub = stub->next) {
        struct running_camera *running = &facts.running[facts.n_running++];
        running->generation = stub->generation;
        running->cost = cost_of(stub->camera);
        memcpy(running->camera, stub->camera, sizeof running->camera);
    }
    member_report(node->member, &facts);
    free(facts.running);
}

static void follow(struct node *node)
{
    struct member_orders orders;
    if (member_take_orders(node->member, &orders)) {
        member_orders_clear(&node->orders);
        node->orders = orders;
    }
    if (node->orders.fence_ns && boottime_ns() >= *node->orders.fence_ns)
        node->orders.n = 0; // as each real camera does by itself
    stop_stubs(node);
    node->obeys = node->orders.version;
    for (int i = 0; i < node->orders.n; i++)
        follow_order(node, &node->orders.list[i]);
    report(node);
    fflush(stdout);
}

static void orders_came(void *opaque)
{
    eventfd_write(((struct node *)opaque)->wake, 1);
}

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
    (void)signal;
    stopped = 1;
}

static void run(struct node *node)
{
    struct pollfd polled = {.fd = node->wake, .events = POLLIN};
    int64_t next_ns = monotonic_ns();
    while (!stopped) {
        const int64_t left_ns = next_ns - monotonic_ns();
        eventfd_t count;
        const int n = poll(&polled, 1, left_ns > 0 ? (int)(left_ns / 1000000) + 1 : 0);
        if (n > 0)
            eventfd_read(node->wake, &count);
        if (n == 0)
            next_ns += TEND_MS * INT64_C(1000000);
        follow(node);
    }
}

static void read_endpoints(struct endpoints *ret, char *text)
{
    const char *urls[ENDPOINTS_MAX];
    int n = 0;
    for (char *url = strtok(text, ","); url && n < ENDPOINTS_MAX; url = strtok(NULL, ","))
        urls[n++] = url;
    const char *wrong = endpoints_parse(ret, urls, n);
    if (wrong)
        errx(2, "etcd: %s", wrong);
}

int main(int argc, char **argv)
{
    if (argc != 5)
        errx(2, "usage: bench-cluster URL[,URL...] NODE ROOM LEASE_S");
    struct cluster_config config = {
        .site = "bench", .node = argv[2], .lease = {.ns = INT64_C(1000000000) * atoi(argv[4])}};
    const struct plan_labels labels = {0};
    struct node node = {.room = atof(argv[3]), .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    const struct member_context context = {.config = &config,
                                           .node = argv[2],
                                           .labels = &labels,
                                           .version = "bench",
                                           .http = "http://127.0.0.1:9090",
                                           .changed = orders_came,
                                           .opaque = &node};
    read_endpoints(&config.etcd, argv[1]);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGTERM, stop);
    const int rc = member_open(&node.member, &context);
    if (rc < 0 || node.wake < 0)
        errx(1, "no member: %s", strerror(-rc));
    run(&node);
    member_stop(node.member);
    member_close(node.member, LEAVE_MS);
    return 0;
}
