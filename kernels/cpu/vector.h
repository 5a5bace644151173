// Vectors for a file's compiler flags, as types of gcc and clang: these support + - * & | << >> and
// constants like scalars. Other operations are functions in vector_x86.h and vector_neon.h, with
// the same names, so that templates contain no CPU instructions.
#ifndef FRAMED_KERNELS_CPU_VECTOR_H
#define FRAMED_KERNELS_CPU_VECTOR_H

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "kernels/fixed.h"

#if defined(__AVX512VBMI__)
enum { VECTOR_BYTES = 64 };
#elif defined(__AVX2__)
enum { VECTOR_BYTES = 32 };
#else
enum { VECTOR_BYTES = 16 };
#endif

enum {
    PIXELS = VECTOR_BYTES,     // bytes in a vector: pixels packed and stored at a time
    LANES = VECTOR_BYTES / 2,  // 16-bit lanes
    FLOATS = VECTOR_BYTES / 4, // 32-bit lanes
};

typedef uint8_t vec_u8 __attribute__((vector_size(VECTOR_BYTES)));
typedef int16_t vec_s16 __attribute__((vector_size(VECTOR_BYTES)));
typedef uint16_t vec_u16 __attribute__((vector_size(VECTOR_BYTES)));
typedef int32_t vec_s32 __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t vec_u32 __attribute__((vector_size(VECTOR_BYTES)));
typedef float vec_f32 __attribute__((vector_size(VECTOR_BYTES)));

// A vector in memory: at any address, of any type.
typedef int64_t vec_memory __attribute__((vector_size(VECTOR_BYTES), aligned(1), may_alias));

static inline FRAMED_HD vec_u8 load_u8(const void *at)
{
    return (vec_u8) * (const vec_memory *)at;
}

static inline FRAMED_HD vec_s16 load_s16(const void *at)
{
    return (vec_s16)load_u8(at);
}

static inline FRAMED_HD vec_f32 load_f32(const float *at)
{
    return (vec_f32)load_u8(at);
}

static inline FRAMED_HD void store_u8(void *at, vec_u8 v)
{
    *(vec_memory *)at = (vec_memory)v;
}

static inline FRAMED_HD void store_s16(int16_t *at, vec_s16 v)
{
    store_u8(at, (vec_u8)v);
}

static inline FRAMED_HD vec_s16 all_s16(int x)
{
    return (vec_s16){0} + (int16_t)x;
}

static inline FRAMED_HD vec_s32 all_s32(int32_t x)
{
    return (vec_s32){0} + x;
}

static inline FRAMED_HD vec_f32 all_f32(float x)
{
    return x - (vec_f32){0};
}

// A reach of gather_pairs: `lanes` lanes read from a window of `bytes` bytes.
struct reach {
    int lanes, bytes;
};

#endif
