// Sets of the box's processors, and the threads that run on one of them. Thread-safe.
#ifndef FRAMED_KERNELS_PROCESSORS_H
#define FRAMED_KERNELS_PROCESSORS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PROCESSORS_MAX = 1024,
    PROCESSORS_TEXT = 3072, // bytes that the text of any set fits in
};

struct processors {
    uint64_t bits[PROCESSORS_MAX / 64];
};

// Where the cpu backend's workers run.
enum pinning {
    PINNING_NONE, // wherever the system puts them
    PINNING_AUTO, // each on a processor of its own, where there are as many as workers
    // On those of a list in turn, as far as they are allowed; wherever the system puts them where
    // none is.
    PINNING_LIST,
};
struct pin {
    enum pinning how;
    struct processors list;
};

// Those that the calling thread may use: its affinity, which a cgroup's cpuset limits too.
struct processors processors_allowed(void);
struct processors processors_both(const struct processors *, const struct processors *);
struct processors processors_without(const struct processors *, const struct processors *gone);
int processors_count(const struct processors *);
void processors_add(struct processors *, int processor);
int processors_next(const struct processors *, int from); // the first from `from` on, or -1
const char *processors_text(const struct processors *, char to[PROCESSORS_TEXT]); // "0-3,8"

// Keeps the calling thread on one. False: it may not run there.
bool processors_keep(int processor);

#ifdef __cplusplus
}
#endif
#endif
