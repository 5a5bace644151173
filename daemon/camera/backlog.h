// Packets from which another decoder can carry on: all since the last keyframe whose picture was
// given out. In presentation order nothing after such a picture needs anything before it. One
// thread uses it; zeroed it is ready.
#ifndef FRAMED_DAEMON_CAMERA_BACKLOG_H
#define FRAMED_DAEMON_CAMERA_BACKLOG_H

#include <stdbool.h>
#include <stdint.h>

struct AVPacket;

enum { BACKLOG_MAX = 300 }; // packets; a usual distance of keyframes is up to 250

struct backlog {
    struct AVPacket *packet[BACKLOG_MAX]; // a ring; allocated once, unreferenced where unused
    int64_t first;                        // serial of the oldest; the others follow without a gap
    int start, n;
    int replayed; // of n: how many the present decoder has got
    bool whole;   // nothing that was not given out needs a packet before the oldest
};

// Keeps a packet that the present decoder gets. With no room the backlog begins anew at the next
// keyframe. `serial` is that of the packet before it and 1. 0 or -ENOMEM.
int backlog_add(struct backlog *, const struct AVPacket *, int64_t serial);
// The picture of that packet was given out, and it is a keyframe: what is older is let go.
void backlog_shown(struct backlog *, int64_t serial);
void backlog_rewind(struct backlog *); // another decoder begins
bool backlog_replays(const struct backlog *);
// The next packet that the new decoder has not got, valid until the next backlog_add; NULL: none.
const struct AVPacket *backlog_next(struct backlog *, int64_t *serial);
void backlog_clear(struct backlog *);
void backlog_finish(struct backlog *);

#endif
