// The whole test framework: CHECK counts, test_end prints and gives main's return value.
#ifndef FRAMED_TESTS_TEST_H
#define FRAMED_TESTS_TEST_H

#include <stdio.h>

static int test_passed, test_failed, test_skipped;

// One check: prints where and what (printf arguments) when it does not hold.
#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (condition) {                                                                           \
            test_passed++;                                                                         \
        } else {                                                                                   \
            test_failed++;                                                                         \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                        \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
        }                                                                                          \
    } while (0)

// Checks that cannot be made on this box: prints why (printf arguments), on one line.
#define SKIP(...)                                                                                  \
    do {                                                                                           \
        test_skipped++;                                                                            \
        printf("skipped: " __VA_ARGS__);                                                           \
        putchar('\n');                                                                             \
    } while (0)

static inline int test_end(const char *name)
{
    printf("%s: %d passed, %d failed, %d skipped\n", name, test_passed, test_failed, test_skipped);
    return test_failed != 0;
}

#endif
