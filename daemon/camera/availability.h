// How much of the last seven days a camera delivered pictures, in buckets of an hour. Time in which
// framed did not run, and that of a camera that has ended, is not known and does not count. Pure.
#ifndef FRAMED_DAEMON_CAMERA_AVAILABILITY_H
#define FRAMED_DAEMON_CAMERA_AVAILABILITY_H

#include <stdbool.h>
#include <stdint.h>

enum { AVAILABILITY_DAYS = 7, AVAILABILITY_HOURS = 24 * AVAILABILITY_DAYS };

// Of one camera; zeroed at first.
struct availability {
    int64_t hour; // since 1970: the newest bucket's
    struct availability_hour {
        uint32_t up_ms, known_ms; // up_ms <= known_ms <= an hour
    } hours[AVAILABILITY_HOURS];  // hour h is at h % AVAILABILITY_HOURS
    int64_t behind_ns;            // how long the wall clock has been older than every bucket
};

struct availability_share {
    int64_t known_s;               // of the seven days
    double share;                  // of known_s, 0 to 1; -1: nothing is known
    double day[AVAILABILITY_DAYS]; // of each 24 hours, the last one ends now; -1 as above
};

// Adds the time that has passed since the last call, at most an hour. `realtime_ns` is the wall
// clock, which may be set at any time.
void availability_add(struct availability *, int64_t realtime_ns, int64_t passed_ns, bool up);
void availability_sum(const struct availability *, int64_t realtime_ns,
                      struct availability_share *);
// The bucket of an hour of the last seven days up to `a->hour`; NULL: an hour outside of these.
const struct availability_hour *availability_hour(const struct availability *, int64_t hour);
// Sets a bucket, the oldest first. Hours and times that cannot be are left out.
void availability_set(struct availability *, int64_t hour, struct availability_hour);

#endif
