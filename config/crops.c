#include "config/crops.h"

#include <stdarg.h>
#include <string.h>

#include "config/object.h"
#include "config/value.h"

struct crops_check {
    struct mistakes *mistakes;
    const struct camera_config *camera;
    struct output_config *output;
};

static bool is_given(const struct crops_check *c, const char *key)
{
    return c->output->places.value[table_find(&output_table, key) - output_table.rows].line != 0;
}

__attribute__((format(printf, 3, 4))) static void refuse(const struct crops_check *c,
                                                         const char *key, const char *format, ...)
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
static void check_of(const struct crops_check *c)
{
    const struct output_config *of = find_output(c->camera, c->output->crops.of);
    if (!of)
        refuse(c, "crops.of",
               "names no output of camera %s, nor a batch that the camera is in (one of these with "
               "a ring)",
               c->camera->name);
    else if (of == c->output)
        refuse(c, "crops.of", "names the output itself (another output of the camera)");
    else if (of->crops.of)
        refuse(c, "crops.of",
               "names an output that has crops itself, whose elements are no pictures that are "
               "kept (an output that shows pictures)");
    else if (of->kernel == KERNEL_COPY)
        refuse(c, "crops.of", "names a copy of packets (an output with kernel warp or yuv)");
    else if (of->sink.kind != SINK_RING && of->sink.kind != SINK_NONE)
        refuse(c, "crops.of",
               "names an output whose clients cannot send back what they find (one with sink: "
               "ring:PATH)");
}

// Converts labels to numbers, by the labels of the other output.
static void find_classes(const struct crops_check *c)
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
        refuse(c, "crops.classes",
               "has the label %s, which is none of detections.labels of %s (numbers, or labels of "
               "those)",
               choice->name, of->name);
        return;
    }
}

static void check_keys(const struct crops_check *c)
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
        {"gate.change", "is not for crops, which come as results come (gate of the output that "
                        "crops.of names)"},
    };
    struct output_config *o = c->output;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (is_given(c, refused[i].key))
            refuse(c, refused[i].key, "%s", refused[i].why);
    value_free(table_find(&output_table, "roi"), o);
    o->crop = (struct crop){0};
    o->affine = (struct affine){0};
    o->fps = 0;
    o->gate = (struct gate_config){0};
    if (o->fit == FIT_RECT || o->fit == FIT_TORCHVISION)
        refuse(c, is_given(c, "fit") || !is_given(c, "preset") ? "fit" : "preset",
               "makes tensors whose size goes by the box, but the elements of a batch have one "
               "size");
    if (o->overflow == OVERFLOW_WAIT && is_given(c, "overflow"))
        refuse(c, "overflow",
               "wait is not for crops, for which no camera waits (auto | drop_oldest | "
               "drop_newest)");
    if (o->overflow == OVERFLOW_WAIT || o->overflow == OVERFLOW_AUTO)
        o->overflow = OVERFLOW_DROP_OLDEST;
    if (o->protocol == PROTOCOL_Y4M)
        refuse(c, is_given(c, "protocol") ? "protocol" : "sink",
               "y4m cannot hold the tensors of a batch (framed, npy or raw)");
}

// Refuses the other keys of crops without crops.of.
static void check_none(const struct crops_check *c)
{
    static const char *const details[] = {"crops.classes", "crops.margin", "crops.most",
                                          "crops.keep"};
    if (is_given(c, "crops.of"))
        return;
    for (size_t i = 0; i < sizeof details / sizeof *details; i++)
        if (is_given(c, details[i]))
            refuse(c, details[i], "has no effect without crops.of beside it");
}

void crops_settle(struct mistakes *mistakes, struct config *config)
{
    for (int i = 0; i < config->n_cameras; i++) {
        const struct camera_config *camera = &config->cameras[i];
        for (int o = 0; o < camera->n_outputs; o++) {
            const struct crops_check c = {mistakes, camera, &camera->outputs[o]};
            if (c.output->is_batch || c.output->kernel != KERNEL_WARP)
                continue;
            if (!c.output->crops.of) {
                check_none(&c);
                continue;
            }
            check_of(&c);
            find_classes(&c);
            check_keys(&c);
            c.output->capacity = c.output->crops.most;
        }
    }
}
