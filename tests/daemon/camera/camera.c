// A camera's thread from start to end, with inputs that end, never come, or continue at another
// time, and with a device that fails or is full.
#include "daemon/camera/camera.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "daemon/base/clock.h"
#include "tests/daemon/clips.h"

enum { PATIENCE_MS = 600 }; // for the first attempt to end; the next one comes after 800 ms or more

struct fixture {
    uv_loop_t loop;
    uv_timer_t timer;
    struct backend_driver driver; // acts as cuda: the CPU's, with functions that a test replaces
    struct config top;
    struct devices *devices;
    struct login_pause *logins;
    struct event_queue *events;
    struct histogram decode, process;
    struct output_config output;
    struct camera_config config;
    struct camera camera;
    struct consumer consumer;
    int state; // at the end, or when the time was up
};

static struct duration ms(int n)
{
    return (struct duration){n * INT64_C(1000000)};
}

static struct fixture *configure(const char *url)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->driver = cpu_backend;
    f->driver.name = "cuda";
    f->top.cpu.workers = 1;
    f->output = (struct output_config){.name = "all",
                                       .kernel = KERNEL_YUV,
                                       .format = PIXEL_YUV420P,
                                       .overflow = OVERFLOW_WAIT,
                                       .slots = 128};
    f->config = (struct camera_config){.name = "gate",
                                       .url = (char *)url,
                                       .decode.by = DECODE_CPU,
                                       .threads = 1,
                                       .connect_timeout = ms(200),
                                       .media_timeout = ms(200),
                                       .close_timeout = ms(200),
                                       .outputs = &f->output,
                                       .n_outputs = 1};
    f->state = -1;
    return f;
}

static void time_is_up(uv_timer_t *timer)
{
    struct fixture *f = timer->data;
    f->state = atomic_load(&f->camera.report.state);
    camera_stop(&f->camera);
}

static void ended(struct event *letter)
{
    struct fixture *f =
        ((struct camera *)((char *)letter - offsetof(struct camera, ended)))->context.opaque;
    camera_join(&f->camera);
    if (f->state < 0)
        f->state = atomic_load(&f->camera.report.state);
    uv_close((uv_handle_t *)&f->timer, NULL);
    event_queue_close(f->events);
}

// Runs the camera to its end, or for `limit` milliseconds.
static void run(struct fixture *f, int limit)
{
    uv_loop_init(&f->loop);
    CHECK(devices_open_with(&f->devices, &f->top, &f->driver, &cpu_backend) == 0, "devices");
    CHECK(event_queue_open(&f->events, &f->loop) == 0, "events");
    struct camera_context context = {.devices = f->devices,
                                     .logins = f->logins,
                                     .events = f->events,
                                     .decode = &f->decode,
                                     .process = &f->process,
                                     .ended = ended,
                                     .opaque = f};
    CHECK(camera_open(&f->camera, &f->config, &context) == 0, "open");
    pool_attach(f->camera.subscriptions->list[0].output->pool, &f->consumer);
    uv_timer_init(&f->loop, &f->timer);
    f->timer.data = f;
    uv_timer_start(&f->timer, time_is_up, (uint64_t)limit, 0);
    CHECK(camera_start(&f->camera) == 0, "start");
    uv_run(&f->loop, UV_RUN_DEFAULT);
}

static void end(struct fixture *f)
{
    camera_close(&f->camera);
    login_pause_close(f->logins);
    devices_close(f->devices);
    uv_loop_close(&f->loop);
    free(f);
}

static void comes_to(struct fixture *f, enum camera_state state)
{
    run(f, PATIENCE_MS);
    CHECK(f->state == (int)state, "%s: %s, not %s", f->config.url, camera_state_name(f->state),
          camera_state_name((int)state));
    end(f);
}

// --- inputs that give nothing

static void *hang_up(void *listener)
{
    int client = accept(*(int *)listener, NULL, NULL);
    close(client);
    return NULL;
}

// A peer that accepts the connection and closes it, before or after it described its stream.
static void test_hang_up(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof name;
    pthread_t server;
    char url[64];
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener, (void *)&name, sizeof name) == 0 && listen(listener, 1) == 0, "%s",
          strerror(errno));
    getsockname(listener, (void *)&name, &length);
    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", ntohs(name.sin_port));
    pthread_create(&server, NULL, hang_up, &listener);
    struct fixture *f = configure(url);
    f->config.demuxer = "mpegts";
    comes_to(f, CAMERA_RETRYING);
    pthread_join(server, NULL);
    close(listener);
}

static void test_nothing_in_it(void)
{
    char url[32];
    int ends[2];
    CHECK(mkfifo("fifo", 0600) == 0, "%s", strerror(errno));
    comes_to(configure("fifo"), CAMERA_RETRYING); // nobody writes to it yet
    clips_run(": > empty.flv");
    struct fixture *f = configure("empty.flv");
    f->config.demuxer = "flv";
    comes_to(f, CAMERA_FAILED);
    CHECK(pipe(ends) == 0, "%s", strerror(errno));
    snprintf(url, sizeof url, "pipe:%d", ends[0]);
    comes_to(configure(url), CAMERA_RETRYING); // nor to this
    close(ends[1]);
    comes_to(configure(url), CAMERA_FAILED); // a pipe does not come back
    close(ends[0]);
}

// A stream falls silent: pictures that the decoder held for reordering come out all the same.
static void test_silence(void)
{
    char url[32];
    int ends[2];
    size_t size;
    clips_make("64x48", 100, "-c:v libx264 -bf 3 -b:v 100k", "held.nut");
    unsigned char *bytes = clips_read("held.nut", &size);
    CHECK(pipe(ends) == 0 && write(ends[1], bytes, size) == (ssize_t)size, "%zu bytes", size);
    free(bytes);
    snprintf(url, sizeof url, "pipe:%d", ends[0]);
    struct fixture *f = configure(url);
    run(f, PATIENCE_MS);
    const struct ledger *ledger = &f->camera.subscriptions->list[0].output->ledger;
    CHECK(f->state == CAMERA_RETRYING && ledger->offered == 100, "%s, %d offered",
          camera_state_name(f->state), (int)ledger->offered);
    end(f);
    close(ends[0]);
    close(ends[1]);
}

static void take_nothing(struct preview_reader *reader, struct preview_picture *picture)
{
    (void)reader, (void)picture;
}

// A viewer who comes after the end gets no picture, and the thread no list: its device may be on
// its way to be released.
static void test_viewer_after_the_end(void)
{
    struct preview_reader reader = {.kind = {.plane = -1, .width = 64, .fps = 1},
                                    .take = take_nothing};
    struct work_queue work = {0};
    struct subscriptions *given;
    struct previews *previews;
    struct fixture *f = configure("empty.flv");
    f->config.demuxer = "flv";
    run(f, PATIENCE_MS);
    CHECK(previews_open(&previews, &f->loop, &work) == 0, "previews");
    f->camera.preview.previews = previews;
    CHECK(preview_start(&f->camera.preview, &reader) == 0, "start");
    CHECK(f->camera.outputs == f->camera.subscriptions, "the list of viewers is served");
    CHECK(subscriptions_open(&given, "gate", &f->config, f->camera.subscriptions, NULL) == 0,
          "given");
    camera_subscribe(&f->camera, given); // a reload before the release
    camera_released(&f->camera);
    CHECK(f->camera.outputs == f->camera.subscriptions, "and after the release, too");
    preview_stop(&reader);
    camera_close(&f->camera);
    previews_stop(previews);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    previews_close(previews);
    end(f);
}

// A camera that lets another one of its host try the password first is not said to be refused.
static void test_waits_for_its_host(void)
{
    struct login other;
    struct fixture *f = configure("rtsp://a:b@127.0.0.1:1/");
    CHECK(login_pause_open(&f->logins, NULL, monotonic_ns(), realtime_ns()) == 0, "logins");
    login_pause_identify(f->logins, "rtsp://c:d@127.0.0.1/", &other);
    login_pause_until(f->logins, &other, monotonic_ns());
    comes_to(f, CAMERA_CONNECTING);
}

// A loop over no pictures must not spin.
static void test_loop_over_nothing(void)
{
    clips_run("printf 'YUV4MPEG2 W64 H48 F25:1 Ip A1:1 C420jpeg\\n' > empty.y4m");
    struct fixture *f = configure("empty.y4m");
    f->config.loop = true;
    comes_to(f, CAMERA_RETRYING);
}

// --- pictures that reach the outputs

// A camera's clock may be set back: `fps` must not wait until the old time is reached again.
static void test_time_jumps_back(void)
{
    for (int offset = 100; offset >= 60; offset -= 40)
        clips_run(FFMPEG "-f lavfi -i testsrc2=size=64x48:rate=25 -frames:v 50 -c:v mpeg2video "
                         "-output_ts_offset %d %d.ts",
                  offset, offset);
    clips_run("cat 100.ts 60.ts > jump.ts");
    struct fixture *f = configure("jump.ts");
    f->output.fps = 5;
    run(f, 10000);
    const struct output *output = f->camera.subscriptions->list[0].output;
    CHECK(f->state == CAMERA_ENDED, "%s", camera_state_name(f->state));
    uint64_t offered = output->ledger.offered, thinned = output->ledger.lost[LOSS_THINNED];
    CHECK(offered == 100 && thinned == 80, "%d offered, %d thinned", (int)offered, (int)thinned);
    uint32_t epoch = 0;
    for (struct result *result; (result = pool_acquire(output->pool, &f->consumer));) {
        epoch = result->item[0].frame.epoch;
        pool_release(output->pool, &f->consumer, true);
    }
    CHECK(epoch == 1, "no new epoch");
    end(f);
}

// A reload plans with the camera's real packet sizes, not with assumed ones.
static void test_large_packets(void)
{
    clips_make("64x48", 10, "-c:v rawvideo -pix_fmt yuv420p", "raw.avi");
    struct fixture *f = configure("raw.avi");
    run(f, 10000);
    const int bytes = camera_report_describe(&f->camera.report).memory.packet_bytes,
              picture = 64 * 48 * 3 / 2;
    CHECK(bytes > picture * 9 / 10 && bytes < picture * 3 / 2, "%d, not %d", bytes, picture);
    end(f);
}

// Overwrites the data of pictures 4 and 5 of a clip.
static void spoil(const char *file)
{
    size_t size;
    unsigned char *bytes = clips_read(file, &size);
    int n = 0;
    for (size_t at = 0; at + 8 < size && n <= 5; at++) {
        if (memcmp(bytes + at, "00dc", 4) != 0)
            continue;
        size_t length = bytes[at + 4] | (size_t)bytes[at + 5] << 8;
        if (n++ >= 4)
            memset(bytes + at + 8, 0x11, length);
    }
    FILE *out = fopen(file, "wb");
    CHECK(out && fwrite(bytes, 1, size, out) == size, "%s", file);
    fclose(out);
    free(bytes);
}

// An undecodable packet that is a whole picture is a lost frame.
static void test_undecodable(void)
{
    clips_make("64x48", 10, "-c:v mjpeg", "spoilt.avi");
    spoil("spoilt.avi");
    struct fixture *f = configure("spoilt.avi");
    run(f, 10000);
    const struct ledger *ledger = &f->camera.subscriptions->list[0].output->ledger;
    CHECK(ledger->offered == 10 && ledger->lost[LOSS_DAMAGED] == 2, "%d offered, %d damaged",
          (int)ledger->offered, (int)ledger->lost[LOSS_DAMAGED]);
    end(f);
}

// --- the device

// Counts the ready frames from `from` on, up to the end or the first lost one.
static int ready_from(struct fixture *f, uint64_t from)
{
    struct pool *pool = f->camera.subscriptions->list[0].output->pool;
    int n = 0;
    struct result *result;
    while ((result = pool_acquire(pool, &f->consumer)) && result->item[0].sequence == from) {
        pool_release(pool, &f->consumer, true);
        from++;
        n++;
    }
    if (result)
        pool_lend(pool, &f->consumer, false); // for the next call
    return n;
}

static _Atomic int jobs;

static int fifth_submit_fails(struct plan *plan, struct job *job)
{
    return atomic_fetch_add(&jobs, 1) < 4 ? cpu_backend.submit(plan, job) : -EIO;
}

// The CPU takes over in mid-stream.
static void test_device_fails(void)
{
    clips_make("64x48", 30, "-c:v mpeg2video -bf 2", "fails.ts");
    struct fixture *f = configure("fails.ts");
    f->driver.submit = fifth_submit_fails;
    run(f, 10000);
    const struct ledger *ledger = &f->camera.subscriptions->list[0].output->ledger;
    CHECK(f->state == CAMERA_ENDED, "%s", camera_state_name(f->state));
    CHECK(devices_fallbacks(f->devices) == 1, "%d fallbacks", (int)devices_fallbacks(f->devices));
    CHECK(ready_from(f, 0) == 4 && ready_from(f, 5) == 25, "the fifth alone is missing");
    CHECK(ledger->offered == 30 && ledger->lost[LOSS_BACKEND] == 1, "%d offered, %d lost",
          (int)ledger->offered, (int)ledger->lost[LOSS_BACKEND]);
    end(f);
}

static struct memory_need need_by_width(const struct image *src, const struct op *const ops[],
                                        int n, int depth)
{
    (void)ops, (void)n, (void)depth;
    return (struct memory_need){.device = (size_t)src->width};
}

static size_t hundred_bytes(struct backend *backend)
{
    (void)backend;
    return 100;
}

static int plans; // of the device

static int counted_plan(struct backend *backend, struct plan **ret, const struct image *src,
                        const struct op *const ops[], int n, int depth)
{
    plans++;
    return cpu_backend.plan_open(backend, ret, src, ops, n, depth);
}

// The device has room for the small pictures at both ends, not for the large ones between them.
static void test_device_is_full(void)
{
    clips_make("64x48", 10, "-c:v mjpeg", "small.mjpeg");
    clips_make("128x96", 10, "-c:v mjpeg", "large.mjpeg");
    clips_run("cat small.mjpeg large.mjpeg small.mjpeg > sizes.mjpeg");
    struct fixture *f = configure("sizes.mjpeg");
    f->driver.plan_need = need_by_width;
    f->driver.device_bytes = hundred_bytes;
    f->driver.plan_open = counted_plan;
    run(f, 10000);
    const struct ledger *ledger = &f->camera.subscriptions->list[0].output->ledger;
    CHECK(f->state == CAMERA_ENDED, "%s", camera_state_name(f->state));
    CHECK(devices_fallbacks(f->devices) == 0, "a full device is no failure");
    CHECK(ready_from(f, 0) == 10 && ready_from(f, 11) == 19, "the first large one is missing");
    CHECK(ledger->offered == 30 && ledger->lost[LOSS_BACKEND] == 1, "%d offered, %d lost",
          (int)ledger->offered, (int)ledger->lost[LOSS_BACKEND]);
    CHECK(plans == 2, "%d plans on the device", plans);
    end(f);
}

static const struct stage_watch *watched; // NULL: not yet
static int stage_of_unpin = -1;

static int pin_nothing(struct backend *backend, void *memory, size_t bytes)
{
    (void)backend, (void)memory, (void)bytes;
    return 0;
}

static void note_stage(struct backend *backend, void *memory)
{
    (void)backend, (void)memory;
    if (watched)
        stage_of_unpin = atomic_load(&watched->stage);
}

// A driver may hang in it; only the watchdog would notice.
static void test_release_is_watched(void)
{
    clips_make("64x48", 5, "-c:v mjpeg", "short.avi");
    struct fixture *f = configure("short.avi");
    f->driver.pin = pin_nothing;
    f->driver.unpin = note_stage;
    run(f, 10000);
    watched = &f->camera.report.stages;
    camera_release_device(&f->camera);
    CHECK(stage_of_unpin == STAGE_CHANGE_DEVICE, "in stage %d", stage_of_unpin);
    CHECK(atomic_load(&watched->stage) == STAGE_IDLE, "in stage %d afterwards",
          atomic_load(&watched->stage));
    watched = NULL;
    end(f);
}

int main(void)
{
    clips_open();
    TEST(test_hang_up());
    TEST(test_nothing_in_it());
    TEST(test_viewer_after_the_end());
    TEST(test_silence());
    TEST(test_waits_for_its_host());
    TEST(test_loop_over_nothing());
    TEST(test_time_jumps_back());
    TEST(test_large_packets());
    TEST(test_undecodable());
    TEST(test_device_fails());
    TEST(test_device_is_full());
    TEST(test_release_is_watched());
    clips_close();
    return test_end();
}
