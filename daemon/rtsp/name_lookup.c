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

enum { THREADS_MAX = 16 };

struct name_lookup {
    struct name_lookup *next; // next one without an answer
    int owners;               // callers, and the thread that works on it
    bool begun;               // a thread works on it
    _Atomic bool done;
    int fd; // eventfd, readable once `done`; -1: no thread was needed
    char host[256], port[8];
    int rc; // of getaddrinfo
    struct addrinfo *addresses;
};

static struct {
    pthread_mutex_t lock;
    struct name_lookup *first; // the oldest without an answer
    int threads;
} lookups = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void free_lookup(struct name_lookup *lookup)
{
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

// --- with the lock

// Returns the link to a look-up without an answer; NULL: the last link.
static struct name_lookup **link_to(const struct name_lookup *lookup)
{
    struct name_lookup **link = &lookups.first;
    while (*link && *link != lookup)
        link = &(*link)->next;
    return link;
}

static void remove_lookup(const struct name_lookup *lookup)
{
    struct name_lookup **link = link_to(lookup);
    if (*link)
        *link = lookup->next;
}

static void release_lookup(struct name_lookup *lookup)
{
    if (--lookup->owners > 0)
        return;
    remove_lookup(lookup); // if no thread has begun it
    free_lookup(lookup);
}

static struct name_lookup *next_lookup(void)
{
    struct name_lookup *lookup = lookups.first;
    while (lookup && lookup->begun)
        lookup = lookup->next;
    return lookup;
}

static struct name_lookup *find_lookup(const struct name_lookup *like)
{
    struct name_lookup *lookup = lookups.first;
    while (lookup && (strcmp(lookup->host, like->host) != 0 || strcmp(lookup->port, like->port)))
        lookup = lookup->next;
    return lookup;
}

static void *lookup_thread(void *opaque)
{
    const uint64_t one = 1;
    (void)opaque;
    pthread_setname_np(pthread_self(), "resolver");
    pthread_mutex_lock(&lookups.lock);
    for (struct name_lookup *lookup; (lookup = next_lookup());) {
        lookup->begun = true;
        lookup->owners++;
        pthread_mutex_unlock(&lookups.lock);
        lookup->rc = look_up(lookup, 0);
        pthread_mutex_lock(&lookups.lock);
        remove_lookup(lookup);
        atomic_store(&lookup->done, true);
        if (write(lookup->fd, &one, sizeof one) < 0)
            lookup->rc = EAI_SYSTEM; // never happens: an eventfd accepts a 1
        release_lookup(lookup);
    }
    lookups.threads--;
    pthread_mutex_unlock(&lookups.lock);
    return NULL;
}

// Starts a thread, if THREADS_MAX allows; without it, existing threads do the look-up.
static int append_lookup(struct name_lookup *lookup)
{
    pthread_t thread;
    if ((lookup->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        return -errno;
    *link_to(NULL) = lookup;
    if (lookups.threads < THREADS_MAX && pthread_create(&thread, NULL, lookup_thread, NULL) == 0) {
        pthread_detach(thread);
        lookups.threads++;
    }
    return lookups.threads > 0 ? 0 : -ENOMEM; // not EAGAIN, which means a pending answer
}

// --- the askers' calls

int name_lookup_open(struct name_lookup **ret, const char *host, int port)
{
    int rc = 0;
    struct name_lookup *lookup = calloc(1, sizeof *lookup), *same;
    if (!lookup)
        return -ENOMEM;
    lookup->owners = 1;
    lookup->fd = -1;
    snprintf(lookup->host, sizeof lookup->host, "%s", host);
    snprintf(lookup->port, sizeof lookup->port, "%d", port);
    if (look_up(lookup, AI_NUMERICHOST) == 0) {
        lookup->done = true;
        *ret = lookup;
        return 0;
    }
    pthread_mutex_lock(&lookups.lock);
    if ((same = find_lookup(lookup))) {
        same->owners++;
        *ret = same;
        free_lookup(lookup);
    } else if ((rc = append_lookup(lookup)) < 0) {
        release_lookup(lookup);
    } else {
        *ret = lookup;
    }
    pthread_mutex_unlock(&lookups.lock);
    return rc;
}

void name_lookup_close(struct name_lookup *lookup)
{
    if (!lookup)
        return;
    pthread_mutex_lock(&lookups.lock);
    release_lookup(lookup);
    pthread_mutex_unlock(&lookups.lock);
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
