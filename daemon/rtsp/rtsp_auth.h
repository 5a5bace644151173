// Signs RTSP requests: Digest (RFC 7616: SHA-256, MD5, and the form of RFC 2069) and Basic. One
// session uses an auth. Zeroed: no challenge received.
#ifndef FRAMED_DAEMON_RTSP_RTSP_AUTH_H
#define FRAMED_DAEMON_RTSP_RTSP_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rtsp_message;

enum rtsp_auth_scheme { RTSP_AUTH_NONE, RTSP_AUTH_BASIC, RTSP_AUTH_MD5, RTSP_AUTH_SHA256 };

struct rtsp_auth {
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
