// One job done by every contestant in turns on one core: all versions of our kernels that run here,
// the libraries, and the memory's own speed.
#ifndef FRAMED_TESTS_BENCH_PEERS_RACE_H
#define FRAMED_TESTS_BENCH_PEERS_RACE_H

#include "tests/bench/peers/clip.h"
#include "tests/bench/peers/peer.h"

enum { RACE_RESULTS = 32 };

struct row {
    char name[64];
    struct op_params params;
    enum pixel_format source;
    bool cold;         // all frames and results are out of the caches; else all are in them
    const char *limit; // name of the peer or version that the others are compared with
    struct goal {
        double avx512, avx2; // highest accepted share of the limit's time; 0: no goal
    } goal;
};

struct race {
    uint8_t *result[RACE_RESULTS]; // each has room for any result
    int reached, goals;
    int wrong; // results that differ from the reference or, for a library, belong to another job
};

int race_open(struct race *); // 0 or -ENOMEM; call race_close after either
void race_close(struct race *);
// Runs a row and prints it. Returns 0 or a negative errno.
int race_run(struct race *, const struct row *, const struct clip *);

#endif
