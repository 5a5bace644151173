#include "daemon/rtsp/session.h"

#include <errno.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/number.h"

static const int64_t SECOND_NS = 1000000000,
                     PARTED_NS = 500000000; // after BYE: some cameras continue as another source
enum {
    ROUNDS_MAX = 512,      // items of input in one read
    REPORT_PERIOD = 5,     // seconds; some cameras end a session after 10 s without a report
    UDP_SILENCE = 3,       // seconds after PLAY: then TCP
    MULTICAST_SILENCE = 1, // seconds after PLAY: then from any sender
    UNANSWERED_PLAY = 2,   // seconds, while media flow: PLAY counts as answered
    PING_PATIENCE = 1,     // seconds that a ping waits for an earlier request
    FORMAT_SILENCE = 1,    // seconds without a packet of our format
    OTHER_FORMAT = 16,     // packets of another format in a row: the camera sends that one
    WAITED_SHARE = 10,     // 1/10 of the time between units must be spent waiting
};

// --- media

// Some cameras write an older session's packets to its descriptor, which now has our connection.
static void note_left_over(struct rtsp_session *s, const uint8_t *data, size_t bytes)
{
    struct rtp_packet packet;
    if (rtp_is_rtcp(data, bytes) || rtp_parse(&packet, data, bytes) < 0)
        return;
    s->avoids = true;
    s->avoided = packet.ssrc;
}

// Ends the session if the camera sends only another of the formats offered for the track.
static int note_other_format(struct rtsp_session *s, const uint8_t *data, size_t bytes)
{
    struct rtp_packet packet;
    const bool flows = s->media_ns && s->now_ns - s->media_ns < FORMAT_SILENCE * SECOND_NS;
    if (flows || rtp_is_rtcp(data, bytes) || rtp_parse(&packet, data, bytes) < 0 ||
        !s->other_formats[packet.payload_type] || ++s->other_format < OTHER_FORMAT)
        return RTSP_TRACK_NOTHING;
    s->memory->payload_type = packet.payload_type;
    return rtsp_end(s, -ETIME, "sends payload type %d, not %d as it prefers", packet.payload_type,
                    s->media.payload_type);
}

static void note_media(struct rtsp_session *s)
{
    s->other_format = 0;
    s->media_ns = s->now_ns;
    if (!s->memory->source_change_logged && s->track->receiver.statistics.source_changes > 0) {
        s->memory->source_change_logged = true;
        log_event(LOG_LEVEL_INFO, "%s changed the source (SSRC) of its stream: framed follows it",
                  s->place);
    }
    rtsp_carriage_confirm(&s->carriage);
    s->memory->udp_fails |= s->fell_back && s->carriage.transport == TRANSPORT_TCP;
}

// Returns enum rtsp_track_got, or a negative errno.
static int take_packet(struct rtsp_session *s, const uint8_t *data, size_t bytes)
{
    if (!s->track)
        note_left_over(s, data, bytes);
    if (!s->track || s->leaving)
        return RTSP_TRACK_NOTHING;
    int got = rtsp_track_put(s->track, data, bytes, s->now_ns);
    if (got < 0)
        return rtsp_end_by_error(s, got, "cannot receive from");
    if (got == RTSP_TRACK_NOTHING)
        return note_other_format(s, data, bytes);
    s->heard_ns = s->now_ns;
    if (got == RTSP_TRACK_BYE)
        s->parted_ns = s->now_ns;
    if (got == RTSP_TRACK_MEDIA)
        note_media(s);
    return got;
}

static int take_frame(struct rtsp_session *s, const struct rtsp_frame *frame)
{
    int *channels = s->carriage.channels;
    if (s->carriage.transport != TRANSPORT_TCP)
        return 0;
    const bool ours = frame->channel == channels[0] || frame->channel == channels[1];
    if (!ours && (s->media_ns || rtp_is_rtcp(frame->data, frame->bytes))) {
        if (!s->channel_logged)
            log_event(LOG_LEVEL_INFO, "%s sends on channel %d too, which was not asked for",
                      s->place, frame->channel);
        s->channel_logged = true;
        return 0;
    }
    int got = take_packet(s, frame->data, frame->bytes);
    if (!ours && got == RTSP_TRACK_MEDIA) { // the camera uses channels of its own
        channels[0] = frame->channel;
        channels[1] = frame->channel + 1;
        s->reader.framing.rtp_channel = channels[0];
        s->reader.framing.rtcp_channel = channels[1];
    }
    return got < 0 ? got : 0;
}

// --- input

// `n`: the result of a read: 0 or a negative errno.
static int end_connection(struct rtsp_session *s, ssize_t n)
{
    if (n < 0)
        return rtsp_end_by_error(s, (int)n, "lost the connection to");
    if (s->play_ns)
        return rtsp_end(s, -ENODATA, "ended the connection");
    return rtsp_end(s, -ECONNRESET, "hung up instead of answering %s", s->method);
}

static void note_network_data(struct rtsp_session *s)
{
    if (s->dry_ns)
        s->waited_ns += s->now_ns - s->dry_ns;
    s->dry_ns = 0;
}

// Returns true if the session has waited for the unit. Packets get their time when they are read:
// if the owner is slow, they are ready before, and the session hardly waits. A wait inside a unit
// counts: some cameras spread a unit's packets over the whole interval.
static bool has_waited(const struct rtsp_session *s)
{
    const int64_t waited_ns = s->waited_ns + (s->dry_ns ? s->now_ns - s->dry_ns : 0);
    return s->unit_ns && waited_ns && WAITED_SHARE * waited_ns >= s->now_ns - s->unit_ns;
}

static int read_network(struct rtsp_session *s)
{
    const uint8_t *datagram;
    size_t room;
    ssize_t n = rtsp_carriage_read(&s->carriage, &datagram);
    if (n >= 0) {
        note_network_data(s);
        s->datagram_came = true;
        int got = take_packet(s, datagram, (size_t)n);
        return got < 0 ? got : 0;
    }
    uint8_t *to = rtsp_reader_room(&s->reader, &room);
    n = rtsp_connection_read(&s->connection, to, room);
    if (n == -EAGAIN && !s->dry_ns)
        s->dry_ns = s->now_ns;
    if (n <= 0)
        return n == -EAGAIN ? -EAGAIN : end_connection(s, n);
    note_network_data(s);
    s->heard_ns = s->now_ns;
    s->reader.end += (size_t)n;
    return 0;
}

int rtsp_take_input(struct rtsp_session *s)
{
    struct rtsp_message message;
    struct rtsp_frame frame;
    switch (rtsp_reader_next(&s->reader, &message, &frame)) {
    case RTSP_ITEM_MESSAGE:
        return rtsp_take_message(s, &message);
    case RTSP_ITEM_FRAME:
        return take_frame(s, &frame);
    case RTSP_ITEM_LOST:
        if (s->track)
            s->track->receiver.lose = true;
        return 0;
    case RTSP_ITEM_INVALID:
        return rtsp_end(s, -EPROTO, "%s",
                        s->play_ns ? "sends bytes that are no RTSP any more"
                                   : "answers, but not in RTSP");
    default:
        return read_network(s);
    }
}

void rtsp_wait_for_input(struct rtsp_session *s, int64_t until_ns)
{
    struct pollfd fds[] = {
        {.fd = s->connection.fd, .events = POLLIN | (s->connection.queued ? POLLOUT : 0)},
        {.fd = s->carriage.fd[0], .events = POLLIN},
        {.fd = s->carriage.fd[1], .events = POLLIN},
    };
    rtsp_wait(fds, 3, until_ns);
}

// --- time

// Returns true if it is time to act; if not, the next wait ends then.
static bool is_due(struct rtsp_session *s, int64_t at_ns)
{
    s->due_ns = bounds_min(s->due_ns, bounds_max(at_ns, s->now_ns));
    return s->now_ns >= at_ns;
}

static int send_rtcp(struct rtsp_session *s, const uint8_t *packet, size_t bytes)
{
    int rc = rtsp_carriage_send(&s->carriage, &s->connection, packet, bytes);
    return rc < 0 ? rtsp_end_by_error(s, rc, "cannot send reports to") : 0;
}

static int send_reports(struct rtsp_session *s)
{
    uint8_t packet[RTCP_REPORT_MAX];
    const int64_t pause_ns = REPORT_PERIOD * SECOND_NS;
    int rc = 0;
    if (is_due(s, s->report_ns ? s->report_ns + pause_ns : s->play_ns + SECOND_NS)) {
        s->report_ns = s->now_ns;
        rc = send_rtcp(s, packet, rtsp_track_write(s->track, RTCP_REPORT, s->now_ns, packet));
    }
    if (rc == 0 && s->wants_keyframe && is_due(s, s->keyframe_ns + SECOND_NS)) {
        s->wants_keyframe = false;
        s->keyframe_ns = s->now_ns;
        if (s->media.pli || s->media.fir)
            rc = send_rtcp(s, packet,
                           rtsp_track_write(s->track,
                                            s->media.pli ? RTCP_PICTURE_LOSS : RTCP_FULL_INTRA,
                                            s->now_ns, packet));
    }
    return rc;
}

static int keep_playing(struct rtsp_session *s)
{
    // The group is silent: perhaps another address sends to it.
    if (!s->media_ns && s->carriage.group.ss_family && !s->carriage.from_anybody &&
        is_due(s, s->play_ns + MULTICAST_SILENCE * SECOND_NS))
        rtsp_carriage_widen(&s->carriage);
    if (s->carriage.transport != TRANSPORT_TCP && !s->datagram_came && !s->memory->tcp_fails &&
        is_due(s, s->play_ns + bounds_max(UDP_SILENCE * SECOND_NS, s->memory->patience_ns)))
        return rtsp_fall_back(s);
    const int rc = send_reports(s);
    return rc == 0 && is_due(s, s->keep_alive_ns) ? rtsp_keep_alive(s) : rc;
}

static int keep_time(struct rtsp_session *s)
{
    s->due_ns = INT64_MAX;
    if (!s->play_ns && !s->media_ns && is_due(s, s->until_ns))
        return rtsp_end_late(s);
    // The source of a BYE may have a successor.
    if (s->track->receiver.statistics.parted && is_due(s, s->parted_ns + PARTED_NS))
        return rtsp_end(s, -ENODATA, "ended the stream");
    if (!s->play_ns && s->media_ns && is_due(s, s->asked_ns + UNANSWERED_PLAY * SECOND_NS))
        return rtsp_start(s);
    return s->play_ns ? keep_playing(s) : 0;
}

// --- reading

// Returns 0 with a unit, -EAGAIN, or why the session ended.
static int read_unit(struct rtsp_session *s, struct rtsp_unit *ret)
{
    int rc = rtsp_track_read(s->track, s->now_ns, has_waited(s), ret);
    const char *complaint = s->track->depacketizer->complaint;
    if (*complaint && !s->memory->complaint_logged)
        log_event(LOG_LEVEL_WARNING, "%s sends %s", s->place, complaint);
    s->memory->complaint_logged |= *complaint != 0;
    if (rc == 0) {
        s->unit_ns = s->now_ns;
        s->waited_ns = s->dry_ns = 0;
    } else if (s->track->barren)
        rtsp_end(s, -ETIME, "sends packets, but no picture of %s in them%s%s", s->media.encoding,
                 *complaint ? ": " : "", complaint);
    return rc != 0 && s->ended ? s->ended : rc;
}

int rtsp_session_read(struct rtsp_session *s, struct rtsp_unit *ret)
{
    s->now_ns = monotonic_ns();
    if (atomic_load(s->stop))
        return -ECANCELED;
    int rc = s->ended ? 0 : keep_time(s);
    for (int i = 0; i < ROUNDS_MAX && rc != -ERESTART; i++) {
        if ((rc = read_unit(s, ret)) != -EAGAIN)
            return rc;
        if ((rc = rtsp_take_input(s)) == -EAGAIN) {
            rtsp_wait_for_input(s, bounds_min(s->due_ns, rtsp_track_due_ns(s->track)));
            break;
        }
    }
    return rc == -ERESTART ? rc : -EAGAIN;
}

struct rtp_statistics rtsp_session_statistics(const struct rtsp_session *s)
{
    return s->track ? s->track->receiver.statistics : (struct rtp_statistics){0};
}

const char *rtsp_session_transport(const struct rtsp_session *s)
{
    static const char *const names[] = {
        [TRANSPORT_TCP] = "tcp", [TRANSPORT_UDP] = "udp", [TRANSPORT_MULTICAST] = "multicast"};
    return names[s->carriage.transport];
}

void rtsp_session_ping(struct rtsp_session *s)
{
    const bool waits = s->open && s->now_ns < s->asked_ns + PING_PATIENCE * SECOND_NS;
    if (!s->ended && s->play_ns && !waits && s->keep_alive_ns != INT64_MAX)
        rtsp_keep_alive(s);
}
