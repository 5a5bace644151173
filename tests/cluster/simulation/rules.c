#include "tests/cluster/simulation/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cluster/documents.h"

struct rules rules;

enum { REQUESTS_MAX = 60 }; // of a process in a second

static const int64_t CALM_NS = 55 * NS_SECOND; // the planner: 60 s, by its own view

int box_number(const char *name)
{
    return atoi(name + strlen("box"));
}

// --- pictures

static bool is_newer(uint32_t a, uint32_t b)
{
    return a != b && (b == 0 || (a != 0 && (uint16_t)(a - b) < 0x8000));
}

static const struct store_key *node_key(const char *name)
{
    char key[STORE_KEY_SIZE];
    snprintf(key, sizeof key, SITE_PREFIX "node/%s", name);
    return store_find(key);
}

static bool is_ordered(const struct process *p, const struct camera_config *camera)
{
    const struct plan_entry *entry = plan_find(rules.plan, camera->name);
    return entry && strcmp(entry->node, p->name) == 0;
}

// A camera that went on alone has another generation until it is restarted.
static bool is_as_planned(const struct process *p)
{
    for (int i = 0; i < p->cameras.n; i++) {
        const struct camera_config *camera = p->cameras.list[i]->config;
        if (!is_ordered(p, camera) ||
            plan_find(rules.plan, camera->name)->generation != camera->generation)
            return false;
    }
    return true;
}

// True if etcd has the process's key, and the key confirms that it obeys the plan.
static bool is_known(struct process *p)
{
    struct node_document document;
    const struct store_key *key = node_key(p->name);
    if (process_state(p) != MEMBER_IN || !key || key->lease != p->lease ||
        node_document_parse(&document, key->value, strlen(key->value)) < 0)
        return false;
    const int64_t obeys = document.obeys;
    node_document_clear(&document);
    return rules.plan && obeys == rules.plan->version && obeys == p->obeys && is_as_planned(p);
}

// With `alone: keep` a box goes on without etcd, until it is back and follows the plan.
static void note_astray(struct process *p)
{
    const bool keeps = p->config.cluster.alone == ALONE_KEEP;
    if (keeps && (process_state(p) != MEMBER_IN || !node_key(p->name)))
        p->astray = true;
    if (p->astray && is_known(p))
        p->astray = false;
}

void rules_send_astray(struct process *p)
{
    p->astray = true;
}

static bool is_comparable(const struct shown *shown, const struct simulated_camera *camera)
{
    return shown->asked_ns >= rules.renewed_ns && camera->asked_ns >= rules.renewed_ns;
}

static void show(struct process *p, const struct simulated_camera *camera)
{
    const char *name = camera->camera.config->name;
    const uint32_t generation = camera->camera.config->generation;
    struct shown *shown = &rules.shown[camera_number(name)];
    const bool same = shown->process == p && shown->number == p->number;
    rules.pictures++;
    note_astray(p);
    if (p->astray)
        return;
    if (shown->process && !same && shown->last_ns == world.now_ns)
        break_rule("no two boxes show a camera", "%s: %s (%u) and %s (%u)", name, p->name,
                   generation, shown->process->name, shown->generation);
    if (shown->process && is_comparable(shown, camera) && is_newer(shown->generation, generation))
        break_rule("generations rise", "%s: %s shows %u after %u", name, p->name, generation,
                   shown->generation);
    if (shown->process && is_comparable(shown, camera) && !same && shown->generation == generation)
        break_rule("a generation is of one process", "%s: %s shows %u, as %s did", name, p->name,
                   generation, shown->process->name);
    *shown = (struct shown){.process = p,
                            .number = p->number,
                            .generation = generation,
                            .asked_ns = camera->asked_ns,
                            .last_ns = world.now_ns};
}

// --- the plan

static bool has_label(const struct plan_labels *labels, const struct plan_label *wanted)
{
    for (int i = 0; i < labels->n; i++)
        if (strcmp(labels->list[i].key, wanted->key) == 0)
            return strcmp(labels->list[i].value, wanted->value) == 0;
    return false;
}

// True if the camera had to move, or if the planner may believe so.
static bool may_move(const struct plan_entry *before)
{
    return rules.touched[box_number(before->node)] || rules.wished[camera_number(before->camera)];
}

// True if cameras of a box that is back, with a new lease, were given to another.
static bool is_stolen(const struct plan_entry *was, const struct plan_entry *is)
{
    const struct store_key *node = node_key(was->node);
    return node && node->lease != was->bound && strcmp(was->node, is->node) != 0 &&
           !rules.gives_away[box_number(was->node)] && !rules.wished[camera_number(was->camera)];
}

static void compare_plans(const struct plan *before, const struct plan *now)
{
    const bool calm = world.now_ns - rules.nodes_ns >= CALM_NS;
    const int moves = rules.moves;
    int needless = 0;
    for (int i = 0; i < before->n; i++) {
        const struct plan_entry *was = &before->entries[i];
        const struct plan_entry *is = plan_find(now, was->camera);
        if (!*was->node || !is || (strcmp(was->node, is->node) == 0 && was->bound == is->bound))
            continue;
        rules.moves++;
        if (is_stolen(was, is))
            break_rule("a plan takes the cameras of boxes that are gone", "%s of %s, by plan %lld",
                       was->camera, was->node, (long long)now->version);
        if (may_move(was))
            continue;
        needless++;
        trace("%s moves from %s to %s", was->camera, was->node, is->node);
    }
    rules.rebalanced += calm && rules.moves == moves + 1;
    if (needless > 1 || (needless == 1 && !calm))
        break_rule("a camera stays where it is", "%d moved by plan %lld", needless,
                   (long long)now->version);
}

static void take_plan(const struct store_key *key)
{
    struct plan *plan = NULL;
    if (key && plan_parse(&plan, key->value, strlen(key->value)) < 0)
        plan = NULL;
    rules.plans++;
    trace("plan %s", key ? key->value : "is gone");
    if (!rules.plan || store.by_hand)
        rules.renewed_ns = world.now_ns;
    else if (!plan || plan->version != rules.plan->version + 1)
        break_rule("a plan follows the one before it", "%lld after %lld",
                   plan ? (long long)plan->version : 0, (long long)rules.plan->version);
    if (plan && rules.plan && !store.by_hand)
        compare_plans(rules.plan, plan);
    plan_free(rules.plan);
    rules.plan = plan;
}

static void note_nodes(void)
{
    uint64_t nodes = 0;
    for (int i = 0; i < store.now.n_keys; i++)
        if (strncmp(store.now.keys[i].key, SITE_PREFIX "node/", strlen(SITE_PREFIX "node/")) == 0)
            nodes = nodes * 31 + (uint64_t)store.now.keys[i].lease;
    if (nodes != rules.nodes)
        rules.nodes_ns = world.now_ns;
    rules.nodes = nodes;
}

static void store_changed(void)
{
    const struct store_key *plan = store_find(SITE_PREFIX "plan");
    const int64_t revision = plan ? plan->mod_revision : 0;
    link_changed();
    note_nodes();
    if (revision != rules.plan_revision)
        take_plan(plan);
    rules.plan_revision = revision;
}

// --- the rest

static void check_black(void)
{
    for (int i = 0; i < CAMERAS_MAX; i++) {
        int64_t from_ns = rules.counts_from_ns[i];
        if (from_ns == NS_NEVER)
            continue;
        if (rules.shown[i].process && rules.shown[i].last_ns > from_ns)
            from_ns = rules.shown[i].last_ns;
        const int64_t black_ns = world.now_ns - from_ns;
        if (black_ns > rules.longest_black_ns)
            rules.longest_black_ns = black_ns;
        if (black_ns > 2 * world.processes[0].config.cluster.lease.ns)
            break_rule("a camera is black for 2 x lease at most", "cam%d: %.3f s", i,
                       (double)black_ns / (double)NS_SECOND);
    }
}

void rules_check(void)
{
    const int64_t second = world.now_ns / NS_SECOND;
    if (second != rules.second) {
        const int64_t n = world.requests - rules.requests;
        if (n > rules.most_requests)
            rules.most_requests = n;
        if (n > REQUESTS_MAX * PROCESSES_MAX)
            break_rule("etcd has little to do", "%lld requests in a second", (long long)n);
        rules.second = second;
        rules.requests = world.requests;
    }
    if (rules.etcd_is_well)
        check_black();
}

void rules_touch_all(void)
{
    for (int i = 0; i < BOXES_MAX; i++)
        rules.touched[i] = true;
}

void rules_open(void)
{
    rules = (struct rules){0};
    for (int i = 0; i < CAMERAS_MAX; i++)
        rules.counts_from_ns[i] = NS_NEVER;
    world.picture = show;
    store.changed = store_changed;
}

void rules_close(void)
{
    plan_free(rules.plan);
    rules.plan = NULL;
}

// --- at the end

static struct process *find_process(const char *name)
{
    for (int i = 0; i < PROCESSES_MAX; i++) {
        struct process *p = &world.processes[i];
        if (process_is_alive(p) && process_state(p) == MEMBER_IN && strcmp(p->name, name) == 0)
            return p;
    }
    return NULL;
}

static bool read_node(const char *name, struct node_document *document)
{
    const struct store_key *node = node_key(name);
    return node && node_document_parse(document, node->value, strlen(node->value)) == 0;
}

static double used(const char *node)
{
    double sum = 0;
    for (int i = 0; i < rules.plan->n; i++)
        sum += strcmp(rules.plan->entries[i].node, node) == 0;
    return sum;
}

static bool would_take(const struct process *p, const char *camera,
                       const struct camera_document *document)
{
    struct node_document node;
    char drain[STORE_KEY_SIZE];
    if (!read_node(p->name, &node))
        return false;
    snprintf(drain, sizeof drain, SITE_PREFIX "drain/%s", p->name);
    bool takes = !store_find(drain) && used(p->name) + 1 <= 0.9 * node.room + 1e-6;
    for (int i = 0; i < document->on.n; i++)
        takes &= has_label(&node.labels, &document->on.list[i]);
    for (int64_t i = 0; i < node.n_refused; i++)
        takes &= strcmp(node.refused[i], camera) != 0;
    node_document_clear(&node);
    return takes;
}

static const char *check_unplaced(const struct plan_entry *entry)
{
    char key[STORE_KEY_SIZE];
    struct camera_document document;
    bool fits = false;
    snprintf(key, sizeof key, SITE_PREFIX "camera/%s", entry->camera);
    const struct store_key *camera = store_find(key);
    if (!camera)
        return "the plan has a camera that is gone";
    if (camera_document_parse(&document, camera->value, strlen(camera->value)) < 0)
        return NULL;
    for (int i = 0; i < PROCESSES_MAX; i++)
        fits |= process_is_alive(&world.processes[i]) &&
                would_take(&world.processes[i], entry->camera, &document);
    camera_document_clear(&document);
    return fits ? "a camera that fits somewhere has no box" : NULL;
}

static const char *check_placed(const struct plan_entry *entry)
{
    struct process *p = find_process(entry->node);
    if (!p)
        return "the plan gives a camera to a box that is not there";
    for (int i = 0; i < p->cameras.n; i++) {
        const struct camera_config *camera = p->cameras.list[i]->config;
        if (strcmp(camera->name, entry->camera) == 0 && !p->cameras.list[i]->joined &&
            world.now_ns + p->boot_ns < atomic_load(camera->fence_ns))
            return camera->generation == entry->generation ||
                           p->config.cluster.alone == ALONE_KEEP // its new text was refused
                       ? NULL
                       : "a camera has another generation";
    }
    return "a box does not show its camera";
}

static const char *check_process(const struct process *p)
{
    struct node_document node;
    if (!read_node(p->name, &node))
        return "a box is not in the cluster";
    const bool obeys = node.obeys == rules.plan->version;
    node_document_clear(&node);
    if (!obeys)
        return "a box does not obey";
    for (int i = 0; i < p->cameras.n; i++)
        if (!is_ordered(p, p->cameras.list[i]->config))
            return "a box has a camera that is not its own";
    return NULL;
}

const char *rules_unsettled(void)
{
    const char *why = NULL;
    int n_cameras = 0;
    if (!rules.plan)
        return "there is no plan";
    for (int i = 0; i < store.now.n_keys; i++)
        n_cameras += strstr(store.now.keys[i].key, "/camera/") != NULL;
    if (n_cameras != rules.plan->n)
        return "the plan has other cameras";
    for (int i = 0; !why && i < rules.plan->n; i++) {
        const struct plan_entry *entry = &rules.plan->entries[i];
        why = *entry->node ? check_placed(entry) : check_unplaced(entry);
        if (why)
            trace("%s of %s: %s", entry->camera, entry->node, why);
    }
    for (int i = 0; !why && i < PROCESSES_MAX; i++)
        if (process_is_alive(&world.processes[i]))
            why = check_process(&world.processes[i]);
    return why;
}
