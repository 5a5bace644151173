// RTP packets as cameras and networks deform them: selection of ours, output order, and the number
// of missing ones.
#include "daemon/rtsp/rtp_receiver.h"

#include <errno.h>
#include <string.h>

#include "daemon/rtsp/sdp.h"
#include "tests/test.h"

enum { TYPE = 96, PACKET_MAX = 64 };

static const int64_t MS = 1000000, START = 5000000000;

// A packet to send; with only `sequence` set, it is a plain one of ours.
struct sent {
    uint16_t sequence;
    uint32_t timestamp;
    bool marker;
    uint32_t ssrc;
    int type; // 0: ours
};

static size_t write_packet(uint8_t *to, struct sent sent)
{
    const uint8_t packet[] = {0x80,
                              (uint8_t)(sent.marker << 7 | (sent.type ? sent.type : TYPE)),
                              (uint8_t)(sent.sequence >> 8),
                              (uint8_t)sent.sequence,
                              (uint8_t)(sent.timestamp >> 24),
                              (uint8_t)(sent.timestamp >> 16),
                              (uint8_t)(sent.timestamp >> 8),
                              (uint8_t)sent.timestamp,
                              (uint8_t)(sent.ssrc >> 24),
                              (uint8_t)(sent.ssrc >> 16),
                              (uint8_t)(sent.ssrc >> 8),
                              (uint8_t)sent.ssrc,
                              (uint8_t)sent.sequence, // the payload
                              0x55};
    memcpy(to, packet, sizeof packet);
    return sizeof packet;
}

static struct rtp_receiver receiver;
static int64_t now;
static uint8_t buffer[PACKET_MAX]; // of the last packet put

static void open_with(struct rtsp_track_options options)
{
    static const struct sdp_media media = {.payload_type = TYPE, .clock_rate = 90000};
    rtp_receiver_close(&receiver);
    now = START;
    options.media = &media;
    rtp_receiver_open(&receiver, &options);
}

static void open_receiver(bool ordered)
{
    open_with((struct rtsp_track_options){.ordered = ordered});
}

static int put_sent(struct sent sent)
{
    return rtp_receiver_put(&receiver, buffer, write_packet(buffer, sent), now);
}

// Returns the output so far as text: "7" is a packet, "+2" two lost ones before it, "!" a restart,
// "?" an unknown loss, "." the marker.
static const char *take_all(void)
{
    static char text[4096];
    struct rtp_packet packet;
    size_t n = 0;
    text[0] = 0;
    while (rtp_receiver_get(&receiver, now, &packet) == 0 && n < sizeof text - 64) {
        n += (size_t)sprintf(text + n, "%s", n ? " " : "");
        if (packet.lost)
            n += (size_t)sprintf(text + n, "+%u ", packet.lost);
        n += (size_t)sprintf(text + n, "%s%s%d%s", packet.restarted ? "!" : "",
                             packet.lost_unknown ? "?" : "", packet.sequence,
                             packet.marker ? "." : "");
        CHECK(packet.bytes == 2 && packet.payload[0] == (uint8_t)packet.sequence &&
                  packet.payload[1] == 0x55,
              "the payload of %d", packet.sequence);
        CHECK(packet.received_ns <= now && packet.received_ns >= START, "its time of arrival");
    }
    return text;
}

static void check_out(struct sent sent, const char *wanted)
{
    int rc = put_sent(sent);
    const char *out = take_all();
    CHECK(rc == 0 && strcmp(out, wanted) == 0, "packet %d: %d \"%s\", not \"%s\"", sent.sequence,
          rc, out, wanted);
}

static void check_foreign(struct sent sent)
{
    const uint64_t foreign = receiver.statistics.foreign;
    int rc = put_sent(sent);
    CHECK(rc == -EBADMSG && !*take_all(), "packet %d is not ours: %d", sent.sequence, rc);
    CHECK(receiver.statistics.foreign == foreign + 1, "it is counted");
}

#define IN(n, wanted)  check_out((struct sent){.sequence = (n)}, wanted)
#define FIELD(name)    ((unsigned long long)receiver.statistics.name)
#define COUNT(name, n) CHECK(FIELD(name) == (n), #name " is %llu, not %d", FIELD(name), (int)(n))

static void parses_what_cameras_send(void)
{
    struct rtp_packet packet;
    uint8_t data[PACKET_MAX];
    const size_t bytes = write_packet(
        data, (struct sent){.sequence = 770, .timestamp = 5, .marker = true, .ssrc = 9});
    CHECK(rtp_parse(&packet, data, bytes) == 0, "plain");
    CHECK(packet.sequence == 770 && packet.timestamp == 5 && packet.ssrc == 9 && packet.marker &&
              packet.payload_type == TYPE && packet.payload == data + 12 && packet.bytes == 2 &&
              !packet.extension,
          "its fields");
    CHECK(rtp_parse(&packet, data, 12) == 0 && packet.bytes == 0, "an empty payload");
    CHECK(rtp_parse(&packet, data, 11) == -EBADMSG, "cut in its header");
    data[0] = 0x40;
    CHECK(rtp_parse(&packet, data, bytes) == -EBADMSG, "version 1");

    data[0] = 0xa0; // padding
    data[13] = 1;
    CHECK(rtp_parse(&packet, data, 14) == 0 && packet.bytes == 1, "one byte of padding");
    data[13] = 2;
    CHECK(rtp_parse(&packet, data, 14) == 0 && packet.bytes == 0, "nothing but padding");
    data[13] = 3;
    CHECK(rtp_parse(&packet, data, 14) == 0 && packet.bytes == 2, "more padding than payload");
    data[13] = 0;
    CHECK(rtp_parse(&packet, data, 14) == 0 && packet.bytes == 2, "padding of no bytes");
    CHECK(rtp_parse(&packet, data, 12) == 0 && packet.bytes == 0, "padding of an empty payload");

    data[0] = 0x82; // two contributing sources
    CHECK(rtp_parse(&packet, data, 21) == 0 && packet.payload == data + 20 && packet.bytes == 1,
          "behind the contributing sources");
    CHECK(rtp_parse(&packet, data, 19) == -EBADMSG, "cut in them");

    memcpy(data + 12, (uint8_t[]){0xff, 0xd8, 0, 1, 1, 2, 3, 4, 9}, 9);
    data[0] = 0x90;
    CHECK(rtp_parse(&packet, data, 21) == 0 && packet.extension_profile == 0xffd8 &&
              packet.extension == data + 16 && packet.extension_bytes == 4 &&
              packet.payload == data + 20 && packet.bytes == 1,
          "behind an extension");
    CHECK(rtp_parse(&packet, data, 19) == -EBADMSG, "cut in it");
    CHECK(rtp_parse(&packet, data, 15) == -EBADMSG, "cut in its header");
}

static void tells_rtcp(void)
{
    uint8_t data[PACKET_MAX];
    const size_t bytes = write_packet(data, (struct sent){.type = TYPE, .marker = true});
    CHECK(!rtp_is_rtcp(data, bytes), "RTP with a marker");
    for (int type = 199; type <= 205; type++) {
        data[1] = (uint8_t)type;
        CHECK(rtp_is_rtcp(data, bytes) == (type >= 200 && type <= 204), "type %d", type);
    }
    data[1] = 200;
    CHECK(!rtp_is_rtcp(data, 3), "cut");
    open_receiver(true);
    IN(1, "1");
    CHECK(rtp_receiver_put(&receiver, data, bytes, now) == -EBADMSG, "RTCP is no packet");
}

static void gives_in_order_at_once(void)
{
    for (int ordered = 0; ordered < 2; ordered++) {
        open_receiver(ordered);
        CHECK(rtp_receiver_due_ns(&receiver) == INT64_MAX, "nothing is due");
        for (int i = 65530; i < 65546; i++) {
            char wanted[16];
            sprintf(wanted, "%d", i % 65536);
            IN((uint16_t)i, wanted);
        }
        COUNT(packets, 16);
        COUNT(expected, 16);
        COUNT(lost, 0);
        CHECK(FIELD(highest_sequence) == 65545, "extended: %llu", FIELD(highest_sequence));
    }
}

static void counts_holes_over_tcp(void)
{
    open_receiver(true);
    IN(65533, "65533");
    IN(65535, "+1 65535");
    IN(3, "+3 3");
    IN(2004, "+2000 2004");
    COUNT(lost, 2004);
    COUNT(expected, 2008);
    IN(2003, ""); // late because of our own thread: nothing waits for it
    IN(2005, "2005");
    COUNT(late, 1);
    COUNT(restarts, 0);
    IN(2005, "");
    COUNT(duplicate, 1);
    CHECK(rtp_receiver_due_ns(&receiver) == INT64_MAX, "nothing waits");
}

static void begins_anew_after_three(void)
{
    for (int ordered = 0; ordered < 2; ordered++) {
        open_receiver(ordered);
        IN(30000, "30000");
        IN(30001, "30001");
        IN(5, "");
        IN(6, "");
        IN(30002, "30002"); // two are not enough
        COUNT(late, 2);
        IN(5, "");
        IN(6, "");
        IN(7, "!?5 6 7");
        IN(8, "8");
        IN(10, ordered ? "+1 10" : "");
        now += 20 * MS;
        CHECK(strcmp(take_all(), ordered ? "" : "+1 10") == 0, "the hole");
        COUNT(restarts, 1);
        COUNT(lost, 1);
        COUNT(late, 2);
        COUNT(packets, 8);
        COUNT(expected, 9);
        CHECK(FIELD(highest_sequence) == 10, "extended: %llu", FIELD(highest_sequence));
    }
}

static void begins_anew_with_swapped_packets(void)
{
    open_receiver(false);
    IN(30000, "30000");
    IN(6, "");
    IN(5, "");
    IN(8, "!?5 6");
    IN(7, "7 8");
    COUNT(lost, 0);
    open_receiver(true); // one of the first packets is missing
    IN(30000, "30000");
    IN(5, "");
    IN(7, "");
    IN(8, "!?5 +1 7 8");
    COUNT(lost, 1);
    open_receiver(true); // far from each other
    IN(30000, "30000");
    IN(5, "");
    IN(6, "");
    IN(1000, "");
    IN(1001, "");
    IN(1002, "!?1000 1001 1002");
}

// Over UDP slightly lower numbers are late packets; this many in a row are a new numbering.
static void begins_anew_a_little_lower(void)
{
    open_receiver(false);
    for (int i = 1000; i < 1100; i++) {
        put_sent((struct sent){.sequence = (uint16_t)i});
        take_all();
    }
    for (int i = 1010; i < 1041; i++)
        IN((uint16_t)i, "");
    IN(1041, "!?1039 1040 1041");
    IN(1042, "1042");
    COUNT(restarts, 1);
    COUNT(lost, 0);
    COUNT(duplicate, 32);
}

// A long hole is a loss if the stream's time advanced as much as ours, and else another sender's.
static void tells_long_outages_from_restarts(void)
{
    open_receiver(true);
    IN(100, "100");
    now += 2000 * MS;
    check_out((struct sent){.sequence = 10101, .timestamp = 190000}, "+10000 10101");
    COUNT(restarts, 0);
    now += 2000 * MS;
    const uint32_t jumped = 190000 + 500000;
    check_out((struct sent){.sequence = 20101, .timestamp = jumped}, "");
    check_out((struct sent){.sequence = 20102, .timestamp = jumped}, "");
    check_out((struct sent){.sequence = 20103, .timestamp = jumped}, "!?20101 20102 20103");
    now += 2 * MS; // no time for so many
    check_out((struct sent){.sequence = 25001, .timestamp = jumped + 180}, "");
    COUNT(lost, 10000);
    COUNT(restarts, 1);
}

static void waits_for_late_ones(void)
{
    open_receiver(false);
    IN(1, "1");
    IN(3, "");
    now += 19 * MS;
    IN(4, "");
    CHECK(rtp_receiver_due_ns(&receiver) == START + 20 * MS, "20 ms");
    IN(2, "2 3 4"); // 19 ms late
    COUNT(reordered, 1);
    COUNT(late, 0);
    COUNT(lost, 0);

    IN(6, "");
    CHECK(rtp_receiver_due_ns(&receiver) == now + 20 * MS, "again");
    now += 20 * MS - 1;
    CHECK(!*take_all(), "not yet");
    now += 1;
    CHECK(strcmp(take_all(), "+1 6") == 0, "given up");
    CHECK(rtp_receiver_due_ns(&receiver) == INT64_MAX, "nothing waits");
    IN(5, ""); // too late
    COUNT(late, 1);
    COUNT(lost, 1);
    COUNT(expected, 6);
    COUNT(packets, 5);
}

static void waits_for_each_hole_of_its_own(void)
{
    open_receiver(false);
    IN(1, "1");
    IN(3, "");
    now += 10 * MS;
    IN(6, "");
    now += 10 * MS;
    CHECK(strcmp(take_all(), "+1 3") == 0, "the first hole");
    CHECK(rtp_receiver_due_ns(&receiver) == START + 30 * MS, "the second began later");
    IN(5, "");
    now += 10 * MS;
    CHECK(strcmp(take_all(), "+1 5 6") == 0, "the second hole");
    COUNT(lost, 2);
}

static void takes_swapped_pairs_and_duplicates(void)
{
    open_receiver(false);
    IN(0, "0");
    for (int i = 1; i < 3001; i += 2) {
        char wanted[32];
        sprintf(wanted, "%d %d.", i, i + 1);
        // The pair ends a picture: its marker comes first.
        const uint32_t timestamp = (uint32_t)i / 10 * 3000;
        check_out(
            (struct sent){.sequence = (uint16_t)(i + 1), .timestamp = timestamp, .marker = true},
            "");
        check_out(
            (struct sent){.sequence = (uint16_t)(i + 1), .timestamp = timestamp, .marker = true},
            "");
        check_out((struct sent){.sequence = (uint16_t)i, .timestamp = timestamp}, wanted);
        check_out((struct sent){.sequence = (uint16_t)i, .timestamp = timestamp}, "");
        now += MS;
    }
    COUNT(lost, 0);
    COUNT(late, 0);
    COUNT(reordered, 1500);
    COUNT(duplicate, 3000);
    COUNT(packets, 3001);
    COUNT(restarts, 0);
}

static void holds_no_more_than_it_may(void)
{
    open_receiver(false);
    IN(0, "0");
    for (int i = 2; i < 512; i++)
        IN((uint16_t)i, "");
    CHECK(put_sent((struct sent){.sequence = 513}) == 0, "full");
    CHECK(rtp_receiver_due_ns(&receiver) == 0, "ready");
    CHECK(strncmp(take_all(), "+1 2 3 4 ", 9) == 0, "the hole is given up");
    COUNT(lost, 1);
    now += 20 * MS;
    CHECK(strcmp(take_all(), "+1 513") == 0, "the next hole");
    COUNT(packets, 512);

    open_receiver(false);
    IN(0, "0");
    static uint8_t large[65000];
    memset(large, 0x55, sizeof large);
    int held = 0;
    for (int i = 2; rtp_receiver_due_ns(&receiver) != 0; i++, held++) {
        write_packet(large, (struct sent){.sequence = (uint16_t)i});
        rtp_receiver_put(&receiver, large, sizeof large, now);
    }
    CHECK(held == 65, "4 MiB: %d of 65,000 bytes", held);
    struct rtp_packet packet;
    CHECK(rtp_receiver_get(&receiver, now, &packet) == 0 && packet.lost == 1, "given up");
    held--;
    while (rtp_receiver_get(&receiver, now, &packet) == 0)
        held--;
    CHECK(held == 0 && packet.sequence == 66, "all came out");
}

static void drops_other_senders(void)
{
    open_receiver(true);
    check_out((struct sent){.sequence = 1, .ssrc = 7}, "1");
    for (int i = 0; i < 20; i++) { // an older session goes on, with numbers of its own
        now += 40 * MS;
        check_foreign((struct sent){.sequence = (uint16_t)(i + 20000), .ssrc = 8});
        char wanted[16];
        sprintf(wanted, "%d", i + 2);
        check_out((struct sent){.sequence = (uint16_t)(i + 2), .ssrc = 7}, wanted);
    }
    COUNT(lost, 0);
    COUNT(foreign, 20);
    now += 499 * MS;
    check_foreign((struct sent){.sequence = 100, .ssrc = 8});
    now += MS;
    check_out((struct sent){.sequence = 101, .ssrc = 8}, "!?101"); // ours is silent
    check_foreign((struct sent){.sequence = 22, .ssrc = 7});
    check_out((struct sent){.sequence = 102, .ssrc = 8}, "102");
    CHECK(FIELD(ssrc) == 8 && FIELD(locked), "the new one");
    COUNT(restarts, 1);
}

// Makes packet `n`: three packets per picture, 40 ms per picture.
static struct sent picture_packet(int n, uint32_t ssrc)
{
    return (struct sent){.sequence = (uint16_t)n,
                         .timestamp = (uint32_t)(n / 3) * 3600,
                         .marker = n % 3 == 2,
                         .ssrc = ssrc};
}

static void put_in_order(struct sent sent, int n)
{
    char wanted[16];
    now = START + n / 3 * 40 * MS;
    sprintf(wanted, "%d%s", sent.sequence, sent.marker ? "." : "");
    check_out(sent, wanted);
}

static void follows_a_change_of_ssrc(void)
{
    for (int ordered = 0; ordered < 2; ordered++) {
        open_receiver(ordered);
        for (int n = 0; n < 300; n++) // over the wrap of numbers, too
            put_in_order(picture_packet(n + 65400, 100 + (uint32_t)(n / 30)), n);
        COUNT(lost, 0);
        COUNT(foreign, 0);
        COUNT(restarts, 0);
        COUNT(source_changes, 9);
        CHECK(FIELD(ssrc) == 109, "the last one");
    }
    open_receiver(true); // two that alternate with each picture
    for (int n = 0; n < 60; n++)
        put_in_order(picture_packet(n, 7 + (uint32_t)(n / 3 % 2)), n);
    COUNT(foreign, 0);
    COUNT(restarts, 0);
}

static void follows_a_change_of_ssrc_with_losses(void)
{
    open_receiver(false);
    for (int n = 0; n < 30; n++)
        put_in_order(picture_packet(n, 7), n);
    now = START + 400 * MS; // 30 and 31 are lost
    check_out(picture_packet(32, 8), "");
    now += 100 * MS;
    CHECK(!strcmp(take_all(), "+2 32."), "the losses are known");

    open_receiver(false); // the first source's last packet comes after the second's first
    for (int n = 0; n < 29; n++)
        put_in_order(picture_packet(n, 7), n);
    now = START + 400 * MS;
    check_out(picture_packet(30, 8), "");
    check_out(picture_packet(29, 7), "29. 30");
    check_foreign(picture_packet(29, 7)); // once more
    check_out(picture_packet(31, 8), "31");
    COUNT(lost, 0);
    COUNT(restarts, 0);
}

static void follows_new_numbers_of_a_new_ssrc(void)
{
    open_receiver(true);
    for (int n = 0; n < 30; n++)
        put_in_order(picture_packet(n, 7), n);
    for (int n = 30; n < 90; n++) {
        struct sent sent = picture_packet(n, 7 + (uint32_t)n / 30);
        char wanted[16];
        now = START + n / 3 * 40 * MS;
        sent.sequence = (uint16_t)(n + n / 30 * 7919);
        sprintf(wanted, "%s%d%s", n % 30 ? "" : "!?", sent.sequence, sent.marker ? "." : "");
        check_out(sent, wanted);
    }
    COUNT(restarts, 2);
    COUNT(foreign, 0);
}

// Makes packet `n`: one per picture, three pictures per SSRC, each with new numbers; 50 ms apart.
static struct sent group_packet(int n)
{
    return (struct sent){.sequence = (uint16_t)(n + n / 3 * 7919),
                         .timestamp = (uint32_t)n * 4500,
                         .marker = true,
                         .ssrc = 7 + (uint32_t)n / 3};
}

// No longer pause before, and no late or bunched packets, hide a change.
static void follows_changes_whatever_the_network_delays(void)
{
    static const struct {
        const char *name;
        int from, until, hold_ms; // delayed packets, each until so long after its time
        bool at_once;             // ... all until the last one's
    } cases[] = {
        {"a pause inside the first group", 1, 1, 100, false},
        {"a read backlog over two changes", 1, 8, 0, true},
        {"a stall at a change", 3, 3, 400, false},
        {"a stall at a change, then all at once", 3, 9, 100, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int ordered = 0; ordered < 2; ordered++) {
            open_receiver(ordered);
            for (int n = 0; n < 18; n++) {
                const struct sent sent = group_packet(n);
                const bool held = n >= cases[i].from && n <= cases[i].until;
                const int64_t at_ns = held && cases[i].at_once ? cases[i].until : n;
                const int64_t due_ns = START + at_ns * 50 * MS + held * cases[i].hold_ms * MS;
                now = due_ns > now ? due_ns : now + MS;
                char wanted[16];
                sprintf(wanted, "%s%d.", n && n % 3 == 0 ? "!?" : "", sent.sequence);
                const int rc = put_sent(sent);
                CHECK(rc == 0 && !strcmp(take_all(), wanted), "%s: packet %d: %d", cases[i].name, n,
                      rc);
            }
            COUNT(foreign, 0);
            COUNT(source_changes, 5);
        }
}

// Late packets of the former SSRC do not mean that it still sends.
static void bears_late_packets_at_a_change(void)
{
    open_receiver(false); // numbers go on; the last packet comes after a burst
    for (int n = 0; n < 29; n++)
        put_in_order(picture_packet(n, 7), n);
    now = START + 400 * MS;
    for (int n = 30; n < 60; n++)
        CHECK(put_sent((struct sent){.sequence = (uint16_t)n, .timestamp = 36000, .ssrc = 8}) == 0,
              "packet %d", n);
    CHECK(put_sent(picture_packet(29, 7)) == 0 && !strncmp(take_all(), "29. 30 31", 9), "in order");
    check_foreign(picture_packet(28, 7));
    for (int n = 60; n < 120; n++) // the next change is followed too
        put_in_order(picture_packet(n, n < 90 ? 8 : 9), n);
    COUNT(foreign, 1);
    COUNT(restarts, 0);
    COUNT(source_changes, 2);

    for (int kind = 0; kind < 3; kind++) { // numbers are new
        open_receiver(false);
        for (int n = 0; n < 12; n++) {
            const struct sent sent = group_packet(n);
            const bool late = n % 3 == 2 && kind > 0; // after the first of the next SSRC
            now = START + n * 50 * MS;
            if (!late)
                CHECK(put_sent(sent) == 0, "packet %d", n);
            take_all();
            if (n > 0 && n % 3 == 0) // a duplicate; another picture; the end of the same picture
                check_foreign((struct sent){.sequence = group_packet(n - 1).sequence,
                                            .timestamp = (uint32_t)(n - (kind < 2 ? 1 : 2)) * 4500,
                                            .ssrc = group_packet(n - 1).ssrc});
        }
        COUNT(foreign, 3);
        COUNT(source_changes, 3);
    }
}

// Any source may follow one that has sent BYE, with or without its numbers.
static void follows_a_source_that_has_parted(void)
{
    open_receiver(true);
    check_out((struct sent){.sequence = 1, .ssrc = 7}, "1");
    check_foreign((struct sent){.sequence = 2000, .timestamp = 1000000000, .ssrc = 8});
    receiver.statistics.parted = true;
    CHECK(FIELD(parted), "it has parted");
    check_out((struct sent){.sequence = 2001, .timestamp = 1000000000, .ssrc = 8}, "!?2001");
    CHECK(!FIELD(parted), "another one followed");
    check_foreign((struct sent){.sequence = 2, .ssrc = 7});
    receiver.statistics.parted = true;
    check_out((struct sent){.sequence = 2002, .timestamp = 1000000000, .ssrc = 9}, "2002");
    COUNT(restarts, 1);
}

// Two streams at once; the second looks once like a continuation of the first.
static void keeps_to_the_first_of_two_senders(void)
{
    for (int kind = 0; kind < 4; kind++) {
        open_receiver(kind < 2);
        for (int n = 0; n < 30; n++)
            put_in_order(picture_packet(n, 7), n);
        struct sent other = picture_packet(30, 8);
        other.sequence = kind % 2 == 0 ? 30 : 5000; // by its number, by its timestamp
        now = START + 400 * MS;
        CHECK(put_sent(other) == 0, "taken");
        take_all();
        check_out(picture_packet(30, 7), "!?30");
        for (int n = 31; n < 60; n++) {
            check_foreign((struct sent){.sequence = (uint16_t)(other.sequence + n),
                                        .timestamp = (uint32_t)(n / 3) * 3600,
                                        .ssrc = 8});
            check_foreign((struct sent){
                .sequence = (uint16_t)n, .timestamp = (uint32_t)(n / 3) * 3600, .ssrc = 9});
            put_in_order(picture_packet(n, 7), n);
        }
        COUNT(restarts, 2 - (kind % 2 == 0));
    }
}

static void avoids_left_overs(void)
{
    const struct rtsp_track_options options = {.ordered = true, .avoids = true, .avoided = 8};
    open_with(options);
    check_foreign((struct sent){.sequence = 100, .ssrc = 8});
    check_out((struct sent){.sequence = 1, .ssrc = 7}, "1");
    check_foreign((struct sent){.sequence = 101, .ssrc = 8});
    COUNT(foreign, 2);
    COUNT(lost, 0);
    open_with(options); // nothing else comes
    check_foreign((struct sent){.sequence = 100, .ssrc = 8});
    now += 499 * MS;
    check_foreign((struct sent){.sequence = 101, .ssrc = 8});
    now += MS;
    check_out((struct sent){.sequence = 102, .ssrc = 8}, "102");
}

static void knows_slow_cameras(void)
{
    open_receiver(true);
    check_out((struct sent){.sequence = 1, .ssrc = 7}, "1");
    now += 1000 * MS; // a picture a second
    check_out((struct sent){.sequence = 2, .ssrc = 7}, "2");
    now += 900 * MS;
    check_foreign((struct sent){.sequence = 20, .ssrc = 8});
    now += 1100 * MS;
    check_out((struct sent){.sequence = 21, .ssrc = 8}, "!?21");
    now += 10000 * MS;
    check_out((struct sent){.sequence = 22, .ssrc = 8}, "22");
    now += 5000 * MS; // it waits for no more than 5 s
    check_out((struct sent){.sequence = 3, .ssrc = 7}, "!?3");
}

static void prefers_the_announced_sender(void)
{
    open_with((struct rtsp_track_options){.ordered = true, .ssrc = 0xd6d6627});
    check_out((struct sent){.sequence = 1, .ssrc = 7},
              "1"); // of an older session, or the hint is wrong
    check_out((struct sent){.sequence = 2, .ssrc = 7}, "2");
    check_out((struct sent){.sequence = 50, .ssrc = 0xd6d6627}, "!?50");
    check_foreign((struct sent){.sequence = 3, .ssrc = 7});
    now += 500 * MS;
    check_out((struct sent){.sequence = 4, .ssrc = 7}, "!?4");
    check_foreign((struct sent){.sequence = 51, .ssrc = 0xd6d6627}); // a hint counts once
}

static void adopts_another_payload_type(void)
{
    open_receiver(true);
    for (int i = 0; i < 49; i++)
        check_foreign((struct sent){.sequence = (uint16_t)i, .type = 97});
    check_foreign((struct sent){.sequence = 49, .type = 98}); // two others: starts again
    for (int i = 50; i < 99; i++)
        check_foreign((struct sent){.sequence = (uint16_t)i, .type = 97});
    check_out((struct sent){.sequence = 99, .type = 97}, "99");
    check_foreign((struct sent){.sequence = 100});

    open_receiver(true);
    for (int i = 0; i < 60; i++)
        check_foreign((struct sent){.sequence = (uint16_t)i, .type = 8}); // audio
    IN(1, "1");
    for (int i = 0; i < 60; i++)
        check_foreign((struct sent){.sequence = (uint16_t)i, .type = 107}); // ours is present
    // A packet of another type has our number, and comes before ours.
    check_foreign((struct sent){.sequence = 2, .type = 50});
    IN(2, "2");
    COUNT(lost, 0);

    open_with((struct rtsp_track_options){.other_video = true});
    for (int i = 0; i < 60; i++)
        check_foreign((struct sent){.sequence = (uint16_t)i, .type = 97}); // may be the other track
}

// Only the numbers tell if packets are missing.
static void doubts_skipped_bytes(void)
{
    open_receiver(true);
    IN(1, "1");
    receiver.lose = true;
    IN(3, "+1 3"); // the hole is that loss
    receiver.lose = true;
    receiver.lose = true;
    IN(4, "?4");
    IN(5, "5");
    COUNT(lost, 1);
    COUNT(packets, 4);
    COUNT(expected, 5);
}

static void refuses_what_is_no_packet(void)
{
    open_receiver(false);
    CHECK(rtp_receiver_put(&receiver, (const uint8_t *)"OPTIONS rtsp", 12, now) == -EBADMSG,
          "text");
    CHECK(rtp_receiver_put(&receiver, buffer, 0, now) == -EBADMSG, "an empty datagram");
    COUNT(foreign, 2);
    CHECK(!FIELD(locked) && FIELD(expected) == 0, "nothing is known");
    CHECK(put_sent((struct sent){.sequence = 1}) == 0, "a packet");
}

static void measures_jitter(void)
{
    open_receiver(true);
    for (int i = 0; i < 200; i++) { // each second packet 10 ms late: 900 ticks
        now = START + i * 40 * MS + i % 2 * 10 * MS;
        put_sent((struct sent){.sequence = (uint16_t)i, .timestamp = (uint32_t)i * 3600});
        take_all();
    }
    CHECK(FIELD(jitter) >= 890 && FIELD(jitter) <= 900, "%llu ticks", FIELD(jitter));
    check_out((struct sent){.sequence = 200, .timestamp = 90000000}, "200"); // another time
    CHECK(FIELD(jitter) >= 890 && FIELD(jitter) <= 900, "a jump is none: %llu", FIELD(jitter));
}

int main(void)
{
    TEST(parses_what_cameras_send());
    TEST(tells_rtcp());
    TEST(gives_in_order_at_once());
    TEST(counts_holes_over_tcp());
    TEST(begins_anew_after_three());
    TEST(begins_anew_with_swapped_packets());
    TEST(begins_anew_a_little_lower());
    TEST(tells_long_outages_from_restarts());
    TEST(waits_for_late_ones());
    TEST(waits_for_each_hole_of_its_own());
    TEST(takes_swapped_pairs_and_duplicates());
    TEST(holds_no_more_than_it_may());
    TEST(drops_other_senders());
    TEST(follows_a_change_of_ssrc());
    TEST(follows_a_change_of_ssrc_with_losses());
    TEST(follows_new_numbers_of_a_new_ssrc());
    TEST(follows_changes_whatever_the_network_delays());
    TEST(bears_late_packets_at_a_change());
    TEST(follows_a_source_that_has_parted());
    TEST(keeps_to_the_first_of_two_senders());
    TEST(avoids_left_overs());
    TEST(knows_slow_cameras());
    TEST(prefers_the_announced_sender());
    TEST(adopts_another_payload_type());
    TEST(doubts_skipped_bytes());
    TEST(refuses_what_is_no_packet());
    TEST(measures_jitter());
    rtp_receiver_close(&receiver);
    return test_end();
}
