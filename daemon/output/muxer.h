// Writes packets to a container, or to an RTSP server, with libavformat. A file can be played
// wherever its writing ends: MP4 consists of fragments, Matroska of clusters; each muxer_flush ends
// the open one. One thread at a time uses a muxer.
#ifndef FRAMED_DAEMON_OUTPUT_MUXER_H
#define FRAMED_DAEMON_OUTPUT_MUXER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/output/segment.h"

struct AVCodecParameters;
struct AVIOContext;
struct AVPacket;
struct muxer;

// --- times of packets
// A camera's own times may restart with each connection, jump, or be missing; a file's times have
// to rise. One thread uses a timeline; zeroed it is ready.
enum { TIMELINE_DELAY_MAX = 16 }; // pictures: the most that H.264 and H.265 may reorder by

// In ns; dts rises from packet to packet and never exceeds pts.
struct packet_times {
    int64_t pts, dts;
};

struct timeline {
    bool begun;
    int64_t pts_ns, received_ns; // of the last packet, not shifted
    int64_t shift_ns;            // from the camera's times to continuous ones
    int64_t interval_ns;         // between the last two pictures, by dts; 0: unknown
    int delay;                   // pictures that may be decoded ahead of the one shown
    int64_t last_dts;
    int n;                                   // entries of:
    int64_t pending[TIMELINE_DELAY_MAX + 1]; // pts not yet used as dts, rising
};

// Call before a keyframe: dts lags pts by `delay` pictures, or by more if the stream needed more.
void timeline_begin(struct timeline *, int delay);
// Returns the times of the next packet, in decoding order. `pts_ns` INT64_MIN: unknown. If the
// camera's times restart, they continue from the last packet, later by the time between arrivals.
struct packet_times timeline_next(struct timeline *, int64_t pts_ns, int64_t received_ns);

// --- the muxer
// Supported codecs, as errors name them.
#define MUXER_CODECS "h264, h265 and mjpeg"
// Completes a stream's parameters from a keyframe: its parameter sets, which may have changed, and
// the size of its pictures. Returns 0; -ENOTSUP: the codec is none of these; or -ENOMEM.
int muxer_complete_stream(struct AVCodecParameters *, const struct AVPacket *keyframe);
// Returns true if packets of both streams fit into one file.
bool muxer_same_stream(const struct AVCodecParameters *, const struct AVCodecParameters *);

// Begins an MP4 or Matroska file, created at `begin_ns` since 1970, in an open and empty segment,
// which outlives the muxer. Returns 0; -EINVAL if the stream lacks its size or readable parameter
// sets; the error of a write; or -ENOMEM.
int muxer_open_file(struct muxer **ret, struct segment *, const struct AVCodecParameters *,
                    int64_t begin_ns);
// Connects to the sink's server and announces the stream. Blocks at most 10 s to connect and 5 s
// per packet, and only until *stop is set. Returns 0, -EACCES if the password is refused, or
// another negative errno, with one sentence without a password in `why`.
int muxer_open_server(struct muxer **ret, const struct output_config *,
                      const struct AVCodecParameters *, const _Atomic bool *stop, char *why,
                      size_t size);
// Writes a packet; the first one is presented at time 0. A file gets it with the next one, which
// shows its duration. Returns 0, or a negative errno: close the muxer then.
int muxer_write(struct muxer *, const struct AVPacket *, const struct packet_times *);
bool muxer_holds(const struct muxer *); // true if the file has not got the last packet
// Written packets can be played from now on, and the segment is whole. The last one gets the
// duration `last_ns`; -1: the next one shows it. Returns the same.
int muxer_flush(struct muxer *, int64_t last_ns);
// Ends the file, which has got all packets, or the session with the server. Returns the same.
int muxer_finish(struct muxer *);
void muxer_close(struct muxer *); // writes nothing to a file; accepts NULL

// --- index of the keyframes of a fragmented MP4
// The mfra box at the file's end, which lets players seek without reading the file from the start.
// Bounded: for a long file it lists only every second keyframe, or every fourth and so on. Zeroed
// it is ready.
enum { MP4_INDEX_MAX = 16384 }; // keyframes: four and a half hours of one each second

struct mp4_index {
    struct {
        int64_t pts;    // in the track's time base
        int64_t offset; // of the moof that begins with it
    } keyframe[MP4_INDEX_MAX];
    int n;
    int64_t seen; // keyframes so far...
    int skips;    // ...of which one in 2^skips is in the index
};

// Adds the file's next keyframe.
void mp4_index_add(struct mp4_index *, int64_t pts, int64_t offset);
// Appends the box for track 1 to the file.
void mp4_index_write(const struct mp4_index *, struct AVIOContext *);

#endif
