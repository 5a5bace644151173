// H.264 whose frames are two fields: both are one access unit, with any stamps and markers, and no
// field waits for another that does not come.
#include "daemon/rtsp/depacketizer.h"

#include "daemon/bitstream/nal.h"
#include "tests/daemon/rtsp/packets.h"

struct writer {
    uint8_t bytes[64];
    int at; // in bits
};

static void put(struct writer *w, uint32_t value, int bits)
{
    for (int i = bits - 1; i >= 0; i--, w->at++)
        if (value >> i & 1)
            w->bytes[w->at / 8] |= (uint8_t)(0x80 >> w->at % 8);
}

static void put_ue(struct writer *w, uint32_t value)
{
    const int bits = 32 - __builtin_clz(value + 1);
    put(w, 0, bits - 1);
    put(w, value + 1, bits);
}

static void send_sets(void)
{
    struct writer sps = {0}, pps = {0};
    put(&sps, 0x674d001e, 32);
    put_ue(&sps, 0); // id
    put_ue(&sps, 0); // log2_max_frame_num - 4
    put_ue(&sps, 2); // pic_order_cnt_type
    put_ue(&sps, 1);
    put(&sps, 0, 1);
    put_ue(&sps, 19);
    put_ue(&sps, 8);
    put(&sps, 0x3, 4); // frame_mbs_only_flag 0, and the bits after it
    net_send(sps.bytes, (size_t)sps.at / 8 + 1, false);
    put(&pps, 0x68, 8);
    put_ue(&pps, 0);
    put_ue(&pps, 0);
    put(&pps, 1, 1);
    net_send(pps.bytes, 2, false);
}

// `parity`: 't', 'b' or 'f' (a frame).
static void send_slice(char parity, uint32_t frame_num, bool first, bool marker)
{
    struct writer w = {0};
    put(&w, 0x61, 8);
    put_ue(&w, first ? 0 : 7);
    put_ue(&w, 7);
    put_ue(&w, 0);
    put(&w, frame_num, 4);
    put(&w, parity != 'f', 1);
    if (parity != 'f')
        put(&w, parity == 'b', 1);
    memset(w.bytes + w.at / 8 + 1, 0x5a, 40);
    net_send(w.bytes, (size_t)w.at / 8 + 41, marker);
}

static void send_delimiter(void)
{
    net_send("\x09\x10", 2, false);
}

// `two_stamps`: each field has its own; `delimited`: a delimiter too.
static void test_pairs(bool two_stamps, bool delimited)
{
    net_open_trusted(SDP_H264);
    send_sets();
    for (uint32_t i = 0; i < 40; i++) {
        const uint32_t stamp = net.timestamp;
        if (delimited)
            send_delimiter();
        send_slice('t', i % 16, true, true);
        CHECK(net.n == (int)i, "%u: a field alone", i);
        net_wait(20 * MS);
        net.timestamp += two_stamps ? 1800 : 0;
        if (delimited)
            send_delimiter();
        send_slice('b', i % 16, true, false);
        send_slice('b', i % 16, false, true);
        CHECK(net.n == (int)i + 1 && net.got[i].taken_ns == net.now_ns, "%u: %d", i, net.n);
        CHECK(net.got[i].unit.timestamp == stamp, "%u: stamp of the first field", i);
        CHECK(net_units((int)i) == 3 + 2 * delimited + 2 * (i == 0), "%u: %d units", i,
              net_units((int)i));
        CHECK(!net.got[i].unit.damaged && !net.got[i].unit.reference_lost, "%u", i);
        net_wait(20 * MS);
        net.timestamp = stamp + 3600;
    }
    CHECK(net.verdict.end == PICTURE_END_MARKER, "%s", picture_end_name(net.verdict.end));
}

static void test_alone(void)
{
    net_open_trusted(SDP_H264);
    send_sets();
    send_slice('t', 0, true, true); // no other field: the next is of another frame
    net.timestamp += 3600;
    send_delimiter();
    CHECK(net.n == 0, "%d", net.n);
    send_slice('t', 1, true, true);
    send_slice('b', 1, true, true);
    net.timestamp += 3600;
    send_slice('f', 2, true, true); // a frame does not wait
    net.timestamp += 3600;
    send_slice('f', 3, true, true);
    CHECK(net.n == 4, "%d", net.n);
    static const int units[] = {3, 3, 1, 1};
    for (int i = 0; i < net.n; i++)
        CHECK(net_units(i) == units[i] && !net.got[i].unit.damaged, "%d: %d", i, net_units(i));
    CHECK(net.got[1].unit.timestamp == 3600, "stamp");
    send_slice('b', 4, true, true); // the same parity: two frames
    send_slice('b', 4, true, true);
    send_slice('t', 4, true, true);
    CHECK(net.n == 6 && net_units(4) == 1 && net_units(5) == 2, "parity: %d", net.n);
}

// The second field is missing: the first is damaged, and the next one is not paired with it,
// although its number would fit.
static void test_hole(void)
{
    net_open_trusted(SDP_H264);
    send_sets();
    send_slice('t', 4, true, true);
    send_slice('b', 4, true, true);
    for (int i = 0; i < 2; i++) {
        net.timestamp += 3600;
        if (i == 0)
            net_lose(1);
        else
            send_slice('t', 5, true, true);
        send_slice('b', 5, true, true);
    }
    net.timestamp += 3600;
    send_slice('t', 6, true, true);
    net_lose(1);
    net.timestamp += 3600;
    send_slice('t', 7, true, true);
    send_slice('b', 7, true, true);
    CHECK(net.n == 5, "%d", net.n);
    static const int units[] = {4, 1, 2, 1, 2};
    for (int i = 0; i < net.n; i++)
        CHECK(net_units(i) == units[i], "%d: %d", i, net_units(i));
    CHECK(net.got[1].unit.reference_lost && !net.got[2].unit.damaged, "the first field missing");
    CHECK(net.got[3].unit.damaged && !net.got[4].unit.damaged, "the second field missing");
    net_check_lost("fields");
}

int main(void)
{
    for (int i = 0; i < 4; i++)
        TEST(test_pairs(i & 1, i & 2));
    TEST(test_alone());
    TEST(test_hole());
    net_close();
    return test_end();
}
