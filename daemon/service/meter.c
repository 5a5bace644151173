#include "daemon/service/meter.h"

void meter_sample(struct meter *meter, uint64_t count, int64_t now_ns)
{
    unsigned i = meter->n++ % METER_SAMPLES;
    meter->count[i] = count;
    meter->ns[i] = now_ns;
}

double meter_rate(const struct meter *meter)
{
    if (meter->n < 2)
        return 0;
    unsigned last = (meter->n - 1) % METER_SAMPLES;
    unsigned first = meter->n > METER_SAMPLES ? meter->n % METER_SAMPLES : 0;
    int64_t ns = meter->ns[last] - meter->ns[first];
    if (meter->count[last] < meter->count[first])
        return 0; // it began anew
    return ns > 0 ? (double)(meter->count[last] - meter->count[first]) * 1e9 / (double)ns : 0;
}
