#include "config/check.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "config/address.h"
#include "config/object.h"
#include "config/op.h"
#include "config/pattern.h"
#include "config/url.h"
#include "config/value.h"

enum { TOKEN_MIN = 16 }; // bytes of http_token

struct check {
    struct mistakes *mistakes;
    const struct config *config;
    struct output_config *output;
    const struct given *given;
    const char *path;
};

static const struct given *find(const struct check *c, const char *key)
{
    const struct config_row *row = table_find(&output_table, key);
    assert(row);
    return &c->given[row - output_table.rows];
}

static bool is_given(const struct check *c, const char *key)
{
    return find(c, key)->key.line > 0;
}

static bool is_wrong(const struct check *c, const char *key)
{
    return find(c, key)->wrong;
}

// Where the value of `key` stands: the output itself where it comes from `defaults`.
static struct place place_of(const struct check *c, const char *key)
{
    return is_given(c, key) ? find(c, key)->value : c->output->place;
}

__attribute__((format(printf, 4, 5))) static void refuse(const struct check *c, struct place at,
                                                         const char *key, const char *format, ...)
{
    char dotted[KEY_MAX], what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    snprintf(dotted, sizeof dotted, "%s.%s", c->path, key);
    mistake(c->mistakes, at, dotted, "%s", what);
}

// --- keys that only the other kernel knows

static void check_kernel_keys(struct check *c)
{
    const struct config_row *kernel = table_find(&output_table, "kernel");
    if (is_wrong(c, "kernel"))
        return;
    for (int i = 0; i < output_table.n; i++) {
        const struct config_row *row = &output_table.rows[i];
        if (row_is_of(row, c->output->kernel) || !c->given[i].key.line || !row_in_section(row, ""))
            continue;
        const struct config_choice *other = kernel->choices;
        while (!row_is_of(row, (enum op_kind)other->value))
            other++;
        refuse(c, c->given[i].key, row->key, "is a key of kernel %s, and this output is %s",
               other->name, row_choice(kernel, c->output->kernel));
    }
}

static void check_matrix(struct check *c)
{
    struct colour_config *colour = &c->output->colour;
    if (colour->matrix != MATRIX_BT601_8BIT || is_wrong(c, "kernel"))
        return;
    if (c->output->kernel == OP_WARP && is_given(c, "colour.matrix"))
        refuse(c, find(c, "colour.matrix")->value, "colour.matrix",
               "bt601-8bit is a result of kernel yuv, not a source of warp (auto | bt601 | bt709 | "
               "bt2020)");
    else if (c->output->kernel == OP_WARP)
        colour->matrix = MATRIX_UNSPECIFIED;
    else if (is_given(c, "colour.matrix") && !is_given(c, "colour.range"))
        colour->range = RANGE_UNSPECIFIED; // one from `defaults` gives way
    else if (colour->range == RANGE_FULL)
        refuse(c, place_of(c, "colour.range"), "colour.range",
               "bt601-8bit has no full range (auto | limited)");
}

// --- geometry and channels of warp

static void check_affine(struct check *c)
{
    static const char *const excluded[] = {"fit", "rotate", "flip"};
    struct affine *affine = &c->output->affine;
    const double *m = affine->m;
    bool own = is_given(c, "affine");
    for (size_t i = 0; i < sizeof excluded / sizeof *excluded; i++) {
        if (!is_given(c, excluded[i]))
            continue;
        if (own)
            refuse(c, find(c, excluded[i])->key, excluded[i],
                   "cannot stand beside affine, which says it all (crop, size and fill can)");
        else
            affine->set = false; // one from `defaults` gives way to what the output says itself
    }
    if (affine->set && m[0] * m[4] == m[1] * m[3])
        refuse(c, place_of(c, "affine"), "affine",
               "cannot be inverted (a 2x3 matrix [a, b, c, d, e, f] with a*e - b*d other than 0)");
}

static void check_gray(struct check *c)
{
    const struct output_config *o = c->output;
    const struct {
        const char *key;
        int n;
    } lists[] = {
        {"fill", o->fill.n}, {"tensor.mean", o->tensor.mean.n}, {"tensor.std", o->tensor.std.n}};
    if (o->kernel != OP_WARP || o->tensor.order != ORDER_GRAY || is_wrong(c, "tensor.order"))
        return;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (lists[i].n == 3 && is_given(c, lists[i].key))
            refuse(c, find(c, lists[i].key)->value, lists[i].key,
                   "three entries for the one channel of gray (one entry)");
    }
}

// --- sink and protocol

static void check_sink(struct check *c)
{
    static const char *const of_files[] = {"mode", "group"};
    for (size_t i = 0; i < sizeof of_files / sizeof *of_files; i++) {
        if (c->output->sink.kind == SINK_TCP && is_given(c, of_files[i]))
            refuse(c, find(c, of_files[i])->key, of_files[i],
                   "means nothing for a tcp sink (unix:PATH, ring:PATH or file:PATH has it)");
    }
}

static void check_open(struct check *c)
{
    struct output_config *o = c->output;
    if (o->sink.kind == SINK_TCP && !o->open && !address_is_local(&o->sink) && !is_wrong(c, "open"))
        refuse(c, find(c, "sink")->value, "sink",
               "gives the pictures to everybody who can reach this box (open: true where that is "
               "meant, or tcp:127.0.0.1:PORT, tcp:[::1]:PORT)");
    else if (o->sink.kind != SINK_TCP && o->open && is_given(c, "open"))
        refuse(c, find(c, "open")->key, "open",
               "is for a tcp sink alone (sink: tcp:HOST:PORT; else mode and group)");
    else if (o->sink.kind != SINK_TCP)
        o->open = false; // one from `defaults` gives way
}

static void check_clients(struct check *c)
{
    struct output_config *o = c->output;
    if (o->sink.kind == SINK_FILE && is_given(c, "clients"))
        refuse(c, find(c, "clients")->key, "clients",
               "means nothing for a file (unix:PATH, ring:PATH or tcp:HOST:PORT has it)");
    if (o->sink.kind != SINK_RING || o->clients <= RING_CLIENTS_MAX)
        return;
    if (is_given(c, "clients"))
        refuse(c, find(c, "clients")->value, "clients", "is too many for a ring (1 to %d)",
               RING_CLIENTS_MAX);
    o->clients = RING_CLIENTS_MAX; // one from `defaults` gives way
}

static void check_memory(struct check *c)
{
    struct output_config *o = c->output;
    if (o->memory != MEMORY_CUDA)
        return;
    if (o->sink.kind != SINK_RING && is_given(c, "memory"))
        refuse(c, find(c, "memory")->value, "memory", "cuda is for a ring alone (sink: ring:PATH)");
    else if (o->sink.kind != SINK_RING)
        o->memory = MEMORY_HOST; // one from `defaults` gives way
    else if (c->config->backend == BACKEND_CPU)
        refuse(c, place_of(c, "memory"), "memory",
               "cuda is not there with backend: cpu (host, or backend: auto | cuda)");
}

static void check_segment(struct check *c)
{
    struct output_config *o = c->output;
    if (!o->segment.ns && !o->segment.bytes)
        return;
    if (o->sink.kind == SINK_FILE && !o->sink.timed)
        refuse(
            c, find(c, "sink")->value, "sink",
            "has no time in its name for the segments (%s; as in file:/data/%s.y4m; or segment: 0)",
            PATTERN_ALLOWED, "%Y%m%d-%H%M%S");
    else if (o->sink.kind != SINK_FILE && is_given(c, "segment"))
        refuse(c, find(c, "segment")->key, "segment", "is for a file alone (sink: file:PATH)");
    else if (o->sink.kind != SINK_FILE)
        o->segment = (struct split){0}; // one from `defaults` gives way
}

// The first output before this one whose sink is in its way, and its camera.
static const struct output_config *rival(const struct check *c, const struct camera_config **camera)
{
    for (int i = 0; i < c->config->n_cameras; i++) {
        *camera = &c->config->cameras[i];
        for (int j = 0; j < (*camera)->n_outputs; j++) {
            const struct output_config *other = &(*camera)->outputs[j];
            if (other == c->output)
                return NULL;
            if (address_collides(&other->sink, &c->output->sink))
                return other;
        }
    }
    return NULL;
}

static void check_rival(struct check *c)
{
    const struct camera_config *camera;
    const struct output_config *other = rival(c, &camera);
    if (other)
        refuse(c, find(c, "sink")->value, "sink",
               "is the sink of cameras.%s.outputs.%s already (one sink an output)", camera->name,
               other->name);
}

static enum protocol protocol_of_ending(const char *path)
{
    static const struct {
        const char *ending;
        enum protocol protocol;
    } endings[] = {{".framed", PROTOCOL_FRAMED},
                   {".y4m", PROTOCOL_Y4M},
                   {".npy", PROTOCOL_NPY},
                   {".raw", PROTOCOL_RAW},
                   {".bin", PROTOCOL_RAW}};
    const char *name = strrchr(path, '/');
    const char *dot = strrchr(name ? name : path, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++) {
        if (!strcmp(dot, endings[i].ending))
            return endings[i].protocol;
    }
    return PROTOCOL_AUTO;
}

static void settle_protocol(struct check *c)
{
    struct output_config *o = c->output;
    if (o->protocol != PROTOCOL_AUTO)
        return;
    o->protocol = o->sink.kind == SINK_FILE ? protocol_of_ending(o->sink.path) : PROTOCOL_FRAMED;
    if (o->protocol == PROTOCOL_AUTO)
        refuse(c, find(c, "sink")->value, "sink",
               "its ending tells no protocol (.framed .y4m .npy .raw .bin, or protocol: framed | "
               "y4m | npy | raw)");
}

static void settle_ring(struct check *c)
{
    enum protocol *protocol = &c->output->protocol;
    if (*protocol != PROTOCOL_AUTO && *protocol != PROTOCOL_FRAMED && is_given(c, "protocol"))
        refuse(c, find(c, "protocol")->value, "protocol",
               "a ring has its own, which carries every format (auto | framed)");
    *protocol = PROTOCOL_FRAMED; // one from `defaults` gives way
}

static void check_carried(struct check *c)
{
    const char *key = is_given(c, "protocol") ? "protocol" : "sink";
    if (output_config_fits(c->output, c->output->protocol))
        return;
    if (c->output->protocol == PROTOCOL_NPY)
        refuse(c, find(c, key)->value, key,
               "npy cannot carry this format (kernel warp, or format yuv444p or yuv24)");
    else
        refuse(c, find(c, key)->value, key,
               "y4m cannot carry this (format yuv420p or yuv444p, or kernel warp with tensor.order "
               "gray and tensor.dtype u8)");
}

static void check_protocol(struct check *c)
{
    static const char *const needed[] = {"kernel", "format", "protocol", "tensor.order",
                                         "tensor.dtype"};
    if (is_wrong(c, "protocol"))
        return;
    if (c->output->sink.kind == SINK_RING) {
        settle_ring(c);
        return;
    }
    settle_protocol(c);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (is_wrong(c, needed[i]))
            return;
    }
    check_carried(c);
}

void check_output(struct mistakes *mistakes, const struct config *config,
                  struct output_config *output, const struct given given[], const char *path)
{
    struct check c = {mistakes, config, output, given, path};
    check_kernel_keys(&c);
    check_matrix(&c);
    if (output->kernel == OP_WARP) {
        check_affine(&c);
        check_gray(&c);
    }
    if (output->sink.kind == SINK_NONE)
        return;
    check_sink(&c);
    check_open(&c);
    check_clients(&c);
    check_memory(&c);
    check_segment(&c);
    check_rival(&c);
    check_protocol(&c);
}

// --- the daemon's own sockets

static const struct given *find_root(const struct given given[], const char *key)
{
    return &given[table_find(&root_table, key) - root_table.rows];
}

static const char *token_wrong(const char *token)
{
    if (strlen(token) < TOKEN_MIN)
        return "is too short to be a secret";
    for (const char *c = token; *c; c++)
        if (*c <= ' ' || *c > '~')
            return "has characters that no header can carry";
    return NULL;
}

static void check_http(struct mistakes *mistakes, const struct config *config,
                       const struct given given[])
{
    const struct given *http = find_root(given, "http"), *token = find_root(given, "http_token");
    const char *wrong =
        config->http_token && !token->wrong ? token_wrong(config->http_token) : NULL;
    if (wrong)
        mistake(mistakes, token->value, "http_token", "%s (%d or more letters, digits and signs)",
                wrong, TOKEN_MIN);
    if (!address_is_local(&config->http.at) && !config->http_token && !token->wrong)
        mistake(
            mistakes, http->value, "http",
            "can be reached from other boxes, so it needs an http_token "
            "(http_token: ${NAME} of a credential, or 127.0.0.1:PORT, [::1]:PORT or unix:PATH)");
}

// Of the sockets of the daemon and the sinks, no two may be in each other's way.
static void check_path(struct mistakes *mistakes, const struct config *config, const char *key,
                       struct place at, const struct sink_address *address)
{
    for (int i = 0; i < config->n_cameras; i++) {
        const struct camera_config *camera = &config->cameras[i];
        for (int o = 0; o < camera->n_outputs; o++)
            if (address_collides(&camera->outputs[o].sink, address))
                mistake(mistakes, at, key, "is the sink of cameras.%s.outputs.%s too", camera->name,
                        camera->outputs[o].name);
    }
}

static struct place place_or_start(struct place at)
{
    return at.line ? at : (struct place){1, 1};
}

static int descriptor_of(const struct camera_config *camera)
{
    return camera->url && object_is_known(&camera_table, camera, "url")
               ? config_url_descriptor(camera->url)
               : -1;
}

// What one camera reads from a pipe is gone for the other.
static void check_descriptors(struct mistakes *mistakes, const struct config *config)
{
    char key[KEY_MAX];
    for (int i = 0; i < config->n_cameras; i++) {
        const struct camera_config *camera = &config->cameras[i];
        const int fd = descriptor_of(camera);
        int j = 0;
        while (fd >= 0 && j < i && descriptor_of(&config->cameras[j]) != fd)
            j++;
        if (fd < 0 || j == i)
            continue;
        snprintf(key, sizeof key, "cameras.%s.url", camera->name);
        mistake(mistakes, object_value_place(&camera_table, camera, "url"), key,
                "cameras.%s reads pipe:%d already (one camera a descriptor)",
                config->cameras[j].name, fd);
    }
}

void check_root(struct mistakes *mistakes, struct config *config, const struct given given[])
{
    struct place control = find_root(given, "control")->value;
    struct place http = find_root(given, "http")->value;
    config->control_place = place_or_start(control);
    config->http_place = place_or_start(http);
    check_http(mistakes, config, given);
    check_path(mistakes, config, "control", control, &config->control.at);
    check_path(mistakes, config, "http", http, &config->http.at);
    if (address_collides(&config->control.at, &config->http.at))
        mistake(mistakes, http, "http", "is the control socket too");
    check_descriptors(mistakes, config);
}

// --- cameras

static const char *url_mistake(const char *url)
{
    enum url_kind kind = config_url_kind(url);
    if (kind == URL_NONE)
        return "is no input that framed takes (rtsp:, tcp:, unix:, pipe:, file: or a path)";
    if ((kind == URL_RTSP || kind == URL_TCP) && !config_url_has_host(url))
        return "has no host, or a port that is none, before its path (scheme://host:port/..., "
               "port 1 to 65535, which tcp: must have; in a password / ? # @ : % are written "
               "%2F %3F %23 %40 %3A %25)";
    if (kind == URL_PIPE && config_url_descriptor(url) < 0)
        return "names no descriptor (pipe:N; pipe:0 is standard input)";
    if (!strcasecmp(url, "unix:") || !strcasecmp(url, "file:"))
        return "has no path (unix:PATH or file:PATH)";
    return NULL;
}

// Nobody is held up when a file is read more slowly. What another program feeds (a fifo, a device)
// may be live.
static bool is_file_at_full_pace(const struct camera_config *camera)
{
    struct stat st;
    if (!camera->url || config_url_kind(camera->url) != URL_FILE || camera->pace != PACE_FULL)
        return false;
    return stat(config_url_path(camera->url), &st) < 0 || S_ISREG(st.st_mode);
}

static void settle_overflow(struct camera_config *camera)
{
    enum overflow chosen = is_file_at_full_pace(camera) ? OVERFLOW_WAIT : OVERFLOW_DROP_OLDEST;
    for (int i = 0; i < camera->n_outputs; i++) {
        struct output_config *output = &camera->outputs[i];
        output->overflow_auto = output->overflow == OVERFLOW_AUTO;
        if (output->overflow_auto)
            output->overflow = chosen;
    }
}

// A scheme has no case (RFC 3986), but libavformat knows small letters alone.
static void settle_scheme(struct camera_config *camera)
{
    if (!camera->url || config_url_kind(camera->url) == URL_NONE || !strchr(camera->url, ':'))
        return;
    if (config_url_kind(camera->url) == URL_FILE && config_url_path(camera->url) == camera->url)
        return; // a path without a scheme
    for (char *c = camera->url; *c != ':'; c++)
        *c = (char)tolower((unsigned char)*c);
}

void check_camera(struct mistakes *mistakes, struct camera_config *camera,
                  const struct given given[], const char *path)
{
    const struct given *url = &given[table_find(&camera_table, "url") - camera_table.rows];
    char dotted[KEY_MAX];
    const char *wrong = url->key.line && !url->wrong ? url_mistake(camera->url) : NULL;
    settle_scheme(camera);
    settle_overflow(camera);
    if (!wrong)
        return;
    snprintf(dotted, sizeof dotted, "%s.url", path);
    mistake(mistakes, url->value, dotted, "%s", wrong);
}

void check_restart(struct mistakes *mistakes, const struct config *running,
                   const struct config *next, const struct given given[])
{
    for (int i = 0; i < root_table.n; i++) {
        const struct config_row *row = &root_table.rows[i];
        struct place at = place_or_start(given[i].value);
        if (row_has_value(row) && !row->live && !given[i].wrong && !value_equal(row, running, next))
            mistake(mistakes, at, row->key,
                    "needs a restart (a reload keeps what framed was started with)");
    }
}
