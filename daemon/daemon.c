#include "daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/abort.h"
#include "daemon/camera/camera.h"
#include "daemon/engine.h"
#include "daemon/service/log.h"
#include "daemon/service/metrics.h"

enum {
    DRAIN_MS = 10000,        // that clients of a file that has ended may take to read the rest
    DRAIN_STOPPING_MS = 500, // the same when the daemon is asked to stop
    STOP_MS = 1800,          // from the signal to the end, whatever hangs
    BURST = 16,              // cameras that start at once...
    START_MS = 43,           // ...and then one by one: probing a stream takes a processor;
                             // no multiple of a frame's interval, or all would come at once
    SINKS_MS = 1000,         // between tries to open a sink
    LOG_MS = 5000,           // that repeated log lines are summed up before they are printed
};

enum { SIGNALS = 4 };
static const int signals[SIGNALS] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};

struct daemon {
    const struct config *config;
    const struct daemon_options *options;
    uv_loop_t loop;
    uv_signal_t signal[SIGNALS];
    uv_timer_t deadline, log, sinks, starts;
    struct mailbox *mailbox;
    struct engine *engine;
    struct histogram decode, process;
    struct camera **cameras;
    int n_cameras; // opened
    int n_started; // of them
    int n_threads; // cameras whose thread has not ended, or not begun
    int n_sinks;   // not closed
    bool stopping;
    int exit_code;
};

// --- account

static int write_metrics(struct daemon *daemon)
{
    if (!daemon->options->metrics || !daemon->engine) // nothing ran
        return 0;
    struct metrics metrics = {
        .cameras = daemon->cameras,
        .n_cameras = daemon->n_cameras,
        .engine = daemon->engine,
        .decode = &daemon->decode,
        .process = &daemon->process,
    };
    int rc = metrics_write(daemon->options->metrics, &metrics);
    if (rc < 0)
        log_event(LOG_LEVEL_ERROR, "metrics file %s: %s", daemon->options->metrics, strerror(-rc));
    return rc;
}

static void log_ledger(const char *camera, const struct output *output)
{
    char losses[256] = "";
    size_t used = 0;
    for (int i = 0; i < LOSSES; i++) {
        unsigned long long n = atomic_load(&output->ledger.lost[i]);
        if (n && used < sizeof losses)
            used += (size_t)snprintf(losses + used, sizeof losses - used, " %s=%llu",
                                     loss_name((enum loss)i), n);
    }
    log_camera(camera);
    log_event(LOG_LEVEL_INFO, "output=%s offered=%llu emitted=%llu lost=%llu%s",
              output->config->name, (unsigned long long)atomic_load(&output->ledger.offered),
              (unsigned long long)atomic_load(&output->ledger.emitted),
              (unsigned long long)ledger_lost(&output->ledger), losses);
    if (ledger_in_flight(&output->ledger) > 0)
        log_event(LOG_LEVEL_WARNING, "output=%s %llu frames are unaccounted for",
                  output->config->name, (unsigned long long)ledger_in_flight(&output->ledger));
    log_camera(NULL);
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

// Nothing is left to wait for: lets the loop run out.
static void finish_when_done(struct daemon *daemon)
{
    if (daemon->n_threads > 0 || daemon->n_sinks > 0 || !daemon->mailbox)
        return;
    block_signals(); // it has ended well: no signal may kill it on its last steps
    mailbox_close(daemon->mailbox);
    daemon->mailbox = NULL;
    for (int i = 0; i < SIGNALS; i++)
        uv_close((uv_handle_t *)&daemon->signal[i], NULL);
    uv_close((uv_handle_t *)&daemon->deadline, NULL);
    uv_close((uv_handle_t *)&daemon->log, NULL);
    uv_close((uv_handle_t *)&daemon->sinks, NULL);
    uv_close((uv_handle_t *)&daemon->starts, NULL);
}

static bool has_sink(const struct camera *camera)
{
    for (int i = 0; i < camera->outputs.n; i++)
        if (camera->outputs.list[i]->sink)
            return true;
    return false;
}

// Cameras that are through and whose frames were taken have no more use for the engine.
static void leave_engine(struct daemon *daemon)
{
    for (int i = 0; i < daemon->n_cameras; i++)
        if (daemon->cameras[i]->through && !has_sink(daemon->cameras[i]))
            camera_leave(daemon->cameras[i]);
}

static void sink_was_closed(struct output *output)
{
    struct daemon *daemon = output->owner;
    daemon->n_sinks--;
    leave_engine(daemon);
    finish_when_done(daemon);
}

static void finish_sinks(struct daemon *daemon, struct camera *camera)
{
    for (int i = 0; i < camera->outputs.n; i++)
        output_finish(camera->outputs.list[i], daemon->stopping ? DRAIN_STOPPING_MS : DRAIN_MS);
}

static void camera_ended(struct letter *letter)
{
    struct camera *camera = camera_of_letter(letter);
    struct daemon *daemon = camera->context.opaque;
    camera_join(camera);
    daemon->n_threads--;
    if (atomic_load(&camera->state) == CAMERA_FAILED)
        daemon->exit_code = EXIT_RUNTIME;
    finish_sinks(daemon, camera);
    leave_engine(daemon);
    finish_when_done(daemon);
}

// A thread or a disk hangs in the kernel. What was written is in the files; no more can be saved.
static void deadline_passed(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    log_event(LOG_LEVEL_ERROR, "%d cameras and %d sinks did not stop within %d ms: leaving them",
              daemon->n_threads, daemon->n_sinks, STOP_MS);
    write_metrics(daemon);
    log_flush();
    _exit(daemon->exit_code);
}

// Also of a start that failed half way.
static void stop(struct daemon *daemon)
{
    if (daemon->stopping)
        return;
    daemon->stopping = true;
    uv_timer_start(&daemon->deadline, deadline_passed, STOP_MS, 0);
    uv_timer_stop(&daemon->starts);
    for (int i = daemon->n_started; i < daemon->n_cameras; i++) {
        daemon->n_threads--;
        finish_sinks(daemon, daemon->cameras[i]);
    }
    for (int i = 0; i < daemon->n_started; i++) {
        camera_stop(daemon->cameras[i]);
        int state = atomic_load(&daemon->cameras[i]->state);
        if (state == CAMERA_ENDED || state == CAMERA_FAILED)
            finish_sinks(daemon, daemon->cameras[i]); // now with less patience
    }
    finish_when_done(daemon);
}

static void signal_came(uv_signal_t *handle, int number)
{
    struct daemon *daemon = handle->data;
    if (number == SIGUSR1) {
        write_metrics(daemon);
        return;
    }
    log_event(LOG_LEVEL_INFO, "%s: stopping", strsignal(number));
    stop(daemon);
}

static void flush_log(uv_timer_t *timer)
{
    (void)timer;
    log_flush();
}

// --- the start

static int open_loop(struct daemon *daemon)
{
    int rc = uv_loop_init(&daemon->loop);
    if (rc < 0)
        return rc;
    rc = mailbox_open(&daemon->mailbox, &daemon->loop);
    if (rc < 0) {
        uv_loop_close(&daemon->loop);
        return rc;
    }
    for (int i = 0; i < SIGNALS; i++) {
        uv_signal_init(&daemon->loop, &daemon->signal[i]);
        uv_signal_start(&daemon->signal[i], signal_came, signals[i]);
        daemon->signal[i].data = daemon;
    }
    uv_timer_init(&daemon->loop, &daemon->deadline);
    daemon->deadline.data = daemon;
    uv_timer_init(&daemon->loop, &daemon->sinks);
    daemon->sinks.data = daemon;
    uv_timer_init(&daemon->loop, &daemon->starts);
    daemon->starts.data = daemon;
    uv_timer_init(&daemon->loop, &daemon->log);
    uv_timer_start(&daemon->log, flush_log, LOG_MS, LOG_MS);
    return 0;
}

static int open_camera(struct daemon *daemon, const struct camera_config *config)
{
    struct camera *camera = calloc(1, sizeof *camera);
    struct camera_context context = {
        .engine = daemon->engine,
        .mailbox = daemon->mailbox,
        .decode = &daemon->decode,
        .process = &daemon->process,
        .ended = camera_ended,
        .opaque = daemon,
    };
    int rc = camera ? camera_open(camera, config, &context) : -ENOMEM;
    if (rc < 0) {
        log_event(LOG_LEVEL_ERROR, "camera=%s %s", config->name, strerror(-rc));
        free(camera);
        return rc;
    }
    daemon->cameras[daemon->n_cameras++] = camera;
    daemon->n_threads++;
    return 0;
}

// Opens the sinks that are not open yet; returns how many still are not.
static int open_sinks(struct daemon *daemon)
{
    int missing = 0;
    for (int i = 0; i < daemon->n_cameras; i++) {
        const struct outputs *outputs = &daemon->cameras[i]->outputs;
        for (int o = 0; o < outputs->n; o++) {
            struct output *output = outputs->list[o];
            if (output->sink || output->finished)
                continue;
            if (output_listen(output, &daemon->loop, sink_was_closed, daemon) == 0)
                daemon->n_sinks++;
            else
                missing++;
        }
    }
    return missing;
}

// A folder that is not mounted yet, a port that another program holds: the rest works meanwhile.
static void retry_sinks(uv_timer_t *timer)
{
    if (open_sinks(timer->data) == 0)
        uv_timer_stop(timer);
}

// Every sink is tried before the first camera starts. Where none at all can be had, the
// configuration is wrong for this box and somebody should know at once.
static int open_cameras(struct daemon *daemon)
{
    const struct config *config = daemon->config;
    daemon->cameras = calloc((size_t)config->n_cameras + 1, sizeof *daemon->cameras);
    int rc = daemon->cameras ? 0 : -ENOMEM;
    if (rc < 0)
        log_event(LOG_LEVEL_ERROR, "no cameras: %s", strerror(-rc));
    for (int i = 0; rc == 0 && i < config->n_cameras; i++)
        rc = open_camera(daemon, &config->cameras[i]);
    if (rc < 0)
        return rc;
    if (open_sinks(daemon) > 0)
        uv_timer_start(&daemon->sinks, retry_sinks, SINKS_MS, SINKS_MS);
    return daemon->n_sinks > 0 ? 0 : -ENOENT;
}

static int start_camera(struct daemon *daemon)
{
    struct camera *camera = daemon->cameras[daemon->n_started];
    int rc = camera_start(camera);
    if (rc == 0)
        daemon->n_started++;
    else
        log_event(LOG_LEVEL_ERROR, "camera=%s no thread: %s", camera->config->name, strerror(-rc));
    return rc;
}

static void start_next(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    if (daemon->n_started == daemon->n_cameras) {
        uv_timer_stop(timer);
    } else if (start_camera(daemon) < 0) {
        daemon->exit_code = EXIT_RUNTIME;
        stop(daemon);
    }
}

static int start_cameras(struct daemon *daemon)
{
    int rc = 0;
    while (rc == 0 && daemon->n_started < daemon->n_cameras && daemon->n_started < BURST)
        rc = start_camera(daemon);
    if (rc == 0)
        uv_timer_start(&daemon->starts, start_next, START_MS, START_MS);
    return rc;
}

static int start(struct daemon *daemon)
{
    char why[256];
    int rc = engine_open(&daemon->engine, daemon->config);
    if (rc < 0)
        return rc == -ENODEV ? EXIT_NO_DEVICE : EXIT_RUNTIME;
    if (engine_admit(daemon->engine, why, sizeof why) < 0) {
        log_event(LOG_LEVEL_ERROR, "%s", why);
        return EXIT_CONFIG;
    }
    rc = open_cameras(daemon);
    if (rc == 0)
        rc = write_metrics(daemon); // a path that cannot be written is known at once
    if (rc == 0)
        rc = start_cameras(daemon);
    return rc < 0 ? EXIT_RUNTIME : EXIT_OK;
}

static void finish(struct daemon *daemon)
{
    write_metrics(daemon);
    for (int i = 0; i < daemon->n_cameras; i++) {
        const struct camera *camera = daemon->cameras[i];
        for (int o = 0; o < camera->outputs.n; o++)
            log_ledger(camera->config->name, camera->outputs.list[o]);
    }
    for (int i = 0; i < daemon->n_cameras; i++) {
        camera_close(daemon->cameras[i]);
        free(daemon->cameras[i]);
    }
    free(daemon->cameras);
    engine_close(daemon->engine);
    uv_loop_close(&daemon->loop);
    log_flush();
}

// A write to a client that left, or past a file size limit, is an error to handle, not a death.
static void prepare_process(void)
{
    struct rlimit files;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    abort_catch();
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

// Files are written by libuv's threads: as many as files, or a disk that hangs would stop the rest.
static void prepare_writers(const struct config *config)
{
    int files = 0;
    char text[16];
    for (int i = 0; i < config->n_cameras; i++)
        for (int o = 0; o < config->cameras[i].n_outputs; o++)
            files += config->cameras[i].outputs[o].sink.kind == SINK_FILE;
    snprintf(text, sizeof text, "%d", files);
    setenv("UV_THREADPOOL_SIZE", text, 1);
}

int daemon_run(const struct config *config, const struct daemon_options *options)
{
    struct daemon daemon = {.config = config, .options = options};
    log_open(config->log.level);
    log_event(LOG_LEVEL_INFO, "framed %s", FRAMED_VERSION_TEXT);
    prepare_process();
    prepare_writers(config);
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
