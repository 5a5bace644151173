// MJPEG in RTP: the output picture decodes to the same as the one sent.
#include <libavcodec/avcodec.h>

#include "daemon/rtsp/depacketizer.h"
#include "tests/daemon/clips.h"
#include "tests/daemon/rtsp/packets.h"

struct jpeg { // a picture of the encoder, and its parts
    uint8_t *data;
    size_t size;
    int width, height, type, restart_interval;
    const uint8_t *tables, *scan, *frame; // frame: the whole SOF segment
    size_t table_bytes, scan_bytes;       // the scan without EOI
};

static void read_jpeg(struct jpeg *jpeg, const char *size, const char *options)
{
    clips_run(FFMPEG "-f lavfi -i testsrc2=size=%s -frames:v 1 -huffman default %s a.jpg", size,
              options);
    *jpeg = (struct jpeg){0};
    jpeg->data = clips_read("a.jpg", &jpeg->size);
    const uint8_t *at = jpeg->data + 2;
    for (;; at += 2 + (at[2] << 8 | at[3])) {
        const size_t bytes = (size_t)(at[2] << 8 | at[3]) + 2;
        if (at[1] == 0xdb) {
            jpeg->tables = at + 5;
            jpeg->table_bytes = bytes - 5;
        } else if (at[1] == 0xdd) {
            jpeg->restart_interval = at[4] << 8 | at[5];
        } else if (at[1] == 0xc0) {
            jpeg->frame = at;
            jpeg->height = at[5] << 8 | at[6];
            jpeg->width = at[7] << 8 | at[8];
            jpeg->type = at[11] == 0x22;
        } else if (at[1] == 0xda) {
            jpeg->scan = at + bytes;
            jpeg->scan_bytes = jpeg->size - 2 - (size_t)(jpeg->scan - jpeg->data);
            return;
        }
    }
}

// Makes 4:2:2, which the encoder cannot: in each pair of blocks a luma step up and down, and blue
// that rises from left to right.
static void make_422(struct jpeg *jpeg)
{
    static const char *const unit = "01011010" // Y: +1, end of block
                                    "01001010" // Y: -1
                                    "01100"    // U: +1
                                    "0000";    // V: 0
    uint8_t *to = malloc(65536), *const begin = to;
    const uint8_t *huffman = jpeg->data;
    while (huffman[0] != 0xff || huffman[1] != 0xc4)
        huffman++;
    memcpy(to, "\xff\xd8\xff\xdb\0\x43\0", 7);
    memset(to + 7, 9, 64);
    memcpy(to + 71, "\xff\xc0\0\x11\x08\0\xf0\1\x40\3\1\x21\0\2\x11\0\3\x11\0", 19);
    memcpy(to + 90, huffman, 420);
    memcpy(to + 510, "\xff\xda\0\x0c\3\1\0\2\x11\3\x11\0\x3f\0", 14);
    to += 524;
    unsigned bits = 0, value = 0;
    for (int i = 0; i < 20 * 30; i++)
        for (const char *bit = unit; *bit; bit++) {
            value = value << 1 | (*bit == '1');
            if (++bits % 8 == 0)
                *to++ = (uint8_t)value;
        }
    memcpy(to, "\xff\xd9", 2);
    free(jpeg->data);
    *jpeg = (struct jpeg){.data = begin,
                          .size = (size_t)(to + 2 - begin),
                          .width = 320,
                          .height = 240,
                          .tables = begin + 7,
                          .table_bytes = 64,
                          .scan = begin + 524,
                          .scan_bytes = (size_t)(to - begin) - 524};
}

// Returns NULL if it cannot be decoded.
static AVFrame *decode(const uint8_t *data, size_t bytes)
{
    AVCodecContext *codec = avcodec_alloc_context3(avcodec_find_decoder(AV_CODEC_ID_MJPEG));
    AVPacket *packet = av_packet_alloc();
    AVFrame *frame = av_frame_alloc();
    uint8_t *copy = av_mallocz(bytes + AV_INPUT_BUFFER_PADDING_SIZE);
    memcpy(copy, data, bytes);
    av_packet_from_data(packet, copy, (int)bytes);
    if (avcodec_open2(codec, NULL, NULL) < 0 || avcodec_send_packet(codec, packet) < 0 ||
        avcodec_receive_frame(codec, frame) < 0)
        av_frame_free(&frame);
    av_packet_free(&packet);
    avcodec_free_context(&codec);
    return frame;
}

static void check_same(const char *what, int i, const uint8_t *expected, size_t bytes)
{
    CHECK(i < net.n, "%s: no picture", what);
    if (i >= net.n)
        return;
    const struct access_unit *u = &net.got[i].unit;
    int wrong = 0;
    AVFrame *a = decode(u->data, u->bytes), *b = decode(expected, bytes);
    CHECK(a && b && a->width == b->width && a->height == b->height && a->format == b->format,
          "%s: decoded, %dx%d and %dx%d", what, a ? a->width : 0, a ? a->height : 0,
          b ? b->width : 0, b ? b->height : 0);
    for (int p = 0; a && b && p < 3 && a->height == b->height; p++) {
        const int h = p && a->format == AV_PIX_FMT_YUVJ420P ? (a->height + 1) / 2 : a->height;
        const int w = p ? (a->width + 1) / 2 : a->width;
        for (int y = 0; y < h; y++)
            wrong += memcmp(a->data[p] + y * a->linesize[p], b->data[p] + y * b->linesize[p],
                            (size_t)w) != 0;
    }
    CHECK(!wrong, "%s: %d rows differ", what, wrong);
    CHECK(u->keyframe && !u->damaged && !u->reference_lost, "%s: flags", what);
    av_frame_free(&a);
    av_frame_free(&b);
}

struct sending { // the way to send a picture
    int q, cut;
    const uint8_t *tables; // NULL with q from 128 on: those sent before
    size_t table_bytes;
    int precision, width, height; // in units of 8; of the header
    int lose;                     // number of packets before the withheld one; -1: none is withheld
    bool no_marker;
};

static struct sending plainly(const struct jpeg *jpeg)
{
    return (struct sending){.q = 255,
                            .cut = 1000,
                            .tables = jpeg->tables,
                            .table_bytes = jpeg->table_bytes,
                            .width = (jpeg->width + 7) / 8,
                            .height = (jpeg->height + 7) / 8,
                            .lose = -1};
}

static void send_jpeg(const struct jpeg *jpeg, const struct sending *s)
{
    static uint8_t payload[70000];
    for (size_t at = 0, k = 0; at < jpeg->scan_bytes; k++) {
        const size_t left = jpeg->scan_bytes - at,
                     n = left < (size_t)s->cut ? left : (size_t)s->cut;
        const uint8_t head[] = {0,
                                (uint8_t)(at >> 16),
                                (uint8_t)(at >> 8),
                                (uint8_t)at,
                                (uint8_t)(jpeg->type + (jpeg->restart_interval ? 64 : 0)),
                                (uint8_t)s->q,
                                (uint8_t)s->width,
                                (uint8_t)s->height};
        size_t bytes = sizeof head;
        memcpy(payload, head, bytes);
        if (jpeg->restart_interval) {
            payload[bytes++] = (uint8_t)(jpeg->restart_interval >> 8);
            payload[bytes++] = (uint8_t)jpeg->restart_interval;
            payload[bytes++] = 0xff; // the whole picture at once
            payload[bytes++] = 0xff;
        }
        if (s->q >= 128 && at == 0) {
            payload[bytes++] = 0;
            payload[bytes++] = (uint8_t)s->precision;
            payload[bytes++] = (uint8_t)(s->table_bytes >> 8);
            payload[bytes++] = (uint8_t)s->table_bytes;
            memcpy(payload + bytes, s->tables, s->table_bytes);
            bytes += s->table_bytes;
        }
        memcpy(payload + bytes, jpeg->scan + at, n);
        at += n;
        if ((int)k == s->lose)
            net_lose(1);
        else
            net_send(payload, bytes + n, at == jpeg->scan_bytes && !s->no_marker);
    }
    net.timestamp += 3600;
}

static void test_formats(void)
{
    static const char *const options[] = {"-pix_fmt yuvj420p -q:v 2", "-pix_fmt yuvj420p",
                                          "-pix_fmt yuvj420p -slices 4 -threads 4"};
    net_open_trusted(SDP_JPEG);
    for (int i = 0; i < 3; i++) {
        struct jpeg jpeg;
        read_jpeg(&jpeg, "320x240", options[i]);
        if (i == 1)
            make_422(&jpeg);
        CHECK((jpeg.restart_interval > 0) == (i == 2), "%d: restart interval", i);
        const struct sending sending = plainly(&jpeg);
        send_jpeg(&jpeg, &sending);
        CHECK(net.n == i + 1, "%d: %d come with the marker", i, net.n);
        check_same(options[i], i, jpeg.data, jpeg.size);
        free(jpeg.data);
    }
}

// Two tables, tables of 16 bits, tables kept by Q, and tables computed from Q.
static void test_tables(void)
{
    struct jpeg jpeg;
    uint8_t tables[256];
    read_jpeg(&jpeg, "320x240", "-pix_fmt yuvj420p -q:v 4");
    net_open_trusted(SDP_JPEG);
    struct sending sending = plainly(&jpeg);
    memcpy(tables, jpeg.tables, 64);
    memcpy(tables + 64, jpeg.tables, 64);
    sending.tables = tables;
    sending.table_bytes = 128;
    sending.q = 200;
    send_jpeg(&jpeg, &sending);
    sending.table_bytes = 0;
    send_jpeg(&jpeg, &sending);
    for (int i = 0; i < 128; i++) {
        tables[2 * i] = 0;
        tables[2 * i + 1] = jpeg.tables[i % 64];
    }
    sending.q = 201;
    sending.table_bytes = 256;
    sending.precision = 3;
    send_jpeg(&jpeg, &sending);
    CHECK(net.n == 3, "%d", net.n);
    for (int i = 0; i < net.n; i++)
        check_same("tables", i, jpeg.data, jpeg.size);
    sending.q = 202; // no tables were sent for it
    sending.table_bytes = 0;
    send_jpeg(&jpeg, &sending);
    CHECK(net.n == 3, "%d", net.n);
    sending.q = 200;
    send_jpeg(&jpeg, &sending);
    CHECK(net.n == 4 && net.got[3].unit.reference_lost, "the picture before could not be decoded");
    static const int q[] = {50, 75, 10, 1, 99};
    static const uint8_t first[][2] = {{16, 17}, {8, 9}, {80, 85}, {255, 255}, {1, 1}};
    for (int i = 0; i < 5; i++) {
        sending.q = q[i];
        send_jpeg(&jpeg, &sending);
        const uint8_t *data = net.got[net.n - 1].unit.data;
        CHECK(net.n == 5 + i && data[7] == first[i][0] && data[2 + 69 + 5] == first[i][1],
              "Q %d: %d, %d", q[i], data[7], data[76]);
    }
    free(jpeg.data);
}

static void check_size(int i, int width, int height)
{
    const struct access_unit *u = &net.got[i].unit;
    for (size_t at = 0; i < net.n && at + 8 < u->bytes; at++)
        if (u->data[at] == 0xff && u->data[at + 1] == 0xc0) {
            const int h = u->data[at + 5] << 8 | u->data[at + 6],
                      w = u->data[at + 7] << 8 | u->data[at + 8];
            CHECK(w == width && h == height, "%d: %dx%d", i, w, h);
            return;
        }
    CHECK(false, "%d: no size", i);
}

// RTP's header has a size of 0, or the size's remainder. SDP or the scan gives the real one.
static void test_sizes(void)
{
    static const struct {
        const char *size, *options;
        int header[2], sdp[2]; // header: in units of 8
    } cases[] = {
        {"2592x1944", "-pix_fmt yuvj420p", {324 - 256, 243}, {0, 0}},
        {"2592x1944", "-pix_fmt yuvj420p", {0, 0}, {0, 0}},
        {"2592x1944", "-pix_fmt yuvj420p", {0, 243}, {0, 0}},
        {"2592x1944", "-pix_fmt yuvj420p", {324 - 256, 0}, {0, 0}},
        {"2592x1944", "-pix_fmt yuvj420p", {0, 0}, {2592, 1944}},
        {"2592x1944", "-pix_fmt yuvj420p", {324 - 256, 243}, {2592, 1944}},
        {"2592x1944", "-pix_fmt yuvj420p", {324 - 256, 243}, {640, 480}}, // of another stream
        {"2592x1944", "-pix_fmt yuvj420p", {0, 0}, {640, 480}},
        {"3840x2160", "-pix_fmt yuvj420p", {480 - 256, 270 - 256}, {0, 0}},
        {"2560x1440", "-pix_fmt yuvj420p", {320 - 256, 180}, {0, 0}},
        {"2304x1296", "-pix_fmt yuvj420p -slices 4 -threads 4", {288 - 256, 162}, {0, 0}},
        {"2048x1536", "-pix_fmt yuvj420p", {0, 192}, {0, 0}},
        {"1536x2048", "-pix_fmt yuvj420p -slices 4 -threads 4", {192, 0}, {0, 0}},
        {"4104x160", "-pix_fmt yuvj420p", {513 - 512, 20}, {0, 0}},
        {"1920x1080", "-pix_fmt yuvj420p", {240, 135}, {0, 0}},
        {"1920x1080", "-pix_fmt yuvj420p", {0, 0}, {0, 0}},
        {"320x1082", "-pix_fmt yuvj420p", {40, 0}, {320, 1082}}, // not a multiple of 8
        {"512x1440", "-pix_fmt yuvj420p", {64, 180}, {0, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct jpeg jpeg;
        const struct sdp_media media = {
            .codec = SDP_JPEG, .width = cases[i].sdp[0], .height = cases[i].sdp[1]};
        read_jpeg(&jpeg, cases[i].size, cases[i].options);
        struct sending sending = plainly(&jpeg);
        sending.width = cases[i].header[0];
        sending.height = cases[i].header[1];
        net_open_trusted(SDP_JPEG);
        net_open(SDP_JPEG, &media);
        for (int k = 0; k < 3; k++) {
            sending.no_marker = k == 1; // ended by the next one's stamp
            send_jpeg(&jpeg, &sending);
        }
        CHECK(net.n == 3 && !*net.depacketizer->complaint, "%zu: %d", i, net.n);
        for (int k = 0; k < 3; k++)
            check_same(cases[i].size, k, jpeg.data, jpeg.size);
        free(jpeg.data);
    }
}

// Unknown sizes: such pictures are flagged, or lost, and a complaint gives the reason.
static void test_unknown_sizes(void)
{
    struct jpeg jpeg;
    read_jpeg(&jpeg, "320x240", "-pix_fmt yuvj420p");
    struct sending sending = plainly(&jpeg);
    net_open_trusted(SDP_JPEG);
    sending.width = 640 / 8;
    send_jpeg(&jpeg, &sending);
    const char *complaint = net.depacketizer->complaint;
    CHECK(net.n == 1 && net.got[0].unit.damaged && strstr(complaint, "640x240"),
          "too few blocks: %s", complaint);
    check_size(0, 640, 240);
    sending.width = 320 / 8;
    sending.cut = 10000; // two packets; only the first one comes
    sending.lose = 1;
    net_open_trusted(SDP_JPEG);
    send_jpeg(&jpeg, &sending);
    sending.lose = -1;
    send_jpeg(&jpeg, &sending);
    CHECK(net.n > 0 && !*net.depacketizer->complaint, "a loss is no reason");
    free(jpeg.data);

    read_jpeg(&jpeg, "320x240", "-vf drawbox=c=gray:t=fill -pix_fmt yuvj420p");
    sending = plainly(&jpeg);
    sending.width = sending.height = 0; // the rows of a blank picture do not give a width
    net_open_trusted(SDP_JPEG);
    send_jpeg(&jpeg, &sending);
    CHECK(net.n == 0 && *net.depacketizer->complaint, "blank: %d", net.n);
    free(jpeg.data);
}

static void test_reserved_q(void)
{
    static const struct {
        int q, units;
        const char *complaint;
    } cases[] = {{0, 0, "Q) 0, which RFC 2435 reserves"},
                 {100, 1, "Q) 100, which RFC 2435 reserves: framed takes the tables of 99"},
                 {127, 1, "Q) 127, which RFC 2435 reserves"},
                 {128, 0, "Q) 128, whose tables it has not sent"},
                 {255, 0, "Q) 255, whose tables it has not sent"},
                 {99, 1, NULL}};
    struct jpeg jpeg;
    read_jpeg(&jpeg, "320x240", "-pix_fmt yuvj420p");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sending sending = plainly(&jpeg);
        net_open_trusted(SDP_JPEG);
        sending.q = cases[i].q;
        sending.table_bytes = 0;
        send_jpeg(&jpeg, &sending);
        const char *complaint = net.depacketizer->complaint;
        CHECK(
            net.n == cases[i].units &&
                (cases[i].complaint ? strstr(complaint, cases[i].complaint) != NULL : !*complaint),
            "Q %d: %d, %s", cases[i].q, net.n, complaint);
        CHECK(net.n == 0 || net.got[0].unit.damaged == (cases[i].q > 99), "Q %d", cases[i].q);
    }
    free(jpeg.data);
}

static void test_losses(void)
{
    struct jpeg jpeg;
    read_jpeg(&jpeg, "320x240", "-pix_fmt yuvj420p -q:v 2");
    struct sending sending = plainly(&jpeg);
    const int packets = (int)((jpeg.scan_bytes + 999) / 1000);
    net_open_trusted(SDP_JPEG);
    send_jpeg(&jpeg, &sending);
    const int lose[] = {1, packets - 1, 0};
    for (int i = 0; i < 3; i++) {
        sending.lose = lose[i];
        send_jpeg(&jpeg, &sending);
        sending.lose = -1;
        send_jpeg(&jpeg, &sending);
    }
    CHECK(net.n == 6, "%d", net.n);
    const bool damaged[] = {false, true, false, true, false, false};
    for (int i = 0; i < net.n; i++)
        CHECK(net.got[i].unit.damaged == damaged[i], "%d", i);
    CHECK(net.got[5].unit.reference_lost && !net.got[4].unit.reference_lost, "without a header");
    CHECK(net.got[1].unit.bytes < 2000 && net.got[3].unit.bytes > 10000, "up to the hole");
    for (int i = 0; i < net.n; i++) {
        const struct access_unit *u = &net.got[i].unit;
        CHECK(memcmp(u->data + u->bytes - 2, "\xff\xd9", 2) == 0, "%d: EOI", i);
    }
    net_check_lost("jpeg");
    for (int way = 0; way < 2; way++) { // by the offset alone; by the numbers alone
        for (int k = 0; k < 2; k++) {
            uint8_t payload[208] = {0, 0, 0, way == 0 && k ? 201 : k ? 200 : 0, 1, 50, 40, 30};
            memcpy(payload + 8, jpeg.scan + k * 200, 200);
            net.lost = way == 1 && k ? 1 : 0;
            net_send(payload, sizeof payload, k);
        }
        net.timestamp += 3600;
        const struct access_unit *u = &net.got[net.n - 1].unit;
        CHECK(net.n == 7 + way && u->damaged && u->bytes < 1000, "way %d: %zu", way, u->bytes);
        CHECK(memcmp(u->data + u->bytes - 202, jpeg.scan, 200) == 0, "way %d: nothing more", way);
    }
    free(jpeg.data);
}

// Without a marker, a picture ends by the next stamp, by offset 0, or by silence.
static void test_ends(void)
{
    struct jpeg jpeg;
    read_jpeg(&jpeg, "320x240", "-pix_fmt yuvj420p");
    struct sending sending = plainly(&jpeg);
    sending.no_marker = true;
    memset(&net.verdict, 0, sizeof net.verdict);
    net_open(SDP_JPEG, NULL);
    for (int i = 0; i < 20; i++) {
        send_jpeg(&jpeg, &sending);
        net.timestamp -= i % 2 ? 3600 : 0;
        const int64_t sent = net.now_ns;
        net_wait(40 * MS);
        if (i > 8)
            CHECK(net.n == i + 1 && net.got[i].taken_ns == sent + 5 * MS, "%d: %d", i, net.n);
    }
    for (int i = 0; i < net.n; i++)
        check_same("without markers", i, jpeg.data, jpeg.size);
    free(jpeg.data);
}

static size_t header_without_scan(const struct jpeg *jpeg, uint8_t *to, bool with_scan_header)
{
    const size_t sos = 14, all = (size_t)(jpeg->scan - jpeg->data) - 2; // without SOI
    size_t bytes = with_scan_header ? all : all - sos;
    memcpy(to, jpeg->data + 2, bytes);
    return bytes;
}

// ONVIF: the encoder's segments come in the header extension, whole or in two packets, with
// padding; the main header's size is 0.
static void test_extension(void)
{
    struct jpeg jpeg;
    uint8_t segments[2048], payload[70000] = {0};
    read_jpeg(&jpeg, "2560x1440", "-pix_fmt yuvj422p -q:v 20");
    net_open_trusted(SDP_JPEG);
    for (int way = 0; way < 4; way++) {
        size_t bytes = header_without_scan(&jpeg, segments, way == 1);
        while (way != 1 && bytes % 4)
            segments[bytes++] = 0xff;
        net.extension_profile = 0xffd8;
        net.extension = segments;
        net.extension_bytes = bytes;
        payload[4] = 0;
        payload[5] = 0; // Q: as in the picture before
        if (way == 2) { // the first packet has no scan data, and part of the segments
            net.extension_bytes = 100;
            net_send(payload, 8, false);
            net.extension_profile = 0xffff;
            net.extension = segments + 100;
            net.extension_bytes = bytes - 100;
        } else if (way == 3) { // an empty extension: all as in the picture before
            net.extension_bytes = 0;
        }
        for (size_t at = 0; at < jpeg.scan_bytes;) {
            const size_t left = jpeg.scan_bytes - at, n = left < 1000 ? left : 1000;
            payload[1] = (uint8_t)(at >> 16);
            payload[2] = (uint8_t)(at >> 8);
            payload[3] = (uint8_t)at;
            memcpy(payload + 8, jpeg.scan + at, n);
            at += n;
            net_send(payload, 8 + n, at == jpeg.scan_bytes);
        }
        memset(payload, 0, 8);
        net.timestamp += 3600;
        CHECK(net.n == way + 1, "way %d: %d", way, net.n);
        check_same("extension", way, jpeg.data, jpeg.size);
    }
    free(jpeg.data);
}

static void test_refused(void)
{
    static const uint8_t type[12] = {0, 0, 0, 0, 2, 50, 40, 30}, restart[10] = {0, 0, 0, 0, 64, 50},
                         tables[12] = {0, 0, 0, 0, 0, 255, 40, 30, 0, 0, 1, 0};
    net_open_trusted(SDP_JPEG);
    net_send(type, sizeof type, true);
    net_send(restart, sizeof restart, true);
    net_send(tables, sizeof tables, true);
    net_send(tables, 5, true);
    net_send("", 0, true);
    CHECK(net.n == 0, "%d", net.n);
}

int main(void)
{
    av_log_set_level(AV_LOG_QUIET);
    clips_open();
    TEST(test_formats());
    TEST(test_tables());
    TEST(test_sizes());
    TEST(test_unknown_sizes());
    TEST(test_reserved_q());
    TEST(test_losses());
    TEST(test_ends());
    TEST(test_extension());
    TEST(test_refused());
    net_close();
    clips_close();
    return test_end();
}
