// Presets: the parameters that reach the kernels, and precedence between preset, key and default.
#include "config/load.h"

#include <string.h>

#include "config/config.h"
#include "config/object.h"
#include "tests/test.h"

static struct config *load(const char *text)
{
    struct config *config = NULL;
    const int status = config_load_text(&config, text, strlen(text), "text", stderr);
    CHECK(status == 0 && config, "%d mistakes in: %s", status, text);
    return config;
}

static struct warp_params warp_of(const struct config *config, int output)
{
    struct op_params op;
    output_config_op(&config->cameras->outputs[output], &op);
    return op.warp;
}

static void expect_numbers(const struct warp_params *p, const char *name, double scale,
                           const double mean[3], const double std[3])
{
    CHECK(p->scale == scale, "%s: scale %g", name, p->scale);
    for (int i = 0; i < 3; i++)
        CHECK(p->mean[i] == mean[i] && p->std[i] == std[i], "%s: mean %g, std %g of channel %d",
              name, p->mean[i], p->std[i], i);
}

static void test_values(void)
{
    static const struct {
        const char *name;
        enum fit fit;
        enum dtype dtype;
        enum order order;
        double scale, mean[3], std[3];
    } rows[] = {
        {"framed", FIT_LETTERBOX, DTYPE_U8, ORDER_RGB, 1, {0, 0, 0}, {1, 1, 1}},
        {"ultralytics", FIT_ULTRALYTICS, DTYPE_F32, ORDER_RGB, 1.0 / 255, {0, 0, 0}, {1, 1, 1}},
        {"yolox", FIT_YOLOX, DTYPE_F32, ORDER_BGR, 1, {0, 0, 0}, {1, 1, 1}},
        {"mmdet",
         FIT_MMDET,
         DTYPE_F32,
         ORDER_BGR,
         1,
         {103.53, 116.28, 123.675},
         {57.375, 57.12, 58.395}},
        {"stretch", FIT_STRETCH, DTYPE_F32, ORDER_RGB, 1.0 / 255, {0, 0, 0}, {1, 1, 1}},
        {"imagenet-stretch",
         FIT_STRETCH,
         DTYPE_F32,
         ORDER_RGB,
         1.0 / 255,
         {0.485, 0.456, 0.406},
         {0.229, 0.224, 0.225}},
        {"opencv-blob", FIT_STRETCH, DTYPE_F32, ORDER_BGR, 1, {0, 0, 0}, {1, 1, 1}},
        {"ultralytics-rect", FIT_RECT, DTYPE_F32, ORDER_RGB, 1.0 / 255, {0, 0, 0}, {1, 1, 1}},
        {"torchvision",
         FIT_TORCHVISION,
         DTYPE_F32,
         ORDER_RGB,
         1.0 / 255,
         {0.485, 0.456, 0.406},
         {0.229, 0.224, 0.225}},
        {"deepstream", FIT_DEEPSTREAM, DTYPE_F32, ORDER_RGB, 1, {0, 0, 0}, {1, 1, 1}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "cameras: {a: {url: x, outputs: {o: {sink: 'tcp:0', preset: %s}}}}", rows[i].name);
        struct config *c = load(text);
        if (!c)
            continue;
        const struct warp_params p = warp_of(c, 0);
        const bool framed = strcmp(rows[i].name, "framed") == 0;
        const bool torchvision = rows[i].fit == FIT_TORCHVISION;
        const bool deepstream = rows[i].fit == FIT_DEEPSTREAM;
        CHECK(p.fit == rows[i].fit && p.filter == (deepstream ? FILTER_NEAREST : FILTER_BILINEAR),
              "%s: fit %d, filter %d", rows[i].name, p.fit, p.filter);
        CHECK(p.edge == (framed ? EDGE_BLEND : EDGE_REPEAT) && !p.shrink_only && p.stride == 32,
              "%s: edge %d, shrink_only %d, stride %d", rows[i].name, p.edge, p.shrink_only,
              p.stride);
        CHECK(p.width == (torchvision ? 1333 : 640) && p.fill_mean == torchvision,
              "%s: width %d, mean %d", rows[i].name, p.width, p.fill_mean);
        CHECK(p.dtype == rows[i].dtype && p.layout == LAYOUT_NCHW && p.order == rows[i].order,
              "%s: dtype %d, layout %d, order %d", rows[i].name, p.dtype, p.layout, p.order);
        const int fill = deepstream || torchvision ? 0 : 114;
        CHECK(p.fill[0] == fill && p.fill[1] == fill && p.fill[2] == fill, "%s: fill %d",
              rows[i].name, p.fill[0]);
        expect_numbers(&p, rows[i].name, rows[i].scale, rows[i].mean, rows[i].std);
        config_free(c);
    }
}

static void print_key(void *opaque, const char *key, const char *const text[], int n)
{
    fprintf(opaque, ", %s: %s%s", key, n == 3 ? "[" : "", text[0]);
    if (n == 3)
        fprintf(opaque, ", %s, %s]", text[1], text[2]);
}

// Setting all keys of a preset equals the preset. A file must not set a key twice, so the first of
// two values is removed.
static void test_keys_of_presets(void)
{
    const struct config_choice *choice = table_find(&output_table, "preset")->choices;
    for (; choice->name; choice++) {
        char keys[1024] = "", text[2560];
        FILE *to = fmemopen(keys, sizeof keys, "w");
        preset_each((enum preset)choice->value, print_key, to);
        fclose(to);
        for (char *key = keys; key && (key = strchr(key, ',')); key++) {
            char name[32];
            char *colon = sscanf(key, ", %30[a-z.]:", name) == 1 ? strchr(key, ':') : NULL;
            if (!colon || !strstr(colon, strncat(name, ": ", 3)))
                continue;
            char *next = strstr(colon, ", ");
            memmove(key, next, strlen(next) + 1);
            key--;
        }
        snprintf(text, sizeof text,
                 "cameras: {a: {url: x, outputs: {o: {sink: 'tcp:0', preset: %s},\n"
                 "  p: {sink: 'tcp:0'%s}}}}\n",
                 choice->name, keys);
        struct config *c = load(text);
        if (!c)
            continue;
        const struct output_config *outputs = c->cameras->outputs;
        struct op_params by_preset, by_keys;
        output_config_op(&outputs[0], &by_preset);
        output_config_op(&outputs[1], &by_keys);
        CHECK(memcmp(&by_preset.warp, &by_keys.warp, sizeof by_keys.warp) == 0, "%s: %s",
              choice->name, keys);
        config_free(c);
    }
}

// `framed` equals an output without a preset.
static void test_framed_is_the_default(void)
{
    struct config *c = load("cameras: {a: {url: x, outputs: {o: {sink: 'tcp:0'},\n"
                            "  p: {sink: 'tcp:0', preset: framed}}}}\n");
    if (!c)
        return;
    const struct output_config *outputs = c->cameras->outputs;
    CHECK(config_same_output(&outputs[0], &outputs[1]), "they differ");
    config_free(c);
}

static void test_keys_win(void)
{
    struct config *c = load(
        "cameras: {a: {url: x, outputs: {\n"
        "  before: {sink: 'tcp:0', fit: crop, filter: area, fill: 0, preset: yolox,\n"
        "           tensor: {dtype: f16, layout: nhwc, order: rgb, scale: 2, mean: 3, std: 4}},\n"
        "  after: {sink: 'tcp:0', preset: mmdet, tensor: {mean: 5}}}}}\n");
    if (!c)
        return;
    const struct warp_params p = warp_of(c, 0), q = warp_of(c, 1);
    CHECK(p.fit == FIT_CROP && p.filter == FILTER_AREA && p.fill[1] == 0, "%d %d %d", p.fit,
          p.filter, p.fill[1]);
    CHECK(p.dtype == DTYPE_F16 && p.layout == LAYOUT_NHWC && p.order == ORDER_RGB, "%d %d %d",
          p.dtype, p.layout, p.order);
    expect_numbers(&p, "before", 2, (double[]){3, 3, 3}, (double[]){4, 4, 4});
    expect_numbers(&q, "after", 1, (double[]){5, 5, 5}, (double[]){57.375, 57.12, 58.395});
    config_free(c);
}

// Weakest first: a preset of `defaults`, the keys beside it, an output's preset, its keys.
static void test_defaults(void)
{
    struct config *c = load("defaults: {preset: mmdet, fill: 7, rotate: 90, slots: 9,\n"
                            "           affine: [1, 0, 0, 0, 1, 0]}\n"
                            "cameras: {a: {url: x, outputs: {\n"
                            "  inherits: {sink: 'tcp:0', tensor: {dtype: f16}},\n"
                            "  names: {sink: 'tcp:0', preset: ultralytics},\n"
                            "  archive: {sink: 'tcp:0', kernel: yuv}}}}\n");
    if (!c)
        return;
    const struct warp_params p = warp_of(c, 0), q = warp_of(c, 1);
    CHECK(p.fit == FIT_MMDET && p.fill[0] == 7 && p.dtype == DTYPE_F16 && p.order == ORDER_BGR,
          "%d %d %d %d", p.fit, p.fill[0], p.dtype, p.order);
    CHECK(q.fit == FIT_ULTRALYTICS && q.fill[0] == 114 && q.dtype == DTYPE_F32 &&
              q.order == ORDER_RGB,
          "%d %d %d %d", q.fit, q.fill[0], q.dtype, q.order);
    expect_numbers(&p, "inherits", 1, (double[]){103.53, 116.28, 123.675},
                   (double[]){57.375, 57.12, 58.395});
    expect_numbers(&q, "names", 1.0 / 255, (double[]){0, 0, 0}, (double[]){1, 1, 1});
    CHECK(p.has_affine && !q.has_affine, "a preset replaces the affine of defaults");
    CHECK(q.rotate == 90 && c->cameras->outputs[1].slots == 9, "keys that no preset sets");
    config_free(c);
}

int main(void)
{
    TEST(test_values());
    TEST(test_keys_of_presets());
    TEST(test_framed_is_the_default());
    TEST(test_keys_win());
    TEST(test_defaults());
    return test_end();
}
