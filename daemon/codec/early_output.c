#include "daemon/codec/early_output.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/bitstream/nal.h"
#include "daemon/codec/output_order.h"
#include "daemon/source/libav_version.h"

enum {
    EDITED_BITS_MAX = 16, // so few never add or remove an emulation prevention byte
    STAMPS = 64,          // after this many, the count of stalls is halved
    STALLED_MAX = 3,
};

// get_buffer2() calls made while decoding one packet. In H.264 the last frame is the picture, and
// those before it replace missing frame numbers; in H.265 the first frame is the picture.
struct handed {
    struct handed_frame {
        AVFrame *frame;         // libavcodec's own: valid until the context is closed
        const AVBuffer *buffer; // allocated for it
    } first, last_but_one, last;
    int n;
};

// A context that is made to give out each picture as soon as it is decoded, because pictures of
// some devices are only available in its output: NVDEC's surfaces are mapped there. libavcodec
// holds pictures back until the stream's parameters exclude others ahead of them. In H.264 an end
// of sequence makes it give out its next held picture, and changes nothing else. In H.265 the
// number of reordered pictures is set to 0 in the SPS; it does not affect decoding.
struct followed {
    AVPacket *packet; // H.264: an end of sequence; H.265: the last edited copy. NULL: not followed
    AVFrame *frame;   // scratch
    int length_bytes; // see struct nal_reader
    int depth;        // H.265: pictures decoded ahead of one shown before them, by the last SPS
    int64_t first, last; // serials of the first packet since early_output_begin and of the last
    int64_t whole;       // H.264: pictures of packets before this one are damaged
    bool fields;         // H.264: pictures came as fields: nothing is requested between two
    bool unasked;        // H.264: libavcodec gave out unrequested pictures since the last flush
    bool apart;          // the next picture's POC does not continue from the last one's
};

struct early_output {
    bool h264;
    struct followed followed;
    struct handed handed; // of contexts that are not followed
    struct output_order order;
    // Pictures since H.264's last start are whole: libavcodec would not mark them as corrupt.
    bool recovered;
    int64_t highest_pts; // of packets
    struct stamps {
        int64_t last;
        int n, stalled; // recent ones that did not rise
    } pts, dts;         // of pictures in output order, and of packets
};

int early_output_open(struct early_output **ret, const AVCodecParameters *parameters)
{
    if (parameters->codec_id != AV_CODEC_ID_H264 && parameters->codec_id != AV_CODEC_ID_HEVC)
        return -ENOTSUP;
    struct early_output *early = calloc(1, sizeof *early);
    if (!early)
        return -ENOMEM;
    early->h264 = parameters->codec_id == AV_CODEC_ID_H264;
    early_output_begin(early);
    *ret = early;
    return 0;
}

void early_output_close(struct early_output *early)
{
    if (!early)
        return;
    output_order_begin(&early->order);
    av_packet_free(&early->followed.packet);
    av_frame_free(&early->followed.frame);
    free(early);
}

void early_output_begin(struct early_output *early)
{
    output_order_begin(&early->order);
    early->handed.n = 0;
    early->recovered = !early->h264;
    early->highest_pts = AV_NOPTS_VALUE;
    early->pts = early->dts = (struct stamps){.last = AV_NOPTS_VALUE};
    early->followed.first = early->followed.last + 1;
    early->followed.whole = 0;
    early->followed.apart = true;
}

// --- sps_max_num_reorder_pics of H.265

static int ue_bits(uint32_t value)
{
    return 2 * (31 - __builtin_clz(value + 1)) + 1;
}

static void write_bit(struct nal_bits *bits, uint8_t *unit, bool bit)
{
    nal_u(bits, 1);
    uint8_t *byte = unit + bits->at - 1;
    *byte = (uint8_t)((*byte & ~(1 << bits->left)) | bit << bits->left);
}

// The latency after the number grows by the bits that the number loses: it is not used.
static void edit_sequence(struct followed *followed, const struct nal *sps)
{
    struct nal_bits begin, bits;
    if (!hevc_sps_find_reordering(sps, &begin))
        return;
    bits = begin;
    const uint32_t pictures = nal_ue(&bits), latency = nal_ue(&bits);
    if (pictures > 16)
        return;
    const int left = ue_bits(pictures) + ue_bits(latency) - 1;
    const bool edits = pictures > 0 && left <= EDITED_BITS_MAX;
    followed->depth = edits ? (int)pictures : 0;
    bits = begin;
    if (edits)
        write_bit(&bits, (uint8_t *)sps->data, true);
    for (int i = 0; edits && i < left; i++)
        write_bit(&bits, (uint8_t *)sps->data, i >= left / 2);
}

static void edit_extradata(struct followed *followed, uint8_t *data, size_t size)
{
    struct extradata_reader sets = extradata_read(data, size, true);
    for (struct nal unit; extradata_next(&sets, &unit);)
        if (hevc_unit_type(&unit) == HEVC_UNIT_SPS)
            edit_sequence(followed, &unit);
}

// Parameter sets come before the picture.
static void edit_packet(struct followed *followed, const AVPacket *packet)
{
    struct nal_reader units = {
        .data = packet->data, .size = (size_t)packet->size, .length_bytes = followed->length_bytes};
    for (struct nal unit; nal_next(&units, &unit);) {
        const int type = hevc_unit_type(&unit);
        if (type >= 0 && type <= HEVC_UNIT_RSV_VCL31)
            return;
        if (type == HEVC_UNIT_SPS)
            edit_sequence(followed, &unit);
    }
}

// Returns the packet to send in place of this one, valid until the next call; NULL: no memory.
static const AVPacket *edited_packet(struct early_output *early, const AVPacket *packet,
                                     const struct packet_facts *facts)
{
    AVPacket *own = early->followed.packet;
    size_t bytes;
    const bool changed = av_packet_get_side_data(packet, AV_PKT_DATA_NEW_EXTRADATA, NULL);
    if (early->h264 || (!changed && !facts->sequence))
        return packet;
    av_packet_unref(own);
    if (av_packet_ref(own, packet) < 0 || av_packet_make_writable(own) < 0)
        return NULL;
    uint8_t *extradata = av_packet_get_side_data(own, AV_PKT_DATA_NEW_EXTRADATA, &bytes);
    if (extradata)
        edit_extradata(&early->followed, extradata, bytes);
    edit_packet(&early->followed, own);
    return own;
}

// --- following a context

int early_output_follow(struct early_output *early, AVCodecContext *context)
{
    struct followed *followed = &early->followed;
    const size_t size = (size_t)context->extradata_size;
    if (!(followed->frame = av_frame_alloc()) || !(followed->packet = av_packet_alloc()))
        return -ENOMEM;
    followed->length_bytes = early->h264 ? h264_length_bytes(context->extradata, size)
                                         : hevc_length_bytes(context->extradata, size);
    if (!early->h264) {
        edit_extradata(followed, context->extradata, size);
        return 0;
    }
    const int ahead = followed->length_bytes > 0 ? followed->length_bytes : 4;
    if (av_new_packet(followed->packet, ahead + 1) < 0)
        return -ENOMEM;
    memset(followed->packet->data, 0, (size_t)ahead);
    followed->packet->data[ahead - 1] = 1; // a start code, or the unit's length
    followed->packet->data[ahead] = H264_UNIT_END_OF_SEQUENCE;
    return 0;
}

// --- pictures taken from their buffers

void early_output_handed(struct early_output *early, AVFrame *frame)
{
    if (!early || !frame->buf[0])
        return;
    struct handed *handed = &early->handed;
    handed->last_but_one = handed->last;
    handed->last = (struct handed_frame){frame, frame->buf[0]->buffer};
    if (handed->n++ == 0)
        handed->first = handed->last;
}

static bool has_film_grain(const struct handed_frame *handed)
{
    return av_frame_get_side_data(handed->frame, AV_FRAME_DATA_FILM_GRAIN_PARAMS);
}

// Returns the frame that holds the packet's picture. NULL: it is not available, or libavcodec gives
// out another one: with film grain, which is added to a copy, or with a crop that leaves nothing,
// which it ignores.
static const AVFrame *find_decoded(const struct early_output *early)
{
    const struct handed *handed = &early->handed;
    const struct handed_frame *picture = early->h264 ? &handed->last : &handed->first;
    const AVFrame *frame = picture->frame;
    if (handed->n == 0 || !frame->buf[0] || frame->buf[0]->buffer != picture->buffer ||
        has_film_grain(picture) || (handed->n > 1 && has_film_grain(&handed->last_but_one)) ||
        frame->crop_left + frame->crop_right >= (size_t)frame->width ||
        frame->crop_top + frame->crop_bottom >= (size_t)frame->height)
        return NULL;
    return frame;
}

static void count_stamp(struct stamps *stamps, int64_t stamp)
{
    if (stamp == AV_NOPTS_VALUE)
        return;
    stamps->stalled += stamps->last != AV_NOPTS_VALUE && stamp <= stamps->last;
    stamps->last = stamp;
    if (++stamps->n % STAMPS == 0)
        stamps->stalled /= 2;
}

// POC fell and time did not: the picture that began the sequence is missing.
static bool lost_start(const struct early_output *early, int poc, int64_t pts)
{
    return output_order_is_behind(&early->order, poc) && pts > early->highest_pts;
}

// With keyframes alone, no picture follows that could refer to one before an exact recovery point.
static bool is_whole_alone(const struct packet_facts *facts, bool keyframes_only)
{
    return keyframes_only && facts->recovery == 0;
}

static struct order_picture place_of(const struct packet_facts *facts)
{
    return (struct order_picture){
        .serial = facts->serial,
        .poc = facts->poc,
        .start = facts->start,
        .random_access = facts->random_access,
        .reference = facts->reference,
    };
}

static int send_served(struct early_output *early, AVCodecContext *context, const AVPacket *packet,
                       const struct packet_facts *facts, bool keyframes_only)
{
    const int rc = libav_send(context, packet, facts->serial);
    if (rc == AVERROR(EAGAIN))
        return rc;
    const AVFrame *decoded = find_decoded(early);
    const bool changed = av_packet_get_side_data(packet, AV_PKT_DATA_NEW_EXTRADATA, NULL);
    const bool sure = facts->ordered && rc >= 0 && !changed;
    const int frames = early->handed.n;
    struct order_picture picture = place_of(facts);
    early->handed.n = 0;
    early->recovered |= decoded && libav_is_keyframe(decoded);
    if (frames > 0) {
        if (!facts->ordered)
            picture.poc = early->order.newest.poc;
        const bool whole = early->recovered || is_whole_alone(facts, keyframes_only);
        if (decoded && sure && whole && !facts->field && !facts->may_be_hidden &&
            packet->pts != AV_NOPTS_VALUE)
            picture.frame = av_frame_clone(decoded);
        if (picture.frame && early->h264 && facts->recovery == 0)
            libav_set_keyframe(picture.frame, true); // libavcodec reports it only with its output
        // With keyframes alone the decoder counts POC without the pictures between them.
        if (picture.start == PICTURE_CONTINUES &&
            (keyframes_only || lost_start(early, picture.poc, packet->pts)))
            picture.start = PICTURE_BEGINS_UNSEEN;
        const bool in_order = facts->in_order || keyframes_only;
        output_order_decoded(&early->order, &picture, in_order ? 0 : context->has_b_frames);
    }
    if (!sure)
        output_order_distrust(&early->order);
    return rc;
}

// --- pictures that libavcodec gave out as soon as they were decoded, or in its own order

static void keep_given(struct early_output *early, AVFrame *frame, struct order_picture picture,
                       int depth)
{
    picture.serial = libav_serial(frame);
    picture.given = true;
    if ((picture.frame = av_frame_alloc()))
        av_frame_move_ref(picture.frame, frame);
    output_order_decoded(&early->order, &picture, depth);
}

// Keeps libavcodec's order: after everything that it gave out before.
static void keep_in_order(struct early_output *early, AVFrame *frame)
{
    early->followed.apart = true;
    keep_given(early, frame, (struct order_picture){.start = PICTURE_BEGINS_LOWEST},
               early->order.depth);
}

struct sent_packet {
    const AVPacket *packet;
    const struct packet_facts *facts;
    bool keyframes_only;
    int depth; // see output_order_decoded
};

static void keep_placed(struct early_output *early, AVFrame *frame, const struct sent_packet *sent)
{
    struct order_picture picture = place_of(sent->facts);
    if (picture.start == PICTURE_CONTINUES && (early->followed.apart || sent->keyframes_only ||
                                               lost_start(early, picture.poc, sent->packet->pts)))
        picture.start = PICTURE_BEGINS;
    early->followed.apart = false;
    const bool in_order = sent->facts->in_order || sent->keyframes_only;
    keep_given(early, frame, picture, in_order ? 0 : sent->depth);
}

// Keeps all pictures that the context gives out. `sent` is the last packet; NULL: the context is at
// its end. Returns the number of pictures; sets *found if the last packet's is among them.
static int keep_output(struct early_output *early, AVCodecContext *context,
                       const struct sent_packet *sent, bool *found)
{
    const struct followed *followed = &early->followed;
    int pictures = 0;
    for (AVFrame *frame = followed->frame; avcodec_receive_frame(context, frame) == 0; pictures++) {
        const int64_t serial = libav_serial(frame);
        if (serial < followed->whole)
            frame->flags |= AV_FRAME_FLAG_CORRUPT; // libavcodec marks only unrequested pictures
        else if (!(frame->flags & AV_FRAME_FLAG_CORRUPT))
            early->recovered = true;
        *found |= serial == followed->last;
        if (serial >= followed->first && serial == followed->last && sent && sent->facts->ordered)
            keep_placed(early, frame, sent);
        else if (serial >= followed->first)
            keep_in_order(early, frame);
        av_frame_unref(frame);
    }
    return pictures;
}

// libavcodec returns AVERROR_INVALIDDATA for an end of sequence after a single field.
static int keep_held(struct early_output *early, AVCodecContext *context,
                     const struct sent_packet *sent, bool *found)
{
    int rc = 0;
    while (early->h264 && !*found && (rc = libav_send(context, early->followed.packet, 0)) >= 0 &&
           keep_output(early, context, sent, found) > 0)
        continue;
    return rc == AVERROR_INVALIDDATA ? 0 : rc;
}

// libavcodec drops pictures with a POC below one that it gave out unrequested. With has_b_frames 0
// it forgets that POC at an IDR picture. Sets *dropped if the IDR picture was lost.
static int try_followed(struct early_output *early, AVCodecContext *context,
                        struct sent_packet *sent, bool *dropped)
{
    struct followed *followed = &early->followed;
    const bool idr = early->h264 && sent->facts->start == PICTURE_BEGINS_LOWEST;
    const bool resets = idr && early->recovered && !followed->fields;
    const int reordered = context->has_b_frames;
    bool found = false;
    if (resets)
        context->has_b_frames = 0;
    int rc = libav_send(context, sent->packet, followed->last);
    if (resets && context->has_b_frames < reordered)
        context->has_b_frames = reordered;
    if (rc >= 0 && (idr || is_whole_alone(sent->facts, sent->keyframes_only)) &&
        !early->recovered) {
        early->recovered = true;
        followed->whole = followed->last;
    }
    sent->depth = early->h264 ? context->has_b_frames : followed->depth;
    followed->unasked |= keep_output(early, context, sent, &found) > 0;
    if (early->recovered && !followed->fields) {
        const int asked = keep_held(early, context, sent, &found);
        rc = rc < 0 ? rc : asked;
    }
    *dropped = rc >= 0 && resets && !found && followed->unasked;
    return rc;
}

static int send_followed(struct early_output *early, AVCodecContext *context,
                         const AVPacket *packet, const struct packet_facts *facts,
                         bool keyframes_only)
{
    struct followed *followed = &early->followed;
    struct sent_packet sent = {
        .packet = edited_packet(early, packet, facts),
        .facts = facts,
        .keyframes_only = keyframes_only,
    };
    bool dropped = false;
    if (!sent.packet)
        return AVERROR(ENOMEM);
    followed->last = facts->serial;
    followed->fields |= facts->field && !facts->broken;
    int rc = try_followed(early, context, &sent, &dropped);
    if (dropped) {
        avcodec_flush_buffers(context);
        followed->unasked = false;
        rc = try_followed(early, context, &sent, &dropped);
    }
    return rc;
}

int early_output_send(struct early_output *early, AVCodecContext *context, const AVPacket *packet,
                      const struct packet_facts *facts, bool keyframes_only)
{
    const int rc = (early->followed.packet ? send_followed : send_served)(early, context, packet,
                                                                          facts, keyframes_only);
    if (rc != AVERROR(EAGAIN)) {
        count_stamp(&early->dts, packet->dts);
        if (packet->pts > early->highest_pts) // AV_NOPTS_VALUE is below all
            early->highest_pts = packet->pts;
    }
    return rc;
}

// --- from the picture to the output

// A packet's time stamps may be its picture's, or only decoding times.
static void choose_stamp(struct early_output *early, AVFrame *frame)
{
    count_stamp(&early->pts, frame->pts);
    const bool rises =
        early->pts.stalled <= early->dts.stalled + STALLED_MAX || early->dts.last == AV_NOPTS_VALUE;
    frame->best_effort_timestamp =
        frame->pts != AV_NOPTS_VALUE && rises ? frame->pts : early->dts.last;
}

bool early_output_wants(struct early_output *early, AVFrame *frame)
{
    const int64_t serial = libav_serial(frame);
    if (early->followed.packet) { // called only at the end
        if (serial >= early->followed.first)
            keep_in_order(early, frame);
        av_frame_unref(frame);
        return false;
    }
    if (early->h264)
        early->recovered = !(frame->flags & AV_FRAME_FLAG_CORRUPT);
    if (output_order_output(&early->order, serial)) {
        choose_stamp(early, frame);
        return true;
    }
    av_frame_unref(frame);
    return false;
}

void early_output_end(struct early_output *early, AVCodecContext *context)
{
    bool found = false;
    if (!early->recovered)
        early->followed.whole = early->followed.last + 1;
    if (early->followed.packet)
        keep_held(early, context, NULL, &found);
    output_order_end(&early->order);
}

bool early_output_next(struct early_output *early, AVFrame *frame)
{
    AVFrame *next = output_order_next(&early->order);
    if (!next)
        return false;
    av_frame_move_ref(frame, next);
    av_frame_free(&next);
    choose_stamp(early, frame);
    return true;
}

int64_t early_output_late(struct early_output *early)
{
    return output_order_late(&early->order);
}
