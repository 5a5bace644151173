// A connection to one of several NATS servers, of a thread of the caller's: all that libnats does,
// and whatever it may block in, is behind these functions. It never connects again by itself, so
// that what was not delivered is the caller's to count.
#ifndef FRAMED_DAEMON_OUTPUT_NATS_SESSION_H
#define FRAMED_DAEMON_OUTPUT_NATS_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

enum {
    // For one server: connecting and logging in. The TLS handshake in between has no deadline.
    NATS_CONNECT_MS = 2000,
    NATS_WRITE_MS = 15000, // that the servers may take no bytes
    // That the servers may take to confirm what was published: one that cuts off a subscriber which
    // does not read lets publishers wait meanwhile, by default for 10 s.
    NATS_CONFIRM_MS = 15000,
    NATS_FLYING_MAX = 1024, // publications that may wait for their acknowledgement
    NATS_WHY_MAX = 160,     // of a reason
};

// Why a message that nats_session_denies was asked about is lost.
#define NATS_NOT_ALLOWED "the server does not allow to publish there"

struct nats_session;

struct nats_session_options {
    const char *servers;              // of struct nats_url
    const struct nats_config *config; // outlives the call of nats_session_open
    bool acknowledged;                // what is published has numbers, for nats_session_ack
    void (*wake)(void *opaque);       // any thread: an acknowledgement has come; or NULL. May not
    void *opaque;                     // call the session
};

// What a stream says of what was published.
struct nats_ack {
    uint64_t number;
    bool stored; // the stream has it now, or had it before
    char why[NATS_WHY_MAX];
};

// Connects to the first server that answers. 0; -EACCES: who the daemon is does not please them;
// other negative errno; with one sentence in `why`.
int nats_session_open(struct nats_session **ret, const struct nats_session_options *, char *why,
                      size_t size);
void nats_session_close(struct nats_session *); // what is not confirmed may be lost; accepts NULL
bool nats_session_is_open(struct nats_session *);
// Publishes a message. `id`: makes a stream take it once, however often it comes; NULL: nothing
// does. 0; -EMSGSIZE: the server takes no message of the size; other negative errno: the session is
// over. With why.
int nats_session_publish(struct nats_session *, const char *subject, uint64_t number,
                         const char *id, const char *text, size_t bytes, char *why, size_t size);
// Waits until the server has taken all that was published before. 0 or negative errno: the session
// is over. With why.
int nats_session_flush(struct nats_session *, char *why, size_t size);
// Whether the last that the server has refused, of what it has answered, had that subject: all that
// was flushed or that waited long is answered.
bool nats_session_denies(struct nats_session *, const char *subject);
// The next acknowledgement that has come; false: none has.
bool nats_session_ack(struct nats_session *, struct nats_ack *ret);

#endif
