#include "daemon/decode/corruption.h"

#include "daemon/wire.h"

enum {
    PRELUDE_MAX = 250,  // pictures withheld in wait for a keyframe
    SUSPECT_MAX = 1500, // pictures marked for want of one: other streams mend themselves bit by bit
};

void corruption_begin(struct corruption *damage, enum damaged policy)
{
    *damage = (struct corruption){.policy = policy, .holding = policy == DAMAGED_HOLD};
}

void corruption_loss(struct corruption *damage)
{
    damage->holding = damage->policy == DAMAGED_HOLD;
    damage->suspect = SUSPECT_MAX;
}

void corruption_rootless(struct corruption *damage)
{
    damage->rootless = true;
}

// Pictures of a stream that was joined between keyframes show nothing. A stream that has no
// keyframes gets its way in the end.
static bool before_keyframe(struct corruption *damage, uint32_t flags)
{
    const bool harmed = (flags & FRAMED_FLAG_DAMAGED) || damage->rootless;
    if (damage->prelude >= 0 && harmed && !(flags & FRAMED_FLAG_KEYFRAME) &&
        damage->prelude < PRELUDE_MAX) {
        damage->prelude++;
        damage->suspect = damage->rootless ? SUSPECT_MAX : 0;
    } else {
        damage->prelude = -1;
    }
    return damage->prelude >= 0;
}

// The decoder knows what is wrong with a picture, but not that it was made from one that is.
static void suspect(struct corruption *damage, uint32_t *flags)
{
    if (*flags & FRAMED_FLAG_DAMAGED)
        damage->suspect = SUSPECT_MAX;
    else if ((*flags & FRAMED_FLAG_KEYFRAME) || damage->suspect == 0)
        damage->suspect = 0;
    else
        damage->suspect--;
    if (damage->suspect > 0)
        *flags |= FRAMED_FLAG_DAMAGED;
}

bool corruption_withholds(struct corruption *damage, uint32_t *flags)
{
    bool damaged = *flags & FRAMED_FLAG_DAMAGED;
    if (before_keyframe(damage, *flags))
        return true;
    suspect(damage, flags);
    if (damage->policy == DAMAGED_HOLD && (damaged || (*flags & FRAMED_FLAG_KEYFRAME)))
        damage->holding = damaged;
    return damage->policy == DAMAGED_DROP ? damaged : damage->holding;
}
