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

// --- text from cameras, servers and other peers, made safe for people: a terminal obeys control
// characters, and direction marks reorder text. Pure.

// Returns the bytes of the character at `text`, which is not at its end. *safe is false for C0,
// DEL, C1, separators, direction marks, characters of width 0, and bytes that are not UTF-8.
size_t peer_text_character(const char *text, bool *safe);
// Replaces each unsafe character with '?'.
void peer_text_clean(char *text);

// --- the secrets of a camera's configuration, in every form in which libav or the camera itself
// may print them

struct secrets;

int secrets_open(struct secrets **ret, const struct camera_config *); // 0 or -ENOMEM
void secrets_close(struct secrets *);                                 // accepts NULL

// Copies `from` with "***" in place of each secret, truncated to `size` bytes.
void secrets_hide(const struct secrets *, char *to, size_t size, const char *from);

// --- the last error of a camera or an output: one printable line without secrets. The owner guards
// it. Zeroed, it is empty.

struct last_error {
    char text[512]; // "": none
    int64_t ns;     // CLOCK_MONOTONIC
};

void last_error_set(struct last_error *, const char *text);

#endif
