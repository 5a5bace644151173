// An RTSP server on loopback that plays a clip as many cameras at once, one at each path /0, /1 and
// so on: over TCP (interleaved) and UDP, paced at the clip's rate and, within a picture, at the
// speed of a camera's network port. To each client a camera sends a keyframe at once, unless it is
// one of those that are spread. A thread of its own does the work; the functions are for any
// thread.
#ifndef FRAMED_TESTS_BENCH_RTSP_SERVER_H
#define FRAMED_TESTS_BENCH_RTSP_SERVER_H

#include "tests/bench/clip_units.h"

struct rtsp_server;

struct rtsp_server_options {
    const struct clip_units *clip; // the caller keeps it
    int cameras;
    double link;  // bits/s; 0: 100 Mbit/s, the port that most cameras have
    int withhold; // of so many packets one is numbered and not sent; 0: none
    bool spread;  // the cameras begin in different places of the clip: not with a keyframe
    int port;     // 0: any that is free
};

// Of all cameras.
struct rtsp_counts {
    uint64_t pictures, packets, withheld;
    double latest_ms; // by which a picture was sent behind its time, at worst
};

int rtsp_server_open(struct rtsp_server **ret, const struct rtsp_server_options *);
void rtsp_server_close(struct rtsp_server *);         // accepts NULL
int rtsp_server_pictures(const struct rtsp_server *); // of the clip
void rtsp_server_url(const struct rtsp_server *, int camera, char url[64]);
struct rtsp_counts rtsp_server_counts(const struct rtsp_server *);

// When a camera's client that said PLAY last was accepted, CLOCK_MONOTONIC; 0: nobody has played.
int64_t rtsp_server_accepted(const struct rtsp_server *, int camera);
// Pictures are counted in the order of showing, from the clip's first on, over all turns of the
// clip. Which one has this capture time (since
// 1970, by the server's sender reports); -1: nobody has played.
int64_t rtsp_server_index(const struct rtsp_server *, int camera, int64_t capture_ns);
// When the last packet of that picture was sent, or of the latest one that is the same in the clip,
// CLOCK_MONOTONIC; 0: it was not.
int64_t rtsp_server_sent(const struct rtsp_server *, int camera, int64_t index);

#endif
