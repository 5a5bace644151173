// Rows: the whole daemon with N cameras at full speed, and decoding alone.
#include <errno.h>
#include <math.h>

#include "daemon/codec/frame.h"
#include "tests/bench/bench.h"
#include "tests/bench/session.h"

static const double SECONDS = 5, MIB = 1 << 20;
static const char group[] = "cameras";
static const char *const dtypes[] = {"u8", "s8", "f16", "f32"}; // by enum dtype

// Figures of decoding alone, the limit for the other rows.
struct alone_figures {
    double rate, cores, up_s, resident, device;
};

// --- rows

struct label {
    int cameras;
    const char *dtype; // NULL: decoding alone
};

static void add(struct bench *bench, const struct label *label, const char *what, const char *unit,
                double value, double limit, const char *limit_is)
{
    struct row row =
        row_named(group, "%d camera%s, %s: %s", label->cameras, label->cameras == 1 ? "" : "s",
                  label->dtype ? label->dtype : "decode alone", what);
    row.unit = unit;
    row.value = value;
    if (!isnan(limit))
        row_limit(&row, limit, "%s", limit_is);
    if (!isnan(value))
        report_add(&bench->report, &row);
}

static void add_alone(struct bench *bench, int cameras, const struct alone_figures *alone)
{
    const struct label label = {cameras, NULL};
    add(bench, &label, "rate", "frames/s", alone->rate, NAN, NULL);
    add(bench, &label, "CPU", "cores", alone->cores, NAN, NULL);
    add(bench, &label, "all delivered after", "s", alone->up_s, NAN, NULL);
    add(bench, &label, "resident memory", "MiB", alone->resident / MIB, NAN, NULL);
    add(bench, &label, "device memory", "MiB", alone->device / MIB, NAN, NULL);
}

static void add_daemon(struct bench *bench, const struct label *label,
                       const struct alone_figures *alone, const struct window *window, double up_s)
{
    static const char limit_is[] = "decode alone";
    const double rate = (double)window->consumed.frames / window->seconds;
    add(bench, label, "rate", "frames/s", rate, alone->rate, limit_is);
    add(bench, label, "CPU", "cores", window->cores, alone->cores, limit_is);
    add(bench, label, "rate per core", "frames/s/core", rate / window->cores,
        alone->rate / alone->cores, limit_is);
    add(bench, label, "all delivered after", "s", up_s, alone->up_s, limit_is);
    add(bench, label, "received to finished p50", "ms", window->consumed.p50_ms, NAN, NULL);
    add(bench, label, "received to finished p99", "ms", window->consumed.p99_ms, NAN, NULL);
    add(bench, label, "received to finished max", "ms", window->consumed.max_ms, NAN, NULL);
    add(bench, label, "resident memory", "MiB", window->resident / MIB, alone->resident / MIB,
        limit_is);
    add(bench, label, "device memory", "MiB", window->device / MIB, alone->device / MIB, limit_is);
    add(bench, label, "lost", "frames", (double)window->consumed.lost, 0, "nothing");
    add(bench, label, "slots taken back while read", "frames", (double)window->consumed.torn, 0,
        "nothing");
    add(bench, label, "first frames as the reference", "cameras",
        window->consumed.checked - window->consumed.wrong, label->cameras, "all cameras'");
}

// --- decoding alone, in a child

static int read_figures(struct bench *bench, struct child *child, double seconds, int cameras,
                        size_t device_before, struct alone_figures *ret)
{
    unsigned long long frames;
    double lasted;
    const char *line = child_line(child, 60 + cameras);
    if (!line || sscanf(line, "up %lf", &ret->up_s) != 1)
        return interrupted() ? -EINTR : -EPROTO;
    const struct child_usage before = child_usage(child);
    int rc = interrupt_wait(seconds / 2);
    if (rc < 0)
        return rc;
    const struct child_usage half = child_usage(child);
    ret->device = bench->device
                      ? (double)bench->driver->memory_used(bench->device) - (double)device_before
                      : NAN;
    line = child_line(child, seconds + 10);
    const struct child_usage after = child_usage(child);
    if (!line || sscanf(line, "frames %llu %lf", &frames, &lasted) != 2)
        return interrupted() ? -EINTR : -EPROTO;
    ret->rate = (double)frames / lasted;
    ret->cores = (after.cpu - before.cpu) / ((double)(after.at_ns - before.at_ns) / 1e9);
    ret->resident = half.resident;
    return 0;
}

static int decode_alone(struct bench *bench, const struct testbed_options *options, double seconds,
                        struct alone_figures *ret)
{
    struct testbed testbed;
    struct child child = {.out = -1};
    char text[32];
    int rc = testbed_open(&testbed, options);
    if (rc < 0)
        return rc;
    snprintf(text, sizeof text, "%g", seconds);
    char *const argv[] = {
        "/proc/self/exe", "--decode-alone", testbed.config, "--seconds", text, NULL};
    const size_t used = bench->device ? bench->driver->memory_used(bench->device) : 0;
    rc = child_start(&child, argv, testbed.log, true);
    if (rc == 0)
        rc = read_figures(bench, &child, seconds, options->cameras, used, ret);
    if (rc < 0 && rc != -EINTR)
        session_complain(bench, "decoding alone failed", testbed.log);
    child_stop(&child, 10);
    testbed_close(&testbed);
    return rc;
}

// --- the whole daemon

static int whole_daemon(struct bench *bench, const struct testbed_options *options, double seconds,
                        const struct alone_figures *alone)
{
    const struct label label = {options->cameras, dtypes[options->dtype]};
    struct session session;
    struct window window;
    int rc = session_open(&session, bench, options);
    if (rc < 0)
        return rc;
    rc = session_window(&session, seconds, &window);
    if (rc == 0) {
        add_daemon(bench, &label, alone, &window, session.up_s);
        const double rate = (double)window.consumed.frames / window.seconds;
        if (rate / window.cores > 0 && options->dtype == DTYPE_U8) {
            bench->rate = rate;
            bench->rate_per_core = rate / window.cores;
            bench->rate_cameras = options->cameras;
        }
    }
    session_close(&session);
    return rc;
}

static int with_cameras(struct bench *bench, int cameras)
{
    const double seconds = bench->options.seconds > 0 ? bench->options.seconds : SECONDS;
    struct testbed_options options = {.clip = bench->options.clip,
                                      .width = bench->footage.width,
                                      .height = bench->footage.height,
                                      .cameras = cameras,
                                      .backend = bench->options.backend,
                                      .decoders = bench->options.decoders};
    struct alone_figures alone;
    int rc = decode_alone(bench, &options, seconds, &alone);
    if (rc < 0)
        return rc;
    add_alone(bench, cameras, &alone);
    for (int i = 0; rc == 0 && i < bench->options.n_dtypes; i++) {
        options.dtype = bench->options.dtypes[i];
        rc = whole_daemon(bench, &options, seconds, &alone);
    }
    return rc;
}

int bench_cameras(struct bench *bench)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < bench->options.n_cameras; i++)
        rc = with_cameras(bench, bench->options.cameras[i]);
    return rc;
}
