// Requests and replies of one RTSP connection: numbers, signs and words the requests, knows which
// reply is an answer, and when a request is to be signed and sent again. Pure.
#ifndef FRAMED_DAEMON_RTSP_RTSP_EXCHANGE_H
#define FRAMED_DAEMON_RTSP_RTSP_EXCHANGE_H

#include "daemon/rtsp/rtsp_auth.h"
#include "daemon/rtsp/rtsp_message.h"
#include "daemon/rtsp/rtsp_url.h"

enum { RTSP_REQUEST_MAX = 48 << 10 };

enum rtsp_answer {
    RTSP_ANSWER_NONE,      // nobody waits for this reply
    RTSP_ANSWER_TAKEN,     // the reply to the open request, which is open no more
    RTSP_ANSWER_CHALLENGE, // the request is to be sent again, signed: rtsp_exchange_repeat
    RTSP_ANSWER_REFUSED,   // 401: no user is known, it was refused, or nothing says how to sign
};

struct rtsp_exchange {           // zeroed it is ready but for user and password
    const char *user, *password; // outlive the exchange; "": none
    struct rtsp_auth auth;
    char session[512];    // of SETUP's reply; "": none yet
    int timeout_s;        // the smallest that was named; 0: none
    const char *method;   // of the open request; NULL: none is
    const char *answered; // the method of the request that was answered last
    int64_t asked_ns;     // when it was sent
    bool other_challenge; // after REFUSED: there is another challenge than the one that was tried
    // Private from here on.
    char url[RTSP_URL_MAX], headers[512];
    uint32_t cseq, abandoned; // abandoned: of the request whose reply nobody waits for any more
    bool is_signed, repeated, accepted; // accepted: the camera has taken a signed request
};

// A new connection: user and password stay.
void rtsp_exchange_reset(struct rtsp_exchange *);
// Opens a request and writes it to `to`, of RTSP_REQUEST_MAX bytes. `headers` are whole lines.
// Returns its size or negative errno (rtsp_auth_sign; -ENOBUFS: it is too long).
int rtsp_exchange_ask(struct rtsp_exchange *, const char *method, const char *url,
                      const char *headers, int64_t now_ns, char *to);
int rtsp_exchange_repeat(struct rtsp_exchange *, int64_t now_ns, char *to);
enum rtsp_answer rtsp_exchange_take(struct rtsp_exchange *, const struct rtsp_message *reply);
void rtsp_exchange_abandon(struct rtsp_exchange *); // waits for the open request's reply no more
// The reply to a request of the camera; returns its size.
int rtsp_exchange_reply(const struct rtsp_message *request, char *to);

#endif
