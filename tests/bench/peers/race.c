#include "tests/bench/peers/race.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/versions.h"
#include "tests/bench/peers/times.h"

enum {
    CONTESTANTS_MAX = 16,
    RESULT_BYTES_MAX = CLIP_WIDTH * CLIP_HEIGHT * 3,
    HOT_ROUNDS = 21,
    HOT_WARM = 5, // runs that fill the caches, which other processes empty meanwhile
    HOT_REPEATS = 5,
    COLD_ROUNDS = 3, // passes through all frames
};
_Static_assert(TIMES_MAX >= COLD_ROUNDS * CLIP_FRAMES && TIMES_MAX >= HOT_ROUNDS * HOT_REPEATS,
               "every time is kept");
static const double FAR = 4; // mean difference in levels that indicates another job

struct contestant {
    const char *name, *does;
    const struct version *version; // ours, or
    const struct peer *peer;       // a library's
    void *own;                     // state of the peer
    struct times times;
};

struct field {
    const struct row *row;
    const struct clip *clip;
    struct race *race;
    struct op op;
    uint8_t *reference; // result for the first frame
    struct contestant *contestant;
    int n;
};

int race_open(struct race *race)
{
    *race = (struct race){0};
    for (int i = 0; i < RACE_RESULTS; i++) {
        race->result[i] = aligned_alloc(4096, (RESULT_BYTES_MAX + 4095) / 4096 * 4096);
        if (!race->result[i])
            return -ENOMEM;
        memset(race->result[i], 1, RESULT_BYTES_MAX);
    }
    return 0;
}

void race_close(struct race *race)
{
    for (int i = 0; i < RACE_RESULTS; i++)
        free(race->result[i]);
}

// --- contestants

static void compute(const struct version *version, const struct op *op, const struct image *src,
                    uint8_t *to, bool filled)
{
    struct image dst;
    op_lay_out(op, &dst, to);
    const struct band all = {0, dst.height};
    version->run[op->kind](&dst, src, op, all, filled);
}

static void add(struct field *field, const struct contestant *contestant)
{
    field->contestant[field->n++] = *contestant;
}

static int gather(struct field *field)
{
    static const struct peer *const peers[] = {&memory_peer, &copy_peer, &libyuv_peer,
                                               &swscale_peer, &opencv_peer};
    field->contestant = calloc(CONTESTANTS_MAX, sizeof *field->contestant);
    if (!field->contestant)
        return -ENOMEM;
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
        struct contestant peer = {.name = peers[i]->name, .peer = peers[i]};
        peer.own = peers[i]->open(&field->op, &field->clip->frame[0], &peer.does);
        if (peer.own)
            add(field, &peer);
    }
    for (int i = 0; versions[i]; i++)
        if (versions[i]->runs())
            add(field, &(struct contestant){
                           .name = versions[i]->name, .version = versions[i], .does = "framed"});
    return 0;
}

static void dismiss(struct field *field)
{
    for (int i = 0; i < field->n; i++)
        if (field->contestant[i].peer)
            field->contestant[i].peer->close(field->contestant[i].own);
    free(field->contestant);
    free(field->reference);
    op_finish(&field->op);
}

// Runs with the fill already in place, as in a reused slot. A peer that writes the fill anyway does
// so in real use too.
static void run(const struct field *field, const struct contestant *who, const struct image *src,
                uint8_t *to)
{
    if (who->version)
        compute(who->version, &field->op, src, to, true);
    else
        who->peer->run(who->own, src, to);
}

// --- results

static void fill(const struct op *op, uint8_t *to)
{
    memset(to, 114, op->dst_bytes);
    if (op->kind == OP_WARP && op->warp.dtype == DTYPE_F32)
        for (size_t i = 0; i < op->dst_bytes / sizeof(float); i++)
            ((float *)to)[i] = 114 / 255.f;
}

static double mean_difference(const struct op *op, const uint8_t *a, const uint8_t *b)
{
    const bool floats = op->kind == OP_WARP && op->warp.dtype == DTYPE_F32;
    const size_t n = op->dst_bytes / (floats ? sizeof(float) : 1);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum +=
            floats ? fabs(((const float *)a)[i] - ((const float *)b)[i]) * 255 : abs(a[i] - b[i]);
    return sum / (double)n;
}

// Our result must be the reference's bytes; a library's must be recognisable as the same job.
static void judge(struct field *field, const struct contestant *who)
{
    uint8_t *to = field->race->result[0];
    if (who->peer && !who->peer->result)
        return;
    fill(&field->op, to);
    if (who->version)
        compute(who->version, &field->op, &field->clip->frame[1], to, false);
    run(field, who, &field->clip->frame[0], to);
    const double difference = mean_difference(&field->op, to, field->reference);
    if (who->version && memcmp(to, field->reference, field->op.dst_bytes) != 0)
        printf("    WRONG: %s does not give the reference's bytes\n", who->name);
    else if (difference > FAR || isnan(difference))
        printf("    WRONG: %s does another job: %.2f levels apart\n", who->name, difference);
    else
        return;
    field->race->wrong++;
}

static int check(struct field *field)
{
    field->reference = malloc(field->op.dst_bytes);
    if (!field->reference)
        return -ENOMEM;
    compute(version_find("scalar"), &field->op, &field->clip->frame[0], field->reference, false);
    for (int i = 0; i < field->n; i++)
        judge(field, &field->contestant[i]);
    return 0;
}

// --- times

// Measures this thread's processor time: other processes on the processor do not count.
static void take_time(const struct field *field, struct contestant *who, int frame, int result)
{
    const double start = clock_ms(CLOCK_THREAD_CPUTIME_ID);
    run(field, who, &field->clip->frame[frame], field->race->result[result]);
    who->times.ms[who->times.n++] = clock_ms(CLOCK_THREAD_CPUTIME_ID) - start;
}

static void take_turn(const struct field *field, struct contestant *who)
{
    if (!field->row->cold) {
        for (int i = 0; i < HOT_WARM; i++)
            run(field, who, &field->clip->frame[0], field->race->result[0]);
        for (int i = 0; i < HOT_REPEATS; i++)
            take_time(field, who, 0, 0);
        return;
    }
    for (int i = 0; i < CLIP_FRAMES; i++)
        take_time(field, who, i, i % RACE_RESULTS);
}

// Takes turns, so that other load on the machine affects all contestants.
static void time_all(struct field *field)
{
    const int rounds = field->row->cold ? COLD_ROUNDS : HOT_ROUNDS;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < field->n; i++)
            take_turn(field, &field->contestant[(i + round) % field->n]);
}

// --- printing

static double goal_of(const struct row *row, const struct contestant *who)
{
    return !who->version                      ? 0
           : strcmp(who->name, "avx512") == 0 ? row->goal.avx512
           : strcmp(who->name, "avx2") == 0   ? row->goal.avx2
                                              : 0;
}

static void print(struct race *race, const struct row *row, const struct contestant *who,
                  const struct contestant *limit)
{
    const struct times *own = &who->times, *least = &limit->times;
    const double ratio = own->median / least->median, goal = goal_of(row, who);
    printf("    %-8s %9.4f %9.4f %9.3f x %8.3f x", who->name, own->median, own->min, ratio,
           own->min / least->min);
    race->goals += goal > 0;
    race->reached += goal > 0 && ratio <= goal;
    if (goal > 0)
        printf("  %s %.2f %-7s", "<=", goal, ratio <= goal ? "reached" : "MISSED");
    else
        printf("  %-15s", who == limit ? "the limit" : "");
    printf(" %s\n", who->does);
}

static void print_all(const struct field *field)
{
    const struct contestant *limit = NULL;
    for (int i = 0; i < field->n; i++) {
        times_sum_up(&field->contestant[i].times);
        if (strcmp(field->contestant[i].name, field->row->limit) == 0)
            limit = &field->contestant[i];
    }
    for (int i = 0; limit && i < field->n; i++)
        print(field->race, field->row, &field->contestant[i], limit);
    fflush(stdout);
}

int race_run(struct race *race, const struct row *row, const struct clip *clip)
{
    struct field field = {.row = row, .clip = clip, .race = race};
    int rc = op_init(&field.op, &row->params, &clip->frame[0]);
    if (rc < 0)
        return rc;
    printf("%s\n", row->name);
    rc = gather(&field);
    if (rc == 0)
        rc = check(&field);
    if (rc == 0) {
        time_all(&field);
        print_all(&field);
    }
    dismiss(&field);
    return rc;
}
