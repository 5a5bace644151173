#include "tests/cluster/simulation/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct store store;

static const int64_t SECOND_NS = INT64_C(1000000000);

static char *copy(const char *text)
{
    return text ? strdup(text) : NULL;
}

// --- keys

static int place_of(const char *key)
{
    int i = 0;
    while (i < store.now.n_keys && strcmp(store.now.keys[i].key, key) < 0)
        i++;
    return i;
}

const struct store_key *store_find(const char *key)
{
    const int i = place_of(key);
    const bool known = i < store.now.n_keys && strcmp(store.now.keys[i].key, key) == 0;
    return known ? &store.now.keys[i] : NULL;
}

static void note_change(const struct store_key *key)
{
    if (store.n_changes == store.room) {
        store.room = 2 * store.room + 64;
        store.changes = realloc(store.changes, sizeof *store.changes * (size_t)store.room);
    }
    struct store_key *change = &store.changes[store.n_changes++];
    *change = *key;
    change->value = copy(key->value);
}

static void put(const char *key, const char *value, int64_t lease)
{
    struct store_state *now = &store.now;
    const int i = place_of(key);
    struct store_key *at = &now->keys[i];
    if (!store_find(key)) {
        if (now->n_keys == STORE_KEYS_MAX)
            abort();
        memmove(at + 1, at, sizeof *at * (size_t)(now->n_keys++ - i));
        *at = (struct store_key){0};
        snprintf(at->key, sizeof at->key, "%s", key);
    }
    free(at->value);
    at->value = copy(value);
    at->mod_revision = now->revision;
    at->version++;
    at->lease = lease;
    note_change(at);
}

static void delete (const char *key)
{
    struct store_state *now = &store.now;
    const int i = place_of(key);
    struct store_key change = {.mod_revision = now->revision};
    if (!store_find(key))
        return;
    snprintf(change.key, sizeof change.key, "%s", key);
    free(now->keys[i].value);
    memmove(&now->keys[i], &now->keys[i + 1], sizeof now->keys[i] * (size_t)(--now->n_keys - i));
    note_change(&change);
}

void store_put(const char *key, const char *value)
{
    store.now.revision++;
    if (value)
        put(key, value, 0);
    else
        delete (key);
    store.by_hand = true;
    store.changed();
    store.by_hand = false;
}

// --- leases

static struct store_lease *find_lease(int64_t lease)
{
    for (int i = 0; i < store.now.n_leases; i++)
        if (store.now.leases[i].id == lease)
            return &store.now.leases[i];
    return NULL;
}

static void end_lease(struct store_lease *lease)
{
    const int64_t id = lease->id;
    *lease = store.now.leases[--store.now.n_leases];
    for (bool first = true, again = true; again;) {
        again = false;
        for (int i = 0; i < store.now.n_keys && !again; i++)
            if (store.now.keys[i].lease == id) {
                char key[STORE_KEY_SIZE];
                strcpy(key, store.now.keys[i].key);
                store.now.revision += first;
                first = false;
                delete (key);
                again = true;
            }
    }
    store.changed();
}

void store_expire(int64_t now_ns)
{
    for (int i = 0; i < store.now.n_leases;)
        if (now_ns >= store.now.leases[i].until_ns)
            end_lease(&store.now.leases[i]);
        else
            i++;
}

int64_t store_expires_ns(void)
{
    int64_t next = INT64_MAX;
    for (int i = 0; i < store.now.n_leases; i++)
        if (store.now.leases[i].until_ns < next)
            next = store.now.leases[i].until_ns;
    return next;
}

void store_prolong(int64_t now_ns)
{
    for (int i = 0; i < store.now.n_leases; i++)
        store.now.leases[i].until_ns = now_ns + store.now.leases[i].ttl_ns;
}

void store_lose_leases(void)
{
    while (store.now.n_leases > 0)
        end_lease(&store.now.leases[0]);
}

// --- requests

static bool holds(const struct etcd_compare *compare)
{
    const struct store_key *key = store_find(compare->key);
    switch (compare->kind) {
    case ETCD_VERSION:
        return (key ? key->version : 0) == compare->value;
    case ETCD_VERSION_ABOVE:
        return (key ? key->version : 0) > compare->value;
    default:
        return (key ? key->mod_revision : 0) == compare->value;
    }
}

static int commit(const struct store_request *request, struct etcd_answer *answer)
{
    bool puts = false;
    answer->succeeded = true;
    for (int i = 0; i < request->n_compares; i++)
        answer->succeeded &= holds(&request->compares[i]);
    for (int i = 0; i < request->n_writes; i++)
        puts |= request->writes[i].value != NULL;
    if (store.full && puts)
        return -ENOSPC;
    if (!answer->succeeded)
        return 0;
    for (int i = 0; i < request->n_writes; i++)
        if (request->writes[i].lease && !find_lease(request->writes[i].lease))
            return -ENOENT;
    store.now.revision++;
    for (int i = 0; i < request->n_writes; i++) {
        const struct etcd_write *write = &request->writes[i];
        if (write->value)
            put(write->key, write->value, write->lease);
        else
            delete (write->key);
    }
    store.changed();
    return 0;
}

static void add_entry(struct store_answer *ret, const struct store_key *key)
{
    ret->entries = realloc(ret->entries, sizeof *ret->entries * (size_t)(ret->answer.n + 1));
    ret->entries[ret->answer.n++] = (struct etcd_entry){
        .key = copy(key->key),
        .value = copy(key->value ? key->value : ""),
        .length = key->value ? strlen(key->value) : 0,
        .mod_revision = key->mod_revision,
        .version = key->version,
        .lease = key->lease,
    };
    ret->answer.entries = ret->entries;
}

static bool is_below(const char *key, const char *prefix)
{
    return strncmp(key, prefix, strlen(prefix)) == 0;
}

static int grant(const struct store_request *request, int64_t now_ns, struct etcd_answer *answer)
{
    if (store.full)
        return -ENOSPC;
    if (store.now.n_leases == STORE_LEASES_MAX)
        abort();
    const int64_t ttl_ns = request->ttl_s * SECOND_NS;
    answer->lease = ++store.last_lease;
    answer->ttl = request->ttl_s;
    store.now.leases[store.now.n_leases++] =
        (struct store_lease){.id = answer->lease, .ttl_ns = ttl_ns, .until_ns = now_ns + ttl_ns};
    return 0;
}

struct store_answer store_do(const struct store_request *request, int64_t now_ns)
{
    struct store_answer ret = {0};
    struct store_lease *lease = find_lease(request->lease);
    ret.answer.lease = request->lease;
    switch (request->method) {
    case STORE_GET:
        for (int i = 0; i < store.now.n_keys; i++) {
            const struct store_key *key = &store.now.keys[i];
            if (!is_below(key->key, request->prefix))
                continue;
            ret.answer.total++;
            if (key->mod_revision >= request->since)
                add_entry(&ret, key);
        }
        break;
    case STORE_GRANT:
        ret.rc = grant(request, now_ns, &ret.answer);
        break;
    case STORE_KEEPALIVE:
        if (lease)
            lease->until_ns = now_ns + lease->ttl_ns;
        ret.answer.ttl = lease ? lease->ttl_ns / SECOND_NS : 0;
        break;
    case STORE_REVOKE:
        if (lease)
            end_lease(lease);
        break;
    default:
        ret.rc = commit(request, &ret.answer);
    }
    ret.answer.revision = store.now.revision;
    return ret;
}

void store_answer_clear(struct store_answer *answer)
{
    for (int i = 0; answer->entries && i < answer->answer.n; i++) {
        free((char *)answer->entries[i].key);
        free((char *)answer->entries[i].value);
    }
    free(answer->entries);
    *answer = (struct store_answer){0};
}

void store_request_clear(struct store_request *request)
{
    free(request->prefix);
    for (int i = 0; i < request->n_compares; i++)
        free((char *)request->compares[i].key);
    for (int i = 0; i < request->n_writes; i++) {
        free((char *)request->writes[i].key);
        free((char *)request->writes[i].value);
    }
    *request = (struct store_request){0};
}

// --- watches

bool store_has_changes(const char *prefix, int64_t from)
{
    if (from <= store.compacted)
        return true; // to report the compaction
    for (int i = store.n_changes - 1; i >= 0 && store.changes[i].mod_revision >= from; i--)
        if (is_below(store.changes[i].key, prefix))
            return true;
    return false;
}

struct store_answer store_changes(const char *prefix, int64_t from, int revisions)
{
    struct store_answer ret = {.rc = from <= store.compacted ? -EOVERFLOW : 0};
    int64_t last = 0;
    for (int i = 0; ret.rc == 0 && i < store.n_changes; i++) {
        const struct store_key *change = &store.changes[i];
        if (change->mod_revision < from || !is_below(change->key, prefix))
            continue;
        if (change->mod_revision != last && revisions-- == 0) {
            ret.answer.revision = last;
            return ret;
        }
        last = change->mod_revision;
        add_entry(&ret, change);
    }
    ret.answer.revision = store.now.revision;
    return ret;
}

static void forget_changes(int64_t up_to)
{
    int n = 0;
    for (int i = 0; i < store.n_changes; i++)
        if (store.changes[i].mod_revision <= up_to)
            free(store.changes[i].value);
        else
            store.changes[n++] = store.changes[i];
    store.n_changes = n;
}

void store_compact(void)
{
    forget_changes(store.now.revision);
    store.compacted = store.now.revision;
}

// --- backups, and its life

void store_free_state(struct store_state *state)
{
    for (int i = 0; i < state->n_keys; i++)
        free(state->keys[i].value);
    state->n_keys = 0;
}

static void copy_state(struct store_state *to, const struct store_state *from)
{
    *to = *from;
    for (int i = 0; i < to->n_keys; i++)
        to->keys[i].value = copy(to->keys[i].value);
}

void store_save(struct store_state *to)
{
    store_free_state(to);
    copy_state(to, &store.now);
}

void store_restore(const struct store_state *from, int64_t now_ns)
{
    store_free_state(&store.now);
    copy_state(&store.now, from);
    forget_changes(INT64_MAX);
    store.compacted = store.now.revision;
    store_prolong(now_ns);
    store.by_hand = true;
    store.changed();
    store.by_hand = false;
}

void store_open(int64_t first_lease)
{
    store = (struct store){.last_lease = first_lease, .changed = store.changed};
    store.now.revision = 1;
}

void store_close(void)
{
    store_free_state(&store.now);
    forget_changes(INT64_MAX);
    free(store.changes);
    store.changes = NULL;
}
