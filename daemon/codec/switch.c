#include "daemon/codec/switch.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/codec/buffers.h"
#include "daemon/codec/hardware.h"
#include "daemon/codec/hardware_record.h"
#include "daemon/codec/picture.h"

// --- notices

void switch_say(struct decoder *d, const char *format, ...)
{
    char text[sizeof d->notice];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const size_t at = d->notice_is_new ? strlen(d->notice) : 0;
    snprintf(d->notice + at, sizeof d->notice - at, "%s%s", at ? "; " : "", text);
    d->notice_is_new = true;
}

static bool uses_hardware(const struct decoder *d)
{
    return d->hardware && !d->hardware_failed;
}

// The cpu takes over. Failures of hardware are logged once, until a connection has ended with the
// hardware at work: each connection tries it.
__attribute__((format(printf, 3, 4))) static void fall_back(struct decoder *d, enum fallback why,
                                                            const char *format, ...)
{
    char text[256];
    va_list arguments;
    const bool hardware = uses_hardware(d);
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!hardware || !d->hardware_logged)
        switch_say(d, "%s: decoding on the cpu", text);
    d->hardware_logged |= hardware;
    if (why == FALLBACK_NONE)
        return;
    d->fallbacks++;
    d->last_fallback = why;
}

static void note_refusal(struct decoder *d)
{
    const bool hardware = uses_hardware(d);
    const char *profile = avcodec_profile_name(d->parameters->codec_id, d->parameters->profile);
    // Auto may well meet a stream that is not supported.
    fall_back(d, d->options.decode.by == DECODE_AUTO ? FALLBACK_NONE : FALLBACK_REFUSED,
              "%s%s%s is not decoded by %s here", avcodec_get_name(d->parameters->codec_id),
              profile ? " " : "", profile ? profile : "", hardware ? d->hardware->name : "NVDEC");
    if (hardware)
        d->hardware = NULL; // no other connection changes that
}

static void note_failure(struct decoder *d, int error)
{
    char why[128], name[HARDWARE_NAME_MAX];
    if (d->codec.hardware) {
        hardware_why(d->codec.hardware, error, why, sizeof why);
        fall_back(d, FALLBACK_FAILED, "%s failed (%s)", hardware_name(d->hardware, name), why);
    } else {
        fall_back(d, FALLBACK_FAILED, "NVDEC failed (%s)", av_err2str(error));
    }
}

// --- which codec

// Packets are useless before the next keyframe: a device fails if a picture refers to others that
// it never had.
static void await_keyframe(struct decoder *d)
{
    d->awaiting = true;
    d->awaited = 0;
}

bool switch_keeps_packets(const struct decoder *d)
{
    return d->device || uses_hardware(d);
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

// Chooses the hardware named in the options, or verified for the stream if `auto` has no NVDEC.
static void choose_hardware(struct decoder *d)
{
    const enum decode by = d->options.decode.by;
    const struct hardware_result *verified = NULL;
    if (by == DECODE_AUTO && !d->device)
        verified = hardware_record_choose(d->options.verified, d->parameters);
    d->hardware = by == DECODE_HARDWARE ? &d->options.decode : verified ? &verified->decoder : NULL;
    d->driver = verified ? verified->driver : NULL;
}

static int open_on_hardware(struct decoder *d)
{
    char why[128] = "", name[HARDWARE_NAME_MAX];
    int rc = codec_open_hardware(&d->codec, d->parameters, &d->options, d->hardware, d->buffers,
                                 d->pictures, why, sizeof why);
    if (rc == 0 && d->driver && strcmp(d->driver, hardware_driver(d->codec.hardware)) != 0) {
        codec_close(&d->codec);
        rc = -ESTALE;
        snprintf(why, sizeof why, "framed verify found another driver");
    }
    if (rc < 0) {
        fall_back(d, rc == -ETIMEDOUT ? FALLBACK_FAILED : FALLBACK_NOT_OPENED, "%s %s (%s)",
                  hardware_name(d->hardware, name),
                  rc == -ESTALE ? "is not used" : "cannot be opened", why);
        if (rc == -ESTALE || rc == -ENOTSUP) // no other connection changes that
            d->hardware = NULL;
    } else {
        snprintf(d->description, sizeof d->description, "%s %s", d->hardware->name,
                 avcodec_get_name(d->parameters->codec_id));
    }
    return rc;
}

// A stream need not signal how far its pictures are reordered. A codec learns it from pictures that
// come too late to give out, and the next codec gets it at once.
static void end_codec(struct decoder *d, void (*end)(struct codec *))
{
    AVCodecContext *context = d->codec.context;
    if (context && context->has_b_frames > d->parameters->video_delay)
        d->parameters->video_delay = context->has_b_frames;
    d->held_up_ns += d->codec.nvdec.held_up_ns;
    end(&d->codec);
}

bool switch_waits_for_turn(struct decoder *d)
{
    if (!d->unopened || d->flushing || packet_history_is_full(&d->history))
        return false;
    const bool waits = !nvdec_turn_came(&d->turn, d->device);
    if (waits && d->waiting_since_ns == 0)
        d->waiting_since_ns = monotonic_ns();
    return waits;
}

void switch_end_turn(struct decoder *d)
{
    if (d->waiting_since_ns)
        d->held_up_ns += monotonic_ns() - d->waiting_since_ns;
    d->waiting_since_ns = 0;
    d->unopened = false;
    nvdec_turn_end(&d->turn);
}

static void leave_device(struct decoder *d)
{
    d->device = NULL;
    d->hardware_failed = true;
}

// Opens the codec that decodes from now on; the kept packets will be replayed to it.
static int open_codec(struct decoder *d)
{
    int rc = -ENODEV;
    if (uses_hardware(d))
        rc = open_on_hardware(d);
    else if (d->device && (rc = open_on(d, d->device)) < 0)
        note_refusal(d);
    if (rc < 0) {
        leave_device(d);
        rc = open_on(d, NULL);
    } else {
        buffers_trim(d->buffers);
    }
    if (codec_on_device(&d->codec) && d->options.check_hashes && !d->hashes_logged &&
        d->parameters->codec_id == AV_CODEC_ID_HEVC) {
        switch_say(d, "check_hashes compares no pictures that hardware decodes");
        d->hashes_logged = true;
    }
    d->error = rc;
    return rc;
}

// The next codec gives out what this one has not: it begins with the kept packets. Pictures of
// earlier packets are lost.
static void give_up_codec(struct decoder *d, void (*end)(struct codec *))
{
    const int reach = 4 * d->codec.context->has_b_frames + 2; // packets whose pictures it may hold
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

int switch_to_cpu(struct decoder *d, int error)
{
    if (d->codec.nvdec.refused || (d->codec.hardware && error == AVERROR(ENOSYS)))
        note_refusal(d);
    else
        note_failure(d, error);
    leave_device(d);
    give_up_codec(d, codec_close);
    return open_codec(d);
}

int switch_join(struct decoder *d, const struct decode_target *target)
{
    const enum decode by = d->options.decode.by;
    if (by == DECODE_NVDEC && !target->device && !d->joined)
        return -ENODEV;
    d->device = by == DECODE_AUTO || by == DECODE_NVDEC ? target->device : NULL;
    if (!d->joined)
        choose_hardware(d);
    if (uses_hardware(d)) // it belongs to no lease and stays until it fails
        d->device = NULL;
    d->joined = true;
    if (d->device && !d->device->find(d->parameters->codec_id)) {
        note_refusal(d);
        d->device = NULL;
    }
    d->keep_on_device = target->driver->takes_cuda;
    buffers_join(d->buffers, target->driver, target->backend);
    if (!switch_keeps_packets(d) && d->codec.context && !packet_history_replays(&d->history))
        packet_history_drop(&d->history);
    bool begun = d->history.serial >= d->history.first;
    if (d->codec.context && (begun || !d->device || d->codec.hardware))
        return 0;
    end_codec(d, codec_close);
    // A live camera from a failed device shows pictures at once: the cpu decodes until NVDEC takes
    // over, which opens the decoders of all these cameras one after another.
    const bool bridges = d->device && d->shown > 0 && d->options.low_delay && by == DECODE_AUTO;
    int rc = bridges ? open_on(d, NULL) : -ENOTSUP;
    if (rc < 0)
        rc = open_codec(d);
    if (rc == 0 && !begun && codec_on_device(&d->codec))
        await_keyframe(d);
    return rc;
}

void switch_leave(struct decoder *d)
{
    switch_end_turn(d);
    if (codec_on_nvdec(&d->codec)) {
        give_up_codec(d, codec_abandon);
        d->error = -ENOTSUP; // there is no codec until switch_join
    }
    pictures_reap(d->pictures);
    buffers_leave(d->buffers);
    d->device = NULL;
}

void switch_restart(struct decoder *d)
{
    if (d->codec.hardware)
        d->hardware_logged = false;
    if (!d->device)
        d->hardware_failed = false;
    if (switch_keeps_packets(d) && d->codec.context && !codec_on_device(&d->codec)) {
        end_codec(d, codec_close);
        open_codec(d); // on failure sending a packet returns the error
    }
    if (codec_on_device(&d->codec))
        await_keyframe(d);
}

int switch_if_due(struct decoder *d)
{
    // The cpu must have given out all pictures ahead of NVDEC's first.
    if (!d->device || !d->codec.context || codec_on_device(&d->codec) || !d->history.whole ||
        (d->options.low_delay && !nvdec_turn_came(&d->turn, d->device)))
        return 0;
    give_up_codec(d, codec_close);
    return open_codec(d);
}
