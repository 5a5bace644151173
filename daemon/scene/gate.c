#include "daemon/scene/gate.h"

#include "kernels/fingerprint.h"

#include "daemon/wire.h"

// Timestamps of another epoch, and fingerprints of another geometry, cannot be compared.
static void follow(struct gate *gate, const struct frame_info *info)
{
    if (gate->epoch == info->epoch && gate->width == info->source_width &&
        gate->height == info->source_height)
        return;
    *gate = (struct gate){
        .epoch = info->epoch,
        .width = info->source_width,
        .height = info->source_height,
    };
}

static bool is_held(const struct gate *gate, const struct gate_config *config, int64_t pts_ns)
{
    return config->motion && gate->moved && pts_ns - gate->moved_ns <= config->hold.ns;
}

static bool is_due(const struct gate *gate, const struct gate_config *config, int64_t pts_ns)
{
    return config->every.ns > 0 && pts_ns - gate->passed_ns >= config->every.ns;
}

static bool has_changed(const struct gate *gate, const struct gate_config *config,
                        uint64_t fingerprint)
{
    return config->change > 0 &&
           (!gate->has_reference ||
            fingerprint_distance(fingerprint, gate->reference) >= config->change);
}

bool gate_opens(struct gate *gate, const struct gate_config *config, const struct frame_info *info)
{
    const struct scene_facts *scene = &info->scene;
    if (!config->motion && config->change == 0)
        return true;
    follow(gate, info);
    if (info->flags & FRAMED_FLAG_DAMAGED)
        return gate->begun &&
               (is_held(gate, config, info->pts_ns) || is_due(gate, config, info->pts_ns));
    if (!scene->known)
        return true;
    if (scene->moving) {
        gate->moved = true;
        gate->moved_ns = info->pts_ns;
    }
    return !gate->begun || is_held(gate, config, info->pts_ns) ||
           is_due(gate, config, info->pts_ns) || has_changed(gate, config, scene->fingerprint);
}

void gate_passed(struct gate *gate, const struct frame_info *info)
{
    gate->begun = true;
    gate->passed_ns = info->pts_ns;
    if (!info->scene.known)
        return;
    gate->has_reference = true;
    gate->reference = info->scene.fingerprint;
}
