// The two kinds of JSON values that need care.
#ifndef FRAMED_DAEMON_BENCH_JSON_H
#define FRAMED_DAEMON_BENCH_JSON_H

#include <stdio.h>

void json_string(FILE *, const char *text);
void json_number(FILE *, double value); // null where it is none

#endif
