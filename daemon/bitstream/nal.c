#include "daemon/bitstream/nal.h"

#include <string.h>

#include "daemon/base/number.h"

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

bool nal_next(struct nal_reader *reader, struct nal *ret)
{
    const uint8_t *data = reader->data;
    const size_t size = reader->size, ahead = (size_t)reader->length_bytes;
    size_t begin, end;
    if (ahead == 0) {
        begin = nal_find_start(data, size, reader->at);
        if (begin == size)
            return false;
        begin += 3;
        end = nal_find_start(data, size, begin);
    } else {
        if (size - reader->at <= ahead)
            return false;
        begin = reader->at + ahead;
        const size_t length = big_endian_read(data + reader->at, reader->length_bytes);
        end = length < size - begin ? begin + length : size;
    }
    reader->at = end;
    while (end > begin && data[end - 1] == 0)
        end--;
    *ret = (struct nal){data + begin, end - begin};
    return true;
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

// --- H.264

int h264_unit_type(const struct nal *nal)
{
    return nal->size > 0 ? nal->data[0] & 31 : -1;
}

int h264_length_bytes(const uint8_t *extradata, size_t size)
{
    return extradata && size > 4 && extradata[0] == 1 ? (extradata[4] & 3) + 1 : 0;
}

static struct nal_bits bits_of_unit(const uint8_t *unit, size_t bytes)
{
    return (struct nal_bits){.data = unit, .size = bytes, .at = bytes > 0 ? 1 : 0};
}

static void skip_scaling_list(struct nal_bits *bits, int size)
{
    int last = 8, next = 8;
    for (int i = 0; i < size; i++) {
        if (next != 0)
            next = (last + nal_se(bits) % 256 + 256) & 255;
        last = next ? next : last;
    }
}

static bool has_chroma_format(uint32_t profile)
{
    static const uint8_t profiles[] = {100, 110, 122, 244, 44,  83, 86,
                                       118, 128, 138, 139, 134, 135};
    for (size_t i = 0; i < sizeof profiles; i++)
        if (profiles[i] == profile)
            return true;
    return false;
}

static void read_chroma_format(struct h264_sps *sps, struct nal_bits *bits)
{
    const uint32_t format = nal_ue(bits);
    sps->plane_bits = format == 3 && nal_u(bits, 1) ? 2 : 0;
    nal_ue(bits); // bit depths
    nal_ue(bits);
    nal_u(bits, 1);
    const bool lists = nal_u(bits, 1);
    for (int i = 0; lists && i < (format == 3 ? 12 : 8); i++)
        if (nal_u(bits, 1))
            skip_scaling_list(bits, i < 6 ? 16 : 64);
}

static void read_order(struct h264_sps *sps, struct nal_bits *bits)
{
    sps->poc_type = nal_ue(bits);
    if (sps->poc_type == 0)
        sps->poc_lsb_bits = nal_ue(bits) + 4;
    if (sps->poc_type != 1)
        return;
    nal_u(bits, 1);
    nal_se(bits);
    nal_se(bits);
    for (uint32_t n = nal_ue(bits) & 0xff; n > 0; n--)
        nal_se(bits);
}

struct h264_sps h264_sps_read(const uint8_t *unit, size_t bytes)
{
    struct nal_bits bits = bits_of_unit(unit, bytes);
    struct h264_sps sps = {.profile = (uint8_t)nal_u(&bits, 8)};
    sps.constraints = (uint8_t)nal_u(&bits, 8);
    sps.level = (uint8_t)nal_u(&bits, 8);
    sps.id = nal_ue(&bits);
    if (has_chroma_format(sps.profile))
        read_chroma_format(&sps, &bits);
    sps.frame_num_bits = nal_ue(&bits) + 4;
    read_order(&sps, &bits);
    sps.references = nal_ue(&bits);
    sps.gaps = nal_u(&bits, 1);
    nal_ue(&bits); // pic_width_in_mbs_minus1
    nal_ue(&bits); // pic_height_in_map_units_minus1
    sps.fields = !nal_u(&bits, 1);
    return sps;
}

void h264_pps_read(const uint8_t *unit, size_t bytes, uint32_t *id, uint32_t *sps)
{
    struct nal_bits bits = bits_of_unit(unit, bytes);
    *id = nal_ue(&bits);
    *sps = nal_ue(&bits);
}

static struct h264_slice read_slice_begin(struct nal_bits *bits)
{
    struct h264_slice slice = {.first_mb = nal_ue(bits)};
    slice.type = nal_ue(bits);
    slice.pps = nal_ue(bits);
    return slice;
}

struct h264_slice h264_slice_read(const uint8_t *unit, size_t bytes)
{
    struct nal_bits bits = bits_of_unit(unit, bytes);
    return read_slice_begin(&bits);
}

void h264_slice_read_field(struct h264_slice *slice, const struct h264_sps *sps,
                           const uint8_t *unit, size_t bytes)
{
    struct nal_bits bits = bits_of_unit(unit, bytes);
    *slice = read_slice_begin(&bits);
    nal_skip(&bits, (size_t)sps->plane_bits);
    slice->frame_num = nal_u(&bits, sps->frame_num_bits <= 16 ? (int)sps->frame_num_bits : 16);
    slice->field = sps->fields && nal_u(&bits, 1);
    slice->bottom = slice->field && nal_u(&bits, 1);
}

// --- H.265

enum {
    HVCC_LENGTH_SIZE = 21, // offset of the length size in a HEVCDecoderConfigurationRecord
    HVCC_BYTES = 23,       // before its parameter sets
};

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

void hevc_skip_profile_tier_level(struct nal_bits *bits, int sub_layers)
{
    size_t n = 0;
    nal_skip(bits, 88 + 8);
    for (int i = 0; i < sub_layers; i++) {
        n += nal_u(bits, 1) ? 88 : 0; // profile
        n += nal_u(bits, 1) ? 8 : 0;  // level
    }
    if (sub_layers > 0)
        nal_skip(bits, 2 * (size_t)(8 - sub_layers));
    nal_skip(bits, n);
}

static void skip_ue(struct nal_bits *bits, int n)
{
    for (; n > 0; n--)
        nal_ue(bits);
}

bool hevc_sps_find_reordering(const struct nal *nal, struct nal_bits *ret)
{
    struct nal_bits bits = {.data = nal->data, .size = nal->size, .at = 2};
    if (hevc_unit_type(nal) != HEVC_UNIT_SPS || nal->data[1] != 1) // TemporalId is 0
        return false;
    nal_skip(&bits, 4);
    const int sub_layers = (int)nal_u(&bits, 3);
    nal_skip(&bits, 1);
    hevc_skip_profile_tier_level(&bits, sub_layers);
    nal_ue(&bits);          // its id
    if (nal_ue(&bits) == 3) // chroma_format_idc
        nal_skip(&bits, 1);
    skip_ue(&bits, 2);   // its size
    if (nal_u(&bits, 1)) // conformance_window_flag
        skip_ue(&bits, 4);
    skip_ue(&bits, 3);   // bit depths, and bits of POC
    if (nal_u(&bits, 1)) // sps_sub_layer_ordering_info_present_flag
        skip_ue(&bits, 3 * sub_layers);
    nal_ue(&bits); // sps_max_dec_pic_buffering_minus1
    *ret = bits;
    skip_ue(&bits, 2);
    return !nal_ended(&bits);
}
