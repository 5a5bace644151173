// Writes a camera's packets to files. A job on libuv's thread pool writes new packets twice a
// second: kill -9 costs less than a second, and a slow disk delays only this sink.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/access.h"
#include "daemon/output/file_writers.h"
#include "daemon/output/recording.h"
#include "daemon/output/sink.h"

enum { WRITE_MS = 500 };

struct recorder {
    struct sink sink;
    struct writer_job job;
    uv_timer_t timer; // until the next job
    bool busy;        // the job owns the members below, else the loop does
    bool failing;     // last logged state
    bool finishing, ending;
    int status; // of the job: negative errno or 0
    struct recording recording;
    struct leftovers leftovers; // found by the first job
};

static const struct output_config *config_of(const struct recorder *recorder)
{
    return recorder->sink.context.config;
}

static void start_job(struct recorder *recorder, uv_work_cb work, uv_after_work_cb done)
{
    recorder->busy = true;
    writers_start(recorder->sink.context.loop, &recorder->job, work, done);
}

// --- from packet to packet

static void log_failure(struct recorder *recorder)
{
    const struct recording *recording = &recorder->recording;
    const char *path = config_of(recorder)->sink.path;
    const bool fails = recording->error < 0;
    if (fails == recorder->failing)
        return;
    recorder->failing = fails;
    if (!fails)
        sink_event(&recorder->sink, LOG_LEVEL_INFO, "writing %s again", path);
    else if (recording->error == -ENOTSUP)
        sink_event(&recorder->sink, LOG_LEVEL_ERROR,
                   "the camera sends %s, of which no copy can be made (" MUXER_CODECS ")",
                   recording->codec);
    else if (recording->error == -EINVAL)
        sink_event(&recorder->sink, LOG_LEVEL_ERROR,
                   "cannot write %s: the stream lacks its size or readable parameter sets: "
                   "packets are lost",
                   path);
    else
        sink_event(&recorder->sink, LOG_LEVEL_ERROR, "cannot write %s: %s: packets are lost", path,
                   strerror(-recording->error));
}

static void write_packets(uv_work_t *job)
{
    struct recorder *recorder = job->data;
    recording_write(&recorder->recording);
}

static void job_done(struct recorder *recorder);

static void packets_written(uv_work_t *job, int status)
{
    struct recorder *recorder = job->data;
    (void)status;
    log_failure(recorder);
    sink_log_change(&recorder->sink, &recorder->recording.segment);
    sink_log_keep(&recorder->sink, &recorder->recording.segment.keep);
    job_done(recorder);
}

static void pump_recorder(struct sink *base)
{
    struct recorder *recorder = (struct recorder *)base;
    if (!recorder->busy && !recorder->ending)
        start_job(recorder, write_packets, packets_written);
}

static void time_to_write(uv_timer_t *timer)
{
    struct recorder *recorder = timer->data;
    const struct recording *recording = &recorder->recording;
    if (recorder->busy)
        return;
    if (packet_queue_has_next(recorder->sink.context.packets) || recording->muxer ||
        segment_keep_is_due(&recording->segment))
        pump_recorder(&recorder->sink);
}

// --- the end

static void timer_closed(uv_handle_t *handle)
{
    struct recorder *recorder = handle->data;
    struct sink_context context = recorder->sink.context;
    free(recorder);
    context.closed(context.opaque);
}

static void finish_recording(uv_work_t *job)
{
    struct recorder *recorder = job->data;
    recorder->status = recording_finish(&recorder->recording);
}

static void recording_finished(uv_work_t *job, int status)
{
    struct recorder *recorder = job->data;
    (void)status; // jobs are never cancelled
    log_failure(recorder);
    if (recorder->status < 0)
        sink_event(&recorder->sink, LOG_LEVEL_ERROR, "cannot finish %s: %s: left to the next start",
                   recorder->recording.segment.path, strerror(-recorder->status));
    packet_queue_set_sink(recorder->sink.context.packets, POOL_SINK_STOPPED);
    uv_close((uv_handle_t *)&recorder->timer, timer_closed);
}

static void job_done(struct recorder *recorder)
{
    recorder->busy = false;
    if (!recorder->finishing || recorder->ending)
        return;
    recorder->ending = true;
    start_job(recorder, finish_recording, recording_finished);
}

// Writes all waiting packets, however long it takes: a disk call cannot be interrupted.
static void finish_sink(struct sink *base, int grace_ms)
{
    struct recorder *recorder = (struct recorder *)base;
    (void)grace_ms;
    recorder->finishing = true;
    packet_queue_set_sink(base->context.packets, POOL_SINK_FINISHING);
    if (!recorder->busy)
        job_done(recorder);
}

// --- the begin

static void finish_leftovers(uv_work_t *job)
{
    struct recorder *recorder = job->data;
    recorder->status = segment_finish_leftovers(config_of(recorder), &recorder->leftovers);
}

static void leftovers_finished(uv_work_t *job, int status)
{
    struct recorder *recorder = job->data;
    (void)status;
    sink_log_leftovers(&recorder->sink, recorder->status, &recorder->leftovers);
    job_done(recorder);
}

static int open_sink(struct sink **ret, const struct sink_context *context, char *why, size_t size)
{
    const struct output_config *config = context->config;
    struct recorder *recorder = calloc(1, sizeof *recorder);
    gid_t group;
    if (!recorder) {
        snprintf(why, size, "out of memory");
        return -ENOMEM;
    }
    recorder->sink = (struct sink){.driver = &recorder_sink, .context = *context};
    int rc = file_check(config, false, why, size);
    if (rc == 0)
        rc = group_of_output(config, &group, why, size);
    if (rc < 0) {
        free(recorder);
        return rc;
    }
    recording_init(&recorder->recording, config, context->packets, context->ledger, group);
    uv_timer_init(context->loop, &recorder->timer);
    recorder->timer.data = recorder->job.request.data = recorder;
    uv_timer_start(&recorder->timer, time_to_write, WRITE_MS, WRITE_MS);
    if (config->sink.timed)
        start_job(recorder, finish_leftovers, leftovers_finished);
    *ret = &recorder->sink;
    return 0;
}

static int count_files(const struct sink *sink)
{
    (void)sink;
    return 1;
}

const struct sink_driver recorder_sink = {
    .open = open_sink,
    .pump = pump_recorder,
    .finish = finish_sink,
    .clients = count_files,
};
