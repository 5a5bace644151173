#include "daemon/camera/stream.h"

#include "daemon/base/log.h"
#include "daemon/input/demux.h"

static const int64_t JUMP_NS = 10 * INT64_C(1000000000); // between two pictures of a file: a cut
static const int64_t AHEAD_NS =
    INT64_C(1000000000); // of a live picture's arrival: its clock was set

void stream_connect(struct stream *stream)
{
    stream->width = stream->height = 0;
    stream->has_picture = false;
    stream->delay = (struct delay){0};
}

// The end and the start of a file do not belong together.
void stream_rewind(struct stream *stream)
{
    stream->has_picture = false;
    stream->epoch++;
}

static bool any_keeps_orientation(const struct subscriptions *subscriptions)
{
    for (int i = 0; i < subscriptions->n; i++)
        if (subscriptions->list[i].op.kind == OP_YUV && !subscriptions->list[i].op.yuv.resized)
            return true;
    return false;
}

static void log_orientation(int orientation, const struct subscriptions *subscriptions)
{
    if (orientation < 0)
        log_event(LOG_LEVEL_WARNING, "the stream says that its pictures are to be turned by other "
                                     "than 90, 180 or 270 degrees: they stay as coded");
    else
        log_event(LOG_LEVEL_INFO, "pictures are %s, as the stream says%s",
                  orientation_name((enum orientation)orientation),
                  any_keeps_orientation(subscriptions)
                      ? "; in yuv outputs without a geometry they stay as coded"
                      : "");
}

// The first picture of a connection, or of another size, begins another stream.
static void follow_signal(struct stream *stream, struct frame *frame, bool begins)
{
    struct video_signal *signal = &stream->signal;
    const struct video_signal before = *signal;
    video_signal_follow(signal, &frame->info, begins);
    if (signal->field_order != before.field_order)
        log_event(signal->field_order == FIELDS_NONE ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "%s",
                  video_signal_explain_fields(signal));
    if (signal->hdr != before.hdr)
        log_event(signal->hdr ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "%s",
                  video_signal_explain_hdr(signal));
}

// True if time goes back, or so far ahead that pictures between are missing or the clock was set.
// Live pictures may be late, but not early; some cameras send one a minute.
static bool time_jumps(const struct stream *stream, const struct frame_info *info, bool is_live)
{
    const int64_t since_ns = info->pts_ns - stream->last_pts_ns;
    const int64_t arrived_ns = info->received_ns - stream->last_received_ns;
    return stream->has_picture &&
           (since_ns < 0 || (is_live ? since_ns - arrived_ns > AHEAD_NS : since_ns > JUMP_NS));
}

// True if the picture begins an epoch although it continues a stream of the same size.
static bool is_discontinuous(struct stream *stream, const struct frame_info *info, bool is_live)
{
    if (time_jumps(stream, info, is_live)) {
        log_event(LOG_LEVEL_INFO, "the stream's time jumped");
        stream->delay = (struct delay){0};
        capture_time_doubt(&stream->capture_time, info);
        return true;
    }
    if (capture_time_jumps(&stream->capture_time, info)) {
        log_event(LOG_LEVEL_INFO, "the clock that the capture times are by was set");
        return true;
    }
    return false;
}

enum stream_change stream_picture(struct stream *stream, struct frame *frame, int orientation,
                                  bool is_live, const struct subscriptions *subscriptions)
{
    struct frame_info *info = &frame->info;
    const int width = frame->image.width, height = frame->image.height;
    const bool turned = orientation != stream->orientation;
    const enum stream_change change = stream->width == 0 ? STREAM_BEGINS
                                      : stream->width == width && stream->height == height
                                          ? STREAM_CONTINUES
                                          : STREAM_RESIZED;

    follow_signal(stream, frame, change != STREAM_CONTINUES);
    if (turned)
        log_orientation(orientation, subscriptions);
    if (change == STREAM_RESIZED)
        log_event(LOG_LEVEL_INFO, "picture size changed from %dx%d to %dx%d", stream->width,
                  stream->height, width, height);
    stream->epoch += change == STREAM_BEGINS    ? stream->begun
                     : change == STREAM_RESIZED ? true
                                                : is_discontinuous(stream, info, is_live) || turned;
    frame->image.orientation =
        orientation < 0 ? ORIENTATION_UPRIGHT : (enum orientation)orientation;
    info->epoch = stream->epoch;
    capture_time_rise(&stream->capture_time, info);
    // The time of decoding: pictures do not arrive in the order of their timestamps.
    info->delay_ns =
        is_live ? delay_read(&stream->delay, info->pts_ns, info->waited, info->decoded_ns) : 0;
    stream->begun = stream->has_picture = true;
    stream->width = width;
    stream->height = height;
    stream->orientation = orientation;
    stream->last_pts_ns = info->pts_ns;
    stream->last_received_ns = info->received_ns;
    return change;
}
