#include "daemon/output/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "config/object.h"
#include "daemon/base/clock.h"
#include "daemon/output/server.h"

// --- the queue

int line_queue_open(struct line_queue **ret)
{
    struct line_queue *queue = calloc(1, sizeof *queue);
    if (queue)
        queue->text = malloc(LINE_QUEUE_BYTES);
    if (!queue || !queue->text) {
        free(queue);
        return -ENOMEM;
    }
    *ret = queue;
    return 0;
}

void line_queue_close(struct line_queue *queue)
{
    if (queue)
        free(queue->text);
    free(queue);
}

static struct line *line_at(struct line_queue *queue, uint64_t number)
{
    return &queue->line[number % LINE_QUEUE_LINES];
}

// Stores lines back to back; a line that does not fit at the end goes to the start.
void line_queue_add(struct line_queue *queue, const char *text, size_t bytes, int64_t time_ns)
{
    const bool wraps = queue->end + bytes > LINE_QUEUE_BYTES;
    char *at = queue->text + (wraps ? 0 : queue->end);
    if (queue->next - queue->first == LINE_QUEUE_LINES)
        queue->first++;
    for (; queue->first < queue->next; queue->first++) {
        const struct line *oldest = line_at(queue, queue->first);
        const bool behind_end = wraps && oldest->text >= queue->text + queue->end;
        const bool in_place = oldest->text < at + bytes && oldest->text + oldest->bytes > at;
        if (!behind_end && !in_place)
            break;
    }
    memcpy(at, text, bytes);
    *line_at(queue, queue->next++) = (struct line){at, bytes, time_ns};
    queue->end = (size_t)(at - queue->text) + bytes;
}

void line_queue_offer(struct line_queue *queue, struct line_account *account, int readers)
{
    account->offered += (queue->next - queue->offered) * (uint64_t)readers;
    queue->offered = queue->next;
}

uint64_t line_queue_skip(const struct line_queue *queue, uint64_t *reader)
{
    const uint64_t lost = *reader < queue->first ? queue->first - *reader : 0;
    *reader += lost;
    return lost;
}

const struct line *line_queue_get(const struct line_queue *queue, uint64_t reader)
{
    return reader < queue->next ? line_at((struct line_queue *)queue, reader) : NULL;
}

// --- lines of results

// Makes no line without a reader.
static void take_result(struct results_receiver *receiver, const struct found *found)
{
    struct result_lines *lines = (struct result_lines *)receiver;
    if (!lines->is_followed && lines->config.sink.kind != SINK_FILE &&
        sink_clients(lines->sink) == 0)
        return;
    const size_t bytes = result_line(lines->line, found, &lines->labels);
    line_queue_add(lines->queue, lines->line, bytes, found->frame.capture_ns);
    sink_pump(lines->sink);
}

int result_lines_open(struct result_lines **ret, const struct output_config *output,
                      struct results *results)
{
    struct result_lines *lines = calloc(1, sizeof *lines);
    if (!lines)
        return -ENOMEM;
    lines->results = results;
    lines->output.name = results->config->name;
    lines->receiver.take = take_result;
    results_add_receiver(results, &lines->receiver);
    lines->line = malloc(LINE_BYTES_MAX);
    int rc = lines->line ? detections_copy(&lines->output, output) : -ENOMEM;
    if (rc == 0)
        rc = line_labels_open(&lines->labels, &lines->output.detections.labels);
    if (rc == 0)
        rc = line_queue_open(&lines->queue);
    if (rc < 0) {
        result_lines_close(lines);
        return rc;
    }
    lines->config = detections_as_output(&lines->output);
    *ret = lines;
    return 0;
}

static void sink_was_closed(void *opaque)
{
    struct result_lines *lines = opaque;
    lines->sink = NULL;
    lines->closed(lines, lines->opaque);
}

int result_lines_listen(struct result_lines *lines, uv_loop_t *loop, const char *camera,
                        struct last_error *last_error,
                        void (*closed)(struct result_lines *, void *opaque), void *opaque)
{
    const struct sink_context context = {
        .loop = loop,
        .camera = camera,
        .config = &lines->config,
        .lines = lines->queue,
        .account = &lines->results->lines,
        .last_error = last_error,
        .closed = sink_was_closed,
        .opaque = lines,
    };
    lines->closed = closed;
    lines->opaque = opaque;
    return sink_try_open(&lines->sink, &context, "detections: ", &lines->refused);
}

void result_lines_finish(struct result_lines *lines, int grace_ms)
{
    results_remove_receiver(lines->results, &lines->receiver);
    lines->finished = true;
    sink_yield(lines->sink, NULL);
    sink_finish(lines->sink, grace_ms);
}

void result_lines_close(struct result_lines *lines)
{
    if (!lines)
        return;
    results_remove_receiver(lines->results, &lines->receiver);
    detections_free(&lines->output);
    line_labels_close(&lines->labels);
    line_queue_close(lines->queue);
    free(lines->line);
    free(lines);
}

// --- lines of the analysis

static const int64_t GLANCE_NS = 50000000; // interval at which a wait checks *stop

int scene_lines_open(struct scene_lines **ret, struct ledger *ledger)
{
    struct scene_lines *lines = calloc(1, sizeof *lines);
    if (!lines)
        return -ENOMEM;
    lines->ledger = ledger;
    pthread_mutex_init(&lines->lock, NULL);
    condition_init(&lines->room);
    int rc = line_queue_open(&lines->queue);
    if (rc < 0)
        scene_lines_close(lines);
    else
        *ret = lines;
    return rc;
}

void scene_lines_close(struct scene_lines *lines)
{
    if (!lines)
        return;
    line_queue_close(lines->queue);
    pthread_cond_destroy(&lines->room);
    pthread_mutex_destroy(&lines->lock);
    free(lines);
}

static void wait_for_room(struct scene_lines *lines, const _Atomic bool *stop)
{
    while (lines->n == SCENE_RECORDS_MAX && !atomic_load(stop)) {
        condition_wait(&lines->room, &lines->lock, monotonic_ns() + GLANCE_NS);
    }
}

bool scene_lines_add(struct scene_lines *lines, uint64_t sequence,
                     const struct scene_record *record, const _Atomic bool *stop)
{
    pthread_mutex_lock(&lines->lock);
    if (stop)
        wait_for_room(lines, stop);
    const bool full = lines->n == SCENE_RECORDS_MAX;
    lines->first = (lines->first + full) % SCENE_RECORDS_MAX;
    lines->n -= full;
    lines->waiting[(lines->first + lines->n++) % SCENE_RECORDS_MAX] =
        (struct picture_record){sequence, *record};
    const bool first = lines->n == 1;
    pthread_mutex_unlock(&lines->lock);
    if (full)
        ledger_lose(lines->ledger, LOSS_OVERFLOW);
    return first;
}

static bool take_record(struct scene_lines *lines)
{
    pthread_mutex_lock(&lines->lock);
    const bool any = lines->n > 0;
    if (any) {
        lines->taken = lines->waiting[lines->first];
        lines->first = (lines->first + 1) % SCENE_RECORDS_MAX;
        lines->n--;
        pthread_cond_signal(&lines->room);
    }
    pthread_mutex_unlock(&lines->lock);
    return any;
}

void scene_lines_write(struct scene_lines *lines, const char *camera, const char *output,
                       bool has_reader, enum loss reason)
{
    while (take_record(lines)) {
        if (!has_reader) {
            ledger_lose(lines->ledger, reason);
            continue;
        }
        const struct picture_record *taken = &lines->taken;
        const size_t bytes =
            scene_line(lines->line, camera, output, taken->sequence, &taken->record);
        line_queue_add(lines->queue, lines->line, bytes, taken->record.info.capture_ns);
        ledger_emit(lines->ledger);
    }
}

// --- sockets: a slow reader loses whole lines

struct line_client {
    struct server_client base;
    uint64_t next; // number of the next line
    // The unsent rest of a line that the kernel took in part: the queue may drop that line.
    char *rest;
    size_t rest_bytes, rest_sent;
};

static void enter_line_client(struct server *server, struct server_client *base)
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

static int send_line_rest(struct line_client *client, struct line_account *account)
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

static int keep_line_rest(struct line_client *client, const char *text, size_t bytes)
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
    while ((rc = send_line_rest(client, account)) == 0 &&
           (line = line_queue_get(queue, client->next))) {
        ssize_t n = send_bytes(base->fd, line->text, line->bytes);
        if (n < 0)
            return (int)n;
        client->next++;
        const bool whole = (size_t)n == line->bytes;
        if (!whole)
            rc = keep_line_rest(client, line->text + n, line->bytes - (size_t)n);
        account->delivered += whole;
        account->lost += rc < 0;
        if (rc < 0)
            break;
    }
    return rc;
}

static void leave_line_client(struct server *server, struct server_client *base)
{
    struct line_client *client = (struct line_client *)base;
    const struct sink_context *context = &server->sink.context;
    line_queue_offer(context->lines, context->account, server->n_clients);
    context->account->lost += context->lines->next - client->next + (client->rest != NULL);
    free(client->rest);
}

// Counts the lines that stuck readers lose, too.
static void skip_lost(struct server *server)
{
    const struct sink_context *context = &server->sink.context;
    line_queue_offer(context->lines, context->account, server->n_clients);
    for (int i = 0; i < server->n_clients; i++)
        context->account->lost +=
            line_queue_skip(context->lines, &((struct line_client *)server->clients[i])->next);
}

const struct server_driver line_server = {
    .size = sizeof(struct server),
    .client_size = sizeof(struct line_client),
    .pump = skip_lost,
    .enter = enter_line_client,
    .send = send_lines,
    .leave = leave_line_client,
};
