// Tests how frames are cut into bands, and the resulting schedule. No device is needed: a struct
// holds measurements of one.
#include <errno.h>
#include <math.h>

#include "kernels/cuda/schedule.h"
#include "tests/kernels/cases.h"
#include "tests/test.h"

// An NVIDIA H200 on PCIe 5.
static const struct link h200 = {.up = 55.4e9,
                                 .down = 55.2e9,
                                 .up_both = 52e9,
                                 .down_both = 52e9,
                                 .kernel = 2e12,
                                 .copy = 1.5e-6,
                                 .handover = 4e-6,
                                 .submit = 12e-6};

// --- one frame whose results follow its rows evenly

struct frame {
    struct band_work work;
    double *made;
    double limit; // seconds: the slower direction, while the other one runs
};

static void frame_init(struct frame *frame, int rows, double up, double down,
                       const struct link *link)
{
    frame->made = malloc((rows + 1) * sizeof(*frame->made));
    for (int i = 0; i <= rows; i++)
        frame->made[i] = down * i;
    frame->work = (struct band_work){
        .rows = {0, rows}, .up = up, .made = frame->made, .up_copies = 1, .down_copies = 1};
    const double up_alone = rows * up / link->up, down_alone = rows * down / link->down;
    const double both = fmin(rows * up / link->up_both, rows * down / link->down_both);
    const double rest = up_alone > down_alone ? (rows * up - both * link->up_both) / link->up
                                              : (rows * down - both * link->down_both) / link->down;
    frame->limit = both + fmax(rest, 0);
}

static void frame_finish(struct frame *frame)
{
    free(frame->made);
}

static void check_cut(const struct band bands[], int n, struct band rows, const char *what)
{
    CHECK(n >= 1 && n <= BANDS_MAX, "%s: %d bands", what, n);
    CHECK(bands[0].y0 == rows.y0 && bands[n - 1].y1 == rows.y1, "%s: %d to %d, not %d to %d", what,
          bands[0].y0, bands[n - 1].y1, rows.y0, rows.y1);
    int odd = 0, apart = 0, empty = 0;
    for (int i = 0; i < n; i++) {
        odd += bands[i].y0 % 2 != 0;
        empty += bands[i].y1 <= bands[i].y0;
        apart += i > 0 && bands[i].y0 != bands[i - 1].y1;
    }
    CHECK(odd == 0 && apart == 0 && (empty == 0 || rows.y0 == rows.y1), "%s: %d %d %d", what, odd,
          apart, empty);
}

// 8K BGRA to packed YUV as measured on the device; the simulation may be 2 % off.
static void test_simulation(void)
{
    static const struct {
        int bands;
        double ratio; // relative to both copies running together
    } measured[] = {{1, 1.74}, {8, 1.098}, {16, 1.072}, {24, 1.055}, {32, 1.055}, {48, 1.069}};
    struct frame frame;
    frame_init(&frame, 4320, 4 * 7680, 3 * 7680, &h200);
    CHECK(fabs(frame.limit / 2.51e-3 - 1) < 0.01, "%g s", frame.limit);
    for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
        struct band bands[BANDS_MAX];
        const int n = bands_equal(bands, frame.work.rows, measured[i].bands);
        const double ratio = bands_time(bands, n, &frame.work, &h200) / frame.limit;
        CHECK(n == measured[i].bands, "%d", n);
        CHECK(fabs(ratio / measured[i].ratio - 1) < 0.02, "%d bands: %g, not %g", n, ratio,
              measured[i].ratio);
    }
    frame_finish(&frame);
}

static void test_directions(void)
{
    static const struct {
        const char *what;
        int rows;
        double up, down; // bytes per row
        double most;     // highest time relative to the limit; 0: the frame is not cut
    } cases[] = {
        {"upload rules", 4320, 30720, 23040, 1.035},
        {"download rules", 4320, 11520, 23040, 1.065},
        {"both alike", 4320, 23040, 23040, 1.07},
        {"upload alone", 4320, 30720, 300, 1.02},
        {"on the device", 4320, 0, 23040, 1.03},
        {"1080p to a tensor", 1080, 2880, 1138, 0},
        {"640x480", 480, 960, 1920, 0},
        {"4 rows", 4, 100, 100, 0},
        {"3 rows", 3, 1e9, 1e9, 0},
        {"2 rows", 2, 1e9, 1e9, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct frame frame;
        struct band bands[BANDS_MAX];
        frame_init(&frame, cases[i].rows, cases[i].up, cases[i].down, &h200);
        const int n = bands_graded(bands, &frame.work, &h200);
        const double ratio = bands_time(bands, n, &frame.work, &h200) / frame.limit;
        check_cut(bands, n, frame.work.rows, cases[i].what);
        if (cases[i].most == 0)
            CHECK(n == 1, "%s: %d bands", cases[i].what, n);
        else
            CHECK(n > 1 && ratio <= cases[i].most, "%s: %d bands, %g of the limit", cases[i].what,
                  n, ratio);
        frame_finish(&frame);
    }
}

// The download must start early if it takes longer; if the upload takes longer, only a short
// download may remain at the end.
static void test_grading(void)
{
    struct frame up_rules, down_rules;
    struct band bands[BANDS_MAX];
    frame_init(&up_rules, 4320, 30720, 23040, &h200);
    frame_init(&down_rules, 4320, 11520, 23040, &h200);
    int n = bands_graded(bands, &up_rules.work, &h200);
    CHECK(bands[n - 1].y1 - bands[n - 1].y0 <= 64, "the last band has %d rows",
          bands[n - 1].y1 - bands[n - 1].y0);
    n = bands_graded(bands, &down_rules.work, &h200);
    CHECK(bands[0].y1 <= 128, "the first band has %d rows", bands[0].y1);
    CHECK(bands[n - 1].y1 - bands[n - 1].y0 > bands[0].y1, "the last of %d bands has %d rows", n,
          bands[n - 1].y1 - bands[n - 1].y0);
    frame_finish(&up_rules);
    frame_finish(&down_rules);
}

// Random frames over random links: rows stay whole, and a cut is never slower than no cut.
static void test_any(struct random *random)
{
    for (int i = 0; i < 300; i++) {
        const struct link link = {.up = random_real(random, 1e9, 60e9),
                                  .down = random_real(random, 1e9, 60e9),
                                  .up_both = 0.9e9,
                                  .down_both = 0.8e9,
                                  .kernel = 1e11,
                                  .copy = random_real(random, 0, 1e-5),
                                  .handover = random_real(random, 0, 1e-5),
                                  .submit = random_real(random, 0, 3e-5)};
        struct frame frame;
        struct band bands[BANDS_MAX];
        const int rows = random_in(random, 1, 5000);
        frame_init(&frame, rows, random_in(random, 0, 40000), random_in(random, 0, 40000), &link);
        frame.work.rows.y0 += 2 * (rows % 100);
        frame.work.rows.y1 += 2 * (rows % 100);
        const double whole = bands_time(&frame.work.rows, 1, &frame.work, &link);
        int n = bands_graded(bands, &frame.work, &link);
        check_cut(bands, n, frame.work.rows, "graded");
        const double time = bands_time(bands, n, &frame.work, &link);
        CHECK(time <= whole && isfinite(time), "%g, whole %g", time, whole);
        n = bands_equal(bands, frame.work.rows, random_in(random, 0, 100));
        check_cut(bands, n, frame.work.rows, "equal");
        frame_finish(&frame);
    }
}

// --- schedules

enum { OPS_MAX = 5 };

struct plan_case {
    struct image src;
    struct op op[OPS_MAX];
    const struct op *ops[OPS_MAX];
    int n;
};

static void plan_case_init(struct plan_case *c, struct random *random)
{
    const int side = random_in(random, 0, 3) ? 3000 : 50;
    *c = (struct plan_case){.n = random_in(random, 1, OPS_MAX)};
    c->src.format = sources[random_in(random, 0, SOURCES - 1)];
    c->src.width = random_in(random, 1, side);
    c->src.height = random_in(random, 1, side);
    c->src.memory = (enum memory)random_in(random, MEMORY_HOST, MEMORY_CUDA);
    for (int i = 0; i < c->n; i++) {
        struct op_params p = {.kind = (enum op_kind)random_in(random, OP_WARP, OP_YUV)};
        if (p.kind == OP_WARP) {
            p.warp = warp_case(random, (enum geometry)random_in(random, 0, GEOMETRIES - 1), &c->src,
                               side);
            tensor_case(random, &p.warp);
        } else {
            p.yuv = yuv_case(random);
            if (random_in(random, 0, 1))
                yuv_geometry_case(random, &p.yuv, &c->src, side);
        }
        const int error = op_init(&c->op[i], &p, &c->src);
        CHECK(error == 0 || error == -ERANGE, "op_init: %d", error);
        if (error) { // position out of range: use another op
            p = (struct op_params){.kind = OP_YUV, .yuv = {.format = PIXEL_NV12}};
            CHECK(op_init(&c->op[i], &p, &c->src) == 0, "op_init");
        }
        c->op[i].moves = random_in(random, 0, 3) == 0;
        c->ops[i] = &c->op[i];
    }
}

static void plan_case_finish(struct plan_case *c)
{
    for (int i = 0; i < c->n; i++)
        op_finish(&c->op[i]);
}

// Every row of every result must be made once, in steps that start on even rows.
static void check_rows(const struct schedule *schedule, const struct plan_case *c)
{
    for (int i = 0; i < c->n; i++) {
        const int height = c->op[i].dst.height;
        int rows = 0, odd = 0, twice = 0;
        char *made = calloc(1, height);
        for (int k = 0; k < schedule->steps; k++) {
            const struct step *step = &schedule->step[k];
            if (step->op != i)
                continue;
            odd += step->out.y0 % 2;
            for (int y = step->out.y0; y < step->out.y1; y++)
                twice += made[y]++;
            rows += step->out.y1 - step->out.y0;
        }
        CHECK(rows == height && odd == 0 && twice == 0, "op %d: %d of %d rows, %d %d", i, rows,
              height, odd, twice);
        free(made);
    }
}

// A slice's steps may read only rows of that slice and earlier ones, back to slice->from.
static void check_slices(const struct schedule *schedule, const struct plan_case *c)
{
    int end = 0, unread = 0, torn = 0;
    for (int i = 0; i < schedule->slices; i++) {
        const struct slice *slice = &schedule->slice[i];
        const int y0 = schedule->slice[slice->from].rows.y0, y1 = slice->rows.y1;
        if (slice->first == slice->end)
            continue;
        torn += slice->first != end;
        end = slice->end;
        for (int k = slice->first; k < slice->end; k++) {
            const struct step *step = &schedule->step[k];
            const struct op *op = c->ops[step->op];
            const struct band read = op_source_rows(op, step->out);
            const struct band rows = op->moves ? (struct band){0, c->src.height} : read;
            unread += rows.y0 < rows.y1 && (rows.y0 < y0 || rows.y1 > y1);
        }
    }
    CHECK(end == schedule->steps, "%d of %d steps", end, schedule->steps);
    CHECK(unread == 0 && torn == 0, "%d steps read what has not come, %d slices torn", unread,
          torn);
}

// Each slice must have no more launches than its element types and yuv steps require.
static void check_launches(const struct schedule *schedule, const struct plan_case *c)
{
    for (int i = 0; i <= schedule->slices; i++) {
        const struct slice *slice = i < schedule->slices ? &schedule->slice[i] : &schedule->whole;
        int launches = 0, least = 0;
        bool seen[DTYPE_F32 + 1] = {false};
        for (int k = slice->first; k < slice->end; k++) {
            const struct op *op = c->ops[schedule->step[k].op];
            const struct op *before = k > slice->first ? c->ops[schedule->step[k - 1].op] : op;
            launches += k == slice->first || !ops_share_launch(before, op);
            least += op->kind == OP_YUV || !seen[op->warp.dtype];
            if (op->kind == OP_WARP)
                seen[op->warp.dtype] = true;
        }
        CHECK(launches == least, "slice %d: %d launches, not %d", i, launches, least);
    }
}

// The slice for the whole frame must make every result once and completely.
static void check_whole(const struct schedule *schedule, const struct plan_case *c)
{
    const struct slice *whole = &schedule->whole;
    uint64_t made = 0;
    for (int k = whole->first; k < whole->end; k++) {
        const struct step *step = &schedule->step[k];
        if (step->out.y0 == 0 && step->out.y1 == c->ops[step->op]->dst.height)
            made |= UINT64_C(1) << step->op;
    }
    CHECK(whole->end - whole->first == c->n && made == (UINT64_C(1) << c->n) - 1,
          "%d steps make %llx of %d results", whole->end - whole->first, (unsigned long long)made,
          c->n);
}

static void check_streams(const struct schedule *schedule, int streams)
{
    uint64_t used = 0;
    for (int i = 0; i < schedule->slices; i++) {
        const struct slice *slice = &schedule->slice[i];
        const int numbers[] = {slice->up, slice->kernel, slice->download};
        for (int k = 0; k < 3; k++)
            used |= UINT64_C(1) << schedule_stream(schedule, numbers[k], 0);
        if (streams > 0)
            CHECK(slice->up == i % streams && slice->kernel == slice->up &&
                      slice->download == slice->up,
                  "slice %d: %d %d %d", i, slice->up, slice->kernel, slice->download);
        else if (schedule->slices == 1)
            CHECK(slice->up == slice->kernel && slice->up == slice->download,
                  "a whole frame waits");
        else
            CHECK(slice->up == 0 && slice->kernel == 1 && slice->download == 2,
                  "slice %d: %d %d %d", i, slice->up, slice->kernel, slice->download);
    }
    CHECK(used >> (streams > 0 ? streams : STREAMS_AUTO) == 0, "streams %llx",
          (unsigned long long)used);
    CHECK(__builtin_popcountll(used) == schedule->frame_streams, "%llx, not %d streams",
          (unsigned long long)used, schedule->frame_streams);
    CHECK(schedule->rotates == (streams > 0 || schedule->slices == 1), "%d", schedule->rotates);
}

static void test_schedules(struct random *random)
{
    static const int streams[] = {0, 0, 0, 1, 2, 8, 32};
    static const size_t band_bytes[] = {0, 0, 0, 1, 100000};
    int cut = 0, most = 0;
    for (int i = 0; i < 400; i++) {
        struct plan_case c;
        struct schedule schedule;
        struct schedule_options options = {.link = h200};
        options.streams = streams[random_in(random, 0, 6)];
        options.band_bytes = band_bytes[random_in(random, 0, 4)];
        plan_case_init(&c, random);
        CHECK(schedule_init(&schedule, &c.src, c.ops, c.n, &options) == 0, "schedule_init");
        CHECK(schedule.slices >= 1 && schedule.slices <= BANDS_MAX, "%d", schedule.slices);
        check_rows(&schedule, &c);
        check_slices(&schedule, &c);
        check_launches(&schedule, &c);
        check_whole(&schedule, &c);
        check_streams(&schedule, options.streams);
        if (options.streams == 1 && options.band_bytes == 0)
            CHECK(schedule.slices == 1, "%d slices on one stream", schedule.slices);
        cut += schedule.slices > 1 && options.band_bytes == 0;
        most = schedule.slices > most ? schedule.slices : most;
        schedule_finish(&schedule);
        plan_case_finish(&c);
    }
    CHECK(cut > 20 && most == BANDS_MAX, "%d cut, at most into %d", cut, most);
}

// 8K BGRA to packed YUV, as scheduled by a plan.
static void test_8k(void)
{
    const struct image src = {
        .format = PIXEL_BGRA, .width = 7680, .height = 4320, .memory = MEMORY_PINNED};
    const struct op_params params = {.kind = OP_YUV, .yuv = {.format = PIXEL_YUV24}};
    const struct schedule_options options = {.link = h200};
    struct op op;
    struct schedule schedule;
    const struct op *ops[] = {&op};
    CHECK(op_init(&op, &params, &src) == 0, "op_init");
    CHECK(schedule_init(&schedule, &src, ops, 1, &options) == 0, "schedule_init");
    struct frame frame;
    struct band bands[BANDS_MAX];
    frame_init(&frame, 4320, 30720, 23040, &h200);
    for (int i = 0; i < schedule.slices; i++)
        bands[i] = schedule.slice[i].rows;
    const double time = bands_time(bands, schedule.slices, &frame.work, &h200);
    CHECK(time <= 1.035 * frame.limit, "%g of %g s", time, frame.limit);
    CHECK(schedule.steps == schedule.slices, "%d steps, %d slices", schedule.steps,
          schedule.slices);
    printf("bands: 8K: %d bands from %d to %d rows: %.3f ms, at least %.3f\n", schedule.slices,
           bands[0].y1, bands[schedule.slices - 1].y1 - bands[schedule.slices - 1].y0, time * 1e3,
           frame.limit * 1e3);
    frame_finish(&frame);
    schedule_finish(&schedule);
    op_finish(&op);
}

// --- copies

// A band of a result is downloaded plane by plane, or in one copy if its planes are alike.
static void test_result_copies(void)
{
    static const struct {
        enum pixel_format format;
        int copies;
    } cases[] = {{PIXEL_NV12, 2}, {PIXEL_YUV420P, 3}, {PIXEL_YUV444P, 1}, {PIXEL_YUV24, 1}};
    const struct band some = {0, 32}, all = {0, 64};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct op op = {.dst = {.format = cases[i].format, .width = 96, .height = 64}};
        image_lay_out(&op.dst, NULL);
        CHECK(schedule_copies(&op, some) == cases[i].copies, "%s: %d copies, not %d",
              pixel_format_name(cases[i].format), schedule_copies(&op, some), cases[i].copies);
        CHECK(schedule_copies(&op, all) == 1, "%s: whole", pixel_format_name(cases[i].format));
    }
    const struct op_params params = {
        OP_WARP, {.warp = {.width = 96, .height = 64, .scale = 1, .std = {1, 1, 1}}}};
    const struct image src = {.format = PIXEL_NV12, .width = 96, .height = 64};
    struct op tensor;
    CHECK(op_init(&tensor, &params, &src) == 0, "op_init");
    CHECK(image_planes(&tensor.dst) == 3 && schedule_copies(&tensor, some) == 1,
          "a tensor's planes are alike");
    op_finish(&tensor);
}

int main(int argc, char **argv)
{
    TEST(test_result_copies());
    struct random random = random_from(argc, argv);
    printf("bands: seed %llu\n", (unsigned long long)random.state);
    TEST(test_simulation());
    TEST(test_directions());
    TEST(test_grading());
    TEST(test_any(&random));
    TEST(test_schedules(&random));
    TEST(test_8k());
    return test_end();
}
