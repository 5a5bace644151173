#include "daemon/output/muxer.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/object.h"
#include "config/url.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/number.h"
#include "daemon/bitstream/nal.h"
#include "daemon/source/libav_log.h"
#include "daemon/source/libav_version.h"

enum {
    BUFFER_BYTES = 64 << 10,
    QUIET = 64,      // added to the level of log messages
    START_BYTES = 3, // of a start code
};
static const AVRational NANOSECONDS = {1, 1000000000};
static const AVRational TICKS = {1, 90000}; // clock of pictures in RTP and MP4
static const int64_t CONNECT_NS = 10 * INT64_C(1000000000);
static const int64_t SEND_NS = 5 * INT64_C(1000000000);
static const int64_t LEAVE_NS = 500000000;

struct muxer {
    AVFormatContext *format;
    AVStream *stream;
    AVPacket *packet; // files: the last one, until the next one shows how long it lasts
    int64_t last_dts; // of the last one, in the stream's time base, and in ns:
    int64_t last_dts_ns;
    int64_t begin_ns; // pts of the first packet
    int error;        // first write error, negative errno; nothing is written after it
    // Files:
    struct segment *segment;
    AVIOContext *io;
    int64_t at, end;         // next write position; size of the file
    struct mp4_index *index; // MP4 only, else NULL
    int64_t keyframe_pts;    // of the last one written, in the stream's time base
    // Servers:
    const _Atomic bool *stop; // NULL: it leaves
    int64_t deadline_ns;      // CLOCK_MONOTONIC
    bool connected;           // libavformat closes the connection only with the trailer
    struct secrets *secrets;
};

// --- streams

// Returns the bit of `all` (below) for a parameter set; 0 for another NAL unit.
static unsigned parameter_set(enum AVCodecID codec, const struct nal *nal)
{
    const bool h264 = codec == AV_CODEC_ID_H264;
    const int type = h264 ? h264_unit_type(nal) : hevc_unit_type(nal);
    const int first = h264 ? H264_UNIT_SPS : HEVC_UNIT_VPS;
    const int last = h264 ? H264_UNIT_PPS : HEVC_UNIT_PPS;
    return type >= first && type <= last ? 1u << (type - first) : 0;
}

// Replaces the extradata with the parameter sets before a keyframe, between start codes. Keeps the
// extradata if one is missing.
static int take_parameter_sets(AVCodecParameters *stream, const AVPacket *keyframe)
{
    static const uint8_t start_code[] = {0, 0, 0, 1};
    const unsigned all = stream->codec_id == AV_CODEC_ID_H264 ? 3 : 7;
    struct nal_reader reader = {.data = keyframe->data, .size = (size_t)keyframe->size};
    struct nal nal;
    unsigned found = 0;
    size_t size = 0;
    uint8_t *sets = av_mallocz((size_t)keyframe->size + 64 + AV_INPUT_BUFFER_PADDING_SIZE);
    if (!sets)
        return -ENOMEM;
    while (nal_next(&reader, &nal)) {
        const unsigned set = parameter_set(stream->codec_id, &nal);
        // Start codes of three bytes become four: 64 more suffice, as few units are parameter sets.
        if (!set || size + sizeof start_code + nal.size > (size_t)keyframe->size + 64)
            continue;
        memcpy(sets + size, start_code, sizeof start_code);
        memcpy(sets + size + sizeof start_code, nal.data, nal.size);
        size += sizeof start_code + nal.size;
        found |= set;
    }
    if (found != all) {
        av_free(sets);
        return 0;
    }
    av_freep(&stream->extradata);
    stream->extradata = sets;
    stream->extradata_size = (int)size;
    return 0;
}

// Reads a JPEG's size from its frame header: marker, length, precision, height, width.
static void find_jpeg_size(AVCodecParameters *stream, const AVPacket *picture)
{
    enum { SOF0 = 0xc0, SOF2 = 0xc2, HEADER = 9 };
    const uint8_t *data = picture->data;
    for (int at = 2; at + HEADER <= picture->size && data[at] == 0xff;
         at += 2 + (int)big_endian_read(data + at + 2, 2)) {
        if (data[at + 1] < SOF0 || data[at + 1] > SOF2)
            continue;
        stream->height = (int)big_endian_read(data + at + 5, 2);
        stream->width = (int)big_endian_read(data + at + 7, 2);
        return;
    }
}

static int find_size(AVCodecParameters *stream, const AVPacket *keyframe)
{
    AVCodecContext *context = avcodec_alloc_context3(NULL);
    AVCodecParserContext *parser = av_parser_init((int)stream->codec_id);
    uint8_t *data;
    int size, rc = -ENOMEM;
    if (context && parser && avcodec_parameters_to_context(context, stream) >= 0) {
        rc = 0;
        parser->flags |= PARSER_FLAG_COMPLETE_FRAMES;
        av_parser_parse2(parser, context, &data, &size, keyframe->data, keyframe->size,
                         AV_NOPTS_VALUE, AV_NOPTS_VALUE, 0);
        stream->width = parser->width;
        stream->height = parser->height;
    }
    av_parser_close(parser);
    avcodec_free_context(&context);
    return rc;
}

static bool has_nal_units(const AVCodecParameters *stream)
{
    return stream->codec_id == AV_CODEC_ID_H264 || stream->codec_id == AV_CODEC_ID_HEVC;
}

// Returns true for NAL units with start codes; with lengths the extradata begins with 1.
static bool has_start_codes(const AVCodecParameters *stream)
{
    return has_nal_units(stream) && (stream->extradata_size == 0 || stream->extradata[0] != 1);
}

int muxer_complete_stream(AVCodecParameters *stream, const AVPacket *keyframe)
{
    if (!has_nal_units(stream) && stream->codec_id != AV_CODEC_ID_MJPEG)
        return -ENOTSUP;
    int rc = has_start_codes(stream) ? take_parameter_sets(stream, keyframe) : 0;
    if (rc < 0 || stream->width > 0)
        return rc;
    if (has_nal_units(stream))
        return find_size(stream, keyframe);
    find_jpeg_size(stream, keyframe);
    return 0;
}

bool muxer_same_stream(const AVCodecParameters *a, const AVCodecParameters *b)
{
    return a->codec_id == b->codec_id && a->width == b->width && a->height == b->height &&
           a->extradata_size == b->extradata_size &&
           (a->extradata_size == 0 ||
            memcmp(a->extradata, b->extradata, (size_t)a->extradata_size) == 0);
}

// --- the file behind libavformat

static int write_bytes(void *opaque, libav_written *data, int size)
{
    struct muxer *muxer = opaque;
    if (muxer->error == 0)
        muxer->error = segment_write(muxer->segment, data, (size_t)size, muxer->at);
    muxer->at += size;
    if (muxer->at > muxer->end)
        muxer->end = muxer->at;
    return size; // an error would stick to libavformat's buffer: it is in muxer->error
}

// MP4: fragments that begin with a keyframe have a type of their own.
static int write_typed(void *opaque, libav_written *data, int size, enum AVIODataMarkerType type,
                       int64_t time)
{
    struct muxer *muxer = opaque;
    (void)time; // of decoding
    if (type == AVIO_DATA_MARKER_SYNC_POINT)
        mp4_index_add(muxer->index, muxer->keyframe_pts, muxer->at);
    return write_bytes(opaque, data, size);
}

static int64_t seek_bytes(void *opaque, int64_t offset, int whence)
{
    struct muxer *muxer = opaque;
    if (whence & AVSEEK_SIZE)
        return muxer->end;
    if ((whence & ~AVSEEK_FORCE) != SEEK_SET)
        return AVERROR(EINVAL);
    return muxer->at = offset;
}

// --- opening

static int interrupted(void *opaque)
{
    const struct muxer *muxer = opaque;
    return (muxer->stop && atomic_load(muxer->stop)) || monotonic_ns() > muxer->deadline_ns;
}

static int errno_of(const struct muxer *muxer, int error)
{
    if (muxer->error < 0)
        return muxer->error;
    switch (error) {
    case AVERROR_INVALIDDATA:
        return -EINVAL;
    case AVERROR_HTTP_UNAUTHORIZED:
    case AVERROR_HTTP_FORBIDDEN:
        return -EACCES;
    default:
        return error >= 0 ? 0 : error > -4096 ? error : -EIO;
    }
}

// Returns a muxer with one stream, or NULL without memory.
static struct muxer *make_muxer(const char *format, const char *url,
                                const AVCodecParameters *stream)
{
    struct muxer *muxer = calloc(1, sizeof *muxer);
    if (!muxer)
        return NULL;
    muxer->last_dts = INT64_MIN;
    muxer->packet = av_packet_alloc();
    if (avformat_alloc_output_context2(&muxer->format, NULL, format, url) >= 0)
        muxer->stream = avformat_new_stream(muxer->format, NULL);
    if (!muxer->packet || !muxer->stream ||
        avcodec_parameters_copy(muxer->stream->codecpar, stream) < 0) {
        muxer_close(muxer);
        return NULL;
    }
    muxer->stream->codecpar->codec_tag = 0; // belongs to the input's container
    muxer->stream->time_base = TICKS;
    // Decoding begins before presentation, which begins at 0: MP4 expresses this in the edit list
    // of a moov delayed until the first fragment; the others have no dts.
    muxer->format->avoid_negative_ts = 0;
    return muxer;
}

static int set_begin(struct muxer *muxer, int64_t begin_ns)
{
    char text[40];
    const time_t seconds = (time_t)(begin_ns / NANOSECONDS.den);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text + n, sizeof text - n, ".%06dZ", (int)(begin_ns % NANOSECONDS.den / 1000));
    return av_dict_set(&muxer->format->metadata, "creation_time", text, 0) < 0 ? -ENOMEM : 0;
}

// MP4 is only appended to. Matroska's header is completed at the end, but is valid before.
static int open_io(struct muxer *muxer, bool mp4)
{
    uint8_t *buffer = av_malloc(BUFFER_BYTES);
    muxer->io = buffer ? avio_alloc_context(buffer, BUFFER_BYTES, 1, muxer, NULL, write_bytes,
                                            mp4 ? NULL : seek_bytes)
                       : NULL;
    if (!muxer->io) {
        av_free(buffer);
        return -ENOMEM;
    }
    muxer->format->pb = muxer->io;
    if (!mp4)
        return 0;
    muxer->index = calloc(1, sizeof *muxer->index);
    if (!muxer->index)
        return -ENOMEM;
    muxer->io->write_data_type = write_typed;
    return 0;
}

// True if libavcodec opens a decoder with the parameter sets.
static bool are_decodable(const AVCodecParameters *sets)
{
    const AVCodec *codec = avcodec_find_decoder(sets->codec_id);
    AVCodecContext *context = codec ? avcodec_alloc_context3(codec) : NULL;
    bool decodable = context && avcodec_parameters_to_context(context, sets) >= 0;
    if (decodable) {
        context->err_recognition = AV_EF_EXPLODE;
        context->log_level_offset = QUIET;
        decodable = avcodec_open2(context, codec, NULL) >= 0;
    }
    avcodec_free_context(&context);
    return decodable;
}

// libavformat parses each SPS of H.265 for a file's header. Past the end of a truncated or damaged
// one it finds billions of reference pictures and is busy for hours; libavcodec rejects it.
static bool has_readable_sets(const AVCodecParameters *stream)
{
    if (stream->codec_id != AV_CODEC_ID_HEVC || !has_start_codes(stream))
        return true;
    AVCodecParameters *sets = avcodec_parameters_alloc(); // VPS and SPS alone, in any order of PPS
    bool readable = sets && avcodec_parameters_copy(sets, stream) >= 0, found = false;
    struct nal_reader reader = {.data = readable ? sets->extradata : NULL,
                                .size = readable ? (size_t)sets->extradata_size : 0};
    size_t bytes = 0;
    for (struct nal nal; nal_next(&reader, &nal);) {
        const int type = nal.size > 1 ? nal.data[0] >> 1 & 63 : -1; // of any layer
        if (type != HEVC_UNIT_VPS && type != HEVC_UNIT_SPS)
            continue;
        found |= type == HEVC_UNIT_SPS;
        if (type == HEVC_UNIT_SPS)
            readable &= hevc_unit_type(&nal) == type && nal.data[1] == 1; // TemporalId is 0
        memmove(sets->extradata + bytes, nal.data - START_BYTES, nal.size + START_BYTES);
        bytes += nal.size + START_BYTES;
    }
    if (readable && found) {
        memset(sets->extradata + bytes, 0, reader.size - bytes);
        sets->extradata_size = (int)bytes;
    }
    readable = readable && found && are_decodable(sets);
    avcodec_parameters_free(&sets);
    return readable;
}

int muxer_open_file(struct muxer **ret, struct segment *segment, const AVCodecParameters *stream,
                    int64_t begin_ns)
{
    const bool mp4 = segment->config->protocol == PROTOCOL_MP4;
    AVDictionary *options = NULL;
    if (stream->width <= 0 || !has_readable_sets(stream))
        return -EINVAL;
    struct muxer *muxer = make_muxer(mp4 ? "mp4" : "matroska", NULL, stream);
    if (!muxer)
        return -ENOMEM;
    muxer->segment = segment;
    int rc = open_io(muxer, mp4);
    if (rc == 0)
        rc = set_begin(muxer, begin_ns);
    // Without libavformat's trailer: its index also lists fragments that begin without a keyframe.
    if (rc == 0 && mp4)
        rc = av_dict_set(&options, "movflags",
                         "frag_keyframe+frag_custom+empty_moov+delay_moov+default_base_moof"
                         "+skip_trailer",
                         0);
    if (rc >= 0)
        rc = avformat_write_header(muxer->format, &options);
    av_dict_free(&options);
    rc = errno_of(muxer, rc);
    if (rc < 0)
        muxer_close(muxer);
    else
        *ret = muxer;
    return rc;
}

static void set_deadline(struct muxer *muxer, int64_t ns)
{
    muxer->deadline_ns = monotonic_ns() + ns;
}

// Connects and announces the stream. Returns 0 or an AVERROR.
static int announce(struct muxer *muxer, const char *url)
{
    const struct camera_config server = {.url = (char *)url}; // its secrets are hidden
    AVDictionary *options = NULL;
    int rc = secrets_open(&muxer->secrets, &server);
    if (rc < 0)
        return rc;
    *libav_thread() = (struct libav_thread){.secrets = muxer->secrets};
    muxer->format->interrupt_callback = (AVIOInterruptCB){interrupted, muxer};
    set_deadline(muxer, CONNECT_NS);
    av_dict_set(&options, "rtsp_transport", "tcp", 0);
    rc = avformat_write_header(muxer->format, &options);
    av_dict_free(&options);
    muxer->connected = rc >= 0;
    return rc < 0 ? rc : 0;
}

int muxer_open_server(struct muxer **ret, const struct output_config *output,
                      const AVCodecParameters *stream, const _Atomic bool *stop, char *why,
                      size_t size)
{
    const char *url = output->sink.url;
    char shown[512], text[AV_ERROR_MAX_STRING_SIZE];
    struct muxer *muxer = make_muxer("rtsp", url, stream);
    int rc = -ENOMEM;
    if (muxer) {
        muxer->stop = stop;
        rc = announce(muxer, url);
    }
    if (rc == 0) {
        *ret = muxer;
        return 0;
    }
    const char *said = rc == -ENOMEM ? "" : libav_thread()->last_error;
    snprintf(why, size, "cannot publish to %s: %s", config_sink_url(output, shown, sizeof shown),
             *said ? said : av_make_error_string(text, sizeof text, rc));
    rc = muxer ? errno_of(muxer, rc) : rc;
    muxer_close(muxer);
    return rc;
}

// --- writing

static int write_last(struct muxer *muxer, int64_t duration_ns)
{
    AVPacket *packet = muxer->packet;
    const bool keyframe = packet->flags & AV_PKT_FLAG_KEY;
    const int64_t pts = packet->pts;
    const int64_t end_ns = muxer->last_dts_ns - muxer->begin_ns + duration_ns;
    const int64_t end = av_rescale_q(end_ns, NANOSECONDS, muxer->stream->time_base);
    packet->duration = bounds_max(end - packet->dts, 0);
    set_deadline(muxer, SEND_NS);
    const int rc = av_write_frame(muxer->format, packet);
    // After the write: before a keyframe libavformat writes the previous keyframe's fragment.
    if (keyframe)
        muxer->keyframe_pts = pts;
    av_packet_unref(packet);
    return errno_of(muxer, rc);
}

bool muxer_holds(const struct muxer *muxer)
{
    return muxer->packet->data;
}

int muxer_write(struct muxer *muxer, const AVPacket *from, const struct packet_times *times)
{
    AVPacket *packet = muxer->packet;
    const AVRational base = muxer->stream->time_base;
    int rc = muxer_holds(muxer) ? write_last(muxer, times->dts - muxer->last_dts_ns) : 0;
    if (rc == 0 && av_packet_ref(packet, from) < 0)
        rc = -ENOMEM;
    if (rc < 0)
        return rc;
    // A NAL unit ends with a one: zeros after it belong to the next start code, but libavformat's
    // parsers leave them there.
    while (has_start_codes(muxer->stream->codecpar) && packet->size > 0 &&
           packet->data[packet->size - 1] == 0)
        packet->size--;
    packet->stream_index = 0;
    packet->pos = -1;
    if (muxer->last_dts == INT64_MIN)
        muxer->begin_ns = times->pts;
    packet->dts = av_rescale_q(times->dts - muxer->begin_ns, NANOSECONDS, base);
    packet->pts = av_rescale_q(times->pts - muxer->begin_ns, NANOSECONDS, base);
    if (packet->dts <= muxer->last_dts)
        packet->dts = muxer->last_dts + 1; // two within one tick
    packet->pts = bounds_max(packet->pts, packet->dts);
    muxer->last_dts = packet->dts;
    muxer->last_dts_ns = times->dts;
    return muxer->io ? 0 : write_last(muxer, 0);
}

int muxer_flush(struct muxer *muxer, int64_t last_ns)
{
    int rc = last_ns >= 0 && muxer_holds(muxer) ? write_last(muxer, last_ns) : 0;
    const bool begins = muxer->end == 0;
    if (rc == 0)
        rc = av_write_frame(muxer->format, NULL);
    if (rc >= 0 && begins) // the first call only writes an MP4's moov
        rc = av_write_frame(muxer->format, NULL);
    avio_flush(muxer->io);
    rc = errno_of(muxer, rc);
    if (rc == 0)
        muxer->segment->whole = muxer->end;
    return rc;
}

int muxer_finish(struct muxer *muxer)
{
    muxer->connected = false;
    muxer->stop = NULL;
    set_deadline(muxer, LEAVE_NS);
    int rc = av_write_trailer(muxer->format);
    if (muxer->index)
        mp4_index_write(muxer->index, muxer->io);
    if (muxer->io)
        avio_flush(muxer->io);
    rc = errno_of(muxer, rc);
    if (rc == 0 && muxer->segment)
        muxer->segment->whole = muxer->end;
    return rc;
}

void muxer_close(struct muxer *muxer)
{
    if (!muxer)
        return;
    if (muxer->connected)
        muxer_finish(muxer);
    if (muxer->io)
        muxer->error = -ECANCELED; // discards bytes that libavformat still holds
    avformat_free_context(muxer->format);
    if (muxer->io)
        av_freep(&muxer->io->buffer);
    avio_context_free(&muxer->io);
    av_packet_free(&muxer->packet);
    free(muxer->index);
    libav_thread()->secrets = NULL;
    secrets_close(muxer->secrets);
    free(muxer);
}

// --- times of packets

static const int64_t INTERVAL_NS = 40000000;            // until the stream shows its own
static const int64_t JUMP_NS = 5 * INT64_C(1000000000); // larger deviation from arrival: a restart

// Uses the arrival time if the camera's own time is missing or restarts.
static int64_t continuous_pts(struct timeline *line, int64_t pts_ns, int64_t received_ns)
{
    const int64_t since_ns = received_ns - line->received_ns;
    const int64_t expected = line->pts_ns + (since_ns > 0 ? since_ns : 1);
    const bool unknown = pts_ns == INT64_MIN;
    if (line->begun && (unknown || llabs(pts_ns - expected) > JUMP_NS)) {
        line->shift_ns += unknown ? 0 : expected - pts_ns;
        pts_ns = unknown ? expected : pts_ns;
    } else if (unknown) {
        pts_ns = 0;
    }
    line->begun = true;
    line->pts_ns = pts_ns;
    line->received_ns = received_ns;
    return pts_ns + line->shift_ns;
}

static void insert_pending(struct timeline *line, int64_t pts)
{
    int at = line->n++;
    while (at > 0 && line->pending[at - 1] > pts) {
        line->pending[at] = line->pending[at - 1];
        at--;
    }
    line->pending[at] = pts;
}

void timeline_begin(struct timeline *line, int delay)
{
    if (delay > line->delay)
        line->delay = delay < TIMELINE_DELAY_MAX ? delay : TIMELINE_DELAY_MAX;
    line->n = 0;
    line->last_dts = INT64_MIN;
}

// The dts is the lowest pts not yet used, with `delay` pts held back: if pictures are reordered by
// at most `delay`, none is shown before it is decoded.
struct packet_times timeline_next(struct timeline *line, int64_t pts_ns, int64_t received_ns)
{
    struct packet_times times = {.pts = continuous_pts(line, pts_ns, received_ns)};
    const int64_t interval = line->interval_ns > 0 ? line->interval_ns : INTERVAL_NS;
    if (line->n == 0)
        for (int i = line->delay; i > 0; i--)
            line->pending[line->n++] = times.pts - i * interval;
    insert_pending(line, times.pts);
    times.dts = line->pending[0];
    if (line->last_dts != INT64_MIN && times.pts <= line->last_dts) {
        // Reordered by more than `delay`: this one is shown slightly late, later ones on time.
        times.pts = times.dts = line->last_dts + 1;
        line->delay += line->delay < TIMELINE_DELAY_MAX;
    } else if (line->last_dts != INT64_MIN && times.dts <= line->last_dts) {
        times.dts = line->last_dts + 1;
    } else if (line->last_dts != INT64_MIN && times.dts - line->last_dts < JUMP_NS) {
        line->interval_ns = times.dts - line->last_dts;
    }
    if (line->n > line->delay)
        memmove(line->pending, line->pending + 1, (size_t)--line->n * sizeof line->pending[0]);
    line->last_dts = times.dts;
    return times;
}

// --- index of an MP4

void mp4_index_add(struct mp4_index *index, int64_t pts, int64_t offset)
{
    if (index->seen++ % (INT64_C(1) << index->skips) != 0)
        return;
    index->keyframe[index->n].pts = pts;
    index->keyframe[index->n++].offset = offset;
    if (index->n < MP4_INDEX_MAX)
        return;
    index->n /= 2;
    index->skips++;
    for (int i = 0; i < index->n; i++)
        index->keyframe[i] = index->keyframe[2 * i];
}

static void write_box_head(AVIOContext *io, unsigned bytes, const char *type)
{
    avio_wb32(io, bytes);
    avio_write(io, (const unsigned char *)type, 4);
}

void mp4_index_write(const struct mp4_index *index, AVIOContext *io)
{
    enum { HEAD = 8, TFRA_HEAD = 24, ENTRY = 19, MFRO = 16, VERSION_1 = 1 << 24 };
    const unsigned tfra = TFRA_HEAD + ENTRY * (unsigned)index->n, mfra = HEAD + tfra + MFRO;
    write_box_head(io, mfra, "mfra");
    write_box_head(io, tfra, "tfra");
    avio_wb32(io, VERSION_1); // 64-bit times and offsets
    avio_wb32(io, 1);         // track ID
    avio_wb32(io, 0);         // one byte for each of an entry's three numbers
    avio_wb32(io, (unsigned)index->n);
    for (int i = 0; i < index->n; i++) {
        avio_wb64(io, (uint64_t)index->keyframe[i].pts);
        avio_wb64(io, (uint64_t)index->keyframe[i].offset);
        for (int number = 0; number < 3; number++)
            avio_w8(io, 1); // traf in its moof, trun in the traf, sample in the trun
    }
    write_box_head(io, MFRO, "mfro");
    avio_wb32(io, 0);
    avio_wb32(io, mfra);
}
