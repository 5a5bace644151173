// Batches for the tests of sinks: results of several items, some of them holes, as output/batch.c
// makes them; and the batches that a consumer reads.
#ifndef FRAMED_TESTS_DAEMON_OUTPUT_BATCHES_H
#define FRAMED_TESTS_DAEMON_OUTPUT_BATCHES_H

#include "daemon/output/pool.h"
#include "tests/daemon/output/fixture.h"

// Prepares a rig for batches of `capacity` elements; rig_open follows.
static inline void rig_init_batches(struct rig *rig, enum sink_kind kind, const char *name,
                                    int capacity)
{
    rig_init(rig, kind, name);
    rig->config.is_batch = true;
    rig->config.capacity = capacity;
}

// Called with the pool's lock. Returns NULL without room.
static inline struct result *rig_begin_batch(struct rig *rig)
{
    const struct pool_request request = {.size = (size_t)rig->width * (size_t)rig->height,
                                         .items = rig->config.capacity};
    const size_t size = request.size * (size_t)request.items;
    int64_t opening_ns = 0;
    while (!pool_region_fits(rig->pool, size))
        CHECK(pool_open_region(rig->pool, size, &opening_ns) == 0, "no memory");
    struct result *result = pool_find_room(rig->pool, rig->config.overflow != OVERFLOW_WAIT);
    if (result)
        pool_begin_result(rig->pool, result, &request);
    return result;
}

// Offers a batch. Bit i of `claimed`: element i takes the frame with the next ordinal; bit i of
// `failed`: its job fails. The batch has number rig->batches, even if there is no room.
static inline void rig_feed_batch(struct rig *rig, unsigned claimed, unsigned failed)
{
    const uint64_t number = rig->batches++;
    pthread_mutex_lock(&rig->pool->lock);
    struct result *result = rig_begin_batch(rig);
    for (int i = 0; i < rig->config.capacity; i++) {
        if (!(claimed >> i & 1))
            continue;
        ledger_offer(&rig->ledger);
        if (result)
            pool_claim_items(result, i, 1, &rig->ledger);
        else
            ledger_lose(&rig->ledger, LOSS_OVERFLOW);
    }
    pthread_mutex_unlock(&rig->pool->lock);
    if (!result)
        return;
    rig_describe(rig, result);
    for (int i = 0; i < rig->config.capacity; i++) {
        if (!(claimed >> i & 1))
            continue;
        rig_fill(rig, result, i, rig->ordinal++);
        result->item[i].part = 0;
        result->item[i].parts = 1;
        pool_complete(rig->pool, result, i, 1, failed >> i & 1 ? -EIO : 0);
    }
    pthread_mutex_lock(&rig->pool->lock);
    result->closed_by = CLOSED_WAIT;
    result->opened_ns = 1000 + (int64_t)number;
    result->closed_ns = 2000 + (int64_t)number;
    result->batch_sequence = number;
    pool_seal(rig->pool, result);
    pthread_mutex_unlock(&rig->pool->lock);
}

// A batch as received by a consumer.
struct got_batch {
    struct framed_batch batch;
    const struct framed_element_header *header;
    const uint8_t *payload;
};

static inline void expect_element(const struct got_batch *got, int i, bool filled, uint64_t ordinal)
{
    const struct framed_element_header *h = &got->header[i];
    const size_t size = got->batch.element_bytes;
    size_t wrong = 0;
    CHECK(memcmp(h->header.magic, FRAMED_MAGIC, 4) == 0 && h->header.header_bytes == sizeof *h &&
              h->header.batch_index == (uint32_t)i && h->header.payload_bytes == size &&
              h->header.plane_offset[0] == (uint64_t)i * size && h->header.planes == 1 &&
              strcmp(h->header.output, "detector") == 0,
          "the shape of element %d", i);
    CHECK(((h->header.flags & FRAMED_FLAG_EMPTY) != 0) != filled, "element %d: flags %x", i,
          h->header.flags);
    if (!filled) {
        CHECK(h->header.sequence == 0 && h->header.camera[0] == 0 && h->parts == 0,
              "a hole has what was there before");
        return;
    }
    CHECK(h->header.sequence == ordinal && h->parent_sequence == ordinal && h->parts == 1 &&
              strcmp(h->header.camera, "gate") == 0 && h->header.source_width == 4,
          "element %d: frame %d instead of %d", i, (int)h->header.sequence, (int)ordinal);
    for (size_t k = 0; k < size; k++)
        wrong += got->payload[(size_t)i * size + k] != sample(ordinal, k);
    CHECK(wrong == 0, "element %d: %zu bytes are wrong", i, wrong);
}

// `claimed` and `failed` as in rig_feed_batch; the first frame had the ordinal `first`. Checks
// every header and every byte.
static inline void expect_batch(const struct got_batch *got, uint64_t sequence, uint64_t lost,
                                int count, unsigned claimed, unsigned failed, uint64_t first)
{
    const struct framed_batch *batch = &got->batch;
    const unsigned filled = claimed & ~failed;
    CHECK(memcmp(batch->magic, FRAMED_BATCH_MAGIC, 4) == 0 && batch->version == FRAMED_VERSION &&
              batch->bytes == sizeof *batch &&
              batch->header_bytes == sizeof(struct framed_element_header),
          "no batch");
    CHECK(batch->sequence == sequence && batch->lost == lost, "batch %d lost %d instead of %d, %d",
          (int)batch->sequence, (int)batch->lost, (int)sequence, (int)lost);
    CHECK(batch->count == (uint32_t)count &&
              batch->elements == (uint32_t)__builtin_popcount(filled) &&
              batch->payload_bytes == batch->element_bytes * (uint64_t)count,
          "%d elements, %d filled", (int)batch->count, (int)batch->elements);
    CHECK(batch->closed_by == FRAMED_CLOSED_WAIT && batch->opened_ns == 1000 + (int64_t)sequence &&
              batch->closed_ns == 2000 + (int64_t)sequence && batch->finished_ns > 0,
          "how it was closed");
    for (int i = 0; i < (int)batch->count && i < count; i++) {
        const unsigned before = claimed & ((1u << i) - 1);
        expect_element(got, i, filled >> i & 1, first + (uint64_t)__builtin_popcount(before));
    }
}

#endif
