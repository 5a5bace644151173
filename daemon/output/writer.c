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

// A thread and the writers whose jobs wait for it. To find the device of a folder, a thread begins
// with a look at it. It ends without users, and frees itself: a disk that hangs holds it for long.
struct writer_thread {
    char folder[PATH_BYTES]; // to look at first; "": none
    bool looked;             // and set:
    int error;
    dev_t device; // of its files; 0: unknown, or it publishes
    pthread_cond_t changed;
    int users; // writers, and the loop while the thread looks at the folder
    struct writer *first, **last;
    struct writer_thread *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct writer_thread *threads; // newest first; with all members guarded by `lock`

static void name_thread(dev_t device)
{
    char name[16] = "publish";
    if (device)
        snprintf(name, sizeof name, "disk %u:%u", major(device), minor(device));
    pthread_setname_np(pthread_self(), name);
}

static struct writer *wait_for_job(struct writer_thread *thread)
{
    struct writer *writer;
    while (!(writer = thread->first) && thread->users > 0)
        pthread_cond_wait(&thread->changed, &lock);
    if (writer && !(thread->first = writer->next))
        thread->last = &thread->first;
    return writer;
}

static void *run_jobs(void *opaque)
{
    struct writer_thread *thread = opaque, **link = &threads;
    struct stat st = {.st_dev = thread->device};
    struct writer *writer;
    const int error = *thread->folder && stat(thread->folder, &st) < 0 ? -errno : 0;
    name_thread(st.st_dev);
    pthread_mutex_lock(&lock);
    thread->looked = true;
    thread->error = error;
    thread->device = st.st_dev;
    pthread_cond_signal(&thread->changed);
    while ((writer = wait_for_job(thread))) {
        pthread_mutex_unlock(&lock);
        writer->run(writer);
        pthread_mutex_lock(&lock);
        uv_async_send(&writer->done);
    }
    while (*link != thread)
        link = &(*link)->next;
    *link = thread->next;
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&thread->changed);
    free(thread);
    return NULL;
}

// The functions up to release_thread, except acquire_thread, need the lock.

static int start_thread(struct writer_thread **ret, dev_t device, const char *folder)
{
    struct writer_thread *thread = calloc(1, sizeof *thread);
    pthread_t id;
    if (!thread)
        return -ENOMEM;
    snprintf(thread->folder, sizeof thread->folder, "%s", folder);
    thread->device = device;
    thread->users = 1;
    thread->last = &thread->first;
    condition_init(&thread->changed);
    const int rc = -pthread_create(&id, NULL, run_jobs, thread);
    if (rc < 0) {
        pthread_cond_destroy(&thread->changed);
        free(thread);
        return rc;
    }
    pthread_detach(id);
    thread->next = threads;
    *ret = threads = thread;
    return 0;
}

// Finds or starts the thread of a device; of two, the older one.
static int share_thread(struct writer_thread **ret, dev_t device)
{
    struct writer_thread *found = NULL;
    for (struct writer_thread *thread = threads; thread; thread = thread->next)
        if (thread->device == device)
            found = thread;
    if (!found)
        return start_thread(ret, device, "");
    found->users++;
    *ret = found;
    return 0;
}

static void leave_thread(struct writer_thread *thread)
{
    thread->users--;
    pthread_cond_signal(&thread->changed);
}

static bool is_looked_at(const char *folder)
{
    const struct writer_thread *thread = threads;
    while (thread && (thread->looked || strcmp(thread->folder, folder) != 0))
        thread = thread->next;
    return thread;
}

// Acquires the thread for a file system by a folder of it. Returns 0; -ETIMEDOUT: the look at the
// folder takes long, or an earlier one has not come back; or another negative errno.
static int look_and_share(struct writer_thread **ret, const char *folder)
{
    const int64_t until_ns = monotonic_ns() + LOOK_MAX_NS;
    struct writer_thread *looking = NULL;
    int rc = is_looked_at(folder) ? -ETIMEDOUT : start_thread(&looking, 0, folder);
    if (rc < 0)
        return rc;
    while (rc == 0 && !looking->looked)
        rc = condition_wait(&looking->changed, &lock, until_ns);
    if (looking->looked)
        rc = looking->error;
    if (rc == 0)
        rc = share_thread(ret, looking->device);
    leave_thread(looking);
    return rc;
}

// `path`: of files; NULL: the writer publishes.
static int acquire_thread(struct writer_thread **ret, const char *path)
{
    char folder[PATH_BYTES];
    if (path)
        segment_folder(path, folder);
    pthread_mutex_lock(&lock);
    const int rc = path ? look_and_share(ret, folder) : start_thread(ret, 0, "");
    pthread_mutex_unlock(&lock);
    return rc;
}

static void release_thread(struct writer_thread *thread)
{
    pthread_mutex_lock(&lock);
    leave_thread(thread);
    pthread_mutex_unlock(&lock);
}

// Another file system may have been mounted at the path.
static void follow_device(struct writer *writer)
{
    struct writer_thread *thread;
    if (writer->segment.fd < 0 || writer->segment.device == writer->thread->device)
        return;
    pthread_mutex_lock(&lock);
    if (share_thread(&thread, writer->segment.device) == 0) {
        leave_thread(writer->thread);
        writer->thread = thread;
    }
    pthread_mutex_unlock(&lock);
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
    writer->stopped = true;
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
    writer->kind->acquire(writer); // loses what is left
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
    const bool last = writer->finishing && !(pool && pool_is_filling(pool)); // before `acquire`
    const bool acquired = writer->kind->acquire(writer);
    writer->ending = last && !acquired;
    if (acquired || writer->ending)
        start_job(writer, writer->kind->write);
}

static void job_is_done(uv_async_t *async)
{
    struct writer *writer = async->data;
    pthread_mutex_lock(&lock); // the thread has left the writer, which may be freed
    pthread_mutex_unlock(&lock);
    writer->busy = false;
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
    atomic_store(&writer->finishing, true);
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

// Acquires the thread of the output's files if these can be written.
static int find_files(struct writer_thread **ret, const struct output_config *config, bool ours,
                      gid_t *group, char *why, size_t size)
{
    int rc = group_of_output(config, group, why, size);
    if (rc < 0)
        return rc;
    rc = acquire_thread(ret, config->sink.path);
    if (rc == 0) {
        rc = segment_check(config);
        if (rc == -EBUSY && ours)
            rc = 0;
        if (rc < 0)
            release_thread(*ret);
    }
    return explain_path(config->sink.path, rc, why, size);
}

int file_check(const struct output_config *config, bool ours, char *why, size_t size)
{
    struct writer_thread *thread;
    gid_t group;
    int rc = find_files(&thread, config, ours, &group, why, size);
    if (rc == 0)
        release_thread(thread);
    return rc;
}

// An untimed file of frames or lines exists from the start.
static int open_files(struct writer *writer, char *why, size_t size)
{
    const struct output_config *config = writer_config(writer);
    gid_t group;
    int rc = find_files(&writer->thread, config, false, &group, why, size);
    if (rc < 0)
        return rc;
    segment_init(&writer->segment, config, group);
    if (config->sink.timed || writer->sink.context.packets)
        return 0;
    rc = segment_open(&writer->segment, 0);
    if (rc < 0)
        release_thread(writer->thread);
    return explain_path(config->sink.path, rc, why, size);
}

static int open_server(struct writer *writer, char *why, size_t size)
{
    const int rc = acquire_thread(&writer->thread, NULL);
    if (rc < 0)
        snprintf(why, size, "no thread to write: %s", strerror(-rc));
    return rc;
}

static int open_writer(struct sink **ret, const struct sink_context *context, char *why,
                       size_t size)
{
    const struct writer_kind *kind = context->packets ? &copier_kind : &file_kind;
    struct writer *writer = calloc(1, kind->size);
    if (!writer) {
        snprintf(why, size, "out of memory");
        return -ENOMEM;
    }
    writer->sink = (struct sink){.driver = &writer_sink, .context = *context};
    writer->kind = kind;
    writer->segment.fd = -1;
    const int rc =
        writer_is_server(writer) ? open_server(writer, why, size) : open_files(writer, why, size);
    if (rc < 0) {
        free(writer);
        return rc;
    }
    uv_timer_init(context->loop, &writer->timer);
    uv_async_init(context->loop, &writer->done, job_is_done);
    writer->timer.data = writer->done.data = writer;
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
