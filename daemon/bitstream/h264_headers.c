#include "daemon/bitstream/h264_headers.h"

#include "daemon/bitstream/nal.h"

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

bool h264_begins_idr(const uint8_t *data, size_t size, int length_bytes)
{
    struct nal_reader reader = {.data = data, .size = size, .length_bytes = length_bytes};
    struct nal nal;
    while (nal_next(&reader, &nal)) {
        const int type = h264_unit_type(&nal);
        if (type >= H264_UNIT_SLICE && type <= H264_UNIT_IDR) // 2 to 4 are parts of slices
            return type == H264_UNIT_IDR;
    }
    return false;
}
