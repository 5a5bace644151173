// Malformed configurations: each file of tests/config/bad ends with the messages that it must give,
// without the file name, as comments "#: line:column: key: beginning of the message". All of them
// must be printed, in order, and no others.
#include "config/load.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

// Returns the next "#: " line of the file without the mark; "" at the end of the file.
static char *expected_line(FILE *f, char *line, int size)
{
    while (fgets(line, size, f)) {
        if (strncmp(line, "#: ", 3))
            continue;
        line[strcspn(line, "\n")] = 0;
        return line + 3;
    }
    return strcpy(line, "");
}

static void compare(const char *path, char *printed)
{
    char want[512];
    FILE *f = fopen(path, "r");
    CHECK(f, "%s", path);
    if (!f)
        return;
    for (char *line = strtok(printed, "\n"); line; line = strtok(NULL, "\n")) {
        size_t n = strlen(path);
        const char *expected = expected_line(f, want, sizeof want);
        CHECK(!strncmp(line, path, n) && line[n] == ':', "%s", line);
        CHECK(*expected && !strncmp(line + n + 1, expected, strlen(expected)),
              "expected '%s' and got '%s'", expected, line);
        CHECK(!strstr(line, "hunter2"), "a secret got out: %s", line);
    }
    const char *left = expected_line(f, want, sizeof want);
    CHECK(!*left, "%s: '%s' was not found", path, left);
    fclose(f);
}

static void test_file(const char *path)
{
    struct config *config = NULL;
    char *printed = NULL;
    size_t size;
    int lines = 0;
    FILE *errors = open_memstream(&printed, &size);
    int status = config_load(&config, path, errors);
    fclose(errors);
    for (const char *c = printed; *c; c++)
        lines += *c == '\n';
    CHECK(status > 0 && status == lines, "%s: %d lines, status %d", path, lines, status);
    CHECK(!config, "%s: *ret was written", path);
    compare(path, printed);
    free(printed);
}

int main(void)
{
    glob_t files;
    setenv("FRAMED_TEST_SECRET", "hunter2", 1);
    unsetenv("FRAMED_TEST_UNSET");
    CHECK(!glob("tests/config/bad/*.yaml", 0, NULL, &files), "run from the top of the repository");
    CHECK(files.gl_pathc >= 20, "%zu files", files.gl_pathc);
    for (size_t i = 0; i < files.gl_pathc; i++)
        TEST(test_file(files.gl_pathv[i]));
    globfree(&files);
    return test_end();
}
