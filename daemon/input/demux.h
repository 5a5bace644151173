// Packets of one camera, by libavformat: RTSP, files, raw and NUT streams. What may block has a
// deadline of its own and ends early on *stop. One thread (the camera's) uses a demux.
#ifndef FRAMED_DAEMON_INPUT_DEMUX_H
#define FRAMED_DAEMON_INPUT_DEMUX_H

#include <stdatomic.h>

#include "config/config.h"
#include "daemon/base/stage_watch.h"

struct AVPacket;
struct AVCodecParameters;
struct demux;

struct packet {
    struct AVPacket *av; // the demux's own; valid until the next demux_read or demux_close
    int64_t pts_ns;      // INT64_MIN where the stream gives none
    int64_t received_ns; // CLOCK_MONOTONIC
    int64_t capture_ns;  // since 1970
    bool capture_clock;  // capture_ns comes from a sender report
    bool keyframe;       // as the demuxer says
};

// Opens and probes within connect_timeout and chooses the video track. `why` (of `size` bytes) gets
// one sentence for people when it fails, never with a password in it. Returns 0; -ETIMEDOUT,
// -ECANCELED (*stop), -EACCES (authentication refused), -EINVAL (no video track, or an option that
// the demuxer does not know), or what libavformat says as negative errno: -EIO where it has none,
// or where the input ends before there is a stream.
// `stages` (NULL: nobody watches) is told of each step that may block, with its deadline.
int demux_open(struct demux **ret, const struct camera_config *, const _Atomic bool *stop,
               struct stage_watch *stages, char *why, size_t size);
// Parameters of the video track, valid until demux_close.
const struct AVCodecParameters *demux_parameters(const struct demux *);
// What it is, for one log line ("h264 1920x1080 25 fps over rtsp/tcp").
const char *demux_describe(const struct demux *);
// How its pictures are to be shown, where they do not say so themselves: enum orientation, or
// -EINVAL for what no quarter turns and mirrors make.
int demux_orientation(const struct demux *);
// Nominal frames per second; 0/0: unknown.
void demux_rate(const struct demux *, int *num, int *den);
// What can come back: rtsp, sockets, fifos. Their end is an outage, that of a file or pipe is none.
bool demux_is_live(const char *url);
// The next packet of the video track. Returns 0; -ENODATA at the end; -EPROTO there where
// a file is cut short, as far as its container tells (MPEG-TS and raw streams do not); -ETIMEDOUT
// after media_timeout of silence; -ERESTART: the packets' numbers went back, from which libavformat
// does not recover; -ECANCELED; negative errno.
int demux_read(struct demux *, struct packet *);
int demux_rewind(struct demux *); // to the start, for `loop`; negative errno where it cannot seek
void demux_close(struct demux *); // within close_timeout; accepts NULL

#endif
