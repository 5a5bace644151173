// Three planes of bytes to one in which they take turns, in AVX2.
#ifndef FRAMED_KERNELS_CPU_TRIPLES_AVX2_H
#define FRAMED_KERNELS_CPU_TRIPLES_AVX2_H

#include <immintrin.h>
#include <stdint.h>

#include "kernels/fixed.h"

// In each 128-bit lane byte i of plane `turn` to place 3 * i + turn, modulo 16: where it belongs in
// one of three vectors.
static inline FRAMED_HD __m256i triple_places(__m256i v, int turn)
{
#define PLACE(p)  (char)(11 * (16 + (p)-turn) % 16) // 3 * 11 is 1, modulo 16
#define PLACE4(p) PLACE(p), PLACE((p) + 1), PLACE((p) + 2), PLACE((p) + 3)
    const __m128i order = _mm_setr_epi8(PLACE4(0), PLACE4(4), PLACE4(8), PLACE4(12));
#undef PLACE4
#undef PLACE
    return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(order));
}

// The places p of vector i that are plane `turn`'s.
static inline FRAMED_HD __m256i triple_turn(int i, int turn)
{
#define TURN(p)  ((16 * i + (p)) % 3 == turn ? -1 : 0)
#define TURN4(p) TURN(p), TURN((p) + 1), TURN((p) + 2), TURN((p) + 3)
    return _mm256_broadcastsi128_si256(_mm_setr_epi8(TURN4(0), TURN4(4), TURN4(8), TURN4(12)));
#undef TURN4
#undef TURN
}

// 3 * 32 bytes: a, b and c by turns. Each 128-bit lane makes 48 of them.
static inline FRAMED_HD void store_triples(uint8_t *to, __m256i a, __m256i b, __m256i c)
{
    __m256i out[3];
    a = triple_places(a, 0);
    b = triple_places(b, 1);
    c = triple_places(c, 2);
    for (int i = 0; i < 3; i++)
        out[i] =
            _mm256_blendv_epi8(_mm256_blendv_epi8(a, b, triple_turn(i, 1)), c, triple_turn(i, 2));
    _mm256_storeu_si256((__m256i *)to, _mm256_permute2x128_si256(out[0], out[1], 0x20));
    _mm256_storeu_si256((__m256i *)(to + 32), _mm256_blend_epi32(out[2], out[0], 0xf0));
    _mm256_storeu_si256((__m256i *)(to + 64), _mm256_permute2x128_si256(out[1], out[2], 0x31));
}

#endif
