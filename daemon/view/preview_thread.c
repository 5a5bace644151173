// Makes previews of pictures that cameras' threads leave for it.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/view/preview.h"
#include "daemon/work/geometry.h"

enum {
    NICENESS = 5
}; // above the daemon's: outputs come first, and busy machines still have previews

// --- the threads

static void publish(struct preview *preview, struct preview_picture *picture)
{
    struct previews *previews = preview->source->previews;
    if (!picture)
        return;
    pthread_mutex_lock(&previews->lock);
    struct preview_picture *before = preview->ready;
    preview->ready = picture;
    preview_add_done(preview);
    pthread_mutex_unlock(&previews->lock);
    if (before)
        atomic_fetch_add(&previews->dropped, 1);
    free(before); // nobody has a reference
    event_post(previews->events, &previews->event);
}

static void note_failure(const struct preview *preview, int rc)
{
    if (rc == -EIO || rc == -ENODEV)
        device_failed(preview->source->lease, rc);
}

static void encode(struct preview *preview, const struct frame_info *info)
{
    char why[PREVIEW_WHY_MAX] = "";
    const uint8_t *file = NULL;
    size_t size = 0;
    if (rendition_encode(&preview->rendition, &file, &size, why, sizeof why) < 0) {
        publish(preview, preview_refuse(preview, why));
        return;
    }
    atomic_fetch_add(&preview->source->previews->made, 1);
    publish(preview, preview_make_picture(preview, info, file, size));
}

// Reads the picture for the preview. False: nothing to encode; its askers get the reason.
static bool read_picture(struct preview *preview, struct frame *frame)
{
    char why[PREVIEW_WHY_MAX] = "";
    int rc = -ENOENT;
    if (preview->refusal)
        snprintf(why, sizeof why, "%s", preview->refusal);
    else
        rc = rendition_read(&preview->rendition, &preview->params, frame, preview->source->lease,
                            why, sizeof why);
    if (rc == 0)
        return true;
    note_failure(preview, rc);
    publish(preview, preview_refuse(preview, why));
    return false;
}

// Removes gone previews, unless a device is still busy with them. The loop frees them, after its
// last notifications.
static void reap(struct preview_source *source)
{
    struct preview **link = &source->list;
    struct previews *previews = source->previews;
    pthread_mutex_lock(&previews->lock);
    while (*link) {
        struct preview *preview = *link;
        if (!preview->gone || rendition_is_busy(&preview->rendition)) {
            link = &preview->next;
            continue;
        }
        *link = preview->next;
        pthread_mutex_unlock(&previews->lock);
        rendition_close(&preview->rendition, source->lease);
        pthread_mutex_lock(&previews->lock);
        preview->dead = true;
        preview_add_done(preview);
    }
    pthread_mutex_unlock(&previews->lock);
    event_post(previews->events, &previews->event);
}

// Puts a preview off to the camera's next picture if the camera's thread waits. False: it does not.
static bool put_off(struct preview *preview)
{
    struct previews *previews = preview->source->previews;
    if (atomic_load(&preview->source->waiting) == 0)
        return false;
    pthread_mutex_lock(&previews->lock);
    preview->due = true;
    pthread_mutex_unlock(&previews->lock);
    return true;
}

// Makes the due previews of the source's picture; releases the picture before encoding. Under lock,
// which is released meanwhile.
static void make_previews(struct preview_source *source)
{
    struct previews *previews = source->previews;
    struct frame frame = source->frame;
    struct preview *due[PREVIEW_KINDS_MAX];
    int n = 0, read = 0;
    source->frame = (struct frame){0};
    for (struct preview *preview = source->list; frame.owner && preview; preview = preview->next)
        if (preview->due && !preview->gone && n < PREVIEW_KINDS_MAX) {
            preview->due = false;
            due[n++] = preview;
        }
    const bool reaps = preview_any_gone(source);
    pthread_mutex_unlock(&previews->lock);
    log_camera(source->camera);
    for (int i = 0; i < n; i++)
        if (!put_off(due[i]) && read_picture(due[i], &frame))
            due[read++] = due[i];
    const struct frame_info info = frame.info;
    frame_release(&frame);
    for (int i = 0; i < read; i++)
        if (!put_off(due[i]))
            encode(due[i], &info);
    if (reaps)
        reap(source);
    log_camera(NULL);
    pthread_mutex_lock(&previews->lock);
}

static void *run(void *opaque)
{
    struct preview_line *line = opaque;
    struct previews *previews = line->previews;
    pthread_setname_np(pthread_self(), "previews");
    if (line == &previews->on_host)
        setpriority(PRIO_PROCESS, (id_t)gettid(), getpriority(PRIO_PROCESS, 0) + NICENESS);
    pthread_mutex_lock(&previews->lock);
    while (!previews->stopped) {
        struct preview_source *source = line->first;
        if (!source) {
            pthread_cond_wait(&line->work, &previews->lock);
            continue;
        }
        preview_begin_work(source);
        make_previews(source);
        preview_end_work(source);
        atomic_store(&line->busy_ns, (uint64_t)processor_time_thread_ns());
    }
    pthread_mutex_unlock(&previews->lock);
    return NULL;
}

// Returns 0 or a negative errno. Under lock.
static int start_line(struct preview_line *line)
{
    if (line->running)
        return 0;
    if (line->previews->stopped)
        return -ESHUTDOWN;
    const int rc = -pthread_create(&line->thread, NULL, run, line);
    line->running = rc == 0;
    return rc;
}

int preview_start(struct previews *previews)
{
    pthread_mutex_lock(&previews->lock);
    const int rc = start_line(&previews->on_host);
    pthread_mutex_unlock(&previews->lock);
    return rc;
}

static void stop_line(struct preview_line *line)
{
    pthread_mutex_lock(&line->previews->lock);
    const bool running = line->running;
    line->running = false;
    pthread_cond_signal(&line->work);
    pthread_mutex_unlock(&line->previews->lock);
    if (running)
        pthread_join(line->thread, NULL);
}

// --- the camera's thread

// Called under lock, while no thread uses the renditions.
static void choose_line(struct preview_source *source, const struct image *image)
{
    struct previews *previews = source->previews;
    const bool on_device = image->memory == MEMORY_CUDA && start_line(&previews->on_device) == 0;
    preview_move_source(source, on_device ? &previews->on_device : &previews->on_host);
}

// Sets the rendition to make, of an output if it has one. Under lock, while no thread uses it.
static void choose(struct preview *preview, const struct frame *frame,
                   const struct subscriptions *subscriptions)
{
    struct rendition_params params = preview->params;
    const struct preview_wish *wish = &preview->wish;
    int i = 0;
    preview->refusal = NULL;
    preview->sequence = preview->source->sequence;
    params.fine = wish->fps <= 0;
    params.plane = wish->plane;
    params.width = wish->width;
    params.tensor = *wish->output;
    if (params.tensor) {
        while (i < subscriptions->n &&
               strcmp(subscriptions->list[i].output->config->name, wish->output) != 0)
            i++;
        const struct subscription *subscription = &subscriptions->list[i];
        if (i == subscriptions->n)
            preview->refusal = "the camera has no such output any more";
        else if (i >= subscriptions->n_pictures)
            preview->refusal = "the output is not made of every picture";
        else if (geometry_first(&params.op, subscription, &frame->image) < 0)
            preview->refusal = "the output cannot be made of the camera's pictures";
        else
            preview->sequence = subscription->output->sequence;
    }
    const struct lut *before = preview->lut;
    preview->params = params;
    preview->lut =
        lut_ref(params.op.kind == OP_WARP ? params.op.warp.lut : params.op.yuv.geometry.lut);
    lut_unref(before);
}

// True if any preview is due for the source's next picture. Under lock.
static bool mark_due(struct preview_source *source, int64_t pts_ns, bool restarts)
{
    bool any = false;
    for (struct preview *preview = source->list; preview; preview = preview->next) {
        if (preview->gone)
            continue;
        if (restarts)
            rate_restart(&preview->rate);
        if (preview->wish.fps > 0 && rate_keeps(&preview->rate, pts_ns)) {
            if (preview->due)
                atomic_fetch_add(&source->previews->dropped, 1);
            preview->due = true;
        }
        any |= preview->due;
    }
    return any;
}

void preview_offer(struct preview_source *source, struct frame *frame,
                   const struct subscriptions *subscriptions)
{
    if (!source || frame->lost)
        return;
    source->sequence++;
    const bool restarts = source->epoch != frame->info.epoch;
    source->epoch = frame->info.epoch;
    if (atomic_load(&source->asked) == 0)
        return;
    struct previews *previews = source->previews;
    struct frame before = {0};
    pthread_mutex_lock(&previews->lock);
    if (mark_due(source, frame->info.pts_ns, restarts) && !source->working) {
        before = source->frame;
        if (frame_share(frame, &source->frame) < 0)
            source->frame = (struct frame){0};
        for (struct preview *preview = source->list; preview; preview = preview->next)
            if (preview->due && !preview->gone)
                choose(preview, frame, subscriptions);
        choose_line(source, &frame->image);
        preview_queue_source(source);
    }
    pthread_mutex_unlock(&previews->lock);
    frame_release(&before);
}

void preview_drain(struct preview_source *source)
{
    if (!source)
        return;
    struct previews *previews = source->previews;
    pthread_mutex_lock(&previews->lock);
    preview_begin_work(source);
    struct frame frame = source->frame;
    struct preview *list = source->list; // new ones have nothing to close
    source->frame = (struct frame){0};
    pthread_mutex_unlock(&previews->lock);
    frame_release(&frame);
    for (struct preview *preview = list; preview; preview = preview->next)
        rendition_close(&preview->rendition, source->lease);
    pthread_mutex_lock(&previews->lock);
    preview_end_work(source);
    pthread_mutex_unlock(&previews->lock);
}

// --- life

static void open_line(struct preview_line *line, struct previews *previews)
{
    line->previews = previews;
    line->last = &line->first;
    pthread_cond_init(&line->work, NULL);
}

int previews_open(struct previews **ret, uv_loop_t *loop, struct event_queue *events)
{
    struct previews *previews = calloc(1, sizeof *previews);
    if (!previews)
        return -ENOMEM;
    previews->events = events;
    previews->event.callback = preview_hand_out;
    pthread_mutex_init(&previews->lock, NULL);
    open_line(&previews->on_host, previews);
    open_line(&previews->on_device, previews);
    pthread_cond_init(&previews->idle, NULL);
    uv_timer_init(loop, &previews->timer);
    previews->timer.data = previews;
    *ret = previews;
    return 0;
}

void previews_stop(struct previews *previews)
{
    previews->closing = true;
    uv_close((uv_handle_t *)&previews->timer, NULL);
    pthread_mutex_lock(&previews->lock);
    previews->stopped = true;
    pthread_mutex_unlock(&previews->lock);
    stop_line(&previews->on_host);
    stop_line(&previews->on_device);
}

void previews_close(struct previews *previews)
{
    if (!previews)
        return;
    while (previews->done) {
        struct preview *preview = previews->done;
        preview_remove_done(preview);
        preview_free(preview);
    }
    pthread_cond_destroy(&previews->idle);
    pthread_cond_destroy(&previews->on_host.work);
    pthread_cond_destroy(&previews->on_device.work);
    pthread_mutex_destroy(&previews->lock);
    free(previews);
}

struct preview_counts previews_counts(struct previews *previews)
{
    return (struct preview_counts){
        .made = atomic_load(&previews->made),
        .dropped = atomic_load(&previews->dropped),
        .busy_ns =
            atomic_load(&previews->on_host.busy_ns) + atomic_load(&previews->on_device.busy_ns),
        .kinds = atomic_load(&previews->kinds),
    };
}

int preview_source_open(struct preview_source **ret, struct previews *previews, const char *camera,
                        const struct device_lease *lease)
{
    struct preview_source *source = calloc(1, sizeof *source);
    if (!source)
        return -ENOMEM;
    source->previews = previews;
    source->camera = camera;
    source->lease = lease;
    source->line = &previews->on_host;
    *ret = source;
    return 0;
}

void preview_source_close(struct preview_source *source)
{
    if (!source)
        return;
    struct previews *previews = source->previews;
    pthread_mutex_lock(&previews->lock);
    preview_begin_work(source); // for good: the thread removes no preview from the list any more
    pthread_mutex_unlock(&previews->lock);
    for (struct preview *preview = source->list; preview; preview = preview->next)
        preview_dismiss(preview);
    pthread_mutex_lock(&previews->lock);
    for (struct preview *preview = source->list; preview; preview = preview->next)
        preview_remove_done(preview);
    // Previews that the thread has removed from the list are among the done ones.
    struct preview **link = &previews->done;
    struct preview *dead = NULL;
    while (*link) {
        struct preview *preview = *link;
        if (preview->source != source) {
            link = &preview->next_done;
            continue;
        }
        *link = preview->next_done;
        preview->next = dead;
        dead = preview;
    }
    pthread_mutex_unlock(&previews->lock);
    while (dead) {
        struct preview *preview = dead;
        dead = preview->next;
        preview_free(preview);
    }
    while (source->list) {
        struct preview *preview = source->list;
        source->list = preview->next;
        preview_free(preview);
    }
    frame_release(&source->frame);
    free(source);
}
