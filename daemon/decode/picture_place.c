#include "daemon/decode/picture_place.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <stdlib.h>

#include "daemon/bitstream/nal.h"

enum {
    H264_REFERENCE = 0x60, // in a unit's first byte
    SEI_RECOVERY_POINT = 6,
    RECOVERY_MAX = 1 << 16, // pictures: no stream needs more
    SLICE_I = 2,            // slice_type modulo 5
    SLICE_SI = 4,
    AVCC_SEQUENCES = 5, // offset of their number in an AVCDecoderConfigurationRecord
    HVCC_ARRAYS = 22,   // offset of numOfArrays in a HEVCDecoderConfigurationRecord
    NEVER_POC = INT_MIN,
    QUIET = 64, // added to the level of log messages: the decoder logs the same
};

struct picture_place_reader {
    AVCodecParserContext *parser;
    AVCodecContext *context; // the parser writes to it
    bool hevc;
    int length_bytes;
    uint64_t sequence_hash; // of the last SPS; 0: none came
    bool in_order, one_reference, may_be_hidden;
    int slices; // of the present packet
};

// --- H.264

static bool is_intra_slice(const struct nal *unit, int type)
{
    const uint32_t slice = h264_slice_read(unit->data, unit->size).type % 5;
    return (type == H264_UNIT_SLICE || type == H264_UNIT_IDR) &&
           (slice == SLICE_I || slice == SLICE_SI);
}

// Reads units that precede the slices.
static void read_h264_head(struct picture_place_reader *reader, const struct nal *unit,
                           struct picture_place *place)
{
    const int type = h264_unit_type(unit);
    struct nal_bits sei;
    if (type == H264_UNIT_SPS) {
        const struct h264_sps sps = h264_sps_read(unit->data, unit->size);
        reader->in_order = sps.poc_type == 2;
        reader->one_reference = sps.references <= 1;
    } else if (type == H264_UNIT_SEI && nal_find_sei(unit, 1, SEI_RECOVERY_POINT, &sei)) {
        const uint32_t count = nal_ue(&sei);
        place->recovery = count < RECOVERY_MAX ? (int)count : RECOVERY_MAX;
    }
}

static void read_h264(struct picture_place_reader *reader, const struct nal *unit,
                      struct picture_place *place)
{
    const int type = h264_unit_type(unit);
    if (type < H264_UNIT_SLICE || type > H264_UNIT_IDR) {
        if (reader->slices == 0)
            read_h264_head(reader, unit, place);
        return;
    }
    place->intra = is_intra_slice(unit, type) && (place->intra || reader->slices == 0);
    if (reader->slices++ > 0)
        return;
    place->reference = unit->data[0] & H264_REFERENCE;
    place->start = type == H264_UNIT_IDR ? ORDER_BEGINS_LOWEST : ORDER_CONTINUES;
}

// --- H.265

// output_flag_present_flag of pps_rbsp.
static bool read_output_flag(const struct nal *unit)
{
    struct nal_bits bits = {.data = unit->data, .size = unit->size, .at = 2};
    nal_ue(&bits); // ids of the PPS and of its SPS
    nal_ue(&bits);
    nal_u(&bits, 1); // dependent_slice_segments_enabled_flag
    return nal_u(&bits, 1);
}

static void read_hevc(struct picture_place_reader *reader, const struct nal *unit,
                      struct picture_place *place)
{
    const int type = hevc_unit_type(unit);
    struct nal_bits sei;
    if (type == HEVC_UNIT_PPS)
        reader->may_be_hidden |= read_output_flag(unit);
    else if (type == HEVC_UNIT_PREFIX_SEI && nal_find_sei(unit, 2, SEI_RECOVERY_POINT, &sei))
        place->recovery = nal_se(&sei);
    const bool irap = type >= HEVC_UNIT_BLA_W_LP && type <= HEVC_UNIT_RSV_IRAP_VCL23;
    if (type < 0 || (type > HEVC_UNIT_RASL_R && !irap) || reader->slices++ > 0)
        return;
    place->random_access = irap;
    place->reference = type > HEVC_UNIT_RSV_VCL_N14 || type % 2 == 1;
    if (type == HEVC_UNIT_IDR_N_LP || type == HEVC_UNIT_BLA_N_LP)
        place->start = ORDER_BEGINS_LOWEST;
    else if (irap && type < HEVC_UNIT_CRA)
        place->start = ORDER_BEGINS;
}

// --- both

static bool is_sequence(const struct picture_place_reader *reader, const struct nal *unit)
{
    return reader->hevc ? hevc_unit_type(unit) == HEVC_UNIT_SPS
                        : h264_unit_type(unit) == H264_UNIT_SPS;
}

static bool differs_from_last(struct picture_place_reader *reader, const struct nal *sequence)
{
    uint64_t hash = 0xcbf29ce484222325; // FNV-1a
    for (size_t i = 0; i < sequence->size; i++)
        hash = (hash ^ sequence->data[i]) * 0x100000001b3;
    const bool differs = hash != reader->sequence_hash;
    reader->sequence_hash = hash;
    return differs;
}

static void read_unit(struct picture_place_reader *reader, const struct nal *unit,
                      struct picture_place *place)
{
    if (reader->slices == 0 && is_sequence(reader, unit))
        place->new_sequence |= differs_from_last(reader, unit);
    (reader->hevc ? read_hevc : read_h264)(reader, unit, place);
}

static void read_units(struct picture_place_reader *reader, const uint8_t *data, size_t size,
                       int length_bytes, struct picture_place *place)
{
    struct nal_reader units = {.data = data, .size = size, .length_bytes = length_bytes};
    struct nal unit;
    while (nal_next(&units, &unit))
        read_unit(reader, &unit, place);
}

// Reads the parameter sets in a record, each preceded by its length in two bytes. In H.264 only the
// first SPS matters.
static void read_record(struct picture_place_reader *reader, const uint8_t *data, size_t size)
{
    struct picture_place none = {0};
    size_t at = reader->hevc ? HVCC_ARRAYS + 1 : AVCC_SEQUENCES;
    for (int arrays = reader->hevc ? data[HVCC_ARRAYS] : 1; arrays > 0 && size > at + 5; arrays--) {
        at += reader->hevc ? 1 : 0; // type
        int units = reader->hevc ? data[at] << 8 | data[at + 1] : 1;
        for (at += reader->hevc ? 2 : 1; units > 0 && size - at > 2; units--) {
            const size_t bytes = (size_t)(data[at] << 8 | data[at + 1]);
            at += 2;
            if (bytes > size - at)
                return;
            read_unit(reader, &(struct nal){data + at, bytes}, &none);
            at += bytes;
        }
    }
}

static void read_extradata(struct picture_place_reader *reader, const AVCodecParameters *parameters)
{
    const uint8_t *extradata = parameters->extradata;
    const size_t size = (size_t)parameters->extradata_size;
    struct picture_place none = {0};
    reader->length_bytes =
        reader->hevc ? hevc_length_bytes(extradata, size) : h264_length_bytes(extradata, size);
    if (reader->length_bytes > 0)
        read_record(reader, extradata, size);
    else if (extradata)
        read_units(reader, extradata, size, 0, &none);
}

int picture_place_open(struct picture_place_reader **ret, const AVCodecParameters *parameters)
{
    const enum AVCodecID id = parameters->codec_id;
    if (id != AV_CODEC_ID_H264 && id != AV_CODEC_ID_HEVC)
        return -ENOTSUP;
    struct picture_place_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return -ENOMEM;
    reader->hevc = id == AV_CODEC_ID_HEVC;
    if (!(reader->parser = av_parser_init((int)id)) ||
        !(reader->context = avcodec_alloc_context3(NULL)) ||
        avcodec_parameters_to_context(reader->context, parameters) < 0) {
        picture_place_close(reader);
        return -ENOMEM;
    }
    reader->parser->flags |= PARSER_FLAG_COMPLETE_FRAMES;
    reader->context->log_level_offset = QUIET;
    read_extradata(reader, parameters);
    *ret = reader;
    return 0;
}

void picture_place_close(struct picture_place_reader *reader)
{
    if (!reader)
        return;
    if (reader->parser)
        av_parser_close(reader->parser);
    avcodec_free_context(&reader->context);
    free(reader);
}

struct picture_place picture_place_read(struct picture_place_reader *reader, const AVPacket *packet)
{
    struct picture_place place = {.recovery = NO_RECOVERY};
    AVCodecParserContext *parser = reader->parser;
    uint8_t *whole;
    int bytes;
    reader->slices = 0;
    read_units(reader, packet->data, (size_t)packet->size, reader->length_bytes, &place);
    parser->output_picture_number = NEVER_POC;
    av_parser_parse2(parser, reader->context, &whole, &bytes, packet->data, packet->size,
                     AV_NOPTS_VALUE, AV_NOPTS_VALUE, 0);
    place.known = parser->output_picture_number != NEVER_POC;
    place.poc = place.known ? parser->output_picture_number : 0;
    place.field = !reader->hevc && parser->picture_structure != AV_PICTURE_STRUCTURE_FRAME;
    place.broken = !reader->hevc && parser->picture_structure == AV_PICTURE_STRUCTURE_UNKNOWN;
    if (reader->hevc)
        place.intra = reader->slices == 1 && parser->pict_type == AV_PICTURE_TYPE_I;
    place.one_reference = reader->one_reference;
    place.in_order = reader->in_order;
    place.may_be_hidden = reader->may_be_hidden;
    return place;
}
