#include "daemon/cli/table.h"

#include <err.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/process.h"

static char *format_text(const char *format, va_list arguments)
{
    char *text;
    if (vasprintf(&text, format, arguments) < 0)
        err(EXIT_RUNTIME, NULL);
    peer_text_clean(text);
    return text;
}

void table_begin_row(struct table *table)
{
    table->rows = reallocarray(table->rows, (size_t)table->n + 1, sizeof *table->rows);
    if (!table->rows)
        err(EXIT_RUNTIME, NULL);
    table->rows[table->n++] = (struct table_row){0};
}

void table_cell(struct table *table, const char *format, ...)
{
    struct table_row *row = &table->rows[table->n - 1];
    va_list arguments;
    va_start(arguments, format);
    row->cell[row->cells++] = format_text(format, arguments);
    va_end(arguments);
}

void table_note(struct table *table, const char *format, ...)
{
    va_list arguments;
    table_begin_row(table);
    va_start(arguments, format);
    table->rows[table->n - 1].note = format_text(format, arguments);
    va_end(arguments);
}

// Returns the width in UTF-8 characters.
static int width(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += (*text & 0xc0) != 0x80;
    return n;
}

static void print_row(const struct table *table, const struct table_row *row, const int widths[],
                      FILE *to)
{
    for (int i = 0; i < row->cells; i++) {
        int gap = widths[i] - width(row->cell[i]);
        bool right = strlen(table->right) > (size_t)i && table->right[i] == 'r';
        bool last = i == row->cells - 1;
        fprintf(to, "%*s%s%*s%s", right ? gap : 0, "", row->cell[i], right || last ? 0 : gap, "",
                last ? "" : "  ");
    }
    putc('\n', to);
}

void table_print(const struct table *table, FILE *to)
{
    int widths[TABLE_COLUMNS_MAX] = {0};
    for (int r = 0; r < table->n; r++)
        for (int i = 0; i < table->rows[r].cells; i++) {
            int n = width(table->rows[r].cell[i]);
            widths[i] = n > widths[i] ? n : widths[i];
        }
    for (int r = 0; r < table->n; r++) {
        if (table->rows[r].note)
            fprintf(to, "%s\n", table->rows[r].note);
        else
            print_row(table, &table->rows[r], widths, to);
    }
}

void table_free(struct table *table)
{
    for (int r = 0; r < table->n; r++) {
        free(table->rows[r].note);
        for (int i = 0; i < table->rows[r].cells; i++)
            free(table->rows[r].cell[i]);
    }
    free(table->rows);
    *table = (struct table){0};
}
