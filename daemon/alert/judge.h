// Decides when a camera raises and clears alerts, rarely enough that people still read them: an
// alert is raised once and cleared once, however often its cause comes and goes in between. Pure.
//
// - down: pictures have been missing for the camera's media_timeout plus `grace`; at the start, for
//   its connect_timeout as well.
// - flapping: five interruptions within `calm`, each too short for down. A camera that is down is
//   reported as down only, even if it flaps later; a flapping camera is down once it has been away
//   for all of `calm`.
// - damaged: at least five pictures of a minute, and at least a tenth of them, are damaged.
// - dark, glare, frozen, blurred, moved: the alarms of daemon/scene/scene.h.
//
// An alert is cleared once all has been well for `calm`. If it is raised again within twelve times
// `calm`, clearing takes twelve times as long: a camera that returns for longer than `calm` and
// goes again is not reported each time. Down and flapping together have at most two events in
// twelve times `calm`, an hour if `calm` is 5 minutes. The next event is held until the limit
// permits it: it still states the trouble's begin and the interruptions so far. A held alert is
// never cleared before its report.
#ifndef FRAMED_DAEMON_ALERT_JUDGE_H
#define FRAMED_DAEMON_ALERT_JUDGE_H

#include "daemon/camera/camera_report.h"

enum alert_kind {
    ALERT_DOWN,
    ALERT_FLAPPING,
    ALERT_DAMAGED,
    ALERT_SCENE, // followed by the other alarms, in the order of enum alarm
    ALERT_KINDS = ALERT_SCENE + ALARMS
};

enum {
    JUDGE_INTERRUPTIONS = 5, // this many are flapping
    JUDGE_MINUTE = 6,        // buckets of ten seconds
    JUDGE_LONGER = 12,       // times `calm`
    JUDGE_EVENTS = 2,        // of down and flapping in that time
};

// A camera's facts at one time. Times are CLOCK_MONOTONIC here and below.
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
    bool held;          // raised, but not reported yet
    int64_t raised_ns;  // last report of a raise; INT64_MIN / 2: never, or long ago
    int64_t cleared_ns; // last clearing; INT64_MIN / 2: never, or long ago
    int64_t bad_ns;     // begin of the trouble, at the last raise
    int64_t well_ns;    // since when all has been well; INT64_MAX: not well
    int interruptions;  // since it was raised or held
};

struct judge {
    struct alert alert[ALERT_KINDS];
    bool begun, seen; // there were facts; there were pictures
    bool away;        // not running by the last facts, since:
    int64_t away_ns;
    int64_t picture_ns; // last arrival of pictures; before the first, the judge's begin
    uint64_t pictures, damaged;
    int64_t interrupted_ns[JUDGE_INTERRUPTIONS]; // ring of the latest ones
    int interruptions;
    struct judge_bucket { // counts of ten seconds; the last one is under way
        uint64_t pictures, damaged;
    } minute[JUDGE_MINUTE];
    int64_t bucket_ns; // begin of the last one
};

void judge_open(struct judge *);
// Returns the alerts that are raised or cleared now: bit 1 << enum alert_kind.
unsigned judge_step(struct judge *, const struct judge_facts *, const struct judge_limits *);
const char *alert_kind_name(enum alert_kind);      // "down"
enum alert_kind alert_kind_find(const char *name); // ALERT_KINDS: no such name

#endif
