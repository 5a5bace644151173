#include "daemon/output/results.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "kernels/image.h"

const char *const result_wrong_names[RESULT_WRONGS] = {
    [RESULT_NOT_WANTED] = "not_wanted",
    [RESULT_FLOOD] = "flood",
    [RESULT_VERSION] = "version",
    [RESULT_LENGTH] = "length",
    [RESULT_FLAGS] = "flags",
    [RESULT_TICKET] = "ticket",
    [RESULT_SLOT] = "slot",
    [RESULT_ELEMENT] = "element",
    [RESULT_TWICE] = "twice",
};
const char *const object_drop_names[OBJECT_DROPS] = {
    [OBJECT_NUMBER] = "number",
    [OBJECT_FLAGS] = "flags",
    [OBJECT_AREA] = "area",
    [OBJECT_OUTSIDE] = "outside",
};

// Bit i of each mask stands for the client with index i.
struct remembered_element {
    struct item item;
    uint64_t answered;
};

// A frame or batch that was lent to clients.
struct remembered {
    uint64_t ticket; // 0: none
    uint32_t slot;
    uint64_t lent, returned;
    uint32_t n;
    struct remembered_element *element; // as many as a result has
};

static uint64_t bit_of(const struct results_client *client)
{
    return UINT64_C(1) << client->index;
}

// --- what is remembered

// Allocates all remembered frames and elements in one block.
static int allocate(struct results *results)
{
    const struct pool_options *pool = &results->pool->options;
    const int items = pool->items;
    int n = RESULTS_ELEMENTS_MAX / items;
    n = n < RESULTS_TICKETS_MAX ? n : RESULTS_TICKETS_MAX;
    n = n > pool->n ? n : pool->n;
    const size_t bytes =
        sizeof(struct remembered) + (size_t)items * sizeof(struct remembered_element);
    struct remembered *remembered = calloc((size_t)n, bytes);
    if (!remembered)
        return -1;
    struct remembered_element *element = (struct remembered_element *)(remembered + n);
    for (int i = 0; i < n; i++)
        remembered[i].element = element + (size_t)i * (size_t)items;
    results->remembered = remembered;
    results->n_remembered = n;
    return 0;
}

static struct remembered *place_of(const struct results *results, uint64_t ticket)
{
    return &results->remembered[ticket % (uint64_t)results->n_remembered];
}

static struct remembered *remember(struct results *results, const struct result *result)
{
    if (!results->remembered && allocate(results) < 0)
        return NULL;
    struct remembered *remembered = place_of(results, result->ticket);
    if (remembered->ticket == result->ticket)
        return remembered;
    remembered->ticket = result->ticket;
    remembered->slot = (uint32_t)result->number;
    remembered->lent = remembered->returned = 0;
    remembered->n = (uint32_t)result->n_items;
    for (int i = 0; i < result->n_items; i++)
        remembered->element[i] = (struct remembered_element){.item = result->item[i]};
    return remembered;
}

void results_lend(struct results *results, struct results_client *client,
                  const struct result *result)
{
    uint64_t filled = 0;
    for (int i = 0; i < result->n_items; i++)
        filled += item_is_filled(&result->item[i]);
    client->lent += filled;
    results->lent += filled;
    struct remembered *remembered = results->receivers ? remember(results, result) : NULL;
    if (remembered)
        remembered->lent |= bit_of(client);
}

// Returns the frame lent to the client as that ticket; NULL: not lent, or forgotten.
static struct remembered *find_lent(const struct results *results,
                                    const struct results_client *client, uint64_t ticket)
{
    if (!results->remembered || ticket == 0)
        return NULL;
    struct remembered *remembered = place_of(results, ticket);
    return remembered->ticket == ticket && (remembered->lent & bit_of(client)) ? remembered : NULL;
}

void results_return(struct results *results, const struct results_client *client, uint64_t ticket)
{
    struct remembered *remembered = find_lent(results, client, ticket);
    if (remembered)
        remembered->returned |= bit_of(client);
}

// --- what was found for each camera

struct last_found *results_last_found(const struct results *results, const char *camera)
{
    for (int i = 0; i < results->n_last_found; i++)
        if (strcmp(results->last_found[i].camera, camera) == 0)
            return &results->last_found[i];
    return NULL;
}

static struct last_found *add_camera(struct results *results, const char *camera)
{
    const size_t n = (size_t)results->n_last_found + 1;
    struct last_found *list = realloc(results->last_found, n * sizeof *list);
    if (!list)
        return NULL;
    results->last_found = list;
    list[n - 1] = (struct last_found){0};
    snprintf(list[n - 1].camera, sizeof list->camera, "%s", camera);
    return &list[results->n_last_found++];
}

void results_forget_camera(struct results *results, const char *camera)
{
    struct last_found *last = results_last_found(results, camera);
    if (last)
        *last = results->last_found[--results->n_last_found];
}

// Leaves a camera out if memory runs out.
static void count_for_camera(struct results *results, const struct found *found)
{
    struct last_found *last = results_last_found(results, found->camera);
    if (!last && !(last = add_camera(results, found->camera)))
        return;
    last->results++;
    last->objects += (uint64_t)found->n;
    last->late += found->late;
    last->result_ns = found->result_ns;
    last->n = found->n;
}

// --- messages

// Returns RESULT_WRONGS for a valid message, with its frame and element; else the reason.
static enum result_wrong check_message(struct results *results, struct results_client *client,
                                       const struct framed_ring_result *message, size_t bytes,
                                       struct remembered **frame,
                                       struct remembered_element **element)
{
    const unsigned known = FRAMED_RESULT_RETURN | FRAMED_RESULT_IN_SOURCE;
    const uint32_t count = le32toh(message->count), index = le32toh(message->element);
    results->counts = true;
    if (!results->receivers)
        return RESULT_NOT_WANTED;
    if (le16toh(message->version) != FRAMED_VERSION)
        return RESULT_VERSION;
    if (count > FRAMED_DETECTIONS_MAX ||
        bytes != sizeof *message + count * sizeof(struct framed_detection))
        return RESULT_LENGTH;
    if (le16toh(message->flags) & ~known)
        return RESULT_FLAGS;
    *frame = find_lent(results, client, le64toh(message->ticket));
    if (!*frame)
        return RESULT_TICKET;
    if ((*frame)->slot != le32toh(message->slot))
        return RESULT_SLOT;
    if (index >= (*frame)->n || !item_is_filled(&(*frame)->element[index].item))
        return RESULT_ELEMENT;
    *element = &(*frame)->element[index];
    return (*element)->answered & bit_of(client) ? RESULT_TWICE : RESULT_WRONGS;
}

static float read_float(float wire)
{
    uint32_t bits;
    memcpy(&bits, &wire, sizeof bits);
    bits = le32toh(bits);
    memcpy(&wire, &bits, sizeof wire);
    return wire;
}

static struct framed_detection read_detection(const struct framed_detection *wire)
{
    return (struct framed_detection){
        .x1 = read_float(wire->x1),
        .y1 = read_float(wire->y1),
        .x2 = read_float(wire->x2),
        .y2 = read_float(wire->y2),
        .score = read_float(wire->score),
        .class_id = le16toh(wire->class_id),
        .flags = le16toh(wire->flags),
        .track = (int64_t)le64toh((uint64_t)wire->track),
    };
}

// Maps a detection by `matrix`, NULL: none needed, to pixels of the picture and clips it. Returns
// OBJECT_DROPS if it is valid.
static enum object_drop map_object(const struct frame_info *frame, const float *matrix,
                                   const struct framed_detection *from, struct framed_detection *to)
{
    const float box[4] = {from->x1, from->y1, from->x2, from->y2};
    double mapped[4] = {(double)box[0], (double)box[1], (double)box[2], (double)box[3]};
    if (!isfinite(box[0]) || !isfinite(box[1]) || !isfinite(box[2]) || !isfinite(box[3]) ||
        !isfinite(from->score))
        return OBJECT_NUMBER;
    if (from->flags != 0)
        return OBJECT_FLAGS;
    if (!(box[0] < box[2]) || !(box[1] < box[3]))
        return OBJECT_AREA;
    if (matrix)
        box_map(matrix, box, mapped);
    *to = *from;
    to->x1 = box_clip(mapped[0], frame->source_width);
    to->y1 = box_clip(mapped[1], frame->source_height);
    to->x2 = box_clip(mapped[2], frame->source_width);
    to->y2 = box_clip(mapped[3], frame->source_height);
    return to->x1 < to->x2 && to->y1 < to->y2 ? OBJECT_DROPS : OBJECT_OUTSIDE;
}

static int map_objects(struct results *results, const struct item *item,
                       const struct framed_ring_result *message, struct framed_detection list[],
                       uint16_t index[])
{
    const struct framed_detection *wire = (const struct framed_detection *)(message + 1);
    const bool in_source = le16toh(message->flags) & FRAMED_RESULT_IN_SOURCE;
    float matrix[6]; // as in the header that the client got
    int n = 0;
    for (int i = 0; i < 6; i++)
        matrix[i] = (float)item->dst_to_src[i];
    for (uint32_t i = 0; i < le32toh(message->count); i++) {
        const struct framed_detection from = read_detection(&wire[i]);
        const enum object_drop drop =
            map_object(&item->frame, in_source ? NULL : matrix, &from, &list[n]);
        if (drop == OBJECT_DROPS)
            index[n++] = (uint16_t)i;
        else
            results->dropped[drop]++;
    }
    return n;
}

// Returns true if the client no longer has the slot and did not return it.
static bool was_revoked(const struct results *results, const struct results_client *client,
                        const struct consumer *consumer, const struct remembered *frame)
{
    return !(frame->returned & bit_of(client)) &&
           !pool_has_lent(results->pool, consumer, frame->slot, frame->ticket);
}

static void publish(struct results *results, const struct found *found)
{
    results->results++;
    results->objects += (uint64_t)found->n;
    results->late += found->late;
    latency_observe(&results->latency, found->result_ns - found->frame.received_ns);
    count_for_camera(results, found);
    for (struct results_receiver *receiver = results->receivers; receiver;
         receiver = receiver->next)
        receiver->take(receiver, found);
}

void results_take(struct results *results, struct results_client *client,
                  const struct consumer *consumer, const struct framed_ring_result *message,
                  size_t bytes)
{
    const struct output_config *config = results->config;
    struct remembered *frame;
    struct remembered_element *element;
    const enum result_wrong wrong =
        check_message(results, client, message, bytes, &frame, &element);
    if (wrong != RESULT_WRONGS) {
        results->wrong[++client->wrong > client->lent ? RESULT_FLOOD : wrong]++;
        return;
    }
    const struct item *item = &element->item;
    struct framed_detection list[FRAMED_DETECTIONS_MAX];
    uint16_t index[FRAMED_DETECTIONS_MAX];
    struct found found = {
        .camera = item->camera,
        .output = config->name,
        .region = item->region,
        .part = item->part,
        .parts = item->parts,
        .parent_sequence = item->parent_sequence,
        .object = config->crops.of ? item->object : -1,
        .frame = item->frame,
        .sequence = item->sequence,
        .ticket = frame->ticket,
        .model = le32toh(message->model),
        .client = client->number,
        .late = frame_is_late(&item->frame, config->max_age.ns) ||
                was_revoked(results, client, consumer, frame),
        .result_ns = monotonic_ns(),
        .n = map_objects(results, item, message, list, index),
        .list = list,
        .index = index,
    };
    element->answered |= bit_of(client);
    publish(results, &found);
}

// --- receivers and clients

void results_add_receiver(struct results *results, struct results_receiver *receiver)
{
    results->counts = true;
    receiver->next = results->receivers;
    results->receivers = receiver;
}

void results_remove_receiver(struct results *results, struct results_receiver *receiver)
{
    struct results_receiver **link = &results->receivers;
    while (*link && *link != receiver)
        link = &(*link)->next;
    if (*link)
        *link = receiver->next;
}

void results_attach(struct results *results, struct results_client *client)
{
    const uint64_t free_bits = ~results->clients;
    *client = (struct results_client){.number = ++results->next_number,
                                      .index = __builtin_ctzll(free_bits)};
    results->clients |= bit_of(client);
}

// Clears the client's bit, which another client may get.
void results_detach(struct results *results, struct results_client *client)
{
    const uint64_t others = ~bit_of(client);
    for (int i = 0; i < results->n_remembered; i++) {
        struct remembered *remembered = &results->remembered[i];
        remembered->lent &= others;
        remembered->returned &= others;
        for (uint32_t e = 0; e < remembered->n; e++)
            remembered->element[e].answered &= others;
    }
    results->clients &= others;
}

// --- life

int results_open(struct results **ret, const struct output_config *config, struct pool *pool)
{
    struct results *results = calloc(1, sizeof *results);
    if (!results)
        return -ENOMEM;
    results->config = config;
    results->pool = pool;
    *ret = results;
    return 0;
}

void results_close(struct results *results)
{
    if (!results)
        return;
    free(results->last_found);
    free(results->remembered);
    free(results);
}
