// Times the way from a result to its crops: a detector that finds the same eight boxes in every
// picture of many cameras and a reader of the resulting crops, in one process next to the daemon.
// scripts/bench_crops.py runs it.
//
// usage: bench-crops FOLDER CAMERAS SECONDS; the rings are FOLDER/d0, FOLDER/p0, FOLDER/d1...
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/framed.h"

enum {
    BOXES = 8,
    CAMERAS_MAX = 512,
    SENT_MAX = 1024, // send times remembered per camera
    DIGESTED = 50,   // the crops of camera 0's first pictures form the digest
    LATENCIES_MAX = 1 << 20,
};
enum part { CLAIMED, FINISHED, READ, ALL, PARTS };
static const int64_t WARM_NS = INT64_C(3000000000); // start-up time of cameras, not measured

struct camera {
    struct framed_reader *pictures, *crops;
    int64_t sent_ns[SENT_MAX]; // CLOCK_MONOTONIC, indexed by picture sequence
};

struct bench {
    struct camera *cameras;
    int n;
    int64_t begun_ns;
    uint64_t results, batches, elements, lost, torn, digest;
    int digested;
    // ns from the result to its batch's claim, from there to the last element, from there to the
    // client; and the total.
    int64_t *latency[PARTS];
    int latencies;
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void find(struct bench *bench, struct camera *camera, struct framed_view *view)
{
    struct framed_detection found[BOXES] = {0};
    for (int i = 0; i < BOXES; i++) {
        found[i].x1 = 60.0F + 170.0F * (float)i;
        found[i].y1 = 30.5F + 97.0F * (float)i;
        found[i].x2 = found[i].x1 + 80.0F + 23.0F * (float)i;
        found[i].y2 = found[i].y1 + 50.0F + 11.0F * (float)i;
        found[i].score = 0.9F - 0.05F * (float)i;
        found[i].class_id = 2;
    }
    camera->sent_ns[view->header.sequence % SENT_MAX] = now_ns();
    bench->results += framed_release(camera->pictures, view, found, BOXES) == 0;
}

static void digest(struct bench *bench, const struct framed_view *view)
{
    for (uint32_t i = 0; i < view->batch.count; i++) {
        const struct framed_element_header *element = &view->elements[i];
        const uint8_t *bytes = (const uint8_t *)view->data + i * view->batch.element_bytes;
        uint64_t sum = element->parent_sequence * 1000003 + element->object, word;
        for (size_t at = 0; at + sizeof word <= view->batch.element_bytes; at += sizeof word) {
            memcpy(&word, bytes + at, sizeof word);
            sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        }
        bench->digest += sum ^ sum >> 29;
        bench->digested++;
    }
}

static void take(struct bench *bench, struct camera *camera, struct framed_view *view)
{
    const uint64_t sequence = view->elements[0].parent_sequence;
    const int64_t now = now_ns();
    bench->batches++;
    bench->elements += view->batch.count;
    const int64_t sent = camera->sent_ns[sequence % SENT_MAX];
    if (now - bench->begun_ns > WARM_NS && bench->latencies < LATENCIES_MAX) {
        const int at = bench->latencies++;
        bench->latency[CLAIMED][at] = view->batch.opened_ns - sent;
        bench->latency[FINISHED][at] = view->batch.finished_ns - view->batch.opened_ns;
        bench->latency[READ][at] = now - view->batch.finished_ns;
        bench->latency[ALL][at] = now - sent;
    }
    if (camera == bench->cameras && sequence < DIGESTED)
        digest(bench, view);
    bench->torn += framed_whole(camera->crops, view) == 0;
    framed_release(camera->crops, view, NULL, -1);
}

// Processes all pending frames of both rings.
static void serve(struct bench *bench, struct camera *camera)
{
    struct framed_view view;
    while (framed_next(camera->pictures, &view, 0) > 0)
        find(bench, camera, &view);
    while (framed_next(camera->crops, &view, 0) > 0)
        take(bench, camera, &view);
}

static int open_cameras(struct bench *bench, const char *folder)
{
    char address[512];
    for (int i = 0; i < bench->n; i++) {
        struct camera *camera = &bench->cameras[i];
        snprintf(address, sizeof address, "ring:%s/p%d", folder, i);
        camera->crops = framed_open(address, 0);
        snprintf(address, sizeof address, "ring:%s/d%d", folder, i);
        camera->pictures = framed_open(address, 0);
        if (!camera->crops || !camera->pictures)
            return -errno;
    }
    return 0;
}

static void run(struct bench *bench, int64_t until_ns)
{
    struct pollfd fds[2 * CAMERAS_MAX];
    for (int i = 0; i < bench->n; i++)
        serve(bench, &bench->cameras[i]);
    while (now_ns() < until_ns) {
        for (int i = 0; i < bench->n; i++) {
            fds[2 * i] = (struct pollfd){framed_fd(bench->cameras[i].pictures), POLLIN, 0};
            fds[2 * i + 1] = (struct pollfd){framed_fd(bench->cameras[i].crops), POLLIN, 0};
        }
        if (poll(fds, 2 * (nfds_t)bench->n, 100) <= 0)
            continue;
        for (int i = 0; i < bench->n; i++)
            if (fds[2 * i].revents || fds[2 * i + 1].revents)
                serve(bench, &bench->cameras[i]);
    }
}

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void print_part(struct bench *bench, enum part part, const char *name)
{
    int64_t *latency = bench->latency[part];
    const int n = bench->latencies;
    qsort(latency, (size_t)n, sizeof *latency, by_size);
    if (n > 0)
        printf("%-22s p50 %6.2f ms, p99 %6.2f ms, max %6.2f ms\n", name,
               (double)latency[n / 2] / 1e6, (double)latency[(n - 1) * 99 / 100] / 1e6,
               (double)latency[n - 1] / 1e6);
}

static void print(struct bench *bench, double seconds)
{
    struct framed_counts counts;
    for (int i = 0; i < bench->n; i++) {
        framed_count(bench->cameras[i].crops, &counts);
        bench->lost += counts.lost;
    }
    printf("results %ju, batches %ju (%ju lost, %ju torn), crops %ju (%.0f/s)\n",
           (uintmax_t)bench->results, (uintmax_t)bench->batches, (uintmax_t)bench->lost,
           (uintmax_t)bench->torn, (uintmax_t)bench->elements, (double)bench->elements / seconds);
    print_part(bench, CLAIMED, "result to batch");
    print_part(bench, FINISHED, "batch to last crop");
    print_part(bench, READ, "last crop to client");
    print_part(bench, ALL, "result to client");
    printf("digest %016jx of %d crops\n", (uintmax_t)bench->digest, bench->digested);
}

int main(int argc, char **argv)
{
    struct bench bench = {.begun_ns = now_ns()};
    bench.n = argc == 4 ? atoi(argv[2]) : 0;
    if (bench.n < 1 || bench.n > CAMERAS_MAX) {
        fprintf(stderr, "usage: bench-crops FOLDER CAMERAS SECONDS\n");
        return 2;
    }
    const int64_t ns = (int64_t)(atof(argv[3]) * 1e9);
    bench.cameras = calloc((size_t)bench.n, sizeof *bench.cameras);
    int rc = bench.cameras ? 0 : -ENOMEM;
    for (int i = 0; i < PARTS; i++)
        if (!(bench.latency[i] = calloc(LATENCIES_MAX, sizeof *bench.latency[i])))
            rc = -ENOMEM;
    if (rc == 0)
        rc = open_cameras(&bench, argv[1]);
    if (rc == 0) {
        run(&bench, bench.begun_ns + ns);
        print(&bench, (double)ns / 1e9);
    } else {
        fprintf(stderr, "bench-crops: %s\n", strerror(-rc));
    }
    for (int i = 0; i < bench.n && bench.cameras; i++) {
        framed_close(bench.cameras[i].pictures);
        framed_close(bench.cameras[i].crops);
    }
    free(bench.cameras);
    for (int i = 0; i < PARTS; i++)
        free(bench.latency[i]);
    return rc < 0;
}
