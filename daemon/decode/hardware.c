#include "daemon/decode/hardware.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { KNOWN_MAX = 64 };

struct known { // of a decoder, by its name and device
    struct decoder_choice decoder;
    enum AVCodecID codec; // AV_CODEC_ID_NONE: it hangs, whatever the codec
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

// Notes it, or with NONE as codec only looks. Returns whether it was there already.
static bool is_noted(struct hardware *hardware, const struct decoder_choice *decoder,
                     enum AVCodecID codec, bool note)
{
    bool found = false;
    pthread_mutex_lock(&hardware->lock);
    for (int i = 0; i < hardware->n; i++)
        found |=
            is_same(&hardware->failed[i].decoder, decoder) && hardware->failed[i].codec == codec;
    if (!found && note && hardware->n < KNOWN_MAX)
        hardware->failed[hardware->n++] = (struct known){*decoder, codec};
    pthread_mutex_unlock(&hardware->lock);
    return found;
}

bool hardware_may_open(struct hardware *hardware, const struct decoder_choice *decoder)
{
    return !hardware || !is_noted(hardware, decoder, AV_CODEC_ID_NONE, false);
}

void hardware_hangs(struct hardware *hardware, const struct decoder_choice *decoder)
{
    if (hardware)
        is_noted(hardware, decoder, AV_CODEC_ID_NONE, true);
}

bool hardware_is_news(struct hardware *hardware, const struct decoder_choice *decoder,
                      enum AVCodecID codec)
{
    return !hardware || !is_noted(hardware, decoder, codec, true);
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
    for (int i = 0; hardware && i < hardware->verified.n; i++) {
        const struct hardware_result *result = &hardware->verified.list[i];
        if (result->codec == codec && result->equal &&
            hardware_may_open(hardware, &result->decoder)) {
            *ret = result->decoder;
            return true;
        }
    }
    return false;
}
