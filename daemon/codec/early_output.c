#include "daemon/codec/early_output.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/number.h"
#include "daemon/bitstream/nal.h"
#include "daemon/codec/output_order.h"
#include "daemon/source/libav_version.h"

enum {
    EDITED_BITS_MAX = 16, // so few never add or remove an emulation prevention byte
    STAMPS = 64,          // after this many, the count of stalls is halved
    STALLED_MAX = 3,
    HVCC_ARRAYS = 22, // offset of numOfArrays in a HEVCDecoderConfigurationRecord
};

struct early_output {
    AVPacket *packet; // H.264: an end of sequence; H.265: the last edited copy
    int length_bytes; // see struct nal_reader
    struct output_order order;
    bool apart;          // the next picture's POC does not continue from the last one's
    int depth;           // H.265: pictures decoded ahead of one shown before them, by the last SPS
    int64_t first, last; // serials of the first packet since early_output_begin, and of the last
    bool h264;
    // H.264:
    bool fields;    // pictures came as fields: nothing is requested between two
    bool unasked;   // pictures of a reordered stream came unrequested
    bool recovered; // pictures since the last start are whole: libavcodec would not mark them
    int64_t whole;  // pictures of packets before this one are damaged
    struct stamps {
        int64_t last;
        int n, stalled; // recent ones that did not rise
    } pts, dts;         // of pictures in output order, and of packets
};

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
static void edit_sequence(struct early_output *early, const struct nal *sps)
{
    struct nal_bits begin, bits;
    if (!hevc_sps_find_reordering(sps, &begin))
        return;
    bits = begin;
    const uint32_t pictures = nal_ue(&bits), latency = nal_ue(&bits);
    if (pictures > 16 || latency == UINT32_MAX)
        return;
    const int left = ue_bits(pictures) + ue_bits(latency) - 1;
    const bool edits = pictures > 0 && left <= EDITED_BITS_MAX;
    early->depth = edits ? (int)pictures : 0;
    bits = begin;
    for (int i = -1; edits && i < left; i++)
        write_bit(&bits, (uint8_t *)sps->data, i < 0 || i >= left / 2);
}

// Parameter sets come before the picture.
static void edit_units(struct early_output *early, uint8_t *data, size_t size, int length_bytes)
{
    struct nal_reader units = {.data = data, .size = size, .length_bytes = length_bytes};
    for (struct nal unit; nal_next(&units, &unit);) {
        const int type = hevc_unit_type(&unit);
        if (type >= 0 && type <= HEVC_UNIT_RSV_VCL31)
            return;
        edit_sequence(early, &unit);
    }
}

// Edits units after start codes, or an HEVCDecoderConfigurationRecord, which has arrays of sets.
static void edit_extradata(struct early_output *early, uint8_t *data, size_t size)
{
    struct nal_reader sets = {data, size, 2, HVCC_ARRAYS + 1};
    struct nal unit;
    if (!data || hevc_length_bytes(data, size) == 0) {
        edit_units(early, data, data ? size : 0, 0);
        return;
    }
    for (int arrays = data[HVCC_ARRAYS]; arrays > 0 && sets.at + 3 < size; arrays--) {
        int n = data[sets.at + 1] << 8 | data[sets.at + 2];
        for (sets.at += 3; n > 0 && nal_next(&sets, &unit); n--)
            edit_sequence(early, &unit);
    }
}

// Returns the packet to send in place of this one, valid until the next call; NULL: no memory.
static const AVPacket *edited_packet(struct early_output *early, const AVPacket *packet,
                                     const struct packet_facts *facts)
{
    AVPacket *own = early->packet;
    size_t bytes;
    const bool changed = av_packet_get_side_data(packet, AV_PKT_DATA_NEW_EXTRADATA, NULL);
    if (early->h264 || (!changed && !facts->sequence))
        return packet;
    av_packet_unref(own);
    if (av_packet_ref(own, packet) < 0 || av_packet_make_writable(own) < 0)
        return NULL;
    uint8_t *extradata = av_packet_get_side_data(own, AV_PKT_DATA_NEW_EXTRADATA, &bytes);
    edit_extradata(early, extradata, bytes);
    edit_units(early, own->data, (size_t)own->size, early->length_bytes);
    return own;
}

// --- its life

void early_output_begin(struct early_output *early)
{
    output_order_begin(&early->order);
    early->recovered = !early->h264;
    early->pts = early->dts = (struct stamps){.last = AV_NOPTS_VALUE}; // below all
    early->first = early->last + 1;
    early->whole = 0;
    early->apart = true;
}

// Makes an end of sequence, after a start code or its length.
static int make_request(AVPacket *packet, int length_bytes)
{
    const int ahead = length_bytes > 0 ? length_bytes : 4;
    if (av_new_packet(packet, ahead + 1) < 0)
        return -ENOMEM;
    memset(packet->data, 0, (size_t)ahead);
    packet->data[ahead - 1] = 1;
    packet->data[ahead] = H264_UNIT_END_OF_SEQUENCE;
    return 0;
}

int early_output_open(struct early_output **ret, AVCodecContext *context)
{
    const bool h264 = context->codec_id == AV_CODEC_ID_H264;
    const size_t size = (size_t)context->extradata_size;
    if (!h264 && context->codec_id != AV_CODEC_ID_HEVC)
        return -ENOTSUP;
    struct early_output *early = calloc(1, sizeof *early);
    if (!early)
        return -ENOMEM;
    early->h264 = h264;
    early->length_bytes = h264 ? h264_length_bytes(context->extradata, size)
                               : hevc_length_bytes(context->extradata, size);
    early_output_begin(early);
    early->packet = av_packet_alloc();
    if (!early->packet || (h264 && make_request(early->packet, early->length_bytes) < 0)) {
        early_output_close(early);
        return -ENOMEM;
    }
    if (!h264)
        edit_extradata(early, context->extradata, size);
    *ret = early;
    return 0;
}

void early_output_close(struct early_output *early)
{
    if (!early)
        return;
    output_order_begin(&early->order);
    av_packet_free(&early->packet);
    free(early);
}

// --- from the packet to the picture

struct sent_packet { // the last one
    const AVPacket *packet;
    const struct packet_facts *facts;
    bool keyframes_only;
    bool found; // its picture came
};

// POC fell and time did not: the picture that began the sequence is missing.
static bool lost_start(const struct early_output *early, const struct sent_packet *sent)
{
    return output_order_is_behind(&early->order, sent->facts->poc) &&
           sent->packet->pts > early->pts.last;
}

// Keeps a picture at its place: by POC if it is the sent packet's, else behind all that libavcodec
// gave out before, in its own order.
static void keep_picture(struct early_output *early, const AVCodecContext *context, AVFrame *frame,
                         const struct sent_packet *sent)
{
    struct packet_facts place = {.serial = libav_serial(frame), .start = PICTURE_BEGINS_LOWEST};
    const bool placed = sent && place.serial == early->last && sent->facts->ordered;
    int depth = 0;
    if (placed) {
        place = *sent->facts;
        if (!place.in_order && !sent->keyframes_only)
            depth = context->has_b_frames;
        // With keyframes alone libavcodec counts POC without the pictures between them.
        if (place.start == PICTURE_CONTINUES &&
            (early->apart || sent->keyframes_only || lost_start(early, sent)))
            place.start = PICTURE_BEGINS;
    }
    early->apart = !placed;
    output_order_decoded(&early->order, &place, frame, depth);
}

// Keeps all pictures that the context gives out. `sent` NULL: it is at its end. Returns the number
// of pictures, or a negative AVERROR.
static int keep_output(struct early_output *early, AVCodecContext *context,
                       struct sent_packet *sent)
{
    for (int pictures = 0;; pictures++) {
        AVFrame *frame = av_frame_alloc();
        const int rc = frame ? avcodec_receive_frame(context, frame) : AVERROR(ENOMEM);
        if (rc < 0) {
            av_frame_free(&frame);
            return rc == AVERROR(EAGAIN) || rc == AVERROR_EOF ? pictures : rc;
        }
        const int64_t serial = libav_serial(frame);
        if (serial < early->whole)
            frame->flags |= AV_FRAME_FLAG_CORRUPT; // libavcodec marks only unrequested pictures
        else if (!(frame->flags & AV_FRAME_FLAG_CORRUPT))
            early->recovered = true;
        if (sent)
            sent->found |= serial == early->last;
        if (serial >= early->first)
            keep_picture(early, context, frame, sent);
        else
            av_frame_free(&frame);
    }
}

// Requests the pictures that H.264 holds, up to the sent packet's. libavcodec returns
// AVERROR_INVALIDDATA for an end of sequence after a single field.
static int request_held(struct early_output *early, AVCodecContext *context,
                        struct sent_packet *sent)
{
    int kept = early->h264;
    while (kept > 0 && !(sent && sent->found)) {
        const int rc = libav_send(context, early->packet, 0);
        kept = rc < 0 ? rc : keep_output(early, context, sent);
    }
    return kept < 0 && kept != AVERROR_INVALIDDATA ? kept : 0;
}

// Requests what is held before a picture that begins a stream. libavcodec drops pictures with a POC
// below one that it gave out unrequested. It forgets that POC if an IDR picture comes alone and
// with has_b_frames 0, unless the SPS announces reordering, and if it is flushed.
static int send_packet(struct early_output *early, AVCodecContext *context,
                       struct sent_packet *sent)
{
    const bool idr = early->h264 && sent->facts->start == PICTURE_BEGINS_LOWEST;
    const bool resets = idr && !early->fields;
    const int reordered = context->has_b_frames;
    // With keyframes alone, no picture follows that could refer to one before an exact recovery
    // point.
    const bool begins =
        !early->recovered && (idr || (sent->keyframes_only && sent->facts->recovery == 0));
    if (begins)
        early->whole = early->last;
    int rc = resets ? request_held(early, context, sent) : 0;
    if (rc < 0)
        return rc;
    if (resets && early->unasked)
        avcodec_flush_buffers(context);
    // Without reordering nothing need come unrequested either: an IDR picture may be lost.
    const bool ordered = sent->facts->in_order;
    if (resets || (ordered && early->recovered && !early->fields))
        context->has_b_frames = resets ? 0 : bounds_max(reordered, 1);
    rc = libav_send(context, sent->packet, early->last);
    const bool reorders = context->has_b_frames > 0;
    context->has_b_frames =
        ordered ? reordered : bounds_max(context->has_b_frames, resets ? reordered : early->depth);
    early->recovered |= begins && rc >= 0;
    int kept = keep_output(early, context, sent);
    early->unasked = (early->unasked && !resets) || (kept > 0 && reorders);
    if (kept >= 0 && early->recovered && !early->fields)
        kept = request_held(early, context, sent);
    return rc < 0 ? rc : bounds_min(kept, 0);
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

int early_output_send(struct early_output *early, AVCodecContext *context, const AVPacket *packet,
                      const struct packet_facts *facts, bool keyframes_only)
{
    struct sent_packet sent = {edited_packet(early, packet, facts), facts, keyframes_only, false};
    if (!sent.packet)
        return AVERROR(ENOMEM);
    early->last = facts->serial;
    early->fields |= facts->field && !facts->broken;
    count_stamp(&early->dts, packet->dts);
    return send_packet(early, context, &sent);
}

int early_output_end(struct early_output *early, AVCodecContext *context, bool drains)
{
    if (!early->recovered)
        early->whole = early->last + 1;
    int rc = request_held(early, context, NULL);
    if (rc >= 0 && drains)
        rc = libav_send(context, NULL, 0);
    if (rc >= 0)
        rc = keep_output(early, context, NULL);
    early->order.ended = true;
    return bounds_min(rc, 0);
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

bool early_output_next(struct early_output *early, AVFrame *frame)
{
    AVFrame *next = output_order_next(&early->order);
    av_frame_unref(frame);
    if (!next)
        return false;
    av_frame_move_ref(frame, next);
    av_frame_free(&next);
    if (!(frame->flags & AV_FRAME_FLAG_DISCARD))
        choose_stamp(early, frame);
    return true;
}
