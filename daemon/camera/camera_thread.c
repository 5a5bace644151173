#include "daemon/camera/camera_thread.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/url.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/camera/capture_time.h"
#include "daemon/camera/delay.h"
#include "daemon/decode/decoder.h"
#include "daemon/decode/stall.h"
#include "daemon/decode/video_signal.h"
#include "daemon/device/budget.h"
#include "daemon/input/demux.h"
#include "daemon/input/orientation.h"

static const int64_t JUMP_NS = 10 * INT64_C(1000000000); // between two pictures: another time
static const int64_t NO_PICTURE = INT64_MIN;
// A name is looked up without a glance at deadlines: by three servers, twice, 5 s each, and that
// for two names where the first is completed.
static const int64_t LOOKUP_NS = 60 * INT64_C(1000000000);
// Cameras come to a device in turn, and all at once where another device takes over.
static const int64_t TURN_NS = 60 * INT64_C(1000000000);

struct feed {
    struct feed_context context;
    struct transform *pipeline;
    struct subscriptions *subscriptions;
    _Atomic(struct subscriptions *) next_subscriptions; // from the loop thread; NULL: no others
    struct watchdog heartbeat;
    struct device_lease lease;
    bool cpu_only; // the device had no room for pictures of this size, in this connection
    bool moves;    // to another device, before the next picture
    struct demux *ingest;
    struct decoder *decoder;    // kept over connections; NULL: none
    char decoder_told[64];      // what context.shows was told of it
    int width, height;          // of the last picture; 0 before the first of a connection
    int orientation;            // of the last picture: enum orientation, or what is wrong with it
    struct video_signal signal; // of the pictures up to the last
    int64_t last_pts_ns; // of the last picture; NO_PICTURE before the first since ingest began anew
    struct delay lag;
    struct capture_time capture_time;
    struct decode_stall drought;
    bool live;  // so is the input of this connection
    bool shown; // a picture came since the start
    bool cut_short_told;
};

// --- the way of a frame: demux_read -> decode_send -> decode_next -> transform_submit

static void follow_outputs(struct feed *feed);
static int follow_devices(struct feed *feed);
static int forward_pictures(struct feed *feed);
static void forward_picture(struct feed *feed, struct frame *frame);
static bool dries_up(struct feed *feed, const struct packet *packet);
static bool loops(const struct feed *feed);
static int start_over(struct feed *feed);
static int judge_end(struct feed *feed, int input);

// Moves packets to pictures until the stream ends or breaks: -ENODATA at the end, -EBADMSG where no
// picture comes of them any more, other negative errno. What came before it broke is whole, and is
// given out like before an end.
static int relay(struct feed *feed)
{
    struct packet packet;
    int rc = 0;
    stage_timing_start(feed->context.progress);
    while (rc == 0) {
        watchdog_begin(&feed->heartbeat, STEP_READING, demux_read_ns(feed->ingest));
        int input = judge_end(feed, demux_read(feed->ingest, &packet));
        stage_timing_lap(feed->context.progress, STAGE_READ);
        watchdog_begin(&feed->heartbeat, STEP_DECODING, 0);
        if (input == -ECANCELED)
            return input;
        if (input == 0 && dries_up(feed, &packet))
            return -EBADMSG;
        rc = decode_send(feed->decoder, input == 0 ? &packet : NULL);
        stage_timing_lap(feed->context.progress, STAGE_DECODE);
        if (rc == -EBADMSG) {
            transform_withheld(feed->pipeline);
            rc = 0;
        }
        if (rc == 0)
            rc = forward_pictures(feed);
        if (rc == -ENODATA && input < 0)
            rc = input;
        if (rc == -ENODATA && loops(feed))
            rc = start_over(feed);
    }
    return rc;
}

// Every picture that the decoder has now. 0: it wants packets; -ENODATA: it was flushed, is empty.
static int forward_pictures(struct feed *feed)
{
    for (;;) {
        struct frame frame;
        follow_outputs(feed);
        int rc = follow_devices(feed);
        if (rc < 0)
            return rc;
        watchdog_begin(&feed->heartbeat, STEP_DECODING, 0);
        rc = decode_next(feed->decoder, &frame);
        stage_timing_lap(feed->context.progress, STAGE_DECODE);
        if (rc == -EAGAIN)
            return 0;
        if (rc == -EBADMSG)
            transform_withheld(feed->pipeline);
        else if (rc < 0)
            return rc;
        else
            forward_picture(feed, &frame);
        if (atomic_load(feed->context.stop))
            return -ECANCELED;
    }
}

static bool turn(struct feed *feed, struct frame *frame);
static void follow_signal(struct feed *feed, struct frame *frame);
static void picture_came(struct feed *feed, const struct frame *frame, bool turned);
static int64_t behind(struct feed *feed, const struct frame_info *info);

static void complain(struct feed *feed, const char *what)
{
    log_event(LOG_LEVEL_ERROR, "%s", what);
    feed->context.complains(feed->context.opaque, what);
}

// The frame is counted as lost; the camera goes on.
static void backend_failed(struct feed *feed, int rc)
{
    char what[128];
    snprintf(what, sizeof what, "backend %s failed: %s", feed->lease.driver->name, strerror(-rc));
    complain(feed, what);
}

static void forward_picture(struct feed *feed, struct frame *frame)
{
    int rate_num, rate_den;
    follow_signal(feed, frame);
    picture_came(feed, frame, turn(feed, frame));
    frame->info.epoch = *feed->context.epoch;
    capture_time_rise(&feed->capture_time, &frame->info);
    frame->info.delay_ns = behind(feed, &frame->info);
    demux_rate(feed->ingest, &rate_num, &rate_den);
    stage_timing_submit(feed->context.progress);
    transform_held_up(feed->pipeline, decoder_held_up_ns(feed->decoder));
    int rc = transform_submit(feed->pipeline, frame, rate_num, rate_den);
    stage_timing_lap(feed->context.progress, STAGE_SUBMIT);
    const char *notice = transform_notice(feed->pipeline);
    if (notice)
        complain(feed, notice);
    if (rc == -ENOSPC)
        feed->cpu_only = feed->moves = true;
    else if (rc < 0)
        backend_failed(feed, rc);
}

// --- what a picture tells of the camera

static void show(struct feed *feed, const struct frame *first)
{
    const struct feed_context *context = &feed->context;
    snprintf(feed->decoder_told, sizeof feed->decoder_told, "%s", decoder_describe(feed->decoder));
    context->shows(context->opaque, first, feed->decoder_told, demux_describe(feed->ingest));
}

static void first_picture(struct feed *feed, const struct frame *frame)
{
    show(feed, frame);
    if (feed->shown)
        ++*feed->context.epoch;
    feed->shown = true;
}

static void ask_device_again(struct feed *feed);

static void size_changed(struct feed *feed, const struct frame *frame)
{
    log_event(LOG_LEVEL_INFO, "picture size changed from %dx%d to %dx%d", feed->width, feed->height,
              frame->image.width, frame->image.height);
    ++*feed->context.epoch;
    ask_device_again(feed);
}

static bool any_keeps_orientation(const struct subscriptions *outputs)
{
    for (int i = 0; i < outputs->n; i++)
        if (outputs->list[i].output->config->kernel == OP_YUV)
            return true;
    return false;
}

static void tell_orientation(const struct feed *feed, int orientation)
{
    if (orientation < 0)
        log_event(LOG_LEVEL_WARNING, "the stream says that its pictures are to be turned by other "
                                     "than 90, 180 or 270 degrees: they stay as coded");
    else
        log_event(LOG_LEVEL_INFO, "pictures are %s, as the stream says%s",
                  orientation_name((enum orientation)orientation),
                  any_keeps_orientation(feed->subscriptions) ? "; in yuv outputs they stay as coded"
                                                             : "");
}

// What the pictures say themselves goes before what the container says. A change of it is one of
// geometry.
static bool turn(struct feed *feed, struct frame *frame)
{
    int orientation = decoder_orientation(feed->decoder);
    if (orientation == -ENODATA)
        orientation = demux_orientation(feed->ingest);
    if (feed->context.config->rotate == TURNING_IGNORE)
        orientation = ORIENTATION_UPRIGHT;
    bool turned = orientation != feed->orientation;
    if (turned)
        tell_orientation(feed, orientation);
    feed->orientation = orientation;
    frame->image.orientation =
        orientation < 0 ? ORIENTATION_UPRIGHT : (enum orientation)orientation;
    return turned;
}

static bool has_last_size(const struct feed *feed, const struct frame *frame)
{
    return feed->width == frame->image.width && feed->height == frame->image.height;
}

// What another connection or another size begins with is another stream.
static void follow_signal(struct feed *feed, struct frame *frame)
{
    struct video_signal *signal = &feed->signal;
    const struct video_signal before = *signal;
    video_signal_follow(signal, &frame->info, !has_last_size(feed, frame));
    if (signal->field_order != before.field_order)
        log_event(signal->field_order == FIELDS_NONE ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "%s",
                  video_signal_explain_fields(signal));
    if (signal->hdr != before.hdr)
        log_event(signal->hdr ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "%s",
                  video_signal_explain_hdr(signal));
}

// Back in time, or so far ahead that the pictures between are missing or the clock was set.
static bool time_jumps(const struct feed *feed, int64_t pts_ns)
{
    return feed->last_pts_ns != NO_PICTURE &&
           (pts_ns < feed->last_pts_ns || pts_ns - feed->last_pts_ns > JUMP_NS);
}

// By when they were decoded, since they arrive in another order than that of their timestamps.
// Other inputs come when their program gives them, whatever their timestamps say.
static int64_t behind(struct feed *feed, const struct frame_info *info)
{
    if (config_url_kind(feed->context.config->url) != URL_RTSP)
        return 0;
    return delay_read(&feed->lag, info->pts_ns, info->decoded_ns);
}

static void picture_came(struct feed *feed, const struct frame *frame, bool turned)
{
    struct stream_memory memory = {0};
    const char *notice = decoder_notice(feed->decoder);
    if (notice)
        log_event(LOG_LEVEL_WARNING, "%s", notice);
    if (feed->width == 0) {
        first_picture(feed, frame);
    } else if (!has_last_size(feed, frame)) {
        size_changed(feed, frame);
    } else if (time_jumps(feed, frame->info.pts_ns)) {
        log_event(LOG_LEVEL_INFO, "the stream's time jumped");
        ++*feed->context.epoch;
        feed->lag = (struct delay){0};
        capture_time_doubt(&feed->capture_time, &frame->info);
    } else if (capture_time_jumps(&feed->capture_time, &frame->info)) {
        log_event(LOG_LEVEL_INFO, "the clock that the capture times are by went back");
        ++*feed->context.epoch;
    } else if (turned) {
        ++*feed->context.epoch;
    }
    if (strcmp(feed->decoder_told, decoder_describe(feed->decoder)) != 0)
        show(feed, NULL);
    decoder_memory(feed->decoder, &memory);
    stage_timing_memory(feed->context.progress, &memory);
    stage_timing_picture(feed->context.progress, frame);
    feed->width = frame->image.width;
    feed->height = frame->image.height;
    feed->last_pts_ns = frame->info.pts_ns;
}

// Another connection may begin with a keyframe, or say that the codec is another one by now. Files
// say what they are once and for all.
static bool dries_up(struct feed *feed, const struct packet *packet)
{
    return feed->live &&
           decode_stall_packet(&feed->drought, decoder_pictures(feed->decoder), packet->received_ns,
                               packet->keyframe, 2 * feed->context.config->media_timeout.ns);
}

// A file that gave no picture from its start to its end would only make the camera spin.
static bool loops(const struct feed *feed)
{
    return feed->context.config->loop && feed->last_pts_ns != NO_PICTURE &&
           !atomic_load(feed->context.stop);
}

static const char CUT_SHORT[] =
    "the file is cut short: it ends within a picture, or before the last one that it lists";

// In a loop a file that is cut short goes on like a whole one.
static int judge_end(struct feed *feed, int input)
{
    if (input != -EPROTO || !feed->context.config->loop)
        return input;
    if (!feed->cut_short_told)
        log_event(LOG_LEVEL_WARNING, "%s", CUT_SHORT);
    feed->cut_short_told = true;
    return -ENODATA;
}

// `loop`: back to the file's start. What is before and after does not belong together: a new epoch.
static int start_over(struct feed *feed)
{
    watchdog_begin(&feed->heartbeat, STEP_READING, demux_read_ns(feed->ingest));
    int rc = demux_rewind(feed->ingest);
    if (rc < 0)
        return rc;
    decoder_restart(feed->decoder);
    feed->last_pts_ns = NO_PICTURE;
    ++*feed->context.epoch;
    return 0;
}

// --- the lease on a device

static void release_device(struct feed *feed)
{
    transform_drain(feed->pipeline);
    if (feed->decoder)
        decoder_leave(feed->decoder);
    feed_leave(feed);
}

static int acquire_device(struct feed *feed)
{
    const struct feed_context *context = &feed->context;
    int rc =
        device_acquire(context->devices, feed->cpu_only ? DEVICE_CPU : DEVICE_AUTO, &feed->lease);
    if (rc < 0)
        return rc;
    atomic_store(&context->progress->backend, feed->lease.driver->name);
    transform_attach(feed->pipeline);
    rc =
        decoder_join(feed->decoder, &(struct decode_target){feed->lease.driver, feed->lease.backend,
                                                            feed->lease.nvdec});
    if (rc < 0)
        release_device(feed);
    return rc;
}

// The device may have room for what comes now.
static void ask_device_again(struct feed *feed)
{
    feed->moves |= feed->cpu_only && feed->lease.device;
    feed->cpu_only = false;
}

struct subscriptions *feed_subscribe(struct feed *feed, struct subscriptions *subscriptions)
{
    struct subscriptions *never_taken =
        atomic_exchange(&feed->next_subscriptions, subscriptions_acquire(subscriptions));
    return never_taken && subscriptions_release(never_taken) ? never_taken : NULL;
}

struct subscriptions *feed_update_subscriptions(struct feed *feed)
{
    if (!atomic_load(&feed->next_subscriptions))
        return NULL;
    struct subscriptions *former = feed->subscriptions;
    feed->subscriptions = atomic_exchange(&feed->next_subscriptions, NULL);
    transform_subscribe(feed->pipeline, feed->subscriptions);
    return subscriptions_release(former) ? former : NULL;
}

// The camera's connection and decoder do not notice.
static void follow_outputs(struct feed *feed)
{
    struct subscriptions *released = feed_update_subscriptions(feed);
    if (released)
        event_post(feed->context.events, &released->released);
}

// Goes over to the device that has taken over.
static int follow_devices(struct feed *feed)
{
    if (!feed->moves && !device_is_stale(&feed->lease))
        return 0;
    feed->moves = false;
    watchdog_begin(&feed->heartbeat, STEP_MOVING, TURN_NS);
    const int64_t begun_ns = monotonic_ns();
    release_device(feed);
    int rc = acquire_device(feed);
    transform_held_up(feed->pipeline, monotonic_ns() - begun_ns);
    return rc;
}

// --- one connection

static int open_decoder(struct feed *feed)
{
    const struct camera_config *config = feed->context.config;
    struct decode_options options = {
        // Whether NVDEC is there was the start's question; if it fails, the cpu is to go on.
        .decode = config->decode == DECODE_NVDEC ? DECODE_AUTO : config->decode,
        .threads = config->decode_threads,
        .in_flight = FRAMES_IN_FLIGHT_MAX,
        .damaged = config->damaged,
        .low_delay = demux_is_live(config->url),
    };
    return decoder_open(&feed->decoder, demux_parameters(feed->ingest), &options);
}

static void close_decoder(struct feed *feed)
{
    decoder_close(feed->decoder);
    feed->decoder = NULL;
}

// The decoder of the connection before where it will do: NVDEC takes long to open.
static int prepare_decoder(struct feed *feed)
{
    if (feed->decoder && decoder_accepts(feed->decoder, demux_parameters(feed->ingest))) {
        decoder_restart(feed->decoder);
        return feed->lease.device ? 0 : acquire_device(feed);
    }
    close_decoder(feed);
    int rc = open_decoder(feed);
    if (rc == 0)
        rc = feed->lease.device
                 ? decoder_join(feed->decoder,
                                &(struct decode_target){feed->lease.driver, feed->lease.backend,
                                                        feed->lease.nvdec})
                 : acquire_device(feed);
    return rc;
}

static void explain_end(const struct feed *feed, int rc, char *why, size_t size)
{
    if (rc == -EBADMSG)
        snprintf(why, size, "no picture could be decoded for %.0f s",
                 (double)feed->drought.dry_ns / 1e9);
    else
        snprintf(why, size, "%s",
                 rc == -ENODATA     ? "the stream ended"
                 : rc == -ETIMEDOUT ? "silent for longer than media_timeout"
                 : rc == -EPROTO    ? CUT_SHORT
                 : rc == -ERESTART  ? "the numbers of its packets went back"
                 : rc == -ENOTSUP   ? "no decoder for this stream"
                                    : strerror(-rc));
}

int feed_run(struct feed *feed, char *why, size_t size)
{
    const struct feed_context *context = &feed->context;
    const struct camera_config *config = context->config;
    watchdog_begin(&feed->heartbeat, STEP_MOVING, TURN_NS);
    follow_outputs(feed);
    if (device_is_stale(&feed->lease))
        release_device(feed); // connecting may take long
    watchdog_begin(&feed->heartbeat, STEP_CONNECTING, config->connect_timeout.ns + LOOKUP_NS);
    int rc = demux_open(&feed->ingest, config, context->stop, why, size);
    if (rc < 0)
        return rc;
    if (!feed->shown)
        malloc_trim(0); // of the pictures that libavformat decoded to know the stream
    feed->width = feed->height = 0;
    feed->last_pts_ns = NO_PICTURE;
    feed->lag = (struct delay){0};
    feed->live = demux_is_live(context->config->url);
    decode_stall_connect(&feed->drought);
    ask_device_again(feed);
    watchdog_begin(&feed->heartbeat, STEP_MOVING, TURN_NS);
    const int64_t begun_ns = monotonic_ns();
    rc = prepare_decoder(feed);
    transform_held_up(feed->pipeline, monotonic_ns() - begun_ns);
    if (rc == 0)
        rc = relay(feed);
    explain_end(feed, rc, why, size);
    if (feed->width == 0 || rc == -ENOTSUP || rc == -EBADMSG)
        close_decoder(feed); // who knows what it is at
    watchdog_begin(&feed->heartbeat, STEP_CLOSING, config->close_timeout.ns);
    demux_close(feed->ingest);
    feed->ingest = NULL;
    return rc;
}

// --- from the start to the end

int feed_open(struct feed **ret, const struct feed_context *context)
{
    struct feed *feed = calloc(1, sizeof *feed);
    if (!feed)
        return -ENOMEM;
    feed->context = *context;
    struct transform_context pipeline = {
        .lease = &feed->lease,
        .events = context->events,
        .subscriptions = context->subscriptions,
        .fps = context->config->fps,
        .stop = context->stop,
        .heartbeat = &feed->heartbeat,
        .decode = context->decode,
        .process = context->process,
    };
    int rc = transform_open(&feed->pipeline, &pipeline);
    if (rc < 0) {
        free(feed);
        return rc;
    }
    feed->subscriptions = subscriptions_acquire(context->subscriptions);
    *ret = feed;
    return 0;
}

struct watchdog *feed_heartbeat(struct feed *feed)
{
    return &feed->heartbeat;
}

void feed_drain(struct feed *feed)
{
    transform_drain(feed->pipeline);
    close_decoder(feed);
}

void feed_leave(struct feed *feed)
{
    transform_detach(feed->pipeline);
    device_release(&feed->lease);
}

void feed_wake(struct feed *feed)
{
    transform_wake(feed->pipeline);
}

void feed_close(struct feed *feed)
{
    if (!feed)
        return;
    feed_drain(feed);
    feed_leave(feed);
    transform_close(feed->pipeline);
    subscriptions_release(feed->subscriptions);
    free(feed);
}
