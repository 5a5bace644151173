// What the kinds of sinks share, and the table that each of them fills. Private to sink*.c.
#ifndef FRAMED_DAEMON_OUTPUT_SINK_IMPL_H
#define FRAMED_DAEMON_OUTPUT_SINK_IMPL_H

#include <sys/types.h>

#include "daemon/base/listener.h"
#include "daemon/output/sink.h"

struct sink_driver {
    int (*open)(struct sink **ret, const struct sink_context *, char *why, size_t size);
    void (*pump)(struct sink *);
    void (*finish)(struct sink *, int grace_ms);
    int (*clients)(const struct sink *);
    int (*port)(const struct sink *); // NULL: it has none
    // NULL: it does not listen.
    const struct listener *(*listener)(const struct sink *);
    void (*check_path)(struct sink *);
    void (*yield)(struct sink *, struct listener *ret);
};

extern const struct sink_driver socket_sink, ring_sink, file_sink;

// Whether the file of an output can be written, as far as that shows without making it; `ours`: one
// of our own sinks is still at it. 0 or negative errno, with one sentence in `why`.
int file_check(const struct output_config *, bool ours, char *why, size_t size);

// The first member of every sink.
struct sink {
    const struct sink_driver *driver;
    struct sink_context context;
};

// The oldest ready slot from *next on that is not older than max_age, pinned; *next moves behind
// it. The ones passed over are the caller's to retire as LOSS_LATE. NULL: none.
struct result *sink_begin(const struct sink *, uint64_t *next);

// Where the output's socket is to listen.
struct listener_options sink_listener_options(const struct output_config *);

// Logs one line with the names of camera and output.
__attribute__((format(printf, 3, 4))) void sink_event(const struct sink *, enum log_level level,
                                                      const char *format, ...);

#endif
