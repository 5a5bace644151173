#include "daemon/decode/packet_inspection.h"

#include <libavcodec/avcodec.h>

#include "daemon/bitstream/nal.h"

enum {
    H264_REFERENCE = 0x60, // in a unit's first byte
};

void packet_inspection_begin(struct packet_inspection *inspection)
{
    inspection->h264_loss = (struct h264_loss){0};
    recovery_begin(&inspection->recovery);
}

void packet_inspection_finish(struct packet_inspection *inspection)
{
    recovery_finish(&inspection->recovery);
}

static bool follows_lost(struct packet_inspection *inspection, const AVPacket *packet)
{
    const AVCodecParameters *own = inspection->parameters;
    struct h264_loss *loss = &inspection->h264_loss;
    if (own->codec_id != AV_CODEC_ID_H264 ||
        h264_length_bytes(own->extradata, (size_t)own->extradata_size) > 0)
        return false; // from a file, which loses none
    if (!loss->form && own->extradata)
        h264_loss_before(loss, own->extradata, (size_t)own->extradata_size);
    return h264_loss_before(loss, packet->data, (size_t)packet->size);
}

void packet_inspection_order(struct packet_inspection *inspection, const AVPacket *packet,
                             struct packet_info *info)
{
    inspection->recovery.parameters = inspection->parameters;
    info->damaged |= follows_lost(inspection, packet);
    info->whole_from = recovery_packet(&inspection->recovery, packet, info->serial);
}

// In H.265 a picture that its own temporal layer does not refer to may serve a higher layer.
static bool is_disposable_hevc(struct packet_inspection *inspection, const struct nal *unit,
                               int type)
{
    const int layer = (unit->data[1] & 7) - 1;
    if (layer > inspection->highest_layer)
        inspection->highest_layer = layer;
    return type <= HEVC_UNIT_RSV_VCL_N14 && type % 2 == 0 && layer == inspection->highest_layer;
}

bool packet_inspection_disposable(struct packet_inspection *inspection, const AVPacket *packet)
{
    const AVCodecParameters *own = inspection->parameters;
    const size_t size = (size_t)own->extradata_size;
    const bool hevc = own->codec_id == AV_CODEC_ID_HEVC;
    if (!hevc && own->codec_id != AV_CODEC_ID_H264)
        return false;
    struct nal_reader reader = {.data = packet->data, .size = (size_t)packet->size};
    reader.length_bytes =
        hevc ? hevc_length_bytes(own->extradata, size) : h264_length_bytes(own->extradata, size);
    for (struct nal unit; nal_next(&reader, &unit);) {
        const int type = hevc ? hevc_unit_type(&unit) : h264_unit_type(&unit);
        if (hevc && type >= 0 && type <= HEVC_UNIT_RSV_IRAP_VCL23)
            return is_disposable_hevc(inspection, &unit, type);
        if (!hevc && type >= H264_UNIT_SLICE && type <= H264_UNIT_IDR)
            return !(unit.data[0] & H264_REFERENCE);
    }
    return false;
}

void packet_inspection_content(struct packet_inspection *inspection, const AVPacket *packet,
                               struct packet_info *info)
{
    const AVCodecParameters *own = inspection->parameters;
    const bool key = packet->flags & AV_PKT_FLAG_KEY;
    if (own->codec_id != AV_CODEC_ID_H264) // whose numbers show a lost reference
        info->lacks_reference = info->reference_lost && !key;
    if (own->codec_id != AV_CODEC_ID_HEVC || !inspection->reads_hashes)
        return;
    const int length_bytes = hevc_length_bytes(own->extradata, (size_t)own->extradata_size);
    info->hash = picture_hash_read(packet->data, (size_t)packet->size, length_bytes);
}
