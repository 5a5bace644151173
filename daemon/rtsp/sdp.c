#include "daemon/rtsp/sdp.h"

#include <ctype.h>
#include <errno.h>
#include <libavutil/base64.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/base/log.h"

enum {
    FMTP_MAX = 32, // a=fmtp lines kept
    RATE_MAX = 1000,
    DIMENSION_MAX = 1 << 15,
    START_BYTES = 4, // of a start code
};

struct span { // a piece of the text
    const char *begin, *end;
};

struct fmtp { // parameters of a payload type
    int section, payload_type;
    struct span parameters;
};

struct parser {
    struct sdp *sdp;
    int section;              // of the present line; -1: of the session
    int first;                // index in sdp->media of this section's first entry
    struct sdp_media session; // what media sections take from it
    struct fmtp fmtp[FMTP_MAX];
    int n_fmtp;
};

// --- words

static struct span trim(struct span span)
{
    while (span.begin < span.end && isspace((unsigned char)*span.begin))
        span.begin++;
    while (span.begin < span.end && isspace((unsigned char)span.end[-1]))
        span.end--;
    return span;
}

// Cuts off and returns the text before the first of `separators`, trimmed; the rest stays in *rest.
static struct span cut(struct span *rest, const char *separators)
{
    struct span part = *rest;
    const char *p = part.begin;
    while (p < part.end && !(*p && strchr(separators, *p)))
        p++;
    part.end = p;
    rest->begin = p < rest->end ? p + 1 : p;
    return trim(part);
}

static struct span cut_word(struct span *rest)
{
    *rest = trim(*rest);
    return cut(rest, " \t");
}

static bool is(struct span span, const char *word)
{
    const size_t n = strlen(word);
    return (size_t)(span.end - span.begin) == n && strncasecmp(span.begin, word, n) == 0;
}

// Returns false and writes nothing if it does not fit.
static bool copy(char *ret, size_t size, struct span span)
{
    const size_t n = (size_t)(span.end - span.begin);
    if (n >= size)
        return false;
    memcpy(ret, span.begin, n);
    ret[n] = 0;
    return true;
}

// Returns the number that a span begins with; -1: none, or one above 1 << 24.
static int number(struct span span)
{
    char text[16] = "", *end = text;
    const bool fits = copy(text, sizeof text, trim(span)) && isdigit((unsigned char)*text);
    const long n = fits ? strtol(text, &end, 10) : -1;
    return end > text && n <= 1 << 24 ? (int)n : -1;
}

// --- parameter sets

// Adds the units in a base64 list of NAL units. Cameras put start codes into an entry, also between
// its units.
static void add_sets(struct sdp_media *media, struct span list)
{
    char text[SDP_SETS_MAX / 3 * 4 + 1];
    uint8_t data[SDP_SETS_MAX]; // has room for what the text has
    while (list.begin < list.end) {
        const bool fits = copy(text, sizeof text, cut(&list, ","));
        int bytes = fits ? av_base64_decode(data, text, sizeof data) : 0, begin = 0;
        while (bytes > 0 && data[bytes - 1] == 0)
            bytes--; // no NAL unit ends in a zero
        while (begin < bytes && data[begin] <= 1)
            begin++; // a start code, as no parameter set begins
        uint8_t *to = media->sets + media->sets_bytes;
        if (bytes <= begin || bytes - begin + START_BYTES > SDP_SETS_MAX - media->sets_bytes)
            continue;
        memcpy(to, "\0\0\0\1", START_BYTES);
        memcpy(to + START_BYTES, data + begin, (size_t)(bytes - begin));
        media->sets_bytes += START_BYTES + bytes - begin;
    }
}

static void set_dimensions(struct sdp_media *media, int width, int height)
{
    if (width > 0 && height > 0 && width <= DIMENSION_MAX && height <= DIMENSION_MAX) {
        media->width = width;
        media->height = height;
    }
}

static void set_encoding(struct sdp_media *media, const char *encoding, int clock_rate)
{
    static const struct {
        const char *name;
        enum sdp_codec codec;
    } codecs[] = {{"H264", SDP_H264}, {"H265", SDP_H265}, {"HEVC", SDP_H265}, {"JPEG", SDP_JPEG}};
    snprintf(media->encoding, sizeof media->encoding, "%s", encoding);
    peer_text_clean(media->encoding);
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++)
        if (media->video && strcasecmp(encoding, codecs[i].name) == 0)
            media->codec = codecs[i].codec;
    // RFC 6184 allows only 90000. Some cameras announce another rate and use it, some announce one
    // without using it, and some announce 0.
    media->clock_rate = media->video && clock_rate <= 0 ? 90000 : clock_rate;
}

// Reads parameters, of the entry's own section or of another one. They name the codec, too: some
// cameras send no rtpmap for a dynamic payload type.
static void read_parameters(struct sdp_media *media, bool own, struct span parameters)
{
    static const struct {
        const char *name, *encoding;
    } known[] = {{"packetization-mode", "H264"},
                 {"sprop-parameter-sets", "H264"},
                 {"sprop-vps", "H265"},
                 {"sprop-sps", "H265"},
                 {"sprop-pps", "H265"}};
    int width = 0, height = 0;
    while (parameters.begin < parameters.end) {
        struct span value = cut(&parameters, ";");
        const struct span name = cut(&value, "=");
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
            if (!is(name, known[i].name))
                continue;
            if (own && media->video && !*media->encoding)
                set_encoding(media, known[i].encoding, 90000);
            if (i > 0 && (media->codec == SDP_H264 || media->codec == SDP_H265))
                add_sets(media, trim(value));
        }
        if (media->codec == SDP_H265 && is(name, "sprop-max-don-diff"))
            media->donl = number(value) > 0;
        width = is(name, "width") ? number(value) : width;
        height = is(name, "height") ? number(value) : height;
    }
    if (media->width == 0 && media->codec != SDP_OTHER)
        set_dimensions(media, width, height);
}

// Takes the parameters from the entry's own section, else its payload type's from another one.
static void finish_media(const struct parser *parser, struct sdp_media *media)
{
    for (int own = 1; own >= 0 && !media->sets_bytes; own--)
        for (int i = 0; i < parser->n_fmtp; i++) {
            const struct fmtp *fmtp = &parser->fmtp[i];
            if (fmtp->payload_type == media->payload_type &&
                (fmtp->section == media->section) == own)
                read_parameters(media, own, fmtp->parameters);
        }
}

// --- lines

static void add_format(struct parser *parser, const struct sdp_media *section, int payload_type)
{
    static const struct {
        int payload_type;
        const char *encoding;
        int clock_rate;
    } fixed[] = {
        // RFC 3551; the rtpmap may be missing
        {0, "PCMU", 8000},  {8, "PCMA", 8000},   {14, "MPA", 90000},  {26, "JPEG", 90000},
        {32, "MPV", 90000}, {33, "MP2T", 90000}, {34, "H263", 90000},
    };
    struct sdp *sdp = parser->sdp;
    if (payload_type < 0 || payload_type > 127 || sdp->n_media == SDP_MEDIA_MAX)
        return;
    for (int i = parser->first; i < sdp->n_media; i++)
        if (sdp->media[i].payload_type == payload_type)
            return;
    struct sdp_media *media = &sdp->media[sdp->n_media++];
    *media = *section;
    media->payload_type = payload_type;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (fixed[i].payload_type == payload_type)
            set_encoding(media, fixed[i].encoding, fixed[i].clock_rate);
}

// m=video 0 RTP/AVP 98 96: each payload type becomes an entry; for audio and others only the first.
static void begin_media(struct parser *parser, struct span value)
{
    struct sdp_media media = parser->session;
    const struct span kind = cut_word(&value);
    const int port = number(cut_word(&value));
    cut_word(&value); // RTP/AVP
    media.section = ++parser->section;
    media.port = port > 0 && port <= 65535 ? port : 0;
    media.video = is(kind, "video");
    parser->first = parser->sdp->n_media;
    if (!copy(media.kind, sizeof media.kind, kind))
        return;
    peer_text_clean(media.kind);
    add_format(parser, &media, number(cut_word(&value)));
    while (media.video && value.begin < value.end)
        add_format(parser, &media, number(cut_word(&value)));
}

// Adds a payload type that is not listed in the m= line: some cameras describe such types.
static void add_unlisted_format(struct parser *parser, struct span rtpmap)
{
    const struct sdp *sdp = parser->sdp;
    if (parser->first == sdp->n_media || !sdp->media[parser->first].video)
        return;
    struct sdp_media media = sdp->media[parser->first];
    *media.encoding = 0;
    media.codec = SDP_OTHER;
    add_format(parser, &media, number(cut_word(&rtpmap)));
}

// c=IN IP4 239.1.2.3/64
static void parse_connection(struct parser *parser, struct span value)
{
    struct sdp *sdp = parser->sdp;
    const bool session = parser->section < 0;
    struct sdp_media *media = session ? &parser->session : &sdp->media[parser->first];
    struct sdp_media *const end = session ? media + 1 : &sdp->media[sdp->n_media];
    cut_word(&value); // IN
    const bool ipv4 = is(cut_word(&value), "IP4");
    const struct span host = cut(&value, "/");
    const int ttl = ipv4 ? number(cut(&value, "/")) : -1;
    for (; host.begin < host.end && media < end; media++)
        if (copy(media->address, sizeof media->address, host))
            media->ttl = ttl > 0 && ttl <= 255 ? ttl : 0;
}

// send [x=2592,y=1944] recv [x=640,y=480]
static void read_image_attribute(struct sdp_media *media, struct span value)
{
    int width = 0, height = 0;
    while (value.begin < value.end && !is(cut_word(&value), "send"))
        ;
    cut(&value, "[");
    struct span list = cut(&value, "]");
    while (list.begin < list.end) {
        struct span side = cut(&list, ",");
        const struct span name = cut(&side, "=");
        width = is(name, "x") ? number(side) : width;
        height = is(name, "y") ? number(side) : height;
    }
    set_dimensions(media, width, height);
}

static void parse_media_attribute(struct sdp_media *media, struct span name, struct span value)
{
    char text[32];
    if (is(name, "rtpmap") && number(cut_word(&value)) == media->payload_type) {
        const struct span encoding = cut(&value, "/");
        if (copy(text, sizeof text, encoding))
            set_encoding(media, text, number(cut(&value, "/")));
    } else if (is(name, "x-dimensions")) {
        const int width = number(cut(&value, ","));
        set_dimensions(media, width, number(value));
    } else if (is(name, "framesize") && number(cut_word(&value)) == media->payload_type) {
        const int width = number(cut(&value, "-"));
        set_dimensions(media, width, number(value));
    } else if (is(name, "cliprect")) { // top, left, bottom, right
        const int top = number(cut(&value, ",")), left = number(cut(&value, ","));
        const int bottom = number(cut(&value, ","));
        set_dimensions(media, number(value) - left, bottom - top);
    } else if (is(name, "imageattr") && number(cut_word(&value)) == media->payload_type) {
        read_image_attribute(media, value);
    } else if (is(name, "framerate") || is(name, "x-framerate")) {
        const double rate = copy(text, sizeof text, value) ? strtod(text, NULL) : 0;
        media->rate = rate > 0 && rate <= RATE_MAX ? rate : media->rate;
    } else if (is(name, "rtcp-fb")) {
        const struct span type = cut_word(&value), what = cut_word(&value);
        const bool ours = is(type, "*") || number(type) == media->payload_type;
        const struct span which = cut_word(&value);
        media->pli |= ours && is(what, "nack") && is(which, "pli");
        media->fir |= ours && is(what, "ccm") && is(which, "fir");
    }
}

static void parse_attribute(struct parser *parser, struct span value)
{
    struct sdp *sdp = parser->sdp;
    const struct span name = cut(&value, ":");
    value = trim(value);
    if (is(name, "rtpmap"))
        add_unlisted_format(parser, value);
    if (is(name, "fmtp")) {
        const int payload_type = number(cut_word(&value));
        if (parser->n_fmtp < FMTP_MAX)
            parser->fmtp[parser->n_fmtp++] = (struct fmtp){parser->section, payload_type, value};
    } else if (is(name, "control") && parser->section < 0) {
        copy(sdp->control, sizeof sdp->control, value);
    }
    for (int i = parser->first; i < sdp->n_media; i++) {
        if (is(name, "control"))
            copy(sdp->media[i].control, sizeof sdp->media[i].control, value);
        parse_media_attribute(&sdp->media[i], name, value);
    }
}

int sdp_parse(struct sdp *ret, const char *text, size_t bytes)
{
    struct parser parser = {.sdp = ret, .section = -1};
    struct span rest = {text, text + bytes};
    memset(ret, 0, sizeof *ret);
    while (rest.begin < rest.end) {
        struct span value = cut(&rest, "\n");
        const struct span type = cut(&value, "=");
        value = trim(value);
        if (is(type, "m"))
            begin_media(&parser, value);
        else if (is(type, "a"))
            parse_attribute(&parser, value);
        else if (is(type, "c"))
            parse_connection(&parser, value);
    }
    for (int i = 0; i < ret->n_media; i++)
        finish_media(&parser, &ret->media[i]);
    return ret->n_media > 0 ? 0 : -EINVAL;
}

int sdp_choose_video(const struct sdp *sdp, int payload_type)
{
    int chosen = -1;
    for (int i = 0; i < sdp->n_media; i++) {
        const struct sdp_media *media = &sdp->media[i];
        if (!media->video || media->codec == SDP_OTHER)
            continue;
        if (chosen < 0)
            chosen = i;
        else if (media->section == sdp->media[chosen].section &&
                 media->payload_type == payload_type)
            return i;
    }
    return chosen;
}

// --- for people

void sdp_media_name(const struct sdp_media *media, char ret[SDP_NAME_MAX])
{
    char size[32] = "";
    if (media->width)
        snprintf(size, sizeof size, " %dx%d", media->width, media->height);
    if (*media->encoding)
        snprintf(ret, SDP_NAME_MAX, "%s%s", media->encoding, size);
    else
        snprintf(ret, SDP_NAME_MAX, "payload type %d%s", media->payload_type, size);
}

int sdp_list(const struct sdp *sdp, bool videos, int except, char *ret, size_t size)
{
    char name[SDP_NAME_MAX];
    size_t n = 0;
    int listed = 0;
    *ret = 0;
    for (int i = 0; i < sdp->n_media; i++) {
        const struct sdp_media *media = &sdp->media[i];
        if ((videos && !media->video) || i == except)
            continue;
        listed++;
        sdp_media_name(media, name);
        if (n + 2 * SDP_NAME_MAX < size)
            n += (size_t)snprintf(ret + n, size - n, "%s%s%s%s", n ? ", " : "",
                                  videos ? "" : media->kind, videos ? "" : " ", name);
    }
    return listed;
}
