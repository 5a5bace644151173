// The functions of daemon/cluster/etcd.h, on the store of this process.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/cluster/etcd.h"
#include "tests/cluster/simulation/world.h"

// --- the client

struct request {
    struct request *next;
    struct store_request what;
    etcd_done *done;
    void *opaque;
    int64_t sent_ns;    // by the world's clock, like the next three
    int64_t arrives_ns; // NS_NEVER: it is lost, or has arrived
    int64_t answered_ns, deadline_ns;
    int64_t sent_boot_ns;
    struct store_answer answer;
};

struct watch {
    char *prefix; // NULL: no watch
    int64_t next_revision;
    int64_t due_ns; // earliest time of the next changes
    etcd_changed *changed;
    void *opaque;
};

struct etcd {
    struct process *owner;
    struct request *requests;
    struct watch watch;
    bool woken;
    char error[64];
};

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool is_disturbed(const struct process *p)
{
    return world.now_ns < p->disturbance.until_ns;
}

static int64_t delay_ns(const struct process *p)
{
    if (is_disturbed(p) && p->disturbance.delay_ns > 0)
        return draw_ns(0, p->disturbance.delay_ns);
    return draw_ns(NS_MS / 5, world.patience_ns);
}

int etcd_open(struct etcd **ret, const struct etcd_options *options)
{
    struct etcd *etcd = calloc(1, sizeof *etcd);
    (void)options;
    etcd->owner = world.runs;
    etcd->owner->etcd = *ret = etcd;
    return 0;
}

static void free_request(struct request *request)
{
    store_request_clear(&request->what);
    store_answer_clear(&request->answer);
    free(request);
}

void etcd_unwatch(struct etcd *etcd)
{
    free(etcd->watch.prefix);
    etcd->watch = (struct watch){0};
}

void etcd_close(struct etcd *etcd)
{
    for (struct request *next; etcd->requests; etcd->requests = next) {
        next = etcd->requests->next;
        free_request(etcd->requests);
    }
    etcd_unwatch(etcd);
    etcd->owner->etcd = NULL;
    free(etcd);
}

void etcd_wake(struct etcd *etcd)
{
    etcd->woken = true;
}

const char *etcd_error(const struct etcd *etcd)
{
    return etcd->error;
}

// --- requests

static int ask(struct etcd *etcd, struct store_request what, int64_t timeout_ns, etcd_done *done,
               void *opaque)
{
    const struct process *p = etcd->owner;
    struct request *request = calloc(1, sizeof *request), **last = &etcd->requests;
    if (p->killed) { // a killed process sends nothing
        store_request_clear(&what);
        free(request);
        return -ENOMEM;
    }
    *request = (struct request){.what = what, .done = done, .opaque = opaque};
    request->sent_boot_ns = boottime_ns();
    request->sent_ns = world.now_ns;
    request->deadline_ns = world.now_ns + timeout_ns;
    request->answered_ns = NS_NEVER;
    request->arrives_ns =
        is_disturbed(p) && p->disturbance.loses_requests ? NS_NEVER : world.now_ns + delay_ns(p);
    while (*last)
        last = &(*last)->next;
    *last = request;
    return 0;
}

int etcd_get(struct etcd *etcd, const char *prefix, int64_t timeout_ns, etcd_done *done,
             void *opaque)
{
    return ask(etcd, (struct store_request){.method = STORE_GET, .prefix = strdup(prefix)},
               timeout_ns, done, opaque);
}

int etcd_get_changes(struct etcd *etcd, const char *prefix, int64_t since, int64_t timeout_ns,
                     etcd_done *done, void *opaque)
{
    const struct store_request what = {
        .method = STORE_GET, .prefix = strdup(prefix), .since = since};
    return ask(etcd, what, timeout_ns, done, opaque);
}

int etcd_grant(struct etcd *etcd, int64_t ttl_s, int64_t timeout_ns, etcd_done *done, void *opaque)
{
    return ask(etcd, (struct store_request){.method = STORE_GRANT, .ttl_s = ttl_s}, timeout_ns,
               done, opaque);
}

int etcd_keepalive(struct etcd *etcd, int64_t lease, int64_t timeout_ns, etcd_done *done,
                   void *opaque)
{
    return ask(etcd, (struct store_request){.method = STORE_KEEPALIVE, .lease = lease}, timeout_ns,
               done, opaque);
}

int etcd_revoke(struct etcd *etcd, int64_t lease, int64_t timeout_ns, etcd_done *done, void *opaque)
{
    return ask(etcd, (struct store_request){.method = STORE_REVOKE, .lease = lease}, timeout_ns,
               done, opaque);
}

int etcd_commit(struct etcd *etcd, const struct etcd_compare compares[], int n_compares,
                const struct etcd_write writes[], int n_writes, int64_t timeout_ns, etcd_done *done,
                void *opaque)
{
    struct store_request what = {
        .method = STORE_COMMIT, .n_compares = n_compares, .n_writes = n_writes};
    if (n_compares > STORE_COMPARES_MAX || n_writes > STORE_WRITES_MAX)
        abort();
    for (int i = 0; i < n_compares; i++) {
        what.compares[i] = compares[i];
        what.compares[i].key = strdup(compares[i].key);
    }
    for (int i = 0; i < n_writes; i++) {
        what.writes[i] = writes[i];
        what.writes[i].key = strdup(writes[i].key);
        what.writes[i].value = writes[i].value ? strdup(writes[i].value) : NULL;
    }
    return ask(etcd, what, timeout_ns, done, opaque);
}

// --- etcd's side

static struct request *first_to_arrive(void)
{
    struct request *first = NULL;
    for (int i = 0; i < PROCESSES_MAX; i++) {
        const struct etcd *etcd = world.processes[i].etcd;
        for (struct request *r = etcd ? etcd->requests : NULL; r; r = r->next)
            if (r->arrives_ns != NS_NEVER && (!first || r->arrives_ns < first->arrives_ns))
                first = r;
    }
    return first;
}

int64_t link_next_ns(void)
{
    const struct request *first = first_to_arrive();
    return first ? first->arrives_ns : NS_NEVER;
}

static struct process *sender_of(const struct request *request)
{
    for (int i = 0; i < PROCESSES_MAX; i++) {
        const struct etcd *etcd = world.processes[i].etcd;
        for (const struct request *r = etcd ? etcd->requests : NULL; r; r = r->next)
            if (r == request)
                return &world.processes[i];
    }
    abort();
}

static void serve(struct request *request)
{
    struct process *p = sender_of(request);
    request->arrives_ns = NS_NEVER;
    if (is_disturbed(p) && p->disturbance.loses_requests)
        return;
    if (world.now_ns < world.etcd_away_ns) {
        request->answer.rc = -ECONNREFUSED;
        request->answered_ns = world.etcd_silent ? NS_NEVER : world.now_ns + delay_ns(p);
        return;
    }
    world.requests++;
    trace("%s: asks %d %s", p->name, (int)request->what.method,
          request->what.n_writes ? request->what.writes[0].value : "");
    request->answer = store_do(&request->what, world.now_ns);
    if (request->answer.answer.succeeded && request->what.writes[0].lease)
        p->lease = request->what.writes[0].lease;
    const bool lost = request->what.method == STORE_COMMIT && p->loses_next;
    p->loses_next &= !lost;
    p->asked[request->what.method]++;
    if (!lost && (!is_disturbed(p) || !p->disturbance.loses_answers))
        request->answered_ns = world.now_ns + delay_ns(p) + p->late_ns[request->what.method];
}

void link_serve(void)
{
    struct request *first;
    while ((first = first_to_arrive()) && first->arrives_ns <= world.now_ns)
        serve(first);
}

// --- the watch

int etcd_watch(struct etcd *etcd, const char *prefix, int64_t revision, etcd_changed *changed,
               void *opaque)
{
    etcd_unwatch(etcd);
    etcd->owner->silent_ns = 0; // a new connection
    etcd->watch = (struct watch){.prefix = strdup(prefix),
                                 .next_revision = revision,
                                 .due_ns = world.now_ns + 2 * delay_ns(etcd->owner),
                                 .changed = changed,
                                 .opaque = opaque};
    return 0;
}

// Watches report changes a little later.
void link_changed(void)
{
    for (int i = 0; i < PROCESSES_MAX; i++) {
        struct etcd *etcd = world.processes[i].etcd;
        if (etcd && etcd->watch.due_ns <= world.now_ns)
            etcd->watch.due_ns = world.now_ns + delay_ns(etcd->owner);
    }
}

static bool hears(const struct process *p)
{
    return world.now_ns >= world.etcd_away_ns && world.now_ns >= p->silent_ns &&
           !(is_disturbed(p) && (p->disturbance.loses_answers || p->disturbance.loses_requests));
}

// Returns false if there was nothing to report.
static bool tell_changes(struct etcd *etcd)
{
    struct watch *watch = &etcd->watch;
    if (!watch->prefix || world.now_ns < watch->due_ns || !hears(etcd->owner) ||
        !store_has_changes(watch->prefix, watch->next_revision))
        return false;
    struct store_answer answer =
        store_changes(watch->prefix, watch->next_revision, draw(4) ? 1000 : 1);
    const struct watch told = *watch;
    watch->due_ns = world.now_ns + delay_ns(etcd->owner);
    if (answer.rc < 0) {
        free(watch->prefix);
        *watch = (struct watch){0};
    } else {
        watch->next_revision = answer.answer.revision + 1;
    }
    told.changed(told.opaque, answer.rc, answer.rc < 0 ? NULL : &answer.answer);
    store_answer_clear(&answer);
    return true;
}

// --- the client's side

static int64_t ends_ns(const struct request *request)
{
    return earlier(request->answered_ns, request->deadline_ns);
}

static struct request **first_to_end(struct etcd *etcd)
{
    struct request **first = NULL;
    for (struct request **r = &etcd->requests; *r; r = &(*r)->next)
        if (!first || ends_ns(*r) < ends_ns(*first))
            first = r;
    return first;
}

static void end(struct etcd *etcd, struct request *request)
{
    // A process that slept past the deadline may or may not take the late answer.
    const bool late =
        request->answered_ns > world.now_ns || (world.now_ns >= request->deadline_ns && draw(2));
    const int rc = late ? -ETIMEDOUT : request->answer.rc;
    request->answer.answer.sent_ns = request->sent_boot_ns;
    snprintf(etcd->error, sizeof etcd->error, "%s", rc < 0 ? strerror(-rc) : "");
    request->done(request->opaque, rc, rc < 0 ? NULL : &request->answer.answer);
    free_request(request);
}

static void deliver(struct etcd *etcd)
{
    struct request **first;
    while ((first = first_to_end(etcd)) && ends_ns(*first) <= world.now_ns) {
        struct request *request = *first;
        *first = request->next;
        end(etcd, request);
    }
    while (tell_changes(etcd))
        ;
}

// A watch is due as soon as the store has changes for it.
int64_t etcd_next_ns(const struct etcd *etcd)
{
    int64_t next = etcd->woken ? world.now_ns : NS_NEVER;
    for (const struct request *r = etcd->requests; r; r = r->next)
        next = earlier(next, ends_ns(r));
    const struct watch *watch = &etcd->watch;
    if (watch->prefix && hears(etcd->owner) &&
        store_has_changes(watch->prefix, watch->next_revision))
        next = earlier(next, watch->due_ns);
    return next;
}

void etcd_run(struct etcd *etcd, int64_t until_ns)
{
    struct process *p = etcd->owner;
    p->steps++;
    while (!p->killed) {
        deliver(etcd);
        if (etcd->woken || boottime_ns() >= until_ns)
            break;
        link_wait(p, until_ns - p->boot_ns);
    }
    etcd->woken = false;
}
