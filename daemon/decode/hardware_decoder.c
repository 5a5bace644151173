#include "daemon/decode/hardware_decoder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/decode/nvdec.h"

// Whether libavcodec's own decoder hands its work to such a device. With the method `internal` it
// is a library of its own.
static bool works_on(const AVCodec *codec, enum AVHWDeviceType device, enum AVPixelFormat *format)
{
    const AVCodecHWConfig *config;
    for (int i = 0; (config = avcodec_get_hw_config(codec, i)); i++) {
        *format = config->pix_fmt;
        if (config->device_type == device &&
            (config->methods & AV_CODEC_HW_CONFIG_METHOD_HW_DEVICE_CTX) &&
            !(config->methods & AV_CODEC_HW_CONFIG_METHOD_INTERNAL))
            return true;
    }
    return false;
}

static bool takes_device(const AVCodec *codec, enum AVHWDeviceType device)
{
    const AVCodecHWConfig *config;
    for (int i = 0; (config = avcodec_get_hw_config(codec, i)); i++)
        if (config->device_type == device)
            return true;
    return false;
}

static const AVCodec *find_library(const char *name, enum AVCodecID id)
{
    const AVCodec *codec = avcodec_find_decoder_by_name(name);
    const int hardware = AV_CODEC_CAP_HARDWARE | AV_CODEC_CAP_HYBRID;
    return codec && codec->id == id && (codec->capabilities & hardware) ? codec : NULL;
}

int hardware_decoder_find(struct hardware_decoder *ret, const char *name, enum AVCodecID id)
{
    char full[64];
    *ret = (struct hardware_decoder){.device = av_hwdevice_find_type_by_name(name),
                                     .format = AV_PIX_FMT_NONE};
    if (!nvdec_is_exact(id))
        return -ENOTSUP;
    for (void *at = NULL; ret->device && (ret->codec = av_codec_iterate(&at));) {
        if (ret->codec->id == id && av_codec_is_decoder(ret->codec) &&
            works_on(ret->codec, ret->device, &ret->format))
            return 0;
    }
    ret->format = AV_PIX_FMT_NONE;
    snprintf(full, sizeof full, "%s_%s", avcodec_get_name(id), name);
    ret->codec = find_library(full, id);
    if (!ret->codec)
        ret->codec = find_library(name, id);
    if (ret->codec && !takes_device(ret->codec, ret->device))
        ret->device = AV_HWDEVICE_TYPE_NONE;
    return ret->codec ? 0 : -ENOTSUP;
}

const char *const *hardware_decoder_names(void)
{
    static const char *const names[] = {"vaapi", "qsv", "v4l2m2m", "rkmpp", "cuda", NULL};
    return names;
}

enum AVCodecID hardware_decoder_codec(const char *name)
{
    const AVCodecDescriptor *codec = avcodec_descriptor_get_by_name(name);
    return codec ? codec->id : AV_CODEC_ID_NONE;
}

const char *hardware_decoder_version(void)
{
    return av_version_info();
}

bool hardware_decoder_is_known(const char *name)
{
    static const enum AVCodecID ids[] = {AV_CODEC_ID_H264, AV_CODEC_ID_HEVC, AV_CODEC_ID_AV1,
                                         AV_CODEC_ID_VP8, AV_CODEC_ID_VP9};
    struct hardware_decoder decoder;
    for (const char *const *known = hardware_decoder_names(); *known; known++)
        if (strcmp(name, *known) == 0)
            return true;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (hardware_decoder_find(&decoder, name, ids[i]) == 0)
            return true;
    return false;
}
