// The askers of previews, on the loop.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/view/preview.h"

enum { PATIENCE_MS = 100 }; // between checks of askers with a time limit

// --- the loop: askers

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

// --- the loop: pictures

static void tell(struct preview_asker *asker, struct preview_picture *picture)
{
    be_patient_no_more(asker->preview->source->previews, asker);
    if (asker->wish.fps <= 0)
        preview_leave(asker);
    asker->take(asker, picture);
}

// True if the asker takes the picture. The asker with the highest rate takes all, as previews are
// made at that rate. A picture of another epoch may be older than the ones before.
static bool wants(struct preview_asker *asker, const struct preview_picture *picture)
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
        if (is_told || !wants(asker, picture)) {
            asker = asker->next;
            continue;
        }
        tell(asker, picture);
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
        tell(asker, picture);
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
