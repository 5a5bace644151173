// Runs the threads of a CUDA block, or of a cluster of blocks, on the host: they switch at the
// points where they wait for each other. The kernels compiled here are one more version for the
// tests, with stand-ins for GPU-only features.
#ifndef FRAMED_TESTS_KERNELS_CPU_CUDA_BLOCK_H
#define FRAMED_TESTS_KERNELS_CPU_CUDA_BLOCK_H

#ifdef _FORTIFY_SOURCE
#error "glibc's check of longjmp takes a jump to another context's stack for a mistake"
#endif

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "kernels/fixed.h"

#define __device__
#define __global__
#define __shared__ static
#define __noinline__
#define __grid_constant__
#define __launch_bounds__(...)

struct uint3 {
    unsigned x, y, z;
};

struct uint2 {
    unsigned x, y;
};

struct uint4 {
    unsigned x, y, z, w;
};

static uint3 gridDim, blockDim, blockIdx, threadIdx;

// --- threads of a block

enum { THREADS_MAX = 512, BLOCKS_MAX = 4, MEMORY = 1 << 14, STACK = 1 << 16, WARP = 32 };

struct gathering { // barrier that opens once all remaining threads have arrived
    int members, here;
    unsigned turn;
};

struct thread {
    jmp_buf at;
    ucontext_t first;
    bool begun, done;
};

static struct {
    thread threads[THREADS_MAX];
    uint8_t *stacks;
    int n, now, each, first; // n: all threads; each: per block; first: the cluster's first block
    gathering cluster, block[BLOCKS_MAX], warp[THREADS_MAX / WARP];
    uint64_t word[THREADS_MAX];
    jmp_buf end;
    void (*run)(const void *);
    const void *argument;
} cuda;

static void gathering_check(gathering *g)
{
    if (g->here == g->members) {
        g->here = 0;
        g->turn++;
    }
}

static void thread_enter(int i)
{
    cuda.now = i;
    blockIdx.x = (unsigned)(cuda.first + i / cuda.each);
    threadIdx.x = (unsigned)(i % cuda.each) % blockDim.x;
    threadIdx.y = (unsigned)(i % cuda.each) / blockDim.x;
    if (cuda.threads[i].begun)
        _longjmp(cuda.threads[i].at, 1);
    cuda.threads[i].begun = true;
    setcontext(&cuda.threads[i].first);
}

// Switches to the next unfinished thread in turn.
static void thread_next()
{
    for (int k = 1; k <= cuda.n; k++)
        if (!cuda.threads[(cuda.now + k) % cuda.n].done)
            thread_enter((cuda.now + k) % cuda.n);
    _longjmp(cuda.end, 1);
}

static void thread_main()
{
    cuda.run(cuda.argument);
    cuda.threads[cuda.now].done = true;
    gathering *const all[] = {&cuda.cluster, &cuda.block[cuda.now / cuda.each],
                              &cuda.warp[cuda.now / WARP]};
    for (gathering *g : all) {
        g->members--;
        gathering_check(g);
    }
    thread_next();
}

static void gather(gathering *g)
{
    const unsigned turn = g->turn;
    g->here++;
    gathering_check(g);
    while (g->turn == turn)
        if (!_setjmp(cuda.threads[cuda.now].at))
            thread_next();
}

// Out of line: gcc warns about the counter of a loop around getcontext, which may return twice.
static __attribute__((noinline)) void thread_make(int i)
{
    cuda.threads[i].begun = cuda.threads[i].done = false;
    getcontext(&cuda.threads[i].first);
    cuda.threads[i].first.uc_stack.ss_sp = cuda.stacks + (size_t)i * STACK;
    cuda.threads[i].first.uc_stack.ss_size = STACK;
    makecontext(&cuda.threads[i].first, thread_main, 0);
}

static void cluster_run(int first, int blocks, int threads)
{
    if (!cuda.stacks)
        cuda.stacks = (uint8_t *)malloc((size_t)THREADS_MAX * STACK);
    cuda.n = blocks * threads;
    cuda.each = threads;
    cuda.first = first;
    cuda.cluster = {cuda.n, 0, 0};
    for (int i = 0; i < blocks; i++)
        cuda.block[i] = {threads, 0, 0};
    for (int i = 0; i < cuda.n; i++) {
        cuda.warp[i / WARP] = {WARP, 0, 0};
        thread_make(i);
    }
    if (!_setjmp(cuda.end))
        thread_enter(0);
}

// Runs the clusters of a grid one after another, with blockDim.x by blockDim.y threads per block.
// Shared variables belong to the cluster, not the block: kernels with clusters use block_memory.
static void grid_run(uint3 grid, uint3 block, void (*run)(const void *), const void *argument,
                     int cluster = 1)
{
    cuda.run = run;
    cuda.argument = argument;
    gridDim = grid;
    blockDim = block;
    for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
        for (unsigned x = 0; x < grid.x; x += (unsigned)cluster)
            cluster_run((int)x, cluster, (int)(block.x * block.y));
}

// --- functions called by the kernels

static inline void __syncthreads()
{
    gather(&cuda.block[cuda.now / cuda.each]);
}

static inline void __syncwarp()
{
    gather(&cuda.warp[cuda.now / WARP]);
}

static inline int cluster_size()
{
    return cuda.n / cuda.each;
}

static inline int cluster_rank()
{
    return cuda.now / cuda.each;
}

static inline void cluster_arrive()
{
}

static inline void cluster_wait()
{
    gather(&cuda.cluster);
}

// Returns the memory that a launch gives a block.
static inline void *block_memory(size_t bytes)
{
    static struct {
        alignas(64) uint8_t at[MEMORY];
    } memory[BLOCKS_MAX];
    return bytes <= MEMORY ? memory[cluster_rank()].at : NULL;
}

template <typename T> static inline const T *cluster_at(const T *own, int rank)
{
    return (const T *)((const uint8_t *)own + (rank - cluster_rank()) * MEMORY);
}

template <typename T> static inline T __shfl_sync(unsigned, T value, int lane)
{
    memcpy(&cuda.word[cuda.now], &value, sizeof value);
    gather(&cuda.warp[cuda.now / WARP]);
    memcpy(&value, &cuda.word[cuda.now / WARP * WARP + lane], sizeof value);
    gather(&cuda.warp[cuda.now / WARP]);
    return value;
}

template <typename T> static inline T __shfl_xor_sync(unsigned mask, T value, int other)
{
    return __shfl_sync(mask, value, cuda.now % WARP ^ other);
}

template <typename T> static inline T __shfl_up_sync(unsigned mask, T value, int by)
{
    const int lane = cuda.now % WARP;
    return __shfl_sync(mask, value, lane < by ? lane : lane - by);
}

template <typename T> static inline T __shfl_down_sync(unsigned mask, T value, int by)
{
    const int lane = cuda.now % WARP;
    return __shfl_sync(mask, value, lane + by < WARP ? lane + by : lane);
}

// Collects the values of all lanes of the warp.
static inline void warp_words(unsigned value, unsigned to[WARP])
{
    const int first = cuda.now / WARP * WARP;
    cuda.word[cuda.now] = value;
    gather(&cuda.warp[cuda.now / WARP]);
    for (int i = 0; i < WARP; i++)
        to[i] = (unsigned)cuda.word[first + i];
    gather(&cuda.warp[cuda.now / WARP]);
}

static inline unsigned __ballot_sync(unsigned, bool has)
{
    unsigned words[WARP], bits = 0;
    warp_words(has, words);
    for (int i = 0; i < WARP; i++)
        bits |= words[i] << i;
    return bits;
}

static inline unsigned __reduce_add_sync(unsigned, unsigned value)
{
    unsigned words[WARP], sum = 0;
    warp_words(value, words);
    for (int i = 0; i < WARP; i++)
        sum += words[i];
    return sum;
}

static inline unsigned __reduce_max_sync(unsigned, unsigned value)
{
    unsigned words[WARP], largest = 0;
    warp_words(value, words);
    for (int i = 0; i < WARP; i++)
        largest = words[i] > largest ? words[i] : largest;
    return largest;
}

template <typename T> static inline T atomicAdd(T *at, T more)
{
    const T before = *at;
    *at += more;
    return before;
}

template <typename T> static inline void atomicMax(T *at, T other)
{
    if (other > *at)
        *at = other;
}

template <typename T> static inline void atomicOr(T *at, T bits)
{
    *at |= bits;
}

template <typename T> static inline void atomicMin(T *at, T other)
{
    if (other < *at)
        *at = other;
}

static inline int __popc(unsigned bits)
{
    return __builtin_popcount(bits);
}

static inline int __clz(int bits)
{
    return bits ? __builtin_clz((unsigned)bits) : 32;
}

static inline int __ffs(int bits)
{
    return __builtin_ffs(bits);
}

// --- instructions

template <typename T> static inline T min(T a, T b)
{
    return a < b ? a : b;
}

template <typename T> static inline T max(T a, T b)
{
    return a > b ? a : b;
}

template <typename T> static inline T __ldg(const T *at)
{
    return *at;
}

template <typename T> static inline T __ldcg(const T *at)
{
    return *at;
}

static inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum)
{
    for (int i = 0; i < 32; i += 8)
        sum += (a >> i & 255) * (b >> i & 255);
    return sum;
}

static inline unsigned __dp2a_lo(unsigned words, unsigned bytes, unsigned sum)
{
    return sum + (words & 0xffff) * (bytes & 255) + (words >> 16) * (bytes >> 8 & 255);
}

// Nibble i of `order` selects byte i of the result: 0 to 3 from low, 4 to 7 from high.
static inline unsigned __byte_perm(unsigned low, unsigned high, unsigned order)
{
    const uint64_t bytes = (uint64_t)high << 32 | low;
    unsigned result = 0;
    for (int i = 0; i < 4; i++)
        result |= (unsigned)(bytes >> 8 * (order >> 4 * i & 7) & 255) << 8 * i;
    return result;
}

// Operates on the two 16-bit halves of a word.
static inline unsigned __vmaxu2(unsigned a, unsigned b)
{
    return max(a & 0xffff, b & 0xffff) | max(a >> 16, b >> 16) << 16;
}

static inline unsigned __vminu2(unsigned a, unsigned b)
{
    return min(a & 0xffff, b & 0xffff) | min(a >> 16, b >> 16) << 16;
}

static inline unsigned __viaddmax_u16x2(unsigned a, unsigned b, unsigned c)
{
    return __vmaxu2(((a + b) & 0xffff) | ((a >> 16) + (b >> 16)) << 16, c);
}

static inline unsigned __viaddmin_u16x2(unsigned a, unsigned b, unsigned c)
{
    return __vminu2(((a + b) & 0xffff) | ((a >> 16) + (b >> 16)) << 16, c);
}

static inline unsigned atomic_add_ordered(unsigned *at, unsigned more)
{
    return atomicAdd(at, more);
}

static inline void copy_begin(void *to, const void *from)
{
    memcpy(to, from, sizeof(uint4));
}

static inline void copies_end()
{
}

static inline unsigned pair_mask(unsigned pair)
{
    return (pair >> 15 & 0x10001u) * 0xffff;
}

#endif
