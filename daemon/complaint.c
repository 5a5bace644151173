#include "daemon/complaint.h"

#include "daemon/frame.h"
#include "daemon/service/log.h"

void complaint_set(struct complaint *complaint, const char *text)
{
    log_scrub(complaint->text, sizeof complaint->text, text);
    complaint->ns = monotonic_ns();
}
