#include "daemon/cli/commands.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/load.h"
#include "config/mistakes.h"
#include "config/object.h"
#include "config/url.h"
#include "daemon/base/clock.h"
#include "daemon/base/process.h"
#include "daemon/codec/buffers.h"
#include "daemon/codec/decoder.h"
#include "daemon/device/devices.h"
#include "daemon/source/demux.h"
#include "daemon/supervisor/machine_check.h"

enum { THREADS_MAX = 32 };

struct probe {
    struct camera_config *camera;
    bool done;
    int status;     // 0, or a negative errno: no picture
    char text[640]; // the stream, or the error
};

struct probes {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int next, n; // the first probe that no thread has taken, and their number
    struct probe *list;
    struct mistakes *mistakes; // of outputs that do not fit the pictures
};

static const _Atomic bool never; // only deadlines stop a probe

// --- one camera

// Sets the orientation as the camera's thread does.
static void set_orientation(struct frame *frame, const struct camera_config *camera,
                            const struct demux *demux, const struct decoder *decoder)
{
    int orientation = decoder_orientation(decoder);
    if (orientation == -ENODATA)
        orientation = demux->orientation;
    if (camera->rotate == TURNING_AUTO && orientation >= 0)
        frame->image.orientation = (enum orientation)orientation;
}

// Waits for the first decoded picture, until the deadline. As in a run, only damaged packets
// themselves are lost.
static int first_picture(struct demux *demux, struct decoder *decoder, int64_t deadline_ns,
                         struct frame *ret)
{
    struct packet packet;
    int rc;
    while ((rc = decoder_receive(decoder, ret)) == -EAGAIN || (rc == 0 && ret->lost)) {
        if (rc == 0)
            continue;
        int input = monotonic_ns() < deadline_ns ? demux_read(demux, &packet) : -ETIMEDOUT;
        if (input < 0 && input != -ENODATA)
            return input;
        rc = decoder_send(decoder, input == 0 ? &packet : NULL);
        if (rc < 0)
            return rc;
    }
    return rc;
}

static void describe_picture(struct probe *probe, const struct demux *demux,
                             const struct image *picture)
{
    const struct dimensions *planned = &probe->camera->picture;
    char stream[DEMUX_DESCRIPTION_MAX], size[32], more[96] = "";
    demux_describe(demux, stream);
    snprintf(size, sizeof size, " %dx%d", picture->width, picture->height);
    if (planned->width > 0 &&
        (picture->width > planned->width || picture->height > planned->height))
        snprintf(more, sizeof more, "; larger than `picture`, %dx%d, for which memory is planned",
                 planned->width, planned->height);
    snprintf(probe->text, sizeof probe->text, "%s%s%s%s", stream,
             strstr(stream, size) ? "" : ", pictures of", strstr(stream, size) ? "" : size, more);
}

static void check_picture(struct probes *probes, const struct probe *probe,
                          const struct image *picture)
{
    pthread_mutex_lock(&probes->lock);
    machine_check_picture(probes->mistakes, probe->camera, picture);
    pthread_mutex_unlock(&probes->lock);
}

static int decode_first(struct probes *probes, struct probe *probe, struct demux *demux)
{
    struct camera_config *camera = probe->camera;
    const struct decode_options options = {.decode.by = DECODE_CPU,
                                           .threads = 1,
                                           .low_delay = demux_is_live(camera->url),
                                           .in_flight = 1,
                                           .damaged = camera->damaged};
    const struct decode_target use = {.driver = &cpu_backend};
    struct decoder *decoder = NULL;
    struct frame frame = {0};
    char stream[DEMUX_DESCRIPTION_MAX];
    int rc = decoder_open(&decoder, demux->parameters, &options);
    if (rc == 0)
        rc = decoder_join(decoder, &use);
    if (rc == 0)
        rc = first_picture(demux, decoder, monotonic_ns() + camera->connect_timeout.ns, &frame);
    if (rc == 0) {
        set_orientation(&frame, camera, demux, decoder);
        describe_picture(probe, demux, &frame.image);
        check_picture(probes, probe, &frame.image);
        decoder_memory(decoder, &camera->stream);
        camera->stream.packet_bytes =
            dpb_packet_bytes(demux->parameters, demux->rate_num, demux->rate_den);
        frame_release(&frame);
    } else {
        snprintf(probe->text, sizeof probe->text, "%s: %s", demux_describe(demux, stream),
                 rc == -ENODATA     ? "it ends without a picture"
                 : rc == -ETIMEDOUT ? "gave no picture in time (connect_timeout, media_timeout)"
                 : rc == -ENOTSUP   ? "no decoder for this stream"
                                    : strerror(-rc));
    }
    decoder_close(decoder);
    return rc;
}

static int probe_camera(struct probes *probes, struct probe *probe)
{
    const struct camera_config *camera = probe->camera;
    const struct url_input *source = url_input_of(camera->url);
    struct demux *demux = NULL;
    if (source && (source->kind == URL_PIPE || source->fifo)) {
        snprintf(probe->text, sizeof probe->text,
                 "%s: not opened, because what is read from it is gone", source->name);
        return 0;
    }
    if (!object_is_known(&camera_table, camera, "url")) {
        snprintf(probe->text, sizeof probe->text,
                 "not opened, because only the unit can read a credential in its url");
        return 0;
    }
    int rc = demux_open(&demux, camera, NULL, &never, NULL, probe->text, sizeof probe->text);
    if (rc == 0)
        rc = decode_first(probes, probe, demux);
    demux_close(demux);
    return rc;
}

// --- all of them

static void *probe_thread(void *opaque)
{
    struct probes *probes = opaque;
    pthread_mutex_lock(&probes->lock);
    while (probes->next < probes->n) {
        struct probe *probe = &probes->list[probes->next++];
        pthread_mutex_unlock(&probes->lock);
        int status = probe_camera(probes, probe);
        pthread_mutex_lock(&probes->lock);
        probe->status = status;
        probe->done = true;
        pthread_cond_signal(&probes->changed);
    }
    pthread_mutex_unlock(&probes->lock);
    return NULL;
}

static void wait_for_probe(struct probes *probes, const struct probe *probe)
{
    pthread_mutex_lock(&probes->lock);
    while (!probe->done)
        pthread_cond_wait(&probes->changed, &probes->lock);
    pthread_mutex_unlock(&probes->lock);
}

// Returns EXIT_OK or EXIT_RUNTIME.
static int print_probe(const struct probe *probe, const struct config_files *files)
{
    const struct place at = object_value_place(&camera_table, probe->camera, "url");
    if (probe->status == 0) {
        printf("%-24s %s\n", probe->camera->name, probe->text);
        fflush(stdout);
        return EXIT_OK;
    }
    fprintf(stderr, "%s:%d:%d: cameras.%s.url: %s\n", config_files_path(files, at), at.line,
            at.column, probe->camera->name, probe->text);
    return EXIT_RUNTIME;
}

// Runs the probes on as many threads as can be started; if none can, on this one.
static int run_probes(struct probes *probes, const struct config_files *files)
{
    pthread_t thread[THREADS_MAX];
    int threads = 0, code = EXIT_OK;
    while (threads < probes->n && threads < THREADS_MAX &&
           pthread_create(&thread[threads], NULL, probe_thread, probes) == 0)
        threads++;
    if (threads == 0)
        probe_thread(probes);
    for (int i = 0; i < probes->n; i++) {
        wait_for_probe(probes, &probes->list[i]);
        if (print_probe(&probes->list[i], files) != EXIT_OK)
            code = EXIT_RUNTIME;
    }
    while (threads > 0)
        pthread_join(thread[--threads], NULL);
    return code;
}

int probe_cameras(struct config *config, const char *file)
{
    struct probes probes = {.lock = PTHREAD_MUTEX_INITIALIZER,
                            .changed = PTHREAD_COND_INITIALIZER,
                            .n = config->n_cameras,
                            .list = calloc((size_t)config->n_cameras, sizeof(struct probe)),
                            .mistakes = calloc(1, sizeof(struct mistakes))};
    int code = EXIT_RUNTIME;
    if (probes.list && probes.mistakes) {
        for (int i = 0; i < probes.n; i++)
            probes.list[i].camera = &config->cameras[i];
        code = run_probes(&probes, &config->files);
        mistakes_print(probes.mistakes, "", &config->files, stderr);
        if (probes.mistakes->total > 0)
            code = EXIT_CONFIG;
        mistakes_free(probes.mistakes);
    } else {
        fprintf(stderr, "%s: %s\n", file_name(file), strerror(ENOMEM));
    }
    free(probes.list);
    free(probes.mistakes);
    return code;
}
