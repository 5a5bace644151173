#include "config/check_sink.h"

#include <string.h>

#include "config/address.h"
#include "config/config.h"
#include "config/object.h"
#include "config/value.h"

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

static bool is_set(const struct split *split)
{
    return split->ns || split->bytes;
}

static void check_file(struct output_check *c)
{
    struct output_config *o = c->output;
    const bool file = o->sink.kind == SINK_FILE, segmented = is_set(&o->segment);
    if (file && key_is_given(c, "clients"))
        refuse_key(c, "clients",
                   "has no effect on a file (only on unix:PATH, ring:PATH and tcp:HOST:PORT)");
    if (file && segmented && !o->sink.timed)
        refuse_value(
            c, "sink",
            "has no time in its name, which segment needs (%s; as in file:/data/%s.y4m; or "
            "segment: 0)",
            PATTERN_ALLOWED, "%Y%m%d-%H%M%S");
    if (file && is_set(&o->keep) && !o->sink.timed && key_is_given(c, "keep"))
        refuse_value(c, "keep",
                     "needs a time in the name of the files (%s; as in file:/data/%s.mp4)",
                     PATTERN_ALLOWED, "%Y%m%d-%H%M%S");
    if (!file && segmented && key_is_given(c, "segment"))
        refuse_key(c, "segment", "is only for a file (sink: file:PATH)");
    if (!file && is_set(&o->keep) && key_is_given(c, "keep"))
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
    detections_take(c->output, &lines);
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

void check_sink(struct output_check *c)
{
    check_tcp(c);
    check_ring(c);
    check_shared(c);
    check_file(c);
    check_rtsp(c);
    check_protocol(c);
    check_detections(c);
}
