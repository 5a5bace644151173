#include "tests/fuzz/ring_model.h"

#include <endian.h>
#include <poll.h>
#include <string.h>

#include "daemon/output/server.h"
#include "daemon/wire.h"
#include "tests/fuzz/turns.h"

// --- the expected state

uint64_t model_bit(const struct client *client)
{
    return UINT64_C(1) << client->holder;
}

void model_end(struct rig *rig, struct client *client)
{
    for (int i = 0; i < rig->config.slots; i++)
        rig->slot[i].holders &= ~model_bit(client);
    client->ended = true;
}

// Returns false if the return is invalid.
static bool model_return(struct rig *rig, const struct client *client,
                         const struct framed_ring_return *returned)
{
    uint32_t number = le32toh(returned->slot);
    if (number >= (uint32_t)rig->config.slots || returned->reserved != 0)
        return false;
    struct expected *slot = &rig->slot[number];
    if (client->ended) { // later messages of an ended client may still be read
        slot->unsure = true;
    } else if (slot->ticket == le64toh(returned->ticket) && (slot->holders & model_bit(client))) {
        slot->holders &= ~model_bit(client);
        slot->delivered = true;
    }
    return true;
}

// A result returns one slot or none.
static bool model_result(struct rig *rig, const struct client *client, const char *bytes,
                         size_t size)
{
    struct framed_ring_result result;
    if (size < sizeof result || memcmp(bytes, FRAMED_RING_RESULT_MAGIC, 4) != 0)
        return false;
    memcpy(&result, bytes, sizeof result);
    const struct framed_ring_return returned = {.slot = result.slot, .ticket = result.ticket};
    if (le16toh(result.flags) & FRAMED_RESULT_RETURN)
        model_return(rig, client, &returned);
    return true;
}

void model_message(struct rig *rig, struct client *client, const char *bytes, size_t size)
{
    struct framed_ring_return returned;
    if (model_result(rig, client, bytes, size))
        return;
    bool right = size > 0 && size % sizeof returned == 0 && size <= RETURNS_MAX * sizeof returned;
    for (size_t i = 0; right && i < size; i += sizeof returned) {
        memcpy(&returned, bytes + i, sizeof returned);
        right = model_return(rig, client, &returned);
    }
    if (!right && !client->ended)
        model_end(rig, client);
}

// --- the real state

uint64_t model_holders(const struct rig *rig, const struct result *result)
{
    uint64_t holders = 0;
    for (const struct consumer *c = rig->pool->consumers; c; c = c->next) {
        int i = rig->n - 1;
        if (!c->lent[result->number])
            continue;
        while (i >= 0 && rig->client[i].consumer != c) // the newest client with this consumer
            i--;
        MUST(i >= 0);
        holders |= UINT64_C(1) << i;
    }
    return holders;
}

void model_look(struct rig *rig)
{
    for (int i = 0; i < rig->config.slots; i++) {
        const struct result *result = &rig->pool->result[i];
        rig->slot[i] = (struct expected){0};
        if (result->state == RESULT_READY)
            rig->slot[i] = (struct expected){result->ticket, model_holders(rig, result),
                                             result->delivered, false};
    }
}

bool model_is_behind(const struct rig *rig)
{
    const struct server *server = (const struct server *)rig->sink;
    for (int i = 0; i < server->n_clients; i++)
        if (server->clients[i]->blocked)
            return true;
    return server->n_clients == 0;
}

static void check_result(const struct rig *rig, const struct result *result,
                         const struct expected *expected)
{
    if (result->state == RESULT_FREE) {
        MUST(expected->holders == 0);
        return;
    }
    const uint64_t holders = model_holders(rig, result);
    MUST(result->state == RESULT_READY && result->held == 0);
    MUST(result->ticket == expected->ticket);
    MUST(holders == expected->holders);
    MUST(result->delivered == expected->delivered || expected->unsure);
    MUST(holders != 0 || model_is_behind(rig));
    MUST(atomic_load(pool_region_word(result->region, result->number)) == result->ticket);
}

bool model_was_dropped(const struct client *client)
{
    struct pollfd watched = {.fd = client->fd};
    poll(&watched, 1, 0);
    return watched.revents & POLLHUP;
}

void model_rest(struct rig *rig)
{
    int64_t used = 0;
    settle(&rig->loop);
    for (int i = 0; i < rig->n; i++)
        if (rig->client[i].deaf && !rig->client[i].ended && model_was_dropped(&rig->client[i]))
            model_end(rig, &rig->client[i]);
    for (int i = 0; i < rig->config.slots; i++) {
        check_result(rig, &rig->pool->result[i], &rig->slot[i]);
        used += rig->pool->result[i].state != RESULT_FREE;
    }
    MUST(ledger_in_flight(&rig->ledger) == used);
    for (int i = 0; i < rig->n; i++)
        if (rig->client[i].ended)
            rig->client[i].holder = -1;
    model_look(rig);
}
