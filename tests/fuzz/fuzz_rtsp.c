// Any bytes of a camera over an RTSP connection: items lie within the bytes, texts end, URLs are
// words without a password, and signatures fit their buffers. The first byte sets the number of
// bytes per read (0: all), the second tells if the channels are known.
#include <stdlib.h>
#include <string.h>

#include "daemon/rtsp/messages.h"
#include "daemon/rtsp/url.h"
#include "tests/fuzz/turns.h"

#define ASKED "rtsp://10.0.0.5:8554/live/s?x=1"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Reads all of it, for sanitizers.
static void read_all(const struct rtsp_frame *frame, size_t given)
{
    unsigned sum = 0;
    MUST(frame->bytes + 4 <= given && frame->channel >= 0 && frame->channel <= 255);
    for (size_t i = 0; i < frame->bytes; i++)
        sum += frame->data[i];
    MUST(sum <= 255 * frame->bytes);
}

static size_t read_text(const char *text)
{
    size_t bytes = 0;
    for (; *text; text++)
        bytes += *text != '\n' && *text != '\r';
    return bytes;
}

// The URL goes into a request line: it must be one word, without user and password.
static void check_word(const char *url)
{
    const char *authority = strstr(url, "://");
    MUST(authority && !memchr(authority + 3, '@', strcspn(authority + 3, "/?#")));
    MUST(strlen(url) < RTSP_URL_MAX);
    for (const char *p = url; *p; p++)
        MUST((unsigned char)*p > ' ' && *p != 0x7f);
}

static void try_urls(const struct rtsp_message *message)
{
    char base[RTSP_URL_MAX], track[RTSP_URL_MAX];
    const char *control = rtsp_message_header(message, "Control", NULL);
    const char *location = rtsp_message_header(message, "Location", NULL);
    struct rtsp_url url;
    MUST(rtsp_url_base(base, rtsp_message_header(message, "Content-Base", NULL),
                       rtsp_message_header(message, "Content-Location", NULL), ASKED) == 0);
    check_word(base);
    for (int merged = 0; merged < 2; merged++)
        if (rtsp_url_of_track(track, base, control, merged) == 0)
            check_word(track);
    if (location && rtsp_url_parse(&url, location) == 0) {
        check_word(url.text);
        MUST(*url.host && url.port >= 1 && url.port <= 65535);
        MUST(strlen(url.user) < sizeof url.user && strlen(url.password) < sizeof url.password);
        MUST(rtsp_url_base(base, location, NULL, ASKED) == 0);
        check_word(base);
    }
}

static void try_auth(struct rtsp_auth *auth, const struct rtsp_message *message)
{
    char text[3000];
    auth->first_only = message->status % 2;
    if (rtsp_auth_challenge(auth, message) < 0)
        return;
    MUST(auth->scheme && strlen(auth->realm) < sizeof auth->realm &&
         strlen(auth->nonce) < sizeof auth->nonce && strlen(auth->opaque) < sizeof auth->opaque);
    MUST(rtsp_auth_sign(auth, "us\"er", "pass", "PLAY", ASKED, text, sizeof text) == 0);
    MUST(strlen(text) < sizeof text && strpbrk(text, "\r\n") == NULL);
}

static void check_message(const struct rtsp_message *message)
{
    MUST(message->n_headers <= RTSP_HEADERS_MAX && message->body_bytes <= RTSP_BODY_MAX);
    MUST(message->body[message->body_bytes] == 0);
    MUST(message->status == 0 || (message->status >= 100 && message->status <= 999));
    size_t bytes = read_text(message->method) + read_text(message->reason);
    for (int i = 0; i < message->n_headers; i++) {
        const char *value = message->headers[i].value;
        bytes += read_text(message->headers[i].name) + read_text(value);
        MUST(!strpbrk(value, "\r\n\t") && *value != ' ');
        MUST(!*value || value[strlen(value) - 1] != ' ');
    }
    MUST(bytes <= 16 << 10);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rtsp_reader reader;
    struct rtsp_message message;
    struct rtsp_frame frame;
    struct rtsp_auth auth = {0};
    enum rtsp_item item = RTSP_ITEM_NONE;
    if (size < 2)
        return 0;
    rtsp_reader_reset(&reader);
    const size_t piece = data[0] ? data[0] : size;
    if (data[1] & 1)
        reader.framing = (struct rtsp_framing){0, 1, data[1] & 2 ? 96 : -1};
    for (size_t at = 2, given = 0; at < size && item != RTSP_ITEM_INVALID;) {
        size_t room, n = size - at < piece ? size - at : piece;
        uint8_t *to = rtsp_reader_room(&reader, &room);
        MUST(room >= 16 << 10);
        n = n < room ? n : room;
        memcpy(to, data + at, n);
        reader.end += n;
        at += n;
        while ((item = rtsp_reader_next(&reader, &message, &frame)) != RTSP_ITEM_NONE &&
               item != RTSP_ITEM_INVALID) {
            MUST(item == RTSP_ITEM_LOST || ++given <= size); // every item uses bytes
            if (item == RTSP_ITEM_FRAME)
                read_all(&frame, at);
            if (item != RTSP_ITEM_MESSAGE)
                continue;
            check_message(&message);
            try_urls(&message);
            try_auth(&auth, &message);
        }
    }
    return 0;
}
