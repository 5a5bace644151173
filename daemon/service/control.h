// The control socket: a client connects, writes one line, "status", "reload", "record CAMERA
// MILLISECONDS" or "snap CAMERA[/OUTPUT[/PLANE]] WIDTH", reads one line of JSON, and the connection
// is closed. Clients are bounded in number, in what they may write and in time: one that is stuck
// or writes anything else hurts nobody. Loop thread only.
//
// Each may be followed by a FILE, an absolute path without links: a daemon that runs with another
// configuration then refuses.
#ifndef FRAMED_DAEMON_SERVICE_CONTROL_H
#define FRAMED_DAEMON_SERVICE_CONTROL_H

#include <limits.h>
#include <stdbool.h>
#include <uv.h>

#include "config/config.h"

enum {
    CONTROL_CLIENTS_MAX = 16,         // one more pushes out the one that came first
    CONTROL_LINE_MAX = PATH_MAX + 64, // bytes of a request, with its end
    CONTROL_DEADLINE_MS = 5000,       // for a request and to read its reply
    CONTROL_MODE = 0660,              // of the socket
    RECORD_MS_MIN = 1000,             // of a clip from the request on
    RECORD_MS_MAX = 24 * 3600 * 1000,
};

struct control;
struct control_place; // where it may listen

// A request that waits for its reply.
struct control_request;
// Takes the request, of one line without its end, which is gone when this returns; control_reply
// follows, at once or later.
typedef void control_handler(void *opaque, struct control_request *, const char *line);
// Returns whether root, the daemon's own user or a member of ADMIN_GROUP opened the connection.
bool control_may_change(const struct control_request *);
// The reply: one line of JSON without its end, which control frees; NULL: out of memory. Also after
// control_close. The request is gone then.
void control_reply(struct control_request *, char *text);

// Listens at the path; NULL: nowhere yet. Looks up ADMIN_GROUP, which may block. Returns 0 or
// negative errno, with one sentence in `why`.
int control_open(struct control **ret, uv_loop_t *, const char *path, control_handler *,
                 void *opaque, char *why, size_t size);
// Listens at another path too: nobody who comes there is let in before control_move. As
// control_open.
int control_place_open(struct control_place **ret, struct control *, const char *path, char *why,
                       size_t size);
void control_place_close(struct control_place *); // one that was not moved to; accepts NULL
// From now on it listens there alone, and takes the place over; NULL: nowhere. Clients that have
// come get their replies.
void control_move(struct control *, struct control_place *);
// As sink_check_path.
void control_check_path(struct control *);
// Its handles close with the loop's next turns; whatever was under way is cut off. Accepts NULL.
void control_close(struct control *);

// Of a daemon that the system runs, whoever asks.
#define CONTROL_SYSTEM_PATH "/run/framed/control.sock"

// Where the socket of a daemon with that configuration is: `to` has SOCKET_PATH_MAX + 1 bytes. 0;
// -ENOENT: it is off; -ENAMETOOLONG: the default folder's name is too long.
int control_path(const struct control_address *, char *to);

#endif
