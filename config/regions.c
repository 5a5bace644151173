#include "config/regions.h"

#include <errno.h>
#include <string.h>

#include "config/object.h"

static void note_missing(struct mistakes *mistakes, const struct camera_config *camera,
                         const struct output_config *output)
{
    const bool all = !strcmp(output->roi.name, ROI_ALL);
    char key[KEY_MAX];
    if (output->is_batch)
        snprintf(key, sizeof key, "batches.%s.roi", output->name);
    else
        snprintf(key, sizeof key, "cameras.%s.outputs.%s.roi", camera->name, output->name);
    mistake(mistakes, object_value_place(&output_table, output, "roi"), key,
            "camera %s has no %s%s (rois: {NAME: [x, y, width, height]} of the camera)",
            camera->name, all ? "regions" : "region ", all ? "" : output->roi.name);
}

static int choose(struct mistakes *mistakes, const struct camera_config *camera,
                  struct output_config *output)
{
    const bool all = !strcmp(output->roi.name, ROI_ALL);
    const struct roi *named = all ? camera->rois.list : rois_find(&camera->rois, output->roi.name);
    const struct rois some = {(struct roi *)named, all ? camera->rois.n : 1};
    if (named)
        return rois_copy(&output->roi.chosen, &some);
    if (object_is_known(&camera_table, camera, "rois"))
        note_missing(mistakes, camera, output);
    return 0;
}

int regions_choose(struct mistakes *mistakes, struct config *config)
{
    int rc = 0;
    for (int i = 0; i < config->n_cameras; i++) {
        struct camera_config *camera = &config->cameras[i];
        for (int o = 0; rc == 0 && o < camera->n_outputs; o++)
            if (camera->outputs[o].roi.name)
                rc = choose(mistakes, camera, &camera->outputs[o]);
    }
    return rc;
}
