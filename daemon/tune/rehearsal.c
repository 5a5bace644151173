#include "daemon/tune/rehearsal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/address.h"
#include "config/url.h"
#include "daemon/bench/ring.h"
#include "daemon/daemon.h"
#include "daemon/input/demux.h"
#include "daemon/supervisor/machine_check.h"

static bool plays_at_full_speed(const struct camera_config *camera)
{
    return config_url_kind(camera->url) == URL_FILE && camera->pace == PACE_FULL;
}

static void forget_demuxer(struct camera_config *camera)
{
    free(camera->demuxer);
    camera->demuxer = NULL;
    for (int i = 0; i < camera->n_options; i++) {
        free(camera->options[i].name);
        free(camera->options[i].value);
    }
    free(camera->options);
    camera->options = NULL;
    camera->n_options = 0;
}

static int play_clip(struct camera_config *camera, const struct rehearsal *rehearsal)
{
    char *url = strdup(rehearsal->clip);
    if (!url)
        return -ENOMEM;
    camera->low_delay = demux_is_live(camera->url); // its decoder is to be judged
    free(camera->url);
    camera->url = url;
    camera->pace = rehearsal->live ? PACE_REALTIME : PACE_FULL;
    forget_demuxer(camera);
    return 0;
}

// The kernels and the memory of their results stay as they are.
static int send_to_ring(struct output_config *output, const char *path, bool waits)
{
    const bool on_device = output->sink.kind == SINK_RING && output->memory == MEMORY_CUDA;
    char *own = strdup(path);
    if (!own)
        return -ENOMEM;
    address_free(&output->sink);
    free(output->group);
    output->sink = (struct sink_address){.kind = SINK_RING, .path = own};
    output->group = NULL;
    output->memory = on_device ? MEMORY_CUDA : MEMORY_HOST;
    output->protocol = PROTOCOL_FRAMED;
    output->segment = (struct split){0};
    output->mode.mode = 0600;
    if (waits) {
        output->overflow = OVERFLOW_WAIT;
        output->max_age.ns = 0;
    } else if (output->overflow_auto) {
        output->overflow = OVERFLOW_DROP_OLDEST; // the camera may have been a file at full speed
    }
    return 0;
}

// A framed that runs with this configuration may have them.
static void leave_sockets(struct config *config)
{
    address_free(&config->control.at);
    address_free(&config->http.at);
    config->control.off = true;
}

int rehearsal_prepare(struct config *config, const struct rehearsal *rehearsal)
{
    char path[96];
    int rc = 0, ring = 0;
    config->log.level = LOG_LEVEL_WARNING;
    leave_sockets(config);
    for (int i = 0; rc == 0 && i < config->n_cameras; i++) {
        struct camera_config *camera = &config->cameras[i];
        camera->loop = true;
        if (rehearsal->clip)
            rc = play_clip(camera, rehearsal);
        for (int o = 0; rc == 0 && o < camera->n_outputs; o++) {
            ring_path(rehearsal->folder, ring++, path);
            rc = send_to_ring(&camera->outputs[o], path, plays_at_full_speed(camera));
        }
    }
    return rc;
}

bool rehearsal_waits(const struct config *config, const struct rehearsal *rehearsal)
{
    if (rehearsal->clip)
        return !rehearsal->live;
    for (int i = 0; i < config->n_cameras; i++)
        if (!plays_at_full_speed(&config->cameras[i]))
            return false;
    return true;
}

int rehearsal_run(const char *path, const struct rehearsal *rehearsal)
{
    const struct config_load_options loading = {.judge = machine_check_process};
    struct config *config = NULL;
    char metrics[128];
    const struct daemon_options options = {.file = path, .metrics = metrics};
    snprintf(metrics, sizeof metrics, "%s/metrics", rehearsal->folder);
    if (config_load_with(&config, path, &loading, stderr) != 0)
        return EXIT_CONFIG;
    int code = rehearsal_prepare(config, rehearsal) < 0 ? EXIT_RUNTIME : EXIT_OK;
    if (code == EXIT_OK)
        code = daemon_run(config, &options);
    config_free(config);
    return code;
}
