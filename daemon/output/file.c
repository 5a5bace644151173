// Writes frames or lines to files, one after another. A job on libuv's thread pool opens the file
// if needed and writes one whole frame, or the waiting lines, so that a slow disk delays only this
// sink. After an error everything is lost for a second, and then one job is tried.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/access.h"
#include "daemon/output/lines.h"
#include "daemon/output/segment.h"
#include "daemon/output/sink.h"

enum {
    RETRY_MS = 1000,
    LINES_BYTES = 256 << 10, // most bytes of one job; a line has fewer
};

struct file_sink;

// The content of the files.
struct file_content {
    // Loop: takes the next piece to write, until `release`. Returns false if there is none.
    bool (*acquire)(struct file_sink *);
    void (*release)(struct file_sink *, bool written);
    void (*finishing)(struct file_sink *); // no more will come
    void (*stop)(struct file_sink *);      // nothing is acquired any more; may be called twice
    // Job: `time` in ns since 1970; `continues` if the piece belongs in the open file; `append`
    // writes all of it or nothing, as segment_append.
    int64_t (*time)(const struct file_sink *);
    bool (*continues)(const struct file_sink *);
    int (*append)(struct file_sink *);
};

struct file_sink {
    struct sink sink;
    const struct file_content *content;
    struct writer_job job;
    uv_timer_t timer; // from a failure to the next attempt; when finishing: the grace
    bool busy;        // the job owns the members below, else the loop does
    bool failing;     // the last attempt failed; waits for the timer or for a frame
    bool waiting;     // failing, and it is too early for another attempt
    bool finishing;
    bool ending; // the last job is under way, or over
    int status;  // of the job: negative errno or 0
    struct segment segment;
    struct leftovers leftovers; // found by the first job

    // Frames:
    struct consumer consumer;
    const struct result *result;     // being written, held
    struct stream_position position; // of the frames written

    // Lines:
    uint64_t next; // number of the next line
    struct {
        char *text; // room for LINES_BYTES
        size_t bytes;
        int n;
        int64_t time_ns; // of the first; all are of the same second
    } lines;             // being written
};

static const struct output_config *config_of(const struct file_sink *file)
{
    return file->sink.context.config;
}

// --- frames

static bool acquire_frame(struct file_sink *file)
{
    file->result = pool_acquire(file->sink.context.pool, &file->consumer);
    return file->result;
}

static void release_frame(struct file_sink *file, bool written)
{
    pool_release(file->sink.context.pool, &file->consumer, written);
}

static void finish_frames(struct file_sink *file)
{
    pool_set_sink(file->sink.context.pool, POOL_SINK_FINISHING);
}

static void stop_frames(struct file_sink *file)
{
    pool_set_sink(file->sink.context.pool, POOL_SINK_STOPPED);
}

static int64_t time_of_frame(const struct file_sink *file)
{
    return protocol_first_item(file->result)->frame.capture_ns;
}

static bool frame_continues(const struct file_sink *file)
{
    return segment_takes(&file->segment, file->result);
}

// A failed frame keeps the position: the file's next frame counts it as lost.
static int append_frame(struct file_sink *file)
{
    struct stream_position position = file->position;
    stream_advance(&position, file->result);
    int rc = segment_append(&file->segment, file->result, &position);
    if (rc == 0)
        file->position = position;
    return rc;
}

static const struct file_content frames = {acquire_frame, release_frame, finish_frames,
                                           stop_frames,   time_of_frame, frame_continues,
                                           append_frame};

// --- lines

// Copies the waiting lines of one second: a file may begin at each second.
static bool acquire_lines(struct file_sink *file)
{
    const struct line_queue *queue = file->sink.context.lines;
    const struct line *line;
    line_queue_offer(file->sink.context.lines, file->sink.context.account, 1);
    file->sink.context.account->lost += line_queue_skip(queue, &file->next);
    file->lines.bytes = 0;
    file->lines.n = 0;
    while ((line = line_queue_get(queue, file->next)) &&
           file->lines.bytes + line->bytes <= LINES_BYTES) {
        if (file->lines.n == 0)
            file->lines.time_ns = line->time_ns;
        else if (line->time_ns / 1000000000 != file->lines.time_ns / 1000000000)
            break;
        memcpy(file->lines.text + file->lines.bytes, line->text, line->bytes);
        file->lines.bytes += line->bytes;
        file->lines.n++;
        file->next++;
    }
    return file->lines.n > 0;
}

static void release_lines(struct file_sink *file, bool written)
{
    struct line_account *account = file->sink.context.account;
    *(written ? &account->delivered : &account->lost) += (uint64_t)file->lines.n;
}

static void finish_lines(struct file_sink *file)
{
    (void)file;
}

static void stop_lines(struct file_sink *file)
{
    const uint64_t next = file->sink.context.lines->next;
    line_queue_offer(file->sink.context.lines, file->sink.context.account, 1);
    file->sink.context.account->lost += next - file->next;
    file->next = next;
}

static int64_t time_of_lines(const struct file_sink *file)
{
    return file->lines.time_ns;
}

static bool lines_continue(const struct file_sink *file)
{
    return segment_continues(&file->segment, file->lines.time_ns, (int64_t)file->lines.bytes);
}

static int append_lines(struct file_sink *file)
{
    struct segment *segment = &file->segment;
    int rc = segment_write(segment, file->lines.text, file->lines.bytes, segment->whole);
    if (rc == 0)
        segment_settle(segment, segment->whole + (off_t)file->lines.bytes);
    else
        segment_cut(segment);
    return rc;
}

static const struct file_content lines = {acquire_lines, release_lines,  finish_lines, stop_lines,
                                          time_of_lines, lines_continue, append_lines};

// --- the job

// Opens the file that the piece belongs in. -EXFULL: the stream changes too often.
static int choose_file(struct file_sink *file)
{
    struct segment *segment = &file->segment;
    int rc = 0;
    const bool changes =
        file->result && segment_is_open(segment) && segment_differs(segment, file->result);
    if (changes && !segment_may_change(segment))
        return -EXFULL;
    if (segment_is_open(segment) && !file->content->continues(file))
        rc = segment_finish(segment);
    if (rc == 0 && !segment_is_open(segment))
        rc = segment_open(segment, file->content->time(file));
    return rc;
}

// A file at its size limit does not mean a full disk: another one begins.
static int append_to_next(struct file_sink *file)
{
    int rc = segment_finish(&file->segment);
    if (rc == 0)
        rc = segment_open(&file->segment, file->content->time(file));
    return rc < 0 ? rc : file->content->append(file);
}

static void write_piece(uv_work_t *job)
{
    struct file_sink *file = job->data;
    file->status = choose_file(file);
    if (file->status == 0)
        file->status = file->content->append(file);
    if (file->status == -EFBIG && segment_is_open(&file->segment) && file->segment.whole > 0)
        file->status = append_to_next(file);
    segment_keep(&file->segment);
}

static void finish_leftovers(uv_work_t *job)
{
    struct file_sink *file = job->data;
    file->status = segment_finish_leftovers(config_of(file), &file->leftovers);
}

static void finish_file(uv_work_t *job)
{
    struct file_sink *file = job->data;
    file->status = segment_finish(&file->segment);
    segment_close(&file->segment);
}

// --- the loop

static void write_next(struct file_sink *file);

static void timer_closed(uv_handle_t *handle)
{
    struct file_sink *file = handle->data;
    struct sink_context context = file->sink.context;
    free(file->lines.text);
    free(file);
    context.closed(context.opaque);
}

static void file_finished(uv_work_t *job, int status)
{
    struct file_sink *file = job->data;
    (void)status; // jobs are never cancelled
    if (file->status < 0)
        sink_event(&file->sink, LOG_LEVEL_ERROR, "cannot finish %s: %s: left to the next start",
                   file->segment.path, strerror(-file->status));
    uv_close((uv_handle_t *)&file->timer, timer_closed);
}

static void start_job(struct file_sink *file, uv_work_cb work, uv_after_work_cb done)
{
    file->busy = true;
    writers_start(file->sink.context.loop, &file->job, work, done);
}

static void end_file(struct file_sink *file)
{
    file->ending = true;
    file->content->stop(file);
    if (file->sink.context.pool)
        pool_detach(file->sink.context.pool, &file->consumer);
    start_job(file, finish_file, file_finished);
}

static void try_again(uv_timer_t *timer)
{
    struct file_sink *file = timer->data;
    file->waiting = false;
    write_next(file);
}

static void log_failure(struct file_sink *file)
{
    const char *path = config_of(file)->sink.path;
    if (file->status == -EXFULL)
        return;
    if (file->status < 0 && !file->failing)
        sink_event(&file->sink, LOG_LEVEL_ERROR, "cannot write %s: %s: %s are lost", path,
                   strerror(-file->status), file->content == &lines ? "lines" : "frames");
    if (file->status == 0 && file->failing)
        sink_event(&file->sink, LOG_LEVEL_INFO, "writing %s again", path);
    file->failing = file->status < 0;
}

static void piece_written(uv_work_t *job, int status)
{
    struct file_sink *file = job->data;
    (void)status;
    file->busy = false;
    file->content->release(file, file->status == 0);
    log_failure(file);
    sink_log_keep(&file->sink, &file->segment.keep);
    sink_log_change(&file->sink, &file->segment);
    if (file->failing && !file->finishing) {
        file->waiting = true;
        uv_timer_start(&file->timer, try_again, RETRY_MS, 0);
    }
    write_next(file);
}

// Starts the job on the next piece, if there is one and the job may start.
static void write_next(struct file_sink *file)
{
    struct pool *pool = file->sink.context.pool;
    bool acquired;
    if (file->busy || file->ending)
        return;
    while ((acquired = file->content->acquire(file)) && file->waiting)
        file->content->release(file, false);
    if (acquired)
        start_job(file, write_piece, piece_written);
    else if (file->finishing && !(pool && pool_is_filling(pool)))
        end_file(file);
}

void sink_log_change(const struct sink *sink, struct segment *segment)
{
    if (segment->refused_change && !segment->logged_change)
        sink_event(sink, LOG_LEVEL_WARNING,
                   "%s: the stream changes more often than once a minute, which begins no more "
                   "files: what does not fit the open file is lost",
                   sink->context.config->sink.path);
    segment->logged_change = segment->refused_change;
}

void sink_log_leftovers(const struct sink *sink, int status, const struct leftovers *left)
{
    const char *path = sink->context.config->sink.path;
    if (status < 0)
        sink_event(sink, LOG_LEVEL_WARNING, "cannot look for files left of %s: %s", path,
                   strerror(-status));
    if (left->finished > 0)
        sink_event(sink, LOG_LEVEL_INFO, "files left of %s by an earlier run: %d finished", path,
                   left->finished);
    if (left->stuck > 0)
        sink_event(sink, LOG_LEVEL_WARNING,
                   "files left of %s by an earlier run: %d cannot be finished and stay as they "
                   "are: %s: %s",
                   path, left->stuck, left->first_stuck,
                   left->error == -EILSEQ ? "it does not begin with a frame of this output"
                                          : strerror(-left->error));
}

void sink_log_keep(const struct sink *sink, struct keep *keep)
{
    if (keep->error < 0 && !keep->logged)
        sink_event(sink, LOG_LEVEL_ERROR, "cannot delete old files of %s: %s%s%s",
                   sink->context.config->sink.path, keep->failed, *keep->failed ? ": " : "",
                   strerror(-keep->error));
    keep->logged = keep->error < 0;
}

static void leftovers_finished(uv_work_t *job, int status)
{
    struct file_sink *file = job->data;
    (void)status;
    file->busy = false;
    sink_log_leftovers(&file->sink, file->status, &file->leftovers);
    write_next(file);
}

static void pump_file(struct sink *base)
{
    write_next((struct file_sink *)base);
}

static void grace_over(uv_timer_t *timer)
{
    struct file_sink *file = timer->data;
    file->content->stop(file);
    write_next(file); // ends the sink now, or when the frame under way is written
}

static void finish_sink(struct sink *base, int grace_ms)
{
    struct file_sink *file = (struct file_sink *)base;
    if (file->ending)
        return;
    file->finishing = true;
    file->content->finishing(file);
    file->waiting = false; // a last attempt
    uv_timer_start(&file->timer, grace_over, (uint64_t)grace_ms, 0);
    pump_file(base);
}

static int explain_failure(const char *path, int rc, char *why, size_t size)
{
    if (rc == -EEXIST)
        snprintf(why, size, "%s exists and is not a file", path);
    else if (rc == -EBUSY)
        snprintf(why, size, "%s is being written by another output or process", path);
    else if (rc < 0)
        snprintf(why, size, "cannot write %s: %s", path, strerror(-rc));
    return rc;
}

// Opens the first file, or checks that files can be made if the frames' times name them.
static int try_open(struct file_sink *file, char *why, size_t size)
{
    const struct output_config *config = config_of(file);
    gid_t group;
    int rc = group_of_output(config, &group, why, size);
    if (rc < 0)
        return rc;
    segment_init(&file->segment, config, group);
    rc = config->sink.timed ? segment_check(config) : segment_open(&file->segment, 0);
    return explain_failure(config->sink.path, rc, why, size);
}

int file_check(const struct output_config *config, bool ours, char *why, size_t size)
{
    gid_t group;
    int rc = group_of_output(config, &group, why, size);
    if (rc < 0)
        return rc;
    rc = segment_check(config);
    if (rc == -EBUSY && ours)
        rc = 0;
    return explain_failure(config->sink.path, rc, why, size);
}

static int open_sink(struct sink **ret, const struct sink_context *context, char *why, size_t size)
{
    struct file_sink *file = calloc(1, sizeof *file);
    if (!file) {
        snprintf(why, size, "out of memory");
        return -ENOMEM;
    }
    file->sink = (struct sink){.driver = &file_sink, .context = *context};
    file->content = context->lines ? &lines : &frames;
    file->lines.text = context->lines ? malloc(LINES_BYTES) : NULL;
    const bool lacks_memory = context->lines && !file->lines.text;
    if (lacks_memory)
        snprintf(why, size, "out of memory");
    int rc = lacks_memory ? -ENOMEM : try_open(file, why, size);
    if (rc < 0) {
        free(file->lines.text);
        free(file);
        return rc;
    }
    uv_timer_init(context->loop, &file->timer);
    file->timer.data = file->job.request.data = file;
    if (context->pool)
        pool_attach(context->pool, &file->consumer);
    if (context->config->sink.timed)
        start_job(file, finish_leftovers, leftovers_finished);
    *ret = &file->sink;
    return 0;
}

static int count_consumers(const struct sink *sink)
{
    (void)sink;
    return 1;
}

const struct sink_driver file_sink = {
    .open = open_sink,
    .pump = pump_file,
    .finish = finish_sink,
    .clients = count_consumers,
};
