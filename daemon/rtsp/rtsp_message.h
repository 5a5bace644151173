// What comes over an RTSP connection: replies and requests (RFC 2326), and the frames of
// interleaved media between them. Takes what cameras write, not what the standard demands. Pure.
#ifndef FRAMED_DAEMON_RTSP_RTSP_MESSAGE_H
#define FRAMED_DAEMON_RTSP_RTSP_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RTSP_HEADERS_MAX = 64, RTSP_BODY_MAX = 64 << 10 };

struct rtsp_header {
    const char *name, *value; // value: blanks at both ends taken off
};

struct rtsp_message {
    int status;                                   // of a reply; 0: this is a request
    const char *method;                           // of a request
    const char *url;                              // of a request
    const char *reason;                           // of a reply: "Not Found", for people
    struct rtsp_header headers[RTSP_HEADERS_MAX]; // those beyond are left out
    int n_headers;
    const char *body; // ends with a zero, which is not counted
    size_t body_bytes;
};

// Of the next header of that name (any case) from *at on, which goes behind it; NULL: no more.
// With `at` NULL the first one.
const char *rtsp_message_header(const struct rtsp_message *, const char *name, int *at);

struct rtsp_frame { // "$", a channel and a packet
    int channel;
    const uint8_t *data;
    size_t bytes;
};

enum rtsp_item {
    RTSP_ITEM_NONE, // more bytes are needed
    RTSP_ITEM_MESSAGE,
    RTSP_ITEM_FRAME,
    RTSP_ITEM_LOST,    // bytes were skipped up to the next item: noise, or items that lack bytes
    RTSP_ITEM_INVALID, // this is no RTSP, or framing was lost for good
};

// How to know a frame again where bytes are missing before it: its channel, and an RTP packet of
// that payload type (-1: any) or an RTCP packet in it. Channels are -1: not known.
struct rtsp_framing {
    int rtp_channel, rtcp_channel, payload_type;
};

// Collects bytes of a connection and cuts them into items. Bytes are moved only to make room.
struct rtsp_reader {
    struct rtsp_framing framing; // set by the owner, after rtsp_reader_open
    uint8_t *buffer;             // private from here on
    size_t begin, end;           // what is in it
    size_t head, whole;          // bytes of the message at `begin`, 0: not known yet
    size_t skipped;              // bytes, while looking for a frame; 0: framing is not lost
    int losses;                  // of framing since the last item
};

int rtsp_reader_open(struct rtsp_reader *); // 0 or -ENOMEM
void rtsp_reader_close(struct rtsp_reader *);
// Where to read to, once rtsp_reader_next has given RTSP_ITEM_NONE; *room is at least 16 KiB.
// Invalidates items.
uint8_t *rtsp_reader_room(struct rtsp_reader *, size_t *room);
void rtsp_reader_add(struct rtsp_reader *, size_t bytes); // so many were read there
// The next item; *message or *frame is valid until the next call of any function here. The frame
// before RTSP_ITEM_LOST may be wrong at its end: bytes were missing in it, and so it took some of
// its successor's. After RTSP_ITEM_INVALID nothing else comes.
enum rtsp_item rtsp_reader_next(struct rtsp_reader *, struct rtsp_message *message,
                                struct rtsp_frame *frame);

#endif
