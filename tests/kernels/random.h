// Random numbers for tests of kernels, and the number of cases.
#ifndef FRAMED_TESTS_KERNELS_RANDOM_H
#define FRAMED_TESTS_KERNELS_RANDOM_H

#include <stdint.h>
#include <stdlib.h>

struct random {
    uint64_t state;
};

static inline uint64_t random_next(struct random *random) // splitmix64
{
    uint64_t x = random->state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static inline int random_in(struct random *random, int lo, int hi) // both ends included
{
    return lo + (int)(random_next(random) % (uint64_t)(hi - lo + 1));
}

static inline struct random random_from(int argc, char **argv)
{
    return (struct random){argc > 1 ? strtoull(argv[1], NULL, 0) : 20240229};
}

// Returns the number of cases: CASES from the environment, to run fewer or more than usual.
static inline long cases_from(long usual)
{
    const char *cases = getenv("CASES");
    return cases ? strtol(cases, NULL, 0) : usual;
}

enum { UNTOUCHED = 0x5a }; // initial bytes of memory

#endif
