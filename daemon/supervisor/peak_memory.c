#include "daemon/supervisor/peak_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct output_config *outputs_of(const struct peak_memory *overlap, int camera)
{
    return overlap->outputs + (size_t)camera * PLAN_OPS_MAX;
}

int peak_memory_open(struct peak_memory *overlap, const struct config *config, int more)
{
    const size_t room = (size_t)(config->n_cameras + more);
    overlap->config = *config;
    overlap->config.cameras = calloc(room, sizeof *config->cameras);
    overlap->outputs = calloc(room * PLAN_OPS_MAX, sizeof *overlap->outputs);
    if (!overlap->config.cameras || !overlap->outputs)
        return -ENOMEM;
    for (int i = 0; i < config->n_cameras; i++) {
        struct camera_config *camera = &overlap->config.cameras[i];
        *camera = config->cameras[i];
        memcpy(outputs_of(overlap, i), camera->outputs,
               (size_t)camera->n_outputs * sizeof *camera->outputs);
        camera->outputs = outputs_of(overlap, i);
    }
    return 0;
}

void peak_memory_close(struct peak_memory *overlap)
{
    free(overlap->config.cameras);
    free(overlap->outputs);
}

void peak_memory_add_camera(struct peak_memory *overlap, const struct camera *camera)
{
    const int i = overlap->config.n_cameras++;
    overlap->config.cameras[i] = *camera->config;
    overlap->config.cameras[i].outputs = outputs_of(overlap, i);
    overlap->config.cameras[i].stream = camera_memory(camera);
    for (int o = 0; o < camera->subscriptions->n; o++)
        peak_memory_add_output(overlap, i, camera->subscriptions->list[o].output);
}

void peak_memory_add_output(struct peak_memory *overlap, int i, const struct output *output)
{
    struct camera_config *camera = &overlap->config.cameras[i];
    if (camera->n_outputs < PLAN_OPS_MAX)
        camera->outputs[camera->n_outputs++] = *output->config;
}
