// etcd's contents, in memory and by a clock that the test sets: keys, leases, revisions,
// transactions, and changes for watches. One thread.
#ifndef FRAMED_TESTS_CLUSTER_SIMULATION_STORE_H
#define FRAMED_TESTS_CLUSTER_SIMULATION_STORE_H

#include "daemon/cluster/etcd_json.h"

enum { STORE_KEYS_MAX = 64, STORE_LEASES_MAX = 64, STORE_KEY_SIZE = 96 };

struct store_key {
    char key[STORE_KEY_SIZE];
    char *value; // NULL: deleted, in a change
    int64_t mod_revision, version, lease;
};

struct store_lease {
    int64_t id, ttl_ns, until_ns;
};

// Contents of a backup.
struct store_state {
    struct store_key keys[STORE_KEYS_MAX];
    struct store_lease leases[STORE_LEASES_MAX];
    int n_keys, n_leases;
    int64_t revision;
};

struct store {
    struct store_state now;
    struct store_key *changes; // later than `compacted`, by revision
    int n_changes, room;
    int64_t compacted; // revision up to which changes are forgotten
    int64_t last_lease;
    bool full;    // puts fail
    bool by_hand; // during a change that no request made
    // Called after each transaction and each expired lease.
    void (*changed)(void);
};

// The answer to one request, with its own copies.
struct store_answer {
    int rc;
    struct etcd_answer answer;
    struct etcd_entry *entries;
};

enum store_method {
    STORE_GET,
    STORE_GRANT,
    STORE_KEEPALIVE,
    STORE_REVOKE,
    STORE_COMMIT,
    STORE_METHODS
};
enum { STORE_COMPARES_MAX = 32, STORE_WRITES_MAX = 2 };

struct store_request {
    enum store_method method;
    char *prefix;
    int64_t since; // keys written at that revision or later
    int64_t lease, ttl_s;
    struct etcd_compare compares[STORE_COMPARES_MAX];
    struct etcd_write writes[STORE_WRITES_MAX];
    int n_compares, n_writes;
};

extern struct store store;

void store_open(int64_t first_lease);
void store_close(void);
void store_request_clear(struct store_request *);
void store_answer_clear(struct store_answer *);
struct store_answer store_do(const struct store_request *, int64_t now_ns);
// Returns changes below `prefix` of at most `revisions` revisions from that on, or -EOVERFLOW.
struct store_answer store_changes(const char *prefix, int64_t from, int revisions);
bool store_has_changes(const char *prefix, int64_t from);
// Expires leases, with their keys.
void store_expire(int64_t now_ns);
int64_t store_expires_ns(void);     // of the next lease; INT64_MAX: none
void store_prolong(int64_t now_ns); // all leases restart, as after a restart
void store_lose_leases(void);
void store_compact(void);
// Changes a key by hand; `value` NULL deletes it.
void store_put(const char *key, const char *value);
const struct store_key *store_find(const char *key);            // NULL: no such key
void store_save(struct store_state *to);                        // for store_free_state
void store_restore(const struct store_state *, int64_t now_ns); // copies it
void store_free_state(struct store_state *);

#endif
