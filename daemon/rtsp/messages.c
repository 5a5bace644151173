#include "daemon/rtsp/messages.h"

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

#include "daemon/base/number.h"

enum {
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
    *message = (struct rtsp_message){.method = "", .reason = "", .body_bytes = body};
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
static enum rtsp_item check_frame(const struct rtsp_reader *reader, size_t whole)
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
        item = check_frame(reader, whole);
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

void rtsp_reader_reset(struct rtsp_reader *reader)
{
    memset(reader, 0, offsetof(struct rtsp_reader, buffer));
    reader->framing = (struct rtsp_framing){-1, -1, -1};
}

uint8_t *rtsp_reader_room(struct rtsp_reader *reader, size_t *room)
{
    const size_t bytes = reader->end - reader->begin;
    if (bytes == 0 || sizeof reader->buffer - reader->end < ROOM_MIN) {
        memmove(reader->buffer, reader->buffer + reader->begin, bytes);
        reader->begin = 0;
        reader->end = bytes;
    }
    *room = sizeof reader->buffer - reader->end;
    return reader->buffer + reader->end;
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

// --- authentication: challenges

enum {
    HEX_MAX = 2 * 32 + 1, // of the longest digest, with its zero
    NAME_MAX_BYTES = 32,  // longer than the name of any known parameter
    CNONCE_BYTES = 16,
    BASIC_MAX = 3 * 4096, // bytes of "user:password"
};

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

// Accepts Basic without encryption only from a camera that has never offered Digest.
int rtsp_auth_challenge(struct rtsp_auth *auth, const struct rtsp_message *reply)
{
    struct rtsp_auth best = {0}, challenge;
    const char *value;
    auth->basic_refused = false;
    for (int choosing = 0; choosing < 2; choosing++) // among all, once Digest is known or not
        for (int at = 0; (value = rtsp_message_header(reply, "WWW-Authenticate", &at));)
            while (*value) {
                parse_challenge(&challenge, &value);
                auth->digest_offered |= challenge.digest_offered;
                if (!choosing)
                    continue;
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

__attribute__((format(printf, 2, 3))) static void add_text(struct header *header,
                                                           const char *format, ...)
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
