// Sends a command's requests to the running daemon, through its control socket.
#ifndef FRAMED_DAEMON_CLI_ASK_H
#define FRAMED_DAEMON_CLI_ASK_H

#include "daemon/service/control.h"

struct ask {
    const char *command; // for messages: "framed COMMAND: what is wrong"
    const char *config;  // NULL: the default one, if it can be read
    const char *socket;  // NULL: the one in the configuration
    char path[SOCKET_PATH_MAX + 1];
    char shown[2 * SOCKET_PATH_MAX]; // the path as messages show it
};

// Finds the socket. Returns EXIT_OK, or another exit code with the reason printed.
int ask_find(struct ask *);
// Writes the request `word`, with the file that the user named, if any: a daemon that runs with
// another file then refuses. `to` has CONTROL_LINE_MAX bytes. Returns EXIT_OK, or another exit code
// with the reason printed.
int ask_request(const struct ask *, const char *word, char *to);
// Sends a request of less than CONTROL_LINE_MAX bytes. *reply: a line, received within `timeout_s`
// of connecting, that the caller frees. Returns 0, or a negative errno with one sentence in `why`.
int ask_for(struct ask *, const char *request, int timeout_s, char **reply, char *why, size_t size);

// Makes a request and stores the text of `member` in its reply, which the caller frees. Without
// one, prints every reason and then `failed`. Returns an enum exit_code.
int ask_text(struct ask *, const char *request, int timeout_s, const char *member,
             const char *failed, char **ret);
// The same for a request to do something: prints what was done.
int ask_order(struct ask *, const char *request, int timeout_s, const char *failed);

#endif
