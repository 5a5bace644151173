#include "tests/bench/alone.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/load.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/process.h"
#include "daemon/codec/decoder.h"
#include "daemon/device/budget.h"
#include "daemon/device/devices.h"
#include "daemon/source/libav_log.h"
#include "daemon/work/work.h"
#include "tests/bench/interrupt.h"

static const double PATIENCE_S = 30, PATIENCE_EACH_S = 0.5, POLL_S = 0.005;

struct alone {
    const struct camera_config *config;
    struct devices *devices;
    struct device_lease lease;
    struct demux *demux;
    struct decoder *decoder;
    _Atomic uint64_t frames;
    const _Atomic bool *stop;
    pthread_t thread;
    bool started;
};

static int open_decoder(struct alone *alone)
{
    const struct camera_config *config = alone->config;
    const struct decode_options options = {.decode = config->decode,
                                           .threads = config->threads,
                                           .in_flight = FRAMES_HELD_MAX,
                                           .damaged = config->damaged};
    char why[256];
    int rc = demux_open(&alone->demux, config, NULL, alone->stop, NULL, why, sizeof why);
    if (rc < 0) {
        log_event(LOG_LEVEL_ERROR, "%s", why);
        return rc;
    }
    rc = device_acquire(alone->devices, alone->config, &alone->lease);
    if (rc == 0)
        rc = decoder_open(&alone->decoder, alone->demux->parameters, &options);
    return rc == 0 ? decoder_join(alone->decoder,
                                  &(struct decode_target){alone->lease.driver, alone->lease.backend,
                                                          alone->lease.nvdec})
                   : rc;
}

// Takes every picture the decoder has. Returns 0 when it needs packets.
static int take_pictures(struct alone *alone)
{
    struct frame frame;
    int rc;
    while ((rc = decoder_receive(alone->decoder, &frame)) == 0) {
        atomic_fetch_add_explicit(&alone->frames, !frame.lost, memory_order_relaxed);
        frame_release(&frame);
    }
    return rc == -EAGAIN ? 0 : rc;
}

static int decode(struct alone *alone)
{
    struct packet packet;
    int rc = 0;
    while (rc == 0 && !atomic_load(alone->stop)) {
        rc = demux_read(alone->demux, &packet);
        const bool end = rc == -ENODATA;
        if (rc == 0 || end)
            rc = decoder_send(alone->decoder, end ? NULL : &packet);
        if (rc == 0)
            rc = take_pictures(alone);
        if (end && rc == -ENODATA) {
            rc = demux_rewind(alone->demux);
            decoder_restart(alone->decoder);
        }
    }
    return rc;
}

static void *run(void *opaque)
{
    struct alone *alone = opaque;
    log_camera(alone->config->name);
    int rc = open_decoder(alone);
    if (rc == 0)
        rc = decode(alone);
    if (rc < 0 && !atomic_load(alone->stop))
        log_event(LOG_LEVEL_ERROR, "%s", strerror(-rc));
    if (alone->decoder)
        decoder_leave(alone->decoder);
    decoder_close(alone->decoder);
    device_release(&alone->lease);
    demux_close(alone->demux);
    return NULL;
}

// --- all of them

static uint64_t frames_of(struct alone *all, int n, int *up)
{
    uint64_t frames = 0;
    *up = 0;
    for (int i = 0; i < n; i++) {
        const uint64_t own = atomic_load_explicit(&all[i].frames, memory_order_relaxed);
        frames += own;
        *up += own > 0;
    }
    return frames;
}

static int measure(struct alone *all, int n, double seconds)
{
    const int64_t start = monotonic_ns();
    const int64_t deadline = start + (int64_t)((PATIENCE_S + PATIENCE_EACH_S * n) * 1e9);
    int up = 0, rc = 0;
    while (rc == 0 && up < n) {
        frames_of(all, n, &up);
        rc = monotonic_ns() > deadline ? -ETIMEDOUT : interrupt_wait(POLL_S);
    }
    if (rc < 0)
        return rc;
    const int64_t begin = monotonic_ns();
    const uint64_t before = frames_of(all, n, &up);
    printf("up %.6f\n", (double)(begin - start) / 1e9);
    fflush(stdout);
    rc = interrupt_wait(seconds);
    const uint64_t frames = frames_of(all, n, &up) - before;
    printf("frames %llu %.6f\n", (unsigned long long)frames,
           (double)(monotonic_ns() - begin) / 1e9);
    fflush(stdout);
    return rc;
}

static int run_all(struct devices *devices, const struct config *config, double seconds)
{
    _Atomic bool stop = false;
    struct alone *all = calloc((size_t)config->n_cameras, sizeof *all);
    int rc = all ? 0 : -ENOMEM;
    for (int i = 0; rc == 0 && i < config->n_cameras; i++) {
        all[i].config = &config->cameras[i];
        all[i].devices = devices;
        all[i].stop = &stop;
        rc = -pthread_create(&all[i].thread, NULL, run, &all[i]);
        all[i].started = rc == 0;
    }
    if (rc == 0)
        rc = measure(all, config->n_cameras, seconds);
    atomic_store(&stop, true);
    for (int i = 0; all && i < config->n_cameras; i++)
        if (all[i].started)
            pthread_join(all[i].thread, NULL);
    free(all);
    return rc;
}

int alone_run(const char *path, double seconds)
{
    struct config *config;
    struct devices *devices = NULL;
    if (config_load(&config, path, stderr) != 0)
        return EXIT_CONFIG;
    log_open(config->log.level);
    libav_log_open();
    int rc = devices_open(&devices, config);
    if (rc == 0)
        rc = run_all(devices, config, seconds);
    if (rc == -ETIMEDOUT)
        log_event(LOG_LEVEL_ERROR, "not every camera delivered");
    devices_close(devices);
    log_flush();
    config_free(config);
    return rc == 0 ? EXIT_OK : EXIT_RUNTIME;
}
