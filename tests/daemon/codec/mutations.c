// Clips with bytes changed, cut out, repeated, zeroed and cut off, as successive connections of a
// camera: no crash, no long run, and every frame is accounted for. MUTATIONS sets the number per
// clip (20), SEED selects them.
#include <errno.h>
#include <signal.h>

#include "config/load.h"
#include "daemon/base/log.h"
#include "daemon/camera/camera.h"
#include "daemon/source/libav_log.h"
#include "tests/daemon/clips.h"
#include "tests/kernels/picture.h"

enum {
    PICTURES = 24,
    CONNECTIONS = 10, // of one camera
    LIMIT_S = 20,     // for one, in a build with sanitizers on a busy machine
};

static const struct {
    const char *file, *encoder;
} codecs[] = {
    {"h264.mp4", "-c:v libx264 -bf 2 -g 6 -pix_fmt yuv420p -movflags +faststart"},
    {"h264.ts", "-c:v libx264 -bf 0 -g 6 -pix_fmt yuv420p"},
    {"hevc.mp4",
     "-c:v libx265 -x265-params log-level=error:keyint=6 -pix_fmt yuv420p -movflags +faststart"},
    {"vp9.webm", "-c:v libvpx-vp9 -g 6 -pix_fmt yuv420p"},
    {"mjpeg.avi", "-c:v mjpeg -pix_fmt yuvj422p"},
};

// --- mutations of a clip

struct bytes_of {
    unsigned char *data;
    size_t n, room;
};

struct run_of {
    size_t at, n;
};

static struct run_of some(struct random *random, const struct bytes_of *clip, size_t most)
{
    struct run_of run;
    run.at = random_next(random) % clip->n;
    run.n = 1 + random_next(random) % most;
    if (run.n > clip->n - run.at)
        run.n = clip->n - run.at;
    return run;
}

static void flip_bits(struct random *random, struct bytes_of *clip)
{
    for (int i = random_in(random, 1, 20); i > 0; i--)
        clip->data[random_next(random) % clip->n] ^= (unsigned char)(1 << random_in(random, 0, 7));
}

static void replace(struct random *random, struct bytes_of *clip)
{
    struct run_of run = some(random, clip, 64);
    for (size_t i = 0; i < run.n; i++)
        clip->data[run.at + i] = (unsigned char)random_next(random);
}

static void zero(struct random *random, struct bytes_of *clip)
{
    struct run_of run = some(random, clip, 1 + clip->n / 16);
    memset(clip->data + run.at, 0, run.n);
}

static void cut_out(struct random *random, struct bytes_of *clip)
{
    struct run_of run = some(random, clip, 1 + clip->n / 16);
    memmove(clip->data + run.at, clip->data + run.at + run.n, clip->n - run.at - run.n);
    clip->n -= run.n;
}

static void repeat(struct random *random, struct bytes_of *clip)
{
    struct run_of run = some(random, clip, 1 + clip->n / 16);
    if (run.n > clip->room - clip->n)
        return;
    memmove(clip->data + run.at + run.n, clip->data + run.at, clip->n - run.at);
    clip->n += run.n;
}

static void truncate_at(struct random *random, struct bytes_of *clip)
{
    clip->n = random_next(random) % clip->n;
}

static void mutate(struct random *random, struct bytes_of *clip)
{
    static void (*const ways[])(struct random *, struct bytes_of *) = {
        flip_bits, replace, zero, cut_out, repeat, truncate_at};
    for (int i = random_in(random, 1, 3); i > 0 && clip->n > 0; i--)
        ways[random_in(random, 0, 5)](random, clip);
}

static void write_mutation(const char *file, const unsigned char *data, size_t n,
                           struct random *random)
{
    struct bytes_of clip = {malloc(2 * n), n, 2 * n};
    FILE *to = fopen(file, "wb");
    if (!clip.data || !to)
        abort();
    memcpy(clip.data, data, n);
    mutate(random, &clip);
    CHECK(fwrite(clip.data, 1, clip.n, to) == clip.n, "%s", file);
    fclose(to);
    free(clip.data);
}

// --- a camera

struct fixture {
    struct config *config;
    struct devices *devices;
    uv_loop_t loop;
    struct event_queue *events;
    struct subscriptions *kept; // the camera's outputs, which live longer
    struct output *output[2];
    struct consumer consumer[2]; // one per output
    struct histogram decode, process;
    struct camera camera;
};

static void start(struct fixture *f, enum damaged damaged, int threads)
{
    static const char text[] = "cameras: {c: {url: clip, connect_timeout: 2s, outputs: {"
                               "w: {size: 32x32, slots: 32, sink: 'tcp:0'}, "
                               "y: {kernel: yuv, slots: 32, sink: 'tcp:0'}}}}";
    *f = (struct fixture){0};
    CHECK(config_load_text(&f->config, text, strlen(text), "test", stderr) == 0, "config");
    f->config->cameras->damaged = damaged;
    f->config->cameras->threads = threads;
    CHECK(devices_open_with(&f->devices, f->config, NULL, &cpu_backend) == 0, "devices");
    uv_loop_init(&f->loop);
    CHECK(event_queue_open(&f->events, &f->loop) == 0, "events");
    const struct camera_context context = {
        .devices = f->devices,
        .events = f->events,
        .decode = &f->decode,
        .process = &f->process,
    };
    CHECK(camera_open(&f->camera, f->config->cameras, &context) == 0, "camera");
    CHECK(subscriptions_open(&f->kept, "c", f->config->cameras, f->camera.subscriptions, NULL) == 0,
          "outputs");
    for (int i = 0; i < 2; i++) {
        f->output[i] = f->kept->list[i].output;
        pool_attach(f->output[i]->pool, &f->consumer[i]);
    }
}

// A client that takes all frames.
static void take(struct output *output, struct consumer *consumer)
{
    while (pool_acquire(output->pool, consumer))
        pool_release(output->pool, consumer, true);
}

// Returns the number of pictures that the first output emitted.
static uint64_t end(struct fixture *f, const char *file)
{
    uint64_t emitted[2];
    camera_close(&f->camera);
    for (int i = 0; i < 2; i++) {
        struct ledger *ledger = &f->output[i]->ledger;
        take(f->output[i], &f->consumer[i]);
        pool_close(f->output[i]->pool);
        f->output[i]->pool = f->output[i]->outlet->pool = NULL;
        CHECK(ledger_in_flight(ledger) == 0 &&
                  ledger->offered == ledger->emitted + ledger_lost(ledger),
              "%s: %llu offered, %llu emitted, %llu lost", file,
              (unsigned long long)ledger->offered, (unsigned long long)ledger->emitted,
              (unsigned long long)ledger_lost(ledger));
        emitted[i] = ledger->emitted;
    }
    subscriptions_close(f->kept, output_close);
    devices_close(f->devices);
    event_queue_close(f->events);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    uv_loop_close(&f->loop);
    config_free(f->config);
    return emitted[0];
}

static char current[128]; // the clip on trial; the last one stays in the folder

static void too_long(int number)
{
    (void)number;
    static const char text[] = " takes too long\n";
    if (write(STDERR_FILENO, current, strlen(current)) > 0 &&
        write(STDERR_FILENO, text, strlen(text)) > 0)
        _exit(1);
    _exit(1);
}

static int connect_to(struct fixture *f, const char *file)
{
    char why[256];
    free(f->camera.config->url);
    f->camera.config->url = strdup(file);
    snprintf(current, sizeof current, "%s/%s", clips, file);
    alarm(LIMIT_S);
    int rc = camera_connect(&f->camera, why, sizeof why);
    alarm(0);
    for (int i = 0; i < 2; i++)
        take(f->output[i], &f->consumer[i]);
    CHECK(rc < 0 && why[0], "%s: %d, %s", file, rc, why);
    return rc;
}

static void test_whole(const char *file)
{
    struct fixture f;
    start(&f, DAMAGED_FLAG, 1);
    CHECK(connect_to(&f, file) == -ENODATA, "%s", file);
    uint64_t emitted = end(&f, file);
    CHECK(emitted == PICTURES, "%s: %llu pictures", file, (unsigned long long)emitted);
}

static void test_mutations(const char *source, int n, struct random *random)
{
    size_t size;
    unsigned char *data = clips_read(source, &size);
    uint64_t pictures = 0;
    for (int i = 0; i < n;) {
        struct fixture f;
        start(&f, (enum damaged)(i / CONNECTIONS % 3), 1 + i / CONNECTIONS % 2);
        for (int last = i + CONNECTIONS; i < n && i < last; i++) {
            char file[32];
            snprintf(file, sizeof file, "%d.%s", i, source);
            write_mutation(file, data, size, random);
            connect_to(&f, file);
            unlink(file);
        }
        pictures += end(&f, source);
    }
    printf("%s: %llu pictures of %d mutations\n", source, (unsigned long long)pictures, n);
    CHECK(pictures > (uint64_t)n, "%s: only %llu pictures", source, (unsigned long long)pictures);
    free(data);
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

int main(void)
{
    const uint64_t seed = number_of("SEED", 20240229);
    struct random random = {seed};
    printf("mutations: seed %llu\n", (unsigned long long)seed);
    clips_open();
    signal(SIGALRM, too_long);
    log_open(LOG_LEVEL_ERROR);
    libav_log_open();
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
        clips_make("160x120", PICTURES, codecs[i].encoder, codecs[i].file);
        TEST(test_whole(codecs[i].file));
        TEST(test_mutations(codecs[i].file, (int)number_of("MUTATIONS", 20), &random));
    }
    clips_close();
    return test_end();
}
