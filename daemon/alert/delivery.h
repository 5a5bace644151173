// A thread that delivers events to one target, in their order: tries again later what fails, gives
// up what is refused for good or a day old, and takes no longer than a target's deadline for each.
#ifndef FRAMED_DAEMON_ALERT_DELIVERY_H
#define FRAMED_DAEMON_ALERT_DELIVERY_H

#include "config/config.h"
#include "daemon/alert/outbox.h"

enum { DELIVERY_MS = 10000, DELIVERY_WHY_MAX = 160 }; // for one try; of a reason

struct delivery_context {
    const struct config *config; // with the keys of `notify` alone
    struct outbox *outbox;
    const char *host;        // this machine's name
    const atomic_bool *stop; // once it is true nothing more is waited for
    int stop_fd;             // readable from then on
};

// What a target is: all functions are called by the delivery's thread.
struct delivery_driver {
    const char *name;                                         // "the webhook"
    int (*open)(void **ret, const struct delivery_context *); // 0 or -ENOMEM
    // 0; -EINVAL: refused for good; -ECANCELED: stopped; else negative errno. With why.
    int (*deliver)(void *, const struct alert_event *, const char *json, char *why, size_t size);
    // Keeps a connection up for up to `ms`, less where an event waits; NULL: there is none to keep.
    void (*keep)(void *, int ms);
    void (*close)(void *);
};

extern const struct delivery_driver webhook_driver, command_driver, mqtt_driver;

struct delivery;

// Starts the thread, with a copy of the configuration's `notify`. 0 or negative errno.
int delivery_open(struct delivery **ret, enum alert_target, const struct config *, struct outbox *,
                  const char *host);
void delivery_stop(struct delivery *); // asks the thread to end; never blocks; accepts NULL
// After delivery_stop: frees the delivery once its thread has ended. Waits for that until
// `until_ns` (CLOCK_MONOTONIC); 0: does not wait. False: the thread still runs, for example in the
// resolver, with the outbox and the host's name; the delivery may be closed later. Accepts NULL.
bool delivery_close(struct delivery *, int64_t until_ns);

#endif
