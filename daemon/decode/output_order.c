#include "daemon/decode/output_order.h"

#include <limits.h>
#include <string.h>

enum {
    LEARN_SEQUENCES = 2, // sequences after which their smallest step counts as learned
    LEARN_PICTURES_MIN = 8,
    LEARN_PICTURES_MAX = 48, // or pictures: some streams are one sequence
    PATIENCE_MAX = 16,
    STEP_MAX = 1 << 16,
    DISTRUSTED_PICTURES = 32 // at most: some streams are one sequence
};

// --- learning

void output_order_forget(struct output_order *order)
{
    order->step = order->smallest = order->pictures = order->sequences = 0;
}

void output_order_begin(struct output_order *order)
{
    *order = (struct output_order){0};
}

static void learn_step(struct output_order *order, int difference)
{
    const int patience = order->patience + 1;
    if (difference < order->step)
        order->step = difference;
    if (order->pictures == 0 || difference < order->smallest)
        order->smallest = difference;
    order->pictures++;
    if (order->pictures < LEARN_PICTURES_MAX * patience &&
        (order->pictures < LEARN_PICTURES_MIN * patience ||
         order->sequences < LEARN_SEQUENCES * patience))
        return;
    order->step = order->smallest;
    order->pictures = order->sequences = 0;
}

// Call when a picture came too late because of the rule.
static void blame_rule(struct output_order *order, enum order_rule rule)
{
    switch (rule) {
    case ORDER_RULE_STEP:
        output_order_forget(order);
        order->patience = 2 * order->patience + 1;
        if (order->patience > PATIENCE_MAX)
            order->patience = PATIENCE_MAX;
        break;
    case ORDER_RULE_NON_REFERENCE:
        order->no_non_reference = true;
        break;
    case ORDER_RULE_SAFE:
    case ORDER_RULES:
        break;
    }
}

// --- the pictures

static void remove_entry(struct output_order *order, int at)
{
    order->n--;
    memmove(order->entry + at, order->entry + at + 1,
            (size_t)(order->n - at) * sizeof(order->entry[0]));
}

void output_order_distrust(struct output_order *order)
{
    order->distrusted = DISTRUSTED_PICTURES;
    for (int i = 0; i < order->n; i++)
        order->entry[i].picture.taken &= order->entry[i].picture.given || order->unseen ||
                                         order->entry[i].sequence != order->sequence;
}

// Blames the rules that showed pictures too early: by POC, a new picture belongs ahead of them.
static void blame_rules(struct output_order *order, int poc)
{
    bool wrong[ORDER_RULES] = {false};
    for (int i = 0; i < order->n; i++) {
        const struct order_entry *entry = &order->entry[i];
        wrong[entry->rule] |=
            entry->shown && entry->sequence == order->sequence && entry->picture.poc >= poc;
    }
    for (int rule = 0; rule < ORDER_RULES; rule++)
        if (wrong[rule])
            blame_rule(order, rule);
    output_order_distrust(order);
}

bool output_order_is_behind(const struct output_order *order, int poc)
{
    return order->begun && order->last_sequence == order->sequence && poc <= order->last_poc;
}

bool output_order_decoded(struct output_order *order, const struct order_picture *picture,
                          int depth)
{
    order->depth = depth;
    if (picture->start != ORDER_CONTINUES) {
        order->sequence++;
        order->sequences++;
        order->distrusted = 0;
        order->unseen = picture->start == ORDER_BEGINS_UNSEEN;
    }
    order->newest = *picture;
    if (output_order_is_behind(order, picture->poc)) {
        blame_rules(order, picture->poc);
        if (picture->given)
            return false;
    }
    if (order->n == OUTPUT_ORDER_PICTURES)
        remove_entry(order, 0);
    order->entry[order->n] = (struct order_entry){
        .picture = *picture,
        .sequence = order->sequence,
        .unseen = order->unseen,
    };
    order->entry[order->n++].picture.taken &= order->distrusted == 0 || picture->given;
    order->distrusted -= order->distrusted > 0;
    return true;
}

static void note_shown(struct output_order *order, struct order_entry *entry)
{
    const int poc = entry->picture.poc;
    if (order->begun && order->last_sequence == entry->sequence && poc > order->last_poc &&
        (int64_t)poc - order->last_poc <= STEP_MAX)
        learn_step(order, poc - order->last_poc);
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

bool output_order_holds(const struct output_order *order, int64_t serial)
{
    const int at = find_serial(order, serial);
    return at >= 0 && !order->entry[at].shown;
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

// Returns true if nothing can come ahead of the first picture in output order. *rule is the rule
// that allows it; safe rules come first.
static bool is_next(const struct output_order *order, const struct order_entry *lowest, int held,
                    enum order_rule *rule)
{
    const struct order_picture *newest = &order->newest, *picture = &lowest->picture;
    *rule = ORDER_RULE_SAFE;
    if (lowest->sequence != order->sequence || held > order->depth || order->ended ||
        picture->start == ORDER_BEGINS_LOWEST)
        return true;
    if (picture->random_access && newest->poc > picture->poc)
        return true;
    if (order->distrusted > 0)
        return false;
    *rule = ORDER_RULE_NON_REFERENCE;
    if (!order->no_non_reference && !newest->reference && newest->poc >= picture->poc)
        return true;
    *rule = ORDER_RULE_STEP;
    return order->step > 0 && order->begun && order->last_sequence == lowest->sequence &&
           (int64_t)picture->poc - order->last_poc == order->step;
}

void output_order_end(struct output_order *order)
{
    order->ended = true;
}

int64_t output_order_next(struct output_order *order)
{
    int held;
    enum order_rule rule;
    struct order_entry *lowest = find_lowest(order, &held);
    if (!lowest || !lowest->picture.taken || !is_next(order, lowest, held, &rule))
        return 0;
    lowest->rule = rule;
    note_shown(order, lowest);
    return lowest->picture.serial;
}

// --- the decoder's own output

// The decoder gives out the first picture in output order that it holds: pictures ahead of it,
// shown or not, will not come.
static void drop_missed(struct output_order *order, const struct order_entry *output)
{
    const struct order_entry given = *output;
    for (int i = order->n - 1; i >= 0; i--) {
        const struct order_entry *entry = &order->entry[i];
        if ((int32_t)(entry->sequence - given.sequence) < 0 ||
            (entry->sequence == given.sequence && entry->picture.poc < given.picture.poc))
            remove_entry(order, i);
    }
}

// For a sequence that the decoder mixes with another: taken pictures are shown at their own time.
static enum order_verdict output_unseen(struct output_order *order, int at)
{
    struct order_entry *entry = &order->entry[at];
    const bool shown = entry->shown;
    if (!shown && entry->picture.taken)
        return ORDER_DROP;
    const bool late = order->last_sequence == entry->sequence && order->begun &&
                      entry->picture.poc <= order->last_poc;
    if (!shown && !late)
        note_shown(order, entry);
    remove_entry(order, at);
    return shown ? ORDER_DROP : late ? ORDER_LATE : ORDER_SHOW;
}

enum order_verdict output_order_output(struct output_order *order, int64_t serial)
{
    int at = find_serial(order, serial);
    if (at < 0)
        return ORDER_SHOW;
    if (order->entry[at].unseen)
        return output_unseen(order, at);
    drop_missed(order, &order->entry[at]);
    at = find_serial(order, serial);
    enum order_verdict verdict = order->entry[at].shown ? ORDER_DROP : ORDER_SHOW;
    for (int i = 0; i < order->n && verdict == ORDER_SHOW; i++)
        if (order->entry[i].shown)
            verdict = ORDER_LATE;
    if (verdict == ORDER_SHOW)
        note_shown(order, &order->entry[at]);
    if (verdict == ORDER_LATE)
        output_order_distrust(order);
    remove_entry(order, at);
    return verdict;
}
