#include "config/members.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "config/object.h"

__attribute__((format(printf, 4, 5))) static void refuse(struct mistakes *mistakes,
                                                         const struct output_config *batch,
                                                         const char *key, const char *format, ...)
{
    char dotted[KEY_MAX], what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    snprintf(dotted, sizeof dotted, "batches.%s.%s", batch->name, key);
    mistake(mistakes, object_value_place(&batch_table, batch, key), dotted, "%s", what);
}

static int at_least(int n, int least)
{
    return n > least ? n : least;
}

// Totals over a batch's members.
struct crowd {
    int members;
    int elements; // of one picture of each member; tiles, whose number varies, count 1
    int most;     // most elements of one picture
    const char *its_camera;
};

static struct crowd count_members(const struct config *config, const struct output_config *batch)
{
    const bool all = batch->roi.name && !strcmp(batch->roi.name, ROI_ALL);
    struct crowd crowd = {.most = 1};
    for (int i = 0; i < config->n_cameras; i++) {
        const struct camera_config *camera = &config->cameras[i];
        const int elements = all ? at_least(camera->rois.n, 1) : 1;
        if (!name_patterns_choose(&batch->cameras, camera->name))
            continue;
        crowd.members++;
        crowd.elements += elements;
        if (elements > crowd.most)
            crowd.its_camera = camera->name;
        crowd.most = at_least(crowd.most, elements);
    }
    return crowd;
}

static void settle_capacity(struct output_config *batch, const struct crowd *crowd)
{
    const bool many = batch->tiles.size || crowd->elements > BATCH_AUTO_MAX;
    const int all = many ? BATCH_AUTO_MAX : crowd->elements;
    batch->capacity = batch->count ? batch->count : at_least(all, batch->per_camera * crowd->most);
}

static void check_members(struct mistakes *mistakes, const struct output_config *batch,
                          const struct crowd *crowd)
{
    if (crowd->members == 0 && batch->cameras.n)
        refuse(mistakes, batch, "cameras", "match no camera (the names under `cameras`)");
    if (crowd->most > batch->capacity)
        refuse(mistakes, batch, "count",
               "is less than the %d regions of camera %s, which are the elements of one picture "
               "(%d to 256)",
               crowd->most, crowd->its_camera, crowd->most);
    else if (batch->order == BATCH_FIXED && crowd->elements > batch->capacity)
        refuse(mistakes, batch, "order",
               "fixed needs an index for each of the members' %d elements, but the batch has %d "
               "(count: %d, or order: arrival)",
               crowd->elements, batch->capacity, crowd->elements);
}

// Returns true if the camera may have another output, with the batch's name.
static bool can_join(struct mistakes *mistakes, const struct camera_config *camera,
                     const struct output_config *batch)
{
    for (int i = 0; i < camera->n_outputs; i++) {
        if (strcmp(camera->outputs[i].name, batch->name) != 0)
            continue;
        refuse(mistakes, batch, "cameras",
               "choose camera %s, which has an output of the batch's name (another name, or "
               "\"!%s\")",
               camera->name, camera->name);
        return false;
    }
    if (camera->n_outputs < CAMERA_OUTPUTS_MAX)
        return true;
    refuse(mistakes, batch, "cameras",
           "choose camera %s, which has %d outputs, as many as a camera can have (\"!%s\")",
           camera->name, CAMERA_OUTPUTS_MAX, camera->name);
    return false;
}

static int join(struct camera_config *camera, const struct output_config *batch)
{
    const size_t n = (size_t)camera->n_outputs + 1;
    struct output_config *outputs = realloc(camera->outputs, n * sizeof *outputs);
    if (!outputs)
        return -ENOMEM;
    camera->outputs = outputs;
    const int rc = object_copy_to(&output_table, &outputs[camera->n_outputs], batch);
    camera->n_outputs += rc == 0;
    return rc;
}

// Returns true also if a batch has wrong patterns, which may have meant the camera.
static bool may_be_member(const struct config *config, const struct camera_config *camera)
{
    for (int i = 0; i < config->n_batches; i++)
        if (!config->batches[i].cameras.n ||
            name_patterns_choose(&config->batches[i].cameras, camera->name))
            return true;
    return false;
}

static void check_outputs(struct mistakes *mistakes, const struct config *config)
{
    const struct config_row *outputs = table_find(&camera_table, "outputs");
    for (int i = 0; i < config->n_cameras; i++) {
        const struct camera_config *camera = &config->cameras[i];
        char dotted[KEY_MAX];
        if (camera->places.value[outputs - camera_table.rows].line || may_be_member(config, camera))
            continue;
        snprintf(dotted, sizeof dotted, "cameras.%s.outputs", camera->name);
        mistake(mistakes, camera->place, dotted,
                "is missing, and no batch has this camera (for example outputs: {name: {...}})");
    }
}

int members_join(struct mistakes *mistakes, struct config *config)
{
    int rc = 0;
    for (int b = 0; b < config->n_batches; b++) {
        struct output_config *batch = &config->batches[b];
        const struct crowd crowd = count_members(config, batch);
        settle_capacity(batch, &crowd);
        check_members(mistakes, batch, &crowd);
        for (int i = 0; rc == 0 && i < config->n_cameras; i++) {
            struct camera_config *camera = &config->cameras[i];
            if (name_patterns_choose(&batch->cameras, camera->name) &&
                can_join(mistakes, camera, batch))
                rc = join(camera, batch);
        }
    }
    check_outputs(mistakes, config);
    return rc;
}
