// Any text either loads or is refused with one line per mistake. A loaded configuration can be
// used, is the same when it is read again, and listens to other hosts only with a token.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/address.h"
#include "config/config.h"
#include "config/load.h"
#include "config/object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

// Returns NULL if the text was refused.
static struct config *load(const uint8_t *data, size_t size)
{
    struct config *config = NULL;
    char *printed = NULL;
    size_t length;
    FILE *errors = open_memstream(&printed, &length);
    int lines = 0;
    int status = config_load_text(&config, (const char *)data, size, "fuzz", errors);
    fclose(errors);
    for (size_t i = 0; i < length; i++)
        lines += printed[i] == '\n';
    must((status == 0) == (config != NULL) && status >= 0 && (status > 1000 || lines == status));
    free(printed);
    return config;
}

static void check_outputs(const struct camera_config *camera, const struct camera_config *again)
{
    must(config_same_camera(camera, again) && camera->n_outputs == again->n_outputs);
    for (int i = 0; i < camera->n_outputs; i++) {
        struct op_params op;
        const struct output_config *output = &camera->outputs[i];
        if (output_config_has_op(output))
            output_config_op(output, &op);
        must(output->protocol != PROTOCOL_AUTO || output->sink.kind == SINK_RTSP);
        must(config_same_output(&camera->outputs[i], &again->outputs[i]));
    }
}

static void check_listening(const struct config *config)
{
    const struct control_address *control = &config->control;
    must(control->at.kind == SINK_NONE || control->at.kind == SINK_UNIX);
    must(!control->at.path || strlen(control->at.path) <= SOCKET_PATH_MAX);
    must(address_is_local(&config->http.at) || config->http_token);
    must(!address_collides(&control->at, &config->http.at));
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

// A load of the control socket alone gives the same socket; with mistakes elsewhere it gives a
// socket or an error.
static void check_control(const uint8_t *data, size_t size, const struct config *config)
{
    struct config *alone = NULL;
    char path[32];
    FILE *errors = fopen("/dev/null", "w");
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    must(write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int status =
        config_load_with(&alone, path, &(struct config_load_options){.only = "control"}, errors);
    must(status >= 0 && (!config || status == 0));
    if (config)
        must(alone->control.off == config->control.off &&
             same_text(alone->control.at.path, config->control.at.path));
    config_free(alone);
    fclose(errors);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config *config = load(data, size), *again = config ? load(data, size) : NULL;
    must((config != NULL) == (again != NULL));
    check_control(data, size, config);
    if (config)
        check_listening(config);
    for (int i = 0; config && i < config->n_cameras; i++)
        check_outputs(&config->cameras[i], &again->cameras[i]);
    config_free(config);
    config_free(again);
    return 0;
}
