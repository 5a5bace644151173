#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/service/control.h"

#define NAME "control.sock"

static int join(char *to, const char *folder, size_t length, const char *rest)
{
    int n = snprintf(to, SOCKET_PATH_MAX + 1, "%.*s%s", (int)length, folder, rest);
    return n > SOCKET_PATH_MAX ? -ENAMETOOLONG : 0;
}

// In a unit, uses the first of its runtime directories, a list with colons.
static int default_path(char *to)
{
    const char *unit = getenv("RUNTIME_DIRECTORY"), *own = getenv("XDG_RUNTIME_DIR");
    if (unit && *unit)
        return join(to, unit, strcspn(unit, ":"), "/" NAME);
    if (geteuid() != 0 && own && *own)
        return join(to, own, strlen(own), "/framed/" NAME);
    strcpy(to, CONTROL_SYSTEM_PATH);
    return 0;
}

int control_path(const struct control_address *control, char *to)
{
    if (control->off)
        return -ENOENT;
    if (control->at.kind == SINK_NONE)
        return default_path(to);
    strcpy(to, control->at.path); // at most SOCKET_PATH_MAX bytes
    return 0;
}
