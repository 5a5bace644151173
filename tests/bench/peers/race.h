// One job done by all that can do it, in turns on one core: every version of our kernels that runs
// here, the libraries, and the memory's own speed.
#ifndef FRAMED_TESTS_BENCH_PEERS_RACE_H
#define FRAMED_TESTS_BENCH_PEERS_RACE_H

#include "tests/bench/peers/clip.h"
#include "tests/bench/peers/peer.h"

enum { RACE_RESULTS = 32 };

struct row {
    char name[64];
    struct op_params params;
    enum pixel_format source;
    bool cold;         // every frame and result was out of the caches; else all lies in them
    const char *limit; // who the others are compared with: a peer's name, or a version's
    struct goal {
        double avx512, avx2; // most of the limit's time that is to be taken; 0: no matter
    } goal;
};

struct race {
    uint8_t *result[RACE_RESULTS]; // room for any result each
    int reached, goals;
    int wrong; // results that are not the reference's, or a library's that is another job's
};

int race_open(struct race *); // 0 or -ENOMEM; race_close after either
void race_close(struct race *);
// Runs a row and prints it. 0 or negative errno.
int race_run(struct race *, const struct row *, const struct clip *);

#endif
