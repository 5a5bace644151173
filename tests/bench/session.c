#include "tests/bench/session.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"

static const double START_S = 30, START_EACH_S = 0.5; // patience with n cameras
static const double JOIN_S = 75; // patience with the last joining camera: back-off goes to 36 s
static const double POLL_S = 0.02;

void session_complain(struct bench *bench, const char *what, const char *log)
{
    char last[400];
    child_last_words(log, last, sizeof last);
    report_note(&bench->report, "%s%s%s", what, *last ? ": " : "", last);
}

// Adds the reference's bytes of a picture in the outputs' form; they set the size of all.
static int expect_picture(struct expected *expected, const struct op_params *params,
                          const struct image *src)
{
    struct op op;
    struct image dst;
    int rc = op_init(&op, params, src);
    if (rc < 0)
        return rc;
    expected->bytes = op.dst_bytes;
    uint8_t *frames = realloc(expected->frames, ((size_t)expected->n + 1) * op.dst_bytes);
    if (frames) {
        expected->frames = frames;
        op_lay_out(&op, &dst, frames + (size_t)expected->n++ * op.dst_bytes);
        op_reference(&dst, src, &op, (struct band){0, op.dst.height}, false);
    }
    op_finish(&op);
    return frames ? 0 : -ENOMEM;
}

static int expect(struct session *session)
{
    const struct footage *footage = &session->bench->footage;
    int rc = 0;
    session->expected = (struct expected){.apart = FOOTAGE_APART};
    for (int i = 0; rc == 0 && i < footage->n; i++)
        rc = expect_picture(&session->expected, &session->testbed.params, &footage->picture[i]);
    return rc;
}

static int start(struct session *session)
{
    struct bench *bench = session->bench;
    char *const argv[] = {
        bench->options.framed,    "run", "-c", session->testbed.config, "--metrics",
        session->testbed.metrics, NULL};
    int rc = expect(session);
    if (rc < 0)
        return rc;
    if (bench->device)
        session->device_before = bench->driver->memory_used(bench->device);
    session->start_ns = monotonic_ns();
    rc = child_start(&session->child, argv, session->testbed.log, false);
    if (rc == 0)
        rc = consumer_open(&session->consumer, session->testbed.folder,
                           session->testbed.options.cameras, &session->expected, session->server);
    return rc;
}

// Waits until the first n cameras have delivered.
static int wait_until_up(struct session *session, int n, double patience, int64_t *last_ns)
{
    const int64_t deadline = monotonic_ns() + (int64_t)(patience * 1e9);
    while (consumer_up(session->consumer, n, last_ns) < n) {
        if (!child_runs(&session->child))
            return -ESRCH;
        if (monotonic_ns() > deadline)
            return -ETIMEDOUT;
        int rc = interrupt_wait(POLL_S);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int open_server(struct session *session, const struct testbed_options *options)
{
    const struct bench_options *wanted = &session->bench->options;
    char why[200];
    int rc = clip_units_open(&session->clip, options->clip, why, sizeof why);
    if (rc < 0) {
        report_note(&session->bench->report, "%s", why);
        return rc;
    }
    return rtsp_server_open(&session->server,
                            &(struct rtsp_server_options){.clip = &session->clip,
                                                          .cameras = options->cameras,
                                                          .withhold = wanted->withhold,
                                                          .spread = true});
}

int session_open(struct session *session, struct bench *bench, const struct testbed_options *wanted)
{
    struct testbed_options options = *wanted;
    const int n = options.cameras - options.joining;
    int64_t last_ns = 0;
    *session = (struct session){.bench = bench};
    int rc = bench->options.rtsp && options.realtime ? open_server(session, &options) : 0;
    options.rtsp = session->server;
    options.udp = bench->options.udp;
    if (rc == 0)
        rc = testbed_open(&session->testbed, &options);
    if (rc == 0)
        rc = start(session);
    if (rc == 0)
        rc = wait_until_up(session, n, START_S + START_EACH_S * n, &last_ns);
    session->up_s = (double)(last_ns - session->start_ns) / 1e9;
    if (rc < 0) {
        char what[96];
        snprintf(what, sizeof what, "the daemon with %d cameras: %s", options.cameras,
                 rc == -ETIMEDOUT ? "some did not deliver"
                 : rc == -ESRCH   ? "it ended"
                                  : strerror(-rc));
        session_complain(bench, what, session->testbed.log);
        session_close(session);
    }
    return rc;
}

void session_close(struct session *session)
{
    if (!session->bench)
        return;
    child_stop(&session->child, 10);
    consumer_close(session->consumer);
    testbed_close(&session->testbed);
    rtsp_server_close(session->server);
    clip_units_close(&session->clip);
    free(session->expected.frames);
    *session = (struct session){0};
}

// --- windows

static int others(const struct session *session)
{
    return session->testbed.options.cameras - session->testbed.options.joining;
}

static struct child_usage begin(struct session *session)
{
    consumer_reset(session->consumer);
    return child_usage(&session->child);
}

// Returns the sum of a counter's lines with this label, from the file that the daemon writes on
// SIGUSR1; NAN: no such line.
static double read_counter(const char *path, const char *name, const char *label)
{
    char line[512];
    double sum = NAN;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        const char *value = strrchr(line, ' ');
        if (strncmp(line, name, strlen(name)) == 0 && strstr(line, label) && value)
            sum = (isnan(sum) ? 0 : sum) + strtod(value, NULL);
    }
    if (file)
        fclose(file);
    return sum;
}

static double missed_packets(const struct session *session)
{
    const int64_t deadline = monotonic_ns() + 2000000000;
    const char *path = session->testbed.metrics;
    unlink(path);
    kill(session->child.pid, SIGUSR1);
    while (access(path, R_OK) != 0 && monotonic_ns() < deadline && interrupt_wait(POLL_S) == 0)
        ;
    return read_counter(path, "framed_rtp_packets_total", "result=\"lost\"");
}

static int end(struct session *session, const struct child_usage *before, struct window *ret)
{
    const struct bench *bench = session->bench;
    const struct child_usage after = child_usage(&session->child);
    if (!child_runs(&session->child)) {
        session_complain(session->bench, "the daemon ended while it was measured",
                         session->testbed.log);
        return -ESRCH;
    }
    *ret = (struct window){.seconds = (double)(after.at_ns - before->at_ns) / 1e9,
                           .resident = after.resident};
    ret->cores = (after.cpu - before->cpu) / ret->seconds;
    ret->device = bench->device ? (double)bench->driver->memory_used(bench->device) -
                                      (double)session->device_before
                                : NAN;
    if (session->server) {
        ret->sent = rtsp_server_counts(session->server);
        ret->missed = missed_packets(session);
    }
    return consumer_result(session->consumer, others(session), &ret->consumed);
}

int session_window(struct session *session, double seconds, struct window *ret)
{
    const struct child_usage before = begin(session);
    int rc = interrupt_wait(seconds);
    return rc < 0 ? rc : end(session, &before, ret);
}

int session_join(struct session *session, struct window *ret, double *joined_s)
{
    const struct child_usage before = begin(session);
    int64_t last_ns = 0;
    int rc = 0;
    for (int i = others(session); rc == 0 && i < session->testbed.options.cameras; i++)
        rc = testbed_join(&session->testbed, i);
    if (rc == 0)
        rc = wait_until_up(session, session->testbed.options.cameras, JOIN_S, &last_ns);
    if (rc == -ETIMEDOUT)
        session_complain(session->bench, "some of the joining cameras did not deliver",
                         session->testbed.log);
    *joined_s = (double)(last_ns - before.at_ns) / 1e9;
    return rc < 0 ? rc : end(session, &before, ret);
}
