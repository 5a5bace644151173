// Copies a camera's packets to files or to an RTSP server. A file begins with a keyframe and ends
// before one: when the next run of `segment` begins, the stream changes, or a clip ends. Files are
// written twice a second: kill -9 costs less than a second. A server gets each packet as soon as it
// arrives; after a failure it is tried again with growing pauses, in which packets are lost.
#include <errno.h>
#include <libavcodec/avcodec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/object.h"
#include "daemon/base/clock.h"
#include "daemon/base/retry.h"
#include "daemon/output/muxer.h"
#include "daemon/output/writer.h"

// Pictures of reordering to allow for if the stream does not declare any: costs nothing if there is
// none.
enum { DELAY = 2 };
enum { MUXER_BYTES = 1 << 20 }; // most that a muxer gathers behind a disk that was slow
static const int64_t RETRY_NS = INT64_C(1000000000); // from a failure to the next file
static const int64_t HOLD_NS = 500000000;            // longest wait of a packet for the next one
static const int64_t STEADY_NS = 10 * INT64_C(1000000000); // connected so long: resets the pauses

// All but `writer` belongs to the job.
struct copier {
    struct writer writer;
    struct muxer *muxer;              // NULL: no file or server is open
    struct AVCodecParameters *stream; // of the muxer
    struct timeline timeline;
    int64_t base;     // timeline time at which the muxer's times begin; INT64_MIN: not known yet
    bool broken;      // packets up to the next keyframe are lost...
    enum loss reason; // ...for this reason
    int64_t retry_ns; // CLOCK_MONOTONIC: nothing is opened before this
    char why[400];    // reason of the last failure of a server, or the unknown codec

    // Files:
    struct queued_packet *held; // not written so far: the next packet determines its duration
    struct packet_times held_times;
    uint32_t clip;                         // of the open file
    int unflushed;                         // packets after the flushed part of the file
    int64_t unflushed_bytes;               // of these, which the muxer holds in part
    int64_t group_bytes, last_group_bytes; // of the current and the last group of pictures

    // Servers:
    struct retry retry;
    int64_t connected_ns; // CLOCK_MONOTONIC
};

static struct packet_queue *packets_of(const struct copier *copier)
{
    return copier->writer.sink.context.packets;
}

static bool is_server(const struct copier *copier)
{
    return writer_is_server(&copier->writer);
}

static void lose_packet(const struct copier *copier, enum loss reason)
{
    ledger_lose(copier->writer.sink.context.ledger, reason);
}

static void close_muxer(struct copier *copier)
{
    muxer_close(copier->muxer);
    copier->muxer = NULL;
    avcodec_parameters_free(&copier->stream);
}

// --- files

static int write_part(void *opaque, const void *data, size_t size, int64_t offset)
{
    struct copier *copier = opaque;
    return segment_write(&copier->writer.segment, data, size, offset);
}

// Closes the failed muxer. The flushed part stays as a file of its own.
static void abandon_file(struct copier *copier, int rc)
{
    struct segment *segment = &copier->writer.segment;
    for (copier->unflushed += copier->held != NULL; copier->unflushed > 0; copier->unflushed--)
        lose_packet(copier, LOSS_SINK);
    copier->unflushed_bytes = 0;
    queued_packet_free(copier->held);
    copier->held = NULL;
    close_muxer(copier);
    segment_cut(segment);
    if (segment_finish(segment) < 0)
        segment_close(segment); // the next start names it
    // A file at its size limit does not mean a full disk: another one begins.
    copier->retry_ns = rc == -EFBIG ? 0 : monotonic_ns() + RETRY_NS;
}

static int write_held(struct copier *copier, int64_t duration_ns)
{
    int rc = muxer_write(copier->muxer, copier->held->av, &copier->held_times, duration_ns);
    if (rc < 0)
        return rc;
    copier->unflushed++;
    copier->unflushed_bytes += copier->held->av->size;
    queued_packet_free(copier->held);
    copier->held = NULL;
    return 0;
}

static void mark_flushed(struct copier *copier)
{
    copier->writer.segment.whole = muxer_bytes(copier->muxer);
    copier->writer.status = 0;
    copier->unflushed_bytes = 0;
    for (; copier->unflushed > 0; copier->unflushed--)
        ledger_emit(copier->writer.sink.context.ledger);
}

static int flush_file(struct copier *copier)
{
    if (copier->unflushed == 0)
        return 0;
    int rc = muxer_flush(copier->muxer);
    if (rc == 0)
        mark_flushed(copier);
    return rc;
}

static int complete_file(struct copier *copier)
{
    int rc = copier->held ? write_held(copier, copier->timeline.interval_ns) : 0;
    if (rc == 0)
        rc = flush_file(copier);
    if (rc == 0)
        rc = muxer_finish(copier->muxer);
    if (rc == 0)
        mark_flushed(copier);
    return rc;
}

// Gives the complete file its name. On error it is closed, and the next start names it.
static int name_file(struct copier *copier)
{
    close_muxer(copier);
    int rc = segment_finish(&copier->writer.segment);
    if (rc < 0)
        segment_close(&copier->writer.segment);
    return rc;
}

// -EAGAIN: the stream changes too often, and the open file stays for its own one.
static int open_file(struct copier *copier, const struct queued_packet *keyframe)
{
    struct segment *segment = &copier->writer.segment;
    int rc = 0;
    if (copier->muxer && !muxer_same_stream(copier->stream, keyframe->stream) &&
        !segment_may_change(segment)) {
        copier->reason = LOSS_SINK;
        return -EAGAIN;
    }
    if (copier->muxer)
        rc = complete_file(copier);
    if (rc == 0 && copier->muxer)
        rc = name_file(copier);
    if (rc == 0)
        rc = segment_open(segment, keyframe->capture_ns);
    if (rc < 0)
        return rc;
    copier->clip = keyframe->clip;
    return muxer_open_file(&copier->muxer, writer_config(&copier->writer)->protocol,
                           keyframe->stream, keyframe->capture_ns, write_part, copier);
}

// Takes ownership of the packet, on success.
static int hold_packet(struct copier *copier, struct queued_packet *packet,
                       const struct packet_times *times)
{
    int rc = copier->held ? write_held(copier, times->dts - copier->held_times.dts) : 0;
    if (rc == 0 && copier->unflushed_bytes > MUXER_BYTES)
        rc = flush_file(copier);
    if (rc < 0)
        return rc;
    copier->held = packet;
    copier->held_times = *times;
    return 0;
}

// Writes a last picture; it lasts the usual interval, or its age if that is less.
static int write_last(struct copier *copier)
{
    const int64_t age_ns = copier->held ? monotonic_ns() - copier->held->received_ns : 0;
    const int64_t interval_ns = copier->timeline.interval_ns;
    if (age_ns < HOLD_NS)
        return 0;
    return write_held(copier, interval_ns < age_ns ? interval_ns : age_ns);
}

// --- servers

static void abandon_server(struct copier *copier, int rc)
{
    const int64_t now_ns = monotonic_ns();
    if (copier->muxer && now_ns - copier->connected_ns > STEADY_NS)
        retry_reset(&copier->retry);
    close_muxer(copier);
    copier->retry_ns = now_ns + retry_next_ns(&copier->retry, rc == -EACCES);
}

static int connect_server(struct copier *copier, const struct queued_packet *keyframe)
{
    close_muxer(copier);
    int rc = muxer_open_server(&copier->muxer, writer_config(&copier->writer), keyframe->stream,
                               &copier->writer.finishing, copier->why, sizeof copier->why);
    if (rc < 0)
        return rc;
    copier->writer.status = 0;
    copier->connected_ns = monotonic_ns();
    return 0;
}

static int send_packet(struct copier *copier, struct queued_packet *packet,
                       const struct packet_times *times)
{
    int rc = muxer_write(copier->muxer, packet->av, times, 0);
    if (rc < 0) {
        snprintf(copier->why, sizeof copier->why, "the RTSP server takes no more: %s",
                 strerror(-rc));
        return rc;
    }
    ledger_emit(copier->writer.sink.context.ledger);
    queued_packet_free(packet);
    return 0;
}

// --- from packet to packet

static void explain_failure(struct copier *copier, int rc)
{
    char *to = copier->writer.why;
    const size_t size = sizeof copier->writer.why;
    if (is_server(copier))
        snprintf(to, size, "%s; tried again until it works", copier->why);
    else if (rc == -ENOTSUP)
        snprintf(to, size, "%s", copier->why);
    else
        snprintf(to, size, "cannot write %s: %s: packets are lost",
                 writer_config(&copier->writer)->sink.path,
                 rc == -EINVAL ? "the stream lacks its size or readable parameter sets"
                               : strerror(-rc));
}

static void abandon(struct copier *copier, int rc)
{
    explain_failure(copier, rc);
    if (is_server(copier))
        abandon_server(copier, rc);
    else
        abandon_file(copier, rc);
    copier->writer.status = rc;
    copier->broken = true;
    copier->reason = rc == -ENOTSUP                        ? LOSS_CONFIG
                     : rc == -EINVAL && !is_server(copier) ? LOSS_DAMAGED
                                                           : LOSS_SINK;
}

static int end_file(struct copier *copier)
{
    int rc = complete_file(copier);
    if (rc == 0)
        return name_file(copier);
    abandon(copier, rc);
    return rc;
}

static int complete_stream(struct copier *copier, const struct queued_packet *keyframe)
{
    const enum AVCodecID codec = keyframe->stream->codec_id;
    char url[256];
    if (!muxer_takes(keyframe->stream)) {
        snprintf(copier->why, sizeof copier->why,
                 "the camera sends %s, of which no copy can be made (" MUXER_CODECS ")",
                 avcodec_get_name(codec));
        return -ENOTSUP;
    }
    int rc = muxer_complete_stream(keyframe->stream, keyframe->av);
    if (rc < 0 && is_server(copier))
        snprintf(copier->why, sizeof copier->why, "cannot publish to %s: no parameters of %s: %s",
                 config_sink_url(writer_config(&copier->writer), url, sizeof url),
                 avcodec_get_name(codec), strerror(-rc));
    return rc;
}

static bool belongs_to_muxer(const struct copier *copier, const struct queued_packet *keyframe)
{
    if (!copier->muxer || !muxer_same_stream(copier->stream, keyframe->stream))
        return false;
    return is_server(copier) || (copier->clip == keyframe->clip &&
                                 segment_continues(&copier->writer.segment, keyframe->capture_ns,
                                                   copier->last_group_bytes));
}

// Takes ownership of the keyframe's stream.
static void begin_stream(struct copier *copier, struct queued_packet *keyframe)
{
    const int delay = keyframe->stream->video_delay;
    copier->stream = keyframe->stream;
    keyframe->stream = NULL;
    timeline_begin(&copier->timeline, copier->stream->codec_id == AV_CODEC_ID_MJPEG ? 0
                                      : delay > DELAY                               ? delay
                                                                                    : DELAY);
    copier->base = INT64_MIN;
}

// Opens a file or connects for the keyframe, unless it belongs to the open muxer. -EAGAIN: only its
// packets are lost.
static int choose_muxer(struct copier *copier, struct queued_packet *keyframe)
{
    if (monotonic_ns() < copier->retry_ns)
        return -EAGAIN;
    int rc = complete_stream(copier, keyframe);
    if (rc < 0 || belongs_to_muxer(copier, keyframe))
        return rc;
    rc = is_server(copier) ? connect_server(copier, keyframe) : open_file(copier, keyframe);
    if (rc < 0)
        return rc;
    begin_stream(copier, keyframe);
    // Packets that arrived while connecting are old by now.
    if (is_server(copier) && packet_queue_skip(packets_of(copier), LOSS_SINK)) {
        copier->reason = LOSS_SINK;
        return -EAGAIN;
    }
    return 0;
}

// Takes ownership of the packet.
static void copy_packet(struct copier *copier, struct queued_packet *packet)
{
    int rc = 0;
    if (packet->stream) {
        copier->last_group_bytes = copier->group_bytes;
        copier->group_bytes = 0;
        rc = choose_muxer(copier, packet);
        copier->broken = rc < 0;
    }
    if (rc < 0 && rc != -EAGAIN)
        abandon(copier, rc);
    if (copier->broken) {
        lose_packet(copier, copier->reason);
        queued_packet_free(packet);
        return;
    }
    copier->group_bytes += packet->av->size;
    struct packet_times times =
        timeline_next(&copier->timeline, packet->pts_ns, packet->received_ns);
    if (copier->base == INT64_MIN)
        copier->base = times.pts;
    times.pts -= copier->base;
    times.dts -= copier->base;
    rc = is_server(copier) ? send_packet(copier, packet, &times)
                           : hold_packet(copier, packet, &times);
    if (rc < 0) {
        abandon(copier, rc);
        lose_packet(copier, LOSS_SINK);
        queued_packet_free(packet);
    }
}

// --- the jobs

static bool has_work(struct writer *writer)
{
    const struct copier *copier = (const struct copier *)writer;
    const bool has_next = packet_queue_has_next(writer->sink.context.packets);
    const bool due = writer->due;
    if (is_server(copier))
        return has_next && !writer->finishing; // unsent packets are useless after the end
    writer->due = false;
    return due && !writer->finishing &&
           (has_next || copier->muxer || keep_is_due(&writer->segment.keep, writer->segment.whole));
}

// Writes all waiting packets. Those in files can be played when it returns.
static void write_packets(struct writer *writer)
{
    struct copier *copier = (struct copier *)writer;
    struct queued_packet *packet;
    int rc = 0;
    while (!(is_server(copier) && writer->finishing) &&
           (packet = packet_queue_take(packets_of(copier))))
        copy_packet(copier, packet);
    if (is_server(copier))
        return;
    if (copier->muxer && packet_queue_clip_is_over(packets_of(copier))) {
        writer->unfinished = end_file(copier);
    } else if (copier->muxer) {
        rc = write_last(copier);
        if (rc == 0)
            rc = flush_file(copier);
        if (rc < 0)
            abandon(copier, rc);
    }
    keep_enforce(&writer->segment.keep, writer->segment.whole);
}

static int finish_copy(struct writer *writer)
{
    struct copier *copier = (struct copier *)writer;
    if (is_server(copier)) {
        close_muxer(copier);
        return 0;
    }
    write_packets(writer);
    const int rc = copier->muxer ? end_file(copier) : writer->unfinished;
    keep_enforce(&writer->segment.keep, writer->segment.whole);
    return rc;
}

static void begin_copier(struct writer *writer)
{
    struct copier *copier = (struct copier *)writer;
    copier->broken = true;
    copier->reason = LOSS_DAMAGED;
    copier->retry.seed = (uint32_t)monotonic_ns();
}

const struct writer_kind copier_kind = {
    .size = sizeof(struct copier),
    .begin = begin_copier,
    .acquire = has_work,
    .write = write_packets,
    .finish = finish_copy,
};
