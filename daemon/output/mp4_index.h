// Where the keyframes of a fragmented MP4 are: the mfra box at its end, by which players seek
// without reading the file from its begin. Bounded: of a long file only every second keyframe is in
// it, or every fourth and so on. One thread at a time.
#ifndef FRAMED_DAEMON_OUTPUT_MP4_INDEX_H
#define FRAMED_DAEMON_OUTPUT_MP4_INDEX_H

#include <stdint.h>

struct AVIOContext;

enum { MP4_INDEX_MAX = 16384 }; // keyframes: four and a half hours of one each second

struct mp4_index {
    struct {
        int64_t pts;    // in the track's time base
        int64_t offset; // of the moof whose first sample it is
    } keyframe[MP4_INDEX_MAX];
    int n;
    int64_t seen, step; // every so many keyframes one is in the index
};

void mp4_index_init(struct mp4_index *);
// The next keyframe of the file.
void mp4_index_add(struct mp4_index *, int64_t pts, int64_t offset);
// Appends the box, of track 1, to the file.
void mp4_index_write(const struct mp4_index *, struct AVIOContext *);

#endif
