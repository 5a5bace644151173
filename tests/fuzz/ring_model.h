// A ring's results and clients beside a model of them, which follows every message.
#ifndef FRAMED_TESTS_FUZZ_RING_MODEL_H
#define FRAMED_TESTS_FUZZ_RING_MODEL_H

#include "daemon/output/sink.h"

enum { CLIENTS_MAX = 8, SLOTS_MIN = 3, SLOTS_MAX = 6, RETURNS_MAX = 256 };

struct client {
    int fd;                          // -1: it closed
    int holder;                      // its own number; -1: the sink has let it go
    const struct consumer *consumer; // of the pool; may be gone where the sink has let it go
    bool ended; // the sink lets it go when it comes to it, and what it sends counts no more
    bool deaf;  // it takes no more: a frame may end it
};

// A result as it is to be when the loop has come to rest.
struct expected {
    uint64_t ticket; // 0: it is free
    uint64_t holders;
    bool delivered, unsure; // of `delivered`
};

struct rig {
    uv_loop_t loop;
    struct ledger ledger;
    struct pool *pool;
    struct results *results;
    struct sink *sink;
    struct output_config config;
    struct client client[CLIENTS_MAX];
    int n, current;
    struct expected slot[SLOTS_MAX];
    uint64_t ordinal;
    char path[64];
};

// The client's among a result's holders.
uint64_t model_bit(const struct client *);
// To whom the result is lent.
uint64_t model_holders(const struct rig *, const struct result *);
// The client ends, and keeps its number until the loop turns.
void model_end(struct rig *, struct client *);
// The socket took its message.
void model_message(struct rig *, struct client *, const char *bytes, size_t size);
// Takes over what is, after what the model does not follow: frames, and who is told of them.
void model_look(struct rig *);
// Whether some client has not been told of all, or there is none.
bool model_is_behind(const struct rig *);
bool model_was_dropped(const struct client *); // by the sink
// Turns the loop until it rests; then the slots must be what the model says.
void model_rest(struct rig *);

#endif
