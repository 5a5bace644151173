#include "daemon/camera/decode.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/camera/nvdec.h"
#include "daemon/camera/picture.h"
#include "daemon/wire.h"

static const AVRational NANOSECONDS = {1, 1000000000};
enum {
    FACTS = 256,       // packets that may be inside a decoder at once, and more
    KEPT_MAX = 64,     // packets to begin anew with on the cpu
    PRELUDE_MAX = 250, // pictures withheld in wait for a keyframe
};

// What is known of a packet and has to come out with its picture.
struct facts {
    int64_t serial; // of the packet, from 1
    int64_t received_ns, capture_ns;
    bool capture_clock, damaged;
};

struct decoder {
    AVCodecContext *codec;
    AVCodecParameters *parameters;
    struct decode_options options;
    struct pictures *pictures;
    bool refused;  // NVDEC does not take the stream; set within libavcodec's call
    bool flushing; // no more packets will come
    bool leaving;  // NVDEC gives what it still holds, then the cpu takes over
    bool shown;    // a picture came out since it was opened
    bool holding;  // DAMAGED_HOLD: until the next clean keyframe
    int prelude;   // damaged pictures before the first keyframe; -1: it has come
    int64_t serial;
    struct facts facts[FACTS]; // by serial
    int64_t last_pts_ns, last_received_ns;
    // While NVDEC decodes: the packets that the cpu needs if it has to take over. Before the first
    // picture all since the last keyframe, then the last one.
    AVPacket *kept[KEPT_MAX];
    int64_t kept_serial[KEPT_MAX];
    int n_kept, replayed; // replayed: those that the cpu decoder has got; n_kept once it has all
    const char *converted;
    char notice[256], description[64];
    bool notice_is_new;
};

static bool on_nvdec(const struct decoder *d)
{
    return d->codec->hw_device_ctx != NULL;
}

static int open_codec(struct decoder *d, const AVCodec *codec, bool nvdec)
{
    AVCodecContext *context = avcodec_alloc_context3(codec);
    if (!context)
        return -ENOMEM;
    int rc = avcodec_parameters_to_context(context, d->parameters);
    context->pkt_timebase = NANOSECONDS;
    // Damaged pictures are to come out, with a flag; crops are to be exact.
    context->flags |= AV_CODEC_FLAG_OUTPUT_CORRUPT | AV_CODEC_FLAG_UNALIGNED;
    context->thread_count = d->options.threads;
    if (d->options.threads == 0 && d->options.low_delay)
        context->thread_type = FF_THREAD_SLICE;
    if (rc >= 0 && nvdec)
        rc = nvdec_prepare(context, d->options.device, d->options.in_flight, &d->refused);
    if (rc >= 0)
        rc = avcodec_open2(context, codec, NULL);
    if (rc < 0) {
        avcodec_free_context(&context);
        return rc == AVERROR(ENOMEM) ? -ENOMEM : -ENOTSUP;
    }
    avcodec_free_context(&d->codec);
    d->codec = context;
    snprintf(d->description, sizeof(d->description), "%s %s", nvdec ? "nvdec" : "cpu",
             avcodec_get_name(d->parameters->codec_id));
    return 0;
}

static int open_cpu(struct decoder *d)
{
    const AVCodec *codec = avcodec_find_decoder(d->parameters->codec_id);
    return codec ? open_codec(d, codec, false) : -ENOTSUP;
}

// Goes behind what has not been asked for yet.
static void give_notice(struct decoder *d, const char *subject, const char *text)
{
    size_t at = d->notice_is_new ? strlen(d->notice) : 0;
    snprintf(d->notice + at, sizeof(d->notice) - at, "%s%s %s", at ? "; " : "", subject, text);
    d->notice_is_new = true;
}

static void notice_step_down(struct decoder *d)
{
    char what[64];
    const char *profile = avcodec_profile_name(d->parameters->codec_id, d->parameters->profile);
    snprintf(what, sizeof(what), "%s%s%s", avcodec_get_name(d->parameters->codec_id),
             profile ? " " : "", profile ? profile : "");
    give_notice(d, what, "is not decoded by NVDEC here: decoding on the cpu");
}

static int open_any(struct decoder *d)
{
    if (d->options.decode == DECODE_NVDEC && !d->options.device)
        return -ENODEV;
    if (d->options.decode == DECODE_CPU || !d->options.device)
        return open_cpu(d);
    const AVCodec *codec = nvdec_codec(d->parameters->codec_id);
    if (codec && open_codec(d, codec, true) == 0)
        return 0;
    notice_step_down(d);
    return open_cpu(d);
}

int decoder_open(struct decoder **ret, const AVCodecParameters *parameters,
                 const struct decode_options *options)
{
    struct decoder *d = calloc(1, sizeof(*d));
    if (!d)
        return -ENOMEM;
    d->options = *options;
    d->holding = options->damaged == DAMAGED_HOLD;
    d->last_pts_ns = AV_NOPTS_VALUE;
    int rc = -ENOMEM;
    if (pictures_open(&d->pictures) == 0 && (d->parameters = avcodec_parameters_alloc()) &&
        avcodec_parameters_copy(d->parameters, parameters) >= 0)
        rc = open_any(d);
    if (rc < 0) {
        decoder_close(d);
        return rc;
    }
    *ret = d;
    return 0;
}

static void forget_kept(struct decoder *d)
{
    for (int i = 0; i < d->n_kept; i++)
        av_packet_unref(d->kept[i]);
    d->n_kept = d->replayed = 0;
}

void decoder_close(struct decoder *d)
{
    if (!d)
        return;
    for (int i = 0; i < KEPT_MAX; i++)
        av_packet_free(&d->kept[i]);
    avcodec_free_context(&d->codec);
    avcodec_parameters_free(&d->parameters);
    pictures_close(d->pictures);
    free(d);
}

void decoder_restart(struct decoder *d)
{
    avcodec_flush_buffers(d->codec);
    forget_kept(d);
    d->flushing = false;
    d->prelude = 0;
    d->holding = d->options.damaged == DAMAGED_HOLD;
    d->last_pts_ns = AV_NOPTS_VALUE;
}

// --- packets in

static int keep(struct decoder *d, const AVPacket *av)
{
    if (d->shown || d->n_kept == KEPT_MAX || (av->flags & AV_PKT_FLAG_KEY))
        forget_kept(d);
    AVPacket **kept = &d->kept[d->n_kept];
    if ((!*kept && !(*kept = av_packet_alloc())) || av_packet_ref(*kept, av) < 0)
        return -ENOMEM;
    d->kept_serial[d->n_kept++] = d->serial;
    d->replayed = d->n_kept;
    return 0;
}

static struct facts *facts_of(struct decoder *d, int64_t serial)
{
    return &d->facts[serial % FACTS];
}

// Whether an error is NVDEC's rather than the stream's.
static bool device_failed(const struct decoder *d, int error)
{
    return on_nvdec(d) && (d->refused || (error != AVERROR_INVALIDDATA &&
                                          error != AVERROR(EAGAIN) && error != AVERROR_EOF));
}

// NVDEC gets no more packets; decode_next lets the cpu take over.
static void step_down(struct decoder *d)
{
    d->refused = false;
    d->leaving = true;
    avcodec_send_packet(d->codec, NULL);
    notice_step_down(d);
}

// libavcodec's answer for the packet or picture at hand. Before the first picture what the decoder
// does not implement is the stream's nature; later it is damage.
static int errno_of(struct decoder *d, int error)
{
    if (error == AVERROR(ENOMEM))
        return -ENOMEM;
    if (error == AVERROR_PATCHWELCOME && !d->shown)
        return -ENOTSUP;
    facts_of(d, d->serial)->damaged = true;
    d->holding = d->options.damaged == DAMAGED_HOLD;
    return -EBADMSG;
}

static int send_flush(struct decoder *d)
{
    d->flushing = true;
    int rc = avcodec_send_packet(d->codec, NULL);
    return rc < 0 && rc != AVERROR_EOF ? errno_of(d, rc) : 0;
}

// Where one is not, a packet that fails may have held headers alone or half a picture: no loss.
static bool packets_are_pictures(const struct decoder *d)
{
    const AVCodecDescriptor *codec = avcodec_descriptor_get(d->parameters->codec_id);
    return codec && (codec->props & AV_CODEC_PROP_INTRA_ONLY);
}

static int send_failed(struct decoder *d, int error)
{
    int rc = errno_of(d, error);
    return rc == -EBADMSG && !packets_are_pictures(d) ? 0 : rc;
}

int decode_send(struct decoder *d, const struct packet *packet)
{
    if (!packet)
        return send_flush(d);
    d->serial++;
    *facts_of(d, d->serial) = (struct facts){
        .serial = d->serial,
        .received_ns = packet->received_ns,
        .capture_ns = packet->capture_ns,
        .capture_clock = packet->capture_clock,
        .damaged = packet->av->flags & AV_PKT_FLAG_CORRUPT,
    };
    if (on_nvdec(d) && keep(d, packet->av) < 0)
        return -ENOMEM;
    d->codec->reordered_opaque = d->serial;
    int rc = avcodec_send_packet(d->codec, packet->av);
    if (rc >= 0 || !device_failed(d, rc))
        return rc < 0 ? send_failed(d, rc) : 0;
    step_down(d);
    return 0;
}

// --- pictures out

// After a step down: gives the cpu the next packet that NVDEC had. False where there is none.
static bool replay(struct decoder *d)
{
    if (on_nvdec(d) || d->replayed == d->n_kept)
        return false;
    d->codec->reordered_opaque = d->kept_serial[d->replayed];
    int rc = avcodec_send_packet(d->codec, d->kept[d->replayed++]);
    if (rc < 0)
        errno_of(d, rc);
    if (d->replayed == d->n_kept) {
        forget_kept(d);
        if (d->flushing)
            send_flush(d);
    }
    return true;
}

// The last pictures of NVDEC, up to those that the cpu will decode again. -EAGAIN: the cpu has
// taken over.
static int receive_last(struct decoder *d, AVFrame *av)
{
    while (avcodec_receive_frame(d->codec, av) == 0) {
        if (av->reordered_opaque < d->kept_serial[0])
            return 0;
    }
    d->leaving = false;
    d->replayed = 0;
    int rc = open_cpu(d);
    return rc < 0 ? rc : -EAGAIN;
}

static int receive(struct decoder *d, AVFrame *av)
{
    for (int rc;;) {
        if (d->leaving && (rc = receive_last(d, av)) != -EAGAIN)
            return rc;
        rc = avcodec_receive_frame(d->codec, av);
        if (rc == AVERROR(EAGAIN) && replay(d))
            continue;
        if (rc == 0 || rc == AVERROR(EAGAIN) || rc == AVERROR_EOF)
            return rc == AVERROR_EOF ? -ENODATA : rc;
        if (!device_failed(d, rc))
            return errno_of(d, rc);
        step_down(d);
    }
}

// Where the stream gives no time: the last picture's and the duration, or the time between
// arrivals.
static int64_t pts_of(const struct decoder *d, const AVFrame *av, int64_t received_ns)
{
    AVRational rate = d->codec->framerate;
    if (av->best_effort_timestamp != AV_NOPTS_VALUE)
        return av->best_effort_timestamp;
    if (d->last_pts_ns == AV_NOPTS_VALUE)
        return 0;
    if (av->pkt_duration > 0)
        return d->last_pts_ns + av->pkt_duration;
    if (rate.num > 0 && rate.den > 0)
        return d->last_pts_ns + av_rescale_q(1, av_inv_q(rate), NANOSECONDS);
    return d->last_pts_ns +
           (received_ns > d->last_received_ns ? received_ns - d->last_received_ns : 1);
}

static struct frame_info info_of(struct decoder *d, const AVFrame *av)
{
    const struct facts *facts = facts_of(d, av->reordered_opaque);
    if (facts->serial != av->reordered_opaque)
        facts = facts_of(d, d->serial);
    bool damaged = av->decode_error_flags || (av->flags & AV_FRAME_FLAG_CORRUPT) || facts->damaged;
    struct frame_info info = {
        .pts_ns = pts_of(d, av, facts->received_ns),
        .capture_ns = facts->capture_ns,
        .received_ns = facts->received_ns,
        .decoded_ns = monotonic_ns(),
        .flags = (damaged ? FRAMED_FLAG_DAMAGED : 0) | (av->key_frame ? FRAMED_FLAG_KEYFRAME : 0) |
                 (facts->capture_clock ? FRAMED_FLAG_CAPTURE_CLOCK : 0),
    };
    d->last_pts_ns = info.pts_ns;
    d->last_received_ns = info.received_ns;
    return info;
}

// Pictures of a stream that was joined between keyframes show nothing. A stream that has no
// keyframes gets its way in the end.
static bool before_keyframe(struct decoder *d, uint32_t flags)
{
    if (d->prelude >= 0 && (flags & FRAMED_FLAG_DAMAGED) && !(flags & FRAMED_FLAG_KEYFRAME) &&
        d->prelude < PRELUDE_MAX)
        d->prelude++;
    else
        d->prelude = -1;
    return d->prelude >= 0;
}

static bool withheld(struct decoder *d, uint32_t flags)
{
    bool damaged = flags & FRAMED_FLAG_DAMAGED;
    if (before_keyframe(d, flags))
        return true;
    if (d->options.damaged == DAMAGED_HOLD && (damaged || (flags & FRAMED_FLAG_KEYFRAME)))
        d->holding = damaged;
    return d->options.damaged == DAMAGED_DROP ? damaged : d->holding;
}

static int show(struct decoder *d, struct picture *picture, struct frame *ret)
{
    const char *converted;
    struct frame_info info = info_of(d, picture_frame(picture));
    d->shown = true;
    if (withheld(d, info.flags))
        return -EBADMSG;
    int rc = picture_map(picture, d->options.keep_on_device, ret, &converted);
    if (rc < 0)
        return rc;
    info.source_width = ret->image.width;
    info.source_height = ret->image.height;
    ret->info = info;
    if (converted && converted != d->converted) {
        char to[64];
        snprintf(to, sizeof(to), "pictures are converted to %s by libswscale",
                 pixel_format_name(ret->image.format));
        give_notice(d, converted, to);
    }
    d->converted = converted;
    return 0;
}

int decode_next(struct decoder *d, struct frame *ret)
{
    struct picture *picture = picture_take(d->pictures);
    if (!picture)
        return -ENOMEM;
    int rc = receive(d, picture_frame(picture));
    if (rc == 0)
        rc = show(d, picture, ret);
    if (rc < 0)
        picture_release(picture);
    return rc;
}

const char *decoder_describe(const struct decoder *d)
{
    return d->description;
}

const char *decoder_notice(struct decoder *d)
{
    const char *notice = d->notice_is_new ? d->notice : NULL;
    d->notice_is_new = false;
    return notice;
}
