// A camera's stream as its pictures show it: size, orientation, signal and time so far. Decides
// with which picture an epoch begins, and completes what is known of each. One thread uses it;
// zeroed it is ready.
#ifndef FRAMED_DAEMON_CAMERA_STREAM_H
#define FRAMED_DAEMON_CAMERA_STREAM_H

#include "daemon/camera/capture_time.h"
#include "daemon/camera/delay.h"
#include "daemon/decode/video_signal.h"
#include "daemon/output/subscriptions.h"

struct stream {
    uint32_t epoch;             // of the last picture; settable before the first
    bool begun;                 // a picture came, of any connection
    bool has_picture;           // so it did since this connection or pass of a file began
    int width, height;          // of the last picture; 0 before the first of a connection
    int orientation;            // of the last picture: enum orientation, or -EINVAL
    struct video_signal signal; // of the pictures up to the last
    int64_t last_pts_ns, last_received_ns; // where has_picture
    struct delay delay;
    struct capture_time capture_time;
};

enum stream_change {
    STREAM_CONTINUES,
    STREAM_BEGINS, // this is the first picture of a connection
    STREAM_RESIZED,
};

void stream_connect(struct stream *); // another connection begins
void stream_rewind(struct stream *);  // the file begins again

// Takes in the next picture, in the order in which they are shown: sets its orientation, epoch,
// capture time and delay, and logs what changed. `orientation`: enum orientation, or -EINVAL for
// one that no kernel makes. `is_live`: pictures come when the camera takes them. The subscriptions
// are named in the log alone.
enum stream_change stream_picture(struct stream *, struct frame *, int orientation, bool is_live,
                                  const struct subscriptions *);

#endif
