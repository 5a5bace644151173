#include "daemon/rtsp/rtsp_exchange.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AUTHORIZATION_MAX = 32 << 10, TIMEOUT_MAX = 24 * 3600 };

// Drops an old connection's challenge: an answer to it would look like a wrong password.
void rtsp_exchange_reset(struct rtsp_exchange *x)
{
    x->method = NULL;
    x->session[0] = 0;
    x->timeout_s = 0;
    x->cseq = x->abandoned = 0;
    x->is_signed = x->repeated = x->accepted = false;
    x->auth = (struct rtsp_auth){.first_only = x->auth.first_only,
                                 .digest_offered = x->auth.digest_offered};
}

// Writes the headers in the order of the most common client: some cameras accept no other.
static int write_request(struct rtsp_exchange *x, int64_t now_ns, char *to)
{
    char authorization[AUTHORIZATION_MAX] = "";
    int rc = *x->user ? rtsp_auth_sign(&x->auth, x->user, x->password, x->method, x->url,
                                       authorization, sizeof authorization)
                      : 0;
    if (rc < 0)
        return rc;
    x->is_signed = authorization[0];
    x->asked_ns = now_ns;
    const bool in_session = x->session[0];
    int n = snprintf(to, RTSP_REQUEST_MAX,
                     "%s %s RTSP/1.0\r\nCSeq: %u\r\n%s%s%sUser-Agent: framed/" FRAMED_VERSION_TEXT
                     "\r\n%s%s%s%s\r\n",
                     x->method, x->url, ++x->cseq, x->is_signed ? "Authorization: " : "",
                     authorization, x->is_signed ? "\r\n" : "", in_session ? "Session: " : "",
                     x->session, in_session ? "\r\n" : "", x->headers);
    explicit_bzero(authorization, sizeof authorization);
    return n < RTSP_REQUEST_MAX ? n : -ENOBUFS;
}

int rtsp_exchange_ask(struct rtsp_exchange *x, const char *method, const char *url,
                      const char *headers, int64_t now_ns, char *to)
{
    if (strlen(url) >= sizeof x->url || strlen(headers) >= sizeof x->headers)
        return -ENOBUFS;
    x->method = method;
    x->repeated = false;
    strcpy(x->url, url);
    strcpy(x->headers, headers);
    return write_request(x, now_ns, to);
}

int rtsp_exchange_repeat(struct rtsp_exchange *x, int64_t now_ns, char *to)
{
    return write_request(x, now_ns, to);
}

// Returns true if the first challenge differs in scheme from the best one: only one was tried.
static bool has_other(const struct rtsp_auth *tried, const struct rtsp_message *reply)
{
    struct rtsp_auth other = {.first_only = !tried->first_only,
                              .encrypted = tried->encrypted,
                              .digest_offered = tried->digest_offered};
    return rtsp_auth_challenge(&other, reply) == 0 && other.scheme != tried->scheme;
}

// Allows one signed try per connection, so that no camera locks its account. Signs again only if
// the camera has accepted the password before, or reports that only the nonce was old.
static enum rtsp_answer take_challenge(struct rtsp_exchange *x, const struct rtsp_message *reply)
{
    const bool again = x->is_signed;
    const int rc = rtsp_auth_challenge(&x->auth, reply);
    const bool stale = again && (x->auth.stale || (x->accepted && x->auth.new_nonce));
    if (rc == 0 && *x->user && !x->repeated && (!again || stale)) {
        x->repeated = again;
        return RTSP_ANSWER_CHALLENGE;
    }
    x->other_challenge = again && has_other(&x->auth, reply);
    x->method = NULL;
    return RTSP_ANSWER_REFUSED;
}

// "id ; timeout = 60". The first id stays; of several timeouts the smallest counts.
static void take_session(struct rtsp_exchange *x, const char *value)
{
    const char *timeout = strcasestr(value, "timeout");
    size_t n = strcspn(value, ";");
    while (n > 0 && isspace((unsigned char)value[n - 1]))
        n--;
    if (!x->session[0] && n > 0 && n < sizeof x->session) {
        memcpy(x->session, value, n);
        x->session[n] = 0;
    }
    if (!timeout)
        return;
    timeout += strlen("timeout");
    const long seconds = strtol(timeout + strspn(timeout, " =\t"), NULL, 10);
    if (seconds > 0 && seconds <= TIMEOUT_MAX && (!x->timeout_s || seconds < x->timeout_s))
        x->timeout_s = (int)seconds;
}

enum rtsp_answer rtsp_exchange_take(struct rtsp_exchange *x, const struct rtsp_message *reply)
{
    // Cameras send wrong CSeqs, so a CSeq only identifies the late reply to an abandoned request.
    const char *cseq = rtsp_message_header(reply, "CSeq", NULL);
    const char *session = rtsp_message_header(reply, "Session", NULL);
    if (cseq && x->abandoned && strtoul(cseq, NULL, 10) == x->abandoned)
        return RTSP_ANSWER_NONE;
    if (!x->method || reply->status < 200) // 100 Continue
        return RTSP_ANSWER_NONE;
    const bool challenged = rtsp_message_header(reply, "WWW-Authenticate", NULL);
    if (reply->status == 401 || (reply->status == 404 && challenged))
        return take_challenge(x, reply);
    x->accepted = x->accepted || x->is_signed;
    if (session && reply->status < 300 && (!strcmp(x->method, "SETUP") || x->session[0]))
        take_session(x, session);
    x->answered = x->method;
    x->method = NULL;
    return RTSP_ANSWER_TAKEN;
}

void rtsp_exchange_abandon(struct rtsp_exchange *x)
{
    if (x->method)
        x->abandoned = x->cseq;
    x->method = NULL;
}

int rtsp_exchange_reply(const struct rtsp_message *request, char *to)
{
    const char *cseq = rtsp_message_header(request, "CSeq", NULL);
    const bool known =
        !strcmp(request->method, "OPTIONS") || !strcmp(request->method, "GET_PARAMETER");
    return snprintf(to, RTSP_REQUEST_MAX, "RTSP/1.0 %s\r\nCSeq: %.20s\r\n\r\n",
                    known ? "200 OK" : "501 Not Implemented", cseq ? cseq : "0");
}
