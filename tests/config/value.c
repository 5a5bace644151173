// Every type of value, with accepted and refused texts.
#include "config/value.h"

#include <string.h>

#include "config/object.h"
#include "tests/test.h"

static const struct {
    const struct table *table;
    const char *key;
    const char *good; // separated by '|'
    const char *bad;
} cases[] = {
    {&camera_table, "loop", "true|false", "yes|no|on|off|1|0|True|TRUE|t||truefalse"},
    {&camera_table, "decode_threads", "0|1|64|auto", "-1|65|1.5|01|0x1|1 | 1|+1||1e1|99999999999"},
    {&root_table, "cuda.streams", "auto|0|32", "33|64|-1"},
    {&root_table, "cuda.device", "0|63", "auto|64|-1"},
    {&root_table, "cuda.devices", "auto|0|63", "all|64|-1|0,1|0 1||cpu"},
    {&camera_table, "decode",
     "auto|cpu|nvdec|vaapi|vaapi:/dev/dri/renderD129|qsv|v4l2m2m|rkmpp|h264_v4l2m2m|cuda:0",
     "|VAAPI|nvdec:0|vaapi:|va-api|vaapi :0|vaapi:a@b|abcdefghijklmnopqrstuvwxyz"},
    {&camera_table, "device",
     "auto|0|63|GPU-5ae5bbb2-16f9-8bd6-a4ef-fa2e57dd4b58|GPU-5AE5BBB2-16F9-8BD6-A4EF-FA2E57DD4B58",
     "64|-1|cpu||GPU-|gpu-5ae5bbb2-16f9-8bd6-a4ef-fa2e57dd4b58|"
     "GPU-5ae5bbb216f98bd6a4effa2e57dd4b58|GPU-5ae5bbb2-16f9-8bd6-a4ef-fa2e57dd4b5|"
     "GPU-5ae5bbb2-16f9-8bd6-a4ef-fa2e57dd4b58a|GPU-5ae5bbb2-16f9-8bd6-a4ef-fa2e57dd4b5x|"
     "5ae5bbb2-16f9-8bd6-a4ef-fa2e57dd4b58"},
    {&camera_table, "fps", "0|0.5|25|29.97|1e2|1000", "-1|1001|nan|inf|0x10|1,5| 1||1e|--1|1e999"},
    {&camera_table, "url", "x|rtsp://h/|/dev/video0|\xc3\xa4", "|a\nb|a\x7f|\x1b[0m"},
    {&camera_table, "transport", "tcp|udp|multicast", "TCP|tc|tcpp||auto"},
    {&camera_table, "connect_timeout", "10s|250ms|2m|1h|1.5s|100ms|0.5m",
     "10|0|99ms|2h|s|10 s|10sec|-1s|1e1s|10us||1..5s"},
    {&root_table, "notify.command", "tell somebody|/bin/tell", ""},
    {&root_table, "notify.calm", "1s|5m|24h", "0|999ms|25h"},
    {&root_table, "notify.grace", "0|1h", "-1s|61m"},
    {&root_table, "notify.mqtt.discovery", "off|homeassistant", "|a\nb"},
    {&root_table, "cluster.etcd",
     "http://a:2379|https://10.0.0.1:1|HTTP://a.b:65535/|http://[fe80::1]:2379",
     "|a:2379|http://a|http://:2379|http://[]:1|http://[::1:1|http://a:0|http://a:65536|http://a:1/"
     "b|ftp://a:1|http://u:p@a:1|http://u@a:1|http://a b:1|unix:/a"},
    {&root_table, "cluster.lease", "2s|5s|1m", "0|1999ms|61s|5"},
    {&root_table, "cluster.room", "auto|0|10000", "-1|1.5|10001|all"},
    {&root_table, "cluster.alone", "stop|keep", "kill|true|"},
    {&output_table, "max_age", "0|0s|1ms|1h", "1|1.0|-0|3601s"},
    {&root_table, "cuda.band", "auto|0|64KiB|8MiB|1GiB|1.5MiB", "8|8MB|8M|2GiB|8 MiB|-8MiB||MiB"},
    {&root_table, "cuda.decoders", "auto|0|1|64", "65|-1|1.5"},
    {&root_table, "cuda.memory", "auto|0|512MiB|139GiB|1024GiB", "1025GiB|8|8GB|1TiB|-1GiB"},
    {&camera_table, "tls.fingerprint",
     "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08|"
     "9F:86:D0:81:88:4C:7D:65:9A:2F:EA:A0:C5:5A:D0:15:A3:BF:4F:1B:2B:0B:82:2C:D1:5D:6C:15:B0:F0:0A:"
     "08",
     "9f86|9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a0800|"
     "9f::86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08|"
     "xf86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08|"
     "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08:"},
    {&root_table, "cpu.pin", "auto|none|0|1023|0-3|0-3,8|5,1-1",
     "|off|on|1024|0-1024|3-0|0-|-1|0,|,0|1,,2|0--1|0 - 3|0-3-5|01|99999999|1;2|0x1"},
    {&camera_table, "picture", "auto|1920x1080|1x1|16384x16384", "0|0x0|1080p|16385x1|1920"},
    {&output_table, "size", "640x640|1x1|16384x16384",
     "640|x|640x|x640|0x1|1x0|16385x1|1x16385|640X640|640 x 640|-1x1|1x1x1|01x1|"},
    {&output_table, "fill", "0|255|114|mean", "-1|256|1.5|"},
    {&output_table, "tensor.mean", "0|-0.5|123.675", "x|"},
    {&output_table, "tensor.std", "1|0.229", "0|-1|0.0"},
    {&output_table, "tensor.scale", "1|1/255|0.5|2/1|1e-2",
     "0|0/1|1/0|1/|/1|1/2/3|-1/255|1 / 255|"},
    {&camera_table, "motion.mask",
     "0,0 9,0 9,9|0,0,9,0,9,9|0 0 9 0 9 9| 0, 0  9 ,0 9,16384 |1,1 1,1 1,1",
     "|0,0|0,0 9,0|0,0 9,0 9|0,0 9,0 9,9,|,0 0,9 9,9|0,,0 9,0 9,9|0.5,0 9,0 9,9|-1,0 9,0 9,9|"
     "0,0 9,0 9,16385|0;0 9;0 9;9|01,0 9,0 9,9"},
    {&camera_table, "grid", "1x1|32x18|64x64", "65x1|1x65|0x0|32|auto"},
    {&output_table, "gate.every", "0|10s|24h", "10|25h|-1s"},
    {&output_table, "mode", "0660|660|0000|0777", "0888|66|00660|rw|1777|0o660|-660|"},
    {&output_table, "segment", "0|1s|10m|24h|1500ms|1d|1MiB|1.5GiB|1024GiB",
     "|1|10|0s|999ms|25h|2d|1023KiB|1025GiB|1TiB|1GB|-1h|10 m|m|GiB|0MiB|auto"},
    {&output_table, "wait", "auto|0|0ms|1s|12.5ms", "|1|2s|1001ms|-1s|off|Auto"},
    {&output_table, "count", "auto|1|256", "0|257|-1|1.5|off|"},
    {&output_table, "per_camera", "1|16", "0|17|auto"},
    {&output_table, "cameras", "gate|gate*|!yard-?|*|a_B-9|0123456789abcdef0123456789abcde",
     "|!|!!a|a b|a.b|[ab]|\\*|gäte|0123456789abcdef0123456789abcdef"},
    {&output_table, "roi", "door|all|0", ""},
    {&output_table, "shared", "/a|/-|/framed-gate.1_A|/0123456789abcdef0123456789abcdef012345",
     "|a|/|//|/a/b|a/|/.|/..|/.a|/a b|/ä|/a%|/0123456789abcdef0123456789abcdef0123456"},
    {&output_table, "tiles.size", "none|8|16384", "0|7|16385|640x640|auto|"},
    {&output_table, "tiles.overlap", "0%|20%|50%", "20|51%|-1%|20 %|2.5%|20%%|%|"},
    {&output_table, "affine", "", "1"},
    {&output_table, "crop", "", "1"},
    {&output_table, "sink",
     "unix:/a|unix:a|unix:/%q|ring:/a|ring:a|file:/a:b|file:/"
     "%Y-%%|file:%%Y|tcp:0|tcp:65535|tcp:0.0.0.0:1|tcp:localhost:1|"
     "tcp:[::1]:80|tcp:[fe80::1%eth0]:80",
     "|/"
     "a|unix:|ring:|ring|file:|tcp:|tcp:65536|tcp:h|tcp:h:|tcp::1|tcp:::1:80|tcp:[]:1|tcp:h:1|tcp:"
     "localhost.:1|tcp:127.1:1|"
     "tcp:1.2.3.4%lo:1|tcp:[::1::]:80|udp:1|file:%|nats:|nats://h/s|"
     "file:/%q|file:/%Y/a|unix:/"
     "a\n|UNIX:/"
     "a"},
};

static const struct {
    const char *key;
    int n;
    const char *entries[7];
    bool good;
} lists[] = {
    {"fill", 3, {"0", "114", "255"}, true},
    {"fill", 2, {"0", "1"}, false},
    {"fill", 4, {"0", "1", "2", "3"}, false},
    {"fill", 3, {"0", "1", "256"}, false},
    {"fill", 3, {"0", "1", "x"}, false},
    {"tensor.mean", 3, {"0.485", "0.456", "0.406"}, true},
    {"tensor.std", 3, {"0.2", "0", "0.2"}, false},
    {"affine", 6, {"1", "0", "-0.5", "0", "1", "1e3"}, true},
    {"affine", 5, {"1", "0", "0", "0", "1"}, false},
    {"affine", 6, {"1", "0", "0", "0", "1", "1e7"}, false},
    {"crop", 4, {"0", "0", "1", "1"}, true},
    {"cameras", 3, {"gate*", "yard-?", "!yard-9"}, true},
    {"cameras", 3, {"gate*", "", "!yard-9"}, false},
    {"crop", 4, {"0", "0", "0", "1"}, false},
    {"crop", 4, {"-1", "0", "1", "1"}, false},
    {"crop", 4, {"0.5", "0", "1", "1"}, false},
    {"cuda.devices", 1, {"1"}, true},
    {"cuda.devices", 3, {"2", "0", "63"}, true},
    {"cuda.devices", 2, {"0", "64"}, false},
    {"cuda.devices", 3, {"1", "0", "1"}, false},
    {"cuda.devices", 2, {"auto", "0"}, false},
    {"cluster.etcd", 3, {"http://a:1", "http://b:1", "http://c:1"}, true},
    {"cluster.etcd", 2, {"http://a:1", "http://A:1"}, false},
    {"cluster.etcd", 2, {"http://a:1", "https://b:1"}, false},
    {"notify.command", 3, {"/bin/tell", "--to", "somebody"}, true},
    {"notify.command", 2, {"tell", "somebody"}, false},
    {"notify.command", 2, {"", "somebody"}, false},
};

static const struct {
    const char *key, *text;
    int value;
} choices[] = {
    {"fit", "letterbox", FIT_LETTERBOX},
    {"fit", "stretch", FIT_STRETCH},
    {"fit", "crop", FIT_CROP},
    {"fit", "none", FIT_NONE},
    {"fit", "ultralytics", FIT_ULTRALYTICS},
    {"fit", "yolox", FIT_YOLOX},
    {"fit", "mmdet", FIT_MMDET},
    {"preset", "framed", PRESET_FRAMED},
    {"preset", "ultralytics", PRESET_ULTRALYTICS},
    {"preset", "yolox", PRESET_YOLOX},
    {"preset", "mmdet", PRESET_MMDET},
    {"preset", "stretch", PRESET_STRETCH},
    {"preset", "imagenet-stretch", PRESET_IMAGENET_STRETCH},
    {"preset", "opencv-blob", PRESET_OPENCV_BLOB},
    {"preset", "ultralytics-rect", PRESET_ULTRALYTICS_RECT},
    {"preset", "torchvision", PRESET_TORCHVISION},
    {"preset", "deepstream", PRESET_DEEPSTREAM},
    {"fit", "rect", FIT_RECT},
    {"fit", "torchvision", FIT_TORCHVISION},
    {"fit", "deepstream", FIT_DEEPSTREAM},
    {"fit", "deepstream-symmetric", FIT_DEEPSTREAM_SYMMETRIC},
    {"fit", "opencv-crop", FIT_OPENCV_CROP},
    {"filter", "nearest", FILTER_NEAREST},
    {"edge", "blend", EDGE_BLEND},
    {"edge", "repeat", EDGE_REPEAT},
    {"filter", "bilinear", FILTER_BILINEAR},
    {"filter", "area", FILTER_AREA},
    {"filter", "triangle", FILTER_TRIANGLE},
    {"interpolation", "trilinear", LUT_TRILINEAR},
    {"interpolation", "tetrahedral", LUT_TETRAHEDRAL},
    {"flip", "none", FLIP_NONE},
    {"flip", "horizontal", FLIP_HORIZONTAL},
    {"flip", "vertical", FLIP_VERTICAL},
    {"flip", "both", FLIP_BOTH},
    {"order", "arrival", BATCH_ARRIVAL},
    {"order", "fixed", BATCH_FIXED},
    {"tail", "cut", BATCH_CUT},
    {"tail", "zero", BATCH_ZERO},
    {"tensor.dtype", "u8", DTYPE_U8},
    {"tensor.dtype", "s8", DTYPE_S8},
    {"tensor.dtype", "f16", DTYPE_F16},
    {"tensor.dtype", "f32", DTYPE_F32},
    {"tensor.layout", "nchw", LAYOUT_NCHW},
    {"tensor.layout", "nhwc", LAYOUT_NHWC},
    {"tensor.order", "rgb", ORDER_RGB},
    {"tensor.order", "bgr", ORDER_BGR},
    {"tensor.order", "gray", ORDER_GRAY},
    {"colour.matrix", "auto", MATRIX_UNSPECIFIED},
    {"colour.matrix", "bt601", MATRIX_BT601},
    {"colour.matrix", "bt709", MATRIX_BT709},
    {"colour.matrix", "bt2020", MATRIX_BT2020},
    {"colour.matrix", "bt601-8bit", MATRIX_BT601_8BIT},
    {"colour.range", "auto", RANGE_UNSPECIFIED},
    {"colour.range", "limited", RANGE_LIMITED},
    {"colour.range", "full", RANGE_FULL},
    {"ready", "any", READY_ANY},
    {"ready", "all", READY_ALL},
    {"overflow", "auto", OVERFLOW_AUTO},
    {"overflow", "drop_oldest", OVERFLOW_DROP_OLDEST},
    {"overflow", "drop_newest", OVERFLOW_DROP_NEWEST},
    {"overflow", "wait", OVERFLOW_WAIT},
    {"memory", "host", RING_HOST},
    {"memory", "cuda", RING_CUDA},
    {"memory", "cuda-ipc", RING_CUDA_IPC},
    {"protocol", "auto", PROTOCOL_AUTO},
    {"protocol", "framed", PROTOCOL_FRAMED},
    {"protocol", "y4m", PROTOCOL_Y4M},
    {"protocol", "npy", PROTOCOL_NPY},
    {"protocol", "raw", PROTOCOL_RAW},
    {"protocol", "mp4", PROTOCOL_MP4},
    {"protocol", "mkv", PROTOCOL_MKV},
    {"transport", "tcp", TRANSPORT_TCP},
    {"transport", "udp", TRANSPORT_UDP},
    {"transport", "multicast", TRANSPORT_MULTICAST},
    {"pace", "full", PACE_FULL},
    {"pace", "realtime", PACE_REALTIME},
    {"rotate", "auto", TURNING_AUTO},
    {"rotate", "ignore", TURNING_IGNORE},
    {"pictures", "auto", PICTURES_AUTO},
    {"pictures", "all", PICTURES_ALL},
    {"pictures", "reference", PICTURES_REFERENCE},
    {"pictures", "keyframes", PICTURES_KEYFRAMES},
    {"damaged", "flag", DAMAGED_FLAG},
    {"damaged", "drop", DAMAGED_DROP},
    {"damaged", "hold", DAMAGED_HOLD},
    {"backend", "auto", BACKEND_AUTO},
    {"backend", "cpu", BACKEND_CPU},
    {"backend", "cuda", BACKEND_CUDA},
    {"cluster.alone", "stop", ALONE_STOP},
    {"cluster.alone", "keep", ALONE_KEEP},
    {"log.level", "error", LOG_LEVEL_ERROR},
    {"log.level", "warning", LOG_LEVEL_WARNING},
    {"log.level", "info", LOG_LEVEL_INFO},
    {"log.level", "debug", LOG_LEVEL_DEBUG},
};

static void test_text(const struct table *table, const struct config_row *row, const char *text,
                      bool good)
{
    static max_align_t object[1024];
    const char *wrong = NULL;
    memset(object, 0, table->size);
    int status = value_parse(row, object, &text, 1, &wrong);
    CHECK((status == 0) == good, "%s: '%s': %d %s", row->key, text, status, wrong ? wrong : "");
    CHECK(good || (wrong && *wrong), "%s: '%s' fails without a reason", row->key, text);
    object_free(table, object);
}

static void test_texts(const struct table *table, const char *key, const char *texts, bool good)
{
    char text[256];
    const struct config_row *row = table_find(table, key);
    CHECK(row, "%s", key);
    for (const char *end; row; texts = end + 1) {
        end = strchrnul(texts, '|');
        snprintf(text, sizeof text, "%.*s", (int)(end - texts), texts);
        test_text(table, row, text, good);
        if (!*end)
            break;
    }
}

static void test_lists(void)
{
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        static max_align_t object[1024];
        memset(object, 0, sizeof object);
        const struct config_row *row = table_find(&output_table, lists[i].key);
        if (!row)
            row = table_find(&root_table, lists[i].key);
        const char *wrong = NULL;
        int status = value_parse(row, object, lists[i].entries, lists[i].n, &wrong);
        CHECK((status == 0) == lists[i].good, "%s, row %zu: %s", lists[i].key, i,
              wrong ? wrong : "");
        value_free(row, object);
    }
}

static void parse(const char *key, void *object, const struct table *table, const char *text)
{
    const char *wrong;
    CHECK(!value_parse(table_find(table, key), object, &text, 1, &wrong), "%s %s", key, text);
}

static int choices_of(const struct table *table)
{
    int n = 0;
    for (int i = 0; i < table->n; i++) {
        for (const struct config_choice *c = table->rows[i].choices; c && c->name; c++)
            n++;
    }
    return n;
}

// Kernels and formats have the names of kernels/; all other choices are listed above.
static void test_choices(void)
{
    static max_align_t object[1024];
    const struct table *const tables[] = {&root_table, &camera_table, &output_table};
    int expected = 4 + KERNEL_STATS + 1;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
            const struct config_row *row = table_find(tables[t], choices[i].key);
            // A numeric key of an output may share its name with a camera's choice.
            if (!row || !row->choices)
                continue;
            parse(choices[i].key, object, tables[t], choices[i].text);
            CHECK(*(int *)value_member(row, object) == choices[i].value, "%s: %s", choices[i].key,
                  choices[i].text);
            expected++;
        }
    }
    CHECK(choices_of(tables[0]) + choices_of(tables[1]) + choices_of(tables[2]) == expected,
          "a choice is not listed here");
    static const char *const others[] = {"copy", "stats"}; // not ops
    for (const struct config_choice *c = table_find(&output_table, "kernel")->choices; c->name; c++)
        CHECK(!strcmp(c->name,
                      c->value < OP_KINDS ? op_types[c->value]->name : others[c->value - OP_KINDS]),
              "%s", c->name);
    for (const struct config_choice *c = table_find(&output_table, "format")->choices; c->name; c++)
        CHECK(!strcmp(c->name, pixel_format_name((enum pixel_format)c->value)), "%s", c->name);
}

static void test_results(void)
{
    struct camera_config camera = {0};
    struct output_config output = {0};
    struct config config = {0};
    parse("connect_timeout", &camera, &camera_table, "250ms");
    CHECK(camera.connect_timeout.ns == 250000000, "%jd", (intmax_t)camera.connect_timeout.ns);
    parse("connect_timeout", &camera, &camera_table, "1.5m");
    CHECK(camera.connect_timeout.ns == 90000000000, "%jd", (intmax_t)camera.connect_timeout.ns);
    parse("cuda.band", &config, &root_table, "8MiB");
    CHECK(config.cuda.band.n == 8 << 20, "%jd", (intmax_t)config.cuda.band.n);
    parse("cuda.band", &config, &root_table, "auto");
    CHECK(config.cuda.band.n == 0, "%jd", (intmax_t)config.cuda.band.n);
    parse("cuda.memory", &config, &root_table, "139GiB");
    CHECK(config.cuda.memory.n == 139LL << 30, "%jd", (intmax_t)config.cuda.memory.n);
    parse("size", &output, &output_table, "640x360");
    CHECK(output.size.width == 640 && output.size.height == 360, "%d", output.size.width);
    parse("tensor.scale", &output, &output_table, "1/255");
    CHECK(output.tensor.scale.value == 1.0 / 255, "%g", output.tensor.scale.value);
    parse("mode", &output, &output_table, "0660");
    CHECK(output.mode.mode == 0660, "%o", output.mode.mode);
    parse("fill", &output, &output_table, "7");
    CHECK(output.fill.n == 1 && output.fill.v[0] == 7, "%d", output.fill.v[0]);
    parse("sink", &output, &output_table, "tcp:[::1]:80");
    CHECK(output.sink.kind == SINK_TCP && !strcmp(output.sink.host, "::1") &&
              output.sink.port == 80,
          "%s", output.sink.host);
    parse("sink", &output, &output_table, "file:a:b");
    CHECK(output.sink.kind == SINK_FILE && !output.sink.host && !strcmp(output.sink.path, "a:b"),
          "%s", output.sink.path);
    parse("sink", &output, &output_table, "ring:a:b");
    CHECK(output.sink.kind == SINK_RING && !output.sink.host && !strcmp(output.sink.path, "a:b"),
          "%s", output.sink.path);
    object_free(&output_table, &output);
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (*cases[i].good)
            TEST(test_texts(cases[i].table, cases[i].key, cases[i].good, true));
        TEST(test_texts(cases[i].table, cases[i].key, cases[i].bad, false));
    }
    TEST(test_lists());
    TEST(test_choices());
    TEST(test_results());
    return test_end();
}
