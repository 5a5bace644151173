// Lines of JSON for a sink's readers: how a line is written, and where it waits.
#ifndef FRAMED_DAEMON_OUTPUT_LINES_H
#define FRAMED_DAEMON_OUTPUT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// --- JSON, piece by piece
// Each function writes at `to`, which must have room, and returns the end. Formats numbers without
// printf, which takes ten times as long and uses the locale's decimal point.
char *json_put(char *to, const char *text); // without escapes
char *json_put_unsigned(char *to, uint64_t n);
char *json_put_signed(char *to, int64_t n);
char *json_put_decimal(char *to, int64_t n, int places); // n * 10^-places, without trailing zeros
char *json_put_seconds(char *to, int64_t ns);            // seconds to the microsecond
// Quotes and escapes a text: at most 6 bytes per byte of it. Invalid UTF-8 becomes question marks.
char *json_put_text(char *to, const char *text);

// --- the queue
// Ring of the newest lines for a sink's readers. A slow reader loses the oldest lines, always whole
// ones. Memory is bounded and independent of the number of readers. Loop thread only.
enum { LINE_QUEUE_BYTES = 1 << 20, LINE_QUEUE_LINES = 4096 };

struct line {
    const char *text; // with its newline; valid until the next line_queue_add
    size_t bytes;
    int64_t time_ns; // capture time of its frame, since 1970
};

// Counts a line once per reader: when it is offered, and later as delivered or lost.
struct line_account {
    uint64_t offered, delivered, lost;
};

struct line_queue {
    char *text;
    size_t end;           // end of the newest line in text
    uint64_t first, next; // numbers of the oldest line and of the next one
    uint64_t offered;     // number of the first line not counted by line_queue_offer
    struct line line[LINE_QUEUE_LINES];
};

int line_queue_open(struct line_queue **ret); // 0 or -ENOMEM
void line_queue_close(struct line_queue *);   // accepts NULL
// Adds a line of at most LINE_QUEUE_BYTES; drops old lines to make room.
void line_queue_add(struct line_queue *, const char *text, size_t bytes, int64_t time_ns);
// Counts the lines added since the last call as offered to `readers` readers.
void line_queue_offer(struct line_queue *, struct line_account *, int readers);
// Moves a reader that fell behind to the oldest line. Returns the number of lines it lost.
uint64_t line_queue_skip(const struct line_queue *, uint64_t *reader);
// Returns the reader's next line, or NULL if it has all. Call line_queue_skip first.
const struct line *line_queue_get(const struct line_queue *, uint64_t reader);

#endif
