#include "config/pauses.h"

#include <errno.h>
#include <stdlib.h>


int pauses_add(struct pauses *pauses, const struct name_patterns *names, struct place at)
{
    struct pause *grown = reallocarray(pauses->list, (size_t)pauses->n + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    pauses->list = grown;
    grown[pauses->n].at = at;
    const int rc = name_patterns_copy(&grown[pauses->n].names, names);
    pauses->n += rc == 0;
    return rc;
}

static int settle_pause(const struct pause *pause, struct config *config)
{
    int n = 0;
    for (int i = 0; i < config->n_cameras; i++) {
        struct camera_config *camera = &config->cameras[i];
        if (!name_patterns_choose(&pause->names, camera->name))
            continue;
        n++;
        if (!camera->paused.line)
            camera->paused = pause->at;
    }
    return n;
}

void pauses_settle(const struct pauses *pauses, struct mistakes *mistakes, struct config *config)
{
    for (int i = 0; i < pauses->n; i++) {
        const struct pause *pause = &pauses->list[i];
        if (settle_pause(pause, config) == 0 && pause->at.file == 0)
            mistake(mistakes, pause->at, "paused", "match no camera (the names under `cameras`)");
    }
}

void pauses_free(struct pauses *pauses)
{
    for (int i = 0; i < pauses->n; i++)
        name_patterns_free(&pauses->list[i].names);
    free(pauses->list);
    *pauses = (struct pauses){0};
}
