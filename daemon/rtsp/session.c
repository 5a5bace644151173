#include "daemon/rtsp/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/number.h"

static const int64_t SECOND_NS = 1000000000,
                     PARTED_NS = 500000000; // after BYE: some cameras continue as another source
enum {
    ROUNDS_MAX = 512,      // items of input in one step
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
    s->memory->udp_fails |= s->fell_back && !s->carriage.sockets;
}

// Returns enum rtsp_track_got, or a negative errno.
static int take_packet(struct rtsp_session *s, const uint8_t *data, size_t bytes)
{
    if (!s->track && s->phase <= RTSP_SETTING_UP)
        note_left_over(s, data, bytes);
    if (!s->track || s->phase == RTSP_LEAVING)
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
    if (s->phase == RTSP_LEAVING)
        return rtsp_finish(s);
    if (n < 0)
        return rtsp_end_by_error(s, (int)n, "lost the connection to");
    if (s->phase == RTSP_PLAYING)
        return rtsp_end(s, -ENODATA, "ended the connection");
    return rtsp_end(s, -ECONNRESET, "hung up instead of answering %s", rtsp_method(s));
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
    n = rtsp_connection_read(s->connection, to, room);
    if (n == -EAGAIN && !s->dry_ns)
        s->dry_ns = s->now_ns;
    if (n <= 0)
        return n == -EAGAIN ? -EAGAIN : end_connection(s, n);
    note_network_data(s);
    s->heard_ns = s->now_ns;
    rtsp_reader_add(&s->reader, (size_t)n);
    return 0;
}

static int take_input(struct rtsp_session *s)
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
        if (s->phase == RTSP_LEAVING)
            return rtsp_finish(s);
        return rtsp_end(s, -EPROTO, "%s",
                        s->play_ns ? "sends bytes that are no RTSP any more"
                                   : "answers, but not in RTSP");
    default:
        return read_network(s);
    }
}

// --- time

enum due {
    DUE_PARTED,    // no other source has followed a BYE
    DUE_OPEN,      // connect_timeout is over
    DUE_GOODBYE,   // TEARDOWN was not answered
    DUE_START,     // PLAY was not answered, but media flow
    DUE_WIDEN,     // the group is silent: perhaps another address sends to it
    DUE_UDP_FAILS, // nothing came over UDP
    DUE_REPORT,
    DUE_KEYFRAME,
    DUE_KEEP_ALIVE,
    DUES,
};

static void find_due_while_playing(const struct rtsp_session *s, int64_t due_ns[DUES])
{
    if (!s->media_ns && rtsp_carriage_is_narrow(&s->carriage))
        due_ns[DUE_WIDEN] = s->play_ns + MULTICAST_SILENCE * SECOND_NS;
    if (s->carriage.sockets && !s->datagram_came && !s->memory->tcp_fails)
        due_ns[DUE_UDP_FAILS] =
            s->play_ns + bounds_max(UDP_SILENCE * SECOND_NS, s->memory->patience_ns);
    due_ns[DUE_REPORT] =
        s->report_ns ? s->report_ns + REPORT_PERIOD * SECOND_NS : s->play_ns + SECOND_NS;
    if (s->wants_keyframe)
        due_ns[DUE_KEYFRAME] = s->keyframe_ns + SECOND_NS;
    due_ns[DUE_KEEP_ALIVE] = s->keep_alive_ns;
}

// Returns when to act next, and on what.
static int64_t find_due(const struct rtsp_session *s, enum due *what)
{
    int64_t due_ns[DUES];
    const bool leaving = s->phase == RTSP_LEAVING, leaves_for_good = leaving && !s->reconnects;
    for (int i = 0; i < DUES; i++)
        due_ns[i] = INT64_MAX;
    if (s->track && !leaving && s->track->receiver.statistics.parted)
        due_ns[DUE_PARTED] = s->parted_ns + PARTED_NS;
    if (!s->media_ns && s->phase != RTSP_PLAYING && !leaves_for_good)
        due_ns[DUE_OPEN] = s->opened_ns + s->config->connect_timeout.ns;
    if (leaving)
        due_ns[DUE_GOODBYE] = s->leave_ns;
    if (s->phase == RTSP_STARTING && s->media_ns)
        due_ns[DUE_START] = s->asked_ns + UNANSWERED_PLAY * SECOND_NS;
    if (s->phase == RTSP_PLAYING)
        find_due_while_playing(s, due_ns);
    *what = 0;
    for (int i = 1; i < DUES; i++)
        if (due_ns[i] < due_ns[*what])
            *what = (enum due)i;
    return due_ns[*what];
}

static int send_rtcp(struct rtsp_session *s, const uint8_t *packet, size_t bytes)
{
    int rc = rtsp_carriage_send(&s->carriage, s->connection, packet, bytes);
    return rc < 0 ? rtsp_end_by_error(s, rc, "cannot send reports to") : 0;
}

static int end_late(struct rtsp_session *s)
{
    const bool connected = s->phase != RTSP_CONNECTING;
    return rtsp_end(s, -ETIMEDOUT, "did not answer %s%swithin %g s",
                    connected ? rtsp_method(s) : "", connected ? " " : "",
                    (double)s->config->connect_timeout.ns / 1e9);
}

// Each of them ends the session, or is not due any more afterwards.
static int act(struct rtsp_session *s, enum due what)
{
    uint8_t packet[RTCP_REPORT_MAX];
    switch (what) {
    case DUE_PARTED:
        return rtsp_end(s, -ENODATA, "ended the stream");
    case DUE_OPEN:
        return end_late(s);
    case DUE_GOODBYE:
        return rtsp_finish(s);
    case DUE_START:
        return rtsp_start(s);
    case DUE_WIDEN:
        rtsp_carriage_widen(&s->carriage);
        return 0;
    case DUE_UDP_FAILS:
        s->opened_ns = s->now_ns;
        return rtsp_fall_back(s);
    case DUE_REPORT:
        s->report_ns = s->now_ns;
        return send_rtcp(s, packet, rtsp_track_write(s->track, RTCP_REPORT, s->now_ns, packet));
    case DUE_KEYFRAME:
        s->wants_keyframe = false;
        s->keyframe_ns = s->now_ns;
        return send_rtcp(s, packet,
                         rtsp_track_write(s->track,
                                          s->media.pli ? RTCP_PICTURE_LOSS : RTCP_FULL_INTRA,
                                          s->now_ns, packet));
    default:
        return rtsp_keep_alive(s);
    }
}

static void keep_time(struct rtsp_session *s)
{
    enum due what;
    int rc = s->phase == RTSP_CONNECTING ? 0 : rtsp_connection_flush(s->connection);
    if (rc < 0)
        end_connection(s, rc);
    while (!s->ended && s->now_ns >= find_due(s, &what))
        act(s, what);
}

// --- the owner's calls

static bool read_unit(struct rtsp_session *s)
{
    if (!s->track || s->phase == RTSP_LEAVING)
        return false;
    int rc = rtsp_track_read(s->track, s->now_ns, has_waited(s), &s->unit);
    const char *complaint = s->track->depacketizer->complaint;
    if (*complaint && !s->memory->complaint_logged)
        log_event(LOG_LEVEL_WARNING, "%s sends %s", s->place, complaint);
    s->memory->complaint_logged |= *complaint != 0;
    if (rc < 0 && rc != -EAGAIN)
        rtsp_end_by_error(s, rc, "cannot receive from");
    if (rc == -EAGAIN && s->track->barren)
        rtsp_end(s, -ETIME, "sends packets, but no picture of %s in them%s%s", s->media.encoding,
                 *complaint ? ": " : "", complaint);
    s->has_unit = rc == 0;
    if (s->has_unit) {
        s->unit_ns = s->now_ns;
        s->waited_ns = s->dry_ns = 0;
    }
    return s->has_unit;
}

static void go_on(struct rtsp_session *s, int64_t now_ns)
{
    s->now_ns = now_ns;
    s->busy = false;
    if (!s->ended)
        keep_time(s);
    for (int i = 0; i < ROUNDS_MAX; i++) {
        if (read_unit(s) || s->ended)
            return;
        if ((s->phase == RTSP_CONNECTING ? rtsp_connect(s) : take_input(s)) == -EAGAIN)
            return;
    }
    s->busy = true;
}

int rtsp_session_open(struct rtsp_session **ret, const struct camera_config *config,
                      struct rtsp_memory *memory, int64_t now_ns)
{
    struct rtsp_session *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->config = config;
    s->memory = memory;
    s->now_ns = s->opened_ns = s->heard_ns = now_ns;
    s->transport = memory->udp_fails ? TRANSPORT_TCP : config->transport;
    s->auth.first_only = memory->first_challenge;
    int rc = rtsp_url_parse(&s->url, config->url);
    if (rc == 0)
        rc = rtsp_begin(s);
    if (rc < 0)
        rtsp_session_close(s);
    else
        *ret = s;
    return rc;
}

int rtsp_session_poll(const struct rtsp_session *s, struct pollfd *fds, int64_t *due_ns)
{
    enum due what;
    int64_t connection_ns;
    *due_ns = s->busy || s->has_unit || s->ended ? s->now_ns : INT64_MAX;
    if (s->ended)
        return 0;
    int n = rtsp_connection_poll(s->connection, fds, &connection_ns);
    n += rtsp_carriage_poll(&s->carriage, fds + n);
    *due_ns = bounds_min(*due_ns, connection_ns);
    if (s->track && s->phase != RTSP_LEAVING)
        *due_ns = bounds_min(*due_ns, rtsp_track_due_ns(s->track));
    *due_ns = bounds_min(*due_ns, find_due(s, &what));
    return n;
}

int rtsp_session_step(struct rtsp_session *s, int64_t now_ns)
{
    if (!s->has_unit)
        go_on(s, now_ns);
    return s->has_unit ? 0 : s->ended;
}

int rtsp_session_read(struct rtsp_session *s, int64_t now_ns, struct rtsp_unit *ret)
{
    const int rc = rtsp_session_step(s, now_ns);
    if (!s->has_unit)
        return rc < 0 ? rc : -EAGAIN;
    s->has_unit = false;
    *ret = s->unit;
    return 0;
}

enum rtsp_phase rtsp_session_phase(const struct rtsp_session *s)
{
    return s->phase;
}

bool rtsp_session_has_begun(const struct rtsp_session *s)
{
    return s->phase == RTSP_PLAYING || s->media_ns;
}

bool rtsp_session_is_answered(const struct rtsp_session *s)
{
    return s->phase == RTSP_PLAYING && !s->method;
}

const struct sdp_media *rtsp_session_media(const struct rtsp_session *s)
{
    return s->media.codec != SDP_OTHER ? &s->media : NULL;
}

const uint8_t *rtsp_session_sets(const struct rtsp_session *s, size_t *bytes)
{
    *bytes = s->track ? s->track->depacketizer->sets_bytes : (size_t)s->media.sets_bytes;
    return s->track ? s->track->depacketizer->sets : s->media.sets;
}

struct rtp_statistics rtsp_session_statistics(const struct rtsp_session *s)
{
    return s->track ? s->track->receiver.statistics : (struct rtp_statistics){0};
}

uint64_t rtsp_session_overruns(const struct rtsp_session *s)
{
    return rtsp_carriage_overruns(&s->carriage);
}

const char *rtsp_session_transport(const struct rtsp_session *s)
{
    static const char *const names[] = {
        [TRANSPORT_TCP] = "tcp", [TRANSPORT_UDP] = "udp", [TRANSPORT_MULTICAST] = "multicast"};
    return names[s->phase < RTSP_SETTING_UP ? s->transport : s->carriage.transport];
}

void rtsp_session_want_keyframe(struct rtsp_session *s)
{
    s->wants_keyframe = s->media.pli || s->media.fir;
}

void rtsp_session_ping(struct rtsp_session *s)
{
    const bool waits = s->method && s->now_ns < s->asked_ns + PING_PATIENCE * SECOND_NS;
    if (!s->ended && s->phase == RTSP_PLAYING && !waits && s->keep_alive_ns != INT64_MAX)
        rtsp_keep_alive(s);
}

int64_t rtsp_session_heard_ns(const struct rtsp_session *s)
{
    return s->heard_ns;
}

const char *rtsp_session_why(const struct rtsp_session *s)
{
    return s->why;
}

void rtsp_session_teardown(struct rtsp_session *s, int64_t now_ns)
{
    s->now_ns = now_ns;
    s->has_unit = false;
    if (s->phase == RTSP_LEAVING)
        s->reconnects = false;
    else if (!s->ended)
        rtsp_leave(s);
}

void rtsp_session_close(struct rtsp_session *s)
{
    if (!s)
        return;
    if (!s->ended && s->phase != RTSP_LEAVING && s->connection)
        rtsp_leave(s);
    if (s->carriage.sockets && !s->datagram_came)
        s->memory->tcp_fails = false;
    rtsp_disconnect(s);
    explicit_bzero(s->url.password, sizeof s->url.password);
    free(s);
}
