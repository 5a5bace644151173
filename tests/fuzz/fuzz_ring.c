// Clients of a ring that send anything in any order: a return frees only slots that its sender
// holds; an invalid message ends its sender; no client loses its oldest slot to a newer frame;
// without clients every slot is free and every frame is counted.
//
// The input is a script: each byte is an action, some with arguments, which count from '0':
//     c  another client connects and becomes the actor        >  the next one acts, in turn
//     f  a frame    F  a larger one    h  one of another shape    .  the loop runs
//     g SLOT TICKET  a return    G N (SLOT TICKET)...  N of them in one message
//     b  returns the oldest slot that it holds    B  all of them in one message
//     d FLAGS  a result for the oldest slot that it holds
//     m N BYTES...  N bytes unchanged    M  more bytes than a message may have
//     e  an empty message    s  sends no more    k  receives no more    x  closes
//     r  reads a message    R  reads all    n  reads none of 64 frames, but returns them
//     a  all held slots were held for too long
// The first byte selects: bits 0 and 1 the policy, 2 and 3 the slots, 4 if clients outlive the
// sink.
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/output/pool.h"
#include "daemon/wire.h"
#include "tests/fuzz/ring_model.h"
#include "tests/fuzz/turns.h"

enum { FRAME = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rig rig;

struct script {
    const uint8_t *at, *end;
};

static uint8_t next_byte(struct script *script)
{
    return script->at < script->end ? *script->at++ : 0;
}

static uint8_t next_number(struct script *script)
{
    return (uint8_t)(next_byte(script) - '0');
}

// --- clients

// Updates the model with the slots announced to the client.
static void learn_what_it_has(const struct client *client)
{
    for (int i = 0; client->holder >= 0 && i < rig.config.slots; i++)
        rig.slot[i].holders |= model_holders(&rig, &rig.pool->result[i]) & model_bit(client);
}

// With `overflow: wait` the first client gets the waiting frames.
static void join(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (rig.n == CLIENTS_MAX)
        return;
    model_rest(&rig);
    strcpy(address.sun_path, rig.path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    MUST(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    rig.current = rig.n;
    rig.client[rig.n] = (struct client){.fd = fd, .holder = rig.n};
    struct client *client = &rig.client[rig.n++];
    settle(&rig.loop);
    client->consumer = rig.pool->consumers; // the newest one
    learn_what_it_has(client);
    model_rest(&rig);
}

static void send_message(struct client *client, const void *bytes, size_t size)
{
    if (client->fd >= 0 && client->holder >= 0 &&
        send(client->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size)
        model_message(&rig, client, bytes, size);
}

static void send_returns(struct client *client, int n, struct script *script)
{
    struct framed_ring_return returned[RETURNS_MAX];
    for (int i = 0; i < n; i++) {
        uint32_t slot = next_number(script);
        returned[i] = (struct framed_ring_return){htole32(slot), 0, htole64(next_number(script))};
    }
    send_message(client, returned, (size_t)n * sizeof returned[0]);
}

// Returns the first `max` slots that it holds.
static void give_back(struct client *client, int max)
{
    struct framed_ring_return returned[SLOTS_MAX];
    int n = 0;
    for (int i = 0; client->holder >= 0 && i < rig.config.slots && n < max; i++)
        if (rig.slot[i].holders & model_bit(client))
            returned[n++] =
                (struct framed_ring_return){htole32((uint32_t)i), 0, htole64(rig.slot[i].ticket)};
    if (n > 0)
        send_message(client, returned, (size_t)n * sizeof returned[0]);
}

static const struct expected *oldest_of(const struct client *client)
{
    const struct expected *found = NULL;
    for (int i = 0; i < rig.config.slots; i++)
        if ((rig.slot[i].holders & model_bit(client)) &&
            (!found || rig.slot[i].ticket < found->ticket))
            found = &rig.slot[i];
    return found;
}

static void send_result(struct client *client, uint8_t flags)
{
    struct framed_ring_result result = {.version = htole16(FRAMED_VERSION),
                                        .flags = htole16(flags)};
    const struct expected *oldest = client->holder >= 0 ? oldest_of(client) : NULL;
    if (!oldest)
        return;
    memcpy(result.magic, FRAMED_RING_RESULT_MAGIC, 4);
    result.slot = htole32((uint32_t)(oldest - rig.slot));
    result.ticket = htole64(oldest->ticket);
    send_message(client, &result, sizeof result);
}

static void send_bytes(struct client *client, size_t size, struct script *script)
{
    size_t left = (size_t)(script->end - script->at);
    size = size < left ? size : left;
    send_message(client, script->at, size);
    script->at += size;
}

static void send_too_much(struct client *client)
{
    static const char bytes[(RETURNS_MAX + 1) * sizeof(struct framed_ring_return)];
    send_message(client, bytes, sizeof bytes);
}

// Reads a message; then a client that was behind gets more. Returns false if there was none.
static bool read_message(struct client *client)
{
    struct framed_ring_frame frame;
    model_rest(&rig);
    if (client->fd < 0 || recv(client->fd, &frame, sizeof frame, MSG_DONTWAIT) <= 0)
        return false;
    MUST(memcmp(&frame, FRAMED_RING_MAGIC, 4) == 0 || memcmp(&frame, FRAMED_MAGIC, 4) == 0);
    settle(&rig.loop);
    learn_what_it_has(client);
    model_rest(&rig);
    return true;
}

static void read_all(struct client *client)
{
    while (read_message(client))
        ;
}

static void end(struct client *client, int how)
{
    if (client->fd < 0 || client->holder < 0)
        return;
    shutdown(client->fd, how);
    if (how == SHUT_RD)
        client->deaf = true;
    else if (!client->ended)
        model_end(&rig, client);
}

static void hang_up(struct client *client)
{
    if (client->fd < 0)
        return;
    if (client->holder >= 0 && !client->ended)
        model_end(&rig, client);
    close(client->fd);
    client->fd = -1;
}

// --- frames

static bool has_room(void) // otherwise pool_claim would wait for it
{
    for (int i = 0; i < rig.config.slots; i++)
        if (rig.pool->result[i].state == RESULT_FREE && sink_clients(rig.sink) > 0)
            return true;
    return rig.config.overflow != OVERFLOW_WAIT;
}

static void offer(int width, int height)
{
    _Atomic bool stop = false;
    struct result *result;
    struct pool_request request = {
        .size = (size_t)width * (size_t)height, .items = 1, .ledger = &rig.ledger, .stop = &stop};
    uint64_t ordinal = rig.ordinal++;
    ledger_offer(&rig.ledger);
    if (pool_claim(rig.pool, &request, &result) < 0) {
        ledger_lose(&rig.ledger, LOSS_OVERFLOW);
        return;
    }
    result->format = (struct result_format){.image = {.format = PIXEL_TENSOR,
                                                      .width = width,
                                                      .height = height,
                                                      .plane = {{result->data, width}}}};
    struct item *item = &result->item[0];
    item->frame = (struct frame_info){.received_ns = monotonic_ns()};
    strcpy(item->camera, "gate");
    item->sequence = item->ordinal = ordinal;
    pool_complete(rig.pool, result, 0, 1, 0);
}

// Only clients that receive no more are dropped; no other loses the oldest slot that it holds.
static void check_client(struct client *client)
{
    if (client->holder < 0)
        return;
    if (model_was_dropped(client)) {
        MUST(client->deaf);
        client->ended = true;
        client->holder = -1;
        return;
    }
    const struct expected *oldest = oldest_of(client);
    if (!oldest)
        return;
    const struct result *result = &rig.pool->result[oldest - rig.slot];
    MUST(result->ticket == oldest->ticket && (model_holders(&rig, result) & model_bit(client)));
}

static void feed(int width, int height)
{
    model_rest(&rig);
    if (!has_room())
        return;
    offer(width, height);
    sink_pump(rig.sink);
    settle(&rig.loop);
    for (int i = 0; i < rig.n; i++)
        check_client(&rig.client[i]);
    model_look(&rig);
    model_rest(&rig);
}

// A few calls fill the client's socket.
static void fall_behind(struct client *client)
{
    for (int i = 0; i < 64; i++) {
        feed(FRAME, 1);
        give_back(client, SLOTS_MAX);
    }
}

static void age(void)
{
    model_rest(&rig);
    pool_revoke(rig.pool, INT64_MAX);
    for (int i = 0; i < rig.config.slots; i++)
        rig.slot[i].holders = 0;
    sink_pump(rig.sink);
    model_rest(&rig);
}

// --- the script

static void send_something(struct client *client, char action, struct script *script)
{
    if (action == 'g')
        send_returns(client, 1, script);
    else if (action == 'G')
        send_returns(client, next_number(script), script);
    else if (action == 'b' || action == 'B')
        give_back(client, action == 'b' ? 1 : SLOTS_MAX);
    else if (action == 'd')
        send_result(client, next_number(script));
    else if (action == 'm')
        send_bytes(client, next_number(script), script);
    else if (action == 'M')
        send_too_much(client);
    else if (action == 'e')
        send_message(client, "", 0);
}

static void act(struct client *client, char action, struct script *script)
{
    send_something(client, action, script);
    if (action == 'r')
        read_message(client);
    else if (action == 'R')
        read_all(client);
    else if (action == 'n')
        fall_behind(client);
    else if (action == 's' || action == 'k')
        end(client, action == 's' ? SHUT_WR : SHUT_RD);
    else if (action == 'x')
        hang_up(client);
    else if (action == '>')
        rig.current = (rig.current + 1) % rig.n;
}

static void run(struct script *script)
{
    while (script->at < script->end) {
        char action = (char)next_byte(script);
        if (action == 'c')
            join();
        else if (action == 'f' || action == 'h')
            feed(FRAME, action == 'f' ? 1 : 2);
        else if (action == 'F')
            feed(FRAME, FRAME);
        else if (action == 'a')
            age();
        else if (action == '.')
            model_rest(&rig);
        else if (rig.n > 0)
            act(&rig.client[rig.current], action, script);
    }
    model_rest(&rig);
}

// --- life

static void was_closed(void *opaque)
{
    (void)opaque;
    rig.sink = NULL;
}

static void open_rig(uint8_t choice)
{
    char why[256];
    rig = (struct rig){.config = {.name = "detector",
                                  .kernel = KERNEL_WARP,
                                  .slots = SLOTS_MIN + (choice >> 2 & 3),
                                  .clients = RING_CLIENTS_MAX,
                                  .overflow = (enum overflow)(choice & 3) % 3,
                                  .protocol = PROTOCOL_FRAMED,
                                  .max_age = {INT64_C(3600000000000)},
                                  .mode = {0600}}};
    snprintf(rig.path, sizeof rig.path, "/tmp/framed-fuzz-%d.ring", (int)getpid());
    rig.config.sink = (struct sink_address){.kind = SINK_RING, .path = rig.path};
    const struct pool_options options = {.n = rig.config.slots,
                                         .items = 1,
                                         .overflow = rig.config.overflow,
                                         .max_age_ns = rig.config.max_age.ns,
                                         .undelivered = LOSS_CLIENT,
                                         .name = rig.config.name,
                                         .kind = REGION_SHARED};
    log_level(LOG_LEVEL_ERROR);
    uv_loop_init(&rig.loop);
    MUST(pool_open(&rig.pool, &options) == 0);
    MUST(results_open(&rig.results, &rig.config, rig.pool) == 0);
    const struct sink_context context = {.loop = &rig.loop,
                                         .camera = "gate",
                                         .config = &rig.config,
                                         .pool = rig.pool,
                                         .results = rig.results,
                                         .closed = was_closed};
    MUST(sink_open(&rig.sink, &context, why, sizeof why) == 0);
}

// A client that reads everything has been told of everything.
static void catch_up(void)
{
    bool deaf = false;
    for (int i = 0; i < rig.n; i++) {
        read_all(&rig.client[i]);
        deaf |= rig.client[i].deaf && rig.client[i].holder >= 0;
    }
    MUST(deaf || sink_clients(rig.sink) == 0 || !model_is_behind(&rig));
}

static void hang_up_all(void)
{
    for (int i = 0; i < rig.n; i++)
        hang_up(&rig.client[i]);
    model_rest(&rig);
    MUST(ledger_in_flight(&rig.ledger) == 0 || rig.config.overflow == OVERFLOW_WAIT);
}

static void close_rig(void)
{
    sink_finish(rig.sink, 0);
    settle(&rig.loop);
    MUST(!rig.sink);
    MUST(uv_loop_close(&rig.loop) == 0);
    MUST(ledger_in_flight(&rig.ledger) == 0);
    pool_close(rig.pool);
    results_close(rig.results);
    for (int i = 0; i < rig.n; i++)
        if (rig.client[i].fd >= 0)
            close(rig.client[i].fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct script script = {data, data + size};
    uint8_t choice = next_byte(&script);
    open_rig(choice);
    run(&script);
    if (!(choice & 16)) {
        catch_up();
        hang_up_all();
    }
    close_rig();
    return 0;
}
