// Assignment of cameras to nodes, over thousands of random sites whose nodes die, come back, drain
// and refuse cameras. Each step is checked against the rules of plan.h, written in another way.
#include "daemon/cluster/plan.h"
#include "daemon/cluster/documents.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/test.h"

enum { CAMERAS = 1000, NODES = 20, REFUSED = 40, SITES = 3000, STEPS = 12 };

struct site {
    int n_cameras, n_nodes;
    struct plan_camera cameras[CAMERAS];
    struct plan_node nodes[NODES]; // all nodes, dead ones too
    bool alive[NODES];
    char refused[NODES][REFUSED][PLAN_NAME_SIZE];
    bool rebalance;
};

static unsigned long long seed = 88172645463325252u;

static unsigned draw(unsigned n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 32) % n;
}

static void label(struct plan_labels *labels, const char *key, unsigned of)
{
    struct plan_label *to = &labels->list[labels->n++];
    snprintf(to->key, sizeof to->key, "%s", key);
    snprintf(to->value, sizeof to->value, "%c", 'a' + (int)draw(of));
}

// Returns a camera's random requirements for its node; the camera keeps the pointer.
static const struct plan_labels *draw_wants(void)
{
    static struct plan_labels wants[256];
    static unsigned char next;
    struct plan_labels *to = &wants[next];
    *to = (struct plan_labels){0};
    if (draw(4) == 0)
        label(to, "vlan", 2);
    if (draw(16) == 0)
        label(to, "floor", 2);
    next += to->n > 0;
    return to->n > 0 ? to : NULL;
}

static void make_camera(struct site *site, int number)
{
    struct plan_camera *camera = &site->cameras[site->n_cameras++];
    *camera = (struct plan_camera){.cost = (1 + draw(30)) / 10.0, .on = draw_wants()};
    snprintf(camera->name, sizeof camera->name, "cam%d", number);
    if (draw(8) == 0)
        snprintf(camera->wish, sizeof camera->wish, "box%u", draw((unsigned)site->n_nodes + 2));
}

static void make_node(struct site *site, int i)
{
    struct plan_node *node = &site->nodes[i];
    *node = (struct plan_node){.incarnation = 100 + i, .room = draw(10) ? 1 + draw(30) : 0};
    node->taken = node->room / 10 * draw(4);
    node->counts = draw(4) == 0;
    node->refused = site->refused[i];
    snprintf(node->name, sizeof node->name, "box%d", i);
    label(&node->labels, "vlan", 2);
    if (draw(2))
        label(&node->labels, "floor", 2);
    site->alive[i] = draw(5) > 0;
}

static void make_site(struct site *site)
{
    *site = (struct site){.n_nodes = 1 + (int)draw(6)};
    for (int i = 0; i < site->n_nodes; i++)
        make_node(site, i);
    for (int i = (int)draw(40); i > 0; i--)
        make_camera(site, i);
}

static void change(struct site *site)
{
    const int i = (int)draw((unsigned)site->n_nodes);
    struct plan_node *node = &site->nodes[i];
    site->rebalance = false;
    switch (draw(10)) {
    case 0:
        site->alive[i] = !site->alive[i];
        node->incarnation += 1000;
        break;
    case 1:
        node->incarnation += 1000;
        break;
    case 2:
        node->draining = !node->draining;
        break;
    case 3:
        node->refused_n = node->refused_n < REFUSED ? node->refused_n + 1 : 0;
        if (node->refused_n > 0)
            snprintf(site->refused[i][node->refused_n - 1], PLAN_NAME_SIZE, "cam%u", draw(40));
        break;
    case 4:
        if (site->n_cameras > 0) {
            site->n_cameras--;
            site->cameras[draw((unsigned)site->n_cameras + 1)] = site->cameras[site->n_cameras];
        }
        break;
    case 5:
        make_camera(site, 40 + (int)draw(1000000));
        break;
    case 6:
        if (site->n_cameras > 0)
            snprintf(site->cameras[draw((unsigned)site->n_cameras)].wish, PLAN_NAME_SIZE, "box%u",
                     draw((unsigned)site->n_nodes));
        break;
    case 7:
        node->room = 1 + draw(30);
        break;
    case 8: // an older plan came back, or a node has run an unknown one
        if (site->n_cameras > 0)
            site->cameras[draw((unsigned)site->n_cameras)].generation = 1 + draw(65535);
        break;
    default:
        site->rebalance = true;
    }
}

// Passes the living nodes and the cameras in random order.
static int next(struct plan **ret, const struct plan *old, const struct site *site)
{
    static struct plan_camera cameras[CAMERAS];
    struct plan_node nodes[NODES];
    int n = 0;
    memcpy(cameras, site->cameras, (size_t)site->n_cameras * sizeof cameras[0]);
    for (int i = site->n_cameras - 1; i > 0; i--) {
        const int j = (int)draw((unsigned)i + 1);
        const struct plan_camera camera = cameras[i];
        cameras[i] = cameras[j];
        cameras[j] = camera;
    }
    const int first = (int)draw((unsigned)site->n_nodes);
    for (int i = 0; i < site->n_nodes; i++)
        if (site->alive[(first + i) % site->n_nodes])
            nodes[n++] = site->nodes[(first + i) % site->n_nodes];
    return plan_next(ret, old, cameras, site->n_cameras, nodes, n,
                     &(struct plan_wishes){.rebalance = site->rebalance});
}

static int find_node(const struct site *site, const char *name)
{
    for (int i = 0; i < site->n_nodes; i++)
        if (site->alive[i] && !strcmp(site->nodes[i].name, name))
            return i;
    return -1;
}

static double cost_at(const struct site *site, const struct plan_camera *camera, int node)
{
    return site->nodes[node].counts ? 1 : camera->cost;
}

static double used(const struct site *site, const struct plan *plan, int node)
{
    double sum = site->nodes[node].taken;
    for (int i = 0; i < site->n_cameras; i++)
        if (!strcmp(plan_find(plan, site->cameras[i].name)->node, site->nodes[node].name))
            sum += cost_at(site, &site->cameras[i], node);
    return sum;
}

static bool suits(const struct site *site, const struct plan_camera *camera, int node)
{
    const struct plan_labels *has = &site->nodes[node].labels;
    for (int i = 0; i < site->nodes[node].refused_n; i++)
        if (!strcmp(site->refused[node][i], camera->name))
            return false;
    for (int i = 0; camera->on && i < camera->on->n; i++) {
        bool found = false;
        for (int j = 0; j < has->n; j++)
            found |= !strcmp(has->list[j].key, camera->on->list[i].key) &&
                     !strcmp(has->list[j].value, camera->on->list[i].value);
        if (!found)
            return false;
    }
    return true;
}

static bool would_take(const struct site *site, const struct plan *plan,
                       const struct plan_camera *camera, int node)
{
    const struct plan_node *n = &site->nodes[node];
    return site->alive[node] && !n->draining && suits(site, camera, node) && n->room > 0 &&
           used(site, plan, node) + cost_at(site, camera, node) <= 0.9 * n->room + 1e-6;
}

static void check_entries(const struct site *site, const struct plan *plan)
{
    CHECK(plan->n == site->n_cameras, "%d entries of %d cameras", plan->n, site->n_cameras);
    for (int i = 1; i < plan->n; i++)
        CHECK(strcmp(plan->entries[i - 1].camera, plan->entries[i].camera) < 0, "%s twice",
              plan->entries[i].camera);
    for (int i = 0; i < site->n_cameras; i++)
        CHECK(plan_find(plan, site->cameras[i].name), "%s is missing", site->cameras[i].name);
}

// True if a camera with a living node had to leave it.
static bool had_to_go(const struct site *site, const struct plan_camera *camera, int from,
                      const char *to)
{
    return !suits(site, camera, from) || site->nodes[from].draining ||
           (!strcmp(camera->wish, to) && strcmp(camera->wish, site->nodes[from].name) != 0);
}

static void check_rebalanced(const struct site *site, const struct plan *old,
                             const struct plan *plan, int from, int to)
{
    const double room[2] = {site->nodes[from].room, site->nodes[to].room};
    const double before[2] = {used(site, old, from) / room[0], used(site, old, to) / room[1]};
    const double after[2] = {used(site, plan, from) / room[0], used(site, plan, to) / room[1]};
    CHECK(site->rebalance, "nobody asked for it");
    CHECK(before[0] - before[1] >= 0.2 - 1e-6, "%g and %g", before[0], before[1]);
    CHECK(after[1] < before[0] && after[1] <= after[0] + 0.1 + 1e-6, "%g and %g", after[0],
          after[1]);
}

static bool is_after(unsigned a, unsigned b)
{
    const unsigned ahead = (a - b) & 65535;
    return a != b && (b == 0 || (a > 0 && ahead < 32768));
}

static void check_camera(const struct site *site, const struct plan *old, const struct plan *plan,
                         const struct plan_camera *camera, int *rebalanced)
{
    const struct plan_entry *now = plan_find(plan, camera->name);
    const struct plan_entry *before = plan_find(old, camera->name);
    const int node = find_node(site, now->node);
    const int from = before ? find_node(site, before->node) : -1;
    CHECK(!now->node[0] || node >= 0, "%s on %s, which is dead", now->camera, now->node);
    CHECK(node < 0 || suits(site, camera, node), "%s on %s", now->camera, now->node);
    CHECK(node < 0 || now->bound == site->nodes[node].incarnation, "%s", now->camera);
    unsigned was = before ? before->generation : plan->removed;
    const bool went_back = is_after(camera->generation, was);
    const bool same_place = node >= 0 && from == node && before->bound == now->bound && !went_back;
    was = went_back ? camera->generation : was;
    const unsigned expected = node < 0 || same_place ? was : was == 65535 ? 1 : was + 1;
    CHECK(now->generation == expected, "%s: %u after %u", now->camera, now->generation, was);
    if (from >= 0 && from != node && !had_to_go(site, camera, from, now->node)) {
        ++*rebalanced;
        CHECK(node >= 0, "%s lost its node", now->camera);
        check_rebalanced(site, old, plan, from, node);
    }
    if (node >= 0 && node != from)
        CHECK(!site->nodes[node].draining &&
                  used(site, plan, node) <= 0.9 * site->nodes[node].room + 1e-6,
              "%s came to %s, which is too full", now->camera, now->node);
    const int wish = find_node(site, camera->wish);
    CHECK(wish < 0 || wish == node || !would_take(site, plan, camera, wish), "%s does not get %s",
          now->camera, camera->wish);
    for (int i = 0; i < site->n_nodes; i++)
        if (node < 0 || site->nodes[node].draining)
            CHECK(!would_take(site, plan, camera, i), "%s has no node, and %s has room",
                  now->camera, site->nodes[i].name);
}

static void check_plan(const struct site *site, const struct plan *old, const struct plan *plan)
{
    int rebalanced = 0;
    check_entries(site, plan);
    CHECK(plan->version == (old ? old->version + 1 : 1), "version %lld", (long long)plan->version);
    for (int i = 0; i < site->n_cameras; i++)
        check_camera(site, old, plan, &site->cameras[i], &rebalanced);
    CHECK(rebalanced <= 1, "%d cameras moved to balance nodes", rebalanced);
}

// Another planner with the same input makes the same plan, after which nothing is left to do.
static void check_same(struct site *site, const struct plan *old, const struct plan *plan)
{
    struct plan *other = NULL;
    CHECK(next(&other, old, site) == 0, "no plan");
    char *one = plan_print(plan), *two = other ? plan_print(other) : NULL;
    CHECK(one && two && !strcmp(one, two), "%s\n%s", one, two);
    plan_free(other);
    free(one);
    free(two);
    site->rebalance = false;
    CHECK(next(&other, plan, site) == 1, "the plan does not settle");
}

static void test_random(void)
{
    static struct site site;
    int plans = 0;
    for (int i = 0; i < SITES; i++) {
        struct plan *old = NULL;
        make_site(&site);
        for (int step = 0; step < STEPS; step++, change(&site)) {
            struct plan *plan = NULL;
            const int rc = next(&plan, old, &site);
            CHECK(rc == 0 || (rc == 1 && old), "%d", rc);
            if (rc == 0) {
                plans++;
                check_plan(&site, old, plan);
                check_same(&site, old, plan);
                plan_free(old);
                old = plan;
            } else if (old) {
                old->version--; // the version before it, for check_plan
                check_plan(&site, old,
                           &(struct plan){.version = old->version + 1,
                                          .removed = old->removed,
                                          .n = old->n,
                                          .entries = old->entries});
                old->version++;
            }
        }
        plan_free(old);
    }
    CHECK(plans > 5 * SITES, "%d plans say little", plans);
}

// CPU time of this thread, since the machine may be busy.
static double now_ms(void)
{
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return (double)at.tv_sec * 1e3 + (double)at.tv_nsec / 1e6;
}

// A thousand cameras on twenty nodes. One node dies: only its cameras move.
static void test_large(void)
{
    static struct site site;
    struct plan *plan = NULL, *after = NULL;
    site = (struct site){.n_nodes = NODES};
    for (int i = 0; i < NODES; i++) {
        make_node(&site, i);
        site.nodes[i].room = 100;
        site.nodes[i].taken = 0;
        site.alive[i] = true;
    }
    for (int i = 0; i < CAMERAS; i++) {
        make_camera(&site, i);
        site.cameras[i].cost = 1;
    }
    double began = now_ms(), took[3];
    CHECK(next(&plan, NULL, &site) == 0, "no plan");
    took[0] = now_ms() - began;
    check_plan(&site, NULL, plan);
    began = now_ms();
    CHECK(next(&after, plan, &site) == 1, "it does not settle");
    took[2] = now_ms() - began;
    site.alive[7] = false;
    began = now_ms();
    CHECK(next(&after, plan, &site) == 0, "no plan");
    took[1] = now_ms() - began;
    check_plan(&site, plan, after);
    int moved = 0, its = 0;
    for (int i = 0; i < CAMERAS; i++) {
        its += !strcmp(plan->entries[i].node, "box7");
        moved += strcmp(plan->entries[i].node, after->entries[i].node) != 0;
    }
    printf("1,000 cameras on 20 nodes: %.2f ms; nothing new: %.2f ms; the %d of a dead node: %.2f "
           "ms\n",
           took[0], took[2], its, took[1]);
    CHECK(its > 0 && moved == its, "%d moved, of a node with %d", moved, its);
    CHECK(took[0] < 50 && took[1] < 50, "%g and %g ms", took[0], took[1]);
    plan_free(plan);
    plan_free(after);
}

static struct plan_node node_of(const char *name, double room)
{
    struct plan_node node = {.incarnation = 1, .room = room};
    snprintf(node.name, sizeof node.name, "%s", name);
    return node;
}

static struct plan_camera camera_of(const char *name, double cost)
{
    struct plan_camera camera = {.cost = cost};
    snprintf(camera.name, sizeof camera.name, "%s", name);
    return camera;
}

// One step; frees the plan before.
static int step(struct plan **plan, const struct plan_camera cameras[], int n,
                const struct plan_node nodes[], int n_nodes, bool rebalance)
{
    struct plan *before = *plan;
    const int rc = plan_next(plan, before, cameras, n, nodes, n_nodes,
                             &(struct plan_wishes){.rebalance = rebalance});
    if (rc == 0)
        plan_free(before);
    return rc;
}

static const char *where(const struct plan *plan, const char *camera)
{
    const struct plan_entry *entry = plan_find(plan, camera);
    return entry ? entry->node : "not in it";
}

// A camera's generations rise, also over its removal and over the wrap of the numbers.
static void test_generations(void)
{
    struct plan *plan = NULL;
    struct plan_node node = node_of("box", 10);
    const struct plan_camera cameras[] = {camera_of("gate", 1), camera_of("yard", 1)};
    for (int i = 1; i <= 3; i++, node.incarnation++)
        CHECK(step(&plan, cameras, 2, &node, 1, false) == 0, "%d", i);
    CHECK(plan_find(plan, "gate")->generation == 3, "%u", plan_find(plan, "gate")->generation);
    CHECK(step(&plan, cameras + 1, 1, &node, 1, false) == 0 && !plan_find(plan, "gate"), "removed");
    CHECK(step(&plan, cameras, 2, &node, 1, false) == 0, "added again");
    CHECK(plan_find(plan, "gate")->generation > 3, "%u", plan_find(plan, "gate")->generation);
    plan->entries[0].generation = 65535;
    node.incarnation++;
    CHECK(step(&plan, cameras, 2, &node, 1, false) == 0, "after the last");
    CHECK(plan_find(plan, "gate")->generation == 1, "%u", plan_find(plan, "gate")->generation);
    CHECK(step(&plan, cameras, 2, &node, 0, false) == 0, "no node lives");
    CHECK(plan_find(plan, "gate")->generation == 1, "it has no node");
    CHECK(step(&plan, cameras, 2, &node, 0, false) == 1, "nothing changed");
    plan_free(plan);
}

// After a plan is lost or restored older, generations rise too, and no node obeys it yet.
static void test_lost_plan(void)
{
    struct plan *plan = NULL;
    struct plan_node nodes[] = {node_of("a", 10), node_of("b", 10)};
    struct plan_camera cameras[] = {camera_of("gate", 1), camera_of("hall", 1),
                                    camera_of("yard", 1)};
    nodes[0].obeys = 41;
    nodes[1].obeys = 7;
    cameras[0].generation = 5;
    cameras[2].generation = 65535;
    CHECK(step(&plan, cameras, 3, nodes, 2, false) == 0 && plan->version == 42, "no plan");
    CHECK(plan_find(plan, "gate")->generation == 6, "%u", plan_find(plan, "gate")->generation);
    CHECK(plan_find(plan, "hall")->generation == 1, "%u", plan_find(plan, "hall")->generation);
    CHECK(plan_find(plan, "yard")->generation == 1, "%u", plan_find(plan, "yard")->generation);
    cameras[0].generation = 6;
    cameras[2].generation = 1;
    CHECK(step(&plan, cameras, 3, nodes, 2, false) == 1, "what runs is what the plan says");
    cameras[0].generation = 40000; // more than half of the numbers ahead counts as behind
    CHECK(step(&plan, cameras, 3, nodes, 2, false) == 1, "it was before");
    char node[PLAN_NAME_SIZE];
    strcpy(node, where(plan, "gate"));
    cameras[0].generation = 900;
    CHECK(step(&plan, cameras, 3, nodes, 2, false) == 0 && plan->version == 43, "an older plan");
    CHECK(plan_find(plan, "gate")->generation == 901 && !strcmp(where(plan, "gate"), node), "%u",
          plan_find(plan, "gate")->generation);
    CHECK(plan_find(plan, "yard")->generation == 1, "another camera began anew");
    nodes[0].obeys = PLAN_VERSION_MAX;
    plan_free(plan);
    plan = NULL;
    CHECK(step(&plan, cameras, 3, nodes, 2, false) == 0 && plan->version == 1, "no number left");
    plan_free(plan);
}

// A camera that nobody runs any more keeps its last cost.
static void test_costs(void)
{
    struct plan *plan = NULL, *read = NULL;
    struct plan_camera cameras[] = {camera_of("big", 6), camera_of("small", 0.5)};
    struct plan_node nodes[] = {node_of("a", 10), node_of("b", 5), node_of("c", 10)};
    CHECK(step(&plan, cameras, 2, nodes, 1, false) == 0, "placed");
    cameras[0].cost = 4;
    CHECK(step(&plan, cameras, 2, nodes, 1, false) == 1, "a cost alone is no reason");
    cameras[0].cost = cameras[1].cost = 0;
    char *text = plan_print(plan);
    CHECK(text && plan_parse(&read, text, strlen(text)) == 0, "%s", text);
    free(text);
    CHECK(step(&read, cameras, 2, nodes + 1, 1, false) == 0, "its node is dead");
    CHECK(!*where(read, "big") && !strcmp(where(read, "small"), "b"), "6 in a room of 5: %s",
          where(read, "big"));
    CHECK(plan_find(read, "big")->cost == 6 && plan_find(read, "small")->cost == 0.5, "%g",
          plan_find(read, "big")->cost);
    CHECK(step(&read, cameras, 2, nodes + 1, 2, false) == 0 && !strcmp(where(read, "big"), "c"),
          "%s", where(read, "big"));
    cameras[0].cost = 2;
    nodes[2].draining = true;
    CHECK(step(&read, cameras, 2, nodes + 1, 2, false) == 0 && !strcmp(where(read, "big"), "b") &&
              plan_find(read, "big")->cost == 2,
          "what is measured counts: %s", where(read, "big"));
    plan_free(plan);
    plan_free(read);
}

// A new camera has its configuration's cost, except on nodes that count only cameras.
static void test_expected(void)
{
    struct plan *plan = NULL;
    struct plan_camera camera = camera_of("4k", 0);
    struct plan_node nodes[] = {node_of("a", 4), node_of("b", 5)};
    camera.expected = 4;
    CHECK(step(&plan, &camera, 1, nodes, 1, false) == 0 && !*where(plan, "4k"), "4 in 90 %% of 4");
    CHECK(step(&plan, &camera, 1, nodes, 2, false) == 0 && !strcmp(where(plan, "4k"), "b"), "%s",
          where(plan, "4k"));
    plan_free(plan);
    plan = NULL;
    nodes[0].counts = true;
    CHECK(step(&plan, &camera, 1, nodes, 1, false) == 0 && !strcmp(where(plan, "4k"), "a"),
          "a room of 4 cameras has no room for one");
    CHECK(plan_find(plan, "4k")->cost == 0, "what is expected was not measured");
    camera.cost = 2;
    CHECK(step(&plan, &camera, 1, nodes + 1, 1, false) == 0 && plan_find(plan, "4k")->cost == 2,
          "what is measured counts");
    plan_free(plan);
}

// One camera at a time moves while nodes are 20 points apart, and then none.
static void test_rebalance(void)
{
    struct plan *plan = NULL;
    char name[16];
    struct plan_camera cameras[8];
    const struct plan_node nodes[] = {node_of("a", 10), node_of("b", 10)};
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "cam%d", i);
        cameras[i] = camera_of(name, 1);
    }
    CHECK(step(&plan, cameras, 8, nodes, 1, false) == 0, "all on one");
    CHECK(step(&plan, cameras, 8, nodes, 2, false) == 1, "they stay");
    for (int i = 0; i < 3; i++)
        CHECK(step(&plan, cameras, 8, nodes, 2, true) == 0, "move %d", i);
    CHECK(step(&plan, cameras, 8, nodes, 2, true) == 0, "four are on either");
    CHECK(step(&plan, cameras, 8, nodes, 2, true) == 1, "balanced");
    int on_b = 0;
    for (int i = 0; i < plan->n; i++)
        on_b += !strcmp(plan->entries[i].node, "b");
    CHECK(on_b == 4, "%d on b", on_b);
    plan_free(plan);
}

static void test_wishes(void)
{
    struct plan *plan = NULL;
    struct plan_camera cameras[] = {camera_of("gate", 4), camera_of("yard", 4),
                                    camera_of("huge", 99)};
    struct plan_node nodes[] = {node_of("a", 10), node_of("b", 5)};
    CHECK(step(&plan, cameras, 3, nodes, 2, false) == 0, "placed");
    CHECK(!strcmp(where(plan, "gate"), "a") && !strcmp(where(plan, "yard"), "a"),
          "as full as the small one would be, and the first by name: %s", where(plan, "yard"));
    CHECK(!*where(plan, "huge"), "%s", where(plan, "huge"));
    strcpy(cameras[0].wish, "b");
    CHECK(step(&plan, cameras, 3, nodes, 2, false) == 0 && !strcmp(where(plan, "gate"), "b"), "%s",
          where(plan, "gate"));
    CHECK(step(&plan, cameras, 3, nodes, 2, true) == 1, "against the wish: %s",
          where(plan, "gate"));
    nodes[1].draining = true;
    CHECK(step(&plan, cameras, 3, nodes, 2, false) == 0 && !strcmp(where(plan, "gate"), "a"), "%s",
          where(plan, "gate"));
    nodes[1].draining = false;
    nodes[0].draining = true;
    CHECK(step(&plan, cameras, 3, nodes, 2, false) == 0 && !strcmp(where(plan, "yard"), "a") &&
              !strcmp(where(plan, "gate"), "b"),
          "the other has no room for both");
    plan_free(plan);
}

static void test_schema(void)
{
    struct plan *plan = NULL;
    const struct plan newer = {.schema = PLAN_SCHEMA + 1};
    CHECK(plan_next(&plan, &newer, NULL, 0, NULL, 0, NULL) == -EPROTONOSUPPORT && !plan, "newer");
    CHECK(plan_next(&plan, NULL, NULL, 0, NULL, 0, NULL) == 0 && plan->n == 0, "nothing");
    CHECK(!plan_find(plan, "gate") && !plan_find(NULL, "gate"), "found");
    plan_free(plan);
    plan_free(NULL);
}

// Nonsensical costs count as none, and spoil no sum.
static void test_nonsense(void)
{
    struct plan *plan = NULL;
    const struct plan_camera cameras[] = {camera_of("a", NAN), camera_of("b", -5),
                                          camera_of("c", INFINITY), camera_of("d", 7)};
    const struct plan_node nodes[] = {node_of("box", 10), node_of("none", NAN)};
    CHECK(step(&plan, cameras, 4, nodes, 2, true) == 0, "no plan");
    CHECK(!strcmp(where(plan, "d"), "box") && !*where(plan, "c"), "%s", where(plan, "d"));
    CHECK(!strcmp(where(plan, "a"), "box") && !strcmp(where(plan, "b"), "box"),
          "each counts as 1, for which there is room");
    char *text = plan_print(plan);
    CHECK(text && strstr(text, "\"cost\":7.0") && !strstr(text, "inf"), "%s", text);
    free(text);
    plan_free(plan);
}

int main(void)
{
    TEST(test_random());
    TEST(test_large());
    TEST(test_generations());
    TEST(test_lost_plan());
    TEST(test_costs());
    TEST(test_expected());
    TEST(test_rebalance());
    TEST(test_wishes());
    TEST(test_schema());
    TEST(test_nonsense());
    return test_end();
}
