// The CUDA kernels of detection (kernels/cuda/detect.cuh) on the host: the threads of a block take
// turns at what they wait for each other with. One more version for tests/kernels/detect.c.
// glibc's check of longjmp takes a jump to another context's stack for a mistake.
#undef _FORTIFY_SOURCE

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "kernels/detect.h"

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

static uint3 gridDim, blockIdx, threadIdx;

// --- threads of a block

enum { THREADS_MAX = 512, STACK = 1 << 16, WARP = 32 };

struct gathering { // of threads that wait until all of them that are left have come
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
    int n, now;
    gathering block, warp[THREADS_MAX / WARP];
    uint64_t word[THREADS_MAX];
    jmp_buf end;
    void (*run)(const void *);
    const void *batch;
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
    threadIdx.x = (unsigned)i;
    if (cuda.threads[i].begun)
        _longjmp(cuda.threads[i].at, 1);
    cuda.threads[i].begun = true;
    setcontext(&cuda.threads[i].first);
}

// To the next thread that is not done, in turn.
static void thread_next()
{
    for (int k = 1; k <= cuda.n; k++)
        if (!cuda.threads[(cuda.now + k) % cuda.n].done)
            thread_enter((cuda.now + k) % cuda.n);
    _longjmp(cuda.end, 1);
}

static void thread_main()
{
    cuda.run(cuda.batch);
    cuda.threads[cuda.now].done = true;
    gathering *const both[] = {&cuda.block, &cuda.warp[cuda.now / WARP]};
    for (gathering *g : both) {
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

static void block_run(int threads)
{
    cuda.n = threads;
    cuda.block = {threads, 0, 0};
    for (int i = 0; i < threads; i++) {
        cuda.warp[i / WARP] = {WARP, 0, 0};
        cuda.threads[i].begun = cuda.threads[i].done = false;
        getcontext(&cuda.threads[i].first);
        cuda.threads[i].first.uc_stack.ss_sp = cuda.stacks + (size_t)i * STACK;
        cuda.threads[i].first.uc_stack.ss_size = STACK;
        makecontext(&cuda.threads[i].first, thread_main, 0);
    }
    if (!_setjmp(cuda.end))
        thread_enter(0);
}

// --- what the kernels call

static void __syncthreads()
{
    gather(&cuda.block);
}

static void __syncwarp()
{
    gather(&cuda.warp[cuda.now / WARP]);
}

static unsigned __ballot_sync(unsigned, bool has)
{
    const int first = cuda.now / WARP * WARP;
    uint64_t bits = 0;
    cuda.word[cuda.now] = has;
    gather(&cuda.warp[cuda.now / WARP]);
    for (int i = 0; i < WARP; i++)
        bits |= cuda.word[first + i] << i;
    gather(&cuda.warp[cuda.now / WARP]);
    return (unsigned)bits;
}

template <typename T> static T __shfl_sync(unsigned, T value, int lane)
{
    memcpy(&cuda.word[cuda.now], &value, sizeof value);
    gather(&cuda.warp[cuda.now / WARP]);
    memcpy(&value, &cuda.word[cuda.now / WARP * WARP + lane], sizeof value);
    gather(&cuda.warp[cuda.now / WARP]);
    return value;
}

template <typename T> static T __shfl_xor_sync(unsigned mask, T value, int other)
{
    return __shfl_sync(mask, value, cuda.now % WARP ^ other);
}

template <typename T> static T atomicAdd(T *at, T more)
{
    const T before = *at;
    *at += more;
    return before;
}

template <typename T> static void atomicOr(T *at, T bits)
{
    *at |= bits;
}

template <typename T> static void atomicMin(T *at, T other)
{
    if (other < *at)
        *at = other;
}

static int __popc(unsigned bits)
{
    return __builtin_popcount(bits);
}

static int __ffs(int bits)
{
    return __builtin_ffs(bits);
}

#include "kernels/cuda/detect.cuh"

// --- launches

typedef void kernel(struct detect_batch);

static kernel *running;

static void run_kernel(const void *batch)
{
    running(*(const detect_batch *)batch);
}

static void launch(kernel *kernel, const detect_batch *batch, unsigned x, unsigned y, int threads)
{
    running = kernel;
    cuda.run = run_kernel;
    cuda.batch = batch;
    gridDim = {x, y, 1};
    for (blockIdx.y = 0; blockIdx.y < y; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < x; blockIdx.x++)
            block_run(threads);
}

// Of one picture twice in a batch, so that the second says whether pictures stay apart; both twice,
// so that the counters must be reset. False: the two differ.
extern "C" bool detect_on_host(const struct detect *d, const struct detect_input *in,
                               struct detect_result *result)
{
    static detect_batch batch;
    batch.layout = detect_layout_of(d);
    const size_t bytes = detect_result_bytes(d), room = 2 * batch.layout.bytes;
    batch.detect = d;
    batch.pictures = (uint8_t *)calloc(1, room);
    batch.results = (uint8_t *)malloc(2 * bytes);
    batch.result_bytes = bytes;
    batch.n = 2;
    batch.in[0] = batch.in[1] = *in;
    if (!cuda.stacks)
        cuda.stacks = (uint8_t *)malloc((size_t)THREADS_MAX * STACK);
    memcpy(batch.results, result, bytes); // what is not written stays
    for (int time = 0; time < 2; time++) {
        memcpy(batch.results + bytes, result, bytes);
        launch(scan_for(d), &batch, (unsigned)(d->params.anchors + SCAN_ANCHORS - 1) / SCAN_ANCHORS,
               2, SCAN_THREADS);
        launch(detect_finish, &batch, 2, 1, FINISH_THREADS);
    }
    const bool same = memcmp(batch.results, batch.results + bytes, bytes) == 0;
    memcpy(result, batch.results, bytes);
    free(batch.results);
    free(batch.pictures);
    return same;
}
