#include "daemon/bitstream/hevc_headers.h"

enum {
    SPS_ID_MAX = 15,
    SIZE_MAX_LUMA = 16384, // luma samples of a row or a column
    SETS_MAX = 64,
    REFERENCES_MAX = 16,
    ANY = 0x7ffffffe,
};

struct sps_bits {
    struct nal_bits bits;
    bool failed; // read past the end, or a value is out of range: all values are 0 from then on
};

struct reference_set { // st_ref_pic_set
    int negatives, positives;
    int delta[REFERENCES_MAX]; // differences of picture order count, negatives first
};

static uint32_t read_u(struct sps_bits *b, int n)
{
    const uint32_t value = b->failed ? 0 : nal_u(&b->bits, n);
    b->failed |= nal_ended(&b->bits);
    return b->failed ? 0 : value;
}

static bool read_flag(struct sps_bits *b)
{
    return read_u(b, 1);
}

static void skip_bits(struct sps_bits *b, size_t n)
{
    nal_skip(&b->bits, n);
    b->failed |= nal_ended(&b->bits);
}

static uint32_t read_ue(struct sps_bits *b, uint32_t max)
{
    const uint32_t value = b->failed ? 0 : nal_ue(&b->bits);
    b->failed |= nal_ended(&b->bits) || value > max;
    return b->failed ? 0 : value;
}

static void skip_se(struct sps_bits *b, int min, int max)
{
    const int value = b->failed ? 0 : nal_se(&b->bits);
    b->failed |= nal_ended(&b->bits) || value < min || value > max;
}

static void skip_profile_tier_level(struct sps_bits *b, int sub_layers)
{
    bool profile[8] = {0}, level[8] = {0};
    skip_bits(b, 88 + 8);
    for (int i = 0; i < sub_layers; i++) {
        profile[i] = read_flag(b);
        level[i] = read_flag(b);
    }
    if (sub_layers > 0)
        skip_bits(b, 2 * (size_t)(8 - sub_layers));
    for (int i = 0; i < sub_layers; i++)
        skip_bits(b, (profile[i] ? 88 : 0) + (level[i] ? 8 : 0));
}

static void skip_scaling_lists(struct sps_bits *b)
{
    for (int size = 0; size < 4; size++)
        for (int matrix = 0; matrix < 6; matrix += size == 3 ? 3 : 1) {
            if (!read_flag(b)) {
                read_ue(b, 5);
                continue;
            }
            if (size > 1)
                skip_se(b, -7, 247);
            for (int i = 0; i < (size == 0 ? 16 : 64); i++)
                skip_se(b, -128, 127);
        }
}

static void skip_block_sizes(struct sps_bits *b, uint32_t width, uint32_t height)
{
    const uint32_t min_cb_log2 = read_ue(b, 3) + 3, ctb_log2 = min_cb_log2 + read_ue(b, 3);
    const uint32_t min_tb_log2 = read_ue(b, 3) + 2, max_tb_log2 = min_tb_log2 + read_ue(b, 3);
    const uint32_t mask = (UINT32_C(1) << min_cb_log2) - 1;
    read_ue(b, 4); // max_transform_hierarchy_depth_inter and _intra
    read_ue(b, 4);
    b->failed |= ctb_log2 < 4 || ctb_log2 > 6 || min_tb_log2 >= min_cb_log2 || max_tb_log2 > 5 ||
                 max_tb_log2 > ctb_log2 || width == 0 || height == 0 || (width & mask) ||
                 (height & mask);
}

static void add_reference(struct reference_set *set, struct sps_bits *b, int delta)
{
    const int n = set->negatives + set->positives;
    if (n == REFERENCES_MAX) {
        b->failed = true;
        return;
    }
    set->delta[n] = delta;
    if (delta < 0)
        set->negatives++;
    else
        set->positives++;
}

// Predicts a set from another one: that set's pictures and the picture that it belongs to (entry
// n), shifted by a difference. Negatives come first, nearest first.
static void predict_reference_set(struct reference_set *set, struct sps_bits *b,
                                  const struct reference_set *from)
{
    const int n = from->negatives + from->positives;
    bool kept[REFERENCES_MAX + 1];
    const bool negative = read_flag(b);
    const int magnitude = (int)read_ue(b, 32767) + 1, move = negative ? -magnitude : magnitude;
    for (int j = 0; j <= n; j++) {
        kept[j] = read_flag(b) || read_flag(b); // used_by_curr_pic_flag, use_delta_flag
        // no picture refers to itself
        b->failed |= kept[j] && (j < n ? from->delta[j] : 0) + move == 0;
    }
    for (int sign = -1; sign <= 1; sign += 2) {
        const int far_from = sign < 0 ? from->negatives : 0;
        const int far_to = sign < 0 ? n : from->negatives;
        const int near_from = sign < 0 ? 0 : from->negatives;
        const int near_to = sign < 0 ? from->negatives : n;
        for (int j = far_to - 1; j >= far_from; j--)
            if ((from->delta[j] + move) * sign > 0 && kept[j])
                add_reference(set, b, from->delta[j] + move);
        if (move * sign > 0 && kept[n])
            add_reference(set, b, move);
        for (int j = near_from; j < near_to; j++)
            if ((from->delta[j] + move) * sign > 0 && kept[j])
                add_reference(set, b, from->delta[j] + move);
    }
}

static void read_reference_set(struct reference_set *set, struct sps_bits *b,
                               const struct reference_set *before)
{
    *set = (struct reference_set){0};
    if (before && read_flag(b)) { // inter_ref_pic_set_prediction_flag
        predict_reference_set(set, b, before);
        return;
    }
    const int negatives = (int)read_ue(b, REFERENCES_MAX);
    const int positives = (int)read_ue(b, REFERENCES_MAX - (uint32_t)negatives);
    for (int i = 0, delta = 0; i < negatives; i++) {
        add_reference(set, b, delta -= (int)read_ue(b, 32767) + 1);
        skip_bits(b, 1);
    }
    for (int i = 0, delta = 0; i < positives; i++) {
        add_reference(set, b, delta += (int)read_ue(b, 32767) + 1);
        skip_bits(b, 1);
    }
}

static void skip_reference_sets(struct sps_bits *b, uint32_t poc_lsb_bits)
{
    struct reference_set set[2];
    const int sets = (int)read_ue(b, SETS_MAX);
    for (int i = 0; i < sets; i++)
        read_reference_set(&set[i % 2], b, i > 0 ? &set[(i + 1) % 2] : NULL);
    if (read_flag(b)) // long_term_ref_pics_present_flag
        for (uint32_t n = read_ue(b, 32); n > 0; n--)
            skip_bits(b, poc_lsb_bits + 1);
}

// Skips up to the reference picture sets: no later count could become absurd in a damaged SPS.
static void skip_sps(struct sps_bits *b)
{
    skip_bits(b, 4);
    const int sub_layers = (int)read_u(b, 3);
    b->failed |= sub_layers == 7;
    skip_bits(b, 1);
    skip_profile_tier_level(b, b->failed ? 0 : sub_layers);
    read_ue(b, SPS_ID_MAX);
    if (read_ue(b, 3) == 3) // chroma_format_idc
        skip_bits(b, 1);
    const uint32_t width = read_ue(b, SIZE_MAX_LUMA), height = read_ue(b, SIZE_MAX_LUMA);
    for (int i = read_flag(b) ? 0 : 4; i < 4; i++) // conformance_window_flag
        read_ue(b, SIZE_MAX_LUMA);
    read_ue(b, 8); // bit depths
    read_ue(b, 8);
    const uint32_t poc_lsb_bits = read_ue(b, 12) + 4;
    for (int i = read_flag(b) ? 0 : sub_layers; i <= sub_layers; i++)
        for (int j = 0; j < 3; j++)
            read_ue(b, ANY);
    skip_block_sizes(b, width, height);
    if (read_flag(b) && read_flag(b)) // scaling_list_enabled_flag, sps_scaling_list_data_present
        skip_scaling_lists(b);
    skip_bits(b, 2);    // amp_enabled_flag, sample_adaptive_offset_enabled_flag
    if (read_flag(b)) { // pcm_enabled_flag
        skip_bits(b, 4 + 4);
        read_ue(b, 2);
        read_ue(b, 2);
        skip_bits(b, 1);
    }
    skip_reference_sets(b, poc_lsb_bits);
}

bool hevc_sps_is_readable(const struct nal *nal)
{
    struct sps_bits b = {.bits = {.data = nal->data, .size = nal->size, .at = 2}};
    if (hevc_unit_type(nal) != HEVC_UNIT_SPS || nal->data[1] != 1) // TemporalId is 0
        return false;
    skip_sps(&b);
    return !b.failed;
}
