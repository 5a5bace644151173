#include "daemon/rtsp/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/number.h"
#include "daemon/rtsp/rtp_receiver.h"

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

struct rtsp_session {
    struct rtsp_dialogue d;
    int64_t opened_ns, heard_ns;
    int64_t parted_ns;              // when BYE arrived last; 0: never
    int64_t report_ns, keyframe_ns; // when the last one was sent; 0: never
    bool wants_keyframe, channel_logged;
    bool datagram_came; // from the camera: UDP works
    int other_format;   // packets in a row
    bool busy;          // there is more input than one step takes
    // unit_ns: the last unit arrived; 0: none. waited_ns: time since then without network data,
    // except the present one, which began at dry_ns (0: there is data).
    int64_t unit_ns, dry_ns, waited_ns;
    bool has_unit;
    struct rtsp_unit unit;
};

// --- input

// Some cameras write an older session's packets to its descriptor, which now has our connection.
static void note_left_over(struct rtsp_session *s, const uint8_t *data, size_t bytes)
{
    struct rtp_packet packet;
    if (rtp_is_rtcp(data, bytes) || rtp_parse(&packet, data, bytes) < 0)
        return;
    s->d.avoids = true;
    s->d.avoided = packet.ssrc;
}

static void log_other_source(struct rtsp_session *s)
{
    if (s->d.memory->source_change_logged || rtsp_track_statistics(s->d.track).source_changes == 0)
        return;
    s->d.memory->source_change_logged = true;
    log_event(LOG_LEVEL_INFO, "%s changed the source (SSRC) of its stream: framed follows it",
              s->d.place);
}

// Ends the session if the camera sends only another of the formats offered for the track.
static int note_other_format(struct rtsp_session *s, const uint8_t *data, size_t bytes)
{
    struct rtp_packet packet;
    const bool flows = s->d.media_ns && s->d.now_ns - s->d.media_ns < FORMAT_SILENCE * SECOND_NS;
    if (flows || rtp_is_rtcp(data, bytes) || rtp_parse(&packet, data, bytes) < 0 ||
        !s->d.other_formats[packet.payload_type] || ++s->other_format < OTHER_FORMAT)
        return RTSP_TRACK_NOTHING;
    s->d.memory->payload_type = packet.payload_type;
    return rtsp_dialogue_end(&s->d, -ETIME, "%s sends payload type %d, not %d as it prefers",
                             s->d.place, packet.payload_type, s->d.media.payload_type);
}

static int take_packet(struct rtsp_session *s, const uint8_t *data, size_t bytes)
{
    if (!s->d.track && s->d.phase <= RTSP_SETTING_UP)
        note_left_over(s, data, bytes);
    if (!s->d.track || s->d.phase == RTSP_LEAVING)
        return RTSP_TRACK_NOTHING;
    int got = rtsp_track_put(s->d.track, data, bytes, s->d.now_ns);
    if (got < 0)
        return rtsp_dialogue_end(&s->d, got, "out of memory");
    if (got != RTSP_TRACK_NOTHING)
        s->heard_ns = s->d.now_ns;
    if (got == RTSP_TRACK_BYE)
        s->parted_ns = s->d.now_ns;
    if (got == RTSP_TRACK_NOTHING)
        return note_other_format(s, data, bytes);
    if (got != RTSP_TRACK_MEDIA)
        return got;
    s->other_format = 0;
    s->d.media_ns = s->d.now_ns;
    log_other_source(s);
    if (s->d.carriage.sockets)
        rtp_sockets_settle(s->d.carriage.sockets);
    else if (s->d.fell_back)
        s->d.memory->udp_fails = true;
    return got;
}

static int take_frame(struct rtsp_session *s, const struct rtsp_frame *frame)
{
    int *channels = s->d.carriage.channels;
    if (s->d.carriage.transport != TRANSPORT_TCP)
        return 0;
    const bool ours = frame->channel == channels[0] || frame->channel == channels[1];
    if (!ours && (s->d.media_ns || rtp_is_rtcp(frame->data, frame->bytes))) {
        if (!s->channel_logged)
            log_event(LOG_LEVEL_INFO, "%s sends on channel %d too, which was not asked for",
                      s->d.place, frame->channel);
        s->channel_logged = true;
        return 0;
    }
    int got = take_packet(s, frame->data, frame->bytes);
    if (!ours && got == RTSP_TRACK_MEDIA) { // the camera uses channels of its own
        channels[0] = frame->channel;
        channels[1] = frame->channel + 1;
        s->d.reader.framing.rtp_channel = channels[0];
        s->d.reader.framing.rtcp_channel = channels[1];
    }
    return got < 0 ? got : 0;
}

static int end_connection(struct rtsp_session *s, ssize_t n)
{
    if (s->d.phase == RTSP_LEAVING)
        return rtsp_dialogue_finish(&s->d);
    if (n < 0)
        return rtsp_dialogue_end(&s->d, (int)n, "lost the connection to %s: %s", s->d.place,
                                 strerror((int)-n));
    if (s->d.phase == RTSP_PLAYING)
        return rtsp_dialogue_end(&s->d, -ENODATA, "%s ended the connection", s->d.place);
    return rtsp_dialogue_end(&s->d, -ECONNRESET, "%s hung up instead of answering %s", s->d.place,
                             rtsp_dialogue_method(&s->d));
}

static void note_network_data(struct rtsp_session *s)
{
    if (s->dry_ns)
        s->waited_ns += s->d.now_ns - s->dry_ns;
    s->dry_ns = 0;
}

static void note_dry_network(struct rtsp_session *s)
{
    if (!s->dry_ns)
        s->dry_ns = s->d.now_ns;
}

// Returns true if the session has waited for the unit. Packets get their time when they are read:
// if the owner is slow, they are ready before, and the session hardly waits. A wait inside a unit
// counts: some cameras spread a unit's packets over the whole interval.
static bool has_waited(struct rtsp_session *s)
{
    const int64_t waited_ns = s->waited_ns + (s->dry_ns ? s->d.now_ns - s->dry_ns : 0);
    return s->unit_ns && waited_ns && WAITED_SHARE * waited_ns >= s->d.now_ns - s->unit_ns;
}

static int read_network(struct rtsp_session *s)
{
    const uint8_t *datagram;
    size_t room;
    ssize_t n = -EAGAIN;
    if (s->d.carriage.sockets)
        n = rtp_sockets_read(s->d.carriage.sockets, &datagram);
    if (n >= 0) {
        note_network_data(s);
        s->datagram_came = true;
        int got = take_packet(s, datagram, (size_t)n);
        return got < 0 ? got : 0;
    }
    uint8_t *to = rtsp_reader_room(&s->d.reader, &room);
    n = rtsp_connection_read(s->d.connection, to, room);
    if (n == -EAGAIN) {
        note_dry_network(s);
        return -EAGAIN;
    }
    if (n <= 0)
        return end_connection(s, n);
    note_network_data(s);
    s->heard_ns = s->d.now_ns;
    rtsp_reader_add(&s->d.reader, (size_t)n);
    return 0;
}

static int take_input(struct rtsp_session *s)
{
    struct rtsp_message message;
    struct rtsp_frame frame;
    switch (rtsp_reader_next(&s->d.reader, &message, &frame)) {
    case RTSP_ITEM_MESSAGE:
        return rtsp_dialogue_take(&s->d, &message);
    case RTSP_ITEM_FRAME:
        return take_frame(s, &frame);
    case RTSP_ITEM_LOST:
        if (s->d.track)
            rtsp_track_lose(s->d.track);
        return 0;
    case RTSP_ITEM_INVALID:
        if (s->d.phase == RTSP_LEAVING)
            return rtsp_dialogue_finish(&s->d);
        return rtsp_dialogue_end(&s->d, -EPROTO,
                                 s->d.play_ns ? "%s sends bytes that are no RTSP any more"
                                              : "%s answers, but not in RTSP",
                                 s->d.place);
    default:
        return read_network(s);
    }
}

// --- time

static int send_keyframe_request(struct rtsp_session *s)
{
    uint8_t request[RTCP_REPORT_MAX];
    s->wants_keyframe = false;
    s->keyframe_ns = s->d.now_ns;
    return rtsp_carriage_send(
        &s->d.carriage, s->d.connection, request,
        rtsp_track_ask_keyframe(s->d.track, !s->d.media.pli, s->d.now_ns, request));
}

static int send_report(struct rtsp_session *s)
{
    uint8_t report[RTCP_REPORT_MAX];
    s->report_ns = s->d.now_ns;
    return rtsp_carriage_send(&s->d.carriage, s->d.connection, report,
                              rtsp_track_report(s->d.track, s->d.now_ns, report));
}

// Returns when a report is due, the first one a second after PLAY.
static int64_t report_due(const struct rtsp_session *s)
{
    return s->report_ns ? s->report_ns + REPORT_PERIOD * SECOND_NS : s->d.play_ns + SECOND_NS;
}

static int64_t keyframe_due(const struct rtsp_session *s)
{
    return s->wants_keyframe ? s->keyframe_ns + SECOND_NS : INT64_MAX;
}

// Returns when silence over UDP means that UDP does not work; INT64_MAX: never.
static int64_t silence_due(const struct rtsp_session *s)
{
    if (!s->d.carriage.sockets || s->datagram_came || s->d.memory->tcp_fails)
        return INT64_MAX;
    return s->d.play_ns + bounds_max(UDP_SILENCE * SECOND_NS, s->d.memory->patience_ns);
}

static int fall_back(struct rtsp_session *s)
{
    s->opened_ns = s->d.now_ns;
    return rtsp_dialogue_fall_back(&s->d);
}

static int64_t multicast_due(const struct rtsp_session *s)
{
    const bool narrow =
        s->d.carriage.sockets && !s->d.media_ns && rtp_sockets_is_narrow(s->d.carriage.sockets);
    return narrow ? s->d.play_ns + MULTICAST_SILENCE * SECOND_NS : INT64_MAX;
}

static int keep_playing(struct rtsp_session *s)
{
    int rc = 0;
    if (s->d.now_ns >= multicast_due(s))
        rtp_sockets_widen(s->d.carriage.sockets);
    if (s->d.now_ns >= silence_due(s))
        return fall_back(s);
    if (s->d.now_ns >= report_due(s))
        rc = send_report(s);
    if (rc == 0 && s->d.now_ns >= keyframe_due(s))
        rc = send_keyframe_request(s);
    if (rc < 0)
        return rtsp_dialogue_end(&s->d, rc, "cannot send reports to %s: %s", s->d.place,
                                 strerror(-rc));
    return s->d.now_ns >= s->d.keep_alive.due_ns ? rtsp_dialogue_keep_alive(&s->d) : 0;
}

static int end_late(struct rtsp_session *s)
{
    const double seconds = (double)s->d.config->connect_timeout.ns / 1e9;
    if (s->d.phase == RTSP_CONNECTING)
        return rtsp_dialogue_end(&s->d, -ETIMEDOUT, "%s did not answer within %g s", s->d.place,
                                 seconds);
    return rtsp_dialogue_end(&s->d, -ETIMEDOUT, "%s did not answer %s within %g s", s->d.place,
                             rtsp_dialogue_method(&s->d), seconds);
}

static int64_t open_deadline(const struct rtsp_session *s)
{
    const bool leaves_for_good = s->d.phase == RTSP_LEAVING && !s->d.reconnects;
    return s->d.media_ns || leaves_for_good || s->d.phase == RTSP_PLAYING
               ? INT64_MAX
               : s->opened_ns + s->d.config->connect_timeout.ns;
}

static int64_t phase_due(const struct rtsp_session *s)
{
    if (s->d.phase == RTSP_LEAVING)
        return s->d.leave_ns;
    if (s->d.phase == RTSP_STARTING && s->d.media_ns)
        return s->d.exchange.asked_ns + UNANSWERED_PLAY * SECOND_NS;
    return INT64_MAX;
}

static bool is_parted(const struct rtsp_session *s)
{
    return s->d.track && s->d.phase != RTSP_LEAVING && rtsp_track_statistics(s->d.track).parted;
}

static int64_t parting_due(const struct rtsp_session *s)
{
    return is_parted(s) ? s->parted_ns + PARTED_NS : INT64_MAX;
}

static int end_stream(struct rtsp_session *s)
{
    return rtsp_dialogue_end(&s->d, -ENODATA, "%s ended the stream", s->d.place);
}

static int keep_time(struct rtsp_session *s)
{
    if (s->d.now_ns >= parting_due(s))
        return end_stream(s);
    if (s->d.now_ns >= open_deadline(s))
        return end_late(s);
    if (s->d.now_ns >= phase_due(s) && s->d.phase == RTSP_LEAVING)
        return rtsp_dialogue_finish(&s->d);
    if (s->d.now_ns >= phase_due(s)) {
        rtsp_exchange_abandon(&s->d.exchange);
        return rtsp_dialogue_start(&s->d);
    }
    if (s->d.connection && s->d.phase != RTSP_CONNECTING &&
        rtsp_connection_is_sending(s->d.connection)) {
        int rc = rtsp_connection_flush(s->d.connection);
        if (rc < 0)
            return end_connection(s, rc);
    }
    return s->d.phase == RTSP_PLAYING ? keep_playing(s) : 0;
}

// --- the owner's calls

static void log_complaint(struct rtsp_session *s, const char *complaint)
{
    if (complaint && !s->d.memory->complaint_logged)
        log_event(LOG_LEVEL_WARNING, "%s sends %s", s->d.place, complaint);
    s->d.memory->complaint_logged |= complaint != NULL;
}

static bool read_unit(struct rtsp_session *s)
{
    if (!s->d.track || s->d.phase == RTSP_LEAVING)
        return false;
    int rc = rtsp_track_read(s->d.track, s->d.now_ns, has_waited(s), &s->unit);
    const char *complaint = rtsp_track_complaint(s->d.track);
    log_complaint(s, complaint);
    if (rc < 0 && rc != -EAGAIN)
        rtsp_dialogue_end(&s->d, rc, "out of memory");
    if (rc == -EAGAIN && rtsp_track_is_barren(s->d.track))
        rtsp_dialogue_end(&s->d, -ETIME, "%s sends packets, but no picture of %s in them%s%s",
                          s->d.place, s->d.media.encoding, complaint ? ": " : "",
                          complaint ? complaint : "");
    s->has_unit = rc == 0;
    if (s->has_unit) {
        s->unit_ns = s->d.now_ns;
        s->waited_ns = s->dry_ns = 0;
    }
    return s->has_unit;
}

static void go_on(struct rtsp_session *s, int64_t now_ns)
{
    s->d.now_ns = now_ns;
    s->busy = false;
    if (!s->d.ended)
        keep_time(s);
    for (int i = 0; i < ROUNDS_MAX; i++) {
        if (read_unit(s) || s->d.ended)
            return;
        if ((s->d.phase == RTSP_CONNECTING ? rtsp_dialogue_connect(&s->d) : take_input(s)) ==
            -EAGAIN)
            return;
    }
    s->busy = true;
}

int rtsp_session_open(struct rtsp_session **ret, const struct rtsp_options *options, int64_t now_ns)
{
    struct rtsp_session *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->d.config = options->config;
    s->d.memory = options->memory;
    s->d.now_ns = s->opened_ns = s->heard_ns = now_ns;
    s->d.transport = s->d.memory->udp_fails ? TRANSPORT_TCP : s->d.config->transport;
    s->d.exchange.user = s->d.url.user;
    s->d.exchange.password = s->d.url.password;
    s->d.exchange.auth.first_only = s->d.memory->first_challenge;
    int rc = rtsp_url_parse(&s->d.url, s->d.config->url);
    if (rc == 0)
        rc = rtsp_dialogue_begin(&s->d);
    if (rc < 0)
        rtsp_session_close(s);
    else
        *ret = s;
    return rc;
}

static void keep_least(int64_t *least, int64_t other)
{
    if (other < *least)
        *least = other;
}

int rtsp_session_poll(const struct rtsp_session *s, struct pollfd *fds, int64_t *due_ns)
{
    int n = 0;
    *due_ns = s->busy || s->has_unit || s->d.ended ? s->d.now_ns : INT64_MAX;
    if (s->d.ended)
        return 0;
    if (s->d.connection) {
        int64_t connection_ns;
        n = rtsp_connection_poll(s->d.connection, fds, &connection_ns);
        keep_least(due_ns, connection_ns);
    }
    if (s->d.carriage.sockets)
        n += rtp_sockets_poll(s->d.carriage.sockets, fds + n);
    if (s->d.track && s->d.phase != RTSP_LEAVING)
        keep_least(due_ns, rtsp_track_due_ns(s->d.track));
    keep_least(due_ns, open_deadline(s));
    keep_least(due_ns, phase_due(s));
    keep_least(due_ns, parting_due(s));
    if (s->d.phase == RTSP_PLAYING) {
        keep_least(due_ns, report_due(s));
        keep_least(due_ns, s->d.keep_alive.due_ns);
        keep_least(due_ns, keyframe_due(s));
        keep_least(due_ns, silence_due(s));
        keep_least(due_ns, multicast_due(s));
    }
    return n;
}

int rtsp_session_step(struct rtsp_session *s, int64_t now_ns)
{
    if (!s->has_unit)
        go_on(s, now_ns);
    return s->has_unit ? 0 : s->d.ended;
}

int rtsp_session_read(struct rtsp_session *s, int64_t now_ns, struct rtsp_unit *ret)
{
    if (!s->has_unit)
        go_on(s, now_ns);
    if (!s->has_unit)
        return -EAGAIN;
    s->has_unit = false;
    *ret = s->unit;
    return 0;
}

bool rtsp_session_plays(const struct rtsp_session *s)
{
    return s->d.phase == RTSP_STARTING || s->d.phase == RTSP_PLAYING;
}

bool rtsp_session_is_starting(const struct rtsp_session *s)
{
    return s->d.phase == RTSP_STARTING;
}

bool rtsp_session_has_begun(const struct rtsp_session *s)
{
    return s->d.phase == RTSP_PLAYING || s->d.media_ns;
}

bool rtsp_session_is_answered(const struct rtsp_session *s)
{
    return s->d.phase == RTSP_PLAYING && !s->d.exchange.method;
}

const struct sdp_media *rtsp_session_media(const struct rtsp_session *s)
{
    return s->d.has_media ? &s->d.media : NULL;
}

const uint8_t *rtsp_session_sets(const struct rtsp_session *s, size_t *bytes)
{
    if (s->d.track)
        return rtsp_track_sets(s->d.track, bytes);
    *bytes = (size_t)s->d.media.sets_bytes;
    return s->d.media.sets;
}

struct rtp_statistics rtsp_session_statistics(const struct rtsp_session *s)
{
    return s->d.track ? rtsp_track_statistics(s->d.track) : (struct rtp_statistics){0};
}

uint64_t rtsp_session_overruns(const struct rtsp_session *s)
{
    return s->d.carriage.sockets ? rtp_sockets_overruns(s->d.carriage.sockets) : 0;
}

const char *rtsp_session_transport(const struct rtsp_session *s)
{
    static const char *const names[] = {
        [TRANSPORT_TCP] = "tcp", [TRANSPORT_UDP] = "udp", [TRANSPORT_MULTICAST] = "multicast"};
    return names[s->d.phase < RTSP_SETTING_UP ? s->d.transport : s->d.carriage.transport];
}

void rtsp_session_want_keyframe(struct rtsp_session *s)
{
    s->wants_keyframe = s->d.media.pli || s->d.media.fir;
}

void rtsp_session_ping(struct rtsp_session *s)
{
    const bool waits =
        s->d.exchange.method && s->d.now_ns < s->d.exchange.asked_ns + PING_PATIENCE * SECOND_NS;
    if (!s->d.ended && s->d.phase == RTSP_PLAYING && !waits && s->d.keep_alive.due_ns != INT64_MAX)
        rtsp_dialogue_keep_alive(&s->d);
}

int64_t rtsp_session_heard_ns(const struct rtsp_session *s)
{
    return s->heard_ns;
}

const char *rtsp_session_why(const struct rtsp_session *s)
{
    return s->d.why;
}

void rtsp_session_teardown(struct rtsp_session *s, int64_t now_ns)
{
    s->d.now_ns = now_ns;
    s->has_unit = false;
    if (s->d.ended || (s->d.phase == RTSP_LEAVING && !s->d.reconnects))
        return;
    if (s->d.phase == RTSP_LEAVING)
        s->d.reconnects = false;
    else
        rtsp_dialogue_leave(&s->d);
}

void rtsp_session_close(struct rtsp_session *s)
{
    if (!s)
        return;
    if (!s->d.ended && s->d.phase != RTSP_LEAVING && s->d.connection)
        rtsp_dialogue_leave(&s->d);
    if (s->d.carriage.sockets && !s->datagram_came)
        s->d.memory->tcp_fails = false;
    rtsp_dialogue_close(&s->d);
    explicit_bzero(s->d.url.password, sizeof s->d.url.password);
    free(s);
}
