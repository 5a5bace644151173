#include "daemon/decode/decoder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/bitstream/nal.h"
#include "daemon/decode/buffers.h"
#include "daemon/decode/codec.h"
#include "daemon/decode/corruption.h"
#include "daemon/decode/dpb.h"
#include "daemon/decode/hardware_codec.h"
#include "daemon/decode/hardware_use.h"
#include "daemon/decode/packet_history.h"
#include "daemon/decode/packet_inspection.h"
#include "daemon/decode/picture.h"
#include "daemon/decode/picture_filter.h"
#include "daemon/decode/pixel_format_map.h"
#include "daemon/input/libav_log.h"
#include "daemon/input/orientation.h"
#include "daemon/wire.h"

// While the first picture waits for NVDEC, a newer keyframe goes ahead of packets this old.
static const int64_t STALE_NS = INT64_C(1000000000);

struct decoder {
    struct codec codec;
    AVCodecParameters *parameters;
    struct decode_options options;
    struct decode_device *device;   // to decode on, now or from a keyframe on; NULL: none
    struct decoder_choice hardware; // the same, in the place of `device`; DECODE_CPU: none
    bool keep_on_device, joined;    // joined: once at least
    bool unopened;                  // a live camera's, on the device: has sent it nothing yet
    struct nvdec_turn turn;
    int64_t waiting_since_ns; // for the turn; 0: it does not
    struct buffers *buffers;
    struct pictures *pictures;
    // Keeps the packets while there is a device: NVDEC needs them to take over, or the cpu if NVDEC
    // fails.
    struct packet_history history;
    struct corruption corruption;
    struct packet_inspection inspection;
    struct hash_checker hash_checker;
    struct picture_filter filter;
    int64_t skipped; // packets that the filter left out
    bool awaiting;   // see await_keyframe
    int awaited;     // packets that came since then
    int lost;        // pictures that are to be given out as lost
    bool flushing;   // no more packets will come
    bool harmed;     // met what it could not decode: who knows what it keeps of that
    int64_t shown;   // pictures that came since it was opened
    bool intact;     // nothing is missing since a keyframe
    bool hole;       // packet.hole of the last packet
    int64_t failures;
    int64_t fallbacks; // not reported yet
    enum fallback last_fallback;
    int orientation; // decoder_orientation
    const char *converted;
    char notice[256], description[64];
    bool notice_is_new;
    int64_t held_up_ns; // decoder_held_up_ns, by codecs that are gone
};

int decoder_open(struct decoder **ret, const AVCodecParameters *parameters,
                 const struct decode_options *options)
{
    if (!avcodec_find_decoder(parameters->codec_id))
        return -ENOTSUP;
    struct decoder *d = calloc(1, sizeof(*d));
    if (!d)
        return -ENOMEM;
    d->options = *options;
    d->orientation = -ENODATA;
    packet_history_begin(&d->history);
    corruption_begin(&d->corruption, options->damaged);
    if (buffers_open(&d->buffers) < 0 || pictures_open(&d->pictures, d->buffers) < 0 ||
        !(d->parameters = avcodec_parameters_alloc()) ||
        avcodec_parameters_copy(d->parameters, parameters) < 0) {
        decoder_close(d);
        return -ENOMEM;
    }
    d->inspection.parameters = d->parameters;
    d->filter.pictures = options->pictures;
    *ret = d;
    return 0;
}

void decoder_close(struct decoder *d)
{
    if (!d)
        return;
    codec_close(&d->codec);
    nvdec_turn_end(&d->turn);
    packet_history_finish(&d->history);
    avcodec_parameters_free(&d->parameters);
    hash_checker_finish(&d->hash_checker);
    packet_inspection_finish(&d->inspection);
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

// --- notices

// Goes behind what has not been asked for yet.
static void give_notice(struct decoder *d, const char *text)
{
    size_t at = d->notice_is_new ? strlen(d->notice) : 0;
    snprintf(d->notice + at, sizeof(d->notice) - at, "%s%s", at ? "; " : "", text);
    d->notice_is_new = true;
}

static void count_fallback(struct decoder *d, enum fallback why)
{
    d->fallbacks++;
    d->last_fallback = why;
}

static void notice_refusal(struct decoder *d)
{
    char text[160];
    const char *profile = avcodec_profile_name(d->parameters->codec_id, d->parameters->profile);
    snprintf(text, sizeof text, "%s%s%s is not decoded by %s here: decoding on the cpu",
             avcodec_get_name(d->parameters->codec_id), profile ? " " : "", profile ? profile : "",
             d->hardware.by == DECODE_HARDWARE ? d->hardware.name : "NVDEC");
    if (d->options.decode.by != DECODE_AUTO) // it may well take no such stream
        count_fallback(d, FALLBACK_REFUSED);
    give_notice(d, text);
}

// Packets are of no use before the next keyframe.
static void await_keyframe(struct decoder *d)
{
    d->awaiting = true;
    d->awaited = 0;
}

// Some streams have no keyframes: each picture refreshes a part (intra refresh). They begin without
// one, behind as many packets as the history keeps.
static bool is_awaiting(struct decoder *d, bool keyframe)
{
    d->awaiting &= !keyframe && d->awaited++ < PACKETS_KEPT_MAX;
    return d->awaiting;
}

// --- who decodes

static bool has_device(const struct decoder *d)
{
    return d->device || d->hardware.by == DECODE_HARDWARE;
}

static int open_on(struct decoder *d, struct decode_device *device)
{
    int rc = codec_open(&d->codec, d->parameters, &d->options, device, d->buffers, d->pictures);
    d->unopened = device && d->options.low_delay;
    if (rc == 0)
        snprintf(d->description, sizeof(d->description), "%s %s", device ? "nvdec" : "cpu",
                 avcodec_get_name(d->parameters->codec_id));
    return rc;
}

static int open_on_hardware(struct decoder *d)
{
    char said[HARDWARE_SAID_MAX];
    const int rc = hardware_use_open(&d->codec, d->parameters, &d->options, &d->hardware,
                                     d->buffers, d->pictures, said);
    if (said[0])
        give_notice(d, said);
    if (rc < 0)
        count_fallback(d, rc == -ETIMEDOUT ? FALLBACK_FAILED : FALLBACK_NOT_OPENED);
    else
        snprintf(d->description, sizeof d->description, "%s %s", d->hardware.name,
                 avcodec_get_name(d->parameters->codec_id));
    return rc;
}

// How far pictures are out of order a stream need not say: a codec learns it from what it gets too
// late to give out, and the next one is to know it at once.
static void end_codec(struct decoder *d, void (*end)(struct codec *))
{
    AVCodecContext *context = d->codec.context;
    if (context && context->has_b_frames > d->parameters->video_delay)
        d->parameters->video_delay = context->has_b_frames;
    d->held_up_ns += d->codec.nvdec.held_up_ns;
    end(&d->codec);
}

static void close_codec(struct decoder *d)
{
    end_codec(d, codec_close);
}

// NVDEC opens one decoder after another. A live camera is read meanwhile: what has come since its
// last keyframe waits in the history. Where that is full, and at the end, it waits here.
static bool waits_for_turn(struct decoder *d)
{
    if (!d->unopened || d->flushing || packet_history_is_full(&d->history))
        return false;
    const bool waits = !nvdec_turn_came(&d->turn, d->device);
    if (waits && d->waiting_since_ns == 0)
        d->waiting_since_ns = monotonic_ns();
    return waits;
}

static void end_turn(struct decoder *d)
{
    if (d->waiting_since_ns)
        d->held_up_ns += monotonic_ns() - d->waiting_since_ns;
    d->waiting_since_ns = 0;
    d->unopened = false;
    nvdec_turn_end(&d->turn);
}

int64_t decoder_held_up_ns(struct decoder *d)
{
    int64_t held_up_ns = d->held_up_ns + d->codec.nvdec.held_up_ns;
    d->held_up_ns = d->codec.nvdec.held_up_ns = 0;
    return held_up_ns;
}

static int send_end(struct decoder *d);

// The end goes to a codec after all packets.
static int end_if_due(struct decoder *d)
{
    bool due = d->flushing && !d->codec.draining && !packet_history_replays(&d->history);
    return due ? send_end(d) : 0;
}

static void leave_device(struct decoder *d)
{
    d->device = NULL;
    d->hardware.by = DECODE_CPU;
}

// Opens what is to decode from now on; the packets that are kept will be replayed to it.
static int open_codec(struct decoder *d)
{
    int rc = -ENODEV;
    if (d->hardware.by == DECODE_HARDWARE)
        rc = open_on_hardware(d);
    else if (d->device && (rc = open_on(d, d->device)) < 0)
        notice_refusal(d);
    if (rc < 0) {
        leave_device(d);
        rc = open_on(d, NULL);
    } else if (d->keep_on_device && d->device) {
        buffers_trim(d->buffers);
    }
    return rc < 0 ? rc : end_if_due(d);
}

// The next codec gives out what this one has not: it begins with the packets that are kept. What
// they do not hold is lost.
static void give_up_codec(struct decoder *d, void (*end)(struct codec *))
{
    int reach = 4 * d->codec.context->has_b_frames + 2; // packets whose pictures it may hold
    bool begun = d->history.serial >= d->history.first;
    end_codec(d, end);
    if (!d->history.whole && begun) {
        d->lost += packet_history_missing(&d->history, reach);
        corruption_begin(&d->corruption, d->options.damaged);
    }
    d->awaiting = false;
    if (begun && !packet_history_keeps(&d->history))
        await_keyframe(d);
    packet_history_rewind(&d->history);
}

static void notice_failure(struct decoder *d, int error)
{
    char said[HARDWARE_SAID_MAX];
    if (d->codec.hardware)
        hardware_use_failed(&d->codec, &d->options, &d->hardware, error, said);
    else
        snprintf(said, sizeof said, "NVDEC failed (%s): decoding on the cpu", av_err2str(error));
    give_notice(d, said);
    count_fallback(d, FALLBACK_FAILED);
}

// The device refuses the stream, or fails: not again before the next device.
static int fall_back(struct decoder *d, int error)
{
    if (d->codec.nvdec.refused || (d->codec.hardware && hardware_codec_refuses(d->codec.hardware)))
        notice_refusal(d);
    else
        notice_failure(d, error);
    leave_device(d);
    give_up_codec(d, codec_close);
    return open_codec(d);
}

// NVDEC fails where a picture refers to others that it never had.
static void await_keyframe_on_device(struct decoder *d)
{
    if (codec_on_device(&d->codec))
        await_keyframe(d);
}

// A live camera that comes from a device that failed shows pictures at once: the cpu decodes until
// NVDEC, which opens the decoders of all these cameras one after another, takes over.
static bool bridges(const struct decoder *d)
{
    return d->device && d->shown > 0 && d->options.low_delay && d->options.decode.by == DECODE_AUTO;
}

int decoder_join(struct decoder *d, const struct decode_target *target)
{
    const enum decode by = d->options.decode.by;
    if (by == DECODE_NVDEC && !target->device && !d->joined)
        return -ENODEV;
    d->device = by == DECODE_AUTO || by == DECODE_NVDEC ? target->device : NULL;
    if (!d->joined && !d->device) // other hardware belongs to no lease: it stays until it fails
        d->hardware = hardware_use_choose(&d->options, d->parameters->codec_id);
    if (d->hardware.by == DECODE_HARDWARE)
        d->device = NULL;
    d->joined = true;
    if (d->device && !d->device->find(d->parameters->codec_id)) {
        notice_refusal(d);
        d->device = NULL;
    }
    d->keep_on_device = target->driver->takes_cuda;
    buffers_join(d->buffers, target->driver, target->backend);
    if (!has_device(d) && d->codec.context && !packet_history_replays(&d->history))
        packet_history_drop(&d->history);
    bool begun = d->history.serial >= d->history.first;
    if (d->codec.context && (begun || !d->device || d->codec.hardware))
        return 0;
    close_codec(d);
    int rc = bridges(d) ? open_on(d, NULL) : -ENOTSUP;
    if (rc < 0)
        rc = open_codec(d);
    if (rc == 0 && !begun)
        await_keyframe_on_device(d);
    return rc;
}

void decoder_leave(struct decoder *d)
{
    end_turn(d);
    if (codec_on_nvdec(&d->codec))
        give_up_codec(d, codec_abandon);
    pictures_reap(d->pictures);
    buffers_leave(d->buffers);
    d->device = NULL;
}

void decoder_restart(struct decoder *d)
{
    packet_history_begin(&d->history);
    if (d->codec.context)
        codec_flush(&d->codec, d->history.first);
    corruption_begin(&d->corruption, d->options.damaged);
    packet_inspection_begin(&d->inspection);
    picture_filter_begin(&d->filter);
    hash_checker_finish(&d->hash_checker);
    d->flushing = d->awaiting = d->intact = false;
    d->orientation = -ENODATA;
    d->lost = 0;
    if (d->device && d->codec.context && !codec_on_device(&d->codec)) {
        close_codec(d);
        open_codec(d); // failing, it leaves none, which decoder_send says
    }
    await_keyframe_on_device(d);
}

// --- packets in

// libavcodec's answer for the packet or picture at hand. Before the first picture what the decoder
// does not implement is the stream's nature; later it is damage.
static int errno_of(struct decoder *d, int error, int64_t serial)
{
    struct packet_info *info = packet_history_info(&d->history, serial);
    if (error == AVERROR(ENOMEM))
        return -ENOMEM;
    if (error == AVERROR_PATCHWELCOME && !d->shown)
        return -ENOTSUP;
    info->damaged = info->settled = d->harmed = true;
    corruption_loss(&d->corruption);
    return -EBADMSG;
}

static int send_end(struct decoder *d)
{
    int rc = codec_send(&d->codec, NULL, 0);
    if (rc >= 0 || rc == AVERROR_EOF)
        return 0;
    rc = errno_of(d, rc, d->history.serial);
    d->lost += rc == -EBADMSG;
    return rc == -EBADMSG ? 0 : rc;
}

// Where one is not, a packet that fails may have held headers alone or half a picture: no loss.
static bool packets_are_pictures(const struct decoder *d)
{
    const AVCodecDescriptor *codec = avcodec_descriptor_get(d->parameters->codec_id);
    return codec && (codec->props & AV_CODEC_PROP_INTRA_ONLY);
}

static int send(struct decoder *d, const AVPacket *packet, int64_t serial)
{
    d->codec.keyframes_only = picture_filter_now(&d->filter) == PICTURES_KEYFRAMES;
    int rc = codec_send(&d->codec, packet, serial);
    end_turn(d);
    const bool missing = libav_thread()->data_missing;
    libav_thread()->data_missing = false;
    if (missing && !d->options.losses_known) {
        packet_history_info(&d->history, serial)->damaged = true;
        corruption_missing_reference(&d->corruption);
    }
    if (rc >= 0)
        return 0;
    if (codec_failed(&d->codec, rc))
        return fall_back(d, rc);
    rc = errno_of(d, rc, serial);
    d->failures += rc == -EBADMSG && d->intact;
    return rc == -EBADMSG && !packets_are_pictures(d) ? 0 : rc;
}

// Of a packet that the decoder gets, now or when its turn comes.
static void note_sent(struct decoder *d, const AVPacket *packet, struct packet_info *info)
{
    packet_inspection_content(&d->inspection, packet, codec_on_device(&d->codec), info);
    if (info->reference_lost)
        corruption_missing_reference(&d->corruption);
}

// By the key `pictures`. Where all pictures are wanted again, those skipped since the last keyframe
// are decoded first; of these the ones are given out that are not shown ahead of this packet's.
static bool is_skipped(struct decoder *d, const struct packet *packet)
{
    if (packet->keyframe && d->filter.pictures == PICTURES_AUTO &&
        !codec_orders(&d->codec, packet->av))
        picture_filter_unfit(&d->filter);
    const int64_t time_ns = packet->pts_ns != INT64_MIN ? packet->pts_ns : packet->received_ns;
    const bool disposable =
        d->filter.pictures == PICTURES_REFERENCE &&
        (packet->disposable || packet_inspection_disposable(&d->inspection, packet->av));
    const enum filter_verdict verdict =
        picture_filter_packet(&d->filter, packet->keyframe, disposable, time_ns);
    if (verdict == FILTER_WAKE && packet_history_unskip(&d->history, packet->pts_ns)) {
        picture_filter_wake(&d->filter);
        return false;
    }
    return verdict != FILTER_DECODE;
}

int decoder_send(struct decoder *d, const struct packet *packet)
{
    stage_enter(d->options.stages, STAGE_DECODE, 0);
    if (!d->codec.context)
        return -ENOTSUP;
    if (!packet) {
        d->flushing = true;
        return packet_history_replays(&d->history) ? 0 : send_end(d);
    }
    const AVPacket *av = packet->av;
    const bool key = av->flags & AV_PKT_FLAG_KEY;
    const bool wanted = !is_skipped(d, packet); // may begin a replay
    const bool replays = packet_history_replays(&d->history);
    const bool keep = has_device(d) || replays || d->filter.keyframes_only;
    const bool waits = !is_awaiting(d, key) && waits_for_turn(d);
    if (waits && key && d->shown == 0)
        packet_history_drop_stale(&d->history, packet->received_ns - STALE_NS);
    const bool begins = packet->keyframe && !d->hole && d->options.losses_known;
    d->intact = !packet->hole && (d->intact || begins);
    d->hole = packet->hole;
    if (packet_history_add(&d->history, packet, !d->awaiting && keep) < 0)
        return -ENOMEM;
    struct packet_info *info = packet_history_info(&d->history, d->history.serial);
    info->damaged |= packet_inspection_order(&d->inspection, av);
    info->skipped = !wanted;
    if (!wanted) {
        info->settled = true;
        d->skipped++;
        return 0;
    }
    note_sent(d, av, info);
    int rc = 0;
    if (d->awaiting) {
        info->settled = true;
        d->lost++;
    } else if (waits) {
        packet_history_rewind(&d->history);
        info->settled = !packet_history_keeps(&d->history); // came ahead of the first keyframe
    } else if (!replays) {
        rc = send(d, av, info->serial);
    }
    info->damaged |= packet_inspection_end(&d->inspection);
    d->lost += rc == -EBADMSG;
    return rc == -EBADMSG ? 0 : rc;
}

// --- pictures out

// Gives the codec the next packet that the codec before it had. A loss counts once.
static int replay(struct decoder *d)
{
    int64_t serial;
    const AVPacket *packet = packet_history_next(&d->history, &serial);
    struct packet_info *info = packet_history_info(&d->history, serial);
    bool counted = info->settled;
    if (info->unskipped)
        note_sent(d, packet, info);
    info->unskipped = false;
    int rc = info->skipped ? 0 : send(d, packet, serial);
    info->damaged |= packet_inspection_end(&d->inspection);
    if (rc < 0 && rc != -EBADMSG)
        return rc;
    if (!has_device(d) && !packet_history_replays(&d->history))
        packet_history_drop(&d->history);
    d->lost += rc == -EBADMSG && !counted;
    return end_if_due(d);
}

// The cpu has given out all pictures before those that NVDEC can give.
static bool can_take_over(struct decoder *d)
{
    return d->device && !codec_on_device(&d->codec) && d->history.whole &&
           (!d->options.low_delay || nvdec_turn_came(&d->turn, d->device));
}

// Pictures that the order of output took for later ones than they are.
static void note_late(struct decoder *d)
{
    for (int64_t serial; d->codec.context && (serial = codec_late(&d->codec));) {
        packet_history_info(&d->history, serial)->settled = true;
        d->lost++;
    }
}

static int receive(struct decoder *d, AVFrame *av)
{
    for (int rc = 0;;) {
        if (rc == 0 && can_take_over(d)) {
            give_up_codec(d, codec_close);
            rc = open_codec(d);
        }
        if (rc < 0 || !d->codec.context)
            return rc < 0 ? rc : -ENOTSUP;
        note_late(d);
        if (d->lost > 0) {
            d->lost--;
            return -EBADMSG;
        }
        rc = codec_receive(&d->codec, av);
        if (rc == 0 && packet_history_repeats(&d->history, av->reordered_opaque))
            continue;
        if (rc == AVERROR(EAGAIN) && packet_history_replays(&d->history) && !waits_for_turn(d))
            rc = replay(d);
        else if (rc == 0 || rc == AVERROR(EAGAIN) || rc == AVERROR_EOF)
            return rc == AVERROR_EOF ? -ENODATA : rc;
        else if (codec_failed(&d->codec, rc))
            rc = fall_back(d, rc);
        else
            return errno_of(d, rc, d->history.serial);
    }
}

// What a keyframe says holds for those after it, which need not say it again.
static void follow_orientation(struct decoder *d, const AVFrame *av)
{
    const AVFrameSideData *matrix = av_frame_get_side_data(av, AV_FRAME_DATA_DISPLAYMATRIX);
    if (matrix && matrix->size >= ORIENTATION_MATRIX_BYTES)
        d->orientation = orientation_of((const void *)matrix->data);
    else if (av->key_frame)
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

// What libavcodec decodes of H.265 without an error may have some.
static void find_errors(struct decoder *d, const AVFrame *av)
{
    struct packet_info *info = packet_history_info(&d->history, av->reordered_opaque);
    if (info->serial != av->reordered_opaque)
        return;
    info->damaged |= hash_checker_tells_errors(&d->hash_checker, &info->hash, av);
}

static int show(struct decoder *d, struct picture *picture, struct frame *ret)
{
    const char *converted;
    const AVFrame *av = picture_frame(picture);
    find_errors(d, av);
    struct frame_info info = packet_history_picture(&d->history, d->codec.context, av);
    d->shown++;
    follow_orientation(d, av);
    follow_signal(d, av, &info);
    if (av->key_frame && av->pict_type == AV_PICTURE_TYPE_I)
        packet_history_keyframe(&d->history, av->reordered_opaque);
    else if (packet_history_is_keyframe(&d->history, av->reordered_opaque))
        picture_filter_unfit(&d->filter);
    if (corruption_withholds(&d->corruption, &info.flags))
        return -EBADMSG;
    int rc = codec_map(&d->codec, picture, d->keep_on_device, ret, &converted);
    if (rc < 0)
        return rc;
    ret->codec = dpb_codec(d->parameters->codec_id);
    info.converted = converted != NULL;
    info.source_width = ret->image.width;
    info.source_height = ret->image.height;
    ret->info = info;
    if (converted && converted != d->converted) {
        char text[128];
        snprintf(text, sizeof(text), "%s pictures are converted to %s by libswscale", converted,
                 pixel_format_name(ret->image.format));
        give_notice(d, text);
    }
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
    return ret->lost ? 0 : rc;
}

bool decoder_waits(const struct decoder *d)
{
    return d->unopened && packet_history_keeps(&d->history);
}

int64_t decoder_pictures(const struct decoder *d)
{
    return d->shown;
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

const struct hardware_codec *decoder_hardware(const struct decoder *d)
{
    return d->codec.hardware;
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
