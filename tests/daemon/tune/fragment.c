// What is printed of a finding, and a file that is written again.
#include "daemon/tune/fragment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/tune/original.h"
#include "tests/test.h"

#define CAMERAS "cameras: {gate: {url: x.mp4, outputs: {o: {sink: 'tcp:0'}}}}\n"

static const struct figures slow = {0, 800, 2, 12, 64 << 20}, fast = {0, 1000, 1.5, 8, 70 << 20},
                            lossy = {0.0125, 900, 1.75, 9, 70 << 20};

static char *printed(const struct finding *finding, int print(FILE *, const struct finding *))
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    CHECK(print(f, finding) == 0, "print");
    fclose(f);
    return text;
}

static int print_json(FILE *f, const struct finding *finding)
{
    fragment_print_json(f, finding);
    return 0;
}

static void find(struct finding *ret, struct settings *settings, struct search_result *result)
{
    const struct facilities box = {.processors = 2};
    char why[256];
    CHECK(settings_find(settings, &box, CAMERAS, strlen(CAMERAS), why, sizeof why) == 0, "%s", why);
    *result = (struct search_result){.before = {{slow, slow}, 2}, .after = {{fast}, 1}};
    *ret = (struct finding){.settings = settings,
                            .result = result,
                            .fingerprint = "cpu=A, 2 processors; gpu=none; driver=none",
                            .file = "a.yaml",
                            .load = "1 camera",
                            .seconds = 3,
                            .trials = 9};
}

static void test_fragment(void)
{
    static const char expected[] =
        "# framed tune: a.yaml\n"
        "# 1 camera, 9 trials of 3 s, which differ by 0.0 %\n"
        "# as it is: 800.0 frames/s, 2.00 cores, p99 12.0 ms, 64 MiB\n"
        "# as below: 1000.0 frames/s, 1.50 cores, p99 8.0 ms, 70 MiB\n"
        "tuned: \"cpu=A, 2 processors; gpu=none; driver=none\"\n"
        "defaults:\n"
        "  decode_threads: 2         # 1000.0 frames/s, 1.50 cores, p99 8.0 ms, 70 MiB; "
        "with 1: 900.0 frames/s, 1.75 cores, p99 9.0 ms, 70 MiB, 1.25 % lost\n"
        "cpu:\n"
        "  workers: 1                # 900.0 frames/s, 1.75 cores, p99 9.0 ms, 70 MiB, 1.25 % "
        "lost; with auto: 800.0 frames/s, 2.00 cores, p99 12.0 ms, 64 MiB\n";
    struct finding finding;
    struct settings settings;
    struct search_result result;
    find(&finding, &settings, &result);
    result.pick = (struct pick){{1, 1, 0}};
    result.with[0] = fast;
    result.without[0] = lossy;
    result.with[1] = lossy;
    result.without[1] = slow;
    char *text = printed(&finding, fragment_print_yaml);
    CHECK(strcmp(text, expected) == 0, "\n%s", text);
    free(text);
    text = printed(&finding, print_json);
    CHECK(strstr(text, "{\"key\": \"cpu.workers\", \"value\": \"1\", \"before\": \"auto\", "), "%s",
          text);
    free(text);
}

static void test_nothing(void)
{
    struct finding finding;
    struct settings settings;
    struct search_result result;
    find(&finding, &settings, &result);
    char *text = printed(&finding, fragment_print_yaml);
    CHECK(strstr(text, "# nothing is better") && !strstr(text, "as below"), "%s", text);
    CHECK(strstr(text, "\ntuned: \"") && !strstr(text, "cpu:\n"), "%s", text);
    free(text);
    text = printed(&finding, print_json);
    CHECK(strstr(text, "\"changes\": []\n"), "%s", text);
    free(text);
}

static void test_grid(void)
{
    struct finding finding;
    struct settings settings;
    struct search_result result;
    find(&finding, &settings, &result);
    finding.grid = (struct comparison){.tried = 12, .best = {{1, 0, 2}}, .of_best = {{fast}, 1}};
    char *text = printed(&finding, fragment_print_yaml);
    CHECK(strstr(text, "# the best of a grid of 12: 1000.0 frames/s"), "%s", text);
    CHECK(!strstr(text, "tuned: ") && !strstr(text, "nothing is better"), "%s", text);
    CHECK(strstr(text, "#   defaults.decode_threads: 2, cpu.workers: auto, defaults.slots: 24\n"),
          "%s", text);
    CHECK(strstr(text, "# as it is, that is 80.0 % of the frames/s of that\n"), "%s", text);
    free(text);
}

// --- the file

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s", path);
}

static void expect_file(const char *path, const char *expected, mode_t mode)
{
    struct original found;
    int rc = original_read(&found, path);
    CHECK(rc == 0, "%s: %d", path, rc);
    if (rc < 0)
        return;
    CHECK(strcmp(found.text, expected) == 0 && found.length == strlen(expected), "%s: %s", path,
          found.text);
    CHECK((found.stat.st_mode & 07777) == mode, "%s: mode %o", path, found.stat.st_mode);
    original_free(&found);
}

// By a link, which stays one.
static void test_replace(const char *file, const char *backup, const char *link)
{
    struct original original;
    struct stat st;
    char why[256] = "";
    put(file, "old\n");
    CHECK(chmod(file, 0640) == 0 && symlink(file, link) == 0, "errno %d", errno);
    CHECK(original_read(&original, link) == 0, "read");
    CHECK(original_replace(&original, "new one\n", 8, why, sizeof why) == 0, "%s", why);
    expect_file(file, "new one\n", 0640);
    expect_file(backup, "old\n", 0640);
    CHECK(lstat(link, &st) == 0 && S_ISLNK(st.st_mode), "the link was replaced");
    // It has changed since it was read, by ourselves.
    CHECK(original_replace(&original, "third\n", 6, why, sizeof why) == -EBUSY, "%s", why);
    expect_file(file, "new one\n", 0640);
    expect_file(backup, "old\n", 0640);
    original_free(&original);
    unlink(link);
    unlink(backup);
}

static void test_refused(const char *file, const char *folder, const char *other)
{
    struct original original;
    char why[256] = "";
    put(file, "old\n");
    CHECK(original_read(&original, folder) == -EINVAL, "a folder");
    CHECK(original_read(&original, other) == -ENOENT, "none");
    CHECK(mkfifo(other, 0600) == 0 && original_read(&original, other) == -EINVAL, "a fifo");
    unlink(other);
    CHECK(link(file, other) == 0 && original_read(&original, file) == 0, "read");
    CHECK(original_writable(&original, why, sizeof why) == -EMLINK, "%s", why);
    CHECK(original_replace(&original, "new\n", 4, why, sizeof why) == -EMLINK, "%s", why);
    expect_file(other, "old\n", original.stat.st_mode & 07777);
    original_free(&original);
    unlink(other);
}

static void test_files(void)
{
    char folder[] = "/tmp/framed-test-XXXXXX", file[64], backup[64], other[64];
    CHECK(mkdtemp(folder), "errno %d", errno);
    snprintf(file, sizeof file, "%s/a.yaml", folder);
    snprintf(backup, sizeof backup, "%s/a.yaml.bak", folder);
    snprintf(other, sizeof other, "%s/b.yaml", folder);
    test_replace(file, backup, other);
    test_refused(file, folder, other);
    unlink(file);
    CHECK(rmdir(folder) == 0, "something was left in %s", folder);
}

int main(void)
{
    test_fragment();
    test_nothing();
    test_grid();
    test_files();
    return test_end("fragment");
}
