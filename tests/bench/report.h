// The rows of a bench, printed as a table while they arrive, or as JSON at the end. One thread.
#ifndef FRAMED_TESTS_BENCH_REPORT_H
#define FRAMED_TESTS_BENCH_REPORT_H

#include <stdbool.h>
#include <stdio.h>

struct row {
    const char *group; // "warp"
    char name[256];
    const char *unit;    // also sets which way is better: rates and counts of good ones are gains
    double value, limit; // limit: NAN if there is none
    char limit_is[96];
    double least, most; // extremes of several measurements, value is their median; NAN: only one
};

struct report {
    FILE *to;
    bool json;
    struct row *rows;
    int n;
    char **notes;
    int n_notes;
};

void report_open(struct report *, FILE *to, bool json);
void report_close(struct report *);
// Starts a row and its limit; `name` and `limit_is` are printf formats.
__attribute__((format(printf, 2, 3))) struct row row_named(const char *group, const char *format,
                                                           ...);
__attribute__((format(printf, 3, 4))) void row_limit(struct row *, double limit, const char *format,
                                                     ...);
void report_add(struct report *, const struct row *);
// Adds a row for JSON without printing it; the caller prints it if the report is a table.
void report_keep(struct report *, const struct row *);
// Adds a sentence about an omission or a failure.
__attribute__((format(printf, 2, 3))) void report_note(struct report *, const char *format, ...);
// Returns value / limit; NAN if there is no limit or it is 0.
double row_ratio(const struct row *);

// The machine: one line each, printed before the rows.
struct box {
    char cpu[200], gpu[400], data[200];
};
void report_head(struct report *, const struct box *);
void report_end(struct report *, const struct box *);

#endif
