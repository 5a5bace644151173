// Tests every backend against the reference, byte by byte: any source and stride, several ops per
// plan, several jobs in flight, results between guards. Also tests the reference band by band.
#include <errno.h>

#include "tests/test.h"

#include "tests/kernels/backends.h"
#include "tests/kernels/cases.h"

enum { DEPTH = 3, OPS_MAX = 4, GUARD = 64, PLANS = 200 };

static int random_op(struct random *random, struct op *op, struct op_params *made_of,
                     const struct image *src, int side_max)
{
    struct op_params p = {.kind = (enum op_kind)random_in(random, OP_WARP, OP_YUV)};
    if (p.kind == OP_WARP) {
        const bool filtered = random_in(random, 0, 3) == 0;
        const enum geometry geometry = (enum geometry)random_in(random, 0, GEOMETRIES - 1);
        p.warp = filtered ? filter_case(random, src, side_max)
                          : warp_case(random, geometry, src, side_max);
        tensor_case(random, &p.warp);
    } else {
        p.yuv = yuv_case(random);
        if (random_in(random, 0, 1))
            yuv_geometry_case(random, &p.yuv, src, side_max);
    }
    struct lut *lut = lut_case(random);
    *(p.kind == OP_WARP ? &p.warp.lut : &p.yuv.geometry.lut) = lut;
    if (lut && p.kind == OP_YUV) // a LUT converts colours
        p.yuv.colour.siting = SITING_UNSPECIFIED;
    int error = op_init(op, &p, src);
    if (error == -ERANGE) { // a line rotated within its own size
        p.yuv.resized = false;
        error = op_init(op, &p, src);
    }
    char text[400];
    CHECK(error == 0, "%d: %s", error,
          p.kind == OP_WARP ? warp_case_text(text, &p.warp, src)
                            : yuv_case_text(text, &p.yuv, src));
    *made_of = p; // the op holds a reference to the LUT
    lut_unref(lut);
    return error;
}

static struct picture random_source(struct random *random)
{
    const int side = random_in(random, 0, 9) == 0 ? 300 : 40;
    const enum pixel_format format = sources[random_in(random, 0, SOURCES - 1)];
    struct picture picture = picture_random(format, side, random);
    picture.image.colour = colour_case(random);
    return picture;
}

// --- backends

struct frame {
    struct job job;
    struct picture source;
    struct job_result results[OPS_MAX];
    struct op own[OPS_MAX];   // replacement ops of the job
    uint8_t *result[OPS_MAX]; // guard, result, guard; NULL if left out
};

struct plan_case {
    const struct setting *setting;
    struct backend *backend;
    struct op_params params[OPS_MAX];
    struct op op[OPS_MAX];
    int n;
    struct frame frame[DEPTH];
    struct tally tally;
};

// True if the op covers the whole picture and its size does not depend on the region.
static bool takes_regions(const struct op_params *p)
{
    const struct warp_params *g = p->kind == OP_WARP ? &p->warp : &p->yuv.geometry;
    return (p->kind == OP_YUV && !p->yuv.resized) ||
           (g->width > 0 && !g->has_affine && g->crop.width == 0);
}

// Gives the job an op of its own: an op made for the whole picture may be replaced by any region.
static void bring_op(struct plan_case *c, struct frame *frame, int i, struct random *random)
{
    struct op_params p = c->params[i];
    const struct image *src = &frame->source.image;
    if (p.kind == OP_WARP)
        p.warp.crop = rect_case(random, src->width, src->height);
    else if (p.yuv.resized)
        p.yuv.geometry.crop = rect_case(random, src->width, src->height);
    else
        p.yuv.colour = yuv_case(random).colour;
    if (op_init(&frame->own[i], &p, src) == 0)
        frame->results[i].op = &frame->own[i];
}

static void frame_init(struct plan_case *c, struct frame *frame, const struct image *shape,
                       struct random *random)
{
    frame->source = picture_sized(shape->format, shape->width, shape->height, random);
    frame->source.image.colour = shape->colour;
    frame->job = (struct job){.src = frame->source.image,
                              .results = frame->results,
                              .n = c->n,
                              .done = tally_done,
                              .opaque = &c->tally};
    for (int i = 0; i < c->n; i++) {
        if (c->op[i].moves && random_in(random, 0, 3) > 0)
            bring_op(c, frame, i, random);
        frame->result[i] = NULL;
        if (random_in(random, 0, 7) == 0)
            continue;
        const size_t bytes = c->op[i].dst_bytes + 2 * GUARD;
        const bool pinned = random_in(random, 0, 1);
        frame->result[i] =
            pinned ? pinned_new(c->setting, c->backend, bytes) : (uint8_t *)malloc(bytes);
        memset(frame->result[i], UNTOUCHED, bytes);
        frame->results[i].data = frame->result[i] + GUARD;
        frame->results[i].memory = pinned ? MEMORY_PINNED : MEMORY_HOST;
    }
}

static bool guards_hold(const uint8_t *result, size_t bytes)
{
    int touched = 0;
    for (int i = 0; i < GUARD; i++)
        touched += result[i] != UNTOUCHED || result[GUARD + bytes + i] != UNTOUCHED;
    return touched == 0;
}

static void frame_check(struct plan_case *c, const struct frame *frame)
{
    for (int i = 0; i < c->n; i++) {
        if (!frame->result[i])
            continue;
        const struct op *op = frame->results[i].op ? frame->results[i].op : &c->op[i];
        void *expected = malloc(op->dst_bytes);
        run_reference(op, &frame->source.image, expected);
        CHECK(memcmp(expected, frame->result[i] + GUARD, op->dst_bytes) == 0,
              "%s: op %d (%s) of %d: %s %dx%d -> %s %dx%d", c->setting->name, i,
              op->kind == OP_WARP ? "warp" : "yuv", c->n,
              pixel_format_name(frame->source.image.format), frame->source.image.width,
              frame->source.image.height, pixel_format_name(op->dst.format), op->dst.width,
              op->dst.height);
        CHECK(guards_hold(frame->result[i], op->dst_bytes), "%s: op %d", c->setting->name, i);
        free(expected);
    }
}

static void frame_finish(struct plan_case *c, struct frame *frame)
{
    for (int i = 0; i < c->n; i++) {
        if (frame->results[i].memory == MEMORY_PINNED)
            pinned_free(c->setting, c->backend, frame->result[i]);
        else
            free(frame->result[i]);
        if (frame->results[i].op)
            op_finish(&frame->own[i]);
    }
    picture_free(&frame->source);
}

// Jobs that do not match the plan: a wrong number of results, or an op that must not be replaced.
static void check_refusals(struct plan_case *c, struct plan *plan)
{
    const struct backend_driver *driver = c->setting->driver;
    struct job_result results[OPS_MAX + 1] = {0};
    struct job job = {.src = c->frame[0].job.src, .results = results, .n = c->n + 1};
    struct op op;
    CHECK(driver->submit(plan, &job) == -EINVAL, "a result too many: %s", c->setting->name);
    job.n = c->n;
    results[0].op = &op;
    op = c->op[0];
    op.dst.height++;
    CHECK(driver->submit(plan, &job) == -EINVAL, "another size: %s", c->setting->name);
    op = c->op[0];
    if (!op.moves)
        CHECK(driver->submit(plan, &job) == -EINVAL, "it does not move: %s", c->setting->name);
}

// Fills the plan to its depth twice.
static void run_plan(struct plan_case *c, struct plan *plan)
{
    const struct backend_driver *driver = c->setting->driver;
    check_refusals(c, plan);
    int submitted = 0;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < DEPTH; i++) {
            const int error = driver->submit(plan, &c->frame[i].job);
            CHECK(error == 0, "submit: %d: %s", error, c->setting->name);
            submitted += error == 0;
        }
        tally_wait(&c->tally, submitted);
    }
    driver->plan_close(plan);
    CHECK(c->tally.done == submitted && c->tally.failed == 0, "%d of %d, %d failed: %s",
          c->tally.done, submitted, c->tally.failed, c->setting->name);
}

static void check_plan(const struct setting *setting, struct backend *backend,
                       struct random *random)
{
    struct plan_case c = {.setting = setting,
                          .backend = backend,
                          .n = random_in(random, 1, OPS_MAX),
                          .tally = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0}};
    struct picture shape = random_source(random);
    const struct op *ops[OPS_MAX];
    for (int i = 0; i < c.n; i++) {
        ops[i] = &c.op[i];
        if (random_op(random, &c.op[i], &c.params[i], &shape.image, 64) < 0)
            exit(test_end());
        c.op[i].moves = takes_regions(&c.params[i]) && random_in(random, 0, 1);
    }
    for (int i = 0; i < DEPTH; i++)
        frame_init(&c, &c.frame[i], &shape.image, random);
    struct plan *plan;
    const int error = setting->driver->plan_open(backend, &plan, &shape.image, ops, c.n, DEPTH);
    CHECK(error == 0, "plan_open: %d: %s", error, setting->name);
    if (error == 0)
        run_plan(&c, plan);
    for (int i = 0; i < DEPTH; i++) {
        if (error == 0)
            frame_check(&c, &c.frame[i]);
        frame_finish(&c, &c.frame[i]);
    }
    for (int i = 0; i < c.n; i++)
        op_finish(&c.op[i]);
    picture_free(&shape);
}

static void test_backends(struct random *random)
{
    int missing = 0;
    for (int i = 0; i < SETTINGS; i++) {
        struct backend *backend = setting_open(&settings[i], &missing);
        if (!backend)
            continue;
        printf("backends: %s: %s\n", settings[i].name, settings[i].driver->describe(backend));
        for (int plan = 0; plan < PLANS; plan++)
            check_plan(&settings[i], backend, random);
        settings[i].driver->close(backend);
    }
    if (missing)
        SKIP("%d settings: no CUDA device", missing);
}

// --- the reference, band by band

// Returns a result of `op` in separate planes with any strides.
static struct picture result_new(const struct op *op, enum strides strides)
{
    if (op->kind == OP_YUV)
        return picture_new(op->dst.format, op->dst.width, op->dst.height, strides);
    struct picture result = {.image = op->dst};
    for (int i = 0; i < PLANES_MAX && op->dst.plane[i].stride; i++)
        picture_plane(&result, i, op->dst.plane[i].stride, op->dst.height, strides);
    return result;
}

// True if rows [y0, y1) of `got`, in picture rows, equal `expected` and everything else is
// untouched.
static bool result_is(const struct op *op, const struct picture *got, const struct image *expected,
                      struct band written)
{
    int wrong = 0;
    for (int i = 0; i < PLANES_MAX && expected->plane[i].stride; i++) {
        const int rows = plane_rows(op->dst.format, i, op->dst.height);
        const int halve = rows != op->dst.height;
        const size_t row = expected->plane[i].stride;
        const ptrdiff_t stride = got->image.plane[i].stride;
        for (int y = 0; y < rows; y++) {
            const uint8_t *at = got->image.plane[i].data + y * stride;
            const bool made = y >= written.y0 >> halve && y < (written.y1 + halve) >> halve;
            for (size_t x = 0; x < row; x++)
                wrong +=
                    at[x] != (made ? expected->plane[i].data[y * row + x] : (uint8_t)UNTOUCHED);
            const bool last = y == (stride < 0 ? 0 : rows - 1);
            for (size_t x = row; !last && x < (size_t)llabs(stride); x++)
                wrong += at[x] != UNTOUCHED;
        }
    }
    return wrong == 0;
}

static void check_bands(struct random *random)
{
    struct picture source = random_source(random);
    struct op_params params;
    struct op op;
    if (random_op(random, &op, &params, &source.image, 64) < 0)
        exit(test_end());
    void *memory = malloc(op.dst_bytes);
    struct image expected;
    op_lay_out(&op, &expected, memory);
    run_reference(&op, &source.image, memory);

    const int height = op.dst.height, step = 2 * random_in(random, 1, height);
    struct picture got = result_new(&op, (enum strides)random_in(random, 0, STRIDES - 1));
    for (int y = 0; y < height; y += step) {
        const struct band band = {y, y + step < height ? y + step : height};
        op_reference(&got.image, &source.image, &op, band, false);
        CHECK(result_is(&op, &got, &expected, (struct band){0, band.y1}),
              "rows %d to %d: %s %dx%d -> %s %dx%d", band.y0, band.y1,
              pixel_format_name(source.image.format), source.image.width, source.image.height,
              pixel_format_name(op.dst.format), op.dst.width, height);
    }
    picture_free(&got);
    free(memory);
    op_finish(&op);
    picture_free(&source);
}

int main(int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    printf("backends: seed %llu\n", (unsigned long long)random.state);
    for (int i = 0; i < 4000; i++)
        TEST(check_bands(&random));
    TEST(test_backends(&random));
    return test_end();
}
