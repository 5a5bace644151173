#include "daemon/descriptors.h"

#include <fcntl.h>

static bool inherited[DESCRIPTORS_MAX]; // written before there are threads

void descriptors_record(void)
{
    for (int fd = 0; fd < DESCRIPTORS_MAX; fd++) {
        const int flags = fcntl(fd, F_GETFL);
        inherited[fd] = flags >= 0 && (flags & O_ACCMODE) != O_WRONLY;
    }
}

bool descriptors_inherited(int fd)
{
    return fd >= 0 && fd < DESCRIPTORS_MAX && inherited[fd];
}
