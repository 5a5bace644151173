#include "daemon/camera/camera.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/camera/backoff.h"
#include "daemon/camera/ingest.h"
#include "daemon/camera/pipeline.h"
#include "daemon/service/log.h"

enum {
    TEXT_MAX = 160,
    WHY_MAX = 256,
    TELL_TRIES = 6, // failures that are logged each, of a camera that was well before
};
static const int64_t STEADY_NS = 10 * INT64_C(1000000000); // of pictures: the camera is well
static const int64_t TELL_NS = 600 * INT64_C(1000000000);  // between log lines of later ones
static const int64_t JUMP_NS = 10 * INT64_C(1000000000);   // between two pictures: another time
static const int64_t NO_PICTURE = INT64_MIN;

struct camera_thread {
    struct camera *camera;
    pthread_t id;
    bool running; // id is to be joined
    struct ingest *ingest;
    struct decoder *decoder;
    struct pipeline *pipeline;
    uint32_t epoch;
    int width, height;   // of the last picture; 0 before the first of a connection
    int64_t last_pts_ns; // of the last picture; NO_PICTURE before the first since ingest began anew
    bool shown;          // a picture came since the start
    struct backoff backoff;
    int64_t running_ns; // when the first picture of the connection came; 0: not yet
    int troubles;       // failures since the camera was well
    char told[WHY_MAX]; // the last failure that was logged
    int64_t told_ns;
    _Atomic bool stop;
    pthread_mutex_t lock; // guards the texts and the wait for the next try
    pthread_cond_t wake;
    char decoder_text[TEXT_MAX], stream_text[TEXT_MAX];
};

// --- the way of a frame: ingest_read -> decode_send -> decode_next -> pipeline_submit

static int forward_pictures(struct camera_thread *thread);
static int forward_picture(struct camera_thread *thread, struct frame *frame);
static bool loops(const struct camera_thread *thread);
static int start_over(struct camera_thread *thread);

// Moves packets to pictures until the stream ends or breaks: -ENODATA at the end, other negative
// errno.
static int relay(struct camera_thread *thread)
{
    struct packet packet;
    int rc = 0;
    while (rc == 0) {
        rc = ingest_read(thread->ingest, &packet);
        if (rc == 0)
            rc = decode_send(thread->decoder, &packet);
        else if (rc == -ENODATA)
            rc = decode_send(thread->decoder, NULL);
        if (rc == -EBADMSG) {
            pipeline_withheld(thread->pipeline);
            rc = 0;
        }
        if (rc == 0)
            rc = forward_pictures(thread);
        if (rc == -ENODATA && loops(thread))
            rc = start_over(thread);
    }
    return rc;
}

// Every picture that the decoder has now. 0: it wants packets; -ENODATA: it was flushed, is empty.
static int forward_pictures(struct camera_thread *thread)
{
    for (;;) {
        struct frame frame;
        int rc = decode_next(thread->decoder, &frame);
        if (rc == -EAGAIN)
            return 0;
        if (rc == -EBADMSG)
            pipeline_withheld(thread->pipeline);
        else if (rc < 0)
            return rc;
        else if ((rc = forward_picture(thread, &frame)) < 0)
            return rc;
        if (atomic_load(&thread->stop))
            return -ECANCELED;
    }
}

static void picture_came(struct camera_thread *thread, const struct frame *frame);

static int forward_picture(struct camera_thread *thread, struct frame *frame)
{
    int rate_num, rate_den;
    picture_came(thread, frame);
    frame->info.epoch = thread->epoch;
    ingest_rate(thread->ingest, &rate_num, &rate_den);
    int rc = pipeline_submit(thread->pipeline, frame, rate_num, rate_den);
    const char *notice = pipeline_notice(thread->pipeline);
    if (notice)
        log_event(LOG_LEVEL_ERROR, "%s", notice);
    if (rc < 0) // the frame is counted as lost; the camera goes on
        log_event(LOG_LEVEL_ERROR, "backend %s failed: %s", thread->camera->context.driver->name,
                  strerror(-rc));
    return 0;
}

// --- what a picture tells of the camera

static void set_state(struct camera_thread *thread, enum camera_state state)
{
    atomic_store(&thread->camera->state, state);
}

static void set_texts(struct camera_thread *thread, const char *decoder, const char *stream)
{
    pthread_mutex_lock(&thread->lock);
    snprintf(thread->decoder_text, TEXT_MAX, "%s", decoder);
    snprintf(thread->stream_text, TEXT_MAX, "%s", stream);
    pthread_mutex_unlock(&thread->lock);
}

static void first_picture(struct camera_thread *thread, const struct frame *frame)
{
    const char *decoder = decoder_describe(thread->decoder);
    const char *stream = ingest_describe(thread->ingest);
    backoff_reset(&thread->backoff);
    set_texts(thread, decoder, stream);
    set_state(thread, CAMERA_RUNNING);
    thread->running_ns = monotonic_ns();
    log_event(thread->troubles < TELL_TRIES ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG,
              "running: %s, decoder %s, %s%s", stream, decoder,
              pixel_format_name(frame->image.format),
              frame->image.memory == MEMORY_CUDA ? " on the device" : "");
    if (thread->shown)
        thread->epoch++;
    thread->shown = true;
}

// Back in time, or so far ahead that the pictures between are missing or the clock was set.
static bool time_jumps(const struct camera_thread *thread, int64_t pts_ns)
{
    return thread->last_pts_ns != NO_PICTURE &&
           (pts_ns < thread->last_pts_ns || pts_ns - thread->last_pts_ns > JUMP_NS);
}

static void picture_came(struct camera_thread *thread, const struct frame *frame)
{
    const char *notice = decoder_notice(thread->decoder);
    if (notice) {
        log_event(LOG_LEVEL_WARNING, "%s", notice);
        set_texts(thread, decoder_describe(thread->decoder), ingest_describe(thread->ingest));
    }
    if (thread->width == 0) {
        first_picture(thread, frame);
    } else if (thread->width != frame->image.width || thread->height != frame->image.height) {
        log_event(LOG_LEVEL_INFO, "picture size changed from %dx%d to %dx%d", thread->width,
                  thread->height, frame->image.width, frame->image.height);
        thread->epoch++;
    } else if (time_jumps(thread, frame->info.pts_ns)) {
        log_event(LOG_LEVEL_INFO, "the stream's time jumped");
        thread->epoch++;
    }
    thread->width = frame->image.width;
    thread->height = frame->image.height;
    thread->last_pts_ns = frame->info.pts_ns;
}

// A file that gave no picture from its start to its end would only make the camera spin.
static bool loops(const struct camera_thread *thread)
{
    return thread->camera->config->loop && thread->last_pts_ns != NO_PICTURE &&
           !atomic_load(&thread->stop);
}

// `loop`: back to the file's start. What is before and after does not belong together: a new epoch.
static int start_over(struct camera_thread *thread)
{
    int rc = ingest_rewind(thread->ingest);
    if (rc < 0)
        return rc;
    decoder_restart(thread->decoder);
    thread->last_pts_ns = NO_PICTURE;
    thread->epoch++;
    return 0;
}

// --- one connection

static int open_decoder(struct camera_thread *thread, bool live)
{
    const struct camera *camera = thread->camera;
    struct decode_options options = {
        .decode = camera->config->decode,
        .threads = camera->config->decode_threads,
        .device = camera->context.device,
        .keep_on_device = camera->context.driver->takes_cuda,
        .in_flight = PIPELINE_DEPTH,
        .damaged = camera->config->damaged,
        .low_delay = live,
    };
    return decoder_open(&thread->decoder, ingest_parameters(thread->ingest), &options);
}

// From connecting to the end of the stream; `why` says in words what ended it.
static int stream(struct camera_thread *thread, bool live, char *why, size_t size)
{
    thread->running_ns = 0;
    int rc = ingest_open(&thread->ingest, thread->camera->config, &thread->stop, why, size);
    if (rc < 0)
        return rc;
    thread->width = thread->height = 0;
    thread->last_pts_ns = NO_PICTURE;
    rc = open_decoder(thread, live);
    if (rc == 0)
        rc = relay(thread);
    snprintf(why, size, "%s",
             rc == -ENODATA     ? "the stream ended"
             : rc == -ETIMEDOUT ? "silent for longer than media_timeout"
             : rc == -ENOTSUP   ? "no decoder for this stream"
                                : strerror(-rc));
    decoder_close(thread->decoder);
    thread->decoder = NULL;
    ingest_close(thread->ingest);
    thread->ingest = NULL;
    return rc;
}

// --- the thread

// Waits `ns`, or less when the camera is stopped.
static void wait_for_next_try(struct camera_thread *thread, int64_t ns)
{
    struct timespec until;
    int64_t due = monotonic_ns() + ns;
    until.tv_sec = due / 1000000000;
    until.tv_nsec = due % 1000000000;
    pthread_mutex_lock(&thread->lock);
    while (!atomic_load(&thread->stop) &&
           pthread_cond_timedwait(&thread->wake, &thread->lock, &until) == 0)
        ;
    pthread_mutex_unlock(&thread->lock);
}

// What the end of a connection means: to try again, or the state that the camera ends in.
static enum camera_state judge(struct camera_thread *thread, int rc, bool live)
{
    const struct camera_config *config = thread->camera->config;
    if (atomic_load(&thread->stop))
        return CAMERA_ENDED;
    if (live || config->loop)
        return CAMERA_RETRYING;
    if (rc == -ETIMEDOUT && config_url_kind(config->url) == URL_PIPE)
        return CAMERA_RETRYING; // its writer may go on
    return rc == -ENODATA ? CAMERA_ENDED : CAMERA_FAILED;
}

// A camera that stays away, or gives a picture and hangs up again and again, is logged every ten
// minutes and not at every try.
static void tell_failure(struct camera_thread *thread, const char *why, int64_t ns)
{
    int64_t now = monotonic_ns();
    if (thread->running_ns && now - thread->running_ns >= STEADY_NS)
        thread->troubles = 0;
    thread->troubles++;
    if (strcmp(why, thread->told) == 0 && thread->troubles > TELL_TRIES &&
        now - thread->told_ns < TELL_NS)
        return;
    snprintf(thread->told, sizeof thread->told, "%s", why);
    thread->told_ns = now;
    log_event(LOG_LEVEL_WARNING, "%s; next try in %.1f s%s", why, (double)ns / 1e9,
              thread->troubles == TELL_TRIES ? ", then on without a word" : "");
}

static void retry(struct camera_thread *thread, int rc, const char *why)
{
    int64_t ns = backoff_next_ns(&thread->backoff, rc == -EACCES);
    set_state(thread, CAMERA_RETRYING);
    tell_failure(thread, why, ns);
    wait_for_next_try(thread, ns);
    atomic_fetch_add(&thread->camera->reconnects, 1);
    set_state(thread, CAMERA_CONNECTING);
}

static void *run(void *opaque)
{
    struct camera_thread *thread = opaque;
    struct camera *camera = thread->camera;
    const bool live = ingest_is_live(camera->config->url);
    enum camera_state verdict;
    char why[WHY_MAX];

    log_camera(camera->config->name);
    for (;;) {
        int rc = stream(thread, live, why, sizeof why);
        verdict = judge(thread, rc, live);
        if (verdict != CAMERA_RETRYING)
            break;
        retry(thread, rc, why);
    }
    pipeline_drain(thread->pipeline);
    set_state(thread, verdict);
    log_event(verdict == CAMERA_FAILED ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "%s: %s",
              camera_state_name((int)verdict), atomic_load(&thread->stop) ? "stopped" : why);
    mailbox_post(camera->context.mailbox, &camera->letter);
    return NULL;
}

// --- the loop thread's side

static int open_pipeline(struct camera *camera, struct camera_thread *thread)
{
    struct pipeline_context context = {
        .driver = camera->context.driver,
        .backend = camera->context.backend,
        .mailbox = camera->context.mailbox,
        .outputs = camera->outputs,
        .n_outputs = camera->config->n_outputs,
        .fps = camera->config->fps,
        .stop = &thread->stop,
        .decode = camera->context.decode,
        .process = camera->context.process,
    };
    return pipeline_open(&thread->pipeline, &context);
}

static int open_thread(struct camera *camera)
{
    pthread_condattr_t attributes;
    struct camera_thread *thread = calloc(1, sizeof *thread);
    if (!thread)
        return -ENOMEM;
    camera->thread = thread;
    thread->camera = camera;
    thread->backoff.seed = (uint32_t)monotonic_ns() ^ (uint32_t)(uintptr_t)thread;
    pthread_mutex_init(&thread->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&thread->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    return open_pipeline(camera, thread);
}

int camera_open(struct camera *camera, const struct camera_config *config,
                const struct camera_context *context)
{
    *camera = (struct camera){.config = config, .context = *context, .letter.read = context->ended};
    camera->outputs = calloc((size_t)config->n_outputs, sizeof *camera->outputs);
    int rc = camera->outputs ? 0 : -ENOMEM;
    for (int i = 0; rc == 0 && i < config->n_outputs; i++)
        rc = output_open(&camera->outputs[i], config->name, &config->outputs[i], context->driver,
                         context->backend);
    if (rc == 0)
        rc = open_thread(camera);
    if (rc < 0)
        camera_close(camera);
    return rc;
}

int camera_start(struct camera *camera)
{
    int rc = pthread_create(&camera->thread->id, NULL, run, camera->thread);
    if (rc != 0)
        return -rc;
    camera->thread->running = true;
    return 0;
}

void camera_stop(struct camera *camera)
{
    struct camera_thread *thread = camera->thread;
    pthread_mutex_lock(&thread->lock);
    atomic_store(&thread->stop, true);
    pthread_cond_broadcast(&thread->wake);
    pthread_mutex_unlock(&thread->lock);
    pipeline_wake(thread->pipeline);
}

void camera_join(struct camera *camera)
{
    if (camera->thread->running)
        pthread_join(camera->thread->id, NULL);
    camera->thread->running = false;
}

void camera_close(struct camera *camera)
{
    struct camera_thread *thread = camera->thread;
    if (thread) {
        pipeline_close(thread->pipeline);
        pthread_cond_destroy(&thread->wake);
        pthread_mutex_destroy(&thread->lock);
        free(thread);
    }
    for (int i = 0; camera->outputs && i < camera->config->n_outputs; i++)
        output_close(&camera->outputs[i]);
    free(camera->outputs);
    *camera = (struct camera){0};
}

struct camera *camera_of_letter(struct letter *letter)
{
    return (struct camera *)((char *)letter - offsetof(struct camera, letter));
}

const char *camera_state_name(int state)
{
    static const char *const names[] = {
        [CAMERA_CONNECTING] = "connecting", [CAMERA_RUNNING] = "running",
        [CAMERA_RETRYING] = "retrying",     [CAMERA_ENDED] = "ended",
        [CAMERA_FAILED] = "failed",
    };
    return names[state];
}

void camera_describe(struct camera *camera, char *decoder, char *stream, size_t size)
{
    struct camera_thread *thread = camera->thread;
    pthread_mutex_lock(&thread->lock);
    snprintf(decoder, size, "%s", thread->decoder_text);
    snprintf(stream, size, "%s", thread->stream_text);
    pthread_mutex_unlock(&thread->lock);
}
