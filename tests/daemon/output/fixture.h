// A sink on a loop in its own thread, with a pool before it, and blocking readers: the test's
// thread is the camera and all clients.
#ifndef FRAMED_TESTS_DAEMON_OUTPUT_FIXTURE_H
#define FRAMED_TESTS_DAEMON_OUTPUT_FIXTURE_H

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/output/pool.h"
#include "daemon/output/sink.h"
#include "daemon/wire.h"
#include "tests/test.h"

enum { SMALL = 64, LARGE = 1 << 20 }; // payload bytes: fits into a socket's buffer; does not

struct rig {
    uv_loop_t loop;
    uv_async_t async; // runs a call that the test waits for
    uv_async_t ready; // results are ready
    pthread_t thread;
    sem_t called;
    void (*_Atomic call)(struct rig *); // next call for the loop's thread
    int clients, grace_ms;
    bool closed;
    struct ledger ledger;
    struct pool *pool;
    struct results *results; // of a ring
    struct sink *sink;
    struct output_config config;
    _Atomic bool stop;
    char folder[64], path[108], why[256];
    int width, height;  // of the frames to feed; one byte per pixel
    int64_t capture_ns; // of the frames to feed
    uint64_t ordinal, last;
    uint64_t batches;   // offered
    int receive_buffer; // of the readers, bytes; 0: the kernel's choice
};

static inline void rig_called(uv_async_t *async)
{
    struct rig *rig = async->data;
    void (*call)(struct rig *) = rig->call;
    call(rig);
    sem_post(&rig->called);
}

static inline void rig_pump(struct rig *rig)
{
    if (rig->sink)
        sink_pump(rig->sink);
}

static inline void rig_ready(uv_async_t *async)
{
    rig_pump(async->data);
}

static inline void *rig_loop(void *opaque)
{
    struct rig *rig = opaque;
    uv_run(&rig->loop, UV_RUN_DEFAULT);
    return NULL;
}

static inline void on_loop(struct rig *rig, void (*call)(struct rig *))
{
    rig->call = call;
    uv_async_send(&rig->async);
    while (sem_wait(&rig->called) < 0)
        ;
}

static inline void rig_was_closed(void *opaque)
{
    struct rig *rig = opaque;
    rig->closed = true;
    rig->sink = NULL;
}

// Makes a folder and a configuration, which a test may change before rig_open; no thread.
static inline void rig_init(struct rig *rig, enum sink_kind kind, const char *name)
{
    *rig = (struct rig){.width = SMALL, .height = 1};
    snprintf(rig->folder, sizeof rig->folder, "/tmp/framed-sink.XXXXXX");
    CHECK(mkdtemp(rig->folder) != NULL, "mkdtemp: %s", strerror(errno));
    snprintf(rig->path, sizeof rig->path, "%s/%s", rig->folder, name);
    rig->config = (struct output_config){.name = "detector",
                                         .kernel = KERNEL_WARP,
                                         .slots = 4,
                                         .clients = 64,
                                         .sink = {.kind = kind, .path = rig->path},
                                         .protocol = PROTOCOL_FRAMED,
                                         .mode = {0660}};
}

static inline int rig_try_open(struct rig *rig)
{
    struct sink_context context = {
        .loop = &rig->loop,
        .camera = "gate",
        .config = &rig->config,
        .pool = rig->pool,
        .results = rig->results,
        .closed = rig_was_closed,
        .opaque = rig,
    };
    return sink_open(&rig->sink, &context, rig->why, sizeof rig->why);
}

static inline void rig_open_pool(struct rig *rig)
{
    const int items = rig->config.is_batch ? rig->config.capacity : 1;
    struct pool_options options = {
        .n = rig->config.slots,
        .items = items,
        .header_bytes =
            rig->config.is_batch ? (size_t)items * sizeof(struct framed_element_header) : 0,
        .name = rig->config.name,
        .overflow = rig->config.overflow,
        .max_age_ns = rig->config.max_age.ns};
    options.kind = rig->config.sink.kind != SINK_RING    ? REGION_PRIVATE
                   : rig->config.memory == RING_CUDA     ? REGION_DEVICE
                   : rig->config.memory == RING_CUDA_IPC ? REGION_DEVICE_IPC
                                                         : REGION_SHARED;
    options.undelivered = rig->config.sink.kind == SINK_FILE ? LOSS_SINK : LOSS_CLIENT;
    CHECK(pool_open(&rig->pool, &options) == 0, "pool");
    if (rig->config.sink.kind == SINK_RING)
        CHECK(results_open(&rig->results, &rig->config, rig->pool) == 0, "results");
}

static inline void rig_close_pool(struct rig *rig)
{
    pool_close(rig->pool);
    results_close(rig->results);
    rig->results = NULL;
}

static inline void rig_open(struct rig *rig)
{
    uv_loop_init(&rig->loop);
    uv_async_init(&rig->loop, &rig->async, rig_called);
    uv_async_init(&rig->loop, &rig->ready, rig_ready);
    rig->async.data = rig->ready.data = rig;
    sem_init(&rig->called, 0, 0);
    rig_open_pool(rig);
    int rc = rig_try_open(rig);
    CHECK(rc == 0, "open: %s: %s", strerror(-rc), rig->why);
    if (rc < 0)
        exit(test_end());
    pthread_create(&rig->thread, NULL, rig_loop, rig);
}

static inline void rig_finish(struct rig *rig)
{
    sink_finish(rig->sink, rig->grace_ms);
    uv_close((uv_handle_t *)&rig->async, NULL);
    uv_close((uv_handle_t *)&rig->ready, NULL);
}

// Finishes the sink; every frame must be accounted for.
static inline void rig_stop(struct rig *rig, int grace_ms)
{
    rig->grace_ms = grace_ms;
    on_loop(rig, rig_finish);
    pthread_join(rig->thread, NULL);
    CHECK(rig->closed, "the sink was not closed");
    CHECK(uv_loop_close(&rig->loop) == 0, "handles are left on the loop");
    CHECK(ledger_in_flight(&rig->ledger) == 0, "%d frames unaccounted for",
          (int)ledger_in_flight(&rig->ledger));
    rig_close_pool(rig);
    sem_destroy(&rig->called);
}

static inline void rig_remove(struct rig *rig)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", rig->folder);
    CHECK(system(command) == 0, "%s", command);
}

static inline void rig_close(struct rig *rig, int grace_ms)
{
    rig_stop(rig, grace_ms);
    rig_remove(rig);
}

static inline uint64_t rig_lost(struct rig *rig, enum loss reason)
{
    return atomic_load(&rig->ledger.lost[reason]);
}

static inline uint64_t rig_emitted(struct rig *rig)
{
    return atomic_load(&rig->ledger.emitted);
}

static inline void rig_ask_clients(struct rig *rig)
{
    rig->clients = sink_clients(rig->sink);
}

static inline int rig_clients(struct rig *rig)
{
    on_loop(rig, rig_ask_clients);
    return rig->clients;
}

// Waits until n clients are connected.
static inline bool rig_has_clients(struct rig *rig, int n)
{
    for (int i = 0; i < 5000 && rig_clients(rig) != n; i++)
        usleep(1000);
    return rig_clients(rig) == n;
}

// --- the camera

// Byte i of a frame: frames, and places within one, differ over long distances.
static inline uint8_t sample(uint64_t sequence, size_t i)
{
    return (uint8_t)((sequence * 2654435761u + i * 40503u + (i >> 8) * 77u) >> 7);
}

static inline enum loss reason_of(int rc)
{
    return rc == -ENOTCONN    ? LOSS_CLIENT
           : rc == -EAGAIN    ? LOSS_OVERFLOW
           : rc == -ECANCELED ? LOSS_STOPPING
                              : LOSS_BACKEND;
}

static inline void rig_describe(const struct rig *rig, struct result *result)
{
    result->format = (struct result_format){.image = {.format = PIXEL_TENSOR,
                                                      .width = rig->width,
                                                      .height = rig->height,
                                                      .plane = {{result->data, rig->width}}},
                                            .layout = LAYOUT_NHWC,
                                            .order = ORDER_GRAY};
}

// Fills a claimed item with frame `ordinal`.
static inline void rig_fill(const struct rig *rig, struct result *result, int element,
                            uint64_t ordinal)
{
    struct item *item = &result->item[element];
    const size_t size = (size_t)rig->width * (size_t)rig->height;
    uint8_t *data = (uint8_t *)result->data + (size_t)element * size;
    for (size_t i = 0; i < size; i++)
        data[i] = sample(ordinal, i);
    strcpy(item->camera, "gate");
    item->sequence = item->parent_sequence = item->ordinal = ordinal;
    // received now: filling takes time under a sanitizer
    item->frame = (struct frame_info){.received_ns = monotonic_ns(),
                                      .capture_ns = rig->capture_ns,
                                      .source_width = 4,
                                      .source_height = 2};
}

// Offers one frame; returns pool_claim's result. The sequence is the ordinal.
static inline int rig_feed(struct rig *rig)
{
    struct result *result;
    size_t size = (size_t)rig->width * (size_t)rig->height;
    struct pool_request request = {
        .size = size, .items = 1, .ledger = &rig->ledger, .stop = &rig->stop};
    uint64_t ordinal = rig->ordinal++;
    ledger_offer(&rig->ledger);
    int rc = pool_claim(rig->pool, &request, &result);
    if (rc < 0) {
        ledger_lose(&rig->ledger, reason_of(rc));
        return rc;
    }
    rig_describe(rig, result);
    rig_fill(rig, result, 0, ordinal);
    pool_complete(rig->pool, result, 0, 1, 0);
    return 0;
}

static inline void rig_frame(struct rig *rig)
{
    rig_feed(rig);
    on_loop(rig, rig_pump);
}

// A camera in its own thread: feeds frames until the ordinal is rig->last.
static inline void *rig_camera(void *opaque)
{
    struct rig *rig = opaque;
    while (rig->ordinal < rig->last)
        if (rig_feed(rig) == 0)
            uv_async_send(&rig->ready);
    return NULL;
}

static inline void rig_large(struct rig *rig)
{
    rig->width = 1024;
    rig->height = LARGE / 1024;
}

static inline int64_t cpu_ns(void) // of this process
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

// --- the clients

static inline int reader_open(struct rig *rig)
{
    struct timeval patience = {.tv_sec = 10};
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    struct sockaddr_in port = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    bool tcp = rig->config.sink.kind == SINK_TCP;
    bool ring = rig->config.sink.kind == SINK_RING;
    int fd = socket(tcp ? AF_INET : AF_UNIX, ring ? SOCK_SEQPACKET : SOCK_STREAM, 0);
    memcpy(path.sun_path, rig->path, sizeof path.sun_path);
    port.sin_port = htons((uint16_t)sink_port(rig->sink));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (rig->receive_buffer)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rig->receive_buffer, sizeof rig->receive_buffer);
    int rc = tcp ? connect(fd, (struct sockaddr *)&port, sizeof port)
                 : connect(fd, (struct sockaddr *)&path, sizeof path);
    CHECK(rc == 0, "connect: %s", strerror(errno));
    return fd;
}

// Connects, and waits until the sink has n clients.
static inline int reader_join(struct rig *rig, int n)
{
    int fd = reader_open(rig);
    CHECK(rig_has_clients(rig, n), "%d clients instead of %d", rig_clients(rig), n);
    return fd;
}

// Returns the number of bytes read before the end, an error or 10 s of silence.
static inline size_t read_up_to(int fd, void *to, size_t size)
{
    size_t done = 0;
    ssize_t n;
    while (done < size && (n = recv(fd, (char *)to + done, size - done, 0)) > 0)
        done += (size_t)n;
    return done;
}

// Reads one frame and checks every byte. Returns 1 if it is whole and right, 0 if the stream ended
// before it, -1 if it is cut short or wrong.
static inline int read_frame(int fd, struct framed_header *header)
{
    size_t wrong = 0;
    size_t n = read_up_to(fd, header, sizeof *header);
    if (n < sizeof *header || memcmp(header->magic, FRAMED_MAGIC, 4) != 0)
        return n == 0 ? 0 : -1;
    uint8_t *payload = malloc(header->payload_bytes);
    n = read_up_to(fd, payload, header->payload_bytes);
    for (size_t i = 0; i < n; i++)
        wrong += payload[i] != sample(header->sequence, i);
    free(payload);
    return n == header->payload_bytes && wrong == 0 ? 1 : -1;
}

static inline void expect_frame(int fd, uint64_t sequence, uint64_t lost)
{
    struct framed_header header = {0};
    int whole = read_frame(fd, &header);
    CHECK(whole == 1 && header.sequence == sequence && header.lost == lost,
          "whole %d sequence %d lost %d instead of %d, %d", whole, (int)header.sequence,
          (int)header.lost, (int)sequence, (int)lost);
}

// Reads in its own thread until the stream ends.
struct reader {
    pthread_t thread;
    int fd;
    _Atomic bool seen[256]; // whole, by sequence
    _Atomic int frames;
    _Atomic bool broken;         // ended within a frame
    _Atomic uint64_t last, lost; // from the last header
};

static inline void *reader_run(void *opaque)
{
    struct reader *reader = opaque;
    struct framed_header header;
    int rc;
    while ((rc = read_frame(reader->fd, &header)) == 1) {
        reader->seen[header.sequence] = true;
        reader->last = header.sequence;
        reader->lost = header.lost;
        reader->frames++;
    }
    reader->broken = rc < 0;
    close(reader->fd);
    return NULL;
}

static inline void reader_start(struct reader *reader, int fd)
{
    memset(reader, 0, sizeof *reader);
    reader->fd = fd;
    pthread_create(&reader->thread, NULL, reader_run, reader);
}

// Waits until it has read so many frames.
static inline bool reader_reaches(struct reader *reader, int frames)
{
    for (int i = 0; i < 5000 && reader->frames < frames; i++)
        usleep(1000);
    return reader->frames >= frames;
}

#endif
