#include "daemon/service/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "config/address.h"
#include "daemon/sink/listener.h"

struct http {
    struct http_options options;
    struct sink_address address;
    char *token;
    struct listener listener; // its descriptor is the daemon's
    int port;
    struct MHD_Daemon *daemon; // has an epoll set of its own, which the loop watches
    uv_poll_t poll;
    uv_timer_t timer; // when it wants to be called though nothing came
    int handles;
};

// --- a request

static enum MHD_Result respond(struct MHD_Connection *connection, struct http_page *page)
{
    if (!page->body)
        return MHD_NO; // closes the connection
    struct MHD_Response *response =
        MHD_create_response_from_buffer(page->size, page->body, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(page->body);
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, page->type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (page->status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (page->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    enum MHD_Result queued = MHD_queue_response(connection, (unsigned)page->status, response);
    MHD_destroy_response(response);
    return queued;
}

static struct http_page refusal(int status, const char *text)
{
    return (struct http_page){status, "text/plain", strdup(text), strlen(text)};
}

// In a time that tells nothing of how much of the token was right.
static bool is_token(const char *wanted, const char *given)
{
    size_t n = strlen(wanted), m = strlen(given);
    volatile unsigned char wrong = n != m;
    for (size_t i = 0; i < m; i++)
        wrong |= (unsigned char)(given[i] ^ (i < n ? wanted[i] : 0));
    return !wrong;
}

static bool is_welcome(const struct http *http, struct MHD_Connection *connection)
{
    static const char scheme[] = "Bearer ";
    const char *given =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    if (!http->token)
        return true;
    return given && strncasecmp(given, scheme, strlen(scheme)) == 0 &&
           is_token(http->token, given + strlen(scheme));
}

static enum MHD_Result request_came(void *opaque, struct MHD_Connection *connection,
                                    const char *path, const char *method, const char *version,
                                    const char *upload, size_t *upload_size, void **state)
{
    struct http *http = opaque;
    struct http_page page;
    (void)version, (void)upload, (void)upload_size, (void)state;
    if (!is_welcome(http, connection))
        page = refusal(MHD_HTTP_UNAUTHORIZED, "a token is needed: Authorization: Bearer TOKEN\n");
    else if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        page = refusal(MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD alone\n");
    else if (!http->options.page(http->options.opaque, path, &page))
        page = refusal(MHD_HTTP_NOT_FOUND, "no such page\n");
    return respond(connection, &page);
}

// --- in the loop

static void work(struct http *http);

static void time_is_up(uv_timer_t *timer)
{
    work(timer->data);
}

static void sockets_ready(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    work(poll->data);
}

static unsigned clients(const struct http *http)
{
    return MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections;
}

// At the limit the daemon accepts nobody, and begins again with the run after that in which
// somebody left.
static void work(struct http *http)
{
    MHD_UNSIGNED_LONG_LONG wait_ms;
    unsigned before;
    do {
        before = clients(http);
        MHD_run(http->daemon);
    } while (clients(http) < before);
    if (MHD_get_timeout(http->daemon, &wait_ms) == MHD_YES)
        uv_timer_start(&http->timer, time_is_up, wait_ms, 0);
    else
        uv_timer_stop(&http->timer);
}

// --- life

static void release(struct http *http)
{
    address_free(&http->address);
    if (http->token)
        explicit_bzero(http->token, strlen(http->token));
    free(http->token);
    free(http);
}

// The daemon takes over the listener's descriptor.
static int start_daemon(struct http *http)
{
    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL, 0, NULL, NULL, request_came, http, MHD_OPTION_LISTEN_SOCKET,
        http->listener.fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CLIENTS_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HTTP_TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)HTTP_CLIENT_BYTES, MHD_OPTION_END);
    if (!http->daemon)
        return errno ? -errno : -EIO;
    http->listener.fd = -1;
    return 0;
}

static int start(struct http *http)
{
    uv_loop_t *loop = http->options.loop;
    errno = 0;
    int rc = start_daemon(http);
    if (rc < 0)
        return rc;
    rc = uv_poll_init(loop, &http->poll,
                      MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd);
    if (rc < 0)
        return rc;
    uv_timer_init(loop, &http->timer);
    http->poll.data = http->timer.data = http;
    http->handles = 2;
    uv_poll_start(&http->poll, UV_READABLE, sockets_ready); // fails on a closing handle only
    return 0;
}

static int copy_options(struct http *http, const struct http_options *options)
{
    http->options = *options;
    http->listener.fd = -1;
    http->token = options->token ? strdup(options->token) : NULL;
    return address_copy(&http->address, options->address) < 0 || (options->token && !http->token)
               ? -ENOMEM
               : 0;
}

int http_open(struct http **ret, const struct http_options *options, char *why, size_t size)
{
    struct http *http = calloc(1, sizeof *http);
    int rc = http ? copy_options(http, options) : -ENOMEM;
    why[0] = 0;
    if (rc == 0) {
        const struct listener_options listener = {.address = &http->address, .mode = HTTP_MODE};
        rc = listener_serve(&http->listener, &listener, why, size);
    }
    if (rc == 0) {
        http->port = listener_port(&http->listener);
        rc = start(http);
    }
    if (rc == 0) {
        *ret = http;
        return 0;
    }
    if (!why[0])
        snprintf(why, size, "cannot serve HTTP: %s", strerror(-rc));
    if (http) {
        if (http->daemon)
            MHD_stop_daemon(http->daemon);
        listener_close(&http->listener);
        release(http);
    }
    return rc;
}

int http_port(const struct http *http)
{
    return http->port;
}

static void handle_closed(uv_handle_t *handle)
{
    struct http *http = handle->data;
    if (--http->handles == 0)
        release(http);
}

void http_close(struct http *http)
{
    if (!http)
        return;
    uv_close((uv_handle_t *)&http->poll, handle_closed); // before its descriptor goes
    uv_close((uv_handle_t *)&http->timer, handle_closed);
    listener_close(&http->listener);
    MHD_stop_daemon(http->daemon);
}
