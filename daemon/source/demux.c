#include "daemon/source/demux.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/url.h"
#include "daemon/base/number.h"

static const struct url_input sources[] = {
    {URL_RTSP, false, true, "rtsp,rtp,tcp,udp,tls", "over rtsp"},
    {URL_TCP, false, true, "tcp", "over tcp"},
    {URL_UNIX, false, true, "unix", "over a unix socket"},
    {URL_PIPE, false, false, "pipe", "from a pipe"},
    {URL_FILE, false, false, "file", "from a file"},
    {URL_FILE, true, true, "pipe", "from a fifo"},
};

const struct url_input *url_input_of(const char *url)
{
    struct stat st;
    enum url_kind kind = config_url_kind(url);
    bool is_fifo = kind == URL_FILE && stat(config_url_path(url), &st) == 0 && S_ISFIFO(st.st_mode);
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
        if (sources[i].kind == kind && sources[i].fifo == is_fifo)
            return &sources[i];
    return NULL;
}

// libavformat's client accepts any certificate, sends the password by Basic to any server that
// requests it, and passes it on to another host.
static bool needs_consent(const struct camera_config *config)
{
    const bool secret =
        config_url_is_rtsps(config->url) || config_url_login(config->url, &(size_t){0});
    return secret && (config->tls.verify || config->tls.fingerprint.set);
}

// Opens a codec without a depacketizer of ours (MPEG-4, VP8, VP9, MPEG-TS) with libavformat's RTSP
// client.
static int open_other_codec(struct demux **ret, const struct url_input *source,
                            const struct demux_context *context, char *why, size_t size)
{
    const char *url = context->config->url, *mistake = config_url_libav_mistake(url);
    const size_t n = strlen(why);
    if (!mistake && !needs_consent(context->config)) {
        why[0] = 0;
        return demux_libav.open(ret, source, context, why, size);
    }
    if (mistake)
        snprintf(why + n, size - n, "; libavformat could read it, but the URL %s", mistake);
    else
        snprintf(why + n, size - n,
                 "; libavformat could read it, but takes any certificate and any way to log in: "
                 "that needs tls: {verify: false}");
    return -EMEDIUMTYPE;
}

int demux_open(struct demux **ret, const struct camera_config *config, struct demux_memory *memory,
               const _Atomic bool *stop, struct stage_watch *stages, char *why, size_t size)
{
    const struct url_input *source = url_input_of(config->url);
    why[0] = 0;
    if (!source) {
        snprintf(why, size, "its url is no input that framed takes");
        return -EPROTONOSUPPORT;
    }
    const struct demux_context context = {config, memory, stop, stages};
    if (source->kind != URL_RTSP)
        return demux_libav.open(ret, source, &context, why, size);
    const int rc = demux_rtsp.open(ret, source, &context, why, size);
    return rc == -EMEDIUMTYPE ? open_other_codec(ret, source, &context, why, size) : rc;
}

bool demux_is_live(const char *url)
{
    const struct url_input *source = url_input_of(url);
    return source && source->live;
}

int demux_read(struct demux *demux, struct packet *ret)
{
    return demux->driver->read(demux, ret);
}

int demux_rewind(struct demux *demux)
{
    return demux->driver->rewind ? demux->driver->rewind(demux) : -ESPIPE;
}

void demux_close(struct demux *demux)
{
    if (demux)
        demux->driver->close(demux);
}

// --- the orientation

int orientation_of(const int32_t matrix[9])
{
    // A pixel at (x, y) is shown at (a*x + b*y, c*x + d*y).
    const int64_t a = matrix[0], b = matrix[3], c = matrix[1], d = matrix[4];
    const bool quarter = llabs(b) > llabs(a);
    const int64_t right = quarter ? b : a, down = quarter ? c : d;
    const int64_t rest = bounds_max(llabs(quarter ? a : b), llabs(quarter ? d : c));
    if (!a && !b && !c && !d) // from muxers that leave the field empty
        return ORIENTATION_UPRIGHT;
    if (rest * 256 >= bounds_min(llabs(right), llabs(down))) // computed from angles and rounded
        return -EINVAL;
    const bool mirrored = ((right > 0) != (down > 0)) != quarter;
    const bool half = quarter ? right > 0 : down < 0;
    return quarter + half * ORIENTATION_HALF + mirrored * ORIENTATION_MIRRORED;
}

const char *orientation_name(enum orientation orientation)
{
    static const char *const names[] = {
        "upright",
        "turned by 90 degrees clockwise",
        "turned by 180 degrees clockwise",
        "turned by 270 degrees clockwise",
        "mirrored",
        "mirrored, then turned by 90 degrees clockwise",
        "mirrored, then turned by 180 degrees clockwise",
        "mirrored, then turned by 270 degrees clockwise",
    };
    return names[orientation];
}
