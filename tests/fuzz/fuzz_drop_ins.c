// A configuration and its drop-in files, separated by form feeds: together they load or are
// refused, every mistake is in a line of one of them, and the order of the drop-ins does not matter
// to cameras and outputs.
#include <stdlib.h>
#include <string.h>

#include "config/load.h"
#include "config/object.h"

enum { FILES_MAX = 8, SEPARATOR = '\f' };

#define MAIN   "/nonexistent/framed.yaml"
#define FOLDER "/nonexistent/framed.d/"

struct files {
    struct file_change list[FILES_MAX];
    char path[FILES_MAX][sizeof FOLDER + 8];
    int n;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

// Splits the text in place.
static void split(struct files *files, char *text)
{
    *files = (struct files){0};
    for (; text && files->n < FILES_MAX; files->n++) {
        char *path = files->path[files->n], *end = strchr(text, SEPARATOR);
        snprintf(path, sizeof files->path[0], files->n ? FOLDER "%d.yaml" : MAIN, files->n);
        files->list[files->n] = (struct file_change){.path = path, .text = text};
        if (end)
            *end++ = 0;
        text = end;
    }
}

// Reverses the order of the drop-ins' texts.
static void turn(struct files *files)
{
    for (int i = 1, j = files->n - 1; i < j; i++, j--) {
        const char *text = files->list[i].text;
        files->list[i].text = files->list[j].text;
        files->list[j].text = text;
    }
}

// Counts as libyaml does: the end of the text is on a line of its own.
static int lines_of(const char *text)
{
    int n = 2;
    for (; *text; text++)
        n += *text == '\n' || *text == '\r' || !strncmp(text, "\xc2\x85", 2) ||
             !strncmp(text, "\xe2\x80\xa8", 3) || !strncmp(text, "\xe2\x80\xa9", 3);
    return n;
}

static bool is_inside(const struct file_change *file, int line, int column)
{
    return line >= 1 && line <= lines_of(file->text) && column >= 1;
}

// Checks that "file:line:column: ..." is inside one of the files.
static void check_mistake(const struct files *files, const char *printed)
{
    for (int i = 0; i < files->n; i++) {
        const size_t length = strlen(files->list[i].path);
        int line, column;
        if (strncmp(printed, files->list[i].path, length) || printed[length] != ':')
            continue;
        if (sscanf(printed + length, ":%d:%d: ", &line, &column) == 2) {
            must(is_inside(&files->list[i], line, column));
            return;
        }
        must(i == 0 && strstr(printed, "more mistakes were not printed"));
        return;
    }
    abort();
}

static void check_mistakes(const struct files *files, char *printed, int n)
{
    int lines = 0;
    char *save = NULL;
    for (char *line = strtok_r(printed, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        check_mistake(files, line);
        lines++;
    }
    must(n > 1000 || lines == n);
}

static struct config *load(const struct files *files)
{
    struct config *config = NULL;
    char *printed = NULL;
    size_t length;
    FILE *errors = open_memstream(&printed, &length);
    const struct file_changes changes = {.list = files->list, .n = files->n};
    const int status =
        config_load_with(&config, MAIN, &(struct config_load_options){.changes = &changes}, errors);
    fclose(errors);
    must(status >= 0 && (status == 0) == (config != NULL));
    check_mistakes(files, printed, status);
    free(printed);
    return config;
}

static void check_places(const struct config *config, const struct files *files)
{
    must(config->files.n == files->n);
    for (int i = 0; i < config->n_cameras; i++) {
        const struct place at = config->cameras[i].place;
        must(at.file >= 0 && at.file < files->n);
        must(is_inside(&files->list[at.file], at.line, at.column));
    }
}

static const struct camera_config *camera_named(const struct config *config, const char *name)
{
    for (int i = 0; i < config->n_cameras; i++)
        if (strcmp(config->cameras[i].name, name) == 0)
            return &config->cameras[i];
    return NULL;
}

// Searches all outputs: a batch's outputs are in the order of the files.
static bool has_output(const struct camera_config *camera, const struct output_config *output)
{
    for (int i = 0; i < camera->n_outputs; i++)
        if (config_same_output(&camera->outputs[i], output))
            return true;
    return false;
}

static void check_same(const struct config *config, const struct config *turned)
{
    must(config->n_cameras == turned->n_cameras && config->n_batches == turned->n_batches);
    for (int i = 0; i < config->n_cameras; i++) {
        const struct camera_config *camera = &config->cameras[i];
        const struct camera_config *other = camera_named(turned, camera->name);
        must(other && config_same_camera(camera, other) && camera->n_outputs == other->n_outputs);
        must(!camera->paused.line == !other->paused.line);
        for (int k = 0; k < camera->n_outputs; k++)
            must(has_output(other, &camera->outputs[k]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct files files;
    char *text = strndup((const char *)data, size);
    must(text);
    split(&files, text);
    struct config *config = load(&files);
    if (config)
        check_places(config, &files);
    turn(&files);
    struct config *turned = load(&files);
    must((config != NULL) == (turned != NULL));
    if (config)
        check_same(config, turned);
    config_free(config);
    config_free(turned);
    free(text);
    return 0;
}
