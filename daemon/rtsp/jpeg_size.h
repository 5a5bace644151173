// The size of a JPEG picture, by the number of blocks in its scan: RTP (RFC 2435) has a byte for an
// eighth of the width and of the height, so that larger pictures than 2040 wrap or say 0. Pure.
#ifndef FRAMED_DAEMON_RTSP_JPEG_SIZE_H
#define FRAMED_DAEMON_RTSP_JPEG_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jpeg_size { // in pixels; 0: unknown
    int width, height;
};

// Whether a side of `size` pixels may have `rest` pixels in the RTP header.
bool jpeg_size_is_rest(int rest, int size);
// `picture`: a baseline JPEG file of one scan, whole. *ret: the likely size, if any. `rest`: as the
// RTP header has it; `announced`: as SDP has it. 0; -EBADMSG: the scan cannot be read; -ERANGE: no
// size has its number of blocks, or several have; -ENOMEM.
int jpeg_size_find(struct jpeg_size *ret, const uint8_t *picture, size_t bytes,
                   struct jpeg_size rest, struct jpeg_size announced);
// Writes it into the frame header of the picture.
void jpeg_size_write(uint8_t *picture, size_t bytes, struct jpeg_size);

#endif
