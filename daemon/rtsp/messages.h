// The messages of an RTSP connection (RFC 2326): cuts its input into replies, requests and frames
// of interleaved media, accepting the mistakes of real cameras; reads challenges, and signs
// requests. Pure.
#ifndef FRAMED_DAEMON_RTSP_MESSAGES_H
#define FRAMED_DAEMON_RTSP_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RTSP_HEADERS_MAX = 64, RTSP_BODY_MAX = 64 << 10 };

struct rtsp_header {
    const char *name, *value; // value: without blanks at both ends
};

struct rtsp_message {
    int status;                                   // of a reply; 0: this is a request
    const char *method;                           // of a request
    const char *reason;                           // of a reply: "Not Found", for people
    struct rtsp_header headers[RTSP_HEADERS_MAX]; // more are left out
    int n_headers;
    const char *body; // ends with a zero, which is not counted
    size_t body_bytes;
};

// Returns the value of the next header of that name (any case) from index *at on, and sets *at
// behind it; NULL: no more. `at` NULL: the first one.
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

// Identifies a frame after missing bytes: by its channel, and by an RTP packet of that payload type
// (-1: any) or an RTCP packet in it. Channel -1: unknown.
struct rtsp_framing {
    int rtp_channel, rtcp_channel, payload_type;
};

// Collects bytes of a connection and cuts them into items. Bytes are moved only to make room.
struct rtsp_reader {
    struct rtsp_framing framing; // set by the owner, after rtsp_reader_reset
    size_t begin, end;         // the bytes in `buffer`; the owner adds bytes that it read to `end`
    size_t head, whole;        // private from here on: bytes of the message at `begin`; 0: unknown
    size_t skipped;            // bytes, during the search for a frame; 0: framing is not lost
    int losses;                // of framing since the last item
    uint8_t buffer[256 << 10]; // more than the longest item and the room behind it
};

void rtsp_reader_reset(struct rtsp_reader *); // at the start of each connection
// Returns where to read to, after rtsp_reader_next has returned RTSP_ITEM_NONE; *room is at least
// 16 KiB. Invalidates items.
uint8_t *rtsp_reader_room(struct rtsp_reader *, size_t *room);
// Returns the next item; *message or *frame is valid until the next call of any function here. The
// end of the frame before RTSP_ITEM_LOST may be wrong: bytes were missing in it, so it took some of
// its successor's. Nothing follows RTSP_ITEM_INVALID.
enum rtsp_item rtsp_reader_next(struct rtsp_reader *, struct rtsp_message *message,
                                struct rtsp_frame *frame);

// --- authentication: Digest (RFC 7616: SHA-256, MD5, and the form of RFC 2069) and Basic

enum rtsp_auth_scheme { RTSP_AUTH_NONE, RTSP_AUTH_BASIC, RTSP_AUTH_MD5, RTSP_AUTH_SHA256 };

struct rtsp_auth { // zeroed: no challenge received
    enum rtsp_auth_scheme scheme;
    // Set by the owner.
    bool first_only;     // take the first challenge, not the best
    bool encrypted;      // the connection is encrypted
    bool digest_offered; // the camera has ever offered it: then Basic needs encryption
    bool basic_refused;  // Basic of the last reply was rejected for lack of encryption
    bool session;        // the algorithm ends in "-sess"
    bool has_opaque, qop_auth;
    bool stale;     // the camera reported that only the nonce was wrong
    bool new_nonce; // the nonce differs from the previous challenge's
    char realm[1024], nonce[2048], opaque[2048], algorithm[32]; // algorithm "": not named
    uint32_t count;                                             // requests signed with this nonce
    char cnonce[64];
};

// Uses the best challenge of a 401. Sets digest_offered and basic_refused. Returns 0; -ENOENT:
// there is no usable challenge, and the auth otherwise stays. A new nonce shows that the password
// is right only if a request with the previous nonce was accepted: some cameras make one each time.
int rtsp_auth_challenge(struct rtsp_auth *, const struct rtsp_message *reply);
// Writes the value of the Authorization header for one request; "" before any challenge. `url` must
// equal the request line's byte for byte. Returns 0; -ENOBUFS; -EIO: libcrypto or getrandom failed.
int rtsp_auth_sign(struct rtsp_auth *, const char *user, const char *password, const char *method,
                   const char *url, char *ret, size_t size);

#endif
