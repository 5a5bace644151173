#include "daemon/codec/packet_inspection.h"

#include <libavcodec/avcodec.h>

#include "daemon/bitstream/nal.h"
#include "daemon/codec/output_order.h"

// --- recovery points

enum {
    INTRAS_SURE = 2, // the second one: pictures after it may refer to some between the two
};

static void recovery_begin(struct recovery *recovery)
{
    recovery->n = recovery->intras = 0;
    recovery->newest = recovery->before = (struct recovery_whole){0};
    recovery->marked = false;
}

static void recovery_finish(struct recovery *recovery)
{
    picture_place_close(recovery->reader);
}

static bool is_hevc(const struct recovery *recovery)
{
    return recovery->parameters->codec_id == AV_CODEC_ID_HEVC;
}

// A damaged or joined stream is not whole at its first intra picture if pictures after it may refer
// to pictures before it.
static bool passes_for_point(struct recovery *recovery, const struct picture_place *place)
{
    recovery->marked |=
        place->random_access || place->start != ORDER_CONTINUES || place->recovery != NO_RECOVERY;
    recovery->intras += !recovery->marked && place->intra;
    return !recovery->marked && place->intra &&
           (place->one_reference || recovery->intras >= INTRAS_SURE);
}

bool recovery_by_intra(const struct recovery *recovery)
{
    return !recovery->marked && recovery->newest.from;
}

// If there is no room, newer points are not needed: the oldest ends first.
static void begin_point(struct recovery *recovery, const struct picture_place *place,
                        int64_t serial)
{
    const int64_t count = place->recovery != NO_RECOVERY ? place->recovery : 0;
    if (recovery->n == RECOVERY_POINTS)
        return;
    recovery->pending[recovery->n++] =
        (struct recovery_point){serial, is_hevc(recovery) ? place->poc + count : 2 * count};
}

// Returns true if the count of a point ends with this picture.
static bool end_points(struct recovery *recovery, const struct picture_place *place)
{
    const bool hevc = is_hevc(recovery);
    int kept = 0;
    bool ended = false;
    for (int i = 0; i < recovery->n; i++) {
        const struct recovery_point point = recovery->pending[i];
        if (hevc ? !place->known || place->poc < point.end : point.end > 0) {
            recovery->pending[kept++] = point;
            continue;
        }
        recovery->before = recovery->newest;
        recovery->newest.from = point.serial;
        recovery->newest.poc = hevc ? point.end : place->known ? place->poc : INT64_MAX;
        ended = true;
    }
    recovery->n = kept;
    return ended;
}

static void count_reference(struct recovery *recovery, const struct picture_place *place)
{
    for (int i = 0; i < recovery->n && !is_hevc(recovery) && place->reference; i++)
        recovery->pending[i].end -= place->field ? 1 : 2;
}

// Returns `whole_from`.
static int64_t recovery_packet(struct recovery *recovery, const AVPacket *packet, int64_t serial)
{
    if (!recovery->reader && !recovery->unreadable)
        recovery->unreadable = picture_place_open(&recovery->reader, recovery->parameters) < 0;
    if (recovery->unreadable)
        return 0;
    const struct picture_place place = picture_place_read(recovery->reader, packet);
    if (place.start != ORDER_CONTINUES) { // POC starts again
        recovery->n = 0;
        recovery->newest = recovery->before = (struct recovery_whole){0};
    }
    if (passes_for_point(recovery, &place) || place.recovery != NO_RECOVERY)
        begin_point(recovery, &place, serial);
    const bool ended = end_points(recovery, &place);
    count_reference(recovery, &place);
    if (ended || (place.known && place.poc >= recovery->newest.poc))
        return recovery->newest.from;
    return place.known && place.poc >= recovery->before.poc ? recovery->before.from : 0;
}

// --- lost pictures of H.264

enum {
    IDR_ID_MAX = 65535,
    MISNUMBERED_MAX = 8, // consecutive IDR pictures: after these it is taken for the stream's way
    NOISE_IDR_MAX = 8,   // the decoder may have kept its parameters, and no others need come
};

// Returns false for noise. An SPS is valid if its level is in table A-1 of the standard, two
// constraint bits are 0, and gaps are allowed as in the stream's first SPS. It is also valid in the
// form of the first or the last SPS: the same noise does not come twice.
static bool are_parameters(struct h264_loss *loss, const struct h264_sps *sps)
{
    static const uint8_t levels[] = {9,  10, 11, 12, 13, 20, 21, 22, 30, 31,
                                     32, 40, 41, 42, 50, 51, 52, 60, 61, 62};
    const int form = sps->gaps << 16 | sps->constraints << 8 | sps->level;
    const bool own_way = !loss->form || form == loss->form || form == loss->last_form;
    if (!loss->form)
        loss->form = form;
    loss->last_form = form;
    for (size_t i = 0; i < sizeof levels; i++)
        if (levels[i] == sps->level && !(sps->constraints & 3) && sps->gaps == loss->form >> 16)
            return true;
    return own_way;
}

static void read_loss_sequence(struct h264_loss *loss, const uint8_t *unit, size_t size)
{
    const struct h264_sps sps = h264_sps_read(unit, size);
    loss->noise = are_parameters(loss, &sps) ? 0 : NOISE_IDR_MAX;
    if (loss->noise || sps.id >= H264_LOSS_SEQUENCES)
        return;
    const bool numbered = sps.frame_num_bits <= 16 && !sps.gaps;
    loss->sequence[sps.id] = (struct h264_loss_sequence){
        .known = true,
        .planes_bits = sps.plane_bits,
        .fields = sps.fields,
        .number_bits = numbered ? (int)sps.frame_num_bits : 0,
        .order_bits = sps.poc_lsb_bits <= 16 && !sps.fields ? (int)sps.poc_lsb_bits : 0,
    };
}

// A PPS of a sequence that never came is noise, and a decoder will not use it either.
static void read_loss_picture(struct h264_loss *loss, struct nal_bits bits)
{
    uint32_t id = nal_ue(&bits), sequence = nal_ue(&bits);
    if (id < H264_LOSS_PICTURES && sequence < H264_LOSS_SEQUENCES && loss->sequence[sequence].known)
        loss->sequence_of[id] = (uint8_t)sequence;
}

static bool follows(const struct h264_loss_sequence *sequence, uint32_t last, uint32_t number)
{
    uint32_t next = (last + 1) & ((UINT32_C(1) << sequence->number_bits) - 1);
    return number == next || (sequence->fields && number == last);
}

static bool is_misnumbered(const struct h264_loss_sequence *sequence, struct nal_bits bits,
                           uint32_t number)
{
    if (number != 0)
        return true;
    return sequence->order_bits &&
           (nal_ue(&bits) > IDR_ID_MAX || nal_u(&bits, sequence->order_bits) != 0);
}

// An encoder that ignores the numbering does so from its first IDR picture on.
static bool is_noise(struct h264_loss *loss, bool misnumbered)
{
    bool first = !loss->keyed;
    loss->keyed = true;
    if (!misnumbered) {
        loss->misnumbered = 0;
        return false;
    }
    bool own_way = first || loss->misnumbered == MISNUMBERED_MAX;
    loss->misnumbered = own_way ? MISNUMBERED_MAX : loss->misnumbered + 1;
    return !own_way;
}

static bool read_loss_slice(struct h264_loss *loss, struct nal_bits bits, bool idr,
                            bool is_reference)
{
    if (nal_ue(&bits) != 0)
        return false; // not the first slice of its picture
    nal_ue(&bits);
    uint32_t id = nal_ue(&bits);
    if (id >= H264_LOSS_PICTURES)
        return true;
    const struct h264_loss_sequence *sequence = &loss->sequence[loss->sequence_of[id]];
    if (!sequence->number_bits)
        return false;
    nal_u(&bits, sequence->planes_bits);
    uint32_t number = nal_u(&bits, sequence->number_bits);
    bool wrong = idr ? is_noise(loss, is_misnumbered(sequence, bits, number))
                     : loss->begun && !follows(sequence, loss->last, number);
    loss->begun |= idr || is_reference;
    if (idr || is_reference)
        loss->last = number;
    return wrong;
}

// Checks the picture's number, and the parameters that it may have been made with.
static bool is_wrong(struct h264_loss *loss, struct nal_bits bits, bool idr, bool is_reference)
{
    bool noise = loss->noise > 0, wrong = read_loss_slice(loss, bits, idr, is_reference);
    loss->noise -= noise && idr;
    return wrong || noise;
}

bool h264_loss_before(struct h264_loss *loss, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i + 3 < size; i++) {
        if (data[i] != 0 || data[i + 1] != 0 || data[i + 2] != 1)
            continue;
        const int type = data[i + 3] & 31;
        struct nal_bits bits = {.data = data + i + 4, .size = size - i - 4};
        if (type == H264_UNIT_SPS)
            read_loss_sequence(loss, data + i + 3, size - i - 3);
        else if (type == H264_UNIT_PPS)
            read_loss_picture(loss, bits);
        else if (type >= H264_UNIT_SLICE && type <= H264_UNIT_IDR)
            return (type == H264_UNIT_SLICE || type == H264_UNIT_IDR) &&
                   is_wrong(loss, bits, type == H264_UNIT_IDR, data[i + 3] & 0x60);
    }
    return false;
}

// --- all of it

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
