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
#include "daemon/base/number.h"
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
    // Of the packets up to the next keyframe; LOSSES: they are written. A queue begins with one.
    enum loss loss;
    int64_t retry_ns; // CLOCK_MONOTONIC: nothing is opened before this

    // Files:
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

// Gives the file its name. On error it is closed, and the next start names it.
static int name_file(struct copier *copier)
{
    close_muxer(copier);
    return segment_end(&copier->writer.segment);
}

// Closes the failed muxer. The flushed part stays as a file of its own.
static void abandon_file(struct copier *copier, int rc)
{
    for (; copier->unflushed > 0; copier->unflushed--)
        lose_packet(copier, LOSS_SINK);
    copier->unflushed_bytes = 0;
    segment_cut(&copier->writer.segment);
    name_file(copier);
    // A file at its size limit does not mean a full disk: another one begins.
    copier->retry_ns = rc == -EFBIG ? 0 : monotonic_ns() + RETRY_NS;
}

// `last_ns`: as for muxer_flush.
static int flush_file(struct copier *copier, int64_t last_ns)
{
    if (copier->unflushed == (last_ns < 0 && muxer_holds(copier->muxer)))
        return 0;
    int rc = muxer_flush(copier->muxer, last_ns);
    if (rc < 0)
        return rc;
    copier->writer.status = 0;
    copier->unflushed_bytes = 0;
    for (; copier->unflushed > muxer_holds(copier->muxer); copier->unflushed--)
        ledger_emit(copier->writer.sink.context.ledger);
    return 0;
}

static int complete_file(struct copier *copier)
{
    int rc = flush_file(copier, copier->timeline.interval_ns);
    return rc < 0 ? rc : muxer_finish(copier->muxer);
}

static int open_file(struct copier *copier, const struct queued_packet *keyframe)
{
    struct segment *segment = &copier->writer.segment;
    int rc = copier->muxer ? complete_file(copier) : 0;
    if (rc == 0 && copier->muxer)
        rc = name_file(copier);
    if (rc == 0)
        rc = segment_open(segment, keyframe->capture_ns);
    if (rc < 0)
        return rc;
    copier->clip = keyframe->clip;
    return muxer_open_file(&copier->muxer, segment, keyframe->stream, keyframe->capture_ns);
}

static int write_packet(struct copier *copier, const struct queued_packet *packet,
                        const struct packet_times *times)
{
    int rc = copier->unflushed_bytes > MUXER_BYTES ? flush_file(copier, -1) : 0;
    if (rc == 0)
        rc = muxer_write(copier->muxer, packet->av, times);
    if (rc < 0)
        return rc;
    copier->unflushed++;
    copier->unflushed_bytes += packet->av->size;
    return 0;
}

// Returns the duration of a last picture: the usual interval, or its age if that is less. -1: the
// next one may still come.
static int64_t duration_of_last(const struct copier *copier)
{
    const int64_t age_ns = monotonic_ns() - copier->timeline.received_ns;
    return age_ns < HOLD_NS ? -1 : bounds_min(copier->timeline.interval_ns, age_ns);
}

// --- servers

static void abandon_server(struct copier *copier, int rc)
{
    const int64_t now_ns = monotonic_ns();
    if (copier->muxer && now_ns - copier->connected_ns > STEADY_NS)
        retry_reset(&copier->retry);
    close_muxer(copier);
    copier->retry.seed ^= (uint32_t)now_ns;
    copier->retry_ns = now_ns + retry_next_ns(&copier->retry, rc == -EACCES);
}

static int connect_server(struct copier *copier, const struct queued_packet *keyframe)
{
    close_muxer(copier);
    struct writer *writer = &copier->writer;
    int rc = muxer_open_server(&copier->muxer, writer_config(writer), keyframe->stream,
                               &writer->finishing, writer->why, sizeof writer->why);
    if (rc < 0)
        return rc;
    copier->writer.status = 0;
    copier->connected_ns = monotonic_ns();
    return 0;
}

static int send_packet(struct copier *copier, const struct queued_packet *packet,
                       const struct packet_times *times)
{
    int rc = muxer_write(copier->muxer, packet->av, times);
    if (rc < 0) {
        snprintf(copier->writer.why, sizeof copier->writer.why, "the RTSP server takes no more: %s",
                 strerror(-rc));
        return rc;
    }
    ledger_emit(copier->writer.sink.context.ledger);
    return 0;
}

// --- from packet to packet

static void explain_failure(struct copier *copier, int rc)
{
    char *why = copier->writer.why;
    const size_t size = sizeof copier->writer.why, n = strlen(why);
    if (is_server(copier))
        snprintf(why + n, size - n, "; tried again until it works");
    else if (rc != -ENOTSUP)
        snprintf(why, size, "cannot write %s: %s: packets are lost",
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
    copier->loss = rc == -ENOTSUP                        ? LOSS_CONFIG
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
    struct writer *writer = &copier->writer;
    int rc = muxer_complete_stream(keyframe->stream, keyframe->av);
    if (rc == -ENOTSUP)
        snprintf(writer->why, sizeof writer->why,
                 "the camera sends %s, of which no copy can be made (" MUXER_CODECS ")",
                 avcodec_get_name(keyframe->stream->codec_id));
    else if (rc < 0)
        snprintf(writer->why, sizeof writer->why, "cannot read the stream's parameters");
    return rc;
}

// Returns true if the open muxer may take another group of pictures.
static bool muxer_continues(const struct copier *copier, const struct queued_packet *keyframe)
{
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
}

// Opens a file or connects for the keyframe, unless it belongs to the open muxer. -EAGAIN: only its
// packets are lost, for the reason in `loss`.
static int choose_muxer(struct copier *copier, struct queued_packet *keyframe)
{
    if (monotonic_ns() < copier->retry_ns)
        return -EAGAIN;
    int rc = complete_stream(copier, keyframe);
    if (rc < 0)
        return rc;
    const bool same = copier->muxer && muxer_same_stream(copier->stream, keyframe->stream);
    if (same && muxer_continues(copier, keyframe))
        return 0;
    if (copier->muxer && !same && !is_server(copier) &&
        !segment_may_change(&copier->writer.segment)) {
        copier->loss = LOSS_SINK; // the stream changes too often: the open file stays for its own
        return -EAGAIN;
    }
    rc = is_server(copier) ? connect_server(copier, keyframe) : open_file(copier, keyframe);
    if (rc < 0)
        return rc;
    begin_stream(copier, keyframe);
    // Packets that arrived while connecting are old by now.
    if (is_server(copier) && packet_queue_skip(packets_of(copier), LOSS_SINK)) {
        copier->loss = LOSS_SINK;
        return -EAGAIN;
    }
    return 0;
}

static void copy_packet(struct copier *copier, struct queued_packet *packet)
{
    int rc;
    if (packet->stream) {
        copier->last_group_bytes = copier->group_bytes;
        copier->group_bytes = 0;
        rc = choose_muxer(copier, packet);
        if (rc == 0)
            copier->loss = LOSSES;
        else if (rc != -EAGAIN)
            abandon(copier, rc);
    }
    if (copier->loss != LOSSES) {
        lose_packet(copier, copier->loss);
        return;
    }
    copier->group_bytes += packet->av->size;
    const struct packet_times times =
        timeline_next(&copier->timeline, packet->pts_ns, packet->received_ns);
    rc = is_server(copier) ? send_packet(copier, packet, &times)
                           : write_packet(copier, packet, &times);
    if (rc < 0) {
        abandon(copier, rc);
        lose_packet(copier, LOSS_SINK);
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
    while (!(is_server(copier) && writer->finishing) &&
           (packet = packet_queue_take(packets_of(copier)))) {
        copy_packet(copier, packet);
        queued_packet_free(packet);
    }
    if (is_server(copier)) {
        if (writer->ending)
            close_muxer(copier);
        return;
    }
    if (copier->muxer && (writer->ending || packet_queue_clip_is_over(packets_of(copier)))) {
        writer->unfinished = end_file(copier);
    } else if (copier->muxer) {
        int rc = flush_file(copier, duration_of_last(copier));
        if (rc < 0)
            abandon(copier, rc);
    }
    keep_enforce(&writer->segment.keep, writer->segment.whole);
}

const struct writer_kind copier_kind = {
    .size = sizeof(struct copier),
    .acquire = has_work,
    .write = write_packets,
};
