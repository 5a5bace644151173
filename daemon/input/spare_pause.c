#include "daemon/input/spare_pause.h"

static const int64_t SECOND_NS = 1000000000;

enum { SHORTEST_S = 10, DOUBLED_MAX = 4, GOOD_SERVICE_S = 3600 };

void spare_pause_begin(struct spare_pause *pause, int64_t now_ns)
{
    if (now_ns - pause->begun_ns >= GOOD_SERVICE_S * SECOND_NS)
        pause->useless = 0;
    pause->begun_ns = now_ns;
    pause->until_ns = now_ns + (SHORTEST_S * SECOND_NS << pause->useless);
    pause->useless += pause->useless < DOUBLED_MAX;
}

void spare_pause_for_good(struct spare_pause *pause)
{
    pause->until_ns = INT64_MAX;
}

bool spare_pause_is_over(const struct spare_pause *pause, int64_t now_ns)
{
    return now_ns >= pause->until_ns;
}
