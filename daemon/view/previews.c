#include "daemon/view/previews.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/view/rendition.h"
#include "kernels/processors.h"

enum { TICK_MS = 100 };                                // between checks of readers and previews
static const int64_t LINGER_NS = INT64_C(10000000000); // of a preview without readers

struct preview {
    struct previews *previews;
    struct preview_source *source; // NULL: it has ended, and is freed once no list has its output
    char camera[PREVIEW_NAME_MAX + 1];
    struct preview_kind kind; // fps 0: for single pictures
    struct preview_reader *readers;
    unsigned round;  // counts the pictures handed out
    int64_t idle_ns; // CLOCK_MONOTONIC: when the last reader stopped
    uint64_t begun;  // number of its last JPEG among those of all previews
    struct demand demand;
    struct subscription subscription;
    struct consumer consumer;
    uint64_t missed; // by the consumer, when it last got a result
    struct preview *next;
    // Used by libuv's thread while there is a result, which the consumer holds:
    struct result *result;
    struct work work;
    struct rendition rendition;
    struct preview_picture *made; // NULL: out of memory
    int64_t busy_ns;
};

struct previews {
    struct work_queue *work;
    uv_timer_t timer;     // runs while there are previews
    struct preview *list; // of all cameras, new ones first
    bool stopped;
    int most, busy; // JPEGs made at once
    uint64_t begun;
    _Atomic size_t taken; // by all demands
    struct preview_counts counts;
};

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

static struct preview_picture *refuse(const struct preview *preview, int error)
{
    static const struct {
        int error;
        const char *why;
    } reasons[] = {
        {-ETIMEDOUT, "the camera shows no picture now"},
        {-ENOENT, "the camera has no such output any more"},
        {-ESHUTDOWN, "the camera is gone"},
        {-EFBIG, "its results are larger than 4096x4096, which are not shown"},
        {-EDQUOT, "it needs more memory than is left of the 256 MiB for all previews"},
        {-ENOSPC, "the device has too little memory left for previews"},
    };
    const int n = sizeof reasons / sizeof reasons[0];
    char why[PREVIEW_WHY_MAX];
    int i = 0;
    while (i < n && reasons[i].error != error)
        i++;
    if (i < n)
        snprintf(why, sizeof why, "%s", reasons[i].why);
    else if (error == -ECHRNG)
        snprintf(why, sizeof why, "has no plane %d", preview->kind.plane);
    else
        snprintf(why, sizeof why, "cannot be made of the camera's pictures: %s", strerror(-error));
    return preview_picture_refuse(preview->camera, preview->kind.output, why);
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

static struct preview_picture *make_picture(struct preview *preview, const uint8_t *file,
                                            size_t size)
{
    enum { BEGIN = 2, COMMENT = 4 };
    const struct result *result = preview->result;
    const struct item *item = &result->item[0];
    char facts[RENDITION_FACTS_MAX];
    const bool commented = preview->kind.fps <= 0;
    struct preview_picture *picture =
        malloc(sizeof *picture + size + (commented ? COMMENT + PREVIEW_FACTS_MAX : 0));
    if (!picture)
        return NULL;
    *picture = (struct preview_picture){
        .references = 1,
        .capture_ns = item->frame.capture_ns,
        .sequence = item->sequence,
        .epoch = item->frame.epoch,
        .flags = item->frame.flags,
    };
    rendition_describe(&preview->rendition, result, &preview->demand.source[result->number], facts);
    put_facts(picture, preview->camera, preview->kind.output, facts);
    memcpy(picture->file, file, BEGIN);
    picture->size = BEGIN;
    if (commented)
        picture->size += put_comment(picture->file + BEGIN, picture->facts);
    memcpy(picture->file + picture->size, file + BEGIN, size - BEGIN);
    picture->size += size - BEGIN;
    return picture;
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

// --- handing out

static void hand_over(struct preview_reader *reader, struct preview_picture *picture)
{
    reader->round = reader->preview->round;
    reader->until_ns = 0;
    if (reader->kind.fps <= 0)
        preview_stop(reader);
    reader->take(reader, picture);
}

// Takes the reference. A reader may stop, start again, and make others stop.
static void hand_out(struct preview *preview, struct preview_picture *picture)
{
    struct preview_reader *reader = picture ? preview->readers : NULL;
    preview->round++;
    while (reader) {
        const bool has_it = reader->round == preview->round;
        if (!has_it)
            hand_over(reader, picture);
        reader = has_it ? reader->next : preview->readers;
    }
    preview_picture_unref(picture);
}

static void refuse_impatient(struct preview *preview, int64_t now_ns)
{
    struct preview_reader *reader = preview->readers;
    while (reader) {
        const bool waits = reader->until_ns == 0 || reader->until_ns > now_ns;
        struct preview_picture *picture = waits ? NULL : refuse(preview, -ETIMEDOUT);
        if (picture)
            hand_over(reader, picture);
        reader = picture ? preview->readers : reader->next;
        preview_picture_unref(picture);
    }
}

// --- JPEGs

static struct preview *preview_of_work(struct work *work)
{
    return (struct preview *)((char *)work - offsetof(struct preview, work));
}

static void encode(struct work *work)
{
    struct preview *preview = preview_of_work(work);
    const struct op_params *params = preview->demand.of ? &preview->subscription.op : NULL;
    const int64_t begun_ns = processor_time_thread_ns();
    const uint8_t *file;
    size_t size;
    int rc = rendition_encode(&preview->rendition, &preview->result->format, params, &file, &size);
    preview->made = rc < 0 ? refuse(preview, rc) : make_picture(preview, file, size);
    preview->busy_ns = processor_time_thread_ns() - begun_ns;
}

static void begin_jpeg(struct preview *preview)
{
    struct previews *previews = preview->previews;
    struct consumer *consumer = &preview->consumer;
    preview->result = pool_acquire(preview->subscription.output->pool, consumer);
    if (!preview->result)
        return; // it ended
    previews->counts.dropped += consumer->missed - preview->missed;
    preview->missed = consumer->missed;
    preview->begun = ++previews->begun;
    previews->busy++;
    work_start(previews->work, &preview->work);
}

// True if it has a result to make a JPEG of.
static bool is_ready(const struct preview *preview)
{
    return preview->readers && !preview->result &&
           pool_has_next(preview->subscription.output->pool, &preview->consumer);
}

// Begins JPEGs of the newest results while there are processors for them, one preview after the
// other.
static void begin_jpegs(struct previews *previews)
{
    struct preview *first;
    do {
        first = NULL;
        for (struct preview *preview = previews->list; preview; preview = preview->next)
            if (is_ready(preview) && (!first || preview->begun < first->begun))
                first = preview;
        if (first && previews->busy < previews->most && !previews->stopped)
            begin_jpeg(first);
    } while (first && first->result);
}

static void result_is_ready(struct event *event)
{
    const struct outlet *outlet = (struct outlet *)((char *)event - offsetof(struct outlet, ready));
    struct preview *preview = outlet->owner;
    const int refused = atomic_exchange(&preview->demand.refused, 0);
    if (refused)
        hand_out(preview, refuse(preview, refused));
    begin_jpegs(preview->previews);
}

static void encoded(struct work *work)
{
    struct preview *preview = preview_of_work(work);
    struct previews *previews = preview->previews;
    struct preview_picture *picture = preview->made;
    pool_release(preview->subscription.output->pool, &preview->consumer, true);
    preview->result = NULL;
    previews->busy--;
    previews->counts.made += picture && !picture->why[0];
    previews->counts.busy_ns += (uint64_t)preview->busy_ns;
    hand_out(preview, picture);
    begin_jpegs(previews);
    previews_reap(previews);
}

// --- a preview

// Shows a camera's picture in the colours of JPEG; its height follows the source.
static struct op_params picture_op(const struct preview_kind *kind)
{
    struct op_params params = {.kind = OP_YUV};
    params.yuv = (struct yuv_params){
        .format = PIXEL_YUV420P,
        .colour = JPEG_COLOUR,
        .resized = true,
        .geometry = {.width = kind->width,
                     .fit = FIT_STRETCH,
                     .filter = kind->fps > 0 ? FILTER_BILINEAR : FILTER_AREA,
                     .scale = 1,
                     .std = {1, 1, 1}},
    };
    return params;
}

// Its output shows the first element of that subscription, or with NULL the camera's picture.
static int open_output(struct preview *preview, const struct subscription *shown)
{
    struct subscription *own = &preview->subscription;
    struct output_config config = {.kernel = KERNEL_YUV};
    if (shown)
        config = *shown->output->config;
    config.name = (char[]){""}; // like no other output
    config.sink = (struct sink_address){.kind = SINK_NONE};
    config.memory = RING_HOST;
    config.shared.name = NULL;
    config.is_batch = false;
    config.fps = preview->kind.fps;
    config.max_age.ns = 0;
    config.overflow = OVERFLOW_DROP_OLDEST;
    config.slots = DEMAND_SLOTS;
    int rc = output_open(&own->output, preview->camera, &config, NULL);
    if (rc < 0)
        return rc;
    own->output->demand = &preview->demand;
    own->output->outlet->ready.callback = result_is_ready;
    own->output->outlet->owner = preview;
    pool_attach(own->output->pool, &preview->consumer);
    if (shown) {
        own->tiling = shown->tiling;
        output_config_op(own->output->config, &own->op);
    } else {
        own->op = picture_op(&preview->kind);
    }
    return 0;
}

static void tick(uv_timer_t *timer);

static struct preview *open_preview(struct preview_source *source, const struct preview_kind *kind,
                                    const struct subscription *shown)
{
    struct previews *previews = source->previews;
    struct preview *preview = calloc(1, sizeof *preview);
    if (!preview)
        return NULL;
    preview->previews = previews;
    preview->source = source;
    preview->kind = *kind;
    preview->rendition.plane = kind->plane;
    preview->demand.of = shown ? shown->output : NULL;
    preview->demand.taken = &previews->taken;
    preview->work = (struct work){.run = encode, .done = encoded};
    snprintf(preview->camera, sizeof preview->camera, "%s", source->camera);
    if (open_output(preview, shown) < 0) {
        free(preview);
        return NULL;
    }
    preview->next = previews->list;
    previews->list = preview;
    if (!preview->next)
        uv_timer_start(&previews->timer, tick, TICK_MS, TICK_MS);
    return preview;
}

static void free_preview(struct preview *preview)
{
    struct output *output = preview->subscription.output;
    pool_detach(output->pool, &preview->consumer);
    output_close(output);
    rendition_close(&preview->rendition);
    atomic_fetch_sub(&preview->previews->taken, preview->demand.bytes);
    free(preview);
}

void previews_reap(struct previews *previews)
{
    struct preview **link = previews ? &previews->list : NULL;
    while (link && *link) {
        struct preview *preview = *link;
        if (preview->source || preview->result || preview->subscription.output->subscribers > 0) {
            link = &preview->next;
            continue;
        }
        *link = preview->next;
        free_preview(preview);
    }
    if (previews && !previews->list && !previews->stopped)
        uv_timer_stop(&previews->timer);
}

// --- readers

// Returns that preview, or NULL; and in *n the number of the camera's previews.
static struct preview *find_preview(const struct preview_source *source,
                                    const struct preview_kind *kind, int *n)
{
    struct preview *found = NULL;
    *n = 0;
    for (struct preview *preview = source->previews->list; preview; preview = preview->next) {
        const struct preview_kind *own = &preview->kind;
        if (preview->source != source)
            continue;
        ++*n;
        if (strcmp(own->output, kind->output) == 0 && own->plane == kind->plane &&
            own->width == kind->width && own->fps == kind->fps)
            found = preview;
    }
    return found;
}

// Ends previews that have no readers since then.
static void end_idle(struct previews *previews, int64_t since_ns)
{
    for (struct preview *preview = previews->list; preview; preview = preview->next) {
        struct preview_source *source = preview->source;
        if (!source || preview->readers || preview->idle_ns > since_ns)
            continue;
        preview->source = NULL;
        source->changed(source);
    }
}

static void drop_results(struct preview *preview)
{
    struct pool *pool = preview->subscription.output->pool;
    while (pool_acquire(pool, &preview->consumer))
        pool_release(pool, &preview->consumer, true);
}

// Returns the subscription of the output that has the name; NULL: there is none.
static const struct subscription *find_shown(const struct preview_source *source, const char *name)
{
    for (int i = 0; i < source->outputs->n_pictures; i++)
        if (strcmp(source->outputs->list[i].output->config->name, name) == 0)
            return &source->outputs->list[i];
    return NULL;
}

int preview_start(struct preview_source *source, struct preview_reader *reader)
{
    struct preview_kind kind = reader->kind;
    const struct subscription *shown = find_shown(source, kind.output);
    int n;
    if (!source->previews || source->previews->stopped)
        return -ESHUTDOWN;
    if (*kind.output && !shown)
        return subscriptions_find(source->outputs, kind.output) ? -EINVAL : -ENOENT;
    if (shown)
        kind.width = 0; // an output's results have their own size
    struct preview *preview = find_preview(source, &kind, &n);
    if (!preview) {
        if (n == PREVIEW_KINDS_MAX)
            end_idle(source->previews, INT64_MAX);
        find_preview(source, &kind, &n);
        if (n == PREVIEW_KINDS_MAX)
            return -ENOSPC;
        if (!(preview = open_preview(source, &kind, shown)))
            return -ENOMEM;
        source->changed(source);
    }
    if (!preview->readers && !preview->result)
        drop_results(preview); // they are of before
    source->previews->counts.kinds += !preview->readers;
    reader->preview = preview;
    reader->round = preview->round;
    reader->until_ns = reader->patience_ns > 0 ? monotonic_ns() + reader->patience_ns : 0;
    reader->next = preview->readers;
    preview->readers = reader;
    atomic_store(&preview->demand.runs, kind.fps > 0);
    atomic_store(&preview->demand.due, true);
    return 0;
}

void preview_stop(struct preview_reader *reader)
{
    struct preview *preview = reader->preview;
    if (!preview)
        return;
    struct preview_reader **link = &preview->readers;
    while (*link != reader)
        link = &(*link)->next;
    *link = reader->next;
    reader->preview = NULL;
    if (preview->readers)
        return;
    atomic_store(&preview->demand.runs, false);
    atomic_store(&preview->demand.due, false);
    preview->idle_ns = monotonic_ns();
    preview->previews->counts.kinds--;
}

static void tick(uv_timer_t *timer)
{
    struct previews *previews = timer->data;
    const int64_t now_ns = monotonic_ns();
    for (struct preview *preview = previews->list; preview; preview = preview->next)
        refuse_impatient(preview, now_ns);
    end_idle(previews, now_ns - LINGER_NS);
    previews_reap(previews);
}

// --- a camera

// Readers of a preview that has ended get one of another output with the name, or a refusal.
static void move_readers(struct preview_source *source, struct preview *preview)
{
    while (preview->readers) {
        struct preview_reader *reader = preview->readers;
        preview_stop(reader);
        const int rc = preview_start(source, reader);
        struct preview_picture *picture =
            rc < 0 ? refuse(preview, rc == -EINVAL ? -ENOENT : rc) : NULL;
        if (picture)
            reader->take(reader, picture);
        preview_picture_unref(picture);
    }
}

// Ends the source's previews of outputs that it no longer has; without `previews`, all of them.
static void end_previews(struct preview_source *source, struct previews *previews)
{
    for (struct preview *preview = previews->list; preview; preview = preview->next) {
        const struct subscription *shown = find_shown(source, preview->kind.output);
        if (preview->source == source &&
            (!source->previews || preview->demand.of != (shown ? shown->output : NULL)))
            preview->source = NULL;
    }
    // Only now: a reader that starts again changes the list, which must have none of those.
    for (struct preview *preview = previews->list; preview; preview = preview->next)
        if (!preview->source)
            move_readers(source, preview);
}

void preview_source_follow(struct preview_source *source, const struct subscriptions *outputs)
{
    source->outputs = outputs;
    if (source->previews)
        end_previews(source, source->previews);
}

void preview_source_close(struct preview_source *source)
{
    struct previews *previews = source->previews;
    source->previews = NULL;
    if (previews)
        end_previews(source, previews);
    previews_reap(previews);
}

struct subscriptions *preview_source_extend(struct preview_source *source)
{
    const struct subscription *more[PREVIEW_KINDS_MAX];
    struct preview *preview = source->previews ? source->previews->list : NULL;
    int n = 0;
    for (; preview; preview = preview->next)
        if (preview->source == source)
            more[n++] = &preview->subscription;
    return n > 0 ? subscriptions_with(source->outputs, more, n) : NULL;
}

// --- life

int previews_open(struct previews **ret, uv_loop_t *loop, struct work_queue *work)
{
    struct previews *previews = calloc(1, sizeof *previews);
    const struct processors allowed = processors_allowed();
    if (!previews)
        return -ENOMEM;
    previews->work = work;
    previews->most = (processors_count(&allowed) + 1) / 2;
    uv_timer_init(loop, &previews->timer);
    previews->timer.data = previews;
    *ret = previews;
    return 0;
}

void previews_stop(struct previews *previews)
{
    previews->stopped = true;
    uv_close((uv_handle_t *)&previews->timer, NULL);
}

void previews_close(struct previews *previews)
{
    free(previews);
}

struct preview_counts previews_counts(const struct previews *previews)
{
    return previews->counts;
}
