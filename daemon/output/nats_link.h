// The connections to NATS servers: one for each list of servers that outputs name, each with a
// thread of its own, which publishes what all outputs with that list give it
// (output/nats_sending.h) and connects again for ever, with growing pauses; one to a server that is
// silent within the TLS handshake hangs until the server closes the connection. The lines of an
// output that has no connection wait in its own queue (output/line_queue.h). Loop thread only, but
// for the thread.
#ifndef FRAMED_DAEMON_OUTPUT_NATS_LINK_H
#define FRAMED_DAEMON_OUTPUT_NATS_LINK_H

#include "daemon/base/event_queue.h"
#include "daemon/output/nats_sending.h"

struct nats_links;
struct nats_link;

// One output's part in a connection. The caller's.
struct nats_feed {
    struct nats_link *link;
    struct nats_feed *next;   // the link's list
    uint64_t number;          // no other feed of this process has it
    struct nats_lines *lines; // that are on their way, or NULL
    // The connection is there, or not any more, with the reason; "": nothing went wrong.
    void (*changed)(struct nats_feed *, const char *why);
    // What nats_feed_give got comes back, to be freed: its lines from the first that is not settled
    // on have not reached anybody as far as is known. Follows nats_feed_give, unless the feed is
    // closed before.
    void (*returned)(struct nats_feed *, struct nats_lines *);
};

// 0 or -ENOMEM. The keys of `nats` are copied.
int nats_links_open(struct nats_links **ret, struct event_queue *, const struct config *);
// Of a reload: copies what it changes; 0 or -ENOMEM. nats_links_commit then takes the copy over.
int nats_links_prepare(struct nats_links *, const struct config *);
void nats_links_commit(struct nats_links *);
// With no feed open: no event is posted any more. Accepts NULL.
void nats_links_stop(struct nats_links *);
// After that: waits for the threads, for a moment, and frees all but what a thread that hangs in a
// connection has. Accepts NULL.
void nats_links_close(struct nats_links *);

// With `changed` and `returned` set. 0 or negative errno.
int nats_feed_open(struct nats_feed *, struct nats_links *, const char *servers);
void nats_feed_close(struct nats_feed *); // nothing comes back any more
bool nats_feed_is_up(const struct nats_feed *);
// Lines of the feed, allocated, which has none on their way. `id` and `owner` are set by this.
void nats_feed_give(struct nats_feed *, struct nats_lines *);

#endif
