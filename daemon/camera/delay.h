// How late a live camera's pictures arrive. Pictures that piled up while the camera or the network
// stalled arrive all at once, and are old. Used by one thread; zeroing prepares or restarts it.
#ifndef FRAMED_DAEMON_CAMERA_DELAY_H
#define FRAMED_DAEMON_CAMERA_DELAY_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
