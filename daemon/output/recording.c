#include "daemon/output/recording.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"

// Pictures of reordering to allow for if the stream does not declare any: costs nothing if there is
// none.
enum { DELAY = 2 };
static const int64_t RETRY_NS = 1000000000; // from a failure to the next file
static const int64_t HOLD_NS = 500000000;   // longest wait of a packet for the next one

void recording_init(struct recording *recording, const struct output_config *config,
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

// --- losses

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

void recording_write(struct recording *recording)
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

int recording_finish(struct recording *recording)
{
    recording_write(recording);
    int rc = recording->muxer ? finish_file(recording) : 0;
    segment_keep(&recording->segment);
    return rc;
}
