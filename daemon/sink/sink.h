// Where the ready slots of one output go: listening sockets with any number of clients, which get
// copies or read the slots themselves (a ring), or a file.
// Loop thread only.
#ifndef FRAMED_DAEMON_SINK_SINK_H
#define FRAMED_DAEMON_SINK_SINK_H

#include <uv.h>

#include "config/config.h"
#include "daemon/sink/slots.h"

struct sink;

struct sink_context {
    uv_loop_t *loop;
    const char *camera;
    const struct output_config *config; // outlives the sink
    struct slots *slots;                // outlives the sink
    // The sink is closed: everything was delivered or counted, descriptors are closed. Called once,
    // after sink_finish; the sink is gone when it returns.
    void (*closed)(void *opaque);
    void *opaque;
};

// Listens or opens. Returns 0 or negative errno, with one sentence in `why`.
int sink_open(struct sink **ret, const struct sink_context *, char *why, size_t size);
// Slots may have become done: publishes them and moves clients on.
void sink_pump(struct sink *);
// No more slots will come. Clients get what is ready within `grace_ms`, then everything is closed
// and `closed` is called from the loop.
void sink_finish(struct sink *, int grace_ms);
int sink_clients(const struct sink *);
int sink_port(const struct sink *); // of a tcp sink, for port 0; else 0

#endif
