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

// A kind of listening sink. A function that is NULL has nothing to do.
struct server_driver {
    size_t size, client_size; // of the sink, zeroed after struct server, and of each client
    // Takes what the sink needs besides its socket. Returns 0 or a negative errno, with one
    // sentence in `why`. `release` gives it back: if the sink does not open, when it stops
    // listening, and at its end.
    int (*prepare)(const struct sink_context *, char *why, size_t size);
    void (*release)(const struct sink_context *);
    // Opens the sink's own handles, in server.handles; `close` closes them with
    // server_handle_closed.
    void (*begin)(struct server *);
    void (*close)(struct server *);
    void (*pump)(struct server *);  // called before ready data is sent
    void (*check)(struct server *); // called about once a second
    // Called for a new client, attached to the pool if there is one.
    void (*enter)(struct server *, struct server_client *);
    // Sends all ready data that the kernel takes. Returns 0; -EAGAIN: blocked; -EINPROGRESS: there
    // is more, to be sent after the others' data; another negative errno: drop the client.
    int (*send)(struct server *, struct server_client *);
    // Reads data from the client. Returns 0; -EAGAIN: there is more, to be read after the others'
    // data; another negative errno: drop the client. NULL: reads and discards it.
    int (*receive)(struct server *, struct server_client *);
    // Frees the driver's part of a leaving client, which is still attached to the pool.
    void (*leave)(struct server *, struct server_client *);
};

// The first member of every listening sink.
struct server {
    struct sink sink;
    const struct server_driver *driver;
    struct listener listener;
    int epoll; // listener and clients; the loop watches it as one descriptor
    uv_poll_t poll;
    uv_timer_t timer; // while listening: a pause in accepting; then: the end of the grace
    int handles;      // open ones: the two above and the driver's own
    bool finishing;
    int n_clients;
    struct server_client **clients; // as many as the key `clients` allows
};

void server_handle_closed(uv_handle_t *); // its data is the server
// Closes everything if the server is finishing and no client is busy. Call after each turn.
void server_close_when_drained(struct server *);

#endif
