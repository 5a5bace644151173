// The requests and replies of one RTSP connection: numbers, signs and formats requests, matches
// replies, and decides when to sign and send a request again. Pure.
#ifndef FRAMED_DAEMON_RTSP_REQUESTS_H
#define FRAMED_DAEMON_RTSP_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/rtsp/messages.h"
#include "daemon/rtsp/url.h"

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

// --- requests and replies

enum { RTSP_REQUEST_MAX = 48 << 10 };

enum rtsp_answer {
    RTSP_ANSWER_NONE,      // nobody waits for this reply
    RTSP_ANSWER_TAKEN,     // the reply to the open request, which is closed now
    RTSP_ANSWER_CHALLENGE, // send the request again, signed: rtsp_exchange_repeat
    RTSP_ANSWER_REFUSED,   // 401: no user is set, it was refused, or no challenge is usable
};

struct rtsp_exchange {           // ready when zeroed, except user and password
    const char *user, *password; // outlive the exchange; "": none
    struct rtsp_auth auth;
    char session[512];    // from SETUP's reply; "": none so far
    int timeout_s;        // the smallest one named; 0: none
    const char *method;   // of the open request; NULL: none
    const char *answered; // the method of the request answered last
    int64_t asked_ns;     // when the last request was sent
    bool other_challenge; // after REFUSED: there is a challenge that was not tried
    // Private from here on.
    char url[RTSP_URL_MAX], headers[512];
    uint32_t cseq, abandoned;           // abandoned: the request whose reply is not awaited
    bool is_signed, repeated, accepted; // accepted: the camera has accepted a signed request
};

// Prepares for a new connection; keeps user and password.
void rtsp_exchange_reset(struct rtsp_exchange *);
// Opens a request and writes it to `to`, of RTSP_REQUEST_MAX bytes. `headers` are complete lines.
// Returns its size or a negative errno (rtsp_auth_sign; -ENOBUFS: it is too long).
int rtsp_exchange_ask(struct rtsp_exchange *, const char *method, const char *url,
                      const char *headers, int64_t now_ns, char *to);
int rtsp_exchange_repeat(struct rtsp_exchange *, int64_t now_ns, char *to);
enum rtsp_answer rtsp_exchange_take(struct rtsp_exchange *, const struct rtsp_message *reply);
void rtsp_exchange_abandon(struct rtsp_exchange *); // no longer waits for the open request's reply
// Writes the reply to a request of the camera; returns its size.
int rtsp_exchange_reply(const struct rtsp_message *request, char *to);

#endif
