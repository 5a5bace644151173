// A sender of RTP packets with a clock of its own, and the access units that a depacketizer makes
// of them.
#ifndef FRAMED_TESTS_DAEMON_RTSP_PACKETS_H
#define FRAMED_TESTS_DAEMON_RTSP_PACKETS_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/bitstream/nal.h"
#include "daemon/rtsp/depacketizer.h"
#include "daemon/rtsp/rtp_receiver.h"
#include "daemon/rtsp/sdp.h"
#include "tests/test.h"

static const int64_t MS = 1000000;

enum { GOT_MAX = 512 };

struct got {
    struct access_unit unit; // data is a copy
    const void *place;       // original address
    int64_t taken_ns;
};

static struct {
    struct depacketizer *depacketizer;
    struct picture_end_verdict verdict;
    int64_t now_ns;
    uint32_t timestamp, lost, withheld;
    bool restarted;
    uint16_t extension_profile; // of the next packet
    const uint8_t *extension;
    size_t extension_bytes;
    struct got got[GOT_MAX];
    int n;
} net;

static inline void net_close(void)
{
    depacketizer_close(net.depacketizer);
    for (int i = 0; i < net.n; i++)
        free((void *)net.got[i].unit.data);
    memset(&net, 0, sizeof net);
}

static inline void net_open(enum sdp_codec codec, const struct sdp_media *media)
{
    static struct sdp_media plain;
    const struct picture_end_verdict verdict = net.verdict;
    net_close();
    net.verdict = verdict;
    plain.codec = codec;
    CHECK(!depacketizer_open(&net.depacketizer, media ? media : &plain, &net.verdict), "open");
    net.now_ns = 1000 * MS;
}

// Opens a camera whose markers are trusted.
static inline void net_open_trusted(enum sdp_codec codec)
{
    memset(&net.verdict, 0, sizeof net.verdict);
    for (int i = 0; i < 20; i++)
        picture_end_learn(&net.verdict,
                          &(struct assembly_unit){.markers = 1, .interval_ns = 40 * MS});
    net_open(codec, NULL);
    net.verdict.markers = 1;
}

static inline void net_take(void)
{
    struct access_unit unit;
    while (depacketizer_get(net.depacketizer, net.now_ns, &unit) == 0) {
        CHECK(net.n < GOT_MAX, "%d", net.n);
        uint8_t *copy = malloc(unit.bytes);
        memcpy(copy, unit.data, unit.bytes);
        net.got[net.n].place = unit.data;
        unit.data = copy;
        net.got[net.n].unit = unit;
        net.got[net.n++].taken_ns = net.now_ns;
    }
}

// Returns the number of NAL units in unit i.
static inline int net_units(int i)
{
    struct nal_reader reader = {.data = net.got[i].unit.data, .size = net.got[i].unit.bytes};
    struct nal nal;
    int n = 0;
    while (nal_next(&reader, &nal))
        n++;
    return n;
}

// Lets time pass; takes units whenever the depacketizer is due.
static inline void net_wait(int64_t ns)
{
    const int64_t until = net.now_ns + ns;
    for (;;) {
        const int64_t due = depacketizer_due_ns(net.depacketizer);
        if (due > until)
            break;
        net.now_ns = due > net.now_ns ? due : net.now_ns;
        net_take();
    }
    net.now_ns = until;
}

static inline void net_send(const void *payload, size_t bytes, bool marker)
{
    // Exact size, so that a sanitizer finds a read past the end.
    uint8_t *copy = malloc(bytes ? bytes : 1);
    memcpy(copy, payload, bytes);
    const struct rtp_packet packet = {
        .payload = copy,
        .bytes = bytes,
        .timestamp = net.timestamp,
        .marker = marker,
        .received_ns = net.now_ns,
        .lost = net.lost,
        .restarted = net.restarted,
        .extension_profile = net.extension_profile,
        .extension = net.extension,
        .extension_bytes = net.extension_bytes,
    };
    net.lost = 0;
    net.extension = NULL;
    net.restarted = false;
    depacketizer_put(net.depacketizer, &packet);
    free(copy);
    net_take();
}

static inline void net_lose(uint32_t packets)
{
    net.lost += packets;
    net.withheld += packets;
}

// Checks that all missing packets are counted, once.
static inline void net_check_lost(const char *what)
{
    uint32_t sum = 0;
    for (int i = 0; i < net.n; i++)
        sum += net.got[i].unit.lost;
    for (int i = 0; i < net.n; i++)
        CHECK(net.got[i].unit.hole || !net.got[i].unit.lost, "%s: unit %d", what, i);
    CHECK(sum == net.withheld, "%s: %u of %u lost", what, sum, net.withheld);
}

#endif
