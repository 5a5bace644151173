#include "daemon/camera/camera_report.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/wire.h"

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
    scene_report_open(&report->scene);
    camera_changes_open(&report->changes);
}

void camera_report_close(struct camera_report *report)
{
    camera_changes_close(&report->changes);
    scene_report_close(&report->scene);
    pthread_mutex_destroy(&report->lock);
}

static void count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

// Only this thread writes the description, so it compares without the lock.
void camera_report_picture(struct camera_report *report, const struct frame *frame,
                           const struct stream_memory *memory)
{
    for (int i = 0; i < COUNTED_FLAGS; i++)
        if (frame->info.flags & counted[i].flag)
            count(&report->flagged[i]);
    if (frame->info.converted)
        count(&report->converted);
    count(&report->pictures);
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

void camera_report_connect(struct camera_report *report)
{
    packet_report_connect(&report->of_packets);
}

void camera_report_packet(struct camera_report *report, const struct packet *packet)
{
    count(&report->packets);
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

void camera_report_alarms(struct camera_report *report)
{
    camera_changes_alarms(&report->changes, atomic_load(&report->scene.alarms));
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
