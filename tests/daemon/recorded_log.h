// Records the log's output to stderr, for a test to read.
#ifndef FRAMED_TESTS_DAEMON_RECORDED_LOG_H
#define FRAMED_TESTS_DAEMON_RECORDED_LOG_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/test.h"

static int terminal; // the real stderr, from log_record_open on
static char written[1 << 20];

static void log_record_open(void)
{
    terminal = dup(STDERR_FILENO);
}

// Sends the log's output to a file until log_text.
static void record(void)
{
    char name[] = "/tmp/framed-log-XXXXXX";
    int fd = mkstemp(name);
    unlink(name);
    dup2(fd, STDERR_FILENO);
    close(fd);
}

static const char *log_text(void)
{
    ssize_t n = pread(STDERR_FILENO, written, sizeof(written) - 1, 0);
    written[n > 0 ? n : 0] = 0;
    dup2(terminal, STDERR_FILENO);
    return written;
}

#endif
