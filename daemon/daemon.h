// The running daemon: cameras, devices and sinks, from the start to the last frame.
//
// Threads, and where each may block:
// - The loop thread (libuv) owns cameras, outputs, sinks, sockets, timers and signals. It must not
//   block: no look-up of names, no device. Its only waits are meant to be short: bind, lstat and
//   rename of sockets, open and lock of a recording's first file, and the file of counters.
// - Each camera has a thread that reads, decodes, analyses and submits: it blocks in libavformat,
//   libavcodec and the drivers, waits for free results if an output requires it, and opens the
//   device that it acquires. libavcodec has its own threads beside it.
// - Each hardware decoder other than NVDEC has a thread (codec/hardware.h), which blocks in its
//   driver. The camera's thread waits for it, for 3 s at most, and goes on without it.
// - The backend's threads (the workers of the CPU; the completion thread of CUDA, whose jobs the
//   camera's thread puts on the streams) finish jobs. They wait only for work.
// - Each batch has a collector (work/transform.h), which waits for pictures that found no
//   room at first, submits them, closes batches whose wait is over, and fills their empty
//   elements. It may block in the drivers, like a camera's thread.
// - Each output with `crops` has a thread (work/crops.h), which waits for boxes that clients
//   found and submits them. It may block in the drivers, too.
// - The devices' keeper closes and opens GPUs that have failed, and the CPU while it is not needed.
//   A thread per such GPU first closes the NVDEC decoders that its cameras left behind.
// - Each target of `notify` has a thread that delivers alerts to it (alert/delivery.h). It may
//   block in the network, in a program that it runs, and in the resolver.
// - libuv's threads run blocking work for the loop (base/loop.h): they write files and to RTSP
//   servers, read the configuration of a reload, look up groups, open NVDEC, follow links, scan
//   folders, make JPEGs for viewers, and release the device of a camera that has ended. Files and
//   servers never get the last of these threads (output/sink.h).
// - While the process stops, a thread ends it if it takes too long: it waits for nothing else.
//
// Frames pass from a camera's thread through the backend into an output's pool, where the loop
// takes them. Nothing calls an earlier stage. Only data goes back: events in the loop's queue
// (base/loop.h: some results are done, a thread has ended), counters and states as atomics,
// one list of subscriptions that replaces another, one flag that stops a thread. A thread that
// waits for a result or for the next try is woken through its condition.
//
// Locks, in the order in which they may be taken: devices (device/device_set.h), a transform
// (work/transform.c), crops (work/crops.h) and their pictures, the memory of a pool, a pool
// (output/pool.c). A pool's lock guards its batch too (output/batch.h). The locks of a camera's
// texts, of its scene report (scene/scene.h), of its pictures and their buffers, a semaphore, the
// event queue, the alerts' outbox and the log are taken last. Two are held while a thread waits:
// the lock of a pool's memory, while memory is mapped and pinned, and the lock of the log, while a
// line is written.
#ifndef FRAMED_DAEMON_DAEMON_H
#define FRAMED_DAEMON_DAEMON_H

#include "config/config.h"
#include "daemon/base/process.h"
#include "daemon/supervisor/reload.h"

struct daemon_options {
    const char *file;    // path of the configuration, read again on SIGHUP
    const char *metrics; // file for the counters, on SIGUSR1 and at the end; NULL: none
};

// Sets the limits of the process and its handling of signals. SIGHUP and SIGUSR1 are held from here
// until daemon_run serves them. Call it before anything that takes time.
void daemon_prepare_process(void);
// Runs until every camera has ended or a signal requests the stop, and logs events. `config`
// outlives the call. Returns an enum exit_code.
int daemon_run(struct config *config, const struct daemon_options *options);

#endif
