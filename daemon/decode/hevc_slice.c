#include "daemon/decode/hevc_slice.h"

#include <errno.h>
#include <string.h>

#include "daemon/decode/hevc_residual.h"

enum { MODE_PLANAR = 0, MODE_DC = 1, MODE_HORIZONTAL = 10, MODE_VERTICAL = 26, MODE_LAST = 34 };
enum { MVD_PREFIX_MAX = 15, MVD_MAX = 32768, QP_DELTA_PREFIX_MAX = 6 };

enum part_mode { PART_2NX2N, PART_HALVES, PART_NXN };

struct coding_unit {
    int x, y, log2; // in luma samples
    bool intra;
    enum part_mode parts;
    int luma_mode[4], chroma_mode;
    int transform_depth_max;
};

struct transform_unit {
    int x, y, log2, depth, index; // blkIdx
    bool cbf_cb, cbf_cr;          // those of its parent, where it is 4x4
};

static int bin(struct hevc_slice *s, int context)
{
    return hevc_bin(&s->cabac, &s->contexts.state[context]);
}

static unsigned bypass(struct hevc_slice *s, int n)
{
    return hevc_bypass(&s->cabac, n);
}

// Truncated unary, at most `max` bins without a context.
static int read_unary(struct hevc_slice *s, int max)
{
    int n = 0;
    while (n < max && bypass(s, 1))
        n++;
    return n;
}

// --- SAO

static void read_sao_offsets(struct hevc_slice *s, int component, int type)
{
    const int depth = s->header.sps->bit_depth[component > 0];
    const int max = (1 << ((depth < 10 ? depth : 10) - 5)) - 1;
    int nonzero = 0;
    for (int i = 0; i < 4; i++)
        nonzero += read_unary(s, max) > 0;
    if (type == 1) // band offset: signs and position
        bypass(s, nonzero + 5);
    else if (component < 2)
        bypass(s, 2);
}

static void read_sao(struct hevc_slice *s)
{
    const struct hevc_slice_header *header = &s->header;
    if (!header->sao_luma && !header->sao_chroma)
        return;
    if (s->left_available && bin(s, CONTEXT_SAO_MERGE))
        return;
    if (s->above_available && bin(s, CONTEXT_SAO_MERGE))
        return;
    for (int component = 0, type = 0; component < (header->sps->chroma ? 3 : 1); component++) {
        if (component == 0 ? !header->sao_luma : !header->sao_chroma)
            continue;
        if (component < 2)
            type = bin(s, CONTEXT_SAO_TYPE) ? 1 + (int)bypass(s, 1) : 0;
        if (type > 0)
            read_sao_offsets(s, component, type);
    }
}

// --- intra prediction modes

static void fill_modes(struct hevc_slice *s, const struct coding_unit *cu, int part, int mode)
{
    const int n = (1 << cu->log2) / 4 / (cu->parts == PART_NXN ? 2 : 1);
    const int mask = HEVC_CTB_MAX / 4 - 1;
    const int x = (cu->x / 4 & mask) + (part & 1) * n, y = (cu->y / 4 & mask) + (part >> 1) * n;
    memset(s->mode_above + x, mode, (size_t)n);
    memset(s->mode_left + y, mode, (size_t)n);
}

// candModeList
static void candidates_of(const struct hevc_slice *s, const struct coding_unit *cu, int part,
                          int candidates[3])
{
    const int half = (1 << cu->log2) / 8, mask = HEVC_CTB_MAX / 4 - 1;
    const int x = cu->x + 4 * (part & 1) * half, y = cu->y + 4 * (part >> 1) * half;
    const int ctb_mask = (1 << s->header.sps->ctb_log2) - 1;
    const bool left = (x & ctb_mask) || s->left_available, above = y & ctb_mask;
    const int a = left ? s->mode_left[y / 4 & mask] : MODE_DC;
    const int b = above ? s->mode_above[x / 4 & mask] : MODE_DC;
    if (a == b && a <= MODE_DC) {
        candidates[0] = MODE_PLANAR;
        candidates[1] = MODE_DC;
        candidates[2] = MODE_VERTICAL;
    } else if (a == b) {
        candidates[0] = a;
        candidates[1] = 2 + (a + 29) % 32;
        candidates[2] = 2 + (a - 2 + 1) % 32;
    } else {
        candidates[0] = a;
        candidates[1] = b;
        candidates[2] = a != MODE_PLANAR && b != MODE_PLANAR ? MODE_PLANAR
                        : a != MODE_DC && b != MODE_DC       ? MODE_DC
                                                             : MODE_VERTICAL;
    }
}

static void swap_if_greater(int *a, int *b)
{
    const int kept = *a;
    if (*a > *b) {
        *a = *b;
        *b = kept;
    }
}

// rem_intra_luma_pred_mode counts the modes that are no candidates.
static int remaining_mode(int candidates[3], int mode)
{
    swap_if_greater(&candidates[0], &candidates[1]);
    swap_if_greater(&candidates[0], &candidates[2]);
    swap_if_greater(&candidates[1], &candidates[2]);
    for (int i = 0; i < 3; i++)
        mode += mode >= candidates[i];
    return mode;
}

static void read_intra_modes(struct hevc_slice *s, struct coding_unit *cu)
{
    static const int chroma_modes[] = {MODE_PLANAR, MODE_VERTICAL, MODE_HORIZONTAL, MODE_DC};
    const int parts = cu->parts == PART_NXN ? 4 : 1;
    bool is_candidate[4];
    for (int i = 0; i < parts; i++)
        is_candidate[i] = bin(s, CONTEXT_PREV_INTRA);
    for (int i = 0; i < parts; i++) {
        int candidates[3];
        candidates_of(s, cu, i, candidates);
        cu->luma_mode[i] = is_candidate[i] ? candidates[read_unary(s, 2)]
                                           : remaining_mode(candidates, (int)bypass(s, 5));
        fill_modes(s, cu, i, cu->luma_mode[i]);
    }
    cu->chroma_mode = cu->luma_mode[0];
    if (s->header.sps->chroma && bin(s, CONTEXT_INTRA_CHROMA)) {
        cu->chroma_mode = chroma_modes[bypass(s, 2)];
        if (cu->chroma_mode == cu->luma_mode[0])
            cu->chroma_mode = MODE_LAST;
    }
}

// --- inter prediction

static void read_merge_index(struct hevc_slice *s)
{
    const int max = s->header.merge_candidates - 1;
    if (max > 0 && bin(s, CONTEXT_MERGE_INDEX))
        read_unary(s, max - 1);
}

static void read_ref_index(struct hevc_slice *s, int list)
{
    const int max = s->header.refs[list] - 1;
    int n = 0;
    while (n < max && n < 2 && bin(s, CONTEXT_REF_INDEX + n))
        n++;
    if (n == 2)
        read_unary(s, max - 2);
}

static void read_mvd_rest(struct hevc_slice *s, bool greater1)
{
    int magnitude = 1;
    if (greater1) {
        const int prefix = 1 + read_unary(s, MVD_PREFIX_MAX);
        magnitude = (1 << prefix) + (int)bypass(s, prefix);
    }
    const bool negative = bypass(s, 1);
    s->wrong |= magnitude > MVD_MAX - !negative;
}

static void read_mvd(struct hevc_slice *s)
{
    const bool x = bin(s, CONTEXT_MVD_GREATER0), y = bin(s, CONTEXT_MVD_GREATER0);
    const bool x_more = x && bin(s, CONTEXT_MVD_GREATER1);
    const bool y_more = y && bin(s, CONTEXT_MVD_GREATER1);
    if (x)
        read_mvd_rest(s, x_more);
    if (y)
        read_mvd_rest(s, y_more);
}

// inter_pred_idc: bit 0 for list 0, bit 1 for list 1. `smallest`: 8x4 or 4x8, never from both.
static int read_lists(struct hevc_slice *s, int cu_depth, bool smallest)
{
    if (s->header.type == HEVC_SLICE_P)
        return 1;
    if (!smallest && bin(s, CONTEXT_INTER_PRED + cu_depth))
        return 3;
    return bin(s, CONTEXT_INTER_PRED + 4) ? 2 : 1;
}

// Returns merge_flag.
static bool read_prediction_unit(struct hevc_slice *s, int cu_depth, bool smallest)
{
    if (bin(s, CONTEXT_MERGE_FLAG)) {
        read_merge_index(s);
        return true;
    }
    const int lists = read_lists(s, cu_depth, smallest);
    for (int list = 0; list < 2; list++) {
        if (!(lists & 1 << list))
            continue;
        read_ref_index(s, list);
        if (list == 0 || lists != 3 || !s->header.mvd_l1_zero)
            read_mvd(s);
        bin(s, CONTEXT_MVP);
    }
    return false;
}

// --- transform tree

static enum hevc_scan scan_of(const struct coding_unit *cu, int log2, bool chroma, int mode)
{
    if (!cu->intra || !(log2 == 2 || (log2 == 3 && !chroma)))
        return HEVC_SCAN_DIAGONAL;
    if (mode >= 6 && mode <= 14)
        return HEVC_SCAN_VERTICAL;
    return mode >= 22 && mode <= 30 ? HEVC_SCAN_HORIZONTAL : HEVC_SCAN_DIAGONAL;
}

static void read_residual(struct hevc_slice *s, const struct coding_unit *cu, int log2, bool chroma,
                          int mode)
{
    const struct hevc_pps *pps = s->header.pps;
    const struct hevc_block block = {
        .log2 = log2,
        .chroma = chroma,
        .scan = scan_of(cu, log2, chroma, mode),
        .hides_signs = pps->sign_data_hiding && !s->transquant_bypass,
        .may_skip_transform = pps->transform_skip && !s->transquant_bypass,
    };
    s->wrong |= !hevc_residual_parse(&s->cabac, &s->contexts, &block);
}

static void read_qp_delta(struct hevc_slice *s)
{
    const int half = 3 * (s->header.sps->bit_depth[0] - 8); // QpBdOffset / 2
    int magnitude = bin(s, CONTEXT_QP_DELTA);
    s->qp_delta_coded = true;
    while (magnitude > 0 && magnitude < 5 && bin(s, CONTEXT_QP_DELTA + 1))
        magnitude++;
    if (magnitude == 5) {
        const int prefix = read_unary(s, QP_DELTA_PREFIX_MAX);
        magnitude += (1 << prefix) - 1 + (int)bypass(s, prefix);
    }
    const bool negative = magnitude > 0 && bypass(s, 1);
    s->wrong |= magnitude > 25 + half + negative;
}

static void read_transform_unit(struct hevc_slice *s, const struct coding_unit *cu,
                                const struct transform_unit *tu, bool cbf_luma)
{
    const int part =
        cu->parts == PART_NXN && cu->intra
            ? (tu->x >= cu->x + (1 << cu->log2) / 2) + 2 * (tu->y >= cu->y + (1 << cu->log2) / 2)
            : 0;
    if (!cbf_luma && !tu->cbf_cb && !tu->cbf_cr)
        return;
    if (s->header.pps->qp_delta && !s->qp_delta_coded)
        read_qp_delta(s);
    if (cbf_luma)
        read_residual(s, cu, tu->log2, false, cu->luma_mode[part]);
    if (tu->log2 == 2 && tu->index != 3)
        return;
    const int log2 = tu->log2 == 2 ? 2 : tu->log2 - 1;
    if (tu->cbf_cb)
        read_residual(s, cu, log2, true, cu->chroma_mode);
    if (tu->cbf_cr)
        read_residual(s, cu, log2, true, cu->chroma_mode);
}

static bool splits_transform(struct hevc_slice *s, const struct coding_unit *cu,
                             const struct transform_unit *tu)
{
    const struct hevc_sps *sps = s->header.sps;
    const bool intra_split = cu->intra && cu->parts == PART_NXN && tu->depth == 0;
    if (tu->log2 <= sps->max_tb_log2 && tu->log2 > sps->min_tb_log2 &&
        tu->depth < cu->transform_depth_max && !intra_split)
        return bin(s, CONTEXT_SPLIT_TRANSFORM + 5 - tu->log2);
    const bool inter_split =
        sps->transform_depth_inter == 0 && !cu->intra && cu->parts != PART_2NX2N && tu->depth == 0;
    return tu->log2 > sps->max_tb_log2 || intra_split ||
           (inter_split && tu->log2 > sps->min_tb_log2);
}

// `tu` has its parent's flags on entry.
static void read_transform_tree(struct hevc_slice *s, const struct coding_unit *cu,
                                struct transform_unit tu)
{
    const bool splits = splits_transform(s, cu, &tu);
    if (tu.log2 > 2 && s->header.sps->chroma) {
        tu.cbf_cb = tu.cbf_cb && bin(s, CONTEXT_CBF_CHROMA + tu.depth);
        tu.cbf_cr = tu.cbf_cr && bin(s, CONTEXT_CBF_CHROMA + tu.depth);
    }
    if (!splits) {
        const bool cbf_luma = (!cu->intra && tu.depth == 0 && !tu.cbf_cb && !tu.cbf_cr) ||
                              bin(s, CONTEXT_CBF_LUMA + (tu.depth == 0));
        read_transform_unit(s, cu, &tu, cbf_luma);
        return;
    }
    const int half = 1 << (tu.log2 - 1);
    for (int i = 0; i < 4; i++)
        read_transform_tree(s, cu,
                            (struct transform_unit){
                                .x = tu.x + (i & 1) * half,
                                .y = tu.y + (i >> 1) * half,
                                .log2 = tu.log2 - 1,
                                .depth = tu.depth + 1,
                                .index = i,
                                .cbf_cb = tu.cbf_cb,
                                .cbf_cr = tu.cbf_cr,
                            });
}

static void read_transforms(struct hevc_slice *s, struct coding_unit *cu)
{
    const struct hevc_sps *sps = s->header.sps;
    cu->transform_depth_max = cu->intra ? sps->transform_depth_intra + (cu->parts == PART_NXN)
                                        : sps->transform_depth_inter;
    read_transform_tree(s, cu,
                        (struct transform_unit){
                            .x = cu->x,
                            .y = cu->y,
                            .log2 = cu->log2,
                            .cbf_cb = sps->chroma,
                            .cbf_cr = sps->chroma,
                        });
}

// --- coding quadtree

static enum part_mode read_part_mode(struct hevc_slice *s, const struct coding_unit *cu)
{
    const struct hevc_sps *sps = s->header.sps;
    if (cu->intra && cu->log2 != sps->min_cb_log2)
        return PART_2NX2N;
    if (bin(s, CONTEXT_PART_MODE))
        return PART_2NX2N;
    if (cu->intra)
        return PART_NXN;
    const bool horizontal = bin(s, CONTEXT_PART_MODE + 1);
    if (cu->log2 == sps->min_cb_log2) {
        if (cu->log2 == 3 || horizontal)
            return PART_HALVES;
        return bin(s, CONTEXT_PART_MODE + 2) ? PART_HALVES : PART_NXN;
    }
    if (sps->amp && !bin(s, CONTEXT_PART_MODE + 3))
        bypass(s, 1);
    return PART_HALVES;
}

// Whether the samples follow as they are.
static bool read_pcm(struct hevc_slice *s, const struct coding_unit *cu)
{
    const struct hevc_sps *sps = s->header.sps;
    if (!sps->pcm || cu->parts != PART_2NX2N || cu->log2 < sps->pcm_min_log2 ||
        cu->log2 > sps->pcm_max_log2 || !hevc_terminates(&s->cabac))
        return false;
    const size_t samples = (size_t)1 << 2 * cu->log2;
    size_t at, bits = samples * (size_t)sps->pcm_bit_depth[0];
    if (sps->chroma)
        bits += samples / 2 * (size_t)sps->pcm_bit_depth[1];
    s->wrong |= !hevc_cabac_ends(&s->cabac, &at);
    hevc_cabac_begin(&s->cabac, at + bits / 8);
    return true;
}

static void read_prediction(struct hevc_slice *s, struct coding_unit *cu, int depth)
{
    static const int count[] = {[PART_2NX2N] = 1, [PART_HALVES] = 2, [PART_NXN] = 4};
    cu->intra = s->header.type == HEVC_SLICE_I || bin(s, CONTEXT_PRED_MODE);
    cu->parts = read_part_mode(s, cu);
    bool merged = false;
    if (cu->intra) {
        if (read_pcm(s, cu)) {
            fill_modes(s, cu, 0, MODE_DC);
            return;
        }
        read_intra_modes(s, cu);
    } else {
        for (int i = 0; i < count[cu->parts]; i++)
            merged = read_prediction_unit(s, depth, cu->log2 == 3 && cu->parts == PART_HALVES);
        struct coding_unit whole = {.x = cu->x, .y = cu->y, .log2 = cu->log2};
        fill_modes(s, &whole, 0, MODE_DC);
    }
    if (cu->intra || (cu->parts == PART_2NX2N && merged) || bin(s, CONTEXT_ROOT_CBF))
        read_transforms(s, cu);
}

static void read_coding_unit(struct hevc_slice *s, int x, int y, int log2, int depth)
{
    const int ctb_mask = (1 << s->header.sps->ctb_log2) - 1;
    struct coding_unit cu = {.x = x, .y = y, .log2 = log2};
    struct hevc_neighbour *above = &s->above[x / 8],
                          *left = &s->left[y / 8 & (HEVC_CTB_MAX / 8 - 1)];
    bool skipped = false;
    s->transquant_bypass = s->header.pps->transquant_bypass && bin(s, CONTEXT_TRANSQUANT_BYPASS);
    if (s->header.type != HEVC_SLICE_I) {
        const bool by_left = ((x & ctb_mask) || s->left_available) && left->skipped;
        const bool by_above = ((y & ctb_mask) || s->above_available) && above->skipped;
        skipped = bin(s, CONTEXT_SKIP + by_left + by_above);
    }
    if (skipped) {
        read_merge_index(s);
        fill_modes(s, &cu, 0, MODE_DC);
    } else {
        read_prediction(s, &cu, depth);
    }
    for (int i = 0; i < 1 << log2 >> 3; i++)
        above[i] = left[i] =
            (struct hevc_neighbour){.depth = (uint8_t)depth & 3, .skipped = skipped};
}

static bool splits_cu(struct hevc_slice *s, int x, int y, int log2, int depth)
{
    const struct hevc_sps *sps = s->header.sps;
    const int size = 1 << log2, ctb_mask = (1 << sps->ctb_log2) - 1;
    if (log2 <= sps->min_cb_log2)
        return false;
    if (x + size > sps->width || y + size > sps->height)
        return true;
    const bool left = (x & ctb_mask) || s->left_available;
    const bool above = (y & ctb_mask) || s->above_available;
    const int deeper = (left && s->left[y / 8 & (HEVC_CTB_MAX / 8 - 1)].depth > depth) +
                       (above && s->above[x / 8].depth > depth);
    return bin(s, CONTEXT_SPLIT_CU + deeper);
}

static void read_coding_quadtree(struct hevc_slice *s, int x, int y, int log2, int depth)
{
    const struct hevc_sps *sps = s->header.sps;
    const bool splits = splits_cu(s, x, y, log2, depth);
    if (log2 >= sps->ctb_log2 - s->header.pps->qp_delta_depth)
        s->qp_delta_coded = false;
    if (!splits) {
        read_coding_unit(s, x, y, log2, depth);
        return;
    }
    const int half = 1 << (log2 - 1);
    for (int i = 0; i < 4; i++)
        if (x + (i & 1) * half < sps->width && y + (i >> 1) * half < sps->height)
            read_coding_quadtree(s, x + (i & 1) * half, y + (i >> 1) * half, log2 - 1, depth + 1);
}

// --- CTBs in tile scan

static bool set_tiles(int *begin, int count, const uint16_t *size, bool uniform, int whole)
{
    begin[0] = 0;
    for (int i = 1; i < count; i++)
        begin[i] = uniform ? i * whole / count : begin[i - 1] + size[i - 1];
    begin[count] = whole;
    for (int i = 0; i < count; i++)
        if (begin[i] >= begin[i + 1])
            return false;
    return true;
}

static int part_of(const int *begin, int at)
{
    int i = 0;
    while (at >= begin[i + 1])
        i++;
    return i;
}

static int address_of(const struct hevc_slice *s, int column, int line, int x, int y)
{
    const int *columns = s->column_begin + column, *lines = s->row_begin + line;
    const int height = lines[1] - lines[0], width = columns[1] - columns[0];
    return lines[0] * s->header.sps->ctb_columns + height * columns[0] + (y - lines[0]) * width +
           x - columns[0];
}

// Whether the CTB belongs to the slice. The caller sees to it that it comes before the current CTB,
// in its tile.
static bool in_slice(const struct hevc_slice *s, int x, int y)
{
    return address_of(s, s->column, s->line, x, y) >= s->begin;
}

// Goes to the next CTB. False: the picture ends. `*substream`: another one begins there.
static bool advance(struct hevc_slice *s, bool *substream)
{
    const struct hevc_pps *pps = s->header.pps;
    *substream = false;
    if (++s->x < s->column_begin[s->column + 1])
        return true;
    s->x = s->column_begin[s->column];
    *substream = pps->wavefront;
    if (++s->y < s->row_begin[s->line + 1])
        return true;
    *substream = pps->wavefront || pps->tiles;
    if (++s->column == pps->tile_columns) {
        s->column = 0;
        s->line++;
    }
    s->x = s->column_begin[s->column];
    s->y = s->row_begin[s->line < pps->tile_rows ? s->line : 0];
    return s->line < pps->tile_rows;
}

static void set_availability(struct hevc_slice *s)
{
    s->left_available = s->x > s->column_begin[s->column] && in_slice(s, s->x - 1, s->y);
    s->above_available = s->y > s->row_begin[s->line] && in_slice(s, s->x, s->y - 1);
}

static void init_contexts(struct hevc_slice *s)
{
    static const int types[3][2] = {
        [HEVC_SLICE_I] = {0, 0}, [HEVC_SLICE_P] = {1, 2}, [HEVC_SLICE_B] = {2, 1}};
    hevc_contexts_begin(&s->contexts, types[s->header.type][s->header.cabac_init], s->header.qp);
}

// The contexts for the CTB, with which a substream or, `segment`, a slice segment begins (9.3.1).
static void begin_contexts(struct hevc_slice *s, bool segment)
{
    const bool row_begins = s->x == s->column_begin[s->column];
    const bool tile_begins = row_begins && s->y == s->row_begin[s->line];
    if (!tile_begins && s->header.pps->wavefront && row_begins) {
        if (s->x + 1 < s->column_begin[s->column + 1] && in_slice(s, s->x + 1, s->y - 1))
            s->contexts = s->row;
        else
            init_contexts(s);
    } else if (!tile_begins && segment && s->header.dependent) {
        s->contexts = s->end;
    } else {
        init_contexts(s);
    }
}

static void read_ctb(struct hevc_slice *s)
{
    const struct hevc_sps *sps = s->header.sps;
    set_availability(s);
    read_sao(s);
    read_coding_quadtree(s, s->x << sps->ctb_log2, s->y << sps->ctb_log2, sps->ctb_log2, 0);
    if (s->header.pps->wavefront && s->x == s->column_begin[s->column] + 1)
        s->row = s->contexts;
}

static bool begin_segment(struct hevc_slice *s, int *first)
{
    const struct hevc_sps *sps = s->header.sps;
    const struct hevc_pps *pps = s->header.pps;
    if (!set_tiles(s->column_begin, pps->tile_columns, pps->tile_width, pps->tiles_uniform,
                   sps->ctb_columns) ||
        !set_tiles(s->row_begin, pps->tile_rows, pps->tile_height, pps->tiles_uniform,
                   sps->ctb_rows))
        return false;
    s->x = s->header.address % sps->ctb_columns;
    s->y = s->header.address / sps->ctb_columns;
    s->column = part_of(s->column_begin, s->x);
    s->line = part_of(s->row_begin, s->y);
    s->wrong = false;
    *first = address_of(s, s->column, s->line, s->x, s->y);
    if (!s->header.dependent)
        s->begin = *first;
    return *first >= s->begin;
}

int hevc_slice_parse(struct hevc_slice *s, const uint8_t *rbsp, size_t size, int *first)
{
    bool substream;
    size_t next;
    if (!begin_segment(s, first))
        return -EBADMSG;
    s->cabac = (struct hevc_cabac){.data = rbsp, .size = size};
    hevc_cabac_begin(&s->cabac, s->header.data_at);
    begin_contexts(s, true);
    for (int ctbs = *first + 1;; ctbs++) {
        read_ctb(s);
        if (s->wrong || hevc_cabac_overran(&s->cabac))
            return -EBADMSG;
        if (hevc_terminates(&s->cabac)) { // end_of_slice_segment_flag
            s->end = s->contexts;
            return hevc_cabac_ends(&s->cabac, &next) && next == size ? ctbs : -EBADMSG;
        }
        if (!advance(s, &substream))
            return -EBADMSG;
        if (!substream)
            continue;
        if (!hevc_terminates(&s->cabac) ||
            !hevc_cabac_ends(&s->cabac, &next)) // end_of_subset_one_bit
            return -EBADMSG;
        hevc_cabac_begin(&s->cabac, next);
        begin_contexts(s, false);
    }
}
