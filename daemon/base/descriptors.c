#include "daemon/base/descriptors.h"

#include <fcntl.h>
#include <unistd.h>

static bool inherited[DESCRIPTORS_MAX]; // written before threads start

void descriptors_record(void)
{
    for (int fd = 0; fd < DESCRIPTORS_MAX; fd++) {
        const int flags = fcntl(fd, F_GETFL);
        inherited[fd] = flags >= 0 && (flags & O_ACCMODE) != O_WRONLY;
    }
}

// open() returns the lowest free number.
void descriptors_fill_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) < 0)
            return; // nowhere to report it
}

bool descriptors_inherited(int fd)
{
    return fd >= 0 && fd < DESCRIPTORS_MAX && inherited[fd];
}
