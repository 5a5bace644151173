// Tests every kernel version of the cpu that this CPU runs, and CUDA's warp compiled for the host,
// against the reference, byte by byte: each width from 1 to WIDTHS, then CASES (from the
// environment) fully random ones.
//
// usage: versions [SEED [WIDTH]]    with WIDTH one case alone, as a failed case prints them
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/cpu/versions.h"
#include "kernels/warp.h"
#include "kernels/yuv.h"
#include "tests/kernels/cases.h"
#include "tests/test.h"

enum {
    CASES = 20000,
    WIDTHS = 130,
    GUARD = 256,
    ARENA = 1 << 26,
    SOILED = 1 << 17,   // 16-bit words of stack to overwrite
    FAILURES_MAX = 5,   // reported per version
    AREA_MAX = 6000,    // pixels, except in one of LARGE cases
    LARGE = 1024,       // one case in this many is large
    STEPS = GEOMETRIES, // geometry of whole steps: 1:1, 2:1, 3:1, 4:1, turned and flipped
    FILTERS,            // geometries for filters that weigh samples
    WAYS,
    TURNS = 2 * SOURCES * WAYS, // consecutive seeds that cover every combination once
};

// --- the case to repeat

static struct {
    uint64_t seed;
    int width; // of the result; 0: any
    const char *version;
} now;

static void say_now(void)
{
    dprintf(STDERR_FILENO, "versions: %s died; again: tests/kernels/versions 0x%llx %d\n",
            now.version, (unsigned long long)now.seed, now.width);
}

void __asan_on_error(void);
void __asan_on_error(void) // called by the address sanitizer
{
    say_now();
}

static void die(int number)
{
    say_now();
    signal(number, SIG_DFL); // then the instruction is repeated
}

// --- sources with planes at the start or end of their memory

static uint8_t *arenas[PLANES_MAX]; // ARENA bytes each, between inaccessible pages

static void arenas_init(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < PLANES_MAX; i++) {
        uint8_t *memory = mmap(NULL, ARENA + 2 * page, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED || mprotect(memory + page, ARENA, PROT_READ | PROT_WRITE) != 0) {
            perror("versions: mmap");
            exit(1);
        }
        arenas[i] = memory + page;
    }
}

static void source_plane(struct picture *picture, int i, struct random *random)
{
    const enum pixel_format format = picture->image.format;
    const int align = is_10bit(format) ? 2 : 1, rows = plane_rows(format, i, picture->image.height);
    const size_t row = plane_row_bytes(format, i, picture->image.width);
    const int padding = random_in(random, 0, 1) ? align * random_in(random, 0, 80) : 0;
    const ptrdiff_t stride = (ptrdiff_t)row + padding;
    const size_t bytes = stride * (rows - 1) + row;
    const int place = random_in(random, 0, 3);
    if (place == 0)
        picture->memory[i] = malloc(bytes); // checked by the address sanitizer
    uint8_t *at = place == 0 ? picture->memory[i] : arenas[i] + (place == 1 ? 0 : ARENA - bytes);
    memset(at, UNTOUCHED, bytes);
    const bool upward = random_in(random, 0, 3) == 0;
    picture->image.plane[i].data = at + (upward ? stride * (rows - 1) : 0);
    picture->image.plane[i].stride = upward ? -stride : stride;
}

static struct picture source_new(enum pixel_format format, int width, int height,
                                 struct random *random)
{
    struct picture picture = {.image = {.format = format, .width = width, .height = height}};
    for (int i = 0; i < pixel_format_planes(format); i++)
        source_plane(&picture, i, random);
    const int pick = random_in(random, 0, 15);
    picture_fill(&picture.image, pick < CONTENTS ? (enum content)pick : CONTENT_RANDOM, random);
    if (random_in(random, 0, 2))
        picture.image.colour = colour_case(random);
    return picture;
}

// --- parameters

static int side_case(struct random *random)
{
    const int pick = random_in(random, 0, 15);
    return random_in(random, 1, pick == 0 ? 700 : pick < 5 ? 200 : 70);
}

struct size {
    int width, height;
};

static struct size size_case(struct random *random, int width)
{
    struct size size;
    size.width = width ? width : side_case(random);
    size.height = width ? random_in(random, 1, 9) : side_case(random);
    while (size.width * size.height > AREA_MAX)
        size.height = (size.height + 1) / 2;
    if (!width && random_in(random, 1, LARGE) == 1) {
        size.width = random_in(random, 400, 2000);
        size.height = random_in(random, 300, 1100);
    }
    return size;
}

// Sets a normalisation that leaves nothing, or next to nothing, of the levels.
static void vanishing_case(struct random *random, struct warp_params *p)
{
    const int what = random_in(random, 1, 3);
    const bool mean = random_in(random, 0, 1);
    if (what & 1)
        p->scale = random_in(random, 0, 1) ? 0 : 1e-320;
    for (int c = 0; c < 3; c++) {
        p->mean[c] = mean ? p->mean[c] : 0;
        p->std[c] = what & 2 ? 1e300 : p->std[c];
    }
}

// Sets common normalisations with special code: bare levels, 0 to 1, mean and deviation.
static void normalisation_case(struct random *random, struct warp_params *p)
{
    static const double mean[] = {0.485, 0.456, 0.406}, std[] = {0.229, 0.224, 0.225};
    if (random_in(random, 0, 31) == 0) {
        vanishing_case(random, p);
        return;
    }
    const int pick = random_in(random, 0, 3);
    if (pick == 0)
        return;
    p->scale = pick == 1 ? 1 : 1 / 255.0;
    for (int c = 0; c < 3; c++) {
        p->mean[c] = pick == 3 ? mean[c] : 0;
        p->std[c] = pick == 3 ? std[c] : 1;
    }
}

// Sets a source window `step` times as wide and high as the result. Returns the source's size.
static struct size steps_case(struct random *random, struct warp_params *p)
{
    const int most = p->width * p->height > AREA_MAX ? 2 : 4;
    const int x_step = random_in(random, 1, most);
    const int y_step = random_in(random, 0, 1) ? x_step : random_in(random, 1, most);
    const int quarters = random_in(random, 0, 1) ? 0 : random_in(random, 1, 3);
    const bool across = quarters % 2;
    p->crop.width = (across ? p->height : p->width) * x_step;
    p->crop.height = (across ? p->width : p->height) * y_step;
    p->crop.x = random_in(random, 0, 5);
    p->crop.y = random_in(random, 0, 5);
    p->fit = FIT_STRETCH;
    p->rotate = 90 * quarters;
    p->flip = (enum flip)random_in(random, FLIP_NONE, FLIP_BOTH);
    const int right = random_in(random, 0, 5), below = random_in(random, 0, 5);
    return (struct size){p->crop.x + p->crop.width + right, p->crop.y + p->crop.height + below};
}

// CUDA's kernels on the host; absent if nothing compiles C++. They ignore `filled`.
__attribute__((weak)) op_fn warp_axis_on_host, yuv_axis_on_host;

// --- one case

struct trial {
    struct picture source;
    struct op op;
    char text[400];
    struct image layout; // the result as offsets into memory of `bytes`
    size_t bytes;
    struct band written;
    int step;      // rows per band
    bool reversed; // runs the warps of an op with several last to first
};

static int trial_warp(struct trial *t, struct random *random, enum pixel_format format,
                      int geometry)
{
    const struct size size = size_case(random, now.width);
    struct size from = size_case(random, 0);
    struct warp_params p = {.width = size.width, .height = size.height, .scale = 1};
    if (geometry == STEPS)
        from = steps_case(random, &p);
    t->source = source_new(format, from.width, from.height, random);
    if (geometry == FILTERS)
        p = filter_case(random, &t->source.image, size.width);
    else if (geometry != STEPS)
        p = warp_case(random, (enum geometry)geometry, &t->source.image, size.width);
    p.width = size.width;
    p.height = size.height;
    for (int c = 0; c < 3; c++)
        p.fill[c] = random_in(random, 0, 1) ? 114 : (uint8_t)random_next(random);
    edges_case(random, &p);
    tensor_case(random, &p);
    normalisation_case(random, &p);
    struct lut *lut = lut_case(random);
    p.lut = lut;
    struct op_params params = {OP_WARP, {.warp = p}};
    int error = op_init(&t->op, &params, &t->source.image);
    if (error) { // a letterboxed line, or one that deepstream reduces to nothing
        params.warp.fit = FIT_STRETCH;
        params.warp.has_affine = false;
        error = op_init(&t->op, &params, &t->source.image);
    }
    warp_case_text(t->text, &params.warp, &t->source.image);
    lut_unref(lut);
    return error;
}

// Sets a geometry for the width to test, from a source of any size.
static void resized_case(struct trial *t, struct random *random, struct yuv_params *p)
{
    const struct size from = size_case(random, 0), to = size_case(random, now.width);
    const enum pixel_format format = t->source.image.format;
    picture_free(&t->source);
    t->source = source_new(format, from.width, from.height, random);
    yuv_geometry_case(random, p, &t->source.image, to.width);
    if (p->geometry.width > 0) {
        p->geometry.width = to.width;
        p->geometry.height = to.height;
    }
}

static int trial_yuv(struct trial *t, struct random *random, enum pixel_format format)
{
    const struct size size = size_case(random, now.width);
    t->source = source_new(format, size.width, size.height, random);
    struct op_params params = {OP_YUV, {.yuv = yuv_case(random)}};
    if (random_in(random, 0, 2) == 0)
        params.yuv.colour = (struct colour){0};
    if (random_in(random, 0, 1))
        resized_case(t, random, &params.yuv);
    struct lut *lut = lut_case(random);
    params.yuv.geometry.lut = lut;
    if (lut) // a LUT converts colours
        params.yuv.colour.siting = SITING_UNSPECIFIED;
    int error = op_init(&t->op, &params, &t->source.image);
    if (error == -ERANGE) { // a letterboxed line
        params.yuv.geometry.fit = FIT_STRETCH;
        params.yuv.geometry.has_affine = false;
        error = op_init(&t->op, &params, &t->source.image);
    }
    yuv_case_text(t->text, &params.yuv, &t->source.image);
    lut_unref(lut);
    return error;
}

// Lays planes out consecutively as a backend does, or separately with any stride.
static void lay_out_result(struct trial *t, struct random *random)
{
    const struct op *op = &t->op;
    const int align = op->kind == OP_WARP ? (int)element_bytes(op->warp.dtype) : 1;
    const bool together = random_in(random, 0, 1);
    t->layout = op->dst;
    size_t at = GUARD + (random_in(random, 0, 1) ? align * random_in(random, 0, 64) : 0);
    for (int i = 0; i < PLANES_MAX && op->dst.plane[i].stride; i++) {
        const int padding = together ? 0 : align * random_in(random, 0, 64);
        const ptrdiff_t stride = op->dst.plane[i].stride + padding;
        const int rows = plane_rows(op->dst.format, i, op->dst.height);
        const bool upward = !together && random_in(random, 0, 2) == 0;
        const size_t first = at + (upward ? stride * (rows - 1) : 0);
        t->layout.plane[i].data = (uint8_t *)(uintptr_t)first;
        t->layout.plane[i].stride = upward ? -stride : stride;
        at += stride * rows + (together ? 0 : GUARD);
    }
    t->bytes = at + GUARD;
}

// Chooses all rows or some, in bands of any height.
static void choose_bands(struct trial *t, struct random *random)
{
    const int height = t->op.dst.height, unit = t->op.kind == OP_YUV ? 2 : 1;
    t->written = (struct band){0, height};
    if (random_in(random, 0, 3) == 0) {
        t->written.y0 = random_in(random, 0, (height - 1) / unit) * unit;
        t->written.y1 = t->written.y0 + unit * random_in(random, 1, height);
        if (t->written.y1 > height)
            t->written.y1 = height;
    }
    t->step = random_in(random, 0, 1) ? height + 1 : unit * random_in(random, 1, height);
    t->step += t->step % unit;
}

// Fills the stack below with numbers that a version must not read.
static __attribute__((noinline)) void soil_stack(void)
{
    uint16_t word[SOILED];
    uint32_t state = (uint32_t)now.seed | 1;
    for (int i = 0; i < SOILED; i++) {
        state = state * 1664525u + 1013904223u;
        word[i] = (uint16_t)(state >> 31 ? INT16_MAX + (state >> 30 & 1) : state >> 15);
    }
    __asm__ volatile("" : : "r"(word) : "memory");
}

// Runs an op's luma and chroma warps in reverse. In the usual order the second finds the first
// one's numbers on the stack; it must not depend on them.
static void run_reversed(const struct trial *t, const struct version *version,
                         const struct image *dst, struct band band, bool filled)
{
    struct yuv_part part[YUV_WARPS_MAX];
    for (int i = yuv_parts(part, &t->op.yuv, dst, band) - 1; i >= 0; i--) {
        const struct op op = {.kind = OP_WARP, .warp = *part[i].warp};
        version->run[OP_WARP](&part[i].dst, &t->source.image, &op, part[i].band, filled);
    }
}

// Runs into memory with an earlier run's bytes, or untouched memory.
static uint8_t *run(const struct trial *t, const struct version *version, const uint8_t *earlier)
{
    uint8_t *memory = aligned_alloc(64, (t->bytes + 63) / 64 * 64);
    memset(memory, UNTOUCHED, t->bytes);
    if (earlier)
        memcpy(memory, earlier, t->bytes);
    if (now.seed / SOURCES / 2 / WAYS % 8 == 1)
        soil_stack();
    struct image dst = t->layout;
    for (int i = 0; i < PLANES_MAX && dst.plane[i].stride; i++)
        dst.plane[i].data = memory + (uintptr_t)t->layout.plane[i].data;
    for (int y = t->written.y0; y < t->written.y1; y += t->step) {
        const int end = y + t->step < t->written.y1 ? y + t->step : t->written.y1;
        const struct band band = {y, end};
        if (t->reversed && version->run[OP_WARP] != warp_axis_on_host)
            run_reversed(t, version, &dst, band, earlier != NULL);
        else
            version->run[t->op.kind](&dst, &t->source.image, &t->op, band, earlier != NULL);
    }
    return memory;
}

static void picture_invert(const struct image *image)
{
    for (int i = 0; i < pixel_format_planes(image->format); i++)
        for (int y = 0; y < plane_rows(image->format, i, image->height); y++)
            for (size_t x = 0; x < plane_row_bytes(image->format, i, image->width); x++)
                image->plane[i].data[y * image->plane[i].stride + (ptrdiff_t)x] ^= 0xff;
}

// Returns the op's result for another picture; NULL if this case has no earlier run.
static uint8_t *run_earlier(const struct trial *t, const struct version *reference)
{
    const bool may_fill = t->op.kind == OP_WARP || t->op.yuv.warps;
    if (!may_fill || now.seed / SOURCES / 2 / WAYS % 3 != 0)
        return NULL;
    picture_invert(&t->source.image);
    uint8_t *memory = run(t, reference, NULL);
    picture_invert(&t->source.image);
    return memory;
}

// Describes the position of the first differing byte.
static const char *place_text(char text[80], const struct trial *t, size_t at)
{
    snprintf(text, 80, "outside the picture");
    for (int i = 0; i < PLANES_MAX && t->layout.plane[i].stride; i++) {
        const size_t row = t->op.dst.plane[i].stride;
        for (int y = 0; y < plane_rows(t->op.dst.format, i, t->op.dst.height); y++) {
            const size_t start = (uintptr_t)t->layout.plane[i].data + y * t->layout.plane[i].stride;
            if (at >= start && at < start + row)
                snprintf(text, 80, "plane %d row %d byte %zu of %zu", i, y, at - start, row);
        }
    }
    return text;
}

static void check_version(const struct trial *t, const uint8_t *expected, const uint8_t *got)
{
    size_t at = 0;
    while (at < t->bytes && expected[at] == got[at])
        at++;
    char place[80];
    CHECK(
        at == t->bytes,
        "%s: %02x, not %02x, %s, rows %d to %d by %d: %s; again: tests/kernels/versions 0x%llx %d",
        now.version, got[at], expected[at], place_text(place, t, at), t->written.y0, t->written.y1,
        t->step, t->text, (unsigned long long)now.seed, now.width);
}

// --- versions

static bool cuda_on_host_runs(void)
{
    return warp_axis_on_host;
}

enum { VERSIONS_MAX = 8 };

// The versions of the cpu backend, and CUDA's.
static const struct version *tried[VERSIONS_MAX + 1];

static void tried_init(void)
{
    static struct version cuda_on_host = {.name = "cuda on the host", .runs = cuda_on_host_runs};
    cuda_on_host.run[OP_WARP] = warp_axis_on_host;
    cuda_on_host.run[OP_YUV] = yuv_axis_on_host;
    int n = 0;
    for (int i = 0; versions[i]; i++)
        tried[n++] = versions[i];
    tried[n] = &cuda_on_host;
}

static void check_versions(const struct trial *t)
{
    static int failures[VERSIONS_MAX];
    static const struct version reference = {
        .name = "reference", .run = {[OP_WARP] = op_reference, [OP_YUV] = op_reference}};
    now.version = reference.name;
    uint8_t *earlier = run_earlier(t, &reference), *expected = run(t, &reference, NULL);
    for (int i = 0; tried[i]; i++) {
        if (!tried[i]->runs() || !tried[i]->run[t->op.kind] || failures[i] >= FAILURES_MAX)
            continue;
        if (tried[i]->run[t->op.kind] == op_reference && !earlier) // identical to the expected run
            continue;
        const int before = test_failed;
        now.version = tried[i]->name;
        uint8_t *got = run(t, tried[i], earlier);
        check_version(t, expected, got);
        failures[i] += test_failed - before;
        free(got);
    }
    free(expected);
    free(earlier);
}

static void check_case(void)
{
    struct random random = {now.seed};
    struct trial t = {0};
    const enum pixel_format format = sources[now.seed % SOURCES];
    const int error = now.seed / SOURCES % 2
                          ? trial_yuv(&t, &random, format)
                          : trial_warp(&t, &random, format, (int)(now.seed / SOURCES / 2 % WAYS));
    CHECK(error == 0, "%d: %s", error, t.text);
    if (error == 0) {
        lay_out_result(&t, &random);
        choose_bands(&t, &random);
        t.reversed = t.op.kind == OP_YUV && t.op.yuv.n_warps > 1 && random_in(&random, 0, 1);
        check_versions(&t);
        op_finish(&t.op);
    }
    picture_free(&t.source);
}

// --- rows that lie far apart

enum { FAR_WIDTH = 64, FAR_HEIGHT = 9 };

// Tests a rotated picture in sparse memory: only the pages of its rows are present.
static void check_far(ptrdiff_t stride)
{
    struct random random = {now.seed};
    struct trial t = {.written = {0, FAR_HEIGHT}, .step = FAR_HEIGHT};
    struct image *src = &t.source.image;
    const size_t apart = (size_t)(stride < 0 ? -stride : stride);
    const size_t bytes = apart * (FAR_HEIGHT - 1) + 3 * FAR_WIDTH;
    uint8_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED, "%zu bytes: %d", bytes, errno);
    if (memory == MAP_FAILED)
        return;
    *src = (struct image){.format = PIXEL_RGB24, .width = FAR_WIDTH, .height = FAR_HEIGHT};
    src->plane[0].data = stride < 0 ? memory + apart * (FAR_HEIGHT - 1) : memory;
    src->plane[0].stride = stride;
    picture_fill(src, CONTENT_RANDOM, &random);
    const struct warp_params p = {.width = FAR_WIDTH,
                                  .height = FAR_HEIGHT,
                                  .fit = FIT_NONE,
                                  .rotate = 3,
                                  .scale = 1,
                                  .std = {1, 1, 1}};
    const int error = op_init(&t.op, &(struct op_params){OP_WARP, {.warp = p}}, src);
    snprintf(t.text, sizeof t.text, "rows %td bytes apart", stride);
    CHECK(error == 0, "%d: %s", error, t.text);
    lay_out_result(&t, &random);
    check_versions(&t);
    op_finish(&t.op);
    munmap(memory, bytes);
}

// Tests strides at which every sample's offset fits 32 bits, and at which the last rows' do not.
static void check_all_far(void)
{
    static const ptrdiff_t strides[] = {INT32_MAX / (FAR_HEIGHT + 1),
                                        INT32_MAX / (FAR_HEIGHT - 2) + 4096};
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++) {
        check_far(strides[i]);
        check_far(-strides[i]);
    }
}

int main(int argc, char **argv)
{
    const uint64_t seed = random_from(argc, argv).state;
    const long n = cases_from(CASES);
    arenas_init();
    tried_init();
    signal(SIGSEGV, die);
    signal(SIGBUS, die);
    signal(SIGILL, die);
    now.seed = seed;
    TEST(check_all_far());
    if (argc > 2) {
        now.width = (int)strtol(argv[2], NULL, 0);
        TEST(check_case());
        return test_end();
    }
    printf("versions: seed %llu, %ld cases:", (unsigned long long)seed, n);
    for (int i = 0; tried[i]; i++)
        printf("%s %s", i > 0 ? "," : "", tried[i]->name);
    printf("\n");
    for (int i = 0; tried[i]; i++)
        if (!tried[i]->runs())
            SKIP("%s: not here", tried[i]->name);
    for (now.width = 1; now.width <= WIDTHS; now.width++)
        for (int i = 0; i < (n < CASES ? TURNS / WAYS : TURNS); i++, now.seed++)
            TEST(check_case());
    now.width = 0;
    for (long i = 0; i < n; i++, now.seed++)
        TEST(check_case());
    return test_end();
}
