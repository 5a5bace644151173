// A camera's stream as seen in its pictures so far: size, orientation, signal and time. Decides
// which picture begins an epoch, and completes each picture's metadata. Used by one thread; ready
// when zeroed.
#ifndef FRAMED_DAEMON_CAMERA_STREAM_H
#define FRAMED_DAEMON_CAMERA_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/codec/frame.h"
#include "daemon/output/subscriptions.h"

// --- delay
// How late a live camera's pictures arrive. Pictures that piled up while the camera or the network
// stalled arrive all at once, and are old. Zeroing prepares or restarts it.

enum { DELAY_BLOCKS = 4 };

struct delay {
    bool begun;
    int64_t least_ns;      // from a picture's timestamp to its arrival, without delay
    int64_t came_ns;       // arrival of the last picture
    int64_t first_ns;      // of the window: the first such distance
    int64_t window_ns;     // of the window: the least
    int64_t window_age_ns; // of the window: its age, long pauses cut short
    // In blocks of time:
    int64_t block_ns, block_least_ns; // start of the block; its least distance
    int pictures, waited;             // in the block; how many the input waited for
    int64_t leasts[DELAY_BLOCKS];     // least distances of the last blocks, the newest last
    int n_leasts;
    bool drifts; // `leasts` grew steadily
};

// Returns the delay of the next picture, from its timestamp and its arrival time (CLOCK_MONOTONIC).
// A distance that grows steadily means a slow clock if the input waited for the pictures
// (`waited`), and a backlog if they were ready.
int64_t delay_read(struct delay *, int64_t pts_ns, bool waited, int64_t came_ns);

// --- capture times
// Makes the capture times of one camera's pictures rise within an epoch: an arrival time may be
// followed by an earlier time from a sender report, and a camera may set its clock.

struct capture_time {
    bool begun;               // there was a picture:
    struct frame_info last;   // the last one
    int64_t doubted_until_ns; // CLOCK_MONOTONIC; 0: sender reports are trusted
};

// Call if the stream's own time jumps with this picture. The last sender report is from before the
// jump, so capture times come from the time of arrival until the next report.
void capture_time_doubt(struct capture_time *, const struct frame_info *);
// True if the picture has to begin an epoch: its capture time is far back, or makes a step that the
// pts do not make, because the camera set its clock.
bool capture_time_jumps(const struct capture_time *, const struct frame_info *);
// Call for each picture in display order, with its epoch. Moves a capture time that is not later
// than the last one forward, and clears its flag for a sender report.
void capture_time_rise(struct capture_time *, struct frame_info *);

// --- stream

struct stream {
    uint32_t epoch;             // of the last picture; settable before the first
    bool has_picture;           // since this connection or pass of a file began
    int width, height;          // of the last picture; 0 before the first of a connection
    int orientation;            // of the last picture: enum orientation, or -EINVAL
    struct video_signal signal; // as of the last picture
    struct delay delay;
    struct capture_time capture_time; // with the last picture, on any connection
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
