// Digests of each kernel's results for fixed pictures, equal on every backend and machine:
// tests/kernels/digests.txt holds them, `--print` writes new ones.
#include "tests/test.h"

#include "tests/kernels/backends.h"
#include "tests/kernels/picture.h"

enum { SOURCE_WIDTH = 97, SOURCE_HEIGHT = 61, KINDS_MAX = 64, NAME = 48, LINES_MAX = 1024 };

static const char digests_path[] = "tests/kernels/digests.txt";

struct kind {
    char name[NAME]; // "f32-nchw"
    struct op_params params;
};

struct line {
    char name[NAME]; // "warp nv12 f32-nchw"
    unsigned long long digest;
};

struct lines {
    struct line line[LINES_MAX];
    int n;
};

static unsigned long long fnv1a(const uint8_t *bytes, size_t n)
{
    unsigned long long hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}

static struct op_params warp_params(void)
{
    return (struct op_params){.kind = OP_WARP,
                              .warp = {.width = 80,
                                       .height = 72,
                                       .fill = {114, 7, 250},
                                       .scale = 1 / 255.0,
                                       .mean = {0.485, 0.456, 0.406},
                                       .std = {0.229, 0.224, 0.225}}};
}

// Makes a LUT of random nodes: trilinear with linear axes, tetrahedral without.
static struct lut *lut_of(enum lut_interpolation interpolation)
{
    enum { POINTS = 5, VALUES = 3 * POINTS * POINTS * POINTS };
    struct random random = {interpolation};
    float nodes[VALUES];
    for (int i = 0; i < VALUES; i++)
        nodes[i] = (float)random_in(&random, 0, 1 << 16) / (1 << 16);
    const struct lut_params params = {.points = POINTS,
                                      .nodes = nodes,
                                      .first = {interpolation == LUT_TETRAHEDRAL ? 0.1 : 0},
                                      .last = {1, 1, 1},
                                      .interpolation = interpolation};
    struct lut *lut = NULL;
    CHECK(lut_make(&lut, &params) == 0, "a LUT of %d points", POINTS);
    return lut;
}

// Lists every element type in every layout, then every geometry and order as levels.
static int warp_kinds(struct kind kinds[KINDS_MAX], struct lut *const luts[2])
{
    static const char *const dtypes[] = {"u8", "s8", "f16", "f32"}, *const layouts[] = {"nchw",
                                                                                        "nhwc"};
    int n = 0;
    for (int dtype = DTYPE_U8; dtype <= DTYPE_F32; dtype++)
        for (int layout = LAYOUT_NCHW; layout <= LAYOUT_NHWC; layout++) {
            struct op_params p = warp_params();
            p.warp.dtype = (enum dtype)dtype;
            p.warp.layout = (enum layout)layout;
            if (dtype == DTYPE_U8 || dtype == DTYPE_S8)
                p.warp.scale = 0.2; // most levels stay within the type
            snprintf(kinds[n].name, NAME, "%s-%s", dtypes[dtype], layouts[layout]);
            kinds[n++].params = p;
        }
    struct op_params p = warp_params();
    p.warp.scale = 1;
    for (int c = 0; c < 3; c++) {
        p.warp.mean[c] = 0;
        p.warp.std[c] = 1;
    }
    const struct {
        const char *name;
        enum order order;
        enum filter filter;
        enum edge edge;
        bool fill_mean;
        enum fit fit;
        int stride;
        double rotate;
        enum flip flip;
        struct rect crop;
        bool affine, lut;
    } geometries[] = {
        {.name = "bgr-stretch", .order = ORDER_BGR, .fit = FIT_STRETCH},
        {.name = "gray-crop", .order = ORDER_GRAY, .fit = FIT_CROP},
        {.name = "none-mirrored", .fit = FIT_NONE, .flip = FLIP_HORIZONTAL},
        {.name = "turned-window", .rotate = 270, .crop = {9, 5, 61, 33}},
        {.name = "affine", .affine = true},
        {.name = "area", .filter = FILTER_AREA},
        {.name = "triangle-mirrored", .filter = FILTER_TRIANGLE, .flip = FLIP_HORIZONTAL},
        {.name = "triangle-turned", .filter = FILTER_TRIANGLE, .rotate = 90},
        {.name = "nearest", .filter = FILTER_NEAREST},
        {.name = "nearest-affine", .filter = FILTER_NEAREST, .affine = true},
        {.name = "repeat-window", .edge = EDGE_REPEAT, .fit = FIT_YOLOX, .crop = {9, 5, 31, 23}},
        {.name = "repeat-rotated", .edge = EDGE_REPEAT, .rotate = 33, .crop = {9, 5, 31, 23}},
        {.name = "rect-mean", .edge = EDGE_REPEAT, .fill_mean = true, .fit = FIT_RECT, .stride = 8},
        {.name = "lut", .lut = true},
        {.name = "lut-bgr-whole", .order = ORDER_BGR, .lut = true, .fit = FIT_NONE},
        {.name = "lut-gray", .order = ORDER_GRAY, .lut = true},
        {.name = "lut-area", .lut = true, .filter = FILTER_AREA},
        {.name = "lut-affine", .lut = true, .affine = true},
    };
    for (size_t i = 0; i < sizeof(geometries) / sizeof(geometries[0]); i++) {
        static const double affine[6] = {0.8, -0.45, 12.3, 0.4, 0.85, -11.7};
        p.warp.order = geometries[i].order;
        p.warp.filter = geometries[i].filter;
        p.warp.edge = geometries[i].edge;
        p.warp.fill_mean = geometries[i].fill_mean;
        p.warp.fit = geometries[i].fit;
        p.warp.stride = geometries[i].stride;
        p.warp.rotate = geometries[i].rotate;
        p.warp.flip = geometries[i].flip;
        p.warp.crop = geometries[i].crop;
        p.warp.has_affine = geometries[i].affine;
        p.warp.lut = geometries[i].lut ? luts[i % 2] : NULL;
        memcpy(p.warp.affine, affine, sizeof(affine));
        snprintf(kinds[n].name, NAME, "%s", geometries[i].name);
        kinds[n++].params = p;
    }
    return n;
}

// Lists every format in the source's colour, through RGB, and in 8-bit form; then geometries.
static int yuv_kinds(struct kind kinds[KINDS_MAX], struct lut *const luts[2])
{
    static const enum pixel_format formats[] = {PIXEL_NV12, PIXEL_YUV420P, PIXEL_YUV444P,
                                                PIXEL_YUV24};
    static const struct {
        const char *name;
        struct colour colour;
    } colours[] = {
        {"", {0}},
        {"-bt2020-full", {MATRIX_BT2020, RANGE_FULL, 0}},
        {"-bt709", {MATRIX_BT709, RANGE_LIMITED, 0}},
        {"-bt601-8bit", {.matrix = MATRIX_BT601_8BIT}},
    };
    int n = 0;
    for (int f = 0; f < 4; f++)
        for (int c = 0; c < 4; c++) {
            snprintf(kinds[n].name, NAME, "%s%s", pixel_format_name(formats[f]), colours[c].name);
            kinds[n++].params = (struct op_params){
                .kind = OP_YUV, .yuv = {.format = formats[f], .colour = colours[c].colour}};
        }
    static const struct {
        const char *name;
        struct yuv_params yuv;
    } geometries[] = {
        {"nv12-letterbox",
         {.format = PIXEL_NV12, .geometry = {.width = 80, .height = 72, .fill = {114, 7, 250}}}},
        {"yuv420p-turned",
         {.format = PIXEL_YUV420P, .geometry = {.rotate = 270, .crop = {9, 5, 61, 33}}}},
        {"nv12-slanted",
         {.format = PIXEL_NV12, .geometry = {.width = 55, .height = 41, .rotate = 30}}},
        {"yuv24-area",
         {.format = PIXEL_YUV24,
          .geometry = {.width = 40, .height = 30, .filter = FILTER_AREA, .fit = FIT_STRETCH}}},
        {"nv12-triangle-bt709",
         {.format = PIXEL_NV12,
          .colour = {MATRIX_BT709, RANGE_FULL, 0},
          .geometry = {.width = 33, .height = 31, .filter = FILTER_TRIANGLE}}},
    };
    for (size_t i = 0; i < sizeof geometries / sizeof *geometries; i++) {
        kinds[n] = (struct kind){.params = {.kind = OP_YUV, .yuv = geometries[i].yuv}};
        snprintf(kinds[n].name, NAME, "%s", geometries[i].name);
        kinds[n++].params.yuv.resized = true;
    }
    for (int i = 0; i < 4; i++) {
        kinds[n] = kinds[i % 2 ? n - 4 : 0];
        kinds[n].params.yuv.format = formats[i];
        kinds[n].params.yuv.geometry.lut = luts[i / 2];
        snprintf(kinds[n].name, NAME, "lut-%s%s", pixel_format_name(formats[i]),
                 i % 2 ? "-resized" : "");
        n++;
    }
    return n;
}

static unsigned long long digest(const struct setting *setting, struct backend *backend,
                                 const struct op_params *params, const struct image *src)
{
    struct op op;
    struct plan *plan;
    const struct op *ops[] = {&op};
    if (op_init(&op, params, src) < 0 ||
        setting->driver->plan_open(backend, &plan, src, ops, 1, 1) < 0)
        return 0;
    struct tally tally = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    uint8_t *result = malloc(op.dst_bytes);
    struct job_result results[] = {{.data = result}};
    struct job job = {
        .src = *src, .results = results, .n = 1, .done = tally_done, .opaque = &tally};
    if (setting->driver->submit(plan, &job) == 0)
        tally_wait(&tally, 1);
    setting->driver->plan_close(plan);
    const unsigned long long hash =
        tally.done == 1 && tally.failed == 0 ? fnv1a(result, op.dst_bytes) : 0;
    free(result);
    op_finish(&op);
    return hash;
}

static void digest_source(struct lines *lines, const struct setting *setting,
                          struct backend *backend, struct lut *const luts[2],
                          enum pixel_format source)
{
    static struct kind kinds[KINDS_MAX];
    struct random random = {source};
    struct picture picture = picture_new(source, SOURCE_WIDTH, SOURCE_HEIGHT, STRIDES_TIGHT);
    picture_fill(&picture.image, CONTENT_RANDOM, &random);
    for (int kernel = OP_WARP; kernel <= OP_YUV; kernel++) {
        const int n = kernel == OP_WARP ? warp_kinds(kinds, luts) : yuv_kinds(kinds, luts);
        for (int i = 0; i < n && lines->n < LINES_MAX; i++) {
            struct line *line = &lines->line[lines->n++];
            snprintf(line->name, NAME, "%s %s %.30s", kernel == OP_WARP ? "warp" : "yuv",
                     pixel_format_name(source), kinds[i].name);
            line->digest = digest(setting, backend, &kinds[i].params, &picture.image);
        }
    }
    picture_free(&picture);
}

static void digest_all(struct lines *lines, const struct setting *setting, struct backend *backend)
{
    struct lut *const luts[] = {lut_of(LUT_TRILINEAR), lut_of(LUT_TETRAHEDRAL)};
    lines->n = 0;
    for (int source = 0; source < SOURCES; source++)
        digest_source(lines, setting, backend, luts, sources[source]);
    lut_unref(luts[0]);
    lut_unref(luts[1]);
}

static int read_lines(struct lines *lines)
{
    FILE *file = fopen(digests_path, "r");
    if (!file)
        return -1;
    lines->n = 0;
    char kernel[8], source[16], kind[24];
    unsigned long long hash;
    while (lines->n < LINES_MAX &&
           fscanf(file, "%7s %15s %23s %llx", kernel, source, kind, &hash) == 4) {
        struct line *line = &lines->line[lines->n++];
        snprintf(line->name, NAME, "%s %s %s", kernel, source, kind);
        line->digest = hash;
    }
    fclose(file);
    return 0;
}

static void check_lines(const struct lines *expected, const struct lines *got, const char *setting)
{
    CHECK(got->n == expected->n, "%d and %d: %s", got->n, expected->n, setting);
    for (int i = 0; i < got->n && i < expected->n; i++)
        CHECK(strcmp(got->line[i].name, expected->line[i].name) == 0 &&
                  got->line[i].digest == expected->line[i].digest,
              "%s %016llx, not %s %016llx: %s", got->line[i].name, got->line[i].digest,
              expected->line[i].name, expected->line[i].digest, setting);
}

int main(int argc, char **argv)
{
    static struct lines expected, got;
    const bool print = argc > 1 && strcmp(argv[1], "--print") == 0;
    CHECK(print || read_lines(&expected) == 0, "%s: run from the repository's root", digests_path);
    int missing = 0;
    for (int i = 0; i < (print ? 1 : SETTINGS); i++) {
        struct backend *backend = setting_open(&settings[i], &missing);
        if (!backend)
            continue;
        digest_all(&got, &settings[i], backend);
        if (!print)
            TEST(check_lines(&expected, &got, settings[i].name));
        settings[i].driver->close(backend);
    }
    for (int i = 0; print && i < got.n; i++)
        printf("%s %016llx\n", got.line[i].name, got.line[i].digest);
    if (missing)
        SKIP("%d settings: no CUDA device", missing);
    return print ? 0 : test_end();
}
