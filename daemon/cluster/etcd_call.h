// One request at one endpoint: JSON goes there by HTTP POST, and what comes back is collected, up
// to a limit. No redirect is followed, no proxy asked.
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
    int64_t sent_ns; // CLOCK_BOOTTIME; before anything was sent
    bool ended;      // nothing more comes
    char *text;      // what has come, with status 200 of a watch or at the end
    size_t length, room, head_length;
    char *token; // that it was sent with; NULL: none
    int result;  // CURLcode, once it has ended
    void *multi, *easy, *headers;
    char why[256];
};

int etcd_call_open(struct etcd_call **ret, void *multi, const struct etcd_call_options *);
void etcd_call_close(struct etcd_call *); // accepts NULL
// The next that has ended; NULL: none.
struct etcd_call *etcd_call_next(void *multi);
bool etcd_call_is_sent(const struct etcd_call *);      // its endpoint may have got some of it
bool etcd_call_is_resolving(const struct etcd_call *); // nobody knows its address yet
long etcd_call_status(const struct etcd_call *);       // of HTTP; 0: none yet
// Reads the answer of a call that has ended, as etcd_reply_read does, or why there is none:
// -ECONNREFUSED: the endpoint cannot be reached; -EACCES, -EIO, -EPROTO. True in `certain`: etcd
// itself says so.
int etcd_call_read(const struct etcd_call *, struct etcd_reply *, const char *prefix,
                   bool *certain);

#endif
