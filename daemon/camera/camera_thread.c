#include "daemon/camera/camera_thread.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/url.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/camera/outage.h"
#include "daemon/camera/stream.h"
#include "daemon/codec/buffers.h"
#include "daemon/codec/decoder.h"
#include "daemon/codec/stall.h"
#include "daemon/device/budget.h"
#include "daemon/output/subscriptions.h"
#include "daemon/source/demux.h"

static const int64_t LOGIN_NS = INT64_C(1000000000);    // between checks for a reload
static const int64_t WARM_NS = 2500 * INT64_C(1000000); // of a pause, with everything kept open
// Long, since all cameras of a device that fails move to another one at once.
static const int64_t CHANGE_DEVICE_NS = 60 * INT64_C(1000000000);

struct camera_thread {
    struct camera_thread_context context;
    pthread_t id;
    bool running; // id must be joined
    struct subscriptions *subscriptions;
    _Atomic(struct subscriptions *) next_subscriptions; // from the loop thread; NULL: no change
    struct demux_memory *memory;
    struct demux *demux;     // NULL: not connected
    struct decoder *decoder; // kept across connections; NULL: none
    struct scene *scene;
    struct camera_work *work;
    struct device_lease lease;
    bool live; // the input can come back
    bool cut_short_logged;
    struct stream stream;
    struct decode_stall stall;
    struct outage outage;
    _Atomic bool stop;
    pthread_mutex_t lock; // guards the wait for the next try
    pthread_cond_t wake;
};

// --- the way of a frame

static bool is_fenced(struct camera_thread *t);
static bool is_stalled(struct camera_thread *t, const struct packet *packet);
static int camera_update(struct camera_thread *t);
static void describe_frame(struct camera_thread *t, struct frame *frame);
static void note_submitted(struct camera_thread *t, int rc);
static int end_of_stream(struct camera_thread *t, int input);

// Passes frames on until the stream ends or breaks. Packets received before are complete, so the
// decoder is drained. Returns -ENODATA at the end, -ECANCELED, -ETIME if no picture was decoded for
// too long, or another negative errno.
static int pass_frames(struct camera_thread *t)
{
    struct packet packet;
    struct frame frame;
    int rc = 0;
    while (rc == 0) {
        const int input = demux_read(t->demux, &packet); // 0, or the reason for no packet
        if (input == -ECANCELED || is_fenced(t))
            return -ECANCELED;
        if (input == 0) {
            camera_report_packet(t->context.report, &packet);
            copies_packet(t->subscriptions, t->context.events, &packet, demux_parameters(t->demux),
                          &t->stop, &t->context.report->stages);
        }
        if (input == 0 && is_stalled(t, &packet))
            return -ETIME;
        rc = decoder_send(t->decoder, input == 0 ? &packet : NULL); // NULL: the end
        while (rc == 0 && (rc = camera_update(t)) == 0 &&
               (rc = is_fenced(t) ? -ECANCELED : decoder_receive(t->decoder, &frame)) == 0) {
            describe_frame(t, &frame);
            note_submitted(t, work_submit(t->work, &frame)); // takes the frame
            camera_changes_alarms(&t->context.report->changes,
                                  atomic_load(&t->context.report->scene.alarms));
        }
        if (rc == -EAGAIN) // the decoder needs packets
            rc = 0;
        else if (rc == -ENODATA) // the decoder is drained
            rc = end_of_stream(t, input);
    }
    return rc;
}

// After the fence another node may show the camera, even if this process was frozen or hung.
static bool is_fenced(struct camera_thread *t)
{
    const _Atomic int64_t *fence_ns = t->context.config->fence_ns;
    const int64_t now_ns = boottime_ns(); // before the fence is read, which may be moved
    if (!fence_ns || now_ns < atomic_load(fence_ns))
        return false;
    atomic_store(&t->stop, true);
    return true;
}

// Another connection may begin with a keyframe, or announce another codec. A file never changes.
static bool is_stalled(struct camera_thread *t, const struct packet *packet)
{
    if (packet->old || (!packet->keyframe && decoder_decodes(t->decoder) == PICTURES_KEYFRAMES))
        return false;
    return t->live && !decoder_waits(t->decoder) &&
           decode_stall_packet(&t->stall, packet, decoder_pictures(t->decoder),
                               decoder_failures(t->decoder), 2 * demux_patience_ns(t->demux));
}

static const char CUT_SHORT[] =
    "the file is cut short: it ends within a picture, or before the last one that it lists";

// With `loop` restarts the file, even one that is cut short. Returns 0, or why the stream ends.
// `input` is the reason for no packets.
static int end_of_stream(struct camera_thread *t, int input)
{
    if (input == -EREMCHG) { // it continues as another stream
        decoder_restart(t->decoder);
        stream_rewind(&t->stream);
        return 0;
    }
    const bool at_end = input == -ENODATA || input == -EPROTO;
    if (!at_end || !t->context.config->loop)
        return input;
    if (input == -EPROTO && !t->cut_short_logged)
        log_event(LOG_LEVEL_WARNING, "%s", CUT_SHORT);
    t->cut_short_logged |= input == -EPROTO;
    // Looping over a file without a picture would only spin.
    if (!t->stream.has_picture || atomic_load(&t->stop))
        return -ENODATA;
    int rc = demux_rewind(t->demux);
    if (rc < 0)
        return rc;
    decoder_restart(t->decoder);
    stream_rewind(&t->stream);
    return 0;
}

// --- a picture

// The orientation in the pictures takes precedence over the container's.
static int orientation_of_pictures(const struct camera_thread *t)
{
    const int orientation = decoder_orientation(t->decoder);
    if (t->context.config->rotate == TURNING_IGNORE)
        return ORIENTATION_UPRIGHT;
    return orientation == -ENODATA ? demux_orientation(t->demux) : orientation;
}

// A camera that keeps failing is logged as running only once it has stayed up.
static void log_running(struct camera_thread *t, const struct frame *frame, bool begins)
{
    const bool over = outage_is_over(&t->outage);
    if (over || (begins && !outage_is_quiet(&t->outage)))
        log_event(LOG_LEVEL_INFO, "running%s: %s, decoder %s, %s%s", over ? " again for 10 s" : "",
                  demux_describe(t->demux), decoder_describe(t->decoder),
                  pixel_format_name(frame->image.format),
                  frame->image.memory == MEMORY_CUDA ? " on the device" : "");
}

// Completes the frame's metadata, and updates the camera's report from it.
static void describe_frame(struct camera_thread *t, struct frame *frame)
{
    struct camera_report *report = t->context.report;
    const bool rtsp = config_url_kind(t->context.config->url) == URL_RTSP;
    struct stream_memory memory = {0};
    const char *notice = decoder_notice(t->decoder), *decoder = decoder_describe(t->decoder);
    if (notice)
        log_event(LOG_LEVEL_WARNING, "%s", notice);
    if (frame->lost)
        return;
    demux_rate(t->demux, &frame->rate_num, &frame->rate_den);
    const enum stream_change change =
        stream_picture(&t->stream, frame, orientation_of_pictures(t), rtsp, t->subscriptions);
    if (change == STREAM_RESIZED)
        device_reconsider(&t->lease);
    if (change == STREAM_BEGINS || strcmp(report->description.decoder, decoder) != 0)
        camera_report_stream(report, decoder, demux_describe(t->demux),
                             decoder_profile(demux_parameters(t->demux)));
    if (change == STREAM_BEGINS) {
        outage_end(&t->outage);
        camera_report_state(report, CAMERA_RUNNING, NULL);
    }
    log_running(t, frame, change == STREAM_BEGINS);
    decoder_memory(t->decoder, &memory);
    memory.packet_bytes =
        dpb_packet_bytes(demux_parameters(t->demux), frame->rate_num, frame->rate_den);
    camera_report_picture(report, frame, &memory);
    camera_report_skipped(report, decoder_decodes(t->decoder), decoder_skipped(t->decoder));
    atomic_fetch_add(&report->fallbacks, (uint64_t)decoder_fallbacks(t->decoder));
    camera_report_network(report, t->demux);
    work_delayed(t->work, decoder_held_up_ns(t->decoder));
}

static void log_error(struct camera_thread *t, const char *what)
{
    log_event(LOG_LEVEL_ERROR, "%s", what);
    camera_report_error(t->context.report, what);
}

// `rc` is the result of work_submit. On failure the frame is lost and the camera goes on.
static void note_submitted(struct camera_thread *t, int rc)
{
    char what[128];
    const char *notice = work_notice(t->work);
    if (notice)
        log_error(t, notice);
    if (rc == -ENOSPC) {
        device_avoid(&t->lease); // in this connection, for pictures of this size
    } else if (rc < 0) {
        snprintf(what, sizeof what, "backend %s failed: %s", t->lease.driver->name, strerror(-rc));
        log_error(t, what);
    }
}

// --- between two pictures: other outputs, another device

struct subscriptions *camera_thread_update(struct camera_thread *t)
{
    if (!atomic_load(&t->next_subscriptions))
        return NULL;
    struct subscriptions *former = t->subscriptions;
    t->subscriptions = atomic_exchange(&t->next_subscriptions, NULL);
    work_subscribe(t->work, t->subscriptions);
    return subscriptions_release(former) ? former : NULL;
}

// Returns the most pictures per second that the analysis or any output needs; 0: all; -1: none.
// Nothing is decoded for viewers alone.
static double wanted_fps(const struct camera_thread *t)
{
    const double fps = t->context.config->fps;
    double most = -1;
    if (t->context.config->stats)
        return fps;
    for (int i = 0; i < t->subscriptions->n; i++) {
        const struct output *output = t->subscriptions->list[i].output;
        if (output->demand ||
            (i >= t->subscriptions->n_pictures && i < t->subscriptions->n_packets))
            continue;
        const double own = output->rate.fps;
        if (own <= 0)
            return fps;
        most = own > most ? own : most;
    }
    return fps > 0 && fps < most ? fps : most;
}

// True if an output needs the analysis of the pictures.
static bool wants_analysis(const struct camera_thread *t)
{
    const struct subscriptions *outputs = t->subscriptions;
    for (int i = 0; i < outputs->n_pictures; i++)
        if (output_config_has_gate(outputs->list[i].output->config))
            return true;
    return outputs->n > outputs->n_packets;
}

static void update_subscriptions(struct camera_thread *t)
{
    struct subscriptions *released = camera_thread_update(t);
    scene_want(t->scene, wants_analysis(t));
    if (t->decoder)
        decoder_set_fps(t->decoder, wanted_fps(t));
    if (released)
        event_post(t->context.events, &released->released);
}

static int acquire_device(struct camera_thread *t)
{
    const struct camera_thread_context *context = &t->context;
    int rc = device_acquire(context->devices, context->config, &t->lease);
    if (rc < 0)
        return rc;
    atomic_store(&context->report->backend, t->lease.driver->name);
    atomic_store(&context->report->gpu, t->lease.number);
    work_attach(t->work);
    return 0;
}

static int join_decoder(struct camera_thread *t)
{
    return decoder_join(t->decoder,
                        &(struct decode_target){t->lease.driver, t->lease.backend, t->lease.nvdec});
}

static void detach_device(struct camera_thread *t)
{
    work_detach(t->work);
    scene_detach(t->scene);
    device_release(&t->lease);
}

static void release_device(struct camera_thread *t)
{
    work_drain(t->work);
    if (t->decoder)
        decoder_leave(t->decoder);
    detach_device(t);
}

static int change_device(struct camera_thread *t)
{
    const int64_t begun_ns = monotonic_ns();
    stage_enter(&t->context.report->stages, STAGE_CHANGE_DEVICE, CHANGE_DEVICE_NS);
    release_device(t);
    int rc = acquire_device(t);
    if (rc == 0 && (rc = join_decoder(t)) < 0)
        release_device(t);
    work_delayed(t->work, monotonic_ns() - begun_ns);
    return rc == -EAGAIN ? -ENOMEM : rc; // -EAGAIN would mean that the decoder needs packets
}

// The connection and the decoder survive all of these changes.
static int camera_update(struct camera_thread *t)
{
    if (atomic_load(&t->stop))
        return -ECANCELED;
    update_subscriptions(t);
    return device_is_stale(&t->lease) ? change_device(t) : 0;
}

// --- one connection

static int open_decoder(struct camera_thread *t)
{
    const struct camera_config *config = t->context.config;
    struct decode_options options = {
        // The start has checked for NVDEC; if it fails later, the cpu takes over.
        .decode = config->decode,
        .verified = devices_verified_decoders(t->context.devices),
        .threads = config->threads,
        .in_flight = FRAMES_HELD_MAX,
        .memory = devices_memory_reserve(t->context.devices),
        .planned = budget_decoder(config),
        .damaged = config->damaged,
        .check_hashes = config->check_hashes,
        .pictures = config->pictures,
        .low_delay = t->live,
        .losses_known = demux_knows_losses(t->demux),
        .stages = &t->context.report->stages,
    };
    if (options.decode.by == DECODE_NVDEC)
        options.decode.by = DECODE_AUTO;
    return decoder_open(&t->decoder, demux_parameters(t->demux), &options);
}

static void close_decoder(struct camera_thread *t)
{
    decoder_close(t->decoder);
    t->decoder = NULL;
}

// Keeps the decoder of the previous connection if it fits: NVDEC takes long to open.
static int prepare_decoder(struct camera_thread *t)
{
    const int64_t begun_ns = monotonic_ns();
    stage_enter(&t->context.report->stages, STAGE_CHANGE_DEVICE, CHANGE_DEVICE_NS);
    int rc = 0;
    bool joins = !t->lease.device;
    if (t->decoder && decoder_accepts(t->decoder, demux_parameters(t->demux))) {
        decoder_restart(t->decoder);
    } else {
        close_decoder(t);
        rc = open_decoder(t);
        joins = true;
    }
    if (rc == 0)
        decoder_set_fps(t->decoder, wanted_fps(t));
    if (rc == 0 && !t->lease.device)
        rc = acquire_device(t);
    if (rc == 0 && joins && (rc = join_decoder(t)) < 0)
        release_device(t); // the decoder is kept; the next connection joins it
    work_delayed(t->work, monotonic_ns() - begun_ns);
    return rc;
}

static void explain_end(const struct camera_thread *t, int rc, char *why, size_t size)
{
    if (*demux_why(t->demux))
        snprintf(why, size, "%s", demux_why(t->demux));
    else if (rc == -ETIME)
        snprintf(why, size, "no picture could be decoded for %.0f s",
                 (double)t->stall.lasted_ns / 1e9);
    else
        snprintf(why, size, "%s",
                 rc == -ENODATA     ? "the stream ended"
                 : rc == -ETIMEDOUT ? "silent for longer than media_timeout"
                 : rc == -EPROTO    ? CUT_SHORT
                 : rc == -ERESTART  ? "the numbers of its packets went back"
                 : rc == -ENOTSUP   ? "no decoder for this stream"
                                    : strerror(-rc));
}

int camera_thread_connect(struct camera_thread *t, char *why, size_t size)
{
    const struct camera_config *config = t->context.config;
    t->live = demux_is_live(config->url);
    stage_enter(&t->context.report->stages, STAGE_CHANGE_DEVICE, CHANGE_DEVICE_NS);
    update_subscriptions(t);
    if (device_is_stale(&t->lease))
        release_device(t); // connecting may take long
    int rc =
        demux_open(&t->demux, config, t->memory, &t->stop, &t->context.report->stages, why, size);
    if (rc < 0)
        return rc;
    if (!t->stream.capture_time.begun && !demux_knows_losses(t->demux))
        malloc_trim(0); // frees what libavformat decoded to identify the stream
    stream_connect(&t->stream);
    packet_report_connect(&t->context.report->of_packets);
    decode_stall_connect(&t->stall);
    device_reconsider(&t->lease);
    rc = prepare_decoder(t);
    if (rc == 0)
        rc = pass_frames(t);
    camera_report_network(t->context.report, t->demux);
    explain_end(t, rc, why, size);
    // A decoder that could not decode the stream may be in any state.
    if (t->stream.width == 0 || rc == -ENOTSUP || rc == -ETIME)
        close_decoder(t);
    demux_close(t->demux);
    t->demux = NULL;
    return rc;
}

// --- from one connection to the next

// Waits `ns`, or less if the camera is stopped. Takes new outputs meanwhile, since the former ones
// keep their memory until then.
static void wait_for_next_try(struct camera_thread *t, int64_t ns)
{
    const int64_t due_ns = monotonic_ns() + ns;
    int rc = 0;
    pthread_mutex_lock(&t->lock);
    while (!atomic_load(&t->stop) && rc == 0) {
        if (atomic_load(&t->next_subscriptions)) {
            pthread_mutex_unlock(&t->lock);
            update_subscriptions(t);
            pthread_mutex_lock(&t->lock);
        } else {
            rc = condition_wait(&t->wake, &t->lock, due_ns);
        }
    }
    pthread_mutex_unlock(&t->lock);
}

static void drain(struct camera_thread *t)
{
    work_drain(t->work);
    close_decoder(t);
}

// Keeps decoder and buffers through a short outage. Holds nothing of the device in a long one: it
// may have failed, or others need the room.
static void pause_between_tries(struct camera_thread *t, int64_t ns)
{
    stage_enter(&t->context.report->stages, STAGE_PAUSE, ns);
    wait_for_next_try(t, ns < WARM_NS ? ns : WARM_NS);
    if (ns <= WARM_NS)
        return;
    drain(t);
    detach_device(t);
    wait_for_next_try(t, ns - WARM_NS);
}

// Waits out a refused password, longer than after any other failure; a reload ends the wait.
static void wait_for_login(struct camera_thread *t)
{
    struct camera_report *report = t->context.report;
    int64_t ns;
    while (!atomic_load(&t->stop) && (ns = outage_login_ns(&t->outage)) > 0) {
        atomic_store(&report->next_try_ns, monotonic_ns() + ns);
        camera_report_state(report, CAMERA_RETRYING,
                            atomic_load(&report->state) == CAMERA_RETRYING
                                ? NULL
                                : "its password was refused: it is not tried again yet");
        if (ns > WARM_NS) {
            drain(t);
            detach_device(t);
        }
        pause_between_tries(t, ns < LOGIN_NS ? ns : LOGIN_NS);
    }
    camera_report_state(report, CAMERA_CONNECTING, NULL);
}

static void wait_and_retry(struct camera_thread *t, int rc, const char *why)
{
    struct camera_report *report = t->context.report;
    int64_t next_ns;
    const int64_t ns = outage_begin(&t->outage, rc, why, t->memory, &next_ns);
    atomic_store(&report->next_try_ns, monotonic_ns() + next_ns);
    camera_report_state(report, CAMERA_RETRYING, why);
    pause_between_tries(t, ns);
    atomic_fetch_add(&report->reconnects, 1);
}

// Returns CAMERA_RETRYING, or the final state of a camera whose connection ended with `rc`.
static enum camera_state state_after(struct camera_thread *t, int rc)
{
    const struct camera_config *config = t->context.config;
    if (atomic_load(&t->stop))
        return CAMERA_ENDED;
    if (t->live || config->loop)
        return CAMERA_RETRYING;
    if (rc == -ETIMEDOUT && config_url_kind(config->url) == URL_PIPE)
        return CAMERA_RETRYING; // its writer may continue
    return rc == -ENODATA ? CAMERA_ENDED : CAMERA_FAILED;
}

// Waits after the end of the input: clients still look at its last pictures.
static void wait_for_results(struct camera_thread *t)
{
    const int64_t ns = work_keeps_ns(t->work);
    stage_enter(&t->context.report->stages, STAGE_PAUSE, ns);
    wait_for_next_try(t, ns);
}

// For `top -H` and debuggers; the kernel takes 15 characters.
static void name_thread(const char *name)
{
    char cut[16];
    snprintf(cut, sizeof cut, "%.15s", name);
    pthread_setname_np(pthread_self(), cut);
}

static void *run(void *opaque)
{
    struct camera_thread *t = opaque;
    const struct camera_thread_context *context = &t->context;
    enum camera_state state;
    char why[DEMUX_WHY_MAX];

    log_camera(context->config->name);
    name_thread(context->config->name);
    for (;;) {
        wait_for_login(t);
        outage_connect(&t->outage);
        int rc = camera_thread_connect(t, why, sizeof why);
        state = state_after(t, rc);
        if (state != CAMERA_RETRYING)
            break;
        wait_and_retry(t, rc, why);
    }
    wait_for_results(t);
    drain(t);
    stage_enter(&context->report->stages, STAGE_IDLE, STAGE_NO_LIMIT);
    if (atomic_load(&t->stop))
        strcpy(why, "stopped");
    camera_report_state(context->report, state, why);
    log_event(state == CAMERA_FAILED ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "%s: %s",
              camera_state_name((int)state), why);
    event_post(context->events, context->ended);
    return NULL;
}

// --- the loop thread's side

static int open_scene(struct camera_thread *t)
{
    return scene_open(&t->scene, &(struct scene_context){
                                     .config = t->context.config,
                                     .lease = &t->lease,
                                     .report = &t->context.report->scene,
                                 });
}

static int open_work(struct camera_thread *t)
{
    const struct camera_thread_context *context = &t->context;
    return work_open(&t->work, &(struct work_context){
                                   .lease = &t->lease,
                                   .events = context->events,
                                   .subscriptions = t->subscriptions,
                                   .fps = context->config->fps,
                                   .scene = t->scene,
                                   .stop = &t->stop,
                                   .stages = &context->report->stages,
                                   .decode = context->decode,
                                   .process = context->process,
                               });
}

int camera_thread_open(struct camera_thread **ret, const struct camera_thread_context *context)
{
    struct camera_thread *t = calloc(1, sizeof *t);
    if (!t)
        return -ENOMEM;
    t->context = *context;
    t->stream.epoch = context->config->generation << 16;
    outage_open(&t->outage, context->config->url, context->logins);
    t->subscriptions = subscriptions_acquire(context->subscriptions);
    pthread_mutex_init(&t->lock, NULL);
    condition_init(&t->wake);
    int rc = demux_memory_open(&t->memory);
    if (rc == 0)
        rc = open_scene(t);
    if (rc == 0)
        rc = open_work(t);
    if (rc < 0) {
        camera_thread_close(t);
        return rc;
    }
    *ret = t;
    return 0;
}

void camera_thread_close(struct camera_thread *t)
{
    if (!t)
        return;
    if (t->work) {
        drain(t);
        detach_device(t);
    }
    work_close(t->work);
    scene_close(t->scene);
    subscriptions_release(t->subscriptions);
    demux_memory_close(t->memory);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

int camera_thread_start(struct camera_thread *t)
{
    int rc = -pthread_create(&t->id, NULL, run, t);
    t->running = rc == 0;
    return rc;
}

void camera_thread_stop(struct camera_thread *t)
{
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->stop, true);
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->lock);
    work_wake(t->work);
}

struct subscriptions *camera_thread_subscribe(struct camera_thread *t,
                                              struct subscriptions *subscriptions)
{
    struct subscriptions *never_taken =
        atomic_exchange(&t->next_subscriptions, subscriptions_acquire(subscriptions));
    pthread_mutex_lock(&t->lock);
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->lock);
    return never_taken && subscriptions_release(never_taken) ? never_taken : NULL;
}

void camera_thread_join(struct camera_thread *t)
{
    if (t->running)
        pthread_join(t->id, NULL);
    t->running = false;
}

void camera_thread_release_device(struct camera_thread *t)
{
    struct stage_watch *stages = &t->context.report->stages;
    stage_enter(stages, STAGE_CHANGE_DEVICE, CHANGE_DEVICE_NS);
    detach_device(t);
    stage_enter(stages, STAGE_IDLE, STAGE_NO_LIMIT);
}

void camera_thread_continue(struct camera_thread *t, const struct camera_thread *before)
{
    if ((int32_t)(t->stream.epoch - before->stream.epoch) <= 0) // epochs are serial numbers
        t->stream.epoch = before->stream.epoch + 1;
}
