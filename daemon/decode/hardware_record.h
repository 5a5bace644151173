// The record of `framed verify --decoders`: which hardware decoders gave the known pictures, with
// which libraries, and how fast they and the CPU are. A text file with a line for each decoder,
// codec and depth. `decode: auto` takes what is faster than the CPU.
#ifndef FRAMED_DAEMON_DECODE_HARDWARE_RECORD_H
#define FRAMED_DAEMON_DECODE_HARDWARE_RECORD_H

#include <libavcodec/avcodec.h>
#include <stdbool.h>

#include "config/types.h"

enum { HARDWARE_RESULTS_MAX = 64, HARDWARE_DRIVER_MAX = 128, HARDWARE_LIBRARIES_MAX = 256 };

struct hardware_record {
    struct hardware_result {
        struct decoder_choice decoder; // by DECODE_HARDWARE or DECODE_CPU
        enum AVCodecID codec;
        int bits; // of a sample
        double fps;
        char driver[HARDWARE_DRIVER_MAX]; // its name and version; "": not known
    } list[HARDWARE_RESULTS_MAX];
    int n;
};

// The versions of FFmpeg, the kernel with its drivers and NVIDIA's driver, and the GPUs.
const char *hardware_record_libraries(char to[HARDWARE_LIBRARIES_MAX]);
// The folder that records are kept in: the first of $STATE_DIRECTORY, as systemd has it; else
// /var/lib/framed for root, and .local/state/framed in the home of others ($XDG_STATE_HOME). To be
// freed; NULL: there is none.
char *hardware_record_folder(void);
// 0; -ESTALE: decoders were verified with other libraries or by another version of framed, whatever
// the result was; -ENOENT and others: there is no record; -EBADMSG: the file is none. Except with 0
// the record is empty.
int hardware_record_read(struct hardware_record *ret, const char *folder);
// All or nothing; makes the folder. 0 or negative errno.
int hardware_record_write(const struct hardware_record *, const char *folder);

void hardware_record_add(struct hardware_record *, const struct hardware_result *);
void hardware_record_forget(struct hardware_record *, const struct decoder_choice *);
// The fastest decoder for the stream's codec and depth, if it is faster than the CPU; else, and
// without a record, NULL.
const struct hardware_result *hardware_record_choose(const struct hardware_record *,
                                                     const AVCodecParameters *);
// What `auto` takes for each codec and depth, and why: "vaapi for h264 of 8 bits (412 pictures/s,
// the CPU 178)". "": no hardware was equal.
void hardware_record_describe(const struct hardware_record *, char *to, size_t size);

#endif
