#include "daemon/rtsp/rtsp_track.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "daemon/base/clock.h"
#include "daemon/rtsp/rtp_clock.h"

enum { BARREN_STAMPS = 8 }; // minimum: at a low rate a picture may take long
static const int64_t BARREN_NS = 1000000000;

int rtsp_track_open(struct rtsp_track **ret, const struct rtsp_track_options *options)
{
    struct rtsp_track *t = calloc(1, sizeof *t);
    if (!t)
        return -ENOMEM;
    rtp_receiver_open(&t->receiver, options);
    rtp_clock_open(&t->clock, options->media->clock_rate);
    int rc = getrandom(&t->reports.ssrc, sizeof t->reports.ssrc, 0) == sizeof t->reports.ssrc
                 ? depacketizer_open(&t->depacketizer, options->media, options->verdict)
                 : -EIO;
    if (rc < 0)
        rtsp_track_close(t);
    else
        *ret = t;
    return rc;
}

void rtsp_track_close(struct rtsp_track *t)
{
    if (!t)
        return;
    depacketizer_close(t->depacketizer);
    rtp_receiver_close(&t->receiver);
    free(t);
}

static void take_report(struct rtsp_track *t, const struct rtsp_report *report)
{
    const struct rtcp_events *events = &report->events;
    if (!events->report)
        return;
    t->reports.sr_ntp = events->ntp;
    t->reports.sr_ns = report->now_ns;
    rtcp_clock_report(&t->wall_clock, events, rtp_clock_convert(&t->clock, events->rtp),
                      report->realtime_ns);
}

static int put_report(struct rtsp_track *t, const uint8_t *data, size_t bytes, int64_t now_ns)
{
    struct rtsp_report report = {.now_ns = now_ns, .realtime_ns = realtime_ns()};
    struct rtp_statistics *statistics = &t->receiver.statistics;
    rtcp_read(&report.events, data, bytes, statistics->locked, statistics->ssrc);
    if (statistics->locked)
        take_report(t, &report);
    else if (report.events.report)
        t->early = report;
    if (!report.events.bye || statistics->parted)
        return RTSP_TRACK_REPORT;
    statistics->parted = true;
    return RTSP_TRACK_BYE;
}

// Some cameras send reports on the channel of media, so the packet's own type decides.
int rtsp_track_put(struct rtsp_track *t, const uint8_t *data, size_t bytes, int64_t now_ns)
{
    if (rtp_is_rtcp(data, bytes))
        return put_report(t, data, bytes, now_ns);
    int rc = rtp_receiver_put(&t->receiver, data, bytes, now_ns);
    if (rc == 0 && t->early.events.ssrc == t->receiver.statistics.ssrc)
        take_report(t, &t->early);
    if (rc == 0)
        t->early = (struct rtsp_report){0};
    return rc == 0 ? RTSP_TRACK_MEDIA : rc == -EBADMSG ? RTSP_TRACK_NOTHING : rc;
}

static void time_unit(struct rtsp_track *t, struct rtsp_unit *unit)
{
    if (unit->unit.restarted) { // another clock
        rtp_clock_restart(&t->clock);
        t->wall_clock = (struct rtcp_clock){0};
    }
    const struct rtp_time time =
        rtp_clock_read(&t->clock, unit->unit.timestamp, unit->unit.received_ns, unit->waited);
    unit->time_ns = time.ns;
    unit->guessed = time.guessed;
    unit->capture_ns =
        time.guessed ? INT64_MIN : rtcp_clock_read(&t->wall_clock, time.ns - t->clock.moved_ns);
}

static void note_packet(struct rtsp_track *t, const struct rtp_packet *packet)
{
    if (packet->lost || packet->lost_unknown || t->stamps == 0) {
        t->stamps = 1;
        t->first_ns = packet->received_ns;
    } else if (packet->timestamp != t->stamp) {
        t->stamps++;
    }
    t->stamp = packet->timestamp;
    t->barren = t->stamps >= BARREN_STAMPS && packet->received_ns - t->first_ns >= BARREN_NS;
}

int rtsp_track_read(struct rtsp_track *t, int64_t now_ns, bool waited, struct rtsp_unit *ret)
{
    struct rtp_packet packet;
    for (;;) {
        if (depacketizer_get(t->depacketizer, now_ns, &ret->unit) == 0) {
            // A stream may be joined in the middle.
            ret->unit.reference_lost |= (!t->begun || ret->unit.restarted) && !ret->unit.keyframe;
            t->begun = true;
            ret->waited = waited;
            time_unit(t, ret);
            t->stamps = 0;
            t->barren = false;
            return 0;
        }
        // At the end, no packet waits for missing ones.
        if (rtp_receiver_get(&t->receiver, t->ending ? INT64_MAX : now_ns, &packet) == 0) {
            note_packet(t, &packet);
            depacketizer_put(t->depacketizer, &packet);
        } else if (t->ending && !t->flushed) {
            depacketizer_flush(t->depacketizer);
            t->flushed = true;
        } else {
            return -EAGAIN;
        }
    }
}

int64_t rtsp_track_due_ns(const struct rtsp_track *t)
{
    const int64_t receiver = rtp_receiver_due_ns(&t->receiver);
    const int64_t depacketizer = depacketizer_due_ns(t->depacketizer);
    return receiver < depacketizer ? receiver : depacketizer;
}

size_t rtsp_track_write(struct rtsp_track *t, enum rtcp_kind kind, int64_t now_ns, uint8_t *to)
{
    return rtcp_write(&t->reports, &t->receiver.statistics, kind, now_ns, to);
}
