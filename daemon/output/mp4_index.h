// Index of the keyframes of a fragmented MP4: the mfra box at its end, which lets players seek
// without reading the file from the start. Bounded: for a long file it lists only every second
// keyframe, or every fourth and so on. One thread at a time.
#ifndef FRAMED_DAEMON_OUTPUT_MP4_INDEX_H
#define FRAMED_DAEMON_OUTPUT_MP4_INDEX_H

#include <stdint.h>

struct AVIOContext;

enum { MP4_INDEX_MAX = 16384 }; // keyframes: four and a half hours of one each second

struct mp4_index {
    struct {
        int64_t pts;    // in the track's time base
        int64_t offset; // of the moof that begins with it
    } keyframe[MP4_INDEX_MAX];
    int n;
    int64_t seen, step; // keyframes so far; one in `step` is in the index
};

void mp4_index_init(struct mp4_index *);
// Adds the file's next keyframe.
void mp4_index_add(struct mp4_index *, int64_t pts, int64_t offset);
// Appends the box for track 1 to the file.
void mp4_index_write(const struct mp4_index *, struct AVIOContext *);

#endif
