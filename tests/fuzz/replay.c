// Runs a fuzzer on every file of its corpus, as a test without libFuzzer. The program's name
// selects the corpus: fuzz_NAME reads tests/fuzz/NAME.
#include <glob.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void test_file(const char *path)
{
    printf("%s\n", path); // the last one printed is the one that ends the process
    fflush(stdout);
    FILE *file = fopen(path, "rb");
    CHECK(file, "%s", path);
    if (!file)
        return;
    fseek(file, 0, SEEK_END);
    const size_t size = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = malloc(size ? size : 1); // exact size, for sanitizers
    CHECK(fread(data, 1, size, file) == size, "%s", path);
    fclose(file);
    CHECK(LLVMFuzzerTestOneInput(data, size) == 0, "%s", path);
    free(data);
}

int main(int argc, char **argv)
{
    (void)argc;
    char pattern[64];
    glob_t files = {0};
    const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    snprintf(pattern, sizeof pattern, "tests/fuzz/%s/*", name + strlen("fuzz_"));
    CHECK(!glob(pattern, 0, NULL, &files), "%s: run from the top of the repository", pattern);
    for (size_t i = 0; i < files.gl_pathc; i++)
        TEST(test_file(files.gl_pathv[i]));
    globfree(&files);
    return test_end();
}
