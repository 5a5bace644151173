#include "daemon/cluster/announcement.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"

static const int64_t LOAD_NS = 10 * INT64_C(1000000000); // between reports of the load alone

// --- facts

int facts_copy(struct member_facts *ret, const struct member_facts *facts)
{
    *ret = *facts;
    ret->running = calloc((size_t)facts->n_running + 1, sizeof *ret->running);
    ret->refused = calloc((size_t)facts->n_refused + 1, sizeof *ret->refused);
    if (!ret->running || !ret->refused) {
        facts_clear(ret);
        return -ENOMEM;
    }
    if (facts->n_running > 0)
        memcpy(ret->running, facts->running, sizeof *ret->running * (size_t)facts->n_running);
    if (facts->n_refused > 0)
        memcpy(ret->refused, facts->refused, sizeof *ret->refused * (size_t)facts->n_refused);
    return 0;
}

void facts_clear(struct member_facts *facts)
{
    free(facts->running);
    free(facts->refused);
    *facts = (struct member_facts){0};
}

bool facts_differ(const struct member_facts *a, const struct member_facts *b)
{
    bool same =
        a->obeys == b->obeys && a->n_running == b->n_running && a->n_refused == b->n_refused;
    for (int i = 0; same && i < a->n_running; i++)
        same = strcmp(a->running[i].camera, b->running[i].camera) == 0 &&
               a->running[i].generation == b->running[i].generation;
    for (int i = 0; same && i < a->n_refused; i++)
        same = strcmp(a->refused[i].camera, b->refused[i].camera) == 0 &&
               a->refused[i].revision == b->refused[i].revision &&
               a->refused[i].runs == b->refused[i].runs;
    return !same;
}

// --- the own key

// Lists cameras whose current text was refused and which do not run by the previous one. Returns
// their number. `to` NULL: only counts.
static int64_t list_refused(const struct site *site, const struct member_facts *facts,
                            char (*to)[PLAN_NAME_SIZE])
{
    int64_t n = 0;
    for (int i = 0; i < facts->n_refused; i++) {
        const struct refused_camera *refused = &facts->refused[i];
        const struct site_key *camera = site_camera_key(site, refused->camera);
        if (refused->runs || !camera || camera->revision != refused->revision)
            continue;
        if (to)
            memcpy(to[n], refused->camera, sizeof *to);
        n++;
    }
    return n;
}

static char *print(struct announcement *own, const struct member_facts *facts, int64_t obeys)
{
    struct node_document document = {
        .incarnation = own->lease,
        .since_ms = own->joined_ms,
        .obeys = obeys,
        .room = facts->room,
        .taken = facts->taken,
        .counts = facts->counts,
        .labels = *own->labels,
        .running = facts->running,
        .n_running = facts->n_running,
        .refused = calloc((size_t)facts->n_refused + 1, sizeof *document.refused),
    };
    if (!document.refused)
        return NULL;
    document.n_refused = own->n_refused = list_refused(own->site, facts, document.refused);
    snprintf(document.http, sizeof document.http, "%s", own->http);
    snprintf(document.version, sizeof document.version, "%s", own->version);
    char *json = node_document_print(&document);
    free(document.refused);
    return json;
}

static int put(struct announcement *own, const char *json, struct etcd_compare compare,
               etcd_done *done, void *opaque)
{
    char key[256];
    snprintf(key, sizeof key, "%snode/%s", own->mirror->prefix, own->node);
    compare.key = key;
    const struct etcd_write write = {.key = key, .value = json, .lease = own->lease};
    own->written_ns = boottime_ns();
    return json ? etcd_commit(own->etcd, &compare, 1, &write, 1, own->timeout_ns, done, opaque)
                : -ENOMEM;
}

// Returns the condition that the name is free, or that the key of the lease `before` is unchanged.
static struct etcd_compare is_own_name(const struct announcement *own, int64_t before)
{
    char key[sizeof "node/" + PLAN_NAME_SIZE];
    snprintf(key, sizeof key, "node/%s", own->node);
    const struct mirror_entry *entry = mirror_find(own->mirror, key);
    const struct node_document *document = site_document(own->site, own->node);
    if (before && entry && document && document->incarnation == before)
        return (struct etcd_compare){.kind = ETCD_MOD_REVISION, .value = entry->mod_revision};
    return (struct etcd_compare){.kind = ETCD_VERSION};
}

int announcement_join(struct announcement *own, int64_t lease, int64_t before,
                      const struct member_facts *facts, etcd_done *done, void *opaque)
{
    const struct plan *plan = own->site->plan;
    // A node that runs nothing obeys every plan.
    const int64_t obeys = facts->n_running == 0 && plan ? plan->version : facts->obeys;
    own->lease = lease;
    own->joined_ms = realtime_ns() / 1000000;
    own->stale = false;
    char *json = print(own, facts, obeys);
    const int rc = put(own, json, is_own_name(own, before), done, opaque);
    free(json);
    return rc;
}

static void written(void *opaque, int rc, const struct etcd_answer *answer)
{
    struct announcement_write *write = opaque;
    struct announcement *own = write->own;
    write->under_way = false;
    if (write->lease != own->lease) // of an earlier membership
        return;
    own->stale |= rc < 0; // the next step tries again
    if (rc == 0 && own->stale)
        etcd_wake(own->etcd);
    if (rc == 0 && !answer->succeeded)
        own->gone(own->opaque);
}

// Returns NULL if a write is under way, or too many of earlier memberships are.
static struct announcement_write *next_write(struct announcement *own)
{
    struct announcement_write *next = NULL;
    for (int i = 0; i < ANNOUNCEMENT_WRITES; i++) {
        struct announcement_write *write = &own->writes[i];
        if (write->under_way && write->lease == own->lease)
            return NULL;
        if (!write->under_way)
            next = write;
    }
    return next;
}

void announcement_refresh(struct announcement *own, const struct member_facts *facts, bool urgent)
{
    struct announcement_write *write = next_write(own);
    // Stale until it is written: a write under way has older facts. A refused text may have been
    // replaced by now.
    own->stale |= urgent || list_refused(own->site, facts, NULL) != own->n_refused;
    if (!write || (!own->stale && boottime_ns() - own->written_ns < LOAD_NS))
        return;
    char *json = print(own, facts, facts->obeys);
    *write = (struct announcement_write){.own = own, .lease = own->lease};
    write->under_way =
        put(own, json, (struct etcd_compare){.kind = ETCD_VERSION_ABOVE}, written, write) == 0;
    own->stale &= !write->under_way;
    free(json);
}

// --- cameras that it cannot run

static void ignore(void *opaque, int rc, const struct etcd_answer *answer)
{
    (void)opaque, (void)rc, (void)answer; // a missing reason is written with the next change
}

static bool is_own(const struct announcement *own, const struct mirror_entry *entry)
{
    struct trouble_document document;
    return trouble_document_parse(&document, entry->value, entry->length) == 0 &&
           strcmp(document.node, own->node) == 0;
}

// Returns true if another living node has written a reason, and will remove it: only one of several
// nodes that cannot run a camera is named.
static bool is_said(const struct announcement *own, const char *camera)
{
    char key[sizeof "trouble/" + PLAN_NAME_SIZE];
    struct trouble_document document;
    snprintf(key, sizeof key, "trouble/%s", camera);
    const struct mirror_entry *entry = mirror_find(own->mirror, key);
    if (!entry || trouble_document_parse(&document, entry->value, entry->length) < 0)
        return false;
    return strcmp(document.node, own->node) != 0 && site_node(own->site, document.node);
}

// Writes a camera's trouble; `why` NULL: removes it.
static void write_trouble(struct announcement *own, const char *camera, const char *why)
{
    char key[256];
    struct trouble_document document = {0};
    snprintf(key, sizeof key, "%strouble/%s", own->mirror->prefix, camera);
    snprintf(document.node, sizeof document.node, "%s", own->node);
    snprintf(document.why, sizeof document.why, "%s", why ? why : "");
    char *json = why ? trouble_document_print(&document) : NULL;
    const struct mirror_entry *before = mirror_find(own->mirror, key + strlen(own->mirror->prefix));
    const bool same = json ? before && strcmp(before->value, json) == 0 : !before;
    const struct etcd_write write = {.key = key, .value = json};
    if (!same)
        etcd_commit(own->etcd, NULL, 0, &write, 1, own->timeout_ns, ignore, NULL);
    free(json);
}

static bool is_refused(const struct member_facts *facts, const char *camera)
{
    for (int i = 0; i < facts->n_refused; i++)
        if (strcmp(facts->refused[i].camera, camera) == 0)
            return true;
    return false;
}

void announcement_troubles(struct announcement *own, const struct member_facts *facts)
{
    int n;
    const struct mirror_entry *entries = mirror_folder(own->mirror, "trouble/", &n);
    for (int i = 0; i < facts->n_refused; i++)
        if (site_camera_key(own->site, facts->refused[i].camera) &&
            !is_said(own, facts->refused[i].camera))
            write_trouble(own, facts->refused[i].camera, facts->refused[i].why);
    for (int i = 0; i < n; i++) {
        const char *camera = entries[i].key + strlen("trouble/");
        const bool gone = !site_camera_key(own->site, camera);
        if (gone || (!is_refused(facts, camera) && is_own(own, &entries[i])))
            write_trouble(own, camera, NULL);
    }
}
