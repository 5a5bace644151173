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
    BUFFER_MIN = 1 << 10,
    BUFFER_SIZES = 17, // each twice the previous; the last has room for any unit
    MEASURED = 32,     // units of a rate measurement
    RATE_MAX = 240,
};
static const double RATE_MIN = 0.01;
static const AVRational NANOSECONDS = {1, 1000000000};
static const double RATE_LIES = 0.1; // an announced rate that is off by more is not believed

struct rtsp_video {
    AVCodecParameters *parameters;
    AVCodecParserContext *parser; // reads the size from a keyframe
    AVCodecContext *parsing;
    AVPacket *packet;
    AVBufferPool *buffers[BUFFER_SIZES]; // NULL: no unit of this size so far
    bool begun, restarted;
    int64_t pts_of_zero_ns; // pts of the track's time 0
    int64_t last_pts_ns, last_received_ns;
    int units;                    // since the start of the rate measurement
    int64_t first_ns, highest_ns; // of the track's time
    AVRational rate;              // 0/0: unknown
};

static enum AVCodecID codec_of(const struct sdp_media *media)
{
    static const enum AVCodecID codecs[] = {
        [SDP_OTHER] = AV_CODEC_ID_NONE,
        [SDP_H264] = AV_CODEC_ID_H264,
        [SDP_H265] = AV_CODEC_ID_HEVC,
        [SDP_JPEG] = AV_CODEC_ID_MJPEG,
    };
    return codecs[media->codec];
}

// Returns the nominal rate for a measured one. Timestamps at a whole rate jitter; 30000/1001 and
// its kind come from generators that do not.
static AVRational nominal_rate(double rate)
{
    const int whole = (int)round(rate);
    if (fabs(rate - whole / 1.001) < 1e-4 * rate)
        return (AVRational){whole * 1000, 1001};
    if (fabs(rate - whole) < 0.01 * rate)
        return (AVRational){whole, 1};
    return (AVRational){(int)lround(rate * 100), 100};
}

static bool has_sets(const struct rtsp_video *video, const uint8_t *sets, size_t bytes)
{
    const AVCodecParameters *parameters = video->parameters;
    return (size_t)parameters->extradata_size == bytes &&
           memcmp(parameters->extradata, sets, bytes) == 0;
}

int rtsp_video_sets(struct rtsp_video *video, const uint8_t *sets, size_t bytes)
{
    AVCodecParameters *parameters = video->parameters;
    if (bytes == 0 || has_sets(video, sets, bytes))
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
        video->rate = nominal_rate(media->rate);
    video->packet = av_packet_alloc();
    video->parameters = avcodec_parameters_alloc();
    video->parsing = avcodec_alloc_context3(NULL);
    if (video->packet && video->parameters && video->parsing) {
        video->parameters->codec_type = AVMEDIA_TYPE_VIDEO;
        video->parameters->codec_id = codec_of(media);
        rc = video->parameters->codec_id == AV_CODEC_ID_NONE ? -ENOTSUP : 0;
    }
    if (rc == 0 && avcodec_parameters_to_context(video->parsing, video->parameters) < 0)
        rc = -ENOMEM;
    if (rc == 0)
        rc = rtsp_video_sets(video, sets, bytes);
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
    for (int i = 0; i < BUFFER_SIZES; i++)
        av_buffer_pool_uninit(&video->buffers[i]);
    free(video);
}

const AVCodecParameters *rtsp_video_parameters(const struct rtsp_video *video)
{
    return video->parameters;
}

// --- packets

// Copies into the smallest buffer that has room: packets are kept, and a keyframe is many times as
// large as the pictures behind it. In the long run nothing is allocated.
static int copy_data(struct rtsp_video *video, const struct access_unit *unit)
{
    const size_t wanted = unit->bytes + AV_INPUT_BUFFER_PADDING_SIZE;
    int i = 0;
    while (i < BUFFER_SIZES && (size_t)BUFFER_MIN << i < wanted)
        i++;
    if (i == BUFFER_SIZES)
        return -ENOMEM;
    AVBufferPool **buffers = &video->buffers[i];
    if (!*buffers && !(*buffers = av_buffer_pool_init((size_t)BUFFER_MIN << i, NULL)))
        return -ENOMEM;
    av_packet_unref(video->packet);
    if (!(video->packet->buf = av_buffer_pool_get(*buffers)))
        return -ENOMEM;
    video->packet->data = video->packet->buf->data;
    video->packet->size = (int)unit->bytes;
    memcpy(video->packet->data, unit->data, unit->bytes);
    memset(video->packet->data + unit->bytes, 0, AV_INPUT_BUFFER_PADDING_SIZE);
    return 0;
}

static int64_t pts_of(struct rtsp_video *video, const struct rtsp_unit *unit)
{
    const int64_t own_ns = unit->time_ns;
    if (!video->begun || video->restarted) {
        const int64_t since_ns = unit->unit.received_ns - video->last_received_ns;
        const int64_t pts_ns = video->begun ? video->last_pts_ns + since_ns : 0;
        video->pts_of_zero_ns = pts_ns - own_ns;
        video->units = 0;
    }
    video->begun = true;
    video->restarted = false;
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
    const double said = video->rate.den ? av_q2d(video->rate) : 0;
    if (measured < RATE_MIN || measured > RATE_MAX || fabs(measured - said) <= RATE_LIES * measured)
        return;
    video->rate = nominal_rate(measured);
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
    int rc = copy_data(video, own);
    if (rc < 0)
        return rc;
    if (own->keyframe)
        read_size(video);
    measure_rate(video, unit->time_ns);
    AVPacket *packet = video->packet;
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

void rtsp_video_restart(struct rtsp_video *video)
{
    video->restarted = true;
}

void rtsp_video_rate(const struct rtsp_video *video, int *num, int *den)
{
    *num = video->rate.num;
    *den = video->rate.den;
}
