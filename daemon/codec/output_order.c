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
        av_frame_free(&order->entry[i].picture.frame);
    *order = (struct output_order){.highest_disposable = INT_MIN};
}

// --- the pictures

static void remove_entry(struct output_order *order, int at)
{
    av_frame_free(&order->entry[at].picture.frame);
    order->n--;
    memmove(order->entry + at, order->entry + at + 1,
            (size_t)(order->n - at) * sizeof(order->entry[0]));
}

static void note_late(struct output_order *order, int64_t serial)
{
    if (order->lates < OUTPUT_ORDER_PICTURES)
        order->late[order->lates++] = serial;
}

int64_t output_order_late(struct output_order *order)
{
    return order->lates > 0 ? order->late[--order->lates] : 0;
}

void output_order_distrust(struct output_order *order)
{
    order->distrusted = DISTRUSTED_PICTURES;
    for (int i = 0; i < order->n && !order->unseen; i++)
        if (!order->entry[i].picture.given && order->entry[i].sequence == order->sequence)
            av_frame_free(&order->entry[i].picture.frame);
}

bool output_order_is_behind(const struct output_order *order, int poc)
{
    return order->begun && order->last_sequence == order->sequence && poc <= order->last_poc;
}

static void begin_sequence(struct output_order *order, bool unseen)
{
    order->sequence++;
    order->distrusted = 0;
    order->unseen = unseen;
    order->highest_disposable = INT_MIN;
}

// Some encoders send pictures ahead of others without a reference to them.
static void note_crossed(struct output_order *order, const struct order_picture *picture)
{
    order->crossed |= picture->poc < order->highest_disposable;
    if (!picture->reference && picture->poc > order->highest_disposable)
        order->highest_disposable = picture->poc;
}

void output_order_decoded(struct output_order *order, const struct order_picture *picture,
                          int depth)
{
    order->depth = depth;
    if (picture->start != PICTURE_CONTINUES)
        begin_sequence(order, picture->start == PICTURE_BEGINS_UNSEEN);
    note_crossed(order, picture);
    order->newest = *picture;
    order->newest.frame = NULL;
    const bool behind = output_order_is_behind(order, picture->poc);
    if (behind) {
        order->twos = 0;
        output_order_distrust(order);
    }
    if (picture->given && (behind || !picture->frame)) {
        AVFrame *frame = picture->frame;
        av_frame_free(&frame);
        note_late(order, picture->serial);
        return;
    }
    if (order->n == OUTPUT_ORDER_PICTURES)
        remove_entry(order, 0);
    struct order_entry *entry = &order->entry[order->n++];
    *entry = (struct order_entry){*picture, order->sequence, order->unseen, false};
    if (order->distrusted > 0 && !picture->given)
        av_frame_free(&entry->picture.frame);
    order->distrusted -= order->distrusted > 0;
}

static void note_shown(struct output_order *order, struct order_entry *entry)
{
    const int poc = entry->picture.poc;
    if (order->begun && order->last_sequence == entry->sequence && poc > order->last_poc) {
        const int64_t step = (int64_t)poc - order->last_poc;
        if (step % 2)
            order->twos = 0;
        order->twos += step == 2 && order->twos < TWOS_SURE;
    }
    order->begun = true;
    order->last_sequence = entry->sequence;
    order->last_poc = poc;
    entry->shown = true;
}

static int find_serial(const struct output_order *order, int64_t serial)
{
    for (int i = 0; i < order->n; i++)
        if (order->entry[i].picture.serial == serial)
            return i;
    return -1;
}

// Returns the first unshown picture in output order; *held counts those in its sequence.
static struct order_entry *find_lowest(struct output_order *order, int *held)
{
    struct order_entry *lowest = NULL;
    *held = 0;
    for (int i = 0; i < order->n; i++) {
        struct order_entry *entry = &order->entry[i];
        if (entry->shown)
            continue;
        if (lowest && entry->sequence != lowest->sequence)
            break;
        ++*held;
        if (!lowest || entry->picture.poc < lowest->picture.poc)
            lowest = entry;
    }
    return lowest;
}

// Returns true if no picture comes ahead of the first one in output order. The first rules are the
// stream's guarantee, as is a POC of 1 more than the last one. The others hold for all but strange
// streams.
static bool is_next(const struct output_order *order, const struct order_entry *lowest, int held)
{
    const struct order_picture *newest = &order->newest, *picture = &lowest->picture;
    if (lowest->sequence != order->sequence || held > order->depth || order->ended ||
        picture->start == PICTURE_BEGINS_LOWEST)
        return true;
    if (picture->random_access && newest->poc > picture->poc)
        return true;
    if (order->distrusted > 0)
        return false;
    if (!order->crossed && !newest->reference && newest->poc >= picture->poc)
        return true;
    return order->begun && order->last_sequence == lowest->sequence &&
           (int64_t)picture->poc - order->last_poc <= (order->twos == TWOS_SURE ? 2 : 1);
}

void output_order_end(struct output_order *order)
{
    order->ended = true;
}

AVFrame *output_order_next(struct output_order *order)
{
    int held;
    struct order_entry *lowest = find_lowest(order, &held);
    AVFrame *frame = lowest ? lowest->picture.frame : NULL;
    if (!frame || !is_next(order, lowest, held))
        return NULL;
    note_shown(order, lowest);
    lowest->picture.frame = NULL;
    return frame;
}

// --- the decoder's own output

// The decoder gives out the first picture in output order that it holds: pictures ahead of it that
// were not shown will not come. With keyframes alone, its order may be another one.
static void drop_missed(struct output_order *order, const struct order_entry *output)
{
    const struct order_entry given = *output;
    for (int i = order->n - 1; i >= 0; i--) {
        const struct order_entry *entry = &order->entry[i];
        if ((int32_t)(entry->sequence - given.sequence) < 0 ||
            (entry->sequence == given.sequence && !entry->shown &&
             entry->picture.poc < given.picture.poc))
            remove_entry(order, i);
    }
}

// Returns true if a picture after this one was shown.
static bool is_late(const struct output_order *order, const struct order_entry *picture)
{
    for (int i = 0; i < order->n; i++) {
        const struct order_entry *entry = &order->entry[i];
        if (entry->shown &&
            (entry->sequence != picture->sequence || entry->picture.poc > picture->picture.poc))
            return true;
    }
    return false;
}

bool output_order_output(struct output_order *order, int64_t serial)
{
    int at = find_serial(order, serial);
    if (at < 0)
        return true;
    bool late = false;
    if (order->entry[at].unseen) {
        // The decoder mixes its sequence with another: taken pictures are shown at their own time.
        if (order->entry[at].picture.frame)
            return false;
        late = order->begun && order->last_sequence == order->entry[at].sequence &&
               order->entry[at].picture.poc <= order->last_poc;
    } else {
        drop_missed(order, &order->entry[at]);
        at = find_serial(order, serial);
        late = is_late(order, &order->entry[at]);
    }
    const bool shown = order->entry[at].shown;
    if (!shown && late)
        note_late(order, serial);
    if (!shown && late && !order->entry[at].unseen)
        output_order_distrust(order);
    if (!shown && !late)
        note_shown(order, &order->entry[at]);
    remove_entry(order, at);
    return !shown && !late;
}
