// Detection for scripts: answers requests, or times one.
//
// usage: bench-detect serve       one result for each request on stdin
//        bench-detect time RUNS   repeats the request on stdin; prints the median in ms
//        bench-detect cuda RUNS PICTURES   the same on CUDA, batches of PICTURES copies; fails if
//                                 the result differs from the CPU's
//
// A request: struct detect_params, its two pointers set to 0 or 1; the tables marked 1; double
// dst_to_src[6]; int32 width, height; the tensors. A result, as in kernels/detect.h, follows its
// size as uint64, which is 0 if the parameters are refused. A merge request has four bytes of 0,
// the number n as int32 and struct detect_merge in place of struct detect_params, then n
// detections. Its result: uint64 bytes, the detections, and as many int32 sources.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/versions.h"
#include "tests/bench/detect/time_cuda.h"

struct request {
    struct detect detect;
    struct detect_input input;
    void *memory[DETECT_TENSORS];
};

// Exits if stdin ends early.
static void read_all(void *to, size_t bytes)
{
    if (bytes && fread(to, 1, bytes, stdin) != bytes) {
        fprintf(stderr, "bench-detect: the request is cut off\n");
        exit(1);
    }
}

static void *memory_of(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!memory) {
        fprintf(stderr, "bench-detect: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return memory;
}

// Reads the rest of a request. Returns false if the parameters are refused.
static bool request_read(struct request *r, struct detect_params *p)
{
    static float class_conf[DETECT_CLASSES_MAX];
    static uint8_t class_list[DETECT_CLASSES_MAX];
    const char *why;
    const size_t classes =
        p->classes > 0 && p->classes <= DETECT_CLASSES_MAX ? (size_t)p->classes : 0;
    if (p->class_conf)
        read_all(class_conf, classes * sizeof class_conf[0]);
    if (p->class_list)
        read_all(class_list, classes);
    p->class_conf = p->class_conf ? class_conf : NULL;
    p->class_list = p->class_list ? class_list : NULL;
    read_all(r->input.dst_to_src, sizeof r->input.dst_to_src);
    read_all(&r->input.width, sizeof r->input.width);
    read_all(&r->input.height, sizeof r->input.height);
    if (detect_init(&r->detect, p, &why)) {
        fprintf(stderr, "bench-detect: %s\n", why);
        return false;
    }
    for (int i = 0; i < DETECT_TENSORS; i++) {
        const size_t bytes = detect_tensor_bytes(&r->detect, i);
        r->input.tensor[i] = r->memory[i] = memory_of(bytes);
        read_all(r->memory[i], bytes);
    }
    return true;
}

static void request_finish(struct request *r)
{
    for (int i = 0; i < DETECT_TENSORS; i++)
        free(r->memory[i]);
    *r = (struct request){0};
}

static void reply(const void *data, uint64_t bytes)
{
    fwrite(&bytes, sizeof bytes, 1, stdout);
    fwrite(data, 1, bytes, stdout);
    fflush(stdout);
}

static void merge(void)
{
    int32_t n;
    struct detect_merge params;
    read_all(&n, sizeof n);
    read_all(&params, sizeof params);
    if (n < 0 || n > 1 << 20) {
        fprintf(stderr, "bench-detect: %d boxes to merge\n", n);
        exit(1);
    }
    const size_t bytes = (size_t)n * (sizeof(struct detection) + sizeof(int32_t));
    struct detection *from = memory_of(bytes);
    uint8_t *to = memory_of(bytes);
    void *workspace = memory_of(detect_merge_bytes(n));
    read_all(from, (size_t)n * sizeof *from);
    int32_t *source = memory_of(bytes);
    const int left = detect_merge((struct detection *)to, source, from, n, &params, workspace);
    const size_t count = left > 0 ? (size_t)left : 0;
    memcpy(to + count * sizeof *from, source, count * sizeof *source);
    reply(to, count * (sizeof *from + sizeof *source));
    free(source);
    free(workspace);
    free(to);
    free(from);
}

static void serve(void)
{
    struct request r = {0};
    struct detect_params p;
    while (fread(&p.bytes, sizeof p.bytes, 1, stdin) == 1) {
        if (p.bytes == 0) {
            merge();
            continue;
        }
        read_all((uint8_t *)&p + sizeof p.bytes, sizeof p - sizeof p.bytes);
        if (!request_read(&r, &p)) {
            reply("", 0);
            continue;
        }
        const size_t bytes = detect_result_bytes(&r.detect);
        struct detect_result *result = memory_of(bytes);
        void *workspace = memory_of(detect_workspace_bytes(&r.detect));
        detect_best()(&r.detect, &r.input, result, workspace);
        reply(result, bytes);
        free(workspace);
        free(result);
        request_finish(&r);
    }
}

static void time_cpu(struct times *times, const struct request *r, int runs,
                     struct detect_result *result, void *workspace)
{
    detect_fn *detect = detect_best();
    for (int i = 0; i < runs / 4 + TIMES_MAX && times->n < TIMES_MAX; i++) {
        const double begin = clock_ms(CLOCK_MONOTONIC);
        detect(&r->detect, &r->input, result, workspace);
        if (i >= runs / 4)
            times->ms[times->n++] = clock_ms(CLOCK_MONOTONIC) - begin;
    }
    times_sum_up(times);
}

// `pictures`: batch size on CUDA; 0: runs on the CPU.
static int measure(int runs, int pictures)
{
    struct request r = {0};
    struct detect_params p;
    struct times times = {.n = 0};
    read_all(&p, sizeof p);
    if (!request_read(&r, &p))
        return 1;
    const size_t bytes = detect_result_bytes(&r.detect);
    struct detect_result *result = memory_of(bytes), *expected = memory_of(bytes);
    void *workspace = memory_of(detect_workspace_bytes(&r.detect));
    memset(expected, 0, bytes);
    time_cpu(&times, &r, pictures ? 1 : runs, expected, workspace);
    const char *where = "cpu";
    int error = 0;
#ifdef FRAMED_CUDA
    if (pictures) {
        where = "cuda";
        error = time_cuda(&times, &r.detect, &r.input, pictures, runs, result);
        if (!error && memcmp(result, expected, bytes) != 0) {
            fprintf(stderr, "bench-detect: the result on CUDA is not the CPU's\n");
            error = -1;
        }
    }
#endif
    if (!error)
        printf("%.4f %u %u %s\n", times.median, expected->candidates, expected->count, where);
    free(workspace);
    free(expected);
    free(result);
    request_finish(&r);
    return error ? 1 : 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "time"))
        return measure(atoi(argv[2]), 0);
#ifdef FRAMED_CUDA
    if (argc == 4 && !strcmp(argv[1], "cuda") && atoi(argv[3]) > 0)
        return measure(atoi(argv[2]), atoi(argv[3]));
#endif
    if (argc != 2 || strcmp(argv[1], "serve") != 0) {
        fprintf(stderr, "usage: bench-detect serve | time RUNS | cuda RUNS PICTURES\n");
        return 2;
    }
    serve();
    return 0;
}
