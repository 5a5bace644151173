// A camera thread's report on its work, for status, metrics and the supervisor. The thread writes;
// any thread reads.
#ifndef FRAMED_DAEMON_CAMERA_CAMERA_REPORT_H
#define FRAMED_DAEMON_CAMERA_CAMERA_REPORT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "daemon/base/counters.h"
#include "daemon/base/log.h"
#include "daemon/base/loop.h"
#include "daemon/base/stage_watch.h"
#include "daemon/codec/frame.h"
#include "daemon/scene/scene.h"
#include "daemon/source/demux.h"

enum {
    CAMERA_CHANGES_MAX = 8,
    CAMERA_WHY_MAX = 256,
    CAMERA_TEXT_MAX = 160,
    CAMERA_PROFILE_MAX = 64
};

enum camera_state {
    CAMERA_CONNECTING,
    CAMERA_RUNNING,
    CAMERA_RETRYING,
    CAMERA_ENDED,  // its file has ended, or it was stopped
    CAMERA_FAILED, // its file cannot be read: a retry would not help
    CAMERA_PAUSED, // closed for now on request: it has no thread
};

// Flags of pictures with a counter each.
enum counted_flag { COUNTED_DAMAGED, COUNTED_INTERLACED, COUNTED_HDR, COUNTED_FLAGS };

// A change on its way to the loop: the state with its reason, or an alarm of the scene. A repeated
// failure is one change. The queue is short: if the loop is late, the oldest changes are lost.
struct camera_change {
    int64_t realtime_ns;
    bool is_alarm; // else a change of state
    enum camera_state state;
    char why[CAMERA_WHY_MAX]; // of the state, without secrets; "": none needed
    int64_t outage_ns;        // CAMERA_RUNNING: time without pictures before; 0: none
    enum alarm alarm;
    bool raised; // the alarm; else cleared
};

struct camera_description {
    // "cpu h264", and the stream in words; empty before the first picture.
    char decoder[CAMERA_TEXT_MAX], stream[CAMERA_TEXT_MAX];
    char profile[CAMERA_PROFILE_MAX]; // of the stream's codec; empty: unknown
    // Size of the last picture, and memory of its stream; width 0 before the first.
    struct stream_memory memory;
    struct demux_network network;
    struct last_error last_error;
};

struct camera_report {
    _Atomic int state; // enum camera_state
    _Atomic uint64_t reconnects;
    _Atomic int64_t next_try_ns; // CLOCK_MONOTONIC; in CAMERA_RETRYING
    const char *_Atomic backend; // name of its pictures' backend; NULL: none yet
    _Atomic int gpu;             // number of that backend's GPU; -1: none
    // From the input, one packet per picture:
    _Atomic uint64_t packets, bytes;
    _Atomic int64_t keyframe_ns; // between the last two keyframes; 0: unknown
    _Atomic bool has_clock;      // capture times are from sender reports, the next two valid:
    // Camera's clock minus ours when a picture's first packet arrives; if both clocks are right,
    // this is minus the transit time. And the mean deviation of single pictures from it.
    _Atomic int64_t offset_ns, jitter_ns;
    struct latency decoding; // from received to decoded
    // Pictures from the decoder, epoch of the last, and counts by flag:
    _Atomic uint64_t pictures;
    _Atomic uint32_t epoch; // 0: no picture yet
    _Atomic uint64_t flagged[COUNTED_FLAGS];
    _Atomic int decodes;        // enum decoded_pictures: decoded at present
    _Atomic uint64_t skipped;   // packets left out for that reason
    _Atomic uint64_t fallbacks; // times the cpu took over decoding from a device
    _Atomic uint64_t converted; // by libswscale, to a format that kernels read
    struct stage_watch stages;
    struct scene_report scene;
    struct event_queue *events; // for `changed`; NULL: it is not posted
    struct event changed;       // changes wait
    pthread_mutex_t lock;       // guards the next three
    struct camera_description description;
    struct camera_change changes[CAMERA_CHANGES_MAX];
    uint64_t added, taken;
    // Camera thread:
    struct camera_change last; // change of the state
    int64_t down_ns;           // CLOCK_MONOTONIC: since when it retries; 0: it does not
    unsigned alarms;           // bit 1 << enum alarm
    int64_t key_pts_ns;        // of the connection's last keyframe; INT64_MAX: unknown
};

// `changed`: callback of the event; NULL: none, nor a queue. The report must be zeroed.
void camera_report_open(struct camera_report *, void (*changed)(struct event *),
                        struct event_queue *);
void camera_report_close(struct camera_report *);

// --- camera thread
void camera_report_connect(struct camera_report *); // another connection begins
// `came_ns`: arrival of the packet's first network packet, since 1970.
void camera_report_packet(struct camera_report *, const struct packet *, int64_t came_ns);
// CAMERA_CONNECTING is no change, only its outcome is. `why`: the reason; NULL: none, or the same
// again.
void camera_report_state(struct camera_report *, enum camera_state, const char *why);
void camera_report_alarms(struct camera_report *, unsigned alarms); // raised now
void camera_report_picture(struct camera_report *, const struct frame *,
                           const struct stream_memory *);
// `profile` NULL: unknown.
void camera_report_stream(struct camera_report *, const char *decoder, const char *stream,
                          const char *profile);
void camera_report_network(struct camera_report *, const struct demux_network *);
void camera_report_error(struct camera_report *, const char *text);

// --- loop thread
// Returns false if no change waits.
bool camera_report_take_change(struct camera_report *, struct camera_change *ret);

// --- any thread
struct camera_description camera_report_describe(const struct camera_report *);
const char *camera_state_name(int state);
const char *counted_flag_name(enum counted_flag); // "damaged"

#endif
