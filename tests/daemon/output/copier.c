// Copies of a camera's packets in files: a clip whose file cannot get its name is logged and left
// under its temporary name, the next one works, and a second finish changes nothing.
#include <dirent.h>
#include <errno.h>
#include <libavcodec/avcodec.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/output/sink.h"
#include "tests/test.h"

static const int64_t MS = 1000000;

static struct {
    uv_loop_t loop;
    uv_timer_t timer;
    char folder[64], path[128];
    struct output_config config;
    struct ledger ledger;
    struct last_error last_error;
    struct packet_queue *queue;
    struct sink *sink;
    int closed;
} rig;

static bool names_fail;

// Replaces libc's.
int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    if (names_fail) {
        errno = EACCES;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

static void was_closed(void *unused)
{
    (void)unused;
    rig.closed++;
}

static void open_rig(void)
{
    char why[256];
    memset(&rig, 0, sizeof rig);
    snprintf(rig.folder, sizeof rig.folder, "/tmp/framed-copier.XXXXXX");
    CHECK(mkdtemp(rig.folder) != NULL, "mkdtemp");
    snprintf(rig.path, sizeof rig.path, "%s/%%s.mp4", rig.folder);
    rig.config = (struct output_config){
        .name = "clips",
        .kernel = KERNEL_COPY,
        .sink = {.kind = SINK_FILE, .path = rig.path, .timed = true},
        .protocol = PROTOCOL_MP4,
        .mode = {0660},
    };
    const struct packet_queue_options options = {
        .before_ns = 1000 * MS,
        .before_bytes_max = 1 << 20,
        .bytes_max = 1 << 20,
        .ledger = &rig.ledger,
    };
    CHECK(packet_queue_open(&rig.queue, &options) == 0, "queue");
    uv_loop_init(&rig.loop);
    uv_timer_init(&rig.loop, &rig.timer);
    const struct sink_context context = {
        .loop = &rig.loop,
        .camera = "gate",
        .config = &rig.config,
        .packets = rig.queue,
        .ledger = &rig.ledger,
        .last_error = &rig.last_error,
        .closed = was_closed,
    };
    CHECK(sink_open(&rig.sink, &context, why, sizeof why) == 0, "%s", why);
    packet_queue_set_sink(rig.queue, POOL_SINK_OPEN);
}

static void time_is_over(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

static void run_for(int ms)
{
    uv_timer_start(&rig.timer, time_is_over, (uint64_t)ms, 0);
    uv_run(&rig.loop, UV_RUN_DEFAULT);
}

// Adds a JPEG picture with a header of 64x48 and nothing more.
static void add_picture(int64_t capture_s)
{
    static const uint8_t header[] = {0xff, 0xd8, 0xff, 0xc0, 0, 11, 8, 0, 48, 0, 64, 1, 1, 0x11, 0};
    static const _Atomic bool stop;
    AVPacket *av = av_packet_alloc();
    AVCodecParameters *stream = avcodec_parameters_alloc();
    CHECK(av && stream && av_new_packet(av, sizeof header) == 0, "memory");
    memcpy(av->data, header, sizeof header);
    av->flags = AV_PKT_FLAG_KEY;
    stream->codec_type = AVMEDIA_TYPE_VIDEO;
    stream->codec_id = AV_CODEC_ID_MJPEG;
    const int64_t now_ns = monotonic_ns();
    const struct packet packet = {.av = av,
                                  .pts_ns = now_ns,
                                  .received_ns = now_ns,
                                  .capture_ns = capture_s * 1000 * MS,
                                  .keyframe = true};
    packet_queue_add(rig.queue, &packet, stream, &stop);
    av_packet_free(&av);
    avcodec_parameters_free(&stream);
}

// Records a clip of three pictures.
static void record_clip(int64_t capture_s)
{
    CHECK(packet_queue_request(rig.queue, monotonic_ns() + 200 * MS), "no clip");
    for (int i = 0; i < 3; i++) {
        add_picture(capture_s);
        usleep(20000);
    }
    run_for(1500);
}

static bool has_file(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", rig.folder, name);
    return access(path, F_OK) == 0;
}

static void close_rig(void)
{
    char command[128];
    uv_close((uv_handle_t *)&rig.timer, NULL);
    uv_run(&rig.loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&rig.loop) == 0, "handles are left on the loop");
    packet_queue_close(rig.queue);
    CHECK(ledger_in_flight(&rig.ledger) == 0, "%d packets unaccounted for",
          (int)ledger_in_flight(&rig.ledger));
    snprintf(command, sizeof command, "rm -r '%s'", rig.folder);
    CHECK(system(command) == 0, "%s", command);
}

static void test_clip_without_name(void)
{
    open_rig();
    names_fail = true;
    record_clip(100);
    CHECK(strstr(rig.last_error.text, "cannot finish") &&
              strstr(rig.last_error.text, "100.mp4.part: Permission denied"),
          "said: '%s'", rig.last_error.text);
    CHECK(has_file("100.mp4.part"), "no file under its temporary name");
    names_fail = false;
    rig.last_error.text[0] = 0;
    record_clip(2000);
    CHECK(has_file("2000.mp4") && !*rig.last_error.text, "'%s'", rig.last_error.text);
    CHECK(rig.ledger.emitted == rig.ledger.offered && rig.ledger.emitted >= 6, "%d of %d",
          (int)rig.ledger.emitted, (int)rig.ledger.offered);
    sink_finish(rig.sink, 1000);
    run_for(1000);
    CHECK(rig.closed == 1, "closed %d times", rig.closed);
    close_rig();
}

static void test_second_finish(void)
{
    open_rig();
    CHECK(packet_queue_request(rig.queue, monotonic_ns() + 60000 * MS), "no clip");
    add_picture(1);
    run_for(700);
    sink_finish(rig.sink, 1000);
    sink_finish(rig.sink, 10);
    add_picture(1);
    run_for(1000);
    CHECK(rig.closed == 1 && has_file("1.mp4"), "closed %d times", rig.closed);
    CHECK(rig.ledger.emitted == 1 && rig.ledger.lost[LOSS_STOPPING] == 1, "%d, %d",
          (int)rig.ledger.emitted, (int)rig.ledger.lost[LOSS_STOPPING]);
    close_rig();
}

int main(void)
{
    log_open(LOG_LEVEL_ERROR);
    TEST(test_clip_without_name());
    TEST(test_second_finish());
    return test_end();
}
