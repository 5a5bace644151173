// What etcd holds and answers, and what is asked of it.
#ifndef FRAMED_DAEMON_CLUSTER_ETCD_TYPES_H
#define FRAMED_DAEMON_CLUSTER_ETCD_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Keys and values are bytes; keys have no zero byte here. What a callback gets is valid during it.
struct etcd_entry {
    const char *key, *value;
    size_t length;        // of the value, behind which a zero byte stands
    int64_t mod_revision; // of the store, when the key was last written; of a deletion likewise
    int64_t version;      // 1: first written; 0: it was deleted
    int64_t lease;        // that it ends with; 0: none
};

struct etcd_answer {
    int64_t revision; // of the store when it answered
    const struct etcd_entry *entries;
    int n;
    int64_t total;   // keys below the prefix, of etcd_get and etcd_get_changes
    bool succeeded;  // of a transaction: its comparisons held
    int64_t lease;   // of etcd_grant
    int64_t ttl;     // seconds; of etcd_keepalive 0: the lease is gone
    int64_t sent_ns; // CLOCK_BOOTTIME: when the request that was answered was sent
};

enum etcd_compare_kind { ETCD_VERSION, ETCD_VERSION_ABOVE, ETCD_MOD_REVISION };
struct etcd_compare {
    enum etcd_compare_kind kind; // version ==, version >, mod_revision ==
    const char *key;
    int64_t value;
};
struct etcd_write {
    const char *key;
    const char *value; // NULL: the key is deleted
    int64_t lease;     // 0: none
};

#endif
