#include "daemon/decode/recovery.h"

#include <libavcodec/avcodec.h>

#include "daemon/decode/picture_place.h"

enum {
    INTRAS_SURE = 2, // the second one: pictures after it may refer to some between the two
};

void recovery_begin(struct recovery *recovery)
{
    recovery->n = recovery->intras = 0;
    recovery->newest = recovery->before = (struct recovery_whole){0};
    recovery->marked = false;
}

void recovery_finish(struct recovery *recovery)
{
    picture_place_close(recovery->reader);
}

static bool is_hevc(const struct recovery *recovery)
{
    return recovery->parameters->codec_id == AV_CODEC_ID_HEVC;
}

// A damaged or joined stream is not whole at its first intra picture if pictures after it may refer
// to pictures before it.
static bool passes_for_point(struct recovery *recovery, const struct picture_place *place)
{
    recovery->marked |=
        place->random_access || place->start != ORDER_CONTINUES || place->recovery != NO_RECOVERY;
    recovery->intras += !recovery->marked && place->intra;
    return !recovery->marked && place->intra &&
           (place->one_reference || recovery->intras >= INTRAS_SURE);
}

bool recovery_by_intra(const struct recovery *recovery)
{
    return !recovery->marked && recovery->newest.from;
}

// If there is no room, newer points are not needed: the oldest ends first.
static void begin_point(struct recovery *recovery, const struct picture_place *place,
                        int64_t serial)
{
    const int64_t count = place->recovery != NO_RECOVERY ? place->recovery : 0;
    if (recovery->n == RECOVERY_POINTS)
        return;
    recovery->pending[recovery->n++] =
        (struct recovery_point){serial, is_hevc(recovery) ? place->poc + count : 2 * count};
}

// Returns true if the count of a point ends with this picture.
static bool end_points(struct recovery *recovery, const struct picture_place *place)
{
    const bool hevc = is_hevc(recovery);
    int kept = 0;
    bool ended = false;
    for (int i = 0; i < recovery->n; i++) {
        const struct recovery_point point = recovery->pending[i];
        if (hevc ? !place->known || place->poc < point.end : point.end > 0) {
            recovery->pending[kept++] = point;
            continue;
        }
        recovery->before = recovery->newest;
        recovery->newest.from = point.serial;
        recovery->newest.poc = hevc ? point.end : place->known ? place->poc : INT64_MAX;
        ended = true;
    }
    recovery->n = kept;
    return ended;
}

static void count_reference(struct recovery *recovery, const struct picture_place *place)
{
    for (int i = 0; i < recovery->n && !is_hevc(recovery) && place->reference; i++)
        recovery->pending[i].end -= place->field ? 1 : 2;
}

int64_t recovery_packet(struct recovery *recovery, const AVPacket *packet, int64_t serial)
{
    if (!recovery->reader && !recovery->unreadable)
        recovery->unreadable = picture_place_open(&recovery->reader, recovery->parameters) < 0;
    if (recovery->unreadable)
        return 0;
    const struct picture_place place = picture_place_read(recovery->reader, packet);
    if (place.start != ORDER_CONTINUES) { // POC starts again
        recovery->n = 0;
        recovery->newest = recovery->before = (struct recovery_whole){0};
    }
    if (passes_for_point(recovery, &place) || place.recovery != NO_RECOVERY)
        begin_point(recovery, &place, serial);
    const bool ended = end_points(recovery, &place);
    count_reference(recovery, &place);
    if (ended || (place.known && place.poc >= recovery->newest.poc))
        return recovery->newest.from;
    return place.known && place.poc >= recovery->before.poc ? recovery->before.from : 0;
}
