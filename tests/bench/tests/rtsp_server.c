// Tests the benches' RTSP server against this test's own client: its NAL units equal the clip's,
// its times and counts match the sent packets.
#include "tests/bench/rtsp_server.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "tests/test.h"

enum { UNITS = 4, NALS = 2, RATE = 50, TICKS = 90000 / RATE, BIGGEST = 60000, PICTURES = 7 };

// --- a synthetic clip with NAL units of every kind of length

struct made_clip {
    struct clip_units clip;
    struct access_unit units[UNITS];
    struct nal nals[UNITS][NALS];
};

static uint8_t bytes[BIGGEST];

static void make_clip(struct made_clip *made, enum clip_codec codec)
{
    static const size_t lengths[UNITS][NALS] = {{3, 1400}, {1401, 5000}, {1398, 2}, {BIGGEST, 4}};
    static const int shown[UNITS] = {0, 2, 1, 3}; // as with B-frames
    for (int i = 0; i < BIGGEST; i++)
        bytes[i] = (uint8_t)(i * 7 % 251 + 1);
    bytes[0] = codec == CLIP_H264 ? 0x65 : 0x26;
    bytes[1] = codec == CLIP_H264 ? 0x88 : 0x01;
    for (int i = 0; i < UNITS; i++) {
        for (int k = 0; k < NALS; k++)
            made->nals[i][k] = (struct nal){bytes, lengths[i][k]};
        made->units[i] = (struct access_unit){made->nals[i], NALS, shown[i], i == 0};
    }
    made->clip = (struct clip_units){.codec = codec,
                                     .units = made->units,
                                     .n = UNITS,
                                     .rate_num = RATE,
                                     .rate_den = 1,
                                     .vps = {bytes, 20},
                                     .sps = {bytes, 21},
                                     .pps = {bytes, 22}};
}

// --- a client

struct client {
    int fd, udp;         // udp: RTP socket, -1 over TCP
    uint8_t in[1 << 17]; // received bytes
    size_t used;
    int64_t wall_ns;      // from the last sender report
    uint32_t report_time; // RTP clock
};

static void fill(struct client *client)
{
    const ssize_t n =
        recv(client->fd, client->in + client->used, sizeof client->in - client->used, 0);
    CHECK(n > 0, "the server closed");
    client->used += n > 0 ? (size_t)n : 0;
}

static void drop(struct client *client, size_t n)
{
    client->used -= n;
    memmove(client->in, client->in + n, client->used);
}

// Sends a request and copies its answer to `answer`.
static void ask(struct client *client, const char *request, char answer[8192])
{
    CHECK(send(client->fd, request, strlen(request), 0) > 0, "cannot send");
    for (int tries = 0; tries < 100; tries++) {
        uint8_t *end = memmem(client->in, client->used, "\r\n\r\n", 4);
        if (end) {
            size_t n = (size_t)(end + 4 - client->in);
            memcpy(answer, client->in, n);
            answer[n] = '\0';
            const char *length = strstr(answer, "Content-Length: ");
            const size_t body = length ? strtoul(length + 16, NULL, 10) : 0;
            while (client->used < n + body)
                fill(client);
            memcpy(answer + n, client->in + n, body);
            answer[n + body] = '\0';
            drop(client, n + body);
            return;
        }
        fill(client);
    }
}

static int open_udp(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const struct timeval patience = {.tv_sec = 2};
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(bind(fd, (struct sockaddr *)&address, size) == 0, "bind");
    getsockname(fd, (struct sockaddr *)&address, &size);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    *port = ntohs(address.sin_port);
    return fd;
}

static void play(struct client *client, const struct rtsp_server *server, bool udp)
{
    char url[64], request[512], answer[8192];
    int port = 0;
    rtsp_server_url(server, 1, url);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)atoi(strchr(url + 7, ':') + 1))};
    *client = (struct client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .udp = -1};
    CHECK(connect(client->fd, (struct sockaddr *)&address, sizeof address) == 0, "connect");
    snprintf(request, sizeof request, "DESCRIBE %s RTSP/1.0\r\nCSeq: 1\r\n\r\n", url);
    ask(client, request, answer);
    CHECK(strstr(answer, "RTSP/1.0 200") && strstr(answer, "CSeq: 1\r\n"), "%s", answer);
    CHECK(strstr(answer, "m=video 0 RTP/AVP 96\r\n") && strstr(answer, "sprop"), "%s", answer);
    if (udp)
        client->udp = open_udp(&port);
    snprintf(request, sizeof request,
             udp ? "SETUP %s/track0 RTSP/1.0\r\nCSeq: 2\r\nTransport: "
                   "RTP/AVP;unicast;client_port=%d-9\r\n\r\n"
                 : "SETUP %s/track0 RTSP/1.0\r\nCSeq: 2\r\nTransport: "
                   "RTP/AVP/TCP;unicast;interleaved=4-5\r\n\r\n",
             url, port);
    ask(client, request, answer);
    CHECK(strstr(answer, "Session: ") && strstr(answer, udp ? "server_port=" : "interleaved=4-5"),
          "%s", answer);
    snprintf(request, sizeof request, "PLAY %s RTSP/1.0\r\nCSeq: 3\r\n\r\n", url);
    ask(client, request, answer);
    CHECK(strstr(answer, "RTSP/1.0 200"), "%s", answer);
}

static uint32_t be(const uint8_t *from, int n)
{
    uint32_t value = 0;
    for (int i = 0; i < n; i++)
        value = value << 8 | from[i];
    return value;
}

static void note_report(struct client *client, const uint8_t *report)
{
    client->wall_ns = ((int64_t)be(report + 8, 4) - 2208988800) * 1000000000 +
                      (int64_t)((uint64_t)be(report + 12, 4) * 1000000000 >> 32);
    client->report_time = be(report + 16, 4);
}

// Reads the next RTP packet. Returns its size.
static size_t next_packet(struct client *client, uint8_t *to)
{
    if (client->udp >= 0) {
        const ssize_t n = recv(client->udp, to, 2048, 0);
        CHECK(n > 12, "no packet");
        return n > 0 ? (size_t)n : 0;
    }
    for (int tries = 0; tries < 1000; tries++) {
        const size_t n = client->used >= 4 ? be(client->in + 2, 2) : 0;
        if (client->used < 4 || client->used < 4 + n) {
            fill(client);
            continue;
        }
        CHECK(client->in[0] == '$', "%d", client->in[0]);
        const int channel = client->in[1];
        memcpy(to, client->in + 4, n);
        drop(client, 4 + n);
        if (channel == 4)
            return n;
        CHECK(channel == 5 && to[1] == 200, "channel %d", channel);
        note_report(client, to);
    }
    return 0;
}

static void close_client(struct client *client)
{
    close(client->fd);
    if (client->udp >= 0)
        close(client->udp);
}

// --- received packets

struct joined { // reassembled NAL unit
    uint8_t data[BIGGEST + 8];
    size_t n;
};

// Returns true when a NAL unit is complete.
static bool join_payload(struct joined *nal, enum clip_codec codec, const uint8_t *payload,
                         size_t n)
{
    const size_t head = codec == CLIP_H264 ? 1 : 2;
    const int type = codec == CLIP_H264 ? payload[0] & 31 : payload[0] >> 1 & 63;
    if (type != (codec == CLIP_H264 ? 28 : 49)) {
        memcpy(nal->data, payload, n);
        nal->n = n;
        return true;
    }
    const uint8_t mark = payload[head];
    if (mark & 128) {
        nal->n = head;
        nal->data[0] = codec == CLIP_H264 ? (payload[0] & 0xE0) | (mark & 31)
                                          : (payload[0] & 0x81) | (mark & 63) << 1;
        nal->data[1] = payload[1];
    }
    memcpy(nal->data + nal->n, payload + head + 1, n - head - 1);
    nal->n += n - head - 1;
    return mark & 64;
}

static void test_pictures(enum clip_codec codec, bool udp, bool spread)
{
    static struct made_clip made;
    static struct joined nal;
    static struct client client;
    struct rtsp_server *server = NULL;
    uint8_t packet[2048];
    uint32_t base = 0, sequence = 0;
    make_clip(&made, codec);
    const struct rtsp_server_options options = {
        .clip = &made.clip, .cameras = 2, .link = 1e9, .spread = spread};
    const int first = spread ? UNITS / 2 : 0;
    CHECK(rtsp_server_open(&server, &options) == 0, "open");
    CHECK(rtsp_server_accepted(server, 1) == 0, "somebody has played");
    play(&client, server, udp);
    const int64_t playing_ns = monotonic_ns();
    for (int i = first, k = 0; i < PICTURES;) {
        const size_t n = next_packet(&client, packet);
        const struct access_unit *unit = &made.units[i % UNITS];
        const int64_t index = i / UNITS * UNITS + unit->shown;
        base = i == first && k == 0 ? be(packet + 4, 4) - (uint32_t)index * TICKS : base;
        CHECK(sequence == 0 || be(packet + 2, 2) == (sequence + 1) % 65536, "picture %d", i);
        sequence = be(packet + 2, 2);
        CHECK(be(packet + 4, 4) - base == (uint32_t)index * TICKS, "picture %d", i);
        if (!join_payload(&nal, codec, packet + 12, n - 12))
            continue;
        CHECK(nal.n == unit->nals[k].bytes && memcmp(nal.data, unit->nals[k].data, nal.n) == 0,
              "NAL unit %d of picture %d: %zu bytes", k, i, nal.n);
        const bool last = ++k == unit->n;
        CHECK(!!(packet[1] & 128) == last, "the marker of picture %d", i);
        if (!last)
            continue;
        const int64_t sent_ns = rtsp_server_sent(server, 1, index), now = monotonic_ns();
        CHECK(sent_ns > playing_ns - 1000000000 && sent_ns <= now, "picture %d", i);
        CHECK(rtsp_server_sent(server, 0, index) == 0, "the other camera sent picture %d", i);
        i++;
        k = 0;
    }
    if (!udp) { // the report's two times denote the same moment
        const double pictures = (double)(int32_t)(client.report_time - base) / TICKS;
        const int64_t first_ns = client.wall_ns - (int64_t)(pictures * 1e9 / RATE);
        for (int i = 0; i < 3; i++)
            CHECK(rtsp_server_index(server, 1, first_ns + i * 1000000000LL / RATE) == i, "%d", i);
    }
    CHECK(rtsp_server_accepted(server, 1) <= playing_ns, "accepted behind its time");
    const struct rtsp_counts counts = rtsp_server_counts(server);
    CHECK(counts.pictures >= (uint64_t)(PICTURES - first) && counts.withheld == 0, "counts");
    close_client(&client);
    rtsp_server_close(server);
}

// Withheld packets leave gaps in the sequence numbers and are counted.
static void test_withheld(void)
{
    static struct made_clip made;
    static struct client client;
    struct rtsp_server *server = NULL;
    uint8_t packet[2048];
    uint32_t missing = 0, packets = 0, last = 0;
    make_clip(&made, CLIP_H264);
    const struct rtsp_server_options options = {
        .clip = &made.clip, .cameras = 2, .link = 1e9, .withhold = 10};
    CHECK(rtsp_server_open(&server, &options) == 0, "open");
    play(&client, server, false);
    while (packets < 300) {
        next_packet(&client, packet);
        const uint32_t sequence = be(packet + 2, 2);
        missing += packets++ ? (uint16_t)(sequence - last - 1) : 0;
        last = sequence;
    }
    const struct rtsp_counts counts = rtsp_server_counts(server);
    CHECK(missing >= 20 && missing <= counts.withheld, "%u of %u missing, %llu withheld", missing,
          packets, (unsigned long long)counts.withheld);
    CHECK(counts.withheld - missing <= (counts.packets - packets) / 9 + 1, "%llu withheld",
          (unsigned long long)counts.withheld);
    close_client(&client);
    rtsp_server_close(server);
}

int main(void)
{
    for (int i = 0; i < 4; i++)
        TEST(test_pictures(i & 1 ? CLIP_H265 : CLIP_H264, i & 2, false));
    TEST(test_pictures(CLIP_H264, false, true));
    TEST(test_withheld());
    return test_end();
}
