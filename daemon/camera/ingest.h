// Packets of one camera, by libavformat: RTSP, files, raw and NUT streams. What may block has a
// deadline of its own and ends early on *stop. One thread (the camera's) uses an ingest.
#ifndef FRAMED_DAEMON_CAMERA_INGEST_H
#define FRAMED_DAEMON_CAMERA_INGEST_H

#include <stdatomic.h>

#include "config/config.h"

struct AVPacket;
struct AVCodecParameters;
struct ingest;

struct packet {
    struct AVPacket *av; // the ingest's own; valid until the next ingest_read or ingest_close
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
int ingest_open(struct ingest **ret, const struct camera_config *, const _Atomic bool *stop,
                char *why, size_t size);
// Parameters of the video track, valid until ingest_close.
const struct AVCodecParameters *ingest_parameters(const struct ingest *);
// What it is, for one log line ("h264 1920x1080 25 fps over rtsp/tcp").
const char *ingest_describe(const struct ingest *);
// How its pictures are to be shown, where they do not say so themselves: enum orientation, or
// -EINVAL for what no quarter turns and mirrors make.
int ingest_orientation(const struct ingest *);
// Nominal frames per second; 0/0: unknown.
void ingest_rate(const struct ingest *, int *num, int *den);
// What can come back: rtsp, sockets, fifos. Their end is an outage, that of a file or pipe is none.
bool ingest_is_live(const char *url);
// The next packet of the video track. Returns 0; -ENODATA at the end; -EPROTO there where
// a file is cut short, as far as its container tells (MPEG-TS and raw streams do not); -ETIMEDOUT
// after media_timeout of silence; -ERESTART: the packets' numbers went back, from which libavformat
// does not recover; -ECANCELED; negative errno.
int ingest_read(struct ingest *, struct packet *);
int64_t ingest_read_ns(const struct ingest *); // the longest that it takes
int ingest_rewind(struct ingest *); // to the start, for `loop`; negative errno where it cannot seek
void ingest_close(struct ingest *); // within close_timeout; accepts NULL

#endif
