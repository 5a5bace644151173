#include "daemon/camera/camera_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/wire.h"

// --- changes

void camera_changes_open(struct camera_changes *changes)
{
    pthread_mutex_init(&changes->lock, NULL);
}

void camera_changes_close(struct camera_changes *changes)
{
    event_cancel(&changes->posted);
    pthread_mutex_destroy(&changes->lock);
}

static void add_change(struct camera_changes *changes, struct camera_change *change)
{
    change->realtime_ns = realtime_ns();
    pthread_mutex_lock(&changes->lock);
    changes->list[changes->added++ % CAMERA_CHANGES_MAX] = *change;
    if (changes->added - changes->taken > CAMERA_CHANGES_MAX)
        changes->taken = changes->added - CAMERA_CHANGES_MAX;
    pthread_mutex_unlock(&changes->lock);
    if (changes->events)
        event_post(changes->events, &changes->posted);
}

void camera_changes_state(struct camera_changes *changes, enum camera_state state, const char *why)
{
    struct camera_change change = {.state = state};
    const int64_t now = monotonic_ns();
    if (why)
        log_scrub(change.why, sizeof change.why, why);
    if (state == CAMERA_CONNECTING ||
        (state == changes->state && (!why || strcmp(change.why, changes->why) == 0)))
        return;
    if (state == CAMERA_RUNNING && changes->down_ns > 0)
        change.outage_ns = now - changes->down_ns;
    if (state != CAMERA_RETRYING)
        changes->down_ns = 0;
    else if (changes->down_ns == 0)
        changes->down_ns = now;
    changes->state = state;
    memcpy(changes->why, change.why, sizeof changes->why);
    add_change(changes, &change);
}

void camera_changes_alarms(struct camera_changes *changes, unsigned alarms)
{
    const unsigned differ = alarms ^ changes->alarms;
    changes->alarms = alarms;
    for (int i = 0; differ >> i; i++)
        if (differ >> i & 1)
            add_change(changes, &(struct camera_change){.is_alarm = true,
                                                        .alarm = (enum alarm)i,
                                                        .raised = alarms >> i & 1});
}

bool camera_changes_take(struct camera_changes *changes, struct camera_change *ret)
{
    pthread_mutex_lock(&changes->lock);
    const bool any = changes->taken < changes->added;
    if (any)
        *ret = changes->list[changes->taken++ % CAMERA_CHANGES_MAX];
    pthread_mutex_unlock(&changes->lock);
    return any;
}

// --- packets

// Pictures that a mean covers, with fading weights: some seconds.
enum { MEAN_PICTURES = 64 };

void packet_report_connect(struct packet_report *report)
{
    report->has_key = false;
    atomic_store(&report->has_clock, false);
}

// A file that restarts goes back in time: the distance of its keyframes is unknown then.
static void read_keyframe(struct packet_report *report, int64_t pts_ns)
{
    if (report->has_key && pts_ns > report->key_pts_ns)
        atomic_store(&report->keyframe_ns, pts_ns - report->key_pts_ns);
    report->has_key = pts_ns != INT64_MIN;
    report->key_pts_ns = pts_ns;
}

// Only this thread writes.
static void read_clock(struct packet_report *report, int64_t off_ns)
{
    int64_t offset_ns = off_ns, jitter_ns = 0;
    if (atomic_load(&report->has_clock)) {
        offset_ns = atomic_load(&report->offset_ns);
        jitter_ns = atomic_load(&report->jitter_ns);
    }
    const int64_t more_ns = off_ns - offset_ns;
    atomic_store(&report->offset_ns, offset_ns + more_ns / MEAN_PICTURES);
    atomic_store(&report->jitter_ns, jitter_ns + (llabs(more_ns) - jitter_ns) / MEAN_PICTURES);
    atomic_store(&report->has_clock, true);
}

void packet_report_read(struct packet_report *report, const struct packet *packet, int64_t came_ns)
{
    atomic_fetch_add(&report->bytes, packet->bytes);
    if (packet->keyframe)
        read_keyframe(report, packet->pts_ns);
    if (packet->capture_clock)
        read_clock(report, packet->capture_ns - came_ns);
}

// --- the report

static const struct {
    uint32_t flag;
    const char *name;
} counted[] = {
    [COUNTED_DAMAGED] = {FRAMED_FLAG_DAMAGED, "damaged"},
    [COUNTED_INTERLACED] = {FRAMED_FLAG_INTERLACED, "interlaced"},
    [COUNTED_HDR] = {FRAMED_FLAG_HDR, "hdr"},
};

void camera_report_open(struct camera_report *report)
{
    pthread_mutex_init(&report->lock, NULL);
    pthread_mutex_init(&report->scene.lock, NULL);
    camera_changes_open(&report->changes);
}

void camera_report_close(struct camera_report *report)
{
    camera_changes_close(&report->changes);
    pthread_mutex_destroy(&report->scene.lock);
    pthread_mutex_destroy(&report->lock);
}

// Only this thread writes the description, so it compares without the lock.
void camera_report_picture(struct camera_report *report, const struct frame *frame,
                           const struct stream_memory *memory)
{
    for (int i = 0; i < COUNTED_FLAGS; i++)
        if (frame->info.flags & counted[i].flag)
            atomic_fetch_add(&report->flagged[i], 1);
    atomic_fetch_add(&report->converted, frame->info.converted);
    atomic_fetch_add(&report->pictures, 1);
    atomic_store(&report->epoch, frame->info.epoch);
    latency_observe(&report->decoding, frame->info.decoded_ns - frame->info.received_ns);
    struct stream_memory now = *memory;
    now.width = frame->image.width;
    now.height = frame->image.height;
    if (memcmp(&now, &report->description.memory, sizeof now) == 0)
        return;
    pthread_mutex_lock(&report->lock);
    report->description.memory = now;
    pthread_mutex_unlock(&report->lock);
}

void camera_report_packet(struct camera_report *report, const struct packet *packet)
{
    atomic_fetch_add(&report->packets, 1);
    packet_report_read(&report->of_packets, packet,
                       realtime_ns() - (monotonic_ns() - packet->received_ns));
}

void camera_report_skipped(struct camera_report *report, enum decoded_pictures decodes,
                           int64_t packets)
{
    atomic_store(&report->decodes, (int)decodes);
    atomic_fetch_add(&report->skipped, (uint64_t)packets);
}

void camera_report_stream(struct camera_report *report, const char *decoder, const char *stream,
                          const char *profile)
{
    pthread_mutex_lock(&report->lock);
    snprintf(report->description.decoder, CAMERA_TEXT_MAX, "%s", decoder);
    snprintf(report->description.stream, CAMERA_TEXT_MAX, "%s", stream);
    snprintf(report->description.profile, CAMERA_PROFILE_MAX, "%s", profile ? profile : "");
    pthread_mutex_unlock(&report->lock);
}

void camera_report_network(struct camera_report *report, const struct demux *demux)
{
    struct demux_network now;
    demux_network(demux, &now);
    pthread_mutex_lock(&report->lock);
    report->description.network = now;
    pthread_mutex_unlock(&report->lock);
}

void camera_report_error(struct camera_report *report, const char *text)
{
    pthread_mutex_lock(&report->lock);
    last_error_set(&report->description.last_error, text);
    pthread_mutex_unlock(&report->lock);
}

void camera_report_state(struct camera_report *report, enum camera_state state, const char *why)
{
    if (why && (state == CAMERA_RETRYING || state == CAMERA_FAILED))
        camera_report_error(report, why);
    atomic_store(&report->state, state);
    camera_changes_state(&report->changes, state, why);
}

struct camera_description camera_report_describe(const struct camera_report *report)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&report->lock;
    pthread_mutex_lock(lock);
    struct camera_description ret = report->description;
    pthread_mutex_unlock(lock);
    return ret;
}

const char *camera_state_name(int state)
{
    static const char *const names[] = {
        [CAMERA_CONNECTING] = "connecting", [CAMERA_RUNNING] = "running",
        [CAMERA_RETRYING] = "retrying",     [CAMERA_ENDED] = "ended",
        [CAMERA_FAILED] = "failed",         [CAMERA_PAUSED] = "paused",
    };
    return names[state];
}

const char *counted_flag_name(enum counted_flag flag)
{
    return counted[flag].name;
}
