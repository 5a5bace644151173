// Times of reordered pictures, with wrong timestamps.
#include "daemon/codec/packet_history.h"

#include <libavcodec/avcodec.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/rtsp/rtp_clock.h"
#include "daemon/source/libav_version.h"
#include "tests/test.h"

static const int64_t MS = 1000000, STEP_NS = 40000000;
enum { PICTURES = 120, TICKS = 3600 };

struct stream {
    const char *group; // a group's pictures in sending order; '0' is the first one shown
    bool stands_still; // all timestamps are equal
    int outlier;       // packet with a timestamp that is wrong by `off`; 0: none
    int64_t off;       // ticks
    int late;          // packets that the decoder needs before it returns a picture
};

struct outcome {
    int shown, back;  // pictures; times that did not rise
    int64_t off_ns;   // largest error of a time
    int64_t wrong_ns; // largest error with a correct timestamp
    struct packet_history history;
    struct rtp_clock clock;
};

// Returns the place of packet `i` in the order of showing.
static int place_of(const struct stream *s, int i)
{
    const int n = (int)strlen(s->group);
    return i == 0 ? 0 : (i - 1) / n * n + s->group[(i - 1) % n] - '0' + 1;
}

static int packet_of(const struct stream *s, int place)
{
    int i = 0;
    while (place_of(s, i) != place)
        i++;
    return i;
}

static void send_packet(struct outcome *o, const struct stream *s, int i, AVPacket *av)
{
    const int64_t ticks =
        s->stands_still ? 0 : (int64_t)place_of(s, i) * TICKS + (i && i == s->outlier ? s->off : 0);
    const int64_t came_ns = 5000 * MS + i * STEP_NS;
    const struct rtp_time time = rtp_clock_read(&o->clock, (uint32_t)ticks, came_ns, true);
    av->pts = time.ns;
    packet_history_add(
        &o->history,
        &(struct packet){
            .av = av, .pts_ns = time.ns, .received_ns = came_ns, .guessed = time.guessed},
        &(struct packet_facts){.serial = i + 1}, false);
}

static void show_picture(struct outcome *o, const struct stream *s, AVCodecContext *codec,
                         AVFrame *frame)
{
    static int64_t last_ns;
    const int i = packet_of(s, o->shown);
    bool harmed;
    libav_set_serial(frame, i + 1);
    frame->best_effort_timestamp = packet_history_info(&o->history, i + 1)->packet.pts_ns;
    const int64_t ns = packet_history_picture(&o->history, codec, frame, &harmed).pts_ns;
    const int64_t off_ns = llabs(ns - o->shown * STEP_NS);
    o->back += o->shown > 0 && ns <= last_ns;
    o->off_ns = off_ns > o->off_ns ? off_ns : o->off_ns;
    if (i != s->outlier && off_ns > o->wrong_ns)
        o->wrong_ns = off_ns;
    last_ns = ns;
    o->shown++;
}

// Shows each picture as soon as its turn has come.
static void play(struct outcome *o, const struct stream *s)
{
    AVPacket *packet = av_packet_alloc();
    AVFrame *frame = av_frame_alloc();
    AVCodecContext *codec = avcodec_alloc_context3(NULL);
    *o = (struct outcome){0};
    packet_history_begin(&o->history);
    rtp_clock_open(&o->clock, 90000);
    for (int i = 0; i < PICTURES; i++) {
        send_packet(o, s, i, packet);
        while (packet_of(s, o->shown) + s->late <= i)
            show_picture(o, s, codec, frame);
    }
    packet_history_finish(&o->history);
    avcodec_free_context(&codec);
    av_frame_free(&frame);
    av_packet_free(&packet);
}

static const char *const GROUPS[] = {"0", "10", "201", "3102", "73102546"};

// Constant timestamps, or one that is hours off, move no picture behind a later one.
static void test_rising_times(void)
{
    static const int64_t hours = INT64_C(90000) * 3600 * 3;
    static struct outcome o;
    for (size_t g = 0; g < sizeof GROUPS / sizeof *GROUPS; g++) {
        for (int late = 0; late < 5; late += 2) {
            struct stream s = {.group = GROUPS[g], .late = late, .stands_still = true};
            play(&o, &s);
            CHECK(o.back == 0 && o.shown > PICTURES - 20 && o.off_ns <= 16 * STEP_NS,
                  "%s, %d late: %d of %d back, %g ms off", s.group, late, o.back, o.shown,
                  (double)o.off_ns / 1e6);
            s.stands_still = false;
            play(&o, &s);
            CHECK(o.back == 0 && o.off_ns == 0, "%s: %d back", s.group, o.back);
            for (s.outlier = 10; s.outlier < 50; s.outlier++) {
                for (s.off = -hours; s.off <= hours; s.off += 2 * hours) {
                    play(&o, &s);
                    CHECK(o.back == 0 && o.off_ns <= 4 * STEP_NS && o.wrong_ns <= 4 * STEP_NS,
                          "%s, %d late, outlier %d: %d back, %g ms off, others %g ms", s.group,
                          late, s.outlier, o.back, (double)o.off_ns / 1e6,
                          (double)o.wrong_ns / 1e6);
                }
            }
        }
    }
}

int main(void)
{
    TEST(test_rising_times());
    return test_end();
}
