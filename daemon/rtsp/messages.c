#include "daemon/rtsp/messages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/base/number.h"

enum {
    BUFFER_BYTES = 256 << 10, // more than the longest item and the room behind it
    ROOM_MIN = 16 << 10,
    HEAD_MAX = 16 << 10, // bytes of a message before its body
    FRAME_HEAD = 4,      // bytes of "$", the channel and the length
    RTP_HEAD = 12,       // bytes of the shortest RTP packet
    SCAN_MAX = 64 << 10, // bytes within which the next frame must begin
    SCAN_AHEAD = 8,      // bytes that identify a frame or a reply
    LOSSES_MAX = 10,     // of framing, without an item between them
};

// The first word of a message: a reply's, or RTSP's methods for a camera's own requests.
static const char *const first_words[] = {
    "RTSP/",     "OPTIONS ",  "GET_PARAMETER ", "SET_PARAMETER ", "ANNOUNCE ",
    "REDIRECT ", "TEARDOWN ", "DESCRIBE ",      "PLAY ",          "PLAY_NOTIFY ",
    "PAUSE ",    "SETUP ",    "RECORD ",
};

const char *rtsp_message_header(const struct rtsp_message *message, const char *name, int *at)
{
    for (int i = at ? *at : 0; i < message->n_headers; i++)
        if (strcasecmp(message->headers[i].name, name) == 0) {
            if (at)
                *at = i + 1;
            return message->headers[i].value;
        }
    return NULL;
}

// --- messages

static char *trim(char *text)
{
    text += strspn(text, " ");
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] == ' ')
        n--;
    text[n] = 0;
    return text;
}

// Returns the bytes up to and with the empty line; 0: it has not arrived. Lines may end in LF
// alone.
static size_t find_head(const char *text, size_t bytes)
{
    const char *end = text + bytes, *line = text;
    while ((line = memchr(line, '\n', (size_t)(end - line)))) {
        line++;
        const char *next = line < end && *line == '\r' ? line + 1 : line;
        if (next < end && *next == '\n')
            return (size_t)(next + 1 - text);
    }
    return 0;
}

// Returns the Content-Length of a head before it is parsed; 0: none. A head ends in a line end, so
// no number extends beyond it.
static size_t find_content_length(const char *head, size_t bytes)
{
    static const char name[] = "Content-Length";
    const char *end = head + bytes, *line = head;
    while ((line = memchr(line, '\n', (size_t)(end - line))) && ++line < end) {
        if ((size_t)(end - line) < sizeof name || strncasecmp(line, name, strlen(name)) != 0)
            continue;
        const char *colon = line + strlen(name);
        colon += strspn(colon, " \t");
        const long length = *colon == ':' ? strtol(colon + 1, NULL, 10) : 0;
        return length > 0 ? (size_t)length : 0;
    }
    return 0;
}

static bool parse_first_line(struct rtsp_message *message, char *line)
{
    static const char reply[] = "RTSP/";
    char *rest = line;
    const char *word = strsep(&rest, " ");
    rest = rest ? trim(rest) : line + strlen(line);
    if (strncasecmp(word, reply, strlen(reply)) == 0) {
        const long status = strtol(rest, &rest, 10);
        message->status = status >= 100 && status <= 999 ? (int)status : 0;
        message->reason = trim(rest);
        return message->status > 0;
    }
    message->method = word;
    message->url = strsep(&rest, " ");
    return true;
}

// Parses a head in place. Its last two bytes, the end of the last line or of the empty one, are not
// needed.
static bool parse_head(struct rtsp_message *message, char *head, size_t bytes)
{
    head[bytes - 2] = 0;
    for (size_t i = 0; i < bytes - 2; i++) {
        const bool folded = head[i] == '\n' && (head[i + 1] == ' ' || head[i + 1] == '\t');
        if (folded || head[i] == '\r' || head[i] == '\t' || !head[i])
            head[i] = ' ';
    }
    if (!parse_first_line(message, strsep(&head, "\n")))
        return false;
    for (char *line; (line = strsep(&head, "\n")) && message->n_headers < RTSP_HEADERS_MAX;) {
        char *value = line, *name = strsep(&value, ":");
        if (value)
            message->headers[message->n_headers++] =
                (struct rtsp_header){.name = trim(name), .value = trim(value)};
    }
    return true;
}

static enum rtsp_item take_message(struct rtsp_reader *reader, struct rtsp_message *message)
{
    char *text = (char *)reader->buffer + reader->begin;
    const size_t bytes = reader->end - reader->begin;
    if (!reader->head) {
        reader->head = find_head(text, bytes < HEAD_MAX ? bytes : HEAD_MAX);
        if (!reader->head)
            return bytes < HEAD_MAX ? RTSP_ITEM_NONE : RTSP_ITEM_INVALID;
        reader->whole = reader->head + find_content_length(text, reader->head);
    }
    const size_t head = reader->head, body = reader->whole - head;
    if (body > RTSP_BODY_MAX)
        return RTSP_ITEM_INVALID;
    if (bytes < reader->whole)
        return RTSP_ITEM_NONE;
    *message = (struct rtsp_message){.method = "", .url = "", .reason = "", .body_bytes = body};
    if (!parse_head(message, text, head))
        return RTSP_ITEM_INVALID;
    // The body moves over the head's last byte, to make room for a zero behind it.
    message->body = memmove(text + head - 1, text + head, body);
    text[head - 1 + body] = 0;
    reader->begin += reader->whole;
    reader->head = reader->whole = 0;
    return RTSP_ITEM_MESSAGE;
}

// --- frames

static bool is_line_end(uint8_t byte)
{
    return byte == '\r' || byte == '\n';
}

// Returns true if an item may begin with these bytes, as far as there are any.
static bool may_begin_item(const uint8_t *data, size_t bytes)
{
    if (bytes == 0 || *data == '$' || is_line_end(*data))
        return true;
    for (size_t i = 0; i < sizeof first_words / sizeof *first_words; i++) {
        const size_t n = strlen(first_words[i]);
        if (strncasecmp((const char *)data, first_words[i], bytes < n ? bytes : n) == 0)
            return true;
    }
    return false;
}

// Returns true if SCAN_AHEAD bytes prove that a frame of ours or a reply begins here.
static bool surely_begins_item(const struct rtsp_framing *framing, const uint8_t *data)
{
    const bool version2 = data[FRAME_HEAD] >> 6 == 2;
    const int type = data[FRAME_HEAD + 1];
    if (*data != '$')
        return strncasecmp((const char *)data, "RTSP/1.", strlen("RTSP/1.")) == 0;
    if (version2 && data[1] == framing->rtcp_channel && type >= 200 && type <= 204)
        return true;
    return version2 && data[1] == framing->rtp_channel &&
           big_endian_read(data + 2, 2) >= RTP_HEAD &&
           (framing->payload_type < 0 || framing->payload_type == (type & 0x7f));
}

// Checks a frame that no item follows. If the frame lacks bytes, it reaches into its successor,
// which begins inside it: RTSP_ITEM_INVALID. Otherwise it is complete, and noise follows.
static enum rtsp_item judge_frame(const struct rtsp_reader *reader, size_t whole)
{
    const size_t bytes = reader->end - reader->begin;
    for (size_t at = 1; at < whole; at++) {
        if (bytes - at < SCAN_AHEAD)
            return RTSP_ITEM_NONE;
        if (surely_begins_item(&reader->framing, reader->buffer + reader->begin + at))
            return RTSP_ITEM_INVALID;
    }
    return RTSP_ITEM_FRAME;
}

static enum rtsp_item take_frame(struct rtsp_reader *reader, struct rtsp_frame *frame)
{
    const uint8_t *data = reader->buffer + reader->begin;
    const size_t bytes = reader->end - reader->begin;
    const size_t whole = bytes < FRAME_HEAD ? bytes + 1 : FRAME_HEAD + big_endian_read(data + 2, 2);
    if (bytes < whole)
        return RTSP_ITEM_NONE;
    enum rtsp_item item = RTSP_ITEM_FRAME;
    if (reader->framing.rtp_channel >= 0 && !may_begin_item(data + whole, bytes - whole))
        item = judge_frame(reader, whole);
    if (item != RTSP_ITEM_FRAME)
        return item;
    *frame = (struct rtsp_frame){data[1], data + FRAME_HEAD, whole - FRAME_HEAD};
    reader->begin += whole;
    return item;
}

// Continues to skip bytes, up to a frame of ours or a reply.
static enum rtsp_item find_item(struct rtsp_reader *reader)
{
    for (; reader->end - reader->begin >= SCAN_AHEAD; reader->begin++, reader->skipped++) {
        if (reader->skipped > SCAN_MAX)
            return RTSP_ITEM_INVALID;
        if (surely_begins_item(&reader->framing, reader->buffer + reader->begin)) {
            reader->skipped = 0;
            return RTSP_ITEM_LOST;
        }
    }
    return RTSP_ITEM_NONE;
}

// --- the reader

int rtsp_reader_open(struct rtsp_reader *reader)
{
    *reader = (struct rtsp_reader){.framing = {-1, -1, -1}, .buffer = malloc(BUFFER_BYTES)};
    return reader->buffer ? 0 : -ENOMEM;
}

void rtsp_reader_close(struct rtsp_reader *reader)
{
    free(reader->buffer);
    *reader = (struct rtsp_reader){0};
}

uint8_t *rtsp_reader_room(struct rtsp_reader *reader, size_t *room)
{
    const size_t bytes = reader->end - reader->begin;
    if (bytes == 0 || BUFFER_BYTES - reader->end < ROOM_MIN) {
        memmove(reader->buffer, reader->buffer + reader->begin, bytes);
        reader->begin = 0;
        reader->end = bytes;
    }
    *room = BUFFER_BYTES - reader->end;
    return reader->buffer + reader->end;
}

void rtsp_reader_add(struct rtsp_reader *reader, size_t bytes)
{
    reader->end += bytes;
}

enum rtsp_item rtsp_reader_next(struct rtsp_reader *reader, struct rtsp_message *message,
                                struct rtsp_frame *frame)
{
    if (reader->skipped > 0)
        return find_item(reader);
    while (reader->begin < reader->end && is_line_end(reader->buffer[reader->begin]))
        reader->begin++;
    const uint8_t *data = reader->buffer + reader->begin;
    const size_t bytes = reader->end - reader->begin;
    enum rtsp_item item = RTSP_ITEM_INVALID;
    if (bytes == 0)
        return RTSP_ITEM_NONE;
    if (*data == '$')
        item = take_frame(reader, frame);
    else if (may_begin_item(data, bytes))
        item = take_message(reader, message);
    if (item == RTSP_ITEM_NONE)
        return item;
    if (item != RTSP_ITEM_INVALID) {
        reader->losses = 0;
        return item;
    }
    if (reader->framing.rtp_channel < 0 || reader->losses == LOSSES_MAX)
        return RTSP_ITEM_INVALID;
    reader->losses++;
    reader->head = reader->whole = 0;
    reader->begin++;
    reader->skipped = 1;
    return find_item(reader);
}
