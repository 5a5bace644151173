#include "daemon/source/libav_log.h"

#include <libavutil/log.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"

struct libav_thread *libav_thread(void)
{
    static _Thread_local struct libav_thread thread;
    return &thread;
}

static bool begins_with(const char *format, const char *begin)
{
    return strncmp(format, begin, strlen(begin)) == 0;
}

// Matches the format, which identifies the message and contains nothing from a camera.
static void note_facts(struct libav_thread *thread, const char *format)
{
    thread->data_missing |=
        begins_with(format, "RTP: missed ") || begins_with(format, "Could not find ref with POC ");
    thread->cut_short |=
        begins_with(format, "File ended prematurely") || strstr(format, ": partial file");
    thread->packets_late += begins_with(format, "RTP: dropping old packet");
}

// "VAAPI driver: Intel iHD driver ...", "driver 'bcm2835-codec' on card ...". Below the level of
// warnings.
static void note_driver(struct libav_thread *thread, const char *format, va_list arguments)
{
    char line[LIBAV_TEXT_MAX];
    if (!begins_with(format, "VAAPI driver: ") && !begins_with(format, "driver '%s' on card"))
        return;
    vsnprintf(line, sizeof line, format, arguments);
    line[strcspn(line, "\n")] = 0;
    log_scrub(thread->driver, sizeof thread->driver, line);
}

// Skips the useless address in "[rtsp @ 0x5581...] what is wrong".
static const char *without_address(const char *line)
{
    const char *end = line[0] == '[' ? strstr(line, "] ") : NULL;
    return end ? end + 2 : line;
}

// libav reports everyday events as errors (a stream joined between keyframes, a camera that hangs
// up), so only its fatal messages are warnings here. Messages below its warnings are ignored.
static void on_message(void *context, int level, const char *format, va_list arguments)
{
    struct libav_thread *thread = libav_thread();
    char *line = thread->line, clean[LIBAV_TEXT_MAX];
    if (level > AV_LOG_WARNING) {
        note_driver(thread, format, arguments);
        return;
    }
    note_facts(thread, format);
    size_t at = strlen(line);
    int prints_prefix = !thread->within_line;
    av_log_format_line2(context, level, format, arguments, line + at, (int)(LIBAV_TEXT_MAX - at),
                        &prints_prefix);
    thread->within_line = !prints_prefix;
    at = strlen(line);
    if (line[at - (at > 0)] != '\n' && at + 1 < LIBAV_TEXT_MAX)
        return;
    if (thread->secrets)
        secrets_hide(thread->secrets, clean, sizeof clean, line);
    else
        memcpy(clean, line, sizeof clean);
    if (level <= AV_LOG_ERROR)
        log_scrub(thread->last_error, sizeof thread->last_error, without_address(clean));
    log_event(level <= AV_LOG_FATAL ? LOG_LEVEL_WARNING : LOG_LEVEL_DEBUG, "libav: %s", clean);
    line[0] = 0;
}

void libav_log_open(void)
{
    av_log_set_callback(on_message);
}
