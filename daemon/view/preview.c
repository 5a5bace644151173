#include "daemon/view/preview.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void preview_queue_source(struct preview_source *source)
{
    struct preview_line *line = source->line;
    if (source->queued || source->working)
        return;
    source->queued = true;
    source->next = NULL;
    *line->last = source;
    line->last = &source->next;
    pthread_cond_signal(&line->work);
}

static void unqueue_source(struct preview_source *source)
{
    struct preview_line *line = source->line;
    struct preview_source **link = &line->first;
    if (!source->queued)
        return;
    while (*link != source)
        link = &(*link)->next;
    *link = source->next;
    if (line->last == &source->next)
        line->last = link;
    source->queued = false;
}

void preview_move_source(struct preview_source *source, struct preview_line *line)
{
    const bool queued = source->queued;
    if (source->line == line)
        return;
    unqueue_source(source);
    source->line = line;
    if (queued)
        preview_queue_source(source);
}

void preview_begin_work(struct preview_source *source)
{
    unqueue_source(source);
    atomic_fetch_add(&source->waiting, 1);
    while (source->working)
        pthread_cond_wait(&source->previews->idle, &source->previews->lock);
    atomic_fetch_sub(&source->waiting, 1);
    unqueue_source(source);
    source->working = true;
}

bool preview_any_gone(const struct preview_source *source)
{
    for (const struct preview *preview = source->list; preview; preview = preview->next)
        if (preview->gone && !rendition_is_busy(&preview->rendition))
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

static void put_facts(struct preview_picture *picture, const char *camera, const char *output,
                      const char *shown)
{
    snprintf(picture->facts, sizeof picture->facts, "{\"camera\":\"%s\"%s%s%s,%s}", camera,
             *output ? ",\"output\":\"" : "", output, *output ? "\"" : "", shown);
}

struct preview_picture *preview_picture_refuse(const char *camera, const char *output,
                                               const char *why)
{
    struct preview_picture *picture = calloc(1, sizeof *picture);
    char shown[PREVIEW_WHY_MAX + 16];
    if (!picture)
        return NULL;
    picture->references = 1;
    snprintf(picture->why, sizeof picture->why, "%s", why);
    snprintf(shown, sizeof shown, "\"error\":\"%s\"", picture->why);
    put_facts(picture, camera, output, shown);
    return picture;
}

struct preview_picture *preview_refuse(const struct preview *preview, const char *why)
{
    return preview_picture_refuse(preview->source->camera, preview->wish.output, why);
}

// A single file carries its facts as a comment, after the two bytes that begin every JPEG.
static size_t put_comment(uint8_t *to, const char *facts)
{
    const size_t n = strlen(facts), length = n + 2;
    const uint8_t head[] = {0xff, 0xfe, (uint8_t)(length >> 8), (uint8_t)length};
    memcpy(to, head, sizeof head);
    memcpy(to + sizeof head, facts, n);
    return sizeof head + n;
}

struct preview_picture *preview_make_picture(struct preview *preview, const struct frame_info *info,
                                             const uint8_t *file, size_t size)
{
    enum { BEGIN = 2, COMMENT = 4 };
    const bool commented = preview->wish.fps <= 0;
    struct preview_picture *picture =
        malloc(sizeof *picture + size + (commented ? COMMENT + PREVIEW_FACTS_MAX : 0));
    if (!picture)
        return NULL;
    *picture = (struct preview_picture){
        .references = 1,
        .capture_ns = info->capture_ns,
        .pts_ns = info->pts_ns,
        .sequence = preview->sequence,
        .epoch = info->epoch,
        .flags = info->flags,
    };
    put_facts(picture, preview->source->camera, preview->wish.output,
              rendition_describe(&preview->rendition));
    memcpy(picture->file, file, BEGIN);
    picture->size = BEGIN;
    if (commented)
        picture->size += put_comment(picture->file + BEGIN, picture->facts);
    memcpy(picture->file + picture->size, file + BEGIN, size - BEGIN);
    picture->size += size - BEGIN;
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
