// The file that login pauses outlive a restart in: text, a line for each host.
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
    int64_t ns; // CLOCK_MONOTONIC, below 0 where it was before the machine started
    uint16_t credentials;
};

struct login_host {
    char name[LOGIN_HOST];
    int refusals;    // in a row, as far as pauses grow: below LOGIN_STEPS
    int64_t next_ns; // CLOCK_MONOTONIC
    struct login_refusal refused[LOGIN_REFUSED_MAX]; // the newest first
    int n_refused;
    // Of this process alone.
    uint16_t accepted;              // credentials
    int64_t accepted_ns, trying_ns; // when; 0: not
};

struct login_hosts {
    uint8_t key[LOGIN_KEY]; // of the hashes of credentials
    struct login_host *list;
    int n;
};

// Adds the file's hosts to `ret`, whose key is replaced by the file's. What is not understood, and
// what cannot be, is skipped or bounded. `ahead_ns`: how far CLOCK_REALTIME is ahead of
// CLOCK_MONOTONIC. 0; -ENOMEM; -ENOENT and others: there is no such file.
int login_pause_file_read(struct login_hosts *ret, const char *path, int64_t now_ns,
                          int64_t ahead_ns);
// The text of the file, to be freed; NULL: no memory.
char *login_pause_file_text(const struct login_hosts *, int64_t ahead_ns);

// The host of this name, added where it is new; NULL: no memory.
struct login_host *login_hosts_get(struct login_hosts *, const char *name);

#endif
