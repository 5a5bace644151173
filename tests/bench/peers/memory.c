#include <stdlib.h>
#include <string.h>

#include "tests/bench/peers/peer.h"

struct floor {
    size_t source_bytes, result_bytes;
    uint8_t *copy; // a copy of the frame
};

static void close_memory(void *opaque)
{
    struct floor *memory = opaque;
    free(memory->copy);
    free(memory);
}

static void *open_memory(const struct op *op, const struct image *src, const char **does)
{
    struct floor *memory = calloc(1, sizeof *memory);
    struct image shape = *src;
    if (!memory)
        return NULL;
    memory->source_bytes = image_lay_out(&shape, NULL);
    memory->result_bytes = op->dst_bytes;
    memory->copy = malloc(memory->source_bytes);
    if (!memory->copy) {
        close_memory(memory);
        return NULL;
    }
    memset(memory->copy, 1, memory->source_bytes);
    *does = "memcpy of the frame + memset of the result";
    return memory;
}

static void run_memory(void *opaque, const struct image *src, uint8_t *to)
{
    const struct floor *memory = opaque;
    memcpy(memory->copy, src->plane[0].data, memory->source_bytes);
    memset(to, 1, memory->result_bytes);
}

// Only for OP_YUV: the result is no larger than the source it is copied from.
static void *open_copy(const struct op *op, const struct image *src, const char **does)
{
    struct floor *memory = op->kind == OP_YUV ? open_memory(op, src, does) : NULL;
    *does = "memcpy of the result's size";
    return memory;
}

static void run_copy(void *opaque, const struct image *src, uint8_t *to)
{
    const struct floor *memory = opaque;
    memcpy(to, src->plane[0].data, memory->result_bytes);
}

const struct peer memory_peer = {"memory", open_memory, run_memory, close_memory, false};
const struct peer copy_peer = {"copy", open_copy, run_copy, close_memory, false};
