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
    SPS_ID_MAX = 15,
    SIZE_MAX_LUMA = 16384, // luma samples of a row or a column
    SETS_MAX = 64,
    REFERENCES_MAX = 16,
    SCALING_MAX = 2 * 255, // of an entry of a scaling list, as se(v)
    ANY = 0x7ffffffe,
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

// The bits of an SPS. Counts are bounded, so that a damaged one is read to its end in no time.
struct sps_bits {
    struct nal_bits bits;
    bool failed; // a value is out of range
};

static bool read_flag(struct sps_bits *b)
{
    return nal_u(&b->bits, 1);
}

// Returns 0 for a value out of range.
static uint32_t read_ue(struct sps_bits *b, uint32_t max)
{
    const uint32_t value = nal_ue(&b->bits);
    b->failed |= value > max;
    return value > max ? 0 : value;
}

static void skip_profile_tier_level(struct sps_bits *b, int sub_layers)
{
    size_t bits = 0;
    nal_skip(&b->bits, 88 + 8);
    for (int i = 0; i < sub_layers; i++) {
        bits += read_flag(b) ? 88 : 0; // profile
        bits += read_flag(b) ? 8 : 0;  // level
    }
    if (sub_layers > 0)
        nal_skip(&b->bits, 2 * (size_t)(8 - sub_layers));
    nal_skip(&b->bits, bits);
}

static void skip_scaling_lists(struct sps_bits *b)
{
    for (int size = 0; size < 4; size++)
        for (int matrix = 0; matrix < 6; matrix += size == 3 ? 3 : 1) {
            if (!read_flag(b)) {
                read_ue(b, 5);
                continue;
            }
            for (int i = size > 1 ? -1 : 0; i < (size == 0 ? 16 : 64); i++)
                read_ue(b, SCALING_MAX);
        }
}

static void skip_block_sizes(struct sps_bits *b, uint32_t width, uint32_t height)
{
    const uint32_t min_cb_log2 = read_ue(b, 3) + 3, ctb_log2 = min_cb_log2 + read_ue(b, 3);
    const uint32_t min_tb_log2 = read_ue(b, 3) + 2, max_tb_log2 = min_tb_log2 + read_ue(b, 3);
    const uint32_t mask = (UINT32_C(1) << min_cb_log2) - 1;
    read_ue(b, 4); // max_transform_hierarchy_depth_inter and _intra
    read_ue(b, 4);
    b->failed |= ctb_log2 < 4 || ctb_log2 > 6 || min_tb_log2 >= min_cb_log2 || max_tb_log2 > 5 ||
                 max_tb_log2 > ctb_log2 || width == 0 || height == 0 || (width & mask) ||
                 (height & mask);
}

// Returns the number of pictures of a st_ref_pic_set. A set that is predicted from the one before
// (of `before` pictures; -1: there is none) keeps some of its pictures, and the one that it belongs
// to.
static int skip_reference_set(struct sps_bits *b, int before)
{
    int n = 0;
    if (before >= 0 && read_flag(b)) { // inter_ref_pic_set_prediction_flag
        nal_skip(&b->bits, 1);
        read_ue(b, 32767);
        for (int i = 0; i <= before; i++)
            n += read_flag(b) || read_flag(b); // used_by_curr_pic_flag, use_delta_flag
    } else {
        const uint32_t negatives = read_ue(b, REFERENCES_MAX);
        n = (int)(negatives + read_ue(b, REFERENCES_MAX - negatives));
        for (int i = 0; i < n; i++) {
            read_ue(b, 32767);
            nal_skip(&b->bits, 1);
        }
    }
    b->failed |= n > REFERENCES_MAX;
    return n > REFERENCES_MAX ? REFERENCES_MAX : n;
}

static void skip_reference_sets(struct sps_bits *b, uint32_t poc_lsb_bits)
{
    int pictures = -1;
    for (uint32_t sets = read_ue(b, SETS_MAX); sets > 0; sets--)
        pictures = skip_reference_set(b, pictures);
    if (read_flag(b)) // long_term_ref_pics_present_flag
        for (uint32_t n = read_ue(b, 32); n > 0; n--)
            nal_skip(&b->bits, poc_lsb_bits + 1);
}

// Skips up to the reference picture sets: no later count could become absurd in a damaged SPS.
static void skip_sps(struct sps_bits *b, struct nal_bits *reordering)
{
    nal_skip(&b->bits, 4);
    const int sub_layers = (int)nal_u(&b->bits, 3);
    b->failed |= sub_layers == 7;
    nal_skip(&b->bits, 1);
    skip_profile_tier_level(b, sub_layers);
    read_ue(b, SPS_ID_MAX);
    if (read_ue(b, 3) == 3) // chroma_format_idc
        nal_skip(&b->bits, 1);
    const uint32_t width = read_ue(b, SIZE_MAX_LUMA), height = read_ue(b, SIZE_MAX_LUMA);
    for (int i = read_flag(b) ? 0 : 4; i < 4; i++) // conformance_window_flag
        read_ue(b, SIZE_MAX_LUMA);
    read_ue(b, 8); // bit depths
    read_ue(b, 8);
    const uint32_t poc_lsb_bits = read_ue(b, 12) + 4;
    for (int i = read_flag(b) ? 0 : sub_layers; i <= sub_layers; i++) {
        read_ue(b, ANY); // sps_max_dec_pic_buffering_minus1
        *reordering = b->bits;
        read_ue(b, ANY); // sps_max_num_reorder_pics
        read_ue(b, ANY); // sps_max_latency_increase_plus1
    }
    skip_block_sizes(b, width, height);
    if (read_flag(b) && read_flag(b)) // scaling_list_enabled_flag, sps_scaling_list_data_present
        skip_scaling_lists(b);
    nal_skip(&b->bits, 2); // amp_enabled_flag, sample_adaptive_offset_enabled_flag
    if (read_flag(b)) {    // pcm_enabled_flag
        nal_skip(&b->bits, 4 + 4);
        read_ue(b, 2);
        read_ue(b, 2);
        nal_skip(&b->bits, 1);
    }
    skip_reference_sets(b, poc_lsb_bits);
}

bool hevc_sps_is_readable(const struct nal *nal)
{
    struct nal_bits reordering;
    return hevc_sps_find_reordering(nal, &reordering);
}

bool hevc_sps_find_reordering(const struct nal *nal, struct nal_bits *ret)
{
    struct sps_bits b = {.bits = {.data = nal->data, .size = nal->size, .at = 2}};
    if (hevc_unit_type(nal) != HEVC_UNIT_SPS || nal->data[1] != 1) // TemporalId is 0
        return false;
    skip_sps(&b, ret);
    return !b.failed && !nal_ended(&b.bits);
}
