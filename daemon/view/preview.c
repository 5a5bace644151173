#include "daemon/view/preview.h"

#include <stdlib.h>
#include <string.h>

void preview_queue_source(struct preview_source *source)
{
    struct previews *previews = source->previews;
    if (source->queued || source->working)
        return;
    source->queued = true;
    source->next = NULL;
    *previews->last = source;
    previews->last = &source->next;
    pthread_cond_signal(&previews->work);
}

static void unqueue_source(struct preview_source *source)
{
    struct previews *previews = source->previews;
    struct preview_source **link = &previews->first;
    if (!source->queued)
        return;
    while (*link != source)
        link = &(*link)->next;
    *link = source->next;
    if (previews->last == &source->next)
        previews->last = link;
    source->queued = false;
}

void preview_begin_work(struct preview_source *source)
{
    unqueue_source(source);
    while (source->working)
        pthread_cond_wait(&source->previews->idle, &source->previews->lock);
    unqueue_source(source);
    source->working = true;
}

bool preview_any_gone(const struct preview_source *source)
{
    for (const struct preview *preview = source->list; preview; preview = preview->next)
        if (preview->gone)
            return true;
    return false;
}

void preview_end_work(struct preview_source *source)
{
    source->working = false;
    pthread_cond_broadcast(&source->previews->idle);
    if (preview_any_gone(source))
        preview_queue_source(source);
}

void preview_add_done(struct preview *preview)
{
    struct previews *previews = preview->source->previews;
    if (preview->done)
        return;
    preview->done = true;
    preview->next_done = previews->done;
    previews->done = preview;
}

void preview_remove_done(struct preview *preview)
{
    struct preview **link = &preview->source->previews->done;
    if (!preview->done)
        return;
    while (*link != preview)
        link = &(*link)->next_done;
    *link = preview->next_done;
    preview->done = false;
}

struct preview_picture *preview_make_picture(const struct preview *preview,
                                             const struct frame_info *info, const uint8_t *file,
                                             size_t size, const char *why)
{
    struct preview_picture *picture = malloc(sizeof *picture + size);
    char shown[PREVIEW_FACTS_MAX - 128];
    if (!picture)
        return NULL;
    *picture = (struct preview_picture){
        .references = 1,
        .capture_ns = info->capture_ns,
        .sequence = preview->sequence,
        .epoch = info->epoch,
        .flags = info->flags,
        .size = size,
    };
    snprintf(picture->why, sizeof picture->why, "%s", why);
    if (file)
        memcpy(picture->file, file, size);
    if (file)
        rendition_describe(&preview->rendition, shown, sizeof shown);
    else
        snprintf(shown, sizeof shown, "\"error\":\"%s\"", why);
    const char *output = preview->wish.output;
    snprintf(picture->facts, sizeof picture->facts, "{\"camera\":\"%s\"%s%s%s,%s}",
             preview->source->camera, *output ? ",\"output\":\"" : "", output, *output ? "\"" : "",
             shown);
    return picture;
}

void preview_free(struct preview *preview)
{
    rendition_close(&preview->rendition, preview->source->lease);
    lut_unref(preview->lut);
    free(preview->ready);
    free(preview);
}

struct preview_picture *preview_picture_ref(struct preview_picture *picture)
{
    picture->references++;
    return picture;
}

void preview_picture_unref(struct preview_picture *picture)
{
    if (picture && --picture->references == 0)
        free(picture);
}
