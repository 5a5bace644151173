// Destination of one output's results: a listening socket whose clients get copies or read the
// pool's memory themselves (a ring), a file, or a server. Lines about objects that clients of a
// ring found go to a socket or a file of their own. Loop thread only.
#ifndef FRAMED_DAEMON_OUTPUT_SINK_H
#define FRAMED_DAEMON_OUTPUT_SINK_H

#include <uv.h>

#include "config/config.h"
#include "daemon/base/access.h"
#include "daemon/base/log.h"
#include "daemon/output/packet_queue.h"
#include "daemon/output/pool.h"
#include "daemon/output/results.h"

struct sink;
struct line_queue;

struct sink_context {
    uv_loop_t *loop;
    const char *camera;                 // for log lines
    const struct output_config *config; // outlives the sink
    struct pool *pool;                  // outlives the sink; NULL for packets and lines
    struct results *results;            // for a ring; outlives the sink, as do:
    struct packet_queue *packets;
    struct line_queue *lines;     // for PROTOCOL_LINES, which has no pool
    struct line_account *account; // of the lines
    struct ledger *ledger;
    struct last_error *last_error; // outlives the sink: its last warning or error; or NULL
    // Called once, after sink_finish: everything is delivered or counted, descriptors are closed,
    // and the sink is freed.
    void (*closed)(void *opaque);
    void *opaque;
    struct listener *listener;    // from sink_prepare or sink_yield, taken on success; NULL: none
    struct shared_object *shared; // outlives the sink, which opens and closes it for `shared:`
};

// A reader of a listening sink.
struct sink_client {
    // PROGRAM:PID on this machine, else HOST:PORT; valid while connected. NULL: unknown.
    const char *name;
    struct consumer_report report;
};

// The functions of one kind of sink.
struct sink_driver {
    int (*open)(struct sink **ret, const struct sink_context *, char *why, size_t size);
    void (*pump)(struct sink *);
    void (*finish)(struct sink *, int grace_ms);
    int (*clients)(const struct sink *);
};

extern const struct sink_driver writer_sink, server_sink;

// The kinds of sinks that listen, all of server_sink (output/server.h).
struct server_driver;
extern const struct server_driver socket_server, ring_server, line_server;
// Opens a sink of that kind, as sink_open.
int server_open(struct sink **ret, const struct server_driver *, const struct sink_context *,
                char *why, size_t size);

// The first member of every sink.
struct sink {
    const struct sink_driver *driver;
    struct sink_context context;
};

// Checks that a sink can be opened, before anything is visible outside: a socket already listens,
// in *ret, but not at its path; a file is only checked. `before`, a sink or NULL, may have the
// address until then. Returns 0 or a negative errno, with one sentence in `why`.
int sink_prepare(struct listener *ret, const struct output_config *, const struct sink *before,
                 char *why, size_t size);

// Starts listening or opens the file. Returns 0 or a negative errno, with one sentence in `why`.
int sink_open(struct sink **ret, const struct sink_context *, char *why, size_t size);
// Does the same and logs each success, and a failure unless *refused says that the last try failed.
// `what`: of the output, before each text; "": its results.
int sink_try_open(struct sink **ret, const struct sink_context *, const char *what, bool *refused);
// Delivers results that may have become ready. Accepts NULL: not open; like all below.
void sink_pump(struct sink *);
// Ends the sink: consumers get ready results within `grace_ms`, then everything is closed and the
// loop calls `closed`.
void sink_finish(struct sink *, int grace_ms);
int sink_clients(const struct sink *);

// --- of listening sinks; the others have no names, port or listener, and do nothing
// Stops listening; clients stay. Moves the listener to *ret, or closes it if NULL.
void sink_yield(struct sink *, struct listener *ret);
// Listens again, and logs that, if the socket was removed from its path; clients stay. Call it
// about once a second: it costs one lstat if nothing happened.
void sink_check_path(struct sink *);
// Returns client i, below sink_clients.
struct sink_client sink_client(const struct sink *, int i);
int sink_port(const struct sink *); // actual port of a tcp sink, also for port 0; else 0
const struct listener *sink_listener(const struct sink *);

// --- for the kinds of sinks
// Checks that an output's file can be written, as far as possible without creating it. `ours`:
// another sink of ours still writes it. Returns 0 or a negative errno, with one sentence in `why`.
int file_check(const struct output_config *, bool ours, char *why, size_t size);
// Returns where and how the output's socket listens.
struct listener_options sink_listener_options(const struct output_config *);
// Logs one line with the names of camera and output.
__attribute__((format(printf, 3, 4))) void sink_event(const struct sink *, enum log_level level,
                                                      const char *format, ...);

#endif
