#include "daemon/rtsp/nal_assembly.h"

#include <string.h>

#include "daemon/bitstream/nal.h"
#include "daemon/rtsp/rtp_receiver.h"

enum {
    START_BYTES = 4,
    TELLING_BYTES = 32, // bytes of a NAL unit that suffice to classify it
};

static void remove_set(struct parameter_sets *sets, int i, size_t at)
{
    const size_t bytes = sets->set[i].bytes, behind = sets->bytes - at - bytes;
    memmove(sets->data + at, sets->data + at + bytes, behind);
    memmove(sets->set + i, sets->set + i + 1, (size_t)(sets->n - i - 1) * sizeof *sets->set);
    sets->bytes -= bytes;
    sets->n--;
}

void parameter_sets_put(struct parameter_sets *sets, int rank, uint32_t id, const uint8_t *nal,
                        size_t bytes)
{
    size_t at = 0;
    int i = 0;
    while (i < sets->n &&
           (sets->set[i].rank < rank || (sets->set[i].rank == rank && sets->set[i].id < id)))
        at += sets->set[i++].bytes;
    if (i < sets->n && sets->set[i].rank == rank && sets->set[i].id == id) {
        if (sets->set[i].bytes == bytes + START_BYTES &&
            memcmp(sets->data + at + START_BYTES, nal, bytes) == 0)
            return;
        remove_set(sets, i, at);
    }
    if (sets->n == PARAMETER_SETS_MAX || bytes + START_BYTES > sizeof sets->data - sets->bytes)
        return;
    uint8_t *to = sets->data + at;
    memmove(to + START_BYTES + bytes, to, sets->bytes - at);
    memcpy(to, "\0\0\0\1", START_BYTES);
    memcpy(to + START_BYTES, nal, bytes);
    memmove(sets->set + i + 1, sets->set + i, (size_t)(sets->n - i) * sizeof *sets->set);
    sets->set[i] = (struct parameter_set){rank, id, bytes + START_BYTES};
    sets->bytes += bytes + START_BYTES;
    sets->n++;
}

// Drops the open unit, which lacks bytes.
static void drop_open_unit(struct nal_assembly *n)
{
    n->open = n->assembly->incomplete = false;
    if (n->left_out)
        return;
    n->assembly->open->bytes = n->start;
    assembly_damage(n->assembly);
}

// Classifies the unit, and moves it to the next access unit if it begins another picture.
static void tell_unit(struct nal_assembly *n, size_t bytes)
{
    struct assembly *a = n->assembly;
    const uint8_t *nal = a->open->data + n->header;
    const enum assembly_piece piece = n->format->tell(n, nal, bytes);
    const size_t place = assembly_piece(a, n->start, piece);
    n->told = true;
    n->left_out = place == SIZE_MAX;
    if (n->left_out)
        return;
    n->header = n->header - n->start + place;
    n->start = place;
}

// Ends the open unit at `end`; more data may follow. Returns the new offset of that data.
static size_t close_unit(struct nal_assembly *n, size_t end)
{
    struct assembly *a = n->assembly;
    size_t bytes = end - n->header, from_start = end - n->start;
    const uint8_t *nal = a->open->data + n->header;
    while (bytes > 0 && nal[bytes - 1] == 0)
        bytes--;
    if (bytes == 0)
        n->told = n->left_out = true;
    if (!n->told)
        tell_unit(n, bytes);
    struct assembly_unit *u = a->open;
    n->open = a->incomplete = false;
    if (a->no_memory)
        return u->bytes;
    end = n->start + from_start;
    if (n->left_out) {
        memmove(u->data + n->start, u->data + end, u->bytes - end);
        u->bytes -= from_start;
        return n->start;
    }
    if (end == u->bytes) // trailing zeros do not belong to the unit
        end = u->bytes = n->header + bytes;
    n->format->finish(n, u->data + n->header, bytes);
    return end;
}

void nal_assembly_begin(struct nal_assembly *n)
{
    struct assembly *a = n->assembly;
    if (n->open)
        drop_open_unit(n);
    uint8_t *to = assembly_room(a, START_BYTES);
    n->open = a->incomplete = true;
    n->told = n->left_out = !to;
    if (!to) {
        assembly_damage(a);
        return;
    }
    memcpy(to, "\0\0\0\1", START_BYTES);
    n->start = a->open->bytes;
    a->open->bytes += START_BYTES;
    n->header = n->scanned = a->open->bytes;
}

// Ends the open unit at the start code at `at`, and begins another one there.
static void split_unit(struct nal_assembly *n, size_t at)
{
    struct assembly *a = n->assembly;
    at = close_unit(n, at);
    if (a->no_memory)
        return;
    n->start = at;
    n->header = n->scanned = at + 3;
    n->open = a->incomplete = true;
    n->told = n->left_out = false;
}

void nal_assembly_append(struct nal_assembly *n, const uint8_t *data, size_t bytes)
{
    struct assembly *a = n->assembly;
    if (!n->open || n->left_out)
        return;
    uint8_t *to = assembly_room(a, bytes);
    if (!to) {
        drop_open_unit(n);
        return;
    }
    memcpy(to, data, bytes);
    a->open->bytes += bytes;
    if (n->told)
        assembly_goes_on(a);
    for (;;) {
        const struct assembly_unit *u = a->open;
        const size_t at = nal_find_start(u->data, u->bytes, n->scanned);
        if (at >= u->bytes)
            break;
        split_unit(n, at);
        if (!n->open)
            return;
    }
    if (a->open->bytes >= n->header + 2 && n->scanned < a->open->bytes - 2)
        n->scanned = a->open->bytes - 2;
    const size_t have = a->open->bytes - n->header;
    if (!n->told && have >= TELLING_BYTES)
        tell_unit(n, have);
    if (n->left_out && !a->no_memory)
        a->open->bytes = n->start;
}

void nal_assembly_end(struct nal_assembly *n)
{
    if (n->open && n->left_out)
        n->open = n->assembly->incomplete = false;
    if (n->open)
        close_unit(n, n->assembly->open->bytes);
}

static bool begins_with_start(const uint8_t *data, size_t bytes, size_t *start)
{
    *start = nal_find_start(data, bytes < 4 ? bytes : 4, 0) + 3;
    return *start <= 4 && *start <= bytes;
}

void nal_assembly_put(struct nal_assembly *n, const uint8_t *data, size_t bytes)
{
    size_t start;
    if (begins_with_start(data, bytes, &start)) {
        data += start;
        bytes -= start;
    }
    nal_assembly_begin(n);
    nal_assembly_append(n, data, bytes);
    nal_assembly_end(n);
}

void nal_assembly_missing(struct nal_assembly *n)
{
    assembly_damage(n->assembly);
}

void nal_assembly_packet(struct nal_assembly *n, const struct rtp_packet *packet)
{
    if (n->open && assembly_breaks(n->assembly, packet))
        drop_open_unit(n);
    assembly_packet(n->assembly, packet);
}

void nal_assembly_packet_end(struct nal_assembly *n, const struct rtp_packet *packet)
{
    if (!packet->marker)
        return;
    nal_assembly_end(n);
    assembly_marker(n->assembly);
}

void nal_assembly_flush(struct nal_assembly *n)
{
    if (n->open)
        drop_open_unit(n);
}

void nal_assembly_head_start(struct nal_assembly *n, const uint8_t *sets, size_t bytes)
{
    struct nal_reader reader = {.data = sets, .size = bytes};
    struct nal nal;
    while (nal_next(&reader, &nal))
        if (nal.size > 0)
            n->format->learn(n, nal.data, nal.size);
}
