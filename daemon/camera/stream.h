// A camera's stream as seen in its pictures so far: size, orientation, signal and time. Decides
// which picture begins an epoch, and completes each picture's metadata. Used by one thread; ready
// when zeroed.
#ifndef FRAMED_DAEMON_CAMERA_STREAM_H
#define FRAMED_DAEMON_CAMERA_STREAM_H

#include "daemon/camera/capture_time.h"
#include "daemon/camera/delay.h"
#include "daemon/decode/frame.h"
#include "daemon/output/subscriptions.h"

struct stream {
    uint32_t epoch;             // of the last picture; settable before the first
    bool begun;                 // a picture arrived, on any connection
    bool has_picture;           // since this connection or pass of a file began
    int width, height;          // of the last picture; 0 before the first of a connection
    int orientation;            // of the last picture: enum orientation, or -EINVAL
    struct video_signal signal; // as of the last picture
    int64_t last_pts_ns, last_received_ns; // valid with has_picture
    struct delay delay;
    struct capture_time capture_time;
};

enum stream_change {
    STREAM_CONTINUES,
    STREAM_BEGINS, // first picture of a connection
    STREAM_RESIZED,
};

void stream_connect(struct stream *); // another connection begins
void stream_rewind(struct stream *);  // the file restarts

// Processes the next picture in display order: sets its orientation, epoch, capture time and delay,
// and logs changes. `orientation`: enum orientation, or -EINVAL for one that no kernel makes.
// `is_live`: pictures arrive as the camera takes them. The subscriptions serve the log only.
enum stream_change stream_picture(struct stream *, struct frame *, int orientation, bool is_live,
                                  const struct subscriptions *);

#endif
