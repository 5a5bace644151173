#include "daemon/tune/stage.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/ledger.h"
#include "daemon/bench/child.h"
#include "daemon/bench/consumer.h"
#include "daemon/bench/folder.h"
#include "daemon/bench/interrupt.h"

static const double RATE_S = 3, LIVE_S = 10;          // of a trial, by default
static const double START_S = 30, START_EACH_S = 0.5; // patience with n cameras
static const double SETTLE_S = 0.3;                   // from the last first frame on, at most
static const double COUNTERS_S = 5, STOP_S = 5, POLL_S = 0.01;

int stage_open(struct stage *stage, const struct config *config, const char *clip, bool live,
               double seconds)
{
    *stage = (struct stage){.cameras = config->n_cameras};
    for (int i = 0; i < config->n_cameras; i++)
        stage->outputs += config->cameras[i].n_outputs;
    if (clip && !realpath(clip, stage->clip))
        return -errno;
    int rc = folder_make(stage->folder);
    if (rc < 0)
        return rc;
    snprintf(stage->log, sizeof stage->log, "%s/log", stage->folder);
    stage->rehearsal = (struct rehearsal){
        .folder = stage->folder, .clip = clip ? stage->clip : NULL, .live = live};
    stage->objective = rehearsal_waits(config, &stage->rehearsal) ? OBJECTIVE_RATE : OBJECTIVE_LIVE;
    stage->seconds = seconds > 0 ? seconds : stage->objective == OBJECTIVE_LIVE ? LIVE_S : RATE_S;
    return 0;
}

void stage_close(struct stage *stage)
{
    folder_remove(stage->folder);
    *stage = (struct stage){.cameras = 0};
}

// --- the child

// Gives the text to the child by a file that has no name, since it may hold passwords.
static int share(const char *text, size_t length, char path[64])
{
    int fd = memfd_create("framed-tune", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (write(fd, text, length) != (ssize_t)length) {
        close(fd);
        return -EIO;
    }
    snprintf(path, 64, "/proc/%d/fd/%d", (int)getpid(), fd);
    return fd;
}

static int start(const struct stage *stage, struct child *child, char *path)
{
    const struct rehearsal *rehearsal = &stage->rehearsal;
    char *argv[] = {"/proc/self/exe",
                    "tune",
                    "--rehearsal",
                    (char *)rehearsal->folder,
                    "-c",
                    path,
                    NULL,
                    NULL,
                    NULL,
                    NULL};
    int n = 6;
    if (rehearsal->clip) {
        argv[n++] = "--clip";
        argv[n++] = (char *)rehearsal->clip;
    }
    if (rehearsal->live)
        argv[n++] = "--live";
    return child_start(child, argv, stage->log, false);
}

static int wait_until_up(const struct stage *stage, const struct child *child,
                         struct consumer *consumer)
{
    const double patience = START_S + START_EACH_S * stage->cameras;
    const int64_t deadline = monotonic_ns() + (int64_t)(patience * 1e9);
    int64_t last_ns;
    int rc = 0;
    while (rc == 0 && consumer_up(consumer, stage->outputs, &last_ns) < stage->outputs) {
        if (!child_runs(child))
            rc = -ESRCH;
        else if (monotonic_ns() > deadline)
            rc = -ETIMEDOUT;
        else
            rc = interrupt_wait(POLL_S);
    }
    return rc == 0 ? interrupt_wait(fmin(SETTLE_S, stage->seconds / 4)) : rc;
}

// --- its counters

struct counters {
    double offered, lost; // frames
};

// Losses that come of settings: what a camera damaged or `fps` thins is none of theirs.
static bool is_loss(const char *line)
{
    static const enum loss losses[] = {LOSS_LATE, LOSS_OVERFLOW, LOSS_CLIENT,
                                       LOSS_SINK, LOSS_BACKEND,  LOSS_BACKEND_BUSY};
    char label[32];
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        snprintf(label, sizeof label, "reason=\"%s\"}", loss_name(losses[i]));
        if (strstr(line, label))
            return true;
    }
    return false;
}

static int read_counters(const char *path, struct counters *ret)
{
    char line[512];
    FILE *file = fopen(path, "re");
    *ret = (struct counters){0};
    if (!file)
        return -errno;
    while (fgets(line, sizeof line, file)) {
        const char *value = strrchr(line, ' ');
        if (*line == '#' || !value)
            continue;
        if (strstr(line, "stage=\"offered\"}"))
            ret->offered += strtod(value, NULL);
        if (is_loss(line))
            ret->lost += strtod(value, NULL);
    }
    fclose(file);
    return 0;
}

static int ask_counters(const struct stage *stage, const struct child *child, struct counters *ret)
{
    const int64_t deadline = monotonic_ns() + (int64_t)(COUNTERS_S * 1e9);
    char path[96];
    int rc = -ENOENT;
    snprintf(path, sizeof path, "%s/metrics", stage->folder);
    unlink(path); // what comes is of now; it appears whole
    kill(child->pid, SIGUSR1);
    while ((rc = read_counters(path, ret)) == -ENOENT && monotonic_ns() < deadline)
        if ((rc = interrupt_wait(POLL_S)) < 0)
            break;
    return rc;
}

// --- a trial

static int measure(const struct stage *stage, const struct child *child, struct consumer *consumer,
                   struct figures *ret)
{
    struct counters before, after;
    struct consumed consumed;
    int rc = ask_counters(stage, child, &before);
    if (rc < 0)
        return rc;
    consumer_reset(consumer);
    const struct child_usage begin = child_usage(child);
    rc = interrupt_wait(stage->seconds);
    const struct child_usage end = child_usage(child);
    if (rc == 0)
        rc = consumer_result(consumer, stage->outputs, &consumed);
    if (rc == 0)
        rc = ask_counters(stage, child, &after);
    if (rc == 0 && !child_runs(child))
        rc = -ESRCH;
    if (rc < 0)
        return rc;
    const double seconds = (double)(end.at_ns - begin.at_ns) / 1e9;
    const double offered = after.offered - before.offered;
    *ret = (struct figures){.lost = offered > 0 ? (after.lost - before.lost) / offered : 0,
                            .rate = (double)consumed.frames / seconds,
                            .cores = (end.cpu - begin.cpu) / seconds,
                            .p99_ms = consumed.p99_ms,
                            .resident = end.resident};
    return 0;
}

// What went wrong with the child is this choice's fault, and not the end of all trials.
static int complain(struct stage *stage, const struct child *child, int rc)
{
    char last[300];
    stage->code = child_code(child);
    if (rc != -ESRCH && rc != -ETIMEDOUT && rc != -ENOENT)
        return rc;
    child_last_words(stage->log, last, sizeof last);
    snprintf(stage->complaint, sizeof stage->complaint, "%s%s%s",
             rc == -ESRCH ? "it ended" : "not every output delivered", *last ? ": " : "", last);
    return -ENOEXEC;
}

int stage_trial(struct stage *stage, const char *text, size_t length, struct figures *ret)
{
    struct child child = {.out = -1};
    struct consumer *consumer = NULL;
    char path[64];
    const int fd = share(text, length, path);
    if (fd < 0)
        return fd;
    int rc = start(stage, &child, path);
    if (rc == 0)
        rc = consumer_open(&consumer, stage->folder, stage->outputs, NULL);
    if (rc == 0)
        rc = wait_until_up(stage, &child, consumer);
    if (rc == 0)
        rc = measure(stage, &child, consumer, ret);
    if (rc < 0)
        rc = complain(stage, &child, rc);
    child_stop(&child, rc == -EINTR ? 0 : STOP_S);
    consumer_close(consumer);
    close(fd);
    return rc;
}
