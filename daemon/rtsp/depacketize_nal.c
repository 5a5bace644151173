// H.264 (RFC 6184) and H.265 (RFC 7798) in RTP: single NAL units, aggregation packets and
// fragmentation units, H.265 with and without decoding order numbers, which are skipped. A start
// code inside a payload, also across fragments, separates two units: it cannot occur inside a unit.
#include <string.h>

#include "daemon/base/number.h"
#include "daemon/bitstream/nal.h"
#include "daemon/rtsp/depacketizer.h"
#include "daemon/rtsp/rtp_receiver.h"
#include "daemon/rtsp/sdp.h"

enum {
    START_BYTES = 4,
    TELLING_BYTES = 32, // bytes of an incomplete NAL unit that suffice to classify it
    HEADER_MAX = 2,
    H265_HEADER = 2,
    DONL_BYTES = 2, // decoding order number; DOND_BYTES: of later units of an aggregation packet
    DOND_BYTES = 1,
    SETS_BYTES = 16384,
    SETS_MAX = 64,
    UNKNOWN_LAYERS = 8,
    SEI_RECOVERY_POINT = 6,
};
enum { FU_START = 0x80, FU_END = 0x40 };

struct nal_stream;

struct nal_codec {
    size_t header; // bytes of a NAL unit's header
    // The type's place in the first byte; both standards define the same payloads but for these.
    int type_shift, type_mask;
    int aggregation, fragmentation; // types of payloads; lower ones are single NAL units
    // Classifies a unit by its first bytes: at least one, and all of them or TELLING_BYTES.
    struct assembly_piece (*tell)(struct nal_stream *, const uint8_t *nal, size_t bytes);
    // Reads a complete unit, and stores a parameter set. May set `set` and `recovery` of its piece.
    void (*learn)(struct nal_stream *, const uint8_t *nal, size_t bytes, struct assembly_piece *);
};

struct nal_stream {
    struct depacketizer base; // first
    const struct nal_codec *codec;
    bool donl;
    size_t header;  // the open unit: bytes of its start code; it is the open piece
    size_t scanned; // start codes are searched from here on
    // The newest parameter set of each kind and id of a stream, with start codes.
    struct {
        int rank; // lower ranks come first: a VPS, an SPS, a PPS
        uint32_t id;
        size_t bytes; // with its start code
    } set[SETS_MAX];
    int n_sets;
    uint8_t sets[SETS_BYTES];
    // H.264: parameter sets, and the first field of the open access unit.
    struct h264_sps sps[H264_SPS_MAX];
    uint8_t sps_of[H264_PPS_MAX];
    uint32_t frame_num, timestamp;
    bool bottom;
    bool one_stamp; // both fields of the last frame had the same timestamp
    int sub_layers; // H.265: as of the last SPS
};

// --- parameter sets

// Adds a NAL unit, or replaces the one with its rank and id. Leaves it out if there is no room: the
// stream contains it anyway.
static void put_set(struct nal_stream *n, int rank, uint32_t id, const uint8_t *nal, size_t bytes)
{
    const size_t whole = bytes + START_BYTES;
    size_t at = 0;
    int i = 0;
    while (i < n->n_sets &&
           (n->set[i].rank < rank || (n->set[i].rank == rank && n->set[i].id < id)))
        at += n->set[i++].bytes;
    const bool again = i < n->n_sets && n->set[i].rank == rank && n->set[i].id == id;
    const size_t former = again ? n->set[i].bytes : 0, behind = n->base.sets_bytes - at - former;
    if ((!again && n->n_sets == SETS_MAX) || at + whole + behind > sizeof n->sets)
        return;
    memmove(n->sets + at + whole, n->sets + at + former, behind);
    memcpy(n->sets + at, "\0\0\0\1", START_BYTES);
    memcpy(n->sets + at + START_BYTES, nal, bytes);
    n->base.sets_bytes = at + whole + behind;
    if (!again)
        memmove(n->set + i + 1, n->set + i, (size_t)(n->n_sets++ - i) * sizeof *n->set);
    n->set[i].rank = rank;
    n->set[i].id = id;
    n->set[i].bytes = whole;
}

// --- H.264

static int h264_type(const uint8_t *nal)
{
    return nal[0] & 31;
}

// Classifies a slice with first_mb 0: it begins the next picture, or the second field of the open
// frame. A second field has the same frame_num and the other parity, and is no IDR picture.
static enum assembly_kind h264_tell_first(struct nal_stream *n, const uint8_t *nal, size_t bytes)
{
    struct depacketizer *d = &n->base;
    struct h264_slice slice = h264_slice_read(nal, bytes);
    const uint8_t sps = n->sps_of[slice.pps % H264_PPS_MAX];
    if (!n->sps[sps].fields)
        return PIECE_FIRST;
    h264_slice_read_field(&slice, &n->sps[sps], nal, bytes);
    if (!slice.field)
        return PIECE_FIRST;
    const bool same_stamp = d->timestamp == n->timestamp;
    if (assembly_open_unit(d)->awaits && slice.bottom != n->bottom &&
        slice.frame_num == n->frame_num && h264_type(nal) != H264_UNIT_IDR &&
        (same_stamp || !n->one_stamp)) {
        n->one_stamp = same_stamp;
        return PIECE_SECOND_FIELD;
    }
    n->bottom = slice.bottom;
    n->frame_num = slice.frame_num;
    n->timestamp = d->timestamp;
    return PIECE_FIRST_FIELD;
}

static struct assembly_piece h264_tell(struct nal_stream *n, const uint8_t *nal, size_t bytes)
{
    static const enum assembly_kind kinds[] = {
        [0] = PIECE_SKIPPED,
        [H264_UNIT_PARTITION_B] = PIECE_NEXT,
        [H264_UNIT_PARTITION_C] = PIECE_NEXT,
        [H264_UNIT_SEI... H264_UNIT_AUD] = PIECE_AHEAD,
        [H264_UNIT_END_OF_SEQUENCE] = PIECE_ANYWHERE,
        [H264_UNIT_END_OF_STREAM] = PIECE_ANYWHERE,
        [H264_UNIT_END_OF_STREAM + 1] = PIECE_BEHIND, // filler
        [H264_UNIT_SPS_EXTENSION] = PIECE_AHEAD,
        [H264_UNIT_PREFIX] = PIECE_PREFIX,
        [H264_UNIT_PREFIX + 1 ... H264_UNIT_RESERVED_18] = PIECE_AHEAD,
        [H264_UNIT_AUXILIARY... H264_UNIT_DEPTH_EXTENSION] = PIECE_NEXT,
        [H264_UNIT_DEPTH_EXTENSION + 1 ... 23] = PIECE_BEHIND,
        [24 ... 31] = PIECE_SKIPPED,
    };
    const int type = h264_type(nal);
    const bool slice =
        type == H264_UNIT_SLICE || type == H264_UNIT_PARTITION_A || type == H264_UNIT_IDR;
    if (bytes < 2 && kinds[type] != PIECE_ANYWHERE)
        return (struct assembly_piece){.kind = PIECE_SKIPPED};
    if (!slice)
        return (struct assembly_piece){.kind = kinds[type]};
    return (struct assembly_piece){
        .kind = nal[1] & 0x80 ? h264_tell_first(n, nal, bytes) : PIECE_NEXT,
        .slice = true,
        .disposable = !(nal[0] & 0x60),
        .random_access = type == H264_UNIT_IDR,
        .intra = h264_slice_read(nal, bytes).type % 5 == 2,
    };
}

static void h264_learn(struct nal_stream *n, const uint8_t *nal, size_t bytes,
                       struct assembly_piece *piece)
{
    const int type = h264_type(nal);
    struct nal_bits payload;
    uint32_t id, sps_id;
    if (nal[0] & 0x80 || bytes < 2)
        return;
    piece->set = type == H264_UNIT_SPS || type == H264_UNIT_PPS;
    piece->recovery = type == H264_UNIT_SEI &&
                      nal_find_sei(&(struct nal){nal, bytes}, 1, SEI_RECOVERY_POINT, &payload);
    if (type == H264_UNIT_SPS) {
        const struct h264_sps sps = h264_sps_read(nal, bytes);
        if (sps.id >= H264_SPS_MAX)
            return;
        n->sps[sps.id] = sps;
        put_set(n, type, sps.id, nal, bytes);
    } else if (type == H264_UNIT_PPS) {
        h264_pps_read(nal, bytes, &id, &sps_id);
        if (id >= H264_PPS_MAX || sps_id >= H264_SPS_MAX)
            return;
        n->sps_of[id] = (uint8_t)sps_id;
        put_set(n, type, id, nal, bytes);
    }
}

static const struct nal_codec h264 = {
    .header = 1,
    .type_mask = 31,
    .aggregation = 24,   // STAP-A
    .fragmentation = 28, // FU-A
    .tell = h264_tell,
    .learn = h264_learn,
};

// --- H.265

static int h265_type(const uint8_t *nal)
{
    return nal[0] >> 1 & 63;
}

static int layer_of(const uint8_t *nal)
{
    return (nal[0] & 1) << 5 | nal[1] >> 3;
}

static struct assembly_piece h265_tell(struct nal_stream *n, const uint8_t *nal, size_t bytes)
{
    const int type = h265_type(nal);
    const bool slice = type <= HEVC_UNIT_RSV_VCL31;
    struct assembly_piece piece = {.kind = PIECE_BEHIND};
    if (bytes < H265_HEADER + (size_t)slice || type >= n->codec->aggregation)
        piece.kind = PIECE_SKIPPED;
    else if (layer_of(nal) > 0)
        piece.kind = slice ? PIECE_NEXT : PIECE_ANYWHERE;
    else if (slice)
        piece = (struct assembly_piece){
            .kind =
                nal[H265_HEADER] & 0x80 ? PIECE_FIRST : PIECE_NEXT, // first_slice_segment_in_pic
            .slice = true,
            .disposable = type <= HEVC_UNIT_RSV_VCL_N14 && type % 2 == 0 &&
                          (nal[1] & 7) == n->sub_layers, // nuh_temporal_id_plus1
            .random_access = type >= HEVC_UNIT_BLA_W_LP && type <= HEVC_UNIT_RSV_IRAP_VCL23,
        };
    else if (type == HEVC_UNIT_END_OF_SEQUENCE || type == HEVC_UNIT_END_OF_BITSTREAM)
        piece.kind = PIECE_ANYWHERE;
    else if (type <= HEVC_UNIT_AUD || type == HEVC_UNIT_PREFIX_SEI ||
             (type >= HEVC_UNIT_RSV_NVCL41 && type <= HEVC_UNIT_RSV_NVCL44))
        piece.kind = PIECE_AHEAD;
    return piece;
}

static void h265_learn(struct nal_stream *n, const uint8_t *nal, size_t bytes,
                       struct assembly_piece *piece)
{
    const int type = h265_type(nal);
    if (nal[0] & 0x80 || type < HEVC_UNIT_VPS || type > HEVC_UNIT_PPS || bytes <= H265_HEADER ||
        layer_of(nal) > 0)
        return;
    struct nal_bits bits = {.data = nal, .size = bytes, .at = H265_HEADER};
    uint32_t id = type == HEVC_UNIT_PPS ? nal_ue(&bits) : nal_u(&bits, 4); // 4 bits: of the VPS
    if (type == HEVC_UNIT_SPS) {
        n->sub_layers = (int)nal_u(&bits, 3) + 1;
        nal_skip(&bits, 1);
        hevc_skip_profile_tier_level(&bits, n->sub_layers - 1);
        id = nal_ue(&bits);
    }
    put_set(n, type, id, nal, bytes);
    piece->set = true;
}

static const struct nal_codec h265 = {
    .header = H265_HEADER,
    .type_shift = 1,
    .type_mask = 63,
    .aggregation = 48,
    .fragmentation = 49,
    .tell = h265_tell,
    .learn = h265_learn,
};

// --- NAL units

static bool is_open(const struct nal_stream *n)
{
    return n->base.piece < n->base.bytes;
}

// Drops the open unit, which lacks bytes. It may have begun another access unit.
static void drop_nal(struct depacketizer *d)
{
    struct nal_stream *n = (void *)d;
    const size_t bytes = d->bytes - d->piece;
    if (bytes == 0)
        return;
    bool counts = true;
    if (bytes >= n->header + TELLING_BYTES) {
        struct assembly_piece piece =
            n->codec->tell(n, d->data + d->piece + n->header, bytes - n->header);
        piece.slice = false;
        counts = assembly_add(d, &piece, 0);
    }
    d->bytes = d->piece;
    if (counts)
        assembly_damage(d);
}

// Completes the open unit, of `whole` bytes with its start code; more data may follow.
static void close_nal(struct nal_stream *n, size_t whole)
{
    struct depacketizer *d = &n->base;
    const uint8_t *nal = d->data + d->piece + n->header;
    struct assembly_piece piece = {.kind = PIECE_SKIPPED};
    size_t bytes = whole - n->header;
    while (bytes > 0 && nal[bytes - 1] == 0)
        bytes--;
    if (whole == d->bytes - d->piece) { // trailing zeros do not belong to the unit
        whole = n->header + bytes;
        d->bytes = d->piece + whole;
    }
    if (bytes > 0)
        piece = n->codec->tell(n, nal, bytes);
    if (piece.kind != PIECE_SKIPPED && !piece.slice)
        n->codec->learn(n, nal, bytes, &piece);
    assembly_add(d, &piece, whole);
}

static void begin_nal(struct nal_stream *n)
{
    drop_nal(&n->base);
    n->header = n->scanned = START_BYTES;
    if (!assembly_append(&n->base, "\0\0\0\1", START_BYTES))
        assembly_damage(&n->base);
}

static void append_nal(struct nal_stream *n, const uint8_t *data, size_t bytes)
{
    struct depacketizer *d = &n->base;
    if (!is_open(n))
        return;
    if (!assembly_append(d, data, bytes)) {
        drop_nal(d);
        return;
    }
    for (;;) {
        const size_t all = d->bytes - d->piece;
        const size_t at = nal_find_start(d->data + d->piece, all, n->scanned);
        if (at >= all) {
            n->scanned = (size_t)bounds_max((int64_t)n->scanned, (int64_t)all - 2);
            return;
        }
        close_nal(n, at);
        n->header = n->scanned = 3;
    }
}

static void end_nal(struct nal_stream *n)
{
    if (is_open(n))
        close_nal(n, n->base.bytes - n->base.piece);
}

// Adds a complete unit of a payload or an aggregation packet; it may begin with a start code.
static void put_nal(struct nal_stream *n, const uint8_t *data, size_t bytes)
{
    const size_t start = nal_find_start(data, bytes < 4 ? bytes : 4, 0) + 3;
    const size_t skipped = start <= 4 && start <= bytes ? start : 0;
    begin_nal(n);
    append_nal(n, data + skipped, bytes - skipped);
    end_nal(n);
}

// --- payloads

static void read_aggregate(struct nal_stream *n, const uint8_t *data, size_t bytes)
{
    size_t order = n->donl ? DONL_BYTES : 0;
    while (bytes > order + 2) {
        const size_t size = big_endian_read(data + order, 2);
        data += order + 2;
        bytes -= order + 2;
        if (size == 0)
            return;
        if (size > bytes) {
            assembly_damage(&n->base);
            return;
        }
        put_nal(n, data, size);
        data += size;
        bytes -= size;
        order = n->donl ? DOND_BYTES : 0;
    }
}

// The NAL unit type of the first fragment counts: later ones may carry another.
static void read_fragment(struct nal_stream *n, const uint8_t *data, size_t bytes)
{
    const struct nal_codec *codec = n->codec;
    const int type = data[codec->header] & codec->type_mask;
    const uint8_t flags = data[codec->header];
    size_t at = codec->header + 1;
    if (flags & FU_START) {
        const int rest = data[0] & ~(codec->type_mask << codec->type_shift);
        const uint8_t header[HEADER_MAX] = {(uint8_t)(rest | type << codec->type_shift), data[1]};
        begin_nal(n);
        append_nal(n, header, codec->header);
        at += n->donl ? DONL_BYTES : 0;
    } else if (!is_open(n)) {
        assembly_damage(&n->base);
        return;
    }
    if (at < bytes)
        append_nal(n, data + at, bytes - at);
    if (flags & FU_END)
        end_nal(n);
}

// Reads a single NAL unit, whose decoding order number follows its header.
static void read_single(struct nal_stream *n, const uint8_t *data, size_t bytes)
{
    const size_t header = n->codec->header;
    if (!n->donl || bytes < header + DONL_BYTES) {
        put_nal(n, data, bytes);
        return;
    }
    begin_nal(n);
    append_nal(n, data, header);
    append_nal(n, data + header + DONL_BYTES, bytes - header - DONL_BYTES);
    end_nal(n);
}

static void nal_packet(struct depacketizer *d, const struct rtp_packet *packet)
{
    struct nal_stream *n = (void *)d;
    const struct nal_codec *codec = n->codec;
    const uint8_t *data = packet->payload;
    const size_t bytes = packet->bytes;
    if (packet->lost || packet->lost_unknown || packet->restarted ||
        packet->timestamp != d->timestamp)
        drop_nal(d);
    assembly_packet(d, packet);
    const int type =
        bytes >= codec->header ? data[0] >> codec->type_shift & codec->type_mask : codec->type_mask;
    if (type == codec->aggregation)
        read_aggregate(n, data + codec->header, bytes - codec->header);
    else if (type == codec->fragmentation && bytes > codec->header)
        read_fragment(n, data, bytes);
    else if (type < codec->aggregation && (type != 0 || data[0] == 0))
        read_single(n, data, bytes);
    if (packet->marker) {
        end_nal(n);
        assembly_marker(d);
    }
}

static void nal_open(struct depacketizer *d, const struct sdp_media *media)
{
    struct nal_stream *n = (void *)d;
    struct nal_reader reader = {.data = media->sets, .size = (size_t)media->sets_bytes};
    struct assembly_piece piece = {0};
    struct nal nal;
    d->sets = n->sets;
    n->codec = media->codec == SDP_H265 ? &h265 : &h264;
    n->donl = n->codec == &h265 && media->donl;
    n->sub_layers = UNKNOWN_LAYERS;
    while (nal_next(&reader, &nal))
        if (nal.size > 0)
            n->codec->learn(n, nal.data, nal.size, &piece);
}

const struct depacketize_codec depacketize_nal = {
    .bytes = sizeof(struct nal_stream),
    .open = nal_open,
    .packet = nal_packet,
    .drop = drop_nal,
};
