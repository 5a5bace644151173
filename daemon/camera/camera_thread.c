#include "daemon/camera/camera.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/url.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/number.h"
#include "daemon/codec/buffers.h"
#include "daemon/codec/decoder.h"
#include "daemon/device/budget.h"

static const int64_t LOOK_NS = INT64_C(1000000000);     // between checks for a reload
static const int64_t WARM_NS = 2500 * INT64_C(1000000); // longest pause with everything kept open
// Long, since all cameras of a device that fails move to another one at once.
static const int64_t CHANGE_DEVICE_NS = 60 * INT64_C(1000000000);

// --- the way of a frame

static bool is_stopped(struct camera *camera);
static void note_packet(struct camera *camera, const struct packet *packet);
static bool is_stalled(struct camera *camera, const struct packet *packet);
static void describe_frame(struct camera *camera, struct frame *frame);
static void note_submitted(struct camera *camera, int rc);
static int end_of_stream(struct camera *camera, int input);

// Passes frames on until the stream ends or breaks. Packets received before are complete, so the
// decoder is drained. Returns -ENODATA at the end, -ECANCELED, -ETIME if no picture was decoded for
// too long, or another negative errno.
static int pass_frames(struct camera *camera)
{
    struct packet packet;
    struct frame frame;
    int rc = 0;
    while (rc == 0) {
        const int input = demux_read(camera->demux, &packet); // 0, or the reason for no packet
        if (is_stopped(camera))
            return -ECANCELED;
        if (input == 0)
            note_packet(camera, &packet);
        if (input == 0 && is_stalled(camera, &packet))
            return -ETIME;
        rc = decoder_send(camera->decoder, input == 0 ? &packet : NULL); // NULL: the end
        while (rc == 0 && (rc = camera_take_orders(camera)) == 0 &&
               (rc = decoder_receive(camera->decoder, &frame)) == 0) {
            describe_frame(camera, &frame);
            note_submitted(camera, work_submit(camera->work, &frame)); // takes the frame
            camera_report_alarms(&camera->report, atomic_load(&camera->report.scene.alarms));
        }
        if (rc == -EAGAIN) // the decoder needs packets
            rc = 0;
        else if (rc == -ENODATA) // the decoder is drained
            rc = end_of_stream(camera, input);
    }
    return rc;
}

// After the fence another node may show the camera, even if this process was frozen or hung.
static bool is_stopped(struct camera *camera)
{
    const _Atomic int64_t *fence_ns = camera->config->fence_ns;
    const int64_t now_ns = boottime_ns(); // before the fence is read, which may be moved
    if (fence_ns && now_ns >= atomic_load(fence_ns))
        atomic_store(&camera->stop, true);
    return atomic_load(&camera->stop);
}

static void note_packet(struct camera *camera, const struct packet *packet)
{
    camera_report_packet(&camera->report, packet,
                         realtime_ns() - (monotonic_ns() - packet->received_ns));
    copies_packet(camera->outputs, camera->context.events, packet, camera->demux->parameters,
                  &camera->stop, &camera->report.stages);
}

// Another connection may begin with a keyframe, or announce another codec. A file never changes.
static bool is_stalled(struct camera *camera, const struct packet *packet)
{
    if (packet->old ||
        (!packet->keyframe && decoder_decodes(camera->decoder) == PICTURES_KEYFRAMES))
        return false;
    return camera->demux->source->live && !decoder_waits(camera->decoder) &&
           decode_stall_packet(&camera->stall, packet, decoder_pictures(camera->decoder),
                               decoder_failures(camera->decoder), 2 * camera->demux->patience_ns);
}

static const char CUT_SHORT[] =
    "the file is cut short: it ends within a picture, or before the last one that it lists";

// With `loop` restarts the file, even one that is cut short. Returns 0, or why the stream ends.
// `input` is the reason for no packets.
static int loop_file(struct camera *camera, int input)
{
    const bool at_end = input == -ENODATA || input == -EPROTO;
    if (!at_end || !camera->config->loop)
        return input;
    if (input == -EPROTO && !camera->cut_short_logged)
        log_event(LOG_LEVEL_WARNING, "%s", CUT_SHORT);
    camera->cut_short_logged |= input == -EPROTO;
    // Looping over a file without a picture would only spin.
    if (!camera->stream.has_picture || atomic_load(&camera->stop))
        return -ENODATA;
    return demux_rewind(camera->demux);
}

static int end_of_stream(struct camera *camera, int input)
{
    const int rc = input == -EREMCHG ? 0 : loop_file(camera, input);
    if (rc < 0)
        return rc;
    decoder_restart(camera->decoder); // it continues as another stream
    stream_rewind(&camera->stream);
    return 0;
}

// --- a picture

// The orientation in the pictures takes precedence over the container's.
static int orientation_of_pictures(const struct camera *camera)
{
    const int orientation = decoder_orientation(camera->decoder);
    if (camera->config->rotate == TURNING_IGNORE)
        return ORIENTATION_UPRIGHT;
    return orientation == -ENODATA ? camera->demux->orientation : orientation;
}

// A camera that keeps failing is logged as running only once it has stayed up.
static void log_running(struct camera *camera, const struct frame *frame, bool begins)
{
    const bool over = outage_is_over(&camera->outage);
    char stream[DEMUX_DESCRIPTION_MAX];
    if (over || (begins && !outage_is_quiet(&camera->outage)))
        log_event(LOG_LEVEL_INFO, "running%s: %s, decoder %s, %s%s", over ? " again for 10 s" : "",
                  demux_describe(camera->demux, stream), decoder_describe(camera->decoder),
                  pixel_format_name(frame->image.format),
                  frame->image.memory == MEMORY_CUDA ? " on the device" : "");
}

// Completes the frame's metadata, and updates the camera's report from it.
static void describe_frame(struct camera *camera, struct frame *frame)
{
    struct camera_report *report = &camera->report;
    const bool rtsp = config_url_kind(camera->config->url) == URL_RTSP;
    struct stream_memory memory = {0};
    char stream[DEMUX_DESCRIPTION_MAX];
    const char *notice = decoder_notice(camera->decoder),
               *decoder = decoder_describe(camera->decoder);
    if (notice)
        log_event(LOG_LEVEL_WARNING, "%s", notice);
    if (frame->lost)
        return;
    frame->rate_num = camera->demux->rate_num;
    frame->rate_den = camera->demux->rate_den;
    const enum stream_change change = stream_picture(
        &camera->stream, frame, orientation_of_pictures(camera), rtsp, camera->outputs);
    if (change == STREAM_RESIZED)
        device_reconsider(&camera->lease);
    if (change == STREAM_BEGINS || strcmp(report->description.decoder, decoder) != 0)
        camera_report_stream(report, decoder, demux_describe(camera->demux, stream),
                             decoder_profile(camera->demux->parameters));
    if (change == STREAM_BEGINS) {
        outage_end(&camera->outage);
        camera_report_state(report, CAMERA_RUNNING, NULL);
    }
    log_running(camera, frame, change == STREAM_BEGINS);
    decoder_memory(camera->decoder, &memory);
    memory.packet_bytes =
        dpb_packet_bytes(camera->demux->parameters, frame->rate_num, frame->rate_den);
    camera_report_picture(report, frame, &memory);
    atomic_store(&report->decodes, (int)decoder_decodes(camera->decoder));
    atomic_fetch_add(&report->skipped, (uint64_t)decoder_skipped(camera->decoder));
    atomic_fetch_add(&report->fallbacks, (uint64_t)decoder_fallbacks(camera->decoder));
    camera_report_network(report, &camera->demux->network);
    work_delayed(camera->work, decoder_held_up_ns(camera->decoder));
}

static void log_error(struct camera *camera, const char *what)
{
    log_event(LOG_LEVEL_ERROR, "%s", what);
    camera_report_error(&camera->report, what);
}

// `rc` is the result of work_submit. On failure the frame is lost and the camera goes on.
static void note_submitted(struct camera *camera, int rc)
{
    char what[128];
    const char *notice = work_notice(camera->work);
    if (notice)
        log_error(camera, notice);
    if (rc == -ENOSPC) {
        device_avoid(&camera->lease); // in this connection, for pictures of this size
    } else if (rc < 0) {
        snprintf(what, sizeof what, "backend %s failed: %s", camera->lease.driver->name,
                 strerror(-rc));
        log_error(camera, what);
    }
}

// --- between two pictures: other outputs, another device

struct subscriptions *camera_switch(struct camera *camera)
{
    struct subscriptions *given = atomic_exchange(&camera->given, NULL), *former = camera->outputs;
    if (!given)
        return NULL;
    camera->outputs = given;
    work_subscribe(camera->work, given);
    return former;
}

// Returns the most pictures per second that the analysis or any output needs; 0: all; -1: none.
// Nothing is decoded for viewers alone.
static double wanted_fps(const struct camera *camera)
{
    const double fps = camera->config->fps;
    double most = -1;
    if (camera->config->stats)
        return fps;
    for (int i = 0; i < camera->outputs->n; i++) {
        const struct output *output = camera->outputs->list[i].output;
        if (output->demand || (i >= camera->outputs->n_pictures && i < camera->outputs->n_packets))
            continue;
        const double own = output->rate.fps;
        if (own <= 0)
            return fps;
        most = own > most ? own : most;
    }
    return fps > 0 && fps < most ? fps : most;
}

// True if an output needs the analysis of the pictures.
static bool wants_analysis(const struct camera *camera)
{
    const struct subscriptions *outputs = camera->outputs;
    for (int i = 0; i < outputs->n_pictures; i++)
        if (output_config_has_gate(outputs->list[i].output->config))
            return true;
    return outputs->n > outputs->n_packets;
}

// Sets what is decoded and analysed for the outputs.
static void follow_outputs(struct camera *camera)
{
    scene_want(camera->scene, wants_analysis(camera));
    if (camera->decoder)
        decoder_set_fps(camera->decoder, wanted_fps(camera));
}

static void update_subscriptions(struct camera *camera)
{
    struct subscriptions *former = camera_switch(camera);
    if (!former)
        return;
    follow_outputs(camera);
    if (subscriptions_release(former))
        event_post(camera->context.events, &former->released);
}

static void detach_device(struct camera *camera)
{
    work_detach(camera->work);
    scene_detach(camera->scene);
    device_release(&camera->lease);
}

// Keeps the decoder, which decodes what was not given out again on the next device.
static void release_device(struct camera *camera)
{
    work_drain(camera->work);
    if (camera->decoder)
        decoder_leave(camera->decoder);
    detach_device(camera);
}

// Takes a device, if there is none, and decodes for it. On failure the decoder is kept.
static int join_device(struct camera *camera)
{
    struct device_lease *lease = &camera->lease;
    if (!lease->device) {
        const int rc = device_acquire(camera->context.devices, camera->config, lease);
        if (rc < 0)
            return rc;
        atomic_store(&camera->report.backend, lease->driver->name);
        atomic_store(&camera->report.gpu, lease->number);
        work_attach(camera->work);
    }
    const int rc = decoder_join(
        camera->decoder, &(struct decode_target){lease->driver, lease->backend, lease->nvdec});
    if (rc < 0)
        release_device(camera);
    return rc;
}

static int change_device(struct camera *camera)
{
    const int64_t begun_ns = monotonic_ns();
    stage_enter(&camera->report.stages, STAGE_CHANGE_DEVICE, CHANGE_DEVICE_NS);
    release_device(camera);
    const int rc = join_device(camera);
    work_delayed(camera->work, monotonic_ns() - begun_ns);
    return rc == -EAGAIN ? -ENOMEM : rc; // -EAGAIN would mean that the decoder needs packets
}

int camera_take_orders(struct camera *camera)
{
    if (atomic_load(&camera->stop))
        return -ECANCELED;
    update_subscriptions(camera);
    const int rc = device_is_stale(&camera->lease) ? change_device(camera) : 0;
    return is_stopped(camera) ? -ECANCELED : rc; // changing devices takes time
}

// --- one connection

static int open_decoder(struct camera *camera)
{
    const struct camera_config *config = camera->config;
    struct decode_options options = {
        // The start has checked for NVDEC; if it fails later, the cpu takes over.
        .decode = config->decode,
        .verified = devices_verified_decoders(camera->context.devices),
        .threads = config->threads,
        .in_flight = FRAMES_HELD_MAX,
        .memory = devices_memory_reserve(camera->context.devices),
        .planned = budget_decoder(config),
        .damaged = config->damaged,
        .check_hashes = config->check_hashes,
        .pictures = config->pictures,
        .low_delay = camera->demux->source->live,
        .losses_known = camera->demux->knows_losses,
        .stages = &camera->report.stages,
    };
    if (options.decode.by == DECODE_NVDEC)
        options.decode.by = DECODE_AUTO;
    return decoder_open(&camera->decoder, camera->demux->parameters, &options);
}

static void close_decoder(struct camera *camera)
{
    decoder_close(camera->decoder);
    camera->decoder = NULL;
}

// Keeps the decoder of the previous connection if it fits: NVDEC takes long to open.
static int prepare_decoder(struct camera *camera)
{
    const int64_t begun_ns = monotonic_ns();
    stage_enter(&camera->report.stages, STAGE_CHANGE_DEVICE, CHANGE_DEVICE_NS);
    int rc = 0;
    bool joins = !camera->lease.device;
    if (camera->decoder && decoder_accepts(camera->decoder, camera->demux->parameters)) {
        decoder_restart(camera->decoder);
    } else {
        close_decoder(camera);
        rc = open_decoder(camera);
        joins = true;
    }
    if (rc == 0)
        follow_outputs(camera);
    if (rc == 0 && joins)
        rc = join_device(camera);
    work_delayed(camera->work, monotonic_ns() - begun_ns);
    return rc;
}

static void explain_end(const struct camera *camera, int rc, char *why, size_t size)
{
    if (camera->demux->why[0])
        snprintf(why, size, "%s", camera->demux->why);
    else if (rc == -ETIME)
        snprintf(why, size, "no picture could be decoded for %.0f s",
                 (double)camera->stall.lasted_ns / 1e9);
    else
        snprintf(why, size, "%s",
                 rc == -ENODATA     ? "the stream ended"
                 : rc == -ETIMEDOUT ? "silent for longer than media_timeout"
                 : rc == -EPROTO    ? CUT_SHORT
                 : rc == -ERESTART  ? "the numbers of its packets went back"
                 : rc == -ENOTSUP   ? "no decoder for this stream"
                                    : strerror(-rc));
}

int camera_connect(struct camera *camera, char *why, size_t size)
{
    const struct camera_config *config = camera->config;
    stage_enter(&camera->report.stages, STAGE_CHANGE_DEVICE, CHANGE_DEVICE_NS);
    if (device_is_stale(&camera->lease))
        release_device(camera); // connecting may take long
    int rc = demux_open(&camera->demux, config, &camera->memory, &camera->stop,
                        &camera->report.stages, why, size);
    if (rc < 0)
        return rc;
    if (!camera->stream.capture_time.begun && !camera->demux->knows_losses)
        malloc_trim(0); // frees what libavformat decoded to identify the stream
    stream_connect(&camera->stream);
    camera_report_connect(&camera->report);
    decode_stall_connect(&camera->stall);
    device_reconsider(&camera->lease);
    rc = prepare_decoder(camera);
    if (rc == 0)
        rc = pass_frames(camera);
    camera_report_network(&camera->report, &camera->demux->network);
    explain_end(camera, rc, why, size);
    // A decoder that could not decode the stream may be in any state.
    if (camera->stream.width == 0 || rc == -ENOTSUP || rc == -ETIME)
        close_decoder(camera);
    demux_close(camera->demux);
    camera->demux = NULL;
    return rc;
}

// --- from one connection to the next

static void drain(struct camera *camera)
{
    work_drain(camera->work);
    close_decoder(camera);
}

// Follows orders, and waits for more until CLOCK_MONOTONIC reaches `until_ns`. Takes new outputs
// because the former ones keep their memory until then.
static void wait_for_orders(struct camera *camera, int64_t until_ns)
{
    update_subscriptions(camera);
    stage_enter(&camera->report.stages, STAGE_PAUSE, until_ns - monotonic_ns());
    pthread_mutex_lock(&camera->lock);
    if (!atomic_load(&camera->stop) && !atomic_load(&camera->given))
        condition_wait(&camera->wake, &camera->lock, until_ns);
    pthread_mutex_unlock(&camera->lock);
}

// Waits until the next connection may begin. Keeps decoder and buffers in a short pause. Holds
// nothing of the device in a long one: it may have failed, or others need the room.
static void wait_for_next_try(struct camera *camera)
{
    struct camera_report *report = &camera->report;
    int64_t ns;
    while (!atomic_load(&camera->stop) && (ns = outage_wait_ns(&camera->outage)) > 0) {
        const int64_t now_ns = monotonic_ns();
        atomic_store(&report->next_try_ns, now_ns + ns);
        if (ns > LOOK_NS && atomic_load(&report->state) != CAMERA_RETRYING)
            camera_report_state(report, CAMERA_RETRYING,
                                "its password was refused: it is not tried again yet");
        if (ns > WARM_NS)
            camera_release_device(camera);
        wait_for_orders(camera, now_ns + bounds_min(ns, LOOK_NS));
    }
    update_subscriptions(camera);
    camera_report_state(report, CAMERA_CONNECTING, NULL);
}

static void note_failure(struct camera *camera, int rc, const char *why)
{
    const int64_t ns = outage_begin(&camera->outage, rc, why, &camera->memory);
    atomic_store(&camera->report.next_try_ns, monotonic_ns() + ns);
    camera_report_state(&camera->report, CAMERA_RETRYING, why);
}

// Returns CAMERA_RETRYING, or the final state of a camera whose connection ended with `rc`.
static enum camera_state state_after(struct camera *camera, int rc)
{
    const struct camera_config *config = camera->config;
    if (atomic_load(&camera->stop))
        return CAMERA_ENDED;
    if (demux_is_live(config->url) || config->loop)
        return CAMERA_RETRYING;
    if (rc == -ETIMEDOUT && config_url_kind(config->url) == URL_PIPE)
        return CAMERA_RETRYING; // its writer may continue
    return rc == -ENODATA ? CAMERA_ENDED : CAMERA_FAILED;
}

// Waits after the end of the input: clients still look at its last pictures.
static void wait_for_results(struct camera *camera)
{
    const int64_t until_ns = monotonic_ns() + work_keeps_ns(camera->work);
    while (!atomic_load(&camera->stop) && monotonic_ns() < until_ns)
        wait_for_orders(camera, until_ns);
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
    struct camera *camera = opaque;
    struct camera_report *report = &camera->report;
    enum camera_state state;
    char why[DEMUX_WHY_MAX];

    log_camera(camera->config->name);
    name_thread(camera->config->name);
    for (bool again = false;; again = true) {
        wait_for_next_try(camera);
        atomic_fetch_add(&report->reconnects, again);
        int rc = camera_connect(camera, why, sizeof why);
        state = state_after(camera, rc);
        if (state != CAMERA_RETRYING)
            break;
        note_failure(camera, rc, why);
    }
    wait_for_results(camera);
    drain(camera);
    stage_enter(&report->stages, STAGE_IDLE, STAGE_NO_LIMIT);
    if (atomic_load(&camera->stop))
        strcpy(why, "stopped");
    camera_report_state(report, state, why);
    log_event(state == CAMERA_FAILED ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "%s: %s",
              camera_state_name((int)state), why);
    event_post(camera->context.events, &camera->ended);
    return NULL;
}

// --- the loop thread's side

int camera_start(struct camera *camera)
{
    int rc = -pthread_create(&camera->thread, NULL, run, camera);
    camera->started = rc == 0;
    return rc;
}

void camera_continue(struct camera *camera, const struct camera *before)
{
    if ((int32_t)(camera->stream.epoch - before->stream.epoch) <= 0) // epochs are serial numbers
        camera->stream.epoch = before->stream.epoch + 1;
}

void camera_wake(struct camera *camera)
{
    pthread_mutex_lock(&camera->lock);
    pthread_cond_broadcast(&camera->wake);
    pthread_mutex_unlock(&camera->lock);
}

void camera_stop(struct camera *camera)
{
    atomic_store(&camera->stop, true);
    camera_wake(camera);
    work_wake(camera->work);
}

void camera_release_device(struct camera *camera)
{
    stage_enter(&camera->report.stages, STAGE_CHANGE_DEVICE, CHANGE_DEVICE_NS);
    drain(camera);
    detach_device(camera);
    stage_enter(&camera->report.stages, STAGE_IDLE, STAGE_NO_LIMIT);
}
