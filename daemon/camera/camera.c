#include "daemon/camera/camera.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/object.h"
#include "config/url.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/camera/camera_thread.h"
#include "daemon/input/demux.h"
#include "daemon/input/retry.h"

enum {
    WHY_MAX = 256,
    TELL_TRIES = 6, // failures that are logged each, of a camera that was well before
};
static const int64_t STEADY_NS = 10 * INT64_C(1000000000); // of pictures: the camera is well
static const int64_t TELL_NS = 600 * INT64_C(1000000000);  // between log lines of later ones
static const int64_t WARM_NS = 2500 * INT64_C(1000000);    // of waiting with all that is open

struct camera_thread {
    struct camera *camera;
    pthread_t id;
    bool running; // id is to be joined
    struct feed *feed;
    struct retry backoff;
    int64_t running_ns; // when the first picture of the connection came; 0: not yet
    int troubles;       // failures since the camera was well
    char told[WHY_MAX]; // the last failure that was logged
    int64_t told_ns;
    _Atomic bool stop;
    pthread_mutex_t lock; // guards the texts and the wait for the next try
    pthread_cond_t wake;
    struct camera_description description;
};

// --- what the feed tells

static void set_state(struct camera_thread *thread, enum camera_state state)
{
    atomic_store(&thread->camera->state, state);
}

static void set_texts(struct camera_thread *thread, const char *decoder, const char *stream)
{
    pthread_mutex_lock(&thread->lock);
    snprintf(thread->description.decoder, CAMERA_TEXT_MAX, "%s", decoder);
    snprintf(thread->description.stream, CAMERA_TEXT_MAX, "%s", stream);
    pthread_mutex_unlock(&thread->lock);
}

static void complain(void *opaque, const char *what)
{
    struct camera_thread *thread = opaque;
    pthread_mutex_lock(&thread->lock);
    last_error_set(&thread->description.complaint, what);
    pthread_mutex_unlock(&thread->lock);
}

static void feed_shows(void *opaque, const struct frame *first, const char *decoder,
                       const char *stream)
{
    struct camera_thread *thread = opaque;
    set_texts(thread, decoder, stream);
    if (!first)
        return;
    retry_reset(&thread->backoff);
    set_state(thread, CAMERA_RUNNING);
    thread->running_ns = monotonic_ns();
    log_event(thread->troubles < TELL_TRIES ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG,
              "running: %s, decoder %s, %s%s", stream, decoder,
              pixel_format_name(first->image.format),
              first->image.memory == MEMORY_CUDA ? " on the device" : "");
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

// A short outage finds decoder and slots as they were. In a long one nothing is held of the
// device: it may have failed, or others need the room.
static void pause_feed(struct camera_thread *thread, int64_t ns)
{
    watchdog_begin(feed_heartbeat(thread->feed), STEP_PAUSING, ns);
    wait_for_next_try(thread, ns < WARM_NS ? ns : WARM_NS);
    if (ns <= WARM_NS)
        return;
    feed_drain(thread->feed);
    feed_leave(thread->feed);
    wait_for_next_try(thread, ns - WARM_NS);
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
// minutes and not at every try. A wrong password is not going to mend itself: it is said once.
static void tell_failure(struct camera_thread *thread, const char *why, int64_t ns, bool refused)
{
    int64_t now = monotonic_ns();
    if (thread->running_ns && now - thread->running_ns >= STEADY_NS)
        thread->troubles = 0;
    thread->troubles++;
    const bool lately = thread->troubles > TELL_TRIES && now - thread->told_ns < TELL_NS;
    if (strcmp(why, thread->told) == 0 && (refused || lately))
        return;
    snprintf(thread->told, sizeof thread->told, "%s", why);
    thread->told_ns = now;
    log_event(LOG_LEVEL_WARNING, "%s; next try in %.1f s%s", why, (double)ns / 1e9,
              refused                          ? ", then every 30 s without a word"
              : thread->troubles == TELL_TRIES ? ", then on without a word"
                                               : "");
}

static void retry(struct camera_thread *thread, int rc, const char *why)
{
    int64_t ns = retry_next_ns(&thread->backoff, rc == -EACCES);
    atomic_store(&thread->camera->next_try_ns, monotonic_ns() + ns);
    set_state(thread, CAMERA_RETRYING);
    complain(thread, why);
    tell_failure(thread, why, ns, rc == -EACCES);
    pause_feed(thread, ns);
    atomic_fetch_add(&thread->camera->reconnects, 1);
    set_state(thread, CAMERA_CONNECTING);
}

// For `top -H` and debuggers: what the kernel takes of the name.
static void name_thread(const char *name)
{
    char cut[16];
    snprintf(cut, sizeof cut, "%.15s", name);
    pthread_setname_np(pthread_self(), cut);
}

static void *run(void *opaque)
{
    struct camera_thread *thread = opaque;
    struct camera *camera = thread->camera;
    const bool live = demux_is_live(camera->config->url);
    enum camera_state verdict;
    char why[WHY_MAX];

    log_camera(camera->config->name);
    name_thread(camera->config->name);
    for (;;) {
        thread->running_ns = 0;
        int rc = feed_run(thread->feed, why, sizeof why);
        verdict = judge(thread, rc, live);
        if (verdict != CAMERA_RETRYING)
            break;
        retry(thread, rc, why);
    }
    feed_drain(thread->feed);
    if (verdict == CAMERA_FAILED)
        complain(thread, why);
    watchdog_rest(feed_heartbeat(thread->feed));
    set_state(thread, verdict);
    log_event(verdict == CAMERA_FAILED ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "%s: %s",
              camera_state_name((int)verdict), atomic_load(&thread->stop) ? "stopped" : why);
    event_post(camera->context.events, &camera->letter);
    return NULL;
}

// --- the loop thread's side

static int open_feed(struct camera *camera, struct camera_thread *thread)
{
    struct feed_context context = {
        .config = camera->config,
        .devices = camera->context.devices,
        .events = camera->context.events,
        .subscriptions = camera->subscriptions,
        .epoch = &camera->epoch,
        .decode = camera->context.decode,
        .process = camera->context.process,
        .stop = &thread->stop,
        .progress = &camera->progress,
        .shows = feed_shows,
        .complains = complain,
        .opaque = thread,
    };
    return feed_open(&thread->feed, &context);
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
    return open_feed(camera, thread);
}

static void subscriptions_released(struct event *event)
{
    struct subscriptions *subscriptions =
        (struct subscriptions *)((char *)event - offsetof(struct subscriptions, released));
    const struct camera *camera = subscriptions->owner;
    subscriptions_close(subscriptions, NULL);
    camera->context.released(camera->context.opaque);
}

static void set_subscriptions(struct camera *camera, struct subscriptions *subscriptions)
{
    subscriptions->released.callback = subscriptions_released;
    subscriptions->owner = camera;
    camera->subscriptions = subscriptions;
}

int camera_open(struct camera *camera, const struct camera_config *config,
                const struct camera_context *context)
{
    *camera = (struct camera){
        .config = config_copy_camera(config),
        .context = *context,
        .letter.callback = context->ended,
    };
    struct subscriptions *subscriptions;
    int rc = camera->config ? 0 : -ENOMEM;
    if (rc == 0)
        rc = subscriptions_open(&subscriptions, camera->config->name, config, NULL);
    if (rc == 0) {
        set_subscriptions(camera, subscriptions);
        rc = open_thread(camera);
    }
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
    camera->started = true;
    return 0;
}

static void close_subscriptions(struct subscriptions *released)
{
    if (released)
        subscriptions_close(released, NULL);
}

// The reference of camera->subscriptions goes first: then a list that the thread has worked by is
// closed by its event, behind the events of its outputs.
void camera_subscribe(struct camera *camera, struct subscriptions *subscriptions)
{
    subscriptions_release(camera->subscriptions);
    set_subscriptions(camera, subscriptions);
    close_subscriptions(feed_subscribe(camera->thread->feed, subscriptions));
    if (!camera->thread->running)
        close_subscriptions(feed_update_subscriptions(camera->thread->feed));
}

void camera_follow(struct camera *camera, const struct camera *before)
{
    if (camera->epoch <= before->epoch)
        camera->epoch = before->epoch + 1;
}

void camera_stop(struct camera *camera)
{
    struct camera_thread *thread = camera->thread;
    pthread_mutex_lock(&thread->lock);
    atomic_store(&thread->stop, true);
    pthread_cond_broadcast(&thread->wake);
    pthread_mutex_unlock(&thread->lock);
    feed_wake(thread->feed);
}

void camera_join(struct camera *camera)
{
    if (camera->thread->running)
        pthread_join(camera->thread->id, NULL);
    camera->thread->running = false;
    camera->through = true;
    close_subscriptions(feed_update_subscriptions(camera->thread->feed));
}

void camera_leave(struct camera *camera)
{
    feed_leave(camera->thread->feed);
}

void camera_close(struct camera *camera)
{
    struct camera_thread *thread = camera->thread;
    if (thread) {
        feed_close(thread->feed);
        pthread_cond_destroy(&thread->wake);
        pthread_mutex_destroy(&thread->lock);
        free(thread);
    }
    if (camera->subscriptions)
        subscriptions_close(camera->subscriptions, output_close);
    config_free_camera(camera->config);
    *camera = (struct camera){0};
}

struct stream_memory camera_memory(const struct camera *camera)
{
    const struct stage_timing *progress = &camera->progress;
    struct stream_memory ret = camera->config->stream;
    uint64_t size = atomic_load(&progress->size);
    if (size) {
        ret.width = (int)(size >> 32);
        ret.height = (int)(size & UINT32_MAX);
        ret.pixel_bits = atomic_load(&progress->pixel_bits);
        ret.pictures = atomic_load(&progress->kept);
        ret.surfaces = atomic_load(&progress->surfaces);
        ret.codec = (enum stream_codec)atomic_load(&progress->codec);
        ret.macroblock_bytes = atomic_load(&progress->macroblock_bytes);
    }
    return ret;
}

struct camera *camera_of_event(struct event *letter)
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

const char *camera_stuck(const struct camera *camera, int64_t patience_ns)
{
    return watchdog_stuck(feed_heartbeat(camera->thread->feed), patience_ns);
}

void camera_describe(struct camera *camera, struct camera_description *ret)
{
    struct camera_thread *thread = camera->thread;
    pthread_mutex_lock(&thread->lock);
    *ret = thread->description;
    pthread_mutex_unlock(&thread->lock);
}
