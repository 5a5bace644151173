#include "daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/alert/alerts.h"
#include "daemon/base/access.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/process.h"
#include "daemon/cli/commands.h"
#include "daemon/cluster/cluster.h"
#include "daemon/device/devices.h"
#include "daemon/service/metrics.h"
#include "daemon/service/notify.h"
#include "daemon/service/service.h"
#include "daemon/source/libav_log.h"
#include "daemon/source/login_pause.h"
#include "daemon/supervisor/unfinished.h"

enum {
    STOP_MS = 1800,  // from the signal to the end, whatever hangs
    LEAVE_MS = 1700, // then the loop thread leaves, and logs everything that hangs
    LOG_MS = 5000,   // period in which repeated log lines are summed up
};

enum { SIGNALS = 4 };
static const int signals[SIGNALS] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};

// The file of counters.
struct counters_file {
    struct work work;
    const char *path; // NULL: there is none
    char *text;       // taken by the loop, and written by `work`
    size_t size;
    int rc;
    bool writing, again; // again: asked for meanwhile
    struct daemon *daemon;
};

struct daemon {
    const struct config *config;
    const struct daemon_options *options;
    uv_loop_t loop;
    uv_signal_t signal[SIGNALS];
    uv_timer_t deadline, log;
    struct stop_guard {
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool running, over;
    } guard;
    struct notify notify;
    struct event_queue *events;
    struct previews *previews;
    struct devices *devices;
    struct login_pause *logins;
    struct alerts *alerts;
    struct service *service;
    struct counters_file counters;
    struct histogram decode, process;
    struct cameras cameras;
    struct reload reload;
    struct unfinished unfinished;
    struct cluster *cluster; // NULL: this node is in none
    struct work_queue work;
    bool ends; // every camera has ended
    _Atomic int exit_code;
};

static void judge_camera_health(const struct camera *camera, int64_t patience_ns,
                                struct health *ret)
{
    const char *step = stage_hangs(&camera->report.stages, patience_ns);
    if (!step)
        return;
    ret->stuck = camera->config->name;
    ret->step = step;
}

// A removed camera that cannot end blocks the start of the camera of its name.
static void judge_health(void *opaque, int64_t patience_ns, struct health *ret)
{
    const struct cameras *cameras = &((struct daemon *)opaque)->cameras;
    for (int i = 0; i < cameras->n; i++) {
        const struct camera *camera = cameras->list[i];
        ret->cameras += !camera->config->paused.line;
        ret->started += camera->started;
        ret->running += atomic_load(&camera->report.state) == CAMERA_RUNNING;
        judge_camera_health(camera, patience_ns, ret);
    }
    for (const struct camera *camera = cameras->leaving; camera; camera = camera->next)
        judge_camera_health(camera, patience_ns, ret);
}

static void take_snapshot(void *opaque, struct metrics *ret)
{
    struct daemon *daemon = opaque;
    *ret = (struct metrics){
        .cameras = daemon->cameras.list,
        .n_cameras = daemon->cameras.n,
        .batches = daemon->cameras.batches,
        .devices = daemon->devices,
        .decode = &daemon->decode,
        .process = &daemon->process,
        .reload = &daemon->reload,
        .alerts = daemon->alerts,
        .previews = daemon->previews,
        .member = cluster_member(daemon->cluster),
        .unfinished = &daemon->unfinished.files,
    };
    judge_health(daemon, notify_patience_ns(&daemon->notify), &ret->health);
}

// --- the file of counters

static void save_counters(struct work *work)
{
    struct counters_file *file = (struct counters_file *)work;
    file->rc = file->text ? metrics_save(file->path, file->text, file->size) : -ENOMEM;
}

static void note_saved(struct counters_file *file)
{
    free(file->text);
    file->text = NULL;
    if (file->rc < 0)
        log_event(LOG_LEVEL_ERROR, "metrics file %s: %s", file->path, strerror(-file->rc));
}

// Returns false if there is no file, or nothing ran.
static bool take_counters(struct daemon *daemon)
{
    struct counters_file *file = &daemon->counters;
    struct metrics metrics;
    if (!file->path || !daemon->devices)
        return false;
    take_snapshot(daemon, &metrics);
    file->text = metrics_text(&metrics, &file->size);
    return true;
}

// Returns 0 or a negative errno, which is logged. Blocks the loop: for the start and the end.
static int write_counters(struct daemon *daemon)
{
    struct counters_file *file = &daemon->counters;
    if (file->writing || !take_counters(daemon)) // writing: the disk hangs
        return 0;
    save_counters(&file->work);
    note_saved(file);
    return file->rc;
}

static void start_counters(struct daemon *daemon)
{
    struct counters_file *file = &daemon->counters;
    file->again = file->writing;
    if (file->writing || !take_counters(daemon))
        return;
    file->writing = true;
    work_start(&daemon->work, &file->work);
}

static void counters_are_saved(struct work *work)
{
    struct counters_file *file = (struct counters_file *)work;
    note_saved(file);
    file->writing = false;
    if (file->again)
        start_counters(file->daemon);
}

// --- the end

static void block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < SIGNALS; i++)
        sigaddset(&set, signals[i]);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void limit_stop(struct daemon *daemon);
static void start_guard(struct daemon *daemon);

// Called once every camera has ended, and all work is done: closes the rest, so that the loop ends.
static void end(struct daemon *daemon)
{
    if (!daemon->events)
        return;
    daemon->ends = true;
    start_guard(daemon);
    reload_close(&daemon->reload);
    unfinished_stop(&daemon->unfinished);
    if (daemon->work.n > 0) {
        limit_stop(daemon); // it may hang
        return;
    }
    unfinished_close(&daemon->unfinished);
    block_signals();               // it has ended well: no signal may kill it on its last steps
    cluster_stop(daemon->cluster); // its thread posts events
    cluster_close_handles(daemon->cluster);
    previews_stop(daemon->previews);
    event_queue_close(daemon->events);
    daemon->events = NULL;
    service_close(daemon->service);
    daemon->service = NULL;
    alerts_stop(daemon->alerts);
    for (int i = 0; i < SIGNALS; i++)
        uv_close((uv_handle_t *)&daemon->signal[i], NULL);
    uv_close((uv_handle_t *)&daemon->deadline, NULL);
    uv_close((uv_handle_t *)&daemon->log, NULL);
    notify_close(&daemon->notify);
    cameras_close_handles(&daemon->cameras);
}

static void camera_changed(void *opaque, struct camera *camera)
{
    const struct daemon *daemon = opaque;
    service_camera_changed(daemon->service, camera);
}

static void cameras_are_done(void *opaque)
{
    end(opaque);
}

static void work_is_idle(void *opaque)
{
    struct daemon *daemon = opaque;
    if (daemon->ends)
        end(daemon);
}

static void judge_cameras(struct daemon *daemon)
{
    if (daemon->exit_code == EXIT_OK && cameras_fails(&daemon->cameras))
        daemon->exit_code = EXIT_RUNTIME;
}

// The thread that enforces STOP_MS: the loop thread itself may hang, or wait for one that does.
static void *guard_stop(void *opaque)
{
    struct daemon *daemon = opaque;
    struct stop_guard *guard = &daemon->guard;
    pthread_setname_np(pthread_self(), "stop");
    const int64_t until_ns = monotonic_ns() + STOP_MS * INT64_C(1000000);
    pthread_mutex_lock(&guard->lock);
    while (!guard->over && condition_wait(&guard->changed, &guard->lock, until_ns) == 0)
        ;
    if (!guard->over) {
        log_last("the stop hangs: leaving it");
        _exit(atomic_load(&daemon->exit_code));
    }
    pthread_mutex_unlock(&guard->lock);
    return NULL;
}

static void start_guard(struct daemon *daemon)
{
    struct stop_guard *guard = &daemon->guard;
    if (guard->running)
        return;
    pthread_mutex_init(&guard->lock, NULL);
    condition_init(&guard->changed);
    guard->running = pthread_create(&guard->thread, NULL, guard_stop, daemon) == 0;
}

static void end_guard(struct stop_guard *guard)
{
    if (!guard->running)
        return;
    pthread_mutex_lock(&guard->lock);
    guard->over = true;
    pthread_cond_signal(&guard->changed);
    pthread_mutex_unlock(&guard->lock);
    pthread_join(guard->thread, NULL);
}

// A thread or a disk hangs in the kernel. All data written is in the files; no more can be saved.
static void deadline_passed(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    log_event(LOG_LEVEL_ERROR,
              "%d cameras, %d sinks and %d other tasks did not stop within %d ms: leaving them",
              daemon->cameras.n_threads, daemon->cameras.n_sinks, daemon->work.n, LEAVE_MS);
    write_counters(daemon);
    judge_cameras(daemon);
    log_flush();
    _exit(daemon->exit_code);
}

static void limit_stop(struct daemon *daemon)
{
    if (!uv_is_active((uv_handle_t *)&daemon->deadline))
        uv_timer_start(&daemon->deadline, deadline_passed, LEAVE_MS, 0);
    start_guard(daemon);
}

// Used for a start that failed half way, too.
static void stop(struct daemon *daemon)
{
    if (daemon->cameras.stopping)
        return;
    notify_stopping(&daemon->notify);
    reload_close(&daemon->reload);
    limit_stop(daemon);
    cluster_stop(daemon->cluster);
    cameras_stop(&daemon->cameras);
}

// --- signals

static void reload_began(void *opaque, bool whole)
{
    (void)opaque;
    if (whole)
        notify_reloading();
}

// A change of one camera ends no other camera's pause, and is no reload for the service manager.
static void reload_ended(void *opaque, bool whole, int rc)
{
    struct daemon *daemon = opaque;
    if (rc == 0)
        unfinished_scan(&daemon->unfinished);
    if (rc == 0 && whole)
        login_pause_reload(daemon->logins);
    if (!whole)
        return;
    service_reloaded(daemon->service);
    notify_reloaded(&daemon->notify);
}

static void reload_edited(void *opaque, const struct edit *edit)
{
    service_edited(((struct daemon *)opaque)->service, edit);
}

static void free_request(struct reload_request *request, int rc, const struct reload_result *result,
                         const char *errors)
{
    (void)rc, (void)result, (void)errors; // all of it is in the log
    free(request);
}

static void reload_on_signal(struct daemon *daemon)
{
    struct reload_request *request = calloc(1, sizeof *request);
    if (!request) {
        log_event(LOG_LEVEL_ERROR, "not reloaded: %s", strerror(ENOMEM));
        return;
    }
    request->done = free_request;
    reload_start(&daemon->reload, request);
}

static void signal_came(uv_signal_t *handle, int number)
{
    struct daemon *daemon = handle->data;
    if (number == SIGUSR1) {
        start_counters(daemon);
    } else if (number == SIGHUP) {
        reload_on_signal(daemon);
    } else {
        log_event(LOG_LEVEL_INFO, "%s: stopping", strsignal(number));
        stop(daemon);
    }
}

static void flush_log(uv_timer_t *timer)
{
    (void)timer;
    log_flush();
}

// --- the start

static int prepare_service(void *opaque, const struct config *config, const char *file,
                           FILE *errors)
{
    const struct daemon *daemon = opaque;
    int rc = alerts_prepare(daemon->alerts, config);
    return rc < 0 ? rc : service_prepare(daemon->service, config, file, errors);
}

static void commit_service(void *opaque)
{
    const struct daemon *daemon = opaque;
    service_commit(daemon->service);
    alerts_commit(daemon->alerts);
}

static void abandon_service(void *opaque)
{
    const struct daemon *daemon = opaque;
    service_abandon(daemon->service);
}

static void open_cameras_and_reload(struct daemon *daemon)
{
    daemon->work =
        (struct work_queue){.loop = &daemon->loop, .idle = work_is_idle, .opaque = daemon};
    const struct cameras_context context = {
        .loop = &daemon->loop,
        .work = &daemon->work,
        .events = daemon->events,
        .previews = daemon->previews,
        .decode = &daemon->decode,
        .process = &daemon->process,
        .changed = camera_changed,
        .stays = daemon->config->cluster.etcd.n > 0,
        .done = cameras_are_done,
        .opaque = daemon,
    };
    cameras_open(&daemon->cameras, &context);
    unfinished_open(&daemon->unfinished, &daemon->work, &daemon->cameras);
    daemon->reload = (struct reload){
        .file = daemon->options->file,
        .started = daemon->config,
        .loaded_ns = realtime_ns(),
        .cameras = &daemon->cameras,
        .work = &daemon->work,
        .prepare = prepare_service,
        .commit = commit_service,
        .abandon = abandon_service,
        .began = reload_began,
        .ended = reload_ended,
        .edited = reload_edited,
        .opaque = daemon,
        .is_applied = true,
    };
    reload_open(&daemon->reload);
}

// Signals with a request to a running daemon, which would end a starting one.
static void fill_held_signals(sigset_t *ret)
{
    sigemptyset(ret);
    sigaddset(ret, SIGHUP);
    sigaddset(ret, SIGUSR1);
}

static void open_signals(struct daemon *daemon)
{
    sigset_t held;
    for (int i = 0; i < SIGNALS; i++) {
        uv_signal_init(&daemon->loop, &daemon->signal[i]);
        uv_signal_start(&daemon->signal[i], signal_came, signals[i]);
        daemon->signal[i].data = daemon;
    }
    fill_held_signals(&held);
    pthread_sigmask(SIG_UNBLOCK, &held, NULL);
}

static int open_loop(struct daemon *daemon)
{
    int rc = uv_loop_init(&daemon->loop);
    if (rc < 0)
        return rc;
    rc = event_queue_open(&daemon->events, &daemon->loop);
    if (rc < 0)
        goto close_loop;
    rc = previews_open(&daemon->previews, &daemon->loop, &daemon->work);
    if (rc < 0)
        goto close_events;
    open_signals(daemon);
    uv_timer_init(&daemon->loop, &daemon->deadline);
    daemon->deadline.data = daemon;
    uv_timer_init(&daemon->loop, &daemon->log);
    uv_timer_start(&daemon->log, flush_log, LOG_MS, LOG_MS);
    open_cameras_and_reload(daemon);
    notify_open(&daemon->notify, &daemon->loop, judge_health, daemon);
    return 0;
close_events:
    event_queue_close(daemon->events);
close_loop:
    uv_loop_close(&daemon->loop);
    return rc;
}

static int add_cameras(struct daemon *daemon)
{
    const struct config *config = daemon->config;
    struct camera **cameras = calloc((size_t)config->n_cameras + 1, sizeof(struct camera *));
    int n = 0, rc = cameras ? 0 : -ENOMEM;
    while (rc == 0 && n < config->n_cameras) {
        rc = cameras_make_camera(&daemon->cameras, &config->cameras[n], &cameras[n]);
        n += rc == 0;
    }
    if (rc < 0)
        log_event(LOG_LEVEL_ERROR, "camera=%s %s", config->cameras[n].name, strerror(-rc));
    cameras_set(&daemon->cameras, cameras, n);
    return rc;
}

// Tries every sink before the first camera starts. If none at all opens, the configuration is wrong
// for this machine: the start fails at once, so that somebody notices.
static int open_cameras(struct daemon *daemon)
{
    int rc = add_cameras(daemon);
    if (rc < 0)
        return rc;
    cameras_open_sinks(&daemon->cameras);
    return daemon->cameras.n_sinks > 0 || daemon->config->n_cameras == 0 ? 0 : -ENOENT;
}

static int open_service(struct daemon *daemon)
{
    struct service_context context = {
        .loop = &daemon->loop,
        .config = daemon->config,
        .work = &daemon->work,
        .reload = &daemon->reload,
        .snapshot = take_snapshot,
        .opaque = daemon,
    };
    return service_open(&daemon->service, &context);
}

// Both keep a file in the state directory.
static int open_logins_and_alerts(struct daemon *daemon)
{
    char *folder = state_folder();
    const struct alerts_context alerts = {
        .loop = &daemon->loop,
        .work = &daemon->work,
        .cameras = &daemon->cameras,
        .config = daemon->config,
        .folder = folder,
    };
    int rc = login_pause_open(&daemon->logins, folder, monotonic_ns(), realtime_ns());
    daemon->cameras.context.logins = daemon->logins;
    if (rc == 0)
        rc = alerts_open(&daemon->alerts, &alerts);
    free(folder);
    return rc;
}

static int more_cameras(void *opaque)
{
    const struct daemon *daemon = opaque;
    return service_more_cameras(daemon->service);
}

static int open_cluster(struct daemon *daemon)
{
    const struct cluster_context context = {
        .config = daemon->config,
        .loop = &daemon->loop,
        .events = daemon->events,
        .reload = &daemon->reload,
        .cameras = &daemon->cameras,
        .more = more_cameras,
        .opaque = daemon,
    };
    if (daemon->config->cluster.etcd.n == 0)
        return 0;
    const int rc = cluster_open(&daemon->cluster, &context);
    if (rc < 0)
        log_event(LOG_LEVEL_ERROR, "no cluster: %s", strerror(-rc));
    return rc;
}

static int start(struct daemon *daemon)
{
    char why[256];
    int rc = devices_open(&daemon->devices, daemon->config);
    if (rc < 0)
        return rc == -ENODEV ? EXIT_NO_DEVICE : EXIT_RUNTIME;
    daemon->cameras.context.devices = daemon->devices;
    if ((rc = open_logins_and_alerts(daemon)) < 0) {
        log_event(LOG_LEVEL_ERROR, "cannot watch the cameras: %s", strerror(-rc));
        return EXIT_RUNTIME;
    }
    if (devices_admit(daemon->devices, daemon->config, why, sizeof why) < 0) {
        log_event(LOG_LEVEL_ERROR, "%s", why);
        return EXIT_CONFIG;
    }
    rc = open_service(daemon);
    if (rc == 0)
        rc = open_cameras(daemon);
    if (rc == 0)
        rc = write_counters(daemon); // reports a path that cannot be written at once
    if (rc == 0)
        rc = cameras_start(&daemon->cameras);
    if (rc == 0)
        rc = open_cluster(daemon);
    if (rc == 0)
        unfinished_scan(&daemon->unfinished);
    return rc < 0 ? EXIT_RUNTIME : EXIT_OK;
}

static void finish(struct daemon *daemon)
{
    write_counters(daemon);
    judge_cameras(daemon);
    alerts_close(daemon->alerts);
    cluster_close(daemon->cluster);
    cameras_close(&daemon->cameras);
    previews_close(daemon->previews);
    login_pause_close(daemon->logins);
    devices_close(daemon->devices);
    reload_free(&daemon->reload);
    uv_loop_close(&daemon->loop);
    log_flush();
    end_guard(&daemon->guard);
}

static void warn_of_readers(const struct config *config)
{
    char *warning = check_readers(config);
    if (warning)
        log_event(LOG_LEVEL_WARNING, "%s", warning);
    free(warning);
}

// A write to a client that left, or past a file size limit, is an error to handle, not a death.
void daemon_prepare_process(void)
{
    struct rlimit files;
    sigset_t held;
    fill_held_signals(&held);
    sigprocmask(SIG_BLOCK, &held, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    sigabrt_catch();
    sigbus_catch();
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

int daemon_run(struct config *config, const struct daemon_options *options)
{
    struct daemon daemon = {
        .config = config,
        .options = options,
        .counters = {.work = {.run = save_counters, .done = counters_are_saved},
                     .path = options->metrics,
                     .daemon = &daemon},
    };
    log_open(config->log.level);
    libav_log_open();
    log_with_time();
    log_event(LOG_LEVEL_INFO, "framed %s", FRAMED_VERSION_TEXT);
    warn_of_readers(config);
    reload_warn_of_gone(config);
    setenv("UV_THREADPOOL_SIZE", "32", 0); // a driver or folder that hangs keeps a thread
    groups_look_up(config);
    int rc = open_loop(&daemon);
    if (rc < 0) {
        log_event(LOG_LEVEL_ERROR, "no event loop: %s", strerror(-rc));
        return EXIT_RUNTIME;
    }
    daemon.exit_code = start(&daemon);
    if (daemon.exit_code != EXIT_OK)
        stop(&daemon); // what is open ends like any other run
    uv_run(&daemon.loop, UV_RUN_DEFAULT);
    finish(&daemon);
    return daemon.exit_code;
}
