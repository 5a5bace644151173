#include "daemon/bitstream/nal.h"

#include <string.h>

#include "daemon/base/number.h"

enum {
    HVCC_LENGTH_SIZE = 21, // offset of the length size in a HEVCDecoderConfigurationRecord
    HVCC_BYTES = 23,       // before its parameter sets
};

size_t nal_find_start(const uint8_t *data, size_t size, size_t at)
{
    while (at + 3 <= size) {
        const uint8_t *zero = memchr(data + at, 0, size - at - 2);
        if (!zero)
            return size;
        at = (size_t)(zero - data);
        if (zero[1] == 0 && zero[2] == 1)
            return at;
        at++;
    }
    return size;
}

static bool next_started(struct nal_reader *reader, struct nal *ret)
{
    size_t begin = nal_find_start(reader->data, reader->size, reader->at);
    if (begin == reader->size)
        return false;
    begin += 3;
    reader->at = nal_find_start(reader->data, reader->size, begin);
    *ret = (struct nal){reader->data + begin, reader->at - begin};
    return true;
}

static bool next_measured(struct nal_reader *reader, struct nal *ret)
{
    size_t left = reader->size - reader->at;
    if (left <= (size_t)reader->length_bytes)
        return false;
    const size_t length = big_endian_read(reader->data + reader->at, reader->length_bytes);
    reader->at += (size_t)reader->length_bytes;
    left -= (size_t)reader->length_bytes;
    *ret = (struct nal){reader->data + reader->at, length < left ? length : left};
    reader->at += ret->size;
    return true;
}

bool nal_next(struct nal_reader *reader, struct nal *ret)
{
    if (!(reader->length_bytes ? next_measured(reader, ret) : next_started(reader, ret)))
        return false;
    while (ret->size > 0 && ret->data[ret->size - 1] == 0)
        ret->size--;
    return true;
}

size_t nal_rbsp(const struct nal *nal, uint8_t *to, size_t room)
{
    size_t n = 0;
    for (size_t i = 0, zeros = 0; i < nal->size && n < room; i++) {
        if (zeros >= 2 && nal->data[i] == 3) {
            zeros = 0;
            continue;
        }
        zeros = nal->data[i] ? 0 : zeros + 1;
        to[n++] = nal->data[i];
    }
    return n;
}

static uint32_t read_bit(struct nal_bits *bits)
{
    if (bits->left == 0) {
        if (bits->zeros >= 2 && bits->at < bits->size && bits->data[bits->at] == 3) {
            bits->at++;
            bits->zeros = 0;
        }
        bits->byte = bits->at < bits->size ? bits->data[bits->at] : 0;
        bits->at++;
        bits->zeros = bits->byte ? 0 : bits->zeros + 1;
        bits->left = 8;
    }
    return bits->byte >> --bits->left & 1;
}

uint32_t nal_u(struct nal_bits *bits, int n)
{
    uint32_t value = 0;
    while (n-- > 0)
        value = value << 1 | read_bit(bits);
    return value;
}

// As many bits follow a one as zeros precede it.
uint32_t nal_ue(struct nal_bits *bits)
{
    int zeros = 0;
    while (zeros < 32 && !read_bit(bits))
        zeros++;
    return zeros < 32 ? (uint32_t)((UINT64_C(1) << zeros) - 1) + nal_u(bits, zeros) : UINT32_MAX;
}

int32_t nal_se(struct nal_bits *bits)
{
    const uint32_t number = nal_ue(bits);
    return number & 1 ? (int32_t)(number / 2 + 1) : -(int32_t)(number / 2);
}

void nal_skip(struct nal_bits *bits, size_t n)
{
    for (; n > 0 && !nal_ended(bits); n--)
        read_bit(bits);
}

bool nal_ended(const struct nal_bits *bits)
{
    return bits->at > bits->size;
}

// Reads a payload type or size: a sum of bytes. The last one is not 0xff.
static uint32_t read_sei_number(struct nal_bits *bits)
{
    uint32_t value = 0, byte;
    do {
        byte = nal_u(bits, 8);
        value += byte;
    } while (byte == 0xff && !nal_ended(bits));
    return value;
}

bool nal_find_sei(const struct nal *unit, size_t header_bytes, uint32_t type, struct nal_bits *ret)
{
    *ret = (struct nal_bits){.data = unit->data, .size = unit->size, .at = header_bytes};
    while (ret->at + 1 < unit->size) {
        const uint32_t found = read_sei_number(ret), size = read_sei_number(ret);
        if (found == type)
            return true;
        nal_skip(ret, 8 * (size_t)size);
    }
    return false;
}

int h264_unit_type(const struct nal *nal)
{
    return nal->size > 0 ? nal->data[0] & 31 : -1;
}

int h264_length_bytes(const uint8_t *extradata, size_t size)
{
    return extradata && size > 4 && extradata[0] == 1 ? (extradata[4] & 3) + 1 : 0;
}

int hevc_unit_type(const struct nal *nal)
{
    const bool base = nal->size >= 2 && !(nal->data[0] & 1) && !(nal->data[1] & 0xf8);
    return base ? nal->data[0] >> 1 : -1;
}

int hevc_length_bytes(const uint8_t *extradata, size_t size)
{
    bool record =
        extradata && size >= HVCC_BYTES && (extradata[0] || extradata[1] || extradata[2] > 1);
    return record ? (extradata[HVCC_LENGTH_SIZE] & 3) + 1 : 0;
}
