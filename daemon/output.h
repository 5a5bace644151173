// One product of a camera: what the camera thread, the backend and the loop share of it.
#ifndef FRAMED_DAEMON_OUTPUT_H
#define FRAMED_DAEMON_OUTPUT_H

#include "config/config.h"
#include "daemon/ledger.h"
#include "daemon/mailbox.h"
#include "daemon/sink/sink.h"
#include "daemon/sink/slots.h"

struct output {
    const struct output_config *config;
    struct op_params params;
    struct ledger ledger;
    struct slots *slots;
    struct sink *sink;    // loop thread
    void *owner;          // whoever opened the sink; its own use
    struct letter letter; // "some of my slots are done"

    // camera thread:
    uint64_t sequence, ordinal; // of the next frame offered
    int64_t due_ns;             // pts from which the next frame is kept, by `fps`
    int64_t epoch;              // of the last frame that got a slot; -1 before the first
};

int output_open(struct output *, const struct output_config *, const struct backend_driver *,
                struct backend *);
void output_close(struct output *); // after sink and camera are gone; accepts a zeroed one

#endif
