#include "daemon/camera/stream.h"

#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/number.h"
#include "daemon/source/demux.h"
#include "daemon/wire.h"

// --- the delay

static const int64_t WINDOW_NS = 10 * INT64_C(1000000000);
static const int64_t PAUSE_NS = 1000000000; // most that a pause adds to a window's age
static const int64_t GAIN_NS = 300000000;   // least gain in a window while catching up

static const int64_t BLOCK_NS = 300000000, AGREE_NS = 10000000;
enum {
    BLOCK_PICTURES = 3,
    WAITED_SHARE = 3, // the input keeps up if it waited for 1 picture in 3
};

static void begin_window(struct delay *delay, int64_t distance)
{
    delay->first_ns = delay->window_ns = distance;
    delay->window_age_ns = 0;
}

// A camera that is behind and does not catch up in a whole window has another clock, or stopped it:
// clocks drift apart, and a paused stream resumes where it was.
static void end_window(struct delay *delay, int64_t distance)
{
    if (delay->first_ns - delay->window_ns <= GAIN_NS)
        delay->least_ns = bounds_max(delay->least_ns, delay->window_ns);
    begin_window(delay, distance);
}

// Returns how much the distance grew over all blocks; 0: not steadily.
static int64_t steady_growth(const struct delay *delay)
{
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (int i = 1; i < DELAY_BLOCKS; i++) {
        const int64_t growth = delay->leasts[i] - delay->leasts[i - 1];
        least = bounds_min(least, growth);
        most = bounds_max(most, growth);
    }
    const bool steady = delay->n_leasts == DELAY_BLOCKS && least > 0 &&
                        most - least <= bounds_max(AGREE_NS, (least + most) / 8);
    return steady ? delay->leasts[DELAY_BLOCKS - 1] - delay->leasts[0] : 0;
}

// Pictures that are ready when read are late: this machine is too busy.
static void end_block(struct delay *delay)
{
    const bool waited = WAITED_SHARE * delay->waited >= delay->pictures;
    const int64_t before_ns = delay->leasts[DELAY_BLOCKS - 1];
    memmove(delay->leasts, delay->leasts + 1, sizeof delay->leasts - sizeof *delay->leasts);
    delay->leasts[DELAY_BLOCKS - 1] = delay->block_least_ns;
    delay->n_leasts = waited ? (int)bounds_min(delay->n_leasts + 1, DELAY_BLOCKS) : 0;
    const int64_t growth_ns = steady_growth(delay);
    if (growth_ns)
        delay->least_ns += delay->drifts ? delay->block_least_ns - before_ns : growth_ns;
    delay->drifts = growth_ns != 0;
    delay->pictures = delay->waited = 0;
}

static void note_distance(struct delay *delay, int64_t distance, bool waited, int64_t came_ns)
{
    if (delay->pictures == 0) {
        delay->block_ns = came_ns;
        delay->block_least_ns = distance;
    }
    delay->pictures++;
    delay->waited += waited;
    delay->block_least_ns = bounds_min(delay->block_least_ns, distance);
    if (came_ns - delay->block_ns >= BLOCK_NS && delay->pictures >= BLOCK_PICTURES)
        end_block(delay);
}

int64_t delay_read(struct delay *delay, int64_t pts_ns, bool waited, int64_t came_ns)
{
    int64_t distance = (int64_t)((uint64_t)came_ns - (uint64_t)pts_ns);
    if (!delay->begun) {
        *delay = (struct delay){.begun = true, .least_ns = distance, .came_ns = came_ns};
        begin_window(delay, distance);
    }
    delay->window_age_ns += bounds_min(came_ns - delay->came_ns, PAUSE_NS);
    note_distance(delay, distance, waited, came_ns);
    delay->came_ns = came_ns;
    delay->least_ns = bounds_min(delay->least_ns, distance);
    delay->window_ns = bounds_min(delay->window_ns, distance);
    if (delay->window_age_ns >= WINDOW_NS)
        end_window(delay, distance);
    return distance - delay->least_ns;
}

// --- capture times

// Smaller steps back are held until the clock catches up: a frame period at the first sender
// report, or a correction of the camera's clock.
static const int64_t BACK_MAX_NS = 10 * INT64_C(1000000000);
// A camera's clock drifts by less between two reports.
static const int64_t STEP_NS = INT64_C(500000000);
// Cameras send a report about every 5 s. One that set its clock too is trusted after this time.
static const int64_t DOUBT_NS = 30 * INT64_C(1000000000);

void capture_time_doubt(struct capture_time *time, const struct frame_info *info)
{
    time->doubted_until_ns = info->received_ns + DOUBT_NS;
}

// Continues from the last picture by the time of arrival while the report's time is far off.
static void replace_doubted(struct capture_time *time, struct frame_info *info)
{
    const int64_t expected_ns =
        time->last.capture_ns + (info->received_ns - time->last.received_ns);
    const int64_t off_ns = info->capture_ns - expected_ns;
    if (info->received_ns >= time->doubted_until_ns || (off_ns <= STEP_NS && off_ns >= -STEP_NS)) {
        time->doubted_until_ns = 0;
        return;
    }
    info->capture_ns = expected_ns;
    info->flags &= ~(uint32_t)FRAMED_FLAG_CAPTURE_CLOCK;
}

bool capture_time_jumps(const struct capture_time *time, const struct frame_info *info)
{
    if (!time->begun || time->doubted_until_ns)
        return false;
    const int64_t since_ns = info->capture_ns - time->last.capture_ns;
    const int64_t step_ns = since_ns - (info->pts_ns - time->last.pts_ns);
    const bool by_clock = time->last.flags & info->flags & FRAMED_FLAG_CAPTURE_CLOCK;
    return since_ns < -BACK_MAX_NS || (by_clock && (step_ns > STEP_NS || step_ns < -STEP_NS));
}

void capture_time_rise(struct capture_time *time, struct frame_info *info)
{
    if (time->begun && time->doubted_until_ns)
        replace_doubted(time, info);
    if (time->begun && time->last.epoch == info->epoch &&
        info->capture_ns <= time->last.capture_ns) {
        info->capture_ns = time->last.capture_ns + 1;
        info->flags &= ~(uint32_t)FRAMED_FLAG_CAPTURE_CLOCK;
    }
    time->begun = true;
    time->last = *info;
}

// --- the stream

static const int64_t JUMP_NS = 10 * INT64_C(1000000000); // between two pictures of a file: a cut
// Ahead of a live picture's arrival: its clock was set.
static const int64_t AHEAD_NS = INT64_C(1000000000);

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
    const struct frame_info *last = &stream->capture_time.last;
    const int64_t since_ns = info->pts_ns - last->pts_ns;
    const int64_t arrived_ns = info->received_ns - last->received_ns;
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
    stream->epoch += change == STREAM_BEGINS    ? stream->capture_time.begun
                     : change == STREAM_RESIZED ? true
                                                : is_discontinuous(stream, info, is_live) || turned;
    frame->image.orientation =
        orientation < 0 ? ORIENTATION_UPRIGHT : (enum orientation)orientation;
    info->epoch = stream->epoch;
    capture_time_rise(&stream->capture_time, info);
    // The time of decoding: pictures do not arrive in the order of their timestamps.
    info->delay_ns =
        is_live ? delay_read(&stream->delay, info->pts_ns, info->waited, info->decoded_ns) : 0;
    stream->has_picture = true;
    stream->width = width;
    stream->height = height;
    stream->orientation = orientation;
    return change;
}
