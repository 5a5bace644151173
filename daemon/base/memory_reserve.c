#include "daemon/base/memory_reserve.h"

#include <stdint.h>

void memory_reserve_begin(struct memory_reserve *memory)
{
    *memory = (struct memory_reserve){.limit = SIZE_MAX};
    pthread_mutex_init(&memory->lock, NULL);
}

void memory_reserve_end(struct memory_reserve *memory)
{
    pthread_mutex_destroy(&memory->lock);
}

void memory_reserve_plan(struct memory_reserve *memory, size_t limit, size_t planned)
{
    pthread_mutex_lock(&memory->lock);
    memory->limit = limit;
    memory->planned = planned;
    pthread_mutex_unlock(&memory->lock);
}

bool memory_reserve_take(struct memory_reserve *memory, size_t bytes, size_t *left)
{
    pthread_mutex_lock(&memory->lock);
    const size_t used = memory->planned + memory->taken;
    *left = used < memory->limit ? memory->limit - used : 0;
    const bool fits = bytes <= *left;
    if (fits)
        memory->taken += bytes;
    pthread_mutex_unlock(&memory->lock);
    return fits;
}

void memory_reserve_give(struct memory_reserve *memory, size_t bytes)
{
    pthread_mutex_lock(&memory->lock);
    memory->taken -= bytes;
    pthread_mutex_unlock(&memory->lock);
}
