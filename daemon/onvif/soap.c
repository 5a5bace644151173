#include "daemon/onvif/soap.h"

#include <curl/curl.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "daemon/base/clock.h"

enum { REQUEST_MS = 2000, CONNECT_MS = 1000, NONCE_BYTES = 16, WHY_MAX = 160 };

static const int64_t CLOCK_AHEAD_MAX_S = 24 * 3600;

// How requests authenticate.
enum login { LOGIN_NONE, LOGIN_TOKEN, LOGIN_DIGEST };

struct soap {
    struct soap_options options;
    CURL *curl;
    struct curl_slist *headers;
    enum login login;
    bool refused; // the camera refused the login
    int64_t clock_ahead_s;
    char *answer; // XML_BYTES_MAX
    size_t answer_bytes;
    bool offers_digest; // the response has a Digest challenge
    char why[WHY_MAX];
};

// --- the response

static size_t take_answer(char *data, size_t one, size_t n, void *opaque)
{
    struct soap *soap = opaque;
    (void)one; // always 1
    if (n > XML_BYTES_MAX - soap->answer_bytes)
        return 0; // ends the transfer
    memcpy(soap->answer + soap->answer_bytes, data, n);
    soap->answer_bytes += n;
    return n;
}

static size_t take_header(char *line, size_t one, size_t n, void *opaque)
{
    static const char name[] = "WWW-Authenticate: Digest ";
    struct soap *soap = opaque;
    (void)one;
    soap->offers_digest |= n >= strlen(name) && strncasecmp(line, name, strlen(name)) == 0;
    return n;
}

// --- the request

static void encode(const void *data, size_t bytes, char *to)
{
    EVP_EncodeBlock((unsigned char *)to, data, (int)bytes);
}

// Prints the WS-Security header with the digest of nonce, time and password.
static void print_token(FILE *to, const struct soap *soap)
{
    unsigned char nonce[NONCE_BYTES] = {0}, digest[EVP_MAX_MD_SIZE];
    char nonce_text[32], digest_text[96], created[32];
    struct tm utc = {0}; // stays 0 if the camera's clock gives a year out of range
    const time_t now = time(NULL) + (time_t)soap->clock_ahead_s;
    EVP_MD_CTX *sha1 = EVP_MD_CTX_new();
    unsigned bytes = 0;
    gmtime_r(&now, &utc);
    strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (getrandom(nonce, sizeof nonce, 0) == sizeof nonce && sha1 &&
        EVP_DigestInit_ex(sha1, EVP_sha1(), NULL) && EVP_DigestUpdate(sha1, nonce, sizeof nonce) &&
        EVP_DigestUpdate(sha1, created, strlen(created)) &&
        EVP_DigestUpdate(sha1, soap->options.password, strlen(soap->options.password)))
        EVP_DigestFinal_ex(sha1, digest, &bytes);
    EVP_MD_CTX_free(sha1);
    encode(nonce, sizeof nonce, nonce_text);
    encode(digest, bytes, digest_text);
    xmlChar *user = xmlEncodeSpecialChars(NULL, (const xmlChar *)soap->options.user);
    fprintf(to,
            "<s:Header><w:Security s:mustUnderstand=\"1\""
            " xmlns:w=\"http://docs.oasis-open.org/wss/2004/01/"
            "oasis-200401-wss-wssecurity-secext-1.0.xsd\""
            " xmlns:u=\"http://docs.oasis-open.org/wss/2004/01/"
            "oasis-200401-wss-wssecurity-utility-1.0.xsd\">"
            "<w:UsernameToken><w:Username>%s</w:Username>"
            "<w:Password Type=\"http://docs.oasis-open.org/wss/2004/01/"
            "oasis-200401-wss-username-token-profile-1.0#PasswordDigest\">%s</w:Password>"
            "<w:Nonce EncodingType=\"http://docs.oasis-open.org/wss/2004/01/"
            "oasis-200401-wss-soap-message-security-1.0#Base64Binary\">%s</w:Nonce>"
            "<u:Created>%s</u:Created></w:UsernameToken></w:Security></s:Header>",
            user ? (const char *)user : "", digest_text, nonce_text, created);
    xmlFree(user);
}

// For free(); NULL: no memory.
static char *make_request(const struct soap *soap, const char *body)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
          "<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\">",
          to);
    if (soap->login == LOGIN_TOKEN)
        print_token(to, soap);
    fprintf(to, "<s:Body>%s</s:Body></s:Envelope>", body);
    if (fclose(to) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}

// --- one exchange

static int fail(struct soap *soap, int rc, const char *why)
{
    snprintf(soap->why, sizeof soap->why, "%s", why);
    return rc;
}

static int post(struct soap *soap, const char *url, const char *body, long *status)
{
    const int64_t left_ms = (soap->options.deadline_ns - monotonic_ns()) / 1000000;
    CURL *curl = soap->curl;
    char *request = left_ms > 0 ? make_request(soap, body) : NULL;
    if (!request)
        return left_ms > 0 ? fail(soap, -ENOMEM, strerror(ENOMEM))
                           : fail(soap, -ETIMEDOUT, "took too long");
    const bool digest = soap->login == LOGIN_DIGEST;
    soap->answer_bytes = 0;
    soap->offers_digest = false;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(left_ms < REQUEST_MS ? left_ms : REQUEST_MS));
    curl_easy_setopt(curl, CURLOPT_HTTPAUTH, digest ? CURLAUTH_DIGEST : CURLAUTH_NONE);
    curl_easy_setopt(curl, CURLOPT_USERNAME, digest ? soap->options.user : NULL);
    curl_easy_setopt(curl, CURLOPT_PASSWORD, digest ? soap->options.password : NULL);
    const CURLcode code = curl_easy_perform(curl);
    free(request);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, status);
    if (code == CURLE_OK)
        return 0;
    if (code == CURLE_WRITE_ERROR)
        return fail(soap, -EMSGSIZE, "answered with more than 256 KiB");
    if (code == CURLE_OPERATION_TIMEDOUT)
        return fail(soap, -ETIMEDOUT, "took too long");
    return fail(soap, -EIO, curl_easy_strerror(code));
}

// Codes of a fault are nested: "ter:NotAuthorized" inside "s:Sender".
static bool is_refusal(const xmlNode *envelope, long status)
{
    char code[256];
    xml_text(envelope, "Body/Fault/Code", code, sizeof code);
    return status == 401 || status == 403 || strstr(code, "NotAuthorized") ||
           strstr(code, "FailedAuthentication");
}

static int judge(struct soap *soap, xmlDoc *document, long status)
{
    char reason[96];
    const xmlNode *envelope = xmlDocGetRootElement(document);
    if (is_refusal(envelope, status)) {
        if (soap->login == LOGIN_NONE)
            return fail(soap, -EACCES, "wants a user name and a password");
        soap->refused = true;
        return fail(soap, -EACCES, "refused the user name or password; it was asked once");
    }
    if (!xml_find(envelope, "Body"))
        return fail(soap, -EBADMSG, "answered no SOAP");
    if (!xml_find(envelope, "Body/Fault"))
        return 0;
    xml_text(envelope, "Body/Fault/Reason/Text", reason, sizeof reason);
    snprintf(soap->why, sizeof soap->why, "refused the request: %s",
             *reason ? reason : "no reason");
    return -EIO;
}

// Resets the handle: after a challenge that libcurl has seen, it would send a wrong password twice.
static void set_up(struct soap *soap)
{
    CURL *curl = soap->curl;
    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, soap->headers);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_PROXY, ""); // cameras are near: ignore the environment's proxy
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    // Cameras sign their own certificates. Only a digest is sent, as without TLS.
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_answer);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, soap);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, soap);
}

static bool is_clock_wrong(const struct soap *soap)
{
    return soap->clock_ahead_s > CLOCK_AHEAD_MAX_S || soap->clock_ahead_s < -CLOCK_AHEAD_MAX_S;
}

int soap_call(struct soap *soap, const char *url, const char *body, xmlDoc **ret)
{
    xmlDoc *document;
    bool again;
    int rc;
    if (soap->refused)
        return -EACCES; // by an earlier call
    do {
        long status = 0;
        document = NULL;
        if (soap->login == LOGIN_TOKEN && is_clock_wrong(soap)) {
            soap->refused = true;
            return fail(soap, -EACCES,
                        "has a clock that is more than a day wrong: set it, then log in");
        }
        rc = post(soap, url, body, &status);
        if (rc == 0) {
            document = xml_read(soap->answer, soap->answer_bytes);
            rc = judge(soap, document, status);
        }
        again = rc == -EACCES && soap->login == LOGIN_NONE && soap->options.user;
        if (again) {
            soap->login = soap->offers_digest ? LOGIN_DIGEST : LOGIN_TOKEN;
            set_up(soap);
        }
        if (rc < 0)
            xmlFreeDoc(document);
    } while (again);
    if (rc == 0)
        *ret = document;
    return rc;
}

void soap_set_clock(struct soap *soap, int64_t ahead_s)
{
    soap->clock_ahead_s = ahead_s;
}

const char *soap_why(const struct soap *soap)
{
    return soap->why;
}

// --- life

int soap_open(struct soap **ret, const struct soap_options *options)
{
    struct soap *soap = calloc(1, sizeof *soap);
    if (soap) {
        soap->options = *options;
        soap->curl = curl_easy_init();
        soap->answer = malloc(XML_BYTES_MAX);
        soap->headers =
            curl_slist_append(NULL, "Content-Type: application/soap+xml; charset=utf-8");
    }
    if (!soap || !soap->curl || !soap->answer || !soap->headers) {
        soap_close(soap);
        return -ENOMEM;
    }
    set_up(soap);
    *ret = soap;
    return 0;
}

void soap_close(struct soap *soap)
{
    if (!soap)
        return;
    curl_easy_cleanup(soap->curl);
    curl_slist_free_all(soap->headers);
    free(soap->answer);
    free(soap);
}
