// Configurations that load, and the resulting structs.
#include "config/load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "config/config.h"
#include "config/object.h"
#include "kernels/processors.h"
#include "tests/test.h"

static struct config *load(const char *text)
{
    struct config *config = NULL;
    int status = config_load_text(&config, text, strlen(text), "text", stderr);
    CHECK(status == 0 && config, "%d mistakes in: %s", status, text);
    return config;
}

static void test_design_example(void)
{
    setenv("GATE_PASSWORD", "hunter2", 1);
    struct config *c =
        load("backend: cpu\n"
             "defaults: {transport: udp}\n"
             "cameras:\n"
             "  gate:\n"
             "    url: rtsp://viewer:${GATE_PASSWORD}@10.0.0.5/stream1\n"
             "    options: {pixel_format: bgra, key: \"${GATE_PASSWORD}\"}\n"
             "    outputs:\n"
             "      detector:\n"
             "        size: 320x240\n"
             "        tensor: {dtype: f32, layout: nhwc, order: bgr, scale: 1/255,\n"
             "                 mean: [0.5, 0.25, 0], std: 2}\n"
             "        fill: [1, 2, 3]\n"
             "        crop: [8, 6, 64, 48]\n"
             "        sink: unix:/run/framed/gate-detector.sock\n"
             "      archive:\n"
             "        kernel: yuv\n"
             "        sink: file:/var/lib/framed/gate.y4m\n"
             "  door: {url: door.mp4, outputs: {a: {sink: 'tcp:0'}}, transport: tcp}\n");
    if (!c)
        return;
    struct camera_config *gate = &c->cameras[0], *door = &c->cameras[1];
    CHECK(c->backend == BACKEND_CPU && c->n_cameras == 2, "%d", c->n_cameras);
    CHECK(!strcmp(gate->name, "gate") && gate->place.line == 4 && gate->place.column == 3, "%d:%d",
          gate->place.line, gate->place.column);
    CHECK(!strcmp(gate->url, "rtsp://viewer:hunter2@10.0.0.5/stream1"), "%s", gate->url);
    CHECK(gate->transport == TRANSPORT_UDP && door->transport == TRANSPORT_TCP, "inherited");
    CHECK(gate->options.n == 2 && !strcmp(gate->options.list[1].name, "key") &&
              !strcmp(gate->options.list[1].value, "hunter2"),
          "%d options", gate->options.n);
    CHECK(gate->n_outputs == 2 && gate->outputs[1].protocol == PROTOCOL_Y4M &&
              gate->outputs[0].protocol == PROTOCOL_FRAMED,
          "protocols");
    CHECK(!strcmp(door->url, "door.mp4") && door->outputs[0].sink.kind == SINK_TCP, "door");
    config_free(c);
}

// Returns the number of mistakes in a text; the caller frees `printed`.
static int mistakes_of(const char *text, bool closed, char **printed)
{
    struct config *config = NULL;
    size_t size;
    FILE *errors = open_memstream(printed, &size);
    const int status = closed ? config_load_closed(&config, text, "text", errors)
                              : config_load_text(&config, text, strlen(text), "text", errors);
    fclose(errors);
    config_free(config);
    return status;
}

static void test_closed_paths(void)
{
    static const char *const folders[] = {"/tmp/../tmp", "/tmp/framed-nowhere/.."};
    char text[512], *printed;
    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof text,
                 "control: /tmp/c.sock\n"
                 "cameras: {a: {url: x, outputs: {o: {sink: 'file:%s/o.raw'},\n"
                 "  p: {sink: 'file:/tmp/o.raw'}, q: {sink: 'unix:%s/c.sock'}}}}\n",
                 folders[i % 2], folders[i % 2]);
        const bool closed = i >= 2, same = !closed && i == 0;
        const int status = mistakes_of(text, closed, &printed);
        CHECK(status == (same ? 2 : 0), "%s, closed %d: %d: %s", folders[i % 2], closed, status,
              printed);
        free(printed);
    }
    const int status =
        mistakes_of("cameras: {a: {url: x, outputs: {o: {sink: 'file:/a/./b//o.raw'},"
                    " p: {sink: 'file:/a/b/o.raw'}, q: {sink: 'file:./o.raw'},"
                    " r: {sink: 'file:o.raw'}, s: {sink: 'file:/o.raw'}}}}\n",
                    true, &printed);
    CHECK(status == 2 &&
              strstr(printed, "outputs.p.sink: is already the sink of cameras.a.outputs.o") &&
              strstr(printed, "outputs.r.sink: is already the sink of cameras.a.outputs.q"),
          "%d: %s", status, printed);
    free(printed);
}

// Aliases, or a list that contains them, repeat one long text until the whole is too large.
static void test_long_aliases(void)
{
    enum { BYTES = 4000, MOST = (8 << 20) / BYTES };
    for (int nested = 0; nested < 2; nested++)
        for (int n = MOST - 2; n <= MOST + 2; n += 4) {
            char *text, *printed;
            size_t size;
            FILE *to = open_memstream(&text, &size);
            fprintf(to, nested ? "group: [&a [%0*d]" : "group: [&a %0*d", BYTES, 1);
            for (int i = 1; i < n; i++)
                fputs(", *a", to);
            fputs("]\n", to);
            fclose(to);
            mistakes_of(text, true, &printed);
            CHECK(!strstr(printed, "too long a text with its aliases written out") == (n < MOST),
                  "%d of %d: %s", n, BYTES, printed);
            free(printed);
            free(text);
        }
}

// Each camera has its own copy of `defaults`.
static void test_long_defaults(void)
{
    enum { CAMERAS = 1000, OPTIONS = 16 };
    for (int length = 1000; length <= 4000; length += 3000) {
        char *text, *printed;
        size_t size;
        FILE *to = open_memstream(&text, &size);
        fputs("defaults: {options: {l: x", to);
        for (int i = 1; i < OPTIONS; i++)
            fprintf(to, ", k%d: '%0*d'", i, length, 1);
        fputs("}}\ncameras:\n", to);
        for (int i = 0; i < CAMERAS; i++)
            fprintf(to, "  c%d: {url: x, outputs: {o: {size: 8x8, sink: 'tcp:0'}}}\n", i);
        fclose(to);
        const int status = mistakes_of(text, true, &printed);
        const char *found = strstr(printed, "defaults: are too long for so many cameras");
        CHECK(!found == (length == 1000), "%d: %d: %.200s", length, status, printed);
        CHECK(!found || !strstr(found + 1, "defaults:"), "said twice: %.400s", printed);
        free(printed);
        free(text);
    }
}

static void test_defaults(void)
{
    struct config *c = load("cameras:\n"
                            "  a:\n"
                            "    url: x\n"
                            "    outputs:\n"
                            "      o: {sink: 'tcp:0', slots: 9}\n"
                            "      p: {sink: 'tcp:0', kernel: yuv}\n"
                            "  b:\n"
                            "    url: y\n"
                            "    fps: 5\n"
                            "    options: {d: e}\n"
                            "    outputs: {o: {sink: 'tcp:0', fit: crop, tensor: {scale: 2}}}\n"
                            "defaults: {fps: 25, slots: 8, group: video, options: {a: b, c: d},\n"
                            "           tensor: {dtype: f16}, affine: [1, 0, 0, 0, 1, 0],\n"
                            "           colour: {matrix: bt601-8bit}}\n");
    if (!c)
        return;
    struct camera_config *a = &c->cameras[0], *b = &c->cameras[1];
    struct output_config *o = &a->outputs[0], *p = &a->outputs[1], *bo = &b->outputs[0];
    CHECK(a->fps == 25 && b->fps == 5, "%g %g", a->fps, b->fps);
    CHECK(o->fps == 0, "fps is the camera's, and not %g of the output", o->fps);
    CHECK(o->slots == 9 && p->slots == 8 && bo->slots == 8, "%d %d", o->slots, p->slots);
    CHECK(!strcmp(o->group, "video") && o->group != p->group, "each has a group of its own");
    CHECK(a->options.n == 2 && b->options.n == 1 && !strcmp(b->options.list[0].name, "d"),
          "options");
    CHECK(bo->tensor.dtype == DTYPE_F16 && bo->tensor.scale.value == 2, "sections merge");
    CHECK(o->affine.set && !bo->affine.set, "an output's fit beats the affine of defaults");
    CHECK(o->colour.matrix == MATRIX_UNSPECIFIED && p->colour.matrix == MATRIX_BT601_8BIT,
          "bt601-8bit from defaults is for yuv alone");
    config_free(c);
}

// A key of an output overrides a default that excludes it.
static void test_range_gives_way(void)
{
    struct config *c = load("cameras: {a: {url: x, outputs: {\n"
                            "  m: {sink: 'tcp:0', kernel: yuv, colour: {matrix: bt601-8bit}},\n"
                            "  w: {sink: 'tcp:0'}}}}\n"
                            "defaults: {colour: {range: full}}\n");
    if (!c)
        return;
    const struct output_config *m = &c->cameras->outputs[0], *w = &c->cameras->outputs[1];
    CHECK(m->colour.range == RANGE_UNSPECIFIED, "%d: the kernel refuses another", m->colour.range);
    CHECK(w->colour.range == RANGE_FULL, "%d", w->colour.range);
    config_free(c);
}

static void test_protocols(void)
{
    struct config *c =
        load("cameras: {a: {url: x, outputs: {\n"
             "  a: {sink: 'file:a.framed'}, b: {sink: 'file:b.npy'}, c: {sink: 'file:c.raw'},\n"
             "  d: {sink: 'file:d.bin', kernel: yuv, format: nv12}, e: {sink: 'file:e', protocol: "
             "raw},\n"
             "  f: {sink: 'tcp:0', protocol: y4m, tensor: {order: gray}},\n"
             "  g: {sink: 'file:g.npy', kernel: yuv, format: yuv444p},\n"
             "  h: {sink: 'file:h.npy', protocol: framed, kernel: yuv},\n"
             "  i: {sink: 'tcp:0', protocol: npy, kernel: yuv, format: yuv24}}}}");
    static const enum protocol expected[] = {PROTOCOL_FRAMED, PROTOCOL_NPY,    PROTOCOL_RAW,
                                             PROTOCOL_RAW,    PROTOCOL_RAW,    PROTOCOL_Y4M,
                                             PROTOCOL_NPY,    PROTOCOL_FRAMED, PROTOCOL_NPY};
    if (!c)
        return;
    CHECK(c->cameras->n_outputs == 9, "%d", c->cameras->n_outputs);
    for (int i = 0; i < c->cameras->n_outputs; i++)
        CHECK(c->cameras->outputs[i].protocol == expected[i], "output %d", i);
    config_free(c);
}

// `auto` waits where waiting delays a file only.
static void test_overflow(void)
{
    static const struct {
        const char *camera;
        enum overflow overflow;
    } cases[] = {
        {"url: no_such.mp4", OVERFLOW_WAIT},
        {"url: 'file:/etc/passwd', loop: true", OVERFLOW_WAIT},
        {"url: no_such.mp4, pace: realtime", OVERFLOW_DROP_OLDEST},
        {"url: 'rtsp://h/s'", OVERFLOW_DROP_OLDEST},
        {"url: 'tcp://h:1'", OVERFLOW_DROP_OLDEST},
        {"url: 'unix:/s'", OVERFLOW_DROP_OLDEST},
        {"url: 'pipe:0'", OVERFLOW_DROP_OLDEST},
        {"url: /dev/null", OVERFLOW_DROP_OLDEST},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "cameras: {a: {%s, outputs: {o: {sink: 'tcp:0'}, p: {sink: 'tcp:0', overflow: "
                 "drop_newest}, q: {sink: 'tcp:0', overflow: wait}}}}",
                 cases[i].camera);
        struct config *c = load(text);
        if (!c)
            continue;
        const struct output_config *o = c->cameras->outputs;
        CHECK(o[0].overflow == cases[i].overflow && o[0].overflow_auto, "%s: %d", cases[i].camera,
              (int)o[0].overflow);
        CHECK(o[1].overflow == OVERFLOW_DROP_NEWEST && o[2].overflow == OVERFLOW_WAIT &&
                  !o[1].overflow_auto && !o[2].overflow_auto,
              "what the output says itself holds: %s", cases[i].camera);
        config_free(c);
    }
}

// Every camera that matches the patterns has an output with the batch's name.
static void test_batches(void)
{
    struct config *c =
        load("batches:\n"
             "  all: {cameras: ['*', '!b*', 'b2'], sink: 'ring:/all', size: 8x4}\n"
             "  two: {cameras: b?, sink: 'file:/two.npy', count: 7, wait: 0, "
             "group: video, per_camera: 3}\n"
             "cameras:\n"
             "  a: {url: x, outputs: {o: {sink: 'tcp:0'}}}\n"
             "  b1: {url: rtsp://h/}\n"
             "  b2: {url: x, pace: realtime}\n"
             "  c: {url: x}\n"
             "defaults: {tensor: {dtype: f16}, slots: 3, tail: zero, crop: [0, 0, 4, 4]}\n");
    static const char *const outputs[] = {"a o all", "b1 two", "b2 all two", "c all"};
    if (!c)
        return;
    const struct output_config *all = &c->batches[0], *two = &c->batches[1];
    CHECK(c->n_batches == 2 && c->n_cameras == 4, "%d batches", c->n_batches);
    for (int i = 0; i < c->n_cameras; i++) {
        const struct camera_config *camera = &c->cameras[i];
        char names[64];
        int n = snprintf(names, sizeof names, "%s", camera->name);
        for (int o = 0; o < camera->n_outputs; o++)
            n += snprintf(names + n, sizeof names - (size_t)n, " %s", camera->outputs[o].name);
        CHECK(!strcmp(names, outputs[i]), "%s", names);
    }
    const struct output_config *o = &c->cameras[0].outputs[0], *member = &c->cameras[0].outputs[1];
    const struct output_config *live = &c->cameras[2].outputs[1];
    CHECK(!o->is_batch && all->is_batch && member->is_batch, "is_batch");
    CHECK(all->capacity == 3 && member->capacity == 3 && all->count == 0 &&
              all->wait.ns == WAIT_AUTO,
          "%d elements", all->capacity);
    CHECK(two->capacity == 7 && two->count == 7 && two->wait.ns == 0 && two->per_camera == 3, "%d",
          two->capacity);
    CHECK(all->order == BATCH_ARRIVAL && all->tail == BATCH_ZERO && all->slots == 3 &&
              all->tensor.dtype == DTYPE_F16 && all->size.height == 4 && member->size.width == 8,
          "the keys of an output");
    CHECK(member->name != all->name && member->sink.path != all->sink.path &&
              live->group != two->group && member->cameras.list != all->cameras.list,
          "memory of its own");
    CHECK(member->place.line == 2 && live->place.line == 3, "line %d", member->place.line);
    CHECK(all->overflow == OVERFLOW_AUTO && member->overflow == OVERFLOW_WAIT &&
              member->overflow_auto && live->overflow == OVERFLOW_DROP_OLDEST,
          "overflow");
    CHECK(two->protocol == PROTOCOL_NPY && live->protocol == PROTOCOL_NPY, "protocol");
    config_free(c);
}

// `count: auto` gives one element per member, at most 32 and at least as many as one camera may
// take.
static void test_batch_capacity(void)
{
    static const struct {
        int cameras;
        const char *keys;
        int capacity;
    } cases[] = {{1, "", 1},
                 {31, "", 31},
                 {32, "", 32},
                 {33, "", 32},
                 {2, ", per_camera: 16", 16},
                 {33, ", count: 200", 200},
                 {32, ", order: fixed", 32}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[2048];
        int n =
            snprintf(text, sizeof text,
                     "{batches: {b: {cameras: '*', sink: 'ring:/s'%s}}, cameras: {", cases[i].keys);
        for (int k = 0; k < cases[i].cameras; k++)
            n += snprintf(text + n, sizeof text - (size_t)n, "c%d: {url: x}, ", k);
        snprintf(text + n, sizeof text - (size_t)n, "}}");
        struct config *c = load(text);
        if (c)
            CHECK(c->batches->capacity == cases[i].capacity, "%d cameras%s: %d", cases[i].cameras,
                  cases[i].keys, c->batches->capacity);
        config_free(c);
    }
}

// A region replaces a crop; a batch may have all regions of each member, or tiles.
static void test_regions(void)
{
    struct config *c = load("defaults: {crop: [0, 0, 4, 4]}\n"
                            "cameras:\n"
                            "  a:\n"
                            "    url: x\n"
                            "    rois: {door: [1, 2, 30, 40], lane: [5, 6, 70, 80]}\n"
                            "    outputs: {o: {sink: 'tcp:0', roi: lane}, p: {sink: 'tcp:0'}}\n"
                            "  b:\n"
                            "    url: x\n"
                            "    rois: {door: [9, 8, 7, 6]}\n"
                            "    outputs: {y: {sink: 'tcp:0', kernel: yuv, roi: door}}\n"
                            "batches:\n"
                            "  doors: {cameras: '*', sink: 'tcp:0', roi: door}\n"
                            "  all: {cameras: '*', sink: 'tcp:0', roi: all, per_camera: 4}\n"
                            "  tiles: {cameras: '*', sink: 'tcp:0', tiles: {size: 320}}\n"
                            "  small: {cameras: '*', sink: 'tcp:0', size: 64x48,\n"
                            "          tiles: {size: 640, overlap: 0%, full: false}}\n");
    struct op_params op;
    if (!c)
        return;
    const struct output_config *a = c->cameras[0].outputs, *b = c->cameras[1].outputs;
    CHECK(c->cameras[0].rois.n == 2 && !strcmp(c->cameras[0].rois.list[1].name, "lane") &&
              c->cameras[0].rois.list[1].rect.width == 70,
          "rois");
    output_config_op(&a[0], &op);
    CHECK(op.warp.crop.x == 5 && op.warp.crop.height == 80 && !a[0].crop.set, "roi of an output");
    output_config_op(&a[1], &op);
    CHECK(op.warp.crop.x == 0 && op.warp.crop.height == 4 && !a[1].roi.name, "crop of defaults");
    output_config_op(&b[0], &op);
    CHECK(op.yuv.resized && op.yuv.geometry.crop.width == 7, "roi of a yuv output");
    output_config_op(&b[1], &op);
    CHECK(op.warp.crop.x == 9 && op.warp.crop.height == 6, "roi of a batch");
    CHECK(a[2].roi.chosen.n == 1 && a[3].roi.chosen.n == 2 && b[2].roi.chosen.n == 1 &&
              !strcmp(a[3].roi.chosen.list[0].name, "door") && c->batches[1].roi.chosen.n == 0,
          "regions of the members");
    CHECK(c->batches[0].capacity == 2 && c->batches[1].capacity == 8 && b[2].capacity == 8,
          "%d elements", c->batches[1].capacity);
    CHECK(a[4].tiles.size == 320 && a[4].tiles.overlap.n == 20 && a[4].tiles.full &&
              a[4].size.width == 320 && a[4].size.height == 320 && a[4].capacity == 32 &&
              !a[4].crop.set,
          "tiles");
    CHECK(a[5].tiles.size == 640 && a[5].tiles.overlap.n == 0 && !a[5].tiles.full &&
              a[5].size.width == 64 && a[5].size.height == 48,
          "tiles of another size");
    config_free(c);
}

// `roi: all` in the defaults applies to batches only.
static void test_default_roi(void)
{
    struct config *c = load("{defaults: {roi: all}, cameras: {a: {url: x, rois: {r: [0, 0, 8, 8]}, "
                            "outputs: {o: {sink: 'tcp:0'}}}}, batches: {b: {cameras: a, sink: "
                            "'tcp:0'}}}");
    if (c)
        CHECK(!c->cameras->outputs[0].roi.name && c->cameras->outputs[1].roi.chosen.n == 1, "roi");
    config_free(c);
}

static void test_threads(void)
{
    static const char one[] = "", two[] = ", b: {url: 'rtsp://h/b', outputs: {o: {sink: 'tcp:1'}}}";
    const struct processors allowed = processors_allowed();
    const int n = processors_count(&allowed);
    const int alone = n > 4 ? 4 : n, shared = n < 2 ? 1 : n > 8 ? 4 : n / 2;
    const struct {
        const char *url, *keys, *more;
        int threads;
    } cases[] = {
        {"rtsp://h/s", "auto", one, alone}, {"rtsp://h/s", "auto", two, shared},
        {"tcp://h:1", "auto", one, alone},  {"pipe:0", "auto", one, 1},
        {"rtsp://h/s", "7", two, 7},        {"no_such.mp4", "auto", one, 1},
        {"no_such.mp4", "7", one, 7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "cameras: {a: {url: '%s', decode_threads: %s, outputs: {o: {sink: 'tcp:0'}}}%s}",
                 cases[i].url, cases[i].keys, cases[i].more);
        struct config *c = load(text);
        if (!c)
            continue;
        CHECK(c->cameras->threads == cases[i].threads, "%s: %d", text, c->cameras->threads);
        config_free(c);
    }
}

// A ring always has protocol framed; `memory` of the defaults applies to rings only.
static void test_ring(void)
{
    struct config *c = load("cameras: {a: {url: x, picture: 3840x2160, outputs: {\n"
                            "  r: {sink: 'ring:/run/r.sock', mode: 0600, group: video},\n"
                            "  h: {sink: 'ring:/run/h.sock', memory: host, protocol: auto},\n"
                            "  f: {sink: 'ring:/run/f.sock', protocol: framed},\n"
                            "  u: {sink: 'unix:/run/u.sock', kernel: yuv}}}}\n"
                            "defaults: {memory: cuda, protocol: y4m}\n"
                            "cuda: {decoders: 14, memory: 2GiB}\n");
    if (!c)
        return;
    const struct output_config *o = c->cameras->outputs;
    CHECK(o[0].sink.kind == SINK_RING && !strcmp(o[0].sink.path, "/run/r.sock"), "sink");
    CHECK(o[0].memory == RING_CUDA && o[1].memory == RING_HOST, "%d %d", o[0].memory, o[1].memory);
    for (int i = 0; i < 3; i++)
        CHECK(o[i].protocol == PROTOCOL_FRAMED, "output %d", i);
    CHECK(o[3].memory == RING_HOST && o[3].protocol == PROTOCOL_Y4M,
          "memory from defaults is for rings alone");
    CHECK(o[0].mode.mode == 0600 && !strcmp(o[0].group, "video"), "%o", o[0].mode.mode);
    CHECK(c->cameras->picture.width == 3840 && c->cameras->picture.height == 2160, "%d",
          c->cameras->picture.width);
    CHECK(c->cuda.decoders == 14 && c->cuda.memory.n == 2LL << 30, "%d", c->cuda.decoders);
    config_free(c);
}

// Files are split at a time or a size; sinks of other kinds ignore such defaults.
static void test_segments(void)
{
    struct config *c = load("cameras: {a: {url: x, outputs: {\n"
                            "  t: {sink: 'file:/a/%F%%-%H.npy'},\n"
                            "  b: {sink: 'file:/a/%s.npy', segment: 1.5GiB},\n"
                            "  n: {sink: 'file:/100%%/a%%F.npy', segment: 0},\n"
                            "  u: {sink: 'unix:/a/%%F'}}}}\n"
                            "defaults: {segment: 10m}\n");
    if (!c)
        return;
    const struct output_config *o = c->cameras->outputs;
    CHECK(o[0].sink.timed && !strcmp(o[0].sink.path, "/a/%F%%-%H.npy"), "%s", o[0].sink.path);
    CHECK(o[0].segment.ns == 600000000000 && o[0].segment.bytes == 0, "not 10m");
    CHECK(o[1].segment.ns == 0 && o[1].segment.bytes == 3LL << 29, "not 1.5GiB");
    CHECK(!o[2].sink.timed && !strcmp(o[2].sink.path, "/100%/a%F.npy"), "%s", o[2].sink.path);
    CHECK(o[2].segment.ns == 0 && o[3].segment.ns == 0, "split");
    CHECK(!o[3].sink.timed && !strcmp(o[3].sink.path, "/a/%%F"), "%s", o[3].sink.path);
    config_free(c);
}

// Accepts exactly the paths that a socket can listen on.
static void test_socket_path(const char *scheme, int length, const char *said)
{
    char text[300], path[200], *errors = NULL;
    struct config *config = NULL;
    size_t size;
    memset(path, 'x', sizeof path);
    int n = snprintf(text, sizeof text,
                     "cameras: {a: {url: x, outputs: {o: {kernel: yuv, sink: '%s:%.*s'}}}}", scheme,
                     length, path);
    FILE *f = open_memstream(&errors, &size);
    int mistakes = config_load_text(&config, text, (size_t)n, "text", f);
    fclose(f);
    CHECK(mistakes == (*said != 0) && strstr(errors, said), "%s, %d bytes: %s", scheme, length,
          errors);
    config_free(config);
    free(errors);
}

static void test_pin(void)
{
    struct config *c = load("cpu: {workers: 3, pin: '0-3,8,1023,8'}\n"
                            "cameras: {a: {url: x, outputs: {o: {sink: 'tcp:0'}}}}\n");
    if (!c)
        return;
    const struct processors *list = &c->cpu.pin.list;
    CHECK(c->cpu.workers == 3 && c->cpu.pin.how == PINNING_LIST, "%d", c->cpu.pin.how);
    CHECK(processors_count(list) == 6 && processors_next(list, 0) == 0 &&
              processors_next(list, 4) == 8 && processors_next(list, 9) == 1023,
          "%d", processors_count(list));
    config_free(c);
}

// A yuv output has a geometry if it sets one of its keys; `defaults` apply to warp outputs only.
static void test_yuv_geometry(void)
{
    struct config *c =
        load("cameras: {a: {url: x, outputs: {\n"
             "  p: {sink: 'tcp:0', kernel: yuv},\n"
             "  s: {sink: 'tcp:0', kernel: yuv, size: 640x360, fill: [1, 2, 3]},\n"
             "  t: {sink: 'tcp:0', kernel: yuv, rotate: 90, edge: repeat},\n"
             "  w: {sink: 'tcp:0'}}}}\n"
             "defaults: {size: 320x240, fit: crop, crop: [8, 8, 16, 16], filter: area, fill: 7}\n");
    if (!c)
        return;
    struct op_params op[4];
    for (int i = 0; i < 4; i++)
        output_config_op(&c->cameras->outputs[i], &op[i]);
    const struct warp_params *s = &op[1].yuv.geometry, *t = &op[2].yuv.geometry;
    CHECK(op[0].kind == OP_YUV && !op[0].yuv.resized, "plain");
    CHECK(op[1].yuv.resized && s->width == 640 && s->height == 360, "%dx%d", s->width, s->height);
    CHECK(s->fit == FIT_LETTERBOX && s->crop.width == 0 && s->filter == FILTER_BILINEAR, "%d",
          s->fit);
    CHECK(s->fill[0] == 1 && s->fill[2] == 3 && s->edge == EDGE_BLEND, "%d", s->fill[0]);
    CHECK(op[2].yuv.resized && t->width == 0 && t->rotate == 90 && t->fill[1] == 114, "%d",
          t->width);
    CHECK(t->edge == EDGE_REPEAT, "%d", t->edge);
    CHECK(op[3].warp.width == 320 && op[3].warp.fit == FIT_CROP && op[3].warp.fill[0] == 7 &&
              op[3].warp.crop.width == 16 && op[3].warp.filter == FILTER_AREA,
          "%d", op[3].warp.width);
    config_free(c);
}

static void test_wrong_pin(const char *pin, const char *what)
{
    char text[160], said[160], *errors = NULL;
    struct config *config = NULL;
    size_t size;
    int n =
        snprintf(text, sizeof text,
                 "cpu: {pin: '%s'}\ncameras: {a: {url: x, outputs: {o: {sink: 'tcp:0'}}}}\n", pin);
    snprintf(said, sizeof said,
             "text:1:12: cpu.pin: '%s' %s "
             "(auto | none | numbers 0 to 1023 and runs like \"0-3,8\")\n",
             pin, what);
    FILE *f = open_memstream(&errors, &size);
    int mistakes = config_load_text(&config, text, (size_t)n, "text", f);
    fclose(f);
    CHECK(mistakes == 1 && !strcmp(errors, said), "%s", errors);
    config_free(config);
    free(errors);
}

static void test_wrong_pins(void)
{
    static const char *const beyond[] = {"1024",          "2,0-1024", "99999999",
                                         "0-99999999999", "1024-3",   "99999999-0"};
    static const char *const none[] = {"3-0", "00000001", "99999999x", "1,", "all"};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++)
        test_wrong_pin(beyond[i], "is out of range");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        test_wrong_pin(none[i], "is not a list of processors");
}

// A key of both cameras and outputs: under `defaults`, the value decides which of them is meant.
static void test_shared_default(void)
{
    static const struct {
        const char *defaults;
        enum turning camera;
        double output;
    } cases[] = {
        {"rotate: 90", TURNING_AUTO, 90},
        {"rotate: ignore", TURNING_IGNORE, 0},
        {"rotate: auto", TURNING_AUTO, 0},
        {"rotate: '${NO_SUCH_NAME:-ignore}'", TURNING_IGNORE, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        snprintf(text, sizeof text,
                 "{defaults: {%s}, cameras: {a: {url: x, outputs: {o: {sink: 'tcp:0'}}}}}",
                 cases[i].defaults);
        struct config *c = load(text);
        if (!c)
            continue;
        CHECK(c->cameras->rotate == cases[i].camera, "%s: %d", cases[i].defaults,
              c->cameras->rotate);
        CHECK(c->cameras->outputs->rotate == cases[i].output, "%s", cases[i].defaults);
        config_free(c);
    }
}

static void test_op(void)
{
    struct op_params op;
    struct config *c =
        load("cameras: {a: {url: x, outputs: {\n"
             "  w: {sink: 'tcp:0', size: 320x240, fill: [1, 2, 3], crop: [8, 6, 64, 48],\n"
             "      tensor: {dtype: f32, scale: 1/255, mean: [1, 2, 3], std: 2, order: bgr},\n"
             "      rotate: 90, flip: both, fit: none, filter: area, colour: {range: full}},\n"
             "  a: {sink: 'tcp:0', affine: [1, 2, 3, 4, 5, 6], fill: 9},\n"
             "  y: {sink: 'tcp:0', kernel: yuv, format: nv12,\n"
             "      colour: {matrix: bt601-8bit}}}}}");
    if (!c)
        return;
    output_config_op(&c->cameras->outputs[0], &op);
    CHECK(op.kind == OP_WARP && op.warp.width == 320 && op.warp.height == 240, "%d", op.warp.width);
    CHECK(op.warp.fill[0] == 1 && op.warp.fill[2] == 3, "%d", op.warp.fill[2]);
    CHECK(op.warp.mean[1] == 2 && op.warp.std[0] == 2 && op.warp.std[2] == 2, "%g", op.warp.std[2]);
    CHECK(op.warp.scale == 1.0 / 255 && op.warp.order == ORDER_BGR, "%g", op.warp.scale);
    CHECK(op.warp.crop.x == 8 && op.warp.crop.y == 6 && op.warp.crop.width == 64 &&
              op.warp.crop.height == 48,
          "crop");
    CHECK(op.warp.rotate == 90 && op.warp.flip == FLIP_BOTH && op.warp.fit == FIT_NONE, "fit");
    CHECK(op.warp.filter == FILTER_AREA, "filter");
    CHECK(op.warp.colour.range == RANGE_FULL && !op.warp.has_affine, "colour");
    output_config_op(&c->cameras->outputs[1], &op);
    CHECK(op.warp.has_affine && op.warp.affine[0] == 1 && op.warp.affine[5] == 6, "affine");
    CHECK(op.warp.fill[2] == 9 && op.warp.crop.width == 0, "%d", op.warp.fill[2]);
    output_config_op(&c->cameras->outputs[2], &op);
    CHECK(op.kind == OP_YUV && op.yuv.format == PIXEL_NV12 &&
              op.yuv.colour.matrix == MATRIX_BT601_8BIT,
          "yuv");
    config_free(c);
}

// The file itself: absent, a folder, from standard input, too large.
static void test_files(void)
{
    static const char text[] = "\xef\xbb\xbf"
                               "cameras: {a: {url: x, outputs: {o: {sink: 'tcp:0'}}}}";
    char path[] = "/tmp/framed-test-XXXXXX", large[4096];
    struct config *config = NULL;
    FILE *null = fopen("/dev/null", "w");
    int fd = mkstemp(path), input = dup(0);
    CHECK(config_load(&config, "/nowhere/framed.yaml", null) == -ENOENT, "absent");
    CHECK(config_load(&config, "/tmp", null) == -EISDIR, "a folder");
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s", path);
    CHECK(config_load(&config, path, stderr) == 0 && config, "a byte order mark is no mistake");
    config_free(config);
    CHECK(lseek(fd, 0, SEEK_SET) == 0 && dup2(fd, 0) == 0, "standard input");
    CHECK(config_load(&config, "-", stderr) == 0 && config, "standard input");
    config_free(config);
    config = NULL;
    memset(large, '#', sizeof large);
    for (int i = 0; i < 257; i++)
        CHECK(write(fd, large, sizeof large) == sizeof large, "%s", path);
    CHECK(config_load(&config, path, null) == -EFBIG && !config, "more than 1 MiB");
    dup2(input, 0);
    close(input);
    close(fd);
    unlink(path);
    fclose(null);
}

// Texts whose cost would grow with the square of their length.
static void test_hostile_texts(void)
{
    static const char *const patterns[] = {"[", "{", "- ", "[a,", "? ", "&a [", "a: ", "- *a\n"};
    enum { SIZE = 1 << 20 };
    char *text = malloc(SIZE);
    FILE *null = fopen("/dev/null", "w");
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        struct config *config = NULL;
        size_t n = strlen(patterns[i]);
        for (size_t at = 0; at < SIZE; at++)
            text[at] = patterns[i][at % n];
        CHECK(config_load_text(&config, text, SIZE, "text", null) > 0, "%s", patterns[i]);
    }
    size_t at = 0;
    for (int i = 0; at + 32 < SIZE; i++)
        at += (size_t)sprintf(text + at, "k%d: &a%d 1\n", i, i);
    struct config *config = NULL;
    CHECK(config_load_text(&config, text, at, "text", null) == 1, "anchors are limited");
    at = 0;
    for (int i = 0; at + 32 < SIZE; i++)
        at += (size_t)sprintf(text + at, "k%d: 1\n", i);
    CHECK(config_load_text(&config, text, at, "text", null) > 50000, "every mistake is counted");
    free(text);
    fclose(null);
}

// Returns the thread's CPU seconds for loading a text of about 300 kB, and its mistakes in *ret.
static double seconds_of(const char *text, size_t n, int *ret)
{
    struct timespec began, ended;
    struct config *config = NULL;
    FILE *null = fopen("/dev/null", "w");
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
    *ret = config_load_text(&config, text, n, "text", null);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
    config_free(config);
    fclose(null);
    return (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9;
}

// Valid keys whose cost would grow with the square of their number: a quarter of the text would
// then take a sixteenth of the time, and the whole a minute under sanitizers.
static void test_costly_texts(void)
{
    static const char *const sinks[] = {"unix:/r/%d-%d", "tcp:127.0.0.1:%d%d", "ring:/r/%d.%d",
                                        "file:/r/%d-%d.npy"};
    enum { SIZE = 400 << 10, LIMIT_S = 5 };
    char *text = malloc(SIZE), sink[64];
    int mistakes;
    for (size_t kind = 0; kind < sizeof sinks / sizeof *sinks; kind++) {
        size_t at = (size_t)sprintf(text, "cameras:\n");
        for (int i = 0; i < 1000; i++) {
            at += (size_t)sprintf(text + at, " c%d: {url: x, outputs: {", i);
            for (int o = 1; o <= 9; o++) {
                sprintf(sink, sinks[kind], kind == 1 ? i % 600 + 10 : i, o);
                at += (size_t)sprintf(text + at, "o%d: {sink: '%s'}, ", o, sink);
            }
            at += (size_t)sprintf(text + at, "}}\n");
        }
        const double seconds = seconds_of(text, at, &mistakes);
        CHECK(mistakes == (kind == 1 ? 3600 : 0), "%s: %d mistakes", sinks[kind], mistakes);
        CHECK(seconds < LIMIT_S, "%s: %.1f s for %zu bytes", sinks[kind], seconds, at);
    }
    // A node with many keys, written once and referenced a thousand times.
    static const char *const wholes[] = {" c%d: *a\n", " c%d: {url: x, outputs: *a}\n",
                                         " c%d: {url: x, options: *a}\n", " ? *a\n"};
    for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++) {
        size_t at = (size_t)sprintf(text, "a: &a {");
        for (int k = 0; k < 20000; k++)
            at += (size_t)sprintf(text + at, "k%d: 1,", k);
        at += (size_t)sprintf(text + at, "}\ncameras:\n");
        for (int c = 0; c < 1000; c++)
            at += (size_t)snprintf(text + at, 64, wholes[i], c);
        const double seconds = seconds_of(text, at, &mistakes);
        CHECK(mistakes > 0 && seconds < LIMIT_S, "%s: %.1f s, %d", wholes[i], seconds, mistakes);
    }
    size_t at = 0;
    for (int i = 0; at + 32 < SIZE; i++)
        at += (size_t)sprintf(text + at, "%%TAG !a%d! x\n", i);
    CHECK(seconds_of(text, at, &mistakes) < LIMIT_S && mistakes == 1, "%d mistakes", mistakes);
    free(text);
}

#define A_CAMERA "cameras: {a: {url: x, outputs: {o: {sink: 'tcp:0'}}}}\n"

static void test_listening(void)
{
    struct config *c = load(A_CAMERA);
    if (!c)
        return;
    CHECK(!c->control.off && c->control.at.kind == SINK_NONE, "control: auto is the default");
    CHECK(c->http.at.kind == SINK_NONE && !c->http_token, "http: off is the default");
    config_free(c);
    c = load("control: ./a.sock\nhttp: 8780\n" A_CAMERA);
    if (!c)
        return;
    CHECK(c->control.at.kind == SINK_UNIX && !strcmp(c->control.at.path, "./a.sock"), "control");
    CHECK(c->http.at.kind == SINK_TCP && !c->http.at.host && c->http.at.port == 8780, "http");
    config_free(c);
    c = load("control: unix:/run/a.sock\nhttp: tcp:127.0.0.1:8780\n" A_CAMERA);
    if (!c)
        return;
    CHECK(!strcmp(c->control.at.path, "/run/a.sock"), "control as a sink's address");
    CHECK(!strcmp(c->http.at.host, "127.0.0.1") && c->http.at.port == 8780, "http likewise");
    config_free(c);
    config_free(load("control: off\nhttp: '[::1]:0'\n" A_CAMERA));
    config_free(load("http: 127.1.2.3:1\n" A_CAMERA));
    config_free(load("http: unix:/run/framed/http.sock\n" A_CAMERA));
    config_free(load("http: 0.0.0.0:1\nhttp_token: 0123456789abcdef\n" A_CAMERA));
}

// The word and the map mean the same. `defaults` apply to keys that an output does not set, and
// outputs that cannot have a gate have none.
static void test_gates(void)
{
    struct config *config =
        load("defaults: {gate: motion}\n"
             "cameras:\n"
             "  a:\n"
             "    url: x\n"
             "    motion: {mask: ['0,0 9,0 9,9', '1,2,3,4,5,6,7,8'], sensitivity: 60}\n"
             "    outputs:\n"
             "      word: {gate: motion, sink: 'ring:/w'}\n"
             "      map: {gate: {motion: true, hold: 2s, every: 0}, sink: tcp:7002}\n"
             "      none: {gate: {motion: false}, sink: tcp:7003}\n"
             "      copy: {kernel: copy, sink: file:a.mp4}\n"
             "      crops: {crops: {of: word}, sink: tcp:7004}\n"
             "      unsaid: {sink: 'ring:/r'}\n"
             "batches:\n"
             "  batch: {cameras: a, sink: ring:/b}\n");
    if (!config)
        return;
    const struct camera_config *a = &config->cameras[0];
    const struct gate_config *word = &a->outputs[0].gate, *map = &a->outputs[1].gate;
    CHECK(word->motion && word->hold.ns == 5000000000 && word->every.ns == 10000000000, "the word");
    CHECK(map->motion && map->hold.ns == 2000000000 && map->every.ns == 0, "the map");
    for (int i = 2; i < 5; i++)
        CHECK(!output_config_has_gate(&a->outputs[i]), "%s", a->outputs[i].name);
    for (int i = 5; i < a->n_outputs; i++)
        CHECK(a->outputs[i].gate.motion, "%s", a->outputs[i].name);
    CHECK(a->n_outputs == 7 && !a->stats && a->grid.width == 32, "the batch's share");
    CHECK(a->motion.mask.n == 2 && a->motion.mask.list[0].n == 3 && a->motion.mask.list[1].n == 4 &&
              a->motion.mask.list[1].point[3].x == 7 && a->motion.mask.list[1].point[3].y == 8,
          "the mask");
    config_free(config);
}

// Labels become numbers; defaults that crops cannot have are ignored.
static void test_crops(void)
{
    struct config *config =
        load("defaults: {affine: [1, 0, 0, 0, 1, 0], roi: lane, overflow: wait}\n"
             "cameras:\n"
             "  a:\n"
             "    url: x\n"
             "    rois: {lane: [0, 0, 9, 9]}\n"
             "    outputs:\n"
             "      plates: {crops: {of: batch, classes: [car, 7], most: 5}, sink: tcp:7001}\n"
             "batches:\n"
             "  batch: {cameras: a, sink: ring:/b, detections: {labels: [person, car], sink: "
             "tcp:7002}}\n");
    if (!config)
        return;
    const struct output_config *plates = &config->cameras[0].outputs[0];
    const struct classes *classes = &plates->crops.classes;
    CHECK(!strcmp(plates->crops.of, "batch") && plates->crops.keep.ns == 200000000, "of a batch");
    CHECK(classes->n == 2 && classes->list[0].number == 1 && classes->list[1].number == 7,
          "classes %d and %d", classes->list[0].number, classes->list[1].number);
    CHECK(plates->capacity == 5 && plates->overflow == OVERFLOW_DROP_OLDEST, "what follows");
    CHECK(!plates->affine.set && !plates->roi.name && plates->roi.chosen.n == 0, "gives way");
    config_free(config);
}

static void test_control_alone(void)
{
    static const char *const texts[] = {
        "control: /tmp/a.sock\ncameras: {a: {url: '${FRAMED_TEST_UNSET}', bogus: 1}}\n",
        A_CAMERA,
        "control: bogus\n" A_CAMERA,
        "- 1\n",
    };
    static const int expected[] = {0, 0, 1, 1};
    static const struct config_load_options only = {.only = "control"};
    unsetenv("FRAMED_TEST_UNSET");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct config *config = NULL;
        char path[] = "/tmp/framed-test-XXXXXX", *printed = NULL;
        size_t size;
        int fd = mkstemp(path);
        FILE *errors = open_memstream(&printed, &size);
        CHECK(write(fd, texts[i], strlen(texts[i])) > 0, "%s", path);
        int status = config_load_with(&config, path, &only, errors);
        fclose(errors);
        CHECK(status == expected[i] && (size > 0) == (status != 0), "%d: %s", status, printed);
        CHECK((config != NULL) == (status == 0), "*ret is written on 0 only");
        CHECK(i > 0 || !strcmp(config->control.at.path, "/tmp/a.sock"), "the path");
        config_free(config);
        free(printed);
        close(fd);
        unlink(path);
    }
    struct config *config = NULL;
    FILE *errors = fopen("/dev/null", "w");
    CHECK(config_load_with(&config, "/nonexistent", &only, errors) == -ENOENT, "no file");
    fclose(errors);
}

int main(void)
{
    TEST(test_design_example());
    TEST(test_closed_paths());
    TEST(test_long_aliases());
    TEST(test_long_defaults());
    TEST(test_defaults());
    TEST(test_range_gives_way());
    TEST(test_protocols());
    TEST(test_overflow());
    TEST(test_batches());
    TEST(test_batch_capacity());
    TEST(test_regions());
    TEST(test_default_roi());
    TEST(test_threads());
    TEST(test_ring());
    TEST(test_segments());
    TEST(test_socket_path("unix", 99, ""));
    TEST(test_socket_path("unix", 100, "text:1:56: cameras.a.outputs.o.sink: "));
    TEST(test_socket_path("ring", 99, ""));
    TEST(test_socket_path("ring", 100, "too long for a socket: 99 bytes ("));
    TEST(test_shared_default());
    TEST(test_op());
    TEST(test_files());
    TEST(test_hostile_texts());
    TEST(test_pin());
    TEST(test_yuv_geometry());
    TEST(test_wrong_pins());
    TEST(test_costly_texts());
    TEST(test_listening());
    TEST(test_crops());
    TEST(test_gates());
    TEST(test_control_alone());
    return test_end();
}
