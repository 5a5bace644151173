#include "daemon/device/placement.h"

#include <string.h>

bool placement_is_chosen(const struct placement_gpu *gpu, const struct gpu_choice *choice)
{
    if (choice->by == GPU_BY_UUID)
        return gpu->uuid && memcmp(gpu->uuid, choice->uuid, sizeof choice->uuid) == 0;
    return choice->by == GPU_BY_NUMBER && gpu->number == choice->number;
}

static bool has_memory(const struct placement_gpu *gpu, size_t bytes)
{
    return gpu->taken.bytes <= gpu->limit && bytes <= gpu->limit - gpu->taken.bytes;
}

static bool has_more_room(const struct placement_gpu *a, const struct placement_gpu *b,
                          size_t bytes)
{
    if (has_memory(a, bytes) != has_memory(b, bytes))
        return has_memory(a, bytes);
    if (a->taken.pixels != b->taken.pixels)
        return a->taken.pixels < b->taken.pixels;
    const double of_a = (double)a->taken.bytes * (double)b->limit;
    const double of_b = (double)b->taken.bytes * (double)a->limit;
    return of_a != of_b ? of_a < of_b : a->taken.cameras < b->taken.cameras;
}

int placement_choose(const struct placement_gpu gpus[], int n, const struct gpu_choice *choice,
                     size_t bytes)
{
    int best = -1;
    for (int i = 0; i < n; i++) {
        if (!gpus[i].usable)
            continue;
        if (placement_is_chosen(&gpus[i], choice))
            return i;
        if (best < 0 || has_more_room(&gpus[i], &gpus[best], bytes))
            best = i;
    }
    return best;
}
