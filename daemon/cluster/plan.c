#include "daemon/cluster/plan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define USED_MAX 0.9  // most of a node's room
#define GAP      0.2  // least gap between the shares of two nodes to move a camera
#define GAP_BACK 0.1  // largest opposite gap after the move
#define ROUNDING 1e-9 // in sums of costs

enum { NOWHERE = -1 };

struct host {
    const struct plan_node *node;
    double used; // of its room
};

struct guest {
    const struct plan_camera *camera;
    const struct plan_entry *before; // NULL: the camera is new
    double cost;
    bool *refused; // for each host, true if it cannot run the camera
    int wish;      // host, or NOWHERE
    int host;      // current host, or NOWHERE
};

struct placing {
    struct host *hosts; // by name
    int n_hosts;
    struct guest *guests; // by name
    int n_guests;
    struct guest **movers; // by cost
    bool *refused;
};

static int order_of_hosts(const void *a, const void *b)
{
    return strcmp(((const struct host *)a)->node->name, ((const struct host *)b)->node->name);
}

static int order_of_guests(const void *a, const void *b)
{
    return strcmp(((const struct guest *)a)->camera->name, ((const struct guest *)b)->camera->name);
}

static int order_of_costs(const void *a, const void *b)
{
    const struct guest *one = *(struct guest *const *)a, *other = *(struct guest *const *)b;
    if (one->cost != other->cost)
        return one->cost > other->cost ? -1 : 1;
    return order_of_guests(one, other);
}

static int is_host(const void *name, const void *host)
{
    return strcmp(name, ((const struct host *)host)->node->name);
}

static int is_guest(const void *name, const void *guest)
{
    return strcmp(name, ((const struct guest *)guest)->camera->name);
}

static int is_entry(const void *name, const void *entry)
{
    return strcmp(name, ((const struct plan_entry *)entry)->camera);
}

static void *find(const char *name, const void *list, int n, size_t size,
                  int (*is)(const void *, const void *))
{
    return n > 0 ? bsearch(name, list, (size_t)n, size, is) : NULL;
}

const struct plan_entry *plan_find(const struct plan *plan, const char *camera)
{
    return plan ? find(camera, plan->entries, plan->n, sizeof *plan->entries, is_entry) : NULL;
}

static int find_host(const struct placing *p, const char *name)
{
    if (!*name)
        return NOWHERE;
    const struct host *host = find(name, p->hosts, p->n_hosts, sizeof *p->hosts, is_host);
    return host ? (int)(host - p->hosts) : NOWHERE;
}

static bool has_label(const struct plan_labels *labels, const struct plan_label *wanted)
{
    for (int i = 0; i < labels->n; i++)
        if (!strcmp(labels->list[i].key, wanted->key))
            return !strcmp(labels->list[i].value, wanted->value);
    return false;
}

bool plan_labels_fit(const struct plan_labels *of_node, const struct plan_labels *wanted)
{
    for (int i = 0; wanted && i < wanted->n; i++)
        if (!has_label(of_node, &wanted->list[i]))
            return false;
    return true;
}

static double cost_at(const struct host *host, const struct guest *guest)
{
    return host->node->counts ? 1 : guest->cost;
}

static bool has_room(const struct host *host, double cost)
{
    return host->node->room > 0 && host->used + cost <= USED_MAX * host->node->room + ROUNDING;
}

static bool suits(const struct placing *p, const struct guest *guest, int host)
{
    return !guest->refused[host] &&
           plan_labels_fit(&p->hosts[host].node->labels, guest->camera->on);
}

static bool takes(const struct placing *p, const struct guest *guest, int host)
{
    return host != NOWHERE && suits(p, guest, host) && !p->hosts[host].node->draining &&
           has_room(&p->hosts[host], cost_at(&p->hosts[host], guest));
}

static void move(struct placing *p, struct guest *guest, int host)
{
    if (guest->host != NOWHERE)
        p->hosts[guest->host].used -= cost_at(&p->hosts[guest->host], guest);
    guest->host = host;
    p->hosts[host].used += cost_at(&p->hosts[host], guest);
}

static double share(const struct host *host, double cost)
{
    return (host->used + cost) / host->node->room;
}

static double share_with(const struct host *host, const struct guest *guest)
{
    return share(host, cost_at(host, guest));
}

// Returns the wished host if that takes the guest, else the least full one that does, or NOWHERE.
static int choose(const struct placing *p, const struct guest *guest)
{
    int best = NOWHERE;
    for (int i = 0; i < p->n_hosts; i++)
        if (takes(p, guest, i) && (best == NOWHERE || share_with(&p->hosts[i], guest) <
                                                          share_with(&p->hosts[best], guest)))
            best = i;
    return takes(p, guest, guest->wish) ? guest->wish : best;
}

static bool leaves(const struct placing *p, const struct guest *guest)
{
    return guest->host == NOWHERE || p->hosts[guest->host].node->draining;
}

// Finds guests without a host, on a draining host, or not on their wished host: mostly a few.
static int find_movers(struct placing *p)
{
    int n = 0;
    for (int i = 0; i < p->n_guests; i++) {
        struct guest *guest = &p->guests[i];
        if (leaves(p, guest) || (guest->wish != NOWHERE && guest->wish != guest->host))
            p->movers[n++] = guest;
    }
    qsort(p->movers, (size_t)n, sizeof *p->movers, order_of_costs);
    return n;
}

// Returns true if a guest moved.
static bool settle(struct placing *p)
{
    const int n = find_movers(p);
    bool moved = false;
    for (int i = 0; i < n; i++) {
        struct guest *guest = p->movers[i];
        const int host = leaves(p, guest) ? choose(p, guest) : guest->wish;
        if (host == guest->host || !takes(p, guest, host))
            continue;
        move(p, guest, host);
        moved = true;
    }
    return moved;
}

struct exchange {
    struct guest *guest;
    int to;
    double fullest; // the larger share of the two hosts afterwards
};

static void weigh(struct placing *p, struct guest *guest, int to, struct exchange *best)
{
    const struct host *host = &p->hosts[guest->host];
    const double before = share(host, 0), from = share(host, -cost_at(host, guest));
    const double there = share_with(&p->hosts[to], guest);
    const double fullest = from > there ? from : there;
    if (before - share(&p->hosts[to], 0) < GAP - ROUNDING || fullest >= before ||
        there - from > GAP_BACK || !takes(p, guest, to) ||
        (best->guest && fullest >= best->fullest))
        return;
    *best = (struct exchange){.guest = guest, .to = to, .fullest = fullest};
}

// Returns the hosts from the least to the most full, then NOWHERE.
static int *order_by_share(const struct placing *p)
{
    int *order = malloc((size_t)(p->n_hosts + 1) * sizeof *order), n = 0;
    for (int i = 0; order && i < p->n_hosts; i++) {
        if (p->hosts[i].node->draining || !(p->hosts[i].node->room > 0))
            continue;
        int at = n++;
        for (; at > 0 && share(&p->hosts[order[at - 1]], 0) > share(&p->hosts[i], 0); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    if (order)
        order[n] = NOWHERE;
    return order;
}

static struct exchange best_exchange(struct placing *p, int from, int to)
{
    struct exchange best = {0};
    for (int i = 0; i < p->n_guests; i++)
        if (p->guests[i].host == from && p->guests[i].wish != from)
            weigh(p, &p->guests[i], to, &best);
    return best;
}

// Moves a guest from the fullest host that allows it, to the emptiest host with a large enough gap.
static int rebalance(struct placing *p)
{
    int *order = order_by_share(p), n = 0;
    struct exchange best = {0};
    if (!order)
        return -ENOMEM;
    while (order[n] != NOWHERE)
        n++;
    for (int from = n - 1; from > 0 && !best.guest; from--)
        for (int to = 0;
             to < from && !best.guest &&
             share(&p->hosts[order[from]], 0) - share(&p->hosts[order[to]], 0) >= GAP - ROUNDING;
             to++)
            best = best_exchange(p, order[from], order[to]);
    if (best.guest)
        move(p, best.guest, best.to);
    free(order);
    return 0;
}

static void add_hosts(struct placing *p, const struct plan_node nodes[])
{
    for (int i = 0; i < p->n_hosts; i++)
        p->hosts[i] = (struct host){.node = &nodes[i], .used = nodes[i].taken};
    qsort(p->hosts, (size_t)p->n_hosts, sizeof *p->hosts, order_of_hosts);
}

// Sorts by name; mostly they are in order already.
static void sort_guests(struct placing *p)
{
    int i = 1;
    while (i < p->n_guests && order_of_guests(&p->guests[i - 1], &p->guests[i]) < 0)
        i++;
    if (i < p->n_guests)
        qsort(p->guests, (size_t)p->n_guests, sizeof *p->guests, order_of_guests);
}

// Returns the camera's cost: measured, from the old plan, expected, or a usual camera's.
static double cost_of(const struct guest *guest)
{
    if (guest->camera->cost > 0)
        return guest->camera->cost;
    if (guest->before && guest->before->cost > 0)
        return guest->before->cost;
    return guest->camera->expected > 0 ? guest->camera->expected : 1;
}

static void add_guests(struct placing *p, const struct plan_camera cameras[],
                       const struct plan *old)
{
    int at = 0; // in the old plan, which is sorted by name, too
    for (int i = 0; i < p->n_guests; i++)
        p->guests[i] = (struct guest){.camera = &cameras[i]};
    sort_guests(p);
    for (int i = 0; i < p->n_guests; i++) {
        struct guest *guest = &p->guests[i];
        const char *name = guest->camera->name;
        int order = -1;
        while (old && at < old->n && (order = strcmp(old->entries[at].camera, name)) < 0)
            at++;
        if (old && at < old->n && order == 0)
            guest->before = &old->entries[at];
        guest->cost = cost_of(guest);
        guest->wish = find_host(p, guest->camera->wish);
        guest->refused = &p->refused[(size_t)i * (size_t)p->n_hosts];
    }
}

static void note_refusals(struct placing *p)
{
    for (int h = 0; h < p->n_hosts; h++) {
        const struct plan_node *node = p->hosts[h].node;
        for (int64_t i = 0; i < node->refused_n; i++) {
            struct guest *guest =
                find(node->refused[i], p->guests, p->n_guests, sizeof *p->guests, is_guest);
            if (guest)
                guest->refused[h] = true;
        }
    }
}

// Keeps guests where they are, if that host still suits them.
static void keep(struct placing *p)
{
    for (int i = 0; i < p->n_guests; i++) {
        struct guest *guest = &p->guests[i];
        const int host = guest->before ? find_host(p, guest->before->node) : NOWHERE;
        guest->host = NOWHERE;
        if (host != NOWHERE && suits(p, guest, host))
            move(p, guest, host);
    }
}

static void placing_close(struct placing *p)
{
    free(p->hosts);
    free(p->guests);
    free(p->movers);
    free(p->refused);
}

static int placing_open(struct placing *p, const struct plan *old,
                        const struct plan_camera cameras[], int n_cameras,
                        const struct plan_node nodes[], int n_nodes)
{
    *p = (struct placing){.n_hosts = n_nodes, .n_guests = n_cameras};
    const size_t hosts = (size_t)n_nodes, guests = (size_t)n_cameras;
    p->hosts = calloc(hosts + 1, sizeof *p->hosts);
    p->guests = calloc(guests + 1, sizeof *p->guests);
    p->movers = calloc(guests + 1, sizeof *p->movers);
    p->refused = calloc(hosts * guests + 1, sizeof *p->refused);
    if (!p->hosts || !p->guests || !p->movers || !p->refused) {
        placing_close(p);
        return -ENOMEM;
    }
    add_hosts(p, nodes);
    add_guests(p, cameras, old);
    note_refusals(p);
    keep(p);
    return 0;
}

bool plan_is_newer(uint32_t a, uint32_t b)
{
    return a != b && (b == 0 || (a != 0 && (uint16_t)(a - b) < 0x8000));
}

static struct plan_entry entry_of(const struct placing *p, const struct guest *guest,
                                  uint32_t removed)
{
    struct plan_entry entry = {.generation = removed};
    if (guest->before)
        entry = *guest->before;
    memcpy(entry.camera, guest->camera->name, sizeof entry.camera);
    const struct plan_node *node = guest->host == NOWHERE ? NULL : p->hosts[guest->host].node;
    const bool went_back = plan_is_newer(guest->camera->generation, entry.generation);
    const bool stays = guest->before && node && !strcmp(entry.node, node->name) &&
                       entry.bound == node->incarnation && !went_back;
    if (went_back)
        entry.generation = guest->camera->generation;
    if (node && !stays)
        entry.generation = entry.generation >= PLAN_GENERATION_MAX ? 1 : entry.generation + 1;
    memset(entry.node, 0, sizeof entry.node);
    if (node)
        memcpy(entry.node, node->name, sizeof entry.node);
    entry.bound = node ? node->incarnation : 0;
    if (guest->camera->cost > 0 && isfinite(guest->camera->cost))
        entry.cost = guest->camera->cost;
    return entry;
}

static uint32_t highest_removed(const struct placing *p, const struct plan *old)
{
    uint32_t highest = old ? old->removed : 0;
    for (int i = 0; old && i < old->n; i++)
        if (!find(old->entries[i].camera, p->guests, p->n_guests, sizeof *p->guests, is_guest) &&
            plan_is_newer(old->entries[i].generation, highest))
            highest = old->entries[i].generation;
    return highest;
}

// Returns the version of a plan without a predecessor. A node may still obey a lost plan.
static int64_t first_version(const struct placing *p)
{
    int64_t highest = 0;
    for (int i = 0; i < p->n_hosts; i++)
        if (p->hosts[i].node->obeys > highest)
            highest = p->hosts[i].node->obeys;
    return highest < PLAN_VERSION_MAX ? highest + 1 : 1;
}

// Compares all but the cameras' costs.
static bool same(const struct plan *old, const struct plan *plan)
{
    if (!old || old->n != plan->n)
        return false;
    for (int i = 0; i < plan->n; i++) {
        const struct plan_entry *a = &old->entries[i], *b = &plan->entries[i];
        if (strcmp(a->camera, b->camera) || strcmp(a->node, b->node) || a->bound != b->bound ||
            a->generation != b->generation)
            return false;
    }
    return true;
}

static int write_down(struct plan **ret, const struct placing *p, const struct plan *old)
{
    struct plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return -ENOMEM;
    plan->schema = PLAN_SCHEMA;
    plan->version = old && old->version < PLAN_VERSION_MAX ? old->version + 1 : first_version(p);
    plan->removed = highest_removed(p, old);
    plan->entries = calloc((size_t)p->n_guests + 1, sizeof *plan->entries);
    if (!plan->entries) {
        plan_free(plan);
        return -ENOMEM;
    }
    for (int i = 0; i < p->n_guests; i++)
        plan->entries[plan->n++] = entry_of(p, &p->guests[i], plan->removed);
    if (same(old, plan)) {
        plan_free(plan);
        return 1;
    }
    *ret = plan;
    return 0;
}

int plan_next(struct plan **ret, const struct plan *old, const struct plan_camera cameras[],
              int n_cameras, const struct plan_node nodes[], int n_nodes,
              const struct plan_wishes *wishes)
{
    struct placing placing;
    if (old && old->schema > PLAN_SCHEMA)
        return -EPROTONOSUPPORT;
    int rc = placing_open(&placing, old, cameras, n_cameras, nodes, n_nodes);
    if (rc < 0)
        return rc;
    bool moved = false;
    while (settle(&placing))
        moved = true;
    if (!moved && wishes && wishes->rebalance)
        rc = rebalance(&placing);
    while (settle(&placing)) // into freed room
        ;
    if (rc == 0)
        rc = write_down(ret, &placing, old);
    placing_close(&placing);
    return rc;
}

void plan_free(struct plan *plan)
{
    if (plan)
        free(plan->entries);
    free(plan);
}
