// One request to one endpoint: sends JSON by HTTP POST and collects the answer, up to a limit.
// Follows no redirect, uses no proxy.
#ifndef FRAMED_DAEMON_CLUSTER_ETCD_CALL_H
#define FRAMED_DAEMON_CLUSTER_ETCD_CALL_H

#include "daemon/cluster/etcd_json.h"

struct etcd_call_options {
    const char *endpoint, *body; // the body outlives the call
    const char *token;           // NULL: none
    const char *ca, *cert, *key; // NULL: none
    enum etcd_method method;
    void *owner;
};

struct etcd_call {
    enum etcd_method method;
    void *owner;
    int64_t sent_ns; // CLOCK_BOOTTIME, before anything was sent
    bool ended;      // nothing more comes
    char *text;      // received; usable at the end, or in a watch with status 200
    size_t length, room, head_length;
    char *token; // sent with it; NULL: none
    int result;  // CURLcode, once it has ended
    void *multi, *easy, *headers;
    char why[256];
};

int etcd_call_open(struct etcd_call **ret, void *multi, const struct etcd_call_options *);
void etcd_call_close(struct etcd_call *); // accepts NULL
// Returns the next call that has ended, or NULL.
struct etcd_call *etcd_call_next(void *multi);
bool etcd_call_is_sent(const struct etcd_call *);      // its endpoint may have received some of it
bool etcd_call_is_resolving(const struct etcd_call *); // its address is not known yet
long etcd_call_status(const struct etcd_call *);       // of HTTP; 0: not yet
// Reads the answer of a call that has ended, as etcd_reply_read, or returns why there is none:
// -ECONNREFUSED: the endpoint cannot be reached; -EACCES, -EIO, -EPROTO. Sets `certain` if the
// error is from etcd itself.
int etcd_call_read(const struct etcd_call *, struct etcd_reply *, const char *prefix,
                   bool *certain);

#endif
