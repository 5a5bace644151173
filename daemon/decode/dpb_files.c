#include "daemon/decode/dpb_files.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "config/object.h"
#include "config/url.h"
#include "daemon/base/clock.h"
#include "daemon/decode/dpb.h"
#include "daemon/input/url.h"

// Its thread and its caller leave it; whoever comes last frees it.
struct probe {
    struct camera_config **cameras; // copies, for the caller may free its own
    int n_cameras;
    _Atomic bool stop; // the deadline has passed
    pthread_mutex_t lock;
    pthread_cond_t through;
    // Under lock.
    struct stream_memory *streams; // one a camera
    bool left;                     // by one of the two
};

static bool is_file(const struct camera_config *camera)
{
    const struct url_input *source = url_input_of(camera->url);
    return source && source->kind == URL_FILE && !source->fifo;
}

// A camera before camera `i` that reads the same file in the same way; -1: none.
static int find_same(struct camera_config *const cameras[], int i)
{
    const struct camera_config *own = cameras[i];
    for (int other = 0; other < i; other++)
        if (strcmp(cameras[other]->url, own->url) == 0 && own->options.n == 0 &&
            cameras[other]->options.n == 0)
            return other;
    return -1;
}

static void probe_camera(struct probe *probe, int i)
{
    const struct camera_config *camera = probe->cameras[i];
    struct stream_memory stream = {0};
    int same = find_same(probe->cameras, i);
    if (same >= 0)
        stream = probe->streams[same];
    else if (is_file(camera))
        dpb_probe(&stream, camera, &probe->stop);
    pthread_mutex_lock(&probe->lock);
    probe->streams[i] = stream;
    pthread_mutex_unlock(&probe->lock);
}

static void probe_all(struct probe *probe)
{
    for (int i = 0; !atomic_load(&probe->stop) && i < probe->n_cameras; i++)
        probe_camera(probe, i);
}

static void release(struct probe *probe)
{
    for (int i = 0; i < probe->n_cameras; i++)
        config_free_camera(probe->cameras[i]);
    free(probe->cameras);
    free(probe->streams);
    free(probe);
}

static void leave(struct probe *probe)
{
    bool last = probe->left;
    probe->left = true;
    pthread_cond_signal(&probe->through);
    pthread_mutex_unlock(&probe->lock);
    if (!last)
        return;
    pthread_cond_destroy(&probe->through);
    pthread_mutex_destroy(&probe->lock);
    release(probe);
}

static void *run(void *opaque)
{
    struct probe *probe = opaque;
    probe_all(probe);
    pthread_mutex_lock(&probe->lock);
    leave(probe);
    return NULL;
}

static struct probe *make(const struct config *config)
{
    const size_t n = (size_t)config->n_cameras;
    struct probe *probe = calloc(1, sizeof *probe);
    if (!probe)
        return NULL;
    probe->cameras = calloc(n, sizeof *probe->cameras);
    probe->streams = calloc(n, sizeof *probe->streams);
    bool made = probe->cameras && probe->streams;
    for (; made && probe->n_cameras < config->n_cameras; probe->n_cameras += made) {
        struct camera_config *copy = config_copy_camera(&config->cameras[probe->n_cameras]);
        probe->cameras[probe->n_cameras] = copy;
        made = copy != NULL;
    }
    if (made)
        return probe;
    release(probe);
    return NULL;
}

static struct probe *start(const struct config *config)
{
    pthread_t thread;
    pthread_condattr_t attributes;
    struct probe *probe = make(config);
    if (!probe)
        return NULL;
    pthread_mutex_init(&probe->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&probe->through, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&thread, NULL, run, probe) == 0) {
        pthread_detach(thread);
        return probe;
    }
    probe->left = true;
    pthread_mutex_lock(&probe->lock);
    leave(probe);
    return NULL;
}

void dpb_probe_files(struct config *config, int64_t deadline_ns)
{
    struct probe *probe = start(config);
    if (!probe)
        return;
    deadline_ns += monotonic_ns();
    struct timespec until = {deadline_ns / 1000000000, deadline_ns % 1000000000};
    pthread_mutex_lock(&probe->lock);
    while (!probe->left && pthread_cond_timedwait(&probe->through, &probe->lock, &until) == 0)
        ;
    atomic_store(&probe->stop, true);
    for (int i = 0; i < config->n_cameras; i++)
        config->cameras[i].stream = probe->streams[i];
    leave(probe);
}
