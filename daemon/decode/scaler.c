#include "daemon/decode/scaler.h"

#include <errno.h>
#include <libavutil/frame.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>

#include "daemon/decode/buffers.h"
#include "daemon/decode/pixel_format_map.h"

// Chroma halved across becomes left-sited; halved down, it lies between the rows.
static int set_up(struct SwsContext *sws, const AVFrame *from, enum AVPixelFormat target)
{
    enum AVPixelFormat source = pixel_format_map_without_range(from->format);
    const struct {
        const char *name;
        int64_t value;
    } options[] = {
        {"srcw", from->width},
        {"srch", from->height},
        {"src_format", source},
        {"dstw", from->width},
        {"dsth", from->height},
        {"dst_format", target},
        {"sws_flags",
         SWS_BILINEAR | SWS_ACCURATE_RND | SWS_BITEXACT | SWS_FULL_CHR_H_INP | SWS_FULL_CHR_H_INT},
        {"src_h_chr_pos", 0},
        {"dst_h_chr_pos", 0},
        {"src_v_chr_pos", av_pix_fmt_desc_get(source)->log2_chroma_h ? 128 : 0},
        {"dst_v_chr_pos", 128},
    };
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
        if (av_opt_set_int(sws, options[i].name, options[i].value, 0) < 0)
            return -EINVAL;
    }
    if (sws_init_context(sws, NULL, NULL) < 0)
        return -ENOTSUP;
    // The same range on both sides, whichever it is: levels keep their values.
    const int *matrix = sws_getCoefficients(SWS_CS_DEFAULT);
    sws_setColorspaceDetails(sws, matrix, 1, matrix, 1, 0, 1 << 16, 1 << 16);
    return 0;
}

static int choose(struct scaler *scaler, const AVFrame *from, enum AVPixelFormat target)
{
    if (scaler->sws && scaler->format == from->format && scaler->width == from->width &&
        scaler->height == from->height)
        return 0;
    scaler_close(scaler);
    scaler->sws = sws_alloc_context();
    int rc = scaler->sws ? set_up(scaler->sws, from, target) : -ENOMEM;
    if (rc < 0) {
        scaler_close(scaler);
        return rc;
    }
    scaler->format = from->format;
    scaler->width = from->width;
    scaler->height = from->height;
    return 0;
}

int scaler_convert(struct scaler *scaler, struct buffers *buffers, AVFrame *to, const AVFrame *from)
{
    enum AVPixelFormat target = pixel_format_map_converted(from->format);
    int rc = choose(scaler, from, target);
    if (rc < 0)
        return rc;
    rc = buffers_fill(buffers, to, target, from->width, from->height);
    if (rc < 0)
        return rc;
    rc = sws_scale(scaler->sws, (const uint8_t *const *)from->data, from->linesize, 0, from->height,
                   to->data, to->linesize);
    return rc < 0 ? rc : 0;
}

void scaler_close(struct scaler *scaler)
{
    sws_freeContext(scaler->sws);
    *scaler = (struct scaler){0};
}
