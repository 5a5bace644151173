// H.265 in RTP (RFC 7798): single NAL units, aggregation packets, fragmentation units, with and
// without decoding order numbers, which are skipped.
#include "daemon/base/number.h"
#include "daemon/bitstream/nal.h"
#include "daemon/rtsp/depacketizer.h"
#include "daemon/rtsp/nal_assembly.h"
#include "daemon/rtsp/rtp_receiver.h"
#include "daemon/rtsp/sdp.h"

enum { AGGREGATION = 48, FRAGMENTATION, PACI };
enum { FU_START = 0x80, FU_END = 0x40 };
enum { HEADER_BYTES = 2, DONL_BYTES = 2, DOND_BYTES = 1 };
enum { UNKNOWN_LAYERS = 8 };

struct h265 {
    struct nal_assembly nals; // the first member
    int sub_layers;           // as of the last SPS
    bool donl;
};

static int h265_type(const uint8_t *nal)
{
    return nal[0] >> 1 & 63;
}

static int layer_of(const uint8_t *nal)
{
    return (nal[0] & 1) << 5 | nal[1] >> 3;
}

static enum assembly_piece h265_tell(struct nal_assembly *nals, const uint8_t *nal, size_t bytes)
{
    (void)nals;
    const int type = h265_type(nal);
    if (bytes < HEADER_BYTES || type >= AGGREGATION)
        return PIECE_SKIPPED;
    if (type <= HEVC_UNIT_RSV_VCL31 && bytes < HEADER_BYTES + 1)
        return PIECE_SKIPPED;
    if (layer_of(nal) > 0)
        return type <= HEVC_UNIT_RSV_VCL31 ? PIECE_NEXT : PIECE_ANYWHERE;
    if (type <= HEVC_UNIT_RSV_VCL31) // first_slice_segment_in_pic_flag
        return nal[HEADER_BYTES] & 0x80 ? PIECE_FIRST : PIECE_NEXT;
    if (type == HEVC_UNIT_END_OF_SEQUENCE || type == HEVC_UNIT_END_OF_BITSTREAM)
        return PIECE_ANYWHERE;
    if (type <= HEVC_UNIT_AUD || type == HEVC_UNIT_PREFIX_SEI ||
        (type >= HEVC_UNIT_RSV_NVCL41 && type <= HEVC_UNIT_RSV_NVCL44))
        return PIECE_AHEAD;
    return PIECE_BEHIND;
}

// Reads the id of an SPS, which follows the profiles and levels of its sub-layers.
static uint32_t read_sps_id(struct nal_bits *bits, int sub_layers)
{
    bool profile[8] = {0}, level[8] = {0};
    nal_skip(bits, 1 + 88 + 8);
    for (int i = 0; i < sub_layers - 1; i++) {
        profile[i] = nal_u(bits, 1);
        level[i] = nal_u(bits, 1);
    }
    if (sub_layers > 1)
        nal_skip(bits, 2 * (size_t)(8 - (sub_layers - 1)));
    for (int i = 0; i < sub_layers - 1; i++)
        nal_skip(bits, (profile[i] ? 88 : 0) + (level[i] ? 8 : 0));
    return nal_ue(bits);
}

static bool h265_learn(struct nal_assembly *nals, const uint8_t *nal, size_t bytes)
{
    struct h265 *h = (struct h265 *)nals;
    const int type = h265_type(nal);
    if (type < HEVC_UNIT_VPS || type > HEVC_UNIT_PPS || bytes <= HEADER_BYTES || layer_of(nal) > 0)
        return false;
    struct nal_bits bits = {.data = nal, .size = bytes, .at = HEADER_BYTES};
    uint32_t id;
    if (type == HEVC_UNIT_PPS) {
        id = nal_ue(&bits);
    } else {
        id = nal_u(&bits, 4); // of the VPS
        if (type == HEVC_UNIT_SPS) {
            h->sub_layers = (int)nal_u(&bits, 3) + 1;
            id = read_sps_id(&bits, h->sub_layers);
        }
    }
    parameter_sets_put(&nals->sets, type, id, nal, bytes);
    return true;
}

static void h265_finish(struct nal_assembly *nals, const uint8_t *nal, size_t bytes)
{
    const struct h265 *h = (struct h265 *)nals;
    const int type = h265_type(nal);
    if (h265_learn(nals, nal, bytes)) {
        assembly_sets(nals->assembly);
    } else if (type <= HEVC_UNIT_RSV_VCL31 && layer_of(nal) == 0) {
        const int sub_layer = (nal[1] & 7) - 1;
        assembly_slice(
            nals->assembly,
            &(struct assembly_slice){
                .disposable = type <= HEVC_UNIT_RSV_VCL_N14 && type % 2 == 0 &&
                              sub_layer == h->sub_layers - 1,
                .random_access = type >= HEVC_UNIT_BLA_W_LP && type <= HEVC_UNIT_RSV_IRAP_VCL23,
            });
    }
}

static const struct nal_format h265_format = {h265_tell, h265_finish, h265_learn};

// --- payloads

static void read_aggregation(struct h265 *h, const uint8_t *data, size_t bytes)
{
    size_t order = h->donl ? DONL_BYTES : 0;
    while (bytes > order + 2) {
        const size_t size = big_endian_read(data + order, 2);
        data += order + 2;
        bytes -= order + 2;
        if (size == 0)
            return;
        if (size > bytes) {
            nal_assembly_missing(&h->nals);
            return;
        }
        nal_assembly_put(&h->nals, data, size);
        data += size;
        bytes -= size;
        order = h->donl ? DOND_BYTES : 0;
    }
}

// The NAL unit type of the first fragment counts: later ones may carry another.
static void read_fragmentation(struct h265 *h, const uint8_t *data, size_t bytes)
{
    const uint8_t flags = data[HEADER_BYTES];
    size_t at = HEADER_BYTES + 1;
    if (flags & FU_START) {
        const uint8_t header[] = {(uint8_t)((data[0] & 0x81) | (flags & 63) << 1), data[1]};
        nal_assembly_begin(&h->nals);
        nal_assembly_append(&h->nals, header, sizeof header);
        at += h->donl ? DONL_BYTES : 0;
    } else if (!h->nals.open) {
        nal_assembly_missing(&h->nals);
        return;
    }
    if (at < bytes)
        nal_assembly_append(&h->nals, data + at, bytes - at);
    if (flags & FU_END)
        nal_assembly_end(&h->nals);
}

// Reads a single NAL unit, whose decoding order number follows its header.
static void read_single(struct h265 *h, const uint8_t *data, size_t bytes)
{
    if (!h->donl || bytes < HEADER_BYTES + DONL_BYTES) {
        nal_assembly_put(&h->nals, data, bytes);
        return;
    }
    nal_assembly_begin(&h->nals);
    nal_assembly_append(&h->nals, data, HEADER_BYTES);
    nal_assembly_append(&h->nals, data + HEADER_BYTES + DONL_BYTES,
                        bytes - HEADER_BYTES - DONL_BYTES);
    nal_assembly_end(&h->nals);
}

static void h265_packet(void *state, const struct rtp_packet *packet)
{
    struct h265 *h = state;
    const uint8_t *data = packet->payload;
    const size_t bytes = packet->bytes;
    nal_assembly_packet(&h->nals, packet);
    const int type = bytes >= HEADER_BYTES ? h265_type(data) : PACI;
    if (type == AGGREGATION)
        read_aggregation(h, data + HEADER_BYTES, bytes - HEADER_BYTES);
    else if (type == FRAGMENTATION && bytes > HEADER_BYTES)
        read_fragmentation(h, data, bytes);
    else if (type < AGGREGATION)
        read_single(h, data, bytes);
    nal_assembly_packet_end(&h->nals, packet);
}

static void h265_open(void *state, struct assembly *assembly, const struct sdp_media *media)
{
    struct h265 *h = state;
    h->nals.assembly = assembly;
    h->nals.format = &h265_format;
    h->donl = media->donl;
    h->sub_layers = UNKNOWN_LAYERS;
    nal_assembly_head_start(&h->nals, media->sets, (size_t)media->sets_bytes);
}

static void h265_flush(void *state)
{
    nal_assembly_flush(&((struct h265 *)state)->nals);
}

static const uint8_t *h265_sets(const void *state, size_t *bytes)
{
    const struct parameter_sets *sets = &((const struct h265 *)state)->nals.sets;
    *bytes = sets->bytes;
    return sets->data;
}

const struct depacketize_codec depacketize_h265 = {sizeof(struct h265), h265_open, h265_packet,
                                                   h265_flush,          h265_sets, NULL};
