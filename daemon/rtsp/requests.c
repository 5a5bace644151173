#include "daemon/rtsp/requests.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

enum {
    HEX_MAX = 2 * 32 + 1, // of the longest digest, with its zero
    NAME_MAX_BYTES = 32,  // longer than the name of any known parameter
    CNONCE_BYTES = 16,
    BASIC_MAX = 3 * 4096, // bytes of "user:password"
};

// --- authentication: challenges

static const char *skip_separators(const char *p)
{
    return p + strspn(p, " ,");
}

// Reads a parameter's value, quoted or not, into `ret`. Returns false if it does not fit.
static bool parse_value(const char **at, char *ret, size_t size)
{
    const char *p = *at;
    size_t n = 0;
    const bool quoted = *p == '"';
    for (p += quoted; *p && (quoted ? *p != '"' : !strchr(" ,", *p)); p++) {
        p += quoted && *p == '\\' && p[1];
        if (n + 1 < size)
            ret[n] = *p;
        n++;
    }
    ret[n < size ? n : size - 1] = 0;
    *at = p + (*p == '"');
    return n < size;
}

// Returns true if a list like "auth,auth-int" contains the word `auth`.
static bool offers_auth(const char *list)
{
    for (size_t n; *list; list += n + strspn(list + n, " ,")) {
        n = strcspn(list, " ,");
        if (n == strlen("auth") && strncasecmp(list, "auth", n) == 0)
            return true;
    }
    return false;
}

static enum rtsp_auth_scheme digest_of(const char *algorithm, bool *session)
{
    static const struct {
        const char *name;
        enum rtsp_auth_scheme scheme;
        bool session;
    } algorithms[] = {
        {"", RTSP_AUTH_MD5, false},          {"MD5", RTSP_AUTH_MD5, false},
        {"MD5-sess", RTSP_AUTH_MD5, true},   {"SHA-256", RTSP_AUTH_SHA256, false},
        {"SHA256", RTSP_AUTH_SHA256, false}, {"SHA-256-sess", RTSP_AUTH_SHA256, true},
    };
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
        if (strcasecmp(algorithm, algorithms[i].name) == 0) {
            *session = algorithms[i].session;
            return algorithms[i].scheme;
        }
    return RTSP_AUTH_NONE;
}

static void set_parameter(struct rtsp_auth *challenge, const char *name, const char **value,
                          bool *fits)
{
    char word[64];
    if (strcasecmp(name, "realm") == 0)
        *fits &= parse_value(value, challenge->realm, sizeof challenge->realm);
    else if (strcasecmp(name, "nonce") == 0)
        *fits &= parse_value(value, challenge->nonce, sizeof challenge->nonce);
    else if (strcasecmp(name, "algorithm") == 0)
        *fits &= parse_value(value, challenge->algorithm, sizeof challenge->algorithm);
    else if (strcasecmp(name, "opaque") == 0) {
        *fits &= parse_value(value, challenge->opaque, sizeof challenge->opaque);
        challenge->has_opaque = true;
    } else {
        parse_value(value, word, sizeof word);
        challenge->qop_auth |= strcasecmp(name, "qop") == 0 && offers_auth(word);
        challenge->stale |= strcasecmp(name, "stale") == 0 && strcasecmp(word, "true") == 0;
    }
}

// Reads the challenge that begins at *at, up to the next one: "Digest realm="x", nonce="y", Basic
// ...". Skips a word without a value inside it, unless the word begins a challenge. Scheme NONE: an
// unknown scheme.
static void parse_challenge(struct rtsp_auth *ret, const char **at)
{
    const char *p = skip_separators(*at);
    bool fits = true;
    size_t bytes = strcspn(p, " ,=\"");
    *ret = (struct rtsp_auth){0};
    const bool is_digest = bytes == strlen("Digest") && strncasecmp(p, "Digest", bytes) == 0;
    const bool is_basic = bytes == strlen("Basic") && strncasecmp(p, "Basic", bytes) == 0;
    p += bytes ? bytes : *p != 0;
    for (p = skip_separators(p); *p; p = skip_separators(p)) {
        char name[NAME_MAX_BYTES] = "";
        const char *word = p;
        bytes = strcspn(p, " ,=\"");
        p += bytes + strspn(p + bytes, " ");
        if (*p == '=') {
            p += 1 + strspn(p + 1, " ");
            memcpy(name, word, bytes < sizeof name ? bytes : 0);
            set_parameter(ret, name, &p, &fits);
        } else if (bytes == 0)
            p++; // a stray quote
        else if (*p && *p != ',') {
            p = word;
            break; // the scheme of another challenge
        }
    }
    *at = p;
    ret->digest_offered = is_digest && *ret->nonce;
    if (is_digest && fits && *ret->nonce)
        ret->scheme = digest_of(ret->algorithm, &ret->session);
    else if (is_basic && fits)
        ret->scheme = RTSP_AUTH_BASIC;
}

static bool offers_digest(const struct rtsp_message *reply)
{
    struct rtsp_auth challenge = {0};
    const char *value;
    int at = 0;
    while (!challenge.digest_offered &&
           (value = rtsp_message_header(reply, "WWW-Authenticate", &at)))
        while (*value && !challenge.digest_offered)
            parse_challenge(&challenge, &value);
    return challenge.digest_offered;
}

// Accepts Basic without encryption only from a camera that has never offered Digest.
int rtsp_auth_challenge(struct rtsp_auth *auth, const struct rtsp_message *reply)
{
    struct rtsp_auth best = {0}, challenge;
    const char *value;
    int at = 0;
    auth->digest_offered |= offers_digest(reply);
    auth->basic_refused = false;
    while ((value = rtsp_message_header(reply, "WWW-Authenticate", &at)))
        while (*value) {
            parse_challenge(&challenge, &value);
            if (challenge.scheme == RTSP_AUTH_BASIC && auth->digest_offered && !auth->encrypted)
                auth->basic_refused = true;
            else if (challenge.scheme > best.scheme && !(auth->first_only && best.scheme))
                best = challenge;
        }
    if (!best.scheme)
        return -ENOENT;
    best.first_only = auth->first_only;
    best.encrypted = auth->encrypted;
    best.digest_offered = auth->digest_offered;
    if (best.scheme == auth->scheme && strcmp(best.nonce, auth->nonce) == 0) {
        best.count = auth->count; // a camera accepts no count twice
        memcpy(best.cnonce, auth->cnonce, sizeof best.cnonce);
    } else
        best.new_nonce = *auth->nonce && *best.nonce;
    *auth = best;
    return 0;
}

// --- authentication: signing

struct header { // the value of a header, while it is written
    char *text;
    size_t size, n; // n may exceed size: it did not fit
};

static void add_text(struct header *header, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_text(struct header *header, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const bool fits = header->n < header->size;
    const int n = vsnprintf(fits ? header->text + header->n : NULL,
                            fits ? header->size - header->n : 0, format, args);
    va_end(args);
    header->n += n > 0 ? (size_t)n : 0;
}

static void add_quoted(struct header *header, const char *name, const char *value)
{
    add_text(header, "%s=\"", name);
    for (const char *p = value; *p; p++)
        add_text(header, *p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
    add_text(header, "\"");
}

// Writes the hexadecimal digest of up to six parts, joined by colons; NULL ends them.
static int digest_parts(enum rtsp_auth_scheme scheme, const char *const parts[], char ret[HEX_MAX])
{
    uint8_t bytes[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ok = context &&
              EVP_DigestInit_ex(context, scheme == RTSP_AUTH_MD5 ? EVP_md5() : EVP_sha256(), NULL);
    for (int i = 0; ok && parts[i]; i++)
        ok = (i == 0 || EVP_DigestUpdate(context, ":", 1)) &&
             EVP_DigestUpdate(context, parts[i], strlen(parts[i]));
    ok = ok && EVP_DigestFinal_ex(context, bytes, &n);
    EVP_MD_CTX_free(context);
    for (unsigned i = 0; ok && i < n; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    return ok ? 0 : -EIO;
}

static int choose_cnonce(struct rtsp_auth *auth)
{
    uint8_t bytes[CNONCE_BYTES];
    if (*auth->cnonce)
        return 0;
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return -EIO;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(auth->cnonce + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

// Writes the parameters in live555's order: some cameras accept no other.
static int sign_digest(struct rtsp_auth *auth, const char *user, const char *password,
                       const char *method, const char *url, struct header *header)
{
    char secret[HEX_MAX], request[HEX_MAX], response[HEX_MAX], count[9];
    int rc = choose_cnonce(auth);
    snprintf(count, sizeof count, "%08x", ++auth->count);
    const char *const of_user[] = {user, auth->realm, password, NULL};
    const char *const of_session[] = {secret, auth->nonce, auth->cnonce, NULL};
    const char *const of_request[] = {method, url, NULL};
    const char *const all[] = {secret, auth->nonce, count, auth->cnonce, "auth", request, NULL};
    const char *const without_qop[] = {secret, auth->nonce, request, NULL}; // RFC 2069
    if (rc == 0)
        rc = digest_parts(auth->scheme, of_user, secret);
    if (rc == 0 && auth->session)
        rc = digest_parts(auth->scheme, of_session, secret);
    if (rc == 0)
        rc = digest_parts(auth->scheme, of_request, request);
    if (rc == 0)
        rc = digest_parts(auth->scheme, auth->qop_auth ? all : without_qop, response);
    OPENSSL_cleanse(secret, sizeof secret);
    if (rc < 0)
        return rc;
    add_quoted(header, "Digest username", user);
    add_quoted(header, ", realm", auth->realm);
    add_quoted(header, ", nonce", auth->nonce);
    add_quoted(header, ", uri", url);
    add_quoted(header, ", response", response);
    if (*auth->algorithm)
        add_text(header, ", algorithm=%s", auth->algorithm);
    if (auth->has_opaque)
        add_quoted(header, ", opaque", auth->opaque);
    if (auth->qop_auth)
        add_text(header, ", qop=auth, nc=%s", count);
    if (auth->qop_auth || auth->session)
        add_quoted(header, ", cnonce", auth->cnonce);
    return 0;
}

static int sign_basic(const char *user, const char *password, struct header *header)
{
    char plain[BASIC_MAX], encoded[BASIC_MAX / 3 * 4 + 1];
    const int n = snprintf(plain, sizeof plain, "%s:%s", user, password);
    const bool fits = n >= 0 && n < (int)sizeof plain;
    if (fits) {
        EVP_EncodeBlock((uint8_t *)encoded, (const uint8_t *)plain, n);
        add_text(header, "Basic %s", encoded);
    }
    OPENSSL_cleanse(plain, sizeof plain);
    OPENSSL_cleanse(encoded, sizeof encoded);
    return fits ? 0 : -ENOBUFS;
}

int rtsp_auth_sign(struct rtsp_auth *auth, const char *user, const char *password,
                   const char *method, const char *url, char *ret, size_t size)
{
    struct header header = {ret, size, 0};
    int rc = 0;
    add_text(&header, "%s", ""); // before any challenge
    if (auth->scheme == RTSP_AUTH_BASIC)
        rc = sign_basic(user, password, &header);
    else if (auth->scheme)
        rc = sign_digest(auth, user, password, method, url, &header);
    return rc == 0 && header.n >= size ? -ENOBUFS : rc;
}

// --- requests and replies

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
