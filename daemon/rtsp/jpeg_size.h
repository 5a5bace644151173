// Writes the headers of a JPEG picture, which RTP omits (RFC 2435, ITU-T T.81) or sends separately
// (ONVIF Streaming, "JPEG over RTP"), and finds its size. Pure.
#ifndef FRAMED_DAEMON_RTSP_JPEG_HEADER_H
#define FRAMED_DAEMON_RTSP_JPEG_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    JPEG_TABLES_MAX = 256,    // two quantization tables of 16 bits
    JPEG_SEGMENTS_MAX = 4096, // of one picture
    JPEG_KEPT_MAX = 1024,
    JPEG_HEADER_MAX = JPEG_SEGMENTS_MAX + 3 * JPEG_KEPT_MAX + 1024,
};

struct jpeg_quantization { // one table for all components, or a second for colour
    int bytes[2];          // 64, or 128 for 16 bits; 0: no table
    uint8_t data[JPEG_TABLES_MAX];
};

struct jpeg_header {
    bool half_height;                             // chroma: 4:2:0, else 4:2:2
    int width, height;                            // 0: from SOF in the segments, else the last SOF
    int restart_interval;                         // 0: none
    const struct jpeg_quantization *quantization; // NULL: the last ones
    const uint8_t *segments; // of ONVIF's header extension, with markers; 0xff may fill gaps
    size_t segment_bytes;
    bool extended; // the extension was present, perhaps empty
};

// State that a picture leaves for the next when the extension is used. Zeroed: empty.
struct jpeg_memory {
    struct jpeg_kept {
        uint8_t data[JPEG_KEPT_MAX];
        size_t bytes;
    } quantization, huffman, frame; // complete segments
};

// Computes the tables of Q, 1 to 99.
void jpeg_quantization_of(struct jpeg_quantization *ret, int q);
// Writes everything before the scan data to `to`, of JPEG_HEADER_MAX bytes. Returns its size; 0:
// the picture's size or quantization is unknown.
size_t jpeg_header_write(uint8_t *to, const struct jpeg_header *, struct jpeg_memory *);

// --- the size, by the number of blocks in the picture's scan: RTP (RFC 2435) has one byte for an
// eighth of the width and one for the height, so sides above 2040 wrap or are 0

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
