// The record of `framed verify --decoders`: which hardware decoders gave the cpu's pictures, with
// the drivers and libraries that they did so with. A text file, a line for each decoder and codec.
#ifndef FRAMED_DAEMON_DECODE_HARDWARE_RECORD_H
#define FRAMED_DAEMON_DECODE_HARDWARE_RECORD_H

#include <libavcodec/codec_id.h>
#include <stdbool.h>

#include "config/types.h"

enum { HARDWARE_RESULTS_MAX = 64 };

struct hardware_record {
    struct hardware_result {
        struct decoder_choice decoder;
        enum AVCodecID codec;
        bool equal; // all clips that it decodes
    } list[HARDWARE_RESULTS_MAX];
    int n;
    char key[65]; // of hardware_record_key
};

// What the results hold for: libraries, kernel, drivers and devices of this box, as hex digits.
void hardware_record_key(char ret[65]);
// The folder that records are kept in: the first of $STATE_DIRECTORY, as systemd has it; else
// /var/lib/framed for root, and .local/state/framed in the home of others ($XDG_STATE_HOME). To be
// freed; NULL: there is none.
char *hardware_record_folder(void);
// 0; -ENOENT and others: there is no record; -EBADMSG: it is none.
int hardware_record_read(struct hardware_record *ret, const char *folder);
// The decoder that `auto` takes for a codec; NULL: none is known to be equal, or there is no
// record.
const struct decoder_choice *hardware_record_choose(const struct hardware_record *, enum AVCodecID);
// All or nothing; makes the folder. 0 or negative errno.
int hardware_record_write(const struct hardware_record *, const char *folder);

#endif
