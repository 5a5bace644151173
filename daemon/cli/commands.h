// The commands, and what several of them use.
#ifndef FRAMED_DAEMON_CLI_COMMANDS_H
#define FRAMED_DAEMON_CLI_COMMANDS_H

#include <stddef.h>

#include "config/config.h"
#include "daemon/service/control.h"

#define DEFAULT_CONFIG "/etc/framed/framed.yaml"

// Each takes the arguments from the command's name on and returns an enum exit_code.
int status_main(int argc, char **argv);
int reload_main(int argc, char **argv);
int probe_main(int argc, char **argv);
int discover_main(int argc, char **argv);
int pause_main(int argc, char **argv);
int resume_main(int argc, char **argv);
int record_main(int argc, char **argv);
int snap_main(int argc, char **argv);
int verify_main(int argc, char **argv);
int cluster_main(int argc, char **argv);
int support_main(int argc, char **argv);

// --- check
// `framed check` for a configuration without mistakes: checks that this machine has the memory, the
// devices and the version of the kernels that it requires.

// Prints to standard output that the configuration is good, if it is, and the memory that each
// camera needs; if that is too much, one line to standard error. `file` names the configuration.
// Works without a GPU, which another machine may have, and reports a missing one; refuses a backend
// that is not in this build. With `probes` opens all cameras first and plans for their pictures;
// otherwise opens none. Returns an exit code.
int check_box(struct config *, const char *file, bool probes);

// Returns a sentence, starting with the place, if the file contains a secret and others than the
// owner and the group may read it. The caller frees it. NULL: no.
char *check_readers(const struct config *);

// Returns EXIT_OK if FRAMED_CPU is unset or names a version of the kernels that this CPU runs;
// otherwise EXIT_USAGE, with a line on stderr that lists the versions.
int check_cpu(const char *command);

// Prints one line for each camera, in the order of the file: its stream to standard output, or the
// error to standard error. Fills in the camera's `stream`. Opens several cameras at once, each
// within its own deadlines. Does not open pipes and fifos: a reader takes their bytes for good.
// Returns EXIT_OK; EXIT_RUNTIME: a camera delivers no picture; EXIT_CONFIG: an output cannot be
// made from a camera's picture.
int probe_cameras(struct config *, const char *file);

// --- the running daemon
// Sends a command's requests to the running daemon, through its control socket.

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

// --- passwords
// Reads a command's password from a file, where other users of the machine cannot see it.

enum { PASSWORD_MAX = 4096 }; // with its zero

// Reads the file's first line ("-": of standard input). Returns EXIT_OK, or EXIT_USAGE after a line
// on stderr that names `command`.
int password_file_read(const char *command, const char *path, char to[PASSWORD_MAX]);

#endif
