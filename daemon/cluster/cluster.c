#include "daemon/cluster/cluster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/machine.h"
#include "daemon/supervisor/cameras.h"

// Time until a refused text is tried again: a missing requirement may be met by then.
static const int64_t REFUSED_NS = 600 * INT64_C(1000000000);

enum {
    TEND_MS = 1000,      // between reports, and until a failed change is tried again
    LEAVE_MS = 700,      // to revoke the lease
    EPOCHS_SPARE = 4096, // reserve of a generation's 65536, until the plan gives another one
    GUESS_PROCESSOR = 5  // cameras per processor, until running cameras give a measure
};

// A camera that is ordered, or has to end.
struct assignment {
    char camera[PLAN_NAME_SIZE];
    uint32_t generation; // of the last request, like `revision`
    int64_t revision;
    bool runs; // by the last request, or the one before
    bool busy; // `request` is under way
    bool ends; // its thread was stopped: the camera has to start again
    struct reload_request request;
    struct cluster *cluster;
    struct assignment *next;
};

// A camera that this node could not run. It stays refused for a while, or nodes that cannot run it
// would pass it around.
struct refusal {
    struct refused_camera camera;
    int64_t until_ns; // CLOCK_MONOTONIC
    bool by_files;    // this node's files keep it from ending, and so from starting again
    struct refusal *next;
};

struct cluster {
    struct cluster_context context;
    struct member *member;
    struct event changed;
    uv_timer_t timer;
    struct member_orders orders;
    struct assignment *first;
    struct refusal *refused;
    int64_t obeys;
    uint64_t applied; // reloads of the files, at the last look
    char node[PLAN_NAME_SIZE];
    struct plan_labels labels;
    char http[DOCUMENT_URL_SIZE];
    bool stopped, following, again;
};

static void follow(struct cluster *cluster);

// --- what runs

// Returns the cost in cameras of 1920x1080 at 25 pictures a second; 0: too few pictures yet.
static double cost_of(const struct camera *camera)
{
    const struct stream_memory memory = camera_report_describe(&camera->report).memory;
    return rate_counter_rate(&camera->pictures) * memory.width * memory.height /
           (25.0 * 1920 * 1080);
}

static double guess_room(void)
{
    return GUESS_PROCESSOR * processor_time_limit();
}

// Returns the room: the node's present load `all`, from `n` cameras, and the load it can add.
static double room_of(const struct cluster *cluster, double all, int n)
{
    const struct cluster_config *config = &cluster->context.config->cluster;
    const int more = cluster->context.more(cluster->context.opaque);
    if (config->room > 0)
        return config->room;
    if (more >= 0 && n > 0 && all > 0)
        return all + more * all / n;
    return guess_room() > all ? guess_room() : all;
}

static const struct assignment *find_running(const struct cluster *cluster, const char *name)
{
    const struct assignment *assignment = cluster->first;
    while (assignment && strcmp(assignment->camera, name) != 0)
        assignment = assignment->next;
    return assignment && assignment->runs ? assignment : NULL;
}

// Returns true if the camera's thread has ended, even if it could not be removed.
static bool has_ended(const struct assignment *assignment)
{
    const struct camera *camera =
        cameras_find(assignment->cluster->context.cameras, assignment->camera);
    return !camera || camera->joined;
}

// Returns the generation that runs, or a higher one if its epochs are almost used up. The plan then
// gives one above that, so that epochs at another node begin above these, too.
static uint32_t generation_of(const struct assignment *assignment, const struct camera *camera)
{
    const uint32_t epoch = atomic_load(&camera->report.epoch);
    const int32_t used = (int32_t)(epoch - (assignment->generation << 16));
    if (epoch == 0 || used < 0) // no picture yet, or only of an earlier generation
        return assignment->generation;
    const uint32_t above = ((uint32_t)used + EPOCHS_SPARE) >> 16;
    return (assignment->generation - 1 + above) % PLAN_GENERATION_MAX + 1;
}

static void add_camera(struct cluster *cluster, const struct camera *camera,
                       struct member_facts *facts, double *all)
{
    const struct assignment *assignment = find_running(cluster, camera->config->name);
    const double cost = cost_of(camera);
    if (assignment && camera->joined) // ended, but could not be removed
        return;
    *all += facts->counts ? 1 : cost;
    if (!assignment) {
        facts->taken += facts->counts ? 1 : cost;
        return;
    }
    struct running_camera *running = &facts->running[facts->n_running++];
    *running =
        (struct running_camera){.generation = generation_of(assignment, camera), .cost = cost};
    memcpy(running->camera, assignment->camera, sizeof running->camera);
}

// A refused camera may have run by its previous text, and have ended since.
static void add_refused(const struct cluster *cluster, const struct refused_camera *camera,
                        struct member_facts *facts)
{
    const struct assignment *running = find_running(cluster, camera->camera);
    struct refused_camera *refused = &facts->refused[facts->n_refused++];
    *refused = *camera;
    refused->runs = running && !has_ended(running);
}

static void report(struct cluster *cluster)
{
    const struct cameras *cameras = cluster->context.cameras;
    struct member_facts facts = {.obeys = cluster->obeys,
                                 .counts = cluster->context.config->cluster.room > 0};
    double all = 0;
    int n = 0;
    for (const struct refusal *refusal = cluster->refused; refusal; refusal = refusal->next)
        n++;
    facts.running = calloc((size_t)cameras->n + 1, sizeof *facts.running);
    facts.refused = calloc((size_t)n + 1, sizeof *facts.refused);
    if (facts.running && facts.refused) {
        for (int i = 0; i < cameras->n; i++)
            add_camera(cluster, cameras->list[i], &facts, &all);
        for (const struct refusal *refusal = cluster->refused; refusal; refusal = refusal->next)
            add_refused(cluster, &refusal->camera, &facts);
        facts.room = room_of(cluster, all, cameras->n);
        member_report(cluster->member, &facts);
    }
    free(facts.running);
    free(facts.refused);
}

// --- what cannot run

static struct refusal **find_refusal(struct cluster *cluster, const char *camera)
{
    struct refusal **link = &cluster->refused;
    while (*link && strcmp((*link)->camera.camera, camera) != 0)
        link = &(*link)->next;
    return link;
}

static void forget_refusal(struct refusal **link)
{
    struct refusal *refusal = *link;
    *link = refusal->next;
    free(refusal);
}

// `all`: the files have changed, and missing requirements may be met.
static void forget_refusals(struct cluster *cluster, bool all)
{
    const int64_t now_ns = monotonic_ns();
    for (struct refusal **link = &cluster->refused; *link;)
        if (all || now_ns >= (*link)->until_ns)
            forget_refusal(link);
        else
            link = &(*link)->next;
}

static void refuse(const struct assignment *assignment, int64_t revision, bool by_files,
                   const char *errors)
{
    struct cluster *cluster = assignment->cluster;
    struct refusal **link = find_refusal(cluster, assignment->camera);
    if (!*link && !(*link = calloc(1, sizeof **link)))
        return; // it is tried again
    (*link)->until_ns = monotonic_ns() + REFUSED_NS;
    (*link)->by_files = by_files;
    struct refused_camera *camera = &(*link)->camera;
    *camera = (struct refused_camera){.revision = revision};
    memcpy(camera->camera, assignment->camera, sizeof camera->camera);
    snprintf(camera->why, sizeof camera->why, "%.*s", (int)strcspn(errors, "\n"), errors);
}

// --- a change of one camera

static const struct member_order *find_order(const struct member_orders *, const char *camera);

// Refuses a camera that has ended and cannot start again because of mistakes in this node's own
// files: another node may run it.
static void refuse_ended(const struct assignment *assignment, int rc, const char *errors)
{
    const struct member_order *order = find_order(&assignment->cluster->orders, assignment->camera);
    if (order && rc != -ESHUTDOWN && rc != -ENOMEM)
        refuse(assignment, order->revision, true, errors);
}

static void changed(struct reload_request *request, int rc, const struct reload_result *result,
                    const char *errors)
{
    struct assignment *assignment =
        (struct assignment *)((char *)request - offsetof(struct assignment, request));
    struct cluster *cluster = assignment->cluster;
    const bool assigns = request->edit->kind == EDIT_ASSIGN;
    (void)result;
    edit_close(request->edit);
    request->edit = NULL;
    assignment->busy = false;
    if (assigns && rc < 0 && rc != -ESHUTDOWN && rc != -ENOMEM)
        refuse(assignment, assignment->revision, false, errors);
    if (assigns && rc < 0)
        assignment->revision = 0; // that text has to be requested again
    if (assigns && rc == 0) {
        struct refusal **refusal = find_refusal(cluster, assignment->camera);
        assignment->runs = true;
        if (*refusal)
            forget_refusal(refusal);
    } else if (!assigns && (rc == 0 || rc == -ENOENT)) {
        struct refusal **refusal = find_refusal(cluster, assignment->camera);
        assignment->runs = assignment->ends = false;
        if (*refusal && (*refusal)->by_files)
            forget_refusal(refusal);
    } else {
        if (!assigns)
            refuse_ended(assignment, rc, errors);
        return; // the timer tries again
    }
    follow(cluster);
}

static void ask(struct assignment *assignment, enum edit_kind kind, const char *text)
{
    struct cluster *cluster = assignment->cluster;
    struct reload *reload = cluster->context.reload;
    const char *wrong = edit_name_wrong(assignment->camera);
    struct edit *edit;
    if (wrong) {
        char why[128];
        snprintf(why, sizeof why, "a camera's name %s", wrong);
        refuse(assignment, assignment->revision, false, why);
    }
    if (wrong || edit_open(&edit, kind, assignment->camera, reload->file, text) < 0) {
        assignment->revision = 0; // the timer tries again
        return;
    }
    edit->generation = assignment->generation;
    edit->fence_ns = cluster->orders.fence_ns;
    assignment->busy = true;
    assignment->request = (struct reload_request){.edit = edit, .done = changed};
    reload_start(reload, &assignment->request);
}

// Ends the camera's thread even if the configuration's files have a mistake by now, which keeps the
// camera itself from being removed.
static void give_up(struct assignment *assignment)
{
    struct camera *camera = cameras_find(assignment->cluster->context.cameras, assignment->camera);
    if (camera && camera->started && !camera->joined)
        camera_stop(camera);
    assignment->ends = true;
    ask(assignment, EDIT_UNASSIGN, NULL);
}

// --- orders

static const struct member_order *find_order(const struct member_orders *orders, const char *camera)
{
    for (int i = 0; i < orders->n; i++)
        if (strcmp(orders->list[i].camera, camera) == 0)
            return &orders->list[i];
    return NULL;
}

static struct assignment *add_assignment(struct cluster *cluster, const char *camera)
{
    struct assignment *assignment = calloc(1, sizeof *assignment);
    if (!assignment)
        return NULL;
    assignment->cluster = cluster;
    snprintf(assignment->camera, sizeof assignment->camera, "%s", camera);
    assignment->next = cluster->first;
    cluster->first = assignment;
    return assignment;
}

static void add_assignments(struct cluster *cluster)
{
    for (int i = 0; i < cluster->orders.n; i++) {
        const char *camera = cluster->orders.list[i].camera;
        const struct assignment *known = cluster->first;
        while (known && strcmp(known->camera, camera) != 0)
            known = known->next;
        if (!known && !add_assignment(cluster, camera))
            return; // the timer tries again
    }
}

static void follow_order(struct assignment *assignment, const struct member_order *order)
{
    const bool same = assignment->runs && assignment->generation == order->generation &&
                      assignment->revision == order->revision;
    const struct refusal *refusal = *find_refusal(assignment->cluster, assignment->camera);
    const bool refused = refusal && refusal->camera.revision == order->revision;
    if (same || refused || (!assignment->runs && !assignment->cluster->orders.may_start))
        return;
    assignment->generation = order->generation;
    assignment->revision = order->revision;
    ask(assignment, EDIT_ASSIGN, order->text);
}

// Returns true if the camera may still show pictures: its thread runs, or is about to.
static bool may_show(const struct assignment *assignment)
{
    const bool assigns = assignment->busy && assignment->request.edit->kind == EDIT_ASSIGN;
    return assigns || !has_ended(assignment);
}

// Frees ended assignments without an order. Returns true if another one has no order and may still
// show pictures.
static bool forget_ended(struct cluster *cluster)
{
    bool any = false;
    for (struct assignment **link = &cluster->first; *link;) {
        struct assignment *assignment = *link;
        const bool ordered = find_order(&cluster->orders, assignment->camera);
        if (ordered || assignment->busy || assignment->runs) {
            any |= !ordered && may_show(assignment);
            link = &assignment->next;
            continue;
        }
        *link = assignment->next;
        free(assignment);
    }
    return any;
}

// Cameras that have to end go first: other nodes wait for them.
static void follow_once(struct cluster *cluster)
{
    for (struct assignment *a = cluster->first; a; a = a->next)
        if (!a->busy && a->runs && (a->ends || !find_order(&cluster->orders, a->camera)))
            give_up(a);
    if (!forget_ended(cluster))
        cluster->obeys = cluster->orders.version;
    add_assignments(cluster);
    for (struct assignment *a = cluster->first; a; a = a->next) {
        const struct member_order *order = find_order(&cluster->orders, a->camera);
        if (order && !a->busy && !a->ends)
            follow_order(a, order);
    }
    report(cluster);
}

// A reload may answer within the call that requests it.
static void follow(struct cluster *cluster)
{
    cluster->again = true;
    if (cluster->following)
        return;
    cluster->following = true;
    while (cluster->again && !cluster->stopped) {
        cluster->again = false;
        follow_once(cluster);
    }
    cluster->following = false;
}

static void orders_came(struct event *event)
{
    struct cluster *cluster = (struct cluster *)((char *)event - offsetof(struct cluster, changed));
    struct member_orders orders;
    if (cluster->stopped || !member_take_orders(cluster->member, &orders))
        return;
    member_orders_clear(&cluster->orders);
    cluster->orders = orders;
    follow(cluster);
}

static void tend(uv_timer_t *timer)
{
    struct cluster *cluster = timer->data;
    const uint64_t applied = cluster->context.reload->applied;
    forget_refusals(cluster, applied != cluster->applied);
    cluster->applied = applied;
    follow(cluster);
}

// --- its life

static void member_changed(void *opaque)
{
    struct cluster *cluster = opaque;
    event_post(cluster->context.events, &cluster->changed);
}

// Sets the URL of this node's API for other nodes, with the host's name for a wildcard address.
static void name_http(struct cluster *cluster)
{
    const struct http_address *http = &cluster->context.config->http;
    char host[DOCUMENT_URL_SIZE - 32] = "";
    if (http->at.kind != SINK_TCP)
        return;
    snprintf(host, sizeof host, "%s", address_host(&http->at));
    if (strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0)
        gethostname(host, sizeof host - 1);
    const bool ipv6 = strchr(host, ':');
    if (strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 || strcmp(host, "localhost") == 0)
        log_event(LOG_LEVEL_WARNING,
                  "cluster: http is at %s, where no other box and no consumer "
                  "elsewhere finds this one",
                  host);
    snprintf(cluster->http, sizeof cluster->http, "http://%s%s%s:%d", ipv6 ? "[" : "", host,
             ipv6 ? "]" : "", http->at.port);
}

static void name_node(struct cluster *cluster)
{
    const struct cluster_config *config = &cluster->context.config->cluster;
    if (config->node)
        snprintf(cluster->node, sizeof cluster->node, "%s", config->node);
    else
        gethostname(cluster->node, sizeof cluster->node - 1);
    cluster->labels.n = config->labels.n;
    for (int i = 0; i < config->labels.n; i++) {
        struct plan_label *label = &cluster->labels.list[i];
        snprintf(label->key, sizeof label->key, "%s", config->labels.list[i].name);
        snprintf(label->value, sizeof label->value, "%s", config->labels.list[i].value);
    }
}

int cluster_open(struct cluster **ret, const struct cluster_context *context)
{
    struct cluster *cluster = calloc(1, sizeof *cluster);
    if (!cluster)
        return -ENOMEM;
    cluster->context = *context;
    cluster->changed.callback = orders_came;
    name_http(cluster);
    name_node(cluster);
    const struct member_context member = {
        .config = &context->config->cluster,
        .node = cluster->node,
        .labels = &cluster->labels,
        .version = FRAMED_VERSION_TEXT,
        .http = cluster->http,
        .changed = member_changed,
        .opaque = cluster,
    };
    const int rc = member_open(&cluster->member, &member);
    if (rc < 0) {
        free(cluster);
        return rc;
    }
    uv_timer_init(context->loop, &cluster->timer);
    cluster->timer.data = cluster;
    uv_timer_start(&cluster->timer, tend, TEND_MS, TEND_MS);
    report(cluster);
    *ret = cluster;
    return 0;
}

void cluster_stop(struct cluster *cluster)
{
    if (!cluster || cluster->stopped)
        return;
    cluster->stopped = true;
    uv_timer_stop(&cluster->timer);
    member_stop(cluster->member);
}

void cluster_close_handles(struct cluster *cluster)
{
    if (!cluster)
        return;
    uv_close((uv_handle_t *)&cluster->timer, NULL);
    if (member_close(cluster->member, LEAVE_MS))
        cluster->member = NULL;
    else
        log_event(LOG_LEVEL_WARNING, "cluster: a name server hangs: leaving its thread");
}

void cluster_close(struct cluster *cluster)
{
    if (!cluster)
        return;
    member_orders_clear(&cluster->orders);
    while (cluster->refused)
        forget_refusal(&cluster->refused);
    for (struct assignment *next; cluster->first; cluster->first = next) {
        next = cluster->first->next;
        free(cluster->first);
    }
    if (!cluster->member)
        free(cluster);
}

struct member *cluster_member(const struct cluster *cluster)
{
    return cluster ? cluster->member : NULL;
}
