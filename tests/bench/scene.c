#include "tests/bench/scene.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/load.h"
#include "config/op.h"
#include "tests/bench/ring.h"

static void clip_of(const struct scene *scene, int camera, char *path, size_t size)
{
    if (camera >= scene->options.cameras - scene->options.joining)
        snprintf(path, size, "%s/clip-%d", scene->folder, camera);
    else
        snprintf(path, size, "%s", scene->clip);
}

// In double quotes, as YAML and then the configuration's own $ want it.
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

// At full speed the cameras wait for the consumer; live ones would have to drop.
static void print_config(const struct scene *scene, FILE *to)
{
    static const char *const backends[] = {"auto", "cpu", "cuda"};
    static const char *const dtypes[] = {"u8", "s8", "f16", "f32"};
    const struct scene_options *options = &scene->options;
    char path[4096];
    fprintf(to,
            "backend: %s\ncuda: {decoders: %d}\nlog: {level: warning}\ncontrol: off\n"
            "defaults: {loop: true, picture: %dx%d, pace: %s, overflow: %s, size: 640x640, "
            "tensor: {dtype: %s, scale: %s}}\ncameras:\n",
            backends[options->backend], options->decoders, options->width, options->height,
            options->realtime ? "realtime" : "full", options->realtime ? "drop_oldest" : "wait",
            dtypes[options->dtype], options->dtype == DTYPE_U8 ? "1" : "1/255");
    for (int i = 0; i < options->cameras; i++) {
        fprintf(to, "  camera%d:\n    url: ", i);
        clip_of(scene, i, path, sizeof path);
        print_quoted(to, path);
        ring_path(scene->folder, i, path);
        fprintf(to, "\n    outputs: {tensor: {sink: \"ring:%s\"}}\n", path);
    }
}

static int write_config(struct scene *scene)
{
    struct config *config = NULL;
    FILE *file = fopen(scene->config, "we");
    if (!file)
        return -errno;
    print_config(scene, file);
    if (fclose(file) != 0)
        return -errno;
    if (config_load(&config, scene->config, stderr) != 0)
        return -EINVAL;
    output_config_op(&config->cameras[0].outputs[0], &scene->params);
    config_free(config);
    return 0;
}

// --- the folder

// Not in a folder whose name leaves no room for a socket's.
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
        unlinkat(dirfd(folder), entry->d_name, 0); // but . and .., which it refuses
    closedir(folder);
    rmdir(path);
}

int scene_open(struct scene *scene, const struct scene_options *options)
{
    *scene = (struct scene){.options = *options};
    if (!realpath(options->clip, scene->clip))
        return -errno;
    int rc = make_folder(scene->folder);
    if (rc < 0)
        return rc;
    snprintf(scene->config, sizeof scene->config, "%s/framed.yaml", scene->folder);
    snprintf(scene->log, sizeof scene->log, "%s/log", scene->folder);
    rc = write_config(scene);
    if (rc < 0)
        scene_close(scene);
    return rc;
}

void scene_close(struct scene *scene)
{
    remove_folder(scene->folder);
    *scene = (struct scene){0};
}

int scene_join(const struct scene *scene, int camera)
{
    char path[4096];
    clip_of(scene, camera, path, sizeof path);
    return symlink(scene->clip, path) == 0 ? 0 : -errno;
}
