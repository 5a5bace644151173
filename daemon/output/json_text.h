// JSON, piece by piece: each function writes at `to`, which has room, and returns the end. Numbers
// are written here, not by printf: it takes ten times as long, and asks the locale for the decimal
// point.
#ifndef FRAMED_DAEMON_OUTPUT_JSON_TEXT_H
#define FRAMED_DAEMON_OUTPUT_JSON_TEXT_H

#include <stdint.h>

char *json_put(char *to, const char *text); // as it is
char *json_put_unsigned(char *to, uint64_t n);
char *json_put_signed(char *to, int64_t n);
char *json_put_decimal(char *to, int64_t n, int places); // n * 10^-places, without zeros at the end
char *json_put_seconds(char *to, int64_t ns);            // seconds to the microsecond
// A text in quotes, at most 6 bytes for each of it; what is no UTF-8 becomes a question mark.
char *json_put_text(char *to, const char *text);

#endif
