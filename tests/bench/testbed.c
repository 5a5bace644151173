#include "tests/bench/testbed.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "config/load.h"
#include "tests/bench/ring.h"

static void url_of(const struct testbed *testbed, int camera, char *path, size_t size)
{
    char url[64];
    if (testbed->options.rtsp) {
        rtsp_server_url(testbed->options.rtsp, camera, url);
        snprintf(path, size, "%s", url);
    } else if (camera >= testbed->options.cameras - testbed->options.joining) {
        snprintf(path, size, "%s/clip-%d", testbed->folder, camera);
    } else {
        snprintf(path, size, "%s", testbed->clip);
    }
}

// Prints in double quotes, escaped for YAML and for the configuration's own $.
static void print_quoted(FILE *to, const char *text)
{
    putc('"', to);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putc('\\', to);
        if (*text == '$')
            putc('$', to);
        putc(*text, to);
    }
    putc('"', to);
}

// --- the configuration

enum { BASE_SETTINGS = 11 };

struct settings {
    struct setting list[BASE_SETTINGS + SETTINGS_MAX];
    int n;
};

// Replaces the key's value, or all of the section with this name.
static void set(struct settings *settings, const char *key, const char *value)
{
    const size_t length = strlen(key);
    int n = 0;
    for (int i = 0; i < settings->n; i++) {
        const char *other = settings->list[i].key;
        if (strncmp(other, key, length) != 0 || (other[length] && other[length] != '.'))
            settings->list[n++] = settings->list[i];
    }
    settings->list[n++] = (struct setting){key, value};
    settings->n = n;
}

// "copy" is not a configuration key: `on` gives each camera a second output that records its
// packets, in files that end together.
static const char copy_key[] = "copy";

static bool copies(const struct settings *settings)
{
    for (int i = 0; i < settings->n; i++)
        if (strcmp(settings->list[i].key, copy_key) == 0)
            return strcmp(settings->list[i].value, "on") == 0;
    return false;
}

// Prints the settings below a prefix, "" or "cuda.", with each section once.
static void print_section(FILE *to, const struct settings *settings, const char *prefix,
                          size_t length)
{
    for (int i = 0; i < settings->n; i++) {
        const char *key = settings->list[i].key, *name = key + length;
        if (strncmp(key, prefix, length) != 0 || strcmp(key, copy_key) == 0)
            continue;
        const size_t end = strcspn(name, ".");
        const size_t section = length + end + 1;
        int before = 0;
        while (name[end] && before < i && strncmp(settings->list[before].key, key, section) != 0)
            before++;
        if (name[end] && before < i)
            continue; // already printed
        fprintf(to, "%.*s: ", (int)end, name);
        if (name[end]) {
            putc('{', to);
            print_section(to, settings, key, section);
            putc('}', to);
        } else {
            print_quoted(to, settings->list[i].value);
        }
        fputs(length ? ", " : "\n", to);
    }
}

static void print_config(const struct testbed *testbed, FILE *to)
{
    static const char *const backends[] = {"auto", "cpu", "cuda"};
    static const char *const dtypes[] = {"u8", "s8", "f16", "f32"};
    const struct testbed_options *options = &testbed->options;
    struct settings settings = {.n = 0};
    char path[4096], decoders[16], picture[32];
    snprintf(decoders, sizeof decoders, "%d", options->decoders);
    snprintf(picture, sizeof picture, "%dx%d", options->width, options->height);
    set(&settings, "backend", backends[options->backend]);
    set(&settings, "cuda.decoders", decoders);
    set(&settings, "log.level", "warning");
    set(&settings, "control", "off");
    set(&settings, "defaults.picture", picture);
    if (options->rtsp) {
        set(&settings, "defaults.transport", options->udp ? "udp" : "tcp");
    } else {
        set(&settings, "defaults.loop", "true");
        set(&settings, "defaults.pace", options->realtime ? "realtime" : "full");
    }
    // At full speed the cameras wait for the consumer; live cameras have to drop frames.
    set(&settings, "defaults.overflow", options->realtime ? "drop_oldest" : "wait");
    set(&settings, "defaults.size", "640x640");
    set(&settings, "defaults.tensor.dtype", dtypes[options->dtype]);
    set(&settings, "defaults.tensor.scale", options->dtype == DTYPE_U8 ? "1" : "1/255");
    for (int i = 0; i < options->n_settings; i++)
        set(&settings, options->settings[i].key, options->settings[i].value);
    print_section(to, &settings, "", 0);
    fputs("cameras:\n", to);
    for (int i = 0; i < options->cameras; i++) {
        fprintf(to, "  camera%d:\n    url: ", i);
        url_of(testbed, i, path, sizeof path);
        print_quoted(to, path);
        ring_path(testbed->folder, i, path);
        fprintf(to, "\n    outputs:\n      tensor: {sink: \"ring:%s\"}\n", path);
        if (copies(&settings))
            fprintf(to, "      copy: {kernel: copy, segment: 10s, sink: \"file:%s/%d-%%s.mp4\"}\n",
                    testbed->folder, i);
    }
}

int testbed_check(const struct testbed_options *options, char *why, size_t size)
{
    const struct testbed testbed = {.options = *options, .clip = "clip", .folder = "/tmp"};
    struct config *config = NULL;
    char *text = NULL, *mistakes = NULL;
    size_t length = 0, length_of_mistakes;
    FILE *to = open_memstream(&text, &length);
    FILE *errors = open_memstream(&mistakes, &length_of_mistakes);
    int rc = to && errors ? 0 : -ENOMEM;
    if (rc == 0)
        print_config(&testbed, to);
    if (to && fclose(to) != 0)
        rc = -ENOMEM;
    if (rc == 0 && config_load_text(&config, text, length, "bench", errors) != 0)
        rc = -EINVAL;
    if (errors && fclose(errors) != 0)
        rc = -ENOMEM;
    if (rc == -EINVAL) {
        int place = 0; // skips the position in this text, which means nothing to a user
        sscanf(mistakes, "bench:%*d:%*d: %n", &place);
        snprintf(why, size, "%.*s", (int)strcspn(mistakes + place, "\n"), mistakes + place);
    }
    config_free(config);
    free(mistakes);
    free(text);
    return rc;
}

static int write_config(struct testbed *testbed)
{
    struct config *config = NULL;
    FILE *file = fopen(testbed->config, "we");
    if (!file)
        return -errno;
    print_config(testbed, file);
    if (fclose(file) != 0)
        return -errno;
    if (config_load(&config, testbed->config, stderr) != 0)
        return -EINVAL;
    output_config_op(&config->cameras[0].outputs[0], &testbed->params);
    config_free(config);
    return 0;
}

// --- the folder

// Ignores TMPDIR if it is too long for a socket's path.
static int make_folder(char path[64])
{
    const char *under = getenv("TMPDIR");
    if (!under || strlen(under) > 36)
        under = "/tmp";
    snprintf(path, 64, "%s/framed-bench-XXXXXX", under);
    if (mkdtemp(path))
        return 0;
    int rc = -errno;
    path[0] = '\0';
    return rc;
}

static void remove_folder(const char *path)
{
    DIR *folder = *path ? opendir(path) : NULL;
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder));)
        unlinkat(dirfd(folder), entry->d_name, 0); // fails for . and ..
    closedir(folder);
    rmdir(path);
}

int testbed_open(struct testbed *testbed, const struct testbed_options *options)
{
    *testbed = (struct testbed){.options = *options};
    if (!realpath(options->clip, testbed->clip))
        return -errno;
    int rc = make_folder(testbed->folder);
    if (rc < 0)
        return rc;
    snprintf(testbed->config, sizeof testbed->config, "%s/framed.yaml", testbed->folder);
    snprintf(testbed->log, sizeof testbed->log, "%s/log", testbed->folder);
    snprintf(testbed->metrics, sizeof testbed->metrics, "%s/metrics", testbed->folder);
    rc = write_config(testbed);
    if (rc < 0)
        testbed_close(testbed);
    return rc;
}

void testbed_close(struct testbed *testbed)
{
    remove_folder(testbed->folder);
    *testbed = (struct testbed){0};
}

int testbed_join(const struct testbed *testbed, int camera)
{
    char path[4096];
    url_of(testbed, camera, path, sizeof path);
    return symlink(testbed->clip, path) == 0 ? 0 : -errno;
}
