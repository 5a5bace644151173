// Rows: N cameras at their own pace, and the same while some of them join.
#include <math.h>
#include <string.h>

#include "tests/bench/bench.h"
#include "tests/bench/interrupt.h"
#include "tests/bench/session.h"

static const double SECONDS = 60, MIB = 1 << 20;
static const double P99_MS = 10, UP_S = 14, JOIN_P99_MS = 20; // framed's promises
static const double SENT_P50_MS = 5, SENT_P99_MS = 12;
static const char group[] = "live";

static void add(struct bench *bench, const char *name, const char *what, const char *unit,
                double value, double limit, const char *limit_is)
{
    struct row row = row_named(group, "%s: %s", name, what);
    row.unit = unit;
    row.value = value;
    if (!isnan(limit))
        row_limit(&row, limit, "%s", limit_is);
    if (!isnan(value))
        report_add(&bench->report, &row);
}

static void add_window(struct bench *bench, const char *name, int cameras,
                       const struct window *window, double p99_ms)
{
    static const char promised[] = "promised";
    const struct consumed *consumed = &window->consumed;
    add(bench, name, "received to decoded p50", "ms", consumed->decoded_p50_ms, NAN, NULL);
    add(bench, name, "received to decoded p99", "ms", consumed->decoded_p99_ms, NAN, NULL);
    add(bench, name, "received to finished p50", "ms", consumed->p50_ms, NAN, NULL);
    add(bench, name, "received to finished p99", "ms", consumed->p99_ms, p99_ms, promised);
    add(bench, name, "received to finished max", "ms", consumed->max_ms, NAN, NULL);
    add(bench, name, "lost", "frames", (double)consumed->lost, 0, promised);
    add(bench, name, "slots taken back while read", "frames", (double)consumed->torn, 0, promised);
    add(bench, name, "first frames as the reference", "cameras",
        consumed->checked - consumed->wrong, cameras, "all cameras'");
}

// Rows that need the bench's own server.
static void add_rtsp(struct bench *bench, const char *name, const struct window *window)
{
    static const char promised[] = "promised for 165 on a GPU";
    const struct consumed *consumed = &window->consumed;
    add(bench, name, "sent to finished p50", "ms", consumed->sent_p50_ms, SENT_P50_MS, promised);
    add(bench, name, "sent to finished p99", "ms", consumed->sent_p99_ms, SENT_P99_MS, promised);
    add(bench, name, "sent to finished max", "ms", consumed->sent_max_ms, NAN, NULL);
    add(bench, name, "frames whose sending is known", "frames", (double)consumed->timed,
        (double)consumed->frames, "all frames");
    add(bench, name, "sent, and no frame", "frames", (double)consumed->unseen, 0, "nothing");
    add(bench, name, "packets sent", "packets", (double)window->sent.packets, NAN, NULL);
    add(bench, name, "packets withheld", "packets", (double)window->sent.withheld, NAN, NULL);
    add(bench, name, "packets that framed missed", "packets", window->missed,
        (double)window->sent.withheld, "those withheld");
    add(bench, name, "the server was behind by", "ms", window->sent.latest_ms, NAN, NULL);
}

static int steady(struct bench *bench, const struct testbed_options *options)
{
    const double seconds = bench->options.seconds > 0 ? bench->options.seconds : SECONDS;
    struct session session;
    struct window window;
    char name[32];
    snprintf(name, sizeof name, "%d camera%s", options->cameras, options->cameras == 1 ? "" : "s");
    int rc = session_open(&session, bench, options);
    if (rc < 0)
        return rc;
    rc = interrupt_wait(bench->options.settle);
    if (rc == 0)
        rc = session_window(&session, seconds, &window);
    if (rc == 0) {
        add(bench, name, "all delivered after", "s", session.up_s, UP_S, "promised for 165");
        add(bench, name, "rate", "frames/s", (double)window.consumed.frames / window.seconds, NAN,
            NULL);
        add(bench, name, "CPU", "cores", window.cores, NAN, NULL);
        add_window(bench, name, options->cameras, &window, P99_MS);
        if (session.server)
            add_rtsp(bench, name, &window);
        add(bench, name, "resident memory", "MiB", window.resident / MIB, NAN, NULL);
        add(bench, name, "device memory", "MiB", window.device / MIB, NAN, NULL);
    }
    session_close(&session);
    return rc;
}

static int joining(struct bench *bench, struct testbed_options options)
{
    struct session session;
    struct window window;
    double joined_s;
    char name[48];
    options.joining = bench->options.join;
    snprintf(name, sizeof name, "%d while %d join", options.cameras - options.joining,
             options.joining);
    int rc = session_open(&session, bench, &options);
    if (rc < 0)
        return rc;
    rc = session_join(&session, &window, &joined_s);
    if (rc == 0) {
        add(bench, name, "all joined after", "s", joined_s, NAN, NULL);
        add_window(bench, name, options.cameras - options.joining, &window, JOIN_P99_MS);
    }
    session_close(&session);
    return rc;
}

int bench_live(struct bench *bench)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < bench->options.n_cameras; i++) {
        const struct testbed_options options = {.clip = bench->options.clip,
                                                .width = bench->footage.width,
                                                .height = bench->footage.height,
                                                .cameras = bench->options.cameras[i],
                                                .realtime = true,
                                                .dtype = bench->options.dtypes[0],
                                                .backend = bench->options.backend,
                                                .decoders = bench->options.decoders};
        rc = steady(bench, &options);
        if (rc == 0 && bench->options.join)
            rc = joining(bench, options);
    }
    return rc;
}
