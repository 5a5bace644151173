#include "daemon/source/rtsp_video.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/rtsp/session.h"
#include "daemon/source/demux.h"

enum {
    MEASURED = 32, // units of a rate measurement
    RATE_MAX = 240,
};
static const double RATE_MIN = 0.01;
static const AVRational NANOSECONDS = {1, 1000000000};
static const double RATE_LIES = 0.1; // an announced rate that is off by more is not believed

static const enum AVCodecID codecs[] = {
    [SDP_OTHER] = AV_CODEC_ID_NONE,
    [SDP_H264] = AV_CODEC_ID_H264,
    [SDP_H265] = AV_CODEC_ID_HEVC,
    [SDP_JPEG] = AV_CODEC_ID_MJPEG,
};

// Sets the nominal rate for a measured one. Timestamps at a whole rate jitter; 30000/1001 and
// its kind come from generators that do not.
static void set_rate(struct rtsp_video *video, double rate)
{
    const int whole = (int)round(rate);
    const bool film = fabs(rate - whole / 1.001) < 1e-4 * rate;
    const bool near = fabs(rate - whole) < 0.01 * rate;
    video->rate_den = film ? 1001 : near ? 1 : 100;
    video->rate_num = film ? whole * 1000 : near ? whole : (int)lround(rate * 100);
}

int rtsp_video_sets(struct rtsp_video *video, const uint8_t *sets, size_t bytes)
{
    AVCodecParameters *parameters = video->parameters;
    if (bytes == 0 || ((size_t)parameters->extradata_size == bytes &&
                       memcmp(parameters->extradata, sets, bytes) == 0))
        return 0;
    uint8_t *extradata = av_mallocz(bytes + AV_INPUT_BUFFER_PADDING_SIZE);
    if (!extradata)
        return -ENOMEM;
    memcpy(extradata, sets, bytes);
    av_freep(&parameters->extradata);
    parameters->extradata = extradata;
    parameters->extradata_size = (int)bytes;
    parameters->width = parameters->height = 0; // the keyframe has them
    return avcodec_parameters_to_context(video->parsing, parameters) < 0 ? -ENOMEM : 0;
}

int rtsp_video_open(struct rtsp_video **ret, const struct sdp_media *media, const uint8_t *sets,
                    size_t bytes)
{
    struct rtsp_video *video = calloc(1, sizeof *video);
    if (!video)
        return -ENOMEM;
    int rc = -ENOMEM;
    if (media->rate > 0 && media->rate <= RATE_MAX)
        set_rate(video, media->rate);
    video->packet = av_packet_alloc();
    video->parameters = avcodec_parameters_alloc();
    video->parsing = avcodec_alloc_context3(NULL);
    if (video->packet && video->parameters && video->parsing) {
        video->parameters->codec_type = AVMEDIA_TYPE_VIDEO;
        video->parameters->codec_id = codecs[media->codec];
        if (avcodec_parameters_to_context(video->parsing, video->parameters) >= 0)
            rc = rtsp_video_sets(video, sets, bytes);
    }
    if (rc < 0) {
        rtsp_video_close(video);
        return rc;
    }
    if ((video->parser = av_parser_init(video->parameters->codec_id)))
        video->parser->flags |= PARSER_FLAG_COMPLETE_FRAMES;
    *ret = video;
    return 0;
}

void rtsp_video_close(struct rtsp_video *video)
{
    if (!video)
        return;
    av_parser_close(video->parser);
    avcodec_free_context(&video->parsing);
    avcodec_parameters_free(&video->parameters);
    av_packet_free(&video->packet);
    free(video);
}

// --- packets

static int64_t pts_of(struct rtsp_video *video, const struct rtsp_unit *unit)
{
    const int64_t own_ns = unit->time_ns;
    if (!video->begun || (unit->unit.restarted && unit->unit.keyframe)) {
        const int64_t since_ns = unit->unit.received_ns - video->last_received_ns;
        const int64_t pts_ns = video->begun ? video->last_pts_ns + since_ns : 0;
        video->pts_of_zero_ns = pts_ns - own_ns;
        video->units = 0;
    }
    video->begun = true;
    video->last_received_ns = unit->unit.received_ns;
    return video->last_pts_ns = own_ns + video->pts_of_zero_ns;
}

// Measures once per session, by timestamps, because arrivals jitter. A camera with uneven intervals
// has no rate.
static void measure_rate(struct rtsp_video *video, int64_t time_ns)
{
    if (video->units > MEASURED)
        return;
    if (video->units++ == 0)
        video->first_ns = video->highest_ns = time_ns;
    if (time_ns > video->highest_ns)
        video->highest_ns = time_ns;
    const int64_t ns = video->highest_ns - video->first_ns;
    if (video->units <= MEASURED || ns <= 0)
        return;
    const double measured = MEASURED * 1e9 / (double)ns;
    const double said = video->rate_den ? (double)video->rate_num / video->rate_den : 0;
    if (measured < RATE_MIN || measured > RATE_MAX || fabs(measured - said) <= RATE_LIES * measured)
        return;
    set_rate(video, measured);
}

static void read_size(struct rtsp_video *video)
{
    uint8_t *out;
    int size;
    if (video->parameters->width > 0 || !video->parser)
        return;
    av_parser_parse2(video->parser, video->parsing, &out, &size, video->packet->data,
                     video->packet->size, AV_NOPTS_VALUE, AV_NOPTS_VALUE, 0);
    if (video->parser->width <= 0)
        return;
    video->parameters->width = video->parser->width;
    video->parameters->height = video->parser->height;
    video->parameters->profile = video->parsing->profile;
}

int rtsp_video_packet(struct rtsp_video *video, const struct rtsp_unit *unit, struct packet *ret)
{
    const struct access_unit *own = &unit->unit;
    AVPacket *packet = video->packet;
    av_packet_unref(packet);
    if (av_new_packet(packet, (int)own->bytes) < 0)
        return -ENOMEM;
    memcpy(packet->data, own->data, own->bytes);
    if (own->keyframe)
        read_size(video);
    measure_rate(video, unit->time_ns);
    packet->pts = pts_of(video, unit);
    packet->time_base = NANOSECONDS;
    packet->flags = (own->keyframe ? AV_PKT_FLAG_KEY : 0) |
                    (own->damaged ? AV_PKT_FLAG_CORRUPT : 0) |
                    (own->disposable ? AV_PKT_FLAG_DISPOSABLE : 0);
    const bool clock = unit->capture_ns != INT64_MIN;
    *ret = (struct packet){
        .av = packet,
        .bytes = (size_t)packet->size,
        .pts_ns = packet->pts,
        .received_ns = own->received_ns,
        .arrived_ns = own->arrived_ns,
        .capture_ns =
            clock ? unit->capture_ns : realtime_ns() - (monotonic_ns() - own->received_ns),
        .capture_clock = clock,
        .keyframe = own->keyframe,
        .disposable = own->disposable,
        .damaged = own->damaged,
        .reference_lost = own->reference_lost,
        .hole = own->hole,
        .waited = unit->waited,
        .guessed = unit->guessed,
    };
    return 0;
}
