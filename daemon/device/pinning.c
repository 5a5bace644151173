#include "daemon/device/pinning.h"

#include <stdio.h>

#include "kernels/processors.h"

char *pinning_left_out(const struct config *config)
{
    const struct pin *pin = &config->cpu.pin;
    const struct processors allowed = processors_allowed();
    const struct processors rest = processors_without(&pin->list, &allowed);
    char missing[PROCESSORS_TEXT], known[PROCESSORS_TEXT], *text;
    if (pin->how != PINNING_LIST || processors_count(&rest) == 0 || processors_count(&allowed) == 0)
        return NULL;
    const int n =
        asprintf(&text, "cpu.pin: this process may not use %s, which is left out (only %s)",
                 processors_text(&rest, missing), processors_text(&allowed, known));
    return n < 0 ? NULL : text;
}
