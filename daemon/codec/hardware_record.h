// The record of `framed verify --decoders`: the hardware decoders that gave the known pictures, the
// libraries used, and the speed of each decoder and of the CPU. A text file with a line for each
// decoder, codec and depth. `decode: auto` uses decoders faster than the CPU.
#ifndef FRAMED_DAEMON_CODEC_HARDWARE_RECORD_H
#define FRAMED_DAEMON_CODEC_HARDWARE_RECORD_H

#include <libavcodec/avcodec.h>
#include <stdbool.h>

#include "config/types.h"

enum { HARDWARE_RESULTS_MAX = 64, HARDWARE_DRIVER_MAX = 128, HARDWARE_LIBRARIES_MAX = 256 };

struct hardware_record {
    struct hardware_result {
        struct decoder_choice decoder; // by DECODE_HARDWARE or DECODE_CPU
        enum AVCodecID codec;
        int bits; // per sample
        double fps;
        char driver[HARDWARE_DRIVER_MAX]; // name and version; "": unknown
    } list[HARDWARE_RESULTS_MAX];
    int n;
};

// Returns the versions of FFmpeg, the kernel with its drivers and NVIDIA's driver, and the GPUs.
const char *hardware_record_libraries(char to[HARDWARE_LIBRARIES_MAX]);
// Returns the folder of records: the first of $STATE_DIRECTORY, as set by systemd; else
// /var/lib/framed for root, and .local/state/framed in the home of others ($XDG_STATE_HOME). To be
// freed; NULL: none.
char *hardware_record_folder(void);
// Reads the record in a folder; NULL: in hardware_record_folder(). Returns 0; -ESTALE: decoders
// were verified, with any result, with other libraries or by another version of framed; -ENOENT and
// others: there is no record; -EBADMSG: the file is not a record. The record is empty unless 0 is
// returned.
int hardware_record_read(struct hardware_record *ret, const char *folder);
// Writes the file atomically; makes the folder. Returns 0 or a negative errno.
int hardware_record_write(const struct hardware_record *, const char *folder);

void hardware_record_add(struct hardware_record *, const struct hardware_result *);
void hardware_record_forget(struct hardware_record *, const struct decoder_choice *);
// Returns the fastest decoder for the stream's codec and depth, if it is faster than the CPU.
// Otherwise, and without a record, NULL.
const struct hardware_result *hardware_record_choose(const struct hardware_record *,
                                                     const AVCodecParameters *);
// Writes what `auto` uses for each codec and depth, and why: "vaapi for h264 of 8 bits (412
// pictures/s, the CPU 178)". "": no hardware gave the known pictures.
void hardware_record_describe(const struct hardware_record *, char *to, size_t size);

#endif
