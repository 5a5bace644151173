// JSON of etcd's gateway: prints requests and reads answers. Values that are read have bounds and
// types, whatever the answer holds. Numbers are texts there, keys and values base64.
#ifndef FRAMED_DAEMON_CLUSTER_ETCD_JSON_H
#define FRAMED_DAEMON_CLUSTER_ETCD_JSON_H

#include "daemon/cluster/etcd_types.h"

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
