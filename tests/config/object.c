// Comparisons of cameras and outputs of two configurations, and of their copies, for every row of
// the schema.
#include "config/object.h"

#include <stdlib.h>
#include <string.h>

#include "config/load.h"
#include "config/value.h"
#include "tests/test.h"

// Two different values of each type, within the range of every row.
static const char *const values[][2] = {
    [VALUE_BOOL] = {"true", "false"},
    [VALUE_INT] = {"8", "9"},
    [VALUE_NUMBER] = {"1.5", "2"},
    [VALUE_STRING] = {"a", "ab"},
    [VALUE_DURATION] = {"2s", "2001ms"},
    [VALUE_BYTES] = {"1MiB", "2MiB"},
    [VALUE_DIMENSIONS] = {"64x48", "64x49"},
    [VALUE_LEVELS] = {"7", "8"},
    [VALUE_CHANNELS] = {"0.5", "0.25"},
    [VALUE_FRACTION] = {"1/255", "1/127"},
    [VALUE_FINGERPRINT] = {"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                           "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a09"},
    [VALUE_FILEMODE] = {"0600", "0640"},
    [VALUE_SPLIT] = {"10m", "20m"},
    [VALUE_PERCENT] = {"0%", "50%"},
    [VALUE_CLASSES] = {"all", "car"},
    [VALUE_POLYGONS] = {"0,0 9,0 9,9", "0,0 9,0 9,8"},
    [VALUE_ROI] = {"door", "doors"},
    [VALUE_SHARED] = {"/a", "/b"},
    [VALUE_LUT] = {"a.cube", "b.cube"},
    [VALUE_ENDPOINTS] = {"http://a:1", "http://a:2"},
    [VALUE_BATCH_WAIT] = {"auto", "0"},
    [VALUE_NAME_PATTERNS] = {"gate*", "!gate*"},
    [VALUE_LABELS] = {"car", "cat"},
    [VALUE_PROGRAM] = {"tell", "tell all"},
    [VALUE_PIN] = {"0", "0-1"},
    [VALUE_GPUS] = {"0", "1"},
    [VALUE_GPU] = {"GPU-5ae5bbb2-16f9-8bd6-a4ef-fa2e57dd4b58",
                   "GPU-5ae5bbb2-16f9-8bd6-a4ef-fa2e57dd4b59"},
    [VALUE_DECODER] = {"vaapi:/dev/dri/renderD128", "vaapi:/dev/dri/renderD129"},
    [VALUE_SINK] = {"unix:/a", "unix:/b"},
    [VALUE_CONTROL] = {"/a", "/b"},
    [VALUE_HTTP] = {"1", "2"},
};

static void fill(const struct config_row *row, void *object, int which)
{
    static const char *const affine[2][6] = {{"1", "0", "0", "0", "1", "0"},
                                             {"1", "0", "0", "0", "1", "2"}};
    static const char *const crop[2][4] = {{"0", "0", "64", "48"}, {"0", "0", "64", "40"}};
    const char *wrong = "", *const *texts = &values[row->type][which];
    int n = 1;
    if (row->type == VALUE_CHOICE)
        texts = &row->choices[which].name;
    if (row->type == VALUE_AFFINE || row->type == VALUE_CROP) {
        texts = row->type == VALUE_AFFINE ? affine[which] : crop[which];
        n = row->type == VALUE_AFFINE ? 6 : 4;
    }
    CHECK(value_parse(row, object, texts, n, &wrong) == 0, "%s: %s", row->key, wrong);
}

static void test_row(const struct table *table, const struct config_row *row)
{
    static max_align_t a[1024], b[1024];
    memset(a, 0, table->size);
    memset(b, 0xff, table->size); // makes the padding differ
    memset((char *)b + row->offset, 0, table->size - row->offset);
    fill(row, a, 0);
    fill(row, b, 0);
    CHECK(value_equal(row, a, b), "%s: the same value", row->key);
    object_free(table, a);
    fill(row, a, 1);
    CHECK(!value_equal(row, a, b), "%s: another value", row->key);
    object_free(table, a);
    memset(b, 0, row->offset);
    object_free(table, b);
}

static struct config *load(const char *text)
{
    struct config *config = NULL;
    CHECK(config_load_text(&config, text, strlen(text), "test", stderr) == 0, "%s", text);
    return config;
}

// Each case's keys are added to `url: u, outputs: {o: {sink: 'unix:/s'}}`.
static const struct {
    const char *camera, *output;
    bool same_camera, same_output;
} cases[] = {
    {"url: u", "sink: 'unix:/s'", true, true},
    {"transport: tcp, url: u", "slots: 6, sink: 'unix:/s'", true, true},
    {"url: v", "sink: 'unix:/s'", false, true},
    {"url: u, fps: 5", "sink: 'unix:/s'", false, true},
    {"url: u, options: {pixel_format: bgra}", "sink: 'unix:/s'", false, true},
    {"url: u", "sink: 'ring:/s'", true, false},
    {"url: u", "sink: 'tcp:7000'", true, false},
    {"url: u", "{sink: 'unix:/s', max_age: 1s}", true, false},
    {"url: u", "sink: 'unix:/s', tensor: {mean: [0, 0, 1]}", true, false},
    {"url: u", "sink: 'unix:/s', affine: [1, 0, 0, 0, 1, 0]", true, false},
};

static void test_cases(void)
{
    struct config *base = load("cameras: {c: {url: u, outputs: {o: {sink: 'unix:/s'}}}}");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        const char *open = cases[i].output[0] == '{' ? "" : "{", *close = *open ? "}" : "";
        snprintf(text, sizeof text, "\n\ncameras: {other: {%s, outputs: {another: %s%s%s}}}",
                 cases[i].camera, open, cases[i].output, close);
        struct config *config = load(text);
        CHECK(config_same_camera(base->cameras, config->cameras) == cases[i].same_camera, "%s",
              text);
        CHECK(config_same_output(base->cameras->outputs, config->cameras->outputs) ==
                  cases[i].same_output,
              "%s", text);
        config_free(config);
    }
    config_free(base);
}

// Keys of the other kernel, which `defaults` may hold, do not make an output different.
static void test_other_kernel(void)
{
    struct config *a = load("{defaults: {tensor: {dtype: f32}, format: nv12}, cameras: {c: {url: u,"
                            " outputs: {w: {sink: 'tcp:1'}, y: {kernel: yuv, sink: 'tcp:2'}}}}}");
    struct config *b = load("{defaults: {tensor: {dtype: u8}, format: yuv24}, cameras: {c: {url: u,"
                            " outputs: {w: {sink: 'tcp:1'}, y: {kernel: yuv, sink: 'tcp:2'}}}}}");
    a->cameras->outputs[1].format = b->cameras->outputs[1].format;
    CHECK(config_same_output(&a->cameras->outputs[1], &b->cameras->outputs[1]), "yuv");
    CHECK(!config_same_output(&a->cameras->outputs[0], &b->cameras->outputs[0]), "warp");
    config_free(a);
    config_free(b);
}

// A batch stays the same when its members or their number change; so does a plain output when keys
// of batches change.
static void test_batches(void)
{
    static const struct {
        const char *defaults, *batch;
        bool same_batch;
    } others[] = {
        {"", "cameras: '*'", true},
        {"", "cameras: [c, '!d']", true},
        {"", "cameras: '*', count: 1", false},
        {"", "cameras: '*', wait: 0", false},
        {"", "cameras: '*', per_camera: 2", false},
        {"", "cameras: '*', order: fixed", false},
        {"", "cameras: '*', tail: zero", false},
        {"defaults: {tail: zero, count: 4},", "cameras: '*'", false},
    };
    static const char format[] = "{%s cameras: {c: {url: u, outputs: {o: {sink: 'tcp:1'}}}, d: "
                                 "{url: v, outputs: {o: {sink: 'tcp:2'}}}}, batches: {b: {sink: "
                                 "'tcp:3', %s}}}";
    char text[256];
    snprintf(text, sizeof text, format, others[0].defaults, others[0].batch);
    struct config *a = load(text);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(text, sizeof text, format, others[i].defaults, others[i].batch);
        struct config *b = load(text);
        const bool same = others[i].same_batch;
        CHECK(config_same_output(a->batches, b->batches) == same, "%s", text);
        CHECK(config_same_output(&a->cameras->outputs[1], &b->cameras->outputs[1]) == same, "%s",
              text);
        CHECK(config_same_output(a->cameras->outputs, b->cameras->outputs), "%s", text);
        config_free(b);
    }
    struct config *plain = load(text);
    struct config *batch = load(text);
    plain->cameras->outputs[1].is_batch = false;
    CHECK(!config_same_output(&plain->cameras->outputs[1], &batch->cameras->outputs[1]),
          "an output that is no batch");
    config_free(plain);
    config_free(batch);
    config_free(a);
}

// Changed regions change only the outputs that show them; the camera goes on.
static void test_regions(void)
{
    static const struct {
        const char *rois;
        bool same_door, same_all;
    } others[] = {
        {"door: [0, 0, 8, 8], lane: [8, 0, 8, 8]", true, true},
        {"lane: [8, 0, 8, 8], door: [0, 0, 8, 8]", true, false},
        {"door: [0, 0, 8, 8], lane: [8, 0, 8, 9]", true, false},
        {"door: [0, 0, 8, 8]", true, false},
        {"door: [1, 0, 8, 8], lane: [8, 0, 8, 8]", false, false},
    };
    static const char format[] =
        "{cameras: {c: {url: u, rois: {%s}, outputs: {o: {sink: 'tcp:1', crop: [0, 0, 8, 8]}, "
        "door: {sink: 'tcp:2', roi: door}}}}, batches: {b: {cameras: c, sink: 'tcp:3', roi: all}}}";
    char text[512];
    snprintf(text, sizeof text, format, others[0].rois);
    struct config *a = load(text);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(text, sizeof text, format, others[i].rois);
        struct config *b = load(text);
        const struct output_config *p = a->cameras->outputs, *q = b->cameras->outputs;
        CHECK(config_same_camera(a->cameras, b->cameras), "%s", text);
        CHECK(config_same_output(&p[0], &q[0]), "%s", text);
        CHECK(config_same_output(&p[1], &q[1]) == others[i].same_door, "%s", text);
        CHECK(config_same_output(&p[2], &q[2]) == others[i].same_all, "%s", text);
        CHECK(config_same_output(a->batches, b->batches), "%s", text);
        config_free(b);
    }
    config_free(a);
}

static void test_credential(void)
{
    static const char text[] =
        "cameras: {c: {url: 'rtsp://u:${SECRET_OF_TEST}@h/', options: {a: '${SECRET_OF_TEST}'},"
        " outputs: {o: {sink: 'unix:/s'}}}}";
    setenv("SECRET_OF_TEST", "one", 1);
    struct config *a = load(text), *b = load(text);
    setenv("SECRET_OF_TEST", "two", 1);
    struct config *c = load(text);
    CHECK(config_same_camera(a->cameras, b->cameras), "the same credential");
    CHECK(!config_same_camera(a->cameras, c->cameras), "another credential");
    config_free(a);
    config_free(b);
    config_free(c);
}

static void test_copies(void)
{
    struct config *config =
        load("cameras: {c: {url: u, options: {a: b}, rois: {door: [0, 1, 2, 3]}, stats: true, "
             "motion: {mask: '0,0 9,0 9,9'}, outputs: {o: {roi: door, "
             "group: g, sink: 'unix:/s'}}}}");
    struct camera_config *camera = config_copy_camera(config->cameras);
    struct output_config *output = config_copy_output(config->cameras->outputs);
    CHECK(camera->outputs == NULL && camera->n_outputs == 0, "without outputs");
    CHECK(config_same_camera(camera, config->cameras), "the camera");
    CHECK(config_same_output(output, config->cameras->outputs), "the output");
    CHECK(output->place.line == config->cameras->outputs->place.line, "its place");
    config_free(config);
    CHECK(strcmp(camera->name, "c") == 0 && strcmp(camera->options.list->value, "b") == 0,
          "outlives");
    CHECK(camera->rois.n == 1 && strcmp(camera->rois.list->name, "door") == 0, "outlives");
    CHECK(camera->motion.mask.n == 1 && camera->motion.mask.list->point[2].y == 9, "outlives");
    CHECK(output->roi.chosen.n == 1 && output->roi.chosen.list->rect.height == 3, "outlives");
    CHECK(strcmp(output->name, "o") == 0 && strcmp(output->sink.path, "/s") == 0, "outlives");
    config_free_camera(camera);
    config_free_output(output);
    config_free_camera(NULL);
    config_free_output(NULL);
}

// Each key of `notify` makes it different, and nothing else does.
static void test_notify(void)
{
    static const struct {
        const char *text;
        bool same;
    } others[] = {
        {"notify: {webhook: 'http://a/b', calm: 2m, mqtt: {server: 'mqtt://h'}}", true},
        {"http: 80\nnotify: {calm: 120s, webhook: 'http://a/b', mqtt: {server: 'mqtt://h'}}", true},
        {"notify: {webhook: 'http://a/c', calm: 2m, mqtt: {server: 'mqtt://h'}}", false},
        {"notify: {webhook: 'http://a/b', calm: 2m, mqtt: {server: 'mqtt://g'}}", false},
        {"notify: {webhook: 'http://a/b', mqtt: {server: 'mqtt://h'}}", false},
        {"notify: {webhook: 'http://a/b', calm: 2m, command: /a, mqtt: {server: 'mqtt://h'}}",
         false},
    };
    static const char rest[] =
        "\nhttp_token: 0123456789abcdef\ncameras: {c: {url: u, outputs: {o: {sink: 'tcp:1'}}}}\n";
    char text[512];
    struct config *copies[sizeof others / sizeof *others];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(text, sizeof text, "%s%s", others[i].text, rest);
        struct config *config = load(text);
        copies[i] = config_copy_notify(config);
        config_free(config);
        CHECK(config_same_notify(copies[0], copies[i]) == others[i].same, "%s", text);
        CHECK(strncmp(copies[i]->notify.webhook, "http://a/", 9) == 0, "outlives");
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        config_free(copies[i]);
}

static const struct {
    const char *text, *errors;
} changes[] = {
    {"log: {level: debug}\n", ""},
    {"http: 127.0.0.1:80\nhttp_token: 0123456789abcdef\ncontrol: /a\n", ""},
    {"backend: auto\n", "text:1:10: backend: needs a restart"},
    {"cuda: {streams: 3}\nbackend: cpu\ncpu: {pin: auto}\n",
     "text:1:17: cuda.streams: needs a restart|text:3:12: cpu.pin: needs a restart"},
    {"cuda: {device: 1}\n", "text:1:16: cuda.device: needs a restart"},
    {"cuda: {devices: auto}\n", ""},
    {"cuda: {devices: [1, 0]}\n", "text:1:17: cuda.devices: needs a restart"},
    {"backend: none\n", "text:1:10: backend: 'none' is not"},
    {"", "text:1:1: backend: needs a restart"},
};

static int lines(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void test_change(const struct config *running, const char *said, const char *errors)
{
    char path[] = "/tmp/framed-equal.XXXXXX", expected[512], *got = NULL;
    size_t size;
    FILE *file = fdopen(mkstemp(path), "w");
    fprintf(file, "%scameras: {c: {url: u, outputs: {o: {sink: 'unix:/s'}}}}\n", said);
    fclose(file);
    struct config *config = NULL;
    FILE *stream = open_memstream(&got, &size);
    const struct config_load_options options = {.running = running};
    int mistakes = config_load_with(&config, path, &options, stream);
    fclose(stream);
    snprintf(expected, sizeof expected, "%s", errors);
    int n = 0;
    for (char *next, *one = strtok_r(expected, "|", &next); one;
         one = strtok_r(NULL, "|", &next), n++)
        CHECK(strstr(got, one + strlen("text")), "%s: '%s' in\n%s", said, one, got);
    CHECK(mistakes == n && lines(got) == n, "%s: %d mistakes\n%s", said, mistakes, got);
    config_free(config);
    free(got);
    remove(path);
}

static void test_restarts(void)
{
    struct config *running = load("backend: cpu\ncameras: {c: {url: u, outputs: {o: {sink: "
                                  "'unix:/s'}}}}");
    char said[256];
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        bool names = strstr(changes[i].text, "backend") || strstr(changes[i].errors, ":1:1:");
        snprintf(said, sizeof said, "%s%s", changes[i].text, names ? "" : "backend: cpu\n");
        test_change(running, said, changes[i].errors);
    }
    config_free(running);
    running = load("cuda: {devices: [1]}\ncameras: {c: {url: u, outputs: {o: {sink: 'unix:/s'}}}}");
    test_change(running, "cuda: {device: 1}\n", "");
    test_change(running, "cuda: {device: 0}\n", "text:1:16: cuda.device: needs a restart");
    test_change(running, "", "text:1:1: cuda.devices: needs a restart");
    config_free(running);
}

int main(void)
{
    static const struct table *const tables[] = {&root_table, &camera_table, &output_table};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (int i = 0; i < tables[t]->n; i++)
            if (row_has_value(&tables[t]->rows[i]) && !value_pairs(&tables[t]->rows[i]))
                TEST(test_row(tables[t], &tables[t]->rows[i]));
    TEST(test_cases());
    TEST(test_other_kernel());
    TEST(test_batches());
    TEST(test_regions());
    TEST(test_credential());
    TEST(test_copies());
    TEST(test_notify());
    TEST(test_restarts());
    return test_end();
}
