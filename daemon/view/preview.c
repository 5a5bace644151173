#include "daemon/view/preview.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"

// --- sources and lists, under lock

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

// --- pictures

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

// --- the loop: askers

enum { PATIENCE_MS = 100 }; // between checks of askers with a time limit

static bool is_same(const struct preview_wish *a, const struct preview_wish *b)
{
    return strcmp(a->output, b->output) == 0 && a->plane == b->plane && a->width == b->width &&
           (a->fps > 0) == (b->fps > 0);
}

// Results of an output have one size. Under lock.
static struct preview *find_preview(struct preview_source *source, const struct preview_wish *wish)
{
    struct preview *preview = source->list;
    while (preview && (preview->gone || !is_same(&preview->wish, wish)))
        preview = preview->next;
    return preview;
}

static struct preview *make_preview(struct preview_source *source, const struct preview_wish *wish)
{
    struct preview *preview = calloc(1, sizeof *preview);
    if (!preview)
        return NULL;
    preview->source = source;
    preview->wish = *wish;
    preview->rendition = (struct rendition){.taken = &source->previews->taken};
    preview->next = source->list;
    source->list = preview;
    atomic_fetch_add(&source->asked, 1);
    atomic_fetch_add(&source->previews->kinds, 1);
    return preview;
}

// Sets the highest rate of all askers.
static void set_rate(struct preview *preview)
{
    double fps = 0;
    for (const struct preview_asker *asker = preview->askers; asker; asker = asker->next)
        fps = asker->wish.fps > fps ? asker->wish.fps : fps;
    preview->rate.fps = fps;
}

static void tend_patient(uv_timer_t *timer);

static void wait_patiently(struct previews *previews, struct preview_asker *asker)
{
    if (asker->patience_ns <= 0)
        return;
    asker->until_ns = monotonic_ns() + asker->patience_ns;
    asker->next_patient = previews->patient;
    previews->patient = asker;
    if (!uv_is_active((uv_handle_t *)&previews->timer))
        uv_timer_start(&previews->timer, tend_patient, PATIENCE_MS, PATIENCE_MS);
}

static void be_patient_no_more(struct previews *previews, struct preview_asker *asker)
{
    struct preview_asker **link = &previews->patient;
    while (*link && *link != asker)
        link = &(*link)->next_patient;
    if (*link)
        *link = asker->next_patient;
    if (!previews->patient && !previews->closing)
        uv_timer_stop(&previews->timer);
}

int preview_ask(struct preview_source *source, struct preview_asker *asker)
{
    struct previews *previews = source->previews;
    struct preview_wish wish = asker->wish;
    if (*wish.output)
        wish.width = 0; // an output's results have their own size
    int rc = previews->closing ? -ESHUTDOWN : preview_start(previews);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&previews->lock);
    struct preview *preview = find_preview(source, &wish);
    if (!preview && atomic_load(&source->asked) >= PREVIEW_KINDS_MAX)
        rc = -ENOSPC;
    else if (!preview && !(preview = make_preview(source, &wish)))
        rc = -ENOMEM;
    if (rc == 0) {
        asker->preview = preview;
        asker->rate = (struct rate){.fps = asker->wish.fps};
        asker->round = preview->round;
        asker->epoch = 0;
        asker->next = preview->askers;
        preview->askers = asker;
        if (wish.fps > 0)
            rate_restart(&preview->rate);
        else
            preview->due = true;
        set_rate(preview);
    }
    pthread_mutex_unlock(&previews->lock);
    if (rc == 0)
        wait_patiently(previews, asker);
    return rc;
}

void preview_leave(struct preview_asker *asker)
{
    struct preview *preview = asker->preview;
    if (!preview)
        return;
    struct preview_source *source = preview->source;
    struct previews *previews = source->previews;
    struct preview_asker **link = &preview->askers;
    be_patient_no_more(previews, asker);
    asker->preview = NULL;
    while (*link != asker)
        link = &(*link)->next;
    pthread_mutex_lock(&previews->lock);
    *link = asker->next;
    set_rate(preview);
    if (!preview->askers) {
        preview->gone = true;
        atomic_fetch_sub(&source->asked, 1);
        atomic_fetch_sub(&previews->kinds, 1);
        preview_queue_source(source);
    }
    pthread_mutex_unlock(&previews->lock);
}

// --- the loop: handing out

static void tell_asker(struct preview_asker *asker, struct preview_picture *picture)
{
    be_patient_no_more(asker->preview->source->previews, asker);
    if (asker->wish.fps <= 0)
        preview_leave(asker);
    asker->take(asker, picture);
}

// True if the asker takes the picture. The asker with the highest rate takes all, as previews are
// made at that rate. A picture of another epoch may be older than the ones before.
static bool takes_picture(struct preview_asker *asker, const struct preview_picture *picture)
{
    if (asker->epoch != picture->epoch)
        rate_restart(&asker->rate);
    asker->epoch = picture->epoch;
    const bool kept = rate_keeps(&asker->rate, picture->pts_ns);
    return kept || picture->why[0] || asker->wish.fps >= asker->preview->rate.fps;
}

// A notified asker may leave, ask again, and make others leave.
static void tell_all(struct preview *preview, struct preview_picture *picture)
{
    struct preview_asker *asker = preview->askers;
    preview->round++;
    while (asker) {
        const bool is_told = asker->round == preview->round;
        asker->round = preview->round;
        if (is_told || !takes_picture(asker, picture)) {
            asker = asker->next;
            continue;
        }
        tell_asker(asker, picture);
        asker = preview->askers;
    }
}

void preview_hand_out(struct event *event)
{
    struct previews *previews =
        (struct previews *)((char *)event - offsetof(struct previews, event));
    for (;;) {
        pthread_mutex_lock(&previews->lock);
        struct preview *preview = previews->done;
        struct preview_picture *picture = preview ? preview->ready : NULL;
        const bool dead = preview && preview->dead;
        if (preview) {
            preview_remove_done(preview);
            preview->ready = NULL;
        }
        pthread_mutex_unlock(&previews->lock);
        if (!preview)
            return;
        if (picture)
            tell_all(preview, picture);
        preview_picture_unref(picture);
        if (dead)
            preview_free(preview);
    }
}

static void tend_patient(uv_timer_t *timer)
{
    struct previews *previews = timer->data;
    const int64_t now_ns = monotonic_ns();
    struct preview_asker *asker = previews->patient;
    while (asker) {
        if (asker->until_ns > now_ns) {
            asker = asker->next_patient;
            continue;
        }
        struct preview_picture *picture =
            preview_refuse(asker->preview, "the camera shows no picture now");
        if (!picture)
            return; // until the next check
        tell_asker(asker, picture);
        preview_picture_unref(picture);
        asker = previews->patient;
    }
}

// Notified askers may ask elsewhere.
void preview_dismiss(struct preview *preview)
{
    struct preview_picture *picture = preview_refuse(preview, "the camera is gone");
    while (preview->askers) {
        struct preview_asker *asker = preview->askers;
        preview_leave(asker);
        if (picture)
            asker->take(asker, picture);
    }
    preview_picture_unref(picture);
}
