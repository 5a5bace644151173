#include "daemon/service/http.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/address.h"
#include "daemon/base/access.h"
#include "daemon/base/log.h"
#include "daemon/service/http_client.h"

enum { ACCEPTS_A_TURN = 16, EVENTS_A_TURN = 32, ACCEPT_PAUSE_MS = 1000 };

struct http {
    struct http_options options;
    struct sink_address address;
    char *token, *read_token;
    gid_t admins; // of admin_group
    struct listener listener;
    int port;
    struct MHD_Daemon *daemon;    // has its own epoll set
    int epoll;                    // watches that set, the listener, idle and sleeping clients
    uv_poll_t poll;               // of `epoll`
    uv_timer_t timer;             // the next deadline or timeout of libmicrohttpd
    uv_timer_t pause;             // until connections are accepted again
    struct http_client clients;   // a ring in order of arrival; this is its end
    struct http_client *entering; // is being added to libmicrohttpd
    int n_clients, n_streams;
    bool woken; // a client was woken since libmicrohttpd ran
    int handles;
};

// --- clients

static int watch(struct http *http, int operation, int fd, unsigned events, void *which)
{
    struct epoll_event event = {.events = events, .data.ptr = which};
    return epoll_ctl(http->epoll, operation, fd, &event) < 0 ? -errno : 0;
}

static void unlink_client(struct http_client *client)
{
    client->previous->next = client->next;
    client->next->previous = client->previous;
    client->http->n_clients--;
}

// libmicrohttpd closes its own connections in its next run.
static void drop(struct http_client *client)
{
    unlink_client(client);
    client->dropped = true;
    if (!client->idle) {
        http_client_wake(client);
        shutdown(client->fd, SHUT_RDWR);
        return;
    }
    close(client->fd);
    free(client);
}

void http_client_expect(struct http_client *client, uint64_t ms)
{
    client->deadline_ms = ms ? uv_now(client->http->options.loop) + ms : UINT64_MAX;
}

void http_client_sleep(struct http_client *client)
{
    client->asleep = true;
    MHD_suspend_connection(client->connection);
    watch(client->http, EPOLL_CTL_ADD, client->fd, EPOLLRDHUP, client);
}

static void time_is_up(uv_timer_t *timer);

void http_client_wake(struct http_client *client)
{
    if (!client->asleep)
        return;
    client->asleep = false;
    watch(client->http, EPOLL_CTL_DEL, client->fd, 0, NULL);
    MHD_resume_connection(client->connection);
    client->http->woken = true; // libmicrohttpd must run again, even if it runs now
    uv_timer_start(&client->http->timer, time_is_up, 0, 0);
}

// Returns the number of connections without a token from the client's address.
static int count_strangers(const struct http_client *client)
{
    const struct http_client *end = &client->http->clients;
    int n = 0;
    for (const struct http_client *other = end->next; other != end; other = other->next)
        n += !other->is_known &&
             memcmp(other->address, client->address, sizeof client->address) == 0;
    return n;
}

// Victim: from the address with the most connections without a token, the oldest client still
// sending its request, else the oldest of all. NULL: all have brought a token.
static struct http_client *first_to_drop(struct http *http)
{
    struct http_client *found = NULL;
    int most = 0;
    for (struct http_client *client = http->clients.next; client != &http->clients;
         client = client->next) {
        const int n = client->is_known ? 0 : count_strangers(client);
        if (n > most || (n == most && found && found->answered && !client->answered)) {
            found = client;
            most = n;
        }
    }
    return found;
}

static void drop_late_clients(struct http *http)
{
    const uint64_t now = uv_now(http->options.loop);
    for (struct http_client *client = http->clients.next, *next; client != &http->clients;
         client = next) {
        next = client->next;
        if (client->deadline_ms <= now)
            drop(client);
    }
}

// libmicrohttpd closes the socket if it cannot take it.
static void begin_request(struct http_client *client)
{
    struct http *http = client->http;
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;
    watch(http, EPOLL_CTL_DEL, client->fd, 0, NULL);
    getpeername(client->fd, (struct sockaddr *)&address, &length);
    client->idle = false;
    client->deadline_ms = uv_now(http->options.loop) + HTTP_REQUEST_MS;
    http->entering = client;
    enum MHD_Result taken =
        MHD_add_connection(http->daemon, client->fd, (struct sockaddr *)&address, length);
    if (taken == MHD_NO && http->entering) {
        unlink_client(client);
        free(client);
    }
    http->entering = NULL;
}

// A client that has closed its sending half may still read. A client that is gone looks the same
// until something is sent to it: its kernel responds with a reset.
static bool is_told_to_wait(const struct http_client *client)
{
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
    return !client->takes_interim ||
           send(client->fd, interim, strlen(interim), MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

// An idle client has sent a byte; a sleeping client has hung up or closed its sending half. A
// stream is dropped then: it might send nothing for a long time.
static void client_ready(struct http_client *client, unsigned events)
{
    if (client->idle)
        begin_request(client);
    else if (client->streams || events & (EPOLLHUP | EPOLLERR) || !is_told_to_wait(client))
        drop(client);
    else
        watch(client->http, EPOLL_CTL_MOD, client->fd, 0, client); // only resets from now on
}

static void connection_notified(void *opaque, struct MHD_Connection *connection, void **context,
                                enum MHD_ConnectionNotificationCode code)
{
    struct http *http = opaque;
    struct http_client *client = *context;
    (void)connection;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = http->entering;
        http->entering = NULL;
    } else if (client) {
        if (!client->dropped)
            unlink_client(client);
        free(client);
    }
}

// Copies only the network of an IPv6 address: one client may have all its hosts.
static void copy_peer_address(const struct sockaddr_storage *from, unsigned char to[PEER_BYTES])
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;
    memset(to, 0, PEER_BYTES);
    if (from->ss_family == AF_INET)
        memcpy(to + 12, &v4->sin_addr, 4);
    else if (from->ss_family == AF_INET6)
        memcpy(to, &v6->sin6_addr, IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) ? 16 : 8);
}

static int add_client(struct http *http, int fd, const struct sockaddr_storage *address)
{
    struct http_client *victim = http->n_clients == HTTP_CLIENTS_MAX ? first_to_drop(http) : NULL;
    if (http->n_clients == HTTP_CLIENTS_MAX && !victim)
        return -EBUSY;
    struct http_client *client = calloc(1, sizeof *client);
    int rc = client ? watch(http, EPOLL_CTL_ADD, fd, EPOLLIN, client) : -ENOMEM;
    if (rc < 0) {
        free(client);
        return rc;
    }
    if (victim)
        drop(victim);
    *client = (struct http_client){
        .http = http,
        .fd = fd,
        .idle = true,
        .deadline_ms = uv_now(http->options.loop) + HTTP_IDLE_MS,
        .previous = http->clients.previous,
        .next = &http->clients,
    };
    copy_peer_address(address, client->address);
    client->previous->next = client;
    client->next->previous = client;
    http->n_clients++;
    return 0;
}

// --- in the loop

static void resume_accepting(uv_timer_t *timer)
{
    struct http *http = timer->data;
    watch(http, EPOLL_CTL_MOD, http->listener.fd, EPOLLIN, http);
}

// Out of descriptors or memory: the connection stays in the queue, and the listener readable.
static void pause_accepting(struct http *http, int reason)
{
    log_event(LOG_LEVEL_WARNING, "http: cannot accept a client: %s", strerror(reason));
    watch(http, EPOLL_CTL_MOD, http->listener.fd, 0, http);
    uv_timer_start(&http->pause, resume_accepting, ACCEPT_PAUSE_MS, 0);
}

static void accept_clients(struct http *http)
{
    for (int i = 0; i < ACCEPTS_A_TURN; i++) {
        struct sockaddr_storage address = {0};
        socklen_t length = sizeof address;
        int fd = accept4(http->listener.fd, (struct sockaddr *)&address, &length,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
            pause_accepting(http, errno);
        if (fd < 0)
            return; // level-triggered: the rest of the queue is reported again
        if (add_client(http, fd, &address) < 0)
            close(fd);
    }
}

static void set_timer(struct http *http)
{
    const uint64_t now = uv_now(http->options.loop);
    MHD_UNSIGNED_LONG_LONG run_ms;
    uint64_t next = UINT64_MAX;
    if (MHD_get_timeout(http->daemon, &run_ms) == MHD_YES)
        next = now + run_ms;
    if (http->woken)
        next = now;
    for (struct http_client *client = http->clients.next; client != &http->clients;
         client = client->next)
        if (client->deadline_ms < next)
            next = client->deadline_ms;
    if (next == UINT64_MAX)
        uv_timer_stop(&http->timer);
    else
        uv_timer_start(&http->timer, time_is_up, next > now ? next - now : 0, 0);
}

static void work(struct http *http)
{
    drop_late_clients(http);
    http->woken = false;
    MHD_run(http->daemon);
    set_timer(http);
}

static void time_is_up(uv_timer_t *timer)
{
    work(timer->data);
}

// Accepts clients last: a new client may push out another that has an event.
static void sockets_ready(uv_poll_t *poll, int status, int events)
{
    struct http *http = poll->data;
    struct epoll_event event[EVENTS_A_TURN];
    bool comes = false;
    int n = epoll_wait(http->epoll, event, EVENTS_A_TURN, 0);
    (void)status, (void)events;
    for (int i = 0; i < n; i++) {
        if (event[i].data.ptr == http)
            comes = true;
        else if (event[i].data.ptr != http->daemon)
            client_ready(event[i].data.ptr, event[i].events);
    }
    if (comes)
        accept_clients(http);
    work(http);
}

// --- life

static void forget_token(char *token)
{
    if (token)
        explicit_bzero(token, strlen(token));
    free(token);
}

static void release(struct http *http)
{
    address_free(&http->address);
    forget_token(http->token);
    forget_token(http->read_token);
    free(http);
}

// Without this, libmicrohttpd 1.0 takes a connection only when it runs, after MHD_add_connection.
#if MHD_VERSION >= 0x00097707
enum { ONE_THREAD = MHD_USE_NO_THREAD_SAFETY };
#else
enum { ONE_THREAD = 0 };
#endif

// A dropped client counts until libmicrohttpd runs.
static int start_daemon(struct http *http)
{
    const unsigned limit = HTTP_CLIENTS_MAX + ACCEPTS_A_TURN;
    errno = 0;
    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | ONE_THREAD, 0, NULL,
        NULL, http_exchange_read, http, MHD_OPTION_NOTIFY_COMPLETED, http_exchange_end, http,
        MHD_OPTION_NOTIFY_CONNECTION, connection_notified, http, MHD_OPTION_CONNECTION_LIMIT, limit,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_CLIENT_BYTES, MHD_OPTION_END);
    return http->daemon ? 0 : errno ? -errno : -EIO;
}

static int watch_sockets(struct http *http)
{
    http->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (http->epoll < 0)
        return -errno;
    int rc = watch(http, EPOLL_CTL_ADD, http->listener.fd, EPOLLIN, http);
    if (rc == 0)
        rc = watch(http, EPOLL_CTL_ADD,
                   MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd, EPOLLIN,
                   http->daemon);
    return rc;
}

static int start(struct http *http)
{
    uv_loop_t *loop = http->options.loop;
    int rc = start_daemon(http);
    if (rc == 0)
        rc = watch_sockets(http);
    if (rc == 0)
        rc = uv_poll_init(loop, &http->poll, http->epoll);
    if (rc < 0)
        return rc;
    uv_timer_init(loop, &http->timer);
    uv_timer_init(loop, &http->pause);
    http->poll.data = http->timer.data = http->pause.data = http;
    http->handles = 3;
    uv_poll_start(&http->poll, UV_READABLE, sockets_ready); // fails only on a closing handle
    return 0;
}

static int copy_options(struct http *http, const struct http_options *options)
{
    http->options = *options;
    http->listener.fd = http->epoll = -1;
    http->clients.next = http->clients.previous = &http->clients;
    http->token = options->token ? strdup(options->token) : NULL;
    http->read_token = options->read_token ? strdup(options->read_token) : NULL;
    return address_copy(&http->address, options->address) < 0 || (options->token && !http->token) ||
                   (options->read_token && !http->read_token)
               ? -ENOMEM
               : 0;
}

// libmicrohttpd closes its own connections, which ends their clients.
static void close_sockets(struct http *http)
{
    listener_close(&http->listener);
    for (struct http_client *client = http->clients.next, *next; client != &http->clients;
         client = next) {
        next = client->next;
        if (client->idle || client->asleep)
            drop(client);
    }
    if (http->daemon)
        MHD_stop_daemon(http->daemon);
    if (http->epoll >= 0)
        close(http->epoll);
}

static struct listener_options options_of(const struct http *http)
{
    return (struct listener_options){.address = &http->address, .mode = HTTP_MODE};
}

int http_open(struct http **ret, const struct http_options *options, char *why, size_t size)
{
    struct http *http = calloc(1, sizeof *http);
    int rc = http ? copy_options(http, options) : -ENOMEM;
    why[0] = 0;
    if (rc == 0) {
        http->admins = admin_group();
        const struct listener_options listener = options_of(http);
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
        close_sockets(http);
        release(http);
    }
    return rc;
}

const struct sink_address *http_address(const struct http *http)
{
    return &http->address;
}

const struct http_options *http_options(const struct http *http)
{
    return &http->options;
}

const char *http_token(const struct http *http)
{
    return http->token;
}

gid_t http_admins(const struct http *http)
{
    return http->admins;
}

const char *http_read_token(const struct http *http)
{
    return http->read_token;
}

int *http_n_streams(struct http *http)
{
    return &http->n_streams;
}

static void end_streams(struct http *http)
{
    for (struct http_client *client = http->clients.next, *next; client != &http->clients;
         client = next) {
        next = client->next;
        if (client->streams)
            drop(client);
    }
}

static bool is_other(const char *token, const char *before)
{
    return !token || !before ? token != before : strcmp(token, before) != 0;
}

void http_permit(struct http *http, char *token, char *read_token, bool may_write)
{
    if (token && (is_other(token, http->token) || is_other(read_token, http->read_token)))
        end_streams(http);
    forget_token(http->token);
    forget_token(http->read_token);
    http->token = token;
    http->read_token = read_token;
    http->options.may_write = may_write;
}

// First accepts the clients that connected before the socket was removed.
static void replace_listener(struct http *http, const struct listener *fresh)
{
    accept_clients(http);
    work(http);
    struct listener before = http->listener;
    int rc = watch(http, EPOLL_CTL_ADD, fresh->fd, EPOLLIN, http);
    http->listener = *fresh;
    if (rc < 0) {
        log_event(LOG_LEVEL_ERROR, "http: cannot watch the socket: %s", strerror(-rc));
        http->listener = before;
        before = *fresh;
    }
    listener_close(&before);
}

void http_check_path(struct http *http)
{
    struct listener fresh;
    char what[512];
    if (!http || !listener_is_gone(&http->listener))
        return;
    const struct listener_options options = options_of(http);
    int rc = listener_restore(&fresh, &http->listener, &options, what, sizeof what);
    if (what[0])
        log_event(LOG_LEVEL_WARNING, "http: %s", what);
    if (rc == 0)
        replace_listener(http, &fresh);
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
    uv_close((uv_handle_t *)&http->poll, handle_closed); // before its descriptor is closed
    uv_close((uv_handle_t *)&http->timer, handle_closed);
    uv_close((uv_handle_t *)&http->pause, handle_closed);
    close_sockets(http);
}
