// The requests and replies of one RTSP connection: numbers, signs and formats requests, matches
// replies, and decides when to sign and send a request again. Pure.
#ifndef FRAMED_DAEMON_RTSP_RTSP_EXCHANGE_H
#define FRAMED_DAEMON_RTSP_RTSP_EXCHANGE_H

#include "daemon/rtsp/rtsp_auth.h"
#include "daemon/rtsp/rtsp_message.h"
#include "daemon/rtsp/rtsp_url.h"

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
