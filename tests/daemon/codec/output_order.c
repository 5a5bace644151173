// Output order by POC, compared with a decoder that returns each picture when the stream's own
// limits allow it: the same pictures in the same order, only earlier.
#include "daemon/codec/output_order.h"

#include <libavutil/frame.h>
#include <stdlib.h>

#include "daemon/source/libav_version.h"
#include "tests/test.h"

enum { STREAM_MAX = 4000 };

// --- a decoder: it holds pictures back until more than `depth` wait

struct bumping {
    struct {
        struct order_picture picture;
        int sequence;
    } held[64];
    int n, sequence;
};

static void decoder_takes(struct bumping *b, struct order_picture picture)
{
    b->sequence += picture.start != PICTURE_CONTINUES;
    b->held[b->n].picture = picture;
    b->held[b->n++].sequence = b->sequence;
}

// Returns the serial of the decoder's next output picture, or 0.
static int64_t decoder_gives(struct bumping *b, int depth)
{
    int lowest = 0;
    if (b->n <= depth)
        return 0;
    for (int i = 1; i < b->n && b->held[i].sequence == b->held[0].sequence; i++)
        if (b->held[i].picture.poc < b->held[lowest].picture.poc)
            lowest = i;
    const int64_t serial = b->held[lowest].picture.serial;
    for (b->n--; lowest < b->n; lowest++)
        b->held[lowest] = b->held[lowest + 1];
    return serial;
}

// --- one stream through both

static AVFrame *frame_of(int64_t serial)
{
    AVFrame *frame = av_frame_alloc();
    libav_set_serial(frame, serial);
    return frame;
}

// Returns the serial of a picture to show now, or 0.
static int64_t next_of(struct output_order *order)
{
    AVFrame *frame = output_order_next(order);
    const int64_t serial = frame ? libav_serial(frame) : 0;
    av_frame_free(&frame);
    return serial;
}

struct run {
    struct output_order order;
    struct bumping decoder;
    int depth;
    int64_t serial;
    int64_t own[STREAM_MAX], shown[STREAM_MAX]; // serials, in the decoder's order and in ours
    int owns, shows, late;
    int waits[STREAM_MAX]; // by serial: packets between decoding and showing
};

static void begin(struct run *run, int depth)
{
    output_order_begin(&run->order);
    *run = (struct run){.depth = depth};
    output_order_begin(&run->order);
}

static void show(struct run *run, int64_t serial)
{
    run->shown[run->shows++] = serial;
    run->waits[serial] = (int)(run->serial - serial);
}

static void hear(struct run *run, int64_t serial)
{
    run->own[run->owns++] = serial;
    if (output_order_output(&run->order, serial))
        show(run, serial);
    while (output_order_late(&run->order))
        run->late++;
}

static void show_known(struct run *run)
{
    for (int64_t serial; (serial = next_of(&run->order));)
        show(run, serial);
}

static void decode_untaken(struct run *run, enum picture_start start, int poc, bool reference,
                           bool taken)
{
    const struct order_picture picture = {
        .serial = ++run->serial,
        .poc = poc,
        .start = start,
        .reference = reference,
        .frame = taken ? frame_of(run->serial) : NULL,
    };
    decoder_takes(&run->decoder, picture);
    output_order_decoded(&run->order, &picture, run->depth);
    const int64_t serial = decoder_gives(&run->decoder, run->depth);
    if (serial)
        hear(run, serial);
    show_known(run);
}

static void decode(struct run *run, enum picture_start start, int poc, bool reference)
{
    decode_untaken(run, start, poc, reference, true);
}

static void drain(struct run *run)
{
    for (int64_t serial; (serial = decoder_gives(&run->decoder, 0));)
        hear(run, serial);
}

// Checks that the same pictures came in the same order.
static void check_same(const struct run *run)
{
    CHECK(run->late == 0 && run->shows == run->owns, "%d shown of %d, %d late", run->shows,
          run->owns, run->late);
    for (int i = 0; i < run->shows && i < run->owns; i++)
        CHECK(run->shown[i] == run->own[i], "picture %d: %d, not %d", i, (int)run->shown[i],
              (int)run->own[i]);
}

// Returns the longest wait of the pictures from `serial` on.
static int longest_wait(const struct run *run, int64_t serial)
{
    int longest = 0;
    for (; serial <= run->serial; serial++)
        longest = run->waits[serial] > longest ? run->waits[serial] : longest;
    return longest;
}

// --- streams: `pattern` is the POC of each picture of a group relative to its start, in decoding
// order; negative ones are not references

static void decode_group(struct run *run, int base, const int *pattern, int n)
{
    for (int i = 0; i < n; i++)
        decode(run, PICTURE_CONTINUES, base + abs(pattern[i]), pattern[i] > 0);
}

static void decode_groups(struct run *run, int gops, int groups, int step, const int *pattern,
                          int n)
{
    for (int gop = 0; gop < gops; gop++) {
        decode(run, PICTURE_BEGINS_LOWEST, 0, true);
        for (int group = 0; group < groups; group++)
            decode_group(run, group * n * step, pattern, n);
    }
}

static void test_no_reordering(int depth)
{
    static const int flat[] = {2};
    static struct run run;
    begin(&run, depth);
    decode_groups(&run, 8, 24, 2, flat, 1);
    const int64_t from = 3 * 25 + 1;
    CHECK(longest_wait(&run, from) == 0, "depth %d: %d", depth, longest_wait(&run, from));
    drain(&run);
    check_same(&run);
}

static void test_two_b(void)
{
    static const int two_b[] = {6, -2, -4};
    static struct run run;
    begin(&run, 1);
    decode_groups(&run, 8, 8, 2, two_b, 3);
    for (int64_t serial = 3 * 25 + 1; serial <= run.serial; serial++) {
        const int at = (int)((serial - 1) % 25);
        const int wait = at == 0 ? 0 : at % 3 == 1 ? 2 : 0; // a P after its two Bs
        CHECK(run.waits[serial] == wait, "%d: %d", at, run.waits[serial]);
    }
    drain(&run);
    check_same(&run);
}

static void test_pyramid(void)
{
    static const int pyramid[] = {8, 4, -2, -6};
    static struct run run;
    begin(&run, 2);
    decode_groups(&run, 8, 6, 2, pyramid, 4);
    for (int64_t serial = 3 * 25 + 1; serial <= run.serial; serial++) {
        static const int waits[] = {3, 1, 0, 0};
        const int at = (int)((serial - 1) % 25);
        const int wait = at == 0 ? 0 : waits[(at - 1) % 4];
        CHECK(run.waits[serial] == wait, "%d: %d", at, run.waits[serial]);
    }
    drain(&run);
    check_same(&run);
}

// No picture waits longer than in the decoder, and non-reference pictures do not wait at all.
static void test_safe_rules(void)
{
    static struct run run;
    begin(&run, 2);
    decode(&run, PICTURE_BEGINS_LOWEST, 0, true);
    CHECK(run.shows == 1, "the first of all");
    decode(&run, PICTURE_CONTINUES, 8, true);
    decode(&run, PICTURE_CONTINUES, 4, true);
    CHECK(run.shows == 1, "%d", run.shows);
    decode(&run, PICTURE_CONTINUES, 2, false);
    CHECK(run.shows == 2 && run.shown[1] == 4, "%d", run.shows);
    decode(&run, PICTURE_CONTINUES, 6, false);
    CHECK(run.shows == 4 && run.shown[3] == 5, "%d", run.shows);
    decode(&run, PICTURE_BEGINS_LOWEST, 0, true);
    CHECK(run.shows == 6 && run.shown[4] == 2 && run.shown[5] == 6, "%d", run.shows);
    drain(&run);
    check_same(&run);
}

// H.265: pictures shown before an IRAP picture follow it in decoding order.
static void decode_irap(struct run *run, enum picture_start start, int poc, bool random_access)
{
    const struct order_picture picture = {.serial = ++run->serial,
                                          .poc = poc,
                                          .start = start,
                                          .random_access = random_access,
                                          .reference = true,
                                          .frame = frame_of(run->serial)};
    decoder_takes(&run->decoder, picture);
    output_order_decoded(&run->order, &picture, run->depth);
    const int64_t serial = decoder_gives(&run->decoder, run->depth);
    if (serial)
        hear(run, serial);
    show_known(run);
}

static void test_leading(void)
{
    static struct run run;
    begin(&run, 2);
    for (int gop = 0; gop < 6; gop++) { // none is shown before it: the next packet reveals it
        decode_irap(&run, PICTURE_BEGINS, 0, true);
        CHECK(run.shows == run.serial - 1, "%d", gop);
        decode_irap(&run, PICTURE_CONTINUES, 1, false);
        CHECK(run.shown[run.shows - 1] >= run.serial - 1, "%d", gop);
        for (int poc = 2; poc < 10; poc++)
            decode_irap(&run, PICTURE_CONTINUES, poc, false);
    }
    decode_irap(&run, PICTURE_CONTINUES, 13, true); // after 9: 10 is missing, so it waits
    CHECK(run.shown[run.shows - 1] == run.serial - 1, "CRA");
    decode_irap(&run, PICTURE_CONTINUES, 10, false);
    decode_irap(&run, PICTURE_CONTINUES, 11, false);
    CHECK(run.shown[run.shows - 1] == run.serial, "leading pictures");
    decode_irap(&run, PICTURE_CONTINUES, 14, false);
    CHECK(run.shown[run.shows - 1] == run.serial, "12 will not come");
    drain(&run);
    check_same(&run);
}

// An encoder decodes the second of two B pictures first: one is late, then none again.
static void test_wrong_non_reference(void)
{
    static const int crossed[] = {6, -4, -2};
    static struct run run;
    begin(&run, 2);
    decode_groups(&run, 8, 8, 2, crossed, 3);
    drain(&run);
    CHECK(run.late >= 1 && run.late <= 2 && run.shows + run.late == run.owns, "%d late", run.late);
    CHECK(longest_wait(&run, 1) <= 4, "%d", longest_wait(&run, 1));
}

// The step turns out smaller: one picture is late, then the decoder's order until the GOP ends.
static void test_wrong_step(void)
{
    static const int flat[] = {2}, halves[] = {2, 1}, quads[] = {4, 3, 1, 2};
    static struct run run;
    begin(&run, 3);
    decode_groups(&run, 4, 10, 2, flat, 1);
    CHECK(longest_wait(&run, run.serial - 20) == 0, "%d", longest_wait(&run, run.serial - 20));
    decode_groups(&run, 1, 10, 1, halves, 2);
    CHECK(run.order.distrusted > 0, "trusted");
    decode_groups(&run, 6, 10, 1, quads, 4);
    drain(&run);
    CHECK(run.late == 1 && run.shows + run.late == run.owns, "%d late", run.late);
    CHECK(longest_wait(&run, run.serial - 20) == 3, "%d", longest_wait(&run, run.serial - 20));
}

// A lost picture: those after it wait no longer than the stream's depth, and then go on.
static void test_loss(void)
{
    static const int flat[] = {2};
    static struct run run;
    begin(&run, 3);
    decode_groups(&run, 4, 10, 2, flat, 1);
    decode(&run, PICTURE_BEGINS_LOWEST, 0, true);
    decode(&run, PICTURE_CONTINUES, 4, true); // 2 never came
    const int64_t behind = run.serial;
    for (int poc = 6; poc < 30; poc += 2)
        decode(&run, PICTURE_CONTINUES, poc, true);
    CHECK(run.waits[behind] == 3 && longest_wait(&run, behind + 3) == 0, "%d", run.waits[behind]);
    static const int uneven[] = {2, 4, 8};
    decode_groups(&run, 4, 10, 4, uneven, 3);
    drain(&run);
    check_same(&run);
}

// A picture that cannot be taken is shown on the decoder's output; later ones wait for it.
static void test_untaken(void)
{
    static struct run run;
    begin(&run, 1);
    decode(&run, PICTURE_BEGINS_LOWEST, 0, true);
    decode_untaken(&run, PICTURE_CONTINUES, 2, false, false);
    CHECK(run.shows == 1, "%d", run.shows);
    decode(&run, PICTURE_CONTINUES, 4, false);
    CHECK(run.shows == 3, "%d", run.shows); // the decoder returned the second
    decode(&run, PICTURE_CONTINUES, 6, false);
    output_order_distrust(&run.order);
    decode(&run, PICTURE_CONTINUES, 8, false);
    CHECK(run.shows == 4, "%d", run.shows);
    for (int poc = 10; poc < 90; poc += 2)
        decode(&run, PICTURE_CONTINUES, poc, false);
    CHECK(run.waits[run.serial - 1] == 0 && run.shows == run.serial, "trusted again");
    drain(&run);
    check_same(&run);
}

// A decoder that drops late pictures never returns them, and delays nothing.
static void test_dropped_by_decoder(void)
{
    static struct run run;
    begin(&run, 0);
    decode(&run, PICTURE_BEGINS_LOWEST, 0, true);
    decode(&run, PICTURE_CONTINUES, 4, true);
    const struct order_picture late = {
        .serial = ++run.serial, .poc = 2, .frame = frame_of(run.serial)};
    output_order_decoded(&run.order, &late, 1);
    show_known(&run);
    CHECK(run.shows == 2, "%d", run.shows);
    run.depth = 2;
    for (int poc = 6; poc < 300; poc += 2)
        decode(&run, PICTURE_CONTINUES, poc, true);
    CHECK(run.shown[run.shows - 1] == run.serial, "held up");
    CHECK(run.late == 0 && run.shows == run.serial - 1, "%d of %d", run.shows, (int)run.serial);
}

// The first picture of a sequence is missing: a decoder that takes the next ones for part of the
// last sequence returns them in a wrong order.
static void test_unseen(void)
{
    static struct run run;
    const struct order_picture p = {3, 10, PICTURE_BEGINS_UNSEEN, .reference = true,
                                    .frame = frame_of(3)},
                               b = {4, 5, .reference = true, .frame = frame_of(4)},
                               untaken = {5, 2, .reference = true},
                               late = {6, 1, .reference = true};
    begin(&run, 0);
    decode(&run, PICTURE_BEGINS_LOWEST, 0, true);
    decode(&run, PICTURE_CONTINUES, 20, true);
    CHECK(run.shows == 2 && output_order_is_behind(&run.order, 20) &&
              !output_order_is_behind(&run.order, 21),
          "%d", run.shows);
    output_order_decoded(&run.order, &p, 3);
    CHECK(!output_order_output(&run.order, 3) && !output_order_late(&run.order), "taken");
    output_order_decoded(&run.order, &b, 3);
    output_order_decoded(&run.order, &untaken, 3);
    CHECK(next_of(&run.order) == 0, "the decoder's word is not waited for");
    CHECK(output_order_output(&run.order, 5), "not taken");
    output_order_decoded(&run.order, &late, 3);
    CHECK(!output_order_output(&run.order, 6) && output_order_late(&run.order) == 6, "too late");
    output_order_end(&run.order);
    CHECK(next_of(&run.order) == 4 && next_of(&run.order) == 3, "the end");
    CHECK(next_of(&run.order) == 0 && run.order.late[0] == 6 && run.order.lates == 0, "all");
}

// Any structure within the depth, with random losses: shown pictures keep their order within a
// sequence, none is shown twice, and each is shown or late.
static void test_any(unsigned seed)
{
    static struct run run;
    static bool seen[STREAM_MAX];
    static int poc_of[STREAM_MAX], sequence_of[STREAM_MAX];
    int sequence = 0;
    srand(seed);
    begin(&run, rand() % 5);
    for (int gop = 0; gop < 12; gop++) {
        decode(&run, rand() % 3 ? PICTURE_BEGINS_LOWEST : PICTURE_BEGINS, 0, true);
        poc_of[run.serial] = 0;
        sequence_of[run.serial] = ++sequence;
        const int group = 1 + rand() % (run.depth + 1), step = 1 + rand() % 2;
        for (int base = 0; base < 40 * step; base += group * step) {
            for (int i = 0; i < group; i++) { // the last one first, then the others in any order
                const int at = i == 0 ? group : gop % 2 ? i : group - i;
                if (rand() % 20 == 0)
                    continue;
                poc_of[run.serial + 1] = base + at * step;
                sequence_of[run.serial + 1] = sequence;
                decode_untaken(&run, PICTURE_CONTINUES, base + at * step, i == 0 || rand() % 2,
                               rand() % 30 != 0);
            }
        }
    }
    drain(&run);
    CHECK(run.shows + run.late == run.owns && run.owns == run.serial, "seed %u: %d + %d of %d",
          seed, run.shows, run.late, run.owns);
    for (int i = 0; i < run.serial + 1; i++)
        seen[i] = false;
    int64_t last = 0;
    for (int i = 0; i < run.shows; last = run.shown[i++]) {
        const int64_t serial = run.shown[i];
        CHECK(!seen[serial], "seed %u: %d twice", seed, (int)serial);
        seen[serial] = true;
        if (last)
            CHECK(sequence_of[serial] > sequence_of[last] ||
                      (sequence_of[serial] == sequence_of[last] && poc_of[serial] > poc_of[last]),
                  "seed %u: %d behind %d", seed, (int)serial, (int)last);
    }
}

int main(void)
{
    for (int depth = 0; depth <= 4; depth++)
        TEST(test_no_reordering(depth));
    TEST(test_two_b());
    TEST(test_pyramid());
    TEST(test_safe_rules());
    TEST(test_leading());
    TEST(test_wrong_non_reference());
    TEST(test_wrong_step());
    TEST(test_loss());
    TEST(test_untaken());
    TEST(test_dropped_by_decoder());
    TEST(test_unseen());
    for (unsigned seed = 1; seed <= 300; seed++)
        TEST(test_any(seed));
    return test_end();
}
