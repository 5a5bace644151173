// Three planes of bytes to one in which they take turns, in AVX-512 with VBMI.
#ifndef FRAMED_KERNELS_CPU_TRIPLES_AVX512_H
#define FRAMED_KERNELS_CPU_TRIPLES_AVX512_H

#include <immintrin.h>
#include <stdint.h>

#include "kernels/fixed.h"

// Byte i of plane c belongs to place 3 * i + c, modulo 64, of one of three vectors.
#define PLACE(p) (uint8_t)(43 * (p) % 64) // 3 * 43 is 1, modulo 64
#define PLACE8(p)                                                                                  \
    PLACE(p), PLACE((p) + 1), PLACE((p) + 2), PLACE((p) + 3), PLACE((p) + 4), PLACE((p) + 5),      \
        PLACE((p) + 6), PLACE((p) + 7)
#define PLACES(p)                                                                                  \
    {                                                                                              \
        PLACE8(p), PLACE8((p) + 8), PLACE8((p) + 16), PLACE8((p) + 24), PLACE8((p) + 32),          \
            PLACE8((p) + 40), PLACE8((p) + 48), PLACE8((p) + 56)                                   \
    }
static const uint8_t triple_places[3][64]
    __attribute__((aligned(64))) = {PLACES(0), PLACES(63), PLACES(62)};
#undef PLACES
#undef PLACE8
#undef PLACE

// 3 * 64 bytes: a, b and c by turns.
static inline FRAMED_HD void store_triples(uint8_t *to, __m512i a, __m512i b, __m512i c)
{
    // the places p of vector i for which 64 * i + p is 1, or 2, modulo 3
    static const uint64_t of_b[3] = {0x2492492492492492, 0x9249249249249249, 0x4924924924924924};
    static const uint64_t of_c[3] = {0x4924924924924924, 0x2492492492492492, 0x9249249249249249};
    a = _mm512_permutexvar_epi8(_mm512_load_si512(triple_places[0]), a);
    b = _mm512_permutexvar_epi8(_mm512_load_si512(triple_places[1]), b);
    c = _mm512_permutexvar_epi8(_mm512_load_si512(triple_places[2]), c);
    for (int i = 0; i < 3; i++) {
        const __m512i ab = _mm512_mask_blend_epi8(of_b[i], a, b);
        _mm512_storeu_si512(to + 64 * i, _mm512_mask_blend_epi8(of_c[i], ab, c));
    }
}

#endif
