#include "daemon/tune/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/schema.h"
#include "daemon/decode/decoder.h"
#include "kernels/backend.h"
#include "kernels/measure.h"

enum { THREADS_MOST = 16 }; // of a decoder, that libavcodec makes use of

static const char backend[] = "backend", decode[] = "defaults.decode",
                  threads[] = "defaults.decode_threads", workers[] = "cpu.workers",
                  decoders[] = "cuda.decoders", streams[] = "cuda.streams", band[] = "cuda.band",
                  slots[] = "defaults.slots";

// --- the box

static void look_for_device(struct facilities *ret, int ordinal)
{
#ifdef FRAMED_CUDA
    struct measure *measure;
    if (cuda_measure.open(&measure, ordinal) == 0) {
        snprintf(ret->device, sizeof ret->device, "%s", cuda_measure.describe(measure));
        cuda_measure.close(measure);
    }
#else
    (void)ret, (void)ordinal;
#endif
}

void settings_look(struct facilities *ret, const struct config *config)
{
    const struct processors allowed = processors_allowed();
    struct decode_device *device = NULL;
    *ret = (struct facilities){.processors = processors_count(&allowed)};
    look_for_device(ret, config->cuda.device);
    ret->nvdec = *ret->device && decode_device_open(&device, config->cuda.device, 0) == 0;
    decode_device_close(device);
}

// --- values

static void add(struct setting *setting, const char *value)
{
    for (int i = 0; i < setting->n; i++)
        if (strcmp(setting->value[i], value) == 0)
            return;
    if (setting->n < SEARCH_VALUES_MAX)
        snprintf(setting->value[setting->n++], SETTING_VALUE, "%s", value);
}

static void add_number(struct setting *setting, int value)
{
    char text[SETTING_VALUE];
    snprintf(text, sizeof text, "%d", value);
    add(setting, text);
}

static void add_words(struct setting *setting, const char *const words[], int n)
{
    for (int i = 0; i < n; i++)
        add(setting, words[i]);
}

// 1, 2, 4 and so on, below `end`.
static void add_powers(struct setting *setting, int end)
{
    for (int value = 1; value < end; value *= 2)
        add_number(setting, value);
    setting->series = true;
}

// auto is as many as there are processors.
static void add_workers(struct setting *setting, int processors)
{
    const int given = atoi(setting->value[0]);
    add_powers(setting, processors);
    if (processors > 2)
        add_number(setting, processors - 1);
    if (given != 0 && given != processors)
        add(setting, "auto");
}

// Fewer would look as good to our client, which gives every frame back at once: it says nothing of
// the client that they are kept for.
static void add_slots(struct setting *setting)
{
    const int given = atoi(setting->value[0]);
    for (int i = 2; i <= 4 && given * i <= 256; i *= 2)
        add_number(setting, given * i);
}

static void add_values(struct setting *setting, const struct facilities *box)
{
    static const char *const counts[] = {"auto", "1", "2", "4", "8", "16"};
    static const char *const inside[] = {"auto", "4", "8", "16", "32"};
    static const char *const bands[] = {"auto", "1MiB", "4MiB", "16MiB"};
    if (setting->key == backend || setting->key == decode)
        add(setting, strcmp(setting->value[0], "cpu") == 0 ? "auto" : "cpu");
    else if (setting->key == threads)
        add_powers(setting, (box->processors < THREADS_MOST ? box->processors : THREADS_MOST) + 1);
    else if (setting->key == workers)
        add_workers(setting, box->processors);
    else if (setting->key == decoders)
        add_words(setting, inside, 5);
    else if (setting->key == streams)
        add_words(setting, counts, 6);
    else if (setting->key == band)
        add_words(setting, bands, 4);
    else
        add_slots(setting);
}

// --- which

static bool is_possible(const struct facilities *box, const char *key)
{
    if (key == decode || key == decoders)
        return box->nvdec;
    if (key == backend || key == streams || key == band)
        return *box->device;
    return true;
}

static const struct row *row_of(const char *key)
{
    const char *dot = strchr(key, '.');
    const struct row *row = table_find(&root_table, key);
    if (!row && dot)
        row = table_find(&camera_table, dot + 1);
    return row || !dot ? row : table_find(&output_table, dot + 1);
}

// What the file has, in the words that the values are in. *fixed: it is looked up, or is no such
// value. 0, or as edit_find.
static int find_start(struct setting *setting, const char *text, size_t length, bool *fixed,
                      char *why, size_t size)
{
    const struct row *row = row_of(setting->key);
    char *found;
    int rc = edit_find(&found, text, length, setting->key, why, size);
    if (rc < 0)
        return rc;
    const char *value = found ? found : row->text;
    *fixed = strchr(value, '$') || strlen(value) >= SETTING_VALUE;
    if (!*fixed)
        add(setting, row->zero && strcmp(value, "0") == 0 ? row->zero : value);
    free(found);
    return 0;
}

static bool differs(const struct config *a, const struct config *b)
{
    for (int i = 0; i < a->n_cameras; i++) {
        const struct camera_config *one = &a->cameras[i], *other = &b->cameras[i];
        if (one->decode != other->decode || one->decode_threads != other->decode_threads)
            return true;
        for (int o = 0; o < one->n_outputs; o++)
            if (one->outputs[o].slots != other->outputs[o].slots)
                return true;
    }
    return false;
}

// Whether a default reaches a camera or an output, or all say themselves what they want. Negative
// where the key cannot be edited.
static int reaches(const struct setting *setting, const struct config *config, const char *text,
                   size_t length, char *why, size_t size)
{
    const struct edit edit = {setting->key, setting->value[setting->n - 1], NULL};
    struct config *edited = NULL;
    char *after;
    int rc = edit_keys(&after, &length, text, length, &edit, 1, why, size);
    if (rc < 0)
        return rc;
    if (strncmp(setting->key, "defaults.", 9) != 0)
        rc = 1;
    else if (config_load_text(&edited, after, length, setting->key, stderr) == 0)
        rc = differs(config, edited);
    config_free(edited);
    free(after);
    return rc;
}

static int try_key(struct settings *settings, const char *key, const struct config *config,
                   const char *text, size_t length, char *why, size_t size)
{
    struct setting setting = {.key = key};
    bool fixed;
    int rc = find_start(&setting, text, length, &fixed, why, size);
    if (rc < 0 || fixed)
        return rc;
    add_values(&setting, &settings->facilities);
    if (setting.n < 2)
        return 0;
    rc = reaches(&setting, config, text, length, why, size);
    if (rc > 0)
        settings->list[settings->n++] = setting;
    return rc < 0 ? rc : 0;
}

// A series rises, whatever the file has.
static int by_number(const void *a, const void *b)
{
    return atoi(a) - atoi(b);
}

static void sort(struct setting *setting)
{
    char start[SETTING_VALUE];
    strcpy(start, setting->value[0]);
    if (setting->series)
        qsort(setting->value, (size_t)setting->n, sizeof setting->value[0], by_number);
    while (strcmp(setting->value[setting->start], start) != 0)
        setting->start++;
}

int settings_find(struct settings *ret, const struct facilities *facilities, const char *text,
                  size_t length, char *why, size_t size)
{
    static const char *const keys[] = {backend,  decode,  threads, workers,
                                       decoders, streams, band,    slots};
    struct config *config = NULL;
    int rc = 0;
    *ret = (struct settings){.facilities = *facilities};
    if (config_load_text(&config, text, length, "configuration", stderr) != 0)
        return -EINVAL;
    for (size_t i = 0; rc == 0 && i < sizeof keys / sizeof *keys; i++)
        if (is_possible(facilities, keys[i]))
            rc = try_key(ret, keys[i], config, text, length, why, size);
    for (int i = 0; i < ret->n; i++)
        sort(&ret->list[i]);
    config_free(config);
    return rc;
}

// --- choices

// The value that a choice has for a key; "auto" for one that is not tried.
static const char *value_of(const struct settings *settings, const struct pick *pick,
                            const char *key)
{
    for (int i = 0; i < settings->n; i++)
        if (settings->list[i].key == key)
            return settings->list[i].value[pick->value[i]];
    return "auto";
}

bool settings_matter(const struct settings *settings, const struct pick *pick, int i)
{
    const struct facilities *box = &settings->facilities;
    const char *key = settings->list[i].key, *decoder = value_of(settings, pick, decode);
    const bool cuda = *box->device && strcmp(value_of(settings, pick, backend), "cpu") != 0;
    const bool nvdec =
        box->nvdec && (strcmp(decoder, "nvdec") == 0 || (cuda && strcmp(decoder, "cpu") != 0));
    if (key == decode)
        return cuda;
    if (key == threads)
        return !nvdec;
    if (key == workers)
        return !cuda;
    if (key == decoders)
        return nvdec;
    if (key == streams || key == band)
        return cuda;
    return true;
}

int settings_edits(const struct settings *settings, const struct pick *pick,
                   struct edit ret[SEARCH_SETTINGS_MAX])
{
    int n = 0;
    for (int i = 0; i < settings->n; i++) {
        const struct setting *setting = &settings->list[i];
        if (pick->value[i] != setting->start)
            ret[n++] = (struct edit){.key = setting->key, .value = setting->value[pick->value[i]]};
    }
    return n;
}
