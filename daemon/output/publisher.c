// Publishes a camera's packets to an RTSP server, each as soon as it arrives. A job on libuv's
// thread pool connects and sends: a server that hangs delays only this sink. After a failure it
// retries with growing pauses, in which packets are lost.
#include <errno.h>
#include <libavcodec/avcodec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/object.h"
#include "config/url.h"
#include "daemon/base/clock.h"
#include "daemon/base/retry.h"
#include "daemon/output/muxer.h"
#include "daemon/output/packet_queue.h"
#include "daemon/output/sink.h"

enum {
    LOOK_MS = 500, // between checks for packets that caused no wake-up
    DELAY = 2,     // as for a file
};
static const int64_t STEADY_NS = 10 * INT64_C(1000000000); // connected for so long: resets pauses

struct publisher {
    struct sink sink;
    struct writer_job job;
    uv_timer_t timer;
    bool busy; // the job owns the members below, else the loop does
    bool finishing, ending;
    bool failing;        // last logged state
    _Atomic bool stop;   // ends connecting and sending
    struct muxer *muxer; // NULL: not connected
    struct AVCodecParameters *stream;
    struct timeline timeline;
    int64_t base;     // timeline time at which the connection began
    bool broken;      // packets up to the next keyframe are lost...
    enum loss reason; // ...for this reason
    struct retry retry;
    int64_t connected_ns, next_try_ns; // CLOCK_MONOTONIC
    int error;                         // of the last try: 0 or negative errno
    char why[512];
};

// --- the job

static void disconnect_server(struct publisher *publisher)
{
    muxer_close(publisher->muxer);
    publisher->muxer = NULL;
    avcodec_parameters_free(&publisher->stream);
    packet_queue_set_eager(publisher->sink.context.packets, false);
}

static void leave_failed_server(struct publisher *publisher, int rc)
{
    const int64_t now_ns = monotonic_ns();
    if (publisher->muxer && now_ns - publisher->connected_ns > STEADY_NS)
        retry_reset(&publisher->retry);
    disconnect_server(publisher);
    publisher->error = rc;
    publisher->broken = true;
    publisher->reason = rc == -ENOTSUP ? LOSS_CONFIG : LOSS_SINK;
    publisher->next_try_ns = now_ns + retry_next_ns(&publisher->retry, rc == -EACCES);
}

static int connect_server(struct publisher *publisher, struct queued_packet *keyframe)
{
    const struct sink_context *context = &publisher->sink.context;
    const int delay = keyframe->stream->video_delay;
    int rc = muxer_complete_stream(keyframe->stream, keyframe->av);
    if (rc < 0 || (publisher->muxer && muxer_same_stream(publisher->stream, keyframe->stream)))
        return rc;
    disconnect_server(publisher);
    if (!muxer_takes(keyframe->stream)) {
        snprintf(publisher->why, sizeof publisher->why,
                 "the camera sends %s, of which no copy can be made (" MUXER_CODECS ")",
                 avcodec_get_name(keyframe->stream->codec_id));
        return -ENOTSUP;
    }
    rc = muxer_open_server(&publisher->muxer, context->config, keyframe->stream, &publisher->stop,
                           publisher->why, sizeof publisher->why);
    if (rc < 0)
        return rc;
    publisher->stream = keyframe->stream;
    keyframe->stream = NULL;
    publisher->base = INT64_MIN;
    publisher->error = 0;
    publisher->connected_ns = monotonic_ns();
    timeline_begin(&publisher->timeline, delay > DELAY ? delay : DELAY);
    packet_queue_set_eager(context->packets, true);
    return 0;
}

// Returns 0 if the packet was sent.
static int send_packet(struct publisher *publisher, struct queued_packet *packet)
{
    struct packet_queue *packets = publisher->sink.context.packets;
    int rc = 0;
    if (packet->stream && monotonic_ns() < publisher->next_try_ns)
        return -EAGAIN;
    if (packet->stream) {
        const bool connects = !publisher->muxer;
        rc = connect_server(publisher, packet);
        publisher->broken = rc < 0;
        // Packets that arrived while connecting are old by now.
        if (rc == 0 && connects && packet_queue_skip(packets, LOSS_SINK)) {
            publisher->broken = true;
            publisher->reason = LOSS_SINK;
        }
    }
    if (rc < 0) {
        leave_failed_server(publisher, rc);
        return rc;
    }
    if (publisher->broken)
        return -EAGAIN;
    struct packet_times times =
        timeline_next(&publisher->timeline, packet->pts_ns, packet->received_ns);
    if (publisher->base == INT64_MIN)
        publisher->base = times.pts;
    times.pts -= publisher->base;
    times.dts -= publisher->base;
    rc = muxer_write(publisher->muxer, packet->av, &times, 0);
    if (rc < 0) {
        snprintf(publisher->why, sizeof publisher->why, "the RTSP server takes no more: %s",
                 strerror(-rc));
        leave_failed_server(publisher, rc);
    }
    return rc;
}

static void publish_packets(uv_work_t *job)
{
    struct publisher *publisher = job->data;
    const struct sink_context *context = &publisher->sink.context;
    struct queued_packet *packet;
    while (!atomic_load(&publisher->stop) && (packet = packet_queue_take(context->packets))) {
        if (send_packet(publisher, packet) == 0)
            ledger_emit(context->ledger);
        else
            ledger_lose(context->ledger, publisher->reason);
        queued_packet_free(packet);
    }
}

static void leave_server(uv_work_t *job)
{
    disconnect_server(job->data);
}

// --- the loop

static void timer_closed(uv_handle_t *handle)
{
    struct publisher *publisher = handle->data;
    struct sink_context context = publisher->sink.context;
    free(publisher);
    context.closed(context.opaque);
}

static void server_left(uv_work_t *job, int status)
{
    struct publisher *publisher = job->data;
    (void)status; // jobs are never cancelled
    packet_queue_set_sink(publisher->sink.context.packets, POOL_SINK_STOPPED);
    uv_close((uv_handle_t *)&publisher->timer, timer_closed);
}

static void start_job(struct publisher *publisher, uv_work_cb work, uv_after_work_cb done)
{
    publisher->busy = true;
    writers_start(publisher->sink.context.loop, &publisher->job, work, done);
}

static void end_publisher(struct publisher *publisher)
{
    publisher->ending = true;
    start_job(publisher, leave_server, server_left);
}

static void log_failure(struct publisher *publisher)
{
    char url[512];
    const bool fails = publisher->error < 0;
    if (fails == publisher->failing || publisher->finishing)
        return;
    publisher->failing = fails;
    config_sink_url(publisher->sink.context.config, url, sizeof url);
    if (fails)
        sink_event(&publisher->sink, LOG_LEVEL_ERROR, "%s; tried again until it works",
                   publisher->why);
    else
        sink_event(&publisher->sink, LOG_LEVEL_INFO, "publishing to %s again", url);
}

static void pump_publisher(struct sink *base);

static void packets_published(uv_work_t *job, int status)
{
    struct publisher *publisher = job->data;
    (void)status;
    publisher->busy = false;
    log_failure(publisher);
    if (publisher->finishing)
        end_publisher(publisher);
    else
        pump_publisher(&publisher->sink);
}

static void pump_publisher(struct sink *base)
{
    struct publisher *publisher = (struct publisher *)base;
    if (!publisher->busy && !publisher->ending && packet_queue_has_next(base->context.packets))
        start_job(publisher, publish_packets, packets_published);
}

static void time_to_look(uv_timer_t *timer)
{
    pump_publisher(timer->data);
}

static void finish_sink(struct sink *base, int grace_ms)
{
    struct publisher *publisher = (struct publisher *)base;
    (void)grace_ms; // unsent packets of a live stream are useless after its end
    if (publisher->finishing)
        return;
    publisher->finishing = true;
    atomic_store(&publisher->stop, true);
    packet_queue_set_sink(base->context.packets, POOL_SINK_FINISHING);
    if (!publisher->busy)
        end_publisher(publisher);
}

static int open_sink(struct sink **ret, const struct sink_context *context, char *why, size_t size)
{
    struct publisher *publisher = calloc(1, sizeof *publisher);
    if (!publisher) {
        snprintf(why, size, "out of memory");
        return -ENOMEM;
    }
    publisher->sink = (struct sink){.driver = &publisher_sink, .context = *context};
    publisher->broken = true;
    publisher->reason = LOSS_DAMAGED;
    publisher->retry.seed = (uint32_t)monotonic_ns();
    uv_timer_init(context->loop, &publisher->timer);
    publisher->timer.data = publisher->job.request.data = publisher;
    uv_timer_start(&publisher->timer, time_to_look, LOOK_MS, LOOK_MS);
    *ret = &publisher->sink;
    return 0;
}

static int count_servers(const struct sink *sink)
{
    const struct publisher *publisher = (const struct publisher *)sink;
    return !publisher->failing;
}

const struct sink_driver publisher_sink = {
    .open = open_sink,
    .pump = pump_publisher,
    .finish = finish_sink,
    .clients = count_servers,
};
