// A socket whose readers get lines, each at its own pace. Who reads too slowly loses whole lines.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/output/server.h"

struct line_client {
    struct server_client base;
    uint64_t next; // line to come
    // The rest of a line that the kernel took a part of: the queue may give the line up.
    char *rest;
    size_t rest_bytes, rest_sent;
};

static void enter(struct server *server, struct server_client *base)
{
    ((struct line_client *)base)->next = server->sink.context.lines->next;
}

// Sends what the kernel takes: the bytes taken, or negative errno.
static ssize_t send_bytes(int fd, const char *bytes, size_t n)
{
    ssize_t sent;
    do
        sent = send(fd, bytes, n, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : sent;
}

static int send_rest(struct line_client *client)
{
    while (client->rest_sent < client->rest_bytes) {
        ssize_t n = send_bytes(client->base.fd, client->rest + client->rest_sent,
                               client->rest_bytes - client->rest_sent);
        if (n < 0)
            return (int)n;
        client->rest_sent += (size_t)n;
    }
    free(client->rest);
    client->rest = NULL;
    client->rest_bytes = client->rest_sent = 0;
    return 0;
}

static int keep_rest(struct line_client *client, const char *text, size_t bytes)
{
    client->rest = malloc(bytes);
    if (!client->rest)
        return -ENOMEM;
    memcpy(client->rest, text, bytes);
    client->rest_bytes = bytes;
    return 0;
}

static int send_lines(struct server *server, struct server_client *base)
{
    struct line_client *client = (struct line_client *)base;
    const struct line_queue *queue = server->sink.context.lines;
    const struct line *line;
    int rc = 0;
    *server->sink.context.lines_lost += line_queue_skip(queue, &client->next);
    while ((rc = send_rest(client)) == 0 && (line = line_queue_get(queue, client->next))) {
        ssize_t n = send_bytes(base->fd, line->text, line->bytes);
        if (n < 0)
            return (int)n;
        client->next++;
        if ((size_t)n < line->bytes)
            rc = keep_rest(client, line->text + n, line->bytes - (size_t)n);
        if (rc < 0)
            break;
    }
    return rc;
}

static void leave(struct server *server, struct server_client *base)
{
    struct line_client *client = (struct line_client *)base;
    *server->sink.context.lines_lost +=
        line_queue_skip(server->sink.context.lines, &client->next) + (client->rest != NULL);
    free(client->rest);
}

static const struct server_driver line_driver = {
    .client_size = sizeof(struct line_client),
    .enter = enter,
    .send = send_lines,
    .receive = server_discard_received,
    .leave = leave,
};

static int open_sink(struct sink **ret, const struct sink_context *context, char *why, size_t size)
{
    struct server *server;
    int rc = server_open(&server, sizeof *server, &line_driver, &line_sink, context, why, size);
    if (rc == 0)
        *ret = &server->sink;
    return rc;
}

// Readers that are stuck lose lines while they are.
static void pump_lines(struct sink *sink)
{
    struct server *server = (struct server *)sink;
    for (int i = 0; i < server->n_clients; i++)
        *sink->context.lines_lost +=
            line_queue_skip(sink->context.lines, &((struct line_client *)server->clients[i])->next);
    server_pump(sink);
}

const struct sink_driver line_sink = {
    .open = open_sink,
    .pump = pump_lines,
    .finish = server_finish,
    .clients = server_clients,
    .client = server_client,
    .listener = server_listener,
    .check_path = server_check_path,
    .yield = server_yield,
    .port = server_port,
};
