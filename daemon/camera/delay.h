// How late a live camera's picture comes. Pictures that piled up while the camera or the network
// stood still arrive all at once, and are old. One thread uses it; zeroed it is ready, and begins
// anew.
#ifndef FRAMED_DAEMON_CAMERA_DELAY_H
#define FRAMED_DAEMON_CAMERA_DELAY_H

#include <stdbool.h>
#include <stdint.h>

enum { DELAY_BLOCKS = 4 };

struct delay {
    bool begun;
    int64_t least_ns;      // from a picture's timestamp to its coming, of one that came at once
    int64_t came_ns;       // when the last picture did
    int64_t first_ns;      // since the window began: the first such distance,
    int64_t window_ns;     // the least,
    int64_t window_age_ns; // and how long ago that is, pauses not counted
    // In blocks of time:
    int64_t block_ns, block_least_ns; // when the block began; its least distance
    int pictures, waited;             // of the block; those that the input waited for
    int64_t leasts[DELAY_BLOCKS];     // of the last blocks, the newest last
    int n_leasts;
    bool drifts; // they grew steadily
};

// Returns the delay of the next picture, by its own timestamp and the time at which it came, on
// CLOCK_MONOTONIC. A distance that grows steadily is that of a slow clock if the input waited for
// the pictures (`waited`), and a backlog if they lay ready.
int64_t delay_read(struct delay *, int64_t pts_ns, bool waited, int64_t came_ns);

#endif
