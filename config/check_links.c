#include "config/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "config/object.h"
#include "config/value.h"

// --- pauses

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

static int apply_pause(const struct pause *pause, struct config *config)
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

void pauses_apply(const struct pauses *pauses, struct mistakes *mistakes, struct config *config)
{
    for (int i = 0; i < pauses->n; i++) {
        const struct pause *pause = &pauses->list[i];
        if (apply_pause(pause, config) == 0 && pause->at.file == 0)
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

// --- members of batches

__attribute__((format(printf, 4, 5))) static void refuse_batch(struct mistakes *mistakes,
                                                               const struct output_config *batch,
                                                               const char *key, const char *format,
                                                               ...)
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

static void choose_capacity(struct output_config *batch, const struct crowd *crowd)
{
    const bool many = batch->tiles.size || crowd->elements > BATCH_AUTO_MAX;
    const int all = many ? BATCH_AUTO_MAX : crowd->elements;
    batch->capacity = batch->count ? batch->count : at_least(all, batch->per_camera * crowd->most);
}

static void check_members(struct mistakes *mistakes, const struct output_config *batch,
                          const struct crowd *crowd)
{
    if (crowd->members == 0 && batch->cameras.n)
        refuse_batch(mistakes, batch, "cameras", "match no camera (the names under `cameras`)");
    if (crowd->most > batch->capacity)
        refuse_batch(
            mistakes, batch, "count",
            "is less than the %d regions of camera %s, which are the elements of one picture "
            "(%d to 256)",
            crowd->most, crowd->its_camera, crowd->most);
    else if (batch->order == BATCH_FIXED && crowd->elements > batch->capacity)
        refuse_batch(
            mistakes, batch, "order",
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
        refuse_batch(mistakes, batch, "cameras",
                     "choose camera %s, which has an output of the batch's name (another name, or "
                     "\"!%s\")",
                     camera->name, camera->name);
        return false;
    }
    if (camera->n_outputs < CAMERA_OUTPUTS_MAX)
        return true;
    refuse_batch(mistakes, batch, "cameras",
                 "choose camera %s, which has %d outputs, as many as a camera can have (\"!%s\")",
                 camera->name, CAMERA_OUTPUTS_MAX, camera->name);
    return false;
}

static int join_batch(struct camera_config *camera, const struct output_config *batch)
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

static void require_outputs(struct mistakes *mistakes, const struct config *config)
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
        choose_capacity(batch, &crowd);
        check_members(mistakes, batch, &crowd);
        for (int i = 0; rc == 0 && i < config->n_cameras; i++) {
            struct camera_config *camera = &config->cameras[i];
            if (name_patterns_choose(&batch->cameras, camera->name) &&
                can_join(mistakes, camera, batch))
                rc = join_batch(camera, batch);
        }
    }
    require_outputs(mistakes, config);
    return rc;
}

// --- regions

static void note_missing_region(struct mistakes *mistakes, const struct camera_config *camera,
                                const struct output_config *output)
{
    const bool all = !strcmp(output->roi.name, ROI_ALL);
    char key[KEY_MAX];
    if (output->is_batch)
        snprintf(key, sizeof key, "batches.%s.roi", output->name);
    else
        snprintf(key, sizeof key, "cameras.%s.outputs.%s.roi", camera->name, output->name);
    mistake(mistakes, object_value_place(&output_table, output, "roi"), key,
            "camera %s has no %s%s (rois: {NAME: [x, y, width, height]} of the camera)",
            camera->name, all ? "regions" : "region ", all ? "" : output->roi.name);
}

static int choose_regions(struct mistakes *mistakes, const struct camera_config *camera,
                          struct output_config *output)
{
    const bool all = !strcmp(output->roi.name, ROI_ALL);
    const struct roi *named = all ? camera->rois.list : rois_find(&camera->rois, output->roi.name);
    const struct rois some = {(struct roi *)named, all ? camera->rois.n : 1};
    if (named)
        return rois_copy(&output->roi.chosen, &some);
    if (object_is_known(&camera_table, camera, "rois"))
        note_missing_region(mistakes, camera, output);
    return 0;
}

int regions_choose(struct mistakes *mistakes, struct config *config)
{
    int rc = 0;
    for (int i = 0; i < config->n_cameras; i++) {
        struct camera_config *camera = &config->cameras[i];
        for (int o = 0; rc == 0 && o < camera->n_outputs; o++)
            if (camera->outputs[o].roi.name)
                rc = choose_regions(mistakes, camera, &camera->outputs[o]);
    }
    return rc;
}

// --- crops

struct crops_check {
    struct mistakes *mistakes;
    const struct camera_config *camera;
    struct output_config *output;
};

static bool crops_key_is_given(const struct crops_check *c, const char *key)
{
    return c->output->places.value[table_find(&output_table, key) - output_table.rows].line != 0;
}

__attribute__((format(printf, 3, 4))) static void
refuse_crops(const struct crops_check *c, const char *key, const char *format, ...)
{
    char dotted[KEY_MAX], what[256];
    va_list args;
    if (!object_is_known(&output_table, c->output, key))
        return;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    snprintf(dotted, sizeof dotted, "cameras.%s.outputs.%s.%s", c->camera->name, c->output->name,
             key);
    mistake(c->mistakes, object_value_place(&output_table, c->output, key), dotted, "%s", what);
}

static const struct output_config *find_output(const struct camera_config *camera, const char *name)
{
    for (int i = 0; i < camera->n_outputs; i++)
        if (strcmp(camera->outputs[i].name, name) == 0)
            return &camera->outputs[i];
    return NULL;
}

// Clients can send detections back only through a ring.
static void check_crops_of(const struct crops_check *c)
{
    const struct output_config *of = find_output(c->camera, c->output->crops.of);
    if (!of)
        refuse_crops(
            c, "crops.of",
            "names no output of camera %s, nor a batch that the camera is in (one of these with "
            "a ring)",
            c->camera->name);
    else if (of == c->output)
        refuse_crops(c, "crops.of", "names the output itself (another output of the camera)");
    else if (of->crops.of)
        refuse_crops(
            c, "crops.of",
            "names an output that has crops itself, whose elements are no pictures that are "
            "kept (an output that shows pictures)");
    else if (of->kernel == KERNEL_COPY)
        refuse_crops(c, "crops.of", "names a copy of packets (an output with kernel warp or yuv)");
    else if (of->sink.kind != SINK_RING && of->sink.kind != SINK_NONE)
        refuse_crops(
            c, "crops.of",
            "names an output whose clients cannot send back what they find (one with sink: "
            "ring:PATH)");
}

// Converts labels to numbers, by the labels of the other output.
static void find_crops_classes(const struct crops_check *c)
{
    const struct output_config *of = find_output(c->camera, c->output->crops.of);
    struct classes *classes = &c->output->crops.classes;
    for (int i = 0; of && i < classes->n; i++) {
        struct class_choice *choice = &classes->list[i];
        if (!choice->name[0])
            continue;
        choice->number = labels_find(&of->detections.labels, choice->name);
        if (choice->number >= 0)
            continue;
        refuse_crops(
            c, "crops.classes",
            "has the label %s, which is none of detections.labels of %s (numbers, or labels of "
            "those)",
            choice->name, of->name);
        return;
    }
}

static void check_crops_keys(const struct crops_check *c)
{
    static const struct {
        const char *key, *why;
    } refused[] = {
        {"crop", "cannot be combined with crops, which cut out what was found"},
        {"roi", "cannot be combined with crops, which cut out what was found"},
        {"affine", "cannot be combined with crops, which fit each box into the size (fit)"},
        {"fps", "is not for crops, which come as results come (fps of the output that crops.of "
                "names)"},
        {"gate.motion", "is not for crops, which come as results come (gate of the output that "
                        "crops.of names)"},
    };
    struct output_config *o = c->output;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (crops_key_is_given(c, refused[i].key))
            refuse_crops(c, refused[i].key, "%s", refused[i].why);
    value_free(table_find(&output_table, "roi"), o);
    o->crop = (struct crop){0};
    o->affine = (struct affine){0};
    o->fps = 0;
    o->gate = (struct gate_config){0};
    if (o->fit == FIT_RECT || o->fit == FIT_TORCHVISION)
        refuse_crops(
            c, crops_key_is_given(c, "fit") || !crops_key_is_given(c, "preset") ? "fit" : "preset",
            "makes tensors whose size goes by the box, but the elements of a batch have one "
            "size");
    if (o->overflow == OVERFLOW_WAIT && crops_key_is_given(c, "overflow"))
        refuse_crops(c, "overflow",
                     "wait is not for crops, for which no camera waits (auto | drop_oldest | "
                     "drop_newest)");
    if (o->overflow == OVERFLOW_WAIT || o->overflow == OVERFLOW_AUTO)
        o->overflow = OVERFLOW_DROP_OLDEST;
    if (o->protocol == PROTOCOL_Y4M)
        refuse_crops(c, crops_key_is_given(c, "protocol") ? "protocol" : "sink",
                     "y4m cannot hold the tensors of a batch (framed, npy or raw)");
}

// Refuses the other keys of crops without crops.of.
static void check_no_crops(const struct crops_check *c)
{
    static const char *const details[] = {"crops.classes", "crops.margin", "crops.most",
                                          "crops.keep"};
    if (crops_key_is_given(c, "crops.of"))
        return;
    for (size_t i = 0; i < sizeof details / sizeof *details; i++)
        if (crops_key_is_given(c, details[i]))
            refuse_crops(c, details[i], "has no effect without crops.of beside it");
}

void crops_apply(struct mistakes *mistakes, struct config *config)
{
    for (int i = 0; i < config->n_cameras; i++) {
        const struct camera_config *camera = &config->cameras[i];
        for (int o = 0; o < camera->n_outputs; o++) {
            const struct crops_check c = {mistakes, camera, &camera->outputs[o]};
            if (c.output->is_batch || c.output->kernel != KERNEL_WARP)
                continue;
            if (!c.output->crops.of) {
                check_no_crops(&c);
                continue;
            }
            check_crops_of(&c);
            find_crops_classes(&c);
            check_crops_keys(&c);
            c.output->capacity = c.output->crops.most;
        }
    }
}

// --- rivals

enum claim_kind { CLAIM_PATH, CLAIM_PORT, CLAIM_URL, CLAIM_MEMORY };

// Resource that one key of an output claims.
struct claim {
    enum claim_kind kind;
    int port;         // CLAIM_PORT only
    const char *text; // path, host, URL or name
    int order;
    const char *camera; // NULL: the output is a batch
    const struct output_config *output;
    const char *key;
};

struct claims {
    struct claim *list;
    int n;
};

static void add_claim(struct claims *claims, struct claim claim, enum claim_kind kind,
                      const char *text, const char *key)
{
    if (!text)
        return;
    claim.kind = kind;
    claim.text = text;
    claim.key = key;
    claim.order = claims->n;
    claims->list[claims->n++] = claim;
}

static void claim_sink(struct claims *claims, struct claim claim, const struct sink_address *sink,
                       const char *key)
{
    claim.port = sink->kind == SINK_TCP ? sink->port : 0;
    if (sink->kind == SINK_TCP && sink->port)
        add_claim(claims, claim, CLAIM_PORT, address_host(sink), key);
    else if (sink->kind == SINK_RTSP)
        add_claim(claims, claim, CLAIM_URL, sink->url, key);
    else if (sink->kind != SINK_TCP)
        add_claim(claims, claim, CLAIM_PATH, address_canonical(sink), key);
}

static void claim_output(struct claims *claims, const char *camera,
                         const struct output_config *output)
{
    const struct claim claim = {.camera = camera, .output = output};
    claim_sink(claims, claim, &output->sink, "sink");
    const enum sink_kind lines = output->detections.sink.kind;
    if (output_config_has_op(output) && lines != SINK_RING && lines != SINK_RTSP) // refused there
        claim_sink(claims, claim, &output->detections.sink, "detections.sink");
    add_claim(claims, claim, CLAIM_MEMORY, output->shared.name, "shared");
}

static int compare_claims(const void *left, const void *right)
{
    const struct claim *a = left, *b = right;
    const int text = strcmp(a->text, b->text);
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->port != b->port)
        return a->port < b->port ? -1 : 1;
    return text ? text : a->order - b->order;
}

static void note_rival(struct mistakes *mistakes, const struct claim *claim,
                       const struct claim *rival)
{
    char key[KEY_MAX], name[KEY_MAX];
    const char *what = claim->kind == CLAIM_MEMORY ? "memory" : "sink";
    const struct place at = object_value_place(&output_table, claim->output, claim->key);
    if (claim->camera)
        snprintf(key, sizeof key, "cameras.%s.outputs.%s.%s", claim->camera, claim->output->name,
                 claim->key);
    else
        snprintf(key, sizeof key, "batches.%s.%s", claim->output->name, claim->key);
    if (rival->camera)
        snprintf(name, sizeof name, "cameras.%s.outputs.%s", rival->camera, rival->output->name);
    else
        snprintf(name, sizeof name, "batches.%s", rival->output->name);
    if (rival->output == claim->output)
        mistake(mistakes, at, key, "is the output's own (detections need another)");
    else
        mistake(mistakes, at, key, "is already the %s of %s (each output needs its own)", what,
                name);
}

static const struct claim *earlier_claim(const struct claim *a, const struct claim *b)
{
    return !a || (b && b->order < a->order) ? b : a;
}

// Checks the claims with the kind and port of `from`, and returns their end. Equal texts are
// adjacent; on a port a wildcard address collides with every other.
static const struct claim *check_claims(struct mistakes *mistakes, const struct claim *from,
                                        const struct claim *end)
{
    const struct claim *first = NULL, *wildcard = NULL, *same = from, *to = from;
    for (; to < end && to->kind == from->kind && to->port == from->port; to++) {
        first = earlier_claim(first, to);
        if (to->kind == CLAIM_PORT && address_is_wildcard(to->text))
            wildcard = earlier_claim(wildcard, to);
    }
    for (const struct claim *claim = from; claim < to; claim++) {
        if (strcmp(claim->text, same->text) != 0)
            same = claim;
        const bool any = claim->kind == CLAIM_PORT && address_is_wildcard(claim->text);
        const struct claim *rival = any ? first : earlier_claim(same, wildcard);
        if (rival->order < claim->order)
            note_rival(mistakes, claim, rival);
    }
    return to;
}

int check_rivals(struct mistakes *mistakes, const struct config *config)
{
    enum { CLAIMS_OF_ONE = 3 };
    size_t n = (size_t)config->n_batches;
    for (int i = 0; i < config->n_cameras; i++)
        n += (size_t)config->cameras[i].n_outputs;
    struct claims claims = {.list = calloc(n * CLAIMS_OF_ONE + 1, sizeof *claims.list)};
    if (!claims.list)
        return -ENOMEM;
    for (int i = 0; i < config->n_cameras; i++)
        for (int o = 0; o < config->cameras[i].n_outputs; o++)
            if (!config->cameras[i].outputs[o].is_batch)
                claim_output(&claims, config->cameras[i].name, &config->cameras[i].outputs[o]);
    for (int i = 0; i < config->n_batches; i++)
        claim_output(&claims, NULL, &config->batches[i]);
    qsort(claims.list, (size_t)claims.n, sizeof *claims.list, compare_claims);
    const struct claim *claim = claims.list, *end = claim + claims.n;
    while (claim < end)
        claim = check_claims(mistakes, claim, end);
    free(claims.list);
    return 0;
}
