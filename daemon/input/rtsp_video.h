// The video track of an RTSP camera as the decoder wants it: codec parameters, and a packet of each
// access unit, with times that go on over sessions. One thread uses a track.
#ifndef FRAMED_DAEMON_INPUT_RTSP_VIDEO_H
#define FRAMED_DAEMON_INPUT_RTSP_VIDEO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct AVCodecParameters;
struct packet;
struct rtsp_unit;
struct sdp_media;
struct rtsp_video;

// `sets`: the parameter sets known so far, with start codes; may be empty. 0, -ENOTSUP or -ENOMEM.
int rtsp_video_open(struct rtsp_video **ret, const struct sdp_media *, const uint8_t *sets,
                    size_t bytes);
void rtsp_video_close(struct rtsp_video *); // accepts NULL
// Valid until rtsp_video_sets and rtsp_video_packet.
const struct AVCodecParameters *rtsp_video_parameters(const struct rtsp_video *);
// The parameter sets, as above, that hold from the next unit on, a keyframe: its size may be
// another one. None (0 bytes) leave those before. 0 or -ENOMEM.
int rtsp_video_sets(struct rtsp_video *, const uint8_t *sets, size_t bytes);
// Makes a packet of the unit, whose data are copied. It is valid until the next call. 0 or -ENOMEM.
int rtsp_video_packet(struct rtsp_video *, const struct rtsp_unit *, struct packet *ret);
// The next unit is of another session, or of a sender that began anew: its time follows the last
// one's by as much as it arrived later.
void rtsp_video_restart(struct rtsp_video *);
// "h264 1920x1080 25 fps"; the size is known with the first keyframe.
const char *rtsp_video_describe(const struct rtsp_video *);
// Frames per second: as measured, before that as the camera says; 0/0: unknown.
void rtsp_video_rate(const struct rtsp_video *, int *num, int *den);

#endif
