// Client of etcd's JSON gateway (/v3/...), by libcurl's multi interface. One thread at a time uses
// a client; it has no thread of its own. Requests run side by side, each with a deadline. If an
// endpoint fails or its answer is invalid, the request goes to the next endpoint while its deadline
// allows; later requests begin at an endpoint that answers.
#ifndef FRAMED_DAEMON_CLUSTER_ETCD_H
#define FRAMED_DAEMON_CLUSTER_ETCD_H

#include "daemon/cluster/etcd_json.h"

struct etcd;

struct etcd_options {
    const char *const *endpoints; // "http://10.0.0.1:2379" or https; copied
    int n_endpoints;
    const char *user, *password; // NULL: none. Fetch a token, and another when it expires
    const char *ca, *cert, *key; // TLS files; NULL: the system's authorities, no certificate
};

// Runs within etcd_run. `rc` 0 with an answer; or a negative errno and NULL: -ETIMEDOUT: no
// endpoint answered by the deadline; -EACCES (user, password or certificate), -ENOSPC (etcd's disk
// quota), -ENOENT (of a commit: a lease is gone); -ECONNREFUSED (cannot be reached), -EPROTO, -EIO:
// the error of the last endpoint, possibly long before the deadline.
typedef void etcd_done(void *opaque, int rc, const struct etcd_answer *);
// Runs once per batch of a watch's changes, in the order of their revisions. Negative `rc`, once:
// the watch has ended; -EOVERFLOW: etcd has compacted the revision.
typedef void etcd_changed(void *opaque, int rc, const struct etcd_answer *);

int etcd_open(struct etcd **ret, const struct etcd_options *); // 0 or -ENOMEM
// Ends requests and watches without their callbacks, which must not call it. Accepts NULL.
void etcd_close(struct etcd *);

// Each queues a request. Returns 0 or -ENOMEM; `done` is called once, later, but not after
// etcd_close. `timeout_ns` is from now. A keepalive's `sent_ns` is before its first byte was sent.
int etcd_get(struct etcd *, const char *prefix, int64_t timeout_ns, etcd_done *, void *opaque);
// Gets the keys, without values, that were written at the revision `since` or later.
int etcd_get_changes(struct etcd *, const char *prefix, int64_t since, int64_t timeout_ns,
                     etcd_done *, void *opaque);
int etcd_grant(struct etcd *, int64_t ttl_s, int64_t timeout_ns, etcd_done *, void *opaque);
int etcd_keepalive(struct etcd *, int64_t lease, int64_t timeout_ns, etcd_done *, void *opaque);
int etcd_revoke(struct etcd *, int64_t lease, int64_t timeout_ns, etcd_done *, void *opaque);
// Does all writes, or none unless all comparisons hold. A request whose answer was lost is not sent
// again: after -ETIMEDOUT, -EPROTO and -EIO its outcome is unknown.
int etcd_commit(struct etcd *, const struct etcd_compare[], int n_compares,
                const struct etcd_write[], int n_writes, int64_t timeout_ns, etcd_done *,
                void *opaque);
// Watches changes below `prefix` from `revision` on; 0: from now on. A client has at most one
// watch: a second one replaces it, at another endpoint if there is one.
int etcd_watch(struct etcd *, const char *prefix, int64_t revision, etcd_changed *, void *opaque);
void etcd_unwatch(struct etcd *); // without its callback

// Drives requests until `until_ns` (CLOCK_BOOTTIME) or etcd_wake, at least once.
void etcd_run(struct etcd *, int64_t until_ns);
void etcd_wake(struct etcd *); // any thread
// Returns the last failure, for people: "https://10.0.0.1:2379: connection refused"; "" if an
// endpoint has answered since. Without passwords.
const char *etcd_error(const struct etcd *);

#endif
