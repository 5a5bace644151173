// Sets of the box's processors, and the threads that run on one of them. Thread-safe.
#ifndef FRAMED_KERNELS_PROCESSORS_H
#define FRAMED_KERNELS_PROCESSORS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PROCESSORS_MAX = 1024 };

struct processors {
    uint64_t bits[PROCESSORS_MAX / 64];
};

// Where the cpu backend's workers run.
enum pinning {
    PINNING_NONE, // wherever the system puts them
    PINNING_AUTO, // each on a processor of its own, where there are as many as workers
    PINNING_LIST, // on those of a list in turn, as far as they are allowed
};
struct pin {
    enum pinning how;
    struct processors list;
};

// Those that the calling thread may use: its affinity, which a cgroup's cpuset limits too.
struct processors processors_allowed(void);
struct processors processors_both(const struct processors *, const struct processors *);
int processors_count(const struct processors *);
void processors_add(struct processors *, int processor);
int processors_next(const struct processors *, int from); // the first from `from` on, or -1

// Keeps the calling thread on one. False: it may not run there.
bool processors_keep(int processor);

#ifdef __cplusplus
}
#endif
#endif
