#include "daemon/codec/early_output.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/bitstream/nal.h"
#include "daemon/codec/output_order.h"
#include "daemon/source/libav_version.h"

enum {
    HVCC_ARRAYS = 22,     // offset of numOfArrays in a HEVCDecoderConfigurationRecord
    EDITED_BITS_MAX = 16, // so few never add or remove an emulation prevention byte
};

// Makes a context of H.264 or H.265 give out each picture as soon as it is decoded. libavcodec
// holds pictures back until the stream's parameters exclude others ahead of them, and pictures of
// some devices are only available in its output: NVDEC's surfaces are mapped there.
//
// In H.264 an end of sequence makes libavcodec give out its next held picture, and changes nothing
// else. In H.265 the number of reordered pictures is set to 0 in the SPS; it does not affect
// decoding.
struct held_pictures {
    bool h264;
    int length_bytes;
    int depth;        // H.265: pictures decoded ahead of one shown before them, by the last SPS
    AVPacket *packet; // H.264: an end of sequence; H.265: the last edited copy
};

// --- held pictures: sps_max_num_reorder_pics of H.265

static void skip_profile_tier_level(struct nal_bits *bits, int sub_layers)
{
    uint32_t present[8][2];
    nal_skip(bits, 96);
    for (int i = 0; i < sub_layers; i++)
        for (int part = 0; part < 2; part++)
            present[i][part] = nal_u(bits, 1);
    nal_skip(bits, sub_layers > 0 ? 2 * (size_t)(8 - sub_layers) : 0);
    for (int i = 0; i < sub_layers; i++)
        nal_skip(bits, (present[i][0] ? 88 : 0) + (present[i][1] ? 8 : 0));
}

// Finds the values of the highest sub-layer; libavcodec reads no others.
static struct nal_bits find_reordering(const struct nal *sps)
{
    struct nal_bits bits = {.data = sps->data, .size = sps->size, .at = 2}, found;
    nal_u(&bits, 4); // sps_video_parameter_set_id
    const int sub_layers = (int)nal_u(&bits, 3);
    nal_u(&bits, 1); // sps_temporal_id_nesting_flag
    skip_profile_tier_level(&bits, sub_layers);
    nal_ue(&bits);          // sps_seq_parameter_set_id
    if (nal_ue(&bits) == 3) // chroma_format_idc
        nal_u(&bits, 1);
    nal_ue(&bits); // width and height
    nal_ue(&bits);
    for (int i = nal_u(&bits, 1) ? 4 : 0; i > 0; i--) // conformance window
        nal_ue(&bits);
    for (int i = 0; i < 3; i++) // bit depths, log2_max_pic_order_cnt_lsb_minus4
        nal_ue(&bits);
    for (int i = nal_u(&bits, 1) ? 0 : sub_layers; i <= sub_layers; i++) {
        nal_ue(&bits); // sps_max_dec_pic_buffering_minus1
        found = bits;
        nal_ue(&bits); // sps_max_num_reorder_pics
        nal_ue(&bits); // sps_max_latency_increase_plus1
    }
    return found;
}

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

// `to`: the unit's own bytes, or NULL only to check for something to edit. The latency after the
// number grows by the bits that the number loses: it is not used.
static bool edit_reordering(struct held_pictures *held, const struct nal *sps, uint8_t *to)
{
    const struct nal_bits begin = find_reordering(sps);
    struct nal_bits bits = begin;
    const uint32_t pictures = nal_ue(&bits), latency = nal_ue(&bits);
    if (nal_ended(&bits) || pictures > 16 || latency >= UINT32_MAX - 1)
        return false;
    const int left = ue_bits(pictures) + ue_bits(latency) - 1;
    if (pictures == 0 || left > EDITED_BITS_MAX) {
        held->depth = 0;
        return false;
    }
    held->depth = (int)pictures;
    bits = begin;
    if (to)
        write_bit(&bits, to, true);
    for (int i = 0; to && i < left; i++)
        write_bit(&bits, to, i >= left / 2);
    return true;
}

static bool edit_unit(struct held_pictures *held, const struct nal *unit, uint8_t *data, bool edits)
{
    return hevc_unit_type(unit) == HEVC_UNIT_SPS &&
           edit_reordering(held, unit, edits ? data + (unit->data - data) : NULL);
}

static bool edit_units(struct held_pictures *held, uint8_t *data, size_t size, int length_bytes,
                       bool edits)
{
    struct nal_reader units = {.data = data, .size = size, .length_bytes = length_bytes};
    bool found = false;
    for (struct nal unit; nal_next(&units, &unit);) {
        const int type = hevc_unit_type(&unit);
        if (type >= 0 && type <= HEVC_UNIT_RSV_VCL31)
            break; // parameter sets come before the picture
        found |= edit_unit(held, &unit, data, edits);
    }
    return found;
}

static void edit_extradata(struct held_pictures *held, uint8_t *data, size_t size)
{
    if (hevc_length_bytes(data, size) == 0) {
        edit_units(held, data, size, 0, true);
        return;
    }
    size_t at = HVCC_ARRAYS + 1;
    for (int arrays = data[HVCC_ARRAYS]; arrays > 0 && size > at + 3; arrays--) {
        int units = data[at + 1] << 8 | data[at + 2];
        for (at += 3; units > 0 && size > at + 2; units--) {
            const size_t bytes = (size_t)(data[at] << 8 | data[at + 1]);
            at += 2;
            if (bytes > size - at)
                return;
            edit_unit(held, &(struct nal){data + at, bytes}, data, true);
            at += bytes;
        }
    }
}

// --- held pictures of both codecs

static int make_end(struct held_pictures *held)
{
    const int ahead = held->length_bytes > 0 ? held->length_bytes : 4;
    if (av_new_packet(held->packet, ahead + 1) < 0)
        return -ENOMEM;
    memset(held->packet->data, 0, (size_t)ahead);
    held->packet->data[ahead - 1] = 1; // a start code, or the unit's length
    held->packet->data[ahead] = H264_UNIT_END_OF_SEQUENCE;
    return 0;
}

// Edits the extradata of the context, which is not open yet. Returns 0 or -ENOMEM.
static int held_pictures_open(struct held_pictures **ret, AVCodecContext *context)
{
    struct held_pictures *held = calloc(1, sizeof *held);
    const size_t size = (size_t)context->extradata_size;
    *ret = held;
    if (!held || !(held->packet = av_packet_alloc()))
        return -ENOMEM;
    held->h264 = context->codec_id == AV_CODEC_ID_H264;
    held->length_bytes = held->h264 ? h264_length_bytes(context->extradata, size)
                                    : hevc_length_bytes(context->extradata, size);
    if (held->h264)
        return make_end(held);
    if (size > 0)
        edit_extradata(held, context->extradata, size);
    return 0;
}

static void held_pictures_close(struct held_pictures *held)
{
    if (!held)
        return;
    av_packet_free(&held->packet);
    free(held);
}

// Returns the packet to send in place of this one, valid until the next call; NULL: no memory.
static const AVPacket *held_pictures_packet(struct held_pictures *held, const AVPacket *packet)
{
    size_t bytes;
    const bool changed = av_packet_get_side_data(packet, AV_PKT_DATA_NEW_EXTRADATA, NULL);
    if (held->h264 || (!changed && !edit_units(held, packet->data, (size_t)packet->size,
                                               held->length_bytes, false)))
        return packet;
    AVPacket *own = held->packet;
    av_packet_unref(own);
    if (av_packet_ref(own, packet) < 0 || av_packet_make_writable(own) < 0)
        return NULL;
    uint8_t *extradata = av_packet_get_side_data(own, AV_PKT_DATA_NEW_EXTRADATA, &bytes);
    if (extradata && bytes > 0)
        edit_extradata(held, extradata, bytes);
    edit_units(held, own->data, (size_t)own->size, held->length_bytes, true);
    return own;
}

// H.264, between two frames: requests the next picture. Returns as avcodec_send_packet.
static int held_pictures_ask(struct held_pictures *held, AVCodecContext *context)
{
    return libav_send(context, held->packet, 0);
}

// --- early output

enum {
    STAMPS = 64, // after this many, the count of stalls is halved
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

struct stamps {
    int64_t last;
    int n, stalled; // recent ones that did not rise
};

// A context whose pictures are kept as it gives them out.
struct followed {
    struct held_pictures *held; // NULL: pictures are taken from their buffers
    AVFrame *frame;             // scratch
    int64_t first, last; // serials of the first packet since early_output_begin and of the last
    int64_t whole;       // H.264: pictures of packets before this one are damaged
    bool fields;         // H.264: pictures came as fields: nothing is requested between two
    bool unasked;        // H.264: libavcodec gave out unrequested pictures since the last flush
    bool apart;          // the next picture's POC does not continue from the last one's
};

struct early_output {
    bool h264;
    struct followed followed;
    struct picture_place_reader *reader;
    struct output_order order;
    struct handed handed;
    // Pictures since H.264's last start are whole: libavcodec would not mark them as corrupt.
    bool recovered;
    int last_poc;        // of the previous packet
    int64_t highest_pts; // of packets
    struct {
        int64_t serial; // 0: none
        AVFrame *frame;
    } taken[OUTPUT_ORDER_PICTURES];
    int64_t late[OUTPUT_ORDER_PICTURES];
    int lates;
    struct stamps pts, dts; // of pictures in output order, and of packets
};

int early_output_open(struct early_output **ret, const AVCodecParameters *parameters)
{
    struct picture_place_reader *reader;
    int rc = picture_place_open(&reader, parameters);
    if (rc < 0)
        return rc;
    struct early_output *early = calloc(1, sizeof *early);
    if (!early) {
        picture_place_close(reader);
        return -ENOMEM;
    }
    early->reader = reader;
    early->h264 = parameters->codec_id == AV_CODEC_ID_H264;
    early_output_begin(early);
    *ret = early;
    return 0;
}

static void give_up_taken(struct early_output *early)
{
    for (int i = 0; i < OUTPUT_ORDER_PICTURES; i++) {
        av_frame_free(&early->taken[i].frame);
        early->taken[i].serial = 0;
    }
}

void early_output_close(struct early_output *early)
{
    if (!early)
        return;
    give_up_taken(early);
    held_pictures_close(early->followed.held);
    av_frame_free(&early->followed.frame);
    picture_place_close(early->reader);
    free(early);
}

int early_output_follow(struct early_output *early, AVCodecContext *context)
{
    if (!(early->followed.frame = av_frame_alloc()))
        return -ENOMEM;
    return held_pictures_open(&early->followed.held, context);
}

void early_output_begin(struct early_output *early)
{
    give_up_taken(early);
    output_order_begin(&early->order);
    early->handed.n = early->lates = 0;
    early->recovered = !early->h264;
    early->highest_pts = AV_NOPTS_VALUE;
    early->pts = early->dts = (struct stamps){.last = AV_NOPTS_VALUE};
    early->followed.first = early->followed.last + 1;
    early->followed.whole = 0;
    early->followed.apart = true;
}

// --- from the packet to its picture

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

// The output is then another frame: the noise is added to a copy.
static bool has_film_grain(const struct handed_frame *handed)
{
    return av_frame_get_side_data(handed->frame, AV_FRAME_DATA_FILM_GRAIN_PARAMS);
}

// libavcodec ignores a crop that leaves nothing when it gives the picture out.
static bool is_cropped_away(const AVFrame *frame)
{
    return frame->crop_left + frame->crop_right >= (size_t)frame->width ||
           frame->crop_top + frame->crop_bottom >= (size_t)frame->height;
}

// Returns the frame that holds the packet's picture; NULL: not available.
static const AVFrame *find_decoded(const struct early_output *early)
{
    const struct handed *handed = &early->handed;
    const struct handed_frame *picture = early->h264 ? &handed->last : &handed->first;
    if (handed->n == 0 || !picture->frame->buf[0] ||
        picture->frame->buf[0]->buffer != picture->buffer || has_film_grain(picture) ||
        is_cropped_away(picture->frame) || (handed->n > 1 && has_film_grain(&handed->last_but_one)))
        return NULL;
    return picture->frame;
}

// Frees the room of pictures that are no longer awaited. Returns an empty frame, now in use, or
// NULL.
static AVFrame *find_room(struct early_output *early, int64_t serial)
{
    int at = -1;
    for (int i = 0; i < OUTPUT_ORDER_PICTURES; i++) {
        if (early->taken[i].serial && !output_order_holds(&early->order, early->taken[i].serial)) {
            av_frame_unref(early->taken[i].frame);
            early->taken[i].serial = 0;
        }
        if (!early->taken[i].serial)
            at = i;
    }
    if (at < 0 || (!early->taken[at].frame && !(early->taken[at].frame = av_frame_alloc())))
        return NULL;
    early->taken[at].serial = serial;
    return early->taken[at].frame;
}

// Keeps a reference to the decoded picture until its turn in output order. Returns false if there
// is no room.
static bool take_decoded(struct early_output *early, const AVFrame *decoded, int64_t serial,
                         bool recovery_point)
{
    AVFrame *frame = find_room(early, serial);
    if (!frame || av_frame_ref(frame, decoded) < 0)
        return false;
    if (recovery_point) // libavcodec reports it only with its output
        libav_set_keyframe(frame, true);
    return true;
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
static bool lost_start(const struct early_output *early, const struct order_picture *picture,
                       int64_t pts)
{
    return output_order_is_behind(&early->order, picture->poc) && pts > early->highest_pts;
}

static void note_sent(struct early_output *early, const AVCodecContext *context,
                      const AVPacket *packet, int64_t serial, bool keyframes_only, int rc)
{
    const struct picture_place place = picture_place_read(early->reader, packet);
    const AVFrame *decoded = find_decoded(early);
    const bool changed = av_packet_get_side_data(packet, AV_PKT_DATA_NEW_EXTRADATA, NULL);
    const bool sure = place.known && rc >= 0 && !changed;
    count_stamp(&early->dts, packet->dts);
    if (place.new_sequence)
        output_order_forget(&early->order);
    if (early->handed.n > 0) {
        early->recovered |= decoded && libav_is_keyframe(decoded);
        struct order_picture picture = {
            .serial = serial,
            .poc = place.known ? place.poc : early->last_poc,
            .start = place.start,
            .random_access = place.random_access,
            .reference = place.reference,
        };
        if (decoded && sure && early->recovered && !place.field && !place.may_be_hidden &&
            packet->pts != AV_NOPTS_VALUE)
            picture.taken =
                take_decoded(early, decoded, serial, early->h264 && place.recovery == 0);
        if (picture.start == ORDER_CONTINUES && lost_start(early, &picture, packet->pts))
            picture.start = ORDER_BEGINS_UNSEEN;
        const bool in_order = place.in_order || keyframes_only;
        output_order_decoded(&early->order, &picture, in_order ? 0 : context->has_b_frames);
        early->last_poc = picture.poc;
    }
    if (packet->pts > early->highest_pts) // AV_NOPTS_VALUE is below all
        early->highest_pts = packet->pts;
    if (!sure)
        output_order_distrust(&early->order);
    early->handed.n = 0;
}

// --- pictures that libavcodec gave out as soon as they were decoded, or in its own order

static void note_late(struct early_output *early, int64_t serial)
{
    if (early->lates < OUTPUT_ORDER_PICTURES)
        early->late[early->lates++] = serial;
}

static void keep_given(struct early_output *early, AVFrame *frame, struct order_picture picture,
                       int depth)
{
    picture.serial = libav_serial(frame);
    picture.taken = picture.given = true;
    AVFrame *to = NULL;
    if (output_order_decoded(&early->order, &picture, depth))
        to = find_room(early, picture.serial);
    if (to)
        av_frame_move_ref(to, frame);
    else
        note_late(early, picture.serial);
}

// Keeps libavcodec's order: after everything that it gave out before.
static void keep_in_order(struct early_output *early, AVFrame *frame)
{
    const struct order_picture picture = {.start = ORDER_BEGINS_LOWEST};
    early->followed.apart = true;
    keep_given(early, frame, picture, early->order.depth);
}

struct sent_packet {
    const AVPacket *packet;
    struct picture_place place; // of its picture
    int depth;                  // see output_order_decoded
};

static void keep_placed(struct early_output *early, AVFrame *frame, const struct sent_packet *sent)
{
    const struct picture_place *place = &sent->place;
    struct order_picture picture = {
        .poc = place->poc,
        .start = place->start,
        .random_access = place->random_access,
        .reference = place->reference,
    };
    if (picture.start == ORDER_CONTINUES &&
        (early->followed.apart || lost_start(early, &picture, sent->packet->pts)))
        picture.start = ORDER_BEGINS;
    early->followed.apart = false;
    keep_given(early, frame, picture, place->in_order ? 0 : sent->depth);
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
        if (serial >= followed->first && serial == followed->last && sent && sent->place.known)
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
    while (early->h264 && !*found && (rc = held_pictures_ask(early->followed.held, context)) >= 0 &&
           keep_output(early, context, sent, found) > 0)
        continue;
    return rc == AVERROR_INVALIDDATA ? 0 : rc;
}

// libavcodec drops pictures with a POC below one that it gave out unrequested. With has_b_frames 0
// it forgets that POC at an IDR picture. Sets *dropped if the IDR picture was lost.
static int send_followed(struct early_output *early, AVCodecContext *context,
                         struct sent_packet *sent, bool *dropped)
{
    struct followed *followed = &early->followed;
    const bool idr = early->h264 && sent->place.start == ORDER_BEGINS_LOWEST;
    const bool resets = idr && early->recovered && !followed->fields;
    const int reordered = context->has_b_frames;
    bool found = false;
    if (resets)
        context->has_b_frames = 0;
    int rc = libav_send(context, sent->packet, followed->last);
    if (resets && context->has_b_frames < reordered)
        context->has_b_frames = reordered;
    if (rc >= 0 && idr && !early->recovered) {
        early->recovered = true;
        followed->whole = followed->last;
    }
    sent->depth = early->h264 ? context->has_b_frames : followed->held->depth;
    followed->unasked |= keep_output(early, context, sent, &found) > 0;
    if (early->recovered && !followed->fields) {
        const int asked = keep_held(early, context, sent, &found);
        rc = rc < 0 ? rc : asked;
    }
    *dropped = rc >= 0 && resets && !found && followed->unasked;
    return rc;
}

static int send_to_followed(struct early_output *early, AVCodecContext *context,
                            const AVPacket *packet, int64_t serial, bool keyframes_only)
{
    struct followed *followed = &early->followed;
    struct sent_packet sent = {
        .packet = held_pictures_packet(followed->held, packet),
        .place = picture_place_read(early->reader, packet),
    };
    bool dropped = false;
    if (!sent.packet)
        return AVERROR(ENOMEM);
    sent.place.in_order |= keyframes_only;
    followed->last = serial;
    followed->fields |= sent.place.field && !sent.place.broken;
    count_stamp(&early->dts, packet->dts);
    if (sent.place.new_sequence)
        output_order_forget(&early->order);
    int rc = send_followed(early, context, &sent, &dropped);
    if (dropped) {
        avcodec_flush_buffers(context);
        followed->unasked = false;
        rc = send_followed(early, context, &sent, &dropped);
    }
    if (packet->pts > early->highest_pts)
        early->highest_pts = packet->pts;
    return rc;
}

int early_output_send(struct early_output *early, AVCodecContext *context, const AVPacket *packet,
                      int64_t serial, bool keyframes_only)
{
    if (early->followed.held)
        return send_to_followed(early, context, packet, serial, keyframes_only);
    const int rc = libav_send(context, packet, serial);
    if (rc != AVERROR(EAGAIN))
        note_sent(early, context, packet, serial, keyframes_only, rc);
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
    if (early->followed.held) { // called only at the end
        if (serial >= early->followed.first)
            keep_in_order(early, frame);
        av_frame_unref(frame);
        return false;
    }
    if (early->h264)
        early->recovered = !(frame->flags & AV_FRAME_FLAG_CORRUPT);
    const enum order_verdict verdict = output_order_output(&early->order, serial);
    if (verdict == ORDER_SHOW) {
        choose_stamp(early, frame);
        return true;
    }
    if (verdict == ORDER_LATE)
        note_late(early, serial);
    av_frame_unref(frame);
    return false;
}

void early_output_end(struct early_output *early, AVCodecContext *context)
{
    bool found = false;
    if (!early->recovered)
        early->followed.whole = early->followed.last + 1;
    if (early->followed.held)
        keep_held(early, context, NULL, &found);
    output_order_end(&early->order);
}

bool early_output_next(struct early_output *early, AVFrame *frame)
{
    const int64_t serial = output_order_next(&early->order);
    for (int i = 0; serial && i < OUTPUT_ORDER_PICTURES; i++) {
        if (early->taken[i].serial != serial)
            continue;
        av_frame_move_ref(frame, early->taken[i].frame);
        early->taken[i].serial = 0;
        choose_stamp(early, frame);
        return true;
    }
    return false;
}

int64_t early_output_late(struct early_output *early)
{
    return early->lates > 0 ? early->late[--early->lates] : 0;
}
