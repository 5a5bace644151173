// Events that readers get: their selection and order, in pieces of any size, and the number of lost
// ones.
#include "daemon/service/event_log.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

static struct event_log *events;

static void state(const char *camera, enum camera_state now, const char *why)
{
    struct camera_change change = {.realtime_ns = 1760000000125999999, .state = now};
    snprintf(change.why, sizeof change.why, "%s", why);
    event_log_change(events, camera, &change);
}

static void line(const char *text)
{
    event_log_line(events, text, strlen(text));
}

static void woken(void *opaque)
{
    ++*(int *)opaque;
}

static struct event_reader *reader_of(struct event_filter filter, int *wakes)
{
    static int nobody;
    struct event_reader *reader = NULL;
    CHECK(event_reader_open(&reader, events, &filter, woken, wakes ? wakes : &nobody) == 0, "open");
    return reader;
}

// Returns all that the reader gets, in pieces of `piece` bytes.
static char *all(struct event_reader *reader, size_t piece)
{
    static char text[1 << 20];
    size_t used = 0, n;
    while ((n = event_reader_fill(reader, text + used, piece)) > 0)
        used += n;
    text[used] = 0;
    return text;
}

// Removes the lines with ids.
static char *without_ids(char *text)
{
    char *to = text;
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        const size_t n = (size_t)(end + 1 - line);
        if (strncmp(line, "id: ", 4) == 0)
            continue;
        memmove(to, line, n);
        to += n;
    }
    *to = 0;
    return text;
}

static uint64_t last_id(const char *text)
{
    const char *last = NULL;
    for (const char *at = text; (at = strstr(at, "id: ")); at++)
        last = at;
    return last ? strtoull(last + 4, NULL, 10) : 0;
}

static int count(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)); text++)
        n++;
    return n;
}

static void start(void)
{
    CHECK(event_log_open(&events) == 0, "open");
}

static void expect(struct event_reader *reader, const char *wanted)
{
    char *text = without_ids(all(reader, 4096));
    CHECK(strcmp(text, wanted) == 0, "got:\n%snot:\n%s", text, wanted);
}

static void test_texts(void)
{
    start();
    struct event_reader *reader = reader_of((struct event_filter){.kinds = EVENTS_ALL}, NULL);
    state("gate", CAMERA_RETRYING, "refused \"x\"\xff");
    expect(reader, "event: state\ndata: {\"t\":1760000000.125,\"camera\":\"gate\","
                   "\"state\":\"retrying\",\"why\":\"refused \\\"x\\\"?\"}\n\n");
    const struct camera_change running = {
        .realtime_ns = 2000000000, .state = CAMERA_RUNNING, .outage_ns = 1500000000};
    event_log_change(events, "gate", &running);
    expect(reader, "event: state\ndata: {\"t\":2.0,\"camera\":\"gate\",\"state\":\"running\","
                   "\"why\":null,\"outage_s\":1.5}\n\n");
    const struct camera_change alarm = {
        .realtime_ns = 2000000000, .is_alarm = true, .alarm = ALARM_FROZEN, .raised = true};
    event_log_change(events, "yard", &alarm);
    expect(reader, "event: alarm\ndata: {\"t\":2.0,\"camera\":\"yard\",\"alarm\":\"frozen\","
                   "\"raised\":true}\n\n");
    event_log_reload(events, 3000000000, false, "f:1:2: cameras: is missing");
    expect(reader, "event: reload\ndata: {\"t\":3.0,\"ok\":false,\"text\":\"f:1:2: cameras: is "
                   "missing\"}\n\n");
    const struct edit edit = {.kind = EDIT_DELETE, .camera = "yard"};
    event_log_edit(events, 4000000000, &edit);
    expect(reader,
           "event: change\ndata: {\"t\":4.0,\"camera\":\"yard\",\"change\":\"removed\"}\n\n");
    line("{\"camera\":\"gate\",\"x\":1}\n");
    expect(reader, "event: detections\ndata: {\"camera\":\"gate\",\"x\":1}\n\n");
    expect(reader, "");
    event_reader_close(reader);
    event_log_close(events);
}

static void test_filters(void)
{
    start();
    struct event_reader *gate =
        reader_of((struct event_filter){.kinds = EVENTS_ALL, .camera = "gate"}, NULL);
    struct event_reader *lines =
        reader_of((struct event_filter){.kinds = 1 << EVENT_DETECTIONS}, NULL);
    struct event_reader *states = reader_of((struct event_filter){.kinds = 1 << EVENT_STATE}, NULL);
    state("gate", CAMERA_RUNNING, "");
    state("gate2", CAMERA_RUNNING, "");
    line("{\"camera\":\"gate\"}\n");
    line("{\"camera\":\"gate2\"}\n");
    event_log_reload(events, 0, true, "1 camera kept");
    char *text = all(gate, 4096);
    CHECK(count(text, "event:") == 2 && count(text, "gate2") == 0, "%s", text);
    text = all(lines, 4096);
    CHECK(count(text, "event:") == 2 && count(text, "event: detections") == 2, "%s", text);
    text = all(states, 4096);
    CHECK(count(text, "event:") == 2 && count(text, "event: state") == 2, "%s", text);
    CHECK(event_log_wants_lines(events), "two want lines");
    event_reader_close(gate);
    event_reader_close(lines);
    CHECK(!event_log_wants_lines(events), "nobody wants lines");
    event_reader_close(states);
    event_log_close(events);
}

// Lines and other events come in the order in which they happened.
static void test_order(void)
{
    start();
    struct event_reader *reader = reader_of((struct event_filter){.kinds = EVENTS_ALL}, NULL);
    line("{\"camera\":\"gate\",\"n\":1}\n");
    state("gate", CAMERA_RETRYING, "2");
    line("{\"camera\":\"gate\",\"n\":3}\n");
    const char *text = all(reader, 5);
    const char *first = strstr(text, "1}"), *second = strstr(text, "\"2\""),
               *third = strstr(text, "3}");
    CHECK(first && first < second && second < third, "%s", text);
    event_reader_close(reader);
    event_log_close(events);
}

// A new reader gets the latest events, and a returning one those after its last.
static void test_past(void)
{
    char why[32];
    start();
    for (int i = 0; i < 100; i++) {
        snprintf(why, sizeof why, "try %d.", i);
        state(i % 2 ? "gate" : "yard", CAMERA_RETRYING, why);
    }
    struct event_reader *reader = reader_of((struct event_filter){.kinds = EVENTS_ALL}, NULL);
    char *text = all(reader, 7);
    CHECK(count(text, "event: state") == EVENTS_AT_FIRST, "%d events", count(text, "event: state"));
    CHECK(strstr(text, "try 50.") && strstr(text, "try 99.") && !strstr(text, "try 49."), "which");
    const uint64_t id = last_id(text);
    event_reader_close(reader);

    reader = reader_of((struct event_filter){.kinds = EVENTS_ALL, .camera = "yard"}, NULL);
    text = all(reader, 4096);
    CHECK(count(text, "event: state") == EVENTS_AT_FIRST && strstr(text, "try 0."), "of a camera");
    event_reader_close(reader);

    const struct event_filter behind = {.kinds = EVENTS_ALL, .continues = true, .after = id - 2};
    reader = reader_of(behind, NULL);
    text = all(reader, 4096);
    CHECK(count(text, "event:") == 2 && strstr(text, "try 98."), "behind an event: %s", text);
    CHECK(last_id(text) == id, "numbers stay");
    event_reader_close(reader);
    event_log_close(events);
}

// A late reader gets the number of its own lost events, and then the rest.
static void test_losses(void)
{
    start();
    const struct event_filter of_gate = {.kinds = EVENTS_ALL, .camera = "gate"};
    struct event_reader *every = reader_of((struct event_filter){.kinds = EVENTS_ALL}, NULL);
    struct event_reader *gate = reader_of(of_gate, NULL);
    state("gate", CAMERA_RUNNING, "");
    all(gate, 100);
    all(every, 100);
    for (int i = 0; i < EVENTS_KEPT + 30; i++)
        state(i % 10 ? "yard" : "gate", CAMERA_RUNNING, "");
    char *text = all(every, 100);
    CHECK(strncmp(text, "event: lost\ndata: {\"lost\":30}\n\n", 31) == 0, "%.60s", text);
    CHECK(count(text, "event: state") == EVENTS_KEPT && count(text, "lost\n") == 1, "the rest");
    text = all(gate, 100);
    CHECK(strncmp(text, "event: lost\ndata: {\"lost\":3}\n\n", 30) == 0, "%.60s", text);
    CHECK(count(text, "event: state") == EVENTS_KEPT / 10 + 1, "%d", count(text, "event: state"));
    expect(gate, "");
    event_reader_close(every);
    event_reader_close(gate);

    // Its last position is no longer kept.
    struct event_reader *back =
        reader_of((struct event_filter){.kinds = EVENTS_ALL, .continues = true, .after = 1}, NULL);
    text = all(back, 4096);
    CHECK(strncmp(text, "event: lost\ndata: {\"lost\":null}\n\n", 33) == 0, "%.60s", text);
    CHECK(count(text, "event: state") == EVENTS_KEPT, "and what is kept");
    event_reader_close(back);
    event_log_close(events);
}

// Lines are many and large: they displace each other, but never rare events.
static void test_lines_are_bounded(void)
{
    enum { LINE = 5000, LINES = 3000 };
    char *text = malloc(LINE + 1);
    start();
    memset(text, 'x', LINE);
    memcpy(text, "{\"camera\":\"gate\"", 16);
    text[LINE - 1] = '\n';
    text[LINE] = 0;
    struct event_reader *reader = reader_of((struct event_filter){.kinds = EVENTS_ALL}, NULL);
    state("gate", CAMERA_RUNNING, "");
    const size_t before = mallinfo2().uordblks;
    for (int i = 0; i < LINES; i++)
        line(text);
    const size_t grown = mallinfo2().uordblks - before;
    CHECK(grown < EVENT_LINES_BYTES + (1 << 16), "grown by %zu bytes", grown);
    const int kept = EVENT_LINES_BYTES / (LINE - 1);
    static char got[2 << 20];
    size_t used = 0, n;
    while ((n = event_reader_fill(reader, got + used, 1000)) > 0)
        used += n;
    got[used] = 0;
    char wanted[64];
    snprintf(wanted, sizeof wanted, "event: lost\ndata: {\"lost\":%d}\n\n", LINES - kept);
    CHECK(strncmp(got, wanted, strlen(wanted)) == 0, "%.60s", got);
    CHECK(count(got, "event: detections") == kept, "%d lines", count(got, "event: detections"));
    CHECK(count(got, "event: state") == 1, "the state is lost");
    event_reader_close(reader);
    const size_t after = mallinfo2().uordblks;
    CHECK(after < before + 4 * LINE, "lines that nobody wants are kept: %zu bytes", after - before);
    event_log_close(events);
    free(text);
}

// A reader is woken once for new events while it has none.
static void test_waking(void)
{
    int wakes = 0;
    start();
    const struct event_filter filter = {.kinds = 1 << EVENT_STATE, .camera = "gate"};
    struct event_reader *reader = reader_of(filter, &wakes);
    state("gate", CAMERA_RUNNING, "");
    CHECK(wakes == 0, "it has not asked yet");
    all(reader, 4096);
    state("yard", CAMERA_RUNNING, "");
    line("{\"camera\":\"gate\"}\n");
    CHECK(wakes == 0, "for an event that is not its own");
    state("gate", CAMERA_RETRYING, "x");
    state("gate", CAMERA_RUNNING, "");
    CHECK(wakes == 1, "%d wakes", wakes);
    char piece[3];
    CHECK(event_reader_fill(reader, piece, sizeof piece) == sizeof piece, "a piece");
    state("gate", CAMERA_RETRYING, "x");
    CHECK(wakes == 1, "woken while it reads");
    CHECK(count(all(reader, 3), "event: state") == 3, "three events");
    event_log_touch(events);
    CHECK(wakes == 2, "touched");
    event_log_touch(events);
    CHECK(wakes == 2, "touched while it does not wait");
    expect(reader, ":\n\n");
    event_reader_close(reader);
    event_log_close(events);
}

// A reader that leaves in the middle of an event does no harm to others.
static void test_leaving(void)
{
    char piece[10];
    start();
    struct event_reader *first = reader_of((struct event_filter){.kinds = EVENTS_ALL}, NULL);
    struct event_reader *second = reader_of((struct event_filter){.kinds = EVENTS_ALL}, NULL);
    state("gate", CAMERA_RUNNING, "");
    CHECK(event_reader_fill(first, piece, sizeof piece) == sizeof piece, "a piece");
    event_reader_close(first);
    CHECK(count(all(second, 4096), "event: state") == 1, "the other's");
    event_reader_close(second);
    event_reader_close(NULL);
    event_log_close(events);
    event_log_close(NULL);
}

int main(void)
{
    TEST(test_texts());
    TEST(test_filters());
    TEST(test_order());
    TEST(test_past());
    TEST(test_losses());
    TEST(test_lines_are_bounded());
    TEST(test_waking());
    TEST(test_leaving());
    return test_end();
}
