// The last lines that readers of an output's `detections` may still want: whoever reads slower than
// lines come loses the oldest, whole. Memory is bounded, and the same for any number of readers.
// Loop thread only.
#ifndef FRAMED_DAEMON_OUTPUT_LINE_QUEUE_H
#define FRAMED_DAEMON_OUTPUT_LINE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINE_QUEUE_BYTES = 1 << 20, LINE_QUEUE_LINES = 4096 };

struct line {
    const char *text; // with its newline; valid until the next line_queue_add
    size_t bytes;
    int64_t time_ns; // capture time of its frame, since 1970
};

// What has become of lines, each counted once for each reader that it was offered to: delivered or
// lost, or it waits.
struct line_account {
    uint64_t offered, delivered, lost;
};

struct line_queue {
    char *text;
    size_t end;           // of the newest line in text
    uint64_t first, next; // numbers of the oldest line and of the next to come
    uint64_t offered;     // number of the first line that line_queue_offer has not counted
    struct line line[LINE_QUEUE_LINES];
};

int line_queue_open(struct line_queue **ret); // 0 or -ENOMEM
void line_queue_close(struct line_queue *);   // accepts NULL
// At most LINE_QUEUE_BYTES.
void line_queue_add(struct line_queue *, const char *text, size_t bytes, int64_t time_ns);
// Counts the lines that came since the last call as offered to so many readers.
void line_queue_offer(struct line_queue *, struct line_account *, int readers);
// Where a reader is: moves it to the oldest line there is. Returns how many it lost by that.
uint64_t line_queue_skip(const struct line_queue *, uint64_t *reader);
// The line that a reader is at, which line_queue_skip was called for; NULL: it has all.
const struct line *line_queue_get(const struct line_queue *, uint64_t reader);

#endif
