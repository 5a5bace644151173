#include "daemon/base/log.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "config/expand.h"
#include "config/url.h"
#include "daemon/base/clock.h"

enum {
    TEXT_MAX = 1024,
    SPEAKERS = 64, // with more cameras, the one silent longest is forgotten
    PATIENCE_MS = 200,
};
static const int64_t REPEAT_WINDOW_NS = 10 * INT64_C(1000000000);

static const struct {
    const char *name;
    char priority; // syslog's, for journald
} levels[] = {
    [LOG_LEVEL_ERROR] = {"error", '3'},
    [LOG_LEVEL_WARNING] = {"warning", '4'},
    [LOG_LEVEL_INFO] = {"info", '6'},
    [LOG_LEVEL_DEBUG] = {"debug", '7'},
};

// The last message of one camera or of the daemon.
struct speaker {
    char camera[64]; // "" for the daemon
    char text[TEXT_MAX];
    enum log_level level;
    int repeats;      // since the text was printed
    int64_t since_ns; // when it was printed, CLOCK_MONOTONIC
};

static struct {
    pthread_mutex_t mutex; // guards speakers and the order of lines
    _Atomic int level;
    _Atomic bool journal;
    _Atomic bool timed; // lines begin with the time, which the journal adds itself
    struct speaker speakers[SPEAKERS];
    bool stalled; // stderr is not being read; under mutex
} logger = {.mutex = PTHREAD_MUTEX_INITIALIZER, .level = LOG_LEVEL_INFO};

static _Thread_local const char *thread_camera;

// Returns true if stderr is the stream that systemd connected to the journal.
static bool stderr_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat st;
    return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
           fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

// A stalled reader must not stall us: the first line waits a while for it, later lines are dropped
// until it reads again.
static bool stderr_takes_a_line(void)
{
    struct pollfd wait = {.fd = STDERR_FILENO, .events = POLLOUT};
    bool ready = poll(&wait, 1, logger.stalled ? 0 : PATIENCE_MS) > 0;
    logger.stalled = !ready;
    return ready;
}

// --- the head of a line

static void put_number(char *to, int digits, int64_t number)
{
    while (digits-- > 0) {
        to[digits] = (char)('0' + number % 10);
        number /= 10;
    }
}

// Gregorian calendar from 1970 on. A signal handler may not call gmtime_r.
static void put_date(char *to, int64_t days)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t year = 1970;
    int month = 0;
    bool leap;
    for (;; year++) {
        leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        if (days < 365 + leap)
            break;
        days -= 365 + leap;
    }
    for (; days >= lengths[month] + (leap && month == 1); month++)
        days -= lengths[month] + (leap && month == 1);
    put_number(to, 4, year);
    put_number(to + 5, 2, month + 1);
    put_number(to + 8, 2, days + 1);
}

void log_time(char to[LOG_TIME], int64_t realtime_ns)
{
    const int64_t ms = realtime_ns / 1000000, day_ms = 86400000;
    const int64_t rest = ms % day_ms;
    memcpy(to, "0000-00-00T00:00:00.000Z", LOG_TIME);
    put_date(to, ms / day_ms);
    put_number(to + 11, 2, rest / 3600000);
    put_number(to + 14, 2, rest / 60000 % 60);
    put_number(to + 17, 2, rest / 1000 % 60);
    put_number(to + 20, 3, rest % 1000);
}

enum { PREFIX_MAX = LOG_TIME + 16 };

// "<3>", or "2026-01-31T12:00:00.000Z error ". Also safe in a signal handler.
static void put_prefix(char to[PREFIX_MAX], enum log_level level)
{
    if (logger.journal) {
        memcpy(to, (char[]){'<', levels[level].priority, '>', 0}, 4);
        return;
    }
    if (logger.timed) {
        log_time(to, realtime_ns());
        to += LOG_TIME - 1;
        *to++ = ' ';
    }
    strcpy(to, levels[level].name);
    strcat(to, " ");
}

static void print(const struct speaker *speaker)
{
    char line[TEXT_MAX + 160], repeated[40] = "";
    char prefix[PREFIX_MAX];
    put_prefix(prefix, speaker->level);
    if (speaker->repeats)
        snprintf(repeated, sizeof(repeated), " (repeated %d time%s)", speaker->repeats,
                 speaker->repeats == 1 ? "" : "s");
    int n =
        snprintf(line, sizeof(line), "%s%s%s%s%s%s\n", prefix, speaker->camera[0] ? "camera=" : "",
                 speaker->camera, speaker->camera[0] ? " " : "", speaker->text, repeated);
    if (!stderr_takes_a_line())
        return;
    for (int at = 0; at < n;) {
        ssize_t wrote = write(STDERR_FILENO, line + at, (size_t)(n - at));
        if (wrote < 0 && errno != EINTR)
            return; // nowhere left to report it
        at += wrote > 0 ? (int)wrote : 0;
    }
}

static void flush_repeats(struct speaker *speaker, int64_t now)
{
    if (!speaker->repeats)
        return;
    print(speaker);
    speaker->repeats = 0;
    speaker->since_ns = now;
}

static struct speaker *speaker_of(const char *camera, int64_t now)
{
    struct speaker *oldest = logger.speakers;
    for (struct speaker *s = logger.speakers; s < logger.speakers + SPEAKERS; s++) {
        if (s->text[0] && !strncmp(s->camera, camera, sizeof(s->camera) - 1))
            return s;
        if (s->since_ns < oldest->since_ns)
            oldest = s;
    }
    flush_repeats(oldest, now);
    *oldest = (struct speaker){0};
    snprintf(oldest->camera, sizeof(oldest->camera), "%s", camera);
    return oldest;
}

static void say(enum log_level level, const char *text)
{
    pthread_mutex_lock(&logger.mutex);
    int64_t now = monotonic_ns();
    struct speaker *speaker = speaker_of(thread_camera ? thread_camera : "", now);
    bool recent = speaker->repeats || now - speaker->since_ns < REPEAT_WINDOW_NS;
    if (recent && speaker->level == level && !strcmp(speaker->text, text)) {
        speaker->repeats++;
    } else {
        flush_repeats(speaker, now);
        snprintf(speaker->text, sizeof(speaker->text), "%s", text);
        speaker->level = level;
        speaker->since_ns = now;
        print(speaker);
    }
    for (struct speaker *s = logger.speakers; s < logger.speakers + SPEAKERS; s++) {
        if (now - s->since_ns >= REPEAT_WINDOW_NS)
            flush_repeats(s, now);
    }
    pthread_mutex_unlock(&logger.mutex);
}

// --- text that people see

// Returns the character's bytes; 0: no UTF-8 begins at `p`. *code: the character.
static size_t decode_character(const unsigned char *p, unsigned *code)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t bytes = *p < 0x80                  ? 1
                         : *p >= 0xc2 && *p <= 0xdf ? 2
                         : *p >= 0xe0 && *p <= 0xef ? 3
                         : *p >= 0xf0 && *p <= 0xf4 ? 4
                                                    : 0;
    *code = bytes == 1 ? *p : bytes > 0 ? *p & (0x7fU >> bytes) : 0;
    for (size_t i = 1; i < bytes; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (p[i] & 0x3f);
    }
    const bool surrogate = *code >= 0xd800 && *code <= 0xdfff;
    return bytes > 0 && (*code < least[bytes] || *code > 0x10ffff || surrogate) ? 0 : bytes;
}

size_t peer_text_character(const char *text, bool *safe)
{
    static const struct {
        unsigned first, last;
    } unsafe[] = {
        {0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},   {0x200b, 0x200f},   {0x2028, 0x202e},
        {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
    };
    unsigned code;
    const size_t bytes = decode_character((const unsigned char *)text, &code);
    *safe = bytes > 0;
    for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe; i++)
        *safe &= code < unsafe[i].first || code > unsafe[i].last;
    return bytes > 0 ? bytes : 1;
}

void peer_text_clean(char *text)
{
    char *to = text;
    bool safe;
    for (size_t bytes; *text; text += bytes) {
        bytes = peer_text_character(text, &safe);
        memmove(to, safe ? text : "?", safe ? bytes : 1);
        to += safe ? bytes : 1;
    }
    *to = 0;
}

// Returns where the URL in a word begins: text may precede the scheme ("url='rtsp://").
static size_t url_offset(const char *word, size_t length)
{
    const char *mark = memmem(word, length, "://", 3);
    if (!mark)
        return 0;
    while (mark > word && (isalnum((unsigned char)mark[-1]) || strchr("+-.", mark[-1])))
        mark--;
    return (size_t)(mark - word);
}

// Copies one word, with a URL as config_url_shown prints it and a Digest response as ***. A word
// ends only at white space, since a password may contain any other character.
static size_t put_word(char *to, size_t size, const char *word, size_t length)
{
    static const char response[] = "response=";
    char url[TEXT_MAX];
    const char *proof = memmem(word, length, response, strlen(response));
    if (proof)
        return (size_t)snprintf(to, size, "%.*s***", (int)(proof - word + (long)strlen(response)),
                                word);
    if (!memmem(word, length, "://", 3)) {
        const char *query = memchr(word, '?', length); // of a request line
        const bool hides = query && memchr(query, '=', length - (size_t)(query - word));
        return (size_t)snprintf(to, size, "%.*s", (int)(hides ? query - word : (long)length), word);
    }
    size_t before = url_offset(word, length);
    snprintf(url, sizeof(url), "%.*s", (int)(length - before), word + before);
    int n = snprintf(to, size, "%.*s", (int)before, word);
    if ((size_t)n < size)
        config_url_shown(url, to + n, size - (size_t)n);
    return strlen(to);
}

void log_scrub(char *to, size_t size, const char *text)
{
    char hidden[2 * TEXT_MAX];
    const char *from = expand_hide(hidden, sizeof hidden, text, false);
    size_t at = 0;
    while (*from && at + 1 < size) {
        size_t length = strcspn(from, " \t\r\n");
        if (length == 0) {
            to[at++] = ' ';
            from++;
            continue;
        }
        at += put_word(to + at, size - at, from, length);
        if (length >= 14 && !strncasecmp(from + length - 14, "authorization:", 14)) {
            at += (size_t)snprintf(to + at, at < size ? size - at : 0, " ***");
            break;
        }
        from += length;
    }
    at = at < size ? at : size - 1;
    while (at > 0 && to[at - 1] == ' ')
        at--;
    to[at] = 0;
    peer_text_clean(to);
}

void last_error_set(struct last_error *error, const char *text)
{
    log_scrub(error->text, sizeof error->text, text);
    error->ns = monotonic_ns();
}

// --- events

void log_event(enum log_level level, const char *format, ...)
{
    if ((int)level > logger.level)
        return;
    int saved = errno;
    char text[TEXT_MAX], clean[TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    log_scrub(clean, sizeof(clean), text);
    say(level, clean);
    errno = saved;
}

void log_open(enum log_level level)
{
    logger.journal = stderr_is_journal();
    logger.level = level;
}

void log_with_time(void)
{
    logger.timed = true;
}

void log_level(enum log_level level)
{
    logger.level = level;
}

void log_camera(const char *name)
{
    thread_camera = name;
}

void log_last(const char *text)
{
    char prefix[PREFIX_MAX];
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&room, 1, 0) == 0)
        return; // the process must end, not wait for a reader
    put_prefix(prefix, LOG_LEVEL_ERROR);
    struct iovec line[] = {
        {prefix, strlen(prefix)}, {(void *)text, strlen(text)}, {(void *)"\n", 1}};
    if (writev(STDERR_FILENO, line, 3) < 0)
        return; // nowhere left to report it
}

void log_flush(void)
{
    pthread_mutex_lock(&logger.mutex);
    int64_t now = monotonic_ns();
    for (struct speaker *s = logger.speakers; s < logger.speakers + SPEAKERS; s++)
        flush_repeats(s, now);
    pthread_mutex_unlock(&logger.mutex);
}
