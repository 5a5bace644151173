// The simulation steps from event to event. The two directions of the link slow each other down, so
// their rates change when either starts or ends; a kernel's time depends on nothing else.
#include "kernels/bands.h"

#include <math.h>

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
