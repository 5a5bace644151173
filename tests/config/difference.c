// The differences that are reported between two configurations.
#include "config/object.h"

#include <stdlib.h>
#include <string.h>

#include "config/load.h"
#include "tests/test.h"

static const char before[] =
    "http: 8780\n"
    "cameras:\n"
    "  gate: {url: /a, fps: 5, outputs: {o: {size: 64x64, sink: 'tcp:0'}, y: {kernel: yuv, sink: "
    "'tcp:0'}}}\n"
    "  yard: {url: /b, outputs: {o: {size: 64x64, sink: 'tcp:0'}}}\n"
    "batches: {all: {cameras: '*', size: 64x64, sink: 'tcp:0'}}\n";

static void print(void *to, const char *path, enum config_change change, const char *keys)
{
    static const char *const words[] = {"added", "removed", "changed"};
    fprintf(to, "%s %s%s%s\n", path, words[change], *keys ? ": " : "", keys);
}

static struct config *load(const char *text)
{
    struct config *config = NULL;
    CHECK(config_load_text(&config, text, strlen(text), "test", stderr) == 0, "%s", text);
    return config;
}

// Replaces `old` in the first text (NULL: replaces nothing) and expects the differences `wanted`.
static void expect(const char *old, const char *new, const char *wanted)
{
    char text[2048], *told = NULL;
    size_t size;
    const char *at = old ? strstr(before, old) : before;
    CHECK(at, "%s is not there", old);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - before), before, new,
             at + (old ? strlen(old) : 0));
    struct config *a = load(before), *b = load(text);
    FILE *to = open_memstream(&told, &size);
    config_difference(a, b, print, to);
    fclose(to);
    CHECK(strcmp(told, wanted) == 0, "%s for %s: told\n%snot\n%s", new, old, told, wanted);
    free(told);
    config_free(a);
    config_free(b);
}

static void test_differences(void)
{
    expect(NULL, "", "");
    expect(NULL, "# a comment\n", "");
    expect("url: /a, fps: 5", "url: /c, fps: 6", "cameras.gate changed: url, fps\n");
    expect("64x64", "32x32", "cameras.gate.outputs.o changed: size\n");
    expect("y: {kernel: yuv, sink: ", "z: {kernel: yuv, sink: ",
           "cameras.gate.outputs.z added\ncameras.gate.outputs.y removed\n");
    expect("kernel: yuv", "kernel: yuv, filter: nearest, size: 32x32",
           "cameras.gate.outputs.y changed: size, filter\n");
    expect("  yard:", "  back: {url: /b, outputs: {o: {size: 64x64, sink: 'tcp:0'}}}\n  yard:",
           "cameras.back added\n");
    expect("  yard:", "  back:", "cameras.back added\ncameras.yard removed\n");
    expect("http: 8780\n", "http: 8781\nhttp_token: Zorngiebel-0123456\nlog: {level: debug}\n",
           " changed: log.level, http, http_token\n");
    expect("http: 8780\n", "http: 8780\npaused: [yard]\n",
           " changed: paused\ncameras.yard changed: paused\n");
    expect("all: {cameras: '*'", "all: {cameras: gate", "batches.all changed: cameras\n");
    expect("all: {", "some: {", "batches.some added\nbatches.all removed\n");
    // A default for a key that the kernel does not have makes no difference.
    expect("http: 8780\n", "http: 8780\ndefaults: {format: nv12}\n",
           "cameras.gate.outputs.y changed: format\n");
}

int main(void)
{
    TEST(test_differences());
    return test_end();
}
