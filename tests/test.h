// The test framework: TEST runs a test, CHECK counts within it, test_end returns the exit status.
#ifndef FRAMED_TESTS_TEST_H
#define FRAMED_TESTS_TEST_H

#include <stdbool.h>
#include <stdio.h>

struct test {
    const char *name;
    int checks, failed, skipped;
    struct test *next;
};

static int test_failed;       // failed checks of all tests
static struct test test_main; // the last of the list
static struct test *test_list = &test_main, *test_now = &test_main;

static inline void test_begin(struct test *test, const char *name)
{
    if (!test->name) {
        test->name = name;
        test->next = test_list;
        test_list = test;
    }
    test_now = test;
}

// Runs a test, a call of a function. A TEST in a loop counts as one test.
#define TEST(call)                                                                                 \
    do {                                                                                           \
        static struct test test_here;                                                              \
        test_begin(&test_here, #call);                                                             \
        call;                                                                                      \
        test_now = &test_main;                                                                     \
    } while (0)

// One check: if it fails, prints the place and the printf arguments.
#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        test_now->checks++;                                                                        \
        if (!(condition)) {                                                                        \
            test_now->failed++;                                                                    \
            test_failed++;                                                                         \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                        \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
        }                                                                                          \
    } while (0)

// Skips a test that cannot run on this machine: prints the reason (printf arguments) on one line.
#define SKIP(...)                                                                                  \
    do {                                                                                           \
        test_now->skipped++;                                                                       \
        printf("skipped: " __VA_ARGS__);                                                           \
        putchar('\n');                                                                             \
    } while (0)

static inline int test_total(const char *file)
{
    int passed = 0, failed = 0, skipped = 0, checks = 0;
    test_main.name = "main";
    for (const struct test *test = test_list; test; test = test->next) {
        const bool setup = test == &test_main && test_list != &test_main;
        const bool empty = !setup && !test->checks && !test->skipped;
        if (test->failed || empty)
            fprintf(stderr, "%s: %s %s\n", file, test->name, empty ? "checked nothing" : "failed");
        passed += !setup && test->checks && !test->failed;
        failed += test->failed || empty;
        skipped += test->skipped;
        checks += test->checks;
    }
    printf("%s: %d passed, %d failed, %d skipped; %d checks\n", file, passed, failed, skipped,
           checks);
    return failed != 0;
}

// Prints the counts of all tests and returns main's exit status. Checks of main itself count as a
// test only if one fails or if there is no other test.
#define test_end() test_total(__FILE__)

#endif
