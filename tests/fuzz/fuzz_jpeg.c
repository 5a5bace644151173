// Any payloads of a camera's RTP packets: tests/fuzz/rtp_payloads.h. The first byte sets the SDP's
// options.
#include "tests/fuzz/rtp_payloads.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0)
        rtp_payloads_try(SDP_JPEG, data[0], data + 1, size - 1);
    return 0;
}
