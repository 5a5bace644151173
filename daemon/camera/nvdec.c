#include "daemon/camera/nvdec.h"

#include <errno.h>
#include <libavutil/hwcontext.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/camera/decode.h"

enum { EXTRA_MAX = 12 }; // of NVDEC's 32 surfaces; a stream may need 18 for itself

struct decode_device {
    AVBufferRef *context;
};

int decode_device_open(struct decode_device **ret, int ordinal)
{
    struct decode_device *device = calloc(1, sizeof(*device));
    AVDictionary *options = NULL;
    char name[16];
    if (!device)
        return -ENOMEM;
    snprintf(name, sizeof(name), "%d", ordinal);
    int rc = av_dict_set(&options, "primary_ctx", "1", 0);
    if (rc >= 0)
        rc = av_hwdevice_ctx_create(&device->context, AV_HWDEVICE_TYPE_CUDA, name, options, 0);
    av_dict_free(&options);
    *ret = rc < 0 ? NULL : device;
    if (rc < 0)
        free(device);
    return rc < 0 ? -ENODEV : 0;
}

void decode_device_close(struct decode_device *device)
{
    if (!device)
        return;
    av_buffer_unref(&device->context);
    free(device);
}

static bool decodes_on_cuda(const AVCodec *codec)
{
    const AVCodecHWConfig *config;
    for (int i = 0; (config = avcodec_get_hw_config(codec, i)); i++) {
        // The cuvid decoders, which have methods of their own, cannot step down.
        if (config->device_type == AV_HWDEVICE_TYPE_CUDA &&
            (config->methods & AV_CODEC_HW_CONFIG_METHOD_HW_DEVICE_CTX) &&
            !(config->methods & AV_CODEC_HW_CONFIG_METHOD_INTERNAL))
            return true;
    }
    return false;
}

// The codecs whose standards leave no choice in a picture's bytes: the others, JPEG and the MPEGs
// before H.264 with their own transforms, would not come out as on the cpu.
static bool is_exact(enum AVCodecID id)
{
    return id == AV_CODEC_ID_H264 || id == AV_CODEC_ID_HEVC || id == AV_CODEC_ID_AV1 ||
           id == AV_CODEC_ID_VP8 || id == AV_CODEC_ID_VP9;
}

// Not always libavcodec's first choice for the codec: for AV1 that is a library for the cpu.
const AVCodec *nvdec_codec(enum AVCodecID id)
{
    const AVCodec *codec;
    for (void *at = NULL; is_exact(id) && (codec = av_codec_iterate(&at));) {
        if (codec->id == id && av_codec_is_decoder(codec) && decodes_on_cuda(codec))
            return codec;
    }
    return NULL;
}

// libavcodec asks again without a format whose set-up failed; NONE makes the packet fail.
static enum AVPixelFormat choose_cuda(AVCodecContext *codec, const enum AVPixelFormat *formats)
{
    bool *refused = codec->opaque;
    for (; *formats != AV_PIX_FMT_NONE; formats++) {
        if (*formats == AV_PIX_FMT_CUDA)
            return AV_PIX_FMT_CUDA;
    }
    *refused = true;
    return AV_PIX_FMT_NONE;
}

int nvdec_prepare(AVCodecContext *codec, const struct decode_device *device, int in_flight,
                  bool *refused)
{
    int extra = in_flight + 2; // one being decoded, one being handed over
    codec->hw_device_ctx = av_buffer_ref(device->context);
    codec->get_format = choose_cuda;
    codec->opaque = refused;
    codec->extra_hw_frames = extra < EXTRA_MAX ? extra : EXTRA_MAX;
    codec->thread_count = 1; // NVDEC works while we wait; more threads only add delay
    return codec->hw_device_ctx ? 0 : -ENOMEM;
}
