#include "daemon/camera/camera_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/wire.h"

// Pictures that a mean covers, with fading weights: some seconds.
enum { MEAN_PICTURES = 64 };

static const struct {
    uint32_t flag;
    const char *name;
} counted[] = {
    [COUNTED_DAMAGED] = {FRAMED_FLAG_DAMAGED, "damaged"},
    [COUNTED_INTERLACED] = {FRAMED_FLAG_INTERLACED, "interlaced"},
    [COUNTED_HDR] = {FRAMED_FLAG_HDR, "hdr"},
};

void camera_report_open(struct camera_report *report, void (*changed)(struct event *),
                        struct event_queue *events)
{
    report->changed.callback = changed;
    report->events = changed ? events : NULL;
    pthread_mutex_init(&report->lock, NULL);
    pthread_mutex_init(&report->scene.lock, NULL);
}

void camera_report_close(struct camera_report *report)
{
    event_cancel(&report->changed);
    pthread_mutex_destroy(&report->scene.lock);
    pthread_mutex_destroy(&report->lock);
}

// --- changes

static void add_change(struct camera_report *report, struct camera_change *change)
{
    change->realtime_ns = realtime_ns();
    pthread_mutex_lock(&report->lock);
    report->changes[report->added++ % CAMERA_CHANGES_MAX] = *change;
    if (report->added - report->taken > CAMERA_CHANGES_MAX)
        report->taken = report->added - CAMERA_CHANGES_MAX;
    pthread_mutex_unlock(&report->lock);
    if (report->events)
        event_post(report->events, &report->changed);
}

void camera_report_state(struct camera_report *report, enum camera_state state, const char *why)
{
    struct camera_change change = {.state = state};
    const int64_t now = monotonic_ns();
    if (why)
        log_scrub(change.why, sizeof change.why, why);
    if (why && (state == CAMERA_RETRYING || state == CAMERA_FAILED))
        camera_report_error(report, why);
    atomic_store(&report->state, state);
    if (state == CAMERA_CONNECTING ||
        (state == report->last.state && (!why || strcmp(change.why, report->last.why) == 0)))
        return;
    if (state == CAMERA_RUNNING && report->down_ns > 0)
        change.outage_ns = now - report->down_ns;
    if (state != CAMERA_RETRYING)
        report->down_ns = 0;
    else if (report->down_ns == 0)
        report->down_ns = now;
    report->last = change;
    add_change(report, &change);
}

void camera_report_alarms(struct camera_report *report, unsigned alarms)
{
    const unsigned differ = alarms ^ report->alarms;
    report->alarms = alarms;
    for (int i = 0; differ >> i; i++)
        if (differ >> i & 1)
            add_change(report, &(struct camera_change){.is_alarm = true,
                                                       .alarm = (enum alarm)i,
                                                       .raised = alarms >> i & 1});
}

bool camera_report_take_change(struct camera_report *report, struct camera_change *ret)
{
    pthread_mutex_lock(&report->lock);
    const bool any = report->taken < report->added;
    if (any)
        *ret = report->changes[report->taken++ % CAMERA_CHANGES_MAX];
    pthread_mutex_unlock(&report->lock);
    return any;
}

// --- packets

void camera_report_connect(struct camera_report *report)
{
    report->key_pts_ns = INT64_MAX;
    atomic_store(&report->has_clock, false);
}

// A file that restarts goes back in time: the distance of its keyframes is unknown then.
static void read_keyframe(struct camera_report *report, int64_t pts_ns)
{
    if (pts_ns > report->key_pts_ns)
        atomic_store(&report->keyframe_ns, pts_ns - report->key_pts_ns);
    report->key_pts_ns = pts_ns == INT64_MIN ? INT64_MAX : pts_ns;
}

static void read_clock(struct camera_report *report, int64_t off_ns)
{
    const bool first = !atomic_load(&report->has_clock);
    const int64_t offset_ns = first ? off_ns : atomic_load(&report->offset_ns);
    const int64_t jitter_ns = first ? 0 : atomic_load(&report->jitter_ns);
    const int64_t more_ns = off_ns - offset_ns;
    atomic_store(&report->offset_ns, offset_ns + more_ns / MEAN_PICTURES);
    atomic_store(&report->jitter_ns, jitter_ns + (llabs(more_ns) - jitter_ns) / MEAN_PICTURES);
    atomic_store(&report->has_clock, true);
}

void camera_report_packet(struct camera_report *report, const struct packet *packet,
                          int64_t came_ns)
{
    atomic_fetch_add(&report->packets, 1);
    atomic_fetch_add(&report->bytes, packet->bytes);
    if (packet->keyframe)
        read_keyframe(report, packet->pts_ns);
    if (packet->capture_clock)
        read_clock(report, packet->capture_ns - came_ns);
}

// --- pictures

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

void camera_report_stream(struct camera_report *report, const char *decoder, const char *stream,
                          const char *profile)
{
    pthread_mutex_lock(&report->lock);
    snprintf(report->description.decoder, CAMERA_TEXT_MAX, "%s", decoder);
    snprintf(report->description.stream, CAMERA_TEXT_MAX, "%s", stream);
    snprintf(report->description.profile, CAMERA_PROFILE_MAX, "%s", profile ? profile : "");
    pthread_mutex_unlock(&report->lock);
}

void camera_report_network(struct camera_report *report, const struct demux_network *network)
{
    pthread_mutex_lock(&report->lock);
    report->description.network = *network;
    pthread_mutex_unlock(&report->lock);
}

void camera_report_error(struct camera_report *report, const char *text)
{
    pthread_mutex_lock(&report->lock);
    last_error_set(&report->description.last_error, text);
    pthread_mutex_unlock(&report->lock);
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
