// Logs one line per event to stderr: "info camera=NAME message". log_with_time puts the UTC time in
// front; under journald, which adds the time itself, the line is "<6>camera=NAME message". Repeated
// lines are summed up. Expanded values and URL logins are never written. Thread-safe. Keeps errno.
#ifndef FRAMED_DAEMON_BASE_LOG_H
#define FRAMED_DAEMON_BASE_LOG_H

#include "config/config.h"

void log_open(enum log_level level);
void log_with_time(void); // for a process that runs for long
void log_level(enum log_level level);
// Sets the camera whose name this thread's log lines carry; NULL: none. `name` must outlive the
// thread's use.
void log_camera(const char *name);
__attribute__((format(printf, 2, 3))) void log_event(enum log_level level, const char *format, ...);
// Copies `from` as one line of printable text, with ${NAME} in place of each expanded value and
// URLs as config_url_shown prints them. Any thread.
void log_scrub(char *to, size_t size, const char *from);
enum { LOG_TIME = sizeof "2026-01-31T12:00:00.000Z" };
// Formats a time as RFC 3339, with a terminating zero. Also safe in a signal handler.
void log_time(char to[LOG_TIME], int64_t realtime_ns);
// Logs one last line at level error. For signal handlers: takes no lock.
void log_last(const char *text);
// Prints pending repeat counts. Call at the end and now and then: a count otherwise waits for a
// later line.
void log_flush(void);

#endif
