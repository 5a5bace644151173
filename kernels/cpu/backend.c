// The cpu backend: a pool of workers that take bands from a queue of jobs, first in, first out.
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/backend.h"
#include "kernels/cpu/versions.h"
#include "kernels/processors.h"

enum {
    WORKERS_MAX = 1024,
    BANDS_PER_WORKER = 4,     // bands differ in cost: fill is cheap
    BAND_BYTES_MIN = 1 << 18, // taking smaller bands costs more than sharing them gains
};

struct job_slot { // of a job in flight
    struct plan *plan;
    struct job_slot *next; // plan::idle_slots
    int next_band;         // of the plan's bands, the first that is not taken
    int bands_to_finish;
};

struct plan {
    struct backend *backend;
    const struct op *ops[PLAN_OPS_MAX];
    int n;
    int band_rows[PLAN_OPS_MAX]; // even
    int bands[PLAN_OPS_MAX];
    int bands_of_job; // their sum
    int unfinished;   // jobs whose `done` has not returned
    struct job_slot *idle_slots;
    struct job_slot slots[]; // plan_open's depth
};

// The lock guards the queue, and the slots and `unfinished` of all plans. No kernel and no `done`
// runs with it held.
struct backend {
    pthread_mutex_t lock;
    pthread_cond_t work;      // the queue is not empty, or closing
    int idle;                 // workers waiting for `work`
    pthread_cond_t finished;  // a plan's `unfinished` fell to 0
    struct job *first, *last; // jobs with bands that are not taken
    bool closing;
    size_t band_bytes;
    const struct version *version;
    char description[64];
    int workers; // started
    struct worker {
        struct backend *backend;
        pthread_t thread;
        int processor; // its only processor; -1: any
    } worker[];
};

static void run_band(const struct plan *plan, const struct job *job, int index)
{
    int i = 0;
    for (; index >= plan->bands[i]; i++)
        index -= plan->bands[i];
    const struct job_result *result = &job->results[i];
    if (!result->data)
        return;
    const struct op *op = result->op ? result->op : plan->ops[i];
    struct image dst;
    op_lay_out(op, &dst, result->data);
    struct band band = {.y0 = index * plan->band_rows[i], .y1 = (index + 1) * plan->band_rows[i]};
    if (band.y1 > dst.height)
        band.y1 = dst.height;
    plan->backend->version->run[op->kind](&dst, &job->src, op, band, result->filled);
}

// Frees the slot before calling `done`, so that `done` may lead to the next submit at once. Called
// and returns with the lock held.
static void finish_job(struct backend *backend, struct job_slot *slot, struct job *job)
{
    struct plan *plan = slot->plan;
    slot->next = plan->idle_slots;
    plan->idle_slots = slot;
    pthread_mutex_unlock(&backend->lock);
    job->done(job, 0);
    pthread_mutex_lock(&backend->lock);
    if (--plan->unfinished == 0)
        pthread_cond_broadcast(&backend->finished);
}

// Takes a band from the first job and runs it. Called and returns with the lock held.
static void work_on(struct backend *backend, struct job *job)
{
    struct job_slot *slot = job->slot;
    const int band = slot->next_band++;
    if (slot->next_band == slot->plan->bands_of_job)
        backend->first = job->next;
    pthread_mutex_unlock(&backend->lock);
    run_band(slot->plan, job, band);
    pthread_mutex_lock(&backend->lock);
    if (--slot->bands_to_finish == 0)
        finish_job(backend, slot, job);
}

static void *work(void *opaque)
{
    const struct worker *worker = opaque;
    struct backend *backend = worker->backend;
    pthread_setname_np(pthread_self(), "worker");
    if (worker->processor >= 0)
        processors_keep(worker->processor); // may fail if the allowed set has just changed
    pthread_mutex_lock(&backend->lock);
    while (backend->first || !backend->closing) {
        if (backend->first) {
            work_on(backend, backend->first);
            continue;
        }
        backend->idle++;
        pthread_cond_wait(&backend->work, &backend->lock);
        backend->idle--;
    }
    pthread_mutex_unlock(&backend->lock);
    return NULL;
}

static void cpu_close(struct backend *backend)
{
    if (!backend)
        return;
    pthread_mutex_lock(&backend->lock);
    backend->closing = true;
    pthread_cond_broadcast(&backend->work);
    pthread_mutex_unlock(&backend->lock);
    for (int i = 0; i < backend->workers; i++)
        pthread_join(backend->worker[i].thread, NULL);
    pthread_cond_destroy(&backend->finished);
    pthread_cond_destroy(&backend->work);
    pthread_mutex_destroy(&backend->lock);
    free(backend);
}

// Sets *ret to the processors to pin workers to, empty if a list has no allowed one. Returns the
// default number of workers.
static int choose_processors(struct processors *ret, const struct pin *pin)
{
    const struct processors allowed = processors_allowed();
    *ret = pin->how == PINNING_LIST ? processors_both(&pin->list, &allowed) : allowed;
    int n = processors_count(ret);
    if (n == 0)
        n = processors_count(&allowed);
    if (n > 0)
        return n;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

// Assigns processors to workers in turn, if they are pinned. Returns true if so.
static bool assign(struct backend *backend, int workers, const struct processors *set,
                   enum pinning how)
{
    const int n = processors_count(set);
    const bool pinned = n > 0 && how != PINNING_NONE && (how == PINNING_LIST || workers <= n);
    for (int i = 0, processor = -1; i < workers; i++) {
        if (pinned && (processor = processors_next(set, processor + 1)) < 0)
            processor = processors_next(set, 0);
        backend->worker[i] = (struct worker){.backend = backend, .processor = processor};
    }
    return pinned;
}

static int start_workers(struct backend *backend, int wanted)
{
    for (; backend->workers < wanted; backend->workers++) {
        struct worker *worker = &backend->worker[backend->workers];
        const int error = pthread_create(&worker->thread, NULL, work, worker);
        if (error)
            return -error;
    }
    return 0;
}

static int cpu_open(struct backend **ret, const struct backend_options *options)
{
    struct processors set;
    int wanted = choose_processors(&set, &options->pin);
    if (options->workers > 0)
        wanted = options->workers;
    if (wanted > WORKERS_MAX)
        wanted = WORKERS_MAX;
    const struct version *version = version_find(getenv("FRAMED_CPU"));
    if (!version)
        return -ENOTSUP;
    struct backend *backend = calloc(1, sizeof(*backend) + wanted * sizeof(backend->worker[0]));
    if (!backend)
        return -ENOMEM;
    backend->band_bytes = options->band_bytes;
    backend->version = version;
    pthread_mutex_init(&backend->lock, NULL);
    pthread_cond_init(&backend->work, NULL);
    pthread_cond_init(&backend->finished, NULL);
    const bool pinned = assign(backend, wanted, &set, options->pin.how);
    snprintf(backend->description, sizeof(backend->description), "%d worker%s%s, %s", wanted,
             wanted == 1 ? "" : "s", pinned ? " pinned" : "", version->name);
    const int error = start_workers(backend, wanted);
    if (error)
        cpu_close(backend);
    else
        *ret = backend;
    return error;
}

static const char *cpu_describe(struct backend *backend)
{
    return backend->description;
}

// Workers treat all host memory alike.
static int cpu_pin(struct backend *backend, void *memory, size_t bytes)
{
    (void)backend;
    (void)memory;
    (void)bytes;
    return 0;
}

static void cpu_unpin(struct backend *backend, void *memory)
{
    (void)backend;
    (void)memory;
}

static struct memory_need cpu_plan_need(const struct image *src, const struct op *const ops[],
                                        int n, int depth)
{
    (void)src;
    (void)ops;
    (void)n;
    (void)depth;
    return (struct memory_need){0};
}

// Bytes that the op reads, in whole rows of the source, and writes.
static size_t bytes_of(const struct op *op, const struct image *src)
{
    struct image shape = *src;
    const size_t source_bytes = image_lay_out(&shape, NULL);
    const struct band rows = op_source_rows(op, (struct band){0, op->dst.height});
    return op->dst_bytes + source_bytes / (size_t)src->height * (size_t)(rows.y1 - rows.y0);
}

// Bytes of a band: each worker gets a few bands per job, whatever the number of ops.
static size_t band_bytes_of(const struct backend *backend, const struct image *src,
                            const struct op *const ops[], int n)
{
    size_t bytes = 0;
    if (backend->band_bytes > 0)
        return backend->band_bytes;
    for (int i = 0; i < n; i++)
        bytes += bytes_of(ops[i], src);
    const size_t band = bytes / (BANDS_PER_WORKER * (size_t)backend->workers);
    return band < BAND_BYTES_MIN ? BAND_BYTES_MIN : band;
}

static int band_rows_of(const struct op *op, size_t bytes, size_t band)
{
    if (band >= bytes)
        return (op->dst.height + 1) & ~1;
    const int rows = (int)((double)band / bytes * op->dst.height) & ~1; // 4:2:0: even
    return rows < 2 ? 2 : rows;
}

static int cpu_plan_open(struct backend *backend, struct plan **ret, const struct image *src,
                         const struct op *const ops[], int n, int depth)
{
    if (n < 1 || n > PLAN_OPS_MAX || depth < 1)
        return -EINVAL;
    struct plan *plan = calloc(1, sizeof(*plan) + depth * sizeof(plan->slots[0]));
    if (!plan)
        return -ENOMEM;
    plan->backend = backend;
    plan->n = n;
    const size_t band = band_bytes_of(backend, src, ops, n);
    for (int i = 0; i < n; i++) {
        plan->ops[i] = ops[i];
        plan->band_rows[i] = band_rows_of(ops[i], bytes_of(ops[i], src), band);
        plan->bands[i] = (ops[i]->dst.height + plan->band_rows[i] - 1) / plan->band_rows[i];
        plan->bands_of_job += plan->bands[i];
    }
    for (int i = 0; i < depth; i++) {
        plan->slots[i].plan = plan;
        plan->slots[i].next = plan->idle_slots;
        plan->idle_slots = &plan->slots[i];
    }
    *ret = plan;
    return 0;
}

static void cpu_plan_close(struct plan *plan)
{
    if (!plan)
        return;
    struct backend *backend = plan->backend;
    pthread_mutex_lock(&backend->lock);
    while (plan->unfinished > 0)
        pthread_cond_wait(&backend->finished, &backend->lock);
    pthread_mutex_unlock(&backend->lock);
    free(plan);
}

// Appends the job to the queue. Called with the lock held.
static void enqueue(struct backend *backend, struct job *job)
{
    job->next = NULL;
    if (backend->first)
        backend->last->next = job;
    else
        backend->first = job;
    backend->last = job;
}

// Wakes no more workers than there are bands: others would find none. Called without the lock, else
// a worker that takes the submitter's processor would block on it at once.
static void wake(struct backend *backend, int bands, int idle)
{
    if (bands >= idle && idle > 1)
        pthread_cond_broadcast(&backend->work);
    else
        for (int i = 0; i < bands && i < idle; i++)
            pthread_cond_signal(&backend->work);
}

static int cpu_submit(struct plan *plan, struct job *job)
{
    assert(job->src.memory != MEMORY_CUDA);
    if (!job_suits(job, plan->ops, plan->n))
        return -EINVAL;
    struct backend *backend = plan->backend;
    const int bands = plan->bands_of_job;
    pthread_mutex_lock(&backend->lock);
    struct job_slot *slot = plan->idle_slots;
    const int idle = backend->idle;
    if (slot) {
        plan->idle_slots = slot->next;
        plan->unfinished++;
        slot->next_band = 0;
        slot->bands_to_finish = bands;
        job->slot = slot;
        enqueue(backend, job);
    }
    pthread_mutex_unlock(&backend->lock);
    if (!slot)
        return -EBUSY;
    wake(backend, bands, idle);
    return 0;
}

// --- the analyser: runs in the calling thread

struct analyser {
    const struct analysis *analysis;
    const struct version *version;
    uint32_t *cells;
    uint8_t grid[STATISTICS_GRID_MAX * STATISTICS_GRID_MAX];
    struct motion_state *state;
    struct motion_changes *changes;
    void *workspace;
    struct motion_boxes boxes;
    uint8_t luma[1][FINGERPRINT_LUMA];
};

static void *allocate(size_t bytes)
{
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void cpu_analyser_close(struct analyser *analyser)
{
    if (!analyser)
        return;
    free(analyser->workspace);
    free(analyser->changes);
    free(analyser->state);
    free(analyser->cells);
    free(analyser);
}

static int cpu_analyser_open(struct backend *backend, struct analyser **ret,
                             const struct analysis *analysis, const struct image *src)
{
    (void)backend, (void)src;
    const struct statistics *statistics = &analysis->statistics;
    const struct motion *motion = &analysis->motion;
    const size_t cells = (size_t)statistics->columns * (size_t)statistics->rows;
    struct analyser *analyser = calloc(1, sizeof *analyser);
    if (!analyser)
        return -ENOMEM;
    analyser->analysis = analysis;
    analyser->version = version_find(getenv("FRAMED_CPU"));
    analyser->cells = allocate(cells * sizeof *analyser->cells);
    analyser->state = allocate(motion_state_bytes(motion));
    analyser->changes = allocate(motion_changes_bytes(motion));
    analyser->workspace = allocate(motion_workspace_bytes(motion));
    if (!analyser->version || !analyser->cells || !analyser->state || !analyser->changes ||
        !analyser->workspace) {
        cpu_analyser_close(analyser);
        return -ENOMEM;
    }
    memset(analyser->state, 0, motion_state_bytes(motion));
    *ret = analyser;
    return 0;
}

static int cpu_analyse(struct analyser *analyser, const struct image *src,
                       struct analysis_result *ret)
{
    const struct analysis *analysis = analyser->analysis;
    const struct version *version = analyser->version;
    version->statistics(&analysis->statistics, src, &ret->luma, analyser->cells);
    version->motion(&analysis->motion, analyser->state, analyser->cells, analyser->changes,
                    analyser->workspace);
    motion_boxes(&analysis->motion, analyser->changes, &analyser->boxes, analyser->workspace);
    fingerprint_luma(&analysis->fingerprint, analyser->cells, analyser->luma[0]);
    fingerprint_reference(analyser->luma, &ret->fingerprint, 1);
    statistics_grid(&analysis->statistics, analyser->cells, analyser->grid);
    ret->grid = analyser->grid;
    ret->motion = &analyser->boxes;
    return 0;
}

const struct backend_driver cpu_backend = {
    .name = "cpu",
    .takes_cuda = false,
    .depth = 2, // the current job and the next
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .pin = cpu_pin,
    .unpin = cpu_unpin,
    .plan_need = cpu_plan_need,
    .plan_open = cpu_plan_open,
    .plan_close = cpu_plan_close,
    .submit = cpu_submit,
    .analyser_open = cpu_analyser_open,
    .analyser_close = cpu_analyser_close,
    .analyse = cpu_analyse,
};
