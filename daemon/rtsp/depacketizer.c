#include "daemon/rtsp/depacketizer.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/rtsp/nal_assembly.h"
#include "daemon/rtsp/rtp_receiver.h"
#include "daemon/rtsp/sdp.h"

struct depacketizer {
    const struct depacketize_codec *codec;
    struct assembly assembly;
    void *state; // of the codec
};

static const struct depacketize_codec *const codecs[] = {
    [SDP_H264] = &depacketize_h264,
    [SDP_H265] = &depacketize_h265,
    [SDP_JPEG] = &depacketize_jpeg,
};

int depacketizer_open(struct depacketizer **ret, const struct sdp_media *media,
                      struct picture_end_verdict *verdict)
{
    const size_t n = sizeof codecs / sizeof codecs[0];
    const struct depacketize_codec *codec = media->codec < n ? codecs[media->codec] : NULL;
    if (!codec)
        return -ENOTSUP;
    struct depacketizer *d = calloc(1, sizeof *d);
    void *state = calloc(1, codec->bytes);
    if (!d || !state) {
        free(d);
        free(state);
        return -ENOMEM;
    }
    d->codec = codec;
    d->state = state;
    assembly_open(&d->assembly, verdict);
    codec->open(state, &d->assembly, media);
    *ret = d;
    return 0;
}

void depacketizer_close(struct depacketizer *d)
{
    if (!d)
        return;
    assembly_close(&d->assembly);
    free(d->state);
    free(d);
}

int depacketizer_put(struct depacketizer *d, const struct rtp_packet *packet)
{
    assembly_release(&d->assembly);
    d->assembly.no_memory = false;
    d->codec->packet(d->state, packet);
    return d->assembly.no_memory ? -ENOMEM : 0;
}

int depacketizer_get(struct depacketizer *d, int64_t now_ns, struct access_unit *ret)
{
    return assembly_take(&d->assembly, now_ns, ret);
}

int64_t depacketizer_due_ns(const struct depacketizer *d)
{
    return assembly_due_ns(&d->assembly);
}

void depacketizer_flush(struct depacketizer *d)
{
    d->codec->flush(d->state);
    assembly_flush(&d->assembly);
}

const uint8_t *depacketizer_sets(const struct depacketizer *d, size_t *bytes)
{
    const struct parameter_sets *sets = d->codec->sets ? d->codec->sets(d->state) : NULL;
    *bytes = sets ? sets->bytes : 0;
    return sets ? sets->data : NULL;
}

const char *depacketizer_complaint(const struct depacketizer *d)
{
    return d->codec->complaint ? d->codec->complaint(d->state) : NULL;
}
