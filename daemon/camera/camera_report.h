// What a camera's thread says of its work, for status, metrics and the supervisor. The thread
// writes; any thread reads.
#ifndef FRAMED_DAEMON_CAMERA_CAMERA_REPORT_H
#define FRAMED_DAEMON_CAMERA_CAMERA_REPORT_H

#include <pthread.h>

#include "config/config.h"
#include "daemon/base/last_error.h"
#include "daemon/base/latency.h"
#include "daemon/base/stage_watch.h"
#include "daemon/camera/camera_changes.h"
#include "daemon/camera/packet_report.h"
#include "daemon/decode/frame.h"
#include "daemon/input/demux.h"
#include "daemon/scene/scene_report.h"

// The flags of pictures that are counted.
enum counted_flag { COUNTED_DAMAGED, COUNTED_INTERLACED, COUNTED_HDR, COUNTED_FLAGS };

enum { CAMERA_TEXT_MAX = 160, CAMERA_PROFILE_MAX = 64 };

struct camera_description {
    // "cpu h264", and what the stream is; empty before the first picture.
    char decoder[CAMERA_TEXT_MAX], stream[CAMERA_TEXT_MAX];
    char profile[CAMERA_PROFILE_MAX]; // of the stream's codec; empty: not known
    // Of the last picture: its size, and what memory its stream takes; width 0 before the first.
    struct stream_memory memory;
    struct demux_network network;
    struct last_error last_error;
};

struct camera_report {
    _Atomic int state; // enum camera_state
    _Atomic uint64_t reconnects;
    _Atomic int64_t next_try_ns; // CLOCK_MONOTONIC; of CAMERA_RETRYING
    const char *_Atomic backend; // that its pictures go to, its name; NULL: to none yet
    _Atomic int gpu;             // the number of that backend's GPU; -1: it has none
    _Atomic uint64_t packets;    // that the input gave, one a picture
    struct latency decoding;     // from received to decoded
    // Pictures that the decoder gave out, and of these:
    _Atomic uint64_t pictures;
    _Atomic uint32_t epoch; // of the last; 0: there was none
    _Atomic uint64_t flagged[COUNTED_FLAGS];
    _Atomic int decodes;        // enum decoded_pictures: what is decoded now
    _Atomic uint64_t skipped;   // packets that were left out by that
    _Atomic uint64_t fallbacks; // times that the cpu took over decoding from a device
    _Atomic uint64_t converted; // by libswscale, to a format that kernels read
    struct packet_report of_packets;
    struct stage_watch stages;
    struct scene_report scene;
    struct camera_changes changes;
    pthread_mutex_t lock; // of what follows
    struct camera_description description;
};

void camera_report_open(struct camera_report *);
void camera_report_close(struct camera_report *);

// --- camera thread
void camera_report_connect(struct camera_report *); // another connection has begun
void camera_report_packet(struct camera_report *, const struct packet *);
// With the reason; NULL: there is none, or that of before.
void camera_report_state(struct camera_report *, enum camera_state, const char *why);
void camera_report_alarms(struct camera_report *); // of the scene may be others now
void camera_report_picture(struct camera_report *, const struct frame *,
                           const struct stream_memory *);
// What is decoded by now, and how many packets were left out since this was last said.
void camera_report_skipped(struct camera_report *, enum decoded_pictures, int64_t packets);
// `profile` NULL: not known.
void camera_report_stream(struct camera_report *, const char *decoder, const char *stream,
                          const char *profile);
void camera_report_network(struct camera_report *, const struct demux *);
void camera_report_error(struct camera_report *, const char *text);

// --- any thread
struct camera_description camera_report_describe(const struct camera_report *);
const char *camera_state_name(int state);
const char *counted_flag_name(enum counted_flag); // "damaged"

#endif
