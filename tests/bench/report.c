#include "tests/bench/report.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_WIDTH = 49 };

void report_open(struct report *report, FILE *to, bool json)
{
    *report = (struct report){.to = to, .json = json};
}

void report_close(struct report *report)
{
    for (int i = 0; i < report->n_notes; i++)
        free(report->notes[i]);
    free(report->notes);
    free(report->rows);
    *report = (struct report){0};
}

struct row row_named(const char *group, const char *format, ...)
{
    struct row row = {.group = group, .limit = NAN, .least = NAN, .most = NAN};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(row.name, sizeof row.name, format, arguments);
    va_end(arguments);
    return row;
}

void row_limit(struct row *row, double limit, const char *format, ...)
{
    va_list arguments;
    row->limit = limit;
    va_start(arguments, format);
    vsnprintf(row->limit_is, sizeof row->limit_is, format, arguments);
    va_end(arguments);
}

double row_ratio(const struct row *row)
{
    return isnan(row->limit) || row->limit == 0 ? NAN : row->value / row->limit;
}

// --- the table

struct unit {
    const char *name;
    int decimals;
    bool higher; // higher is better
};

static const struct unit *unit_of(const struct row *row)
{
    static const struct unit units[] = {
        {"ms", 3, false},      {"us", 2, false},           {"s", 2, false},
        {"cores", 2, false},   {"MiB", 0, false},          {"frames", 0, false},
        {"frames/s", 0, true}, {"frames/s/core", 0, true}, {"GB/s", 1, true},
        {"cameras", 0, true},  {"% of a core", 2, false},  {"packets", 0, false},
    };
    size_t i = 0;
    while (strcmp(units[i].name, row->unit) != 0 && i + 1 < sizeof units / sizeof *units)
        i++;
    return &units[i];
}

static void print_ratio(FILE *to, const struct row *row)
{
    const double ratio = row_ratio(row);
    if (isnan(ratio))
        fprintf(to, "%11s", "-");
    else if (unit_of(row)->higher)
        fprintf(to, " %8.1f %%", 100 * ratio);
    else
        fprintf(to, " %8.3f x", ratio);
}

static void print_row(const struct report *report, const struct row *row)
{
    const int digits = unit_of(row)->decimals;
    fprintf(report->to, "  %-*s %9.*f %-13s", NAME_WIDTH, row->name, digits, row->value, row->unit);
    if (isnan(row->limit))
        fprintf(report->to, " %9s", "-");
    else
        fprintf(report->to, " %9.*f", digits, row->limit);
    print_ratio(report->to, row);
    fprintf(report->to, "%s%s\n", *row->limit_is ? "   " : "", row->limit_is);
    fflush(report->to);
}

void report_head(struct report *report, const struct box *box)
{
    if (report->json)
        return;
    fprintf(report->to, "framed-bench %s\n  cpu   %s\n  gpu   %s\n  data  %s\n",
            FRAMED_VERSION_TEXT, box->cpu, box->gpu, box->data);
    fflush(report->to);
}

void report_keep(struct report *report, const struct row *row)
{
    struct row *rows = realloc(report->rows, ((size_t)report->n + 1) * sizeof *rows);
    if (!rows)
        return;
    report->rows = rows;
    rows[report->n++] = *row;
}

void report_add(struct report *report, const struct row *row)
{
    const bool first = report->n == 0 || strcmp(report->rows[report->n - 1].group, row->group) != 0;
    report_keep(report, row);
    if (report->json)
        return;
    if (first)
        fprintf(report->to, "\n%-*s %9s %-13s %9s%11s   %s\n", NAME_WIDTH + 2, row->group, "value",
                "", "limit", "ratio", "the limit is");
    print_row(report, row);
}

void report_note(struct report *report, const char *format, ...)
{
    char *note = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&note, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    char **notes = realloc(report->notes, ((size_t)report->n_notes + 1) * sizeof *notes);
    if (!notes) {
        free(note);
        return;
    }
    report->notes = notes;
    notes[report->n_notes++] = note;
    if (!report->json)
        fprintf(report->to, "  note: %s\n", note);
}

// --- JSON

static void print_json_string(FILE *to, const char *text)
{
    putc('"', to);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putc('\\', to);
        if ((unsigned char)*text < 0x20)
            fprintf(to, "\\u%04x", *text);
        else
            putc(*text, to);
    }
    putc('"', to);
}

static void print_json_number(FILE *to, double value)
{
    if (isfinite(value))
        fprintf(to, "%.9g", value);
    else
        fputs("null", to);
}

static void print_member(FILE *to, const char *name, const char *text, const char *end)
{
    fprintf(to, "\"%s\": ", name);
    print_json_string(to, text);
    fputs(end, to);
}

static void print_number(FILE *to, const char *name, double value)
{
    fprintf(to, "\"%s\": ", name);
    print_json_number(to, value);
    fputs(", ", to);
}

static void print_row_json(FILE *to, const struct row *row)
{
    fputs("    {", to);
    print_member(to, "group", row->group, ", ");
    print_member(to, "name", row->name, ", ");
    print_number(to, "value", row->value);
    print_member(to, "unit", row->unit, ", ");
    print_number(to, "limit", row->limit);
    print_number(to, "ratio", row_ratio(row));
    if (!isnan(row->least)) {
        print_number(to, "least", row->least);
        print_number(to, "most", row->most);
    }
    print_member(to, "better", unit_of(row)->higher ? "higher" : "lower", ", ");
    print_member(to, "limit_is", row->limit_is, "}");
}

void report_end(struct report *report, const struct box *box)
{
    FILE *to = report->to;
    if (!report->json)
        return;
    fputs("{\n  ", to);
    print_member(to, "version", FRAMED_VERSION_TEXT, ",\n  ");
    print_member(to, "cpu", box->cpu, ",\n  ");
    print_member(to, "gpu", box->gpu, ",\n  ");
    print_member(to, "data", box->data, ",\n  \"rows\": [\n");
    for (int i = 0; i < report->n; i++) {
        print_row_json(to, &report->rows[i]);
        fputs(i + 1 < report->n ? ",\n" : "\n", to);
    }
    fputs("  ],\n  \"notes\": [", to);
    for (int i = 0; i < report->n_notes; i++) {
        print_json_string(to, report->notes[i]);
        fputs(i + 1 < report->n_notes ? ", " : "", to);
    }
    fputs("]\n}\n", to);
    fflush(to);
}
