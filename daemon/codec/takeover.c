#include "daemon/codec/takeover.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/codec/buffers.h"
#include "daemon/codec/hardware.h"
#include "daemon/codec/hardware_record.h"
#include "daemon/codec/picture.h"

int takeover_open(struct takeover *t, const AVCodecParameters *parameters,
                  const struct decode_options *options)
{
    t->options = *options;
    packet_history_begin(&t->history);
    corruption_begin(&t->corruption, options->damaged);
    const struct memory_share share = {options->memory, options->planned, options->threads,
                                       options->in_flight};
    if (buffers_open(&t->buffers, &share) < 0 || pictures_open(&t->pictures, t->buffers) < 0 ||
        !(t->parameters = avcodec_parameters_alloc()) ||
        avcodec_parameters_copy(t->parameters, parameters) < 0)
        return -ENOMEM;
    return 0;
}

void takeover_close(struct takeover *t)
{
    codec_close(&t->codec);
    nvdec_turn_end(&t->turn);
    packet_history_finish(&t->history);
    avcodec_parameters_free(&t->parameters);
    pictures_close(t->pictures);
    buffers_close(t->buffers);
}

// --- notices

void takeover_say(struct takeover *t, const char *text)
{
    size_t at = t->notice_is_new ? strlen(t->notice) : 0;
    snprintf(t->notice + at, sizeof(t->notice) - at, "%s%s", at ? "; " : "", text);
    t->notice_is_new = true;
}

static void count_fallback(struct takeover *t, enum fallback why)
{
    t->fallbacks++;
    t->last_fallback = why;
}

static bool uses_hardware(const struct takeover *t)
{
    return t->hardware && !t->hardware_failed;
}

// Logs once, until a connection has ended with the hardware at work: each connection tries it.
static void say_hardware(struct takeover *t, const char *text)
{
    if (!t->hardware_told)
        takeover_say(t, text);
    t->hardware_told = true;
}

static void notice_hardware(struct takeover *t, const char *what, const char *why)
{
    char text[256], name[HARDWARE_NAME_MAX];
    snprintf(text, sizeof text, "%s %s (%s): decoding on the cpu", hardware_name(t->hardware, name),
             what, why);
    say_hardware(t, text);
}

static void notice_refusal(struct takeover *t)
{
    char text[160];
    const bool hardware = uses_hardware(t);
    const char *profile = avcodec_profile_name(t->parameters->codec_id, t->parameters->profile);
    snprintf(text, sizeof text, "%s%s%s is not decoded by %s here: decoding on the cpu",
             avcodec_get_name(t->parameters->codec_id), profile ? " " : "", profile ? profile : "",
             hardware ? t->hardware->name : "NVDEC");
    if (t->options.decode.by != DECODE_AUTO) // auto may well meet a stream that is not supported
        count_fallback(t, FALLBACK_REFUSED);
    (hardware ? say_hardware : takeover_say)(t, text);
    if (hardware)
        t->hardware = NULL; // no other connection changes that
}

static void notice_hashes(struct takeover *t)
{
    if (t->options.check_hashes && t->parameters->codec_id == AV_CODEC_ID_HEVC && !t->hashes_told) {
        takeover_say(t, "check_hashes compares no pictures that hardware decodes");
        t->hashes_told = true;
    }
}

// --- which codec

// Packets are useless before the next keyframe: a device fails if a picture refers to others that
// it never had.
static void await_keyframe(struct takeover *t)
{
    t->awaiting = true;
    t->awaited = 0;
}

bool takeover_keeps_packets(const struct takeover *t)
{
    return t->device || uses_hardware(t);
}

static int open_on(struct takeover *t, struct decode_device *device)
{
    int rc = codec_open(&t->codec, t->parameters, &t->options, device, t->buffers, t->pictures);
    t->unopened = device && t->options.low_delay;
    if (rc == 0)
        snprintf(t->description, sizeof(t->description), "%s %s", device ? "nvdec" : "cpu",
                 avcodec_get_name(t->parameters->codec_id));
    return rc;
}

// Chooses the hardware named in the options, or verified for the stream if `auto` has no NVDEC.
static void choose_hardware(struct takeover *t)
{
    const enum decode by = t->options.decode.by;
    const struct hardware_result *verified = NULL;
    if (by == DECODE_AUTO && !t->device)
        verified = hardware_record_choose(t->options.verified, t->parameters);
    t->hardware = by == DECODE_HARDWARE ? &t->options.decode : verified ? &verified->decoder : NULL;
    t->driver = verified ? verified->driver : NULL;
}

static int open_on_hardware(struct takeover *t)
{
    char why[128] = "";
    int rc = codec_open_hardware(&t->codec, t->parameters, &t->options, t->hardware, t->buffers,
                                 t->pictures, why, sizeof why);
    if (rc == 0 && t->driver && strcmp(t->driver, hardware_driver(t->codec.hardware)) != 0) {
        codec_close(&t->codec);
        rc = -ESTALE;
        snprintf(why, sizeof why, "framed verify found another driver");
    }
    if (rc < 0) {
        notice_hardware(t, rc == -ESTALE ? "is not used" : "cannot be opened", why);
        count_fallback(t, rc == -ETIMEDOUT ? FALLBACK_FAILED : FALLBACK_NOT_OPENED);
        if (rc == -ESTALE || rc == -ENOTSUP) // no other connection changes that
            t->hardware = NULL;
    } else {
        snprintf(t->description, sizeof t->description, "%s %s", t->hardware->name,
                 avcodec_get_name(t->parameters->codec_id));
    }
    return rc;
}

// A stream need not signal how far its pictures are reordered. A codec learns it from pictures that
// come too late to give out, and the next codec gets it at once.
static void end_codec(struct takeover *t, void (*end)(struct codec *))
{
    AVCodecContext *context = t->codec.context;
    if (context && context->has_b_frames > t->parameters->video_delay)
        t->parameters->video_delay = context->has_b_frames;
    t->held_up_ns += t->codec.nvdec.held_up_ns;
    end(&t->codec);
}

static void close_codec(struct takeover *t)
{
    end_codec(t, codec_close);
}

bool takeover_waits_for_turn(struct takeover *t)
{
    if (!t->unopened || t->flushing || packet_history_is_full(&t->history))
        return false;
    const bool waits = !nvdec_turn_came(&t->turn, t->device);
    if (waits && t->waiting_since_ns == 0)
        t->waiting_since_ns = monotonic_ns();
    return waits;
}

void takeover_end_turn(struct takeover *t)
{
    if (t->waiting_since_ns)
        t->held_up_ns += monotonic_ns() - t->waiting_since_ns;
    t->waiting_since_ns = 0;
    t->unopened = false;
    nvdec_turn_end(&t->turn);
}

int64_t takeover_held_up_ns(struct takeover *t)
{
    int64_t held_up_ns = t->held_up_ns + t->codec.nvdec.held_up_ns;
    t->held_up_ns = t->codec.nvdec.held_up_ns = 0;
    return held_up_ns;
}

static void leave_device(struct takeover *t)
{
    t->device = NULL;
    t->hardware_failed = true;
}

// Opens the codec that decodes from now on; the kept packets will be replayed to it.
static int open_codec(struct takeover *t)
{
    int rc = -ENODEV;
    if (uses_hardware(t))
        rc = open_on_hardware(t);
    else if (t->device && (rc = open_on(t, t->device)) < 0)
        notice_refusal(t);
    if (rc < 0) {
        leave_device(t);
        rc = open_on(t, NULL);
    } else {
        buffers_trim(t->buffers);
    }
    if (codec_on_device(&t->codec))
        notice_hashes(t);
    t->error = rc;
    return rc;
}

// The next codec gives out what this one has not: it begins with the kept packets. Pictures of
// earlier packets are lost.
static void give_up_codec(struct takeover *t, void (*end)(struct codec *))
{
    const AVCodecContext *context = t->codec.context;        // NULL: it could not be opened
    int reach = context ? 4 * context->has_b_frames + 2 : 0; // packets whose pictures it may hold
    bool begun = t->history.serial >= t->history.first;
    end_codec(t, end);
    if (!t->history.whole && begun) {
        t->lost += packet_history_missing(&t->history, reach);
        corruption_begin(&t->corruption, t->options.damaged);
    }
    t->awaiting = false;
    if (begun && !packet_history_keeps(&t->history))
        await_keyframe(t);
    packet_history_rewind(&t->history);
}

static void note_failure(struct takeover *t, int error)
{
    char text[128];
    if (t->codec.hardware) {
        hardware_why(t->codec.hardware, error, text, sizeof text);
        notice_hardware(t, "failed", text);
    } else {
        snprintf(text, sizeof text, "NVDEC failed (%s): decoding on the cpu", av_err2str(error));
        takeover_say(t, text);
    }
    count_fallback(t, FALLBACK_FAILED);
}

int takeover_fall_back(struct takeover *t, int error)
{
    if (t->codec.nvdec.refused || (t->codec.hardware && error == AVERROR(ENOSYS)))
        notice_refusal(t);
    else
        note_failure(t, error);
    leave_device(t);
    give_up_codec(t, codec_close);
    return open_codec(t);
}

// A live camera from a failed device shows pictures at once: the cpu decodes until NVDEC takes
// over, which opens the decoders of all these cameras one after another.
static bool bridges(const struct takeover *t)
{
    return t->device && t->shown > 0 && t->options.low_delay && t->options.decode.by == DECODE_AUTO;
}

int takeover_join(struct takeover *t, const struct decode_target *target)
{
    const enum decode by = t->options.decode.by;
    if (by == DECODE_NVDEC && !target->device && !t->joined)
        return -ENODEV;
    t->device = by == DECODE_AUTO || by == DECODE_NVDEC ? target->device : NULL;
    if (!t->joined)
        choose_hardware(t);
    if (uses_hardware(t)) // it belongs to no lease and stays until it fails
        t->device = NULL;
    t->joined = true;
    if (t->device && !t->device->find(t->parameters->codec_id)) {
        notice_refusal(t);
        t->device = NULL;
    }
    t->keep_on_device = target->driver->takes_cuda;
    buffers_join(t->buffers, target->driver, target->backend);
    if (!takeover_keeps_packets(t) && t->codec.context && !packet_history_replays(&t->history))
        packet_history_drop(&t->history);
    bool begun = t->history.serial >= t->history.first;
    if (t->codec.context && (begun || !t->device || t->codec.hardware))
        return 0;
    close_codec(t);
    int rc = bridges(t) ? open_on(t, NULL) : -ENOTSUP;
    if (rc < 0)
        rc = open_codec(t);
    if (rc == 0 && !begun && codec_on_device(&t->codec))
        await_keyframe(t);
    return rc;
}

void takeover_leave(struct takeover *t)
{
    takeover_end_turn(t);
    if (codec_on_nvdec(&t->codec))
        give_up_codec(t, codec_abandon);
    pictures_reap(t->pictures);
    buffers_leave(t->buffers);
    t->device = NULL;
}

void takeover_restart(struct takeover *t)
{
    if (t->codec.hardware)
        t->hardware_told = false;
    if (!t->device)
        t->hardware_failed = false;
    if (takeover_keeps_packets(t) && t->codec.context && !codec_on_device(&t->codec)) {
        close_codec(t);
        open_codec(t); // on failure decoder_send returns the error
    }
    if (codec_on_device(&t->codec))
        await_keyframe(t);
}

// True if the cpu has given out all pictures ahead of NVDEC's first.
static bool can_take_over(struct takeover *t)
{
    return t->device && !codec_on_device(&t->codec) && t->history.whole &&
           (!t->options.low_delay || nvdec_turn_came(&t->turn, t->device));
}

int takeover_begin(struct takeover *t)
{
    if (!can_take_over(t))
        return 0;
    give_up_codec(t, codec_close);
    return open_codec(t);
}
