#include "daemon/base/rate_counter.h"

void rate_counter_sample(struct rate_counter *meter, uint64_t count, int64_t now_ns)
{
    unsigned i = meter->n++ % RATE_COUNTER_SAMPLES;
    meter->count[i] = count;
    meter->ns[i] = now_ns;
}

double rate_counter_rate(const struct rate_counter *meter)
{
    if (meter->n < 2)
        return 0;
    unsigned last = (meter->n - 1) % RATE_COUNTER_SAMPLES;
    unsigned first = meter->n > RATE_COUNTER_SAMPLES ? meter->n % RATE_COUNTER_SAMPLES : 0;
    int64_t ns = meter->ns[last] - meter->ns[first];
    if (meter->count[last] < meter->count[first])
        return 0; // the counter restarted
    return ns > 0 ? (double)(meter->count[last] - meter->count[first]) * 1e9 / (double)ns : 0;
}
