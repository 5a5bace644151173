// Packets into a container, or to an RTSP server, by libavformat. A file is written so that it can
// be played wherever its writing ends: MP4 in fragments, Matroska in clusters; each muxer_flush
// ends the one that is open. One thread at a time uses a muxer.
#ifndef FRAMED_DAEMON_OUTPUT_MUXER_H
#define FRAMED_DAEMON_OUTPUT_MUXER_H

#include <stdatomic.h>

#include "config/config.h"
#include "daemon/output/timeline.h"

struct AVCodecParameters;
struct AVPacket;
struct muxer;

// What a muxer can carry, as errors name it.
#define MUXER_CODECS "h264, h265 and mjpeg"
bool muxer_takes(const struct AVCodecParameters *);
// Completes what is known of a stream by a keyframe of it: its parameter sets, which may have
// changed, and the size of its pictures. 0 or negative errno.
int muxer_complete_stream(struct AVCodecParameters *, const struct AVPacket *keyframe);
// Whether packets of both fit into one file.
bool muxer_same_stream(const struct AVCodecParameters *, const struct AVCodecParameters *);

// Writes all of the bytes at `offset` of the file. 0 or negative errno.
typedef int muxer_write_fn(void *opaque, const void *data, size_t size, int64_t offset);

// PROTOCOL_MP4 or PROTOCOL_MKV; `begin_ns` since 1970 is written into it. 0; -EINVAL: the stream
// lacks its size or parameter sets that can be read; what `write` returned; -ENOMEM.
int muxer_open_file(struct muxer **ret, enum protocol, const struct AVCodecParameters *,
                    int64_t begin_ns, muxer_write_fn *write, void *opaque);
// Connects to the server of the sink and announces the stream. Blocks for at most 10 s for
// connecting and 5 s for each packet, and until *stop is set. 0, -EACCES where the password is
// refused, or another negative errno, with one sentence without a password in `why`.
int muxer_open_server(struct muxer **ret, const struct output_config *,
                      const struct AVCodecParameters *, const _Atomic bool *stop, char *why,
                      size_t size);
// The packet's times count from the begin of the file. 0, or negative errno: the muxer is to be
// closed.
int muxer_write(struct muxer *, const struct AVPacket *, const struct packet_times *,
                int64_t duration_ns);
int muxer_flush(struct muxer *);           // the same; what was written can be played from now on
int64_t muxer_bytes(const struct muxer *); // of the file, as far as it was written
// Ends the file, or takes leave of the server. 0 or negative errno.
int muxer_finish(struct muxer *);
void muxer_close(struct muxer *); // writes nothing to a file; accepts NULL

#endif
