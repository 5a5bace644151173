#include "daemon/output/file_writers.h"

#include <stdio.h>
#include <stdlib.h>

#define VARIABLE "UV_THREADPOOL_SIZE" // libuv's own name

enum {
    SPARE = 8,      // for files added by a later configuration
    FILES_MIN = 32, // cameras may be added later, one by one or from a cluster
    FILES_MAX = 1000,
    OTHERS = 8, // threads for struct work
};

static struct {
    int threads; // for jobs
    int busy;
    struct writer_job *first, *last; // waiting for a thread
} writers = {.threads = FILES_MIN};

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
    const int files = count_files(config) + SPARE;
    writers.threads = files < FILES_MIN ? FILES_MIN : files > FILES_MAX ? FILES_MAX : files;
    snprintf(text, sizeof text, "%d", writers.threads + OTHERS);
    setenv(VARIABLE, text, 1);
}

int writers_missing(const struct config *config)
{
    return count_files(config) > writers.threads ? writers.threads : 0;
}

static void run_writer_job(uv_work_t *request)
{
    ((struct writer_job *)request)->run(request);
}

static void writer_job_done(uv_work_t *request, int status);

static void start_waiting_jobs(void)
{
    struct writer_job *job;
    while (writers.busy < writers.threads && (job = writers.first)) {
        writers.first = job->next;
        writers.busy++;
        uv_queue_work(job->loop, &job->request, run_writer_job, writer_job_done);
    }
}

static void writer_job_done(uv_work_t *request, int status)
{
    writers.busy--;
    start_waiting_jobs();
    ((struct writer_job *)request)->done(request, status); // may free the job
}

void writers_start(uv_loop_t *loop, struct writer_job *job, uv_work_cb run, uv_after_work_cb done)
{
    job->loop = loop;
    job->run = run;
    job->done = done;
    job->next = NULL;
    if (writers.first)
        writers.last->next = job;
    else
        writers.first = job;
    writers.last = job;
    start_waiting_jobs();
}
