// The media of one RTSP client of the benches' server: RTP and sender reports over TCP
// (interleaved) or UDP, paced as a camera paces them. One thread, the server's; what it records,
// any thread may read.
#ifndef FRAMED_TESTS_BENCH_RTP_SENDER_H
#define FRAMED_TESTS_BENCH_RTP_SENDER_H

#include <netinet/in.h>
#include <stdatomic.h>

#include "tests/bench/rtp_packets.h"

enum { RTP_OUT_BYTES = 32768, RTP_BURST_BYTES = 16384, RTP_BURST_PACKETS = 64 };

// What a camera sent to the client that said PLAY last. Times are CLOCK_MONOTONIC.
struct rtp_record {
    _Atomic int64_t *sent_ns; // of each picture, by its place in the clip, in the order of showing:
                              // the latest time at which its last packet was sent; 0: never
    _Atomic int64_t accepted_ns; // the client's connection; 0: nobody has played
    _Atomic int64_t wall_ns;     // since 1970: of the picture that is shown first
    _Atomic uint64_t pictures, packets, withheld;
    _Atomic int64_t latest_ns; // by which a picture was behind its time, at worst
};

struct rtp_sender {
    const struct rtp_clip *rtp;
    struct rtp_record *record;
    double link;  // bits/s of the camera's network port
    int withhold; // of so many packets one is numbered, but not sent; 0: none
    int fd;       // of the RTSP connection
    bool udp;
    int channel;                        // TCP: of RTP; RTCP has the next
    int rtp_fd, rtcp_fd;                // UDP: the server's sockets
    struct sockaddr_in rtp_to, rtcp_to; // UDP: the client's
    bool playing;
    bool full;           // the client's socket; it is watched for room
    int64_t first;       // unit that the client was sent
    int64_t index;       // of the unit under way, counted from the clip's first, over all its turns
    int payload;         // of that unit, next to be sent
    int64_t start_ns;    // when unit 0 was due
    int64_t due_ns;      // of the next burst
    int64_t reported_ns; // when the last sender report was sent
    uint32_t base, ssrc; // base: the RTP time of unit 0
    uint16_t sequence;
    uint64_t octets, counted; // of the reports; packets, sent or withheld
    uint8_t out[RTP_OUT_BYTES];
    size_t used, sent;                 // bytes of `out`
    uint16_t sizes[RTP_BURST_PACKETS]; // UDP: of the packets in `out`
    int n_sizes;
    _Atomic int64_t *stamp; // of the picture whose last packet is in `out`; NULL: none is
};

// Begins with unit `first` of the clip at once; the following ones come at the camera's own times,
// which lie `phase_ns` behind whole intervals of CLOCK_MONOTONIC.
void rtp_sender_play(struct rtp_sender *, int first, int64_t phase_ns);
uint32_t rtp_sender_time(const struct rtp_sender *); // of the unit under way
// Sends what is due. 0; -EAGAIN: the client's socket is full; other negative errno: it is gone.
int rtp_sender_send(struct rtp_sender *);
// Bytes of RTSP, ahead of what is composed later. 0 or negative errno as above; -ENOBUFS: no room.
int rtp_sender_reply(struct rtp_sender *, const char *text, size_t bytes);
int rtp_sender_flush(struct rtp_sender *); // 0 or negative errno as above

#endif
