#include "daemon/codec/output_order.h"

#include <libavutil/frame.h>
#include <string.h>

enum {
    TWOS_SURE = 8,           // then POC rises by 2, as in most streams of H.264
    DISTRUSTED_PICTURES = 32 // at most: some streams are one sequence
};

void output_order_begin(struct output_order *order)
{
    for (int i = 0; i < order->n; i++)
        av_frame_free(&order->entry[i].frame);
    *order = (struct output_order){.sequence = 1, .highest_disposable = INT_MIN};
}

bool output_order_is_behind(const struct output_order *order, int poc)
{
    return order->last_sequence == order->sequence && poc <= order->last_poc;
}

static AVFrame *remove_entry(struct output_order *order, struct order_entry *entry)
{
    AVFrame *frame = entry->frame;
    const struct order_entry *end = order->entry + order->n--;
    memmove(entry, entry + 1, (size_t)(end - entry - 1) * sizeof *entry);
    return frame;
}

static void begin_sequence(struct output_order *order)
{
    order->sequence++;
    order->distrusted = 0;
    order->highest_disposable = INT_MIN;
}

// Some encoders send pictures ahead of others without a reference to them.
static void note_crossed(struct output_order *order, const struct packet_facts *facts)
{
    order->crossed |= facts->poc < order->highest_disposable;
    if (!facts->reference && facts->poc > order->highest_disposable)
        order->highest_disposable = facts->poc;
}

void output_order_decoded(struct output_order *order, const struct packet_facts *facts,
                          AVFrame *frame, int depth)
{
    order->depth = depth;
    if (facts->start != PICTURE_CONTINUES)
        begin_sequence(order);
    note_crossed(order, facts);
    order->newest_poc = facts->poc;
    order->newest_is_reference = facts->reference;
    const bool behind = output_order_is_behind(order, facts->poc);
    if (behind) {
        order->twos = 0;
        order->distrusted = DISTRUSTED_PICTURES;
        frame->flags |= AV_FRAME_FLAG_DISCARD;
    }
    if (order->n == OUTPUT_ORDER_PICTURES) {
        av_frame_free(&frame);
        return;
    }
    order->entry[order->n++] = (struct order_entry){
        .frame = frame,
        .sequence = order->sequence,
        .poc = facts->poc,
        .lowest = behind || facts->start == PICTURE_BEGINS_LOWEST,
        .random_access = facts->random_access,
    };
    order->distrusted -= order->distrusted > 0;
}

// Returns the first picture in output order, or NULL; *held counts those in its sequence.
static struct order_entry *find_lowest(struct output_order *order, int *held)
{
    struct order_entry *lowest = NULL;
    *held = 0;
    for (struct order_entry *entry = order->entry; entry < order->entry + order->n; entry++) {
        if (lowest && entry->sequence != lowest->sequence)
            break;
        ++*held;
        if (!lowest || entry->poc < lowest->poc)
            lowest = entry;
    }
    return lowest;
}

// Returns true if no picture comes ahead of the first one in output order. The first rules are the
// stream's guarantee, as is a POC of 1 more than the last one. The others hold for all but strange
// streams.
static bool is_next(const struct output_order *order, const struct order_entry *lowest, int held)
{
    if (lowest->sequence != order->sequence || held > order->depth || order->ended ||
        lowest->lowest)
        return true;
    if (lowest->random_access && order->newest_poc > lowest->poc)
        return true;
    if (order->distrusted > 0)
        return false;
    if (!order->crossed && !order->newest_is_reference && order->newest_poc >= lowest->poc)
        return true;
    return order->last_sequence == lowest->sequence &&
           (int64_t)lowest->poc - order->last_poc <= (order->twos == TWOS_SURE ? 2 : 1);
}

static void note_shown(struct output_order *order, const struct order_entry *entry)
{
    if (order->last_sequence == entry->sequence) {
        const int64_t step = (int64_t)entry->poc - order->last_poc;
        if (step % 2)
            order->twos = 0;
        order->twos += step == 2 && order->twos < TWOS_SURE;
    }
    order->last_sequence = entry->sequence;
    order->last_poc = entry->poc;
}

AVFrame *output_order_next(struct output_order *order)
{
    int held;
    struct order_entry *lowest = find_lowest(order, &held);
    if (!lowest || !is_next(order, lowest, held))
        return NULL;
    if (!(lowest->frame->flags & AV_FRAME_FLAG_DISCARD))
        note_shown(order, lowest);
    return remove_entry(order, lowest);
}
