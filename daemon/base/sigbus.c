#include "daemon/base/sigbus.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Lines of /proc/self/maps. A signal handler may not allocate, as libc's streams do.
struct maps {
    int fd;
    ssize_t n, at;
    char bytes[1024], line[512]; // longer lines are cut
};

static bool next_line(struct maps *maps)
{
    size_t length = 0;
    for (;;) {
        if (maps->at == maps->n) {
            maps->n = read(maps->fd, maps->bytes, sizeof maps->bytes);
            maps->at = 0;
            if (maps->n <= 0)
                return false;
        }
        const char c = maps->bytes[maps->at++];
        maps->line[length] = 0;
        if (c == '\n')
            return true;
        if (length < sizeof maps->line - 1)
            maps->line[length++] = c;
    }
}

// Replaces the mapping if its `line`, "START-END rw-s OFFSET DEVICE INODE   PATH", is of a shared
// object. Returns false for any other mapping.
static bool replace(const char *line, uintptr_t begin, uintptr_t end)
{
    const bool is_shared = strstr(line, " rw-s ") != NULL;
    if (!is_shared)
        return strchr(line, '/') == NULL; // another thread has replaced it
    return strstr(line, " /dev/shm/") &&
           mmap((void *)begin, end - begin, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static bool replace_at(uintptr_t address)
{
    struct maps maps = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    bool replaced = false, found = false;
    while (!found && maps.fd >= 0 && next_line(&maps)) {
        char *rest;
        const uintptr_t begin = strtoull(maps.line, &rest, 16);
        const uintptr_t end = strtoull(rest + (*rest == '-'), NULL, 16);
        found = begin <= address && address < end;
        if (found)
            replaced = replace(maps.line, begin, end);
    }
    if (maps.fd >= 0)
        close(maps.fd);
    return replaced;
}

// The access is retried on return.
static void access_failed(int number, siginfo_t *info, void *context)
{
    (void)context;
    const int before = errno;
    if (info->si_code != BUS_ADRERR || !replace_at((uintptr_t)info->si_addr))
        signal(number, SIG_DFL);
    errno = before;
}

void sigbus_catch(void)
{
    struct sigaction action = {.sa_sigaction = access_failed, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
}
