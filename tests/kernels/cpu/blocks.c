// Tests CUDA's kernels of statistics and motion on the host against the references, CASES (from the
// environment) of each. tests/kernels/cuda/statistics.cu and motion.cu test them on a GPU.
//
// usage: blocks [SEED]    runs one case alone, with the seed that a failed case prints
#include "tests/kernels/motion_cases.h"
#include "tests/kernels/statistics_cases.h"
#include "tests/test.h"

enum { CASES = 40, STEPS = 30, CELLS = STATISTICS_CELLS_MAX * STATISTICS_CELLS_MAX };

// Only defined if the compiler takes C++: kernels.mk.
__attribute__((weak)) bool statistics_on_host(const struct statistics *, const struct image *,
                                              bool many, struct luma_statistics *, uint32_t *cells);
__attribute__((weak)) void motion_on_host(const struct motion *const[2],
                                          struct motion_state *const[2], const uint32_t *const[2],
                                          struct motion_changes *const[2], int blocks);

// --- statistics

static bool check_statistics(uint64_t seed)
{
    static uint32_t cells[CELLS];
    struct random random = {seed};
    struct statistics_case c;
    struct luma_statistics found;
    const bool many = one_in(&random, 2);
    const enum pixel_format format = one_in(&random, 2) ? PIXEL_NV12 : source_random(&random);
    case_init(&c, format, one_in(&random, 2), &random);
    const struct statistics *s = &c.statistics;
    const bool same = statistics_on_host(s, &c.image, many, &found, cells);
    const bool equal = luma_statistics_equal(&found, &c.expected);
    const bool cells_equal =
        memcmp(cells, c.cells, (size_t)(s->columns * s->rows) * sizeof *cells) == 0;
    CHECK(same && equal && cells_equal,
          "again: tests/kernels/cpu/blocks 0x%llx: %s %dx%d, %dx%d cells: %d %d %d; sum %llu not "
          "%llu, squares %llu not %llu, laplacian %llu not %llu",
          (unsigned long long)seed, pixel_format_name(format), s->width, s->height, s->columns,
          s->rows, same, equal, cells_equal, (unsigned long long)found.sum,
          (unsigned long long)c.expected.sum, (unsigned long long)found.squares,
          (unsigned long long)c.expected.squares, (unsigned long long)found.laplacian,
          (unsigned long long)c.expected.laplacian);
    case_finish(&c);
    return same && equal && cells_equal;
}

static void test_statistics(int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    const long cases = argc > 1 ? 1 : cases_from(CASES);
    int failures = 0;
    if (!statistics_on_host) {
        SKIP("no compiler for C++");
        return;
    }
    for (long i = 0; i < cases && failures < 5; i++)
        failures += !check_statistics(argc > 1 ? random.state : random_next(&random));
}

// --- motion

static long seen_cells, seen_light, seen_jumps;

static bool check_step(struct motion_case c[2], struct motion_state *const state[2],
                       struct motion_changes *const changes[2], int blocks, uint64_t seed)
{
    const struct motion *const motion[2] = {&c[0].motion, &c[1].motion};
    const uint32_t *const sums[2] = {c[0].sums, c[1].sums};
    bool good = true;
    for (int i = 0; i < 2; i++)
        motion_case_step(&c[i]);
    motion_on_host(motion, state, sums, changes, blocks);
    for (int i = 0; i < 2; i++) {
        const bool same = motion_changes_equal(c[i].changes, changes[i]);
        const bool state_same = !memcmp(state[i], c[i].state, motion_state_bytes(motion[i]));
        CHECK(same && state_same,
              "again: tests/kernels/cpu/blocks 0x%llx: camera %d, step %d, %d x %d: %s; %u cells, "
              "not %u; gains %d %d, not %d %d, shifts %d %d, not %d %d",
              (unsigned long long)seed, i, c[i].steps, motion[i]->columns, motion[i]->rows,
              same ? "state" : "changes", changes[i]->count, c[i].changes->count,
              changes[i]->slow.gain, changes[i]->fast.gain, c[i].changes->slow.gain,
              c[i].changes->fast.gain, changes[i]->slow.shift, changes[i]->fast.shift,
              c[i].changes->slow.shift, c[i].changes->fast.shift);
        seen_cells += changes[i]->count;
        seen_light += !!(changes[i]->flags & MOTION_LIGHT);
        seen_jumps += !!(changes[i]->flags & MOTION_JUMP);
        good &= same && state_same;
    }
    return good;
}

static bool check_motion(uint64_t seed)
{
    const int blocks = 1 + (int)(seed % 3);
    static struct motion_case c[2];
    struct motion_state *state[2];
    struct motion_changes *changes[2];
    bool good = true;
    for (int i = 0; i < 2; i++) {
        motion_case_init(&c[i], seed + (uint64_t)i);
        state[i] = motion_memory(motion_state_bytes(&c[i].motion));
        memset(state[i], 0, motion_state_bytes(&c[i].motion));
        changes[i] = motion_memory(motion_changes_bytes(&c[i].motion));
    }
    for (int step = 0; step < STEPS && good; step++)
        good = check_step(c, state, changes, blocks, seed);
    for (int i = 0; i < 2; i++) {
        motion_case_finish(&c[i]);
        free(state[i]);
        free(changes[i]);
    }
    return good;
}

static void test_motion(int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    const long cases = argc > 1 ? 1 : cases_from(CASES) / 4;
    bool good = true;
    if (!motion_on_host) {
        SKIP("no compiler for C++");
        return;
    }
    for (long i = 0; i < cases && good; i++)
        good = check_motion(argc > 1 ? random.state : random_next(&random));
    CHECK(cases < CASES / 4 || (seen_cells > 1000 && seen_light > 20 && seen_jumps > 5),
          "too little: %ld cells, %ld lights, %ld jumps", seen_cells, seen_light, seen_jumps);
}

int main(int argc, char **argv)
{
    TEST(test_statistics(argc, argv));
    TEST(test_motion(argc, argv));
    return test_end();
}
