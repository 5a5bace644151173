#include "daemon/bitstream/hevc_headers.h"

#include <errno.h>
#include <stdlib.h>

enum { EXTENDED_SAR = 255, UNIT_HEADER_BYTES = 2, QP_MAX = 51 };
enum { SPS_START_MAX = 8192 }; // bytes; what comes after it is not read

struct bits {
    const uint8_t *data;
    size_t end, at; // in bits
    bool failed;    // was to read behind the end, or met a value out of range: all is 0 from there
};

// --- syntax elements

static uint32_t read_u(struct bits *b, int n)
{
    uint32_t value = 0;
    if (b->failed || (size_t)n > b->end - b->at) {
        b->failed = true;
        return 0;
    }
    for (; n > 0; n--, b->at++)
        value = value << 1 | (b->data[b->at / 8] >> (7 - b->at % 8) & 1);
    return value;
}

static bool read_flag(struct bits *b)
{
    return read_u(b, 1);
}

static void skip(struct bits *b, size_t n)
{
    if (n > b->end - b->at)
        b->failed = true;
    else
        b->at += n;
}

static uint32_t read_ue(struct bits *b, uint32_t max)
{
    int zeros = 0;
    while (zeros < 32 && !b->failed && !read_flag(b))
        zeros++;
    uint64_t value = (UINT64_C(1) << zeros) - 1 + (zeros < 32 ? read_u(b, zeros) : max);
    b->failed |= value > max;
    return b->failed ? 0 : (uint32_t)value;
}

static int read_se(struct bits *b, int min, int max)
{
    uint32_t code = read_ue(b, UINT32_MAX - 1);
    int64_t value = code & 1 ? (int64_t)(code / 2) + 1 : -(int64_t)(code / 2);
    b->failed |= value < min || value > max;
    return b->failed ? 0 : (int)value;
}

static int ceil_log2(uint32_t n)
{
    return n > 1 ? 32 - __builtin_clz(n - 1) : 0;
}

// --- parts of the parameter sets

static void skip_profile_tier_level(struct bits *b, int sub_layers)
{
    bool profile[8] = {0}, level[8] = {0};
    skip(b, 88 + 8);
    for (int i = 0; i < sub_layers; i++) {
        profile[i] = read_flag(b);
        level[i] = read_flag(b);
    }
    if (sub_layers > 0)
        skip(b, 2 * (size_t)(8 - sub_layers));
    for (int i = 0; i < sub_layers; i++)
        skip(b, (profile[i] ? 88 : 0) + (level[i] ? 8 : 0));
}

static void skip_scaling_lists(struct bits *b)
{
    for (int size = 0; size < 4; size++)
        for (int matrix = 0; matrix < 6; matrix += size == 3 ? 3 : 1) {
            if (!read_flag(b)) {
                read_ue(b, 5);
                continue;
            }
            if (size > 1)
                read_se(b, -7, 247);
            for (int i = 0; i < (size == 0 ? 16 : 64); i++)
                read_se(b, -128, 127);
        }
}

static void add_picture(struct hevc_rps *rps, struct bits *b, int delta, bool used)
{
    int n = rps->negatives + rps->positives;
    if (n == HEVC_REFS_MAX) {
        b->failed = true;
        return;
    }
    rps->delta[n] = delta;
    rps->used[n] = used;
    if (delta < 0)
        rps->negatives++;
    else
        rps->positives++;
}

// A set that is predicted from another: that one's pictures, and the one which it belongs to
// (entry n), moved by a difference. The negatives come first, the nearest ahead.
static void predict_rps(struct hevc_rps *rps, struct bits *b, const struct hevc_rps *from)
{
    const int n = from->negatives + from->positives;
    bool used[HEVC_REFS_MAX + 1], kept[HEVC_REFS_MAX + 1];
    const bool negative = read_flag(b);
    const int magnitude = (int)read_ue(b, 32767) + 1, move = negative ? -magnitude : magnitude;
    for (int j = 0; j <= n; j++) {
        used[j] = read_flag(b);
        kept[j] = used[j] || read_flag(b);
    }
    for (int j = 0; j <= n; j++) // no picture refers to itself
        b->failed |= kept[j] && (j < n ? from->delta[j] : 0) + move == 0;
    for (int sign = -1; sign <= 1; sign += 2) {
        const int far_from = sign < 0 ? from->negatives : 0,
                  far_to = sign < 0 ? n : from->negatives;
        const int near_from = sign < 0 ? 0 : from->negatives;
        const int near_to = sign < 0 ? from->negatives : n;
        for (int j = far_to - 1; j >= far_from; j--)
            if ((from->delta[j] + move) * sign > 0 && kept[j])
                add_picture(rps, b, from->delta[j] + move, used[j]);
        if (move * sign > 0 && kept[n])
            add_picture(rps, b, move, used[n]);
        for (int j = near_from; j < near_to; j++)
            if ((from->delta[j] + move) * sign > 0 && kept[j])
                add_picture(rps, b, from->delta[j] + move, used[j]);
    }
}

static void read_rps(struct hevc_rps *rps, struct bits *b, const struct hevc_sps *sps, int index)
{
    *rps = (struct hevc_rps){0};
    if (index > 0 && read_flag(b)) {
        int back = index == sps->rps_count ? (int)read_ue(b, (uint32_t)index - 1) + 1 : 1;
        predict_rps(rps, b, &sps->rps[index - back]);
        return;
    }
    const int negatives = (int)read_ue(b, HEVC_REFS_MAX);
    const int positives = (int)read_ue(b, HEVC_REFS_MAX - (uint32_t)negatives);
    for (int i = 0, delta = 0; i < negatives; i++) {
        delta -= (int)read_ue(b, 32767) + 1;
        add_picture(rps, b, delta, read_flag(b));
    }
    for (int i = 0, delta = 0; i < positives; i++) {
        delta += (int)read_ue(b, 32767) + 1;
        add_picture(rps, b, delta, read_flag(b));
    }
}

static void skip_sub_layer_hrd(struct bits *b, uint32_t cpbs, bool sub_picture)
{
    for (uint32_t i = 0; i < cpbs; i++) {
        for (int j = 0; j < (sub_picture ? 4 : 2); j++)
            read_ue(b, UINT32_MAX - 1);
        skip(b, 1);
    }
}

static void skip_hrd(struct bits *b, int sub_layers)
{
    const bool nal = read_flag(b), vcl = read_flag(b);
    bool sub_picture = false;
    if (nal || vcl) {
        if ((sub_picture = read_flag(b)))
            skip(b, 8 + 5 + 1 + 5);
        skip(b, 4 + 4);
        skip(b, sub_picture ? 4 : 0);
        skip(b, 5 + 5 + 5);
    }
    for (int i = 0; i <= sub_layers; i++) {
        bool general = read_flag(b), fixed = general || read_flag(b), low_delay = false;
        if (fixed)
            read_ue(b, 2047);
        else
            low_delay = read_flag(b);
        uint32_t cpbs = low_delay ? 1 : read_ue(b, 31) + 1;
        if (nal)
            skip_sub_layer_hrd(b, cpbs, sub_picture);
        if (vcl)
            skip_sub_layer_hrd(b, cpbs, sub_picture);
    }
}

static void skip_vui(struct bits *b, int sub_layers)
{
    if (read_flag(b) && read_u(b, 8) == EXTENDED_SAR)
        skip(b, 32);
    if (read_flag(b)) // overscan_info_present_flag
        skip(b, 1);
    if (read_flag(b)) { // video_signal_type_present_flag
        skip(b, 4);
        if (read_flag(b))
            skip(b, 24);
    }
    if (read_flag(b)) // chroma_loc_info_present_flag
        for (int i = 0; i < 2; i++)
            read_ue(b, 5);
    skip(b, 3);
    if (read_flag(b)) // default_display_window_flag
        for (int i = 0; i < 4; i++)
            read_ue(b, UINT32_MAX - 1);
    if (read_flag(b)) { // vui_timing_info_present_flag
        skip(b, 64);
        if (read_flag(b))
            read_ue(b, UINT32_MAX - 1);
        if (read_flag(b))
            skip_hrd(b, sub_layers);
    }
    if (read_flag(b)) { // bitstream_restriction_flag
        skip(b, 3);
        for (int i = 0; i < 5; i++)
            read_ue(b, UINT32_MAX - 1);
    }
}

// Whether one of the extensions follows that change the syntax.
static bool read_extensions(struct bits *b)
{
    return read_flag(b) && read_u(b, 8) != 0;
}

// --- SPS

static void read_picture_size(struct hevc_sps *sps, struct bits *b)
{
    sps->width = (int)read_ue(b, HEVC_SIZE_MAX);
    sps->height = (int)read_ue(b, HEVC_SIZE_MAX);
    if (read_flag(b)) // conformance_window_flag
        for (int i = 0; i < 4; i++)
            read_ue(b, HEVC_SIZE_MAX);
}

static void read_block_sizes(struct hevc_sps *sps, struct bits *b)
{
    sps->min_cb_log2 = (int)read_ue(b, 3) + 3;
    sps->ctb_log2 = sps->min_cb_log2 + (int)read_ue(b, 3);
    sps->min_tb_log2 = (int)read_ue(b, 3) + 2;
    sps->max_tb_log2 = sps->min_tb_log2 + (int)read_ue(b, 3);
    sps->transform_depth_inter = (int)read_ue(b, 4);
    sps->transform_depth_intra = (int)read_ue(b, 4);
    const int mask = (1 << sps->min_cb_log2) - 1;
    b->failed |= sps->ctb_log2 < 4 || sps->ctb_log2 > 6 || sps->min_tb_log2 >= sps->min_cb_log2 ||
                 sps->max_tb_log2 > 5 || sps->max_tb_log2 > sps->ctb_log2 || sps->width == 0 ||
                 sps->height == 0 || (sps->width & mask) || (sps->height & mask);
    if (b->failed)
        return;
    sps->ctb_columns = (sps->width + (1 << sps->ctb_log2) - 1) >> sps->ctb_log2;
    sps->ctb_rows = (sps->height + (1 << sps->ctb_log2) - 1) >> sps->ctb_log2;
}

static void read_pcm(struct hevc_sps *sps, struct bits *b)
{
    for (int i = 0; i < 2; i++)
        sps->pcm_bit_depth[i] = (int)read_u(b, 4) + 1;
    sps->pcm_min_log2 = (int)read_ue(b, 2) + 3;
    sps->pcm_max_log2 = sps->pcm_min_log2 + (int)read_ue(b, 2);
    skip(b, 1);
}

static void read_reference_sets(struct hevc_sps *sps, struct bits *b)
{
    const int count = (int)read_ue(b, HEVC_RPS_MAX);
    sps->rps_count = count;
    for (int i = 0; i < count; i++)
        read_rps(&sps->rps[i], b, sps, i);
    if ((sps->long_term_refs = read_flag(b))) {
        sps->long_term_count = (int)read_ue(b, 32);
        for (int i = 0; i < sps->long_term_count; i++) {
            skip(b, (size_t)sps->poc_lsb_bits);
            sps->long_term_used[i] = read_flag(b);
        }
    }
}

// Up to the sets of reference pictures, which are the last that says how long the rest is.
static void read_sps_start(struct hevc_sps *sps, struct bits *b, int sub_layers)
{
    const int chroma_format = (int)read_ue(b, 3);
    sps->chroma = chroma_format == 1;
    if (chroma_format == 3)
        skip(b, 1); // separate_colour_plane_flag
    read_picture_size(sps, b);
    for (int i = 0; i < 2; i++)
        sps->bit_depth[i] = (int)read_ue(b, 8) + 8;
    sps->poc_lsb_bits = (int)read_ue(b, 12) + 4;
    for (int i = read_flag(b) ? 0 : sub_layers; i <= sub_layers; i++)
        for (int j = 0; j < 3; j++)
            read_ue(b, UINT32_MAX - 1);
    read_block_sizes(sps, b);
    if (read_flag(b) && read_flag(b)) // scaling_list_enabled_flag, sps_scaling_list_data_present
        skip_scaling_lists(b);
    sps->amp = read_flag(b);
    sps->sao = read_flag(b);
    if ((sps->pcm = read_flag(b)))
        read_pcm(sps, b);
    read_reference_sets(sps, b);
    sps->state = chroma_format > 1 ? HEVC_SET_UNSUPPORTED : HEVC_SET_READY;
}

static void read_sps_end(struct hevc_sps *sps, struct bits *b, int sub_layers)
{
    sps->temporal_mvp = read_flag(b);
    skip(b, 1);
    if (read_flag(b)) // vui_parameters_present_flag
        skip_vui(b, sub_layers);
    if (read_extensions(b))
        sps->state = HEVC_SET_UNSUPPORTED;
}

// The SPS's id, where it can be read.
static uint32_t read_sps_id(struct bits *b, int *sub_layers)
{
    skip(b, 4);
    *sub_layers = (int)read_u(b, 3);
    skip(b, 1);
    skip_profile_tier_level(b, *sub_layers);
    b->failed |= *sub_layers == 7;
    return read_ue(b, HEVC_SPS_MAX - 1);
}

static void take_sps(struct hevc_parameter_sets *sets, struct bits *b)
{
    struct hevc_sps sps = {0};
    int sub_layers;
    const uint32_t id = read_sps_id(b, &sub_layers);
    if (b->failed)
        return;
    read_sps_start(&sps, b, sub_layers);
    if (sps.state == HEVC_SET_READY)
        read_sps_end(&sps, b, sub_layers);
    if (!b->failed)
        sets->sps[id] = sps;
}

bool hevc_sps_is_readable(const struct nal *nal)
{
    uint8_t rbsp[SPS_START_MAX];
    struct bits b = {.data = rbsp};
    struct hevc_sps sps = {0};
    int sub_layers;
    if (hevc_unit_type(nal) != HEVC_UNIT_SPS || nal->data[1] != 1) // TemporalId is 0
        return false;
    b.end = 8 * nal_rbsp(nal, rbsp, sizeof rbsp);
    skip(&b, 8 * UNIT_HEADER_BYTES);
    read_sps_id(&b, &sub_layers);
    read_sps_start(&sps, &b, b.failed ? 0 : sub_layers);
    return !b.failed;
}

// --- PPS

static void read_tiles(struct hevc_pps *pps, struct bits *b)
{
    pps->tile_columns = (int)read_ue(b, HEVC_TILE_COLUMNS_MAX - 1) + 1;
    pps->tile_rows = (int)read_ue(b, HEVC_TILE_ROWS_MAX - 1) + 1;
    pps->tiles_uniform = read_flag(b);
    for (int i = 0; !pps->tiles_uniform && i < pps->tile_columns - 1; i++)
        pps->tile_width[i] = (uint16_t)(read_ue(b, HEVC_SIZE_MAX / 16) + 1);
    for (int i = 0; !pps->tiles_uniform && i < pps->tile_rows - 1; i++)
        pps->tile_height[i] = (uint16_t)(read_ue(b, HEVC_SIZE_MAX / 16) + 1);
    skip(b, 1);
}

static void read_deblocking(struct hevc_pps *pps, struct bits *b)
{
    pps->deblocking_override = read_flag(b);
    pps->deblocking_disabled = read_flag(b);
    for (int i = 0; !pps->deblocking_disabled && i < 2; i++)
        read_se(b, -6, 6);
}

static void read_pps(struct hevc_pps *pps, struct bits *b)
{
    pps->sps_id = (int)read_ue(b, HEVC_SPS_MAX - 1);
    pps->dependent_slices = read_flag(b);
    pps->output_flag = read_flag(b);
    pps->extra_header_bits = (int)read_u(b, 3);
    pps->sign_data_hiding = read_flag(b);
    pps->cabac_init = read_flag(b);
    for (int i = 0; i < 2; i++)
        pps->refs[i] = (int)read_ue(b, 14) + 1;
    pps->init_qp = 26 + read_se(b, -26 - 48, 25);
    skip(b, 1);
    pps->transform_skip = read_flag(b);
    if ((pps->qp_delta = read_flag(b)))
        pps->qp_delta_depth = (int)read_ue(b, 3);
    for (int i = 0; i < 2; i++)
        read_se(b, -12, 12);
    pps->chroma_qp_offsets = read_flag(b);
    pps->weighted_pred = read_flag(b);
    pps->weighted_bipred = read_flag(b);
    pps->transquant_bypass = read_flag(b);
    pps->tiles = read_flag(b);
    pps->wavefront = read_flag(b);
    pps->tile_columns = pps->tile_rows = pps->tiles_uniform = 1;
    if (pps->tiles)
        read_tiles(pps, b);
    pps->filter_across_slices = read_flag(b);
    if (read_flag(b)) // deblocking_filter_control_present_flag
        read_deblocking(pps, b);
    if (read_flag(b)) // pps_scaling_list_data_present_flag
        skip_scaling_lists(b);
    pps->lists_modification = read_flag(b);
    read_ue(b, 4); // log2_parallel_merge_level_minus2
    pps->header_extension = read_flag(b);
    pps->state = read_extensions(b) ? HEVC_SET_UNSUPPORTED : HEVC_SET_READY;
}

static void take_pps(struct hevc_parameter_sets *sets, struct bits *b)
{
    struct hevc_pps pps = {0};
    const uint32_t id = read_ue(b, HEVC_PPS_MAX - 1);
    read_pps(&pps, b);
    if (!b->failed && sets->sps[pps.sps_id].state != HEVC_SET_ABSENT)
        sets->pps[id] = pps;
}

void hevc_parameter_sets_take(struct hevc_parameter_sets *sets, int unit_type, const uint8_t *rbsp,
                              size_t size)
{
    struct bits b = {.data = rbsp, .end = 8 * size};
    skip(&b, 8 * UNIT_HEADER_BYTES);
    if (unit_type == HEVC_UNIT_SPS)
        take_sps(sets, &b);
    else if (unit_type == HEVC_UNIT_PPS)
        take_pps(sets, &b);
}

// --- slice segment header

static int used_pictures(const struct hevc_rps *rps)
{
    int n = 0;
    for (int i = 0; i < rps->negatives + rps->positives; i++)
        n += rps->used[i];
    return n;
}

static int read_long_term(struct bits *b, const struct hevc_sps *sps)
{
    const int listed = sps->long_term_count > 0 ? (int)read_ue(b, 32) : 0;
    const int n = listed + (int)read_ue(b, 32);
    int used = 0;
    for (int i = 0; i < n; i++) {
        if (i < listed) {
            uint32_t index = read_u(b, ceil_log2((uint32_t)sps->long_term_count));
            used += index < 32 && sps->long_term_used[index];
        } else {
            skip(b, (size_t)sps->poc_lsb_bits);
            used += read_flag(b);
        }
        if (read_flag(b)) // delta_poc_msb_present_flag
            read_ue(b, UINT32_MAX - 1);
    }
    return used;
}

// Returns NumPicTotalCurr. `*temporal_mvp`: slice_temporal_mvp_enabled_flag.
static int read_references(struct bits *b, const struct hevc_sps *sps, bool *temporal_mvp)
{
    struct hevc_rps own;
    const struct hevc_rps *rps = &own;
    skip(b, (size_t)sps->poc_lsb_bits);
    if (!read_flag(b)) { // short_term_ref_pic_set_sps_flag
        read_rps(&own, b, sps, sps->rps_count);
    } else {
        const uint32_t index = read_u(b, ceil_log2((uint32_t)sps->rps_count));
        b->failed |= index >= (uint32_t)sps->rps_count;
        rps = &sps->rps[b->failed ? 0 : index];
    }
    int used = used_pictures(rps);
    if (sps->long_term_refs)
        used += read_long_term(b, sps);
    *temporal_mvp = sps->temporal_mvp && read_flag(b);
    return used;
}

static void skip_weights_of_list(struct bits *b, int refs, bool chroma)
{
    bool luma_flag[HEVC_REFS_MAX] = {0}, chroma_flag[HEVC_REFS_MAX] = {0};
    for (int i = 0; i < refs; i++)
        luma_flag[i] = read_flag(b);
    for (int i = 0; chroma && i < refs; i++)
        chroma_flag[i] = read_flag(b);
    for (int i = 0; i < refs; i++)
        for (int n = 2 * luma_flag[i] + 4 * chroma_flag[i]; n > 0; n--)
            read_se(b, -65536, 65535);
}

static void skip_pred_weight_table(struct bits *b, const struct hevc_slice_header *header)
{
    const bool chroma = header->sps->chroma;
    read_ue(b, 7);
    if (chroma)
        read_se(b, -7, 7);
    for (int list = 0; list < (header->type == HEVC_SLICE_B ? 2 : 1); list++)
        skip_weights_of_list(b, header->refs[list], chroma);
}

static void read_inter(struct bits *b, struct hevc_slice_header *header, int pictures,
                       bool temporal_mvp)
{
    const struct hevc_pps *pps = header->pps;
    const bool bi = header->type == HEVC_SLICE_B;
    header->refs[0] = pps->refs[0];
    header->refs[1] = bi ? pps->refs[1] : 0;
    if (read_flag(b)) // num_ref_idx_active_override_flag
        for (int list = 0; list < (bi ? 2 : 1); list++)
            header->refs[list] = (int)read_ue(b, 14) + 1;
    if (pps->lists_modification && pictures > 1)
        for (int list = 0; list < (bi ? 2 : 1); list++)
            if (read_flag(b))
                skip(b, (size_t)(header->refs[list] * ceil_log2((uint32_t)pictures)));
    header->mvd_l1_zero = bi && read_flag(b);
    header->cabac_init = pps->cabac_init && read_flag(b);
    if (temporal_mvp) {
        const int list = bi && !read_flag(b);
        if (header->refs[list] > 1)
            read_ue(b, (uint32_t)header->refs[list] - 1);
    }
    if (bi ? pps->weighted_bipred : pps->weighted_pred)
        skip_pred_weight_table(b, header);
    header->merge_candidates = 5 - (int)read_ue(b, 4);
}

static void read_filters(struct bits *b, const struct hevc_slice_header *header)
{
    const struct hevc_pps *pps = header->pps;
    bool disabled = pps->deblocking_disabled;
    if (pps->chroma_qp_offsets)
        for (int i = 0; i < 2; i++)
            read_se(b, -12, 12);
    if (pps->deblocking_override && read_flag(b)) {
        disabled = read_flag(b);
        for (int i = 0; !disabled && i < 2; i++)
            read_se(b, -6, 6);
    }
    if (pps->filter_across_slices && (header->sao_luma || header->sao_chroma || !disabled))
        skip(b, 1);
}

static void read_independent(struct bits *b, struct hevc_slice_header *header, int unit_type)
{
    const struct hevc_sps *sps = header->sps;
    const struct hevc_pps *pps = header->pps;
    bool temporal_mvp = false;
    int pictures = 0;
    skip(b, (size_t)pps->extra_header_bits);
    header->type = (enum hevc_slice_type)read_ue(b, HEVC_SLICE_I);
    skip(b, pps->output_flag ? 1 : 0);
    if (unit_type != HEVC_UNIT_IDR_W_RADL && unit_type != HEVC_UNIT_IDR_N_LP)
        pictures = read_references(b, sps, &temporal_mvp);
    header->sao_luma = sps->sao && read_flag(b);
    header->sao_chroma = sps->sao && sps->chroma && read_flag(b);
    header->mvd_l1_zero = header->cabac_init = false;
    if (header->type != HEVC_SLICE_I)
        read_inter(b, header, pictures, temporal_mvp);
    header->qp = pps->init_qp + read_se(b, -128, 128);
    b->failed |= header->qp > QP_MAX || header->qp < -6 * (sps->bit_depth[0] - 8);
    read_filters(b, header);
}

static void read_entry_points(struct bits *b, const struct hevc_slice_header *header)
{
    if (header->pps->tiles || header->pps->wavefront) {
        const size_t n = read_ue(b, HEVC_SIZE_MAX * HEVC_TILE_COLUMNS_MAX);
        if (n > 0)
            skip(b, n * (read_ue(b, 31) + 1));
    }
    if (header->pps->header_extension)
        skip(b, 8 * (size_t)read_ue(b, 256));
}

static void read_alignment(struct bits *b)
{
    b->failed |= !read_flag(b);
    while (!b->failed && b->at % 8 != 0)
        b->failed |= read_flag(b);
}

int hevc_slice_header_read(struct hevc_slice_header *header, const struct hevc_parameter_sets *sets,
                           int unit_type, const uint8_t *rbsp, size_t size)
{
    struct bits b = {.data = rbsp, .end = 8 * size};
    skip(&b, 8 * UNIT_HEADER_BYTES);
    header->first = read_flag(&b);
    if (unit_type >= HEVC_UNIT_BLA_W_LP && unit_type <= HEVC_UNIT_RSV_IRAP_VCL23)
        skip(&b, 1);
    header->pps = &sets->pps[read_ue(&b, HEVC_PPS_MAX - 1)];
    header->sps = &sets->sps[header->pps->sps_id];
    if (b.failed)
        return -EBADMSG;
    if (header->pps->state == HEVC_SET_ABSENT || header->sps->state == HEVC_SET_ABSENT)
        return -ENOENT;
    if (header->pps->state != HEVC_SET_READY || header->sps->state != HEVC_SET_READY)
        return -ENOTSUP;
    const int ctbs = header->sps->ctb_columns * header->sps->ctb_rows;
    header->dependent = !header->first && header->pps->dependent_slices && read_flag(&b);
    header->address = header->first ? 0 : (int)read_u(&b, ceil_log2((uint32_t)ctbs));
    if (!header->dependent)
        read_independent(&b, header, unit_type);
    read_entry_points(&b, header);
    read_alignment(&b);
    header->data_at = b.at / 8;
    return b.failed || header->address >= ctbs ? -EBADMSG : 0;
}
