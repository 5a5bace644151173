#include "daemon/decode/hardware_use.h"

#include <errno.h>
#include <stdio.h>

#include "daemon/decode/hardware.h"
#include "daemon/decode/hardware_codec.h"

static const int64_t MINUTE_NS = INT64_C(60000000000);

static void say_hang(const struct decode_options *options, const struct decoder_choice *choice,
                     const char *what, const char *why, char said[HARDWARE_SAID_MAX])
{
    char name[HARDWARE_NAME_MAX];
    const int64_t ban_ns = hardware_hangs(options->hardware, choice, why);
    const int used = snprintf(said, HARDWARE_SAID_MAX, "%s %s (%s): decoding on the cpu",
                              hardware_name(choice, name), what, why);
    if (ban_ns > 0 && used < HARDWARE_SAID_MAX)
        snprintf(said + used, (size_t)(HARDWARE_SAID_MAX - used),
                 "; no camera opens it for %d minutes", (int)(ban_ns / MINUTE_NS));
}

struct decoder_choice hardware_use_choose(const struct decode_options *options, enum AVCodecID id)
{
    struct decoder_choice choice = options->decode;
    if (choice.by == DECODE_AUTO && hardware_choose(options->hardware, id, &choice))
        return choice;
    if (choice.by != DECODE_HARDWARE)
        choice.by = DECODE_CPU;
    return choice;
}

int hardware_use_open(struct codec *codec, const AVCodecParameters *parameters,
                      const struct decode_options *options, const struct decoder_choice *choice,
                      struct buffers *buffers, struct pictures *pictures,
                      char said[HARDWARE_SAID_MAX])
{
    char name[HARDWARE_NAME_MAX], why[128] = "";
    const enum AVCodecID id = parameters->codec_id;
    said[0] = 0;
    if (hardware_banned_ns(options->hardware, choice) > 0)
        return -ENODEV;
    const int rc =
        codec_open_hardware(codec, parameters, options, choice, buffers, pictures, why, sizeof why);
    if (rc == -ETIMEDOUT) {
        say_hang(options, choice, "cannot be opened", why, said);
        return rc;
    }
    if ((rc == 0 && !hardware_differs(options->hardware, choice, id)) ||
        !hardware_is_news(options->hardware, choice, id))
        return rc;
    hardware_name(choice, name);
    if (rc == 0)
        snprintf(said, HARDWARE_SAID_MAX,
                 "%s gave other pictures than the cpu when framed verify ran", name);
    else if (rc == -ENOTSUP)
        snprintf(said, HARDWARE_SAID_MAX,
                 "%s does not decode %s with this libavcodec: decoding on the cpu", name,
                 avcodec_get_name(id));
    else
        snprintf(said, HARDWARE_SAID_MAX, "%s cannot be opened (%.64s): decoding on the cpu", name,
                 why);
    return rc;
}

void hardware_use_failed(const struct codec *codec, const struct decode_options *options,
                         const struct decoder_choice *choice, int error,
                         char said[HARDWARE_SAID_MAX])
{
    char name[HARDWARE_NAME_MAX];
    if (hardware_codec_hangs(codec->hardware))
        say_hang(options, choice, "failed", "its driver does not come back", said);
    else
        snprintf(said, HARDWARE_SAID_MAX, "%s failed (%s): decoding on the cpu",
                 hardware_name(choice, name),
                 error == AVERROR(ETIMEDOUT) ? "it gives no pictures" : av_err2str(error));
}

void hardware_use_hangs(const struct decode_options *options, const struct decoder_choice *choice,
                        char said[HARDWARE_SAID_MAX])
{
    say_hang(options, choice, "still fails", "its driver does not come back", said);
}

void hardware_use_again(const struct decoder_choice *choice, char said[HARDWARE_SAID_MAX])
{
    char name[HARDWARE_NAME_MAX];
    snprintf(said, HARDWARE_SAID_MAX, "%s works again: decoding by it",
             hardware_name(choice, name));
}
