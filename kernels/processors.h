// Sets of the machine's processors, and pinning of threads. Thread-safe.
#ifndef FRAMED_KERNELS_PROCESSORS_H
#define FRAMED_KERNELS_PROCESSORS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PROCESSORS_MAX = 1024,
    PROCESSORS_TEXT = 3072, // bytes, enough for the text of any set
};

struct processors {
    uint64_t bits[PROCESSORS_MAX / 64];
};

// Where the cpu backend's workers run.
enum pinning {
    PINNING_NONE, // anywhere
    PINNING_AUTO, // each on its own processor, if there are enough for all workers
    // In turn on the allowed processors of a list; anywhere if none is allowed.
    PINNING_LIST,
};
struct pin {
    enum pinning how;
    struct processors list;
};

// Processors that the calling thread may use: its affinity, which a cgroup's cpuset limits, too.
struct processors processors_allowed(void);
struct processors processors_both(const struct processors *, const struct processors *);
struct processors processors_without(const struct processors *, const struct processors *gone);
int processors_count(const struct processors *);
void processors_add(struct processors *, int processor);
int processors_next(const struct processors *, int from); // the first from `from` on, or -1
const char *processors_text(const struct processors *, char to[PROCESSORS_TEXT]); // "0-3,8"

// Pins the calling thread to one processor. Returns false if it may not run there.
bool processors_keep(int processor);

#ifdef __cplusplus
}
#endif
#endif
