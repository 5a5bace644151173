// An RTSP server on loopback that plays a clip as many cameras at once, at paths /0, /1 and so on:
// over TCP (interleaved) and UDP, paced at the clip's rate and, within a picture, at the speed of a
// camera's network port. Each client gets a keyframe at once unless the cameras are spread. The
// work is done by a thread of its own; the functions are for any thread.
#ifndef FRAMED_TESTS_BENCH_RTSP_SERVER_H
#define FRAMED_TESTS_BENCH_RTSP_SERVER_H

#include "tests/bench/clip_units.h"

struct rtsp_server;

struct rtsp_server_options {
    const struct clip_units *clip; // the caller keeps it
    int cameras;
    double link;  // bits/s; 0: 100 Mbit/s, the port of most cameras
    int withhold; // one packet in this many gets a number but is not sent; 0: none
    bool spread;  // the cameras start at different places of the clip, not with a keyframe
    int port;     // 0: any free port
};

// Totals of all cameras.
struct rtsp_counts {
    uint64_t pictures, packets, withheld;
    double latest_ms; // maximum delay of a picture
};

int rtsp_server_open(struct rtsp_server **ret, const struct rtsp_server_options *);
void rtsp_server_close(struct rtsp_server *);         // accepts NULL
int rtsp_server_pictures(const struct rtsp_server *); // of the clip
void rtsp_server_url(const struct rtsp_server *, int camera, char url[64]);
struct rtsp_counts rtsp_server_counts(const struct rtsp_server *);

// Returns when the camera's latest client that sent PLAY was accepted, CLOCK_MONOTONIC; 0: none.
int64_t rtsp_server_accepted(const struct rtsp_server *, int camera);
// Returns the index of the picture with this capture time (since 1970, by the server's sender
// reports), counted in display order from the clip's first over all turns; -1: no client has
// played.
int64_t rtsp_server_index(const struct rtsp_server *, int camera, int64_t capture_ns);
// Returns when that picture's last packet was sent, CLOCK_MONOTONIC; 0: never. After further turns
// of the clip: when its latest repetition was.
int64_t rtsp_server_sent(const struct rtsp_server *, int camera, int64_t index);

#endif
