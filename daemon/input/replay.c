#include "daemon/input/replay.h"

#include <string.h>

#include "daemon/base/number.h"

static const int64_t CACHED_MAX_NS = 20 * INT64_C(1000000000); // no cache is longer

// Hashes eight bytes at a time: the whole stream passes here.
static uint64_t hash_unit(const uint8_t *data, size_t bytes)
{
    uint64_t hash = 0xcbf29ce484222325 ^ bytes, word;
    for (; bytes >= sizeof word; data += sizeof word, bytes -= sizeof word) {
        memcpy(&word, data, sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 32;
    }
    for (; bytes > 0; bytes--)
        hash = (hash ^ *data++) * 0x100000001b3;
    return hash;
}

static bool is_known(const struct replay_memory *memory, uint64_t hash)
{
    const unsigned n = memory->n < REPLAY_UNITS ? memory->n : REPLAY_UNITS;
    for (unsigned i = 0; i < n; i++)
        if (memory->hashes[i] == hash)
            return true;
    return false;
}

// Timestamps may stand still, or go back for reordered pictures. Pictures that were ready count as
// live after CACHED_MAX_NS: no cache is that long, so the box is too busy.
static bool comes_at_its_pace(const struct replay *replay, const struct replay_unit *unit)
{
    const int64_t step_ns = bounds_max(unit->time_ns - replay->last_time_ns, unit->usual_ns);
    const bool live = unit->waited || unit->received_ns - replay->first_ns > CACHED_MAX_NS;
    return live && replay->units > 0 && unit->received_ns - replay->last_ns >= step_ns / 2;
}

bool replay_add(struct replay *replay, struct replay_memory *memory, const struct replay_unit *unit)
{
    const uint64_t hash = hash_unit(unit->data, unit->bytes);
    if (replay->units == 0)
        replay->first_ns = unit->received_ns;
    const bool again = unit->received_ns - replay->first_ns <= memory->silent_ns;
    if (memory->n == 0)
        replay->live = true; // nothing was sent before
    if (!replay->news && !unit->incomplete && !is_known(memory, hash))
        replay->live = replay->news = true;
    else if (comes_at_its_pace(replay, unit) && (memory->silent_ns == 0 || !again))
        replay->live = true;
    memory->hashes[memory->n++ % REPLAY_UNITS] = hash;
    if (memory->n == 2 * REPLAY_UNITS)
        memory->n = REPLAY_UNITS; // the ring stays full
    replay->units++;
    replay->last_ns = unit->received_ns;
    replay->last_time_ns = unit->time_ns;
    return !replay->live;
}

void replay_end(const struct replay *replay, struct replay_memory *memory, bool silent)
{
    const int64_t length_ns = replay->last_ns - replay->first_ns;
    if (replay->units == 0)
        return;
    memory->silent_ns = 0;
    if (silent && !replay->news && length_ns <= CACHED_MAX_NS)
        memory->silent_ns = bounds_max(length_ns, 1);
}
