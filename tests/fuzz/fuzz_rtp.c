// Any RTP packets, over TCP or UDP, at any time: sequence numbers rise, losses are exactly the
// holes between them, nothing waits too long, and every accepted packet comes out.
//
// The first byte selects the transport (bit 0: ordered, 1: another video track, 2: an SSRC is
// announced, 3: another came too early). Orders follow, one byte each, selected by the low three
// bits:
//     0 LENGTH BYTES      a datagram with these bytes
//     1 to 4 NUMBER TIME FLAGS   a packet: its sequence number after the last (signed), times 1, 1,
//                         100 and 3000, its timestamp after the last in pictures; flags: bit 0
//                         the marker, 1 and 2 the SSRC, 3 another payload type, 4 to 7 the size
//     5 TIME              this many milliseconds pass
//     6                   bytes of the connection are missing
//     7                   nothing
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/rtsp/rtp_receiver.h"
#include "daemon/rtsp/sdp.h"
#include "tests/fuzz/turns.h"

enum { TYPE = 96, WAITING_MAX = 512, HEADER = 12, STEP_NS = 1000000, WAIT_NS = 20 * STEP_NS };

struct script {
    const uint8_t *at;
    size_t left;
    uint16_t sequence;
    uint32_t timestamp;
};

struct receiving {
    struct rtp_receiver receiver;
    bool ordered;
    int64_t now_ns;
    uint64_t given, lost, restarts;
    uint16_t sequence; // of the last packet given
    bool missing;      // bytes of the connection were lost since then
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t next_byte(struct script *script)
{
    if (script->left == 0)
        return 0;
    script->left--;
    return *script->at++;
}

static void check_packet(struct receiving *receiving, const struct rtp_packet *packet)
{
    size_t sum = 0; // reads every byte
    for (size_t i = 0; i < packet->bytes; i++)
        sum += packet->payload[i];
    for (size_t i = 0; packet->extension && i < packet->extension_bytes; i++)
        sum += packet->extension[i];
    MUST(sum <= 255 * (packet->bytes + packet->extension_bytes));
    const uint32_t step = (uint16_t)(packet->sequence - receiving->sequence);
    MUST(packet->restarted || packet->lost_unknown == (receiving->missing && !packet->lost));
    MUST(receiving->given == 0 || packet->restarted || step == ((packet->lost + 1) & 0xffff));
    MUST(packet->received_ns <= receiving->now_ns);
    MUST(receiving->given > 0 || !packet->restarted);
    receiving->sequence = packet->sequence;
    receiving->given++;
    receiving->lost += packet->lost;
    receiving->restarts += packet->restarted;
    receiving->missing = false;
}

static void take_packets(struct receiving *receiving)
{
    struct rtp_packet packet;
    while (rtp_receiver_get(&receiving->receiver, receiving->now_ns, &packet) == 0)
        check_packet(receiving, &packet);
    const struct rtp_statistics statistics = receiving->receiver.statistics;
    const int64_t due_ns = rtp_receiver_due_ns(&receiving->receiver);
    const uint64_t waiting = statistics.packets - receiving->given;
    MUST(statistics.packets >= receiving->given && waiting <= WAITING_MAX);
    MUST(!waiting == (due_ns == INT64_MAX));
    MUST(!waiting || (!receiving->ordered && due_ns > receiving->now_ns));
    MUST(!waiting || due_ns <= receiving->now_ns + WAIT_NS);
    MUST(statistics.lost == receiving->lost && statistics.restarts == receiving->restarts);
    MUST(statistics.expected >= statistics.packets + statistics.lost);
}

static void put_packet(struct receiving *receiving, const uint8_t *data, size_t bytes)
{
    uint8_t *copy = malloc(bytes ? bytes : 1); // exact size, for sanitizers
    memcpy(copy, data, bytes);
    const int rc = rtp_receiver_put(&receiving->receiver, copy, bytes, receiving->now_ns);
    MUST(rc == 0 || rc == -EBADMSG);
    take_packets(receiving);
    free(copy);
}

static void put_made_packet(struct receiving *receiving, struct script *script, int scale)
{
    script->sequence += (uint16_t)((int8_t)next_byte(script) * scale);
    script->timestamp += (uint32_t)((int8_t)next_byte(script) * 3000);
    const uint8_t flags = next_byte(script);
    uint8_t packet[HEADER + 60] = {0x80,
                                   (uint8_t)((flags & 1) << 7 | (TYPE + (flags >> 3 & 1))),
                                   (uint8_t)(script->sequence >> 8),
                                   (uint8_t)script->sequence,
                                   (uint8_t)(script->timestamp >> 24),
                                   (uint8_t)(script->timestamp >> 16),
                                   (uint8_t)(script->timestamp >> 8),
                                   (uint8_t)script->timestamp,
                                   0,
                                   0,
                                   0,
                                   flags >> 1 & 3};
    put_packet(receiving, packet, HEADER + 4 * (size_t)(flags >> 4));
}

static void follow(struct receiving *receiving, struct script *script)
{
    static const int scales[] = {0, 1, 1, 100, 3000};
    const int order = next_byte(script) & 7;
    size_t bytes;
    switch (order) {
    case 0:
        bytes = next_byte(script);
        bytes = bytes < script->left ? bytes : script->left;
        put_packet(receiving, script->at, bytes);
        script->at += bytes;
        script->left -= bytes;
        break;
    case 5:
        receiving->now_ns += (int64_t)next_byte(script) * STEP_NS;
        take_packets(receiving);
        break;
    case 6:
        receiving->receiver.lose = true;
        receiving->missing = true;
        break;
    case 7:
        break;
    default:
        put_made_packet(receiving, script, scales[order]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct script script = {.at = data, .left = size};
    struct receiving receiving = {.now_ns = 1000000000};
    const uint8_t how = next_byte(&script);
    const struct sdp_media media = {.payload_type = TYPE};
    const struct rtsp_track_options options = {.media = &media,
                                               .ordered = how & 1,
                                               .other_video = how & 2,
                                               .ssrc = how & 4 ? 2 : 0,
                                               .avoids = how & 8,
                                               .avoided = 0};
    receiving.ordered = options.ordered;
    rtp_receiver_open(&receiving.receiver, &options);
    while (script.left > 0)
        follow(&receiving, &script);
    while (rtp_receiver_due_ns(&receiving.receiver) != INT64_MAX) { // each comes when due
        const uint64_t before = receiving.given;
        receiving.now_ns = rtp_receiver_due_ns(&receiving.receiver);
        take_packets(&receiving);
        MUST(receiving.given > before);
    }
    const struct rtp_statistics statistics = receiving.receiver.statistics;
    MUST(statistics.expected == receiving.given + receiving.lost);
    rtp_receiver_close(&receiving.receiver);
    return 0;
}
