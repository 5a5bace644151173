#include "daemon/decode/corruption.h"

#include "daemon/wire.h"

enum {
    LEADING_MAX = 250,  // pictures withheld while waiting for a keyframe
    TAINTED_MAX = 1500, // pictures marked without a keyframe: other streams recover bit by bit
};

void corruption_begin(struct corruption *corruption, enum damaged policy)
{
    *corruption = (struct corruption){.policy = policy, .holding = policy == DAMAGED_HOLD};
}

static void note_broken(struct corruption *corruption, int64_t serial)
{
    if (serial > corruption->broken)
        corruption->broken = serial;
}

void corruption_loss(struct corruption *corruption, int64_t serial)
{
    note_broken(corruption, serial);
    corruption->holding = corruption->policy == DAMAGED_HOLD;
    corruption->tainted = TAINTED_MAX;
}

// The packet itself may begin a recovery point.
void corruption_missing_reference(struct corruption *corruption, int64_t serial)
{
    note_broken(corruption, serial - 1);
    corruption->missing_reference = true;
}

// Pictures of a stream joined between keyframes show nothing. A stream without keyframes and
// recovery points is shown in the end.
static bool before_keyframe(struct corruption *corruption, uint32_t flags, bool clean)
{
    const bool harmed = (flags & FRAMED_FLAG_DAMAGED) || corruption->missing_reference;
    if (corruption->leading >= 0 && harmed && !clean && !(flags & FRAMED_FLAG_KEYFRAME) &&
        corruption->leading < LEADING_MAX) {
        corruption->leading++;
        corruption->tainted = corruption->missing_reference ? TAINTED_MAX : 0;
    } else {
        corruption->leading = -1;
    }
    return corruption->leading >= 0;
}

// The decoder reports damage in a picture, but not that it refers to a damaged one.
static void mark_tainted(struct corruption *corruption, uint32_t *flags, bool clean)
{
    if (*flags & FRAMED_FLAG_DAMAGED)
        corruption->tainted = TAINTED_MAX;
    else if (clean || corruption->tainted == 0)
        corruption->tainted = 0;
    else
        corruption->tainted--;
    if (corruption->tainted > 0)
        *flags |= FRAMED_FLAG_DAMAGED;
}

bool corruption_withholds(struct corruption *corruption, const struct corruption_picture *picture,
                          uint32_t *flags)
{
    if (picture->harmed)
        note_broken(corruption, picture->serial);
    const bool whole = picture->whole_from > corruption->broken;
    if (whole)
        *flags &= ~(uint32_t)FRAMED_FLAG_DAMAGED;
    const bool damaged = *flags & FRAMED_FLAG_DAMAGED;
    const bool clean = whole || (*flags & FRAMED_FLAG_KEYFRAME);
    if (before_keyframe(corruption, *flags, clean))
        return true;
    mark_tainted(corruption, flags, clean);
    if (corruption->policy == DAMAGED_HOLD && (damaged || clean))
        corruption->holding = damaged;
    return corruption->policy == DAMAGED_DROP ? damaged : corruption->holding;
}
