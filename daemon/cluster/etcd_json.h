// JSON of etcd's gateway: prints requests and reads answers. Values that are read have bounds and
// types, whatever the answer holds. Numbers are texts there, keys and values base64.
#ifndef FRAMED_DAEMON_CLUSTER_ETCD_JSON_H
#define FRAMED_DAEMON_CLUSTER_ETCD_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// --- entries and answers of etcd, and parts of requests
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

// --- JSON
enum etcd_method {
    ETCD_RANGE,
    ETCD_GRANT,
    ETCD_KEEPALIVE,
    ETCD_REVOKE,
    ETCD_TXN,
    ETCD_AUTHENTICATE,
    ETCD_WATCH,
};
enum { ETCD_WHY_MAX = 160 };

// An answer; its entries, keys and values are stored in `entries` and `bytes`.
struct etcd_reply {
    struct etcd_answer answer;
    char *token;            // ETCD_AUTHENTICATE; NULL: etcd's authentication is off
    bool created;           // ETCD_WATCH: confirms the watch
    char why[ETCD_WHY_MAX]; // with a negative result
    struct etcd_entry *entries;
    char *bytes;
};

// Bodies of requests, to be freed; NULL: no memory.
char *etcd_print_range(const char *prefix);
char *etcd_print_changes(const char *prefix, int64_t since); // keys alone
char *etcd_print_grant(int64_t ttl_s);
char *etcd_print_lease(int64_t lease); // ETCD_KEEPALIVE and ETCD_REVOKE
char *etcd_print_txn(const struct etcd_compare[], int n_compares, const struct etcd_write[],
                     int n_writes);
char *etcd_print_login(const char *user, const char *password);
char *etcd_print_watch(const char *prefix, int64_t revision);

// Reads an answer, or a line of a watch. `prefix`: of all keys; NULL: any. Returns 0; or etcd's
// error: -EKEYEXPIRED: the token is not valid any more; -EACCES; -ENOENT: the lease is gone;
// -ENOSPC; -EOVERFLOW: the revision was compacted; -EIO: another error; -EPROTO: it makes no sense;
// or -ENOMEM. *ret is for etcd_reply_free in any case.
int etcd_reply_read(struct etcd_reply *ret, enum etcd_method, const char *prefix, const char *text,
                    size_t length);
void etcd_reply_free(struct etcd_reply *);

#endif
