// The arithmetic decoder of H.265 (ITU-T H.265, 9.3): bins from bytes, by adaptive contexts. Behind
// the data's end it reads zeros. One thread uses it.
#ifndef FRAMED_DAEMON_DECODE_HEVC_CABAC_H
#define FRAMED_DAEMON_DECODE_HEVC_CABAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hevc_context { // the first one of each syntax element
    CONTEXT_SAO_MERGE = 0,
    CONTEXT_SAO_TYPE = CONTEXT_SAO_MERGE + 1,
    CONTEXT_SPLIT_CU = CONTEXT_SAO_TYPE + 1,
    CONTEXT_TRANSQUANT_BYPASS = CONTEXT_SPLIT_CU + 3,
    CONTEXT_SKIP = CONTEXT_TRANSQUANT_BYPASS + 1,
    CONTEXT_PRED_MODE = CONTEXT_SKIP + 3,
    CONTEXT_PART_MODE = CONTEXT_PRED_MODE + 1,
    CONTEXT_PREV_INTRA = CONTEXT_PART_MODE + 4,
    CONTEXT_INTRA_CHROMA = CONTEXT_PREV_INTRA + 1,
    CONTEXT_ROOT_CBF = CONTEXT_INTRA_CHROMA + 1,
    CONTEXT_MERGE_FLAG = CONTEXT_ROOT_CBF + 1,
    CONTEXT_MERGE_INDEX = CONTEXT_MERGE_FLAG + 1,
    CONTEXT_INTER_PRED = CONTEXT_MERGE_INDEX + 1,
    CONTEXT_REF_INDEX = CONTEXT_INTER_PRED + 5,
    CONTEXT_MVP = CONTEXT_REF_INDEX + 2,
    CONTEXT_SPLIT_TRANSFORM = CONTEXT_MVP + 1,
    CONTEXT_CBF_LUMA = CONTEXT_SPLIT_TRANSFORM + 3,
    CONTEXT_CBF_CHROMA = CONTEXT_CBF_LUMA + 2,
    CONTEXT_MVD_GREATER0 = CONTEXT_CBF_CHROMA + 4,
    CONTEXT_MVD_GREATER1 = CONTEXT_MVD_GREATER0 + 1,
    CONTEXT_QP_DELTA = CONTEXT_MVD_GREATER1 + 1,
    CONTEXT_TRANSFORM_SKIP = CONTEXT_QP_DELTA + 2,
    CONTEXT_LAST_X = CONTEXT_TRANSFORM_SKIP + 2,
    CONTEXT_LAST_Y = CONTEXT_LAST_X + 18,
    CONTEXT_SUB_BLOCK = CONTEXT_LAST_Y + 18,
    CONTEXT_SIGNIFICANT = CONTEXT_SUB_BLOCK + 4,
    CONTEXT_GREATER1 = CONTEXT_SIGNIFICANT + 42,
    CONTEXT_GREATER2 = CONTEXT_GREATER1 + 24,
    CONTEXTS = CONTEXT_GREATER2 + 6,
};

struct hevc_contexts {
    uint8_t state[CONTEXTS]; // pStateIdx << 1 | valMps
};

struct hevc_cabac {
    const uint8_t *data;
    size_t size, at; // `at`, how many bytes were taken, may lie behind the end
    uint64_t value;  // ivlOffset, and behind it `ahead` bits that were taken in advance
    int ahead;
    uint32_t range; // ivlCurrRange
};

extern const uint8_t hevc_range_lps[64][4];
extern const uint8_t
    hevc_next_state[256]; // by state after the more probable symbol, by ~state else

// `type`: initType.
void hevc_contexts_begin(struct hevc_contexts *, int type, int qp);
void hevc_cabac_begin(struct hevc_cabac *, size_t at);
// Of what ends after a terminating bin: whether there the stop bit follows, and zeros up to the
// next byte. `*next`: that byte.
bool hevc_cabac_ends(const struct hevc_cabac *, size_t *next);

static inline bool hevc_cabac_overran(const struct hevc_cabac *c)
{
    return 8 * c->at - (size_t)c->ahead > 8 * c->size;
}

// To 32 bits at least. Inline, as all below: a copy of the decoder is then kept in registers.
static inline void hevc_cabac_refill(struct hevc_cabac *c)
{
    if (c->at + 4 <= c->size && c->ahead >= 0) {
        const uint8_t *next = c->data + c->at;
        c->value =
            c->value << 32 | (uint32_t)next[0] << 24 | next[1] << 16 | next[2] << 8 | next[3];
        c->at += 4;
        c->ahead += 32;
        return;
    }
    for (; c->ahead < 32; c->ahead += 8, c->at++)
        c->value = c->value << 8 | (c->at < c->size ? c->data[c->at] : 0);
}

// Without branches: which symbol comes cannot be predicted.
static inline int hevc_bin(struct hevc_cabac *c, uint8_t *context)
{
    if (c->ahead < 8)
        hevc_cabac_refill(c);
    const unsigned state = *context;
    const uint32_t lps = hevc_range_lps[state >> 1][c->range >> 6 & 3], mps = c->range - lps;
    const uint64_t scaled = (uint64_t)mps << c->ahead;
    const uint64_t is_lps = -(uint64_t)(c->value >= scaled);
    const uint32_t range = mps + ((lps - mps) & (uint32_t)is_lps);
    const int shift = __builtin_clz(range) - 23;
    c->value -= scaled & is_lps;
    c->range = range << shift;
    c->ahead -= shift;
    *context = hevc_next_state[state ^ (is_lps & 255)];
    return (state ^ is_lps) & 1;
}

static inline unsigned hevc_bypass(struct hevc_cabac *c, int n) // n up to 20
{
    unsigned value = 0;
    if (c->ahead < n)
        hevc_cabac_refill(c);
    for (; n > 0; n--) {
        const uint64_t scaled = (uint64_t)c->range << --c->ahead;
        const bool bin = c->value >= scaled;
        c->value -= bin ? scaled : 0;
        value = value << 1 | bin;
    }
    return value;
}

static inline bool hevc_terminates(struct hevc_cabac *c)
{
    if (c->ahead < 8)
        hevc_cabac_refill(c);
    c->range -= 2;
    if (c->value >= (uint64_t)c->range << c->ahead)
        return true;
    const int shift = c->range < 256;
    c->range <<= shift;
    c->ahead -= shift;
    return false;
}

#endif
