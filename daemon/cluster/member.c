#include "daemon/cluster/member.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/value.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/cluster/etcd.h"
#include "daemon/cluster/planner.h"

static const int64_t SECOND_NS = INT64_C(1000000000), MS_NS = INT64_C(1000000);

static const int64_t SAY_NS = 30 * INT64_C(1000000000);   // between errors in the log
static const int64_t BEHIND_NS = 2 * INT64_C(1000000000); // longest lag of a watch behind etcd

struct fence {
    _Atomic int64_t until_ns;
    bool ordered; // cameras may use it
    struct fence *next;
};

struct member {
    struct member_context context;
    struct etcd *etcd;
    pthread_t id;
    _Atomic bool stop, ended, reported; // reported: member_report was called
    // Used by the member's thread alone:
    enum member_state state;
    struct mirror mirror;
    struct site site;            // of the mirror; written under the lock
    uint64_t ordered;            // site.placement of the last orders; 0: none
    bool ordered_start;          // the last orders let cameras start
    int64_t lease, lease_before; // of this membership, and of the previous key; 0: none
    int64_t lease_ordered;       // of the last orders with a camera
    int64_t next_ns;             // OUT: when to join; IN: when to send the next keepalive
    int64_t proof_ns;            // when the last answered keepalive was sent
    int64_t asked_revision;      // the mirror's when etcd was asked for its keys
    bool asking;                 // etcd is being asked: one request at a time
    bool watches;                // else the watch has ended until the next reading
    bool seen;                   // the own key has appeared since the node joined
    int64_t said_ns;             // when an error was last logged; 0: never
    int64_t behind_ns;           // since the watch lags behind etcd; 0: it does not
    int64_t behind_revision;     // of etcd then
    struct planner planner;
    struct announcement announcement;
    bool dirty, leaving;
    struct fence *fences; // the newest first
    // Guarded by the lock:
    pthread_mutex_t lock;
    struct member_orders orders;
    bool orders_taken;
    struct member_facts facts;
    bool facts_changed;
    struct member_health health;
};

static void join(struct member *);

static int64_t lease_ns(const struct member *member)
{
    return member->context.config->lease.ns;
}

// --- what others see

static void say(struct member *member, const char *why)
{
    const int64_t now_ns = boottime_ns();
    const bool due = member->said_ns == 0 || now_ns - member->said_ns > SAY_NS;
    pthread_mutex_lock(&member->lock);
    const bool new = strcmp(member->health.error, why) != 0;
    snprintf(member->health.error, sizeof member->health.error, "%s", why);
    pthread_mutex_unlock(&member->lock);
    if (!new || !*why || !due)
        return;
    member->said_ns = now_ns;
    log_event(LOG_LEVEL_WARNING, "cluster: %s", why);
}

static void set_state(struct member *member, enum member_state state)
{
    member->state = state;
    pthread_mutex_lock(&member->lock);
    member->health.state = state;
    pthread_mutex_unlock(&member->lock);
}

static void give_orders(struct member *member, struct member_orders *orders)
{
    pthread_mutex_lock(&member->lock);
    struct member_orders before = member->orders;
    member->orders = *orders;
    member->orders_taken = false;
    pthread_mutex_unlock(&member->lock);
    member_orders_clear(&before);
    member->context.changed(member->context.opaque);
}

// --- orders

static int add_order(struct member_orders *orders, const struct plan_entry *entry,
                     const struct site_key *camera)
{
    struct member_order *order = &orders->list[orders->n];
    if (camera->rc < 0)
        return 0; // a newer framed's: not for this node
    *order = (struct member_order){.text = strdup(camera->camera.text),
                                   .revision = camera->revision,
                                   .generation = entry->generation};
    if (!order->text)
        return -ENOMEM;
    memcpy(order->camera, entry->camera, sizeof order->camera);
    orders->n++;
    return 0;
}

// `alone: keep` also keeps cameras of the previous lease, until the plan has the new one.
static bool is_bound(const struct member *member, const struct plan_entry *entry)
{
    return entry->bound == member->lease ||
           (member->context.config->alone == ALONE_KEEP && entry->bound == member->lease_ordered);
}

// Gives the orders that the plan has for this node.
static void order(struct member *member)
{
    const struct site *site = &member->site;
    const char *own = member->context.node;
    const int n = site->plan ? site->plan->n : 0;
    struct member_orders orders = {.version = site->plan ? site->plan->version : 0,
                                   .list = calloc((size_t)n + 1, sizeof *orders.list),
                                   .may_start = site_obeys(site),
                                   .fence_ns = &member->fences->until_ns};
    int rc = orders.list ? 0 : -ENOMEM;
    for (int i = 0; rc == 0 && i < n; i++) {
        const struct plan_entry *entry = &site->plan->entries[i];
        if (strcmp(entry->node, own) != 0 || !is_bound(member, entry))
            continue;
        const struct site_key *camera = site_camera_key(site, entry->camera);
        if (camera)
            rc = add_order(&orders, entry, camera);
        if (entry->bound == member->lease)
            member->lease_ordered = member->lease;
    }
    if (rc < 0) {
        member_orders_clear(&orders); // the next change tries again
        return;
    }
    member->ordered = site->placement;
    member->ordered_start = orders.may_start;
    give_orders(member, &orders);
}

// Returns true if the site requires other orders than the last ones.
static bool is_order_due(const struct member *member)
{
    return member->ordered != member->site.placement ||
           member->ordered_start != site_obeys(&member->site);
}

// --- the lease

static void leave(struct member *member, const char *why)
{
    const bool was_in = member->state == MEMBER_IN;
    etcd_unwatch(member->etcd);
    set_state(member, MEMBER_OUT);
    member->next_ns = boottime_ns() + lease_ns(member) / 10;
    if (was_in)
        member->lease_before = member->lease;
    member->lease = 0;
    if (!was_in)
        return;
    pthread_mutex_lock(&member->lock);
    member->health.lost++;
    if (member->health.alone_ns == 0)
        member->health.alone_ns = member->proof_ns;
    pthread_mutex_unlock(&member->lock);
    const bool keeps = member->context.config->alone == ALONE_KEEP;
    log_event(LOG_LEVEL_ERROR, "cluster: this box is out: %s; its cameras %s", why,
              keeps ? "go on (alone: keep)" : "stop");
    if (!keeps) {
        atomic_store(&member->fences->until_ns, 0);
        give_orders(member, &(struct member_orders){.fence_ns = &member->fences->until_ns});
    }
}

// Extends the fence, which never goes back. If it had expired before, cameras have stopped already:
// the node leaves.
static void prove(struct member *member, int64_t sent_ns)
{
    const int64_t until_ns = member->context.config->alone == ALONE_KEEP
                                 ? INT64_MAX
                                 : sent_ns + lease_ns(member) * 6 / 10;
    const int64_t before_ns = atomic_load(&member->fences->until_ns);
    if (sent_ns > member->proof_ns)
        member->proof_ns = sent_ns;
    if (until_ns > before_ns)
        atomic_store(&member->fences->until_ns, until_ns);
    if (before_ns > 0 && boottime_ns() >= before_ns) {
        leave(member, "etcd answered too late");
        return;
    }
    pthread_mutex_lock(&member->lock);
    member->health.alone_ns = 0;
    pthread_mutex_unlock(&member->lock);
    if (member->site.plan_rc == 0) // else that error still holds
        say(member, "");
}

static bool has_lost(const struct member *member)
{
    return boottime_ns() >= member->proof_ns + lease_ns(member) * 6 / 10;
}

static void reread(void *opaque, int rc, const struct etcd_answer *answer);

static int ask_again(struct member *member)
{
    if (member->asking)
        return 0; // if that answer is not enough, compare_revision asks again
    member->asked_revision = member->mirror.revision;
    const int rc =
        etcd_get(member->etcd, member->mirror.prefix, lease_ns(member) / 5, reread, member);
    member->asking = rc == 0;
    return rc;
}

// Called within etcd_run, which then returns.
static void look_soon(struct member *member)
{
    member->dirty = true;
    etcd_wake(member->etcd);
}

static void watch_changed(void *opaque, int rc, const struct etcd_answer *answer)
{
    struct member *member = opaque;
    member->watches = rc == 0;
    if (rc == 0)
        rc = mirror_change(&member->mirror, answer);
    else if (rc == -EOVERFLOW) // etcd has forgotten the changes meanwhile
        rc = ask_again(member);
    if (rc < 0)
        leave(member, strerror(-rc));
    look_soon(member);
}

static int start_watch(struct member *member)
{
    const int rc = etcd_watch(member->etcd, member->mirror.prefix, member->mirror.revision + 1,
                              watch_changed, member);
    member->watches = rc == 0;
    return rc;
}

// Takes all keys, read after the watch fell silent or too far behind.
static void reread(void *opaque, int rc, const struct etcd_answer *answer)
{
    struct member *member = opaque;
    member->asking = false;
    if (member->state != MEMBER_IN || member->mirror.revision != member->asked_revision)
        return; // the watch has advanced beyond this answer
    if (rc == 0)
        rc = mirror_set(&member->mirror, answer);
    if (rc == 0)
        rc = start_watch(member);
    if (rc == -ENOMEM)
        leave(member, strerror(ENOMEM));
    look_soon(member); // etcd is asked again while the mirror is behind
}

static void compared(void *opaque, int rc, const struct etcd_answer *answer)
{
    struct member *member = opaque;
    member->asking = false;
    if (member->state != MEMBER_IN || member->mirror.revision != member->asked_revision || rc < 0)
        return; // the watch has advanced, or etcd is asked again while the mirror is behind
    if (member->watches && mirror_is_whole(&member->mirror, answer))
        member->mirror.revision = answer->revision;
    else if (ask_again(member) < 0)
        leave(member, strerror(ENOMEM));
}

// Other users of etcd change the store, too, without events in the watch. First checks only for a
// missed change: all keys of a large site are much data.
static int look_for_changes(struct member *member)
{
    if (member->asking)
        return 0;
    member->asked_revision = member->mirror.revision;
    const int rc =
        etcd_get_changes(member->etcd, member->mirror.prefix, mirror_newest(&member->mirror),
                         lease_ns(member) / 5, compared, member);
    member->asking = rc == 0;
    return rc;
}

static void begin_to_lag(struct member *member, int64_t revision, int64_t now_ns)
{
    member->behind_ns = now_ns;
    member->behind_revision = revision;
}

// If the watch does not reach the revision that etcd had, one reading catches up.
static void compare_revision(struct member *member, int64_t revision)
{
    const int64_t now_ns = boottime_ns(), known = member->mirror.revision;
    const bool is_ahead = revision > known; // a restored backup of etcd goes back
    if (revision == known && member->watches)
        member->behind_ns = 0;
    else if (member->behind_ns == 0 || (is_ahead && known >= member->behind_revision))
        begin_to_lag(member, revision, now_ns);
    else if (now_ns - member->behind_ns > BEHIND_NS &&
             (is_ahead && member->watches ? look_for_changes(member) : ask_again(member)) == 0)
        begin_to_lag(member, revision, now_ns);
}

static void kept_alive(void *opaque, int rc, const struct etcd_answer *answer)
{
    struct member *member = opaque;
    if (member->state != MEMBER_IN)
        return;
    if (rc < 0) {
        say(member, etcd_error(member->etcd));
        return;
    }
    if (answer->lease != member->lease)
        return; // of an earlier lease
    if (answer->ttl == 0) {
        leave(member, "its lease has ended");
        return;
    }
    if (has_lost(member)) { // cameras may have met the fence already
        leave(member, "etcd answered too late");
        return;
    }
    prove(member, answer->sent_ns);
    if (member->state == MEMBER_IN)
        compare_revision(member, answer->revision);
}

// --- joining: the keys, a lease, the own key

static void ignore(void *opaque, int rc, const struct etcd_answer *answer)
{
    (void)opaque, (void)rc, (void)answer;
}

static void fail_to_join(struct member *member, int rc, const char *why)
{
    if (member->lease)
        etcd_revoke(member->etcd, member->lease, lease_ns(member) / 5, ignore, NULL);
    say(member, rc == -ENOMEM ? strerror(ENOMEM) : why);
    leave(member, why);
    member->next_ns = boottime_ns() + lease_ns(member) / 5;
}

static void joined(void *opaque, int rc, const struct etcd_answer *answer)
{
    struct member *member = opaque;
    if (member->state != MEMBER_JOINING)
        return;
    if (rc == 0 && !answer->succeeded) {
        char why[PLAN_NAME_SIZE + 128];
        snprintf(why, sizeof why,
                 "a box with the name %s is in the cluster; it may be this one before it was "
                 "started anew, whose lease ends soon",
                 member->context.node);
        fail_to_join(member, 0, why);
        return;
    }
    if (rc == 0)
        rc = start_watch(member);
    if (rc < 0) {
        fail_to_join(member, rc, etcd_error(member->etcd));
        return;
    }
    prove(member, member->proof_ns); // from the request for the lease: a write does not extend it
    member->fences->ordered = true;
    member->ordered = 0;
    member->seen = false;
    set_state(member, MEMBER_IN);
    planner_join(&member->planner);
    member->next_ns = 0;
    look_soon(member);
    log_event(LOG_LEVEL_INFO, "cluster: this box is %s of site %s", member->context.node,
              member->context.config->site);
}

static int add_fence(struct member *member)
{
    if (member->fences && !member->fences->ordered)
        return 0; // of a failed try to join
    struct fence *fence = calloc(1, sizeof *fence);
    if (!fence)
        return -ENOMEM;
    fence->next = member->fences;
    member->fences = fence;
    return 0;
}

static int take_facts(struct member *member, struct member_facts *ret, bool *urgent)
{
    pthread_mutex_lock(&member->lock);
    const int rc = facts_copy(ret, &member->facts);
    *urgent = member->facts_changed;
    if (rc == 0)
        member->facts_changed = false;
    pthread_mutex_unlock(&member->lock);
    return rc;
}

static void granted(void *opaque, int rc, const struct etcd_answer *answer)
{
    struct member *member = opaque;
    struct member_facts facts;
    bool urgent;
    if (member->state != MEMBER_JOINING)
        return;
    if (rc == 0) {
        member->lease = answer->lease;
        member->proof_ns = answer->sent_ns;
        rc = add_fence(member);
    }
    if (rc == 0)
        rc = take_facts(member, &facts, &urgent);
    if (rc == 0) {
        rc = announcement_join(&member->announcement, member->lease, member->lease_before, &facts,
                               joined, member);
        facts_clear(&facts);
    }
    if (rc < 0)
        fail_to_join(member, rc, etcd_error(member->etcd));
}

static int show(struct member *member);

static void keys_came(void *opaque, int rc, const struct etcd_answer *answer)
{
    struct member *member = opaque;
    if (member->state != MEMBER_JOINING)
        return;
    if (rc == 0)
        rc = mirror_set(&member->mirror, answer);
    if (rc == 0)
        rc = show(member);
    if (rc == 0 && member->site.plan_rc == -EPROTONOSUPPORT) {
        fail_to_join(member, 0,
                     "the plan is of a newer framed: this box stays out until it is "
                     "updated");
        return;
    }
    // etcd counts whole seconds: rounds up, to no less than `lease`.
    const int64_t ttl_s = (lease_ns(member) + SECOND_NS - 1) / SECOND_NS;
    if (rc == 0)
        rc = etcd_grant(member->etcd, ttl_s, lease_ns(member) / 5, granted, member);
    if (rc < 0)
        fail_to_join(member, rc, etcd_error(member->etcd));
}

static void join(struct member *member)
{
    set_state(member, MEMBER_JOINING);
    if (etcd_get(member->etcd, member->mirror.prefix, lease_ns(member) / 5, keys_came, member) < 0)
        fail_to_join(member, -ENOMEM, "");
}

// --- what the keys say

static int show(struct member *member)
{
    struct site site, before;
    int rc = site_read(&site, &member->mirror, &member->site);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&member->lock);
    before = member->site;
    member->site = site;
    struct member_health *health = &member->health;
    health->version = site.plan ? site.plan->version : 0;
    health->nodes = site.n_nodes;
    health->cameras = site.n_cameras;
    health->unplaced = 0;
    for (int i = 0; i < site.n_cameras; i++) {
        const struct plan_entry *entry =
            site.plan ? plan_find(site.plan, site.cameras[i].name) : NULL;
        health->unplaced += !entry || !*entry->node;
    }
    pthread_mutex_unlock(&member->lock);
    site_clear(&before);
    planner_note_nodes(&member->planner);
    return 0;
}

static void plan_written(void *opaque, int rc)
{
    struct member *member = opaque;
    if (rc < 0 && rc != -EAGAIN) // else the watch shows another node's plan
        say(member, etcd_error(member->etcd));
    pthread_mutex_lock(&member->lock);
    member->health.plans += rc == 0;
    pthread_mutex_unlock(&member->lock);
    look_soon(member);
}

static void own_key_is_gone(void *opaque)
{
    struct member *member = opaque;
    if (member->state == MEMBER_IN)
        leave(member, "its key is gone");
}

// Returns true if this node's name is free, or another process has it. An unreadable key will be
// overwritten.
static bool has_lost_key(struct member *member)
{
    const struct node_document *own = site_document(&member->site, member->context.node);
    const bool is_own = own && own->incarnation == member->lease;
    member->seen |= is_own;
    return member->seen && !is_own && !(own && own->incarnation == 0);
}

static void look(struct member *member)
{
    struct member_facts facts;
    bool urgent;
    const bool dirty = member->dirty;
    member->dirty = false;
    if ((dirty && show(member) < 0) || take_facts(member, &facts, &urgent) < 0) {
        leave(member, strerror(ENOMEM));
        return;
    }
    if (has_lost_key(member)) { // others take the cameras now
        facts_clear(&facts);
        own_key_is_gone(member);
        return;
    }
    // An unreadable plan leaves cameras where they are.
    if (dirty && member->site.plan_rc == 0 && is_order_due(member))
        order(member);
    announcement_refresh(&member->announcement, &facts, urgent);
    if (dirty || urgent)
        announcement_troubles(&member->announcement, &facts);
    facts_clear(&facts);
    const int rc = planner_advance(&member->planner);
    if (rc == -EPROTONOSUPPORT)
        say(member, "the plan is of a newer framed: cameras stay where they are, and none starts "
                    "before this box is updated");
    else if (rc == -EBADMSG)
        say(member, "the key plan cannot be read: cameras stay where they are");
}

// --- the thread

// Returns the time when there is more to do.
static int64_t step(struct member *member)
{
    const int64_t now_ns = boottime_ns();
    if (member->state == MEMBER_IN && has_lost(member)) {
        const char *why = etcd_error(member->etcd);
        leave(member, *why ? why : "nothing was heard of etcd for too long");
    }
    // A node that has not reported its room yet would get no camera.
    if (member->state == MEMBER_OUT && now_ns >= member->next_ns && atomic_load(&member->reported))
        join(member);
    if (member->state == MEMBER_IN && now_ns >= member->next_ns) {
        member->next_ns = now_ns + lease_ns(member) / 10;
        etcd_keepalive(member->etcd, member->lease, lease_ns(member) / 5, kept_alive, member);
    }
    if (member->state == MEMBER_IN)
        look(member);
    if (member->state == MEMBER_JOINING)
        return now_ns + lease_ns(member) / 5;
    const int64_t due_ns = member->state == MEMBER_IN ? planner_due_ns(&member->planner) : 0;
    return due_ns && due_ns < member->next_ns ? due_ns : member->next_ns;
}

static void revoked(void *opaque, int rc, const struct etcd_answer *answer)
{
    struct member *member = opaque;
    (void)rc, (void)answer; // on failure the lease ends by itself
    member->leaving = false;
    etcd_wake(member->etcd);
}

// Revokes the lease, so that other nodes take the cameras at once, not when it would have ended.
static void give_back(struct member *member)
{
    const int64_t until_ns = boottime_ns() + 500 * MS_NS;
    set_state(member, MEMBER_OUT); // the late answer to a keepalive moves no fence
    if (member->fences)
        atomic_store(&member->fences->until_ns, 0);
    etcd_unwatch(member->etcd);
    member->leaving = member->lease &&
                      etcd_revoke(member->etcd, member->lease, 500 * MS_NS, revoked, member) == 0;
    while (member->leaving && boottime_ns() < until_ns)
        etcd_run(member->etcd, until_ns);
}

static void *run(void *opaque)
{
    struct member *member = opaque;
    pthread_setname_np(pthread_self(), "cluster");
    while (!atomic_load(&member->stop))
        etcd_run(member->etcd, step(member));
    give_back(member);
    atomic_store(&member->ended, true);
    return NULL;
}

// --- any thread

static void free_member(struct member *member)
{
    for (struct fence *next; member->fences; member->fences = next) {
        next = member->fences->next;
        free(member->fences);
    }
    etcd_close(member->etcd);
    mirror_close(&member->mirror);
    site_clear(&member->site);
    member_orders_clear(&member->orders);
    facts_clear(&member->facts);
    pthread_mutex_destroy(&member->lock);
    free(member);
}

int member_open(struct member **ret, const struct member_context *context)
{
    const struct cluster_config *config = context->config;
    const char *endpoints[ENDPOINTS_MAX];
    const struct etcd_options options = {
        .endpoints = endpoints,
        .n_endpoints = config->etcd.n,
        .user = config->user,
        .password = config->password,
        .ca = config->ca,
        .cert = config->certificate,
        .key = config->keyfile,
    };
    char *prefix;
    for (int i = 0; i < config->etcd.n; i++)
        endpoints[i] = config->etcd.url[i];
    struct member *member = calloc(1, sizeof *member);
    if (!member || asprintf(&prefix, "/framed/%s/", config->site) < 0) {
        free(member);
        return -ENOMEM;
    }
    member->context = *context;
    member->health.alone_ns = boottime_ns();
    pthread_mutex_init(&member->lock, NULL);
    int rc = mirror_open(&member->mirror, prefix);
    free(prefix);
    if (rc == 0)
        rc = etcd_open(&member->etcd, &options);
    member->announcement = (struct announcement){.etcd = member->etcd,
                                                 .mirror = &member->mirror,
                                                 .site = &member->site,
                                                 .node = context->node,
                                                 .labels = context->labels,
                                                 .version = context->version,
                                                 .http = context->http,
                                                 .timeout_ns = lease_ns(member) / 5,
                                                 .gone = own_key_is_gone,
                                                 .opaque = member};
    member->planner = (struct planner){.etcd = member->etcd,
                                       .mirror = &member->mirror,
                                       .site = &member->site,
                                       .own = context->node,
                                       .timeout_ns = lease_ns(member) / 5,
                                       .written = plan_written,
                                       .opaque = member};
    if (rc == 0)
        rc = -pthread_create(&member->id, NULL, run, member);
    if (rc < 0) {
        free_member(member);
        return rc;
    }
    *ret = member;
    return 0;
}

void member_stop(struct member *member)
{
    atomic_store(&member->stop, true);
    etcd_wake(member->etcd);
}

bool member_close(struct member *member, int ms)
{
    struct timespec until;
    if (!member)
        return true;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const int64_t ns = until.tv_nsec + ms * MS_NS;
    until.tv_sec += ns / SECOND_NS;
    until.tv_nsec = ns % SECOND_NS;
    if (pthread_clockjoin_np(member->id, NULL, CLOCK_MONOTONIC, &until) != 0)
        return false;
    free_member(member);
    return true;
}

bool member_take_orders(struct member *member, struct member_orders *ret)
{
    pthread_mutex_lock(&member->lock);
    const bool new = !member->orders_taken;
    if (new) {
        *ret = member->orders;
        member->orders = (struct member_orders){0};
        member->orders_taken = true;
    }
    pthread_mutex_unlock(&member->lock);
    return new;
}

void member_orders_clear(struct member_orders *orders)
{
    for (int i = 0; i < orders->n; i++)
        secret_free(orders->list[i].text);
    free(orders->list);
    *orders = (struct member_orders){0};
}

void member_report(struct member *member, const struct member_facts *facts)
{
    struct member_facts copy;
    if (facts_copy(&copy, facts) < 0)
        return; // the next report comes soon
    pthread_mutex_lock(&member->lock);
    struct member_facts before = member->facts;
    const bool urgent = facts_differ(&before, &copy);
    member->facts = copy;
    member->facts_changed |= urgent;
    pthread_mutex_unlock(&member->lock);
    facts_clear(&before);
    if (!atomic_exchange(&member->reported, true) || urgent)
        etcd_wake(member->etcd);
}

struct member_where member_where(struct member *member, const char *camera)
{
    struct member_where where = {0};
    pthread_mutex_lock(&member->lock);
    const struct site *site = &member->site;
    const struct plan_entry *entry = site->plan ? plan_find(site->plan, camera) : NULL;
    const struct node_document *node = entry ? site_document(site, entry->node) : NULL;
    where.reached = site->placement > 0;
    where.known = entry;
    if (entry) {
        memcpy(where.node, entry->node, sizeof where.node);
        where.here =
            member->health.state == MEMBER_IN && strcmp(entry->node, member->context.node) == 0;
        where.generation = entry->generation;
    }
    if (node)
        snprintf(where.http, sizeof where.http, "%s", node->http);
    pthread_mutex_unlock(&member->lock);
    return where;
}

struct member_health member_health(struct member *member)
{
    pthread_mutex_lock(&member->lock);
    const struct member_health health = member->health;
    pthread_mutex_unlock(&member->lock);
    return health;
}

void member_look(struct member *member, void (*look)(void *opaque, const struct site *),
                 void *opaque)
{
    pthread_mutex_lock(&member->lock);
    look(opaque, &member->site);
    pthread_mutex_unlock(&member->lock);
}

const char *member_node(const struct member *member)
{
    return member->context.node;
}

const char *member_site(const struct member *member)
{
    return member->context.config->site;
}
