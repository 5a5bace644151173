// A thread that delivers events to one target, in order: retries failed events later, drops those
// refused for good or older than a day, and gives each try a deadline.
#ifndef FRAMED_DAEMON_ALERT_DELIVERY_H
#define FRAMED_DAEMON_ALERT_DELIVERY_H

#include "config/config.h"
#include "daemon/alert/outbox.h"

enum { DELIVERY_MS = 10000, DELIVERY_WHY_MAX = 160 }; // deadline of a try; size of a reason

struct delivery_context {
    const struct config *config; // the keys of `notify` only
    struct outbox *outbox;
    const char *host;        // this machine's name
    const atomic_bool *stop; // once true, nothing blocks any more
    int stop_fd;             // readable once *stop is true
};

// A kind of target. The delivery's thread calls all its functions.
struct delivery_driver {
    const char *name;                                         // "the webhook"
    int (*open)(void **ret, const struct delivery_context *); // 0 or -ENOMEM
    // 0; -EINVAL: refused for good; -ECANCELED: stopped; another negative errno. May write `why`.
    int (*deliver)(void *, const struct alert_event *, const char *json, char *why, size_t size);
    // Keeps a connection alive for up to `ms`; NULL: the target has no connection.
    void (*keep)(void *, int ms);
    void (*close)(void *);
};

extern const struct delivery_driver webhook_driver, command_driver, mqtt_driver;

struct delivery;

// Starts the thread with its own copy of the keys of `notify`. Returns 0 or a negative errno.
int delivery_open(struct delivery **ret, enum alert_target, const struct config *, struct outbox *,
                  const char *host);
void delivery_stop(struct delivery *); // asks the thread to end; never blocks; accepts NULL
// After delivery_stop: waits for the thread until `until_ns` (CLOCK_MONOTONIC; 0: does not wait),
// then frees the delivery. False: the thread still runs, for example in the resolver, and still
// uses the outbox and the host's name; the delivery may be closed later. Accepts NULL.
bool delivery_close(struct delivery *, int64_t until_ns);

#endif
