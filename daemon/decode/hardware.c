#include "daemon/decode/hardware.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"

enum { KNOWN_MAX = 64 };

// A decoder that hung is opened again after ten minutes, and later each time: a call that does not
// come back costs a thread and its decoder.
static const int64_t BAN_NS = INT64_C(600000000000), BAN_MAX_NS = INT64_C(86400000000000);

struct known { // of a decoder, by its name and device
    struct decoder_choice decoder;
    enum AVCodecID codec;       // AV_CODEC_ID_NONE: it hung, whatever the codec
    int64_t until_ns, pause_ns; // it is banned, and for how long; CLOCK_MONOTONIC
    char why[HARDWARE_WHY_MAX];
};

struct hardware {
    struct hardware_record verified; // as it was at the start
    pthread_mutex_t lock;            // of what follows
    struct known failed[KNOWN_MAX];
    int n;
};

int hardware_open(struct hardware **ret, const struct hardware_record *verified)
{
    struct hardware *hardware = calloc(1, sizeof *hardware);
    if (!hardware)
        return -ENOMEM;
    if (verified)
        hardware->verified = *verified;
    pthread_mutex_init(&hardware->lock, NULL);
    *ret = hardware;
    return 0;
}

void hardware_close(struct hardware *hardware)
{
    if (!hardware)
        return;
    pthread_mutex_destroy(&hardware->lock);
    free(hardware);
}

static bool is_same(const struct decoder_choice *a, const struct decoder_choice *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->device, b->device) == 0;
}

// Under the lock. NULL: there is none.
static struct known *find_known(struct hardware *hardware, const struct decoder_choice *decoder,
                                enum AVCodecID codec)
{
    for (int i = 0; i < hardware->n; i++)
        if (is_same(&hardware->failed[i].decoder, decoder) && hardware->failed[i].codec == codec)
            return &hardware->failed[i];
    return NULL;
}

// Under the lock. NULL: there is no room.
static struct known *add_known(struct hardware *hardware, const struct decoder_choice *decoder,
                               enum AVCodecID codec)
{
    if (hardware->n == KNOWN_MAX)
        return NULL;
    struct known *known = &hardware->failed[hardware->n++];
    *known = (struct known){.decoder = *decoder, .codec = codec};
    return known;
}

int64_t hardware_banned_ns(struct hardware *hardware, const struct decoder_choice *decoder)
{
    int64_t left_ns = 0;
    if (!hardware)
        return 0;
    pthread_mutex_lock(&hardware->lock);
    const struct known *known = find_known(hardware, decoder, AV_CODEC_ID_NONE);
    if (known)
        left_ns = known->until_ns - monotonic_ns();
    pthread_mutex_unlock(&hardware->lock);
    return left_ns > 0 ? left_ns : 0;
}

// A decoder that has not hung for the longest of the pauses begins with the shortest again.
int64_t hardware_hangs(struct hardware *hardware, const struct decoder_choice *decoder,
                       const char *why)
{
    const int64_t now_ns = monotonic_ns();
    int64_t ban_ns = 0;
    if (!hardware)
        return 0;
    pthread_mutex_lock(&hardware->lock);
    struct known *known = find_known(hardware, decoder, AV_CODEC_ID_NONE);
    if (!known)
        known = add_known(hardware, decoder, AV_CODEC_ID_NONE);
    if (known && known->until_ns <= now_ns) {
        const bool again = known->pause_ns > 0 && now_ns - known->until_ns < BAN_MAX_NS;
        ban_ns = again ? 2 * known->pause_ns : BAN_NS;
        ban_ns = ban_ns < BAN_MAX_NS ? ban_ns : BAN_MAX_NS;
        known->until_ns = now_ns + ban_ns;
        known->pause_ns = ban_ns;
        snprintf(known->why, sizeof known->why, "%s", why);
    }
    pthread_mutex_unlock(&hardware->lock);
    return ban_ns;
}

const char *hardware_name(const struct decoder_choice *decoder, char to[HARDWARE_NAME_MAX])
{
    snprintf(to, HARDWARE_NAME_MAX, "%s%s%s", decoder->name, decoder->device[0] ? ":" : "",
             decoder->device);
    return to;
}

int hardware_bans(struct hardware *hardware, struct hardware_ban ret[HARDWARE_BANS_MAX])
{
    const int64_t now_ns = monotonic_ns();
    int n = 0;
    if (!hardware)
        return 0;
    pthread_mutex_lock(&hardware->lock);
    for (int i = 0; i < hardware->n && n < HARDWARE_BANS_MAX; i++) {
        const struct known *known = &hardware->failed[i];
        if (known->codec != AV_CODEC_ID_NONE)
            continue;
        struct hardware_ban *ban = &ret[n++];
        hardware_name(&known->decoder, ban->decoder);
        snprintf(ban->why, sizeof ban->why, "%s", known->why);
        ban->left_ns = known->until_ns > now_ns ? known->until_ns - now_ns : 0;
    }
    pthread_mutex_unlock(&hardware->lock);
    return n;
}

bool hardware_is_news(struct hardware *hardware, const struct decoder_choice *decoder,
                      enum AVCodecID codec)
{
    if (!hardware)
        return true;
    pthread_mutex_lock(&hardware->lock);
    const bool known = find_known(hardware, decoder, codec);
    if (!known)
        add_known(hardware, decoder, codec);
    pthread_mutex_unlock(&hardware->lock);
    return !known;
}

static const struct hardware_result *find_result(const struct hardware *hardware,
                                                 const struct decoder_choice *decoder,
                                                 enum AVCodecID codec)
{
    for (int i = 0; hardware && i < hardware->verified.n; i++) {
        const struct hardware_result *result = &hardware->verified.list[i];
        if (result->codec == codec && is_same(&result->decoder, decoder))
            return result;
    }
    return NULL;
}

bool hardware_differs(struct hardware *hardware, const struct decoder_choice *decoder,
                      enum AVCodecID codec)
{
    const struct hardware_result *result = find_result(hardware, decoder, codec);
    return result && !result->equal;
}

bool hardware_choose(struct hardware *hardware, enum AVCodecID codec, struct decoder_choice *ret)
{
    bool found = false, banned = true;
    for (int i = 0; hardware && banned && i < hardware->verified.n; i++) {
        const struct hardware_result *result = &hardware->verified.list[i];
        if (result->codec != codec || !result->equal)
            continue;
        banned = hardware_banned_ns(hardware, &result->decoder) > 0;
        if (!found || !banned)
            *ret = result->decoder;
        found = true;
    }
    return found;
}
