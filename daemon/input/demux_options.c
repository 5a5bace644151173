#include "daemon/input/demux_options.h"

#include <libavformat/avformat.h>
#include <libavutil/avstring.h>
#include <libavutil/opt.h>
#include <string.h>

#include "daemon/input/url.h"

bool demuxer_exists(const char *name)
{
    return av_find_input_format(name);
}

static bool class_has(const AVClass *class, const char *option)
{
    return class && av_opt_find(&class, option, NULL, 0, AV_OPT_SEARCH_FAKE_OBJ);
}

static bool any_demuxer_has(const char *option)
{
    const AVInputFormat *demuxer;
    void *i = NULL;
    while ((demuxer = av_demuxer_iterate(&i)))
        if (class_has(demuxer->priv_class, option))
            return true;
    return false;
}

// The common options of all protocols are in a child of a child of libavformat's own class.
static bool every_protocol_has(const char *option)
{
    const AVClass *io, *protocol;
    void *i = NULL;
    while ((io = av_opt_child_class_iterate(avformat_get_class(), &i))) {
        void *j = NULL;
        if (strcmp(io->class_name, "AVIOContext") != 0)
            continue;
        while ((protocol = av_opt_child_class_iterate(io, &j)))
            if (class_has(protocol, option))
                return true;
    }
    return false;
}

// `whitelist`: the allowed protocols, separated by commas; NULL: all.
static bool any_protocol_has(const char *whitelist, const char *option)
{
    const char *name;
    void *i = NULL;
    while ((name = avio_enum_protocols(&i, 0)))
        if ((!whitelist || av_match_list(name, whitelist, ',')) &&
            class_has(avio_protocol_get_class(name), option))
            return true;
    return every_protocol_has(option);
}

// framed itself reads pipes and fifos.
static bool opens_protocol(const struct url_input *source, const AVInputFormat *demuxer)
{
    return !(demuxer && demuxer->flags & AVFMT_NOFILE) &&
           !(source && (source->kind == URL_PIPE || source->fifo));
}

bool demuxer_takes_option(const struct camera_config *camera, const char *option)
{
    const AVInputFormat *demuxer = camera->demuxer ? av_find_input_format(camera->demuxer) : NULL;
    const struct url_input *source = camera->url ? url_input_of(camera->url) : NULL;
    if (class_has(avformat_get_class(), option))
        return true;
    if (demuxer ? class_has(demuxer->priv_class, option) : any_demuxer_has(option))
        return true;
    return opens_protocol(source, demuxer) &&
           any_protocol_has(source ? source->whitelist : NULL, option);
}
