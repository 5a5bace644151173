// Which keys are tried on which box, their values, and what matters beside what.
#include "daemon/tune/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

#define CAMERAS "cameras: {gate: {url: x.mp4, outputs: {o: {sink: 'tcp:0'}}}}\n"

static const struct facilities small = {.processors = 2},
                               large = {.processors = 16, .nvdec = true, .device = "NVIDIA L4"};

// All keys with their values, that of the file in brackets: "backend [auto] cpu; ...".
static void print(const struct settings *settings, char *to, size_t size)
{
    FILE *f = fmemopen(to, size, "w");
    for (int i = 0; i < settings->n; i++) {
        const struct setting *setting = &settings->list[i];
        fprintf(f, "%s%s", i ? "; " : "", setting->key);
        for (int v = 0; v < setting->n; v++)
            fprintf(f, v == setting->start ? " [%s]" : " %s", setting->value[v]);
    }
    fclose(f);
}

static void expect(const char *text, const struct facilities *box, const char *expected)
{
    struct settings settings;
    char why[256] = "", printed[1024] = "";
    int rc = settings_find(&settings, box, text, strlen(text), why, sizeof why);
    CHECK(rc == 0, "%s: %d, %s", text, rc, why);
    print(&settings, printed, sizeof printed);
    CHECK(strcmp(printed, expected) == 0, "%s:\n%s, not\n%s", text, printed, expected);
}

static void test_values(void)
{
    expect(CAMERAS, &small,
           "defaults.decode_threads [1] 2; cpu.workers [auto] 1; defaults.slots [6] 12 24");
    expect(CAMERAS, &large,
           "backend [auto] cpu; defaults.decode [auto] cpu; defaults.decode_threads [1] 2 4 8 16; "
           "cpu.workers [auto] 1 2 4 8 15; cuda.decoders [auto] 4 8 16 32; "
           "cuda.streams [auto] 1 2 4 8 16; cuda.band [auto] 1MiB 4MiB 16MiB; "
           "defaults.slots [6] 12 24");
    expect("cpu: {workers: 0}\ndefaults: {slots: 100}\n" CAMERAS, &small,
           "defaults.decode_threads [1] 2; cpu.workers [auto] 1; defaults.slots [100] 200");
    expect("backend: cuda\ncpu: {workers: 3}\ncuda: {streams: 3, band: 8MiB}\n"
           "defaults: {decode: nvdec, decode_threads: 3}\n" CAMERAS,
           &large,
           "backend [cuda] cpu; defaults.decode [nvdec] cpu; "
           "defaults.decode_threads 1 2 [3] 4 8 16; cpu.workers auto 1 2 [3] 4 8 15; "
           "cuda.decoders [auto] 4 8 16 32; cuda.streams [3] auto 1 2 4 8 16; "
           "cuda.band [8MiB] auto 1MiB 4MiB 16MiB; defaults.slots [6] 12 24");
}

// What is looked up, or is said by every camera itself, is left alone.
static void test_left_alone(void)
{
    setenv("WORKERS", "2", 1);
    expect("cpu: {workers: \"${WORKERS}\"}\n"
           "cameras: {gate: {url: x.mp4, decode_threads: 1,"
           " outputs: {o: {slots: 4, sink: 'tcp:0'}}}}\n",
           &small, "");
    expect("cameras:\n"
           "  gate: {url: x.mp4, decode_threads: 1, outputs: {o: {slots: 4, sink: 'tcp:0'}}}\n"
           "  door: {url: x.mp4, outputs: {o: {slots: 4, sink: 'tcp:1'}}}\n",
           &small, "defaults.decode_threads [1] 2; cpu.workers [auto] 1");
}

static void test_refused(void)
{
    static const char shared[] = "cpu: {workers: &n 2}\ndefaults: {decode_threads: *n}\n" CAMERAS;
    struct settings settings;
    char why[256] = "";
    CHECK(settings_find(&settings, &small, shared, strlen(shared), why, sizeof why) == -EINVAL,
          "an alias");
    CHECK(strncmp(why, "2:", 2) == 0, "'%s'", why);
}

static int index_of(const struct settings *settings, const char *key)
{
    int i = 0;
    while (i < settings->n && strcmp(settings->list[i].key, key) != 0)
        i++;
    CHECK(i < settings->n, "%s is not tried", key);
    return i;
}

static void test_matter(void)
{
    static const struct {
        int backend, decode; // values: 0 is auto, 1 is cpu
        bool nvdec, decoders, workers, streams;
    } cases[] = {
        {0, 0, true, true, false, true},
        {0, 1, true, false, false, true},
        {1, 0, false, false, true, false},
    };
    struct settings settings;
    char why[256];
    CHECK(settings_find(&settings, &large, CAMERAS, strlen(CAMERAS), why, sizeof why) == 0, "%s",
          why);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pick pick = {{0}};
        pick.value[index_of(&settings, "backend")] = cases[i].backend;
        pick.value[index_of(&settings, "defaults.decode")] = cases[i].decode;
        const struct {
            const char *key;
            bool matters;
        } known[] = {{"backend", true},
                     {"defaults.decode", cases[i].nvdec},
                     {"defaults.decode_threads", !cases[i].decoders},
                     {"cuda.decoders", cases[i].decoders},
                     {"cpu.workers", cases[i].workers},
                     {"cuda.streams", cases[i].streams},
                     {"cuda.band", cases[i].streams},
                     {"defaults.slots", true}};
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            CHECK(settings_matter(&settings, &pick, index_of(&settings, known[k].key)) ==
                      known[k].matters,
                  "case %zu: %s", i, known[k].key);
    }
}

static void test_edits(void)
{
    struct settings settings;
    struct pick pick = {{0}};
    struct edit edits[SEARCH_SETTINGS_MAX];
    char why[256];
    CHECK(settings_find(&settings, &small, CAMERAS, strlen(CAMERAS), why, sizeof why) == 0, "%s",
          why);
    CHECK(settings_edits(&settings, &pick, edits) == 0, "an edit of what is as it was");
    pick.value[2] = 1;
    CHECK(settings_edits(&settings, &pick, edits) == 1, "one edit");
    CHECK(strcmp(edits[0].key, "defaults.slots") == 0 && strcmp(edits[0].value, "12") == 0,
          "%s: %s", edits[0].key, edits[0].value);
}

int main(void)
{
    test_values();
    test_left_alone();
    test_refused();
    test_matter();
    test_edits();
    return test_end("settings");
}
