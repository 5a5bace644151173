#include "daemon/camera/availability.h"

#include <string.h>

static const int64_t MS = 1000000, HOUR_NS = 3600 * INT64_C(1000000000);
static const int64_t HOUR_MS = 3600000;

// Makes `hour` the newest bucket; clears skipped ones.
static void advance(struct availability *a, int64_t hour)
{
    if (hour - a->hour >= AVAILABILITY_HOURS)
        memset(a->hours, 0, sizeof a->hours);
    else
        for (int64_t h = a->hour + 1; h <= hour; h++)
            a->hours[h % AVAILABILITY_HOURS] = (struct availability_hour){0};
    a->hour = hour;
}

void availability_add(struct availability *a, int64_t realtime_ns, int64_t passed_ns, bool up)
{
    const int64_t hour = (realtime_ns - passed_ns) / HOUR_NS;
    if (realtime_ns < passed_ns || passed_ns <= 0 || passed_ns > HOUR_NS)
        return;
    // A machine without a battery starts in 1970 and gets the time later. If the clock stays
    // behind, the time of the buckets was wrong.
    if (hour <= a->hour - AVAILABILITY_HOURS) {
        if ((a->behind_ns += passed_ns) < HOUR_NS)
            return;
        *a = (struct availability){.hour = hour};
    }
    a->behind_ns = 0;
    if (hour > a->hour)
        advance(a, hour);
    struct availability_hour *bucket = &a->hours[hour % AVAILABILITY_HOURS];
    const int64_t room = HOUR_MS - bucket->known_ms, ms = (passed_ns + MS / 2) / MS;
    const uint32_t add = (uint32_t)(ms < room ? ms : room);
    bucket->known_ms += add;
    bucket->up_ms += up ? add : 0;
}

const struct availability_hour *availability_hour(const struct availability *a, int64_t hour)
{
    const bool there = hour >= 0 && hour <= a->hour && hour > a->hour - AVAILABILITY_HOURS;
    return there ? &a->hours[hour % AVAILABILITY_HOURS] : NULL;
}

void availability_set(struct availability *a, int64_t hour, struct availability_hour bucket)
{
    if (hour < a->hour || hour > INT64_MAX / HOUR_NS || bucket.known_ms > HOUR_MS ||
        bucket.up_ms > bucket.known_ms)
        return;
    advance(a, hour);
    a->hours[hour % AVAILABILITY_HOURS] = bucket;
}

static double share_of(int64_t up_ms, int64_t known_ms)
{
    return known_ms > 0 ? (double)up_ms / (double)known_ms : -1;
}

void availability_sum(const struct availability *a, int64_t realtime_ns,
                      struct availability_share *ret)
{
    const int64_t now = realtime_ns / HOUR_NS;
    int64_t up = 0, known = 0;
    for (int day = 0; day < AVAILABILITY_DAYS; day++) {
        const int64_t last = now - 24 * (AVAILABILITY_DAYS - 1 - day);
        int64_t day_up = 0, day_known = 0;
        for (int64_t hour = last - 23; hour <= last; hour++) {
            const struct availability_hour *bucket = availability_hour(a, hour);
            day_up += bucket ? bucket->up_ms : 0;
            day_known += bucket ? bucket->known_ms : 0;
        }
        ret->day[day] = share_of(day_up, day_known);
        up += day_up;
        known += day_known;
    }
    ret->share = share_of(up, known);
    ret->known_s = known / 1000;
}
