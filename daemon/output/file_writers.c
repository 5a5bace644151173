#include "daemon/output/file_writers.h"

#include <stdio.h>
#include <stdlib.h>

#define VARIABLE "UV_THREADPOOL_SIZE" // libuv's own name

enum {
    SPARE = 8, // for files that a later configuration adds
    OTHERS = 5 // what else blocks at once: see base/work.h
};

static int count_output(const struct output_config *output)
{
    return (output->sink.kind == SINK_FILE || output->sink.kind == SINK_RTSP) +
           (output->detections.sink.kind == SINK_FILE);
}

// The members of a batch share its file.
static int count_files(const struct config *config)
{
    int files = 0;
    for (int i = 0; i < config->n_cameras; i++)
        for (int o = 0; o < config->cameras[i].n_outputs; o++) {
            const struct output_config *output = &config->cameras[i].outputs[o];
            files += output->is_batch ? 0 : count_output(output);
        }
    for (int i = 0; i < config->n_batches; i++)
        files += count_output(&config->batches[i]);
    return files;
}

void writers_prepare(const struct config *config)
{
    char text[16];
    snprintf(text, sizeof text, "%d", count_files(config) + SPARE + OTHERS);
    setenv(VARIABLE, text, 1);
}

int writers_missing(const struct config *config)
{
    int threads = atoi(getenv(VARIABLE)) - OTHERS;
    return count_files(config) > threads ? threads : 0;
}
