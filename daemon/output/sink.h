// Where the results of one output go: a listening socket with any number of clients, which get
// copies or read the pool's memory themselves (a ring), or a file, or a server. Lines about objects
// that clients of a ring found go to a socket or a file of their own. Loop thread only.
#ifndef FRAMED_DAEMON_OUTPUT_SINK_H
#define FRAMED_DAEMON_OUTPUT_SINK_H

#include <uv.h>

#include "config/config.h"
#include "daemon/base/last_error.h"
#include "daemon/base/listener.h"
#include "daemon/base/log.h"
#include "daemon/output/line_queue.h"
#include "daemon/output/packet_queue.h"
#include "daemon/output/pool.h"
#include "daemon/output/results.h"
#include "daemon/output/segment.h"

struct sink;

struct sink_context {
    uv_loop_t *loop;
    const char *camera;                 // of the log's lines
    const struct output_config *config; // outlives the sink
    struct pool *pool;                  // outlives the sink; NULL of packets and lines
    struct results *results;            // of a ring; outlives the sink, as do:
    struct packet_queue *packets;
    struct line_queue *lines;     // of protocol lines, which has no pool
    struct line_account *account; // of these
    struct ledger *ledger;
    struct last_error *last_error; // outlives the sink: what it logs as going wrong; or NULL
    // The sink is closed: everything was delivered or counted, descriptors are closed. Called once,
    // after sink_finish; the sink is gone when it returns.
    void (*closed)(void *opaque);
    void *opaque;
    struct listener *listener;    // of sink_prepare or sink_yield, taken on success; NULL: none
    struct shared_object *shared; // outlives the sink, which opens it for `shared:` and closes it
};

// Who reads a listening sink.
struct sink_client {
    const char *name; // PROGRAM:PID of this machine, else HOST:PORT; as long as the client stays
    struct consumer_report report;
};

// What each kind of sink fills in.
struct sink_driver {
    int (*open)(struct sink **ret, const struct sink_context *, char *why, size_t size);
    void (*pump)(struct sink *);
    void (*finish)(struct sink *, int grace_ms);
    int (*clients)(const struct sink *);
    // The client of that number, below `clients`. NULL: they have no names.
    struct sink_client (*client)(const struct sink *, int i);
    int (*port)(const struct sink *); // NULL: it has none
    // NULL: it does not listen.
    const struct listener *(*listener)(const struct sink *);
    void (*check_path)(struct sink *);
    void (*yield)(struct sink *, struct listener *ret);
};

extern const struct sink_driver socket_sink, ring_sink, line_sink, file_sink, recorder_sink,
    publisher_sink;

// The first member of every sink.
struct sink {
    const struct sink_driver *driver;
    struct sink_context context;
};

// Checks that a sink can be opened, before anybody outside sees it: a socket listens already, in
// *ret, but not at its path; a file is looked at. `before`, a sink or NULL, may have the address
// until then. 0 or negative errno, with one sentence in `why`.
int sink_prepare(struct listener *ret, const struct output_config *, const struct sink *before,
                 char *why, size_t size);

// Listens or opens. Returns 0 or negative errno, with one sentence in `why`.
int sink_open(struct sink **ret, const struct sink_context *, char *why, size_t size);
// Results may have become ready: gives them to consumers.
void sink_pump(struct sink *);
// No more results will come. Consumers get what is ready within `grace_ms`, then everything is
// closed and `closed` is called from the loop.
void sink_finish(struct sink *, int grace_ms);
// Stops listening; clients stay. The listener is moved to *ret; with NULL it is closed.
void sink_yield(struct sink *, struct listener *ret);
// Listens again, and logs it, where somebody has removed the socket from its path; clients stay.
// Call it every second or so: it costs one lstat where nothing happened.
void sink_check_path(struct sink *);
int sink_clients(const struct sink *);
// The client of that number, below sink_clients; its name is NULL where this kind of sink knows
// none.
struct sink_client sink_client(const struct sink *, int i);
int sink_port(const struct sink *); // of a tcp sink, for port 0; else 0

// --- for the kinds of sinks
// Checks that the file of an output can be written, as far as that shows without making it; `ours`:
// a sink of ours still writes it. 0 or negative errno, with one sentence in `why`.
int file_check(const struct output_config *, bool ours, char *why, size_t size);
// Logs what segment_finish_leftovers returned and found.
void sink_log_leftovers(const struct sink *, int status, const struct leftovers *);
// Logs, once, that files cannot be deleted.
void sink_log_keep(const struct sink *, struct keep *);
void sink_log_change(const struct sink *, struct segment *);
// Where the output's socket is to listen.
struct listener_options sink_listener_options(const struct output_config *);
// Logs one line with the names of camera and output.
__attribute__((format(printf, 3, 4))) void sink_event(const struct sink *, enum log_level level,
                                                      const char *format, ...);

#endif
