// One line an event on stderr: "info camera=NAME message", after log_with_time with the time in UTC
// before it; under journald, which knows the time, "<6>camera=NAME message".
// Repeats of a line are summed up. Passwords in URLs are replaced before anything is written.
// Thread-safe. Errno is left alone.
#ifndef FRAMED_DAEMON_BASE_LOG_H
#define FRAMED_DAEMON_BASE_LOG_H

#include "config/config.h"

// Also takes over libav's messages: details, for LOG_LEVEL_DEBUG, since what matters of them
// reaches the log through our own errors.
void log_open(enum log_level level);
void log_with_time(void); // of a process that runs for long
void log_level(enum log_level level);
// The camera that this thread works for: log lines of it, libav's too, carry its name. NULL: none.
// `name` must outlive the thread's use.
void log_camera(const char *name);
// What libav may be told, or hear from the camera, and must not say on this thread. NULL: nothing.
// To outlive what libav does.
struct secrets;
void log_secrets(const struct secrets *);
__attribute__((format(printf, 2, 3))) void log_event(enum log_level level, const char *format, ...);
// What libav complained of last on this thread since log_forget_libav, as errors only and scrubbed;
// "" where it did not. Valid until the thread's next libav call.
const char *log_libav_complaint(void);
void log_forget_libav(void);
// One line of printable text without secrets, whatever a camera made libav say. Any thread.
void log_scrub(char *to, size_t size, const char *from);
enum { LOG_TIME = sizeof "2026-01-31T12:00:00.000Z" };
// That time, with an end, as RFC 3339 has it. From within a signal handler too.
void log_time(char to[LOG_TIME], int64_t realtime_ns);
// One last line of level error, from within a signal handler: takes no lock.
void log_last(const char *text);
// Whether libav said since the last call, on this thread, that data are missing: packets on the
// network, or a picture that another is made from. It tells nobody in any other way.
bool log_libav_missed(void);
// Whether libav said since the last call, on this thread, that a file ends before its container
// says that it should: that is no error to it.
bool log_libav_cut_short(void);
// How many packets of RTP libav threw away on this thread, since others with higher numbers had
// come before. It goes on counting, and wraps.
unsigned log_libav_late(void);
// Prints what is still summed up: to be called at the end, and now and then, since a sum otherwise
// waits for a later line.
void log_flush(void);

#endif
