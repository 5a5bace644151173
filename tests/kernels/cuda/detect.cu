// Tests detection on CUDA against the reference, byte by byte, over CASES (from the environment)
// random batches of 1 to 40 pictures.
//
// usage: detect [SEED]    runs one case alone, with the seed that a failed case prints
#include "kernels/cuda/launch.h"
#include "tests/kernels/detect_cases.h"
#include "tests/test.h"

enum { CASES = 20000, PICTURES_MAX = 40 };

static const size_t ARENA = (size_t)64 << 20, WORKSPACE = (size_t)1 << 30, RESULTS = 64 << 20;

static struct {
    uint8_t *host, *device; // tensors, at the same offsets
    uint8_t *workspace, *results, *pinned, *found, *expected, *scratch;
    size_t scratch_bytes;
    cudaStream_t stream;
} memory;

static bool memory_open(void)
{
    memory.host = (uint8_t *)malloc(ARENA);
    memory.found = (uint8_t *)malloc(RESULTS);
    memory.expected = (uint8_t *)malloc(RESULTS);
    memory.scratch_bytes = 64 << 20;
    memory.scratch = (uint8_t *)aligned_alloc(64, memory.scratch_bytes);
    return !cudaMalloc((void **)&memory.device, ARENA) &&
           !cudaMalloc((void **)&memory.workspace, WORKSPACE) &&
           !cudaMalloc((void **)&memory.results, RESULTS) &&
           !cudaMallocHost((void **)&memory.pinned, RESULTS) && !cudaStreamCreate(&memory.stream);
}

// Fills the tensors of one more picture at `used` in both arenas, and computes its expected result.
static void picture_add(struct detect_case *c, struct random *random, struct detect_input *in,
                        size_t *used, uint8_t *expected)
{
    case_fill(c, random);
    case_map(c, random);
    *in = c->input;
    for (int i = 0; i < DETECT_TENSORS; i++) {
        memcpy(memory.host + *used, c->data[i], c->bytes[i]);
        c->input.tensor[i] = memory.host + *used;
        in->tensor[i] = memory.device + *used;
        *used = (*used + c->bytes[i] + 255) / 256 * 256;
    }
    CHECK(*used <= ARENA && detect_workspace_bytes(&c->detect) <= memory.scratch_bytes, "room");
    detect_reference(&c->detect, &c->input, (struct detect_result *)expected, memory.scratch);
}

static bool check_batch(struct detect_case *c, uint64_t seed)
{
    struct random random = {seed};
    struct detect_input in[PICTURES_MAX];
    const char *why = NULL;
    const bool made = case_init(c, &random, &why);
    CHECK(made, "0x%llx: %s", (unsigned long long)seed, why);
    if (!made)
        return false;
    const size_t bytes = detect_result_bytes(&c->detect);
    int n = one_in(&random, 20) ? PICTURES_MAX : random_in(&random, 1, 3);
    if (detect_cuda_bytes(&c->detect, n) > WORKSPACE || n * bytes > RESULTS)
        n = 1;
    memset(memory.expected, UNTOUCHED, n * bytes);
    size_t used = 0;
    for (int i = 0; i < n; i++)
        picture_add(c, &random, &in[i], &used, memory.expected + i * bytes);
    const bool pinned = one_in(&random, 2);
    uint8_t *results = pinned ? memory.pinned : memory.results;
    cudaError_t error = cudaMemcpy(memory.device, memory.host, used, cudaMemcpyHostToDevice);
    CHECK(detect_cuda_bytes(&c->detect, n) <= WORKSPACE, "room");
    error = error ? error : cudaMemset(memory.workspace, UNTOUCHED, 1 << 16);
    error = error ? error : detect_cuda_init(&c->detect, memory.workspace, n, memory.stream);
    int differ = 0;
    for (int time = 0; time < 2 && !error; time++) { // the second run sees leftovers
        error = cudaMemset(results, UNTOUCHED, n * bytes);
        error = error ? error : cudaDeviceSynchronize();
        error = error ? error
                      : detect_cuda_launch(&c->detect, in, n, (struct detect_result *)results,
                                           memory.workspace, memory.stream);
        error = error ? error : cudaStreamSynchronize(memory.stream);
        error = error ? error : cudaMemcpy(memory.found, results, n * bytes, cudaMemcpyDefault);
        for (int i = 0; i < n; i++)
            differ += memcmp(memory.found + i * bytes, memory.expected + i * bytes, bytes) != 0;
    }
    CHECK(!error && differ == 0,
          "again: tests/kernels/cuda/detect 0x%llx: head %d: %s, %d of %d differ",
          (unsigned long long)seed, (int)c->detect.params.head, cudaGetErrorName(error), differ, n);
    return !error && differ == 0;
}

static void test_batches(int argc, char **argv)
{
    static struct detect_case c;
    struct random random = random_from(argc, argv);
    const long cases = argc > 1 ? 1 : cases_from(CASES);
    int failures = 0, devices = 0;
    if (cudaGetDeviceCount(&devices) || devices == 0) {
        SKIP("no CUDA device");
        return;
    }
    for (int i = 0; i < DETECT_TENSORS; i++)
        c.data[i] = (uint8_t *)malloc(CASE_TENSOR_MAX);
    const bool open = memory_open();
    CHECK(open, "no memory");
    for (long i = 0; open && i < cases && failures < 5; i++)
        failures += !check_batch(&c, argc > 1 ? random.state : random_next(&random));
}

int main(int argc, char **argv)
{
    TEST(test_batches(argc, argv));
    return test_end();
}
