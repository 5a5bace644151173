// Any text either loads or is refused with one line a mistake.
#include "config/config.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
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
    if ((status == 0) != (config != NULL) || status < 0 || (status <= 1000 && lines != status))
        abort();
    for (int i = 0; config && i < config->n_cameras; i++) {
        for (int j = 0; j < config->cameras[i].n_outputs; j++) {
            struct op_params op;
            output_config_op(&config->cameras[i].outputs[j], &op);
            if (config->cameras[i].outputs[j].protocol == PROTOCOL_AUTO)
                abort();
        }
    }
    config_free(config);
    free(printed);
    return 0;
}
