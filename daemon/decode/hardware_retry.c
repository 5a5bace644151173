#include "daemon/decode/hardware_retry.h"

#include <errno.h>

#include "daemon/base/clock.h"
#include "daemon/decode/hardware.h"
#include "daemon/decode/hardware_trial.h"

static const int64_t PAUSE_NS = INT64_C(60000000000), PAUSE_MAX_NS = INT64_C(600000000000);

static void end_trial(struct hardware_retry *retry)
{
    hardware_trial_end(retry->trial);
    retry->trial = NULL;
}

// Hardware that has worked for the longest of the pauses begins with the shortest again.
void hardware_retry_later(struct hardware_retry *retry, const struct decoder_choice *choice)
{
    const int64_t now_ns = monotonic_ns();
    const bool worked = retry->worked_ns && now_ns - retry->worked_ns >= PAUSE_MAX_NS;
    const bool again = retry->pause_ns > 0 && !worked;
    const int64_t pause_ns = again ? 2 * retry->pause_ns : PAUSE_NS;
    end_trial(retry);
    retry->choice = *choice;
    retry->pause_ns = pause_ns < PAUSE_MAX_NS ? pause_ns : PAUSE_MAX_NS;
    retry->next_ns = now_ns + retry->pause_ns;
    retry->worked_ns = 0;
}

static bool is_over(const struct hardware_retry *retry)
{
    return retry->next_ns > 0 && monotonic_ns() >= retry->next_ns;
}

bool hardware_retry_is_due(const struct hardware_retry *retry, const struct decode_options *options)
{
    return is_over(retry) && hardware_banned_ns(options->hardware, &retry->choice) == 0;
}

static void start_trial(struct hardware_retry *retry, const AVCodecParameters *parameters,
                        const struct packet_history *history)
{
    retry->tried = history->kept;
    if (hardware_trial_start(&retry->trial, parameters, &retry->choice,
                             packet_history_oldest(history)) < 0)
        hardware_retry_later(retry, &retry->choice);
}

bool hardware_retry_succeeds(struct hardware_retry *retry, const struct decode_options *options,
                             const AVCodecParameters *parameters,
                             const struct packet_history *history, char said[HARDWARE_SAID_MAX])
{
    said[0] = 0;
    if (!is_over(retry))
        return false;
    if (hardware_banned_ns(options->hardware, &retry->choice) > 0) {
        end_trial(retry); // what it found is old when the ban is over
        return false;
    }
    if (!retry->trial) {
        if (history->whole)
            start_trial(retry, parameters, history);
        return false;
    }
    const int rc = hardware_trial_result(retry->trial);
    if (rc == -ETIMEDOUT)
        hardware_use_hangs(options, &retry->choice, said);
    if (rc < 0 && rc != -EAGAIN)
        hardware_retry_later(retry, &retry->choice);
    if (rc < 0 || !history->whole || history->kept <= retry->tried)
        return false;
    end_trial(retry);
    retry->next_ns = 0;
    retry->worked_ns = monotonic_ns();
    hardware_use_again(&retry->choice, said);
    return true;
}

void hardware_retry_end(struct hardware_retry *retry)
{
    end_trial(retry);
    *retry = (struct hardware_retry){0};
}
