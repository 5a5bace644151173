// Keys set in a text: what comes out, byte for byte, and what is refused.
#include "config/edit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "tests/test.h"

#define CAMERAS "cameras: {gate: {url: x.mp4, outputs: {o: {sink: 'tcp:0'}}}}"

struct step {
    const char *name, *before;
    const struct edit edits[3];
    const char *after; // NULL: refused
};

static const struct step steps[] = {
    {"replaced, its comment kept",
     "# mine\nbackend: auto   # for now\n" CAMERAS "\n",
     {{"backend", "cpu", "measured"}},
     "# mine\nbackend: cpu   # for now\n" CAMERAS "\n"},
    {"the same already, quoted",
     "cpu: {workers: '4'}\n" CAMERAS "\n",
     {{"cpu.workers", "4", "measured"}},
     "cpu: {workers: '4'}\n" CAMERAS "\n"},
    {"a section added at the end",
     CAMERAS "\n# the end\n",
     {{"cpu.workers", "4", "measured"}},
     CAMERAS "\n# the end\ncpu:\n  workers: 4                # measured\n"},
    {"two keys of one new section",
     CAMERAS "\n",
     {{"cuda.streams", "4", NULL}, {"cuda.band", "8MiB", NULL}},
     CAMERAS "\ncuda:\n  streams: 4\n  band: 8MiB\n"},
    {"no newline at the end",
     "backend: cpu\n" CAMERAS,
     {{"cpu.workers", "4", NULL}},
     "backend: cpu\n" CAMERAS "\ncpu:\n  workers: 4\n"},
    {"lines that end with CR LF",
     "cpu:\r\n  pin: none # mine\r\n" CAMERAS "\r\n",
     {{"cpu.workers", "4", NULL}, {"backend", "cpu", NULL}},
     "cpu:\r\n  pin: none # mine\r\n  workers: 4\r\n" CAMERAS "\r\nbackend: cpu\r\n"},
    {"into a block of another indentation, behind its comment",
     "defaults:\n    # all of them\n    transport: udp # as they like it\n\n" CAMERAS "\n",
     {{"defaults.slots", "8", "measured"}},
     "defaults:\n    # all of them\n    transport: udp # as they like it\n"
     "    slots: 8                # measured\n\n" CAMERAS "\n"},
    {"behind a nested block",
     "defaults:\n  tensor:\n    dtype: f32\n    mean:\n    - 1\n    - 2\n    - 3\n" CAMERAS "\n",
     {{"defaults.decode", "cpu", NULL}},
     "defaults:\n  tensor:\n    dtype: f32\n    mean:\n    - 1\n    - 2\n    - 3\n"
     "  decode: cpu\n" CAMERAS "\n"},
    {"behind braces over lines",
     "defaults:\n  tensor: {dtype: f32,\n    order: bgr}\n" CAMERAS "\n",
     {{"defaults.decode", "cpu", NULL}},
     "defaults:\n  tensor: {dtype: f32,\n    order: bgr}\n  decode: cpu\n" CAMERAS "\n"},
    {"into braces",
     "cuda: {band: 8MiB} # mine\ndefaults: {}\n" CAMERAS "\n",
     {{"cuda.streams", "4", "measured"}, {"defaults.slots", "8", NULL}},
     "cuda: {streams: 4, band: 8MiB} # mine\ndefaults: {slots: 8}\n" CAMERAS "\n"},
    {"all in braces",
     "{" CAMERAS "}",
     {{"cpu.workers", "4", NULL}, {"tuned", "a \"b\"; c\\d", NULL}},
     "{tuned: \"a \\\"b\\\"; c\\\\d\", cpu: {workers: 4}, " CAMERAS "}"},
    {"a dotted key",
     "cpu.workers: 2\n" CAMERAS "\n",
     {{"cpu.workers", "4", NULL}},
     "cpu.workers: 4\n" CAMERAS "\n"},
    {"behind text that is not ASCII",
     "tuned: \"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\" # \xc3\xbc\nbackend: auto\n" CAMERAS "\n",
     {{"backend", "cpu", NULL}},
     "tuned: \"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\" # \xc3\xbc\nbackend: cpu\n" CAMERAS "\n"},
    {"a number sign in a value is no comment",
     "defaults:\n  demuxer: \"a # b\" # c\n" CAMERAS "\n",
     {{"defaults.slots", "8", NULL}},
     "defaults:\n  demuxer: \"a # b\" # c\n  slots: 8\n" CAMERAS "\n"},
    {"an anchor that is used",
     "cpu: {workers: &n 4}\ndefaults: {slots: *n}\n" CAMERAS "\n",
     {{"cpu.workers", "8", NULL}},
     NULL},
    {"an anchor that is not",
     "cpu: {workers: &n 4}\n" CAMERAS "\n",
     {{"cpu.workers", "8", NULL}},
     NULL},
    {"a section that is an alias",
     "defaults: &d {slots: 4}\n"
     "cameras: {gate: {url: x.mp4, outputs: {o: {sink: 'tcp:0', options: *d}}}}\n",
     {{"defaults.slots", "8", NULL}},
     NULL},
    {"a section behind an anchor",
     "defaults: &d\n  transport: udp\n" CAMERAS "\n",
     {{"defaults.slots", "8", NULL}},
     "defaults: &d\n  transport: udp\n  slots: 8\n" CAMERAS "\n"},
    {"braces behind an anchor",
     "defaults: &d {transport: udp}\n" CAMERAS "\n",
     {{"defaults.slots", "8", NULL}},
     NULL},
    {"a block whose last value is an alias",
     "log: {level: &l info}\ndefaults:\n  demuxer: *l\n" CAMERAS "\n",
     {{"defaults.slots", "8", NULL}},
     NULL},
    {"a text in lines at the end", CAMERAS "\ntuned: |\n  a\n", {{"backend", "cpu", NULL}}, NULL},
    {"the value a text in lines",
     "backend: >\n  auto\n" CAMERAS "\n",
     {{"backend", "cpu", NULL}},
     NULL},
    {"an end of the document", CAMERAS "\n...\n", {{"backend", "cpu", NULL}}, NULL},
    {"a question mark before the key",
     "defaults:\n  ? transport\n  : udp\n" CAMERAS "\n",
     {{"defaults.slots", "8", NULL}},
     NULL},
    {"a section that is none", "cpu: 4\n" CAMERAS "\n", {{"cpu.workers", "8", NULL}}, NULL},
    {"no YAML", "cpu: {\n", {{"cpu.workers", "8", NULL}}, NULL},
    {"nothing at all", "# empty\n", {{"cpu.workers", "8", NULL}}, NULL},
};

static int count(const struct step *step)
{
    int n = 0;
    while (n < 3 && step->edits[n].key)
        n++;
    return n;
}

static void test_once(const struct step *step, const char *before, const char *after)
{
    char why[256] = "", *text = NULL;
    size_t length = 0;
    unsigned line, column;
    const struct edit *edits = step->edits;
    const int n = count(step);
    int rc = edit_keys(&text, &length, before, strlen(before), edits, n, why, sizeof why);
    CHECK(rc == (after ? 0 : -EINVAL), "%s: %d, %s", step->name, rc, why);
    if (rc == 0 && after)
        CHECK(length == strlen(after) && strcmp(text, after) == 0, "%s:\n%s", step->name, text);
    if (rc < 0)
        CHECK(sscanf(why, "%u:%u: ", &line, &column) == 2 && line >= 1 && column >= 1, "%s: '%s'",
              step->name, why);
    free(text);
}

// What was added is there, and adds up to a configuration that has no mistake.
static void test_loads(const struct step *step)
{
    struct config *config = NULL;
    CHECK(config_load_text(&config, step->after, strlen(step->after), step->name, stderr) == 0,
          "%s", step->name);
    config_free(config);
}

static void test_find(void)
{
    static const char text[] = "backend: cpu\ncpu: {workers: \"4\"}\ncuda.streams: 2\n" CAMERAS;
    static const struct {
        const char *key, *value;
        int rc;
    } known[] = {
        {"backend", "cpu", 0}, {"cpu.workers", "4", 0}, {"cuda.streams", "2", 0},
        {"cpu.pin", NULL, 0},  {"tuned", NULL, 0},      {"cpu", NULL, -EINVAL},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char *value, why[256];
        int rc = edit_find(&value, text, strlen(text), known[i].key, why, sizeof why);
        CHECK(rc == known[i].rc, "%s: %d", known[i].key, rc);
        CHECK(value && known[i].value ? !strcmp(value, known[i].value) : value == known[i].value,
              "%s: %s", known[i].key, value);
        free(value);
    }
}

int main(void)
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        test_once(&steps[i], steps[i].before, steps[i].after);
        if (steps[i].after) {
            test_once(&steps[i], steps[i].after, steps[i].after); // and again: nothing to do
            test_loads(&steps[i]);
        }
    }
    test_find();
    return test_end("edit");
}
