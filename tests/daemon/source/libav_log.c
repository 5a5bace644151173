#include "daemon/source/libav_log.h"

#include <libavutil/log.h>

#include "daemon/base/log.h"
#include "tests/daemon/recorded_log.h"

static void expect(const char *expected)
{
    const char *text = log_text();
    CHECK(!strcmp(text, expected), "got:\n%swanted:\n%s", text, expected);
}

static bool taken(bool *fact)
{
    const bool was = *fact;
    *fact = false;
    return was;
}

static void test_facts(void)
{
    struct libav_thread *thread = libav_thread();
    record();
    av_log(NULL, AV_LOG_WARNING, "jitter buffer full\n");
    CHECK(!thread->data_missing && !thread->cut_short && !thread->packets_late, "no fact");
    av_log(NULL, AV_LOG_WARNING, "RTP: missed %d packets\n", 3);
    CHECK(taken(&thread->data_missing), "packets");
    av_log(NULL, AV_LOG_ERROR, "Could not find ref with POC %d\n", 7);
    CHECK(taken(&thread->data_missing), "a picture");
    av_log(NULL, AV_LOG_WARNING, "%s: partial file\n", "clip");
    CHECK(taken(&thread->cut_short), "cut short");
    av_log(NULL, AV_LOG_ERROR, "File ended prematurely at pos. %d\n", 7);
    CHECK(taken(&thread->cut_short), "cut short");
    av_log(NULL, AV_LOG_WARNING, "RTP: dropping old packet received too late\n");
    CHECK(thread->packets_late == 1, "%u", thread->packets_late);
    CHECK(!thread->data_missing && !thread->cut_short, "each message is one fact");
    expect("");
}

static void test_lines(void)
{
    record();
    av_log(NULL, AV_LOG_ERROR, "rtsp://u:geheim@h/ broke\n"); // a detail: not at this level
    log_level(LOG_LEVEL_DEBUG);
    log_camera("gate");
    av_log(NULL, AV_LOG_ERROR, "rtsp://u:geheim@h/ ");
    av_log(NULL, AV_LOG_ERROR, "broke\n");
    av_log(NULL, AV_LOG_INFO, "Stream #0\n");
    log_camera(NULL);
    log_level(LOG_LEVEL_INFO);
    expect("debug camera=gate libav: rtsp://h/ broke\n");
}

// A camera answers with the password, and libav prints that in several pieces.
static void test_secrets(void)
{
    static const char clean[] = "failed: 401 you are *** with ***, response=***";
    struct camera_config camera = {.url = "rtsp://viewer:ge%20heim@10.0.0.5/"};
    struct secrets *secrets = NULL;
    CHECK(secrets_open(&secrets, &camera) == 0, "open");
    record();
    log_level(LOG_LEVEL_DEBUG);
    libav_thread()->secrets = secrets;
    av_log(NULL, AV_LOG_ERROR, "failed: 401 you are viewer:ge%%20he");
    av_log(NULL, AV_LOG_ERROR, "im with ge heim, response=\"0a1b\"\n");
    CHECK(!strcmp(libav_thread()->last_error, clean), "%s", libav_thread()->last_error);
    libav_thread()->secrets = NULL;
    log_level(LOG_LEVEL_INFO);
    expect("debug libav: failed: 401 you are *** with ***, response=***\n");
    secrets_close(secrets);
}

// libav puts the context's name before a message.
static void test_address(void)
{
    static const AVClass class = {.class_name = "rtsp", .item_name = av_default_item_name};
    const AVClass *context = &class;
    record();
    av_log(&context, AV_LOG_ERROR, "method DESCRIBE failed: 404\n");
    CHECK(!strcmp(libav_thread()->last_error, "method DESCRIBE failed: 404"), "%s",
          libav_thread()->last_error);
    expect("");
}

int main(void)
{
    log_record_open();
    unsetenv("JOURNAL_STREAM");
    log_open(LOG_LEVEL_INFO);
    libav_log_open();
    TEST(test_facts());
    TEST(test_lines());
    TEST(test_secrets());
    TEST(test_address());
    return test_end();
}
