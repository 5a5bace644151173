#include "daemon/cluster/etcd_call.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/expand.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"

enum { TEXT_MAX = 64 << 20, HEAD_MAX = 64 << 10, KEEPALIVE_S = 5 };

// --- the answer

static size_t take_text(char *data, size_t one, size_t n, void *opaque)
{
    struct etcd_call *call = opaque;
    (void)one; // always 1
    if (n > TEXT_MAX - call->length)
        return 0; // ends the transfer
    if (call->length + n > call->room) {
        const size_t room = 2 * (call->length + n);
        char *text = realloc(call->text, room);
        if (!text)
            return 0;
        call->text = text;
        call->room = room;
    }
    memcpy(call->text + call->length, data, n);
    call->length += n;
    return n;
}

static size_t take_head(char *data, size_t one, size_t n, void *opaque)
{
    struct etcd_call *call = opaque;
    (void)data, (void)one;
    call->head_length += n;
    return call->head_length <= HEAD_MAX ? n : 0;
}

// --- the request

static const char *path_of(enum etcd_method method)
{
    static const char *const paths[] = {
        [ETCD_RANGE] = "kv/range",
        [ETCD_GRANT] = "lease/grant",
        [ETCD_KEEPALIVE] = "lease/keepalive",
        [ETCD_REVOKE] = "lease/revoke",
        [ETCD_TXN] = "kv/txn",
        [ETCD_AUTHENTICATE] = "auth/authenticate",
        [ETCD_WATCH] = "watch",
    };
    return paths[method];
}

// Takes the list. NULL: no memory, and the list is freed.
static struct curl_slist *add_header(struct curl_slist *list, const char *line)
{
    struct curl_slist *longer = list ? curl_slist_append(list, line) : NULL;
    if (!longer)
        curl_slist_free_all(list);
    return longer;
}

static struct curl_slist *headers_of(const struct etcd_call_options *options)
{
    struct curl_slist *list = curl_slist_append(NULL, "Content-Type: application/json");
    list = add_header(list, "Expect:");
    // Makes a member that has lost its leader end the watch instead of falling silent.
    if (options->method == ETCD_WATCH)
        list = add_header(list, "Grpc-Metadata-hasleader: true");
    if (options->token) {
        char *line = NULL;
        if (asprintf(&line, "Authorization: %s", options->token) < 0)
            line = NULL;
        list = line ? add_header(list, line) : (curl_slist_free_all(list), NULL);
        secret_free(line);
    }
    return list;
}

static void set_tls(CURL *easy, const struct etcd_call_options *options)
{
    if (options->ca)
        curl_easy_setopt(easy, CURLOPT_CAINFO, options->ca);
    if (options->cert)
        curl_easy_setopt(easy, CURLOPT_SSLCERT, options->cert);
    if (options->key)
        curl_easy_setopt(easy, CURLOPT_SSLKEY, options->key);
}

static int set_url(CURL *easy, const struct etcd_call_options *options)
{
    char *url = NULL;
    const size_t length = strlen(options->endpoint);
    const char *slash = length > 0 && options->endpoint[length - 1] == '/' ? "" : "/";
    if (asprintf(&url, "%s%sv3/%s", options->endpoint, slash, path_of(options->method)) < 0)
        return -ENOMEM;
    const CURLcode code = curl_easy_setopt(easy, CURLOPT_URL, url);
    free(url);
    return code == CURLE_OK ? 0 : -ENOMEM;
}

static int set_up(struct etcd_call *call, const struct etcd_call_options *options)
{
    CURL *easy = call->easy;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, options->body);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->headers);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "framed/" FRAMED_VERSION_TEXT);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_text);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_head);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->why);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); // does not wait for a hanging resolver
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_S);
    // HTTP/2 would put all requests on one connection, and they would stall with it.
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    // libcurl sends a request again if an old connection turns out to be closed.
    if (options->method == ETCD_TXN)
        curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    set_tls(easy, options);
    return set_url(easy, options);
}

int etcd_call_open(struct etcd_call **ret, void *multi, const struct etcd_call_options *options)
{
    struct etcd_call *call = calloc(1, sizeof *call);
    if (!call)
        return -ENOMEM;
    call->method = options->method;
    call->owner = options->owner;
    call->sent_ns = boottime_ns();
    call->token = options->token ? strdup(options->token) : NULL;
    call->headers = headers_of(options);
    call->easy = call->headers ? curl_easy_init() : NULL;
    if (!call->easy || set_up(call, options) < 0 ||
        curl_multi_add_handle(multi, call->easy) != CURLM_OK) {
        etcd_call_close(call);
        return -ENOMEM;
    }
    call->multi = multi;
    *ret = call;
    return 0;
}

void etcd_call_close(struct etcd_call *call)
{
    if (!call)
        return;
    if (call->multi)
        curl_multi_remove_handle(call->multi, call->easy);
    curl_easy_cleanup(call->easy);
    curl_slist_free_all(call->headers);
    secret_free(call->token);
    if (call->text) // it may hold a token
        explicit_bzero(call->text, call->length);
    free(call->text);
    free(call);
}

struct etcd_call *etcd_call_next(void *multi)
{
    int left;
    const CURLMsg *message;
    while ((message = curl_multi_info_read(multi, &left))) {
        struct etcd_call *call = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        const CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
        call->ended = true;
        call->result = (int)code;
        return call;
    }
    return NULL;
}

bool etcd_call_is_sent(const struct etcd_call *call)
{
    long bytes = 0;
    curl_easy_getinfo(call->easy, CURLINFO_REQUEST_SIZE, &bytes);
    return bytes > 0;
}

bool etcd_call_is_resolving(const struct etcd_call *call)
{
    curl_off_t us = 0;
    curl_easy_getinfo(call->easy, CURLINFO_NAMELOOKUP_TIME_T, &us);
    return us == 0 && !etcd_call_is_sent(call); // libcurl 8 looks nothing up for an open connection
}

long etcd_call_status(const struct etcd_call *call)
{
    long status = 0;
    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

// --- the result

static int fail(struct etcd_reply *reply, int rc, const char *why)
{
    log_scrub(reply->why, sizeof reply->why, why);
    return rc;
}

static int read_failure(const struct etcd_call *call, struct etcd_reply *reply)
{
    const char *why = call->why[0] ? call->why : curl_easy_strerror((CURLcode)call->result);
    long error = 0;
    switch ((CURLcode)call->result) {
    case CURLE_COULDNT_RESOLVE_HOST:
        return fail(reply, -ECONNREFUSED, "nothing resolves its name");
    case CURLE_COULDNT_CONNECT:
        curl_easy_getinfo(call->easy, CURLINFO_OS_ERRNO, &error);
        return fail(reply, -ECONNREFUSED, error ? strerror((int)error) : why);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
        return fail(reply, -EACCES, why);
    case CURLE_WRITE_ERROR:
        return fail(reply, -EPROTO, "its answer is too large");
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
        return fail(reply, -EIO, "it closed the connection");
    default: // TLS reports in words that it needs a certificate
        return fail(reply, strstr(why, "certificate") ? -EACCES : -EIO, why);
    }
}

static int read_status(struct etcd_reply *reply, long status)
{
    char why[64];
    snprintf(why, sizeof why, "it answers with HTTP status %ld", status);
    return fail(reply,
                status == 401   ? -EKEYEXPIRED
                : status == 403 ? -EACCES
                : status >= 500 ? -EIO
                                : -EPROTO,
                why);
}

int etcd_call_read(const struct etcd_call *call, struct etcd_reply *reply, const char *prefix,
                   bool *certain)
{
    const long status = etcd_call_status(call);
    *certain = false;
    *reply = (struct etcd_reply){0};
    if (call->result != CURLE_OK)
        return read_failure(call, reply);
    int rc =
        etcd_reply_read(reply, call->method, prefix, call->text ? call->text : "", call->length);
    *certain = rc != 0 && rc != -EPROTO && rc != -ENOMEM;
    if (*certain || status == 200 ||
        (rc == 0 && call->method == ETCD_AUTHENTICATE && !reply->token))
        return rc;
    etcd_reply_free(reply);
    return read_status(reply, status);
}
