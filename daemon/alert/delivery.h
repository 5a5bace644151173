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

// --- the topics and payloads of cameras for MQTT clients, including Home Assistant's discovery;
// pure
//
// Below the base topic: `status` (online, offline), `events` (each alert as JSON), and for each
// camera CAMERA/connectivity, CAMERA/problem and CAMERA/ALARM, each ON or OFF. All but events are
// retained.

enum { MQTT_TOPIC_MAX = 320 };
// The sensors of a camera: connectivity, problem, and one for each alarm.
enum { MQTT_CONNECTIVITY, MQTT_PROBLEM, MQTT_ALARM, MQTT_SENSORS = MQTT_ALARM + ALARMS };

struct mqtt_topics {
    char base[160];
    const char *discovery; // NULL: no announcements
};

// `topic`: from the configuration; NULL: "framed/" and the host.
void mqtt_topics_open(struct mqtt_topics *, const char *topic, const char *discovery,
                      const char *host);
void mqtt_topic_state(const struct mqtt_topics *, const char *camera, int sensor,
                      char to[MQTT_TOPIC_MAX]);
void mqtt_topic_discovery(const struct mqtt_topics *, const char *camera, int sensor,
                          char to[MQTT_TOPIC_MAX]);
// Returns the JSON payload of the discovery topic, for free(). NULL: no memory.
char *mqtt_discovery(const struct mqtt_topics *, const char *camera, int sensor);
bool mqtt_has(const struct camera_sign *, int sensor); // the camera has this sensor
bool mqtt_is_on(const struct camera_sign *, int sensor);

#endif
