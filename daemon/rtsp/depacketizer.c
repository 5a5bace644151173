#include "daemon/rtsp/depacketizer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/number.h"
#include "daemon/rtsp/rtp_receiver.h"
#include "daemon/rtsp/sdp.h"

// --- the end of a picture

static const int64_t MS = 1000000;
static const int64_t FIRST_WAIT_NS = 10 * MS; // after a marker, in the first pictures
static const int64_t SILENCE_MIN_NS = 5 * MS;

enum {
    FIRST_PICTURES = 2, // before these, a marker ends a picture only after FIRST_WAIT_NS
    KNOWN = 16,         // pictures that show reliable markers
    UNMARKED = 8,       // more pictures without a marker than with one: there are none
    EARLY = 64,         // pictures that remember slices behind a marker
    STEADY = 30,        // pictures with the same number of markers
    GAP_DECAY = 16,     // pictures in which the longest gap shrinks to a third
    SILENCE_OF_GAP = 4, // longest gaps in the silence that ends a picture
};

const char *picture_end_name(enum picture_end end)
{
    static const char *const names[] = {"learning", "marker", "per slice", "none"};
    return names[end];
}

static void name_end(struct picture_end_verdict *verdict)
{
    const bool trusted = verdict->pictures >= KNOWN && verdict->unmarked == 0;
    verdict->end = verdict->early                  ? PICTURE_END_PER_SLICE
                   : verdict->unmarked >= UNMARKED ? PICTURE_END_NONE
                   : trusted                       ? PICTURE_END_MARKER
                                                   : PICTURE_END_LEARNING;
}

void picture_end_learn(struct picture_end_verdict *verdict, const struct picture_end_signs *signs)
{
    if (signs->damaged)
        return;
    if (signs->markers > 0)
        verdict->unmarked -= verdict->unmarked > 0;
    else
        verdict->unmarked += verdict->unmarked < KNOWN;
    verdict->early = signs->early ? EARLY : verdict->early - (verdict->early > 0);
    verdict->steady =
        signs->markers != verdict->markers ? 1 : verdict->steady + (verdict->steady < STEADY);
    verdict->markers = signs->markers;
    verdict->pictures += verdict->pictures < STEADY;
    verdict->gap_ns -= verdict->gap_ns / GAP_DECAY;
    verdict->gap_ns = bounds_max(verdict->gap_ns, signs->gap_ns);
    if (signs->interval_ns > 0)
        verdict->interval_ns +=
            (signs->interval_ns - verdict->interval_ns) / (verdict->interval_ns ? 8 : 1);
    name_end(verdict);
}

// Returns at most half an interval, so that a picture never waits for the next one.
static int64_t bounded_silence_ns(const struct picture_end_verdict *verdict,
                                  const struct picture_end_signs *signs)
{
    const bool first = verdict->pictures < FIRST_PICTURES;
    const int64_t gap = first ? bounds_max(verdict->gap_ns, signs->gap_ns) : verdict->gap_ns;
    const int64_t least = first ? FIRST_WAIT_NS : SILENCE_MIN_NS, half = verdict->interval_ns / 2;
    const int64_t silence = bounds_max(least, SILENCE_OF_GAP * gap);
    return half > 0 ? bounds_min(silence, half) : silence;
}

void picture_end_went_on(struct picture_end_verdict *verdict, bool marked, bool silent)
{
    if (marked) {
        verdict->early = EARLY;
        verdict->steady = 0;
    }
    if (silent) // doubles the silence
        verdict->gap_ns =
            2 * bounded_silence_ns(verdict, &(struct picture_end_signs){0}) / SILENCE_OF_GAP;
    name_end(verdict);
}

// Returns true if the last pictures, at most STEADY, all had the same number of markers.
static bool is_steady(const struct picture_end_verdict *verdict)
{
    return verdict->pictures > 0 && verdict->steady >= verdict->pictures;
}

bool picture_end_at_marker(const struct picture_end_verdict *verdict,
                           const struct picture_end_signs *signs)
{
    if (verdict->early || signs->early)
        return is_steady(verdict) && signs->markers == verdict->markers;
    return verdict->pictures >= FIRST_PICTURES;
}

int64_t picture_end_silence_ns(const struct picture_end_verdict *verdict,
                               const struct picture_end_signs *signs, bool marked)
{
    if (verdict->early || signs->early) {
        const bool will_end = is_steady(verdict) && signs->markers < verdict->markers;
        return will_end && !signs->damaged ? INT64_MAX : bounded_silence_ns(verdict, signs);
    }
    if (verdict->end == PICTURE_END_NONE)
        return bounded_silence_ns(verdict, signs);
    return marked ? FIRST_WAIT_NS : INT64_MAX;
}

// --- bytes

enum { ROOM_MIN = 4096 };

static struct assembly_unit *open_unit(struct assembly *a)
{
    return &a->units[a->n_complete];
}

uint8_t *assembly_data(const struct assembly *a)
{
    return a->data + a->units[a->n_complete].begin;
}

size_t assembly_bytes(const struct assembly *a)
{
    return a->bytes - a->units[a->n_complete].begin;
}

const struct assembly_unit *assembly_open_unit(const struct assembly *a)
{
    return &a->units[a->n_complete];
}

bool assembly_append(struct assembly *a, const void *data, size_t bytes)
{
    if (bytes > ASSEMBLY_BYTES_MAX - assembly_bytes(a))
        return false;
    size_t room = a->room ? a->room : ROOM_MIN;
    while (room < a->bytes + bytes)
        room *= 2;
    if (room != a->room) {
        uint8_t *larger = realloc(a->data, room);
        a->no_memory |= !larger;
        if (!larger)
            return false;
        a->data = larger;
        a->room = room;
    }
    memcpy(a->data + a->bytes, data, bytes);
    a->bytes += bytes;
    return true;
}

void assembly_remove(struct assembly *a, size_t from, size_t to)
{
    uint8_t *data = assembly_data(a);
    if (to > from)
        memmove(data + from, data + to, assembly_bytes(a) - to);
    a->bytes -= to - from;
}

// Begins the unit behind the open one.
static void begin_ahead(struct assembly *a, size_t at)
{
    a->ahead = true;
    open_unit(a)[1] = (struct assembly_unit){
        .begin = open_unit(a)->begin + at,
        .unit = {.received_ns = a->received_ns, .arrived_ns = a->received_ns},
    };
}

// Adds the pieces ahead to the open unit: they do not begin another one.
static void join_ahead(struct assembly *a)
{
    struct assembly_unit *u = open_unit(a);
    u->unit.has_sets |= a->ahead && u[1].unit.has_sets;
    u->recovery |= a->ahead && u[1].recovery;
    a->ahead = false;
}

// --- the end of a unit

// Drops the open unit's picture, which has no complete slice. Its parameter sets and its loss go to
// the next picture.
static void lose_picture(struct assembly *a)
{
    struct assembly_unit *u = open_unit(a), left = {.unit = u->unit, .begin = u->begin};
    left.begun = u->unit.has_sets && u->head > 0;
    left.unit.has_sets = left.begun;
    left.unit.damaged = false;
    left.unit.reference_lost = true;
    assembly_remove(a, left.begun ? u->head : 0, u[1].begin - u->begin);
    *u = left;
    join_ahead(a);
}

enum assembly_end { ENDED, ENDED_BY_SILENCE, ENDED_BY_FLUSH };

// Ends the open unit before the pieces ahead, else before its last bytes: so many are `behind` it.
static void end_unit(struct assembly *a, size_t behind, enum assembly_end how)
{
    struct assembly_unit *u = open_unit(a);
    if (u->slices > 0 && a->finish)
        a->finish(a->finish_state, u);
    if (!a->ahead)
        begin_ahead(a, assembly_bytes(a) - behind);
    if (u->slices == 0) {
        lose_picture(a);
        return;
    }
    if (a->n_complete == ASSEMBLY_UNITS - 1) { // no place for another one
        u->unit.damaged = true;
        join_ahead(a);
        return;
    }
    u->signs.damaged = u->unit.damaged;
    if (a->ended_received_ns != INT64_MIN)
        u->signs.interval_ns = u->unit.received_ns - a->ended_received_ns;
    if (how != ENDED_BY_FLUSH)
        picture_end_learn(a->verdict, &u->signs);
    a->ended = true;
    a->ended_silently = how == ENDED_BY_SILENCE;
    a->ended_marked = u->signs.markers > 0;
    a->ended_timestamp = u->unit.timestamp;
    a->ended_received_ns = u->unit.received_ns;
    u->unit.keyframe = u->random_access || (u->recovery && !u->inter);
    u->unit.bytes = u[1].begin - u->begin;
    a->ahead = false;
    a->n_complete++;
}

// Releases the unit that assembly_take returned, and the bytes of all units taken so far.
static void assembly_release(struct assembly *a)
{
    if (!a->given)
        return;
    a->given = false;
    memmove(a->units, a->units + 1, ASSEMBLY_UNITS * sizeof *a->units);
    if (--a->n_complete > 0)
        return;
    const size_t gone = a->units[0].begin;
    memmove(a->data, a->data + gone, a->bytes - gone);
    a->bytes -= gone;
    a->units[0].begin = 0;
    a->units[1].begin -= a->ahead ? gone : 0;
}

// See depacketizer_due_ns.
static int64_t assembly_due_ns(const struct assembly *a)
{
    const struct assembly_unit *u = &a->units[a->n_complete];
    if (a->n_complete > a->given)
        return INT64_MIN;
    if (!u->picture || a->incomplete || u->awaits || a->ahead)
        return INT64_MAX;
    struct picture_end_signs signs = u->signs;
    signs.damaged = u->unit.damaged;
    const int64_t silence = picture_end_silence_ns(a->verdict, &signs, u->marked);
    return silence == INT64_MAX ? INT64_MAX : u->unit.arrived_ns + silence;
}

// Returns 0 or -EAGAIN.
static int assembly_take(struct assembly *a, int64_t now_ns, struct access_unit *ret)
{
    assembly_release(a);
    if (a->n_complete == 0 && assembly_due_ns(a) <= now_ns)
        end_unit(a, 0, ENDED_BY_SILENCE);
    if (a->n_complete == 0)
        return -EAGAIN;
    a->given = true;
    *ret = a->units[0].unit;
    ret->data = a->data + a->units[0].begin;
    return 0;
}

// --- packets

// Counts packets missing before the present one, whose timestamp is the open unit's or another
// (`other`), in the open unit. A unit with a slice is damaged: if its marker had arrived, it would
// have ended before.
static void note_hole(struct assembly *a, uint32_t lost, bool other)
{
    struct assembly_unit *u = open_unit(a);
    u->unit.lost += lost;
    u->unit.hole = true;
    a->ended_received_ns = INT64_MIN;
    a->hole = true;
    a->hole_whole = !u->picture;
    if (u->picture) {
        u->unit.damaged = true;
        a->hole_whole = other && u->slices > 0 && u->unit.disposable;
    } else if (u->begun && !other) {
        u->unit.damaged = true;
        a->hole = false;
    }
}

// Ends the open unit: the sender restarted.
static void begin_anew(struct assembly *a)
{
    struct assembly_unit *u = open_unit(a);
    if (u->picture) {
        u->unit.damaged |= !u->marked;
        end_unit(a, 0, ENDED_BY_FLUSH);
    }
    u = open_unit(a);
    u->unit.restarted = true;
    u->unit.has_sets = u->begun = false;
    assembly_remove(a, 0, assembly_bytes(a));
    a->ended = false;
    a->ended_received_ns = INT64_MIN;
}

void assembly_packet(struct assembly *a, const struct rtp_packet *packet)
{
    const bool other = !a->begun || packet->timestamp != a->timestamp;
    const bool hole = packet->lost || packet->lost_unknown;
    if (hole)
        note_hole(a, packet->lost, other || packet->restarted);
    if (packet->restarted)
        begin_anew(a);
    else if (other && open_unit(a)->picture && (!open_unit(a)->awaits || hole))
        end_unit(a, 0, ENDED);
    a->begun = true;
    a->timestamp = packet->timestamp;
    a->received_ns = packet->received_ns;
}

// Updates the open unit's times from the present packet; before its first slice the timestamp, too:
// cameras send parameter sets with the timestamp of the previous picture.
void assembly_goes_on(struct assembly *a)
{
    struct assembly_unit *u = open_unit(a);
    if (!u->begun || (!u->picture && u->unit.timestamp != a->timestamp)) {
        u->unit.timestamp = a->timestamp;
        u->unit.received_ns = a->received_ns;
        u->begun = true;
    } else if (u->picture) {
        u->signs.gap_ns = bounds_max(u->signs.gap_ns, a->received_ns - u->unit.arrived_ns);
    }
    u->unit.arrived_ns = a->received_ns;
}

static void tell_hole(struct assembly *a, bool begins)
{
    if (!a->hole)
        return;
    a->hole = false;
    open_unit(a)->unit.damaged |= !begins;
    open_unit(a)->unit.reference_lost |= begins && a->hole_whole;
}

// Takes a slice that begins no picture. If none is open, the last unit was ended too early.
static void go_on_with_picture(struct assembly *a, bool hole)
{
    struct assembly_unit *u = open_unit(a);
    if (u->picture) {
        u->signs.early |= u->marked;
        return;
    }
    if (a->ended && !hole && a->timestamp == a->ended_timestamp)
        picture_end_went_on(a->verdict, a->ended_marked, a->ended_silently);
    u->unit.damaged = true;
}

size_t assembly_piece(struct assembly *a, size_t at, enum assembly_piece piece)
{
    struct assembly_unit *u = open_unit(a);
    const size_t behind = assembly_bytes(a) - at; // wherever the unit begins
    const bool hole = a->hole, stands_ahead = piece == PIECE_AHEAD || piece == PIECE_PREFIX;
    const bool slice = piece >= PIECE_FIRST && piece <= PIECE_NEXT;
    const bool undecided =
        (piece == PIECE_PREFIX && !u->marked && a->timestamp == u->unit.timestamp) ||
        (stands_ahead && u->awaits);
    const bool begins = stands_ahead || piece == PIECE_FIRST || piece == PIECE_FIRST_FIELD;
    if (piece == PIECE_SKIPPED || (piece == PIECE_BEHIND && !u->picture))
        return SIZE_MAX;
    if (u->picture && begins && !undecided)
        end_unit(a, behind, ENDED);
    else if (u->picture && undecided && !a->ahead)
        begin_ahead(a, at);
    else if (slice)
        join_ahead(a);
    if (slice || stands_ahead)
        tell_hole(a, piece != PIECE_NEXT && piece != PIECE_SECOND_FIELD);
    if (piece == PIECE_NEXT)
        go_on_with_picture(a, hole);
    assembly_goes_on(a);
    u = open_unit(a);
    at = assembly_bytes(a) - behind;
    if (!slice)
        return at;
    u->head = u->picture ? u->head : at;
    u->picture = true;
    u->marked = false;
    u->awaits = piece == PIECE_FIRST_FIELD || (u->awaits && piece != PIECE_SECOND_FIELD);
    a->ended = false;
    return at;
}

void assembly_slice(struct assembly *a, const struct assembly_slice *slice)
{
    struct assembly_unit *u = open_unit(a);
    u->unit.disposable = slice->disposable && (u->slices == 0 || u->unit.disposable);
    u->random_access |= slice->random_access;
    u->inter |= !slice->intra;
    u->slices++;
}

void assembly_note(struct assembly *a, bool set, bool recovery)
{
    struct assembly_unit *u = open_unit(a) + a->ahead;
    u->unit.has_sets |= set;
    u->recovery |= recovery;
}

void assembly_damage(struct assembly *a)
{
    struct assembly_unit *u = open_unit(a);
    tell_hole(a, false);
    u->unit.damaged = true;
    if (!u->picture)
        u->head = assembly_bytes(a);
    u->picture = true;
}

void assembly_marker(struct assembly *a)
{
    struct assembly_unit *u = open_unit(a);
    if (!u->picture || a->ahead)
        return;
    u->marked = true;
    u->signs.markers++;
    if (!u->awaits && picture_end_at_marker(a->verdict, &u->signs))
        end_unit(a, 0, ENDED);
}

// --- the depacketizer

struct depacketizer {
    const struct depacketize_codec *codec;
    struct assembly assembly;
    void *state; // of the codec
};

static const struct depacketize_codec *const codecs[] = {
    [SDP_H264] = &depacketize_nal,
    [SDP_H265] = &depacketize_nal,
    [SDP_JPEG] = &depacketize_jpeg,
};

int depacketizer_open(struct depacketizer **ret, const struct sdp_media *media,
                      struct picture_end_verdict *verdict)
{
    const size_t n = sizeof codecs / sizeof codecs[0];
    const struct depacketize_codec *codec = media->codec < n ? codecs[media->codec] : NULL;
    if (!codec)
        return -ENOTSUP;
    struct depacketizer *d = calloc(1, sizeof *d);
    void *state = calloc(1, codec->bytes);
    if (!d || !state) {
        free(d);
        free(state);
        return -ENOMEM;
    }
    d->codec = codec;
    d->state = state;
    d->assembly.verdict = verdict ? verdict : &d->assembly.own;
    d->assembly.ended_received_ns = INT64_MIN;
    codec->open(state, &d->assembly, media);
    *ret = d;
    return 0;
}

void depacketizer_close(struct depacketizer *d)
{
    if (!d)
        return;
    free(d->assembly.data);
    free(d->state);
    free(d);
}

int depacketizer_put(struct depacketizer *d, const struct rtp_packet *packet)
{
    assembly_release(&d->assembly);
    d->assembly.no_memory = false;
    d->codec->packet(d->state, packet);
    return d->assembly.no_memory ? -ENOMEM : 0;
}

int depacketizer_get(struct depacketizer *d, int64_t now_ns, struct access_unit *ret)
{
    return assembly_take(&d->assembly, now_ns, ret);
}

int64_t depacketizer_due_ns(const struct depacketizer *d)
{
    return assembly_due_ns(&d->assembly);
}

void depacketizer_flush(struct depacketizer *d)
{
    struct assembly *a = &d->assembly;
    d->codec->flush(d->state);
    assembly_release(a);
    if (open_unit(a)->picture)
        end_unit(a, 0, ENDED_BY_FLUSH);
    a->ended = false;
    a->ended_received_ns = INT64_MIN;
}

const uint8_t *depacketizer_sets(const struct depacketizer *d, size_t *bytes)
{
    *bytes = 0;
    return d->codec->sets ? d->codec->sets(d->state, bytes) : NULL;
}

const char *depacketizer_complaint(const struct depacketizer *d)
{
    return d->codec->complaint ? d->codec->complaint(d->state) : NULL;
}
