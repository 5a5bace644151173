// Checks the slices of a picture on a thread of its own, while the decoder decodes the same
// picture: on one thread the check would hold each picture back by a fifth of its decoding time.
// The owner's thread calls everything.
#ifndef FRAMED_DAEMON_DECODE_SLICE_THREAD_H
#define FRAMED_DAEMON_DECODE_SLICE_THREAD_H

#include "daemon/decode/slice_check.h"

struct slice_thread;

int slice_thread_open(struct slice_thread **ret); // 0 or -ENOMEM
void slice_thread_close(struct slice_thread *);   // after slice_thread_end; accepts NULL
// As slice_check_extradata; not between begin and end.
void slice_thread_extradata(struct slice_thread *, const uint8_t *extradata, size_t size);
// Begins to check a packet, whose data stay valid until slice_thread_end.
void slice_thread_begin(struct slice_thread *, const uint8_t *data, size_t size);
enum slice_check_result slice_thread_end(struct slice_thread *); // waits for the result
bool slice_thread_lacks_profile(const struct slice_thread *);    // not between begin and end

#endif
