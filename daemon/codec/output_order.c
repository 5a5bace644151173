#include "daemon/codec/output_order.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/number.h"
#include "daemon/bitstream/nal.h"

enum {
    LEARN_SEQUENCES = 2, // sequences after which their smallest step counts as learned
    LEARN_PICTURES_MIN = 8,
    LEARN_PICTURES_MAX = 48, // or pictures: some streams are one sequence
    PATIENCE_MAX = 16,
    STEP_MAX = 1 << 16,
    DISTRUSTED_PICTURES = 32 // at most: some streams are one sequence
};

// --- learning

void output_order_forget(struct output_order *order)
{
    order->step = order->smallest = order->pictures = order->sequences = 0;
}

void output_order_begin(struct output_order *order)
{
    *order = (struct output_order){0};
}

static void learn_step(struct output_order *order, int difference)
{
    const int patience = order->patience + 1;
    if (difference < order->step)
        order->step = difference;
    if (order->pictures == 0 || difference < order->smallest)
        order->smallest = difference;
    order->pictures++;
    if (order->pictures < LEARN_PICTURES_MAX * patience &&
        (order->pictures < LEARN_PICTURES_MIN * patience ||
         order->sequences < LEARN_SEQUENCES * patience))
        return;
    order->step = order->smallest;
    order->pictures = order->sequences = 0;
}

// Call when a picture came too late because of the rule.
static void blame_rule(struct output_order *order, enum order_rule rule)
{
    switch (rule) {
    case ORDER_RULE_STEP:
        output_order_forget(order);
        order->patience = 2 * order->patience + 1;
        if (order->patience > PATIENCE_MAX)
            order->patience = PATIENCE_MAX;
        break;
    case ORDER_RULE_NON_REFERENCE:
        order->no_non_reference = true;
        break;
    case ORDER_RULE_SAFE:
    case ORDER_RULES:
        break;
    }
}

// --- the pictures

static void remove_entry(struct output_order *order, int at)
{
    order->n--;
    memmove(order->entry + at, order->entry + at + 1,
            (size_t)(order->n - at) * sizeof(order->entry[0]));
}

void output_order_distrust(struct output_order *order)
{
    order->distrusted = DISTRUSTED_PICTURES;
    for (int i = 0; i < order->n; i++)
        order->entry[i].picture.taken &= order->entry[i].picture.given || order->unseen ||
                                         order->entry[i].sequence != order->sequence;
}

// Blames the rules that showed pictures too early: by POC, a new picture belongs ahead of them.
static void blame_rules(struct output_order *order, int poc)
{
    bool wrong[ORDER_RULES] = {false};
    for (int i = 0; i < order->n; i++) {
        const struct order_entry *entry = &order->entry[i];
        wrong[entry->rule] |=
            entry->shown && entry->sequence == order->sequence && entry->picture.poc >= poc;
    }
    for (int rule = 0; rule < ORDER_RULES; rule++)
        if (wrong[rule])
            blame_rule(order, rule);
    output_order_distrust(order);
}

bool output_order_is_behind(const struct output_order *order, int poc)
{
    return order->begun && order->last_sequence == order->sequence && poc <= order->last_poc;
}

bool output_order_decoded(struct output_order *order, const struct order_picture *picture,
                          int depth)
{
    order->depth = depth;
    if (picture->start != ORDER_CONTINUES) {
        order->sequence++;
        order->sequences++;
        order->distrusted = 0;
        order->unseen = picture->start == ORDER_BEGINS_UNSEEN;
    }
    order->newest = *picture;
    if (output_order_is_behind(order, picture->poc)) {
        blame_rules(order, picture->poc);
        if (picture->given)
            return false;
    }
    if (order->n == OUTPUT_ORDER_PICTURES)
        remove_entry(order, 0);
    order->entry[order->n] = (struct order_entry){
        .picture = *picture,
        .sequence = order->sequence,
        .unseen = order->unseen,
    };
    order->entry[order->n++].picture.taken &= order->distrusted == 0 || picture->given;
    order->distrusted -= order->distrusted > 0;
    return true;
}

static void note_shown(struct output_order *order, struct order_entry *entry)
{
    const int poc = entry->picture.poc;
    if (order->begun && order->last_sequence == entry->sequence && poc > order->last_poc &&
        (int64_t)poc - order->last_poc <= STEP_MAX)
        learn_step(order, poc - order->last_poc);
    order->begun = true;
    order->last_sequence = entry->sequence;
    order->last_poc = poc;
    entry->shown = true;
}

static int find_serial(const struct output_order *order, int64_t serial)
{
    for (int i = 0; i < order->n; i++)
        if (order->entry[i].picture.serial == serial)
            return i;
    return -1;
}

bool output_order_holds(const struct output_order *order, int64_t serial)
{
    const int at = find_serial(order, serial);
    return at >= 0 && !order->entry[at].shown;
}

// Returns the first unshown picture in output order; *held counts those in its sequence.
static struct order_entry *find_lowest(struct output_order *order, int *held)
{
    struct order_entry *lowest = NULL;
    *held = 0;
    for (int i = 0; i < order->n; i++) {
        struct order_entry *entry = &order->entry[i];
        if (entry->shown)
            continue;
        if (lowest && entry->sequence != lowest->sequence)
            break;
        ++*held;
        if (!lowest || entry->picture.poc < lowest->picture.poc)
            lowest = entry;
    }
    return lowest;
}

// Returns true if nothing can come ahead of the first picture in output order. *rule is the rule
// that allows it; safe rules come first.
static bool is_next(const struct output_order *order, const struct order_entry *lowest, int held,
                    enum order_rule *rule)
{
    const struct order_picture *newest = &order->newest, *picture = &lowest->picture;
    *rule = ORDER_RULE_SAFE;
    if (lowest->sequence != order->sequence || held > order->depth || order->ended ||
        picture->start == ORDER_BEGINS_LOWEST)
        return true;
    if (picture->random_access && newest->poc > picture->poc)
        return true;
    if (order->distrusted > 0)
        return false;
    *rule = ORDER_RULE_NON_REFERENCE;
    if (!order->no_non_reference && !newest->reference && newest->poc >= picture->poc)
        return true;
    *rule = ORDER_RULE_STEP;
    return order->step > 0 && order->begun && order->last_sequence == lowest->sequence &&
           (int64_t)picture->poc - order->last_poc == order->step;
}

void output_order_end(struct output_order *order)
{
    order->ended = true;
}

int64_t output_order_next(struct output_order *order)
{
    int held;
    enum order_rule rule;
    struct order_entry *lowest = find_lowest(order, &held);
    if (!lowest || !lowest->picture.taken || !is_next(order, lowest, held, &rule))
        return 0;
    lowest->rule = rule;
    note_shown(order, lowest);
    return lowest->picture.serial;
}

// --- the decoder's own output

// The decoder gives out the first picture in output order that it holds: pictures ahead of it,
// shown or not, will not come.
static void drop_missed(struct output_order *order, const struct order_entry *output)
{
    const struct order_entry given = *output;
    for (int i = order->n - 1; i >= 0; i--) {
        const struct order_entry *entry = &order->entry[i];
        if ((int32_t)(entry->sequence - given.sequence) < 0 ||
            (entry->sequence == given.sequence && entry->picture.poc < given.picture.poc))
            remove_entry(order, i);
    }
}

// For a sequence that the decoder mixes with another: taken pictures are shown at their own time.
static enum order_verdict output_unseen(struct output_order *order, int at)
{
    struct order_entry *entry = &order->entry[at];
    const bool shown = entry->shown;
    if (!shown && entry->picture.taken)
        return ORDER_DROP;
    const bool late = order->last_sequence == entry->sequence && order->begun &&
                      entry->picture.poc <= order->last_poc;
    if (!shown && !late)
        note_shown(order, entry);
    remove_entry(order, at);
    return shown ? ORDER_DROP : late ? ORDER_LATE : ORDER_SHOW;
}

enum order_verdict output_order_output(struct output_order *order, int64_t serial)
{
    int at = find_serial(order, serial);
    if (at < 0)
        return ORDER_SHOW;
    if (order->entry[at].unseen)
        return output_unseen(order, at);
    drop_missed(order, &order->entry[at]);
    at = find_serial(order, serial);
    enum order_verdict verdict = order->entry[at].shown ? ORDER_DROP : ORDER_SHOW;
    for (int i = 0; i < order->n && verdict == ORDER_SHOW; i++)
        if (order->entry[i].shown)
            verdict = ORDER_LATE;
    if (verdict == ORDER_SHOW)
        note_shown(order, &order->entry[at]);
    if (verdict == ORDER_LATE)
        output_order_distrust(order);
    remove_entry(order, at);
    return verdict;
}

// --- places

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

// --- the place in H.264

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

// --- the place in H.265

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

// --- the place in both

static bool is_sequence(const struct picture_place_reader *reader, const struct nal *unit)
{
    return reader->hevc ? hevc_unit_type(unit) == HEVC_UNIT_SPS
                        : h264_unit_type(unit) == H264_UNIT_SPS;
}

static bool differs_from_last(struct picture_place_reader *reader, const struct nal *sequence)
{
    const uint64_t hash = hash_bytes(HASH_BEGIN, sequence->data, sequence->size);
    const bool differs = hash != reader->sequence_hash;
    reader->sequence_hash = hash;
    return differs;
}

static void read_place_unit(struct picture_place_reader *reader, const struct nal *unit,
                            struct picture_place *place)
{
    if (reader->slices == 0 && is_sequence(reader, unit))
        place->new_sequence |= differs_from_last(reader, unit);
    (reader->hevc ? read_hevc : read_h264)(reader, unit, place);
}

static void read_place_units(struct picture_place_reader *reader, const uint8_t *data, size_t size,
                             int length_bytes, struct picture_place *place)
{
    struct nal_reader units = {.data = data, .size = size, .length_bytes = length_bytes};
    struct nal unit;
    while (nal_next(&units, &unit))
        read_place_unit(reader, &unit, place);
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
            read_place_unit(reader, &(struct nal){data + at, bytes}, &none);
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
        read_place_units(reader, extradata, size, 0, &none);
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
    read_place_units(reader, packet->data, (size_t)packet->size, reader->length_bytes, &place);
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
