// The file that keeps login pauses over restarts: text, a line for each host.
#ifndef FRAMED_DAEMON_INPUT_LOGIN_PAUSE_FILE_H
#define FRAMED_DAEMON_INPUT_LOGIN_PAUSE_FILE_H

#include <stdint.h>

enum {
    LOGIN_KEY = 16,
    LOGIN_HOST = 256,
    LOGIN_HOSTS_MAX = 4096,
    LOGIN_REFUSED_MAX = 4,
    LOGIN_STEPS = 3
};

struct login_refusal {
    int64_t ns; // CLOCK_MONOTONIC, below 0 if it was before the machine started
    uint16_t credentials;
};

struct login_host {
    char name[LOGIN_HOST];
    int refusals;    // in a row, below LOGIN_STEPS: pauses grow no further
    int64_t next_ns; // CLOCK_MONOTONIC
    struct login_refusal refused[LOGIN_REFUSED_MAX]; // the newest first
    int n_refused;
    // Not in the file:
    uint16_t accepted;              // credentials
    int64_t accepted_ns, trying_ns; // when; 0: never
};

struct login_hosts {
    uint8_t key[LOGIN_KEY]; // for the hashes of credentials
    struct login_host *list;
    int n;
};

// Adds the file's hosts to `ret` and replaces its key. Skips unknown lines, and limits impossible
// times. `ahead_ns`: CLOCK_REALTIME minus CLOCK_MONOTONIC. Returns 0; -ENOMEM; -ENOENT and others:
// the file cannot be opened.
int login_pause_file_read(struct login_hosts *ret, const char *path, int64_t now_ns,
                          int64_t ahead_ns);
// Returns the text of the file, which the caller frees; NULL: no memory.
char *login_pause_file_text(const struct login_hosts *, int64_t ahead_ns);

// Returns the host of this name, added if it is new; NULL: no memory.
struct login_host *login_hosts_get(struct login_hosts *, const char *name);

#endif
