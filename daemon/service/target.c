#include "daemon/service/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool target_read(struct target *ret, const char *text)
{
    unsigned plane;
    int n[3] = {0};
    *ret = (struct target){.wish.plane = -1};
    const int found = sscanf(text, "%31[A-Za-z0-9_-]%n/%31[A-Za-z0-9_-]%n/%1u%n", ret->camera,
                             &n[0], ret->wish.output, &n[1], &plane, &n[2]);
    if (found == 3)
        ret->wish.plane = (int)plane;
    return found >= 1 && text[n[found - 1]] == 0;
}

bool target_read_name(char ret[TARGET_NAME_MAX + 1], const char *text)
{
    int n = 0;
    return sscanf(text, "%31[A-Za-z0-9_-]%n", ret, &n) == 1 && !text[n];
}

bool target_read_width(int *ret, const char *text)
{
    char *end;
    const long width = strtol(text, &end, 10);
    *ret = (int)width;
    return *text && !*end && width >= PREVIEW_WIDTH_MIN && width <= PREVIEW_WIDTH_MAX;
}

static int check_output(const struct camera *camera, const char *name, char *why, size_t size)
{
    const struct subscriptions *outputs = camera->subscriptions;
    int i = 0;
    while (i < outputs->n && strcmp(outputs->list[i].output->config->name, name) != 0)
        i++;
    if (i < outputs->n_pictures)
        return 0;
    snprintf(why, size,
             i == outputs->n ? "camera %s has no output %s"
                             : "camera %s: output %s is not made of every picture",
             camera->config->name, name);
    return i == outputs->n ? -ENOENT : -EINVAL;
}

int target_ask(const struct metrics *metrics, const char *name, struct preview_asker *asker,
               char *why, size_t size)
{
    const struct camera *camera = NULL;
    for (int i = 0; !camera && i < metrics->n_cameras; i++)
        if (strcmp(metrics->cameras[i]->config->name, name) == 0)
            camera = metrics->cameras[i];
    if (!camera) {
        snprintf(why, size, "there is no camera %s", name);
        return -ENOENT;
    }
    int rc = 0;
    if (*asker->wish.output)
        rc = check_output(camera, asker->wish.output, why, size);
    if (rc < 0)
        return rc;
    rc = preview_ask(camera_preview(camera), asker);
    if (rc == -ENOSPC)
        snprintf(why, size, "camera %s: %d kinds of pictures are asked for, which is the most",
                 name, PREVIEW_KINDS_MAX);
    else if (rc < 0)
        snprintf(why, size, "camera %s: %s", name, strerror(-rc));
    return rc;
}
