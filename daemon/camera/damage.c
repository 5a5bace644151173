#include "daemon/camera/damage.h"

#include "daemon/wire.h"

enum { PRELUDE_MAX = 250 }; // pictures withheld in wait for a keyframe

void damage_begin(struct damage *damage, enum damaged policy)
{
    *damage = (struct damage){.policy = policy, .holding = policy == DAMAGED_HOLD};
}

void damage_loss(struct damage *damage)
{
    damage->holding = damage->policy == DAMAGED_HOLD;
}

// Pictures of a stream that was joined between keyframes show nothing. A stream that has no
// keyframes gets its way in the end.
static bool before_keyframe(struct damage *damage, uint32_t flags)
{
    if (damage->prelude >= 0 && (flags & FRAMED_FLAG_DAMAGED) && !(flags & FRAMED_FLAG_KEYFRAME) &&
        damage->prelude < PRELUDE_MAX)
        damage->prelude++;
    else
        damage->prelude = -1;
    return damage->prelude >= 0;
}

bool damage_withholds(struct damage *damage, uint32_t flags)
{
    bool damaged = flags & FRAMED_FLAG_DAMAGED;
    if (before_keyframe(damage, flags))
        return true;
    if (damage->policy == DAMAGED_HOLD && (damaged || (flags & FRAMED_FLAG_KEYFRAME)))
        damage->holding = damaged;
    return damage->policy == DAMAGED_DROP ? damaged : damage->holding;
}
