#include "config/check.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "config/cube.h"
#include "config/object.h"
#include "config/value.h"

enum { ELEMENTS_MIN = 8 }; // values of an integer type; fewer hold no picture
static const double F16_MOST = 65504, F16_INFINITE = 65520; // F16_INFINITE and up round to infinity

// State of one output while the rules between its keys are checked.
struct output_check {
    struct mistakes *mistakes;
    const struct config *config;
    struct output_config *output;
    const struct given *given;
    const char *path;
    const char *section; // "", or "detections." if `output` is from detections_as_output
    const struct output_config *whole; // the output itself, or the owner of the detections
};

static const struct given *given_of_key(const struct output_check *c, const char *key)
{
    char dotted[KEY_MAX];
    snprintf(dotted, sizeof dotted, "%s%s", c->section, key);
    const struct config_row *row = table_find(&output_table, dotted);
    assert(row);
    return &c->given[row - output_table.rows];
}

// Returns true if the file sets the key in this output, not under `defaults`.
static bool key_is_given(const struct output_check *c, const char *key)
{
    return given_of_key(c, key)->key.line > 0;
}

// Returns true if a mistake is noted already.
static bool key_is_wrong(const struct output_check *c, const char *key)
{
    return given_of_key(c, key)->wrong;
}

__attribute__((format(printf, 4, 5))) static void
refuse_at(const struct output_check *c, struct place at, const char *key, const char *format, ...)
{
    char dotted[KEY_MAX], what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    snprintf(dotted, sizeof dotted, "%s.%s%s", c->path, c->section, key);
    mistake(c->mistakes, at, dotted, "%s", what);
}

// Returns the value's place; if it is from `defaults`, the output's.
static struct place place_of_value(const struct output_check *c, const char *key)
{
    return key_is_given(c, key) ? given_of_key(c, key)->value : c->output->place;
}

// Each notes a mistake: that the output has the key, or that the key has this value.
#define refuse_key(c, name, ...)   refuse_at(c, given_of_key(c, name)->key, name, __VA_ARGS__)
#define refuse_value(c, name, ...) refuse_at(c, place_of_value(c, name), name, __VA_ARGS__)

// --- sinks

static void check_tcp(struct output_check *c)
{
    struct output_config *o = c->output;
    const bool tcp = o->sink.kind == SINK_TCP;
    if (tcp && key_is_given(c, "mode"))
        refuse_key(c, "mode",
                   "has no effect on a tcp sink (only on unix:PATH, ring:PATH and file:PATH)");
    if (tcp && key_is_given(c, "group"))
        refuse_key(c, "group",
                   "has no effect on a tcp sink (only on unix:PATH, ring:PATH and file:PATH)");
    if (tcp && !o->open && !address_is_local(&o->sink) && !key_is_wrong(c, "open"))
        refuse_value(c, "sink",
                     "lets everybody who can reach this machine read the frames (open: true to "
                     "allow that, or tcp:127.0.0.1:PORT, tcp:[::1]:PORT)");
    if (!tcp && o->open && key_is_given(c, "open"))
        refuse_key(c, "open",
                   "is only for a tcp sink (sink: tcp:HOST:PORT; other sinks have mode and group)");
    if (!tcp)
        o->open = false;
}

static void check_shared(struct output_check *c)
{
    const struct output_config *o = c->output;
    if (!o->shared.name || !output_config_has_op(o))
        return;
    if (o->sink.kind != SINK_RING)
        refuse_key(c, "shared", "is only for a ring (sink: ring:PATH)");
    else if (o->memory != RING_HOST)
        refuse_key(c, "shared", "is only for a ring's memory on the host (memory: host)");
}

static void check_ring(struct output_check *c)
{
    struct output_config *o = c->output;
    const bool ring = o->sink.kind == SINK_RING;
    if (ring && o->clients > RING_CLIENTS_MAX) {
        if (key_is_given(c, "clients"))
            refuse_value(c, "clients", "is too many for a ring (1 to %d)", RING_CLIENTS_MAX);
        o->clients = RING_CLIENTS_MAX;
    }
    const char *memory = row_choice(table_find(&output_table, "memory"), o->memory);
    if (ring && o->memory != RING_HOST && c->config->backend == BACKEND_CPU)
        refuse_value(c, "memory",
                     "%s needs the GPU, but backend is cpu (host, or backend: auto | cuda)",
                     memory);
    if (!ring && o->memory != RING_HOST) {
        if (key_is_given(c, "memory"))
            refuse_value(c, "memory", "%s is only for a ring (sink: ring:PATH)", memory);
        o->memory = RING_HOST;
    }
}

static bool split_is_set(const struct split *split)
{
    return split->ns || split->bytes;
}

static void check_file(struct output_check *c)
{
    struct output_config *o = c->output;
    const bool file = o->sink.kind == SINK_FILE, segmented = split_is_set(&o->segment);
    if (file && key_is_given(c, "clients"))
        refuse_key(c, "clients",
                   "has no effect on a file (only on unix:PATH, ring:PATH and tcp:HOST:PORT)");
    if (file && segmented && !o->sink.timed)
        refuse_value(
            c, "sink",
            "has no time in its name, which segment needs (%s; as in file:/data/%s.y4m; or "
            "segment: 0)",
            PATTERN_ALLOWED, "%Y%m%d-%H%M%S");
    if (file && split_is_set(&o->keep) && !o->sink.timed && key_is_given(c, "keep"))
        refuse_value(c, "keep",
                     "needs a time in the name of the files (%s; as in file:/data/%s.mp4)",
                     PATTERN_ALLOWED, "%Y%m%d-%H%M%S");
    if (!file && segmented && key_is_given(c, "segment"))
        refuse_key(c, "segment", "is only for a file (sink: file:PATH)");
    if (!file && split_is_set(&o->keep) && key_is_given(c, "keep"))
        refuse_key(c, "keep", "is only for files (sink: file:PATH)");
    if (!file)
        o->segment = (struct split){0};
    if (!file || !o->sink.timed)
        o->keep = (struct split){0};
}

// Keys of a file do not apply to a stream to another server.
static void check_rtsp(struct output_check *c)
{
    static const char *const keys[] = {"mode", "group", "protocol", "before"};
    const struct output_config *o = c->output;
    if (o->sink.kind != SINK_RTSP)
        return;
    if (o->kernel != KERNEL_COPY && o->kernel != KERNEL_STATS)
        refuse_value(c, "sink",
                     "rtsp is only for kernel copy (kernel: copy, or unix:PATH, "
                     "ring:PATH, tcp:HOST:PORT or file:PATH)");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (key_is_given(c, keys[i]))
            refuse_key(c, keys[i], "is only for a file (sink: file:PATH)");
}

// Returns true if the file gives the key a value other than its default.
static bool is_set_by_file(const struct output_check *c, const char *key)
{
    const struct config_row *row = &output_table.rows[given_of_key(c, key) - c->given];
    struct output_config plain = {0};
    const char *wrong;
    if (row->text)
        value_parse(row, &plain, &row->text, 1, &wrong);
    return key_is_given(c, key) && (!row->text || !value_equal(row, &plain, c->whole));
}

// Checks the lines of detections, which a ring's clients send. Their sink has an output's rules.
static void check_detections(struct output_check *c)
{
    static const char *const keys[] = {"sink",    "labels", "open", "clients",
                                       "segment", "keep",   "mode", "group"};
    struct output_config lines = detections_as_output(c->output);
    struct output_check of = *c;
    of.section = "detections.";
    of.output = &lines;
    const enum sink_kind kind = lines.sink.kind;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && output_config_has_op(c->output); i++) {
        if (!is_set_by_file(&of, keys[i]))
            continue;
        if (c->output->sink.kind != SINK_RING) {
            refuse_key(&of, keys[i],
                       "is only for a ring, whose clients send back what they found (sink: "
                       "ring:PATH)");
            return;
        }
        if (kind == SINK_NONE && strcmp(keys[i], "labels") && !key_is_wrong(&of, "sink"))
            refuse_key(&of, keys[i], "has no effect without detections.sink beside it");
    }
    if (kind == SINK_NONE || !output_config_has_op(c->output))
        return;
    if (kind == SINK_RING || kind == SINK_RTSP) {
        refuse_value(&of, "sink", "is not for lines (unix:PATH, tcp:HOST:PORT or file:PATH)");
        return;
    }
    check_tcp(&of);
    check_file(&of);
    c->output->detections.open = lines.open;
    c->output->detections.segment = lines.segment;
    c->output->detections.keep = lines.keep;
}

// --- protocols

static enum protocol protocol_of_ending(const char *path)
{
    static const struct {
        const char *ending;
        enum protocol protocol;
    } endings[] = {{".framed", PROTOCOL_FRAMED}, {".y4m", PROTOCOL_Y4M}, {".npy", PROTOCOL_NPY},
                   {".raw", PROTOCOL_RAW},       {".bin", PROTOCOL_RAW}, {".mp4", PROTOCOL_MP4},
                   {".mkv", PROTOCOL_MKV}};
    const char *name = strrchr(path, '/');
    const char *dot = strrchr(name ? name : path, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++) {
        if (!strcmp(dot, endings[i].ending))
            return endings[i].protocol;
    }
    return PROTOCOL_AUTO;
}

static void check_protocol(struct output_check *c)
{
    static const char *const needed[] = {"kernel", "format", "tensor.order", "tensor.dtype"};
    struct output_config *o = c->output;
    const char *key = key_is_given(c, "protocol") ? "protocol" : "sink";
    if (key_is_wrong(c, "protocol") || key_is_wrong(c, "kernel"))
        return;
    if (o->kernel == KERNEL_STATS) {
        o->protocol = PROTOCOL_LINES;
        return;
    }
    if (o->sink.kind == SINK_RTSP || (o->kernel == KERNEL_COPY && o->sink.kind != SINK_FILE)) {
        o->protocol = PROTOCOL_AUTO;
        return;
    }
    if (o->sink.kind == SINK_RING) {
        if (o->protocol != PROTOCOL_AUTO && o->protocol != PROTOCOL_FRAMED &&
            key_is_given(c, "protocol"))
            refuse_value(c, "protocol",
                         "is not for a ring, which has a protocol of its own (auto | framed)");
        o->protocol = PROTOCOL_FRAMED;
        return;
    }
    if (o->protocol == PROTOCOL_AUTO)
        o->protocol =
            o->sink.kind == SINK_FILE ? protocol_of_ending(o->sink.path) : PROTOCOL_FRAMED;
    const char *allowed = o->kernel == KERNEL_COPY ? ".mp4 .mkv, or protocol: mp4 | mkv"
                                                   : ".framed .y4m .npy .raw .bin, or protocol: "
                                                     "framed | y4m | npy | raw";
    if (o->protocol == PROTOCOL_AUTO) {
        refuse_value(c, "sink", "has an ending that does not tell the protocol (%s)", allowed);
        return;
    }
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (key_is_wrong(c, needed[i]))
            return;
    }
    const bool container = o->protocol == PROTOCOL_MP4 || o->protocol == PROTOCOL_MKV;
    if (o->is_batch && o->protocol == PROTOCOL_Y4M) {
        refuse_value(c, key, "y4m cannot hold the tensors of a batch (framed, npy or raw)");
        return;
    }
    if (output_config_fits(o, o->protocol))
        return;
    if (container || o->kernel == KERNEL_COPY)
        refuse_value(c, key, "%s (%s%s)",
                     container ? "mp4 and mkv hold packets of kernel copy alone"
                               : "does not hold the packets of kernel copy",
                     container ? "kernel: copy, or " : "", allowed);
    else if (o->protocol == PROTOCOL_NPY)
        refuse_value(c, key,
                     "npy cannot hold this format (kernel warp, or format yuv444p or yuv24)");
    else
        refuse_value(c, key,
                     "y4m cannot hold this (format yuv420p or yuv444p, or kernel warp with "
                     "tensor.order gray and tensor.dtype u8)");
}

static void check_sink(struct output_check *c)
{
    check_tcp(c);
    check_ring(c);
    check_shared(c);
    check_file(c);
    check_rtsp(c);
    check_protocol(c);
    check_detections(c);
}

// --- kernels

static void check_keys_of_kernel(struct output_check *c)
{
    const struct config_row *kernel = table_find(&output_table, "kernel");
    for (int i = 0; i < output_table.n; i++) {
        const struct config_row *row = &output_table.rows[i];
        if (row_is_of(row, c->output->kernel) || !c->given[i].key.line || !row_in_section(row, ""))
            continue;
        char others[64] = "";
        for (const struct config_choice *other = kernel->choices; other->name; other++)
            if (row_is_of(row, (enum kernel)other->value))
                snprintf(others + strlen(others), sizeof others - strlen(others), "%s%s",
                         *others ? " or " : "", other->name);
        refuse_key(c, row->key, "belongs to kernel %s, but this output has kernel %s", others,
                   row_choice(kernel, c->output->kernel));
    }
}

// Area and triangle weigh rows and columns separately.
static void check_filter(struct output_check *c)
{
    const struct output_config *o = c->output;
    const double *m = o->affine.m;
    const bool mixed = o->affine.set && !(m[1] == 0 && m[3] == 0) && !(m[0] == 0 && m[4] == 0);
    if (!filter_weighs(o->filter) || key_is_wrong(c, "affine") || key_is_wrong(c, "rotate"))
        return;
    if (mixed)
        refuse_value(c, "filter",
                     "area and triangle cannot be combined with this affine, which turns or skews "
                     "([a, 0, c, 0, e, f] or [0, b, c, d, 0, f], or filter bilinear)");
    else if (!o->affine.set && fmod(o->rotate, 90) != 0)
        refuse_value(c, "filter",
                     "area and triangle cannot be combined with this rotate (0, 90, 180 or 270 "
                     "degrees, or filter bilinear)");
}

// `crop`, `roi` and `tiles` each select the part of the picture that the elements show. One of them
// in the output itself replaces those in `defaults`.
static void check_regions(struct output_check *c)
{
    struct output_config *o = c->output;
    const struct {
        const char *key;
        bool set, given;
    } keys[] = {{"crop", o->crop.set, key_is_given(c, "crop")},
                {"roi", o->roi.name != NULL, key_is_given(c, "roi")},
                {"tiles.size", o->tiles.size > 0, o->tiles.size > 0}};
    for (int i = 0; i < 3; i++)
        for (int k = i + 1; k < 3; k++)
            if (keys[i].set && keys[k].set && keys[i].given == keys[k].given)
                refuse_value(c, keys[k].key, "cannot be combined with %s", keys[i].key);
    const bool given = keys[0].given || keys[1].given || keys[2].given;
    if (given && !keys[0].given)
        o->crop = (struct crop){0};
    if (given && !keys[1].given)
        value_free(table_find(&output_table, "roi"), o);
    if (!o->is_batch && o->roi.name && !strcmp(o->roi.name, ROI_ALL)) {
        if (keys[1].given)
            refuse_value(c, "roi",
                         "all is only for a batch, whose elements the regions are (a name of "
                         "`rois`, or batches: {NAME: ...})");
        value_free(table_find(&output_table, "roi"), o);
    }
}

static bool equals(const struct output_check *c, const struct output_config *other, const char *key)
{
    return value_equal(table_find(&output_table, key), c->output, other);
}

// Checks the keys that only some fits read.
static void check_fit(struct output_check *c)
{
    struct output_config *o = c->output;
    const bool limited = o->fit == FIT_LETTERBOX || o->fit == FIT_ULTRALYTICS ||
                         o->fit == FIT_RECT || o->fit == FIT_YOLOX || o->fit == FIT_MMDET;
    struct output_config plain = {.preset = o->preset};
    if (key_is_wrong(c, "fit") || key_is_wrong(c, "preset"))
        return;
    preset_values(&plain);
    if (!fit_follows_source(o->fit) && key_is_given(c, "stride") && !equals(c, &plain, "stride"))
        refuse_value(c, "stride", "is only for fit rect and torchvision");
    if (!limited && !o->scaleup && key_is_given(c, "scaleup"))
        refuse_value(c, "scaleup",
                     "false is only for fit letterbox, ultralytics, rect, yolox and mmdet (true)");
    if (!limited)
        o->scaleup = true;
    const int width = o->size.width % o->stride, height = o->size.height % o->stride;
    if (o->fit == FIT_RECT && (width || height) && !key_is_wrong(c, "size") &&
        !key_is_wrong(c, "stride"))
        refuse_value(c, key_is_given(c, "stride") ? "stride" : "size",
                     "of fit rect leaves sides that are no multiples of the stride (%dx%d, or "
                     "another stride than %d)",
                     o->size.width + (width ? o->stride - width : 0),
                     o->size.height + (height ? o->stride - height : 0), o->stride);
}

// Returns false if it refused a dtype of whole numbers, as the preset's elements are fractions. The
// preset's mean and std may hold for its own order of channels only.
static bool check_preset(struct output_check *c)
{
    static const char *const needed[] = {"preset",       "tensor.dtype", "tensor.order",
                                         "tensor.scale", "tensor.mean",  "tensor.std"};
    const struct output_config *o = c->output;
    struct output_config plain = {.preset = o->preset};
    const struct config_row *preset = table_find(&output_table, "preset");
    const struct config_row *order = table_find(&output_table, "tensor.order");
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (key_is_wrong(c, needed[i]))
            return true;
    preset_values(&plain);
    const bool mean = equals(c, &plain, "tensor.mean"), std = equals(c, &plain, "tensor.std");
    const bool by_channel = (mean && plain.tensor.mean.n == 3) || (std && plain.tensor.std.n == 3);
    const bool fractions = mean && std && equals(c, &plain, "tensor.scale") &&
                           (plain.tensor.scale.value < 1 || plain.tensor.std.n == 3);
    if (by_channel && o->tensor.order != plain.tensor.order)
        refuse_value(c, "tensor.order",
                     "is another order than that of preset %s's mean and std (%s, or tensor.mean "
                     "and tensor.std beside it)",
                     row_choice(preset, (int)o->preset),
                     row_choice(order, (int)plain.tensor.order));
    if (fractions && (o->tensor.dtype == DTYPE_U8 || o->tensor.dtype == DTYPE_S8))
        refuse_value(c, "tensor.dtype",
                     "has whole numbers, but preset %s makes fractions (f16 | f32, or "
                     "tensor.scale, tensor.mean and tensor.std beside it)",
                     row_choice(preset, (int)o->preset));
    return !fractions || (o->tensor.dtype != DTYPE_U8 && o->tensor.dtype != DTYPE_S8);
}

static double element_of(const struct tensor_config *tensor, int channel, int level)
{
    const double mean = tensor->mean.v[tensor->mean.n == 3 ? channel : 0];
    const double std = tensor->std.v[tensor->std.n == 3 ? channel : 0];
    return (level * tensor->scale.value - mean) / std;
}

// Returns the number of different elements that a channel's levels give in an integer type.
static int whole_elements(const struct tensor_config *tensor, int channel)
{
    const double least = tensor->dtype == DTYPE_U8 ? 0 : INT8_MIN, most = least + UINT8_MAX;
    double last = 0;
    int n = 0;
    for (int level = 0; level <= UINT8_MAX; level++) {
        const double element = fmin(fmax(rint(element_of(tensor, channel, level)), least), most);
        n += level == 0 || element != last;
        last = element;
    }
    return n;
}

// Refuses infinite elements, and whole numbers with fewer than ELEMENTS_MIN different values.
static void check_elements(struct output_check *c)
{
    static const char *const keys[] = {"tensor.scale", "tensor.std", "tensor.mean", "tensor.dtype",
                                       "tensor.order"};
    const struct tensor_config *tensor = &c->output->tensor;
    const bool whole = tensor->dtype == DTYPE_U8 || tensor->dtype == DTYPE_S8;
    const double infinite = tensor->dtype == DTYPE_F16 ? F16_INFINITE : FLT_MAX;
    double most = 0;
    int elements = ELEMENTS_MIN, blamed = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (key_is_wrong(c, keys[i]))
            return;
    for (int i = 0; i < (tensor->order == ORDER_GRAY ? 1 : 3); i++) {
        most = fmax(most, fmax(fabs(element_of(tensor, i, 0)), fabs(element_of(tensor, i, 255))));
        if (whole && whole_elements(tensor, i) < elements)
            elements = whole_elements(tensor, i);
    }
    while (blamed < 3 && !key_is_given(c, keys[blamed]))
        blamed++;
    const char *dtype = row_choice(table_find(&output_table, "tensor.dtype"), (int)tensor->dtype);
    if (!whole && !(most < infinite))
        refuse_value(c, keys[blamed],
                     "makes elements up to %g, which are infinite as %s (a magnitude up to %g%s)",
                     most, dtype, tensor->dtype == DTYPE_F16 ? F16_MOST : (double)FLT_MAX,
                     tensor->dtype == DTYPE_F16 ? ", or tensor.dtype f32" : "");
    else if (elements < ELEMENTS_MIN)
        refuse_value(c, keys[blamed],
                     "leaves %d different elements of 256 levels, since %s has whole numbers (at "
                     "least %d, or tensor.dtype f16 | f32)",
                     elements, dtype, ELEMENTS_MIN);
}

static void check_geometry(struct output_check *c)
{
    struct output_config *o = c->output;
    const double *m = o->affine.m;
    static const char *const excluded[] = {"preset", "fit", "scaleup", "stride", "rotate", "flip"};
    for (size_t i = 0; i < sizeof excluded / sizeof *excluded; i++) {
        if (key_is_given(c, excluded[i]) && key_is_given(c, "affine"))
            refuse_key(c, excluded[i], "cannot be combined with affine (crop, size and fill can)");
        else if (key_is_given(c, excluded[i]))
            o->affine.set = false;
    }
    if (o->affine.set && m[0] * m[4] == m[1] * m[3])
        refuse_value(
            c, "affine",
            "cannot be inverted (a 2x3 matrix [a, b, c, d, e, f] with a*e - b*d other than 0)");
    check_fit(c);
    check_regions(c);
    check_filter(c);
}

static void check_warp(struct output_check *c)
{
    struct output_config *o = c->output;
    const struct {
        const char *key;
        int n;
    } lists[] = {
        {"fill", o->fill.n}, {"tensor.mean", o->tensor.mean.n}, {"tensor.std", o->tensor.std.n}};
    check_geometry(c);
    if (check_preset(c))
        check_elements(c);
    if (o->colour.matrix == MATRIX_BT601_8BIT && key_is_given(c, "colour.matrix"))
        refuse_value(c, "colour.matrix",
                     "bt601-8bit is only for kernel yuv (auto | bt601 | "
                     "bt709 | bt2020)");
    else if (o->colour.matrix == MATRIX_BT601_8BIT)
        o->colour.matrix = MATRIX_UNSPECIFIED;
    if (o->tensor.order != ORDER_GRAY || key_is_wrong(c, "tensor.order"))
        return;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (lists[i].n == 3 && key_is_given(c, lists[i].key))
            refuse_value(c, lists[i].key,
                         "has three entries, but gray has one channel (one entry)");
    }
}

static const char *const geometry_keys[] = {"size",   "fit",    "scaleup", "stride",
                                            "filter", "affine", "rotate",  "flip",
                                            "crop",   "roi",    "edge",    "fill"};

// Geometry in `defaults` is for warp outputs. A yuv output resets each key of geometry that it does
// not set itself.
static void own_geometry(struct output_check *c)
{
    struct output_config *o = c->output;
    const char *wrong;
    for (size_t i = 0; i < sizeof geometry_keys / sizeof *geometry_keys; i++) {
        const struct config_row *row = table_find(&output_table, geometry_keys[i]);
        if (key_is_given(c, row->key))
            o->resized = true;
        else if (row->text)
            value_parse(row, o, &row->text, 1, &wrong);
    }
    if (!key_is_given(c, "affine"))
        o->affine = (struct affine){0};
    if (!key_is_given(c, "crop"))
        o->crop = (struct crop){0};
    if (!key_is_given(c, "roi"))
        value_free(table_find(&output_table, "roi"), o);
    if (!key_is_given(c, "size"))
        o->size = (struct dimensions){0};
}

static void check_yuv_geometry(struct output_check *c)
{
    static const char *const sized[] = {"fit", "scaleup", "stride"};
    own_geometry(c);
    if (!c->output->resized)
        return;
    for (size_t i = 0; i < sizeof sized / sizeof *sized; i++)
        if (key_is_given(c, sized[i]) && !key_is_given(c, "size"))
            refuse_key(c, sized[i], "needs a size to fit the picture into (size: WIDTHxHEIGHT)");
    if (c->output->fill.mean)
        refuse_value(c, "fill", "mean is only for kernel warp (0 to 255, or [R, G, B])");
    check_geometry(c);
}

static void check_yuv(struct output_check *c)
{
    struct colour_config *colour = &c->output->colour;
    check_yuv_geometry(c);
    if (colour->matrix != MATRIX_BT601_8BIT)
        return;
    if (key_is_given(c, "colour.matrix") && !key_is_given(c, "colour.range"))
        colour->range = RANGE_UNSPECIFIED;
    else if (colour->range == RANGE_FULL)
        refuse_value(c, "colour.range", "bt601-8bit has no full range (auto | limited)");
}

// Copied packets go only to files and RTSP, where no client takes them for frames.
static void check_copy(struct output_check *c)
{
    c->output->gate = (struct gate_config){0};
    const enum sink_kind sink = c->output->sink.kind;
    if (sink != SINK_NONE && sink != SINK_FILE && sink != SINK_RTSP)
        refuse_value(c, "sink",
                     "is not for kernel copy (file:PATH.mp4, file:PATH.mkv or rtsp://HOST/PATH)");
    if (c->output->overflow == OVERFLOW_DROP_OLDEST && key_is_given(c, "overflow"))
        refuse_value(c, "overflow",
                     "is not for kernel copy, whose packets need those before them (auto | "
                     "drop_newest | wait)");
}

static void check_stats(struct output_check *c)
{
    const enum sink_kind sink = c->output->sink.kind;
    if (sink == SINK_RING || sink == SINK_RTSP)
        refuse_value(c, "sink",
                     "is not for the lines of kernel stats (unix:PATH, tcp:HOST:PORT or "
                     "file:PATH)");
    if (c->output->overflow == OVERFLOW_DROP_NEWEST && key_is_given(c, "overflow"))
        refuse_value(c, "overflow",
                     "is not for the lines of kernel stats, of which the oldest go (auto | "
                     "drop_oldest | wait)");
}

// --- batches

// Checks that all elements of the batch can be tensors of one shape.
static void check_batch(struct output_check *c)
{
    static const char *const details[] = {"tiles.overlap", "tiles.full"};
    const struct output_config *o = c->output;
    if (o->kernel != KERNEL_WARP)
        refuse_value(c, "kernel",
                     "is not for a batch, whose elements are tensors of one size (warp)");
    if (o->count && o->per_camera > o->count)
        refuse_value(c, "per_camera", "is more than the batch holds (count: %d)", o->count);
    if (o->order == BATCH_FIXED && o->per_camera > 1)
        refuse_value(c, "per_camera",
                     "cannot be combined with order fixed, where each member has one index (1, or "
                     "order: arrival)");
    if ((o->fit == FIT_RECT || o->fit == FIT_TORCHVISION) && !o->affine.set)
        refuse_value(c, key_is_given(c, "fit") || !key_is_given(c, "preset") ? "fit" : "preset",
                     "makes tensors whose size goes by the source, but the elements of a batch "
                     "have one size");
    if (o->affine.set && o->tiles.size)
        refuse_value(c, "affine", "cannot be combined with tiles");
    for (size_t i = 0; i < sizeof details / sizeof *details; i++)
        if (key_is_given(c, details[i]) && !key_is_given(c, "tiles.size"))
            refuse_key(c, details[i], "has no effect without tiles.size beside it");
    if (o->order == BATCH_FIXED && o->tiles.size)
        refuse_value(c, "order",
                     "fixed cannot be combined with tiles, whose number hangs on the picture "
                     "(arrival)");
}

// --- gate

// Refuses gate.hold and gate.every without a gate to hold or open, unless the output itself sets
// gate.motion (false).
static void check_gate(struct output_check *c)
{
    if (c->output->gate.motion || key_is_given(c, "gate.motion"))
        return;
    if (key_is_given(c, "gate.hold"))
        refuse_key(c, "gate.hold", "has no effect without gate.motion beside it");
    if (key_is_given(c, "gate.every") && !gone_is_used(c->config, "gate.change"))
        refuse_key(c, "gate.every", "has no effect without gate.motion beside it");
}

// --- LUT

static const struct lut *lut_of(const struct output_config *of, const struct output_config *like)
{
    const bool same = of != like && of->lut.lut && of->interpolation == like->interpolation &&
                      strcmp(of->lut.path, like->lut.path) == 0;
    return same ? of->lut.lut : NULL;
}

// Returns the LUT that an earlier output read from the same file, or NULL.
static const struct lut *lut_read_earlier(const struct config *config,
                                          const struct output_config *like)
{
    const struct lut *found = NULL;
    for (int i = 0; !found && i < config->n_cameras; i++)
        for (int o = 0; !found && o < config->cameras[i].n_outputs; o++)
            found = lut_of(&config->cameras[i].outputs[o], like);
    for (int i = 0; !found && i < config->n_batches; i++)
        found = lut_of(&config->batches[i], like);
    return found;
}

static void check_lut(struct output_check *c)
{
    struct output_config *o = c->output;
    char wrong[CUBE_MISTAKE_MAX];
    struct lut *lut = NULL;
    if (o->lut.path == NULL && o->interpolation != LUT_TRILINEAR &&
        key_is_given(c, "interpolation"))
        refuse_key(c, "interpolation", "has no effect without lut beside it");
    if (o->lut.path == NULL || key_is_wrong(c, "lut") || key_is_wrong(c, "interpolation"))
        return;
    if (c->config->closed)
        return;
    o->lut.lut = lut_ref(lut_read_earlier(c->config, o));
    if (o->lut.lut)
        return;
    const char *name = object_shown(&output_table, o, "lut", o->lut.path);
    if (cube_read(&lut, o->lut.path, name, o->interpolation, wrong) < 0)
        refuse_value(c, "lut", "%s", wrong);
    o->lut.lut = lut;
}

static void (*const kernel_checks[])(struct output_check *) = {
    [KERNEL_WARP] = check_warp,
    [KERNEL_YUV] = check_yuv,
    [KERNEL_COPY] = check_copy,
    [KERNEL_STATS] = check_stats,
};

void check_output(struct mistakes *mistakes, const struct config *config,
                  struct output_config *output, const struct given given[], const char *path)
{
    struct output_check c = {mistakes, config, output, given, path, "", output};
    if (!key_is_wrong(&c, "kernel")) {
        check_keys_of_kernel(&c);
        kernel_checks[output->kernel](&c);
        if (output->is_batch)
            check_batch(&c);
        check_gate(&c);
        if (output->kernel != KERNEL_COPY)
            check_lut(&c);
    }
    if (output->sink.kind != SINK_NONE)
        check_sink(&c);
}
