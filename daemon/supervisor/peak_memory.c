#include "daemon/supervisor/peak_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct output_config *outputs_of(const struct peak_memory *peak, int camera)
{
    return peak->outputs + (size_t)camera * CAMERA_OUTPUTS_MAX;
}

int peak_memory_open(struct peak_memory *peak, const struct config *config, int more)
{
    const size_t room = (size_t)(config->n_cameras + more);
    peak->config = *config;
    peak->config.cameras = calloc(room, sizeof *config->cameras);
    peak->outputs = calloc(room * CAMERA_OUTPUTS_MAX, sizeof *peak->outputs);
    if (!peak->config.cameras || !peak->outputs)
        return -ENOMEM;
    for (int i = 0; i < config->n_cameras; i++) {
        struct camera_config *camera = &peak->config.cameras[i];
        *camera = config->cameras[i];
        memcpy(outputs_of(peak, i), camera->outputs,
               (size_t)camera->n_outputs * sizeof *camera->outputs);
        camera->outputs = outputs_of(peak, i);
    }
    return 0;
}

void peak_memory_close(struct peak_memory *peak)
{
    free(peak->config.cameras);
    free(peak->outputs);
}

void peak_memory_add_camera(struct peak_memory *peak, const struct camera *camera)
{
    const int i = peak->config.n_cameras++;
    peak->config.cameras[i] = *camera->config;
    peak->config.cameras[i].outputs = outputs_of(peak, i);
    peak->config.cameras[i].stream = camera_memory(camera);
    for (int o = 0; o < camera->subscriptions->n; o++)
        peak_memory_add_output(peak, i, camera->subscriptions->list[o].output);
}

void peak_memory_add_output(struct peak_memory *peak, int i, const struct output *output)
{
    struct camera_config *camera = &peak->config.cameras[i];
    if (camera->n_outputs < CAMERA_OUTPUTS_MAX)
        camera->outputs[camera->n_outputs++] = *output->config;
}
