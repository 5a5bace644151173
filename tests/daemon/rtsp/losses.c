// Losses: the picture that lacks a packet reports it, and each packet is counted once.
#include "daemon/rtsp/depacketizer.h"

#include "tests/daemon/rtsp/h264_packets.h"

// Sends pictures of three slices, the second in three fragments. `hole` is the packet missing in
// the third picture, of 5 (5: all of them).
static void send_pictures(int hole)
{
    net_open_trusted(SDP_H264);
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 5; k++) {
            if (i == 2 && (hole == k || hole == 5))
                net_lose(1);
            else if (k == 0 || k == 4)
                send_slice(k == 0, k == 4);
            else {
                uint8_t payload[102] = {0x3c, (uint8_t)(k == 1 ? 0x81 : k == 3 ? 0x41 : 1)};
                memcpy(payload + 2, nal_of(3, 1, 1, 0, 101) + 1, 100);
                net_send(payload, 102, false);
            }
        }
        next_stamp();
        net_wait(40 * MS);
    }
    net_check_lost("of a picture");
}

static void test_holes(void)
{
    static const char *const left[] = {"1m 1m", "1 1m", "1 1m", "1 1m", "1 1m"};
    for (int hole = 0; hole < 5; hole++) {
        send_pictures(hole);
        CHECK(net.n == 5, "%d: %d", hole, net.n);
        for (int i = 0; i < 5; i++) {
            CHECK_UNITS(i, i == 2 ? left[hole] : "1 1m 1m");
            check_flags(i, i == 2, false, i == 2);
        }
    }
    send_pictures(5);
    CHECK(net.n == 4, "%d", net.n);
    for (int i = 0; i < net.n; i++)
        check_flags(i, false, i == 2, i == 2 ? 5 : 0);
}

// A picture without any slice left is a missing picture; its parameter sets are kept.
static void test_no_slice_left(void)
{
    net_open_trusted(SDP_H264);
    send_unit(7, 1, false);
    send_unit(8, 1, false);
    send_fragment(0x80, 5, 50, false);
    net_lose(2);
    send_fragment(0x40, 5, 50, true);
    CHECK(net.n == 0, "%d", net.n);
    next_stamp();
    net_wait(40 * MS);
    send_slice(1, true);
    CHECK_UNITS(0, "7 8 1");
    check_flags(0, false, true, 2);
    CHECK(net.got[0].unit.received_ns == net.now_ns && net.got[0].unit.has_sets, "its own time");
    // The loss extends into the next picture's beginning.
    next_stamp();
    send_fragment(0x80, 1, 50, false);
    net_lose(3);
    next_stamp();
    send_slice(0, true);
    CHECK_UNITS(1, "1m");
    check_flags(1, true, true, 3);
    net_check_lost("no slice left");
}

// A loss between two pictures: the end of a non-reference picture, perhaps plus a whole one.
static void test_disposable(void)
{
    net_open_trusted(SDP_H264);
    net_send(nal_of(0, 1, 0, 1, 40), 40, true);
    CHECK(net.n == 1 && net.got[0].unit.disposable, "nal_ref_idc 0");
    next_stamp();
    net_send(nal_of(0, 1, 0, 1, 40), 40, false);
    next_stamp();
    net_lose(1);
    send_slice(1, true);
    check_flags(1, true, false, 1);
    check_flags(2, false, true, 0);
    CHECK(!net.got[2].unit.disposable, "nal_ref_idc 1");
}

// Losses without a gap in the numbers: units without an end, or without a beginning.
static void test_broken_units(void)
{
    net_open_trusted(SDP_H264);
    send_slice(1, false);
    send_fragment(0x80, 1, 50, false);
    send_slice(0, true);
    next_stamp();
    send_slice(1, false);
    send_fragment(0x40, 1, 50, true);
    next_stamp();
    send_slice(1, false);
    send_fragment(0x80, 1, 50, false);
    send_fragment(0xc0, 1, 50, false);
    next_stamp();
    send_slice(1, true);
    CHECK(net.n == 4, "%d", net.n);
    for (int i = 0; i < net.n; i++)
        check_flags(i, i < 3, false, 0);
    CHECK_UNITS(0, "1 1m");
    CHECK_UNITS(1, "1");
}

// The packet after the hole gives no information: the next one does.
static void test_skipped_behind_hole(void)
{
    net_open_trusted(SDP_H264);
    send_slice(1, true);
    next_stamp();
    net_lose(2);
    net_send("\x1e\1\2", 3, false);
    send_slice(1, true);
    next_stamp();
    net_lose(1);
    net_send("", 0, false);
    send_slice(0, true);
    CHECK(net.n == 3, "%d", net.n);
    check_flags(0, false, false, 0);
    check_flags(1, false, true, 2);
    check_flags(2, true, false, 1);
    net_check_lost("behind a skipped packet");
}

static void test_restart(void)
{
    net_open_trusted(SDP_H264);
    send_slice(1, false);
    net.restarted = true;
    net.timestamp = 77;
    send_unit(5, 1, true);
    CHECK(net.n == 2, "%d", net.n);
    check_flags(0, true, false, 0);
    CHECK(net.got[1].unit.restarted && !net.got[0].unit.restarted, "restarted");
}

int main(void)
{
    TEST(test_holes());
    TEST(test_no_slice_left());
    TEST(test_disposable());
    TEST(test_broken_units());
    TEST(test_skipped_behind_hole());
    TEST(test_restart());
    net_close();
    return test_end();
}
