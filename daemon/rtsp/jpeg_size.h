// Finds the size of a JPEG picture from the number of blocks in its scan. RTP (RFC 2435) has one
// byte for an eighth of the width and one for the height, so sides above 2040 wrap or are 0. Pure.
#ifndef FRAMED_DAEMON_RTSP_JPEG_SIZE_H
#define FRAMED_DAEMON_RTSP_JPEG_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jpeg_size { // in pixels; 0: unknown
    int width, height;
};

// Returns true if the RTP header may have `rest` pixels for a side of `size` pixels.
bool jpeg_size_is_rest(int rest, int size);
// Finds the size of `picture`, a complete baseline JPEG file of one scan. *ret: on entry the likely
// size, if any; `rest`: from the RTP header; `announced`: from the SDP. Returns 0; -EBADMSG: the
// scan cannot be read; -ERANGE: no size has its number of blocks, or several have; -ENOMEM.
int jpeg_size_find(struct jpeg_size *ret, const uint8_t *picture, size_t bytes,
                   struct jpeg_size rest, struct jpeg_size announced);
// Writes the size into the picture's frame header.
void jpeg_size_write(uint8_t *picture, size_t bytes, struct jpeg_size);

#endif
