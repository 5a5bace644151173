#include "daemon/rtsp/name_lookup.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct name_lookup { // of the asker and of the thread: the last of both frees it
    _Atomic int owners;
    _Atomic bool done;
    int fd; // an eventfd, which the thread makes readable; -1: there was no thread
    char host[256], port[8];
    int rc; // of getaddrinfo
    struct addrinfo *addresses;
};

static void release_lookup(struct name_lookup *lookup)
{
    if (atomic_fetch_sub(&lookup->owners, 1) > 1)
        return;
    if (lookup->addresses)
        freeaddrinfo(lookup->addresses);
    if (lookup->fd >= 0)
        close(lookup->fd);
    free(lookup);
}

static int look_up(struct name_lookup *lookup, int flags)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    return getaddrinfo(lookup->host, lookup->port, &hints, &lookup->addresses);
}

static void *lookup_thread(void *opaque)
{
    struct name_lookup *lookup = opaque;
    const uint64_t one = 1;
    lookup->rc = look_up(lookup, 0);
    atomic_store(&lookup->done, true);
    if (write(lookup->fd, &one, sizeof one) < 0)
        lookup->rc = EAI_SYSTEM; // an eventfd takes a 1
    release_lookup(lookup);
    return NULL;
}

static int start_lookup(struct name_lookup *lookup)
{
    pthread_t thread;
    pthread_attr_t detached;
    if ((lookup->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        return -errno;
    int rc = pthread_attr_init(&detached);
    if (rc)
        return -rc;
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    lookup->owners = 2;
    rc = pthread_create(&thread, &detached, lookup_thread, lookup);
    pthread_attr_destroy(&detached);
    if (rc)
        lookup->owners = 1;
    return rc ? -ENOMEM : 0; // not its EAGAIN, which would say that the answer is on its way
}

int name_lookup_open(struct name_lookup **ret, const char *host, int port)
{
    int rc = 0;
    struct name_lookup *lookup = calloc(1, sizeof *lookup);
    if (!lookup)
        return -ENOMEM;
    lookup->owners = 1;
    lookup->fd = -1;
    snprintf(lookup->host, sizeof lookup->host, "%s", host);
    snprintf(lookup->port, sizeof lookup->port, "%d", port);
    if (look_up(lookup, AI_NUMERICHOST) == 0)
        lookup->done = true;
    else
        rc = start_lookup(lookup);
    if (rc < 0)
        release_lookup(lookup);
    else
        *ret = lookup;
    return rc;
}

void name_lookup_close(struct name_lookup *lookup)
{
    if (lookup)
        release_lookup(lookup);
}

int name_lookup_fd(const struct name_lookup *lookup)
{
    return lookup->fd;
}

int name_lookup_read(struct name_lookup *lookup, const struct addrinfo **ret, char *why,
                     size_t size)
{
    if (!atomic_load(&lookup->done))
        return -EAGAIN;
    if (lookup->rc) {
        snprintf(why, size, "%s", gai_strerror(lookup->rc));
        return -ENXIO;
    }
    *ret = lookup->addresses;
    return 0;
}
