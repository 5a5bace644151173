// Rows: the ffmpeg program doing the cameras' job, one process per clip: decode, scale, pad, RGB.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "tests/bench/bench.h"
#include "tests/bench/child.h"
#include "tests/bench/session.h"

enum { PROCESSES_MAX = 64, SIDE = 640 };
static const double SECONDS = 4, START_S = 30;
static const char group[] = "ffmpeg";

struct process {
    struct child child;
    uint64_t frames, first_frames;
    int64_t at_ns, first_ns; // times of the two counts
};

struct way { // a way to do the job
    const char *name;
    bool device;
    char filters[200];
};

struct crowd {
    struct bench *bench;
    const struct way *way;
    char log[96];
    struct process process[PROCESSES_MAX];
    int n;
};

static int start(struct crowd *crowd, struct process *process)
{
    char *const on_device[] = {"-hwaccel", "cuda", "-hwaccel_output_format", "cuda", NULL};
    char *const on_cpu[] = {"-threads", "1", NULL};
    const struct bench_options *options = &crowd->bench->options;
    char *argv[40] = {(char *)options->ffmpeg,
                      "-nostdin",
                      "-v",
                      "error",
                      "-progress",
                      "pipe:1",
                      "-stats_period",
                      "0.2",
                      "-filter_threads",
                      "1"};
    int n = 10;
    for (char *const *word = crowd->way->device ? on_device : on_cpu; *word; word++)
        argv[n++] = *word;
    char *const rest[] = {
        "-stream_loop", "-1",          "-i",  (char *)options->clip,       "-an", "-sn",
        "-fps_mode",    "passthrough", "-vf", (char *)crowd->way->filters, "-f",  "rawvideo",
        "-y",           "/dev/null"};
    memcpy(argv + n, rest, sizeof rest);
    return child_start(&process->child, argv, crowd->log, true);
}

// Reads the progress lines the process has printed.
static void listen_to(struct process *process)
{
    const char *line;
    unsigned long long frames;
    while ((line = child_line(&process->child, 0)) != NULL)
        if (sscanf(line, "frame=%llu", &frames) == 1) {
            process->frames = frames;
            process->at_ns = monotonic_ns();
        }
}

static int listen_until_up(struct crowd *crowd)
{
    const int64_t deadline = monotonic_ns() + (int64_t)(START_S * 1e9);
    for (int up = 0; up < crowd->n;) {
        up = 0;
        for (int i = 0; i < crowd->n; i++) {
            if (!child_runs(&crowd->process[i].child))
                return -ESRCH;
            listen_to(&crowd->process[i]);
            up += crowd->process[i].frames > 0;
        }
        if (monotonic_ns() > deadline)
            return -ETIMEDOUT;
        int rc = interrupt_wait(0.01);
        if (rc < 0)
            return rc;
    }
    return 0;
}

struct figures {
    double rate, cores;
};

static double cpu_of(const struct crowd *crowd)
{
    double cpu = 0;
    for (int i = 0; i < crowd->n; i++)
        cpu += child_usage(&crowd->process[i].child).cpu;
    return cpu;
}

static int listen_for(struct crowd *crowd, double seconds, struct figures *ret)
{
    const int64_t start_ns = monotonic_ns();
    const double cpu = cpu_of(crowd);
    for (int i = 0; i < crowd->n; i++) {
        crowd->process[i].first_frames = crowd->process[i].frames;
        crowd->process[i].first_ns = crowd->process[i].at_ns;
    }
    while ((double)(monotonic_ns() - start_ns) / 1e9 < seconds) {
        for (int i = 0; i < crowd->n; i++)
            listen_to(&crowd->process[i]);
        int rc = interrupt_wait(0.01);
        if (rc < 0)
            return rc;
    }
    ret->cores = (cpu_of(crowd) - cpu) / ((double)(monotonic_ns() - start_ns) / 1e9);
    ret->rate = 0;
    for (int i = 0; i < crowd->n; i++) {
        const struct process *p = &crowd->process[i];
        if (p->at_ns > p->first_ns)
            ret->rate +=
                (double)(p->frames - p->first_frames) / ((double)(p->at_ns - p->first_ns) / 1e9);
    }
    return ret->rate > 0 ? 0 : -ESRCH;
}

static int run_crowd(struct crowd *crowd, int processes, struct figures *ret)
{
    const double wanted = crowd->bench->options.seconds;
    int rc = 0;
    for (crowd->n = 0; rc == 0 && crowd->n < processes; crowd->n += rc == 0) {
        crowd->process[crowd->n] = (struct process){0};
        rc = start(crowd, &crowd->process[crowd->n]);
    }
    if (rc == 0)
        rc = listen_until_up(crowd);
    if (rc == 0)
        rc = listen_for(crowd, wanted > 0 && wanted < SECONDS ? wanted : SECONDS, ret);
    for (int i = 0; i < crowd->n; i++)
        child_stop(&crowd->process[i].child, 0);
    if (rc < 0 && rc != -EINTR)
        session_complain(crowd->bench, crowd->way->name, crowd->log);
    return rc;
}

static void add(struct bench *bench, const struct way *way, int processes, const char *what,
                const char *unit, double value, double limit)
{
    struct row row = row_named(group, "%s, %d: %s", way->name, processes, what);
    row.unit = unit;
    row.value = value;
    if (limit > 0)
        row_limit(&row, limit, "framed with %d camera%s", bench->rate_cameras,
                  bench->rate_cameras == 1 ? "" : "s");
    report_add(&bench->report, &row);
}

// Keeps the best rate per core in *best. A way may fail without failing the bench: a note says why.
static int run_way(struct bench *bench, const char *log, const struct way *way, double *best)
{
    struct figures figures = {0};
    int rc = 0, last = 0;
    struct crowd *crowd = calloc(1, sizeof *crowd);
    if (!crowd)
        return -ENOMEM;
    crowd->bench = bench;
    crowd->way = way;
    snprintf(crowd->log, sizeof crowd->log, "%s", log);
    for (int share = 4; rc == 0 && share >= 1; share /= 2) {
        int processes = bench->workers / share;
        processes = processes < 1 ? 1 : processes > PROCESSES_MAX ? PROCESSES_MAX : processes;
        if (processes == last)
            continue;
        last = processes;
        rc = run_crowd(crowd, processes, &figures);
        if (rc < 0)
            break;
        const double per_core = figures.rate / figures.cores;
        add(bench, way, processes, "rate", "frames/s", figures.rate, bench->rate);
        add(bench, way, processes, "CPU", "cores", figures.cores, 0);
        add(bench, way, processes, "rate per core", "frames/s/core", per_core,
            bench->rate_per_core);
        *best = per_core > *best ? per_core : *best;
    }
    free(crowd);
    return rc == -EINTR || rc == -ENOMEM ? rc : 0;
}

// The daemon's letterbox, on even pixels as ffmpeg's scaler requires.
static void describe_ways(const struct footage *footage, struct way *device, struct way *cpu)
{
    const double across = (double)SIDE / footage->width, down = (double)SIDE / footage->height;
    const double scale = across < down ? across : down;
    const int width = (int)(footage->width * scale + 0.5) / 2 * 2;
    const int height = (int)(footage->height * scale + 0.5) / 2 * 2;
    char pad[96];
    snprintf(pad, sizeof pad, "pad=%d:%d:%d:%d:color=0x727272,format=rgb24", SIDE, SIDE,
             (SIDE - width) / 2, (SIDE - height) / 2);
    *device = (struct way){.name = "NVDEC, scale_cuda, hwdownload, pad", .device = true};
    *cpu = (struct way){.name = "CPU decode, scale, pad"};
    snprintf(device->filters, sizeof device->filters,
             "scale_cuda=%d:%d:interp_algo=bilinear,hwdownload,format=nv12,%s", width, height, pad);
    snprintf(cpu->filters, sizeof cpu->filters, "scale=%d:%d:flags=bilinear,%s", width, height,
             pad);
}

int bench_ffmpeg(struct bench *bench)
{
    struct way device, cpu;
    char log[] = "/tmp/framed-bench-XXXXXX";
    double best = 0;
    const int fd = mkstemp(log);
    if (fd < 0)
        return -errno;
    close(fd);
    describe_ways(&bench->footage, &device, &cpu);
    int rc = bench->device ? run_way(bench, log, &device, &best) : 0;
    if (rc == 0)
        rc = run_way(bench, log, &cpu, &best);
    unlink(log);
    if (rc == 0 && best > 0 && bench->rate > 0) {
        struct row row = row_named(group, "framed, %d camera%s: rate per core", bench->rate_cameras,
                                   bench->rate_cameras == 1 ? "" : "s");
        row.value = bench->rate_per_core;
        row.unit = "frames/s/core";
        row_limit(&row, best, "the best of ffmpeg per core");
        report_add(&bench->report, &row);
    }
    return rc;
}
