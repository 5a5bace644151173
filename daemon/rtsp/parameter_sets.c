#include "daemon/rtsp/parameter_sets.h"

#include <string.h>

enum { START_BYTES = 4 };

static void remove_set(struct parameter_sets *sets, int i, size_t at)
{
    const size_t bytes = sets->set[i].bytes, behind = sets->bytes - at - bytes;
    memmove(sets->data + at, sets->data + at + bytes, behind);
    memmove(sets->set + i, sets->set + i + 1, (size_t)(sets->n - i - 1) * sizeof *sets->set);
    sets->bytes -= bytes;
    sets->n--;
}

void parameter_sets_put(struct parameter_sets *sets, int rank, uint32_t id, const uint8_t *nal,
                        size_t bytes)
{
    size_t at = 0;
    int i = 0;
    while (i < sets->n &&
           (sets->set[i].rank < rank || (sets->set[i].rank == rank && sets->set[i].id < id)))
        at += sets->set[i++].bytes;
    if (i < sets->n && sets->set[i].rank == rank && sets->set[i].id == id) {
        if (sets->set[i].bytes == bytes + START_BYTES &&
            memcmp(sets->data + at + START_BYTES, nal, bytes) == 0)
            return;
        remove_set(sets, i, at);
    }
    if (sets->n == PARAMETER_SETS_MAX || bytes + START_BYTES > sizeof sets->data - sets->bytes)
        return;
    uint8_t *to = sets->data + at;
    memmove(to + START_BYTES + bytes, to, sets->bytes - at);
    memcpy(to, "\0\0\0\1", START_BYTES);
    memcpy(to + START_BYTES, nal, bytes);
    memmove(sets->set + i + 1, sets->set + i, (size_t)(sets->n - i) * sizeof *sets->set);
    sets->set[i] = (struct parameter_set){rank, id, bytes + START_BYTES};
    sets->bytes += bytes + START_BYTES;
    sets->n++;
}
