// What listening sinks have in common: their clients, each at its own pace and a consumer of the
// pool where the sink has one, and the listener, all in one epoll set that the loop watches as one
// descriptor. Loop thread only.
#ifndef FRAMED_DAEMON_OUTPUT_SERVER_H
#define FRAMED_DAEMON_OUTPUT_SERVER_H

#include "daemon/base/listener.h"
#include "daemon/output/protocol.h"
#include "daemon/output/sink.h"

enum { SERVER_NAME_MAX = 63 };

// The first member of every client.
struct server_client {
    struct consumer consumer;
    struct stream_position position;
    int fd; // non-blocking, the client's own
    char name[SERVER_NAME_MAX + 1];
    bool blocked; // it has to take something before it gets more
};

struct server;

struct server_driver {
    size_t client_size;
    // A client came: it is attached to the pool, where there is one. NULL: there is nothing to do.
    void (*enter)(struct server *, struct server_client *);
    // Gives the client all that is ready and that the kernel takes. 0, -EAGAIN: blocked;
    // -EINPROGRESS: there is more, and the turn of others comes first; other negative errno: the
    // client is to be dropped.
    int (*send)(struct server *, struct server_client *);
    // Reads what the client sent. -EAGAIN: there is more, and the turn of others comes first; other
    // negative errno: the client is to be dropped.
    int (*receive)(struct server *, struct server_client *);
    // The client goes: frees what is its own. It is still attached to the pool.
    void (*leave)(struct server *, struct server_client *);
    // Closes what is the sink's own, handles with server_handle_closed. NULL: there is nothing.
    void (*close)(struct server *);
};

// The first member of every listening sink.
struct server {
    struct sink sink;
    const struct server_driver *driver;
    struct listener listener;
    int epoll; // listener and clients; the loop watches it as one descriptor
    uv_poll_t poll;
    uv_timer_t timer; // while listening: of a pause in accepting; then: the end of the grace
    int handles;      // open ones: the two above and the sink's own
    bool finishing;
    int n_clients;
    struct server_client **clients; // room for as many as the key `clients` says
};

// A server of `size` bytes, zeroed behind struct server. 0 or negative errno, with one sentence in
// `why`.
int server_open(struct server **ret, size_t size, const struct server_driver *,
                const struct sink_driver *, const struct sink_context *, char *why,
                size_t why_size);
void server_handle_closed(uv_handle_t *); // whose data is the server
// For drivers whose clients have nothing to say: reads and forgets what one sent.
int server_discard_received(struct server *, struct server_client *);

// Whether the slowest client sets the pace (`overflow: wait`).
bool server_waits(const struct server *);
// Gives a client what is ready for it. The client may be gone afterwards, with another one in its
// place.
void server_send(struct server *, struct server_client *);
// Closes everything once it finishes and no client is busy; to be called after each turn.
void server_close_when_drained(struct server *);

// For the tables of sinks.
void server_pump(struct sink *);
void server_finish(struct sink *, int grace_ms);
int server_clients(const struct sink *);
struct sink_client server_client(const struct sink *, int i);
int server_port(const struct sink *);
const struct listener *server_listener(const struct sink *);
void server_check_path(struct sink *);
void server_yield(struct sink *, struct listener *ret);

#endif
