// Entries and answers of etcd, and parts of requests.
#ifndef FRAMED_DAEMON_CLUSTER_ETCD_TYPES_H
#define FRAMED_DAEMON_CLUSTER_ETCD_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Keys and values are bytes; keys have no zero byte here. A callback's data is valid during it.
struct etcd_entry {
    const char *key, *value;
    size_t length;        // of the value, without the zero byte after it
    int64_t mod_revision; // of the store, at the key's last write or its deletion
    int64_t version;      // 1: first written; 0: it was deleted
    int64_t lease;        // the key is deleted with it; 0: none
};

struct etcd_answer {
    int64_t revision; // of the store at the answer
    const struct etcd_entry *entries;
    int n;
    int64_t total;   // etcd_get, etcd_get_changes: keys below the prefix
    bool succeeded;  // etcd_commit: the comparisons held
    int64_t lease;   // etcd_grant, etcd_keepalive
    int64_t ttl;     // seconds; etcd_keepalive, 0: the lease is gone
    int64_t sent_ns; // CLOCK_BOOTTIME at which the answered request was sent
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
