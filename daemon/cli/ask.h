// A command's request to the running daemon, through its control socket.
#ifndef FRAMED_DAEMON_CLI_ASK_H
#define FRAMED_DAEMON_CLI_ASK_H

#include "daemon/service/control.h"

struct ask {
    const char *command; // for messages: "framed COMMAND: what is wrong"
    const char *config;  // NULL: the default one, if it can be read
    const char *socket;  // NULL: where the configuration says
    char path[SOCKET_PATH_MAX + 1];
    char shown[2 * SOCKET_PATH_MAX]; // the path as messages have it
};

// Finds the socket. EXIT_OK, or another exit code with the reason printed.
int ask_find(struct ask *);
// Writes the request `word` with the file that the user named, if any, so that only a daemon
// that runs with it does it. `to` has CONTROL_LINE_MAX bytes. EXIT_OK, or another exit code with
// the reason printed.
int ask_request(const struct ask *, const char *word, char *to);
// The reply to a request of less than CONTROL_LINE_MAX bytes, a line that the caller frees, within
// `timeout_s` from the connection on. 0, or negative errno with one sentence in `why`.
int ask_for(struct ask *, const char *request, int timeout_s, char **reply, char *why, size_t size);

// Makes a request and gives the text of that member of its reply, which the caller frees; or prints
// every reason why there is none, and then `failed`. Returns an enum exit_code.
int ask_text(struct ask *, const char *request, int timeout_s, const char *member,
             const char *failed, char **ret);
// The same of a request that something be done: prints what was done.
int ask_order(struct ask *, const char *request, int timeout_s, const char *failed);

#endif
