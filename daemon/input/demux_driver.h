// The interface of one kind of demux, with the functions of demux.h.
#ifndef FRAMED_DAEMON_INPUT_DEMUX_DRIVER_H
#define FRAMED_DAEMON_INPUT_DEMUX_DRIVER_H

#include <stdatomic.h>

#include "daemon/input/replay.h"
#include "daemon/input/url.h"
#include "daemon/rtsp/rtsp_session.h"

struct AVCodecParameters;
struct demux;
struct demux_network;
struct packet;
struct stage_watch;

struct demux_memory {
    struct rtp_statistics sessions; // packet counts of past sessions
    uint64_t overruns;              // of past sessions
    int64_t arrival_ns;             // as in demux_network
    struct rtsp_memory rtsp;
    struct replay_memory replay;
    bool accepted;       // the last try with user and password delivered a picture
    bool answers;        // it has answered requests while playing
    bool deaf;           // a connection that answered none after PLAY was replaced
    int64_t connect_ns;  // from connecting to the answer to PLAY, the last time
    int64_t answer_ns;   // how long to wait for an answer; 0: the default
    int64_t silence_ns;  // how long to wait for a picture while the interval is unknown or the
                         // camera answers requests; 0: the default
    int64_t interval_ns; // mean interval of its pictures, by their timestamps
    int intervals;       // number of intervals in the mean, up to a limit
};

struct demux_context { // arguments of demux_open
    const struct camera_config *config;
    struct demux_memory *memory; // NULL: nothing is remembered
    const _Atomic bool *stop;
    struct stage_watch *stages;
};

// How long an input of unknown picture interval may be silent.
static const int64_t DEMUX_PATIENCE_NS = 5 * INT64_C(1000000000);

struct demux_driver {
    int (*open)(struct demux **ret, const struct url_input *, const struct demux_context *,
                char *why, size_t size);
    const struct AVCodecParameters *(*parameters)(const struct demux *);
    const char *(*describe)(const struct demux *);
    int (*orientation)(const struct demux *);
    void (*rate)(const struct demux *, int *num, int *den);
    void (*network)(const struct demux *, struct demux_network *ret); // NULL: no RTP
    int64_t (*patience_ns)(const struct demux *);
    int (*read)(struct demux *, struct packet *);
    const char *(*why)(const struct demux *);
    int (*rewind)(struct demux *);
    void (*close)(struct demux *);
    bool knows_losses;
};

struct demux { // first member of each kind
    const struct demux_driver *driver;
    const struct url_input *source;
};

extern const struct demux_driver demux_libav, demux_rtsp;

#endif
