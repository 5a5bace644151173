// Writes JSON piece by piece: each function writes at `to`, which must have room, and returns the
// end. Formats numbers without printf, which takes ten times as long and uses the locale's decimal
// point.
#ifndef FRAMED_DAEMON_OUTPUT_JSON_TEXT_H
#define FRAMED_DAEMON_OUTPUT_JSON_TEXT_H

#include <stdint.h>

char *json_put(char *to, const char *text); // without escapes
char *json_put_unsigned(char *to, uint64_t n);
char *json_put_signed(char *to, int64_t n);
char *json_put_decimal(char *to, int64_t n, int places); // n * 10^-places, without trailing zeros
char *json_put_seconds(char *to, int64_t ns);            // seconds to the microsecond
// Quotes and escapes a text: at most 6 bytes per byte of it. Invalid UTF-8 becomes question marks.
char *json_put_text(char *to, const char *text);

#endif
