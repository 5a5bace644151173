#include <errno.h>
#include <fcntl.h>
#include <libavformat/avformat.h>
#include <libavutil/avstring.h>
#include <libavutil/opt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "config/object.h"
#include "config/url.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/number.h"
#include "daemon/base/stage_watch.h"
#include "daemon/source/demux.h"
#include "daemon/source/libav_log.h"
#include "daemon/source/libav_version.h"

// --- the pace of a file

static const int64_t PACER_GAP_NS = 10 * INT64_C(1000000000); // the longest sleep
static const int64_t SLICE_NS = 50000000;                     // how long a sleep may overlook *stop
static const int64_t LATE_NS = 100000000;                     // longest delay to catch up with

// Delays the packets of a file until a camera would have sent them. Ready when zeroed.
struct pacer {
    int64_t origin_ns; // CLOCK_MONOTONIC; 0: the next packet is due at once and sets it
    int64_t origin_ts, last_ts;
};

// Sleeps until the packet of decoding time `ts` (ns) is due. After a long delay it continues from
// there without catching up: a camera's packets would have been lost. A pause of more than
// PACER_GAP_NS in the stream is a cut. Returns 0, or -ECANCELED soon after *stop.
static int pacer_wait(struct pacer *pacer, int64_t ts, const _Atomic bool *stop)
{
    if (!pacer->origin_ns || ts < pacer->last_ts || ts - pacer->last_ts > PACER_GAP_NS) {
        pacer->origin_ns = monotonic_ns();
        pacer->origin_ts = ts;
    }
    pacer->last_ts = ts;
    const int64_t due_ns = pacer->origin_ns + (ts - pacer->origin_ts);
    int64_t now_ns = monotonic_ns();
    if (now_ns - due_ns > LATE_NS)
        pacer->origin_ns += now_ns - due_ns;
    for (; now_ns < due_ns; now_ns = monotonic_ns()) {
        if (atomic_load(stop))
            return -ECANCELED;
        const int64_t until_ns = bounds_min(due_ns, now_ns + SLICE_NS);
        const struct timespec at = {until_ns / 1000000000, until_ns % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    }
    return 0;
}

// --- the clock of a sender

static const int64_t SAME_NS = 1000000; // less than any frame's duration, more than rounding

// If libavformat assembles pictures from RTP payloads, a picture is complete only when the next one
// begins, and the time that comes with it belongs to the next one. The first report shows whether
// that is so, because start_ns comes from it too; later the two clocks drift apart.
int64_t sender_clock_read(struct sender_clock *clock, int64_t report_ns, int64_t start_ns,
                          int64_t pts_ns)
{
    int64_t own_ns = clock->next_ns ? clock->next_ns : INT64_MIN;
    clock->next_ns = 0;
    if (report_ns == INT64_MIN)
        return own_ns;
    if (!clock->seen) {
        clock->seen = true;
        clock->is_next = report_ns - (start_ns + pts_ns) > SAME_NS;
        own_ns = start_ns + pts_ns;
    }
    if (!clock->is_next)
        return report_ns;
    clock->next_ns = report_ns;
    return own_ns;
}

// --- the input

static const AVRational NANOSECONDS = {1, 1000000000};
// A name look-up ignores deadlines: three servers, twice, 5 s each, and for two names if the first
// is completed.
static const int64_t LOOKUP_NS = 60 * INT64_C(1000000000);
static const int64_t GOODBYE_NS = 200000000; // limit for closing when *stop is set
enum {
    IO_BUFFER = 64 << 10,
    POLL_MS = 50,     // how long a read may overlook *stop
    LATE_MAX = 32,    // packets in a row dropped as older than the last one
    RATE_MAX = 1000,  // above it, libavformat took a clock tick for a frame
    WAITED_SHARE = 4, // 1/4 of the time between packets must pass in libavformat
};

struct libav_demux {
    struct demux base; // first
    AVFormatContext *format;
    AVStream *stream;
    AVPacket *packet;
    struct secrets *secrets;
    AVIOContext *io; // ours if a blocking read could not be interrupted; else NULL
    int fd;          // behind io, or -1
    struct demux_context context;
    // State of the interrupt callback, set for every call.
    int64_t heed_stop_ns, deadline_ns; // CLOCK_MONOTONIC
    unsigned late;                     // packets dropped before this call
    int interrupted;                   // 0, -ECANCELED, -ETIMEDOUT or -ERESTART
    bool missed;                       // packets are missing before or in the last packet
    bool partial;                      // the last packet is shorter than its container states
    int64_t end_pos;                   // in a y4m file: where the last packet ended
    int64_t read_ns;                   // when the last packet was returned; 0: none so far
    struct pacer pacer;
    struct sender_clock clock;
};

static int interrupted(void *opaque)
{
    struct libav_demux *in = opaque;
    int64_t now = monotonic_ns();
    if (atomic_load(in->context.stop) && now >= in->heed_stop_ns)
        in->interrupted = -ECANCELED;
    else if (now >= in->deadline_ns)
        in->interrupted = -ETIMEDOUT;
    else if (libav_thread()->packets_late - in->late >= LATE_MAX)
        in->interrupted = -ERESTART;
    return in->interrupted != 0;
}

// Enters a stage of at most `ns`; it may overlook that for `more_ns`.
static void begin(struct libav_demux *in, enum stage stage, int64_t ns, int64_t more_ns)
{
    stage_enter(in->context.stages, stage, ns + more_ns);
    in->interrupted = 0;
    in->late = libav_thread()->packets_late;
    in->deadline_ns = monotonic_ns() + ns;
}

// Returns libavformat's error as negative errno; its own codes are no errno.
static int errno_of(const struct libav_demux *in, int error)
{
    if (in->interrupted)
        return in->interrupted;
    switch (error) {
    case AVERROR_EOF:
        return -ENODATA;
    case AVERROR_HTTP_UNAUTHORIZED:
        return -EACCES;
    case AVERROR_HTTP_FORBIDDEN:
        return -EPERM;
    case AVERROR_HTTP_NOT_FOUND:
        return -ENOENT;
    default:
        return error > -4096 ? error : -EIO;
    }
}

// --- fifos and pipes: libavformat would block in open and read, where no callback ends it

static int read_descriptor(void *opaque, uint8_t *to, int size)
{
    struct libav_demux *in = opaque;
    while (!interrupted(in)) {
        struct pollfd wait = {.fd = in->fd, .events = POLLIN};
        if (poll(&wait, 1, POLL_MS) <= 0)
            continue;
        ssize_t n = read(in->fd, to, (size_t)size);
        if (n >= 0)
            return n > 0 ? (int)n : AVERROR_EOF;
        if (errno != EAGAIN && errno != EINTR)
            return AVERROR(errno);
    }
    return AVERROR_EXIT;
}

static int open_descriptor(struct libav_demux *in, const char *url)
{
    if (in->base.source->kind == URL_PIPE)
        in->fd = fcntl(config_url_descriptor(url), F_DUPFD_CLOEXEC, 3);
    else if (in->base.source->fifo)
        in->fd = open(config_url_path(url), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    else
        return 0;
    if (in->fd < 0)
        return -errno;
    unsigned char *buffer = av_malloc(IO_BUFFER);
    in->io =
        buffer ? avio_alloc_context(buffer, IO_BUFFER, 0, in, read_descriptor, NULL, NULL) : NULL;
    if (!in->io) {
        av_free(buffer);
        return -ENOMEM;
    }
    return 0;
}

// Sets our options that have a value, then the camera's own, which override them.
static int set_options(AVDictionary **options, const struct libav_demux *in)
{
    const struct camera_config *config = in->context.config;
    static const char *const transports[] = {
        [TRANSPORT_TCP] = "tcp", [TRANSPORT_UDP] = "udp", [TRANSPORT_MULTICAST] = "udp_multicast"};
    const bool rtsp = in->base.source->kind == URL_RTSP;
    const struct {
        const char *name, *value;
    } ours[] = {
        {"protocol_whitelist", in->base.source->whitelist},
        {"rtsp_transport", rtsp ? transports[config->transport] : NULL},
        {"allowed_media_types", rtsp ? "video" : NULL},
        // TCP does not reorder, but libavformat detects missing packets only with a queue: cameras
        // drop packets that they cannot send in time.
        {"reorder_queue_size", rtsp && config->transport == TRANSPORT_TCP ? "2" : NULL},
        // Measuring the rate over twenty pictures would delay the first of them.
        {"fpsprobesize", in->base.source->live ? "2" : NULL},
        // Guessing H.264's reordering from seven of them would, too; the decoder detects it itself.
        {"analyzeduration", rtsp ? "100000" : NULL},
    };
    int rc = 0;
    for (size_t i = 0; rc >= 0 && i < sizeof(ours) / sizeof(*ours); i++)
        rc = av_dict_set(options, ours[i].name, ours[i].value, 0);
    for (int i = 0; rc >= 0 && !rtsp && i < config->options.n; i++)
        rc = av_dict_set(options, config->options.list[i].name, config->options.list[i].value, 0);
    return rc < 0 ? rc : 0;
}

static int open_format(struct libav_demux *in, char *why, size_t size)
{
    const struct camera_config *config = in->context.config;
    AVDictionary *options = NULL;
    const AVInputFormat *demuxer = NULL;
    const AVDictionaryEntry *unknown;
    if (config->demuxer && !(demuxer = av_find_input_format(config->demuxer))) {
        snprintf(why, size, "libavformat has no demuxer \"%s\"", config->demuxer);
        return -EINVAL;
    }
    int rc = set_options(&options, in);
    if (rc < 0 || !(in->format = avformat_alloc_context())) {
        rc = -ENOMEM;
        goto out;
    }
    in->format->interrupt_callback = (AVIOInterruptCB){interrupted, in};
    in->format->pb = in->io;
    rc = avformat_open_input(&in->format, config->url, demuxer, &options);
    if (rc < 0)
        goto out;
    if ((unknown = av_dict_get(options, "", NULL, AV_DICT_IGNORE_SUFFIX))) {
        snprintf(why, size, "the demuxer %s knows no option \"%s\"", in->format->iformat->name,
                 unknown->key);
        rc = -EINVAL;
    }
out:
    av_dict_free(&options);
    return rc;
}

static int choose_track(struct libav_demux *in, char *why, size_t size)
{
    int rc = avformat_find_stream_info(in->format, NULL);
    if (in->interrupted || rc < 0)
        return rc;
    int best = av_find_best_stream(in->format, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    if (best < 0) {
        snprintf(why, size, "there is no video track in it");
        return -EINVAL;
    }
    in->stream = in->format->streams[best];
    for (unsigned i = 0; i < in->format->nb_streams; i++) {
        if ((int)i != best)
            in->format->streams[i]->discard = AVDISCARD_ALL;
    }
    return 0;
}

const char *demux_describe(const struct demux *demux, char to[DEMUX_DESCRIPTION_MAX])
{
    const AVCodecParameters *parameters = demux->parameters;
    char pixels[32] = "", fps[32] = "";
    if (parameters->width > 0) // otherwise the first picture has it
        snprintf(pixels, sizeof pixels, " %dx%d", parameters->width, parameters->height);
    if (demux->rate_den > 0)
        snprintf(fps, sizeof fps, " %.4g fps", (double)demux->rate_num / demux->rate_den);
    snprintf(to, DEMUX_DESCRIPTION_MAX, "%s%s%s %s%s%s", avcodec_get_name(parameters->codec_id),
             pixels, fps, demux->source->name, demux->transport ? "/" : "",
             demux->transport ? demux->transport : "");
    return to;
}

static void note_facts(struct libav_demux *in)
{
    struct demux *base = &in->base;
    const AVRational rate = av_guess_frame_rate(in->format, in->stream, NULL);
    size_t size;
    const void *matrix = libav_side_data(in->stream, AV_PKT_DATA_DISPLAYMATRIX, &size);
    base->parameters = in->stream->codecpar;
    if (matrix && size >= ORIENTATION_MATRIX_BYTES)
        base->orientation = orientation_of(matrix);
    if (rate.num > 0 && rate.den > 0 && av_q2d(rate) <= RATE_MAX) {
        base->rate_num = rate.num;
        base->rate_den = rate.den;
    }
    if (base->source->kind == URL_RTSP)
        base->transport =
            row_choice(table_find(&camera_table, "transport"), (int)in->context.config->transport);
}

static void explain(const struct libav_demux *in, int error, char *why, size_t size)
{
    const struct camera_config *config = in->context.config;
    char url[512], text[AV_ERROR_MAX_STRING_SIZE];
    config_camera_url(config, url, sizeof url);
    int rc = errno_of(in, error);
    if (rc == -ECANCELED)
        snprintf(why, size, "stopped while opening %s", url);
    else if (rc == -ETIMEDOUT)
        snprintf(why, size, "%s gave no picture within %g s", url,
                 (double)config->connect_timeout.ns / 1e9);
    else if (error == AVERROR_HTTP_UNAUTHORIZED || error == AVERROR_HTTP_FORBIDDEN)
        snprintf(why, size, "%s refused the user name or password", url);
    else if (*libav_thread()->last_error)
        snprintf(why, size, "cannot open %s: %s", url, libav_thread()->last_error);
    else
        snprintf(why, size, "cannot open %s: %s", url,
                 av_make_error_string(text, sizeof(text), error));
}

static int open_all(struct libav_demux *in, char *why, size_t size)
{
    const struct camera_config *config = in->context.config;
    if (!(in->packet = av_packet_alloc()) || secrets_open(&in->secrets, config) < 0)
        return -ENOMEM;
    libav_thread()->secrets = in->secrets;
    if (interrupted(in)) // otherwise libavformat would look up the host's name first
        return in->interrupted;
    int rc = open_descriptor(in, config->url);
    if (rc == 0)
        rc = open_format(in, why, size);
    if (rc == 0)
        rc = choose_track(in, why, size);
    if (in->interrupted)
        return in->interrupted;
    if (rc == 0)
        note_facts(in);
    return rc;
}

static void libav_close(struct demux *demux);

static int libav_open(struct demux **ret, const struct url_input *source,
                      const struct demux_context *context, char *why, size_t size)
{
    const struct camera_config *config = context->config;
    struct libav_demux *in = calloc(1, sizeof(*in));
    if (!in) {
        snprintf(why, size, "out of memory");
        return -ENOMEM;
    }
    in->base = (struct demux){
        .driver = &demux_libav,
        .source = source,
        .patience_ns = config->media_timeout.ns ? config->media_timeout.ns : DEMUX_PATIENCE_NS,
    };
    in->fd = -1;
    in->context = *context;
    *libav_thread() = (struct libav_thread){0};
    begin(in, STAGE_CONNECT, config->connect_timeout.ns, LOOKUP_NS);
    int rc = open_all(in, why, size);
    if (rc == 0) {
        *ret = &in->base;
        return 0;
    }
    if (!why[0])
        explain(in, rc, why, size);
    rc = errno_of(in, rc);
    libav_close(&in->base);
    return rc == -ENODATA ? -EIO : rc; // the input ended before there was a stream
}

static int64_t capture_clock(struct libav_demux *in)
{
    size_t size = 0;
    const AVProducerReferenceTime *prft =
        (const void *)av_packet_get_side_data(in->packet, AV_PKT_DATA_PRFT, &size);
    int64_t start_us = in->format->start_time_realtime, report_ns = INT64_MIN, start_ns = 0;
    if (prft && size >= sizeof(*prft) && start_us != AV_NOPTS_VALUE &&
        in->packet->pts != AV_NOPTS_VALUE) {
        report_ns = prft->wallclock * 1000;
        start_ns = start_us * 1000;
    }
    return sender_clock_read(&in->clock, report_ns, start_ns, in->packet->pts);
}

// Called at the end. libavformat does not report half a picture of y4m.
static bool is_cut_short(const struct libav_demux *in)
{
    bool half = !strcmp(in->format->iformat->name, "yuv4mpegpipe") && in->format->pb &&
                in->end_pos > 0 && avio_size(in->format->pb) > in->end_pos;
    return libav_thread()->cut_short || in->partial || half;
}

static bool is_realtime(const struct libav_demux *in)
{
    return in->context.config->pace == PACE_REALTIME && !in->base.source->live;
}

static void begin_reading(struct libav_demux *in)
{
    begin(in, STAGE_READ, in->base.patience_ns, is_realtime(in) ? PACER_GAP_NS : 0);
}

static int read_track(struct libav_demux *in)
{
    do {
        if (interrupted(in))
            return AVERROR_EXIT;
        av_packet_unref(in->packet);
        int rc = av_read_frame(in->format, in->packet);
        if (rc < 0 || in->interrupted) // after an interrupt the packet may be half a picture
            return rc < 0 ? rc : AVERROR_EXIT;
    } while (in->packet->stream_index != in->stream->index || in->packet->size == 0);
    av_packet_rescale_ts(in->packet, in->stream->time_base, NANOSECONDS);
    in->packet->time_base = NANOSECONDS;
    // libavformat marks packets that it read only in part. In MPEG-TS the mark means missing ones.
    in->partial = (in->packet->flags & AV_PKT_FLAG_CORRUPT) &&
                  !(in->format->iformat->flags & AVFMT_TS_DISCONT);
    in->end_pos = in->packet->pos + in->packet->size;
    // Packets missed while a picture is read belong to it or to the next one, because a picture is
    // complete only when the next one begins.
    const bool missed = libav_thread()->data_missing;
    libav_thread()->data_missing = false;
    if (missed || in->missed)
        in->packet->flags |= AV_PKT_FLAG_CORRUPT;
    in->missed = missed;
    return 0;
}

static int libav_read(struct demux *demux, struct packet *ret)
{
    struct libav_demux *in = (void *)demux;
    const int64_t began_ns = monotonic_ns();
    begin_reading(in);
    int rc = read_track(in);
    if (rc == AVERROR_EOF && !in->interrupted && !in->base.source->live && is_cut_short(in))
        return -EPROTO;
    if (rc < 0)
        return errno_of(in, rc);
    int64_t ts = in->packet->dts != AV_NOPTS_VALUE ? in->packet->dts : in->packet->pts;
    if (is_realtime(in) && ts != AV_NOPTS_VALUE &&
        (rc = pacer_wait(&in->pacer, ts, in->context.stop)) < 0)
        return rc;
    const int64_t capture_ns = capture_clock(in), now_ns = monotonic_ns();
    *ret = (struct packet){
        .av = in->packet,
        .bytes = (size_t)in->packet->size,
        .pts_ns = in->packet->pts,
        .received_ns = now_ns,
        .arrived_ns = now_ns,
        .capture_ns = capture_ns != INT64_MIN ? capture_ns : realtime_ns(),
        .capture_clock = capture_ns != INT64_MIN,
        .keyframe = in->packet->flags & AV_PKT_FLAG_KEY,
        .disposable = in->packet->flags & AV_PKT_FLAG_DISPOSABLE,
        .damaged = in->packet->flags & AV_PKT_FLAG_CORRUPT,
        .waited = WAITED_SHARE * (now_ns - began_ns) >= now_ns - in->read_ns,
    };
    in->read_ns = now_ns;
    return 0;
}

// Seeks by bytes in discontinuous streams (MPEG-TS): their index lacks the first picture.
static int libav_rewind(struct demux *demux)
{
    struct libav_demux *in = (void *)demux;
    begin_reading(in);
    int64_t start = in->stream->start_time != AV_NOPTS_VALUE ? in->stream->start_time : 0;
    int rc = AVERROR(ENOSYS);
    if (!(in->format->iformat->flags & AVFMT_TS_DISCONT))
        rc = avformat_seek_file(in->format, in->stream->index, INT64_MIN, start, start, 0);
    if (rc < 0)
        rc = avformat_seek_file(in->format, -1, 0, 0, 0, AVSEEK_FLAG_BYTE);
    in->pacer = (struct pacer){0};
    return rc < 0 ? errno_of(in, rc) : 0;
}

static void libav_close(struct demux *demux)
{
    struct libav_demux *in = (void *)demux;
    // Send TEARDOWN even if the daemon stops: an RTSP server would otherwise keep the session.
    in->heed_stop_ns = monotonic_ns() + GOODBYE_NS;
    begin(in, STAGE_CLOSE, in->context.config->close_timeout.ns, 0);
    avformat_close_input(&in->format);
    if (in->io)
        av_freep(&in->io->buffer);
    avio_context_free(&in->io);
    if (in->fd >= 0)
        close(in->fd);
    av_packet_free(&in->packet);
    libav_thread()->secrets = NULL;
    secrets_close(in->secrets);
    free(in);
}

const struct demux_driver demux_libav = {
    .open = libav_open,
    .read = libav_read,
    .rewind = libav_rewind,
    .close = libav_close,
};

// --- options, before anything is opened

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

// `whitelist`: the allowed protocols, separated by commas; NULL: all.
static bool any_protocol_has(const char *whitelist, const char *option)
{
    const char *name;
    void *i = NULL;
    while ((name = avio_enum_protocols(&i, 0)))
        if ((!whitelist || av_match_list(name, whitelist, ',')) &&
            class_has(avio_protocol_get_class(name), option))
            return true;
    return strcmp(option, "rw_timeout") == 0; // an option of all protocols
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
