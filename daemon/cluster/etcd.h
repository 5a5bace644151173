// Client of etcd by its JSON gateway (/v3/...): libcurl's multi interface. One thread at a time
// uses a client; nothing here has a thread of its own. Requests run side by side, each with a
// deadline; a request whose endpoint fails or answers with nonsense goes to the next endpoint
// while its deadline allows, and later requests begin at an endpoint that answers.
#ifndef FRAMED_DAEMON_CLUSTER_ETCD_H
#define FRAMED_DAEMON_CLUSTER_ETCD_H

#include "daemon/cluster/etcd_types.h"

struct etcd;

struct etcd_options {
    const char *const *endpoints; // "http://10.0.0.1:2379", https likewise; copied
    int n_endpoints;
    const char *user, *password; // NULL: none. A token is fetched with them, and again when it ends
    const char *ca, *cert, *key; // files of TLS; NULL: the system's authorities, no certificate
};

// `rc` 0, and an answer; or negative errno and NULL: -ETIMEDOUT: no endpoint answered by the
// deadline; -EACCES (user, password or certificate), -ENOSPC (etcd's disk quota), -ENOENT (of a
// commit: a lease is gone); -ECONNREFUSED (cannot be reached), -EPROTO, -EIO: what the last of all
// endpoints said, which may be long before the deadline. Runs within etcd_run.
typedef void etcd_done(void *opaque, int rc, const struct etcd_answer *);
// Of a watch, once per batch of changes in the order of their revisions. Negative `rc`, once: the
// watch has ended, -EOVERFLOW because etcd has compacted the revision.
typedef void etcd_changed(void *opaque, int rc, const struct etcd_answer *);

int etcd_open(struct etcd **ret, const struct etcd_options *); // 0 or -ENOMEM
// Ends requests and watches without their callbacks, from none of which it is called. Accepts NULL.
void etcd_close(struct etcd *);

// Each queues a request, 0 or -ENOMEM; `done` comes later, once, but not after etcd_close.
// `timeout_ns` from now. A keepalive's `sent_ns` is before anything of it was sent.
int etcd_get(struct etcd *, const char *prefix, int64_t timeout_ns, etcd_done *, void *opaque);
// The keys, without values, that were written at the revision `since` or later.
int etcd_get_changes(struct etcd *, const char *prefix, int64_t since, int64_t timeout_ns,
                     etcd_done *, void *opaque);
int etcd_grant(struct etcd *, int64_t ttl_s, int64_t timeout_ns, etcd_done *, void *opaque);
int etcd_keepalive(struct etcd *, int64_t lease, int64_t timeout_ns, etcd_done *, void *opaque);
int etcd_revoke(struct etcd *, int64_t lease, int64_t timeout_ns, etcd_done *, void *opaque);
// All writes, or none unless all comparisons hold. A request whose answer was lost is not sent
// again: -ETIMEDOUT, -EPROTO and -EIO say nothing about whether it was done.
int etcd_commit(struct etcd *, const struct etcd_compare[], int n_compares,
                const struct etcd_write[], int n_writes, int64_t timeout_ns, etcd_done *,
                void *opaque);
// Changes below `prefix` from `revision` on; 0: from now on. At most one watch a client: a second
// replaces it, at another endpoint where there is one.
int etcd_watch(struct etcd *, const char *prefix, int64_t revision, etcd_changed *, void *opaque);
void etcd_unwatch(struct etcd *); // without its callback

// Drives requests until `until_ns` (CLOCK_BOOTTIME), or until etcd_wake. Once at least.
void etcd_run(struct etcd *, int64_t until_ns);
void etcd_wake(struct etcd *); // any thread
// Of the last failure, for people: "https://10.0.0.1:2379: connection refused"; "": none since an
// endpoint answered. No password.
const char *etcd_error(const struct etcd *);

#endif
