#include "daemon/supervisor/machine_check.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "config/address.h"
#include "config/config.h"
#include "config/mistakes.h"
#include "config/object.h"
#include "config/url.h"
#include "daemon/base/access.h"
#include "daemon/base/process.h"
#include "daemon/codec/hardware.h"
#include "daemon/device/budget.h"
#include "daemon/output/sink.h"
#include "daemon/source/demux.h"
#include "kernels/fixed.h"
#include "kernels/image.h"

// --- what the process has

static void check_descriptor(struct mistakes *mistakes, const struct camera_config *camera)
{
    char key[KEY_MAX];
    if (!camera->url || !object_is_known(&camera_table, camera, "url"))
        return;
    const int fd = config_url_descriptor(camera->url);
    if (fd < 0 || descriptors_inherited(fd))
        return;
    snprintf(key, sizeof key, "cameras.%s.url", camera->name);
    mistake(mistakes, object_value_place(&camera_table, camera, "url"), key,
            "framed was started without a readable descriptor %d (pipe:0 is standard input; a "
            "shell opens others: framed run ... %d<FIFO)",
            fd, fd > 2 ? fd : 3);
}

void machine_check_descriptors(struct mistakes *mistakes, const struct config *config)
{
    for (int i = 0; i < config->n_cameras; i++)
        check_descriptor(mistakes, &config->cameras[i]);
}

static void check_pin(struct mistakes *mistakes, const struct config *config)
{
    const struct pin *pin = &config->cpu.pin;
    const struct processors allowed = processors_allowed();
    const struct processors both = processors_both(&pin->list, &allowed);
    char listed[PROCESSORS_TEXT], known[PROCESSORS_TEXT];
    if (pin->how != PINNING_LIST || processors_count(&both) > 0 || processors_count(&allowed) == 0)
        return;
    mistake(mistakes, object_value_place(&root_table, config, "cpu.pin"), "cpu.pin",
            "this process may use none of %s (auto | none | some of %s)",
            processors_text(&pin->list, listed), processors_text(&allowed, known));
}

static void check_decoder(struct mistakes *mistakes, const struct camera_config *camera)
{
    char key[KEY_MAX];
    if (camera->decode.by != DECODE_HARDWARE || hardware_is_known(camera->decode.name) ||
        !object_is_known(&camera_table, camera, "decode"))
        return;
    snprintf(key, sizeof key, "cameras.%s.decode", camera->name);
    mistake(mistakes, object_value_place(&camera_table, camera, "decode"), key,
            "libavcodec has no hardware decoder '%s' (auto | cpu | nvdec | vaapi | qsv | v4l2m2m | "
            "rkmpp | one of `ffmpeg -hwaccels`)",
            camera->decode.name);
}

void machine_check_process(struct mistakes *mistakes, const struct config *config)
{
    machine_check_descriptors(mistakes, config);
    check_pin(mistakes, config);
    for (int i = 0; i < config->n_cameras; i++)
        check_decoder(mistakes, &config->cameras[i]);
}

// --- a camera

static void check_demuxer(struct mistakes *mistakes, const struct camera_config *camera)
{
    char key[KEY_MAX];
    if (camera->url && config_url_kind(camera->url) == URL_RTSP)
        return; // the key is gone for RTSP, and that was reported
    snprintf(key, sizeof key, "cameras.%s.demuxer", camera->name);
    if (camera->demuxer && !demuxer_exists(camera->demuxer)) {
        mistake(mistakes, object_value_place(&camera_table, camera, "demuxer"), key,
                "is not a demuxer of libavformat (`ffmpeg -demuxers` lists them)");
        return; // its options are unknown
    }
    if (!object_is_known(&camera_table, camera, "demuxer"))
        return;
    for (int i = 0; i < camera->options.n; i++) {
        const struct demuxer_option *option = &camera->options.list[i];
        if (demuxer_takes_option(camera, option->name))
            continue;
        snprintf(key, sizeof key, "cameras.%s.options.%s", camera->name, option->name);
        mistake(mistakes, option->place, key,
                "is not an option of %s (`ffmpeg -h demuxer=%s` lists them)",
                camera->demuxer ? "the demuxer or the protocol"
                                : "any demuxer or protocol that can read this",
                camera->demuxer ? camera->demuxer : "NAME");
    }
}

// --- an output

struct output_check {
    struct mistakes *mistakes;
    const struct camera_config *camera; // NULL: a whole batch
    const struct output_config *output;
    const struct image *picture; // of the camera
    const char *whose;           // how messages name the picture
    bool assumed;                // the size is assumed, since the camera was not opened
};

__attribute__((format(printf, 3, 4))) static void
refuse_output(const struct output_check *check, const char *key, const char *format, ...)
{
    char dotted[KEY_MAX], what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (check->camera)
        snprintf(dotted, sizeof dotted, "cameras.%s.outputs.%s.%s", check->camera->name,
                 check->output->name, key);
    else
        snprintf(dotted, sizeof dotted, "batches.%s.%s", check->output->name, key);
    mistake(check->mistakes, object_value_place(&output_table, check->output, key), dotted, "%s",
            what);
}

// True if the file has a valid value for every key that op_init depends on.
static bool has_known_geometry(const struct output_check *check)
{
    static const char *const keys[] = {"kernel", "size",   "fit",  "stride", "filter",
                                       "affine", "rotate", "flip", "crop",   "roi"};
    const double *m = check->output->affine.m;
    bool known = output_config_has_op(check->output) &&
                 object_is_known(&camera_table, check->camera, "picture") &&
                 !(check->output->affine.set && m[0] * m[4] == m[1] * m[3]);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        known = known && object_is_known(&output_table, check->output, keys[i]);
    return known;
}

static bool is_outside(const struct rect *rect, const struct image *picture)
{
    return rect->x + rect->width > picture->width || rect->y + rect->height > picture->height;
}

static void refuse_geometry(const struct output_check *check, const struct roi *region, int rc)
{
    const int width = check->picture->width, height = check->picture->height;
    const struct output_config *output = check->output;
    const char *more = check->assumed ? ", or the camera's own size as `picture`" : "";
    const char *area = region ? "the region" : output->crop.set ? "the crop" : check->whose;
    const struct rect rect = region             ? region->rect
                             : output->crop.set ? output->crop.rect
                                                : (struct rect){0, 0, width, height};
    if (output->crop.set && is_outside(&output->crop.rect, check->picture))
        refuse_output(check, "crop",
                      "reaches beyond %s of %dx%d ([x, y, width, height] within it%s)",
                      check->whose, width, height, more);
    else if (region && is_outside(&region->rect, check->picture))
        refuse_output(check, "roi", "region %s reaches beyond %s of %dx%d (a region within it%s)",
                      region->name, check->whose, width, height, more);
    else if (rc == -EDOM)
        refuse_output(check, "fit",
                      "deepstream reads pixels in pairs, of which %s of %dx%d has none (at least "
                      "2x2 from an even pixel on%s)",
                      area, rect.width, rect.height, more);
    else if (rc == -ERANGE && output->affine.set)
        refuse_output(check, "affine",
                      "places output pixels more than %d pixels away from the source's first pixel "
                      "(a smaller `size`, or a matrix that shrinks less)",
                      WARP_REACH_MAX);
    else if (rc == -ERANGE)
        refuse_output(check, "size",
                      "places output pixels more than %d pixels away from the first pixel of %s of "
                      "%dx%d (a size nearer to the picture's shape%s)",
                      WARP_REACH_MAX, check->whose, width, height, more);
    else
        refuse_output(check, output->affine.set ? "affine" : "kernel",
                      "cannot be made from %s of %dx%d (another geometry)", check->whose, width,
                      height);
}

static void check_tiles(const struct output_check *check)
{
    const struct tiles_config *tiles = &check->output->tiles;
    const struct tiling tiling = {tiles->size, tiles->overlap.n, tiles->full};
    const int width = check->picture->width, height = check->picture->height;
    struct rect areas[TILES_MAX];
    if (check->output->is_batch && tiles->size > 0 &&
        tiles_make(areas, &tiling, (struct rect){0, 0, width, height}) == -E2BIG)
        refuse_output(check, "tiles.size",
                      "cuts %s of %dx%d into more than %d parts (larger tiles)", check->whose,
                      width, height, TILES_MAX);
}

// Checks each region that the output shows, or the one that it has in place of regions.
static void check_geometry(const struct output_check *check)
{
    const struct rois *regions = &check->output->roi.chosen;
    if (!has_known_geometry(check))
        return;
    for (int i = 0; i == 0 || i < regions->n; i++) {
        const struct roi *region = i < regions->n ? &regions->list[i] : NULL;
        struct op_params params;
        struct op op;
        output_config_op(check->output, &params);
        if (region && params.kind == OP_WARP)
            params.warp.crop = region->rect;
        const int rc = op_init(&op, &params, check->picture);
        if (rc == 0)
            op_finish(&op);
        else if (rc != -ENOMEM)
            refuse_geometry(check, region, rc);
    }
    check_tiles(check);
}

void machine_check_picture(struct mistakes *mistakes, const struct camera_config *camera,
                           const struct image *picture)
{
    for (int i = 0; i < camera->n_outputs; i++) {
        const struct output_check check = {
            mistakes, camera, &camera->outputs[i], picture, "the camera's picture", false};
        check_geometry(&check);
    }
}

// From `picture`, or assumed.
static struct image planned_picture(const struct camera_config *camera)
{
    const struct stream_memory stream = budget_stream(camera);
    return (struct image){.format = PIXEL_YUV420P, .width = stream.width, .height = stream.height};
}

static void check_auto_picture(struct mistakes *warnings, const struct camera_config *camera)
{
    const struct image picture = planned_picture(camera);
    for (int i = 0; i < camera->n_outputs; i++) {
        const struct output_check check = {
            warnings, camera, &camera->outputs[i], &picture, "the assumed picture", true};
        check_geometry(&check);
    }
}

void machine_check_auto_pictures(struct mistakes *warnings, const struct config *config)
{
    for (int i = 0; i < config->n_cameras; i++)
        if (config->cameras[i].picture.width == 0) // else machine_check_machine has checked it
            check_auto_picture(warnings, &config->cameras[i]);
}

static void check_group(const struct output_check *check, const char *key, const char *name)
{
    gid_t id;
    if (name && group_look_up(name, &id) < 0)
        refuse_output(check, key,
                      "there is no group \"%s\" on this machine (`getent group` lists them)", name);
}

// --- paths

bool machine_check_is_made_by_unit(const char *folder)
{
    static const char *const names[] = {"/run/framed", "/var/lib/framed"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t n = strlen(names[i]);
        if (strncmp(folder, names[i], n) == 0 && (!folder[n] || folder[n] == '-') &&
            !strchr(folder + n, '/'))
            return true;
    }
    return false;
}

// Writes why no socket or file can be made at the path; "" if one can.
static void path_wrong(const struct sink_address *address, char *why, size_t size)
{
    char path[PATH_MAX], folder[PATH_MAX] = ".";
    struct stat st;
    why[0] = 0;
    if (!address->timed)
        snprintf(path, sizeof path, "%s", address->path);
    else if (pattern_at(address->path, time(NULL), path, sizeof path) < 0)
        return; // writing the file will report it
    const char *slash = strrchr(path, '/');
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", slash > path ? (int)(slash - path) : 1, path);
    if (stat(folder, &st) < 0) {
        if (errno != EACCES && !machine_check_is_made_by_unit(folder))
            snprintf(why, size, "its folder %s: %s (an existing folder, or mkdir)", folder,
                     strerror(errno));
    } else if (!S_ISDIR(st.st_mode)) {
        snprintf(why, size, "%s is not a folder (a path in a folder)", folder);
    } else if (lstat(path, &st) == 0) {
        if (address->kind == SINK_FILE ? !S_ISREG(st.st_mode) : !S_ISSOCK(st.st_mode))
            snprintf(why, size, "%s exists and is not a %s (another path)", path,
                     address->kind == SINK_FILE ? "file" : "socket");
    }
}

static void check_sink(const struct output_check *check, const char *key,
                       const struct sink_address *address)
{
    char why[PATH_MAX + 128] = "";
    if (address->path)
        path_wrong(address, why, sizeof why);
    if (why[0])
        refuse_output(check, key, "%s", why);
}

// A daemon with the name is fine: it may be the one that runs with this configuration.
static void check_shared(const struct output_check *check)
{
    const char *name = check->output->shared.name;
    char why[256];
    if (name && shared_object_check(name, why, sizeof why) == -EEXIST)
        refuse_output(check, "shared", "%s (another name)", why);
}

static void check_sinks(const struct output_check *check)
{
    const struct output_config *output = check->output;
    check_group(check, "group", output->group);
    check_sink(check, "sink", &output->sink);
    check_shared(check);
    check_group(check, "detections.group", output->detections.group);
    check_sink(check, "detections.sink", &output->detections.sink);
}

static void check_socket(struct mistakes *mistakes, const struct config *config, const char *key,
                         const struct sink_address *address)
{
    char why[PATH_MAX + 128] = "";
    if (address->path)
        path_wrong(address, why, sizeof why);
    if (why[0])
        mistake(mistakes, object_value_place(&root_table, config, key), key, "%s", why);
}

// True if the geometry can be checked before the camera is opened: the reach of a matrix does not
// depend on the picture's size.
static bool has_fixed_geometry(const struct output_check *check)
{
    const struct output_config *output = check->output;
    return check->camera->picture.width > 0 ||
           (output->affine.set && !output->crop.set && !output->roi.name);
}

void machine_check_machine(struct mistakes *mistakes, const struct config *config)
{
    machine_check_process(mistakes, config);
    check_socket(mistakes, config, "control", &config->control.at);
    check_socket(mistakes, config, "http", &config->http.at);
    for (int i = 0; i < config->n_cameras; i++) {
        const struct camera_config *camera = &config->cameras[i];
        const struct image picture = planned_picture(camera);
        check_demuxer(mistakes, camera);
        for (int o = 0; o < camera->n_outputs; o++) {
            const struct output_check check = {mistakes, camera,      &camera->outputs[o],
                                               &picture, "`picture`", false};
            if (has_fixed_geometry(&check))
                check_geometry(&check);
            if (check.output->is_batch)
                continue; // checked with the batch below
            check_sinks(&check);
        }
    }
    for (int i = 0; i < config->n_batches; i++) {
        const struct output_check check = {.mistakes = mistakes, .output = &config->batches[i]};
        check_sinks(&check);
    }
}
