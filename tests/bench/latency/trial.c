#include "tests/bench/latency/trial.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "tests/bench/interrupt.h"

static const double START_S = 15; // patience with the first picture
static const double LATE_S = 4;   // longer than any picture takes, shorter than any clip

static void complain(const struct reader_kind *kind, const struct reader *reader, int rc)
{
    char words[400];
    child_last_words(reader->log, words, sizeof words);
    fprintf(stderr, "%s: %s%s%s\n", kind->name,
            rc == -ETIMEDOUT ? "no picture"
            : rc == -ESRCH   ? "it ended"
                             : strerror(-rc),
            *words ? ": " : "", words);
}

// Returns the number of pictures between the last one (-1: none) and this one. Returns 0 if that is
// more than half a clip: this picture is then older than the last.
static int count_between(int last, int number, int pictures)
{
    const int between = last < 0 ? 0 : (number - last - 1 + pictures) % pictures;
    return between < pictures / 2 ? between : 0;
}

static int add_sample(struct trial *trial, double ms)
{
    if (trial->n == TRIAL_SAMPLES_MAX)
        return -EFBIG;
    double *samples = realloc(trial->ms, (trial->n + 1) * sizeof *samples);
    if (!samples)
        return -ENOMEM;
    trial->ms = samples;
    samples[trial->n++] = ms;
    return 0;
}

static int read_pictures(struct trial *trial, const struct reader_kind *kind, struct reader *reader,
                         const struct trial_plan *plan)
{
    struct picture_seen seen;
    const int64_t start_ns = monotonic_ns();
    int64_t first_ns = 0;
    int last = -1;
    for (;;) {
        int rc = kind->take(reader, &seen);
        const int64_t now = monotonic_ns();
        if (interrupted())
            return -EINTR;
        if (rc < 0)
            return rc;
        if (rc == 0 && !first_ns && (double)(now - start_ns) / 1e9 > START_S)
            return -ETIMEDOUT;
        if (first_ns && (double)(now - first_ns) / 1e9 > plan->warm_up_s + plan->seconds)
            return 0;
        if (rc == 0)
            continue;
        const int64_t sent_ns = rtsp_server_sent(plan->server, 0, seen.number);
        const double ms = (double)(seen.at_ns - sent_ns) / 1e6;
        if (!first_ns) {
            first_ns = seen.at_ns;
            trial->first = seen.number;
            trial->first_ms = (double)(first_ns - rtsp_server_accepted(plan->server, 0)) / 1e6;
        }
        if (seen.number < 0 || sent_ns == 0 || ms < 0 || ms > 1000 * LATE_S) {
            trial->unknown++;
            continue;
        }
        trial->missing += count_between(last, seen.number, plan->pictures);
        last = seen.number;
        if ((double)(seen.at_ns - first_ns) / 1e9 > plan->warm_up_s &&
            (rc = add_sample(trial, ms)) < 0)
            return rc;
    }
}

int trial_run(struct trial *trial, const struct reader_kind *kind, const struct reader_want *want,
              const struct trial_plan *plan)
{
    struct reader reader = {.fd = -1, .ring.fd = -1, .child.out = -1};
    int rc = kind->start(&reader, want);
    if (rc == 0)
        rc = read_pictures(trial, kind, &reader, plan);
    if (rc < 0 && rc != -EINTR)
        complain(kind, &reader, rc);
    reader_stop(&reader);
    return rc;
}
