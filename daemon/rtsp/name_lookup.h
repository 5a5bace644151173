// Looks up a host's addresses on a thread, because the system's look-up blocks as long as its
// servers take. At most 16 threads run: further look-ups wait, and look-ups of the same host and
// port are shared. The caller may leave at any time.
#ifndef FRAMED_DAEMON_RTSP_NAME_LOOKUP_H
#define FRAMED_DAEMON_RTSP_NAME_LOOKUP_H

#include <stddef.h>

struct addrinfo;
struct name_lookup;

// Resolves a numeric address at once, without a thread. Returns 0 or a negative errno.
int name_lookup_open(struct name_lookup **ret, const char *host, int port);
void name_lookup_close(struct name_lookup *);   // does not wait; accepts NULL
int name_lookup_fd(const struct name_lookup *); // readable once there is an answer; -1: it is there
// Returns 0 with a list of stream addresses, which lives as long as the look-up; -EAGAIN: no answer
// so far; -ENXIO: no such name, or it cannot be resolved now, and `why` gets the reason.
int name_lookup_read(struct name_lookup *, const struct addrinfo **ret, char *why, size_t size);

#endif
