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

// --- changes
// Changes of a running camera, on their way from its thread to the loop: its state with the reason,
// and the alarms of its scene. A repeated failure is one change. The queue is short: if the loop is
// late, the oldest changes are lost.

enum { CAMERA_CHANGES_MAX = 8, CAMERA_WHY_MAX = 256 };

enum camera_state {
    CAMERA_CONNECTING,
    CAMERA_RUNNING,
    CAMERA_RETRYING,
    CAMERA_ENDED,  // its file has ended, or it was stopped
    CAMERA_FAILED, // its file cannot be read: a retry would not help
    CAMERA_PAUSED, // closed for now on request: it has no thread
};

struct camera_change {
    int64_t realtime_ns;
    bool is_alarm; // else a change of state
    enum camera_state state;
    char why[CAMERA_WHY_MAX]; // of the state, without secrets; "": none needed
    int64_t outage_ns;        // CAMERA_RUNNING: time without pictures before; 0: none
    enum alarm alarm;
    bool raised; // the alarm; else cleared
};

struct camera_changes {
    struct event_queue *events; // for `posted`; NULL: it is not posted
    struct event posted;        // changes wait
    pthread_mutex_t lock;       // guards the next three
    struct camera_change list[CAMERA_CHANGES_MAX];
    uint64_t added, taken;
    // camera thread:
    enum camera_state state; // as reported last, with:
    char why[CAMERA_WHY_MAX];
    int64_t down_ns; // CLOCK_MONOTONIC: since when it retries; 0: it does not
    unsigned alarms; // bit 1 << enum alarm
};

void camera_changes_open(struct camera_changes *); // must be zeroed
void camera_changes_close(struct camera_changes *);

// Camera thread. CAMERA_CONNECTING is no change, only its outcome is. `why` NULL: no reason, or the
// same again.
void camera_changes_state(struct camera_changes *, enum camera_state, const char *why);
void camera_changes_alarms(struct camera_changes *, unsigned alarms); // raised now

// Loop thread. Returns false if no change waits.
bool camera_changes_take(struct camera_changes *, struct camera_change *ret);

// --- packets
// Figures from a camera's packets: their bytes, the distance of its keyframes, and the offset of
// its clock from ours. Ready when zeroed.

struct packet_report {
    _Atomic uint64_t bytes;
    _Atomic int64_t keyframe_ns; // between the last two keyframes; 0: unknown
    _Atomic bool has_clock;      // capture times are from sender reports, the next two valid:
    // Camera's clock minus ours when a picture's first packet arrives; if both clocks are right,
    // this is minus the transit time. And the mean deviation of single pictures from it.
    _Atomic int64_t offset_ns, jitter_ns;
    // Private:
    bool has_key;
    int64_t key_pts_ns;
};

void packet_report_connect(struct packet_report *); // another connection begins
// `came_ns`: arrival of its first network packet, since 1970.
void packet_report_read(struct packet_report *, const struct packet *, int64_t came_ns);

// --- report

// Flags of pictures with a counter each.
enum counted_flag { COUNTED_DAMAGED, COUNTED_INTERLACED, COUNTED_HDR, COUNTED_FLAGS };

enum { CAMERA_TEXT_MAX = 160, CAMERA_PROFILE_MAX = 64 };

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
    _Atomic uint64_t packets;    // read from the input, one per picture
    struct latency decoding;     // from received to decoded
    // Pictures from the decoder, epoch of the last, and counts by flag:
    _Atomic uint64_t pictures;
    _Atomic uint32_t epoch; // 0: no picture yet
    _Atomic uint64_t flagged[COUNTED_FLAGS];
    _Atomic int decodes;        // enum decoded_pictures: decoded at present
    _Atomic uint64_t skipped;   // packets left out for that reason
    _Atomic uint64_t fallbacks; // times the cpu took over decoding from a device
    _Atomic uint64_t converted; // by libswscale, to a format that kernels read
    struct packet_report of_packets;
    struct stage_watch stages;
    struct scene_report scene;
    struct camera_changes changes;
    pthread_mutex_t lock; // guards `description`
    struct camera_description description;
};

void camera_report_open(struct camera_report *);
void camera_report_close(struct camera_report *);

// --- camera thread
void camera_report_packet(struct camera_report *, const struct packet *);
// `why`: the reason; NULL: none, or the same again.
void camera_report_state(struct camera_report *, enum camera_state, const char *why);
void camera_report_picture(struct camera_report *, const struct frame *,
                           const struct stream_memory *);
// Sets which pictures are decoded now, and adds the packets left out since the last call.
void camera_report_skipped(struct camera_report *, enum decoded_pictures, int64_t packets);
// `profile` NULL: unknown.
void camera_report_stream(struct camera_report *, const char *decoder, const char *stream,
                          const char *profile);
void camera_report_network(struct camera_report *, const struct demux *);
void camera_report_error(struct camera_report *, const char *text);

// --- any thread
struct camera_description camera_report_describe(const struct camera_report *);
const char *camera_state_name(int state);
const char *counted_flag_name(enum counted_flag); // "damaged"

#endif
