#include "daemon/codec/decoder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/buffers.h"
#include "daemon/codec/picture.h"
#include "daemon/codec/pixel_format_map.h"
#include "daemon/codec/switch.h"
#include "daemon/source/libav_log.h"
#include "daemon/source/libav_version.h"
#include "daemon/wire.h"

// While the first picture waits for NVDEC, a newer keyframe replaces packets older than this.
static const int64_t STALE_NS = INT64_C(1000000000);

int decoder_open(struct decoder **ret, const AVCodecParameters *parameters,
                 const struct decode_options *options)
{
    if (!avcodec_find_decoder(parameters->codec_id))
        return -ENOTSUP;
    struct decoder *d = calloc(1, sizeof(*d));
    if (!d)
        return -ENOMEM;
    d->error = -ENOTSUP;
    d->orientation = -ENODATA;
    d->filter.pictures = options->pictures;
    d->options = *options;
    packet_history_begin(&d->history);
    corruption_begin(&d->corruption, options->damaged);
    const struct memory_share share = {options->memory, options->planned, options->threads,
                                       options->in_flight};
    if (buffers_open(&d->buffers, &share) < 0 || pictures_open(&d->pictures, d->buffers) < 0 ||
        !(d->parameters = avcodec_parameters_alloc()) ||
        avcodec_parameters_copy(d->parameters, parameters) < 0 ||
        packet_reader_open(&d->reader, d->parameters, options->check_hashes) < 0) {
        decoder_close(d);
        return -ENOMEM;
    }
    *ret = d;
    return 0;
}

void decoder_close(struct decoder *d)
{
    if (!d)
        return;
    codec_close(&d->codec);
    nvdec_turn_end(&d->turn);
    packet_reader_close(d->reader);
    packet_history_finish(&d->history);
    hash_checker_finish(&d->hash_checker);
    avcodec_parameters_free(&d->parameters);
    pictures_close(d->pictures);
    buffers_close(d->buffers);
    free(d);
}

bool decoder_accepts(const struct decoder *d, const AVCodecParameters *parameters)
{
    const AVCodecParameters *own = d->parameters;
    return !d->harmed && own->codec_id == parameters->codec_id &&
           own->profile == parameters->profile && own->format == parameters->format &&
           own->width == parameters->width && own->height == parameters->height &&
           own->extradata_size == parameters->extradata_size &&
           (own->extradata_size == 0 ||
            memcmp(own->extradata, parameters->extradata, (size_t)own->extradata_size) == 0);
}

void decoder_restart(struct decoder *d)
{
    packet_history_begin(&d->history);
    if (d->codec.context)
        codec_flush(&d->codec, d->history.first);
    corruption_begin(&d->corruption, d->options.damaged);
    packet_reader_begin(d->reader);
    picture_filter_begin(&d->filter);
    hash_checker_finish(&d->hash_checker);
    d->flushing = d->awaiting = d->intact = false;
    d->orientation = -ENODATA;
    d->lost = 0;
    switch_restart(d);
}

int decoder_join(struct decoder *d, const struct decode_target *target)
{
    return switch_join(d, target);
}

void decoder_leave(struct decoder *d)
{
    switch_leave(d);
}

// --- packets in

// Converts libavcodec's error for the packet or its picture. Before the first picture an
// unimplemented feature belongs to the stream; later it is damage.
static int errno_of(struct decoder *d, int error, struct packet_info *info)
{
    if (error == AVERROR(ENOMEM) && !buffers_refused(d->buffers))
        return -ENOMEM;
    if (error == AVERROR_PATCHWELCOME && !d->shown)
        return -ENOTSUP;
    info->damaged = info->done = d->harmed = true;
    corruption_loss(&d->corruption, info->facts.serial);
    return -EBADMSG;
}

static struct packet_info *last_packet(struct decoder *d)
{
    return packet_history_info(&d->history, d->history.serial);
}

// The end is sent to a codec after all packets.
static int end_if_due(struct decoder *d)
{
    if (!d->flushing || !d->codec.context || d->codec.draining ||
        packet_history_replays(&d->history))
        return 0;
    int rc = codec_send(&d->codec, NULL, NULL);
    if (rc >= 0 || rc == AVERROR_EOF)
        return 0;
    if (codec_failed(&d->codec, rc))
        return switch_to_cpu(d, rc);
    rc = errno_of(d, rc, last_packet(d));
    d->lost += rc == -EBADMSG;
    return rc == -EBADMSG ? 0 : rc;
}

static int send_packet(struct decoder *d, const AVPacket *packet, struct packet_info *info)
{
    // The same after packets that it did not get.
    d->codec.keyframes_only =
        picture_filter_now(&d->filter) == PICTURES_KEYFRAMES || buffers_refused(d->buffers);
    int rc = codec_send(&d->codec, packet, &info->facts);
    switch_end_turn(d);
    // On the cpu libavcodec's own threads log it too: find_errors and packet.c check instead.
    const bool missing = libav_thread()->data_missing && codec_on_device(&d->codec);
    libav_thread()->data_missing = false;
    if (missing && !d->options.losses_known) {
        info->damaged = true;
        corruption_missing_reference(&d->corruption, info->facts.serial);
    }
    if (rc >= 0)
        return 0;
    if (codec_failed(&d->codec, rc))
        return switch_to_cpu(d, rc);
    rc = errno_of(d, rc, info);
    d->failures += rc == -EBADMSG && d->intact;
    // Unless packets are pictures, it may have contained only headers or half a picture: no loss.
    const AVCodecDescriptor *codec = avcodec_descriptor_get(d->parameters->codec_id);
    const bool pictures = codec && (codec->props & AV_CODEC_PROP_INTRA_ONLY);
    return rc == -EBADMSG && !pictures ? 0 : rc;
}

// Applies the key `pictures`. When all pictures are needed again, those skipped since the last
// keyframe are decoded first. Of these, the ones shown ahead of this packet's are not given out.
static bool is_skipped(struct decoder *d, const struct packet *packet,
                       const struct packet_facts *facts)
{
    // With keyframes alone, libavcodec's order of H.264 needs all reference pictures between two
    // that are not IDR pictures.
    if (packet->keyframe && !d->codec.early && d->parameters->codec_id == AV_CODEC_ID_H264 &&
        facts->start != PICTURE_BEGINS_LOWEST)
        d->filter.unfit = true;
    const int64_t time_ns = packet->pts_ns != INT64_MIN ? packet->pts_ns : packet->received_ns;
    const bool disposable = packet->disposable || facts->disposable;
    const enum filter_verdict verdict =
        picture_filter_packet(&d->filter, packet->keyframe, disposable, time_ns);
    if (verdict == FILTER_WAKE && packet_history_unskip(&d->history, packet->pts_ns)) {
        picture_filter_wake(&d->filter);
        return false;
    }
    return verdict != FILTER_DECODE;
}

// While there is no memory for the pictures, each packet counts as a lost one, whatever libavcodec
// makes of it.
static void note_refusal(struct decoder *d, struct packet_info *info)
{
    char text[200];
    if (!buffers_refused(d->buffers))
        return;
    buffers_refusal(d->buffers, text, sizeof text);
    if (text[0])
        switch_say(d, "%s", text);
    info->done = true;
    d->lost++;
}

int decoder_send(struct decoder *d, const struct packet *packet)
{
    stage_enter(d->options.stages, STAGE_DECODE, 0);
    if (!d->codec.context)
        return d->error;
    if (!packet) {
        d->flushing = true;
        return end_if_due(d);
    }
    const AVPacket *av = packet->av;
    const struct packet_facts facts = packet_reader_read(d->reader, av, d->history.serial + 1);
    const bool key = av->flags & AV_PKT_FLAG_KEY;
    const bool wanted = !is_skipped(d, packet, &facts); // may begin a replay
    const bool replays = packet_history_replays(&d->history);
    const bool keep = switch_keeps_packets(d) || replays || d->filter.keyframes_only;
    // Some streams have no keyframes: each picture refreshes a part (intra refresh). These begin
    // without one, after as many packets as the history keeps.
    d->awaiting &= !key && d->awaited++ < PACKETS_KEPT_MAX;
    const bool waits = !d->awaiting && switch_waits_for_turn(d);
    if (waits && key && d->shown == 0)
        packet_history_drop_stale(&d->history, packet->received_ns - STALE_NS);
    const bool begins = packet->keyframe && !d->hole && d->options.losses_known;
    d->intact = !packet->hole && (d->intact || begins);
    d->hole = packet->hole;
    if (packet_history_add(&d->history, packet, &facts, !d->awaiting && keep) < 0)
        return -ENOMEM;
    struct packet_info *info = last_packet(d);
    info->skipped = !wanted;
    // The numbers of H.264 show a lost reference.
    info->lacks_reference =
        packet->reference_lost && !key && d->parameters->codec_id != AV_CODEC_ID_H264;
    if (!wanted) {
        info->done = true;
        d->skipped++;
        return 0;
    }
    if (packet->reference_lost)
        corruption_missing_reference(&d->corruption, info->facts.serial);
    int rc = 0;
    if (d->awaiting) {
        info->done = true;
        d->lost++;
    } else if (waits) {
        packet_history_rewind(&d->history);
        info->done = !packet_history_keeps(&d->history); // came before the first keyframe
    } else if (!replays && (key || !buffers_refused(d->buffers))) { // a keyframe tries again
        rc = send_packet(d, av, info);
    }
    note_refusal(d, info);
    d->lost += rc == -EBADMSG && !buffers_refused(d->buffers);
    return rc == -EBADMSG ? 0 : rc;
}

// --- pictures out

// Sends the codec the next packet that its predecessor had. A loss counts once.
static int replay(struct decoder *d)
{
    struct packet_info *info = packet_history_next(&d->history);
    const bool counted = info->done;
    if (info->packet.reference_lost && !info->skipped)
        corruption_missing_reference(&d->corruption, info->facts.serial);
    int rc = info->skipped ? 0 : send_packet(d, info->packet.av, info);
    if (rc < 0 && rc != -EBADMSG)
        return rc;
    if (!switch_keeps_packets(d) && !packet_history_replays(&d->history))
        packet_history_drop(&d->history);
    d->lost += rc == -EBADMSG && !counted;
    return 0;
}

static int receive(struct decoder *d, AVFrame *av)
{
    for (int rc = 0;;) {
        if (rc == 0)
            rc = switch_if_due(d);
        if (rc == 0)
            rc = end_if_due(d);
        if (rc < 0 || !d->codec.context)
            return rc < 0 ? rc : d->error;
        for (int64_t serial; (serial = codec_late(&d->codec)); d->lost++)
            packet_history_info(&d->history, serial)->done = true;
        if (d->lost > 0) {
            d->lost--;
            return -EBADMSG;
        }
        rc = codec_receive(&d->codec, av);
        if (rc == 0 && packet_history_repeats(&d->history, libav_serial(av)))
            continue;
        if (rc == AVERROR(EAGAIN) && packet_history_replays(&d->history) &&
            !switch_waits_for_turn(d))
            rc = replay(d);
        else if (rc == 0 || rc == AVERROR(EAGAIN) || rc == AVERROR_EOF)
            return rc == AVERROR_EOF ? -ENODATA : rc;
        else if (codec_failed(&d->codec, rc))
            rc = switch_to_cpu(d, rc);
        else
            return errno_of(d, rc, last_packet(d));
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
    info->field_order = pixel_format_map_field_order(av, d->parameters->codec_id);
    if (info->field_order != FIELDS_NONE)
        info->flags |= FRAMED_FLAG_INTERLACED;
    if (pixel_format_map_is_hdr(av))
        info->flags |= FRAMED_FLAG_HDR;
}

// Finds errors in H.265 pictures that libavcodec does not report. Hardware has its own layout of
// pictures, and its hashes are not checked.
static void find_errors(struct decoder *d, const AVFrame *av, struct packet_info *info)
{
    if (codec_on_device(&d->codec) || d->parameters->codec_id != AV_CODEC_ID_HEVC)
        return;
    info->damaged |= hash_checker_finds_errors(&d->hash_checker, &info->facts.hash, av);
    if (d->options.losses_known || !buffers_stood_in(d->buffers, av))
        return;
    info->lacks_reference = true;
    corruption_missing_reference(&d->corruption, info->facts.serial);
}

// Reports once which matrix is read as another one.
static void note_matrix(struct decoder *d, const AVFrame *av, enum AVPixelFormat format)
{
    const char *matrix = pixel_format_map_other_matrix(av, format);
    if (!matrix || matrix == d->matrix)
        return;
    const struct colour colour =
        colour_resolve(pixel_format_map_colour(av, format, false), av->height);
    switch_say(d,
               "no kernel computes the stream's colour matrix %s: pictures are read as %s unless "
               "an output sets colour.matrix",
               matrix,
               colour.matrix == MATRIX_BT2020  ? "bt2020"
               : colour.matrix == MATRIX_BT709 ? "bt709"
                                               : "bt601");
    d->matrix = matrix;
}

static int show(struct decoder *d, struct picture *picture, struct frame *ret)
{
    const char *converted;
    const AVFrame *av = picture_frame(picture);
    struct packet_info *packet = packet_history_info(&d->history, libav_serial(av));
    const bool known = packet->facts.serial == libav_serial(av);
    bool harmed;
    if (known)
        find_errors(d, av, packet);
    struct frame_info info = packet_history_picture(&d->history, d->codec.context, av, &harmed);
    d->shown++;
    follow_orientation(d, av);
    follow_signal(d, av, &info);
    if (libav_is_keyframe(av) && av->pict_type == AV_PICTURE_TYPE_I)
        packet_history_keyframe(&d->history, libav_serial(av));
    else if (known && packet->packet.keyframe)
        d->filter.unfit = true;
    if (corruption_withholds(&d->corruption, &packet->facts, harmed, &info.flags))
        return -EBADMSG;
    note_matrix(d, av, picture_format(picture));
    int rc = codec_map(&d->codec, picture, d->keep_on_device, ret, &converted);
    if (rc < 0)
        return rc;
    ret->codec = dpb_codec(d->parameters->codec_id);
    info.converted = converted != NULL;
    info.source_width = ret->image.width;
    info.source_height = ret->image.height;
    ret->info = info;
    if (packet->facts.by_intra && !d->by_intra) {
        switch_say(d, "the stream has neither IDR pictures nor recovery points: it "
                      "counts as whole from an intra picture on");
        d->by_intra = true;
    }
    if (converted && converted != d->converted)
        switch_say(d, "%s pictures are converted to %s by libswscale", converted,
                   pixel_format_name(ret->image.format));
    d->converted = converted;
    return 0;
}

int decoder_receive(struct decoder *d, struct frame *ret)
{
    stage_enter(d->options.stages, STAGE_DECODE, 0);
    *ret = (struct frame){0};
    struct picture *picture = picture_take(d->pictures);
    if (!picture)
        return -ENOMEM;
    int rc = receive(d, picture_frame(picture));
    if (rc == 0)
        rc = show(d, picture, ret);
    if (rc < 0)
        picture_release(picture);
    ret->lost = rc == -EBADMSG;
    ret->refused = ret->lost && buffers_refused(d->buffers);
    return ret->lost ? 0 : rc;
}

// --- reports

int64_t decoder_pictures(const struct decoder *d)
{
    return d->shown;
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
    if (d->codec.context && d->shown > 0)
        dpb_measure(ret, d->codec.context);
}

int decoder_orientation(const struct decoder *d)
{
    return d->orientation;
}

const char *decoder_profile(const struct AVCodecParameters *parameters)
{
    return avcodec_profile_name(parameters->codec_id, parameters->profile);
}

int64_t decoder_held_up_ns(struct decoder *d)
{
    int64_t held_up_ns = d->held_up_ns + d->codec.nvdec.held_up_ns;
    d->held_up_ns = d->codec.nvdec.held_up_ns = 0;
    return held_up_ns;
}

const struct hardware *decoder_hardware(const struct decoder *d)
{
    return d->codec.hardware;
}

bool decoder_waits(const struct decoder *d)
{
    return buffers_refused(d->buffers) || (d->unopened && packet_history_keeps(&d->history));
}

int64_t decoder_fallbacks(struct decoder *d)
{
    const int64_t fallbacks = d->fallbacks;
    d->fallbacks = 0;
    return fallbacks;
}

enum fallback decoder_last_fallback(const struct decoder *d)
{
    return d->last_fallback;
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
