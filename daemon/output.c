#include "daemon/output.h"

static void slots_were_done(struct letter *letter)
{
    struct output *output = (struct output *)((char *)letter - offsetof(struct output, letter));
    if (output->sink)
        sink_pump(output->sink);
}

int output_open(struct output *output, const struct output_config *config,
                const struct backend_driver *driver, struct backend *backend)
{
    *output = (struct output){
        .config = config, .epoch = -1, .due_ns = INT64_MIN, .letter.read = slots_were_done};
    output_config_op(config, &output->params);
    return slots_open(&output->slots, config->slots, driver, backend, &output->ledger);
}

void output_close(struct output *output)
{
    slots_close(output->slots);
    output->slots = NULL;
}
