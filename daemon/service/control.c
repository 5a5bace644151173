#include "daemon/service/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/access.h"
#include "daemon/base/log.h"

struct client {
    struct control *control;
    uv_pipe_t pipe;
    uv_timer_t deadline;
    uint64_t left_ms; // to the deadline, which is paused while a request is handled
    uv_write_t write;
    int handles; // of the two above, not closed yet; 0: this place is free
    char line[CONTROL_LINE_MAX];
    size_t n;                        // bytes of it
    struct control_request *request; // waits for its reply; NULL: none
    char *reply;                     // being sent, with its newline
};

struct control_request {
    struct client *client; // NULL: disconnected
};

struct control_place {
    struct control *control;
    struct sink_address address;
    struct listener listener; // the pipe owns its descriptor
    uv_pipe_t pipe;
};

struct control {
    uv_loop_t *loop;
    struct control_place *at; // where it listens; NULL: nowhere
    control_handler *handle;
    void *opaque;
    struct client place[CONTROL_CLIENTS_MAX + 1]; // one spare while another client is dropped
    struct client *clients[CONTROL_CLIENTS_MAX];  // in order of arrival
    int n_clients;
    int unfreed;  // clients and places with open handles, plus 1 until control_close
    bool waits;   // a client has arrived and found no place
    gid_t admins; // of admin_group
};

static void forget(struct control *control)
{
    if (--control->unfreed == 0)
        free(control);
}

// --- clients

static void let_in(struct control *control);

static void client_closed(uv_handle_t *handle)
{
    struct client *client = handle->data;
    struct control *control = client->control;
    if (--client->handles > 0)
        return;
    free(client->reply);
    if (control->waits && control->at)
        let_in(control);
    forget(control);
}

static void drop(struct client *client)
{
    struct control *control = client->control;
    if (uv_is_closing((uv_handle_t *)&client->pipe))
        return;
    if (client->request)
        client->request->client = NULL;
    int i = 0;
    while (control->clients[i] != client)
        i++;
    control->n_clients--;
    memmove(&control->clients[i], &control->clients[i + 1],
            (size_t)(control->n_clients - i) * sizeof control->clients[0]);
    uv_close((uv_handle_t *)&client->pipe, client_closed);
    uv_close((uv_handle_t *)&client->deadline, client_closed);
}

static void time_is_up(uv_timer_t *timer)
{
    drop(timer->data);
}

static void reply_went(uv_write_t *write, int status)
{
    (void)status;
    drop(write->data);
}

// Sends `text` and a newline; takes ownership of `text`.
static void send_reply(struct client *client, char *text)
{
    size_t n = text ? strlen(text) : 0;
    client->reply = text ? realloc(text, n + 2) : NULL;
    if (!client->reply) {
        free(text);
        drop(client);
        return;
    }
    strcpy(client->reply + n, "\n");
    uv_buf_t whole = uv_buf_init(client->reply, (unsigned)n + 1);
    client->write.data = client;
    if (uv_write(&client->write, (uv_stream_t *)&client->pipe, &whole, 1, reply_went) < 0)
        drop(client);
}

static void give_room(uv_handle_t *handle, size_t wanted, uv_buf_t *ret)
{
    struct client *client = handle->data;
    (void)wanted;
    *ret = uv_buf_init(client->line + client->n, (unsigned)(sizeof client->line - client->n));
}

static void client_wrote(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    struct client *client = stream->data;
    (void)buffer;
    if (n < 0) { // also if the line is too long
        drop(client);
        return;
    }
    client->n += (size_t)n;
    char *end = memchr(client->line, '\n', client->n);
    if (!end)
        return;
    *end = 0;
    uv_read_stop(stream);
    client->left_ms = uv_timer_get_due_in(&client->deadline);
    uv_timer_stop(&client->deadline);
    client->request = calloc(1, sizeof *client->request);
    if (!client->request) {
        drop(client);
        return;
    }
    client->request->client = client;
    client->control->handle(client->control->opaque, client->request, client->line);
}

void control_reply(struct control_request *request, char *text)
{
    struct client *client = request->client;
    free(request);
    if (!client) {
        free(text);
        return;
    }
    client->request = NULL;
    uv_timer_start(&client->deadline, time_is_up, client->left_ms, 0);
    send_reply(client, text);
}

// --- rights

bool control_may_change(const struct control_request *request)
{
    int fd;
    return request->client && uv_fileno((uv_handle_t *)&request->client->pipe, &fd) == 0 &&
           peer_is_admin(fd, request->client->control->admins);
}

// --- listening

static void add_client(struct control *control, struct client *client)
{
    if (control->n_clients == CONTROL_CLIENTS_MAX)
        drop(control->clients[0]);
    control->clients[control->n_clients++] = client;
    control->unfreed++;
    *client = (struct client){.control = control, .handles = 2};
    client->pipe.data = client->deadline.data = client;
    uv_pipe_init(control->loop, &client->pipe, 0);
    uv_timer_init(control->loop, &client->deadline);
    uv_timer_start(&client->deadline, time_is_up, CONTROL_DEADLINE_MS, 0);
}

// libuv reports no further client before this one is accepted.
static void let_in(struct control *control)
{
    struct client *client = control->place, *end = client + CONTROL_CLIENTS_MAX + 1;
    while (client < end && client->handles > 0)
        client++;
    control->waits = client == end;
    if (control->waits)
        return;
    add_client(control, client);
    if (uv_accept((uv_stream_t *)&control->at->pipe, (uv_stream_t *)&client->pipe) < 0 ||
        uv_read_start((uv_stream_t *)&client->pipe, give_room, client_wrote) < 0)
        drop(client);
}

static void client_comes(uv_stream_t *stream, int status)
{
    struct control_place *place = stream->data;
    if (status == 0 && place == place->control->at)
        let_in(place->control);
}

static void free_place(struct control_place *place)
{
    free(place->address.path);
    free(place);
}

static void place_closed(uv_handle_t *handle)
{
    struct control_place *place = handle->data;
    struct control *control = place->control;
    free_place(place);
    forget(control);
}

void control_place_close(struct control_place *place)
{
    if (!place)
        return;
    listener_close(&place->listener);
    uv_close((uv_handle_t *)&place->pipe, place_closed);
}

// The pipe takes ownership of the listener's descriptor.
static int listen_at(struct control_place *place)
{
    struct control *control = place->control;
    uv_pipe_init(control->loop, &place->pipe, 0);
    place->pipe.data = place;
    control->unfreed++;
    int rc = uv_pipe_open(&place->pipe, place->listener.fd);
    if (rc < 0)
        return rc;
    place->listener.fd = -1;
    return uv_listen((uv_stream_t *)&place->pipe, CONTROL_CLIENTS_MAX, client_comes);
}

// Returns NULL if out of memory.
static struct control_place *make_place(struct control *control, const char *path)
{
    struct control_place *place = calloc(1, sizeof *place);
    char *copy = strdup(path);
    if (!place || !copy) {
        free(copy);
        free(place);
        return NULL;
    }
    *place =
        (struct control_place){.control = control, .address = {.kind = SINK_UNIX, .path = copy}};
    return place;
}

static struct listener_options options_of(const struct control_place *place)
{
    return (struct listener_options){.address = &place->address, .mode = CONTROL_MODE};
}

int control_place_open(struct control_place **ret, struct control *control, const char *path,
                       char *why, size_t size)
{
    struct control_place *place = make_place(control, path);
    if (!place) {
        snprintf(why, size, "%s", strerror(ENOMEM));
        return -ENOMEM;
    }
    const struct listener_options options = options_of(place);
    int rc = listener_serve(&place->listener, &options, why, size);
    if (rc < 0) {
        free_place(place);
        return rc;
    }
    rc = listen_at(place);
    if (rc < 0) {
        snprintf(why, size, "cannot listen on %s: %s", path, strerror(-rc));
        control_place_close(place);
        return rc;
    }
    *ret = place;
    return 0;
}

void control_move(struct control *control, struct control_place *place)
{
    control_place_close(control->at);
    control->at = place;
    control->waits = false;
}

void control_check_path(struct control *control)
{
    char what[512];
    if (!control->at || !listener_is_gone(&control->at->listener))
        return;
    struct control_place *place = make_place(control, control->at->address.path);
    if (!place)
        return; // the next call tries again
    const struct listener_options options = options_of(place);
    int rc =
        listener_restore(&place->listener, &control->at->listener, &options, what, sizeof what);
    if (what[0])
        log_event(LOG_LEVEL_WARNING, "control: %s", what);
    if (rc < 0) {
        free_place(place);
        return;
    }
    rc = listen_at(place);
    if (rc == 0) {
        control_move(control, place);
    } else {
        log_event(LOG_LEVEL_ERROR, "control: cannot watch the socket: %s", strerror(-rc));
        control_place_close(place);
    }
}

int control_open(struct control **ret, uv_loop_t *loop, const char *path, control_handler *handle,
                 void *opaque, char *why, size_t size)
{
    struct control *control = calloc(1, sizeof *control);
    int rc = control ? 0 : -ENOMEM;
    if (rc == 0) {
        *control = (struct control){.loop = loop,
                                    .handle = handle,
                                    .opaque = opaque,
                                    .unfreed = 1,
                                    .admins = admin_group()};
        if (path)
            rc = control_place_open(&control->at, control, path, why, size);
    } else {
        snprintf(why, size, "%s", strerror(ENOMEM));
    }
    if (rc == 0)
        *ret = control;
    else
        control_close(control);
    return rc;
}

void control_close(struct control *control)
{
    if (!control)
        return;
    while (control->n_clients > 0)
        drop(control->clients[0]);
    control_move(control, NULL);
    forget(control);
}

// --- the path

#define NAME "control.sock"

static int join(char *to, const char *folder, size_t length, const char *rest)
{
    int n = snprintf(to, SOCKET_PATH_MAX + 1, "%.*s%s", (int)length, folder, rest);
    return n > SOCKET_PATH_MAX ? -ENAMETOOLONG : 0;
}

// In a unit, uses the first of its runtime directories, a list with colons.
static int default_path(char *to)
{
    const char *unit = getenv("RUNTIME_DIRECTORY"), *own = getenv("XDG_RUNTIME_DIR");
    if (unit && *unit)
        return join(to, unit, strcspn(unit, ":"), "/" NAME);
    if (geteuid() != 0 && own && *own)
        return join(to, own, strlen(own), "/framed/" NAME);
    strcpy(to, CONTROL_SYSTEM_PATH);
    return 0;
}

int control_path(const struct control_address *control, char *to)
{
    if (control->off)
        return -ENOENT;
    if (control->at.kind == SINK_NONE)
        return default_path(to);
    strcpy(to, control->at.path); // at most SOCKET_PATH_MAX bytes
    return 0;
}
