// Clips for the tests of ingest and decode, made by the ffmpeg program in a folder that is removed
// at the end of the test.
#ifndef FRAMED_TESTS_DAEMON_CLIPS_H
#define FRAMED_TESTS_DAEMON_CLIPS_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/test.h"

static char clips[64];

static inline void clips_open(void)
{
    snprintf(clips, sizeof(clips), "/tmp/framed-clips-XXXXXX");
    if (!mkdtemp(clips) || chdir(clips) < 0)
        abort();
}

// Runs a shell command in the clips' folder; if it fails, the test fails.
__attribute__((format(printf, 1, 2))) static inline void clips_run(const char *format, ...)
{
    char command[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof(command), format, arguments);
    va_end(arguments);
    CHECK(system(command) == 0, "%s", command);
}

#define FFMPEG "ffmpeg -nostdin -v error -y "

// Makes `frames` frames of a moving test picture at 25 fps; `encoder` and `file` are ffmpeg's last
// arguments.
static inline void clips_make(const char *size, int frames, const char *encoder, const char *file)
{
    clips_run(FFMPEG "-f lavfi -i testsrc2=size=%s:rate=25 -frames:v %d %s %s", size, frames,
              encoder, file);
}

// Returns the first number that a shell command prints.
static inline long clips_number(const char *command)
{
    long number = -1;
    FILE *out = popen(command, "r");
    if (!out || fscanf(out, "%ld", &number) != 1)
        number = -1;
    if (out)
        pclose(out);
    return number;
}

// Returns a file's bytes; the caller frees them.
static inline unsigned char *clips_read(const char *file, size_t *size)
{
    FILE *in = fopen(file, "rb");
    if (!in || fseek(in, 0, SEEK_END) < 0)
        abort();
    *size = (size_t)ftell(in);
    unsigned char *bytes = malloc(*size + 1);
    rewind(in);
    if (!bytes || fread(bytes, 1, *size, in) != *size)
        abort();
    fclose(in);
    return bytes;
}

static inline void clips_close(void)
{
    clips_run("rm -rf %s", clips);
}

#endif
