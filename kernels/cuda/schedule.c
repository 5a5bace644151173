#include "kernels/cuda/schedule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

// --- bands
//
// The simulation steps from event to event. The two directions of the link slow each other down, so
// their rates change when either starts or ends; a kernel's time depends on nothing else.

// Seconds that a cut must save to be worth its launches.
static const double SAVING_MIN = 30e-6;

const struct link link_default = {
    .up = 10e9,
    .down = 10e9,
    .up_both = 9e9,
    .down_both = 9e9,
    .kernel = 100e9,
    .copy = 2e-6,
    .handover = 4e-6,
    .submit = 12e-6,
};

// --- simulation

struct direction {
    double alone, both; // bytes per second
    int band;           // current, or next to be copied
    double start;       // of that band's bytes; INFINITY: unknown so far
    double left;        // bytes of that band
};

struct simulation {
    const struct band *bands;
    int n;
    const struct band_work *work;
    const struct link *link;
    struct direction up, down;
    double now, computed[BANDS_MAX]; // time at which each band's results are ready
};

static double made_by(const struct band_work *work, struct band band)
{
    return work->made[band.y1 - work->rows.y0] - work->made[band.y0 - work->rows.y0];
}

static double uploaded_by(const struct band_work *work, struct band band)
{
    return work->up * (band.y1 - band.y0);
}

static void upload_next(struct simulation *s)
{
    if (s->up.band == s->n) {
        s->up.start = INFINITY;
        return;
    }
    s->up.left = uploaded_by(s->work, s->bands[s->up.band]);
    s->up.start = fmax(s->now, s->link->submit * (s->up.band + 1));
    if (s->up.left > 0)
        s->up.start += s->link->copy * s->work->up_copies;
}

static void download_next(struct simulation *s)
{
    if (s->down.band >= s->up.band) {
        s->down.start = INFINITY;
        return;
    }
    const double ready = s->computed[s->down.band] + s->link->handover;
    s->down.left = made_by(s->work, s->bands[s->down.band]);
    s->down.start = fmax(s->now, ready);
    if (s->down.left > 0)
        s->down.start += s->link->copy * s->work->down_copies;
}

static void upload_done(struct simulation *s)
{
    const int i = s->up.band++;
    const double bytes = uploaded_by(s->work, s->bands[i]) + made_by(s->work, s->bands[i]);
    const double free = i > 0 ? s->computed[i - 1] : 0;
    s->computed[i] = fmax(free, s->now + s->link->handover) + bytes / s->link->kernel;
    upload_next(s);
    if (s->down.start == INFINITY)
        download_next(s);
}

// Time at which the direction finishes its band if no rate changes; INFINITY while it is idle.
static double end_of(const struct simulation *s, const struct direction *d,
                     const struct direction *other)
{
    if (d->start > s->now)
        return INFINITY;
    return s->now + d->left / (other->start <= s->now ? d->both : d->alone);
}

static void advance(const struct simulation *s, struct direction *d, double end, double to)
{
    if (end < INFINITY)
        d->left = end > to ? d->left * (end - to) / (end - s->now) : 0;
}

// Advances to the next start or end of a copy.
static void step(struct simulation *s)
{
    struct direction *up = &s->up, *down = &s->down;
    const double up_end = end_of(s, up, down), down_end = end_of(s, down, up);
    double to = fmin(up_end, down_end);
    if (up->start > s->now)
        to = fmin(to, up->start);
    if (down->start > s->now)
        to = fmin(to, down->start);
    advance(s, up, up_end, to);
    advance(s, down, down_end, to);
    s->now = to;
    if (up_end == to)
        upload_done(s);
    if (down_end == to) {
        down->band++;
        download_next(s);
    }
}

// Returns INFINITY if it takes longer than `limit`.
static double simulate(const struct band bands[], int n, const struct band_work *work,
                       const struct link *link, double limit)
{
    struct simulation s = {.bands = bands, .n = n, .work = work, .link = link};
    s.up = (struct direction){.alone = link->up, .both = link->up_both};
    s.down = (struct direction){.alone = link->down, .both = link->down_both, .start = INFINITY};
    upload_next(&s);
    while (s.down.band < n) {
        step(&s);
        if (s.now > limit)
            return INFINITY;
    }
    return s.now;
}

double bands_time(const struct band bands[], int n, const struct band_work *work,
                  const struct link *link)
{
    return simulate(bands, n, work, link, INFINITY);
}

// --- gradings

// Bands of `first` rows growing to `largest` and shrinking to `last`, by a factor of `growth` each.
struct grading {
    int first, largest, last;
    double growth;
};

static int even(double rows)
{
    const int whole = (int)rows & ~1;
    return whole < 2 ? 2 : whole;
}

static int append(struct band bands[BANDS_MAX], int n, int rows)
{
    const int y = n > 0 ? bands[n - 1].y1 : 0;
    bands[n] = (struct band){y, y + rows};
    return n + 1;
}

// Appends `rows` (even) in equal parts of at most `largest`; returns 0 if there are too many.
static int append_equal(struct band bands[BANDS_MAX], int n, int rows, int largest)
{
    int parts = (rows + largest - 1) / largest;
    if (n + parts > BANDS_MAX)
        return 0;
    for (; parts > 0; parts--) {
        const int part = parts == 1 ? rows : even((double)rows / parts);
        n = append(bands, n, part);
        rows -= part;
    }
    return n;
}

// Cuts `rows` (even) from row 0; returns 0 if there are too many bands.
static int grade(struct band bands[BANDS_MAX], int rows, const struct grading *grading)
{
    double front = grading->first, back = grading->last;
    int n = 0, shrinking = 0, tail[BANDS_MAX];
    while (fmin(front, back) < grading->largest && even(fmin(front, back)) < rows) {
        if (n + shrinking == BANDS_MAX)
            return 0;
        if (front <= back) {
            n = append(bands, n, even(front));
            rows -= even(front);
            front *= grading->growth;
        } else {
            tail[shrinking++] = even(back);
            rows -= even(back);
            back *= grading->growth;
        }
    }
    n = append_equal(bands, n, rows, grading->largest);
    if (n == 0 || n + shrinking > BANDS_MAX)
        return 0;
    while (shrinking > 0)
        n = append(bands, n, tail[--shrinking]);
    return n;
}

// Moves bands, cut from row 0 over an even number of rows, to `rows`.
static void place(struct band bands[], int n, struct band rows)
{
    for (int i = 0; i < n; i++) {
        bands[i].y0 += rows.y0;
        bands[i].y1 += rows.y0;
    }
    bands[n - 1].y1 = rows.y1;
}

int bands_equal(struct band bands[BANDS_MAX], struct band rows, int n)
{
    const int height = (rows.y1 - rows.y0) & ~1;
    bands[0] = rows;
    if (height == 0)
        return 1;
    n = n < 1 ? 1 : n < BANDS_MAX ? n : BANDS_MAX;
    if (n > height / 2)
        n = height / 2;
    int count = 0, y = 0;
    for (int i = 1; i <= n; i++) {
        const int end = (int)((long long)height * i / n) & ~1;
        if (end > y)
            count = append(bands, count, end - y);
        y = end;
    }
    place(bands, count, rows);
    return count;
}

// --- choice

struct best {
    struct band bands[BANDS_MAX];
    int n;
    double cost;
};

// A cut costs its own time, and delays the frames behind it by the overhead of its copies.
static void consider(struct best *best, const struct band_work *work, const struct link *link,
                     const struct grading *grading)
{
    struct band bands[BANDS_MAX];
    const int n = grade(bands, (work->rows.y1 - work->rows.y0) & ~1, grading);
    if (n == 0)
        return;
    const int copies = work->up_copies > work->down_copies ? work->up_copies : work->down_copies;
    const double penalty = n * copies * link->copy;
    place(bands, n, work->rows);
    const double cost = penalty + simulate(bands, n, work, link, best->cost - penalty);
    if (cost >= best->cost)
        return;
    best->cost = cost;
    best->n = n;
    for (int i = 0; i < n; i++)
        best->bands[i] = bands[i];
}

int bands_graded(struct band bands[BANDS_MAX], const struct band_work *work,
                 const struct link *link)
{
    static const double growths[] = {1.25, 1.4, 1.6, 2, 3};
    const int height = work->rows.y1 - work->rows.y0, least = even(height / 256.0);
    bands[0] = work->rows;
    if (height < 4)
        return 1;
    struct best best = {.bands = {work->rows}, .n = 1};
    best.cost = bands_time(bands, 1, work, link) - SAVING_MIN;
    struct grading g;
    for (g.largest = least; g.largest < height; g.largest *= 2)
        for (g.first = least; g.first <= g.largest; g.first *= 2)
            for (g.last = least; g.last <= g.largest; g.last *= 2)
                for (int i = 0; i < 5; i++) {
                    g.growth = growths[i];
                    consider(&best, work, link, &g);
                }
    for (int i = 0; i < best.n; i++)
        bands[i] = best.bands[i];
    return best.n;
}

// --- the schedule
//
// Every pair of output rows needs the source up to some row, and under an affine map these needs
// rise or fall monotonically: the pairs completed by a source band are one run of rows, the band's
// step. An op that moves may read any row: its step belongs to the last band.

// Bands cost a launch and two copies each, which small frames never earn back.
enum { WHOLE_BYTES = 4 << 20, BAND_BYTES = 2 << 20, EQUAL_BANDS = 24 };

bool ops_share_launch(const struct op *a, const struct op *b)
{
    return a->kind == b->kind && a->batch == b->batch && a->batch >= 0;
}

static size_t source_bytes(const struct image *src)
{
    struct image image = *src;
    return src->memory == MEMORY_CUDA ? 0 : image_lay_out(&image, NULL);
}

static size_t result_bytes(const struct op *const ops[], int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += ops[i]->dst_bytes;
    return bytes;
}

// Returns the source rows that rows `out` of the result may read: any rows for an op that moves.
static struct band rows_for(const struct op *op, const struct image *src, struct band out)
{
    return op->moves ? (struct band){0, src->height} : op_source_rows(op, out);
}

// Returns the source rows that any op reads, from an even row on; only they are uploaded.
static struct band rows_read(const struct image *src, const struct op *const ops[], int n)
{
    struct band all = {src->height, 0};
    for (int i = 0; i < n; i++) {
        const struct band rows = rows_for(ops[i], src, (struct band){0, ops[i]->dst.height});
        if (rows.y0 >= rows.y1)
            continue;
        all.y0 = rows.y0 < all.y0 ? rows.y0 : all.y0;
        all.y1 = rows.y1 > all.y1 ? rows.y1 : all.y1;
    }
    if (all.y0 >= all.y1)
        return (struct band){0, 0};
    return (struct band){all.y0 & ~1, all.y1};
}

// --- needs

static struct band pair_at(const struct op *op, int y)
{
    return (struct band){y, y + 2 < op->dst.height ? y + 2 : op->dst.height};
}

// Returns the end of the source rows that output rows y and y + 1 read. Rows that read nothing take
// the need of those above them (`before`), so that steps stay in one piece.
static int need_of(const struct op *op, const struct image *src, int y, int before)
{
    const struct band rows = rows_for(op, src, pair_at(op, y));
    return rows.y0 < rows.y1 ? rows.y1 : before;
}

// Returns `made` of struct band_work, with rows.y1 - rows.y0 + 1 numbers, or NULL without memory.
static double *made_init(struct band rows, const struct image *src, const struct op *const ops[],
                         int n)
{
    const int height = rows.y1 - rows.y0;
    double *made = calloc(height + 1, sizeof(*made));
    if (!made)
        return NULL;
    for (int i = 0; i < n; i++) {
        const double row_bytes = (double)ops[i]->dst_bytes / ops[i]->dst.height;
        int need = rows.y0;
        for (int y = 0; y < ops[i]->dst.height; y += 2) {
            const struct band pair = pair_at(ops[i], y);
            need = need_of(ops[i], src, y, need);
            made[need - rows.y0] += row_bytes * (pair.y1 - pair.y0);
        }
    }
    for (int i = 1; i <= height; i++)
        made[i] += made[i - 1];
    return made;
}

// --- the cut

int schedule_copies(const struct op *op, struct band out)
{
    const bool whole = out.y1 - out.y0 == op->dst.height;
    return whole || image_planes_are_alike(&op->dst) ? 1 : image_planes(&op->dst);
}

static int cut_graded(struct band bands[BANDS_MAX], struct band rows, const struct image *src,
                      const struct op *const ops[], int n, const struct link *link)
{
    struct band_work work = {.rows = rows, .up_copies = pixel_format_planes(src->format)};
    double *made = made_init(rows, src, ops, n);
    if (!made)
        return -ENOMEM;
    work.made = made;
    work.up = (double)source_bytes(src) / src->height;
    for (int i = 0; i < n; i++)
        work.down_copies += schedule_copies(ops[i], (struct band){0, 0});
    const int bands_made = bands_graded(bands, &work, link);
    free(made);
    return bands_made;
}

// Returns the number of bands, or -ENOMEM.
static int cut(struct band bands[BANDS_MAX], const struct image *src, const struct op *const ops[],
               int n, const struct schedule_options *options)
{
    const struct band rows = rows_read(src, ops, n);
    const size_t bytes = source_bytes(src) + result_bytes(ops, n);
    if (options->band_bytes > 0) {
        const size_t wanted = bytes / options->band_bytes;
        return bands_equal(bands, rows, wanted < BANDS_MAX ? (int)wanted : BANDS_MAX);
    }
    if (bytes < WHOLE_BYTES || options->streams == 1)
        return bands_equal(bands, rows, 1);
    if (options->streams == 0)
        return cut_graded(bands, rows, src, ops, n, &options->link);
    const int most = options->streams > EQUAL_BANDS ? options->streams : EQUAL_BANDS;
    const size_t wanted = bytes / BAND_BYTES;
    return bands_equal(bands, rows, wanted < (size_t)most ? (int)wanted : most);
}

// --- streams

static void streams_init(struct schedule *schedule, int streams)
{
    const int n = schedule->slices;
    const bool bands = streams == 0 && n > 1;
    schedule->base = bands ? STREAMS_WHOLE : 0;
    schedule->streams = bands ? STREAMS_BANDS : streams == 0 ? STREAMS_WHOLE : streams;
    schedule->rotates = !bands;
    schedule->frame_streams = bands || n > schedule->streams ? schedule->streams : n;
    for (int i = 0; i < n; i++) {
        struct slice *slice = &schedule->slice[i];
        const int own = i % schedule->streams;
        slice->up = bands ? 0 : own;
        slice->kernel = bands ? 1 : own;
        slice->download = bands ? 2 : own;
    }
}

// --- steps

// Returns the slice that contains source row `row`, or the last one.
static int slice_with(const struct schedule *schedule, int row)
{
    int i = 0;
    while (i < schedule->slices - 1 && schedule->slice[i].rows.y1 <= row)
        i++;
    return i;
}

struct run {
    struct step step;
    int slice;
    int kind, batch; // runs with equal kind and batch share a launch
};

// Finds the runs of output rows that the same slice completes. Returns their number.
static int runs_of(struct run *runs, const struct schedule *schedule, const struct image *src,
                   const struct op *op, int index)
{
    int n = 0, need = schedule->slice[0].rows.y0 + 1;
    if (schedule->slices == 1) {
        runs[0] = (struct run){{index, {0, op->dst.height}}, 0, op->kind, op->batch};
        return 1;
    }
    for (int y = 0; y < op->dst.height; y += 2) {
        need = need_of(op, src, y, need);
        const int slice = slice_with(schedule, need - 1);
        if (n == 0 || runs[n - 1].slice != slice)
            runs[n++] = (struct run){{index, {y, y}}, slice, op->kind, op->batch};
        runs[n - 1].step.out.y1 = pair_at(op, y).y1;
    }
    return n;
}

static int by_slice(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    if (x->slice != y->slice)
        return x->slice - y->slice;
    if (x->kind != y->kind)
        return x->kind - y->kind;
    if (x->batch != y->batch)
        return x->batch - y->batch;
    if (x->step.op != y->step.op)
        return x->step.op - y->step.op;
    return x->step.out.y0 - y->step.out.y0;
}

static void add_step(struct schedule *schedule, const struct run *run, const struct image *src,
                     const struct op *op)
{
    struct slice *slice = &schedule->slice[run->slice];
    const struct band rows = rows_for(op, src, run->step.out);
    if (rows.y0 < rows.y1) {
        const int from = slice_with(schedule, rows.y0);
        slice->from = from < slice->from ? from : slice->from;
    }
    schedule->step[schedule->steps++] = run->step;
    slice->end = schedule->steps;
}

// Adds one whole step for each op.
static void add_whole(struct schedule *schedule, struct run *runs, const struct op *const ops[],
                      int n)
{
    for (int i = 0; i < n; i++)
        runs[i] = (struct run){{i, {0, ops[i]->dst.height}}, 0, ops[i]->kind, ops[i]->batch};
    qsort(runs, n, sizeof(*runs), by_slice);
    schedule->whole = schedule->slice[0];
    schedule->whole.first = schedule->steps;
    schedule->whole.end = schedule->steps + n;
    for (int i = 0; i < n; i++)
        schedule->step[schedule->steps + i] = runs[i].step;
}

static int steps_init(struct schedule *schedule, const struct image *src,
                      const struct op *const ops[], int n)
{
    // A step per slice and op, and one for rows that read nothing above an upside-down picture.
    const size_t most = (size_t)n * (schedule->slices + 1);
    struct run *runs = calloc(most, sizeof(*runs));
    schedule->step = calloc(most + n, sizeof(*schedule->step));
    int count = 0, slice = 0;
    if (runs && schedule->step) {
        for (int i = 0; i < n; i++)
            count += runs_of(runs + count, schedule, src, ops[i], i);
        qsort(runs, count, sizeof(*runs), by_slice);
        for (int i = 0; i < count; i++) {
            for (; slice <= runs[i].slice; slice++)
                schedule->slice[slice].first = schedule->slice[slice].end = schedule->steps;
            add_step(schedule, &runs[i], src, ops[runs[i].step.op]);
        }
        add_whole(schedule, runs, ops, n);
    }
    free(runs);
    return count > 0 ? 0 : -ENOMEM;
}

int schedule_init(struct schedule *schedule, const struct image *src, const struct op *const ops[],
                  int n, const struct schedule_options *options)
{
    struct band bands[BANDS_MAX];
    *schedule = (struct schedule){0};
    const int slices = cut(bands, src, ops, n, options);
    if (slices < 0)
        return slices;
    schedule->slices = slices;
    for (int i = 0; i < slices; i++) {
        schedule->slice[i].rows = bands[i];
        schedule->slice[i].from = i;
    }
    streams_init(schedule, options->streams);
    const int error = steps_init(schedule, src, ops, n);
    if (error)
        schedule_finish(schedule);
    return error;
}

void schedule_finish(struct schedule *schedule)
{
    free(schedule->step);
    *schedule = (struct schedule){0};
}
