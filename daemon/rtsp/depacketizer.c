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
    GAP_DECAY = 32,     // pictures in which the longest gap shrinks to a third
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

void picture_end_learn(struct picture_end_verdict *verdict, const struct assembly_unit *u)
{
    if (u->unit.damaged)
        return;
    if (u->markers > 0)
        verdict->unmarked -= verdict->unmarked > 0;
    else
        verdict->unmarked += verdict->unmarked < KNOWN;
    verdict->early = u->early ? EARLY : verdict->early - (verdict->early > 0);
    verdict->steady =
        u->markers != verdict->markers ? 1 : verdict->steady + (verdict->steady < STEADY);
    verdict->markers = u->markers;
    verdict->pictures += verdict->pictures < STEADY;
    // A single stall of the network shows little: the gap doubles at most.
    const int64_t most = 2 * bounds_max(verdict->gap_ns, SILENCE_MIN_NS / SILENCE_OF_GAP);
    verdict->gap_ns -= verdict->gap_ns / GAP_DECAY;
    verdict->gap_ns = bounds_max(verdict->gap_ns, bounds_min(u->gap_ns, most));
    if (u->interval_ns > 0)
        verdict->interval_ns +=
            (u->interval_ns - verdict->interval_ns) / (verdict->interval_ns ? 8 : 1);
    name_end(verdict);
}

// Returns at most half an interval, so that a picture never waits for the next one. `gap_ns`: the
// longest one inside the picture.
static int64_t bounded_silence_ns(const struct picture_end_verdict *verdict, int64_t gap_ns)
{
    const bool first = verdict->pictures < FIRST_PICTURES;
    const int64_t gap = first ? bounds_max(verdict->gap_ns, gap_ns) : verdict->gap_ns;
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
        verdict->gap_ns = 2 * bounded_silence_ns(verdict, 0) / SILENCE_OF_GAP;
    name_end(verdict);
}

// Returns true if the last pictures, at most STEADY, all had the same number of markers.
static bool is_steady(const struct picture_end_verdict *verdict)
{
    return verdict->pictures > 0 && verdict->steady >= verdict->pictures;
}

bool picture_end_at_marker(const struct picture_end_verdict *verdict, const struct assembly_unit *u)
{
    if (verdict->early || u->early)
        return is_steady(verdict) && u->markers == verdict->markers;
    return verdict->pictures >= FIRST_PICTURES;
}

int64_t picture_end_silence_ns(const struct picture_end_verdict *verdict,
                               const struct assembly_unit *u)
{
    const bool early = verdict->early || u->early;
    if (early && is_steady(verdict) && u->markers < verdict->markers && !u->unit.damaged)
        return INT64_MAX; // its last marker will end it
    if (early || verdict->end == PICTURE_END_NONE)
        return bounded_silence_ns(verdict, u->gap_ns);
    return u->marked ? FIRST_WAIT_NS : INT64_MAX;
}

// --- bytes

enum { ROOM_MIN = 4096 };

bool assembly_append(struct depacketizer *d, const void *data, size_t bytes)
{
    if (bytes > ASSEMBLY_BYTES_MAX - (d->bytes - assembly_open_unit(d)->begin))
        return false;
    size_t room = d->room ? d->room : ROOM_MIN;
    while (room < d->bytes + bytes)
        room *= 2;
    if (room != d->room) {
        uint8_t *larger = realloc(d->data, room);
        if (!larger)
            return false;
        d->data = larger;
        d->room = room;
    }
    memcpy(d->data + d->bytes, data, bytes);
    d->bytes += bytes;
    return true;
}

static void remove_bytes(struct depacketizer *d, size_t from, size_t to)
{
    if (to > from)
        memmove(d->data + from, d->data + to, d->bytes - to);
    d->bytes -= to - from;
    d->piece -= d->piece >= to ? to - from : 0;
}

// Begins the unit behind the open one.
static void begin_ahead(struct depacketizer *d)
{
    d->ahead = true;
    assembly_open_unit(d)[1] = (struct assembly_unit){.begin = d->piece};
}

// Adds the pieces ahead to the open unit: they do not begin another one.
static void join_ahead(struct depacketizer *d)
{
    struct assembly_unit *u = assembly_open_unit(d);
    u->unit.has_sets |= d->ahead && u[1].unit.has_sets;
    u->recovery |= d->ahead && u[1].recovery;
    d->ahead = false;
}

// --- the end of a unit

// Drops the open unit's picture, which has no complete slice. Its parameter sets and its loss go to
// the next picture.
static void lose_picture(struct depacketizer *d)
{
    struct assembly_unit *u = assembly_open_unit(d), left = {.unit = u->unit, .begin = u->begin};
    left.begun = u->unit.has_sets && u->head > 0;
    left.unit.has_sets = left.begun;
    left.unit.damaged = false;
    left.unit.reference_lost = true;
    remove_bytes(d, u->begin + (left.begun ? u->head : 0), u[1].begin);
    *u = left;
    join_ahead(d);
}

enum assembly_end { ENDED, ENDED_BY_SILENCE, ENDED_BY_FLUSH };

// Ends the open unit before the pieces ahead, else before the open piece.
static void end_unit(struct depacketizer *d, enum assembly_end how)
{
    struct assembly_unit *u = assembly_open_unit(d);
    if (u->slices > 0 && d->codec->finish)
        d->codec->finish(d, u);
    if (!d->ahead)
        begin_ahead(d);
    if (u->slices == 0) {
        lose_picture(d);
        return;
    }
    if (d->n_complete == ASSEMBLY_UNITS - 1) { // no place for another one
        u->unit.damaged = true;
        join_ahead(d);
        return;
    }
    if (d->ended_received_ns != INT64_MIN)
        u->interval_ns = u->unit.received_ns - d->ended_received_ns;
    if (how != ENDED_BY_FLUSH)
        picture_end_learn(d->verdict, u);
    d->ended = true;
    d->ended_silently = how == ENDED_BY_SILENCE;
    d->ended_marked = u->markers > 0;
    d->ended_timestamp = u->unit.timestamp;
    d->ended_received_ns = u->unit.received_ns;
    u->unit.keyframe = u->random_access || (u->recovery && !u->inter);
    u->unit.bytes = u[1].begin - u->begin;
    d->ahead = false;
    d->n_complete++;
}

// Releases the unit that was returned last, and the bytes of all units returned so far.
static void release_unit(struct depacketizer *d)
{
    if (!d->given)
        return;
    d->given = false;
    memmove(d->units, d->units + 1, ASSEMBLY_UNITS * sizeof *d->units);
    if (--d->n_complete > 0)
        return;
    const size_t gone = d->units[0].begin;
    memmove(d->data, d->data + gone, d->bytes - gone);
    d->bytes -= gone;
    d->piece -= gone;
    d->units[0].begin = 0;
    d->units[1].begin -= d->ahead ? gone : 0;
}

int64_t depacketizer_due_ns(const struct depacketizer *d)
{
    const struct assembly_unit *u = &d->units[d->n_complete];
    if (d->n_complete > d->given)
        return INT64_MIN;
    if (!u->picture || d->piece < d->bytes || u->awaits || d->ahead)
        return INT64_MAX;
    const int64_t silence = picture_end_silence_ns(d->verdict, u);
    return silence == INT64_MAX ? INT64_MAX : u->unit.arrived_ns + silence;
}

int depacketizer_get(struct depacketizer *d, int64_t now_ns, struct access_unit *ret)
{
    release_unit(d);
    if (d->n_complete == 0 && depacketizer_due_ns(d) <= now_ns)
        end_unit(d, ENDED_BY_SILENCE);
    if (d->n_complete == 0)
        return -EAGAIN;
    d->given = true;
    *ret = d->units[0].unit;
    ret->data = d->data + d->units[0].begin;
    return 0;
}

// --- packets

// Counts packets missing before the present one, whose timestamp is the open unit's or another
// (`other`), in the open unit. A unit with a slice is damaged: if its marker had arrived, it would
// have ended before.
static void note_hole(struct depacketizer *d, uint32_t lost, bool other)
{
    struct assembly_unit *u = assembly_open_unit(d);
    u->unit.lost += lost;
    u->unit.hole = true;
    d->ended_received_ns = INT64_MIN;
    d->hole = true;
    d->hole_whole = !u->picture;
    if (u->picture) {
        u->unit.damaged = true;
        d->hole_whole = other && u->slices > 0 && u->unit.disposable;
    } else if (u->begun && !other) {
        u->unit.damaged = true;
        d->hole = false;
    }
}

// Ends the open unit: the sender restarted.
static void restart_stream(struct depacketizer *d)
{
    struct assembly_unit *u = assembly_open_unit(d);
    if (u->picture) {
        u->unit.damaged |= !u->marked;
        end_unit(d, ENDED_BY_FLUSH);
    }
    u = assembly_open_unit(d);
    u->unit.restarted = true;
    u->unit.has_sets = u->begun = false;
    d->bytes = d->piece = u->begin;
    d->ended = false;
    d->ended_received_ns = INT64_MIN;
}

void assembly_packet(struct depacketizer *d, const struct rtp_packet *packet)
{
    const bool other = !d->begun || packet->timestamp != d->timestamp;
    const bool hole = packet->lost || packet->lost_unknown;
    if (hole)
        note_hole(d, packet->lost, other || packet->restarted);
    if (packet->restarted)
        restart_stream(d);
    else if (other && assembly_open_unit(d)->picture && (!assembly_open_unit(d)->awaits || hole))
        end_unit(d, ENDED);
    const bool continues = d->piece < d->bytes;
    d->gap_ns = continues ? bounds_max(d->gap_ns, packet->received_ns - d->received_ns) : 0;
    d->piece_ns = continues ? d->piece_ns : packet->received_ns;
    d->begun = true;
    d->timestamp = packet->timestamp;
    d->received_ns = packet->received_ns;
}

// Updates the open unit's times from the open piece; before its first slice the timestamp, too:
// cameras send parameter sets with the timestamp of the previous picture.
static void time_unit(struct depacketizer *d, struct assembly_unit *u)
{
    if (!u->begun || (!u->picture && u->unit.timestamp != d->timestamp)) {
        u->unit.timestamp = d->timestamp;
        u->unit.received_ns = d->piece_ns;
        u->begun = true;
    } else if (u->picture) {
        u->gap_ns = bounds_max(u->gap_ns, d->piece_ns - u->unit.arrived_ns);
    }
    u->unit.arrived_ns = d->received_ns;
}

static void tell_hole(struct depacketizer *d, bool begins)
{
    if (!d->hole)
        return;
    d->hole = false;
    assembly_open_unit(d)->unit.damaged |= !begins;
    assembly_open_unit(d)->unit.reference_lost |= begins && d->hole_whole;
}

// Takes a slice that begins no picture. If none is open, the last unit was ended too early.
static void go_on_with_picture(struct depacketizer *d, bool hole)
{
    struct assembly_unit *u = assembly_open_unit(d);
    if (u->picture) {
        u->early |= u->marked;
        return;
    }
    if (d->ended && !hole && d->timestamp == d->ended_timestamp)
        picture_end_went_on(d->verdict, d->ended_marked, d->ended_silently);
    u->unit.damaged = true;
}

static void add_slice(struct depacketizer *d, const struct assembly_piece *piece)
{
    struct assembly_unit *u = assembly_open_unit(d);
    u->head = u->picture ? u->head : d->piece - u->begin;
    u->picture = true;
    u->marked = false;
    u->awaits =
        piece->kind == PIECE_FIRST_FIELD || (u->awaits && piece->kind != PIECE_SECOND_FIELD);
    u->gap_ns = bounds_max(u->gap_ns, d->gap_ns);
    d->ended = false;
    if (!piece->slice)
        return;
    u->unit.disposable = piece->disposable && (u->slices == 0 || u->unit.disposable);
    u->random_access |= piece->random_access;
    u->inter |= !piece->intra;
    u->slices++;
}

bool assembly_add(struct depacketizer *d, const struct assembly_piece *piece, size_t bytes)
{
    struct assembly_unit *u = assembly_open_unit(d);
    const enum assembly_kind kind = piece->kind;
    const bool hole = d->hole, stands_ahead = kind == PIECE_AHEAD || kind == PIECE_PREFIX;
    const bool slice = kind >= PIECE_FIRST && kind <= PIECE_NEXT;
    const bool undecided =
        (kind == PIECE_PREFIX && !u->marked && d->timestamp == u->unit.timestamp) ||
        (stands_ahead && u->awaits);
    const bool begins = stands_ahead || kind == PIECE_FIRST || kind == PIECE_FIRST_FIELD;
    if (kind == PIECE_SKIPPED || (kind == PIECE_BEHIND && !u->picture)) {
        remove_bytes(d, d->piece, d->piece + bytes);
        return false;
    }
    if (u->picture && begins && !undecided)
        end_unit(d, ENDED);
    else if (u->picture && undecided && !d->ahead)
        begin_ahead(d);
    else if (slice)
        join_ahead(d);
    if (slice || stands_ahead)
        tell_hole(d, kind != PIECE_NEXT && kind != PIECE_SECOND_FIELD);
    if (kind == PIECE_NEXT)
        go_on_with_picture(d, hole);
    u = assembly_open_unit(d);
    time_unit(d, u);
    if (slice)
        add_slice(d, piece);
    u[d->ahead].unit.has_sets |= piece->set;
    u[d->ahead].recovery |= piece->recovery;
    d->piece += bytes;
    d->piece_ns = d->received_ns; // of the rest
    d->gap_ns = 0;
    return true;
}

void assembly_damage(struct depacketizer *d)
{
    struct assembly_unit *u = assembly_open_unit(d);
    tell_hole(d, false);
    u->unit.damaged = true;
    if (!u->picture)
        u->head = d->piece - u->begin;
    u->picture = true;
}

void assembly_marker(struct depacketizer *d)
{
    struct assembly_unit *u = assembly_open_unit(d);
    if (!u->picture || d->ahead)
        return;
    u->marked = true;
    u->markers++;
    if (!u->awaits && picture_end_at_marker(d->verdict, u))
        end_unit(d, ENDED);
}

// --- the depacketizer

int depacketizer_open(struct depacketizer **ret, const struct sdp_media *media,
                      struct picture_end_verdict *verdict)
{
    const struct depacketize_codec *codec =
        media->codec == SDP_JPEG ? &depacketize_jpeg : &depacketize_nal;
    struct depacketizer *d = calloc(1, codec->bytes);
    if (!d)
        return -ENOMEM;
    d->codec = codec;
    d->verdict = verdict;
    d->ended_received_ns = INT64_MIN;
    codec->open(d, media);
    *ret = d;
    return 0;
}

void depacketizer_close(struct depacketizer *d)
{
    if (d)
        free(d->data);
    free(d);
}

void depacketizer_put(struct depacketizer *d, const struct rtp_packet *packet)
{
    release_unit(d);
    d->codec->packet(d, packet);
}

void depacketizer_flush(struct depacketizer *d)
{
    if (d->codec->drop)
        d->codec->drop(d);
    release_unit(d);
    if (assembly_open_unit(d)->picture)
        end_unit(d, ENDED_BY_FLUSH);
    d->ended = false;
    d->ended_received_ns = INT64_MIN;
}
