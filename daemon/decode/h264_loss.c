#include "daemon/decode/h264_loss.h"

enum {
    NAL_SLICE = 1,
    NAL_IDR = 5,
    NAL_SPS = 7,
    NAL_PPS = 8,
    IDR_ID_MAX = 65535,
    MISNUMBERED_MAX = 8, // IDR pictures in a row: from there on it is taken for the stream's way
    NOISE_IDR_MAX = 8,   // the decoder may have kept what it had: no other parameters need come
};

// Bits of a NAL unit, without the bytes that keep it from looking like a start code. Beyond its end
// they are 0.
struct bits {
    const uint8_t *data;
    size_t size, at;
    int zeros; // bytes in a row before `at`
    int left;  // bits of `byte`
    uint8_t byte;
};

static uint32_t read_bit(struct bits *bits)
{
    if (bits->left == 0) {
        if (bits->zeros >= 2 && bits->at < bits->size && bits->data[bits->at] == 3) {
            bits->at++;
            bits->zeros = 0;
        }
        bits->byte = bits->at < bits->size ? bits->data[bits->at] : 0;
        bits->at++;
        bits->zeros = bits->byte ? 0 : bits->zeros + 1;
        bits->left = 8;
    }
    return bits->byte >> --bits->left & 1;
}

static uint32_t read_bits(struct bits *bits, int n)
{
    uint32_t value = 0;
    while (n-- > 0)
        value = value << 1 | read_bit(bits);
    return value;
}

// The standard's ue(v): as many zeros as there are bits behind a one.
static uint32_t read_number(struct bits *bits)
{
    int zeros = 0;
    while (zeros < 32 && !read_bit(bits))
        zeros++;
    return zeros < 32 ? (uint32_t)((UINT64_C(1) << zeros) - 1) + read_bits(bits, zeros)
                      : UINT32_MAX;
}

// se(v), where only the low byte counts.
static int read_delta(struct bits *bits)
{
    uint32_t number = read_number(bits);
    return (int)(number / 2 & 0xff) * (number & 1 ? 1 : -1) + (int)(number & 1);
}

static void skip_scaling_list(struct bits *bits, int size)
{
    int last = 8, next = 8;
    for (int i = 0; i < size; i++) {
        if (next != 0)
            next = (last + read_delta(bits) + 256) & 255;
        last = next ? next : last;
    }
}

static bool has_chroma_format(uint32_t profile)
{
    static const uint8_t profiles[] = {100, 110, 122, 244, 44,  83, 86,
                                       118, 128, 138, 139, 134, 135};
    for (size_t i = 0; i < sizeof profiles; i++)
        if (profiles[i] == profile)
            return true;
    return false;
}

// Returns how many bits come ahead of a picture's number for its colour planes.
static int skip_chroma_format(struct bits *bits)
{
    uint32_t format = read_number(bits);
    int planes_bits = format == 3 && read_bit(bits) ? 2 : 0;
    read_number(bits); // bit depths
    read_number(bits);
    read_bit(bits);
    bool lists = read_bit(bits);
    for (int i = 0; lists && i < (format == 3 ? 12 : 8); i++)
        if (read_bit(bits))
            skip_scaling_list(bits, i < 6 ? 16 : 64);
    return planes_bits;
}

// Returns how many bits a picture's place in the order has, where it is one number.
static uint32_t read_order_bits(struct bits *bits)
{
    uint32_t type = read_number(bits);
    if (type == 0)
        return read_number(bits) + 4;
    if (type != 1)
        return 0;
    read_bit(bits);
    read_number(bits); // the same length as se(v)
    read_number(bits);
    for (uint32_t n = read_number(bits) & 0xff; n > 0; n--)
        read_number(bits);
    return 0;
}

// By table A-1 of the standard, and by two bits of the constraints that are 0; or the stream has
// its own way: from the first ones on, or since they changed, for noise does not come twice.
static bool are_parameters(struct h264_loss *loss, int constraints, int level)
{
    static const uint8_t levels[] = {9,  10, 11, 12, 13, 20, 21, 22, 30, 31,
                                     32, 40, 41, 42, 50, 51, 52, 60, 61, 62};
    const int form = constraints << 8 | level;
    const bool own_way = !loss->form || form == loss->form || form == loss->last_form;
    if (!loss->form)
        loss->form = form;
    loss->last_form = form;
    for (size_t i = 0; i < sizeof levels; i++)
        if (levels[i] == level && !(constraints & 3))
            return true;
    return own_way;
}

static void read_sequence(struct h264_loss *loss, struct bits bits)
{
    struct h264_loss_sequence sequence = {.known = true};
    uint32_t profile = read_bits(&bits, 8);
    int constraints = (int)read_bits(&bits, 8), level = (int)read_bits(&bits, 8);
    loss->noise = are_parameters(loss, constraints, level) ? 0 : NOISE_IDR_MAX;
    uint32_t id = read_number(&bits);
    if (loss->noise || id >= H264_LOSS_SEQUENCES)
        return;
    sequence.planes_bits = has_chroma_format(profile) ? skip_chroma_format(&bits) : 0;
    uint32_t number_bits = read_number(&bits) + 4;
    uint32_t order_bits = read_order_bits(&bits);
    read_number(&bits);
    bool leaves_out = read_bit(&bits);
    read_number(&bits); // width and height
    read_number(&bits);
    sequence.fields = !read_bit(&bits);
    sequence.number_bits = number_bits <= 16 && !leaves_out ? (int)number_bits : 0;
    sequence.order_bits = order_bits <= 16 && !sequence.fields ? (int)order_bits : 0;
    loss->sequence[id] = sequence;
}

// Those of a sequence that never came are noise, and a decoder will not have them either.
static void read_picture(struct h264_loss *loss, struct bits bits)
{
    uint32_t id = read_number(&bits), sequence = read_number(&bits);
    if (id < H264_LOSS_PICTURES && sequence < H264_LOSS_SEQUENCES && loss->sequence[sequence].known)
        loss->sequence_of[id] = (uint8_t)sequence;
}

static bool follows(const struct h264_loss_sequence *sequence, uint32_t last, uint32_t number)
{
    uint32_t next = (last + 1) & ((UINT32_C(1) << sequence->number_bits) - 1);
    return number == next || (sequence->fields && number == last);
}

static bool is_misnumbered(const struct h264_loss_sequence *sequence, struct bits bits,
                           uint32_t number)
{
    if (number != 0)
        return true;
    return sequence->order_bits &&
           (read_number(&bits) > IDR_ID_MAX || read_bits(&bits, sequence->order_bits) != 0);
}

// An encoder that never kept to the numbers does so from its first IDR picture on.
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

static bool read_slice(struct h264_loss *loss, struct bits bits, bool idr, bool is_reference)
{
    if (read_number(&bits) != 0)
        return false; // not the first of its picture
    read_number(&bits);
    uint32_t id = read_number(&bits);
    if (id >= H264_LOSS_PICTURES)
        return true;
    const struct h264_loss_sequence *sequence = &loss->sequence[loss->sequence_of[id]];
    if (!sequence->number_bits)
        return false;
    read_bits(&bits, sequence->planes_bits);
    uint32_t number = read_bits(&bits, sequence->number_bits);
    bool wrong = idr ? is_noise(loss, is_misnumbered(sequence, bits, number))
                     : loss->begun && !follows(sequence, loss->last, number);
    loss->begun |= idr || is_reference;
    if (idr || is_reference)
        loss->last = number;
    return wrong;
}

// By numbers, and by the parameters that it may have been made with.
static bool is_wrong(struct h264_loss *loss, struct bits bits, bool idr, bool is_reference)
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
        struct bits bits = {.data = data + i + 4, .size = size - i - 4};
        if (type == NAL_SPS)
            read_sequence(loss, bits);
        else if (type == NAL_PPS)
            read_picture(loss, bits);
        else if (type >= NAL_SLICE && type <= NAL_IDR)
            return (type == NAL_SLICE || type == NAL_IDR) &&
                   is_wrong(loss, bits, type == NAL_IDR, data[i + 3] & 0x60);
    }
    return false;
}
