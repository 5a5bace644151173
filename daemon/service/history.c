#include "daemon/service/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"

static const uint32_t NONE = UINT32_MAX; // no frame, or no camera or output

// Base of a history, kept by name in the order of cameras or outputs. The samples come last.
struct entry {
    char name[24];
    struct entry *next;
};

struct output_sample {
    uint32_t out, lost[LOSSES];
    uint32_t process_us, p99_us;
};

struct output_history {
    struct entry entry;
    const struct output *of; // its counters at the last sample:
    uint64_t out, lost[LOSSES];
    struct latency_window latency, processing;
    struct output_sample sample[HISTORY_SAMPLES];
};

struct camera_sample {
    uint32_t in, decoded, damaged, reconnects;
    uint32_t decode_us;
};

struct camera_history {
    struct entry entry;
    const struct camera *of;
    uint64_t in, decoded, damaged, reconnects;
    struct latency_window decoding;
    struct entry *outputs;
    struct camera_sample sample[HISTORY_SAMPLES];
};

_Static_assert(sizeof(struct output_history) <= 24 << 10, "more than 24 kB an output");

struct history {
    struct entry *cameras;
    uint64_t begin, end; // numbers of samples; number n is at n % HISTORY_SAMPLES
    int64_t newest_ns;
};

int history_open(struct history **ret)
{
    *ret = calloc(1, sizeof **ret);
    if (!*ret)
        return -ENOMEM;
    (*ret)->begin = (*ret)->end =
        (uint64_t)realtime_ns() / 1000000 / HISTORY_INTERVAL_MS; // above the previous daemon's
    return 0;
}

static void close_output(struct entry *entry)
{
    free(entry);
}

static void close_camera(struct entry *entry);

// Closes the entries from *place on.
static void close_entries(struct entry **place, void (*close)(struct entry *))
{
    while (*place) {
        struct entry *gone = *place;
        *place = gone->next;
        close(gone);
    }
}

static void close_camera(struct entry *entry)
{
    close_entries(&((struct camera_history *)entry)->outputs, close_output);
    free(entry);
}

void history_close(struct history *history)
{
    if (history)
        close_entries(&history->cameras, close_camera);
    free(history);
}

// --- a sample

// Returns the counter's gain since `*before`, and updates that.
static uint32_t gained(uint64_t *before, uint64_t now)
{
    const uint64_t gain = now - *before;
    *before = now;
    return gain < NONE ? (uint32_t)gain : NONE - 1;
}

static uint32_t quantile_us(struct latency_window *window, const struct latency *latency, double q)
{
    const int64_t ns = latency_quantile_ns(window, latency, q);
    latency_turn(window, latency);
    return ns < 0 ? NONE : ns / 1000 < NONE ? (uint32_t)(ns / 1000) : NONE - 1;
}

static void sample_output(struct output_history *history, const struct output *output, size_t at)
{
    struct output_sample *sample = &history->sample[at];
    const uint64_t out = atomic_load(&output->ledger.emitted);
    // A change has replaced the output, maybe at the same address: counters begin at 0.
    if (history->of != output || out < history->out) {
        history->of = output;
        history->out = 0;
        memset(history->lost, 0, sizeof history->lost);
        memset(&history->latency, 0, sizeof history->latency);
        memset(&history->processing, 0, sizeof history->processing);
    }
    sample->out = gained(&history->out, out);
    for (int i = 0; i < LOSSES; i++)
        sample->lost[i] = gained(&history->lost[i], atomic_load(&output->ledger.lost[i]));
    sample->process_us = quantile_us(&history->processing, &output->processing, 0.5);
    sample->p99_us = quantile_us(&history->latency, &output->latency, 0.99);
}

// Moves the entry of that name to *place, where it mostly is, from further behind. If there is
// none, inserts a new one of `bytes` bytes with its samples at offset `samples`. NULL: out of
// memory.
static void *take_entry(struct entry **place, const char *name, size_t bytes, size_t samples)
{
    struct entry **at = place, *found;
    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    if ((found = *at)) {
        *at = found->next;
    } else if ((found = calloc(1, bytes))) {
        memset((char *)found + samples, 0xff, bytes - samples); // NONE
        snprintf(found->name, sizeof found->name, "%s", name);
    }
    if (found) {
        found->next = *place;
        *place = found;
    }
    return found;
}

static void sample_camera(struct camera_history *history, struct camera *camera, size_t at)
{
    const struct camera_report *report = &camera->report;
    struct camera_sample *sample = &history->sample[at];
    const uint64_t in = atomic_load(&report->packets);
    if (history->of != camera || in < history->in) {
        history->of = camera;
        history->in = history->decoded = history->damaged = history->reconnects = 0;
        memset(&history->decoding, 0, sizeof history->decoding);
    }
    sample->in = gained(&history->in, in);
    sample->decoded = gained(&history->decoded, atomic_load(&report->pictures));
    sample->damaged = gained(&history->damaged, atomic_load(&report->flagged[COUNTED_DAMAGED]));
    sample->reconnects = gained(&history->reconnects, atomic_load(&report->reconnects));
    sample->decode_us = quantile_us(&history->decoding, &report->decoding, 0.5);

    struct entry **place = &history->outputs;
    for (int i = 0; i < camera->subscriptions->n; i++) {
        const struct output *output = camera->subscriptions->list[i].output;
        struct output_history *found = take_entry(place, output->config->name, sizeof *found,
                                                  offsetof(struct output_history, sample));
        if (!found)
            continue;
        sample_output(found, output, at);
        place = &found->entry.next;
    }
    close_entries(place, close_output);
}

void history_sample(struct history *history, const struct metrics *metrics, int64_t now_ns)
{
    const size_t at = history->end++ % HISTORY_SAMPLES;
    struct entry **place = &history->cameras;
    history->newest_ns = now_ns;
    if (history->end - history->begin > HISTORY_SAMPLES)
        history->begin++;
    for (int i = 0; i < metrics->n_cameras; i++) {
        struct camera_history *found =
            take_entry(place, metrics->cameras[i]->config->name, sizeof *found,
                       offsetof(struct camera_history, sample));
        if (!found)
            continue;
        sample_camera(found, metrics->cameras[i], at);
        place = &found->entry.next;
    }
    close_entries(place, close_camera);
}

// --- as text: many numbers, so printed without printf

struct span {
    uint64_t first, end; // numbers of samples
};

static void print_number(FILE *to, uint32_t value)
{
    char digits[10];
    size_t n = sizeof digits;
    do
        digits[--n] = (char)('0' + value % 10);
    while (value /= 10);
    fwrite_unlocked(digits + n, 1, sizeof digits - n, to);
}

static void print_ms(FILE *to, uint32_t us)
{
    const uint32_t rest = us % 1000;
    print_number(to, us / 1000);
    if (rest == 0)
        return;
    putc_unlocked('.', to);
    putc_unlocked((int)('0' + rest / 100), to);
    putc_unlocked((int)('0' + rest / 10 % 10), to);
    putc_unlocked((int)('0' + rest % 10), to);
}

// Prints one member of all samples: `member` is the first sample's, `stride` bytes before the next.
static void print_list(FILE *to, const char *key, const uint32_t *member, size_t stride,
                       struct span span, void (*print)(FILE *, uint32_t))
{
    fputs_unlocked(key, to);
    for (uint64_t i = span.first; i < span.end; i++) {
        uint32_t value;
        memcpy(&value, (const char *)member + i % HISTORY_SAMPLES * stride, sizeof value);
        if (i > span.first)
            putc_unlocked(',', to);
        if (value == NONE)
            fputs_unlocked("null", to);
        else
            print(to, value);
    }
    putc_unlocked(']', to);
}

static bool lost_any(const struct output_history *output, int reason, struct span span)
{
    for (uint64_t i = span.first; i < span.end; i++) {
        const uint32_t n = output->sample[i % HISTORY_SAMPLES].lost[reason];
        if (n != 0 && n != NONE)
            return true;
    }
    return false;
}

static void print_losses(FILE *to, const struct output_history *output, struct span span)
{
    const char *between = "";
    char key[64];
    fputs_unlocked("\"lost\":{", to);
    for (int i = 0; i < LOSSES; i++) {
        if (!lost_any(output, i, span))
            continue;
        snprintf(key, sizeof key, "%s\"%s\":[", between, loss_name((enum loss)i));
        print_list(to, key, &output->sample[0].lost[i], sizeof output->sample[0], span,
                   print_number);
        between = ",";
    }
    putc_unlocked('}', to);
}

static void print_output(FILE *to, const struct output_history *output,
                         const struct camera_history *camera, struct span span)
{
    const size_t stride = sizeof output->sample[0];
    print_list(to, "\"out\":[", &output->sample[0].out, stride, span, print_number);
    putc_unlocked(',', to);
    print_losses(to, output, span);
    fputs_unlocked(",\"latency\":{", to);
    print_list(to, "\"decode\":[", &camera->sample[0].decode_us, sizeof camera->sample[0], span,
               print_ms);
    print_list(to, ",\"process\":[", &output->sample[0].process_us, stride, span, print_ms);
    print_list(to, "},\"p99\":[", &output->sample[0].p99_us, stride, span, print_ms);
}

static void print_camera(FILE *to, const struct camera_history *camera, struct span span,
                         bool lost_only)
{
    const struct camera_sample *first = &camera->sample[0];
    const size_t stride = sizeof *first;
    fprintf(to, "\"%s\":{", camera->entry.name);
    if (!lost_only) {
        print_list(to, "\"in\":[", &first->in, stride, span, print_number);
        print_list(to, ",\"decoded\":[", &first->decoded, stride, span, print_number);
        print_list(to, ",\"damaged\":[", &first->damaged, stride, span, print_number);
        print_list(to, ",\"reconnects\":[", &first->reconnects, stride, span, print_number);
        putc_unlocked(',', to);
    }
    fputs_unlocked("\"outputs\":{", to);
    for (const struct entry *entry = camera->outputs; entry; entry = entry->next) {
        const struct output_history *output = (const struct output_history *)entry;
        fprintf(to, "\"%s\":{", entry->name);
        if (lost_only)
            print_losses(to, output, span);
        else
            print_output(to, output, camera, span);
        fputs_unlocked(entry->next ? "}," : "}", to);
    }
    fputs_unlocked("}}", to);
}

static struct span wanted_span(const struct history *history, const struct history_wanted *wanted)
{
    const uint64_t kept = history->end - history->begin, most = (uint64_t)wanted->samples;
    const uint64_t first = kept < most ? history->begin : history->end - most;
    const uint64_t next = wanted->since < history->end ? wanted->since + 1 : history->end;
    return (struct span){next > first ? next : first, history->end};
}

char *history_text(const struct history *history, const struct history_wanted *wanted,
                   int64_t now_ns)
{
    const struct span span = wanted_span(history, wanted);
    const int64_t age_ns = history->end > history->begin ? now_ns - history->newest_ns : 0;
    const char *between = "";
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);
    if (!to)
        return NULL;
    fprintf(to,
            "{\"interval_ms\":%d,\"newest\":%llu,\"newest_ms\":%lld,\"samples\":%d,\"cameras\":{",
            HISTORY_INTERVAL_MS, (unsigned long long)history->end - 1,
            (long long)((realtime_ns() - age_ns) / 1000000), (int)(span.end - span.first));
    for (const struct entry *one = history->cameras; one; one = one->next) {
        if (wanted->camera && strcmp(wanted->camera, one->name) != 0)
            continue;
        fputs_unlocked(between, to);
        print_camera(to, (const struct camera_history *)one, span, wanted->lost_only);
        between = ",";
    }
    fputs_unlocked("}}", to);
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}
