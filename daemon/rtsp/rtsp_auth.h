// Signs RTSP requests: Digest (RFC 7616: SHA-256, MD5, and the form of RFC 2069) and Basic. One
// session uses an auth; zeroed it knows of no challenge.
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
    bool encrypted;      // the connection is
    bool digest_offered; // by the camera at any time: Basic is taken only where it is encrypted
    bool basic_refused;  // the last reply offered Basic, which was not taken for that reason
    bool session;        // the algorithm ends in "-sess"
    bool has_opaque, qop_auth;
    bool stale;     // the camera says that the nonce alone was wrong
    bool new_nonce; // it names another nonce than in the challenge before
    char realm[1024], nonce[2048], opaque[2048], algorithm[32]; // algorithm "": none was named
    uint32_t count;                                             // requests signed with this nonce
    char cnonce[64];
};

// Takes in the challenges of a 401: the best of them all. Sets digest_offered and basic_refused. 0;
// -ENOENT: there is no challenge that may be answered, and the auth stays otherwise. Only where a
// request with the nonce before had been accepted does a new nonce mean that the password is right:
// some cameras make one each time.
int rtsp_auth_challenge(struct rtsp_auth *, const struct rtsp_message *reply);
// The value of the Authorization header for one request; "" before any challenge. `url` byte for
// byte as in the request line. 0; -ENOBUFS; -EIO: libcrypto failed.
int rtsp_auth_sign(struct rtsp_auth *, const char *user, const char *password, const char *method,
                   const char *url, char *ret, size_t size);

#endif
