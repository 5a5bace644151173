#include "daemon/decode/early_output.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <stdlib.h>

#include "daemon/decode/output_order.h"
#include "daemon/decode/picture_place.h"
#include "daemon/input/libav_version.h"

enum {
    STAMPS = 64, // over so many their stalls are counted
    STALLED_MAX = 3,
};

// Frames that libavcodec asked memory for while it had one packet. In H.264 the last one is the
// picture, those before stand in for numbers that are missing; in H.265 the first one is.
struct handed {
    struct handed_frame {
        AVFrame *frame;         // libavcodec's own: it stays until the context is closed
        const AVBuffer *buffer; // that it got
    } first, last_but_one, last;
    int n;
};

struct stamps {
    int64_t last;
    int n, stalled; // that did not rise, of late
};

struct early_output {
    bool h264;
    struct picture_place_reader *reader;
    struct output_order order;
    struct handed handed;
    // Pictures since H.264's last start are whole: libavcodec would not mark them as corrupt.
    bool recovered;
    int last_poc;        // of the packet before
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
    picture_place_close(early->reader);
    free(early);
}

void early_output_begin(struct early_output *early)
{
    give_up_taken(early);
    output_order_begin(&early->order);
    early->handed.n = early->lates = 0;
    early->recovered = !early->h264;
    early->highest_pts = AV_NOPTS_VALUE;
    early->pts = early->dts = (struct stamps){.last = AV_NOPTS_VALUE};
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

// What comes out then is another frame: the noise is put on a copy.
static bool has_film_grain(const struct handed_frame *handed)
{
    return av_frame_get_side_data(handed->frame, AV_FRAME_DATA_FILM_GRAIN_PARAMS);
}

// libavcodec forgets a crop that leaves nothing, when it gives the picture out.
static bool is_cropped_away(const AVFrame *frame)
{
    return frame->crop_left + frame->crop_right >= (size_t)frame->width ||
           frame->crop_top + frame->crop_bottom >= (size_t)frame->height;
}

// The frame that the packet's picture lies in; NULL: it is not to be had.
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

// Keeps a reference to the decoded picture until its turn in output order; pictures that are not
// awaited any more make room. Returns whether there was room.
static bool take(struct early_output *early, const AVFrame *decoded, int64_t serial,
                 bool recovery_point)
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
        return false;
    AVFrame *frame = early->taken[at].frame;
    if (av_frame_ref(frame, decoded) < 0)
        return false;
    if (recovery_point) // libavcodec says it when it gives the picture out
        libav_set_keyframe(frame, true);
    early->taken[at].serial = serial;
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

// POC went back, and time did not: the picture that began the sequence is missing.
static bool lost_start(const struct early_output *early, const struct order_picture *picture,
                       int64_t pts)
{
    return output_order_is_behind(&early->order, picture->poc) && pts > early->highest_pts;
}

void early_output_sent(struct early_output *early, const AVCodecContext *context,
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
            picture.taken = take(early, decoded, serial, early->h264 && place.recovery_point);
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

// --- from the picture to the output

// A packet's stamps may be of its picture, or only tell when it is to be decoded.
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
    if (early->h264)
        early->recovered = !(frame->flags & AV_FRAME_FLAG_CORRUPT);
    const enum order_verdict verdict = output_order_output(&early->order, serial);
    if (verdict == ORDER_SHOW) {
        choose_stamp(early, frame);
        return true;
    }
    if (verdict == ORDER_LATE && early->lates < OUTPUT_ORDER_PICTURES)
        early->late[early->lates++] = serial;
    av_frame_unref(frame);
    return false;
}

void early_output_end(struct early_output *early)
{
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
