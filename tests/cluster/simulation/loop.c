// Functions that the loop's side of a cluster calls: slow reloads, cameras, one timer and one
// event.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/machine.h"
#include "tests/cluster/simulation/world.h"

// --- cameras

struct camera *cameras_find(const struct cameras *cameras, const char *name)
{
    for (int i = 0; i < cameras->n; i++)
        if (strcmp(cameras->list[i]->config->name, name) == 0)
            return cameras->list[i];
    return NULL;
}

void camera_stop(struct camera *camera)
{
    camera->joined = true;
}

static void remove_camera(struct cameras *cameras, const char *name)
{
    struct camera *camera = cameras_find(cameras, name);
    for (int i = 0, n = 0; camera && i < cameras->n; i++)
        if (cameras->list[i] != camera)
            cameras->list[n++] = cameras->list[i];
    if (!camera)
        return;
    cameras->n--;
    free(camera->config->name);
    free(camera->config->url);
    free(camera->config);
    free(camera); // the first member of a struct simulated_camera
}

int camera_number(const char *name)
{
    return atoi(name + strlen("cam"));
}

static void add_camera(struct process *p, const struct edit *edit)
{
    struct simulated_camera *simulated = calloc(1, sizeof *simulated);
    struct camera *camera = &simulated->camera;
    simulated->asked_ns = p->asked_ns[camera_number(edit->camera)];
    camera->config = calloc(1, sizeof *camera->config);
    camera->config->name = strdup(edit->camera);
    camera->config->url = strdup(edit->text);
    camera->config->generation = edit->generation;
    camera->config->fence_ns = edit->fence_ns;
    camera->started = true;
    p->cameras.list[p->cameras.n++] = camera;
}

// Ends the threads of cameras whose fence has expired.
void process_meet_fences(struct process *p)
{
    for (int i = 0; i < p->cameras.n; i++) {
        struct camera *camera = p->cameras.list[i];
        if (world.now_ns + p->boot_ns >= atomic_load(camera->config->fence_ns))
            camera->joined = true;
    }
}

void process_show(struct process *p)
{
    process_meet_fences(p);
    for (int i = 0; i < p->cameras.n; i++)
        if (!p->cameras.list[i]->joined)
            world.picture(p, (const struct simulated_camera *)p->cameras.list[i]);
}

struct camera_description camera_report_describe(const struct camera_report *report)
{
    (void)report;
    return (struct camera_description){0};
}

double rate_counter_rate(const struct rate_counter *counter)
{
    (void)counter;
    return 0;
}

double processor_time_limit(void)
{
    return 1;
}

// --- reloads

static int64_t reload_delay_ns(const struct process *p)
{
    return world.now_ns < p->slow_ns ? draw_ns(0, 4 * NS_SECOND) : draw_ns(0, 60 * NS_MS);
}

void reload_start(struct reload *reload, struct reload_request *request)
{
    struct process *p = world.runs;
    struct reload_request **last = &p->requests;
    (void)reload;
    if (!*last) {
        p->reload_ns = world.now_ns + reload_delay_ns(p);
        p->applied = false;
    }
    while (*last)
        last = &(*last)->next;
    *last = request;
    request->next = NULL;
    p->asked_ns[camera_number(request->edit->camera)] = world.now_ns;
}

// True if nothing of the camera differs, even if its thread has ended.
static bool is_kept(const struct cameras *cameras, const struct edit *edit)
{
    const struct camera *camera = cameras_find(cameras, edit->camera);
    return camera && camera->config->generation == edit->generation &&
           strcmp(camera->config->url, edit->text) == 0;
}

// A text "bad BOX;" is refused at the box with that name.
static int apply(struct process *p, const struct edit *edit)
{
    char bad[32];
    snprintf(bad, sizeof bad, "bad %s;", p->name);
    if (edit->kind == EDIT_UNASSIGN && !cameras_find(&p->cameras, edit->camera))
        return -ENOENT;
    if (world.now_ns < p->mistake_ns)
        return -EINVAL;
    if (edit->kind == EDIT_ASSIGN && strstr(edit->text, bad))
        return -EINVAL;
    if (edit->kind == EDIT_ASSIGN && is_kept(&p->cameras, edit))
        return 0;
    remove_camera(&p->cameras, edit->camera);
    if (edit->kind == EDIT_ASSIGN)
        add_camera(p, edit);
    return 0;
}

static void advance_reload(struct process *p)
{
    struct reload_request *request = p->requests;
    if (!p->applied) {
        p->reload_rc = apply(p, request->edit);
        p->applied = true;
        p->reload_ns = world.now_ns + draw_ns(0, 5 * NS_MS);
        return;
    }
    p->requests = request->next;
    p->applied = false;
    p->reload_ns = world.now_ns + reload_delay_ns(p);
    request->done(request, p->reload_rc, NULL, "framed.yaml:1:1: wrong\n");
}

// --- the loop

void event_post(struct event_queue *events, struct event *event)
{
    struct process *p = (struct process *)events;
    if (p->event_ns == NS_NEVER)
        p->event_ns = world.now_ns + draw_ns(0, 3 * NS_MS);
    p->event = event;
}

int uv_timer_init(uv_loop_t *loop, uv_timer_t *timer)
{
    ((struct process *)loop)->timer = timer;
    return 0;
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb tick, uint64_t after_ms, uint64_t every_ms)
{
    struct process *p = world.runs;
    (void)timer;
    p->tick = tick;
    p->tick_every_ns = (int64_t)every_ms * NS_MS;
    p->tick_ns = world.now_ns + (int64_t)after_ms * NS_MS;
    return 0;
}

int uv_timer_stop(uv_timer_t *timer)
{
    (void)timer;
    world.runs->tick_ns = NS_NEVER;
    return 0;
}

void uv_close(uv_handle_t *handle, uv_close_cb done)
{
    (void)handle, (void)done;
}

void __real_member_report(struct member *, const struct member_facts *);
void __wrap_member_report(struct member *member, const struct member_facts *facts)
{
    world.runs->obeys = facts->obeys;
    __real_member_report(member, facts);
}

int64_t loop_next_ns(const struct process *p)
{
    int64_t next = p->event_ns < p->tick_ns ? p->event_ns : p->tick_ns;
    if (p->requests && p->reload_ns < next)
        next = p->reload_ns;
    return next > p->hung_ns ? next : p->hung_ns;
}

void loop_advance(struct process *p)
{
    if (world.now_ns >= p->event_ns) {
        p->event_ns = NS_NEVER;
        p->event->callback(p->event);
    }
    if (world.now_ns >= p->tick_ns) {
        p->tick_ns = world.now_ns + p->tick_every_ns;
        p->tick(p->timer);
    }
    if (p->requests && world.now_ns >= p->reload_ns)
        advance_reload(p);
}

void loop_close(struct process *p)
{
    while (p->requests) {
        struct reload_request *request = p->requests;
        p->requests = request->next;
        request->done(request, -ESHUTDOWN, NULL, "framed is stopping\n");
    }
}

void loop_free(struct process *p)
{
    while (p->cameras.n > 0)
        remove_camera(&p->cameras, p->cameras.list[0]->config->name);
    free(p->cameras.list);
}
