#include "daemon/rtsp/depacketizer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/rtsp/rtp_receiver.h"
#include "daemon/rtsp/sdp.h"

// --- the end of a picture

static const int64_t MS = 1000000;
static const int64_t FIRST_WAIT_NS = 10 * MS; // after a marker, in the first pictures
static const int64_t SILENCE_MIN_NS = 5 * MS;

enum {
    FIRST_PICTURES = 2, // before these, a marker ends a picture only after FIRST_WAIT_NS
    JUDGED = 16,        // pictures that decide on "marker" and "none"
    UNMARKED_OF_JUDGED = 8,
    STEADY = 30,        // pictures with the same number of markers
    GAPS_LEFT_OUT = 3,  // longest gaps of 64 that count as stalls of the network
    SILENCE_OF_GAP = 4, // usual gaps in the silence that ends a picture
};

const char *picture_end_name(enum picture_end end)
{
    static const char *const names[] = {"learning", "marker", "per slice", "none"};
    return names[end];
}

static void judge_markers(struct picture_end_verdict *verdict)
{
    const uint64_t last = (UINT64_C(1) << JUDGED) - 1;
    if (verdict->early)
        verdict->end = PICTURE_END_PER_SLICE;
    else if (__builtin_popcountll(verdict->unmarked & last) >= UNMARKED_OF_JUDGED)
        verdict->end = PICTURE_END_NONE;
    else if (verdict->pictures >= JUDGED && !(verdict->unmarked & last))
        verdict->end = PICTURE_END_MARKER;
    else
        verdict->end = PICTURE_END_LEARNING;
}

// Returns the longest gap of the last pictures, apart from the GAPS_LEFT_OUT longest.
static int64_t usual_gap(const struct picture_end_verdict *verdict)
{
    int64_t longest[GAPS_LEFT_OUT + 1] = {0};
    const int left_out = verdict->pictures < PICTURE_END_HISTORY ? 0 : GAPS_LEFT_OUT;
    for (int i = 0; i < verdict->pictures; i++) {
        int64_t gap = verdict->gap_ns[i];
        for (int k = 0; k <= left_out; k++)
            if (gap > longest[k]) {
                const int64_t shorter = longest[k];
                longest[k] = gap;
                gap = shorter;
            }
    }
    return longest[left_out];
}

void picture_end_learn(struct picture_end_verdict *verdict, const struct picture_end_signs *signs)
{
    if (signs->damaged)
        return;
    verdict->unmarked = verdict->unmarked << 1 | signs->unmarked;
    verdict->early = verdict->early << 1 | signs->early;
    verdict->steady = signs->markers == verdict->markers ? verdict->steady + 1 : 1;
    if (verdict->steady > PICTURE_END_HISTORY)
        verdict->steady = PICTURE_END_HISTORY;
    verdict->markers = signs->markers;
    if (verdict->pictures < PICTURE_END_HISTORY)
        verdict->pictures++;
    verdict->gap_ns[verdict->next_gap] = signs->gap_ns;
    verdict->next_gap = (verdict->next_gap + 1) % PICTURE_END_HISTORY;
    verdict->usual_gap_ns = usual_gap(verdict);
    if (verdict->split_ns > SILENCE_MIN_NS)
        verdict->split_ns -= (verdict->split_ns - SILENCE_MIN_NS) / PICTURE_END_HISTORY;
    if (signs->interval_ns > 0 && verdict->interval_ns == 0)
        verdict->interval_ns = signs->interval_ns;
    else if (signs->interval_ns > 0)
        verdict->interval_ns += (signs->interval_ns - verdict->interval_ns) / 8;
    judge_markers(verdict);
}

// Returns at most half an interval, so that a picture never waits for the next one.
static int64_t bounded_silence_ns(const struct picture_end_verdict *verdict,
                                  const struct picture_end_signs *signs)
{
    int64_t gap = verdict->usual_gap_ns, half = verdict->interval_ns / 2;
    if (verdict->pictures < FIRST_PICTURES && signs->gap_ns > gap)
        gap = signs->gap_ns;
    int64_t silence = verdict->pictures < FIRST_PICTURES ? FIRST_WAIT_NS : SILENCE_MIN_NS;
    if (silence < SILENCE_OF_GAP * gap)
        silence = SILENCE_OF_GAP * gap;
    if (silence < verdict->split_ns)
        silence = verdict->split_ns;
    return half > 0 && silence > half ? half : silence;
}

void picture_end_went_on(struct picture_end_verdict *verdict, bool marked, bool silent)
{
    if (marked) {
        verdict->early |= 1;
        verdict->steady = 0;
    }
    if (silent)
        verdict->split_ns = 2 * bounded_silence_ns(verdict, &(struct picture_end_signs){0});
    judge_markers(verdict);
}

// Returns true if the last pictures, at most STEADY, all had the same number of markers.
static bool is_steady(const struct picture_end_verdict *verdict)
{
    const int needed = verdict->pictures < STEADY ? verdict->pictures : STEADY;
    return needed > 0 && verdict->steady >= needed;
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

// --- units

enum { ROOM_MIN = 4096 };

// Returns a free place, or NULL. Prefers the largest buffer, so that few places allocate any.
static struct assembly_unit *take_place(struct assembly *a)
{
    struct assembly_unit *ret = NULL;
    for (int i = 0; i < ASSEMBLY_UNITS; i++) {
        struct assembly_unit *place = &a->units[i];
        if (!place->used && (!ret || place->room > ret->room))
            ret = place;
    }
    if (ret) {
        *ret = (struct assembly_unit){.data = ret->data, .room = ret->room, .used = true};
        ret->unit.received_ns = ret->unit.arrived_ns = a->received_ns;
    }
    return ret;
}

static void assembly_open(struct assembly *a, struct picture_end_verdict *verdict)
{
    a->verdict = verdict ? verdict : &a->own;
    a->ended_received_ns = INT64_MIN;
    a->open = take_place(a);
}

// Releases the unit that assembly_take returned.
static void assembly_release(struct assembly *a)
{
    if (a->given)
        a->given->used = false;
    a->given = NULL;
}

uint8_t *assembly_room(struct assembly *a, size_t bytes)
{
    struct assembly_unit *u = a->open;
    if (bytes > ASSEMBLY_BYTES_MAX - u->bytes)
        return NULL;
    const size_t needed = u->bytes + bytes + ACCESS_UNIT_PADDING;
    if (needed > u->room) {
        size_t room = u->room ? u->room : ROOM_MIN;
        while (room < needed)
            room *= 2;
        uint8_t *data = realloc(u->data, room);
        if (!data) {
            a->no_memory = true;
            return NULL;
        }
        u->data = data;
        u->room = room;
    }
    return u->data + u->bytes;
}

// --- the end of a unit

// Drops the open unit's picture, which has no complete slice. Its parameter sets and its loss go to
// the next picture.
static void lose_picture(struct assembly_unit *u)
{
    struct assembly_unit left = {.unit = u->unit, .data = u->data, .room = u->room, .used = true};
    left.unit.damaged = false;
    left.unit.reference_lost = true;
    left.begun = u->unit.has_sets && u->head > 0;
    left.bytes = left.begun ? u->head : 0;
    left.unit.has_sets = left.begun;
    *u = left;
}

// Returns false if no place is free for the next unit: the open one then continues.
static bool end_unit(struct assembly *a, enum assembly_end how)
{
    struct assembly_unit *u = a->open;
    if (u->slices > 0 && a->finish)
        a->finish(a->finish_state, u);
    if (u->slices == 0) {
        lose_picture(u);
        return true;
    }
    struct assembly_unit *next = take_place(a);
    if (!next)
        return false;
    u->signs.unmarked = u->signs.markers == 0;
    u->signs.damaged = u->unit.damaged;
    if (a->ended_received_ns != INT64_MIN)
        u->signs.interval_ns = u->unit.received_ns - a->ended_received_ns;
    if (how != ENDED_BY_FLUSH)
        picture_end_learn(a->verdict, &u->signs);
    a->ended = true;
    a->end = how;
    a->ended_marked = u->signs.markers > 0;
    a->ended_timestamp = u->unit.timestamp;
    a->ended_received_ns = u->unit.received_ns;
    u->unit.keyframe = u->random_access || (u->recovery && !u->inter);
    u->unit.data = u->data;
    u->unit.bytes = u->bytes;
    a->complete[a->n_complete++] = u;
    a->open = next;
    return true;
}

// See depacketizer_due_ns.
static int64_t assembly_due_ns(const struct assembly *a)
{
    const struct assembly_unit *u = a->open;
    if (a->n_complete > 0)
        return INT64_MIN;
    if (!u->picture || a->incomplete || u->awaits || u->tail)
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
        end_unit(a, ENDED_BY_SILENCE);
    if (a->n_complete == 0)
        return -EAGAIN;
    a->given = a->complete[0];
    a->n_complete--;
    memmove(a->complete, a->complete + 1, (size_t)a->n_complete * sizeof a->complete[0]);
    memset(a->given->data + a->given->bytes, 0, ACCESS_UNIT_PADDING);
    *ret = a->given->unit;
    return 0;
}

// --- packets

bool assembly_breaks(const struct assembly *a, const struct rtp_packet *packet)
{
    return packet->lost || packet->lost_unknown || packet->restarted ||
           packet->timestamp != a->timestamp;
}

// Counts packets missing before the present one, whose timestamp is the open unit's or another
// (`other`), in the open unit. A unit with a slice is damaged: if its marker had arrived, it would
// have ended before.
static void note_hole(struct assembly *a, uint32_t lost, bool other)
{
    struct assembly_unit *u = a->open;
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
    if (a->open->picture) {
        a->open->unit.damaged |= !a->open->marked;
        end_unit(a, ENDED_BY_FLUSH);
    }
    a->open->unit.restarted = true;
    a->open->unit.has_sets = a->open->begun = false;
    a->open->bytes = 0;
    a->ended = false;
    a->ended_received_ns = INT64_MIN;
}

void assembly_packet(struct assembly *a, const struct rtp_packet *packet)
{
    const bool other = !a->begun || packet->timestamp != a->timestamp;
    const bool hole = packet->lost || packet->lost_unknown;
    if (hole)
        note_hole(a, packet->lost, other || packet->restarted);
    if (packet->restarted) {
        begin_anew(a);
    } else if (other && a->open->picture && (!a->open->awaits || hole)) {
        end_unit(a, ENDED_BY_NEXT);
    }
    a->begun = true;
    a->timestamp = packet->timestamp;
    a->received_ns = packet->received_ns;
}

// Updates the open unit's times from the present packet; before its first slice the timestamp, too:
// cameras send parameter sets with the timestamp of the previous picture.
void assembly_goes_on(struct assembly *a)
{
    struct assembly_unit *u = a->open;
    if (!u->begun || (!u->picture && u->unit.timestamp != a->timestamp)) {
        u->unit.timestamp = a->timestamp;
        u->unit.received_ns = a->received_ns;
        u->begun = true;
    } else if (u->picture && a->received_ns - u->unit.arrived_ns > u->signs.gap_ns) {
        u->signs.gap_ns = a->received_ns - u->unit.arrived_ns;
    }
    u->unit.arrived_ns = a->received_ns;
}

// Ends the open unit before the piece at `at`, or before the tail ahead of it, and moves the rest
// into the next unit. Returns the piece's new offset; SIZE_MAX: no memory.
static size_t cut_unit(struct assembly *a, size_t at)
{
    struct assembly_unit *from = a->open;
    const size_t begin = from->tail ? from->tail : at, bytes = from->bytes - begin;
    const bool sets = from->tail && from->tail_sets, recovery = from->tail && from->tail_recovery;
    from->bytes = begin;
    if (!end_unit(a, ENDED_BY_NEXT)) {
        from->bytes += bytes;
        from->unit.damaged = true;
        return at;
    }
    uint8_t *to = assembly_room(a, bytes);
    if (!to) {
        a->open->unit.damaged = true;
        return SIZE_MAX;
    }
    const size_t place = a->open->bytes + (at - begin);
    memmove(to, from->data + begin, bytes);
    a->open->bytes += bytes;
    a->open->unit.has_sets |= sets;
    a->open->recovery |= recovery;
    return place;
}

// Adds the tail to the open unit: it did not begin the next picture.
static void join_tail(struct assembly_unit *u)
{
    u->unit.has_sets |= u->tail > 0 && u->tail_sets;
    u->recovery |= u->tail > 0 && u->tail_recovery;
    u->tail = 0;
    u->tail_sets = u->tail_recovery = false;
}

static void tell_hole(struct assembly *a, bool begins)
{
    if (!a->hole)
        return;
    a->hole = false;
    a->open->unit.damaged |= !begins;
    a->open->unit.reference_lost |= begins && a->hole_whole;
}

// Takes a slice that begins no picture. If none is open, the last unit was ended too early.
static void go_on_with_picture(struct assembly *a, bool hole)
{
    struct assembly_unit *u = a->open;
    if (u->picture) {
        u->signs.early |= u->marked;
        return;
    }
    if (a->ended && !hole && a->timestamp == a->ended_timestamp)
        picture_end_went_on(a->verdict, a->ended_marked, a->end == ENDED_BY_SILENCE);
    u->unit.damaged = true;
}

size_t assembly_piece(struct assembly *a, size_t at, enum assembly_piece piece)
{
    struct assembly_unit *u = a->open;
    const bool hole = a->hole, stands_ahead = piece == PIECE_AHEAD || piece == PIECE_PREFIX;
    const bool slice = piece >= PIECE_FIRST && piece <= PIECE_NEXT;
    const bool undecided =
        (piece == PIECE_PREFIX && !u->marked && a->timestamp == u->unit.timestamp) ||
        (stands_ahead && u->awaits);
    if (piece == PIECE_SKIPPED || (piece == PIECE_BEHIND && !u->picture)) {
        return SIZE_MAX;
    }
    if (u->picture && undecided)
        u->tail = u->tail ? u->tail : at;
    else if (u->picture && (stands_ahead || piece == PIECE_FIRST || piece == PIECE_FIRST_FIELD))
        at = cut_unit(a, at);
    else if (slice)
        join_tail(u);
    if (at == SIZE_MAX)
        return at;
    if (slice || stands_ahead)
        tell_hole(a, piece != PIECE_NEXT && piece != PIECE_SECOND_FIELD);
    if (piece == PIECE_NEXT)
        go_on_with_picture(a, hole);
    assembly_goes_on(a);
    if (!slice)
        return at;
    u = a->open;
    u->head = u->picture ? u->head : at;
    u->picture = true;
    u->marked = false;
    u->awaits = piece == PIECE_FIRST_FIELD || (u->awaits && piece != PIECE_SECOND_FIELD);
    a->ended = false;
    return at;
}

void assembly_slice(struct assembly *a, const struct assembly_slice *slice)
{
    struct assembly_unit *u = a->open;
    u->unit.disposable = slice->disposable && (u->slices == 0 || u->unit.disposable);
    u->random_access |= slice->random_access;
    u->inter |= !slice->intra;
    u->slices++;
}

void assembly_sets(struct assembly *a)
{
    *(a->open->tail ? &a->open->tail_sets : &a->open->unit.has_sets) = true;
}

void assembly_recovery(struct assembly *a)
{
    *(a->open->tail ? &a->open->tail_recovery : &a->open->recovery) = true;
}

void assembly_damage(struct assembly *a)
{
    struct assembly_unit *u = a->open;
    tell_hole(a, false);
    u->unit.damaged = true;
    if (!u->picture)
        u->head = u->bytes;
    u->picture = true;
}

void assembly_marker(struct assembly *a)
{
    struct assembly_unit *u = a->open;
    if (!u->picture || u->tail)
        return;
    u->marked = true;
    u->signs.markers++;
    if (!u->awaits && picture_end_at_marker(a->verdict, &u->signs))
        end_unit(a, ENDED_BY_MARKER);
}

// --- the depacketizer

struct depacketizer {
    const struct depacketize_codec *codec;
    struct assembly assembly;
    void *state; // of the codec
};

static const struct depacketize_codec *const codecs[] = {
    [SDP_H264] = &depacketize_h264,
    [SDP_H265] = &depacketize_h265,
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
    assembly_open(&d->assembly, verdict);
    codec->open(state, &d->assembly, media);
    *ret = d;
    return 0;
}

void depacketizer_close(struct depacketizer *d)
{
    if (!d)
        return;
    for (int i = 0; i < ASSEMBLY_UNITS; i++)
        free(d->assembly.units[i].data);
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
    if (a->open->picture)
        end_unit(a, ENDED_BY_FLUSH);
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
