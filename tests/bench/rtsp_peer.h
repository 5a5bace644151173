// One client's connection to the benches' RTSP server: requests and answers. Runs on the server's
// thread.
#ifndef FRAMED_TESTS_BENCH_RTSP_PEER_H
#define FRAMED_TESTS_BENCH_RTSP_PEER_H

#include "tests/bench/rtp_sender.h"

enum { RTSP_REQUEST_MAX = 8192 };

// Shared by all clients of a server.
struct rtsp_cameras {
    const struct rtp_clip *rtp;
    struct rtp_record *records; // n, for the cameras at path /0, /1 and so on
    int n;
    int port;            // RTSP port
    int rtp_fd, rtcp_fd; // UDP, at udp_port and udp_port + 1
    int udp_port;
    double link;  // bits/s per camera
    int withhold; // one packet in this many; 0: none
    bool spread;  // camera i starts i/n into the clip
};

struct rtsp_peer {
    const struct rtsp_cameras *cameras;
    int fd;
    int64_t accepted_ns;
    struct sockaddr_in address;
    struct rtp_sender sender;
    char in[RTSP_REQUEST_MAX];
    size_t used; // bytes of `in`
    bool over;   // the client sent TEARDOWN
};

// Takes ownership of `fd`.
void rtsp_peer_open(struct rtsp_peer *, const struct rtsp_cameras *, int fd,
                    const struct sockaddr_in *);
void rtsp_peer_close(struct rtsp_peer *);
// Reads and answers requests. 0 or -EAGAIN: goes on; other negative errno: the client is gone.
int rtsp_peer_read(struct rtsp_peer *);

#endif
