#include "config/preset.h"

#include <assert.h>
#include <string.h>

#include "config/value.h"

struct setting {
    const char *key, *text[3]; // as a user writes it, one text or a list of three
};

// Keys that presets set, with the values of each preset that has no other below. Only presets
// trained with one size set `size` too.
static const struct setting shared[] = {
    {"fit", {"letterbox"}},      {"scaleup", {"true"}},       {"stride", {"32"}},
    {"filter", {"bilinear"}},    {"edge", {"repeat"}},        {"fill", {"114"}},
    {"tensor.dtype", {"f32"}},   {"tensor.layout", {"nchw"}}, {"tensor.order", {"rgb"}},
    {"tensor.scale", {"1/255"}}, {"tensor.mean", {"0"}},      {"tensor.std", {"1"}},
};

enum { SETTINGS_MAX = 5 };

static const struct setting own[][SETTINGS_MAX] = {
    [PRESET_FRAMED] = {{"edge", {"blend"}}, {"tensor.dtype", {"u8"}}, {"tensor.scale", {"1"}}},
    [PRESET_ULTRALYTICS] = {{"fit", {"ultralytics"}}},
    [PRESET_YOLOX] = {{"fit", {"yolox"}}, {"tensor.order", {"bgr"}}, {"tensor.scale", {"1"}}},
    [PRESET_MMDET] = {{"fit", {"mmdet"}},
                      {"tensor.order", {"bgr"}},
                      {"tensor.scale", {"1"}},
                      {"tensor.mean", {"103.53", "116.28", "123.675"}},
                      {"tensor.std", {"57.375", "57.12", "58.395"}}},
    [PRESET_STRETCH] = {{"fit", {"stretch"}}},
    [PRESET_IMAGENET_STRETCH] = {{"fit", {"stretch"}},
                                 {"tensor.mean", {"0.485", "0.456", "0.406"}},
                                 {"tensor.std", {"0.229", "0.224", "0.225"}}},
    [PRESET_OPENCV_BLOB] = {{"fit", {"stretch"}},
                            {"tensor.order", {"bgr"}},
                            {"tensor.scale", {"1"}}},
    [PRESET_ULTRALYTICS_RECT] = {{"fit", {"rect"}}},
    [PRESET_TORCHVISION] = {{"size", {"1333x800"}},
                            {"fit", {"torchvision"}},
                            {"fill", {"mean"}},
                            {"tensor.mean", {"0.485", "0.456", "0.406"}},
                            {"tensor.std", {"0.229", "0.224", "0.225"}}},
    [PRESET_DEEPSTREAM] = {{"fit", {"deepstream"}},
                           {"filter", {"nearest"}},
                           {"fill", {"0"}},
                           {"tensor.scale", {"1"}}},
};

static void set(struct output_config *output, const struct setting *setting,
                const struct given given[])
{
    const struct config_row *row = table_find(&output_table, setting->key);
    const char *wrong;
    if (given && given[row - output_table.rows].key.line)
        return;
    const int status = value_parse(row, output, setting->text, setting->text[1] ? 3 : 1, &wrong);
    assert(status == 0); // none of these values needs memory
    (void)status;
}

static void set_all(struct output_config *output, const struct given given[])
{
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        set(output, &shared[i], given);
    const struct setting *settings = own[output->preset];
    for (int i = 0; i < SETTINGS_MAX && settings[i].key; i++)
        set(output, &settings[i], given);
}

void preset_values(struct output_config *output)
{
    set_all(output, NULL);
}

void preset_each(enum preset preset,
                 void (*each)(void *opaque, const char *key, const char *const text[], int n),
                 void *opaque)
{
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        each(opaque, shared[i].key, shared[i].text, shared[i].text[1] ? 3 : 1);
    for (const struct setting *s = own[preset]; s < own[preset] + SETTINGS_MAX && s->key; s++)
        each(opaque, s->key, s->text, s->text[1] ? 3 : 1);
}

static bool is_given(const struct given given[], const char *key)
{
    return given[table_find(&output_table, key) - output_table.rows].key.line > 0;
}

void preset_apply(struct output_config *output, const struct given given[])
{
    if (is_given(given, "preset"))
        set_all(output, given);
    if (is_given(given, "tiles.size") && !is_given(given, "size") && output->tiles.size)
        output->size = (struct dimensions){output->tiles.size, output->tiles.size};
}
