// Common part of listening sinks: the clients, each at its own pace and a consumer of the pool if
// the sink has one, and the listener, all in one epoll set that the loop watches as one descriptor.
// Loop thread only.
#ifndef FRAMED_DAEMON_OUTPUT_SERVER_H
#define FRAMED_DAEMON_OUTPUT_SERVER_H

#include "daemon/base/access.h"
#include "daemon/output/protocol.h"
#include "daemon/output/sink.h"

enum { SERVER_NAME_MAX = 63 };

// The first member of every client.
struct server_client {
    struct consumer consumer;
    struct stream_position position;
    int fd; // non-blocking, owned by the client
    char name[SERVER_NAME_MAX + 1];
    bool blocked; // it must read before it gets more
};

struct server;

struct server_driver {
    size_t client_size;
    // Called for a new client, attached to the pool if there is one. NULL: nothing to do.
    void (*enter)(struct server *, struct server_client *);
    // Sends all ready data that the kernel takes. Returns 0; -EAGAIN: blocked; -EINPROGRESS: there
    // is more, after the turn of others; another negative errno: drop the client.
    int (*send)(struct server *, struct server_client *);
    // Reads data from the client. Returns 0; -EAGAIN: there is more, after the turn of others;
    // another negative errno: drop the client.
    int (*receive)(struct server *, struct server_client *);
    // Frees the driver's part of a leaving client, which is still attached to the pool.
    void (*leave)(struct server *, struct server_client *);
    // Closes the sink's own resources, handles with server_handle_closed. NULL: there are none.
    void (*close)(struct server *);
};

// The first member of every listening sink.
struct server {
    struct sink sink;
    const struct server_driver *driver;
    struct listener listener;
    int epoll; // listener and clients; the loop watches it as one descriptor
    uv_poll_t poll;
    uv_timer_t timer; // while listening: a pause in accepting; then: the end of the grace
    int handles;      // open ones: the two above and the sink's own
    bool finishing;
    int n_clients;
    struct server_client **clients; // as many as the key `clients` allows
};

// Opens a server of `size` bytes, zeroed after struct server. Returns 0 or a negative errno, with
// one sentence in `why`.
int server_open(struct server **ret, size_t size, const struct server_driver *,
                const struct sink_driver *, const struct sink_context *, char *why,
                size_t why_size);
void server_handle_closed(uv_handle_t *); // its data is the server
// For drivers whose clients send nothing useful: reads and discards it.
int server_discard_received(struct server *, struct server_client *);

// Returns true if the slowest client sets the pace (`overflow: wait`).
bool server_waits(const struct server *);
// Sends a client its ready data. Afterwards the client may be gone and another one in its place.
void server_send(struct server *, struct server_client *);
// Closes everything if the server is finishing and no client is busy. Call after each turn.
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
