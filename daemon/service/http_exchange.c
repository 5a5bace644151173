#include "daemon/service/http.h"

#include <errno.h>
#include <jansson.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "config/address.h"
#include "daemon/base/access.h"
#include "daemon/output/lines.h"
#include "daemon/service/http_client.h"

enum {
    PARTS_MAX = 3,
    PATH_MAX_BYTES = 512,
    STREAM_BLOCK = 65536,  // largest fill of a stream
    STREAM_UNSENT = 32768, // unsent bytes in the kernel below which a stream is filled again
    CHUNK_MIN = 1024,      // smallest allocation for a body
    SENTENCE_MAX = 1024,
};

struct http_exchange {
    struct http_client *client;
    const struct http_route *route;
    char path[PATH_MAX_BYTES]; // zeros end its parts
    char *part[PARTS_MAX];
    bool is_api, is_head;
    char *body;
    size_t size, capacity;
    bool too_long;
    enum { READING, SERVING, HELD, READY, STREAMING, ANSWERED } phase;
    struct http_stream stream;     // if HELD, only `gone` and `opaque`
    struct MHD_Response *response; // if READY
    int status;
    enum http_access access;
};

static const char content_policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// --- the request

const char *http_path(const struct http_exchange *exchange)
{
    return exchange->path;
}

const char *http_part(const struct http_exchange *exchange, int i)
{
    return exchange->part[i];
}

const char *http_argument(const struct http_exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->client->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *http_header(const struct http_exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->client->connection, MHD_HEADER_KIND, name);
}

const char *http_body(const struct http_exchange *exchange, size_t *size)
{
    *size = exchange->size;
    return exchange->body ? exchange->body : "";
}

static bool looks(const char *method)
{
    return strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
}

static bool is_method(const struct http_route *route, const char *method)
{
    return strcmp(route->method, looks(method) ? MHD_HTTP_METHOD_GET : method) == 0;
}

// Points part[] at the part of the path for each `*`; cut_parts ends the parts.
static bool match(const char *pattern, char *path, char *part[PARTS_MAX])
{
    int n = 0;
    while (*pattern && *path) {
        if (*pattern == '*' && *path != '/' && n < PARTS_MAX) {
            part[n++] = path;
            path += strcspn(path, "/");
            pattern++;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return !*pattern && !*path;
}

static void cut_parts(struct http_exchange *exchange)
{
    for (int i = 0; i < PARTS_MAX && exchange->part[i]; i++)
        exchange->part[i][strcspn(exchange->part[i], "/")] = 0;
}

// Returns the route, or NULL with the path's methods in `allowed`.
static const struct http_route *find_route(struct http_exchange *exchange, const char *method,
                                           char *allowed, size_t size)
{
    const struct http_options *options = http_options(exchange->client->http);
    *allowed = 0;
    for (int i = 0; i < options->n_routes; i++) {
        const struct http_route *route = &options->routes[i];
        char *part[PARTS_MAX] = {0};
        if (!match(route->pattern, exchange->path, part))
            continue;
        if (is_method(route, method)) {
            memcpy(exchange->part, part, sizeof part);
            cut_parts(exchange);
            return route;
        }
        const size_t used = strlen(allowed);
        snprintf(allowed + used, size - used, "%s%s", used ? ", " : "",
                 strcmp(route->method, MHD_HTTP_METHOD_GET) == 0 ? "GET, HEAD" : route->method);
    }
    return NULL;
}

// --- the response

static void add_headers(struct MHD_Response *response, const struct http_page *page)
{
    const struct {
        const char *name, *value;
    } headers[] = {
        {MHD_HTTP_HEADER_CONTENT_TYPE, page->type},
        {MHD_HTTP_HEADER_CACHE_CONTROL, page->etag ? "no-cache" : "no-store"},
        {MHD_HTTP_HEADER_ETAG, page->etag},
        {MHD_HTTP_HEADER_LOCATION, page->location},
        {MHD_HTTP_HEADER_CONTENT_ENCODING, page->gzipped ? "gzip" : NULL},
        {MHD_HTTP_HEADER_WWW_AUTHENTICATE, page->status == MHD_HTTP_UNAUTHORIZED ? "Bearer" : NULL},
        {"Content-Security-Policy", content_policy},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Referrer-Policy", "no-referrer"},
        {"X-Content-Type-Options", "nosniff"},
    };
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        if (headers[i].value)
            MHD_add_response_header(response, headers[i].name, headers[i].value);
}

static struct MHD_Response *make_response(const struct http_page *page)
{
    struct MHD_Response *response = NULL;
    if (page->body)
        response = MHD_create_response_from_buffer(page->size, page->body,
                                                   page->constant ? MHD_RESPMEM_PERSISTENT
                                                                  : MHD_RESPMEM_MUST_FREE);
    if (response)
        add_headers(response, page);
    else if (!page->constant)
        free(page->body);
    return response;
}

// True if the client can send no further request: it then waits for the connection's end.
static bool sends_no_more(const struct http_client *client)
{
    struct pollfd one = {.fd = client->fd, .events = POLLRDHUP};
    return poll(&one, 1, 0) == 1 && one.revents & POLLRDHUP;
}

static void queue(struct http_exchange *exchange)
{
    struct MHD_Response *response = exchange->response;
    if (response && sends_no_more(exchange->client))
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    const bool queued = response && MHD_queue_response(exchange->client->connection,
                                                       (unsigned)exchange->status, response);
    if (response)
        MHD_destroy_response(response);
    exchange->response = NULL;
    exchange->phase = ANSWERED;
    exchange->client->answered = true;
    http_client_expect(exchange->client, HTTP_RESPONSE_MS);
    if (!queued)
        shutdown(exchange->client->fd, SHUT_RDWR);
}

static bool is_known(const struct http_exchange *exchange, const char *etag)
{
    const char *known = http_header(exchange, MHD_HTTP_HEADER_IF_NONE_MATCH);
    return known && strstr(known, etag);
}

void http_answer(struct http_exchange *exchange, const struct http_page *page)
{
    const bool held = exchange->phase == HELD;
    struct http_page unchanged = *page;
    if (page->etag && is_known(exchange, page->etag)) {
        unchanged = (struct http_page){.status = MHD_HTTP_NOT_MODIFIED,
                                       .type = page->type,
                                       .etag = page->etag,
                                       .body = "",
                                       .constant = true};
        if (!page->constant)
            free(page->body);
    }
    exchange->status = unchanged.status;
    exchange->response = make_response(&unchanged);
    exchange->phase = READY;
    if (held)
        http_client_wake(exchange->client); // libmicrohttpd gets it when it runs
    else
        queue(exchange);
}

void http_answer_json(struct http_exchange *exchange, int status, json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(6));
    json_decref(json);
    http_answer(exchange, &(struct http_page){.status = status,
                                              .type = "application/json",
                                              .body = text,
                                              .size = text ? strlen(text) : 0});
}

static struct http_page text_page(const struct http_exchange *exchange, int status,
                                  const char *sentence)
{
    char text[6 * SENTENCE_MAX + 32], *end = text;
    if (exchange->is_api) {
        end = json_put_text(json_put(end, "{\"error\": "), sentence);
        end = json_put(end, "}\n");
    } else {
        end = json_put(json_put(end, sentence), "\n");
    }
    return (struct http_page){
        .status = status,
        .type = exchange->is_api ? "application/json" : "text/plain; charset=utf-8",
        .body = strndup(text, (size_t)(end - text)),
        .size = (size_t)(end - text),
    };
}

void http_refuse(struct http_exchange *exchange, int status, const char *format, ...)
{
    char sentence[SENTENCE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    const struct http_page page = text_page(exchange, status, sentence);
    http_answer(exchange, &page);
}

void http_hold(struct http_exchange *exchange, void (*gone)(void *opaque), void *opaque)
{
    exchange->phase = HELD;
    exchange->stream = (struct http_stream){.gone = gone, .opaque = opaque};
    exchange->client->answered = true;
    http_client_expect(exchange->client, HTTP_HOLD_MS);
    http_client_sleep(exchange->client);
}

// --- a stream

static ssize_t read_stream(void *opaque, uint64_t at, char *to, size_t room)
{
    struct http_exchange *exchange = opaque;
    (void)at;
    if (exchange->client->dropped)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    const size_t n = exchange->stream.fill(exchange->stream.opaque, to, room);
    if (n > 0) {
        http_client_expect(exchange->client, HTTP_RESPONSE_MS);
    } else {
        http_client_expect(exchange->client, 0);
        http_client_sleep(exchange->client);
    }
    return (ssize_t)n;
}

int http_stream(struct http_exchange *exchange, const struct http_stream *stream)
{
    int *n_streams = http_n_streams(exchange->client->http);
    if (*n_streams == HTTP_STREAMS_MAX)
        return -EBUSY;
    // libmicrohttpd sends the end of a chunked body even for HEAD, and the client would take it for
    // the next response.
    struct MHD_Response *response =
        exchange->is_head ? MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT)
                          : MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK,
                                                              read_stream, exchange, NULL);
    if (response)
        add_headers(response, &(struct http_page){.status = MHD_HTTP_OK, .type = stream->type});
    exchange->stream = *stream;
    // Fails on a unix socket, which does not need it.
    setsockopt(exchange->client->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &(int){STREAM_UNSENT},
               sizeof(int));
    exchange->response = response;
    exchange->status = MHD_HTTP_OK;
    queue(exchange);
    exchange->phase = STREAMING;
    exchange->client->streams = !exchange->is_head;
    ++*n_streams;
    return 0;
}

void http_wake(struct http_exchange *exchange)
{
    http_client_wake(exchange->client);
}

// --- from the head to the end

static enum MHD_Result count_host(void *n, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    (void)kind, (void)value;
    *(int *)n += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
    return MHD_YES;
}

// Returns NULL if it is missing; "", which is no host, if there are several.
static const char *only_host(struct MHD_Connection *connection)
{
    const char *host =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    int n = 0;
    MHD_get_connection_values(connection, MHD_HEADER_KIND, count_host, &n);
    return n > 1 ? "" : host;
}

static struct http_demands demands_of(const struct http *http)
{
    const struct sink_address *at = http_address(http);
    return (struct http_demands){
        .token = http_token(http),
        .read_token = http_read_token(http),
        .unix_socket = at->kind == SINK_UNIX,
        .host = at->kind == SINK_TCP ? address_host(at) : NULL,
        .may_write = http_options(http)->may_write,
    };
}

// A unix socket's mode also admits a group that only reads. Without a token, the peer decides.
static bool is_for_admins(const struct http_exchange *exchange)
{
    const struct http *http = exchange->client->http;
    return http_address(http)->kind == SINK_UNIX && !http_token(http) &&
           !peer_is_admin(exchange->client->fd, http_admins(http));
}

static int is_refused(struct http_exchange *exchange, const char *method, const char **why)
{
    const char *length = http_header(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH);
    struct http_demands demands = demands_of(exchange->client->http);
    const bool writes = exchange->route && exchange->route->writes;
    demands.admins_alone = writes && is_for_admins(exchange);
    const struct http_credentials given = {
        .authorization = http_header(exchange, MHD_HTTP_HEADER_AUTHORIZATION),
        .host = only_host(exchange->client->connection),
        .origin = http_header(exchange, MHD_HTTP_HEADER_ORIGIN),
        .content_type = http_header(exchange, MHD_HTTP_HEADER_CONTENT_TYPE),
        .looks = looks(method),
        .open = exchange->route && exchange->route->open,
        .writes = writes,
        .has_body = exchange->route && ((length && strcmp(length, "0") != 0) ||
                                        http_header(exchange, MHD_HTTP_HEADER_TRANSFER_ENCODING)),
    };
    exchange->access = http_access(&demands, &given);
    exchange->client->is_known = exchange->access >= HTTP_ACCESS_READ;
    return http_guard(&demands, &given, why);
}

bool http_may_write(const struct http_exchange *exchange)
{
    return http_options(exchange->client->http)->may_write && !is_for_admins(exchange) &&
           (exchange->access == HTTP_ACCESS_OPEN || exchange->access == HTTP_ACCESS_FULL);
}

// True if it may go on; else it was refused.
static bool admit(struct http_exchange *exchange, const char *method, const char *path)
{
    char allowed[128] = "";
    const char *why;
    const bool fits = strlen(path) < sizeof exchange->path;
    strcpy(exchange->path, fits ? path : "");
    exchange->is_api = strncmp(path, "/api/", 5) == 0;
    exchange->is_head = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    exchange->route = find_route(exchange, method, allowed, sizeof allowed);
    const int status = is_refused(exchange, method, &why);
    if (status != 0) {
        http_refuse(exchange, status, "%s", why);
    } else if (!exchange->route && *allowed) {
        struct http_page page = text_page(exchange, MHD_HTTP_METHOD_NOT_ALLOWED, allowed);
        exchange->status = page.status;
        exchange->response = make_response(&page);
        if (exchange->response)
            MHD_add_response_header(exchange->response, MHD_HTTP_HEADER_ALLOW, allowed);
        queue(exchange);
    } else if (!exchange->route) {
        http_refuse(exchange, MHD_HTTP_NOT_FOUND, "no such page");
    }
    return exchange->phase == READING;
}

static void read_body(struct http_exchange *exchange, const char *data, size_t n)
{
    const size_t needed = exchange->size + n + 1;
    exchange->too_long |= needed > HTTP_BODY_BYTES + 1;
    if (exchange->too_long)
        return;
    if (needed > exchange->capacity) {
        const size_t capacity = needed < CHUNK_MIN ? CHUNK_MIN : 2 * needed;
        char *larger = realloc(exchange->body, capacity);
        exchange->too_long |= !larger;
        if (!larger)
            return;
        exchange->body = larger;
        exchange->capacity = capacity;
    }
    memcpy(exchange->body + exchange->size, data, n);
    exchange->size += n;
    exchange->body[exchange->size] = 0;
}

static void serve(struct http_exchange *exchange)
{
    exchange->phase = SERVING;
    if (exchange->too_long)
        http_refuse(exchange, MHD_HTTP_CONTENT_TOO_LARGE, "a body of at most %d bytes",
                    HTTP_BODY_BYTES);
    else
        exchange->route->serve(http_options(exchange->client->http)->opaque, exchange);
}

static struct http_exchange *begin(struct MHD_Connection *connection, const char *method,
                                   const char *path, const char *version)
{
    struct http_exchange *exchange = calloc(1, sizeof *exchange);
    if (!exchange)
        return NULL;
    exchange->client =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    exchange->client->connection = connection;
    exchange->client->takes_interim = strcmp(version, MHD_HTTP_VERSION_1_1) == 0;
    http_client_expect(exchange->client, HTTP_BODY_MS);
    admit(exchange, method, path);
    return exchange;
}

enum MHD_Result http_exchange_read(void *http, struct MHD_Connection *connection, const char *path,
                                   const char *method, const char *version, const char *upload,
                                   size_t *upload_size, void **ret)
{
    struct http_exchange *exchange = *ret;
    (void)http;
    if (!exchange) {
        *ret = exchange = begin(connection, method, path, version);
        return exchange ? MHD_YES : MHD_NO;
    }
    if (exchange->client->dropped)
        return MHD_NO; // closes the connection
    if (*upload_size > 0) {
        read_body(exchange, upload, *upload_size);
        *upload_size = 0;
    } else if (exchange->phase == READING) {
        serve(exchange);
    } else if (exchange->phase == READY) {
        queue(exchange);
    }
    return MHD_YES;
}

void http_exchange_end(void *http, struct MHD_Connection *connection, void **ret,
                       enum MHD_RequestTerminationCode why)
{
    struct http_exchange *exchange = *ret;
    (void)connection, (void)why;
    if (!exchange)
        return;
    if (exchange->response)
        MHD_destroy_response(exchange->response);
    if (exchange->phase == STREAMING)
        --*http_n_streams(http);
    if (exchange->phase == STREAMING || exchange->phase == HELD)
        exchange->stream.gone(exchange->stream.opaque);
    free(exchange->body);
    free(exchange);
    *ret = NULL;
}
