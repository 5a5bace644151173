// Takes over libav's log. libav reports some facts nowhere else: lost packets, a file that is cut
// short, the sentence behind an error code. This file recognises them and keeps them for the
// thread that called libav.
#ifndef FRAMED_DAEMON_INPUT_LIBAV_LOG_H
#define FRAMED_DAEMON_INPUT_LIBAV_LOG_H

#include <stdbool.h>

struct secrets;

enum { LIBAV_TEXT_MAX = 1024 };

// One thread's own. The reader of a fact clears it.
struct libav_thread {
    // Set by the input: replaced in everything that libav says. NULL: none.
    const struct secrets *secrets;
    char last_error[LIBAV_TEXT_MAX]; // one printable line; "": none
    bool data_missing;               // packets on the network, or a picture that another refers to
    char driver[128];      // what a hardware decoder's driver calls itself; "": nothing yet
    bool cut_short;        // a file ends before its container says
    unsigned packets_late; // RTP packets dropped since a higher number came before; wraps
    // Private: libav writes a line in pieces.
    char line[LIBAV_TEXT_MAX];
    bool within_line;
};

// From now on libav's messages go to the log at LOG_LEVEL_DEBUG: framed logs what follows from them
// as events of its own. Once a process, beside log_open.
void libav_log_open(void);
struct libav_thread *libav_thread(void); // of the calling thread

#endif
