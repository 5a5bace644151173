// Replies as cameras write them, and the start of the next `$` frame when bytes are missing.
#include "daemon/rtsp/messages.h"

#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

enum { RTP = 0, RTCP = 1, VIDEO = 96, STREAM_MAX = 1 << 20 };

struct stream { // a camera's bytes
    uint8_t bytes[STREAM_MAX];
    size_t n;
};

static struct stream *stream_new(void)
{
    struct stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        abort();
    return stream;
}

static void say(struct stream *stream, const char *text)
{
    memcpy(stream->bytes + stream->n, text, strlen(text));
    stream->n += strlen(text);
}

// Appends a frame with an RTP packet; returns the bytes with the header. Its payload has no '$'.
static size_t say_packet(struct stream *stream, int channel, int sequence, size_t bytes)
{
    uint8_t *to = stream->bytes + stream->n;
    memset(to, 0x11, 4 + bytes);
    to[0] = '$';
    to[1] = (uint8_t)channel;
    to[2] = (uint8_t)(bytes >> 8);
    to[3] = (uint8_t)bytes;
    to[4] = 0x80;
    to[5] = channel == RTP ? VIDEO : 200;
    to[6] = (uint8_t)(sequence >> 8);
    to[7] = (uint8_t)sequence;
    stream->n += 4 + bytes;
    return stream->n - 4 - bytes;
}

static void cut_out(struct stream *stream, size_t at, size_t bytes)
{
    memmove(stream->bytes + at, stream->bytes + at + bytes, stream->n - at - bytes);
    stream->n -= bytes;
}

// Feeds the stream to the reader in pieces of `piece` bytes and writes a log: "7 " for a packet
// with that number, "c4:20 " for 20 bytes on channel 4, "M200 " or "MOPTIONS " for a message, "L "
// for a loss, "I" for the end. The last message stays in *message.
static void read_all(const struct stream *stream, size_t piece, bool known,
                     struct rtsp_message *message, struct rtsp_reader *reader, char *log)
{
    struct rtsp_frame frame;
    size_t at = 0, room;
    rtsp_reader_reset(reader);
    if (known)
        reader->framing = (struct rtsp_framing){RTP, RTCP, VIDEO};
    for (*log = 0;;) {
        char *end = log + strlen(log);
        switch (rtsp_reader_next(reader, message, &frame)) {
        case RTSP_ITEM_MESSAGE:
            if (message->status)
                sprintf(end, "M%d ", message->status);
            else
                sprintf(end, "M%s ", message->method);
            break;
        case RTSP_ITEM_FRAME:
            if (frame.channel == RTP && frame.bytes >= 12)
                sprintf(end, "%d ", frame.data[2] << 8 | frame.data[3]);
            else
                sprintf(end, "c%d:%zu ", frame.channel, frame.bytes);
            break;
        case RTSP_ITEM_LOST:
            strcpy(end, "L ");
            break;
        case RTSP_ITEM_INVALID:
            strcpy(end, "I");
            CHECK(rtsp_reader_next(reader, message, &frame) == RTSP_ITEM_INVALID, "goes on");
            return;
        case RTSP_ITEM_NONE: {
            uint8_t *to = rtsp_reader_room(reader, &room);
            const size_t left = stream->n - at, n = left < piece ? left : piece;
            if (n == 0)
                return;
            CHECK(room >= 16 << 10, "room for %zu bytes", room);
            memcpy(to, stream->bytes + at, n < room ? n : room);
            reader->end += n < room ? n : room;
            at += n < room ? n : room;
        }
        }
    }
}

static void expect(const struct stream *stream, bool known, const char *expected, const char *what)
{
    static const size_t pieces[] = {1, 7, 1460, STREAM_MAX};
    static char log[1 << 16];
    for (size_t i = stream->n > 4096 ? 1 : 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct rtsp_message message;
        struct rtsp_reader reader;
        read_all(stream, pieces[i], known, &message, &reader, log);
        CHECK(!strcmp(log, expected), "%s, %zu bytes at a time: '%.200s'", what, pieces[i], log);
    }
}

// --- messages

static const struct { // and their expected contents
    const char *text, *items, *header, *value, *body;
} messages[] = {
    {"RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n", "M200 ", "CSeq", "1", ""},
    {"RTSP/1.0 200 OK\r\nCseq: 1\r\n\r\n", "M200 ", "CSEQ", "1", ""},
    {"RTSP/1.0 200 OK\r\nSession:        7083\t \r\n\r\n", "M200 ", "session", "7083", ""},
    {"RTSP/1.0 200 OK\r\nSession : 7083;timeout=60\r\n\r\n", "M200 ", "Session", "7083;timeout=60",
     ""},
    {"RTSP/1.0 200 OK\r\nSession:7083\r\n\r\n", "M200 ", "Session", "7083", ""},
    {"RTSP/1.0 200 OK\r\nSession:\r\n\r\n", "M200 ", "Session", "", ""},
    {"RTSP/1.0 200 OK\r\nX: a:b c\r\n\r\n", "M200 ", "X", "a:b c", ""},
    {"RTSP/1.0 200 OK\nCSeq: 1\n\n", "M200 ", "CSeq", "1", ""},
    {"RTSP/1.0 200 OK\r\nCSeq: 1\n\r\n", "M200 ", "CSeq", "1", ""},
    {"\r\n\n\r\nRTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n", "M200 ", "CSeq", "1", ""},
    {"RTSP/1.0 200 OK\r\nPublic: PLAY,\r\n  OPTIONS,\n\tSETUP\r\nCSeq: 1\r\n\r\n", "M200 ", "CSeq",
     "1", ""},
    {"RTSP/1.0 200 OK\r\nPublic: PLAY,\r\n OPTIONS\r\n\r\n", "M200 ", "Public", "PLAY,   OPTIONS",
     ""},
    {"RTSP/1.0 200 OK\r\nno header\r\n: nameless\r\nCSeq: 1\r\n\r\n", "M200 ", "CSeq", "1", ""},
    {"RTSP/1.0 200\r\n\r\n", "M200 ", "CSeq", NULL, ""},
    {"RTSP/1.0 404 Stream Not Found\r\n\r\n", "M404 ", "CSeq", NULL, ""},
    {"rtsp/2.0   401   No\r\n\r\n", "M401 ", "CSeq", NULL, ""},
    {"RTSP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nv=0", "M200 ", "Content-Type", NULL, "v=0"},
    {"RTSP/1.0 200 OK\ncontent-length :3\n\nv=0", "M200 ", "Content-Length", "3", "v=0"},
    {"RTSP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nv=\n\n0RTSP/1.0 200 OK\r\n\r\n", "M200 M200 ",
     "CSeq", NULL, ""},
    {"RTSP/1.0 200 OK\r\nContent-Length: -3\r\n\r\n", "M200 ", "CSeq", NULL, ""},
    {"RTSP/1.0 200 OK\r\nContent-Length: x\r\n\r\n", "M200 ", "CSeq", NULL, ""},
    {"RTSP/1.0 200 OK\r\nX-Content-Length: 9\r\n\r\n", "M200 ", "CSeq", NULL, ""},
    {"RTSP/1.0 200 OK\r\nContent-Length: 65537\r\n\r\n", "I", NULL, NULL, NULL},
    {"RTSP/1.0 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", "I", NULL, NULL, NULL},
    {"RTSP/1.0 OK\r\n\r\n", "I", NULL, NULL, NULL},
    {"RTSP/1.0 99 OK\r\n\r\n", "I", NULL, NULL, NULL},
    {"RTSP/1.0 4294967496 OK\r\n\r\n", "I", NULL, NULL, NULL},
    {"HTTP/1.1 400 Bad Request\r\n\r\n", "I", NULL, NULL, NULL},
    {"SSH-2.0-dropbear\r\n", "I", NULL, NULL, NULL},
    {"OPTIONS rtsp://10.0.0.5/ RTSP/1.0\r\nCSeq: 7\r\n\r\n", "MOPTIONS ", "CSeq", "7", ""},
    {"GET_PARAMETER\r\n\r\n", "I", NULL, NULL, NULL},
    {"ANNOUNCE x\r\nContent-Length:2\r\n\r\nok", "MANNOUNCE ", "Content-Length", "2", "ok"},
};

static void test_messages(void)
{
    char log[256];
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        struct stream *stream = stream_new();
        struct rtsp_message message = {0};
        struct rtsp_reader reader;
        say(stream, messages[i].text);
        expect(stream, false, messages[i].items, messages[i].text);
        read_all(stream, STREAM_MAX, false, &message, &reader, log);
        const char *value =
            messages[i].header ? rtsp_message_header(&message, messages[i].header, NULL) : NULL;
        CHECK(!value == !messages[i].value && (!value || !strcmp(value, messages[i].value)),
              "%s: %s", messages[i].text, value);
        CHECK(!messages[i].body || (message.body_bytes == strlen(messages[i].body) &&
                                    !strcmp(message.body, messages[i].body)),
              "%s: '%s'", messages[i].text, message.body);
        free(stream);
    }
}

static void test_first_line(void)
{
    struct stream *stream = stream_new();
    struct rtsp_message message;
    struct rtsp_reader reader;
    char log[256];
    say(stream, "RTSP/1.0 454  Session Not Found \r\n\r\n");
    read_all(stream, STREAM_MAX, false, &message, &reader, log);
    CHECK(!strcmp(message.reason, "Session Not Found"), "'%s'", message.reason);
    say(stream, "SET_PARAMETER  rtsp://h/s RTSP/1.0\r\nX: 1\r\nx: 2\r\n\r\n");
    read_all(stream, STREAM_MAX, false, &message, &reader, log);
    int at = 0;
    CHECK(message.status == 0 && !strcmp(message.method, "SET_PARAMETER"), "%d '%s'",
          message.status, message.method);
    CHECK(!strcmp(rtsp_message_header(&message, "x", &at), "1") &&
              !strcmp(rtsp_message_header(&message, "x", &at), "2") &&
              !rtsp_message_header(&message, "x", &at),
          "each header of a name once");
    free(stream);
}

// A head and a body of the largest size, and one byte more; more headers than are kept.
static void test_bounds(void)
{
    struct stream *stream = stream_new();
    struct rtsp_message message;
    struct rtsp_reader reader;
    char log[256];
    say(stream, "RTSP/1.0 200 OK\r\nContent-Length: 65536\r\n\r\n");
    memset(stream->bytes + stream->n, 'x', RTSP_BODY_MAX);
    stream->n += RTSP_BODY_MAX;
    say(stream, "RTSP/1.0 201 OK\r\n\r\n");
    expect(stream, false, "M200 M201 ", "the largest body");
    for (int more = 0; more < 2; more++) {
        stream->n = 0;
        say(stream, "RTSP/1.0 200 OK\r\nX: ");
        const size_t fill = (16 << 10) - stream->n - 4 + (size_t)more;
        memset(stream->bytes + stream->n, 'x', fill);
        stream->n += fill;
        say(stream, "\r\n\r\n");
        expect(stream, false, more ? "I" : "M200 ", "a long head");
    }
    stream->n = 0;
    say(stream, "RTSP/1.0 200 OK\r\n");
    for (int i = 0; i < RTSP_HEADERS_MAX + 9; i++)
        say(stream, "A: b\r\n");
    say(stream, "Last: x\r\n\r\n");
    read_all(stream, STREAM_MAX, false, &message, &reader, log);
    CHECK(message.n_headers == RTSP_HEADERS_MAX && !rtsp_message_header(&message, "last", NULL),
          "%d headers", message.n_headers);
    free(stream);
}

// --- frames

static void test_frames(void)
{
    struct stream *stream = stream_new();
    say_packet(stream, RTP, 1, 1400); // before the reply to PLAY
    say(stream, "RTSP/1.0 200 OK\r\nCSeq: 4\r\n\r\n");
    say_packet(stream, RTP, 2, 12);
    say(stream, "\r\n");
    say_packet(stream, RTCP, 0, 28);
    say_packet(stream, 4, 0, 100); // unknown channel
    say(stream, "RTSP/1.0 400 Bad Request\r\n\r\n");
    say_packet(stream, RTP, 3, 65535);
    say_packet(stream, RTP, 4, 65535);
    memcpy(stream->bytes + stream->n, "$\0\0", 4); // empty
    stream->n += 4;
    say(stream, "OPTIONS rtsp://h/ RTSP/1.0\r\n\r\n");
    say_packet(stream, RTP, 5, 1400);
    for (int known = 0; known < 2; known++)
        expect(stream, known, "1 M200 2 c1:28 c4:100 M400 3 4 c0:0 MOPTIONS 5 ", "frames");
    free(stream);
}

// More than the reader's buffer, in frames of every size.
static void test_long_stream(void)
{
    static char expected[1 << 14];
    struct stream *stream = stream_new();
    *expected = 0;
    for (int i = 0; i < 1200; i++) {
        say_packet(stream, RTP, i, 12 + (size_t)i * 31 % 1500);
        sprintf(expected + strlen(expected), "%d ", i);
    }
    say(stream, "RTSP/1.0 200 OK\r\n\r\n");
    strcat(expected, "M200 ");
    expect(stream, true, expected, "a long stream");
    free(stream);
}

// Bytes missing at any place of a frame or between two: whole frames come, the loss is reported
// once, and the incomplete frame is dropped if its successor is at hand.
static void test_missing(void)
{
    static const size_t cuts[] = {1, 3, 4, 12, 37, 200, 300, 303};
    struct stream *stream = stream_new();
    struct rtsp_message message;
    struct rtsp_reader reader;
    char log[256];
    for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++)
        for (size_t at = 0; at + cuts[c] <= 304; at += 7) {
            stream->n = 0;
            say_packet(stream, RTP, 1, 300);
            const size_t second = say_packet(stream, RTP, 2, 300);
            say_packet(stream, RTP, 3, 300);
            say_packet(stream, RTP, 4, 300);
            cut_out(stream, second + at, cuts[c]);
            read_all(stream, STREAM_MAX, true, &message, &reader, log);
            CHECK(!strcmp(log, "1 L 3 4 "), "%zu bytes at %zu: %s", cuts[c], at, log);
        }
    free(stream);
}

// The damaged frame looks whole until the next bytes arrive: it comes out, and the loss with the
// next bytes.
static void test_missing_at_the_end(void)
{
    struct stream *stream = stream_new();
    const size_t first = say_packet(stream, RTP, 1, 300);
    say_packet(stream, RTP, 2, 300);
    say_packet(stream, RTP, 3, 300);
    say_packet(stream, RTP, 4, 300);
    cut_out(stream, first + 100, 37);
    struct rtsp_message message;
    struct rtsp_reader reader;
    char log[256];
    read_all(stream, 304, true, &message, &reader, log); // 37 bytes of the second with the first
    CHECK(!strcmp(log, "1 L 3 4 "), "%s", log);
    free(stream);
}

// A frame followed by noise is whole, however much of the noise arrives with it.
static void test_resync(void)
{
    struct stream *stream = stream_new();
    say_packet(stream, RTP, 1, 100);
    say_packet(stream, RTP, 2, 100);
    for (int i = 0; i < 1000; i++)
        say(stream, "x$$x $RTSP/RTSP");
    say(stream, "RTSP/1.0 200 OK\r\n\r\n");
    say_packet(stream, RTP, 3, 100);
    expect(stream, true, "1 2 L M200 3 ", "up to a reply, through dollars");

    stream->n = 0;
    say_packet(stream, RTP, 1, 100);
    memset(stream->bytes + stream->n, 'x', 65000);
    stream->n += 65000;
    say_packet(stream, RTCP, 0, 28);
    say_packet(stream, RTP, 2, 100);
    expect(stream, true, "1 L c1:28 2 ", "65,000 bytes, up to a report");
    expect(stream, false, "1 I", "without knowing the channel");

    stream->n = 66000;
    memset(stream->bytes, 'x', stream->n);
    say_packet(stream, RTP, 1, 100);
    expect(stream, true, "I", "more than 64 KiB");
    free(stream);
}

// Only one of our own packets counts as a place to resume.
static void test_resync_on_ours(void)
{
    static const struct {
        int at, value;
    } changes[] = {{1, 2}, {4, 0x40}, {5, 97}, {3, 11}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct stream *stream = stream_new();
        say(stream, "xxxxxxxxx");
        const size_t other = say_packet(stream, RTP, 7, 100);
        stream->bytes[other + changes[i].at] = (uint8_t)changes[i].value;
        say_packet(stream, RTP, 1, 100);
        expect(stream, true, "L 1 ", "a packet that is none of ours");
        free(stream);
    }
}

// Ten losses with nothing whole between them are too many.
static void test_gives_up(void)
{
    for (int losses = 10; losses <= 11; losses++) {
        struct stream *stream = stream_new();
        struct rtsp_message message;
        struct rtsp_reader reader;
        char log[256];
        for (int i = 0; i < losses; i++) {
            say_packet(stream, RTP, 7, 20);
            stream->n -= 7; // reaches into the next
        }
        say_packet(stream, RTP, 1, 20);
        read_all(stream, STREAM_MAX, true, &message, &reader, log);
        CHECK(!strcmp(log, losses == 10 ? "L L L L L L L L L L 1 " : "L L L L L L L L L L I"),
              "%d losses: %s", losses, log);
        free(stream);
    }
    struct stream *stream = stream_new();
    for (int i = 0; i < 30; i++) {
        say_packet(stream, RTP, 1, 20);
        say_packet(stream, RTP, 7, 20);
        stream->n -= 7;
    }
    say_packet(stream, RTP, 2, 20);
    struct rtsp_message message;
    struct rtsp_reader reader;
    char log[256];
    read_all(stream, STREAM_MAX, true, &message, &reader, log);
    CHECK(strstr(log, "1 L 1 L 1 L 1 L 1 L 1 L 1 L 1 L 1 L 1 L 1 L 1 L") == log &&
              !strcmp(log + strlen(log) - 4, "L 2 "),
          "with whole ones between: %s", log);
    free(stream);
}

int main(void)
{
    TEST(test_messages());
    TEST(test_first_line());
    TEST(test_bounds());
    TEST(test_frames());
    TEST(test_long_stream());
    TEST(test_missing());
    TEST(test_missing_at_the_end());
    TEST(test_resync());
    TEST(test_resync_on_ours());
    TEST(test_gives_up());
    return test_end();
}
