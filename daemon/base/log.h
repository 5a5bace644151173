// One line an event on stderr: "info camera=NAME message", after log_with_time with the time in UTC
// before it; under journald, which knows the time, "<6>camera=NAME message".
// Repeats of a line are summed up. Values that were looked up and logins of URLs are never written.
// Thread-safe. Errno is left alone.
#ifndef FRAMED_DAEMON_BASE_LOG_H
#define FRAMED_DAEMON_BASE_LOG_H

#include "config/config.h"

void log_open(enum log_level level);
void log_with_time(void); // of a process that runs for long
void log_level(enum log_level level);
// The camera that this thread works for: its log lines carry the name. NULL: none.
// `name` must outlive the thread's use.
void log_camera(const char *name);
__attribute__((format(printf, 2, 3))) void log_event(enum log_level level, const char *format, ...);
// Copies `from` as one line of printable text, with ${NAME} in place of each looked-up value and
// URLs as config_url_shown has them. Any thread.
void log_scrub(char *to, size_t size, const char *from);
enum { LOG_TIME = sizeof "2026-01-31T12:00:00.000Z" };
// That time, with an end, as RFC 3339 has it. From within a signal handler too.
void log_time(char to[LOG_TIME], int64_t realtime_ns);
// One last line of level error, from within a signal handler: takes no lock.
void log_last(const char *text);
// Prints what is still summed up: to be called at the end, and now and then, since a sum otherwise
// waits for a later line.
void log_flush(void);

#endif
