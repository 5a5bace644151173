// H.264 in RTP (RFC 6184): single NAL units, STAP-A, FU-A.
#include <string.h>

#include "daemon/base/number.h"
#include "daemon/bitstream/nal.h"
#include "daemon/rtsp/depacketizer.h"
#include "daemon/rtsp/nal_assembly.h"
#include "daemon/rtsp/rtp_receiver.h"
#include "daemon/rtsp/sdp.h"

enum { STAP_A = 24, STAP_B, MTAP16, MTAP24, FU_A, FU_B }; // payload structures by NAL unit type
enum { FU_START = 0x80, FU_END = 0x40 };
enum { SEI_RECOVERY_POINT = 6 };

struct h264 {
    struct nal_assembly nals; // the first member
    struct h264_sps sps[H264_SPS_MAX];
    bool known[H264_SPS_MAX];
    uint8_t sps_of[H264_PPS_MAX];
    // First field of the open unit.
    uint32_t frame_num, timestamp;
    bool bottom;
    bool one_stamp; // both fields of the last frame had the same timestamp
};

static struct h264 *h264_of(struct nal_assembly *nals)
{
    return (struct h264 *)nals;
}

static int h264_type(const uint8_t *nal)
{
    return nal[0] & 31;
}

// --- pictures

// Classifies a slice with first_mb 0: it begins the next picture, or the second field of the open
// frame. A second field has the same frame_num and the other parity, and is no IDR picture.
static enum assembly_piece tell_first(struct h264 *h, const uint8_t *nal, size_t bytes)
{
    const struct assembly *a = h->nals.assembly;
    struct h264_slice slice = h264_slice_read(nal, bytes);
    const uint8_t sps = h->sps_of[slice.pps % H264_PPS_MAX];
    if (!h->known[sps] || !h->sps[sps].fields)
        return PIECE_FIRST;
    h264_slice_read_field(&slice, &h->sps[sps], nal, bytes);
    if (!slice.field)
        return PIECE_FIRST;
    const bool same_stamp = a->timestamp == h->timestamp;
    if (a->open->awaits && slice.bottom != h->bottom && slice.frame_num == h->frame_num &&
        h264_type(nal) != H264_UNIT_IDR && (same_stamp || !h->one_stamp)) {
        h->one_stamp = same_stamp;
        return PIECE_SECOND_FIELD;
    }
    h->bottom = slice.bottom;
    h->frame_num = slice.frame_num;
    h->timestamp = a->timestamp;
    return PIECE_FIRST_FIELD;
}

static enum assembly_piece h264_tell(struct nal_assembly *nals, const uint8_t *nal, size_t bytes)
{
    const int type = h264_type(nal);
    if (bytes < 2 && type != H264_UNIT_END_OF_SEQUENCE && type != H264_UNIT_END_OF_STREAM)
        return PIECE_SKIPPED;
    switch (type) {
    case H264_UNIT_SLICE:
    case H264_UNIT_PARTITION_A:
    case H264_UNIT_IDR:
        return nal[1] & 0x80 ? tell_first(h264_of(nals), nal, bytes) : PIECE_NEXT;
    case H264_UNIT_PARTITION_B:
    case H264_UNIT_PARTITION_C:
    case H264_UNIT_AUXILIARY:
    case H264_UNIT_EXTENSION:
    case H264_UNIT_DEPTH_EXTENSION:
        return PIECE_NEXT;
    case H264_UNIT_PREFIX:
        return PIECE_PREFIX;
    case H264_UNIT_END_OF_SEQUENCE:
    case H264_UNIT_END_OF_STREAM:
        return PIECE_ANYWHERE;
    case H264_UNIT_SEI:
    case H264_UNIT_SPS:
    case H264_UNIT_PPS:
    case H264_UNIT_AUD:
    case H264_UNIT_SPS_EXTENSION:
        return PIECE_AHEAD;
    default:
        if (type > H264_UNIT_PREFIX && type <= H264_UNIT_RESERVED_18)
            return PIECE_AHEAD;
        return type == 0 || type >= STAP_A ? PIECE_SKIPPED : PIECE_BEHIND;
    }
}

static bool has_recovery_point(const uint8_t *nal, size_t bytes)
{
    struct nal_bits payload;
    return nal_find_sei(&(struct nal){nal, bytes}, 1, SEI_RECOVERY_POINT, &payload);
}

static bool h264_learn(struct nal_assembly *nals, const uint8_t *nal, size_t bytes)
{
    struct h264 *h = h264_of(nals);
    if (h264_type(nal) == H264_UNIT_SPS) {
        const struct h264_sps sps = h264_sps_read(nal, bytes);
        if (sps.id < H264_SPS_MAX) {
            h->sps[sps.id] = sps;
            h->known[sps.id] = true;
            parameter_sets_put(&nals->sets, H264_UNIT_SPS, sps.id, nal, bytes);
        }
    } else if (h264_type(nal) == H264_UNIT_PPS) {
        uint32_t id, sps;
        h264_pps_read(nal, bytes, &id, &sps);
        if (id < H264_PPS_MAX && sps < H264_SPS_MAX) {
            h->sps_of[id] = (uint8_t)sps;
            parameter_sets_put(&nals->sets, H264_UNIT_PPS, id, nal, bytes);
        }
    } else {
        return false;
    }
    return true;
}

static void h264_finish(struct nal_assembly *nals, const uint8_t *nal, size_t bytes)
{
    struct assembly *a = nals->assembly;
    const int type = h264_type(nal);
    if (h264_learn(nals, nal, bytes))
        assembly_sets(a);
    else if (type == H264_UNIT_SEI && has_recovery_point(nal, bytes))
        assembly_recovery(a);
    else if (type == H264_UNIT_SLICE || type == H264_UNIT_PARTITION_A || type == H264_UNIT_IDR)
        assembly_slice(a, &(struct assembly_slice){
                              .disposable = !(nal[0] & 0x60),
                              .random_access = type == H264_UNIT_IDR,
                              .intra = h264_slice_read(nal, bytes).type % 5 == 2,
                          });
}

static const struct nal_format h264_format = {h264_tell, h264_finish, h264_learn};

// --- payloads

static void read_aggregate(struct nal_assembly *nals, const uint8_t *data, size_t bytes)
{
    while (bytes > 2) {
        const size_t size = big_endian_read(data, 2);
        data += 2;
        bytes -= 2;
        if (size == 0)
            return;
        if (size > bytes) {
            nal_assembly_missing(nals);
            return;
        }
        nal_assembly_put(nals, data, size);
        data += size;
        bytes -= size;
    }
}

// The NAL unit type of the first fragment counts: later ones may carry another.
static void read_fragment(struct nal_assembly *nals, const uint8_t *data, size_t bytes)
{
    if (data[1] & FU_START) {
        const uint8_t header = (data[0] & 0xe0) | (data[1] & 31);
        nal_assembly_begin(nals);
        nal_assembly_append(nals, &header, 1);
    } else if (!nals->open) {
        nal_assembly_missing(nals);
        return;
    }
    nal_assembly_append(nals, data + 2, bytes - 2);
    if (data[1] & FU_END)
        nal_assembly_end(nals);
}

static void h264_packet(void *state, const struct rtp_packet *packet)
{
    struct h264 *h = state;
    const uint8_t *data = packet->payload;
    const size_t bytes = packet->bytes;
    nal_assembly_packet(&h->nals, packet);
    const int type = bytes > 0 ? h264_type(data) : STAP_B;
    if (type == STAP_A)
        read_aggregate(&h->nals, data + 1, bytes - 1);
    else if (type == FU_A && bytes >= 2)
        read_fragment(&h->nals, data, bytes);
    else if (type < STAP_A && !(type == 0 && data[0] != 0))
        nal_assembly_put(&h->nals, data, bytes);
    nal_assembly_packet_end(&h->nals, packet);
}

static void h264_open(void *state, struct assembly *assembly, const struct sdp_media *media)
{
    struct h264 *h = state;
    h->nals.assembly = assembly;
    h->nals.format = &h264_format;
    nal_assembly_head_start(&h->nals, media->sets, (size_t)media->sets_bytes);
}

static void h264_flush(void *state)
{
    nal_assembly_flush(&((struct h264 *)state)->nals);
}

static const uint8_t *h264_sets(const void *state, size_t *bytes)
{
    const struct parameter_sets *sets = &((const struct h264 *)state)->nals.sets;
    *bytes = sets->bytes;
    return sets->data;
}

const struct depacketize_codec depacketize_h264 = {sizeof(struct h264), h264_open, h264_packet,
                                                   h264_flush,          h264_sets, NULL};
