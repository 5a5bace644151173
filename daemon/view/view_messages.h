// Data for one viewer: messages of many cameras, or parts of one. A newer picture replaces one of
// the same camera that has not begun to be sent, so that a slow link shows fewer pictures and never
// older ones. Loop thread.
#ifndef FRAMED_DAEMON_VIEW_VIEW_MESSAGES_H
#define FRAMED_DAEMON_VIEW_VIEW_MESSAGES_H

#include "daemon/view/previews.h"

// --- messages, each a header and a body
// A header is VIEW_HEADER_BYTES bytes, little-endian: u32 length of the body, u16 kind, u16 index
// in the viewer's list, u32 epoch, u32 flags (enum framed_flags), u64 capture_ns, u64 sequence.
enum {
    VIEW_HEADER_BYTES = 32,
    VIEW_PICTURES_MAX = 64, // indices of one viewer
};

enum view_kind {
    VIEW_FACTS, // JSON: what that index's pictures show from now on, or why there are none
    VIEW_JPEG,
    VIEW_ALIVE, // empty: the daemon is well
};

struct view_messages;

int view_messages_open(struct view_messages **ret, int n); // 0 or -ENOMEM
void view_messages_close(struct view_messages *);          // accepts NULL
// Takes a reference. Parts ignore a picture without a JPEG, and signs of life.
void view_messages_put(struct view_messages *, int index, struct preview_picture *);
void view_messages_put_alive(struct view_messages *);
// Fills up to `room` bytes with the next data to send; returns how many, 0: there is none.
size_t view_messages_fill(struct view_messages *, char *to, size_t room);

// --- one camera, index 0, as multipart/x-mixed-replace: parts of a JPEG each
// The header of each part is sent with the part before, since browsers show a part when the next
// one begins; so no part can contain its length.
#define VIEW_PARTS_TYPE "multipart/x-mixed-replace; boundary=framed"

int view_parts_open(struct view_messages **ret); // 0 or -ENOMEM

#endif
