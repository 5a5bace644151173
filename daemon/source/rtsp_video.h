// The video track of an RTSP camera, prepared for the decoder: codec parameters, and a packet of
// each access unit, with times that continue after restarts of the sender. One thread uses a track.
#ifndef FRAMED_DAEMON_SOURCE_RTSP_VIDEO_H
#define FRAMED_DAEMON_SOURCE_RTSP_VIDEO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packet;
struct rtsp_unit;
struct sdp_media;

struct rtsp_video {
    // Valid until the next rtsp_video_sets or rtsp_video_packet; the size is known from the first
    // keyframe on.
    struct AVCodecParameters *parameters;
    int rate_num, rate_den; // frames/s: measured, before that announced by the camera; 0/0: unknown
    // Private.
    struct AVCodecParserContext *parser; // reads the size from a keyframe
    struct AVCodecContext *parsing;
    struct AVPacket *packet;
    bool begun;
    int64_t pts_of_zero_ns; // pts of the track's time 0
    int64_t last_pts_ns, last_received_ns;
    int units;                    // since the start of the rate measurement
    int64_t first_ns, highest_ns; // of the track's time
};

// `sets`: parameter sets so far, with start codes; may be empty. Returns 0 or -ENOMEM.
int rtsp_video_open(struct rtsp_video **ret, const struct sdp_media *, const uint8_t *sets,
                    size_t bytes);
void rtsp_video_close(struct rtsp_video *); // accepts NULL
// Sets the parameter sets, as above, from the next unit on, a keyframe, whose size may differ. 0
// bytes: the previous ones stay. Returns 0 or -ENOMEM.
int rtsp_video_sets(struct rtsp_video *, const uint8_t *sets, size_t bytes);
// Makes a packet with a copy of the unit's data, valid until the next call. If a restarted sender
// begins with a keyframe, its time follows the last unit's by the difference of their arrivals;
// else it leaps. 0 or -ENOMEM.
int rtsp_video_packet(struct rtsp_video *, const struct rtsp_unit *, struct packet *ret);

#endif
