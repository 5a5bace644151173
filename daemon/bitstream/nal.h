// The NAL units of a packet of H.264 or H.265, and their syntax elements. Accepts any bytes;
// nothing is read beyond their end.
#ifndef FRAMED_DAEMON_BITSTREAM_NAL_H
#define FRAMED_DAEMON_BITSTREAM_NAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nal {
    const uint8_t *data; // with its header and emulation prevention bytes
    size_t size;         // without trailing zeros
};

struct nal_reader {
    const uint8_t *data; // of a packet
    size_t size;
    int length_bytes; // in front of each unit; 0: start codes in between
    size_t at;        // initially 0
};

bool nal_next(struct nal_reader *, struct nal *ret); // false: no more units
// Copies the unit's bytes without emulation prevention bytes, as many as fit. Returns their number.
size_t nal_rbsp(const struct nal *, uint8_t *to, size_t room);
// Returns the offset of the next start code (0 0 1) from `at` on; `size` if there is none.
size_t nal_find_start(const uint8_t *data, size_t size, size_t at);

// --- the bits of a unit, read without emulation prevention bytes; 0 beyond its end
struct nal_bits {
    const uint8_t *data;
    size_t size, at; // the next byte to read
    int zeros;       // consecutive zero bytes before `at`
    int left;        // bits of `byte`
    uint8_t byte;
};

uint32_t nal_u(struct nal_bits *, int n);   // u(n), n <= 32
uint32_t nal_ue(struct nal_bits *);         // ue(v); UINT32_MAX if it has more than 31 zeros
int32_t nal_se(struct nal_bits *);          // se(v)
void nal_skip(struct nal_bits *, size_t n); // n bits
bool nal_ended(const struct nal_bits *);    // bits beyond the end were read

// Finds the first SEI message of a type in an SEI unit. `*ret` reads its payload.
bool nal_find_sei(const struct nal *, size_t header_bytes, uint32_t type, struct nal_bits *ret);

// --- H.264
// Returns nal_unit_type; -1: there is no header.
int h264_unit_type(const struct nal *);
// Returns length_bytes from the extradata of an H.264 stream, which may be NULL.
int h264_length_bytes(const uint8_t *extradata, size_t size);

// --- H.265
// Returns nal_unit_type of a unit of the base layer; -1: of another layer, or an incomplete header.
int hevc_unit_type(const struct nal *);

// Returns length_bytes from the extradata of an H.265 stream, which may be NULL.
int hevc_length_bytes(const uint8_t *extradata, size_t size);

#endif
