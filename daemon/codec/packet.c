#include "daemon/codec/packet.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <stdlib.h>
#include <string.h>

enum {
    H264_REFERENCE = 0x60, // in a unit's first byte
    SEI_RECOVERY_POINT = 6,
    SEI_PICTURE_HASH = 132,
    RECOVERY_MAX = 1 << 16, // pictures: no stream needs more
    SLICE_I = 2,            // slice_type modulo 5
    SLICE_SI = 4,
    AVCC_SEQUENCES = 5, // offset of their number in an AVCDecoderConfigurationRecord
    HVCC_ARRAYS = 22,   // offset of numOfArrays in a HEVCDecoderConfigurationRecord
    NEVER_POC = INT_MIN,
    QUIET = 64,      // added to the level of log messages: the decoder logs the same
    INTRAS_SURE = 2, // the second one: pictures after it may refer to some between the two
    RECOVERY_POINTS = 8,
};

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

static void read_loss_sequence(struct h264_loss *loss, const struct nal *unit)
{
    struct h264_sps sps = h264_sps_read(unit->data, unit->size);
    loss->noise = are_parameters(loss, &sps) ? 0 : NOISE_IDR_MAX;
    sps.gaps |= sps.frame_num_bits > 16;
    if (!loss->noise && sps.id < H264_SPS_MAX)
        loss->sequence[sps.id] = sps;
}

// A PPS of a sequence that never came is noise, and a decoder will not use it either.
static void read_loss_picture(struct h264_loss *loss, const struct nal *unit)
{
    uint32_t id, sequence;
    h264_pps_read(unit->data, unit->size, &id, &sequence);
    if (id < H264_PPS_MAX && sequence < H264_SPS_MAX && loss->sequence[sequence].frame_num_bits)
        loss->sequence_of[id] = (uint8_t)sequence;
}

// An encoder that ignores the numbering does so from its first IDR picture on.
static bool is_noise(struct h264_loss *loss, bool misnumbered)
{
    const bool own_way = !loss->keyed || loss->misnumbered == MISNUMBERED_MAX;
    loss->keyed = true;
    loss->misnumbered = !misnumbered ? 0 : own_way ? MISNUMBERED_MAX : loss->misnumbered + 1;
    return misnumbered && !own_way;
}

static bool read_loss_slice(struct h264_loss *loss, const struct nal *unit, bool idr)
{
    struct nal_bits bits = {.data = unit->data, .size = unit->size, .at = 1};
    if (nal_ue(&bits) != 0)
        return false; // not the first slice of its picture
    nal_ue(&bits);
    const uint32_t id = nal_ue(&bits);
    if (id >= H264_PPS_MAX)
        return true;
    const struct h264_sps *sps = &loss->sequence[loss->sequence_of[id]];
    if (!sps->frame_num_bits || sps->gaps)
        return false;
    nal_u(&bits, sps->plane_bits);
    const uint32_t number = nal_u(&bits, (int)sps->frame_num_bits);
    const uint32_t next = (loss->last + 1) & ((UINT32_C(1) << sps->frame_num_bits) - 1);
    bool wrong = loss->begun && number != next && !(sps->fields && number == loss->last);
    if (idr) { // both numbers are 0
        const bool ordered = sps->poc_lsb_bits && sps->poc_lsb_bits <= 16 && !sps->fields;
        wrong = is_noise(loss, number != 0 || (ordered && (nal_ue(&bits) > IDR_ID_MAX ||
                                                           nal_u(&bits, (int)sps->poc_lsb_bits))));
    }
    if (idr || (unit->data[0] & H264_REFERENCE)) {
        loss->begun = true;
        loss->last = number;
    }
    return wrong;
}

bool h264_loss_unit(struct h264_loss *loss, const struct nal *unit)
{
    const int type = h264_unit_type(unit);
    const bool idr = type == H264_UNIT_IDR, noise = loss->noise > 0;
    if (type == H264_UNIT_SPS)
        read_loss_sequence(loss, unit);
    else if (type == H264_UNIT_PPS)
        read_loss_picture(loss, unit);
    if (type != H264_UNIT_SLICE && !idr)
        return false;
    loss->noise -= noise && idr;
    return read_loss_slice(loss, unit, idr) || noise;
}

// --- extradata

struct extradata_reader extradata_read(const uint8_t *data, size_t size, bool hevc)
{
    struct extradata_reader reader = {.data = data, .size = data ? size : 0, .hevc = hevc};
    if (hevc && hevc_length_bytes(data, size) > 0) {
        reader.at = HVCC_ARRAYS + 1;
        reader.arrays = data[HVCC_ARRAYS];
    } else if (!hevc && h264_length_bytes(data, size) > 0) {
        reader.at = AVCC_SEQUENCES;
        reader.arrays = 2; // of SPS, then of PPS
    } else {
        reader.arrays = -1; // start codes
    }
    return reader;
}

bool extradata_next(struct extradata_reader *reader, struct nal *ret)
{
    const uint8_t *data = reader->data;
    struct nal_reader units = {data, reader->size, reader->arrays < 0 ? 0 : 2, reader->at};
    for (; reader->units == 0 && reader->arrays > 0 && units.at + 3 < units.size;
         reader->arrays--) {
        reader->units = reader->hevc ? data[units.at + 1] << 8 | data[units.at + 2]
                                     : data[units.at] & (reader->arrays > 1 ? 31 : 255);
        units.at += reader->hevc ? 3 : 1;
    }
    reader->units--;
    const bool found = (reader->arrays < 0 || reader->units >= 0) && nal_next(&units, ret);
    reader->at = units.at;
    return found;
}

// --- where a stream is whole again without an IDR picture: after a recovery point, whose count
// spans a periodic intra refresh, or at intra pictures of streams that have nothing else

struct recovery {
    struct recovery_point {
        int64_t serial; // of its first packet
        int64_t left;   // fields of reference pictures that its count still spans; H.265: unused
        int64_t poc;    // output order is whole from here on; INT64_MAX: unknown
        bool ended;     // its count
    } point[RECOVERY_POINTS];
    int n;
    bool marked; // the stream has IDR or IRAP pictures or recovery points
    int intras;  // intra pictures of a stream without them
};

struct packet_reader {
    const AVCodecParameters *parameters;
    bool h264, hevc, hashes;
    int length_bytes; // see struct nal_reader
    AVCodecParserContext *parser;
    AVCodecContext *context; // the parser writes to it
    struct h264_loss loss;
    struct recovery recovery;
    // H.264: pictures are shown in decoding order, and refer to the last one at most. H.265: the
    // PPS has output_flag_present_flag.
    bool in_order, one_reference, may_be_hidden;
    int highest_layer; // the highest temporal layer of H.265 so far
    // Of the present packet:
    int slices;
    bool intra; // in all slices; H.265: only known for pictures of one slice
};

// A damaged or joined stream is not whole at its first intra picture if pictures after it may refer
// to pictures before it.
static bool passes_for_point(struct packet_reader *reader, const struct packet_facts *facts)
{
    struct recovery *recovery = &reader->recovery;
    recovery->marked |=
        facts->random_access || facts->start != PICTURE_CONTINUES || facts->recovery != NO_RECOVERY;
    recovery->intras += !recovery->marked && reader->intra;
    return !recovery->marked && reader->intra &&
           (reader->one_reference || recovery->intras >= INTRAS_SURE);
}

// If there is no room, the oldest point that has ended goes. If none has, the new one is not
// needed: the others end first.
static void add_point(struct recovery *recovery, const struct packet_facts *facts)
{
    const int64_t count = facts->recovery != NO_RECOVERY ? facts->recovery : 0;
    struct recovery_point *at = recovery->point, *end = at + recovery->n;
    if (recovery->n == RECOVERY_POINTS) {
        while (at < end && !at->ended)
            at++;
        if (at == end)
            return;
        memmove(at, at + 1, (size_t)(--end - at) * sizeof *at);
    }
    *end++ = (struct recovery_point){facts->serial, 2 * count, facts->poc + count, false};
    recovery->n = (int)(end - recovery->point);
}

// Returns true if a picture is whole since the point. Only a picture that ends the count of the
// point is so without an order.
static bool is_whole_since(struct recovery_point *point, const struct packet_facts *facts,
                           bool h264)
{
    const bool reached = facts->ordered && facts->poc >= point->poc;
    if (point->ended || !h264) {
        point->ended |= reached;
        return reached;
    }
    point->ended = point->left <= 0;
    if (point->ended)
        point->poc = facts->ordered ? facts->poc : INT64_MAX;
    point->left -= !facts->reference ? 0 : facts->field ? 1 : 2;
    return point->ended;
}

// Returns `whole_from`.
static int64_t follow_recovery(struct packet_reader *reader, const struct packet_facts *facts)
{
    struct recovery *recovery = &reader->recovery;
    int64_t from = 0;
    if (facts->start != PICTURE_CONTINUES) // POC starts again
        recovery->n = 0;
    if (passes_for_point(reader, facts) || facts->recovery != NO_RECOVERY)
        add_point(recovery, facts);
    for (int i = 0; i < recovery->n; i++)
        if (is_whole_since(&recovery->point[i], facts, reader->h264))
            from = recovery->point[i].serial;
    return from;
}

// --- units of H.264

// Reads units up to the first slice.
static void read_h264_head(struct packet_reader *reader, const struct nal *unit,
                           struct packet_facts *facts)
{
    const int type = h264_unit_type(unit);
    struct nal_bits sei;
    if (type == H264_UNIT_SPS) {
        const struct h264_sps sps = h264_sps_read(unit->data, unit->size);
        reader->in_order = sps.poc_type == 2;
        reader->one_reference = sps.references <= 1;
    } else if (type == H264_UNIT_SEI && nal_find_sei(unit, 1, SEI_RECOVERY_POINT, &sei)) {
        const uint32_t count = nal_ue(&sei);
        facts->recovery = count < RECOVERY_MAX ? (int)count : RECOVERY_MAX;
    }
    if (reader->length_bytes == 0) // others are from a file, which loses none
        facts->damaged |= h264_loss_unit(&reader->loss, unit);
}

static void read_h264(struct packet_reader *reader, const struct nal *unit,
                      struct packet_facts *facts)
{
    const int type = h264_unit_type(unit);
    if (reader->slices == 0)
        read_h264_head(reader, unit, facts);
    if (type < H264_UNIT_SLICE || type > H264_UNIT_IDR)
        return;
    const uint32_t slice = h264_slice_read(unit->data, unit->size).type % 5;
    reader->intra = (type == H264_UNIT_SLICE || type == H264_UNIT_IDR) &&
                    (slice == SLICE_I || slice == SLICE_SI) &&
                    (reader->intra || reader->slices == 0);
    if (reader->slices++ > 0)
        return;
    facts->reference = unit->data[0] & H264_REFERENCE;
    facts->disposable = !facts->reference;
    facts->start = type == H264_UNIT_IDR ? PICTURE_BEGINS_LOWEST : PICTURE_CONTINUES;
}

// --- units of H.265

// output_flag_present_flag of pps_rbsp.
static bool read_output_flag(const struct nal *unit)
{
    struct nal_bits bits = {.data = unit->data, .size = unit->size, .at = 2};
    nal_ue(&bits); // ids of the PPS and of its SPS
    nal_ue(&bits);
    nal_u(&bits, 1); // dependent_slice_segments_enabled_flag
    return nal_u(&bits, 1);
}

void picture_hash_read(struct picture_hash *ret, const struct nal *suffix_sei)
{
    static const size_t bytes_of[] = {16, 2, 4};
    struct picture_hash hash = {0};
    struct nal_bits sei;
    if (!nal_find_sei(suffix_sei, 2, SEI_PICTURE_HASH, &sei) || nal_ended(&sei))
        return;
    const size_t size = suffix_sei->data[sei.at - 1]; // its last byte
    const uint32_t type = nal_u(&sei, 8);
    const size_t bytes = type < 3 ? bytes_of[type] : 0;
    if (bytes == 0 || (size != 1 + bytes && size != 1 + 3 * bytes))
        return;
    for (size_t c = 0; c < size / bytes; c++) // monochrome pictures have one component
        for (size_t i = 0; i < bytes; i++)
            hash.digest[c][i] = (uint8_t)nal_u(&sei, 8);
    hash.method = HASH_MD5 + type;
    if (!nal_ended(&sei))
        *ret = hash;
}

// In H.265 a picture that its own temporal layer does not refer to may serve a higher layer.
static void read_hevc_slice(struct packet_reader *reader, const struct nal *unit, int type,
                            struct packet_facts *facts)
{
    const bool irap = type >= HEVC_UNIT_BLA_W_LP;
    const int layer = (unit->data[1] & 7) - 1;
    if (layer > reader->highest_layer)
        reader->highest_layer = layer;
    facts->random_access = irap;
    facts->reference = irap || type % 2 == 1;
    facts->disposable = !facts->reference && layer == reader->highest_layer;
    if (type == HEVC_UNIT_IDR_N_LP || type == HEVC_UNIT_BLA_N_LP)
        facts->start = PICTURE_BEGINS_LOWEST;
    else if (irap && type < HEVC_UNIT_CRA)
        facts->start = PICTURE_BEGINS;
}

static void read_hevc(struct packet_reader *reader, const struct nal *unit,
                      struct packet_facts *facts)
{
    const int type = hevc_unit_type(unit);
    struct nal_bits sei;
    facts->sequence |= type == HEVC_UNIT_SPS && reader->slices == 0;
    if (type == HEVC_UNIT_PPS)
        reader->may_be_hidden |= read_output_flag(unit);
    else if (type == HEVC_UNIT_PREFIX_SEI && nal_find_sei(unit, 2, SEI_RECOVERY_POINT, &sei))
        facts->recovery = nal_se(&sei);
    else if (type == HEVC_UNIT_SUFFIX_SEI && reader->hashes)
        picture_hash_read(&facts->hash, unit);
    const bool irap = type >= HEVC_UNIT_BLA_W_LP && type <= HEVC_UNIT_RSV_IRAP_VCL23;
    if (((type >= 0 && type <= HEVC_UNIT_RASL_R) || irap) && reader->slices++ == 0)
        read_hevc_slice(reader, unit, type, facts);
}

// --- the pass

static void read_unit(struct packet_reader *reader, const struct nal *unit,
                      struct packet_facts *facts)
{
    (reader->hevc ? read_hevc : read_h264)(reader, unit, facts);
}

void packet_reader_begin(struct packet_reader *reader)
{
    const AVCodecParameters *parameters = reader->parameters;
    struct packet_facts none = {0};
    struct extradata_reader sets =
        extradata_read(parameters->extradata, (size_t)parameters->extradata_size, reader->hevc);
    reader->loss = (struct h264_loss){0};
    reader->recovery = (struct recovery){0};
    reader->slices = 0;
    for (struct nal unit; reader->parser && extradata_next(&sets, &unit);)
        read_unit(reader, &unit, &none);
}

int packet_reader_open(struct packet_reader **ret, const AVCodecParameters *parameters, bool hashes)
{
    struct packet_reader *reader = calloc(1, sizeof *reader);
    const uint8_t *extradata = parameters->extradata;
    const size_t size = (size_t)parameters->extradata_size;
    if (!reader)
        return -ENOMEM;
    *ret = reader;
    reader->parameters = parameters;
    reader->hashes = hashes;
    reader->h264 = parameters->codec_id == AV_CODEC_ID_H264;
    reader->hevc = parameters->codec_id == AV_CODEC_ID_HEVC;
    if (!reader->h264 && !reader->hevc)
        return 0;
    reader->length_bytes =
        reader->hevc ? hevc_length_bytes(extradata, size) : h264_length_bytes(extradata, size);
    if (!(reader->parser = av_parser_init((int)parameters->codec_id)) ||
        !(reader->context = avcodec_alloc_context3(NULL)) ||
        avcodec_parameters_to_context(reader->context, parameters) < 0) {
        packet_reader_close(reader);
        *ret = NULL;
        return -ENOMEM;
    }
    reader->parser->flags |= PARSER_FLAG_COMPLETE_FRAMES;
    reader->context->log_level_offset = QUIET;
    packet_reader_begin(reader);
    return 0;
}

void packet_reader_close(struct packet_reader *reader)
{
    if (!reader)
        return;
    if (reader->parser)
        av_parser_close(reader->parser);
    avcodec_free_context(&reader->context);
    free(reader);
}

// libavcodec's parser counts POC. It also reads the structure of a picture of H.264, and the type
// of a picture of H.265.
static void read_order(struct packet_reader *reader, const AVPacket *packet,
                       struct packet_facts *facts)
{
    AVCodecParserContext *parser = reader->parser;
    uint8_t *whole;
    int bytes;
    parser->output_picture_number = NEVER_POC;
    av_parser_parse2(parser, reader->context, &whole, &bytes, packet->data, packet->size,
                     AV_NOPTS_VALUE, AV_NOPTS_VALUE, 0);
    facts->ordered = parser->output_picture_number != NEVER_POC;
    facts->poc = facts->ordered ? parser->output_picture_number : 0;
    facts->field = reader->h264 && parser->picture_structure != AV_PICTURE_STRUCTURE_FRAME;
    facts->broken = reader->h264 && parser->picture_structure == AV_PICTURE_STRUCTURE_UNKNOWN;
    if (reader->hevc)
        reader->intra = reader->slices == 1 && parser->pict_type == AV_PICTURE_TYPE_I;
}

struct packet_facts packet_reader_read(struct packet_reader *reader, const AVPacket *packet,
                                       int64_t serial)
{
    struct packet_facts facts = {.serial = serial, .recovery = NO_RECOVERY};
    struct nal_reader units = {
        .data = packet->data, .size = (size_t)packet->size, .length_bytes = reader->length_bytes};
    if (!reader->parser)
        return facts;
    reader->slices = 0;
    reader->intra = false;
    for (struct nal unit; nal_next(&units, &unit);)
        read_unit(reader, &unit, &facts);
    read_order(reader, packet, &facts);
    facts.in_order = reader->in_order;
    facts.may_be_hidden = reader->may_be_hidden;
    facts.whole_from = follow_recovery(reader, &facts);
    facts.by_intra = facts.whole_from > 0 && !reader->recovery.marked;
    return facts;
}
