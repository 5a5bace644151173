// Tests every version of detection that this CPU runs against the reference, byte by byte, over
// CASES (from the environment) random outputs; the reference against rules worked out by hand; and
// the accuracy of the stepwise exp, sigmoid, sine and angle.
//
// usage: detect [SEED]    runs one case alone, with the seed that a failed case prints
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/cpu/versions.h"
#include "kernels/detect_number.h"
#include "tests/kernels/detect_cases.h"
#include "tests/test.h"

enum { CASES = 10000, RESULT_MAX = 1 << 20, WORKSPACE_MAX = 1 << 26, HOST_SHARE = 40 };

static _Alignas(64) uint8_t tensors[DETECT_TENSORS][CASE_TENSOR_MAX];
static uint8_t *tensor_ends[DETECT_TENSORS]; // memory behind them is inaccessible
static uint8_t *workspace, *expected, *found;

static uint8_t *memory_before_guard(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *memory = mmap(NULL, bytes + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED && !mprotect(memory, bytes, PROT_READ | PROT_WRITE), "mmap");
    return memory + bytes;
}

// --- versions

// Best first.
static const struct {
    const char *name;
    bool (*runs)(void); // NULL: on any CPU
    detect_fn *detect;
} detect_versions[] = {
#ifdef FRAMED_X86
    {"avx512", avx512_runs, detect_avx512},
    {"avx2", avx2_runs, detect_avx2},
#endif
#ifdef __aarch64__
    {"neon", NULL, detect_neon},
#endif
    {NULL, NULL, detect_reference},
};

static bool version_runs(int i)
{
    return !detect_versions[i].runs || detect_versions[i].runs();
}

// detect_best() must return the first version that this CPU runs.
static void test_best(void)
{
    int first = 0;
    while (!version_runs(first))
        first++;
    CHECK(detect_best() == detect_versions[first].detect, "it is not the first");
}

static struct {
    long some, many, cut, dropped, kept_all, empty;
} seen;

static void see(const struct detect_case *c, const struct detect_result *result)
{
    seen.some += result->count > 0;
    seen.many += result->candidates > 200;
    seen.cut += result->flags == DETECT_CUT;
    seen.dropped += result->dropped > 0;
    seen.kept_all += result->count == (uint32_t)c->detect.params.max_det;
    seen.empty += result->candidates == 0;
}

// CUDA's kernels on the host, if built.
__attribute__((weak)) bool detect_on_host(const struct detect *, const struct detect_input *,
                                          struct detect_result *result);

static bool check_found(const struct detect_case *c, uint64_t seed, const char *version)
{
    const bool equal = memcmp(found, expected, detect_result_bytes(&c->detect) + 64) == 0;
    CHECK(equal, "%s: again: tests/kernels/detect 0x%llx: head %d, %u of %u kept, not %u of %u",
          version, (unsigned long long)seed, (int)c->detect.params.head,
          ((struct detect_result *)found)->count, ((struct detect_result *)found)->candidates,
          ((struct detect_result *)expected)->count,
          ((struct detect_result *)expected)->candidates);
    return equal;
}

static bool check_case(struct detect_case *c, uint64_t seed, bool on_host)
{
    struct random random = {seed};
    const char *why = NULL;
    const bool made = case_init(c, &random, &why);
    CHECK(made, "0x%llx: %s", (unsigned long long)seed, why);
    if (!made)
        return false;
    for (int i = 0; i < DETECT_TENSORS; i++) {
        c->input.tensor[i] = c->bytes[i] ? tensor_ends[i] - c->bytes[i] : NULL;
        memcpy(tensor_ends[i] - c->bytes[i], c->data[i], c->bytes[i]);
    }
    const size_t bytes = detect_result_bytes(&c->detect);
    CHECK(bytes <= RESULT_MAX && detect_workspace_bytes(&c->detect) <= WORKSPACE_MAX, "%zu", bytes);
    memset(expected, UNTOUCHED, bytes + 64);
    detect_reference(&c->detect, &c->input, (struct detect_result *)expected, workspace);
    see(c, (const struct detect_result *)expected);
    bool same = true;
    for (int i = 0; detect_versions[i].name; i++) {
        if (!version_runs(i))
            continue;
        memset(found, UNTOUCHED, bytes + 64);
        detect_versions[i].detect(&c->detect, &c->input, (struct detect_result *)found, workspace);
        same = check_found(c, seed, detect_versions[i].name) && same;
    }
    if (on_host) {
        memset(found, UNTOUCHED, bytes + 64);
        const bool apart = detect_on_host(&c->detect, &c->input, (struct detect_result *)found);
        CHECK(apart, "0x%llx: the pictures of a batch differ", (unsigned long long)seed);
        same = check_found(c, seed, "CUDA's kernels on the host") && apart && same;
    }
    return same;
}

static void test_versions(struct detect_case *c, int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    const long cases = argc > 1 ? 1 : cases_from(CASES);
    int failures = 0;
    if (!detect_on_host)
        SKIP("CUDA's kernels were not built for the host");
    if (detect_best() == detect_reference)
        SKIP("this machine has the reference alone");
    for (long i = 0; i < cases && failures < 5; i++)
        failures += !check_case(c, argc > 1 ? random.state : random_next(&random),
                                detect_on_host && i % HOST_SHARE == 0);
    printf(
        "%ld cases: %ld with boxes, %ld with more than 200 candidates, %ld cut, %ld full, %ld with "
        "boxes dropped, %ld empty\n",
        cases, seen.some, seen.many, seen.cut, seen.kept_all, seen.dropped, seen.empty);
    CHECK(cases < 1000 ||
              (seen.some > cases / 2 && seen.many > cases / 100 && seen.cut > cases / 20 &&
               seen.dropped > cases / 50 && seen.kept_all > cases / 50 && seen.empty > cases / 50),
          "the cases are not of all kinds");
}

// --- rules, by hand

// Runs yolov8 in planes on rows of six numbers, one per anchor: x1 y1 x2 y2, converted to centre
// and sides, and two scores.
enum { HAND_MAX = 8 };

static struct detect_result *detect_by_hand(struct detect_params *p, const float rows[][6], int n)
{
    static float tensor[6 * HAND_MAX];
    static struct detect detect;
    struct detect_input in = {.tensor = {tensor}, .dst_to_src = {1, 0, 0, 0, 1, 0}};
    p->width = p->height = 100;
    p->anchors = n;
    p->classes = 2;
    p->planes = true;
    for (int i = 0; i < n; i++) {
        const float *r = rows[i];
        const float row[6] = {
            (r[0] + r[2]) / 2, (r[1] + r[3]) / 2, r[2] - r[0], r[3] - r[1], r[4], r[5]};
        for (int k = 0; k < 6; k++)
            tensor[k * n + i] = row[k];
    }
    in.width = in.height = 50;
    const char *why = NULL;
    CHECK(!detect_init(&detect, p, &why), "%s", why);
    struct detect_result *result = (struct detect_result *)expected;
    detect_best()(&detect, &in, result, workspace);
    return result;
}

static void check_kept(struct detect_params p, const float rows[][6], int n, const char *kept)
{
    const struct detect_result *result = detect_by_hand(&p, rows, n);
    char text[64] = "";
    for (uint32_t i = 0; i < result->count && i < 8; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%u:%d ",
                 detect_found(result)[i].anchor, detect_found(result)[i].label);
    CHECK(!strcmp(text, kept), "kept %s, not %s", text, kept);
}

static void test_rules(void)
{
    struct detect_params p = detect_defaults(DETECT_YOLOV8);
    // Boxes 0 and 1 share 50 of 150 pixels, so do 1 and 2; 0 and 2 share none.
    static const float chain[][6] = {
        {0, 0, 10, 10, .9f, 0}, {0, 5, 10, 15, .8f, 0}, {0, 10, 10, 20, .7f, 0}};
    p.iou = 0.3;
    check_kept(p, chain, 3, "0:0 2:0 ");
    p.suppression = DETECT_FAST;
    check_kept(p, chain, 3, "0:0 ");
    p.suppression = DETECT_KEEP;
    check_kept(p, chain, 3, "0:0 1:0 2:0 ");
    p.suppression = DETECT_GREEDY;
    p.iou = (double)(1.0f / 3); // equal, not greater
    check_kept(p, chain, 3, "0:0 1:0 2:0 ");
    p.iou = 1.0 / 3; // less than the nearest float
    check_kept(p, chain, 3, "0:0 2:0 ");
    p.max_det = 1;
    check_kept(p, chain, 3, "0:0 ");
    p = detect_defaults(DETECT_YOLOV8);
    p.iou = 0.1;
    static const float equal[][6] = {{0, 0, 10, 10, .5f, .5f},
                                     {0, 0, 10, 10, .5f, .75f},
                                     {40, 0, 50, 10, .25f, 0},
                                     {60, 0, 70, 10, .5f, .5f}};
    check_kept(p, equal, 4, "1:1 0:0 3:0 "); // conf must be exceeded; the first class wins
    p.agnostic = true;
    check_kept(p, equal, 4, "1:1 3:0 ");
    p.multi_label = true;
    p.agnostic = false;
    check_kept(p, equal, 4, "1:1 0:0 3:0 3:1 ");
    p.multi_label = false;
    p.candidates = 2;
    check_kept(p, equal, 4, "1:1 0:0 ");
    CHECK(((struct detect_result *)expected)->flags == DETECT_CUT &&
              ((struct detect_result *)expected)->candidates == 3,
          "the cut");
    p = detect_defaults(DETECT_YOLOV8);
    static const float class_conf[] = {0.6f, 0.4f};
    p.class_conf = class_conf;
    check_kept(p, equal, 4, "1:1 ");
    static const float sizes[][6] = {{0, 0, 10, 10, .9f, 0}, {0, 0, 20, 10, .8f, 0}};
    p = detect_defaults(DETECT_YOLOV8);
    p.width_min = 11;
    check_kept(p, sizes, 2, "1:0 ");
    p.width_min = 0;
    p.width_max = 10;
    check_kept(p, sizes, 2, "0:0 ");
}

static void test_offset(void)
{
    // Two boxes of 10 x 10 that share a column if the pixels at both ends count.
    static const float rows[][6] = {{0, 0, 9, 9, .9f, 0}, {9, 0, 18, 9, .8f, 0}};
    struct detect_params p = detect_defaults(DETECT_YOLOV8);
    p.iou = 0.05;
    check_kept(p, rows, 2, "0:0 1:0 ");
    p.offset = 1; // 10 of 190
    check_kept(p, rows, 2, "0:0 ");
    p.iou = 0.053;
    check_kept(p, rows, 2, "0:0 1:0 ");
}

static void test_compat(void)
{
    // For class 1, shifted by 7680, the overlap of 0.00015 pixels is below float precision.
    static const float rows[][6] = {{0, 0, 1, 1, 0, .9f}, {0.99985f, 0, 2, 1, 0, .8f}};
    struct detect_params p = detect_defaults(DETECT_YOLOV8);
    p.iou = 0.00005;
    check_kept(p, rows, 2, "0:1 ");
    p.compat_ultralytics = true;
    check_kept(p, rows, 2, "0:1 1:1 ");
}

static void test_soft(void)
{
    static const float rows[][6] = {
        {0, 0, 10, 10, .9f, 0}, {0, 0, 10, 5, .8f, 0}, {40, 0, 50, 10, .5f, 0}};
    struct detect_params p = detect_defaults(DETECT_YOLOV8);
    p.suppression = DETECT_SOFT;
    p.iou = 0.3;
    check_kept(p, rows, 3, "0:0 2:0 1:0 ");
    const float score = detect_found((struct detect_result *)expected)[2].score;
    CHECK(score == .8f * .5f, "%g", (double)score);
    p.soft_floor = 0.45f;
    check_kept(p, rows, 3, "0:0 2:0 ");
}

static void test_mapping(void)
{
    static const float rows[][6] = {{0, 0, 100, 40, .9f, 0}};
    struct detect_params p = detect_defaults(DETECT_YOLOV8);
    const struct detect_result *result = detect_by_hand(&p, rows, 1);
    const struct detection *box = detect_found(result);
    CHECK(box->x1 == 0 && box->y1 == 0 && box->x2 == 100 && box->y2 == 40, "the identity");
    p.clip = true;
    detect_by_hand(&p, rows, 1);
    CHECK(box->x1 == 0 && box->x2 == 50 && box->y2 == 40, "clipped: %g", (double)box->x2);
}

static void test_refusals(void)
{
    static struct detect detect;
    const char *why;
    struct detect_params good = detect_defaults(DETECT_YOLOV8);
    good.width = good.height = 640;
    good.anchors = 8400;
    good.classes = 80;
    CHECK(detect_init(&detect, &good, &why) == 0 && !why, "%s", why);
#define REFUSED(change)                                                                            \
    do {                                                                                           \
        struct detect_params p = good;                                                             \
        change;                                                                                    \
        CHECK(detect_init(&detect, &p, &why) == -EINVAL && why, #change);                          \
    } while (0)
    REFUSED(p.bytes--);
    REFUSED(p.head = DETECT_HEADS);
    REFUSED(p.width = 0);
    REFUSED(p.anchors = DETECT_ANCHORS_MAX + 1);
    REFUSED(p.classes = 0);
    REFUSED(p.keypoints = 3);
    REFUSED(p.coefficients = 2000);
    REFUSED(p.max_det = -1);
    REFUSED(p.format[0].dtype = DETECT_S32);
    REFUSED((p.format[0].dtype = DETECT_S8, p.format[0].scale = 0));
    REFUSED(p.conf = NAN);
    REFUSED(p.iou = 1.5);
    REFUSED(p.offset = 2);
    REFUSED(p.strides[0] = 8);
    REFUSED((p.head = DETECT_YOLOX, p.strides[0] = 8));
    REFUSED(p.activation = DETECT_SOFTMAX);
    REFUSED((p.head = DETECT_END2END, p.multi_label = true));
    REFUSED((p.head = DETECT_DETR, p.planes = true));
    REFUSED((p.rotated = true, p.offset = 1));
    REFUSED((p.multi_label = true, p.classes = 4096, p.anchors = 100000));
#undef REFUSED
}

// --- functions

static void test_functions(void)
{
    double worst_exp = 0, worst_sigmoid = 0, worst_angle = 0;
    for (double x = -86.5; x < 88.7; x += 0.0003) {
        const float at = (float)x;
        const double e = exp(at), s = 1 / (1 + exp(-(double)at));
        const double ulp_e = ldexp(1, ilogb(e) - 23), ulp_s = ldexp(1, ilogb(s) - 23);
        worst_exp = fmax(worst_exp, fabs((double)exp_steps(at) - e) / ulp_e);
        if (x > -80)
            worst_sigmoid = fmax(worst_sigmoid, fabs((double)sigmoid_steps(at) - s) / ulp_s);
    }
    for (double x = -1000; x < 1000; x += 0.01) {
        double c, s;
        const float at = (float)x;
        sincos_steps(at, &s, &c);
        worst_angle = fmax(worst_angle, fmax(fabs(s - sin(at)), fabs(c - cos(at))));
        worst_angle = fmax(worst_angle, fabs(atan2_steps(sin(x), cos(x)) - atan2(sin(x), cos(x))));
    }
    printf("exp %.3f ulp, sigmoid %.3f ulp, angles %.2g\n", worst_exp, worst_sigmoid, worst_angle);
    CHECK(worst_exp <= 1.0, "exp: %g ulp", worst_exp);
    CHECK(worst_sigmoid <= 2.5, "sigmoid: %g ulp", worst_sigmoid);
    CHECK(worst_angle <= 1e-9, "angles: %g", worst_angle);
    CHECK(exp_steps(-INFINITY) == 0 && isinf(exp_steps(INFINITY)) && isnan(exp_steps(NAN)) &&
              exp_steps(0) == 1 && isinf(exp_steps(88.8f)) && exp_steps(-90) == 0,
          "ends of exp");
    CHECK(sigmoid_steps(INFINITY) == 1 && sigmoid_steps(-INFINITY) == 0 &&
              sigmoid_steps(0) == 0.5f && isnan(sigmoid_steps(NAN)),
          "ends of sigmoid");
    for (uint32_t half = 0; half < 0x10000; half++) {
        const int sign = half >> 15 ? -1 : 1, exponent = half >> 10 & 31, bits = half & 1023;
        double value = exponent ? ldexp(bits + 1024, exponent - 25) : ldexp(bits, -24);
        if (exponent == 31)
            value = bits ? NAN : INFINITY;
        const float x = float_of_half((uint16_t)half);
        if (!(isnan(value) ? isnan(x) : (double)x == sign * value))
            CHECK(false, "half 0x%x: %g", half, (double)x);
    }
}

int main(int argc, char **argv)
{
    struct detect_case c;
    for (int i = 0; i < DETECT_TENSORS; i++) {
        tensor_ends[i] = memory_before_guard(CASE_TENSOR_MAX);
        c.data[i] = tensors[i];
    }
    workspace = aligned_alloc(64, WORKSPACE_MAX);
    expected = aligned_alloc(64, RESULT_MAX);
    found = aligned_alloc(64, RESULT_MAX);
    TEST(test_functions());
    TEST(test_refusals());
    TEST(test_rules());
    TEST(test_offset());
    TEST(test_compat());
    TEST(test_soft());
    TEST(test_mapping());
    TEST(test_best());
    TEST(test_versions(&c, argc, argv));
    free(found);
    free(expected);
    free(workspace);
    return test_end();
}
