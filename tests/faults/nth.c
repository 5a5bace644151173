// Preloaded into a framed: one call of a kind fails, as the system would make it fail. FRAMED_NTH
// in the environment selects it ("memory:17", counted from 1). FRAMED_NTH_COUNT names a file; the
// caller of the failed call is appended to it, and at exit the number of calls of each kind.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum kind { MEMORY, MAP, SOCKET, ACCEPT, CONNECT, BIND, WATCH, THREAD, KINDS };

static const char *const names[KINDS] = {"memory",  "map",  "socket", "accept",
                                         "connect", "bind", "watch",  "thread"};
static _Atomic int calls[KINDS];
static int wanted, due; // 0: none

static void begin(void)
{
    const char *text = getenv("FRAMED_NTH");
    for (int kind = 0; text && kind < KINDS; kind++) {
        size_t n = strlen(names[kind]);
        if (!strncmp(text, names[kind], n) && text[n] == ':') {
            wanted = kind;
            due = atoi(text + n + 1);
        }
    }
    for (int kind = 0; kind < KINDS; kind++)
        atomic_store(&calls[kind], 0);
}

// Calls before main belong to the loader and to libraries; CUDA's cannot handle a failure.
static int (*program)(int, char **, char **);

static int begin_and_run(int argc, char **argv, char **environment)
{
    begin();
    return program(argc, argv, environment);
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
    __typeof__(&__libc_start_main) next =
        (__typeof__(&__libc_start_main))dlsym(RTLD_NEXT, "__libc_start_main");
    program = main;
    return next(begin_and_run, argc, argv, init, fini, rtld_fini, stack_end);
}

static void note(const char *what, const char *whose, int number)
{
    char line[512];
    const char *path = getenv("FRAMED_NTH_COUNT");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    int n = snprintf(line, sizeof line, "%s %s%d\n", what, whose, number);
    if (fd >= 0 && write(fd, line, (size_t)n) == n)
        close(fd);
}

__attribute__((destructor)) static void end(void)
{
    for (int kind = 0; kind < KINDS; kind++)
        note(names[kind], "", atomic_load(&calls[kind]));
}

static bool fails(enum kind kind, int error, void *caller)
{
    Dl_info info = {.dli_fname = "?"};
    if (atomic_fetch_add(&calls[kind], 1) + 1 != due || kind != (enum kind)wanted)
        return false;
    dladdr(caller, &info);
    note("failed", info.dli_fname, 0);
    errno = error;
    return true;
}

#define FAILS(kind, error) fails(kind, error, __builtin_return_address(0))

// --- memory: glibc's own names, since a lookup would allocate. Sanitizers have their own
// allocator.

#ifndef SANITIZED

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t size)
{
    return FAILS(MEMORY, ENOMEM) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return FAILS(MEMORY, ENOMEM) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *memory, size_t size)
{
    return FAILS(MEMORY, ENOMEM) ? NULL : __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return FAILS(MEMORY, ENOMEM) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
    int saved = errno;
    void *memory = FAILS(MEMORY, ENOMEM) ? NULL : __libc_memalign(alignment, size);
    errno = saved;
    if (!memory)
        return ENOMEM;
    *ret = memory;
    return 0;
}

#endif

// --- the rest: the next library's

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return FAILS(MAP, ENOMEM) ? MAP_FAILED : NEXT(mmap)(at, size, protection, flags, fd, offset);
}

int socket(int domain, int type, int protocol)
{
    return FAILS(SOCKET, EMFILE) ? -1 : NEXT(socket)(domain, type, protocol);
}

int accept(int fd, struct sockaddr *restrict name, socklen_t *restrict length)
{
    return FAILS(ACCEPT, EMFILE) ? -1 : NEXT(accept)(fd, name, length);
}

int accept4(int fd, struct sockaddr *restrict name, socklen_t *restrict length, int flags)
{
    return FAILS(ACCEPT, EMFILE) ? -1 : NEXT(accept4)(fd, name, length, flags);
}

int connect(int fd, const struct sockaddr *name, socklen_t length)
{
    return FAILS(CONNECT, ENOBUFS) ? -1 : NEXT(connect)(fd, name, length);
}

int bind(int fd, const struct sockaddr *name, socklen_t length)
{
    return FAILS(BIND, EADDRINUSE) ? -1 : NEXT(bind)(fd, name, length);
}

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    return FAILS(WATCH, ENOSPC) ? -1 : NEXT(epoll_ctl)(epoll, operation, fd, event);
}

int pthread_create(pthread_t *restrict id, const pthread_attr_t *restrict attributes,
                   void *(*run)(void *), void *restrict opaque)
{
    return FAILS(THREAD, EAGAIN) ? EAGAIN : NEXT(pthread_create)(id, attributes, run, opaque);
}
