// The account of every frame of one output: offered = emitted + all the losses + what is still in
// flight. Counters only rise. Thread-safe: any thread adds, any thread reads.
#ifndef FRAMED_DAEMON_BASE_LEDGER_H
#define FRAMED_DAEMON_BASE_LEDGER_H

#include <stdatomic.h>
#include <stdint.h>

enum loss {
    LOSS_THINNED,      // above the rate that `fps` allows
    LOSS_STILL,        // shows nothing new, by the output's `gate`
    LOSS_LATE,         // older than max_age before anyone took it
    LOSS_DAMAGED,      // beyond decoding, or a damaged picture under `damaged: drop` or `hold`
    LOSS_OVERFLOW,     // clients left no free slot, or it was pushed out of one by a newer frame
    LOSS_CLIENT,       // nobody connected, or everyone who took it left before its end
    LOSS_SINK,         // the file or server could not be written to
    LOSS_CONFIG,       // the output cannot be made from this source (a crop outside the picture)
    LOSS_BACKEND,      // the device failed
    LOSS_BACKEND_BUSY, // the backend had its hands full with the camera's frames before it
    LOSS_STOPPING,     // the daemon or the output stopped before it was delivered
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
// Frames that were offered and are neither emitted nor lost yet. Negative: a bug counted frames
// twice.
int64_t ledger_in_flight(const struct ledger *);

#endif
