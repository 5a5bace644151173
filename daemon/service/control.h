// The control socket: a client connects, writes one line, "status", "reload", "record CAMERA
// MILLISECONDS" or "snap CAMERA[/OUTPUT[/PLANE]] WIDTH", reads one line of JSON, and the connection
// closes. Clients are bounded in number, in what they may write and in time: a client that hangs or
// writes anything else does no harm. Loop thread only.
//
// A FILE may follow each command, an absolute path without links: a daemon that runs with another
// configuration then refuses.
#ifndef FRAMED_DAEMON_SERVICE_CONTROL_H
#define FRAMED_DAEMON_SERVICE_CONTROL_H

#include <limits.h>
#include <stdbool.h>
#include <uv.h>

#include "config/config.h"

enum {
    CONTROL_CLIENTS_MAX = 16,         // one more drops the oldest
    CONTROL_LINE_MAX = PATH_MAX + 64, // bytes of a request, with its newline
    CONTROL_DEADLINE_MS = 5000,       // to send a request and to read its reply
    CONTROL_MODE = 0660,              // of the socket
    RECORD_MS_MIN = 1000,             // of a clip, from the request on
    RECORD_MS_MAX = 24 * 3600 * 1000,
};

struct control;
struct control_place; // a path to listen at

// A request that waits for its reply.
struct control_request;
// Handles a request of one line, without its newline, valid until this returns. control_reply must
// follow, at once or later.
typedef void control_handler(void *opaque, struct control_request *, const char *line);
// True if root, the daemon's own user or a member of ADMIN_GROUP opened the connection.
bool control_may_change(const struct control_request *);
// Sends the reply: one line of JSON without a newline, which control frees; NULL: out of memory.
// Frees the request. May be called after control_close.
void control_reply(struct control_request *, char *text);

// Listens at the path; NULL: nowhere yet. Looks up ADMIN_GROUP, which may block. Returns 0 or a
// negative errno, with one sentence in `why`.
int control_open(struct control **ret, uv_loop_t *, const char *path, control_handler *,
                 void *opaque, char *why, size_t size);
// Listens at another path too; its clients are accepted only after control_move. Returns as
// control_open.
int control_place_open(struct control_place **ret, struct control *, const char *path, char *why,
                       size_t size);
void control_place_close(struct control_place *); // of a place not moved to; accepts NULL
// Listens at that place only from now on, and takes ownership of it; NULL: nowhere. Connected
// clients still get their replies.
void control_move(struct control *, struct control_place *);
// See sink_check_path.
void control_check_path(struct control *);
// The loop's next iterations close its handles; cuts off all requests. Accepts NULL.
void control_close(struct control *);

// The socket of a daemon that the system runs, for clients of any user.
#define CONTROL_SYSTEM_PATH "/run/framed/control.sock"

// Writes the path of the socket of a daemon with that configuration to `to`, of SOCKET_PATH_MAX + 1
// bytes. Returns 0; -ENOENT: it is off; -ENAMETOOLONG: the default folder's name is too long.
int control_path(const struct control_address *, char *to);

#endif
