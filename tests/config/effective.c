// The printed configuration loads as an equal one and shows no secret.
#include "config/print.h"

#include <stdlib.h>
#include <string.h>

#include "config/load.h"
#include "config/object.h"
#include "tests/test.h"

static struct config *load(const char *text)
{
    struct config *config = NULL;
    CHECK(config_load_text(&config, text, strlen(text), "test", stderr) == 0, "in\n%s", text);
    return config;
}

static char *print(const struct config *config)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    config_print_effective(to, config);
    fclose(to);
    return text;
}

static void tell(void *text, const char *path, enum config_change change, const char *keys)
{
    CHECK(strcmp(keys, "preset") == 0, "'%s' differs (%d) in: %s\n%s", path, (int)change, keys,
          (const char *)text);
}

static void expect_same(const char *text)
{
    struct config *before = load(text);
    char *printed = before ? print(before) : NULL;
    struct config *after = printed ? load(printed) : NULL;
    if (after) {
        config_difference(before, after, tell, printed);
    }
    config_free(after);
    free(printed);
    config_free(before);
}

static void test_values(void)
{
    static const char *const texts[] = {
        "backend: cpu\nready: all\nlog: {level: debug}\nhttp: '[::1]:80'\ncontrol: off\n"
        "http_write: true\n",
        "cuda: {devices: [1, 3], streams: 3, band: 1536KiB, memory: 7GiB}\ncpu: {workers: 2, pin: "
        "'0-3,8'}\nhttp: unix:/run/a b.sock\n",
        "cpu: {pin: auto}\ncontrol: /run/x.sock\npaused: ['gate', 'y*']\n",
        "cluster: {etcd: ['https://a:1', 'https://b:1'], site: yard, node: box1, lease: 3s, room: "
        "12, labels: {vlan: a, floor: 2}, alone: keep, ca: /a, certificate: /b, keyfile: /c}\n",
    };
    static const char cameras[] =
        "cameras: {gate: {url: /a$$b\"c, outputs: {o: {sink: 'tcp:0'}}}}\n";
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[4096];
        snprintf(text, sizeof text, "%s%s", texts[i], cameras);
        expect_same(text);
    }
}

static void test_cameras(void)
{
    static const char *const texts[] = {
        "url: rtsp://10.0.0.5/a, transport: udp, tls: {verify: false, legacy: true}, "
        "decode: cpu, decode_threads: 3, picture: 1280x720, fps: 29.97, pictures: keyframes",
        "url: a.mp4, loop: true, pace: realtime, rotate: ignore, damaged: hold, check_hashes: "
        "true, "
        "connect_timeout: 1.5s, media_timeout: 90s, close_timeout: 250ms, device: "
        "GPU-01234567-89ab-cdef-0123-"
        "456789abcdef",
        "url: a.raw, demuxer: rawvideo, device: 3",
        "url: a, rois: {door: [0, 0, 640, 480], lane: [1, 2, 3, 4]}, stats: true, grid: 16x9, "
        "motion: {sensitivity: 70, min_area: 900, mask: ['0,0 640,0 640,120', '1,1 2,2 3,1']}",
        "url: 'rtsps://h/a', tls: {fingerprint: "
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[4096];
        snprintf(text, sizeof text, "cameras: {gate: {%s, outputs: {o: {sink: 'tcp:0'}}}}\n",
                 texts[i]);
        expect_same(text);
    }
}

static void test_outputs(void)
{
    static const char *const texts[] = {
        "preset: ultralytics, size: 640x640",
        "preset: mmdet, size: 640x480, fill: [1, 2, 3]",
        "preset: imagenet-stretch, size: 64x64",
        "preset: yolox, fill: 0, size: 64x64",
        "size: 64x64, fit: stretch, fill: 7, tensor: {dtype: f16, scale: 1/255, mean: [0.485, "
        "0.456, 0.406], std: 0.3, order: bgr, layout: nhwc}",
        "size: 64x64, affine: [0.5, 0, 1.25, 0, 0.5, 1e-7]",
        "size: 64x64, crop: [8, 8, 100, 100], fill: mean, rotate: 12.5, flip: both",
        "kernel: yuv, format: nv12, fps: 0.1, max_age: 1m, slots: 9, mode: '0600'",
        "kernel: yuv, overflow: wait, group: root, clients: 3",
        "size: 64x64, gate: {motion: true, hold: 3s, every: 1m}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[4096];
        snprintf(text, sizeof text,
                 "cameras: {gate: {url: a, outputs: {o: {%s, sink: 'unix:/tmp/s'}}}}\n", texts[i]);
        expect_same(text);
    }
    expect_same(
        "cameras: {gate: {url: a, outputs: {o: {kernel: copy, segment: 10m, keep: 3GiB, "
        "before: 10s, sink: 'file:/tmp/a-%Y%m%d-%H%M%S.mp4'}, r: {size: 8x8, sink: "
        "'ring:/tmp/r', detections: {sink: 'unix:/tmp/d', labels: [a, \"b: c\", 7]}}, c: "
        "{crops: {of: r, classes: [a, 2], margin: 10%}, size: 8x8, sink: 'ring:/tmp/c'}}}}\n"
        "batches: {all: {cameras: ['*', '!x'], size: 64x64, wait: 20ms, tail: zero, sink: "
        "'ring:/tmp/b'}}\n");
    expect_same("defaults: {size: 32x32, transport: udp, fill: 3}\ncameras: {gate: {url: "
                "'rtsp://h/a', outputs: {o: {sink: 'tcp:0'}, y: {kernel: yuv, sink: 'tcp:0'}}}}\n");
}

static void test_all_keys(void)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    config_print_defaults(to);
    fclose(to);
    expect_same(text);
    free(text);
}

static void test_text(void)
{
    struct config *config = load("notify: {mqtt: {server: 'mqtt://h'}}\ncameras: {gate: {url: a, "
                                 "outputs: {o: {sink: 'tcp:0', tensor: {dtype: f32}}}}}\n");
    char *printed = print(config);
    static const char wanted[] = "notify:\n"
                                 "  mqtt:\n"
                                 "    server: \"mqtt://h\"\n"
                                 "cameras:\n"
                                 "  gate:\n"
                                 "    url: \"a\"\n"
                                 "    outputs:\n"
                                 "      o:\n"
                                 "        tensor:\n"
                                 "          dtype: f32\n"
                                 "        overflow: wait\n"
                                 "        sink: \"tcp:0\"\n"
                                 "        protocol: framed\n";
    CHECK(strcmp(printed, wanted) == 0, "\n%s", printed);
    free(printed);
    config_free(config);
}

static void test_secrets(void)
{
    static const char text[] =
        "http_token: Zorngiebel-0123456789\n"
        "notify: {webhook: 'https://h/Zorn', mqtt: {server: 'mqtt://h', user: Zorn, password: "
        "Zorn}}\n"
        "cluster: {etcd: 'http://a:1', site: yard, user: Zorn, password: Zorn}\n"
        "cameras: {gate: {url: 'rtsp://viewer:Zorn@h/a?token=Zorn', options: {password: Zorn}, "
        "demuxer: rtsp, outputs: {o: {kernel: copy, sink: 'rtsp://viewer:Zorn@h/b'}}}}\n";
    struct config *config = load(text);
    char *printed = print(config);
    CHECK(!strcasestr(printed, "zorn") && !strstr(printed, "viewer"), "%s", printed);
    free(printed);
    config_free(config);
}

// A value with a reference is printed as written, in copies of it too.
static void test_written(void)
{
    static const char text[] =
        "http_token: '${TOKEN:-Zorngiebel-0123456789}'\n"
        "notify: {command: [/bin/tell, -k, Zorn, 'Bearer ${ZORN}'], webhook: "
        "'https://h/${ZORN}?${ZORN}'}\n"
        "log: {level: '${LEVEL:-debug}'}\n"
        "defaults: {size: '${SIZE:-32x32}', transport: '${CARRIED:-udp}'}\n"
        "cameras: {gate: {url: 'rtsp://a:${ZORN}@h/${ZORN}/s?jwt=${ZORN}', options: {a: Zorn, b: "
        "'${ZORN}'}, outputs: {o: {sink: 'unix:/run/${ZORN}', mode: '0600'}}}, yard: {url: "
        "'${ZORN}', transport: multicast, outputs: {o: {sink: 'tcp:0', size: 8x8}}}}\n";
    static const char *const parts[] = {
        "http_token: \"${TOKEN:-***}\"\n",
        "command: [\"/bin/tell\", \"***\", \"***\", \"Bearer ${ZORN}\"]\n",
        "webhook: \"https://h/${ZORN}\"\n",
        "level: \"${LEVEL:-debug}\"\n",
        "url: \"rtsp://h/${ZORN}/s\"\n",
        "options: {\"a\": \"***\", \"b\": \"${ZORN}\"}\n",
        "transport: \"${CARRIED:-udp}\"\n",
        "sink: \"unix:/run/${ZORN}\"\n        protocol:",
        "size: \"${SIZE:-32x32}\"\n",
        "url: \"${ZORN}\"\n    transport: multicast\n",
        "size: 8x8\n",
    };
    setenv("ZORN", "Zorngiebel", 1);
    struct config *config = load(text);
    char *printed = config ? print(config) : NULL, url[64];
    for (size_t i = 0; printed && i < sizeof parts / sizeof *parts; i++)
        CHECK(strstr(printed, parts[i]), "no %s in\n%s", parts[i], printed);
    CHECK(printed && !strcasestr(printed, "zorngiebel"), "%s", printed);
    struct camera_config *copy = config ? config_copy_camera(&config->cameras[1]) : NULL;
    CHECK(copy && !strcmp(config_camera_url(copy, url, sizeof url), "${ZORN}"), "%s", url);
    config_free_camera(copy);
    free(printed);
    config_free(config);
}

// A camera printed as a drop-in file stays the same under a configuration with other defaults.
static void test_camera(void)
{
    static const char before[] =
        "defaults: {transport: udp, fps: 5, size: 32x32, fill: 3, connect_timeout: 3s}\n"
        "cameras: {gate: {url: 'rtsp://viewer:Zorn$$1@h/a?token=Zorn', demuxer: rtsp, options: "
        "{password: \"Zo\\trn\"}, rois: {door: [0, 0, 8, 8]}, on: {vlan: a}, outputs: {o: {sink: "
        "'tcp:0', roi: door}, c: {kernel: copy, sink: 'rtsp://viewer:Zorn@h/b'}}}}\n"
        "batches: {b: {cameras: gate, sink: 'tcp:0'}}\npaused: gate\n";
    static const char other[] =
        "defaults: {transport: multicast, damaged: drop, size: 64x64, roi: yard, flip: both, "
        "tls: {legacy: true}}\nhttp_write: true\n";
    const char *const path = "/nonexistent/framed.yaml", *const own =
                                                             "/nonexistent/framed.d/gate.yaml";
    struct config *config = load(before), *after = NULL;
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    config_print_camera(to, config->cameras);
    fclose(to);
    CHECK(!strstr(text, "on:") && !strstr(text, "paused") && !strstr(text, "***"), "%s", text);
    const struct file_change list[] = {{.path = path, .text = other}, {.path = own, .text = text}};
    const struct file_changes changes = {list, 2};
    CHECK(config_load_with(&after, path, &(struct config_load_options){.changes = &changes},
                           stderr) == 0,
          "%s", text);
    if (after) {
        struct camera_config *camera = config->cameras;
        camera->paused = (struct place){0};
        camera->on = (struct node_labels){0};
        CHECK(config_same_camera(camera, after->cameras), "%s", text);
        CHECK(after->cameras->n_outputs == 2, "%s", text);
        for (int i = 0; i < after->cameras->n_outputs; i++)
            CHECK(config_same_output(&camera->outputs[i], &after->cameras->outputs[i]), "%s", text);
    }
    free(text);
    config_free(config);
    config_free(after);
}

int main(void)
{
    TEST(test_values());
    TEST(test_cameras());
    TEST(test_outputs());
    TEST(test_all_keys());
    TEST(test_text());
    TEST(test_secrets());
    TEST(test_written());
    TEST(test_camera());
    return test_end();
}
