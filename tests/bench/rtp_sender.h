// The media of one RTSP client of the benches' server: RTP and sender reports over TCP
// (interleaved) or UDP, paced like a camera's. Runs on the server's thread; any thread may read its
// record.
#ifndef FRAMED_TESTS_BENCH_RTP_SENDER_H
#define FRAMED_TESTS_BENCH_RTP_SENDER_H

#include <netinet/in.h>
#include <stdatomic.h>

#include "tests/bench/rtp_packets.h"

enum { RTP_OUT_BYTES = 32768, RTP_BURST_BYTES = 16384, RTP_BURST_PACKETS = 64 };

// Sending times of a camera to its latest client that sent PLAY. Times are CLOCK_MONOTONIC.
struct rtp_record {
    _Atomic int64_t *sent_ns; // per picture of the clip, in display order: the latest time at which
                              // its last packet was sent; 0: never
    _Atomic int64_t accepted_ns; // of the client's connection; 0: no client has played
    _Atomic int64_t wall_ns;     // since 1970: of the first picture in display order
    _Atomic uint64_t pictures, packets, withheld;
    _Atomic int64_t latest_ns; // maximum delay of a picture
};

struct rtp_sender {
    const struct rtp_clip *rtp;
    struct rtp_record *record;
    double link;  // bits/s of the camera's network port
    int withhold; // one packet in this many gets a number but is not sent; 0: none
    int fd;       // RTSP connection
    bool udp;
    int channel;                        // TCP: of RTP; RTCP uses the next
    int rtp_fd, rtcp_fd;                // UDP: the server's sockets
    struct sockaddr_in rtp_to, rtcp_to; // UDP: the client's
    bool playing;
    bool full;           // the client's socket is full and watched for room
    int64_t first;       // first unit sent to the client
    int64_t index;       // current unit, counted over all turns of the clip
    int payload;         // next one of that unit to send
    int64_t start_ns;    // due time of unit 0
    int64_t due_ns;      // due time of the next burst
    int64_t reported_ns; // time of the last sender report
    uint32_t base, ssrc; // base: the RTP time of unit 0
    uint16_t sequence;
    uint64_t octets, counted; // octets: for the reports; counted: packets, sent or withheld
    uint8_t out[RTP_OUT_BYTES];
    size_t used, sent;                 // bytes of `out`
    uint16_t sizes[RTP_BURST_PACKETS]; // UDP: of the packets in `out`
    int n_sizes;
    _Atomic int64_t *stamp; // for the picture whose last packet is in `out`; NULL: none
};

// Sends unit `first` of the clip at once; the following units are sent at the camera's own times,
// `phase_ns` after whole intervals of CLOCK_MONOTONIC.
void rtp_sender_play(struct rtp_sender *, int first, int64_t phase_ns);
uint32_t rtp_sender_time(const struct rtp_sender *); // of the current unit
// Sends what is due. Returns 0; -EAGAIN: the client's socket is full; other errno: it is gone.
int rtp_sender_send(struct rtp_sender *);
// Queues RTSP bytes before later media. Returns 0 or a negative errno as above; -ENOBUFS: no room.
int rtp_sender_reply(struct rtp_sender *, const char *text, size_t bytes);
int rtp_sender_flush(struct rtp_sender *); // 0 or a negative errno as above

#endif
