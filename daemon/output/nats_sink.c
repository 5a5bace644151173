// Lines to a subject of NATS servers, each a message. They wait in the output's queue; as many as
// one piece holds are lent to the connection's thread, and those that it did not settle are taken
// from the queue again, if they are still there. So a server that is away for long costs the oldest
// lines, as a reader does that is too slow.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/nats_url.h"
#include "daemon/base/clock.h"
#include "daemon/output/result_line.h"
#include "daemon/output/scene_line.h"
#include "daemon/output/sink.h"

static const int64_t QUIET_NS = 5 * INT64_C(1000000000); // without a loss: the subject is well

_Static_assert((int)LINE_BYTES_MAX <= NATS_LINES_BYTES &&
                   (int)SCENE_LINE_BYTES_MAX <= NATS_LINES_BYTES,
               "a line that does not fit would wait for ever");

struct nats_sink {
    struct sink sink;
    struct nats_feed feed;
    struct nats_url url;
    uint64_t next;        // line to come
    bool doubted, denied; // as of struct nats_lines
    uint64_t tried;
    bool failing;     // the log says that lines are lost
    int64_t lost_ns;  // CLOCK_MONOTONIC: when the last one was
    uv_timer_t timer; // once finishing: the grace
    bool finishing, closing;
};

static struct nats_sink *sink_of(struct nats_feed *feed)
{
    return (struct nats_sink *)((char *)feed - offsetof(struct nats_sink, feed));
}

// --- what became of lines

// Lines that are lost while there is a connection. What is lost for want of one, the link has
// logged.
static void log_losses(struct nats_sink *nats, uint64_t lost, const char *why)
{
    const int64_t now_ns = monotonic_ns();
    if (lost > 0)
        nats->lost_ns = now_ns;
    if (lost > 0 && !nats->failing)
        sink_event(&nats->sink, LOG_LEVEL_WARNING, "lines to NATS are lost: %s", why);
    else if (nats->failing && now_ns - nats->lost_ns > QUIET_NS)
        sink_event(&nats->sink, LOG_LEVEL_INFO, "lines reach NATS again");
    else
        return;
    nats->failing = lost > 0;
}

// Counts the lines up to the first that is not settled, which come next.
static void count_lines(struct nats_sink *nats, const struct nats_lines *lines)
{
    uint64_t delivered = 0, lost = 0;
    for (int i = 0; i < lines->n && lines->line[i].fate >= NATS_DELIVERED; i++) {
        delivered += lines->line[i].fate == NATS_DELIVERED;
        lost += lines->line[i].fate == NATS_LOST;
    }
    nats->sink.context.account->delivered += delivered;
    nats->sink.context.account->lost += lost;
    nats->next = lines->first + delivered + lost;
    nats->doubted = lines->doubted;
    nats->denied = lines->denied;
    nats->tried = lines->tried;
    if (delivered > 0 || lines->why[0])
        log_losses(nats, lines->why[0] ? lost : 0, lines->why);
}

// --- lines to the thread

static struct nats_lines *make_lines(const struct nats_sink *nats)
{
    const struct line_queue *queue = nats->sink.context.lines;
    const struct line *line;
    const int most = nats->doubted ? 1 : NATS_LINES_MAX;
    uint64_t next = nats->next;
    size_t bytes = 0;
    int n = 0;
    while (n < most && (line = line_queue_get(queue, next)) &&
           bytes + line->bytes <= NATS_LINES_BYTES) {
        bytes += line->bytes;
        next++;
        n++;
    }
    struct nats_lines *lines = n > 0 ? calloc(1, sizeof *lines + bytes) : NULL;
    if (!lines)
        return NULL; // where there is no memory, the next line tries again
    snprintf(lines->subject, sizeof lines->subject, "%s", nats->url.subject);
    lines->first = nats->next;
    lines->doubted = nats->doubted;
    lines->denied = nats->denied;
    lines->tried = nats->tried;
    for (bytes = 0; lines->n < n; lines->n++) {
        line = line_queue_get(queue, nats->next + (uint64_t)lines->n);
        memcpy(lines->text + bytes, line->text, line->bytes);
        lines->line[lines->n] = (struct nats_line){
            .at = (uint32_t)bytes, .bytes = (uint32_t)line->bytes - 1}; // without its newline
        bytes += line->bytes;
    }
    return lines;
}

static void timer_closed(uv_handle_t *handle)
{
    struct nats_sink *nats = handle->data;
    struct sink_context context = nats->sink.context;
    free(nats);
    context.closed(context.opaque);
}

// What has not been delivered by now is lost.
static void close_sink(struct nats_sink *nats)
{
    struct line_account *account = nats->sink.context.account;
    nats->closing = true;
    line_queue_offer(nats->sink.context.lines, account, 1);
    account->lost += nats->sink.context.lines->next - nats->next;
    nats_feed_close(&nats->feed);
    uv_close((uv_handle_t *)&nats->timer, timer_closed);
}

static void pump_nats(struct sink *base)
{
    struct nats_sink *nats = (struct nats_sink *)base;
    struct line_queue *queue = base->context.lines;
    if (nats->closing)
        return;
    line_queue_offer(queue, base->context.account, 1);
    if (nats->feed.lines)
        return;
    const bool up = nats_feed_is_up(&nats->feed);
    const uint64_t skipped = line_queue_skip(queue, &nats->next);
    base->context.account->lost += skipped;
    if (up && skipped > 0)
        log_losses(nats, skipped, "the servers take lines more slowly than they come");
    struct nats_lines *lines = up ? make_lines(nats) : NULL;
    if (lines)
        nats_feed_give(&nats->feed, lines);
    else if (nats->finishing && nats->next == queue->next)
        close_sink(nats);
}

static void lines_came_back(struct nats_feed *feed, struct nats_lines *lines)
{
    struct nats_sink *nats = sink_of(feed);
    count_lines(nats, lines);
    free(lines);
    pump_nats(&nats->sink);
}

static void connection_changed(struct nats_feed *feed, const char *why)
{
    struct nats_sink *nats = sink_of(feed);
    if (!nats_feed_is_up(feed) && why[0] && nats->sink.context.last_error)
        last_error_set(nats->sink.context.last_error, why);
    pump_nats(&nats->sink);
}

// --- life

static void grace_over(uv_timer_t *timer)
{
    struct nats_sink *nats = timer->data;
    if (!nats->closing)
        close_sink(nats);
}

static void finish_sink(struct sink *base, int grace_ms)
{
    struct nats_sink *nats = (struct nats_sink *)base;
    if (nats->closing)
        return;
    nats->finishing = true;
    uv_timer_start(&nats->timer, grace_over, (uint64_t)grace_ms, 0);
    pump_nats(base);
}

static int open_sink(struct sink **ret, const struct sink_context *context, char *why, size_t size)
{
    struct nats_sink *nats = calloc(1, sizeof *nats);
    int rc = nats ? 0 : -ENOMEM;
    if (rc == 0) {
        nats->sink = (struct sink){.driver = &nats_sink, .context = *context};
        nats->feed.changed = connection_changed;
        nats->feed.returned = lines_came_back;
        nats_url_parse(&nats->url, context->config->sink.url);
        rc = nats_feed_open(&nats->feed, context->nats, nats->url.servers);
    }
    if (rc < 0) {
        snprintf(why, size, "no connection to NATS can begin: %s", strerror(-rc));
        free(nats);
        return rc;
    }
    uv_timer_init(context->loop, &nats->timer);
    nats->timer.data = nats;
    *ret = &nats->sink;
    return 0;
}

static int count_servers(const struct sink *sink)
{
    return nats_feed_is_up(&((const struct nats_sink *)sink)->feed);
}

const struct sink_driver nats_sink = {
    .open = open_sink,
    .pump = pump_nats,
    .finish = finish_sink,
    .clients = count_servers,
};
