// The running daemon: cameras, devices and sinks, from the start to the last frame.
//
// The threads, by their names in the process, and where each may block:
// - The loop (libuv) has the process's name. It owns cameras, outputs, sinks, sockets, timers and
//   signals. It must not block: no look-up of names, no device. Its only waits are meant to be
//   short: bind, lstat and rename of sockets, rename of an edited file of the configuration, and
//   open and lock of a recording's first file.
// - NAME (daemon/camera/camera_thread.c), the camera's name: reads, decodes, analyses and submits.
//   Waits for its socket, at most 50 ms at a time (daemon/rtsp/connection.c), and for free results
//   if an output requires it. Blocks in libavformat, libavcodec and the drivers. libavcodec has its
//   own threads beside it.
// - "hardware decode" (daemon/codec/hardware.c), one for each hardware decoder other than NVDEC:
//   blocks in its driver. The camera's thread waits for it, for 3 s at most, and goes on without
//   it.
// - "resolver" (daemon/rtsp/connection.c), up to 16: looks up the names of RTSP cameras. Blocks in
//   the resolver.
// - "worker" (kernels/cpu/backend.c), one for each processor: makes pictures, and waits only for
//   work.
// - "cuda jobs" (kernels/cuda/backend.cu), one for each GPU: waits for jobs on its streams, which
//   the camera's thread puts there.
// - "batch" (daemon/output/batch.c), one for each batch: waits for pictures that found no
//   room at first, submits them, closes batches whose wait is over, and fills their empty elements.
//   Blocks in the drivers.
// - "devices" (daemon/device/devices.c): closes and opens GPUs that have failed, closes the CPU
//   while it is not needed, and the NVDEC decoders that cameras left behind. Blocks in the drivers.
// - "alerts" (daemon/alert/delivery.c), one for each target of `notify`: delivers alerts. Blocks in
//   the network, in a program that it runs, and in the resolver.
// - "cluster" (daemon/cluster/member.c): waits for etcd, a bounded time for each request.
// - "stop" (daemon/daemon.c): ends a stop that takes too long. Waits for nothing else.
// - "disk MAJOR:MINOR" or "publish" (daemon/output/writer.c), one for each file system with files
//   that outputs write, and one for each RTSP server that an output publishes to: block in the disk
//   or the network, and end with the last such output. For each file that is opened, one begins
//   with a look at its folder, for which the loop waits at most 500 ms, and ends if the file system
//   has a thread.
// - libuv's threads run short blocking work for the loop (base/loop.h): they read the configuration
//   of a reload, look up groups, open NVDEC, follow links, scan folders, write and sync changes and
//   the file of counters, release the device of a camera that has ended, submit the crops of what
//   clients found (work/crops.c), and make JPEGs for viewers.
//
// Frames pass from a camera's thread through the backend into an output's pool, where the loop
// takes them. Nothing calls an earlier stage. Only data goes back: events in the loop's queue
// (base/loop.h: some results are done, a thread has ended), counters and states as atomics,
// one list of subscriptions that replaces another, one flag that stops a thread. A thread that
// waits for a result or for the next try is woken through its condition.
//
// Locks, in the order in which they may be taken: devices (device/devices.c), a camera's work
// (work/work.c), kept pictures (work/crops.c), requests of crops, the memory of a pool, a pool
// (output/pool.c). A pool's lock guards its batch too (output/batch.h). All others are taken last:
// of a camera's report, its scene's (scene/scene.h), its packets (output/packet_queue.h), its lines
// and the memory of its pictures (codec/buffers.c); of a hardware decoder, the writers' threads, a
// backend, the logins, the alerts' outbox, a semaphore and the log. Some are held while a thread
// waits: those of a pool's memory and of pictures' memory while it is mapped and pinned, that of
// the logins' file and that of the log while they are written.
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
