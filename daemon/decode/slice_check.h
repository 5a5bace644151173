// Finds bit errors in the slices of an H.265 stream by parsing them: libavcodec decodes most
// without an error. One thread uses it.
#ifndef FRAMED_DAEMON_DECODE_SLICE_CHECK_H
#define FRAMED_DAEMON_DECODE_SLICE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum slice_check_result {
    SLICES_UNKNOWN, // not checked: no slices, no parameter sets, or a profile that is not known
    SLICES_GOOD,
    SLICES_WRONG,
};

struct slice_check;

struct slice_check *slice_check_open(void); // NULL: no memory
// The stream's extradata, which may be NULL: before its first packet, and whenever it changes.
void slice_check_extradata(struct slice_check *, const uint8_t *extradata, size_t size);
void slice_check_close(struct slice_check *); // or NULL

// Of the stream's next packet, a picture. Pictures of a kind that fails many times in a row are
// SLICES_UNKNOWN until one is good: no errors on the way look like that, but a mistake of ours or
// of the encoder's does. Behind a good picture it takes many more, and a picture whose parameter
// sets are absent or of another profile is wrong: a camera may send noise for seconds.
enum slice_check_result slice_check_packet(struct slice_check *, const uint8_t *data, size_t size);

// Whether slices came that were not checked for their profile.
bool slice_check_lacks_profile(const struct slice_check *);

#endif
