#include "daemon/decode/held_pictures.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/bitstream/nal.h"
#include "daemon/input/libav_version.h"

enum {
    HVCC_ARRAYS = 22,     // offset of numOfArrays in a HEVCDecoderConfigurationRecord
    EDITED_BITS_MAX = 16, // so few never add or remove an emulation prevention byte
};

struct held_pictures {
    bool h264;
    int length_bytes;
    int depth;
    AVPacket *packet; // H.264: an end of sequence; H.265: the last edited copy
};

// --- H.265: sps_max_num_reorder_pics

static void skip_profile_tier_level(struct nal_bits *bits, int sub_layers)
{
    uint32_t present[8][2];
    nal_skip(bits, 96);
    for (int i = 0; i < sub_layers; i++)
        for (int part = 0; part < 2; part++)
            present[i][part] = nal_u(bits, 1);
    nal_skip(bits, sub_layers > 0 ? 2 * (size_t)(8 - sub_layers) : 0);
    for (int i = 0; i < sub_layers; i++)
        nal_skip(bits, (present[i][0] ? 88 : 0) + (present[i][1] ? 8 : 0));
}

// Finds the values of the highest sub-layer; libavcodec reads no others.
static struct nal_bits find_reordering(const struct nal *sps)
{
    struct nal_bits bits = {.data = sps->data, .size = sps->size, .at = 2}, found;
    nal_u(&bits, 4); // sps_video_parameter_set_id
    const int sub_layers = (int)nal_u(&bits, 3);
    nal_u(&bits, 1); // sps_temporal_id_nesting_flag
    skip_profile_tier_level(&bits, sub_layers);
    nal_ue(&bits);          // sps_seq_parameter_set_id
    if (nal_ue(&bits) == 3) // chroma_format_idc
        nal_u(&bits, 1);
    nal_ue(&bits); // width and height
    nal_ue(&bits);
    for (int i = nal_u(&bits, 1) ? 4 : 0; i > 0; i--) // conformance window
        nal_ue(&bits);
    for (int i = 0; i < 3; i++) // bit depths, log2_max_pic_order_cnt_lsb_minus4
        nal_ue(&bits);
    for (int i = nal_u(&bits, 1) ? 0 : sub_layers; i <= sub_layers; i++) {
        nal_ue(&bits); // sps_max_dec_pic_buffering_minus1
        found = bits;
        nal_ue(&bits); // sps_max_num_reorder_pics
        nal_ue(&bits); // sps_max_latency_increase_plus1
    }
    return found;
}

static int ue_bits(uint32_t value)
{
    return 2 * (31 - __builtin_clz(value + 1)) + 1;
}

static void write_bit(struct nal_bits *bits, uint8_t *unit, bool bit)
{
    nal_u(bits, 1);
    uint8_t *byte = unit + bits->at - 1;
    *byte = (uint8_t)((*byte & ~(1 << bits->left)) | bit << bits->left);
}

// `to`: the unit's own bytes, or NULL only to check for something to edit. The latency after the
// number grows by the bits that the number loses: it is not used.
static bool edit_reordering(struct held_pictures *held, const struct nal *sps, uint8_t *to)
{
    const struct nal_bits begin = find_reordering(sps);
    struct nal_bits bits = begin;
    const uint32_t pictures = nal_ue(&bits), latency = nal_ue(&bits);
    if (nal_ended(&bits) || pictures > 16 || latency >= UINT32_MAX - 1)
        return false;
    const int left = ue_bits(pictures) + ue_bits(latency) - 1;
    if (pictures == 0 || left > EDITED_BITS_MAX) {
        held->depth = 0;
        return false;
    }
    held->depth = (int)pictures;
    bits = begin;
    if (to)
        write_bit(&bits, to, true);
    for (int i = 0; to && i < left; i++)
        write_bit(&bits, to, i >= left / 2);
    return true;
}

static bool edit_unit(struct held_pictures *held, const struct nal *unit, uint8_t *data, bool edits)
{
    return hevc_unit_type(unit) == HEVC_UNIT_SPS &&
           edit_reordering(held, unit, edits ? data + (unit->data - data) : NULL);
}

static bool edit_units(struct held_pictures *held, uint8_t *data, size_t size, int length_bytes,
                       bool edits)
{
    struct nal_reader units = {.data = data, .size = size, .length_bytes = length_bytes};
    bool found = false;
    for (struct nal unit; nal_next(&units, &unit);) {
        const int type = hevc_unit_type(&unit);
        if (type >= 0 && type <= HEVC_UNIT_RSV_VCL31)
            break; // parameter sets come before the picture
        found |= edit_unit(held, &unit, data, edits);
    }
    return found;
}

static void edit_extradata(struct held_pictures *held, uint8_t *data, size_t size)
{
    if (hevc_length_bytes(data, size) == 0) {
        edit_units(held, data, size, 0, true);
        return;
    }
    size_t at = HVCC_ARRAYS + 1;
    for (int arrays = data[HVCC_ARRAYS]; arrays > 0 && size > at + 3; arrays--) {
        int units = data[at + 1] << 8 | data[at + 2];
        for (at += 3; units > 0 && size > at + 2; units--) {
            const size_t bytes = (size_t)(data[at] << 8 | data[at + 1]);
            at += 2;
            if (bytes > size - at)
                return;
            edit_unit(held, &(struct nal){data + at, bytes}, data, true);
            at += bytes;
        }
    }
}

// --- both

static int make_end(struct held_pictures *held)
{
    const int ahead = held->length_bytes > 0 ? held->length_bytes : 4;
    if (av_new_packet(held->packet, ahead + 1) < 0)
        return -ENOMEM;
    memset(held->packet->data, 0, (size_t)ahead);
    held->packet->data[ahead - 1] = 1; // a start code, or the unit's length
    held->packet->data[ahead] = H264_UNIT_END_OF_SEQUENCE;
    return 0;
}

int held_pictures_open(struct held_pictures **ret, AVCodecContext *context)
{
    struct held_pictures *held = calloc(1, sizeof *held);
    const size_t size = (size_t)context->extradata_size;
    *ret = held;
    if (!held || !(held->packet = av_packet_alloc()))
        return -ENOMEM;
    held->h264 = context->codec_id == AV_CODEC_ID_H264;
    held->length_bytes = held->h264 ? h264_length_bytes(context->extradata, size)
                                    : hevc_length_bytes(context->extradata, size);
    if (held->h264)
        return make_end(held);
    if (size > 0)
        edit_extradata(held, context->extradata, size);
    return 0;
}

void held_pictures_close(struct held_pictures *held)
{
    if (!held)
        return;
    av_packet_free(&held->packet);
    free(held);
}

const AVPacket *held_pictures_packet(struct held_pictures *held, const AVPacket *packet)
{
    size_t bytes;
    const bool changed = av_packet_get_side_data(packet, AV_PKT_DATA_NEW_EXTRADATA, NULL);
    if (held->h264 || (!changed && !edit_units(held, packet->data, (size_t)packet->size,
                                               held->length_bytes, false)))
        return packet;
    AVPacket *own = held->packet;
    av_packet_unref(own);
    if (av_packet_ref(own, packet) < 0 || av_packet_make_writable(own) < 0)
        return NULL;
    uint8_t *extradata = av_packet_get_side_data(own, AV_PKT_DATA_NEW_EXTRADATA, &bytes);
    if (extradata && bytes > 0)
        edit_extradata(held, extradata, bytes);
    edit_units(held, own->data, (size_t)own->size, held->length_bytes, true);
    return own;
}

int held_pictures_ask(struct held_pictures *held, AVCodecContext *context)
{
    return libav_send(context, held->packet, 0);
}

int held_pictures_depth(const struct held_pictures *held)
{
    return held->depth;
}
