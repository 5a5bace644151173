// Files that `keep` deletes, and its errors.
#include "daemon/output/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/faults/disk.h"
#include "tests/test.h"

enum { MIB = 1 << 20, FILES = 5 };

static char folder[64], pattern[128];

static char *path_of(int number)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/k-%d.mp4", folder, 1000 + number);
    return path;
}

// Makes files: file i has 1 MiB and is FILES - i minutes old.
static void make_files(void)
{
    for (int i = 0; i < FILES; i++) {
        const struct timespec times[2] = {
            {.tv_sec = time(NULL) - 60 * (FILES - i)},
            {.tv_sec = time(NULL) - 60 * (FILES - i)},
        };
        int fd = open(path_of(i), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        CHECK(fd >= 0 && ftruncate(fd, MIB) == 0 && futimens(fd, times) == 0, "%s", path_of(i));
        close(fd);
    }
}

// Checks that exactly the files from `first` on exist.
static void expect(int first, const char *what)
{
    for (int i = 0; i < FILES; i++)
        CHECK((access(path_of(i), F_OK) == 0) == (i >= first), "%s: file %d", what, i);
}

static void test_sizes(void)
{
    const struct output_config config = {
        .sink = {.kind = SINK_FILE, .path = pattern, .timed = true},
        .keep = {.bytes = 3 * MIB},
    };
    struct keep keep;
    keep = (struct keep){.config = &config};
    make_files();
    keep_enforce(&keep, 0);
    expect(2, "three of five");
    CHECK(!keep_is_due(&keep, 0), "looks again at once");
    CHECK(keep_is_due(&keep, 1), "the open file does not count");
    keep_enforce(&keep, MIB + 1);
    expect(4, "with an open one");
    keep_enforce(&keep, 2 * MIB);
    expect(4, "just enough");
    keep_enforce(&keep, 9 * MIB);
    expect(FILES, "the open one alone is too much");
    CHECK(!keep_is_due(&keep, 9 * MIB), "looks without end");
    make_files();
    keep_enforce(&keep, 0);
    expect(0, "nobody said that files were finished");
    keep.next_ns = 0;
    keep_enforce(&keep, 0);
    expect(2, "a file was finished");
}

static void test_ages(void)
{
    const struct output_config config = {
        .sink = {.kind = SINK_FILE, .path = pattern, .timed = true},
        .keep = {.ns = 150 * INT64_C(1000000000)},
    };
    struct keep keep;
    keep = (struct keep){.config = &config};
    make_files();
    keep_enforce(&keep, 0);
    expect(3, "of the last 150 s");
    CHECK(!keep_is_due(&keep, INT64_MAX), "sizes count");
}

static void test_failures(void)
{
    const struct disk_fault fault = {folder, 1, 1000, EROFS};
    struct output_config config = {
        .sink = {.kind = SINK_FILE, .path = pattern, .timed = true},
        .keep = {.bytes = 3 * MIB},
    };
    struct keep keep;
    struct disk_fault unlinks = fault;
    unlinks.first = FILES + 1; // after a look at each
    keep = (struct keep){.config = &config};
    make_files();
    disk_break(&unlinks);
    keep_enforce(&keep, 0);
    disk_break(NULL);
    expect(0, "cannot be deleted");
    CHECK(keep.error == -EROFS && strcmp(keep.failed, path_of(0)) == 0, "%d %s", keep.error,
          keep.failed);
    CHECK(!keep_is_due(&keep, 0), "tries without end");
    keep.next_ns = 0;
    keep_enforce(&keep, 0);
    expect(2, "again");
    CHECK(keep.error == 0, "%d", keep.error);
    config.sink.path = (char *)"/nowhere/at/all-%s.mp4";
    keep.next_ns = 0;
    keep_enforce(&keep, 0);
    CHECK(keep.error == -ENOENT && !keep.failed[0], "%d %s", keep.error, keep.failed);
}

static void test_nothing(void)
{
    const struct output_config config = {.sink = {.kind = SINK_FILE, .path = pattern}};
    struct keep keep;
    keep = (struct keep){.config = &config};
    make_files();
    CHECK(!keep_is_due(&keep, INT64_MAX), "without keep");
    keep_enforce(&keep, INT64_MAX);
    expect(0, "without keep");
}

int main(void)
{
    strcpy(folder, "/tmp/framed-keep-XXXXXX");
    CHECK(mkdtemp(folder), "%s", folder);
    snprintf(pattern, sizeof pattern, "%s/k-%%s.mp4", folder);
    TEST(test_sizes());
    TEST(test_ages());
    TEST(test_failures());
    TEST(test_nothing());
    for (int i = 0; i < FILES; i++)
        unlink(path_of(i));
    rmdir(folder);
    return test_end();
}
