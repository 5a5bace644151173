// The name of a POSIX shared memory object (shm_open) that one output has from open to close. The
// memory behind the name may be replaced: programs that have mapped the old memory keep it. An
// object has no seals: every program that may open it can write to it and change its size.
//
// The daemon that has a name holds a lock (flock) on its file, and the lock ends with the process.
// So the next daemon can tell a file that a killed daemon left from the file of a living one. The
// files of framed have the sticky bit, which means nothing else on a file.
#ifndef FRAMED_DAEMON_BASE_SHARED_OBJECT_H
#define FRAMED_DAEMON_BASE_SHARED_OBJECT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct shared_object {
    pthread_mutex_t lock; // guards the rest
    const char *name;     // with its slash
    int mode;             // of the files
    gid_t group;          // of the files; -1: that of the process
    int fd;               // of the file that has the name, locked, to read and write; -1: closed
    size_t bytes;         // of that file
};

void shared_object_init(struct shared_object *); // closed
// Whether a name could be taken: 0 or negative errno, as shared_object_open.
int shared_object_check(const char *name, char *why, size_t size);
// Takes the name, with no memory yet, also where the object is open and has lost it. 0 or negative
// errno, with one sentence in `why`: -EADDRINUSE: another program has the name; -EEXIST: the file
// of that name is not of framed. `name` outlives the object.
int shared_object_open(struct shared_object *, const char *name, int mode, gid_t group, char *why,
                       size_t size);
// Frees the name. Accepts a closed one.
void shared_object_close(struct shared_object *);
// Whether it is closed, or somebody has removed or replaced the file or cut it short.
bool shared_object_is_lost(struct shared_object *);

// Of any thread. Memory for the name, zeroed and allocated, which has no name yet: a descriptor to
// map it by. Negative errno; -ENOMEM also where /dev/shm is full.
int shared_object_allocate(size_t bytes);
// Gives the name to the memory, whose descriptor it takes; *read_only is another that cannot be
// written through, the caller's. 0 or negative errno, and then `fd` stays the caller's:
// -ESHUTDOWN: the object is closed; others as of shared_object_open.
int shared_object_publish(struct shared_object *, int fd, size_t bytes, int *read_only);

#endif
