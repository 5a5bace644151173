#include "daemon/decode/h264_loss.h"

#include "daemon/bitstream/nal.h"

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

static void read_sequence(struct h264_loss *loss, const uint8_t *unit, size_t size)
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
static void read_picture(struct h264_loss *loss, struct nal_bits bits)
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

static bool read_slice(struct h264_loss *loss, struct nal_bits bits, bool idr, bool is_reference)
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
    bool noise = loss->noise > 0, wrong = read_slice(loss, bits, idr, is_reference);
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
            read_sequence(loss, data + i + 3, size - i - 3);
        else if (type == H264_UNIT_PPS)
            read_picture(loss, bits);
        else if (type >= H264_UNIT_SLICE && type <= H264_UNIT_IDR)
            return (type == H264_UNIT_SLICE || type == H264_UNIT_IDR) &&
                   is_wrong(loss, bits, type == H264_UNIT_IDR, data[i + 3] & 0x60);
    }
    return false;
}
