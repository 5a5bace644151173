// What is wrong with a camera, in so few words that somebody still reads them: an alert is raised
// once and cleared once, however often its reason comes and goes in between. Pure.
//
// - down: pictures have been missing for the camera's media_timeout and `grace`; at the start, for
//   its connect_timeout as well.
// - flapping: five interruptions within `calm`, each too short for down. A camera that is down says
//   so once, even if it flaps from then on; a camera that flaps is down once it has been away for
//   all of `calm`.
// - damaged: a tenth of the pictures of a minute, and five at least, are damaged.
// - dark, glare, frozen, blurred, moved: the alarms of daemon/scene/alarms.h.
//
// An alert is cleared once all has been well for `calm`. Where it is raised again within twelve
// times `calm`, that takes twelve times as long: a camera that comes back for longer than `calm`
// and goes again does not say so each time. Of down and flapping together two events are told in
// twelve times `calm`, an hour at a `calm` of 5 minutes. The next one is held until it may be told:
// it still says since when, and how often the camera went away meanwhile. What is held is never
// cleared before it is told.
#ifndef FRAMED_DAEMON_ALERT_JUDGE_H
#define FRAMED_DAEMON_ALERT_JUDGE_H

#include "daemon/camera/camera_report.h"

enum alert_kind {
    ALERT_DOWN,
    ALERT_FLAPPING,
    ALERT_DAMAGED,
    ALERT_SCENE, // and the other alarms, in the order of enum alarm
    ALERT_KINDS = ALERT_SCENE + ALARMS
};

enum {
    JUDGE_INTERRUPTIONS = 5, // that are flapping
    JUDGE_MINUTE = 6,        // buckets of ten seconds
    JUDGE_LONGER = 12,       // times `calm`
    JUDGE_EVENTS = 2,        // of down and flapping, in that time
};

// What is known of a camera at a time. Times are CLOCK_MONOTONIC here and below.
struct judge_facts {
    int64_t now_ns;
    enum camera_state state;
    uint64_t pictures, damaged; // so far
    unsigned alarms;            // raised now: bit 1 << enum alarm
    int64_t media_timeout_ns, connect_timeout_ns;
};

struct judge_limits {
    int64_t grace_ns, calm_ns;
};

struct alert {
    bool raised, again; // again: soon after it was cleared
    bool held;          // raised, and not told yet
    int64_t raised_ns;  // when that was told the last time; INT64_MIN / 2 likewise
    int64_t cleared_ns; // the last time; INT64_MIN / 2: never, or long ago
    int64_t bad_ns;     // since when it has been so, at the last raise
    int64_t well_ns;    // since when all has been well; INT64_MAX: it is not
    int interruptions;  // since it was raised, or held
};

// Of one camera.
struct judge {
    struct alert alert[ALERT_KINDS];
    bool begun, seen; // there were facts; there were pictures
    bool away;        // the last facts said so, since:
    int64_t away_ns;
    int64_t picture_ns; // when pictures came last; before the first, when the judge began
    uint64_t pictures, damaged;
    int64_t interrupted_ns[JUDGE_INTERRUPTIONS]; // the last times, a ring
    int interruptions;
    struct judge_bucket { // of damage, the last one is under way
        uint64_t pictures, damaged;
    } minute[JUDGE_MINUTE];
    int64_t bucket_ns; // when the last one began
};

void judge_open(struct judge *);
// Returns the alerts that are raised or cleared now: bit 1 << enum alert_kind.
unsigned judge_step(struct judge *, const struct judge_facts *, const struct judge_limits *);
const char *alert_kind_name(enum alert_kind);      // "down"
enum alert_kind alert_kind_find(const char *name); // ALERT_KINDS: there is none of this name

#endif
