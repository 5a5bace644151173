// Previews: made on request, of the newest picture, with at most one per camera held; if there is
// none, the requester gets the reason.
#include "daemon/view/previews.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/view/preview.h"
#include "tests/test.h"

enum { WIDTH = 160, HEIGHT = 120 };
static const int64_t SECOND = INT64_C(1000000000);

static uv_loop_t loop;
static struct event_queue *events;
static struct previews *previews;
static struct device_lease lease;              // empty: pictures are on the host
static struct subscriptions no_outputs;        // empty
static uint8_t pixels[WIDTH * HEIGHT * 3 / 2]; // gray
static _Atomic int released;                   // pictures that came back
static _Atomic int last_released;              // number of the last one
static sem_t blocks, goes_on;
static bool thread_is_blocked;
static pthread_t test_thread;

struct asker {
    struct preview_asker asker;
    int told;
    uint64_t sequence;
    size_t size;
    char why[PREVIEW_WHY_MAX], facts[PREVIEW_FACTS_MAX];
    bool leaves; // leaves in its callback
};

static void release(void *owner)
{
    atomic_store(&last_released, (int)(intptr_t)owner);
    atomic_fetch_add(&released, 1);
}

// Blocks in the last owner: the previews' thread, or else the test.
static void release_late(void *owner)
{
    thread_is_blocked = !pthread_equal(pthread_self(), test_thread);
    sem_post(&blocks);
    if (thread_is_blocked)
        sem_wait(&goes_on);
    release(owner);
}

static struct frame make_frame(int number, void (*release_it)(void *))
{
    struct frame frame = {
        .image = {.format = PIXEL_YUV420P, .width = WIDTH, .height = HEIGHT},
        .info = {.pts_ns = number * SECOND / 25, .epoch = 1},
        .owner = (void *)(intptr_t)number,
        .release = release_it,
    };
    frame.info.capture_ns = frame.info.pts_ns + (number % 2 ? 0 : SECOND / 10); // the clock varies
    image_lay_out(&frame.image, pixels);
    return frame;
}

// Offers a picture and passes it on, as the camera's thread does; it comes back at once.
static void offer(struct preview_source *source, int number, void (*release_it)(void *))
{
    struct frame frame = make_frame(number, release_it);
    preview_offer(source, &frame, &no_outputs);
    frame_release(&frame);
}

static void take(struct preview_asker *of, struct preview_picture *picture)
{
    struct asker *asker = (struct asker *)of;
    asker->told++;
    asker->sequence = picture->sequence;
    asker->size = picture->size;
    strcpy(asker->why, picture->why);
    strcpy(asker->facts, picture->facts);
    CHECK(picture->why[0] || (picture->file[0] == 0xff && picture->file[1] == 0xd8), "no JPEG");
    if (asker->leaves)
        preview_leave(of);
}

static int ask(struct preview_source *source, struct asker *asker, int width, double fps)
{
    asker->asker.wish = (struct preview_wish){.plane = -1, .width = width, .fps = fps};
    asker->asker.take = take;
    return preview_ask(source, &asker->asker);
}

static bool wait_for(const int *count, int n)
{
    const int64_t until_ns = monotonic_ns() + 10 * SECOND;
    while (*count < n && monotonic_ns() < until_ns)
        uv_run(&loop, UV_RUN_NOWAIT);
    return *count == n;
}

static bool wait_released(int n)
{
    const int64_t until_ns = monotonic_ns() + 10 * SECOND;
    while (atomic_load(&released) < n && monotonic_ns() < until_ns)
        uv_run(&loop, UV_RUN_NOWAIT);
    return atomic_load(&released) == n;
}

static struct preview_source *open_source(const char *camera)
{
    struct preview_source *source;
    CHECK(preview_source_open(&source, previews, camera, &lease) == 0, "source");
    atomic_store(&released, 0);
    return source;
}

static void close_source(struct preview_source *source)
{
    preview_drain(source);
    preview_source_close(source);
}

static void test_nobody(void)
{
    struct preview_source *source = open_source("gate");
    for (int i = 1; i <= 10; i++) {
        offer(source, i, release);
        CHECK(atomic_load(&released) == i, "a picture is held though nobody asks");
    }
    CHECK(previews_counts(previews).made == 0, "a JPEG though nobody asks");
    preview_offer(NULL, NULL, NULL); // a camera without previews
    close_source(source);
}

static void test_single(void)
{
    struct preview_source *source = open_source("gate");
    struct asker one = {0}, two = {0}, small = {0};
    const uint64_t made = previews_counts(previews).made;
    CHECK(ask(source, &one, 160, 0) == 0 && ask(source, &two, 160, 0) == 0, "ask");
    CHECK(ask(source, &small, 80, 0) == 0, "ask");
    CHECK(previews_counts(previews).kinds == 2, "%d kinds", previews_counts(previews).kinds);
    offer(source, 1, release);
    CHECK(wait_for(&one.told, 1) && wait_for(&two.told, 1) && wait_for(&small.told, 1), "told");
    CHECK(previews_counts(previews).made == made + 2, "equal requests share one JPEG");
    CHECK(!one.asker.preview && one.sequence == 1, "it is over with one picture");
    CHECK(
        strstr(one.facts, "\"camera\":\"gate\",\"width\":160,\"height\":120,\"source\":[160,120]"),
        "%s", one.facts);
    CHECK(strstr(small.facts, "\"width\":80,\"height\":60"), "%s", small.facts);
    CHECK(wait_released(1), "the picture went back");
    offer(source, 2, release);
    CHECK(atomic_load(&released) == 2 && previews_counts(previews).kinds == 0, "it goes on");
    close_source(source);
}

// Blocks the previews' thread in that camera's picture until `goes_on`.
static void block_thread(struct preview_source *other, struct asker *blocked)
{
    do {
        wait_for(&blocked->told, blocked->told + (blocked->asker.preview != NULL));
        CHECK(ask(other, blocked, 64, 0) == 0, "ask");
        offer(other, 100, release_late);
        sem_wait(&blocks);
    } while (!thread_is_blocked);
    atomic_store(&released, 0);
}

// The newest of the pictures that come meanwhile is used.
static void test_newest(void)
{
    struct preview_source *other = open_source("other"), *source = open_source("gate");
    struct asker blocked = {0}, asker = {0};
    block_thread(other, &blocked);
    CHECK(ask(source, &asker, 64, 25) == 0, "ask");
    for (int i = 1; i <= 5; i++) {
        offer(source, i, release);
        CHECK(atomic_load(&released) == i - 1, "picture %d: %d are back", i,
              atomic_load(&released));
        CHECK(i == 1 || atomic_load(&last_released) == i - 1, "not the oldest");
    }
    sem_post(&goes_on);
    CHECK(wait_for(&asker.told, 1) && asker.sequence == 5, "made of %d", (int)asker.sequence);
    CHECK(previews_counts(previews).dropped >= 4, "those before count");
    CHECK(wait_released(6), "all are back");
    preview_leave(&asker.asker);
    close_source(source);
    close_source(other);
}

// The thread publishes a picture a moment before it takes the next one of that camera.
static void wait_idle(const struct preview_source *source)
{
    pthread_mutex_lock(&previews->lock);
    while (source->working)
        pthread_cond_wait(&previews->idle, &previews->lock);
    pthread_mutex_unlock(&previews->lock);
}

static void test_rate(void)
{
    struct preview_source *source = open_source("gate");
    struct asker fast = {0}, slow = {0};
    CHECK(ask(source, &fast, 64, 5) == 0 && ask(source, &slow, 64, 1) == 0, "ask");
    for (int i = 0; i < 50; i++) {
        wait_idle(source);
        offer(source, i, release);
        CHECK(wait_for(&fast.told, i / 5 + 1), "%d pictures of %d", fast.told, i);
    }
    CHECK(fast.told == 10 && slow.told == 2, "%d and %d of 50", fast.told, slow.told);
    preview_leave(&fast.asker);
    wait_idle(source);
    offer(source, 60, release);
    fast.leaves = slow.leaves = true;
    CHECK(ask(source, &fast, 64, 5) == 0, "ask again");
    wait_idle(source);
    offer(source, 100, release);
    CHECK(wait_for(&fast.told, 11) && wait_for(&slow.told, 3), "%d, %d", fast.told, slow.told);
    CHECK(previews_counts(previews).kinds == 0, "both left when they were told");
    close_source(source);
}

static void test_refusals(void)
{
    struct preview_source *source = open_source("gate");
    struct asker many[PREVIEW_KINDS_MAX + 1] = {0}, patient = {0}, output = {0};
    for (int i = 0; i < PREVIEW_KINDS_MAX; i++)
        CHECK(ask(source, &many[i], 64 + i, 1) == 0, "kind %d", i);
    CHECK(ask(source, &many[PREVIEW_KINDS_MAX], 200, 1) == -ENOSPC, "too many kinds");
    CHECK(ask(source, &many[PREVIEW_KINDS_MAX], 64, 2) == 0, "one that is there is no further one");
    for (int i = 0; i <= PREVIEW_KINDS_MAX; i++)
        preview_leave(&many[i].asker);
    patient.asker.patience_ns = 1;
    CHECK(ask(source, &patient, 64, 0) == 0 && wait_for(&patient.told, 1), "told");
    CHECK(strstr(patient.why, "no picture now") && !patient.asker.preview, "%s", patient.why);
    strcpy(output.asker.wish.output, "net");
    output.asker.take = take;
    output.asker.wish.plane = -1;
    CHECK(preview_ask(source, &output.asker) == 0, "ask");
    for (int i = 1; output.told == 0 && i < 10000;
         i++) { // the thread may still work for earlier requesters
        offer(source, i, release);
        uv_sleep(1);
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    CHECK(strstr(output.why, "no such output"), "%s", output.why);
    CHECK(strstr(output.facts, "\"output\":\"net\",\"error\":\""), "%s", output.facts);
    close_source(source);
}

// A camera releases its device and its decoder, goes on, and is finally removed.
static void test_gone(void)
{
    struct preview_source *source = open_source("gate");
    struct asker asker = {0};
    CHECK(ask(source, &asker, 64, 25) == 0, "ask");
    offer(source, 1, release);
    CHECK(wait_for(&asker.told, 1), "told");
    offer(source, 2, release);
    preview_drain(source);
    CHECK(atomic_load(&released) == 2, "no picture is held behind a drain");
    offer(source, 3, release);
    CHECK(wait_released(3), "it goes on");
    close_source(source);
    CHECK(!asker.asker.preview && strstr(asker.why, "gone"), "%s", asker.why);
    preview_leave(&asker.asker); // does nothing
}

static void *go_on_once_waited_for(void *opaque)
{
    const struct preview_source *source = opaque;
    while (atomic_load(&source->waiting) == 0)
        usleep(1000);
    sem_post(&goes_on);
    return NULL;
}

// The camera's thread needs its device back while many previews wait for encoding.
static void test_drain(void)
{
    struct preview_source *other = open_source("other"), *source = open_source("gate");
    struct asker blocked = {0}, asker[PREVIEW_KINDS_MAX] = {0};
    pthread_t helper;
    block_thread(other, &blocked);
    for (int i = 0; i < PREVIEW_KINDS_MAX; i++)
        CHECK(ask(source, &asker[i], 64 + i, 0) == 0, "ask");
    offer(source, 1, release_late);
    sem_post(&goes_on);
    sem_wait(&blocks); // it has read the picture for all of them
    const uint64_t made = previews_counts(previews).made;
    pthread_create(&helper, NULL, go_on_once_waited_for, source);
    preview_drain(source);
    pthread_join(helper, NULL);
    CHECK(previews_counts(previews).made == made, "it waited for %d JPEGs",
          (int)(previews_counts(previews).made - made));
    offer(source, 2, release);
    for (int i = 0; i < PREVIEW_KINDS_MAX; i++)
        CHECK(wait_for(&asker[i].told, 1) && asker[i].sequence == 2 && asker[i].size > 0,
              "kind %d is made of the next picture", i);
    close_source(source);
    close_source(other);
}

static _Atomic int niceness; // of the last submitter
static int own_niceness;

static int submit(struct plan *plan, struct job *job)
{
    atomic_store(&niceness, getpriority(PRIO_PROCESS, 0));
    job->src.memory = MEMORY_HOST; // its real place
    return cpu_backend.submit(plan, job);
}

static size_t device_bytes(struct backend *backend)
{
    (void)backend;
    return (size_t)1 << 30;
}

// Submitting to a device takes the driver's locks, for which outputs wait.
static void test_device(void)
{
    struct backend_driver driver = cpu_backend;
    const struct config top = {.cpu.workers = 1};
    struct devices *devices;
    struct asker asker = {0};
    driver.name = "cuda";
    driver.takes_cuda = true;
    driver.device_bytes = device_bytes;
    driver.submit = submit;
    CHECK(devices_open_with(&devices, &top, &driver, &cpu_backend) == 0, "devices");
    CHECK(device_acquire(devices, NULL, &lease) == 0, "lease");
    struct preview_source *source = open_source("gate");
    atomic_store(&niceness, -1);
    CHECK(ask(source, &asker, 64, 25) == 0, "ask");
    for (int i = 1; i <= 4; i++) { // alternating, as when a GPU fails
        struct frame frame = make_frame(i, release);
        frame.image.memory = i % 2 ? MEMORY_CUDA : MEMORY_HOST;
        wait_idle(source);
        preview_offer(source, &frame, &no_outputs);
        frame_release(&frame);
        CHECK(wait_for(&asker.told, i) && asker.size > 0, "picture %d", i);
        CHECK(atomic_load(&niceness) == own_niceness, "its thread has niceness %d",
              atomic_load(&niceness));
    }
    close_source(source);
    device_release(&lease);
    devices_close(devices);
}

// Previews on the host run behind everything else in the daemon, at any niceness of its own.
static void test_niceness(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int nicer = 0;
    for (struct dirent *task; (task = readdir(tasks));) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *comm = fopen(path, "r");
        if (!comm)
            continue;
        if (fgets(name, sizeof name, comm) && strcmp(name, "previews\n") == 0)
            nicer += getpriority(PRIO_PROCESS, (id_t)atoi(task->d_name)) > own_niceness;
        fclose(comm);
    }
    closedir(tasks);
    CHECK(nicer == 1, "%d threads", nicer);
}

int main(void)
{
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 7);
    own_niceness = getpriority(PRIO_PROCESS, 0);
    test_thread = pthread_self();
    sem_init(&blocks, 0, 0);
    sem_init(&goes_on, 0, 0);
    memset(pixels, 128, sizeof pixels);
    uv_loop_init(&loop);
    event_queue_open(&events, &loop);
    CHECK(previews_open(&previews, &loop, events) == 0, "previews");
    TEST(test_nobody());
    TEST(test_single());
    TEST(test_newest());
    TEST(test_rate());
    TEST(test_refusals());
    TEST(test_gone());
    TEST(test_drain());
    TEST(test_device());
    TEST(test_niceness());
    previews_stop(previews);
    event_queue_close(events);
    uv_run(&loop, UV_RUN_DEFAULT);
    previews_close(previews);
    uv_loop_close(&loop);
    return test_end();
}
