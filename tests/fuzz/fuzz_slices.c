// Whatever the bytes of an H.265 stream are: nothing is read behind them, and the check ends. The
// first byte says how many, by 16, are the extradata; the rest is a packet, which comes twice.
#include <stdlib.h>

#include "daemon/decode/slice_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    size_t split = 16 * (size_t)data[0];
    data++;
    size--;
    split = split < size ? split : size;
    struct slice_check *check = slice_check_open();
    if (!check)
        abort();
    slice_check_extradata(check, data, split);
    slice_check_packet(check, data + split, size - split);
    slice_check_packet(check, data + split, size - split);
    slice_check_close(check);
    return 0;
}
