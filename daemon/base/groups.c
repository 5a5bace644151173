#include "daemon/base/groups.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>

int group_look_up(const char *name, gid_t *ret)
{
    struct group entry, *found = NULL;
    char text[16384]; // holds the members; a group with more counts as unknown
    getgrnam_r(name, &entry, text, sizeof text, &found);
    if (!found)
        return -EINVAL;
    *ret = found->gr_gid;
    return 0;
}

static void look_up(struct output_config *output)
{
    if (output->group)
        output->has_group_id = group_look_up(output->group, &output->group_id) == 0;
    struct detections_config *lines = &output->detections;
    if (lines->group)
        lines->has_group_id = group_look_up(lines->group, &lines->group_id) == 0;
}

void groups_look_up(struct config *config)
{
    for (int i = 0; i < config->n_cameras; i++)
        for (int o = 0; o < config->cameras[i].n_outputs; o++)
            look_up(&config->cameras[i].outputs[o]);
    for (int i = 0; i < config->n_batches; i++)
        look_up(&config->batches[i]);
}

int group_of_output(const struct output_config *output, gid_t *ret, char *why, size_t size)
{
    *ret = output->has_group_id ? output->group_id : (gid_t)-1;
    if (!output->group || output->has_group_id)
        return 0;
    snprintf(why, size, "there is no group \"%s\" on this machine", output->group);
    return -EINVAL;
}
