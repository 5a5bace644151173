#include "daemon/base/ledger.h"

static const char *const names[LOSSES] = {
    [LOSS_THINNED] = "thinned",   [LOSS_STILL] = "still",
    [LOSS_LATE] = "late",         [LOSS_DAMAGED] = "damaged",
    [LOSS_OVERFLOW] = "overflow", [LOSS_CLIENT] = "client",
    [LOSS_SINK] = "sink",         [LOSS_CONFIG] = "config",
    [LOSS_BACKEND] = "backend",   [LOSS_BACKEND_BUSY] = "backend_busy",
    [LOSS_STOPPING] = "stopping",
};

const char *loss_name(enum loss loss)
{
    return names[loss];
}

static void add_frame(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

void ledger_offer(struct ledger *ledger)
{
    add_frame(&ledger->offered);
}

void ledger_emit(struct ledger *ledger)
{
    add_frame(&ledger->emitted);
}

void ledger_lose(struct ledger *ledger, enum loss loss)
{
    add_frame(&ledger->lost[loss]);
}

uint64_t ledger_lost(const struct ledger *ledger)
{
    uint64_t sum = 0;
    for (int i = 0; i < LOSSES; i++)
        sum += atomic_load(&ledger->lost[i]);
    return sum;
}

int64_t ledger_in_flight(const struct ledger *ledger)
{
    // Read the ended frames first: a frame that ends between the two reads must not make this
    // negative.
    const uint64_t ended = ledger_lost(ledger) + atomic_load(&ledger->emitted);
    return (int64_t)(atomic_load(&ledger->offered) - ended);
}
