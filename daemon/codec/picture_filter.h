// Decides which packets of a camera are decoded, by the key `pictures`. With `auto` only keyframes,
// if they come as often as any output needs pictures. If no output needs pictures, because all copy
// packets, only keyframes for any key: they show that the camera is well. One thread uses a filter;
// zeroed, it passes all.
#ifndef FRAMED_DAEMON_CODEC_PICTURE_FILTER_H
#define FRAMED_DAEMON_CODEC_PICTURE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

enum { KEY_DISTANCES = 3 }; // distances of keyframes that must be short enough

struct picture_filter {
    enum decoded_pictures pictures; // as configured
    double fps;                     // the highest rate that any output needs; 0: all; -1: none
    bool keyframes_only;            // at present, chosen by `auto`
    bool unwanted;                  // at present: no output needs pictures, since the last keyframe
    bool unfit;                     // set by the caller: a decoder cannot begin with some keyframe
    int keys;                       // keyframes since the stream began, at most those in key_ns
    int64_t key_ns[KEY_DISTANCES + 1]; // times of the last keyframes, the newest first
};

enum filter_verdict {
    FILTER_DECODE,
    FILTER_SKIP,
    FILTER_WAKE, // decode, after all packets skipped since the last keyframe
};

void picture_filter_begin(struct picture_filter *); // another stream, or another place in it
// Call for each packet. `time_ns`: when its picture is shown, or when it arrived. After FILTER_WAKE
// the caller calls picture_filter_wake if it could; otherwise the verdict is repeated.
enum filter_verdict picture_filter_packet(struct picture_filter *, bool keyframe, bool disposable,
                                          int64_t time_ns);
void picture_filter_wake(struct picture_filter *);
// Returns the present mode: not PICTURES_AUTO.
enum decoded_pictures picture_filter_now(const struct picture_filter *);

#endif
