// Which packets of a camera are decoded: the key `pictures`. With `auto` keyframes alone, where
// they come as often as any output wants pictures. Where no output wants pictures, because all copy
// packets, keyframes alone whatever the key: they show that the camera is well. One thread uses a
// filter; zeroed it takes all.
#ifndef FRAMED_DAEMON_DECODE_PICTURE_FILTER_H
#define FRAMED_DAEMON_DECODE_PICTURE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

enum { KEY_DISTANCES = 3 }; // of keyframes, that have to be short enough

struct picture_filter {
    enum decoded_pictures pictures; // as configured
    double fps;                     // the most that any output wants; 0: all; -1: none
    bool keyframes_only;            // now, by itself
    bool unwanted;                  // now: no output wants pictures, since the last keyframe
    bool unfit;                     // a keyframe was none that a decoder can begin with
    int64_t key_ns;                 // the time of the last one
    int keys;                       // that came since the stream began
    int64_t distance_ns[KEY_DISTANCES];
};

enum filter_verdict {
    FILTER_DECODE,
    FILTER_SKIP,
    FILTER_WAKE, // decode, and before it all that were skipped since the last keyframe
};

void picture_filter_begin(struct picture_filter *); // another stream, or another place in it
// To be called for each packet. `time_ns`: when its picture is shown, or when it came. After
// FILTER_WAKE the caller says picture_filter_wake where it could; else the verdict comes again.
enum filter_verdict picture_filter_packet(struct picture_filter *, bool keyframe, bool disposable,
                                          int64_t time_ns);
void picture_filter_wake(struct picture_filter *);
// Packets that begin no picture of their own are marked as keyframes: never keyframes alone again.
void picture_filter_unfit(struct picture_filter *);
// What is decoded now: not PICTURES_AUTO.
enum decoded_pictures picture_filter_now(const struct picture_filter *);

#endif
