// The size of a JPEG picture in RTP, by the number of blocks in its scan: RTP (RFC 2435) has one
// byte for an eighth of the width and one for the height, so sides above 2040 wrap or are 0. Pure.
#ifndef FRAMED_DAEMON_RTSP_JPEG_SIZE_H
#define FRAMED_DAEMON_RTSP_JPEG_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JPEG_HUFFMAN_BYTES = 420 };
extern const uint8_t jpeg_huffman[JPEG_HUFFMAN_BYTES]; // K.3 to K.6 of T.81, as one DHT segment

struct jpeg_size { // in pixels; 0: unknown
    int width, height;
};

struct jpeg_scan { // of a baseline picture with the tables above
    const uint8_t *data;
    size_t bytes;
    bool half_height;     // chroma: 4:2:0, else 4:2:2
    int restart_interval; // in MCUs; 0: none
};

// Returns true if the RTP header may have `rest` pixels for a side of `size` pixels.
bool jpeg_size_is_rest(int rest, int size);
// Finds the size of a picture by its complete scan. *ret: on entry the likely size, if any; `rest`:
// from the RTP header; `announced`: from the SDP. Returns 0; -EBADMSG: the scan cannot be read;
// -ERANGE: no size has its number of blocks, or several have; -ENOMEM.
int jpeg_size_find(struct jpeg_size *ret, const struct jpeg_scan *, struct jpeg_size rest,
                   struct jpeg_size announced);

#endif
