#include "daemon/codec/decoder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/bitstream/nal.h"
#include "daemon/codec/buffers.h"
#include "daemon/codec/packet_inspection.h"
#include "daemon/codec/picture.h"
#include "daemon/codec/picture_filter.h"
#include "daemon/codec/pixel_format_map.h"
#include "daemon/codec/takeover.h"
#include "daemon/source/demux.h"
#include "daemon/source/libav_log.h"
#include "daemon/source/libav_version.h"
#include "daemon/wire.h"

// While the first picture waits for NVDEC, a newer keyframe replaces packets older than this.
static const int64_t STALE_NS = INT64_C(1000000000);

struct decoder {
    struct takeover takeover;
    struct packet_inspection inspection;
    struct hash_checker hash_checker;
    struct picture_filter filter;
    int64_t skipped; // by the filter
    bool harmed;     // met undecodable data, which may have left traces
    bool intact;     // nothing is missing since a keyframe
    bool hole;       // packet.hole of the last packet
    int64_t failures;
    int orientation; // decoder_orientation
    const char *converted;
    bool by_intra;      // notice given that intra pictures serve as recovery points
    const char *matrix; // the stream's, last reported as read as another one
};

int decoder_open(struct decoder **ret, const AVCodecParameters *parameters,
                 const struct decode_options *options)
{
    if (!avcodec_find_decoder(parameters->codec_id))
        return -ENOTSUP;
    struct decoder *d = calloc(1, sizeof(*d));
    if (!d)
        return -ENOMEM;
    d->orientation = -ENODATA;
    d->filter.pictures = options->pictures;
    if (takeover_open(&d->takeover, parameters, options) < 0) {
        decoder_close(d);
        return -ENOMEM;
    }
    d->inspection.parameters = d->takeover.parameters;
    d->inspection.reads_hashes = options->check_hashes;
    *ret = d;
    return 0;
}

void decoder_close(struct decoder *d)
{
    if (!d)
        return;
    takeover_close(&d->takeover);
    hash_checker_finish(&d->hash_checker);
    packet_inspection_finish(&d->inspection);
    free(d);
}

int decoder_join(struct decoder *d, const struct decode_target *target)
{
    return takeover_join(&d->takeover, target);
}

void decoder_leave(struct decoder *d)
{
    takeover_leave(&d->takeover);
}

bool decoder_accepts(const struct decoder *d, const AVCodecParameters *parameters)
{
    const AVCodecParameters *own = d->takeover.parameters;
    return !d->harmed && own->codec_id == parameters->codec_id &&
           own->profile == parameters->profile && own->format == parameters->format &&
           own->width == parameters->width && own->height == parameters->height &&
           own->extradata_size == parameters->extradata_size &&
           (own->extradata_size == 0 ||
            memcmp(own->extradata, parameters->extradata, (size_t)own->extradata_size) == 0);
}

// Some streams have no keyframes: each picture refreshes a part (intra refresh). These begin
// without one, after as many packets as the history keeps.
static bool is_awaiting(struct decoder *d, bool keyframe)
{
    d->takeover.awaiting &= !keyframe && d->takeover.awaited++ < PACKETS_KEPT_MAX;
    return d->takeover.awaiting;
}

void decoder_restart(struct decoder *d)
{
    packet_history_begin(&d->takeover.history);
    if (d->takeover.codec.context)
        codec_flush(&d->takeover.codec, d->takeover.history.first);
    corruption_begin(&d->takeover.corruption, d->takeover.options.damaged);
    packet_inspection_begin(&d->inspection);
    picture_filter_begin(&d->filter);
    hash_checker_finish(&d->hash_checker);
    d->takeover.flushing = d->takeover.awaiting = d->intact = false;
    d->orientation = -ENODATA;
    d->takeover.lost = 0;
    takeover_restart(&d->takeover);
}

// --- packets in

// Returns the error of a codec that could not be reopened.
static int no_codec(const struct decoder *d)
{
    return d->takeover.error < 0 ? d->takeover.error : -ENOTSUP;
}

// Converts libavcodec's error for the present packet or picture. Before the first picture an
// unimplemented feature belongs to the stream; later it is damage.
static int errno_of(struct decoder *d, int error, int64_t serial)
{
    struct packet_info *info = packet_history_info(&d->takeover.history, serial);
    if (error == AVERROR(ENOMEM) && !buffers_refused(d->takeover.buffers))
        return -ENOMEM;
    if (error == AVERROR_PATCHWELCOME && !d->takeover.shown)
        return -ENOTSUP;
    info->damaged = info->settled = d->harmed = true;
    corruption_loss(&d->takeover.corruption, serial);
    return -EBADMSG;
}

static int send_end(struct decoder *d)
{
    int rc = codec_send(&d->takeover.codec, NULL, 0);
    if (rc >= 0 || rc == AVERROR_EOF)
        return 0;
    if (codec_failed(&d->takeover.codec, rc))
        return takeover_fall_back(&d->takeover, rc);
    rc = errno_of(d, rc, d->takeover.history.serial);
    d->takeover.lost += rc == -EBADMSG;
    return rc == -EBADMSG ? 0 : rc;
}

// The end is sent to a codec after all packets.
static int end_if_due(struct decoder *d)
{
    const bool due = d->takeover.flushing && d->takeover.codec.context &&
                     !d->takeover.codec.draining && !packet_history_replays(&d->takeover.history);
    return due ? send_end(d) : 0;
}

// If not, a failed packet may have contained only headers or half a picture: no loss.
static bool packets_are_pictures(const struct decoder *d)
{
    const AVCodecDescriptor *codec = avcodec_descriptor_get(d->takeover.parameters->codec_id);
    return codec && (codec->props & AV_CODEC_PROP_INTRA_ONLY);
}

static int send(struct decoder *d, const AVPacket *packet, int64_t serial)
{
    d->takeover.codec.keyframes_only = picture_filter_now(&d->filter) == PICTURES_KEYFRAMES;
    int rc = codec_send(&d->takeover.codec, packet, serial);
    takeover_end_turn(&d->takeover);
    // On the cpu libavcodec's own threads log it too, so find_errors checks instead.
    const bool missing = libav_thread()->data_missing && codec_on_device(&d->takeover.codec);
    libav_thread()->data_missing = false;
    if (missing && !d->takeover.options.losses_known) {
        packet_history_info(&d->takeover.history, serial)->damaged = true;
        corruption_missing_reference(&d->takeover.corruption, serial);
    }
    if (rc >= 0)
        return 0;
    if (codec_failed(&d->takeover.codec, rc))
        return takeover_fall_back(&d->takeover, rc);
    rc = errno_of(d, rc, serial);
    d->failures += rc == -EBADMSG && d->intact;
    return rc == -EBADMSG && !packets_are_pictures(d) ? 0 : rc;
}

// For a packet that the decoder gets, now or in a replay.
static void note_sent(struct decoder *d, const AVPacket *packet, struct packet_info *info)
{
    packet_inspection_content(&d->inspection, packet, info);
    if (info->reference_lost)
        corruption_missing_reference(&d->takeover.corruption, info->serial);
}

// Applies the key `pictures`. When all pictures are needed again, those skipped since the last
// keyframe are decoded first. Of these, the ones shown ahead of this packet's are not given out.
static bool is_skipped(struct decoder *d, const struct packet *packet)
{
    if (packet->keyframe && d->filter.pictures == PICTURES_AUTO &&
        !codec_orders(&d->takeover.codec, packet->av))
        picture_filter_unfit(&d->filter);
    const int64_t time_ns = packet->pts_ns != INT64_MIN ? packet->pts_ns : packet->received_ns;
    const bool disposable =
        d->filter.pictures == PICTURES_REFERENCE &&
        (packet->disposable || packet_inspection_disposable(&d->inspection, packet->av));
    const enum filter_verdict verdict =
        picture_filter_packet(&d->filter, packet->keyframe, disposable, time_ns);
    if (verdict == FILTER_WAKE && packet_history_unskip(&d->takeover.history, packet->pts_ns)) {
        picture_filter_wake(&d->filter);
        return false;
    }
    return verdict != FILTER_DECODE;
}

// True while there is no memory for the pictures. Only a keyframe tries again.
static bool lacks_memory(struct decoder *d, bool key)
{
    return !key && buffers_refused(d->takeover.buffers);
}

// Each packet then counts as a lost picture, whatever libavcodec makes of it.
static void note_refusal(struct decoder *d, struct packet_info *info)
{
    char text[200];
    if (!buffers_refused(d->takeover.buffers))
        return;
    buffers_refusal(d->takeover.buffers, text, sizeof text);
    if (text[0])
        takeover_say(&d->takeover, text);
    info->settled = true;
    d->takeover.lost++;
}

int decoder_send(struct decoder *d, const struct packet *packet)
{
    stage_enter(d->takeover.options.stages, STAGE_DECODE, 0);
    if (!d->takeover.codec.context)
        return no_codec(d);
    if (!packet) {
        d->takeover.flushing = true;
        return end_if_due(d);
    }
    const AVPacket *av = packet->av;
    const bool key = av->flags & AV_PKT_FLAG_KEY;
    const bool wanted = !is_skipped(d, packet); // may begin a replay
    const bool replays = packet_history_replays(&d->takeover.history);
    const bool keep = takeover_keeps_packets(&d->takeover) || replays || d->filter.keyframes_only;
    const bool waits = !is_awaiting(d, key) && takeover_waits_for_turn(&d->takeover);
    if (waits && key && d->takeover.shown == 0)
        packet_history_drop_stale(&d->takeover.history, packet->received_ns - STALE_NS);
    const bool begins = packet->keyframe && !d->hole && d->takeover.options.losses_known;
    d->intact = !packet->hole && (d->intact || begins);
    d->hole = packet->hole;
    if (packet_history_add(&d->takeover.history, packet, !d->takeover.awaiting && keep) < 0)
        return -ENOMEM;
    struct packet_info *info =
        packet_history_info(&d->takeover.history, d->takeover.history.serial);
    packet_inspection_order(&d->inspection, av, info);
    info->skipped = !wanted;
    if (!wanted) {
        info->settled = true;
        d->skipped++;
        return 0;
    }
    note_sent(d, av, info);
    int rc = 0;
    if (d->takeover.awaiting) {
        info->settled = true;
        d->takeover.lost++;
    } else if (waits) {
        packet_history_rewind(&d->takeover.history);
        info->settled =
            !packet_history_keeps(&d->takeover.history); // came before the first keyframe
    } else if (!replays && !lacks_memory(d, key)) {
        rc = send(d, av, info->serial);
    }
    note_refusal(d, info);
    d->takeover.lost += rc == -EBADMSG && !buffers_refused(d->takeover.buffers);
    return rc == -EBADMSG ? 0 : rc;
}

// --- pictures out

// Sends the codec the next packet that its predecessor had. A loss counts once.
static int replay(struct decoder *d)
{
    int64_t serial;
    const AVPacket *packet = packet_history_next(&d->takeover.history, &serial);
    struct packet_info *info = packet_history_info(&d->takeover.history, serial);
    bool counted = info->settled;
    if (info->unskipped)
        note_sent(d, packet, info);
    info->unskipped = false;
    int rc = info->skipped ? 0 : send(d, packet, serial);
    if (rc < 0 && rc != -EBADMSG)
        return rc;
    if (!takeover_keeps_packets(&d->takeover) && !packet_history_replays(&d->takeover.history))
        packet_history_drop(&d->takeover.history);
    d->takeover.lost += rc == -EBADMSG && !counted;
    return 0;
}

// Counts as lost the pictures that the output order had placed too late.
static void note_late(struct decoder *d)
{
    for (int64_t serial; d->takeover.codec.context && (serial = codec_late(&d->takeover.codec));) {
        packet_history_info(&d->takeover.history, serial)->settled = true;
        d->takeover.lost++;
    }
}

static int receive(struct decoder *d, AVFrame *av)
{
    for (int rc = 0;;) {
        if (rc == 0)
            rc = takeover_begin(&d->takeover);
        if (rc == 0)
            rc = end_if_due(d);
        if (rc < 0 || !d->takeover.codec.context)
            return rc < 0 ? rc : no_codec(d);
        note_late(d);
        if (d->takeover.lost > 0) {
            d->takeover.lost--;
            return -EBADMSG;
        }
        rc = codec_receive(&d->takeover.codec, av);
        if (rc == 0 && packet_history_repeats(&d->takeover.history, libav_serial(av)))
            continue;
        if (rc == AVERROR(EAGAIN) && packet_history_replays(&d->takeover.history) &&
            !takeover_waits_for_turn(&d->takeover))
            rc = replay(d);
        else if (rc == 0 || rc == AVERROR(EAGAIN) || rc == AVERROR_EOF)
            return rc == AVERROR_EOF ? -ENODATA : rc;
        else if (codec_failed(&d->takeover.codec, rc))
            rc = takeover_fall_back(&d->takeover, rc);
        else
            return errno_of(d, rc, d->takeover.history.serial);
    }
}

// A keyframe's orientation also holds for the pictures after it, which need not repeat it.
static void follow_orientation(struct decoder *d, const AVFrame *av)
{
    const AVFrameSideData *matrix = av_frame_get_side_data(av, AV_FRAME_DATA_DISPLAYMATRIX);
    if (matrix && matrix->size >= ORIENTATION_MATRIX_BYTES)
        d->orientation = orientation_of((const void *)matrix->data);
    else if (libav_is_keyframe(av))
        d->orientation = -ENODATA;
}

static void follow_signal(const struct decoder *d, const AVFrame *av, struct frame_info *info)
{
    info->field_order = pixel_format_map_field_order(av, d->takeover.parameters->codec_id);
    if (info->field_order != FIELDS_NONE)
        info->flags |= FRAMED_FLAG_INTERLACED;
    if (pixel_format_map_is_hdr(av))
        info->flags |= FRAMED_FLAG_HDR;
}

// Finds errors in H.265 pictures that libavcodec does not report. Hardware has its own layout of
// pictures, and its hashes are not checked.
static void find_errors(struct decoder *d, const AVFrame *av)
{
    struct packet_info *info = packet_history_info(&d->takeover.history, libav_serial(av));
    if (info->serial != libav_serial(av) || codec_on_device(&d->takeover.codec) ||
        d->takeover.parameters->codec_id != AV_CODEC_ID_HEVC)
        return;
    info->damaged |= hash_checker_tells_errors(&d->hash_checker, &info->hash, av);
    if (d->takeover.options.losses_known || !buffers_stood_in(d->takeover.buffers, av))
        return;
    info->lacks_reference = true;
    corruption_missing_reference(&d->takeover.corruption, info->serial);
}

// Reports once which matrix is read as another one.
static void note_matrix(struct decoder *d, const AVFrame *av, enum AVPixelFormat format)
{
    const char *matrix = pixel_format_map_other_matrix(av, format);
    char text[160];
    if (!matrix || matrix == d->matrix)
        return;
    const struct colour colour =
        colour_resolve(pixel_format_map_colour(av, format, false), av->height);
    snprintf(text, sizeof text,
             "no kernel computes the stream's colour matrix %s: pictures are read as %s unless an "
             "output sets colour.matrix",
             matrix,
             colour.matrix == MATRIX_BT2020  ? "bt2020"
             : colour.matrix == MATRIX_BT709 ? "bt709"
                                             : "bt601");
    takeover_say(&d->takeover, text);
    d->matrix = matrix;
}

static int show(struct decoder *d, struct picture *picture, struct frame *ret)
{
    const char *converted;
    const AVFrame *av = picture_frame(picture);
    find_errors(d, av);
    struct corruption_picture corruption;
    struct frame_info info =
        packet_history_picture(&d->takeover.history, d->takeover.codec.context, av, &corruption);
    d->takeover.shown++;
    follow_orientation(d, av);
    follow_signal(d, av, &info);
    if (libav_is_keyframe(av) && av->pict_type == AV_PICTURE_TYPE_I)
        packet_history_keyframe(&d->takeover.history, libav_serial(av));
    else if (packet_history_is_keyframe(&d->takeover.history, libav_serial(av)))
        picture_filter_unfit(&d->filter);
    if (corruption_withholds(&d->takeover.corruption, &corruption, &info.flags))
        return -EBADMSG;
    note_matrix(d, av, picture_format(picture));
    int rc = codec_map(&d->takeover.codec, picture, d->takeover.keep_on_device, ret, &converted);
    if (rc < 0)
        return rc;
    ret->codec = dpb_codec(d->takeover.parameters->codec_id);
    info.converted = converted != NULL;
    info.source_width = ret->image.width;
    info.source_height = ret->image.height;
    ret->info = info;
    if (recovery_by_intra(&d->inspection.recovery) && !d->by_intra) {
        takeover_say(&d->takeover, "the stream has neither IDR pictures nor recovery points: it "
                                   "counts as whole from an intra picture on");
        d->by_intra = true;
    }
    if (converted && converted != d->converted) {
        char text[128];
        snprintf(text, sizeof(text), "%s pictures are converted to %s by libswscale", converted,
                 pixel_format_name(ret->image.format));
        takeover_say(&d->takeover, text);
    }
    d->converted = converted;
    return 0;
}

int decoder_receive(struct decoder *d, struct frame *ret)
{
    stage_enter(d->takeover.options.stages, STAGE_DECODE, 0);
    *ret = (struct frame){0};
    struct picture *picture = picture_take(d->takeover.pictures);
    if (!picture)
        return -ENOMEM;
    int rc = receive(d, picture_frame(picture));
    if (rc == 0)
        rc = show(d, picture, ret);
    if (rc < 0)
        picture_release(picture);
    ret->lost = rc == -EBADMSG;
    ret->refused = ret->lost && buffers_refused(d->takeover.buffers);
    return ret->lost ? 0 : rc;
}

int64_t decoder_pictures(const struct decoder *d)
{
    return d->takeover.shown;
}

const struct hardware *decoder_hardware(const struct decoder *d)
{
    return d->takeover.codec.hardware;
}

int64_t decoder_failures(const struct decoder *d)
{
    return d->failures;
}

void decoder_set_fps(struct decoder *d, double fps)
{
    d->filter.fps = fps;
}

enum decoded_pictures decoder_decodes(const struct decoder *d)
{
    return picture_filter_now(&d->filter);
}

int64_t decoder_skipped(struct decoder *d)
{
    const int64_t skipped = d->skipped;
    d->skipped = 0;
    return skipped;
}

void decoder_memory(const struct decoder *d, struct stream_memory *ret)
{
    if (d->takeover.codec.context && d->takeover.shown > 0)
        dpb_measure(ret, d->takeover.codec.context);
}

int decoder_orientation(const struct decoder *d)
{
    return d->orientation;
}

int64_t decoder_held_up_ns(struct decoder *d)
{
    return takeover_held_up_ns(&d->takeover);
}

bool decoder_waits(const struct decoder *d)
{
    return buffers_refused(d->takeover.buffers) ||
           (d->takeover.unopened && packet_history_keeps(&d->takeover.history));
}

int64_t decoder_fallbacks(struct decoder *d)
{
    const int64_t fallbacks = d->takeover.fallbacks;
    d->takeover.fallbacks = 0;
    return fallbacks;
}

enum fallback decoder_last_fallback(const struct decoder *d)
{
    return d->takeover.last_fallback;
}

const char *decoder_profile(const struct AVCodecParameters *parameters)
{
    return avcodec_profile_name(parameters->codec_id, parameters->profile);
}

const char *decoder_describe(const struct decoder *d)
{
    return d->takeover.description;
}

const char *decoder_notice(struct decoder *d)
{
    const char *notice = d->takeover.notice_is_new ? d->takeover.notice : NULL;
    d->takeover.notice_is_new = false;
    return notice;
}
