// Any results that clients of a ring send back: each message counts once, as a result or by its
// mistake, and each detection once. Receivers get detections inside the picture and valid lines of
// JSON. No client answers for a frame that it does not hold, or twice.
//
// The input is a script: each byte is an action of a client, some with arguments:
//     >  the next client, in turn    l  it receives a new frame    b  it returns its last one
//     v  all slots are revoked    x  another client replaces it    w  adds or removes the
//     receiver of results    s N DETECTIONS...  a good message about its last frame, with N
//     detections from the bytes that follow    h N OFFSET BYTE  the same, with one byte of the head
//     changed    m N BYTES...  N bytes behind the magic
// The first byte selects: bit 0 a batch, 1 max_age, 2 to 4 the matrix.
#include <endian.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/output/lines.h"
#include "tests/fuzz/turns.h"

enum { CLIENTS = 3, SLOTS = 4, ITEMS = 3, WIDTH = 640, HEIGHT = 360 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct script {
    const uint8_t *at, *end;
};

static struct rig {
    struct output_config config;
    struct pool *pool;
    struct results *results;
    struct results_receiver receiver;
    bool wanted;
    struct ledger ledger;
    struct consumer consumer[CLIENTS];
    struct results_client client[CLIENTS];
    const struct result *last[CLIENTS]; // last one lent to the client
    uint64_t ticket[CLIENTS];           // of that result
    uint64_t sent, detections, told, objects, sequence;
    uint64_t answered[4096]; // bit i: client i answered element `sequence`
    double matrix[6];
} rig;

static uint8_t next_byte(struct script *script)
{
    return script->at < script->end ? *script->at++ : 0;
}

static void copy_bytes(struct script *script, void *to, size_t size)
{
    const size_t left = (size_t)(script->end - script->at), n = size < left ? size : left;
    memcpy(to, script->at, n);
    script->at += n;
}

// --- results as received

static void check_object(const struct framed_detection *object)
{
    MUST(object->x1 >= 0 && object->x2 <= WIDTH && object->x1 < object->x2);
    MUST(object->y1 >= 0 && object->y2 <= HEIGHT && object->y1 < object->y2);
    MUST(isfinite(object->score) && object->flags == 0);
}

// Checks that quotes are even, and that only JSON's characters are outside of them.
static void check_line(const struct found *found)
{
    static char line[LINE_BYTES_MAX];
    const struct line_labels none = {0};
    const size_t bytes = result_line(line, found, &none);
    int depth = 0;
    bool quoted = false;
    MUST(bytes <= sizeof line && line[bytes - 1] == '\n');
    for (size_t i = 0; i < bytes - 1; i++) {
        quoted ^= line[i] == '"';
        depth += line[i] == '{' || line[i] == '[';
        depth -= line[i] == '}' || line[i] == ']';
        MUST(quoted || strchr("{}[]\",:-.0123456789true", line[i]));
    }
    MUST(depth == 0 && !quoted);
}

static int index_of(uint32_t number)
{
    for (int i = 0; i < CLIENTS; i++)
        if (rig.client[i].number == number)
            return i;
    MUST(!"a client that is there");
    return 0;
}

static void take_found(struct results_receiver *receiver, const struct found *found)
{
    (void)receiver;
    const uint64_t bit = UINT64_C(1) << index_of(found->client);
    MUST(found->n >= 0 && found->n <= FRAMED_DETECTIONS_MAX);
    MUST(found->sequence < rig.sequence && !strcmp(found->camera, "gate"));
    MUST(!(rig.answered[found->sequence % 4096] & bit));
    rig.answered[found->sequence % 4096] |= bit;
    for (int i = 0; i < found->n; i++)
        check_object(&found->list[i]);
    check_line(found);
    rig.told++;
    rig.objects += (uint64_t)found->n;
}

// --- the clients

static void lend(int client)
{
    _Atomic bool stop = false;
    struct result *result;
    struct pool_request request = {
        .size = 1, .items = rig.config.is_batch ? ITEMS : 1, .ledger = &rig.ledger, .stop = &stop};
    if (rig.sequence >= 4000)
        return;
    for (int i = 0; i < request.items; i++)
        ledger_offer(&rig.ledger);
    if (pool_claim(rig.pool, &request, &result) < 0)
        return;
    for (int i = 0; i < request.items; i++) {
        struct item *item = &result->item[i];
        item->frame = (struct frame_info){
            .source_width = WIDTH, .source_height = HEIGHT, .received_ns = monotonic_ns()};
        item->sequence = rig.sequence++;
        strcpy(item->camera, "gate");
        memcpy(item->dst_to_src, rig.matrix, sizeof rig.matrix);
    }
    pool_complete(rig.pool, result, 0, request.items, 0);
    for (int i = 0; i < CLIENTS; i++) {
        struct result *got = pool_acquire(rig.pool, &rig.consumer[i]);
        if (!got)
            continue;
        pool_lend(rig.pool, &rig.consumer[i], true);
        if (i != client) {
            pool_return(rig.pool, &rig.consumer[i], (uint32_t)got->number, got->ticket);
            continue;
        }
        results_lend(rig.results, &rig.client[i], got);
        rig.last[i] = got;
        rig.ticket[i] = got->ticket;
    }
}

static void give_back(int client)
{
    if (!rig.last[client])
        return;
    const uint32_t slot = (uint32_t)rig.last[client]->number;
    struct consumer *consumer = &rig.consumer[client];
    if (pool_return(rig.pool, consumer, slot, rig.ticket[client]) > 0)
        results_return(rig.results, &rig.client[client], rig.ticket[client]);
}

static void replace(int client)
{
    results_detach(rig.results, &rig.client[client]);
    pool_detach(rig.pool, &rig.consumer[client]);
    for (size_t i = 0; i < sizeof rig.answered / sizeof rig.answered[0]; i++)
        rig.answered[i] &= ~(UINT64_C(1) << client);
    rig.consumer[client] = (struct consumer){0};
    pool_attach(rig.pool, &rig.consumer[client]);
    results_attach(rig.results, &rig.client[client]);
    rig.last[client] = NULL;
    rig.ticket[client] = 0;
}

static void want(bool wanted)
{
    if (wanted == rig.wanted)
        return;
    rig.wanted = wanted;
    if (wanted)
        results_add_receiver(rig.results, &rig.receiver);
    else
        results_remove_receiver(rig.results, &rig.receiver);
}

union message {
    struct framed_ring_result head;
    char bytes[RESULT_BYTES_MAX + 8];
};

static void take(int client, const union message *message, size_t bytes)
{
    const uint64_t results = rig.results->results;
    results_take(rig.results, &rig.client[client], &rig.consumer[client], &message->head, bytes);
    rig.sent++;
    if (rig.results->results > results)
        rig.detections += le32toh(message->head.count);
}

// Sends a good message, with the script's changes.
static void send_result(int client, struct script *script, bool changes)
{
    static union message message;
    const uint32_t n = next_byte(script) % 32;
    memset(&message, 0, sizeof message.head + n * sizeof(struct framed_detection));
    memcpy(message.head.magic, FRAMED_RING_RESULT_MAGIC, 4);
    message.head.version = htole16(FRAMED_VERSION);
    message.head.slot = htole32(rig.last[client] ? (uint32_t)rig.last[client]->number : 0);
    message.head.ticket = htole64(rig.ticket[client]);
    message.head.element = htole32(rig.config.is_batch ? next_byte(script) % (ITEMS + 1) : 0);
    message.head.count = htole32(n);
    if (changes) {
        const uint8_t offset = next_byte(script);
        message.bytes[offset % sizeof message.head] = (char)next_byte(script);
    }
    copy_bytes(script, message.bytes + sizeof message.head, n * sizeof(struct framed_detection));
    take(client, &message, sizeof message.head + n * sizeof(struct framed_detection));
}

static void send_bytes(int client, struct script *script)
{
    static union message message;
    const size_t n = sizeof message.head + next_byte(script);
    memset(&message, 0, n);
    copy_bytes(script, message.bytes, n);
    memcpy(message.head.magic, FRAMED_RING_RESULT_MAGIC, 4);
    take(client, &message, n);
}

static void check_sums(void)
{
    const struct results *r = rig.results;
    uint64_t dropped = 0, wrong = 0;
    for (int i = 0; i < RESULT_WRONGS; i++)
        wrong += r->wrong[i];
    for (int i = 0; i < OBJECT_DROPS; i++)
        dropped += r->dropped[i];
    MUST(r->results + wrong == rig.sent);
    MUST(r->results == rig.told && r->results <= r->lent);
    MUST(r->objects == rig.objects && r->objects + dropped == rig.detections);
}

// --- life

static void open_rig(uint8_t choice)
{
    static const double matrices[][6] = {{1, 0, 0, 0, 1, 0},
                                         {2, 0, 0.5, 0, 2, -279.5},
                                         {0, 1, 100, -1, 0, 300},
                                         {0.7, 0.7, 0, -0.7, 0.7, 300},
                                         {1e6, 0, -1e6, 0, 1e6, 0},
                                         {0, 0, 0, 0, 0, 0},
                                         {-1, 0, WIDTH, 0, -1, HEIGHT},
                                         {1e-9, 0, 5, 0, 1e-9, 5}};
    rig = (struct rig){.config = {.name = "detector",
                                  .slots = SLOTS,
                                  .is_batch = choice & 1,
                                  .capacity = ITEMS,
                                  .max_age = {choice & 2 ? 1 : 0}},
                       .receiver.take = take_found};
    memcpy(rig.matrix, matrices[choice >> 2 & 7], sizeof rig.matrix);
    const struct pool_options options = {
        .n = SLOTS, .items = ITEMS, .name = "detector", .kind = REGION_PRIVATE};
    MUST(pool_open(&rig.pool, &options) == 0);
    MUST(results_open(&rig.results, &rig.config, rig.pool) == 0);
    for (int i = 0; i < CLIENTS; i++) {
        pool_attach(rig.pool, &rig.consumer[i]);
        results_attach(rig.results, &rig.client[i]);
    }
    want(true);
}

static void close_rig(void)
{
    for (int i = 0; i < CLIENTS; i++) {
        results_detach(rig.results, &rig.client[i]);
        pool_detach(rig.pool, &rig.consumer[i]);
    }
    results_close(rig.results);
    pool_close(rig.pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct script script = {data, data + size};
    int client = 0;
    open_rig(next_byte(&script));
    while (script.at < script.end) {
        const uint8_t action = next_byte(&script);
        if (action == '>')
            client = (client + 1) % CLIENTS;
        else if (action == 'l')
            lend(client);
        else if (action == 'b')
            give_back(client);
        else if (action == 'v')
            pool_revoke(rig.pool, INT64_MAX);
        else if (action == 'x')
            replace(client);
        else if (action == 'w')
            want(!rig.wanted);
        else if (action == 's' || action == 'h')
            send_result(client, &script, action == 'h');
        else if (action == 'm')
            send_bytes(client, &script);
        check_sums();
    }
    close_rig();
    return 0;
}
