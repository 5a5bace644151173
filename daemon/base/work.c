#include "daemon/base/work.h"

static void run_work(uv_work_t *request)
{
    struct work *work = request->data;
    work->run(work);
}

static void work_is_done(uv_work_t *request, int status)
{
    struct work *work = request->data;
    struct work_queue *queue = work->queue;
    (void)status; // never cancelled
    work->done(work);
    if (--queue->n == 0)
        queue->idle(queue->opaque);
}

void work_start(struct work_queue *queue, struct work *work)
{
    queue->n++;
    work->queue = queue;
    work->request.data = work;
    uv_queue_work(queue->loop, &work->request, run_work, work_is_done);
}
