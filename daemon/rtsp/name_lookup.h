// Looks up the addresses of a host on a thread, since the system's name look-up blocks for as long
// as its servers like. There are 16 threads at most: further look-ups wait, and those of the same
// host and port are one. The asker may leave at any time.
#ifndef FRAMED_DAEMON_RTSP_NAME_LOOKUP_H
#define FRAMED_DAEMON_RTSP_NAME_LOOKUP_H

#include <stddef.h>

struct addrinfo;
struct name_lookup;

// An address in digits is there at once, without a thread. 0 or negative errno.
int name_lookup_open(struct name_lookup **ret, const char *host, int port);
void name_lookup_close(struct name_lookup *);   // does not wait; accepts NULL
int name_lookup_fd(const struct name_lookup *); // readable when there is an answer; -1: it is there
// 0 with a list of stream addresses, which lives as long as the look-up; -EAGAIN; -ENXIO: there is
// no such name, or none that the system can tell, and `why` gets the reason.
int name_lookup_read(struct name_lookup *, const struct addrinfo **ret, char *why, size_t size);

#endif
