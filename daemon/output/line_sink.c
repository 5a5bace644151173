// A socket that sends lines to readers, each at its own pace. A slow reader loses whole lines.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/output/server.h"

struct line_client {
    struct server_client base;
    uint64_t next; // number of the next line
    // The unsent rest of a line that the kernel took in part: the queue may drop that line.
    char *rest;
    size_t rest_bytes, rest_sent;
};

static void enter(struct server *server, struct server_client *base)
{
    const struct sink_context *context = &server->sink.context;
    line_queue_offer(context->lines, context->account, server->n_clients - 1); // to the others
    ((struct line_client *)base)->next = context->lines->next;
}

// Returns the number of bytes that the kernel took, or a negative errno.
static ssize_t send_bytes(int fd, const char *bytes, size_t n)
{
    ssize_t sent;
    do
        sent = send(fd, bytes, n, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : sent;
}

static int send_rest(struct line_client *client, struct line_account *account)
{
    if (!client->rest)
        return 0;
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
    account->delivered++;
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
    struct line_account *account = server->sink.context.account;
    int rc = 0;
    account->lost += line_queue_skip(queue, &client->next);
    while ((rc = send_rest(client, account)) == 0 && (line = line_queue_get(queue, client->next))) {
        ssize_t n = send_bytes(base->fd, line->text, line->bytes);
        if (n < 0)
            return (int)n;
        client->next++;
        const bool whole = (size_t)n == line->bytes;
        if (!whole)
            rc = keep_rest(client, line->text + n, line->bytes - (size_t)n);
        account->delivered += whole;
        account->lost += rc < 0;
        if (rc < 0)
            break;
    }
    return rc;
}

static void leave(struct server *server, struct server_client *base)
{
    struct line_client *client = (struct line_client *)base;
    const struct sink_context *context = &server->sink.context;
    line_queue_offer(context->lines, context->account, server->n_clients);
    context->account->lost += context->lines->next - client->next + (client->rest != NULL);
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

// Counts the lines that stuck readers lose, too.
static void pump_lines(struct sink *sink)
{
    struct server *server = (struct server *)sink;
    line_queue_offer(sink->context.lines, sink->context.account, server->n_clients);
    for (int i = 0; i < server->n_clients; i++)
        sink->context.account->lost +=
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
