// Text in aligned columns, with unaligned lines in between.
#ifndef FRAMED_DAEMON_CLI_TABLE_H
#define FRAMED_DAEMON_CLI_TABLE_H

#include <stdio.h>

enum { TABLE_COLUMNS_MAX = 16 };

struct table_row {
    char *cell[TABLE_COLUMNS_MAX]; // NULL: empty
    int cells;
    char *note; // instead of cells
};

// Zeroed, it is empty.
struct table {
    const char *right; // a letter for each column: 'r' aligns it right, others left
    struct table_row *rows;
    int n;
};

void table_begin_row(struct table *);
// Adds the next cell of the last row.
__attribute__((format(printf, 2, 3))) void table_cell(struct table *, const char *format, ...);
__attribute__((format(printf, 2, 3))) void table_note(struct table *, const char *format, ...);
void table_print(const struct table *, FILE *);
void table_free(struct table *);

#endif
