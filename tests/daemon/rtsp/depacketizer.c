// H.264 in RTP: whole pictures, as sent, at the moment of their completion, for any way of marking,
// stamping and cutting by the camera.
#include "daemon/rtsp/depacketizer.h"

#include "daemon/bitstream/nal.h"
#include "tests/daemon/clips.h"
#include "tests/daemon/rtsp/h264_packets.h"

enum { CUT = 600 };

// --- whole clips, compared unit by unit

struct clip {
    uint8_t *data;
    size_t size;
    struct nal nal[4096];
    bool first[4096]; // first of its picture, including units before the picture
    int n;
};

static void read_clip(struct clip *clip, const char *file)
{
    clip->data = clips_read(file, &clip->size);
    struct nal_reader reader = {.data = clip->data, .size = clip->size};
    bool ahead = false;
    for (clip->n = 0; clip->n < 4096 && nal_next(&reader, &clip->nal[clip->n]); clip->n++) {
        const struct nal *nal = &clip->nal[clip->n];
        const int type = nal->data[0] & 31;
        const bool slice = type == 1 || type == 5;
        clip->first[clip->n] = !ahead && (!slice || nal->data[1] & 0x80);
        ahead = !slice;
    }
}

static void send_nal(const struct nal *nal, bool marker)
{
    uint8_t payload[CUT + 2];
    if (nal->size <= CUT) {
        net_send(nal->data, nal->size, marker);
        return;
    }
    for (size_t at = 1; at < nal->size;) {
        const size_t n = nal->size - at < CUT ? nal->size - at : CUT;
        payload[0] = (nal->data[0] & 0xe0) | 28;
        payload[1] = (nal->data[0] & 31) | (at == 1 ? 0x80 : 0) | (at + n == nal->size ? 0x40 : 0);
        memcpy(payload + 2, nal->data + at, n);
        at += n;
        net_send(payload, n + 2, marker && at == nal->size);
    }
}

// Each unit of the clip is in the picture that it was sent with, and each picture comes with its
// last packet.
static void test_clip(const char *options)
{
    static struct clip clip;
    char encoder[256];
    snprintf(encoder, sizeof encoder, "-c:v libx264 -g 10 %s", options);
    clips_make("320x240", 30, encoder, "clip.h264");
    read_clip(&clip, "clip.h264");
    net_open_trusted(SDP_H264);
    int begin[64], pictures = 0;
    for (int i = 0; i < clip.n; i++) {
        if (clip.first[i]) {
            begin[pictures++] = i;
            next_stamp();
            net_wait(40 * MS);
        }
        const bool last = i + 1 == clip.n || clip.first[i + 1];
        send_nal(&clip.nal[i], last);
        CHECK(net.n == pictures - !last, "%s: %d of %d at unit %d", options, net.n, pictures, i);
    }
    begin[pictures] = clip.n;
    CHECK(pictures == 30 && net.n == 30, "%s: %d of %d pictures", options, net.n, pictures);
    for (int k = 0; k < net.n; k++) {
        struct nal_reader reader = {.data = net.got[k].unit.data, .size = net.got[k].unit.bytes};
        struct nal nal;
        for (int i = begin[k]; i < begin[k + 1]; i++)
            CHECK(nal_next(&reader, &nal) && nal.size == clip.nal[i].size &&
                      memcmp(nal.data, clip.nal[i].data, nal.size) == 0,
                  "%s: unit %d of picture %d", options, i, k);
        CHECK(!nal_next(&reader, &nal), "%s: more in picture %d", options, k);
        const struct access_unit *u = &net.got[k].unit;
        CHECK(u->keyframe == (k % 10 == 0) && u->has_sets == u->keyframe, "%s: %d", options, k);
        CHECK(!u->damaged && !u->reference_lost && !u->lost, "%s: %d", options, k);
    }
    free(clip.data);
}

// --- the ways of cameras to mark and cut: row 1

static void test_marked_sets(void)
{
    net_open_trusted(SDP_H264);
    for (int i = 0; i < 40; i++) {
        // Parameter sets have the stamp of the picture before, and all packets are marked.
        send_unit(7, 1, true);
        send_unit(8, 1, true);
        send_unit(6, 1, true);
        next_stamp();
        net_wait(40 * MS);
        send_unit(5, 1, true);
        CHECK(net.n == i + 1 && net.got[i].taken_ns == net.now_ns, "%d: waits", i);
        CHECK_UNITS(i, "7 8 6 5");
        CHECK(net.got[i].unit.timestamp == net.timestamp, "%d: stamp", i);
        CHECK(net.got[i].unit.received_ns == net.now_ns, "%d: its first packet", i);
    }
    CHECK(net.verdict.end == PICTURE_END_MARKER, "%s", picture_end_name(net.verdict.end));
}

// --- row 2

static void test_marked_slices(void)
{
    memset(&net.verdict, 0, sizeof net.verdict);
    net_open(SDP_H264, NULL);
    for (int i = 0; i < 40; i++) {
        for (int k = 0; k < 4; k++) {
            net_wait(1 * MS);
            send_slice(k == 0, true);
        }
        CHECK(net.n == i + (i > 0), "%d: %d come at once", i, net.n);
        net_wait(36 * MS);
        next_stamp();
    }
    CHECK(net.n == 40, "%d", net.n);
    for (int i = 0; i < net.n; i++)
        CHECK_UNITS(i, "1 1m 1m 1m");
    CHECK(net.verdict.end == PICTURE_END_PER_SLICE, "%s", picture_end_name(net.verdict.end));
    // One slice less: pictures wait no longer than for silence, but the first waits for the next.
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++)
            send_slice(k == 0, true);
        net_wait(40 * MS);
        CHECK(net.n == 40 + i + (i > 0), "%d", net.n);
        next_stamp();
    }
}

// --- row 3

static void test_no_marker(void)
{
    memset(&net.verdict, 0, sizeof net.verdict);
    net_open(SDP_H264, NULL);
    for (int i = 0; i < 40; i++) {
        send_slice(1, false);
        net_wait(1 * MS);
        send_slice(0, false);
        const int64_t sent = net.now_ns;
        net_wait(39 * MS);
        if (i >= 16)
            CHECK(net.n == i + 1 && net.got[i].taken_ns == sent + 5 * MS, "%d: %d", i, net.n);
        next_stamp();
    }
    CHECK(net.verdict.end == PICTURE_END_NONE, "%s", picture_end_name(net.verdict.end));
    for (int i = 0; i < net.n; i++)
        CHECK_UNITS(i, "1 1m");
    // A pause inside a picture splits it once, not again.
    for (int i = 0; i < 2; i++) {
        send_slice(1, false);
        net_wait(8 * MS);
        send_slice(0, false);
        net_wait(40 * MS);
        next_stamp();
    }
    CHECK(net.n == 43, "%d", net.n);
    CHECK_UNITS(40, "1");
    CHECK_UNITS(41, "1m");
    CHECK_UNITS(42, "1 1m");
}

// --- row 4

static void test_one_stamp(void)
{
    net_open_trusted(SDP_H264);
    for (int i = 0; i < 3; i++) {
        send_slice(1, false); // ended by the next, except the last
        send_slice(0, i == 2);
    }
    CHECK(net.n == 3, "%d", net.n);
    net.timestamp -= 7 * 90000;
    send_slice(1, true);
    CHECK(net.n == 4 && net.got[3].unit.timestamp == net.timestamp, "%d", net.n);
    CHECK_UNITS(0, "1 1m");
    CHECK_UNITS(2, "1 1m");
    for (int i = 0; i < 4; i++)
        check_flags(i, false, false, 0);
}

// --- row 5, and other ways to cut

static size_t join(uint8_t *to, const char *pattern)
{
    size_t at = 0;
    for (int place = 1; *pattern; pattern++, place++) {
        const int type = *pattern - '0';
        memcpy(to + at, "\0\0\0\1" + (place % 2), 4 - (size_t)(place % 2));
        at += 4 - (size_t)(place % 2);
        memcpy(to + at, nal_of(place, type, 1, 1, 100), 100);
        at += 100;
    }
    return at;
}

// Units with start codes in one payload, with and without the first code, and in fragments of every
// size.
static void test_start_codes(void)
{
    uint8_t all[1024], payload[1024];
    const size_t size = join(all, "785");
    net_open_trusted(SDP_H264);
    next_stamp();
    net_send(all, size, true);
    next_stamp();
    net_send(all + 3, size - 3, true);
    for (size_t cut = 1; cut < size; cut++) {
        next_stamp();
        for (size_t at = 0; at < size; at += cut) {
            const size_t n = size - at < cut ? size - at : cut;
            payload[0] = 0x7c;
            payload[1] = (uint8_t)(7 | (at == 0 ? 0x80 : 0) | (at + n == size ? 0x40 : 0));
            memcpy(payload + 2, all + at, n);
            net_send(payload, n + 2, at + n == size);
        }
    }
    CHECK(net.n == 1 + (int)size, "%d", net.n);
    for (int i = 0; i < net.n; i++) {
        CHECK_UNITS(i, "7 8 5");
        check_flags(i, false, false, 0);
        CHECK(net.got[i].unit.keyframe && net.got[i].unit.has_sets, "%d", i);
    }
}

// A picture without a marker is still open when the fragments of units with start codes begin.
static void test_start_codes_behind_open_picture(void)
{
    uint8_t all[1024], payload[1024];
    const size_t size = join(all, "785"), cut = 60;
    net_open_trusted(SDP_H264);
    send_fragment(0x80 | 0x40, 5, 1500, false);
    for (size_t at = 0; at < size; at += cut) {
        const size_t n = size - at < cut ? size - at : cut;
        payload[0] = 0x7c;
        payload[1] = (uint8_t)(7 | (at == 0 ? 0x80 : 0) | (at + n == size ? 0x40 : 0));
        memcpy(payload + 2, all + at, n);
        net_send(payload, n + 2, at + n == size);
    }
    CHECK(net.n == 2, "%d", net.n);
    CHECK_UNITS(0, "5");
    CHECK_UNITS(1, "7 8 5");
}

// Two pictures with start codes in one payload.
static void test_two_in_one(void)
{
    uint8_t all[1024];
    const size_t size = join(all, "78511");
    net_open_trusted(SDP_H264);
    net_send(all, size, true);
    CHECK(net.n == 3, "%d", net.n);
    CHECK_UNITS(0, "7 8 5");
    CHECK_UNITS(1, "1");
    CHECK_UNITS(2, "1");
}

static void test_fragments(void)
{
    net_open_trusted(SDP_H264);
    send_fragment(0x80 | 0x40, 5, 50, true); // a whole unit
    next_stamp();
    send_fragment(0x80, 5, 50, false); // different types, the reserved bit, an empty one
    send_fragment(0x20, 1, 50, false);
    send_fragment(0, 7, 0, false);
    send_fragment(0x40, 1, 50, true);
    next_stamp();
    send_fragment(0x80, 5, 0, false); // an empty first one
    send_fragment(0x40, 5, 50, true);
    next_stamp();
    send_fragment(0x80, 5, 50, false); // a marker, but no end
    send_fragment(0, 5, 50, true);
    CHECK(net.n == 4, "%d", net.n);
    for (int i = 0; i < net.n; i++) {
        CHECK_UNITS(i, "5");
        check_flags(i, false, false, 0);
    }
    const size_t sizes[] = {51, 151, 51, 101};
    for (int i = 0; i < net.n; i++)
        CHECK(net.got[i].unit.bytes == 4 + sizes[i], "%d: %zu", i, net.got[i].unit.bytes);
}

// A unit in fragments has the times of the first and the last, and the pause between them is
// learnt.
static void test_times(void)
{
    net_open_trusted(SDP_H264);
    const int64_t first_ns = net.now_ns;
    send_fragment(0x80, 5, 500, false);
    net_wait(2 * MS);
    send_fragment(0, 5, 500, false);
    net_wait(5 * MS);
    send_fragment(0x40, 5, 500, true);
    CHECK(net.n == 1, "%d", net.n);
    const struct access_unit *u = &net.got[0].unit;
    CHECK(u->received_ns == first_ns && u->arrived_ns == first_ns + 7 * MS, "%lld and %lld ns",
          (long long)(u->received_ns - first_ns), (long long)(u->arrived_ns - first_ns));
    CHECK(net.verdict.gap_ns > 2 * MS, "%lld ns", (long long)net.verdict.gap_ns);
}

// The beginning of an incomplete unit shows which picture is damaged.
static void test_incomplete(void)
{
    net_open_trusted(SDP_H264);
    send_slice(1, false);
    send_fragment(0x80, 5, 50, false);
    net_lose(1);
    next_stamp();
    send_slice(1, true);
    CHECK(net.n == 2, "%d", net.n);
    check_flags(0, false, false, 0);
    check_flags(1, false, true, 1);
}

static size_t aggregate(uint8_t *to, const char *pattern)
{
    size_t at = 1;
    to[0] = 24;
    for (; *pattern; pattern++) {
        to[at++] = 0;
        to[at++] = 30;
        memcpy(to + at, nal_of(*pattern - '0', *pattern - '0', 1, 1, 30), 30);
        at += 30;
    }
    return at;
}

static void test_aggregates(void)
{
    uint8_t payload[512] = {0};
    net_open_trusted(SDP_H264);
    net_send(payload, aggregate(payload, "785"), true);
    next_stamp();
    memset(payload, 0, sizeof payload);
    const size_t end = aggregate(payload, "7815"); // two pictures; size 0, and a tail
    memset(payload + end + 2, 0x55, 7);
    net_send(payload, end + 9, true);
    next_stamp();
    const size_t size = aggregate(payload, "185");
    net_send(payload, size - 4, true); // a size beyond the end
    CHECK(net.n == 4, "%d", net.n);
    CHECK_UNITS(0, "7 8 5");
    CHECK_UNITS(1, "7 8 1");
    CHECK_UNITS(2, "5");
    CHECK_UNITS(3, "1");
    check_flags(2, false, false, 0);
}

static void test_skipped(void)
{
    net_open_trusted(SDP_H264);
    static const uint8_t types[] = {30, 31, 25, 26, 27, 29, 0x60};
    send_slice(1, false);
    for (size_t i = 0; i < sizeof types; i++) {
        const uint8_t payload[] = {types[i], 1, 2, 3, 4, 5};
        net_send(payload, sizeof payload, false);
    }
    net_send("", 0, false);
    send_slice(0, true);
    CHECK_UNITS(0, "1 1m");
    check_flags(0, false, false, 0);
}

// --- facts of a picture

static void test_recovery_point(void)
{
    static const uint8_t timing[] = {6, 1, 1, 0x55, 6, 1, 0xc4, 0x80}, other[] = {6, 5, 1, 6, 0x80};
    net_open_trusted(SDP_H264);
    net_send(timing, sizeof timing, false);
    send_slice(1, true);
    next_stamp();
    net_send(timing, sizeof timing, false);
    uint8_t inter[] = {0x41, 0x80 | 0x40 | 0x20, 0x33, 0x44, 0x55}; // first_mb 0, slice_type 0
    net_send(inter, sizeof inter, true);
    next_stamp();
    net_send(other, sizeof other, false);
    send_slice(1, true);
    CHECK(net.n == 3, "%d", net.n);
    CHECK(net.got[0].unit.keyframe, "a recovery point with an I picture");
    CHECK(!net.got[1].unit.keyframe && !net.got[2].unit.keyframe,
          "no recovery point, no I picture");
}

static void test_sets(void)
{
    static struct sdp_media media = {.codec = SDP_H264};
    uint8_t sps[] = {0x67, 66, 0, 30, 0x95, 0xa0, 0x50, 0x7c}, pps[] = {0x68, 0xce, 0x3c, 0x80};
    memcpy(media.sets, "\0\0\0\1", 4);
    memcpy(media.sets + 4, pps, 4);
    memcpy(media.sets + 8, "\0\0\1", 3);
    memcpy(media.sets + 11, sps, 8);
    // No sets: a slice, the forbidden bit, one byte alone.
    static const uint8_t wrong[] = {0, 0,  1,    0x65, 0x88, 0x84, 0,    0, 1, 0xe7, 66,
                                    0, 30, 0x95, 0,    0,    1,    0x67, 0, 0, 1,    0x68};
    memcpy(media.sets + 19, wrong, sizeof wrong);
    media.sets_bytes = 19 + sizeof wrong;
    net_open(SDP_H264, &media);
    const uint8_t *sets = net.depacketizer->sets;
    size_t bytes = net.depacketizer->sets_bytes;
    CHECK(bytes == 20 && !memcmp(sets, "\0\0\0\1\x67", 5) && !memcmp(sets + 12, "\0\0\0\1\x68", 5),
          "of the SDP, in their order: %zu", bytes);
    sps[3] = 31;
    net_send(sps, sizeof sps, false);
    bytes = net.depacketizer->sets_bytes;
    CHECK(bytes == 20 && !memcmp(sets + 4, sps, 8), "newer ones: %zu", bytes);
    send_slice(1, true);
    net_wait(20 * MS);
    CHECK(net.n == 1 && net.got[0].unit.has_sets, "%d", net.n);
}

// One place serves all pictures, without new allocations.
static void test_places(void)
{
    net_open_trusted(SDP_H264);
    for (int i = 0; i < 100; i++) {
        send_fragment(0x80, 5, 2000, false);
        for (int k = 0; k < 20; k++)
            send_fragment(0, 5, 2000, false);
        send_fragment(0x40, 5, i % 3 * 900, true);
        next_stamp();
    }
    CHECK(net.n == 100 && net.got[50].unit.bytes > 42000, "%d", net.n);
    for (int i = 10; i < net.n; i++)
        CHECK(net.got[i].place == net.got[i - 1].place, "%d", i);
}

static void test_flush(void)
{
    net_open_trusted(SDP_H264);
    send_slice(1, false);
    depacketizer_flush(net.depacketizer);
    net_take();
    send_slice(1, false);
    send_fragment(0x80, 1, 50, false);
    depacketizer_flush(net.depacketizer);
    net_take();
    depacketizer_flush(net.depacketizer);
    net_take();
    CHECK(net.n == 2, "%d", net.n);
    check_flags(0, false, false, 0);
    check_flags(1, true, false, 0);
}

int main(void)
{
    clips_open();
    TEST(test_clip("-bf 0"));
    TEST(test_clip("-bf 2 -x264-params aud=1:slices=3"));
    TEST(test_marked_sets());
    TEST(test_marked_slices());
    TEST(test_no_marker());
    TEST(test_one_stamp());
    TEST(test_start_codes());
    TEST(test_start_codes_behind_open_picture());
    TEST(test_two_in_one());
    TEST(test_fragments());
    TEST(test_times());
    TEST(test_incomplete());
    TEST(test_aggregates());
    TEST(test_skipped());
    TEST(test_recovery_point());
    TEST(test_sets());
    TEST(test_places());
    TEST(test_flush());
    net_close();
    clips_close();
    return test_end();
}
