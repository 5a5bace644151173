// Packets from which another decoder can carry on: all since the last keyframe whose picture was
// given out. In presentation order nothing after such a picture needs anything before it. One
// thread uses it; zeroed it is ready.
#ifndef FRAMED_DAEMON_DECODE_PACKET_HISTORY_H
#define FRAMED_DAEMON_DECODE_PACKET_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

struct AVPacket;

enum { PACKET_HISTORY_MAX = 300 }; // packets; a usual distance of keyframes is up to 250

struct packet_history {
    struct AVPacket
        *packet[PACKET_HISTORY_MAX]; // a ring; allocated once, unreferenced where unused
    int64_t first;                   // serial of the oldest; the others follow without a gap
    int start, n;
    int replayed; // of n: how many the present decoder has got
    bool whole;   // nothing that was not given out needs a packet before the oldest
};

// Keeps a packet that the present decoder gets. With no room the backlog begins anew at the next
// keyframe. `serial` is that of the packet before it and 1. 0 or -ENOMEM.
int packet_history_add(struct packet_history *, const struct AVPacket *, int64_t serial);
// The picture of that packet was given out, and it is a keyframe: what is older is let go.
void packet_history_shown(struct packet_history *, int64_t serial);
void packet_history_rewind(struct packet_history *); // another decoder begins
bool packet_history_replays(const struct packet_history *);
// The next packet that the new decoder has not got, valid until the next packet_history_add; NULL:
// none.
const struct AVPacket *packet_history_next(struct packet_history *, int64_t *serial);
void packet_history_clear(struct packet_history *);
void packet_history_finish(struct packet_history *);

#endif
