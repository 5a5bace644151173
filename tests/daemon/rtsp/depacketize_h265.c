// H.265 in RTP: whole pictures, as sent, from single units, aggregations and fragments, with and
// without decoding order numbers.
#include "daemon/bitstream/nal.h"
#include "daemon/rtsp/depacketizer.h"
#include "tests/daemon/clips.h"
#include "tests/daemon/rtsp/packets.h"

enum { CUT = 500, NALS_MAX = 4096 };

static int type_of(const struct nal *nal)
{
    return nal->data[0] >> 1 & 63;
}

static size_t put_order(uint8_t *to, bool donl, size_t bytes)
{
    if (donl)
        memset(to, 0, bytes); // numbers that look like start codes
    return donl ? bytes : 0;
}

static void send_nal(const struct nal *nal, bool donl, bool marker)
{
    static uint8_t payload[CUT + 8];
    if (nal->size <= CUT) {
        memcpy(payload, nal->data, 2);
        const size_t at = 2 + put_order(payload + 2, donl, 2);
        memcpy(payload + at, nal->data + 2, nal->size - 2);
        net_send(payload, at + nal->size - 2, marker);
        return;
    }
    for (size_t at = 2; at < nal->size;) {
        const size_t n = nal->size - at < CUT ? nal->size - at : CUT;
        const bool first = at == 2, last = at + n == nal->size;
        payload[0] = (uint8_t)((nal->data[0] & 0x81) | 49 << 1);
        payload[1] = nal->data[1];
        payload[2] = (uint8_t)(type_of(nal) | (first ? 0x80 : 0) | (last ? 0x40 : 0));
        const size_t begin = 3 + put_order(payload + 3, donl && first, 2);
        memcpy(payload + begin, nal->data + at, n);
        at += n;
        net_send(payload, begin + n, marker && last);
    }
}

// Sends several units in one payload.
static void send_aggregation(const struct nal *nal, int n, bool donl, bool marker)
{
    static uint8_t payload[65536] = {48 << 1, 1};
    size_t at = 2;
    for (int i = 0; i < n; i++) {
        at += put_order(payload + at, donl, i == 0 ? 2 : 1);
        payload[at++] = (uint8_t)(nal[i].size >> 8);
        payload[at++] = (uint8_t)nal[i].size;
        memcpy(payload + at, nal[i].data, nal[i].size);
        at += nal[i].size;
    }
    net_send(payload, at, marker);
}

struct clip {
    uint8_t *data;
    struct nal nal[NALS_MAX];
    bool first[NALS_MAX]; // first of its picture
    int n;
};

static void read_clip(struct clip *clip, const char *options)
{
    char encoder[256];
    size_t size;
    snprintf(encoder, sizeof encoder, "-c:v libx265 -x265-params log-level=none:keyint=10:%s",
             options);
    clips_make("320x240", 30, encoder, "clip.hevc");
    clip->data = clips_read("clip.hevc", &size);
    struct nal_reader reader = {.data = clip->data, .size = size};
    bool ahead = false;
    for (clip->n = 0; clip->n < NALS_MAX && nal_next(&reader, &clip->nal[clip->n]); clip->n++) {
        const struct nal *nal = &clip->nal[clip->n];
        const bool slice = type_of(nal) < 32;
        clip->first[clip->n] = !ahead && (!slice || nal->data[2] & 0x80);
        ahead = !slice;
    }
}

// Each unit of the clip is in the picture that it was sent with, and each picture comes with its
// last packet.
static void test_clip(const char *options, bool donl)
{
    static struct clip clip;
    static struct sdp_media media = {.codec = SDP_H265};
    read_clip(&clip, options);
    net_open_trusted(SDP_H265);
    media.donl = donl;
    net_open(SDP_H265, &media);
    int begin[64], pictures = 0, disposable = 0;
    for (int i = 0; i < clip.n;) {
        if (clip.first[i]) {
            begin[pictures++] = i;
            net.timestamp += 3600;
            net_wait(40 * MS);
        }
        int n = 1;
        while (type_of(&clip.nal[i]) >= 32 && type_of(&clip.nal[i + n]) >= 32)
            n++;
        const bool last = i + n == clip.n || clip.first[i + n];
        if (n > 1)
            send_aggregation(&clip.nal[i], n, donl, false);
        else
            send_nal(&clip.nal[i], donl, last);
        CHECK(net.n == pictures - !last, "%s: %d of %d at unit %d", options, net.n, pictures, i);
        i += n;
    }
    begin[pictures] = clip.n;
    CHECK(pictures == 30 && net.n == 30, "%s: %d of %d pictures", options, net.n, pictures);
    for (int k = 0; k < net.n && k < pictures; k++) {
        struct nal_reader reader = {.data = net.got[k].unit.data, .size = net.got[k].unit.bytes};
        struct nal nal;
        bool irap = false;
        for (int i = begin[k]; i < begin[k + 1]; i++) {
            CHECK(nal_next(&reader, &nal) && nal.size == clip.nal[i].size &&
                      memcmp(nal.data, clip.nal[i].data, nal.size) == 0,
                  "%s: unit %d of picture %d", options, i, k);
            irap |= type_of(&clip.nal[i]) >= 16 && type_of(&clip.nal[i]) <= 23;
        }
        CHECK(!nal_next(&reader, &nal), "%s: more in picture %d", options, k);
        const struct access_unit *u = &net.got[k].unit;
        CHECK(u->keyframe == irap && u->has_sets == irap, "%s: %d", options, k);
        CHECK(!u->damaged && !u->reference_lost && !u->lost, "%s: %d", options, k);
        disposable += u->disposable;
    }
    const bool b = strstr(options, "bframes=3");
    CHECK(b ? disposable > 5 && disposable < 20 : disposable == 0, "%s: %d", options, disposable);
    const size_t bytes = net.depacketizer->sets_bytes;
    CHECK(bytes > 40 && net.depacketizer->sets[4] == 32 << 1, "%s: %zu bytes of sets", options,
          bytes);
    free(clip.data);
}

// --- by hand

static void send_unit(int type, int sub_layer, bool first, bool marker)
{
    uint8_t nal[64] = {(uint8_t)(type << 1), (uint8_t)(sub_layer + 1), first ? 0x80 : 0x40};
    memset(nal + 3, 0x33, sizeof nal - 3);
    net_send(nal, sizeof nal, marker);
}

// Units before a picture begin it, units after one do not; no stamp or marker helps.
static void test_order(void)
{
    net_open_trusted(SDP_H265);
    static const uint8_t ahead[] = {32, 33, 34, 35, 39, 41, 44},
                         behind[] = {36, 37, 38, 40, 45, 47};
    for (size_t i = 0; i < sizeof ahead; i++) {
        send_unit(1, 0, true, false);
        for (size_t k = 0; k < sizeof behind; k++)
            send_unit(behind[k], 0, false, false);
        send_unit(1, 0, false, false);
        CHECK(net.n == (int)i, "%d", net.n);
        send_unit(ahead[i], 0, true, false);
        CHECK(net.n == (int)i + 1 && net_units((int)i) == 2 + (int)sizeof behind + (i > 0), "%d",
              net.n);
    }
}

// nal_unit_type 0 is not a reference in its own sub-layer; in the highest one, for none.
static void test_disposable(void)
{
    net_open_trusted(SDP_H265);
    static uint8_t sps[64] = {33 << 1, 1, 1 << 1};
    memset(sps + 3, 0x55, sizeof sps - 3);
    const int sub_layer[] = {0, 1, 1, 1}, type[] = {0, 0, 1, 16};
    send_unit(0, 0, true, true);
    net_send(sps, sizeof sps, false); // two sub-layers
    for (int i = 0; i < 4; i++) {
        net.timestamp += 3600;
        send_unit(type[i], sub_layer[i], true, true);
    }
    static const bool expected[] = {false, false, true, false, false};
    CHECK(net.n == 5, "%d", net.n);
    for (int i = 0; i < net.n; i++)
        CHECK(net.got[i].unit.disposable == expected[i], "%d", i);
    CHECK(net.got[4].unit.keyframe && !net.got[3].unit.keyframe, "IRAP");
}

static void test_losses(void)
{
    uint8_t middle[64] = {49 << 1, 1, 1};
    memset(middle + 3, 0x22, sizeof middle - 3);
    net_open_trusted(SDP_H265);
    send_unit(1, 0, true, false);
    net_lose(1);
    net_send(middle, sizeof middle, false); // of a fragmented slice without its beginning
    middle[2] |= 0x40;
    net_send(middle, sizeof middle, true);
    net.timestamp += 3600;
    net_lose(2);
    send_unit(1, 0, true, true);
    net.timestamp += 3600;
    send_unit(1, 0, true, true);
    CHECK(net.n == 3, "%d", net.n);
    CHECK(net.got[0].unit.damaged && net.got[0].unit.lost == 1 && net_units(0) == 1, "inside");
    CHECK(!net.got[1].unit.damaged && net.got[1].unit.reference_lost, "between two whole ones");
    CHECK(!net.got[2].unit.damaged && !net.got[2].unit.reference_lost, "no more");
    net_check_lost("h265");
}

static void test_skipped(void)
{
    net_open_trusted(SDP_H265);
    send_unit(1, 0, true, false);
    send_unit(50, 0, true, false);
    send_unit(63, 0, true, false);
    static const uint8_t cut_short[] = {48 << 1, 1, 0, 200, 2, 1, 0x40, 1}, tail[64] = {48 << 1, 1};
    net_send(tail, sizeof tail, false); // an empty aggregation
    net_send("\x62", 1, false);
    send_unit(1, 0, false, true);
    CHECK(net.n == 1 && net_units(0) == 2 && !net.got[0].unit.damaged, "%d", net.n);
    net.timestamp += 3600;
    send_unit(1, 0, true, false);
    net_send(cut_short, sizeof cut_short, true);
    CHECK(net.n == 2 && net.got[1].unit.damaged, "an aggregation that is cut short");
}

int main(void)
{
    clips_open();
    TEST(test_clip("bframes=0", false));
    TEST(test_clip("bframes=3:b-pyramid=1", false));
    TEST(test_clip("bframes=0:slices=3:aud=1", true));
    TEST(test_order());
    TEST(test_disposable());
    TEST(test_losses());
    TEST(test_skipped());
    net_close();
    clips_close();
    return test_end();
}
