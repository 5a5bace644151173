#include "daemon/base/last_error.h"

#include "daemon/base/clock.h"
#include "daemon/base/log.h"

void last_error_set(struct last_error *complaint, const char *text)
{
    log_scrub(complaint->text, sizeof complaint->text, text);
    complaint->ns = monotonic_ns();
}
