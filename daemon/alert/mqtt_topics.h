// The topics and payloads that MQTT clients see of cameras, Home Assistant's discovery among them.
// Pure.
//
// Below the base topic: `status` (online, offline), `events` (each alert as JSON), and of each
// camera CAMERA/connectivity, CAMERA/problem and CAMERA/ALARM, each ON or OFF. All but events are
// retained.
#ifndef FRAMED_DAEMON_ALERT_MQTT_TOPICS_H
#define FRAMED_DAEMON_ALERT_MQTT_TOPICS_H

#include "daemon/alert/outbox.h"

enum { MQTT_TOPIC_MAX = 320 };
// What is shown of a camera: its connectivity, its problem, and each alarm.
enum { MQTT_CONNECTIVITY, MQTT_PROBLEM, MQTT_ALARM, MQTT_SENSORS = MQTT_ALARM + ALARMS };

struct mqtt_topics {
    char base[160];
    const char *discovery; // NULL: nothing is announced
};

// `topic`: the configuration's, or NULL.
void mqtt_topics_open(struct mqtt_topics *, const char *topic, const char *discovery,
                      const char *host);
void mqtt_topic_state(const struct mqtt_topics *, const char *camera, int sensor,
                      char to[MQTT_TOPIC_MAX]);
void mqtt_topic_discovery(const struct mqtt_topics *, const char *camera, int sensor,
                          char to[MQTT_TOPIC_MAX]);
// Returns the payload of the discovery's topic, JSON, for free(). NULL: no memory.
char *mqtt_discovery(const struct mqtt_topics *, const char *camera, int sensor);
bool mqtt_has(const struct camera_sign *, int sensor); // it is shown
bool mqtt_is_on(const struct camera_sign *, int sensor);

#endif
