// Where the ready slots of one output go: listening sockets with any number of clients, which get
// copies or read the slots themselves (a ring), or a file.
// Loop thread only.
#ifndef FRAMED_DAEMON_OUTPUT_SINK_H
#define FRAMED_DAEMON_OUTPUT_SINK_H

#include <uv.h>

#include "config/config.h"
#include "daemon/base/last_error.h"
#include "daemon/base/listener.h"
#include "daemon/output/pool.h"

struct sink;

struct sink_context {
    uv_loop_t *loop;
    const char *camera;
    const struct output_config *config; // outlives the sink
    struct pool *pool;                  // outlives the sink
    struct last_error *complaint;       // outlives the sink: what it logs as going wrong; or NULL
    // The sink is closed: everything was delivered or counted, descriptors are closed. Called once,
    // after sink_finish; the sink is gone when it returns.
    void (*closed)(void *opaque);
    void *opaque;
    struct listener *listener; // of sink_prepare or sink_yield, taken on success; NULL: none
};

// Whether a sink can be opened, so that nobody outside sees it: a socket that is to listen does so
// already in *ret, but not at its path; a file is looked at. `before`, a sink or NULL, may have the
// address until then. 0 or negative errno, with one sentence in `why`.
int sink_prepare(struct listener *ret, const struct output_config *, const struct sink *before,
                 char *why, size_t size);

// Listens or opens. Returns 0 or negative errno, with one sentence in `why`.
int sink_open(struct sink **ret, const struct sink_context *, char *why, size_t size);
// Slots may have become done: publishes them and moves clients on.
void sink_pump(struct sink *);
// No more slots will come. Clients get what is ready within `grace_ms`, then everything is closed
// and `closed` is called from the loop.
void sink_finish(struct sink *, int grace_ms);
// Listens no more. What listened comes to lie in *ret where one wants it; else it is closed.
// Clients stay.
void sink_yield(struct sink *, struct listener *ret);
// Listens again if somebody has removed the socket from its path, and logs it. Clients stay. To be
// called every second or so: one lstat where nothing happened.
void sink_check_path(struct sink *);
int sink_clients(const struct sink *);
int sink_port(const struct sink *); // of a tcp sink, for port 0; else 0

#endif
