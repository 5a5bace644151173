// Any SDP of a camera: texts end, numbers are within their bounds, and parameter sets begin with a
// start code and do not end in a zero byte.
#include <stdlib.h>
#include <string.h>

#include "daemon/rtsp/sdp.h"
#include "tests/fuzz/turns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_within(int value, int low, int high)
{
    return value >= low && value <= high;
}

static void check_media(const struct sdp_media *media)
{
    MUST(strlen(media->kind) < sizeof media->kind);
    MUST(strlen(media->encoding) < sizeof media->encoding);
    MUST(strlen(media->control) < sizeof media->control);
    MUST(strlen(media->address) < sizeof media->address);
    MUST(media->codec == SDP_OTHER || (media->video && media->clock_rate > 0));
    MUST(is_within(media->payload_type, 0, 127) && is_within(media->port, 0, 65535));
    MUST(is_within(media->ttl, 0, 255) && media->rate >= 0 && media->rate <= 1000);
    MUST(is_within(media->width, 0, 1 << 15) && is_within(media->height, 0, 1 << 15));
    MUST(!media->width == !media->height);
    MUST(is_within(media->sets_bytes, 0, SDP_SETS_MAX));
    MUST(!media->sets_bytes || memcmp(media->sets, "\0\0\0\1", 4) == 0);
    MUST(!media->sets_bytes || media->sets[media->sets_bytes - 1] != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct sdp sdp;
    const int rc = sdp_parse(&sdp, (const char *)data, size);
    MUST((rc == 0) == (sdp.n_media > 0) && sdp.n_media <= SDP_MEDIA_MAX);
    MUST(strlen(sdp.control) < sizeof sdp.control);
    for (int i = 0; i < sdp.n_media; i++)
        check_media(&sdp.media[i]);
    const int video = sdp_choose_video(&sdp, -1);
    MUST(video < sdp.n_media);
    MUST(video < 0 || (sdp.media[video].video && sdp.media[video].codec != SDP_OTHER));
    return 0;
}
