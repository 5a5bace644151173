// The topics and payloads of cameras for MQTT clients, including Home Assistant's discovery. Pure.
//
// Below the base topic: `status` (online, offline), `events` (each alert as JSON), and for each
// camera CAMERA/connectivity, CAMERA/problem and CAMERA/ALARM, each ON or OFF. All but events are
// retained.
#ifndef FRAMED_DAEMON_ALERT_MQTT_TOPICS_H
#define FRAMED_DAEMON_ALERT_MQTT_TOPICS_H

#include "daemon/alert/outbox.h"

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
