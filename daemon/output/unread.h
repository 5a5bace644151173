// How much of what was sent on a stream socket its peer has not read. Loop thread only.
//
// The kernel's buffers are part of the queue of an output. A unix socket tells what lies in the
// peer's queue. A tcp socket does not: the peer's kernel acknowledges what it keeps. Where the peer
// is on the same box (and in the same network namespace), the kernel is asked for the peer's own
// socket by netlink. A peer on another box shows its receive window only.
#ifndef FRAMED_DAEMON_OUTPUT_UNREAD_H
#define FRAMED_DAEMON_OUTPUT_UNREAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// What is known of one peer. Zeroed for a new one.
struct unread {
    bool remote;     // the kernel here does not have the peer's socket
    uint32_t window; // widest receive window that a remote peer has shown, bytes
};

// A netlink socket for unread_tcp, or a negative errno.
int unread_open_netlink(void);

// Bytes, 0 when the peer has read everything, with what the kernel takes for its own records; or a
// negative errno.
int64_t unread_unix(int fd);
// Bytes; `netlink` may be negative: every peer is remote then. Of a remote peer: what was not sent
// yet and, once less than half of its window is left, what is missing to the whole. From there on
// TCP obliges the peer to tell that it reads; what lies there before then cannot be known.
int64_t unread_tcp(struct unread *, int netlink, int fd);

#endif
