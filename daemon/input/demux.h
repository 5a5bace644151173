// Packets of one camera: H.264, H.265 and JPEG over RTSP by a client of our own (demux_rtsp.c), all
// else by libavformat (demux_libav.c). What may block has a deadline of its
// own and ends early on *stop. One thread (the camera's) uses a demux.
#ifndef FRAMED_DAEMON_INPUT_DEMUX_H
#define FRAMED_DAEMON_INPUT_DEMUX_H

#include <stdatomic.h>

#include "config/config.h"
#include "daemon/base/stage_watch.h"

struct AVPacket;
struct AVCodecParameters;
struct demux;
struct demux_memory;

struct packet {          // of one picture
    struct AVPacket *av; // the demux's own; valid until the next demux_read or demux_close
    size_t bytes;        // that it has
    int64_t pts_ns;      // INT64_MIN where the stream gives none
    int64_t received_ns; // CLOCK_MONOTONIC: its first network packet came; of a file: it was read
    int64_t arrived_ns;  // CLOCK_MONOTONIC: its last network packet came; of a file: received_ns
    int64_t capture_ns;  // since 1970
    bool capture_clock;  // capture_ns comes from a sender report
    bool keyframe;       // as the demuxer says
    bool disposable;     // no other picture refers to it, as far as the demuxer knows
    bool damaged;        // a part of it is missing; AV_PKT_FLAG_CORRUPT is set, too
    bool reference_lost; // pictures before it are missing that it may refer to
    bool old;            // an earlier connection sent it: it is decoded, but not shown
    bool hole;           // RTP packets are missing in it or before it, since the packet before
    bool waited;         // the demux waited for it: else it may have lain ready before received_ns
    bool guessed;        // so is pts_ns: the stream's own time of it is wrong
};

// What was learnt of a camera and helps its next connections. The owner keeps it as long as the
// camera; the thread that uses the camera's demux uses it.
int demux_memory_open(struct demux_memory **ret); // 0 or -ENOMEM
void demux_memory_close(struct demux_memory *);   // accepts NULL
// Whether a camera that has just refused the password takes another scheme of authentication next,
// which may be tried at once.
bool demux_memory_has_other_login(const struct demux_memory *);
// How long the camera may keep a session of RTSP whose client is gone.
int64_t demux_memory_session_ns(const struct demux_memory *);

enum { DEMUX_WHY_MAX = 512 }; // bytes for a sentence on why an input failed: with a fingerprint

// Connects, or opens a file, within connect_timeout, and chooses the video track. RTSP's answer to
// PLAY, and the first picture, may be on their way still. `why` (of `size` bytes) gets
// one sentence for people when it fails, never with a password in it. Returns 0; -ETIMEDOUT,
// -ECANCELED (*stop), -EACCES (authentication refused), -EPERM (the camera forbids the stream),
// -EINVAL (no video track, or an option that the demuxer does not know), -EMEDIUMTYPE (RTSP in a
// codec that only libavformat reads, which the URL or `tls` does not allow), or what libavformat
// says as negative errno: -EIO where it has none, or where the input ends before there is a stream.
// `memory` (NULL: nothing is remembered) outlives the demux. `stages` (NULL: nobody watches) is
// told of each step that may block, with its deadline.
int demux_open(struct demux **ret, const struct camera_config *, struct demux_memory *memory,
               const _Atomic bool *stop, struct stage_watch *stages, char *why, size_t size);
// Parameters of the video track, valid until demux_close. An RTSP camera's say no size.
const struct AVCodecParameters *demux_parameters(const struct demux *);
// What it is, for one log line ("h264 1920x1080 25 fps over rtsp/tcp"); complete with the first
// packet.
const char *demux_describe(const struct demux *);
// How its pictures are to be shown, where they do not say so themselves: enum orientation, or
// -EINVAL for what no quarter turns and mirrors make.
int demux_orientation(const struct demux *);
// Nominal frames per second; 0/0: unknown.
void demux_rate(const struct demux *, int *num, int *den);
// What can come back: rtsp, sockets, fifos. Their end is an outage, that of a file or pipe is none.
bool demux_is_live(const char *url);
// Whether each packet says whether data are missing: the decoder then need not find out.
bool demux_knows_losses(const struct demux *);
// What came over RTP, in all connections of the camera; packets are RTP packets.
struct demux_network {
    const char *transport;   // "tcp", "udp", "multicast"; NULL: libavformat reads this input
    const char *picture_end; // how the end of a picture is known (picture_end_name)
    uint64_t packets, lost;  // ours that came in time, and that did not
    uint64_t reordered;      // of `packets`: came behind a later one
    uint64_t late;           // of `lost`: came when they had been given up
    uint64_t duplicate;      // came twice
    uint64_t foreign;        // were not of the stream
    uint64_t restarts;       // of the sender: its numbers began anew
    uint64_t overruns;       // packets that this box's kernel had no room for; lost, too
    int64_t arrival_ns;      // from a picture's first packet to its last, on average
};
void demux_network(const struct demux *, struct demux_network *ret);
// How long this input may be silent.
int64_t demux_patience_ns(const struct demux *);
// The next packet of the video track. Returns 0; -ENODATA at the end; -EREMCHG: the stream goes on
// as another one, over another connection or from a sender that began anew: what came before is
// whole, the next packet is a keyframe; -EPROTO at the end where a file is cut short, as far as its
// container tells (MPEG-TS and raw streams do not); -ETIMEDOUT after demux_patience_ns of silence;
// -ETIME: an RTSP camera sends no pictures of the codec that it announced;
// -ERESTART: the packets' numbers went back, from which libavformat does not recover; -EACCES: the
// password was refused after all; -ECANCELED; negative errno.
int demux_read(struct demux *, struct packet *);
// Why demux_read returned an error, one sentence without a secret; "": the error says all.
const char *demux_why(const struct demux *);
int demux_rewind(struct demux *); // to the start, for `loop`; negative errno where it cannot seek
void demux_close(struct demux *); // within close_timeout; accepts NULL

#endif
