// Writes packets to a container, or to an RTSP server, with libavformat. A file can be played
// wherever its writing ends: MP4 consists of fragments, Matroska of clusters; each muxer_flush ends
// the open one. One thread at a time uses a muxer.
#ifndef FRAMED_DAEMON_OUTPUT_MUXER_H
#define FRAMED_DAEMON_OUTPUT_MUXER_H

#include <stdatomic.h>

#include "config/config.h"
#include "daemon/output/timeline.h"

struct AVCodecParameters;
struct AVPacket;
struct muxer;

// Supported codecs, as errors name them.
#define MUXER_CODECS "h264, h265 and mjpeg"
bool muxer_takes(const struct AVCodecParameters *);
// Completes a stream's parameters from a keyframe: its parameter sets, which may have changed, and
// the size of its pictures. Returns 0 or a negative errno.
int muxer_complete_stream(struct AVCodecParameters *, const struct AVPacket *keyframe);
// Returns true if packets of both streams fit into one file.
bool muxer_same_stream(const struct AVCodecParameters *, const struct AVCodecParameters *);

// Writes all bytes at `offset` of the file. Returns 0 or a negative errno.
typedef int muxer_write_fn(void *opaque, const void *data, size_t size, int64_t offset);

// Opens an MP4 or Matroska file, created at `begin_ns` since 1970. Returns 0; -EINVAL if the stream
// lacks its size or readable parameter sets; the error of `write`; or -ENOMEM.
int muxer_open_file(struct muxer **ret, enum protocol, const struct AVCodecParameters *,
                    int64_t begin_ns, muxer_write_fn *write, void *opaque);
// Connects to the sink's server and announces the stream. Blocks at most 10 s to connect and 5 s
// per packet, and only until *stop is set. Returns 0, -EACCES if the password is refused, or
// another negative errno, with one sentence without a password in `why`.
int muxer_open_server(struct muxer **ret, const struct output_config *,
                      const struct AVCodecParameters *, const _Atomic bool *stop, char *why,
                      size_t size);
// Writes a packet, with times from the start of the file. Returns 0, or a negative errno: close the
// muxer then.
int muxer_write(struct muxer *, const struct AVPacket *, const struct packet_times *,
                int64_t duration_ns);
int muxer_flush(struct muxer *);           // the same; written packets can be played from now on
int64_t muxer_bytes(const struct muxer *); // size of the file so far
// Ends the file, or the session with the server. Returns 0 or a negative errno.
int muxer_finish(struct muxer *);
void muxer_close(struct muxer *); // writes nothing to a file; accepts NULL

#endif
