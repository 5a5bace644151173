// Results and clients of a ring, next to a model of them that follows every message.
#ifndef FRAMED_TESTS_FUZZ_RING_MODEL_H
#define FRAMED_TESTS_FUZZ_RING_MODEL_H

#include "daemon/output/sink.h"

enum { CLIENTS_MAX = 8, SLOTS_MIN = 3, SLOTS_MAX = 6, RETURNS_MAX = 256 };

struct client {
    int fd;                          // -1: closed
    int holder;                      // its own number; -1: dropped by the sink
    const struct consumer *consumer; // of the pool; may be gone if the sink dropped it
    bool ended;                      // the sink will drop it, and ignores its messages
    bool deaf;                       // it receives no more: a frame may end it
};

// A result's expected state when the loop is idle.
struct expected {
    uint64_t ticket; // 0: free
    uint64_t holders;
    bool delivered, unsure; // unsure: `delivered` may differ
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

// Returns the client's bit in a result's holders.
uint64_t model_bit(const struct client *);
// Returns the clients that hold the result.
uint64_t model_holders(const struct rig *, const struct result *);
// Ends the client, which keeps its number until the loop runs.
void model_end(struct rig *, struct client *);
// The socket has accepted its message.
void model_message(struct rig *, struct client *, const char *bytes, size_t size);
// Copies the real state, after events that the model does not follow: frames, and their receivers.
void model_look(struct rig *);
// True if some client has not been told of all frames, or there is none.
bool model_is_behind(const struct rig *);
bool model_was_dropped(const struct client *); // by the sink
// Runs the loop until it is idle, then compares the slots with the model.
void model_rest(struct rig *);

#endif
