// Receives libav's log. libav reports some facts nowhere else: lost packets, a file that is cut
// short, the sentence behind an error code. This file recognises them and keeps them for the thread
// that called libav.
#ifndef FRAMED_DAEMON_SOURCE_LIBAV_LOG_H
#define FRAMED_DAEMON_SOURCE_LIBAV_LOG_H

#include <stdbool.h>

struct secrets;

enum { LIBAV_TEXT_MAX = 1024 };

// State of one thread. The reader of a fact clears it.
struct libav_thread {
    // Set by the input: hidden in all messages of libav. NULL: none.
    const struct secrets *secrets;
    char last_error[LIBAV_TEXT_MAX]; // one printable line; "": none
    bool data_missing;               // network packets, or a picture that another references
    char driver[128];                // name of a hardware decoder's driver; "": none so far
    bool cut_short;                  // a file ends before the end that its container states
    unsigned packets_late;           // RTP packets dropped after one with a higher number; wraps
    // Private: libav writes a line in pieces.
    char line[LIBAV_TEXT_MAX];
    bool within_line;
};

// Sends libav's messages to the log at LOG_LEVEL_DEBUG: framed logs their consequences as events of
// its own. Called once per process, next to log_open.
void libav_log_open(void);
struct libav_thread *libav_thread(void); // of the calling thread

#endif
