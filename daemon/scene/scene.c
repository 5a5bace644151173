#include "daemon/scene/scene.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/wire.h"

enum {
    LIGHT_GAIN = (1 << 10) / 20, // a twentieth
    LIGHT_SHIFT = 4 << 7,        // four levels
};
static const int64_t RETRY_NS = 1000000000; // after the analyser failed to open
static const int64_t NEVER = INT64_MAX;
enum { RATE_PICTURES = 16 };          // that the rate is measured over
static const double RATE_ERROR = 1.5; // error that the stream's rate may have
static const double RATE_CHANGE = 2;  // between two different rates, twice in a row

struct scene {
    struct scene_context context;
    bool wanted;
    const struct backend_driver *driver; // of the analyser
    struct analyser *analyser;           // NULL: not open
    struct image source;                 // the analysis is for such pictures; PIXEL_NONE: none
    struct analysis analysis;
    uint8_t mask[MOTION_CELLS_MAX];
    int64_t retry_ns; // CLOCK_MONOTONIC: earliest next try after a failure, or NEVER
    // The rate of the pictures, and its measurement:
    int rate_num, rate_den;
    bool rate_measured;
    bool rate_changed; // by the last measurement
    uint32_t epoch;
    int pictures; // of this epoch and measurement, up to RATE_PICTURES + 1
    int64_t first_pts_ns;
    struct alarms alarms;
    struct scene_record record; // of the last picture
};

// --- the report

static void put_report(struct scene_report *report, const struct scene_record *record)
{
    atomic_fetch_add(&report->analysed, 1);
    atomic_fetch_add(&report->moving, record->motion.moving);
    for (int i = 0; i < ALARMS; i++)
        atomic_fetch_add(&report->raised[i], record->raised >> i & 1);
    atomic_store(&report->alarms, record->alarms);
    pthread_mutex_lock(&report->lock);
    report->known = true;
    report->last = *record;
    pthread_mutex_unlock(&report->lock);
}

// Pictures are no longer analysed: no alarm is raised, and there is no last record.
static void end_report(struct scene_report *report)
{
    atomic_store(&report->alarms, 0);
    pthread_mutex_lock(&report->lock);
    report->known = false;
    pthread_mutex_unlock(&report->lock);
}

bool scene_report_last(struct scene_report *report, struct scene_record *ret)
{
    pthread_mutex_lock(&report->lock);
    const bool known = report->known;
    if (known)
        *ret = report->last;
    pthread_mutex_unlock(&report->lock);
    return known;
}

// --- the mask

// True if a ray from (x, y) to the right crosses the edge from a to b. x and y are doubled, as the
// middle of a cell may lie between two pixels.
static bool crosses(struct point a, struct point b, int64_t x, int64_t y)
{
    const int64_t ay = 2 * a.y, by = 2 * b.y;
    if ((ay > y) == (by > y))
        return false;
    const int64_t left = (x - 2 * a.x) * (by - ay), right = 2 * (int64_t)(b.x - a.x) * (y - ay);
    return by > ay ? left < right : left > right;
}

static bool is_inside(const struct polygon *polygon, int64_t x, int64_t y)
{
    bool inside = false;
    for (int i = 0, before = polygon->n - 1; i < polygon->n; before = i++)
        inside ^= crosses(polygon->point[before], polygon->point[i], x, y);
    return inside;
}

void mask_cells(const struct polygons *polygons, const struct statistics *cells, uint8_t *mask)
{
    for (int row = 0; row < cells->rows; row++) {
        const int64_t y = (int64_t)cells->row_edges[row] + cells->row_edges[row + 1];
        for (int column = 0; column < cells->columns; column++) {
            const int64_t x =
                (int64_t)cells->column_edges[column] + cells->column_edges[column + 1];
            uint8_t *cell = &mask[row * cells->columns + column];
            *cell = 1;
            for (int i = 0; i < polygons->n; i++)
                *cell &= !is_inside(&polygons->list[i], x, y);
        }
    }
}

// --- the scene

int scene_open(struct scene **ret, const struct scene_context *context)
{
    struct scene *scene = calloc(1, sizeof *scene);
    if (!scene)
        return -ENOMEM;
    scene->context = *context;
    *ret = scene;
    return 0;
}

static void close_analyser(struct scene *scene)
{
    if (scene->analyser)
        scene->driver->analyser_close(scene->analyser);
    scene->analyser = NULL;
    scene->retry_ns = 0;
}

void scene_close(struct scene *scene)
{
    if (scene)
        close_analyser(scene);
    free(scene);
}

// An analyser on the host stays: it has the camera's background.
void scene_detach(struct scene *scene)
{
    if (scene && scene->driver != &cpu_backend)
        close_analyser(scene);
}

// Alarms would never end once pictures are not analysed any more.
void scene_want(struct scene *scene, bool wanted)
{
    const bool ends = scene->wanted && !wanted && !scene->context.config->stats;
    scene->wanted = wanted;
    if (!ends)
        return;
    close_analyser(scene);
    scene->alarms = (struct alarms){0};
    scene->record.alarms = 0;
    end_report(scene->context.report);
}

// --- the analysis of one geometry

static bool is_full_range(const struct image *image)
{
    return source_is_rgb(image->format) ||
           colour_resolve(image->colour, image->height).range == RANGE_FULL;
}

// Makes the tables for pictures like this one. Returns 0, or -EINVAL, which is logged.
static int init_analysis(struct scene *scene, const struct image *image)
{
    const struct camera_config *config = scene->context.config;
    const bool full = is_full_range(image);
    const char *why = "there is no such grid of its pictures";
    struct analysis_params params = {
        .statistics = {.columns = config->grid.width,
                       .rows = config->grid.height,
                       .black = full ? 0 : 16,
                       .white = full ? 255 : 235,
                       .all = true},
        .motion = {.sensitivity = config->motion.sensitivity,
                   .min_area = config->motion.min_area,
                   .rate_num = scene->rate_num,
                   .rate_den = scene->rate_den},
    };
    int rc = statistics_init(&scene->analysis.statistics, &params.statistics, image);
    if (rc == 0 && config->motion.mask.n > 0) {
        mask_cells(&config->motion.mask, &scene->analysis.statistics, scene->mask);
        params.motion.mask = scene->mask;
    }
    if (rc == 0)
        rc = analysis_init(&scene->analysis, &params, image, &why);
    if (rc < 0)
        log_event(LOG_LEVEL_ERROR, "pictures of %dx%d cannot be analysed: %s", image->width,
                  image->height, why);
    return rc;
}

// Opens an analyser for such pictures on their device. Returns 0; -EAGAIN: not now, since a try has
// failed; or another negative errno.
static int prepare_analyser(struct scene *scene, const struct image *image)
{
    const struct device_lease *lease = scene->context.lease;
    const bool on_device = image->memory == MEMORY_CUDA;
    const struct backend_driver *driver = on_device ? lease->driver : &cpu_backend;
    if (scene->analyser && scene->driver == driver)
        return 0;
    if (monotonic_ns() < scene->retry_ns)
        return -EAGAIN;
    close_analyser(scene);
    int rc = init_analysis(scene, image);
    if (rc < 0) {
        scene->retry_ns = NEVER;
        return rc;
    }
    scene->driver = driver;
    rc = driver->analyser_open(on_device ? lease->backend : NULL, &scene->analyser,
                               &scene->analysis, image);
    if (rc < 0)
        scene->retry_ns = monotonic_ns() + RETRY_NS;
    return rc;
}

static void follow_geometry(struct scene *scene, const struct image *image)
{
    const struct image *source = &scene->source;
    if (source->format == image->format && source->width == image->width &&
        source->height == image->height && source->colour.range == image->colour.range &&
        source->colour.matrix == image->colour.matrix)
        return;
    close_analyser(scene);
    alarms_restart(&scene->alarms);
    scene->source = *image;
    scene->rate_measured = scene->rate_changed = false;
    scene->pictures = 0;
}

static void take_rate_of_stream(struct scene *scene, const struct frame *frame)
{
    const bool sane = frame->rate_num > 0 && frame->rate_den > 0 &&
                      frame->rate_num / frame->rate_den < MOTION_RATE_MAX;
    scene->rate_num = sane ? frame->rate_num : 0;
    scene->rate_den = sane ? frame->rate_den : 0;
}

// Motion is separated from the background by time. If the stream has no rate, or the decoder leaves
// pictures out (also later), the analysis restarts with the measured rate. After the first
// measurement this takes two in a row, as a gap alone looks like a lower rate.
static void follow_rate(struct scene *scene, const struct frame *frame)
{
    if (scene->pictures == 0 || scene->epoch != frame->info.epoch) {
        if (!scene->rate_measured)
            take_rate_of_stream(scene, frame);
        scene->pictures = 0;
        scene->epoch = frame->info.epoch;
        scene->first_pts_ns = frame->info.pts_ns;
    }
    if (scene->pictures++ < RATE_PICTURES)
        return;
    const double seconds = (double)(frame->info.pts_ns - scene->first_pts_ns) / 1e9;
    const double rate = RATE_PICTURES / seconds;
    const double before = scene->rate_den > 0 ? (double)scene->rate_num / scene->rate_den : 0;
    const double factor = scene->rate_measured ? RATE_CHANGE : RATE_ERROR;
    const bool differs = rate >= before * factor || before >= rate * factor;
    const bool begins = differs && (!scene->rate_measured || scene->rate_changed);
    scene->rate_measured = true;
    scene->rate_changed = differs && !begins;
    scene->pictures = 1; // the first of the next measurement
    scene->first_pts_ns = frame->info.pts_ns;
    if (!begins)
        return;
    const double most = MOTION_RATE_MAX * 1000 - 1;
    scene->rate_num = (int)lround(fmin(fmax(rate * 1000, 1), most));
    scene->rate_den = 1000;
    close_analyser(scene);
}

// --- a picture

static void note_alarms(const struct scene_record *record)
{
    const struct scene_facts *facts = &record->info.scene;
    for (int i = 0; i < ALARMS; i++)
        if ((record->raised | record->cleared) >> i & 1)
            log_event(LOG_LEVEL_WARNING, "alarm %s %s: mean level %.1f, sharpness %.2f",
                      alarm_name(i), record->raised >> i & 1 ? "raised" : "cleared",
                      (double)facts->mean, (double)facts->sharpness);
}

// True if the light changed by more than the drift of a camera's exposure.
static bool is_light(const struct motion_boxes *motion)
{
    return motion->flags & MOTION_JUMP || abs(motion->light.gain - (1 << 10)) > LIGHT_GAIN ||
           abs(motion->light.shift) > LIGHT_SHIFT;
}

static void note_picture(struct scene *scene, struct frame *frame,
                         const struct analysis_result *found)
{
    const struct statistics *statistics = &scene->analysis.statistics;
    struct scene_record *record = &scene->record;
    frame->info.scene = (struct scene_facts){
        .known = true,
        .moving = found->motion->moving,
        .light = is_light(found->motion),
        .learning = found->motion->flags & MOTION_LEARNING,
        .fingerprint = found->fingerprint,
        .mean = (float)((double)found->luma.sum / found->luma.pixels),
        .sharpness = (float)((double)found->luma.laplacian / found->luma.pixels),
    };
    record->luma = found->luma;
    record->columns = statistics->grid_columns;
    record->rows = statistics->grid_rows;
    memcpy(record->grid, found->grid, (size_t)(record->columns * record->rows));
    record->motion = *found->motion;
    record->info = frame->info;
    const unsigned alarms = alarms_step(&scene->alarms, record, &statistics->params);
    record->raised = alarms & ~record->alarms;
    record->cleared = record->alarms & ~alarms;
    record->alarms = record->info.scene.alarms = frame->info.scene.alarms = alarms;
    note_alarms(record);
    put_report(scene->context.report, record);
}

const struct scene_record *scene_observe(struct scene *scene, struct frame *frame)
{
    struct analysis_result found;
    frame->info.scene = (struct scene_facts){0};
    if (!scene || !(scene->wanted || scene->context.config->stats) ||
        frame->info.flags & FRAMED_FLAG_DAMAGED)
        return NULL;
    follow_geometry(scene, &frame->image);
    follow_rate(scene, frame);
    int rc = prepare_analyser(scene, &frame->image);
    if (rc == 0)
        rc = scene->driver->analyse(scene->analyser, &frame->image, &found);
    if (rc == 0)
        note_picture(scene, frame, &found);
    else if (rc == -EIO || rc == -ENODEV)
        device_failed(scene->context.lease, rc);
    frame->info.scene.refused = scene->retry_ns == NEVER;
    return rc == 0 ? &scene->record : NULL;
}
