#include "daemon/alert/mqtt_topics.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void mqtt_topics_open(struct mqtt_topics *topics, const char *topic, const char *discovery,
                      const char *host)
{
    *topics = (struct mqtt_topics){.discovery = discovery};
    if (topic)
        snprintf(topics->base, sizeof topics->base, "%s", topic);
    else
        snprintf(topics->base, sizeof topics->base, "framed/%s", host);
    for (char *c = topics->base; *c; c++) // a host may have any name
        *c = strchr("+#\"\\", *c) || (unsigned char)*c < ' ' ? '_' : *c;
}

static const char *sensor_name(int sensor)
{
    return sensor == MQTT_CONNECTIVITY ? "connectivity"
           : sensor == MQTT_PROBLEM    ? "problem"
                                       : alarm_name((enum alarm)(sensor - MQTT_ALARM));
}

void mqtt_topic_state(const struct mqtt_topics *topics, const char *camera, int sensor,
                      char to[MQTT_TOPIC_MAX])
{
    snprintf(to, MQTT_TOPIC_MAX, "%s/%s/%s", topics->base, camera, sensor_name(sensor));
}

// The base as a part of a name, in which Home Assistant takes letters, digits, _ and -.
static void node_name(const struct mqtt_topics *topics, char to[sizeof topics->base])
{
    strcpy(to, topics->base);
    for (char *c = to; *c; c++)
        *c = isalnum((unsigned char)*c) || *c == '-' ? *c : '_';
}

void mqtt_topic_discovery(const struct mqtt_topics *topics, const char *camera, int sensor,
                          char to[MQTT_TOPIC_MAX])
{
    char node[sizeof topics->base];
    node_name(topics, node);
    snprintf(to, MQTT_TOPIC_MAX, "%s/binary_sensor/%s_%s/%s/config",
             topics->discovery ? topics->discovery : "", node, camera, sensor_name(sensor));
}

void mqtt_discovery(const struct mqtt_topics *topics, const char *camera, int sensor,
                    char to[MQTT_PAYLOAD_MAX])
{
    const char *name = sensor_name(sensor);
    char node[sizeof topics->base];
    node_name(topics, node);
    snprintf(to, MQTT_PAYLOAD_MAX,
             "{\"name\":\"%c%s\",\"unique_id\":\"%s_%s_%s\",\"device_class\":\"%s\","
             "\"state_topic\":\"%s/%s/%s\",\"availability_topic\":\"%s/status\","
             "\"device\":{\"identifiers\":[\"%s_%s\"],\"name\":\"%s\",\"manufacturer\":\"framed\","
             "\"model\":\"camera\",\"sw_version\":\"%s\"},"
             "\"origin\":{\"name\":\"framed\",\"sw_version\":\"%s\"}}",
             toupper((unsigned char)name[0]), name + 1, node, camera, name,
             sensor == MQTT_CONNECTIVITY ? "connectivity" : "problem", topics->base, camera, name,
             topics->base, node, camera, camera, FRAMED_VERSION_TEXT, FRAMED_VERSION_TEXT);
}

bool mqtt_has(const struct camera_sign *sign, int sensor)
{
    return !sign->gone && (sensor < MQTT_ALARM || sign->analysed);
}

bool mqtt_is_on(const struct camera_sign *sign, int sensor)
{
    return sensor == MQTT_CONNECTIVITY ? sign->connected
           : sensor == MQTT_PROBLEM    ? sign->problem
                                       : sign->alarms >> (sensor - MQTT_ALARM) & 1;
}
