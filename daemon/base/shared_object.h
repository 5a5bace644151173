// The name of a POSIX shared memory object (shm_open), held by one output from open to close. The
// memory under the name may be replaced: programs that mapped the old memory keep it. An object has
// no seals: every program that may open it can write to it and change its size.
//
// The daemon holds a lock (flock) on the file of its name, and the lock ends with the process. So
// the next daemon can tell a file left by a killed daemon from the file of a running one. Files of
// framed have the sticky bit, which has no other meaning on a file.
#ifndef FRAMED_DAEMON_BASE_SHARED_OBJECT_H
#define FRAMED_DAEMON_BASE_SHARED_OBJECT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct shared_object {
    pthread_mutex_t lock; // guards the rest
    const char *name;     // with its leading slash
    int mode;             // of the files
    gid_t group;          // of the files; -1: the group of the process
    int fd;               // of the file with the name, locked, read-write; -1: closed
    size_t bytes;         // of that file
};

void shared_object_init(struct shared_object *); // closed
// Checks that a name can be taken. Returns 0 or a negative errno, as shared_object_open.
int shared_object_check(const char *name, char *why, size_t size);
// Takes the name, without memory at first. Also takes it again if an open object has lost it.
// Returns 0 or a negative errno, with one sentence in `why`: -EADDRINUSE: another program has the
// name; -EEXIST: the file of that name is not framed's. `name` outlives the object.
int shared_object_open(struct shared_object *, const char *name, int mode, gid_t group, char *why,
                       size_t size);
// Frees the name. Accepts a closed one.
void shared_object_close(struct shared_object *);
// Returns true if it is closed, or if the file was removed, replaced or truncated.
bool shared_object_is_lost(struct shared_object *);

// Any thread. Allocates zeroed memory without a name. Returns a descriptor to map it, or a negative
// errno; -ENOMEM also if /dev/shm is full.
int shared_object_allocate(size_t bytes);
// Moves the name to the memory and takes its descriptor `fd`; *read_only is a read-only descriptor
// for the caller. Returns 0 or a negative errno, and `fd` stays the caller's: -ESHUTDOWN: the
// object is closed; others as shared_object_open.
int shared_object_publish(struct shared_object *, int fd, size_t bytes, int *read_only);

#endif
