// Writes a camera's packets to files. A job on libuv's thread pool writes new packets twice a
// second: kill -9 costs less than a second, and a slow disk delays only this sink. A file begins
// with a keyframe and ends before one: when the next run of `segment` begins, the stream changes,
// or a clip ends.
#include <errno.h>
#include <libavcodec/avcodec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/access.h"
#include "daemon/base/clock.h"

#include "daemon/output/muxer.h"
#include "daemon/output/packet_queue.h"
#include "daemon/output/segment.h"
#include "daemon/output/sink.h"

enum { WRITE_MS = 500 };
// Pictures of reordering to allow for if the stream does not declare any: costs nothing if there is
// none.
enum { DELAY = 2 };
static const int64_t RETRY_NS = 1000000000; // from a failure to the next file
static const int64_t HOLD_NS = 500000000;   // longest wait of a packet for the next one

// The files, one after another. The recorder's job uses it.
struct recording {
    const struct output_config *config; // outlives the recording, as do:
    struct packet_queue *queue;
    struct ledger *ledger;
    struct segment segment;
    struct muxer *muxer;              // NULL: no file is open
    struct AVCodecParameters *stream; // of the open file
    struct timeline timeline;
    int64_t base;               // timeline time at which the file begins
    struct queued_packet *held; // not written so far: the next packet determines its duration
    struct packet_times held_times;
    uint32_t clip;                         // of the open file
    int unsettled;                         // packets after the settled part of the file
    int64_t group_bytes, last_group_bytes; // of the current and the last group of pictures
    bool broken;                           // packets up to the next keyframe are lost...
    enum loss reason;                      // ...for this reason
    int64_t retry_ns;                      // CLOCK_MONOTONIC: no file is opened before this
    // Result of the last try to write: 0 or negative errno. -ENOTSUP: unsupported codec; -EINVAL:
    // the stream lacks its parameter sets or its size.
    int error;
    char codec[32]; // unsupported codec
};

static void recording_init(struct recording *recording, const struct output_config *config,
                           struct packet_queue *queue, struct ledger *ledger, gid_t group)
{
    *recording = (struct recording){
        .config = config,
        .queue = queue,
        .ledger = ledger,
        .broken = true,
        .reason = LOSS_DAMAGED,
    };
    segment_init(&recording->segment, config, group);
}

// --- losses of a recording

static void lose_packet(struct recording *recording, enum loss reason)
{
    ledger_lose(recording->ledger, reason);
}

// Closes the failed muxer. The settled part stays as a file of its own.
static void abandon_file(struct recording *recording, int rc)
{
    for (; recording->unsettled > 0; recording->unsettled--)
        lose_packet(recording, LOSS_SINK);
    if (recording->held)
        lose_packet(recording, LOSS_SINK);
    queued_packet_free(recording->held);
    recording->held = NULL;
    muxer_close(recording->muxer);
    recording->muxer = NULL;
    segment_cut(&recording->segment);
    if (segment_finish(&recording->segment) < 0)
        segment_close(&recording->segment); // the next start names it
    avcodec_parameters_free(&recording->stream);
    recording->error = rc;
    recording->broken = true;
    recording->reason = rc == -ENOTSUP ? LOSS_CONFIG : rc == -EINVAL ? LOSS_DAMAGED : LOSS_SINK;
    // A file at its size limit does not mean a full disk: another one begins.
    recording->retry_ns = rc == -EFBIG ? 0 : monotonic_ns() + RETRY_NS;
}

// --- one file

static int write_part(void *opaque, const void *data, size_t size, int64_t offset)
{
    struct recording *recording = opaque;
    return segment_write(&recording->segment, data, size, offset);
}

static int write_held(struct recording *recording, int64_t duration_ns)
{
    struct queued_packet *packet = recording->held;
    const struct packet_times times = {recording->held_times.pts - recording->base,
                                       recording->held_times.dts - recording->base};
    int rc = muxer_write(recording->muxer, packet->av, &times, duration_ns);
    if (rc < 0)
        return rc;
    recording->held = NULL;
    recording->unsettled++;
    queued_packet_free(packet);
    return 0;
}

static void settle_file(struct recording *recording)
{
    segment_settle(&recording->segment, muxer_bytes(recording->muxer));
    recording->error = 0;
    for (; recording->unsettled > 0; recording->unsettled--)
        ledger_emit(recording->ledger);
}

static int flush_file(struct recording *recording)
{
    if (recording->unsettled == 0)
        return 0;
    int rc = muxer_flush(recording->muxer);
    if (rc == 0)
        settle_file(recording);
    return rc;
}

static int finish_file(struct recording *recording)
{
    int rc = recording->held ? write_held(recording, recording->timeline.interval_ns) : 0;
    if (rc == 0)
        rc = flush_file(recording);
    if (rc == 0)
        rc = muxer_finish(recording->muxer);
    if (rc < 0) {
        abandon_file(recording, rc);
        return rc;
    }
    settle_file(recording);
    muxer_close(recording->muxer);
    recording->muxer = NULL;
    avcodec_parameters_free(&recording->stream);
    rc = segment_finish(&recording->segment);
    if (rc < 0)
        segment_close(&recording->segment);
    return rc;
}

// Takes ownership of the keyframe's stream.
static int open_file(struct recording *recording, struct queued_packet *keyframe)
{
    const int delay = keyframe->stream->video_delay;
    int rc = segment_open(&recording->segment, keyframe->capture_ns);
    if (rc < 0)
        return rc;
    recording->stream = keyframe->stream;
    keyframe->stream = NULL;
    timeline_begin(&recording->timeline, recording->stream->codec_id == AV_CODEC_ID_MJPEG ? 0
                                         : delay > DELAY                                  ? delay
                                                                                          : DELAY);
    recording->clip = keyframe->clip;
    recording->base = INT64_MIN;
    return muxer_open_file(&recording->muxer, recording->config->protocol, recording->stream,
                           keyframe->capture_ns, write_part, recording);
}

// Returns true if the stream changes too often: the open file stays for its own stream.
static bool is_refused_change(struct recording *recording, const struct queued_packet *keyframe)
{
    return recording->muxer && !muxer_same_stream(recording->stream, keyframe->stream) &&
           !segment_may_change(&recording->segment);
}

static bool belongs_to_file(const struct recording *recording, const struct queued_packet *keyframe)
{
    return recording->clip == keyframe->clip &&
           segment_continues(&recording->segment, keyframe->capture_ns,
                             recording->last_group_bytes) &&
           muxer_same_stream(recording->stream, keyframe->stream);
}

// Opens a file for the keyframe, unless the open one fits. -EAGAIN: only its packets are lost.
static int choose_file(struct recording *recording, struct queued_packet *keyframe)
{
    int rc;
    if (!muxer_takes(keyframe->stream)) {
        snprintf(recording->codec, sizeof recording->codec, "%s",
                 avcodec_get_name(keyframe->stream->codec_id));
        return -ENOTSUP;
    }
    if (monotonic_ns() < recording->retry_ns)
        return -EAGAIN;
    rc = muxer_complete_stream(keyframe->stream, keyframe->av);
    if (rc < 0 || (recording->muxer && belongs_to_file(recording, keyframe)))
        return rc;
    if (is_refused_change(recording, keyframe)) {
        recording->reason = LOSS_SINK;
        return -EAGAIN;
    }
    if (recording->muxer)
        rc = finish_file(recording);
    return rc < 0 ? rc : open_file(recording, keyframe);
}

// Takes ownership of the packet.
static void record_packet(struct recording *recording, struct queued_packet *packet)
{
    int rc = 0;
    if (packet->stream) {
        recording->last_group_bytes = recording->group_bytes;
        recording->group_bytes = 0;
        rc = choose_file(recording, packet);
        recording->broken = rc < 0;
    }
    if (rc < 0 && rc != -EAGAIN)
        abandon_file(recording, rc);
    if (recording->broken) {
        lose_packet(recording, recording->reason);
        queued_packet_free(packet);
        return;
    }
    recording->group_bytes += packet->av->size;
    const struct packet_times times =
        timeline_next(&recording->timeline, packet->pts_ns, packet->received_ns);
    if (recording->base == INT64_MIN)
        recording->base = times.pts;
    if (recording->held)
        rc = write_held(recording, times.dts - recording->held_times.dts);
    if (rc < 0) {
        lose_packet(recording, LOSS_SINK);
        queued_packet_free(packet);
        abandon_file(recording, rc);
        return;
    }
    recording->held = packet;
    recording->held_times = times;
}

// Writes a last picture; it lasts the usual interval, or its age if that is less.
static int write_last(struct recording *recording)
{
    const int64_t age_ns = recording->held ? monotonic_ns() - recording->held->received_ns : 0;
    const int64_t interval_ns = recording->timeline.interval_ns;
    if (age_ns < HOLD_NS)
        return 0;
    return write_held(recording, interval_ns < age_ns ? interval_ns : age_ns);
}

// Writes all waiting packets. Written packets can be played when it returns.
static void recording_write(struct recording *recording)
{
    struct queued_packet *packet;
    int rc = 0;
    while ((packet = packet_queue_take(recording->queue)))
        record_packet(recording, packet);
    if (recording->muxer && packet_queue_clip_is_over(recording->queue)) {
        finish_file(recording);
    } else if (recording->muxer) {
        rc = write_last(recording);
        if (rc == 0)
            rc = flush_file(recording);
        if (rc < 0)
            abandon_file(recording, rc);
    }
    segment_keep(&recording->segment);
}

// Writes all waiting packets and finishes the open file. Returns 0, or a negative errno if the file
// could not be completed or given its name.
static int recording_finish(struct recording *recording)
{
    recording_write(recording);
    int rc = recording->muxer ? finish_file(recording) : 0;
    segment_keep(&recording->segment);
    return rc;
}

// --- the sink

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
