#include "daemon/decode/hevc_residual.h"

#include <stdint.h>

enum {
    SUB_BLOCK_LAST = 15,
    GREATER1_MAX = 8,  // flags of a sub-block
    PREFIX_MAX = 18,   // of coeff_abs_level_remaining: more is beyond 16 bits
    LEVEL_MAX = 32768, // magnitude of a coefficient
    RICE_MAX = 4,
};

// ScanOrder (6.5.3 to 6.5.5) of positions in a sub-block and of sub-blocks in a block: y << 4 | x.
static const uint8_t scan_4x4[3][16] = {
    {0x00, 0x10, 0x01, 0x20, 0x11, 0x02, 0x30, 0x21, 0x12, 0x03, 0x31, 0x22, 0x13, 0x32, 0x23,
     0x33},
    {0x00, 0x01, 0x02, 0x03, 0x10, 0x11, 0x12, 0x13, 0x20, 0x21, 0x22, 0x23, 0x30, 0x31, 0x32,
     0x33},
    {0x00, 0x10, 0x20, 0x30, 0x01, 0x11, 0x21, 0x31, 0x02, 0x12, 0x22, 0x32, 0x03, 0x13, 0x23,
     0x33},
};
static const uint8_t scan_2x2[3][4] = {
    {0x00, 0x10, 0x01, 0x11},
    {0x00, 0x01, 0x10, 0x11},
    {0x00, 0x10, 0x01, 0x11},
};
static const uint8_t scan_8x8[64] = {
    0x00, 0x10, 0x01, 0x20, 0x11, 0x02, 0x30, 0x21, 0x12, 0x03, 0x40, 0x31, 0x22, 0x13, 0x04, 0x50,
    0x41, 0x32, 0x23, 0x14, 0x05, 0x60, 0x51, 0x42, 0x33, 0x24, 0x15, 0x06, 0x70, 0x61, 0x52, 0x43,
    0x34, 0x25, 0x16, 0x07, 0x71, 0x62, 0x53, 0x44, 0x35, 0x26, 0x17, 0x72, 0x63, 0x54, 0x45, 0x36,
    0x27, 0x73, 0x64, 0x55, 0x46, 0x37, 0x74, 0x65, 0x56, 0x47, 0x75, 0x66, 0x57, 0x76, 0x67, 0x77};
static const uint8_t scan_1x1[1] = {0x00};

// The part of sigCtx that a position y << 2 | x in its sub-block decides: by the sub-blocks on the
// right (1) and below (2) which have coefficients, and of blocks of a single sub-block.
enum { ONE_SUB_BLOCK = 4 };
static const uint8_t significant_context[5][16] = {
    {2, 1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0},
    {2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0},
    {2, 1, 0, 0, 2, 1, 0, 0, 2, 1, 0, 0, 2, 1, 0, 0},
    {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2},
    {0, 1, 4, 5, 2, 3, 4, 5, 6, 6, 8, 8, 7, 7, 8, 8},
};

static const uint8_t *sub_blocks_of(const struct hevc_block *block)
{
    if (block->log2 == 2)
        return scan_1x1;
    if (block->log2 == 3)
        return scan_2x2[block->scan];
    return block->log2 == 4 ? scan_4x4[HEVC_SCAN_DIAGONAL] : scan_8x8;
}

// last_sig_coeff_x_prefix or _y_prefix
static int read_last_prefix(struct hevc_cabac *c, uint8_t *context, const struct hevc_block *block)
{
    const int log2 = block->log2, max = 2 * log2 - 1;
    const int shift = block->chroma ? log2 - 2 : (log2 + 1) >> 2;
    context += block->chroma ? 15 : 3 * (log2 - 2) + ((log2 - 1) >> 2);
    int prefix = 0;
    while (prefix < max && hevc_bin(c, &context[prefix >> shift]))
        prefix++;
    return prefix;
}

static int read_last_suffix(struct hevc_cabac *c, int prefix)
{
    if (prefix <= 3)
        return prefix;
    const int bits = (prefix >> 1) - 1;
    return ((2 + (prefix & 1)) << bits) + (int)hevc_bypass(c, bits);
}

// Returns the position of the last coefficient: y << 8 | x.
static int read_last(struct hevc_cabac *c, uint8_t *state, const struct hevc_block *block)
{
    const int x_prefix = read_last_prefix(c, state + CONTEXT_LAST_X, block);
    const int y_prefix = read_last_prefix(c, state + CONTEXT_LAST_Y, block);
    const int x = read_last_suffix(c, x_prefix), y = read_last_suffix(c, y_prefix);
    return block->scan == HEVC_SCAN_VERTICAL ? x << 8 | y : y << 8 | x;
}

// coeff_abs_level_remaining; -1: beyond what can be.
static int read_remaining(struct hevc_cabac *c, int rice)
{
    int prefix = 0;
    while (prefix <= PREFIX_MAX && hevc_bypass(c, 1))
        prefix++;
    if (prefix > PREFIX_MAX)
        return -1;
    if (prefix <= 3)
        return (prefix << rice) + (int)hevc_bypass(c, rice);
    return (((1 << (prefix - 3)) + 2) << rice) + (int)hevc_bypass(c, prefix - 3 + rice);
}

// The levels of a sub-block's n coefficients that are not 0. `*greater1`: greater1Ctx, from the
// block's sub-block before this one.
static bool read_levels(struct hevc_cabac *c, uint8_t *state, const struct hevc_block *block,
                        bool lowest, int n, bool hides_sign, int *greater1)
{
    const int set = (lowest || block->chroma ? 0 : 2) + (*greater1 == 0);
    uint8_t *context = state + CONTEXT_GREATER1 + (block->chroma ? 16 : 0) + 4 * set;
    int base[16], first = -1, next = 1;
    for (int i = 0; i < n && i < GREATER1_MAX; i++) {
        base[i] = 1 + hevc_bin(c, &context[next]);
        if (base[i] == 2) {
            first = first < 0 ? i : first;
            next = 0;
        } else if (next > 0 && next < 3) {
            next++;
        }
    }
    *greater1 = next;
    if (first >= 0)
        base[first] += hevc_bin(c, state + CONTEXT_GREATER2 + (block->chroma ? 4 : 0) + set);
    hevc_bypass(c, n - hides_sign);
    for (int i = first >= 0 ? first : GREATER1_MAX, rice = 0; i < n; i++) {
        const int level = i < GREATER1_MAX ? base[i] : 1;
        if (level < (i >= GREATER1_MAX ? 1 : i == first ? 3 : 2))
            continue;
        const int remaining = read_remaining(c, rice);
        if (remaining < 0 || level + remaining > LEVEL_MAX)
            return false;
        if (level + remaining > 3 << rice && rice < RICE_MAX)
            rice++;
    }
    return true;
}

// sig_coeff_flag of the positions below `from`; those that are set go to `found`. `context` and
// `by_position` say a position's context. Returns how many they are.
static int read_significant(struct hevc_cabac *c, uint8_t *context, const uint8_t *by_position,
                            const uint8_t *scan, int from, uint8_t *found)
{
    int n = 0;
    for (int i = from - 1; i > 0; i--) {
        const int position = (scan[i] >> 4) << 2 | (scan[i] & 3);
        found[n] = (uint8_t)i;
        n += hevc_bin(c, &context[by_position[position]]);
    }
    return n;
}

static int context_offset(const struct hevc_block *block, bool lowest)
{
    if (block->log2 == 2)
        return block->chroma ? 27 : 0;
    if (block->chroma)
        return 27 + (block->log2 == 3 ? 9 : 12);
    if (block->log2 == 3)
        return (lowest ? 0 : 3) + (block->scan == HEVC_SCAN_DIAGONAL ? 9 : 15);
    return (lowest ? 0 : 3) + 21;
}

static int index_of(const uint8_t *scan, int position)
{
    int i = 0;
    while (scan[i] != position)
        i++;
    return i;
}

static bool read_sub_blocks(struct hevc_cabac *c, uint8_t *state, const struct hevc_block *block)
{
    const uint8_t *scan = scan_4x4[block->scan], *sub_blocks = sub_blocks_of(block);
    const int last = read_last(c, state, block), x_last = last & 255, y_last = last >> 8;
    const int last_sub_block = index_of(sub_blocks, (y_last >> 2) << 4 | x_last >> 2);
    const int last_position = index_of(scan, (y_last & 3) << 4 | (x_last & 3));
    uint8_t coded[9] = {0}; // sub-blocks: a row each, a bit each
    int greater1 = 1;
    for (int i = last_sub_block; i >= 0; i--) {
        const int x = sub_blocks[i] & 15, y = sub_blocks[i] >> 4;
        const int right = coded[y] >> (x + 1) & 1, below = coded[y + 1] >> x & 1;
        const bool ends = i == last_sub_block, told = !ends && i > 0;
        if (told &&
            !hevc_bin(c, state + CONTEXT_SUB_BLOCK + (block->chroma ? 2 : 0) + (right | below)))
            continue;
        coded[y] |= (uint8_t)(1 << x);
        uint8_t found[16];
        int n = 0, from = 16;
        if (ends)
            found[n++] = (uint8_t)(from = last_position);
        uint8_t *context = state + CONTEXT_SIGNIFICANT + context_offset(block, i == 0);
        const uint8_t *by_position =
            significant_context[block->log2 == 2 ? ONE_SUB_BLOCK : right | below << 1];
        n += read_significant(c, context, by_position, scan, from, found + n);
        if (i == 0)
            context = state + CONTEXT_SIGNIFICANT + (block->chroma ? 27 : 0);
        if (from > 0 &&
            ((told && n == 0) || hevc_bin(c, i == 0 ? context : &context[by_position[0]])))
            found[n++] = 0;
        const bool hides_sign = block->hides_signs && n > 0 && found[0] - found[n - 1] > 3;
        if (n > 0 && !read_levels(c, state, block, i == 0, n, hides_sign, &greater1))
            return false;
    }
    return true;
}

// The decoder's state is in registers meanwhile.
bool hevc_residual_parse(struct hevc_cabac *cabac, struct hevc_contexts *contexts,
                         const struct hevc_block *block)
{
    struct hevc_cabac c = *cabac;
    if (block->may_skip_transform && block->log2 == 2)
        hevc_bin(&c, &contexts->state[CONTEXT_TRANSFORM_SKIP + block->chroma]);
    const bool good = read_sub_blocks(&c, contexts->state, block);
    *cabac = c;
    return good;
}
