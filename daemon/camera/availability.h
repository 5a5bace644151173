// The share of the last seven days in which a camera delivered pictures, in buckets of an hour.
// Time when framed did not run, or after the camera ended, is unknown and does not count. Pure.
#ifndef FRAMED_DAEMON_CAMERA_AVAILABILITY_H
#define FRAMED_DAEMON_CAMERA_AVAILABILITY_H

#include <stdbool.h>
#include <stdint.h>

enum { AVAILABILITY_DAYS = 7, AVAILABILITY_HOURS = 24 * AVAILABILITY_DAYS };

// For one camera; zeroed at first.
struct availability {
    int64_t hour; // of the newest bucket, since 1970
    struct availability_hour {
        uint32_t up_ms, known_ms; // up_ms <= known_ms <= an hour
    } hours[AVAILABILITY_HOURS];  // hour h is at h % AVAILABILITY_HOURS
    int64_t behind_ns;            // how long the wall clock has been behind every bucket
};

struct availability_share {
    int64_t known_s;               // known time of the seven days
    double share;                  // of known_s, 0 to 1; -1: nothing is known
    double day[AVAILABILITY_DAYS]; // per 24 hours, the last ending now; -1 as above
};

// Adds the time since the last call; ignores more than an hour. `realtime_ns` is the wall clock,
// which may be set at any time.
void availability_add(struct availability *, int64_t realtime_ns, int64_t passed_ns, bool up);
void availability_sum(const struct availability *, int64_t realtime_ns,
                      struct availability_share *);
// Returns the bucket of an hour of the last seven days up to `a->hour`; NULL: another hour.
const struct availability_hour *availability_hour(const struct availability *, int64_t hour);
// Sets a bucket; call with the oldest first. Ignores impossible hours and times.
void availability_set(struct availability *, int64_t hour, struct availability_hour);

#endif
