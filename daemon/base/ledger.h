// Counts the frames of one output: offered = emitted + all losses + in flight. Counters only rise.
// Thread-safe: any thread adds, any thread reads.
#ifndef FRAMED_DAEMON_BASE_LEDGER_H
#define FRAMED_DAEMON_BASE_LEDGER_H

#include <stdatomic.h>
#include <stdint.h>

enum loss {
    LOSS_THINNED,      // above the rate that `fps` allows
    LOSS_STILL,        // shows nothing new, by the output's `gate`
    LOSS_LATE,         // older than max_age before a client took it
    LOSS_DAMAGED,      // undecodable, or a damaged picture under `damaged: drop` or `hold`
    LOSS_OVERFLOW,     // clients hold all slots, or a newer frame replaced it
    LOSS_CLIENT,       // no client connected, or all that took it left before its end
    LOSS_SINK,         // writing to the file or server failed
    LOSS_CONFIG,       // the output does not fit this source (a crop outside the picture)
    LOSS_BACKEND,      // the device failed
    LOSS_BACKEND_BUSY, // the backend was still busy with earlier frames of the camera
    LOSS_STOPPING,     // the daemon or the output stopped before delivery
    LOSSES
};

struct ledger {
    _Atomic uint64_t offered, emitted, lost[LOSSES];
};

const char *loss_name(enum loss);
void ledger_offer(struct ledger *);
void ledger_emit(struct ledger *);
void ledger_lose(struct ledger *, enum loss);
uint64_t ledger_lost(const struct ledger *); // the sum over all reasons
// Frames offered and neither emitted nor lost yet. Negative: a bug counted frames twice.
int64_t ledger_in_flight(const struct ledger *);

#endif
