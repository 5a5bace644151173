// The two kinds of JSON values that need care.
#ifndef FRAMED_DAEMON_BENCH_JSON_H
#define FRAMED_DAEMON_BENCH_JSON_H

#include <stdio.h>

void print_json_string(FILE *, const char *text);
void print_json_number(FILE *, double value); // null where it is none

#endif
