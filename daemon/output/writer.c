#include "daemon/output/writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "config/object.h"
#include "daemon/base/clock.h"

enum { WRITE_MS = 500 };                      // copies write so often: kill -9 costs no more
static const int64_t LOOK_MAX_NS = 500000000; // the loop waits no longer for a folder

// --- threads

// A thread and the writers whose jobs wait for it. It ends with its last writer.
struct writer_thread {
    bool of_files;
    dev_t device; // of its files
    pthread_t id;
    pthread_cond_t changed;
    int writers;
    struct writer *first, **last;
    struct writer_thread *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // guards the threads, and writers' `ran`
static struct writer_thread *threads;

static struct writer *wait_for_job(struct writer_thread *thread)
{
    struct writer *writer;
    while (!(writer = thread->first) && thread->writers > 0)
        pthread_cond_wait(&thread->changed, &lock);
    if (writer && !(thread->first = writer->next))
        thread->last = &thread->first;
    return writer;
}

// The loop frees no writer before it has seen `ran`, which takes the lock.
static void *run_jobs(void *opaque)
{
    struct writer_thread *thread = opaque;
    struct writer *writer;
    char name[16] = "publish";
    if (thread->of_files)
        snprintf(name, sizeof name, "disk %u:%u", major(thread->device), minor(thread->device));
    pthread_setname_np(pthread_self(), name);
    pthread_mutex_lock(&lock);
    while ((writer = wait_for_job(thread))) {
        pthread_mutex_unlock(&lock);
        writer->run(writer);
        pthread_mutex_lock(&lock);
        writer->ran = true;
        uv_async_send(&writer->done);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static int start_thread(struct writer_thread **ret, bool of_files, dev_t device)
{
    struct writer_thread *thread = calloc(1, sizeof *thread);
    if (!thread)
        return -ENOMEM;
    thread->of_files = of_files;
    thread->device = device;
    thread->writers = 1;
    thread->last = &thread->first;
    pthread_cond_init(&thread->changed, NULL);
    const int rc = -pthread_create(&thread->id, NULL, run_jobs, thread);
    if (rc < 0) {
        pthread_cond_destroy(&thread->changed);
        free(thread);
        return rc;
    }
    thread->next = threads;
    *ret = threads = thread;
    return 0;
}

static int acquire_thread(struct writer_thread **ret, bool of_files, dev_t device)
{
    int rc = 0;
    pthread_mutex_lock(&lock);
    struct writer_thread *thread = of_files ? threads : NULL;
    while (thread && (!thread->of_files || thread->device != device))
        thread = thread->next;
    if (thread) {
        thread->writers++;
        *ret = thread;
    } else {
        rc = start_thread(ret, of_files, device);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

// The thread of the last writer has no job, so that it ends at once.
static void release_thread(struct writer_thread *thread)
{
    struct writer_thread **link = &threads;
    pthread_mutex_lock(&lock);
    const bool last = --thread->writers == 0;
    while (last && *link != thread)
        link = &(*link)->next;
    if (last)
        *link = thread->next;
    pthread_cond_signal(&thread->changed);
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    pthread_join(thread->id, NULL);
    pthread_cond_destroy(&thread->changed);
    free(thread);
}

// Another file system may have been mounted at the path.
static void follow_device(struct writer *writer)
{
    struct writer_thread *thread;
    if (writer->segment.fd < 0 || writer->segment.device == writer->thread->device ||
        acquire_thread(&thread, true, writer->segment.device) < 0)
        return;
    release_thread(writer->thread);
    writer->thread = thread;
}

static void start_job(struct writer *writer, void (*run)(struct writer *))
{
    writer->busy = true;
    writer->run = run;
    writer->next = NULL;
    pthread_mutex_lock(&lock);
    *writer->thread->last = writer;
    writer->thread->last = &writer->next;
    pthread_cond_signal(&writer->thread->changed);
    pthread_mutex_unlock(&lock);
}

static bool job_is_over(struct writer *writer)
{
    pthread_mutex_lock(&lock);
    const bool ran = writer->ran;
    writer->ran = false;
    pthread_mutex_unlock(&lock);
    return ran;
}

// --- the log

static const char *path_of(const struct writer *writer)
{
    return writer_config(writer)->sink.path;
}

static void log_status(struct writer *writer)
{
    char url[512];
    const bool fails = writer->status < 0;
    if (fails == writer->failing || (writer->finishing && writer_is_server(writer)))
        return;
    writer->failing = fails;
    if (fails)
        sink_event(&writer->sink, LOG_LEVEL_ERROR, "%s", writer->why);
    else if (writer_is_server(writer))
        sink_event(&writer->sink, LOG_LEVEL_INFO, "publishing to %s again",
                   config_sink_url(writer_config(writer), url, sizeof url));
    else
        sink_event(&writer->sink, LOG_LEVEL_INFO, "writing %s again", path_of(writer));
}

static void log_leftovers(struct writer *writer)
{
    const struct leftovers *left = &writer->leftovers;
    if (left->unread < 0)
        sink_event(&writer->sink, LOG_LEVEL_WARNING, "cannot look for files left of %s: %s",
                   path_of(writer), strerror(-left->unread));
    if (left->finished > 0)
        sink_event(&writer->sink, LOG_LEVEL_INFO, "files left of %s by an earlier run: %d finished",
                   path_of(writer), left->finished);
    if (left->stuck > 0)
        sink_event(&writer->sink, LOG_LEVEL_WARNING,
                   "files left of %s by an earlier run: %d cannot be finished and stay as they "
                   "are: %s: %s",
                   path_of(writer), left->stuck, left->first_stuck,
                   left->error == -EILSEQ ? "it does not begin with a frame of this output"
                                          : strerror(-left->error));
    writer->leftovers = (struct leftovers){0};
}

static void log_files(struct writer *writer)
{
    struct segment *segment = &writer->segment;
    struct keep *keep = &segment->keep;
    if (keep->error < 0 && !keep->logged)
        sink_event(&writer->sink, LOG_LEVEL_ERROR, "cannot delete old files of %s: %s%s%s",
                   path_of(writer), keep->failed, *keep->failed ? ": " : "",
                   strerror(-keep->error));
    keep->logged = keep->error < 0;
    if (segment->refused_change && !segment->logged_change)
        sink_event(&writer->sink, LOG_LEVEL_WARNING,
                   "%s: the stream changes more often than once a minute, which begins no more "
                   "files: what does not fit the open file is lost",
                   path_of(writer));
    segment->logged_change = segment->refused_change;
    if (writer->unfinished < 0)
        sink_event(&writer->sink, LOG_LEVEL_ERROR, "cannot finish %s: %s: left to the next start",
                   segment->path, strerror(-writer->unfinished));
    writer->unfinished = 0;
}

// --- from job to job

static void finish_leftovers(struct writer *writer)
{
    segment_finish_leftovers(writer_config(writer), &writer->leftovers);
}

static void finish_last(struct writer *writer)
{
    writer->unfinished = writer->kind->finish(writer);
}

static void set_source(const struct writer *writer, enum pool_sink state)
{
    const struct sink_context *context = &writer->sink.context;
    if (context->pool)
        pool_set_sink(context->pool, state);
    if (context->packets)
        packet_queue_set_sink(context->packets, state);
}

static void stop_writer(struct writer *writer)
{
    set_source(writer, POOL_SINK_STOPPED);
    if (writer->kind->stop)
        writer->kind->stop(writer);
}

static void async_closed(uv_handle_t *handle)
{
    struct writer *writer = handle->data;
    struct sink_context context = writer->sink.context;
    free(writer);
    context.closed(context.opaque);
}

static void timer_closed(uv_handle_t *handle)
{
    struct writer *writer = handle->data;
    uv_close((uv_handle_t *)&writer->done, async_closed);
}

static void close_writer(struct writer *writer)
{
    stop_writer(writer);
    if (writer->sink.context.pool)
        pool_detach(writer->sink.context.pool, &writer->consumer);
    release_thread(writer->thread);
    uv_close((uv_handle_t *)&writer->timer, timer_closed);
}

// Starts a job on the next piece, or the last one once no more can come.
static void start_next(struct writer *writer)
{
    struct pool *pool = writer->sink.context.pool;
    if (writer->busy || writer->ending)
        return;
    if (writer->kind->acquire(writer)) {
        start_job(writer, writer->kind->write);
    } else if (writer->finishing && !(pool && pool_is_filling(pool))) {
        writer->ending = true;
        start_job(writer, finish_last);
    }
}

static void job_is_done(uv_async_t *async)
{
    struct writer *writer = async->data;
    if (!job_is_over(writer))
        return;
    writer->busy = false;
    if (writer->run == writer->kind->write && writer->kind->release)
        writer->kind->release(writer);
    log_leftovers(writer);
    log_status(writer);
    log_files(writer);
    if (!writer_is_server(writer))
        follow_device(writer);
    if (writer->ending)
        close_writer(writer);
    else
        start_next(writer);
}

static void pump_writer(struct sink *sink)
{
    struct writer *writer = (struct writer *)sink;
    writer->due = true;
    start_next(writer);
}

static void time_to_write(uv_timer_t *timer)
{
    pump_writer(timer->data);
}

static void grace_is_over(uv_timer_t *timer)
{
    struct writer *writer = timer->data;
    stop_writer(writer);
    start_next(writer); // ends now, or when the piece under way is written
}

// Packets are written however long it takes: a disk call cannot be interrupted.
static void finish_writer(struct sink *sink, int grace_ms)
{
    struct writer *writer = (struct writer *)sink;
    if (writer->ending)
        return;
    writer->finishing = true;
    atomic_store(&writer->stop, true);
    set_source(writer, POOL_SINK_FINISHING);
    if (!sink->context.packets)
        uv_timer_start(&writer->timer, grace_is_over, (uint64_t)grace_ms, 0);
    start_next(writer);
}

// A server that cannot be reached is no client.
static int count_clients(const struct sink *sink)
{
    const struct writer *writer = (const struct writer *)sink;
    return !writer_is_server(writer) || !writer->failing;
}

// --- opening

// A look at a folder, on a thread of its own: the loop waits for a disk that hangs only so long.
struct look {
    char folder[PATH_BYTES];
    struct look_result *to; // NULL: nobody waits any more; under `lock`, like:
    struct look *next;
};

struct look_result {
    pthread_cond_t changed; // of `over`
    bool over;
    int rc;
    dev_t device;
};

static struct look *looks;

static void *look_at_folder(void *opaque)
{
    struct look *look = opaque, **link = &looks;
    struct stat st = {0};
    pthread_setname_np(pthread_self(), "folder");
    const int rc = stat(look->folder, &st) < 0 ? -errno : 0;
    pthread_mutex_lock(&lock);
    while (*link != look)
        link = &(*link)->next;
    *link = look->next;
    if (look->to) {
        look->to->over = true;
        look->to->rc = rc;
        look->to->device = st.st_dev;
        pthread_cond_signal(&look->to->changed);
    }
    pthread_mutex_unlock(&lock);
    free(look);
    return NULL;
}

static bool is_looked_at(const char *folder)
{
    const struct look *look = looks;
    while (look && strcmp(look->folder, folder) != 0)
        look = look->next;
    return look;
}

// Starts a look. Returns 0; -ETIMEDOUT: one at the folder has not come back; or another negative
// errno.
static int start_look(struct look **ret, const char *path, struct look_result *to)
{
    struct look *look = calloc(1, sizeof *look);
    pthread_t thread;
    if (!look)
        return -ENOMEM;
    segment_folder(path, look->folder);
    const int rc = is_looked_at(look->folder)
                       ? -ETIMEDOUT
                       : -pthread_create(&thread, NULL, look_at_folder, look);
    if (rc < 0) {
        free(look);
        return rc;
    }
    pthread_detach(thread);
    look->to = to;
    look->next = looks;
    *ret = looks = look;
    return 0;
}

// Sets *ret to the file system of the path's folder. Returns 0, -ETIMEDOUT or another negative
// errno.
static int find_device(const char *path, dev_t *ret)
{
    const int64_t until_ns = monotonic_ns() + LOOK_MAX_NS;
    struct look_result result = {0};
    struct look *look = NULL;
    condition_init(&result.changed);
    pthread_mutex_lock(&lock);
    int rc = start_look(&look, path, &result);
    const bool started = rc == 0;
    while (rc == 0 && !result.over)
        rc = condition_wait(&result.changed, &lock, until_ns);
    if (started && !result.over)
        look->to = NULL;
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&result.changed);
    *ret = result.device;
    return result.over ? result.rc : rc;
}

static int explain_path(const char *path, int rc, char *why, size_t size)
{
    if (rc == -EEXIST)
        snprintf(why, size, "%s exists and is not a file", path);
    else if (rc == -EBUSY)
        snprintf(why, size, "%s is being written by another output or process", path);
    else if (rc == -ETIMEDOUT)
        snprintf(why, size, "cannot write %s: its disk does not answer", path);
    else if (rc < 0)
        snprintf(why, size, "cannot write %s: %s", path, strerror(-rc));
    return rc;
}

int file_check(const struct output_config *config, bool ours, char *why, size_t size)
{
    gid_t group;
    dev_t device;
    int rc = group_of_output(config, &group, why, size);
    if (rc < 0)
        return rc;
    rc = find_device(config->sink.path, &device);
    if (rc == 0)
        rc = segment_check(config);
    if (rc == -EBUSY && ours)
        rc = 0;
    return explain_path(config->sink.path, rc, why, size);
}

// An untimed file of frames or lines exists from the start.
static int open_files(struct writer *writer, dev_t *device, char *why, size_t size)
{
    const struct sink_context *context = &writer->sink.context;
    const struct output_config *config = context->config;
    gid_t group;
    int rc = group_of_output(config, &group, why, size);
    if (rc < 0)
        return rc;
    segment_init(&writer->segment, config, group);
    rc = find_device(config->sink.path, device);
    if (rc == 0)
        rc = config->sink.timed || context->packets ? segment_check(config)
                                                    : segment_open(&writer->segment, 0);
    return explain_path(config->sink.path, rc, why, size);
}

static int open_writer(struct sink **ret, const struct sink_context *context, char *why,
                       size_t size)
{
    const struct writer_kind *kind = context->packets ? &copier_kind : &file_kind;
    struct writer *writer = calloc(1, kind->size);
    dev_t device = 0;
    if (!writer) {
        snprintf(why, size, "out of memory");
        return -ENOMEM;
    }
    writer->sink = (struct sink){.driver = &writer_sink, .context = *context};
    writer->kind = kind;
    writer->segment.fd = -1;
    int rc = writer_is_server(writer) ? 0 : open_files(writer, &device, why, size);
    if (rc == 0 && (rc = acquire_thread(&writer->thread, !writer_is_server(writer), device)) < 0)
        snprintf(why, size, "no thread to write: %s", strerror(-rc));
    if (rc < 0) {
        segment_finish(&writer->segment);
        segment_close(&writer->segment);
        free(writer);
        return rc;
    }
    uv_timer_init(context->loop, &writer->timer);
    uv_async_init(context->loop, &writer->done, job_is_done);
    writer->timer.data = writer->done.data = writer;
    if (kind->begin)
        kind->begin(writer);
    if (context->packets)
        uv_timer_start(&writer->timer, time_to_write, WRITE_MS, WRITE_MS);
    if (context->pool)
        pool_attach(context->pool, &writer->consumer);
    if (context->config->sink.timed)
        start_job(writer, finish_leftovers);
    *ret = &writer->sink;
    return 0;
}

const struct sink_driver writer_sink = {
    .open = open_writer,
    .pump = pump_writer,
    .finish = finish_writer,
    .clients = count_clients,
};
