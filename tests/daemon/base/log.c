#include "daemon/base/log.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "tests/daemon/recorded_log.h"

// Removes the lines' timestamps; returns false if one is missing.
static bool strip_times(char *text)
{
    char *to = text;
    bool all = true;
    for (char *line = text, *next; *line; line = next) {
        size_t n = strcspn(line, "\n");
        next = line + n + (line[n] == '\n');
        const bool timed = n > LOG_TIME && line[10] == 'T' && line[19] == '.' && line[23] == 'Z' &&
                           line[24] == ' ';
        char *from = timed ? line + LOG_TIME : line;
        all &= timed;
        memmove(to, from, (size_t)(next - from));
        to += next - from;
    }
    *to = 0;
    return all;
}

static void expect(const char *expected)
{
    const char *text = log_text();
    if (expected[0] && expected[0] != '<')
        CHECK(strip_times(written), "lines without a time:\n%s", text);
    CHECK(!strcmp(text, expected), "got:\n%swanted:\n%s", text, expected);
}

static void test_time(void)
{
    static const struct {
        int64_t ms;
        const char *text;
    } times[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {951782399999, "2000-02-28T23:59:59.999Z"},
        {951782400000, "2000-02-29T00:00:00.000Z"},
        {951868800000, "2000-03-01T00:00:00.000Z"},
        {1735689599001, "2024-12-31T23:59:59.001Z"},
        {1795330737042, "2026-11-22T06:58:57.042Z"},
        {4107542400000, "2100-03-01T00:00:00.000Z"},
    };
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        char text[LOG_TIME];
        log_time(text, times[i].ms * 1000000 + 999999);
        CHECK(!strcmp(text, times[i].text), "%s, not %s", text, times[i].text);
    }
}

static void test_lines(void)
{
    record();
    log_event(LOG_LEVEL_INFO, "listening on %d sockets", 2);
    log_camera("gate");
    log_event(LOG_LEVEL_WARNING, "gone");
    log_event(LOG_LEVEL_DEBUG, "not at this level");
    log_level(LOG_LEVEL_DEBUG);
    log_event(LOG_LEVEL_DEBUG, "two\nlines, one \033[1mevent\n");
    log_level(LOG_LEVEL_INFO);
    log_camera(NULL);
    expect("info listening on 2 sockets\n"
           "warning camera=gate gone\n"
           "debug camera=gate two lines, one ?[1mevent\n");
}

static void test_repeats(void)
{
    record();
    for (int i = 0; i < 4; i++) {
        log_camera("door");
        log_event(LOG_LEVEL_INFO, "late");
        log_camera("yard");
        log_event(LOG_LEVEL_INFO, i == 2 ? "early" : "late");
    }
    log_flush();
    log_flush();
    log_camera(NULL);
    expect("info camera=door late\n"
           "info camera=yard late\n"
           "info camera=yard late (repeated 1 time)\n"
           "info camera=yard early\n"
           "info camera=yard late\n"
           "info camera=door late (repeated 3 times)\n");
}

static void test_secrets(void)
{
    static const char *const lines[] = {
        "cannot open rtsp://viewer:geheim@10.0.0.5/stream1: refused",
        "url='rtsp://viewer:ge@he/im@10.0.0.5/' is bad",
        "GET /video?user=viewer&password=geheim&x=1 failed",
        "http://cam/video?a=1&pwd=geheim",
        "sent Authorization: Basic Z2VoZWlt geheim",
        "two: rtsp://a:geheim@h/ and rtsp://b:geheim@h/",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        record();
        log_event(LOG_LEVEL_ERROR, "%s", lines[i]);
        const char *text = log_text();
        CHECK(!strstr(text, "geheim") && !strstr(text, "he/im") && !strstr(text, "Z2Vo"), "%s",
              text);
    }
    record();
    log_event(LOG_LEVEL_ERROR,
              "cannot open rtsp://viewer:geheim@10.0.0.5/stream1: refused, 3 tries");
    expect("error cannot open rtsp://10.0.0.5/stream1: refused, 3 tries\n");
}

static void test_long_line(void)
{
    static char word[5000];
    memset(word, 'x', sizeof(word) - 1);
    record();
    log_event(LOG_LEVEL_INFO, "%s", word);
    log_event(LOG_LEVEL_INFO, "a=%s rtsp://u:geheim@%s", word, word);
    const char *text = log_text();
    CHECK(strlen(text) > 1000 && strlen(text) < 2500, "%zu", strlen(text));
    CHECK(!strstr(text, "geheim"), "%s", text);
}

static void test_journal(void)
{
    struct stat st;
    char stream[64];
    record();
    fstat(STDERR_FILENO, &st);
    snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    log_open(LOG_LEVEL_INFO);
    log_camera("gate");
    log_event(LOG_LEVEL_ERROR, "gone for good");
    log_event(LOG_LEVEL_INFO, "back");
    log_camera(NULL);
    expect("<3>camera=gate gone for good\n<6>camera=gate back\n");
    log_open(LOG_LEVEL_INFO); // stderr is another file again
    record();
    log_event(LOG_LEVEL_INFO, "plain");
    expect("info plain\n");
    unsetenv("JOURNAL_STREAM");
}

static void *chatter(void *name)
{
    log_camera(name);
    for (int i = 0; i < 500; i++)
        log_event(LOG_LEVEL_INFO, "number %d of many", i);
    return NULL;
}

static void test_threads(void)
{
    static char names[4][2] = {"a", "b", "c", "d"};
    pthread_t threads[4];
    int lines = 0, whole = 0;
    record();
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, chatter, names[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    log_text();
    CHECK(strip_times(written), "lines without a time");
    for (char *line = strtok(written, "\n"); line; line = strtok(NULL, "\n"), lines++)
        whole += !strncmp(line, "info camera=", 12) && strstr(line, " of many") &&
                 strlen(line) <= strlen("info camera=a number 499 of many");
    CHECK(lines == 2000 && whole == 2000, "%d lines, %d of them whole", lines, whole);
}

// A stalled reader of the log loses lines, but never blocks the daemon's threads.
static void test_stalled_reader(void)
{
    char bytes[4096] = "";
    int ends[2], many = 0;
    CHECK(pipe(ends) == 0 && fcntl(ends[1], F_SETPIPE_SZ, 4096) == 4096, "pipe");
    CHECK(write(ends[1], bytes, sizeof(bytes)) == sizeof(bytes), "fill");
    dup2(ends[1], STDERR_FILENO);
    alarm(10); // if it blocks
    for (; many < 1000; many++)
        log_event(LOG_LEVEL_INFO, "unread %d", many);
    CHECK(read(ends[0], bytes, sizeof(bytes)) == sizeof(bytes), "make room");
    log_event(LOG_LEVEL_INFO, "read again");
    ssize_t n = read(ends[0], bytes, sizeof(bytes) - 1);
    alarm(0);
    dup2(terminal, STDERR_FILENO);
    bytes[n > 0 ? n : 0] = 0;
    CHECK(strip_times(bytes) && !strcmp(bytes, "info read again\n"), "%s", bytes);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    log_record_open();
    unsetenv("JOURNAL_STREAM");
    log_open(LOG_LEVEL_INFO);
    log_with_time();
    TEST(test_time());
    TEST(test_lines());
    TEST(test_repeats());
    TEST(test_secrets());
    TEST(test_long_line());
    TEST(test_journal());
    TEST(test_threads());
    TEST(test_stalled_reader());
    return test_end();
}
