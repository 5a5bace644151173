// Contents of the alerts' file over a restart, and damaged files.
#include "daemon/alert/alerts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/process.h"
#include "tests/test.h"

static const int64_t MS = 1000000, SECOND = 1000000000, NOW = 5000 * INT64_C(1000000000);
static const int64_t AHEAD = 1790000000 * INT64_C(1000000000);

static char path[] = "/tmp/framed-alerts.XXXXXX";

static struct alert_event event_of(const char *camera, bool raised)
{
    struct alert_event event = {.kind = ALERT_DOWN,
                                .raised = raised,
                                .at_ms = 1790000000000,
                                .raised_ms = 1790000000001,
                                .since_ms = 1790000000002,
                                .interruptions = 3,
                                .availability = 0.5,
                                .why = "it says \"no\" \\ and goes"};
    strcpy(event.camera, camera);
    return event;
}

static struct alert_memory *make(void)
{
    struct alert_memory *memory = calloc(1, sizeof *memory);
    struct watched *gate = alert_memory_get(memory, "gate"),
                   *yard = alert_memory_get(memory, "yard");
    gate->judge.alert[ALERT_DOWN] = (struct alert){.raised = true,
                                                   .again = true,
                                                   .held = true,
                                                   .raised_ns = NOW - 60 * SECOND,
                                                   .cleared_ns = NOW - 100 * SECOND,
                                                   .bad_ns = NOW - 61 * SECOND,
                                                   .interruptions = 2};
    gate->raised_ms[ALERT_DOWN] = (NOW + AHEAD) / MS - 60000;
    yard->judge.alert[ALERT_SCENE + ALARM_DARK].cleared_ns = NOW - 5 * SECOND;
    for (int i = 0; i < 400; i++)
        availability_add(&gate->availability, AHEAD + i * 1800 * SECOND, 1800 * SECOND, i % 7 != 0);
    memory->entry[0] = (struct outbox_entry){event_of("gate", true), 5};
    memory->entry[1] = (struct outbox_entry){event_of("yard", false), 2};
    memory->n_entries = 2;
    return memory;
}

static void write_text(const char *text)
{
    CHECK(state_file_write(path, text, 0600) == 0, "%s", path);
}

static void release(struct alert_memory *memory)
{
    alert_memory_free(memory);
    free(memory);
}

static void test_round(void)
{
    struct alert_memory *was = make(), *is = calloc(1, sizeof *is);
    char *text = alert_file_text(was, AHEAD), *again;
    write_text(text);
    CHECK(alert_file_read(is, path, NOW, AHEAD) == 0 && is->n == 2, "%d cameras", is->n);
    again = alert_file_text(is, AHEAD);
    CHECK(strcmp(text, again) == 0, "%s\n%s", text, again);
    const struct alert *down = &alert_memory_get(is, "gate")->judge.alert[ALERT_DOWN];
    CHECK(down->raised && down->again && down->held && down->interruptions == 2 &&
              down->raised_ns == NOW - 60 * SECOND && down->well_ns == INT64_MAX,
          "%d", down->raised);
    CHECK(alert_memory_get(is, "gate")->raised_ms[ALERT_DOWN] ==
              was->list[0]->raised_ms[ALERT_DOWN],
          "the alert's name");
    CHECK(!memcmp(was->list[0]->availability.hours, is->list[0]->availability.hours,
                  sizeof was->list[0]->availability.hours),
          "hours");
    CHECK(is->n_entries == 2 && is->entry[0].targets == 5 &&
              memcmp(&is->entry[0].event, &was->entry[0].event, sizeof(struct alert_event)) == 0,
          "an event: %s", is->entry[0].event.why);
    release(was);
    release(is);
    free(text);
    free(again);
}

// The next process has another CLOCK_MONOTONIC.
static void test_another_start(void)
{
    struct alert_memory *was = make(), *is = calloc(1, sizeof *is);
    char *text = alert_file_text(was, AHEAD);
    write_text(text);
    const int64_t now = 3 * SECOND, ahead = AHEAD + NOW + 7 * SECOND;
    CHECK(alert_file_read(is, path, now, ahead) == 0, "read");
    const struct alert *down = &alert_memory_get(is, "gate")->judge.alert[ALERT_DOWN];
    CHECK(now - down->raised_ns == 70 * SECOND, "%g s ago", (double)(now - down->raised_ns) / 1e9);
    release(is);
    is = calloc(1, sizeof *is);
    CHECK(alert_file_read(is, path, now, ahead - 86400 * SECOND) == 0, "a clock that was set back");
    down = &alert_memory_get(is, "gate")->judge.alert[ALERT_DOWN];
    CHECK(down->raised_ns == now && down->bad_ns == now, "no alert is of the future");
    release(was);
    release(is);
    free(text);
}

static void test_bad(void)
{
    static const char *const texts[] = {
        "",
        "framed alerts 2\ncamera gate\n",
        "framed alerts 1\nalert down 1 1 1 1 1 1\nhours 1 1/1x1\n",
        "framed alerts 1\ncamera ../gate\nevent 1 {}\nevent 0 {\nevent 9 x\n",
        "framed alerts 1\nevent 1 "
        "{\"camera\":\"gate\",\"kind\":\"down\",\"state\":\"raised\",\"time_ms\":1,"
        "\"raised_ms\":1,\"since_ms\":9223372036854775807,\"interruptions\":0,"
        "\"availability_7d\":null,\"why\":\"\"}\n",
        "framed alerts 1\ncamera\ncamera \n\n\0\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct alert_memory *memory = calloc(1, sizeof *memory);
        write_text(texts[i]);
        CHECK(alert_file_read(memory, path, NOW, AHEAD) == 0, "%s", texts[i]);
        CHECK(memory->n == 0 && memory->n_entries == 0, "%d cameras of %s", memory->n, texts[i]);
        release(memory);
    }
    struct alert_memory *memory = calloc(1, sizeof *memory);
    write_text("framed alerts 1\ncamera gate\nalert down 1 0 -1 -1 1 1\nalert up 1 0 1 1 1 1\n"
               "hours 490000 4000000/4000000x1 1/2x99999999 5/4x1\nhours 99999999999 1/1x1\n");
    CHECK(alert_file_read(memory, path, NOW, AHEAD) == 0 && memory->n == 1, "%d", memory->n);
    CHECK(!memory->list[0]->judge.alert[ALERT_DOWN].raised, "times that cannot be");
    release(memory);
    memory = calloc(1, sizeof *memory);
    CHECK(alert_file_read(memory, "/nonexistent/alerts", NOW, AHEAD) == -ENOENT, "no file");
    free(memory);
}

// Flips bits of the file, and cuts it at any length: everything that can be read can be written.
static void test_damaged(void)
{
    struct alert_memory *was = make();
    char *text = alert_file_text(was, AHEAD);
    const size_t length = strlen(text);
    for (size_t i = 0; i < length; i += 3) {
        struct alert_memory *memory = calloc(1, sizeof *memory);
        const char kept = text[i];
        text[i] = (char)(i % 2 ? kept ^ 1 << i % 7 : 0);
        write_text(text);
        CHECK(alert_file_read(memory, path, NOW, AHEAD) == 0, "byte %zu", i);
        char *again = alert_file_text(memory, AHEAD);
        CHECK(again, "byte %zu", i);
        free(again);
        text[i] = kept;
        release(memory);
    }
    release(was);
    free(text);
}

static void test_many(void)
{
    struct alert_memory *memory = calloc(1, sizeof *memory);
    char name[24];
    for (int i = 0; i < WATCHED_MAX + 5; i++) {
        snprintf(name, sizeof name, "c%d", i);
        CHECK(!!alert_memory_get(memory, name) == (i < WATCHED_MAX), "%s", name);
    }
    // Lookups run five times a second per camera and need the order of names.
    for (int i = 0; i < memory->n; i++) {
        CHECK(i == 0 || strcmp(memory->list[i - 1]->name, memory->list[i]->name) < 0,
              "%s stands behind %s", memory->list[i]->name, i ? memory->list[i - 1]->name : "");
        CHECK(alert_memory_get(memory, memory->list[i]->name) == memory->list[i], "%s is another",
              memory->list[i]->name);
    }
    release(memory);
}

static void test_texts(void)
{
    static const struct {
        enum alert_kind kind;
        bool raised;
        int interruptions;
        const char *text;
    } texts[] = {
        {ALERT_DOWN, true, 0, "camera gate is down: gone"},
        {ALERT_FLAPPING, true, 0, "camera gate flaps: gone"},
        {ALERT_SCENE + ALARM_DARK, true, 0, "camera gate is dark: gone"},
        {ALERT_DOWN, true, 1, "camera gate is down: gone, for 90 s with 1 interruption"},
        {ALERT_DOWN, false, 1, "camera gate shows pictures again, after 90 s with 1 interruption"},
        {ALERT_SCENE + ALARM_MOVED, false, 1,
         "camera gate is no longer moved, after 90 s with 1 interruption"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct alert_event event = {.kind = texts[i].kind, .raised = texts[i].raised};
        char text[ALERT_TEXT_MAX];
        event.at_ms = 90 * SECOND / MS;
        event.interruptions = texts[i].interruptions;
        strcpy(event.camera, "gate");
        strcpy(event.why, "gone");
        alert_event_text(&event, text);
        CHECK(strcmp(text, texts[i].text) == 0, "%s", text);
    }
}

int main(void)
{
    close(mkstemp(path));
    TEST(test_round());
    TEST(test_another_start());
    TEST(test_bad());
    TEST(test_damaged());
    TEST(test_many());
    TEST(test_texts());
    unlink(path);
    return test_end();
}
