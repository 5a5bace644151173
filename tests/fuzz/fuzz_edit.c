// Any body that a client puts as a camera is refused, or is exactly that one camera: no body
// reaches beyond its own keys in the file that it is written to.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/load.h"
#include "config/value.h"
#include "daemon/service/routes.h"
#include "daemon/supervisor/edit.h"

#define FILE_NAME "/nonexistent/framed.yaml"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_config(const struct config *config)
{
    must(config->n_cameras == 1 && strcmp(config->cameras[0].name, "gate") == 0);
    must(config->n_batches == 0 && config->paused.n == 0 && !config->cameras[0].paused.line);
    must(config->files.n == 2 && config->cameras[0].place.file == 1);
    must(config->cameras[0].place.line == EDIT_LINES_BEFORE);
}

static void load(const struct edit *edit)
{
    struct config *config = NULL;
    char *printed = NULL;
    size_t length;
    FILE *errors = open_memstream(&printed, &length);
    const struct file_change list[] = {{.path = FILE_NAME, .text = "http_write: true\n"},
                                       edit->change[0]};
    const struct file_changes changes = {.list = list, .n = 2};
    const int status = config_load_with(&config, FILE_NAME,
                                        &(struct config_load_options){.changes = &changes}, errors);
    fclose(errors);
    must((status == 0) == (config != NULL) && (status != 0) == (length != 0));
    if (config)
        check_config(config);
    config_free(config);
    free(printed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct edit *edit = NULL;
    char *body = malloc(size + 1), *yaml = NULL, why[256] = "";
    must(body);
    if (size > 0)
        memcpy(body, data, size);
    body[size] = 0;
    const int rc = camera_body_yaml(&yaml, body, size, true, why, sizeof why);
    must(rc == 0 || (rc == -EINVAL && *why));
    if (rc == 0 && edit_open(&edit, EDIT_PUT, "gate", FILE_NAME, yaml) == 0)
        load(edit);
    edit_close(edit);
    secret_free(yaml);
    free(body);
    return 0;
}
