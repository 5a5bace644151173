#include "daemon/alert/mqtt_topics.h"

#include <ctype.h>
#include <jansson.h>
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

// Writes the base as a part of a name: Home Assistant allows letters, digits, _ and -.
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

char *mqtt_discovery(const struct mqtt_topics *topics, const char *camera, int sensor)
{
    const char *name = sensor_name(sensor);
    char node[sizeof topics->base];
    node_name(topics, node);
    json_t *json =
        json_pack("{s:o, s:o, s:s, s:o, s:o, s:{s:[o], s:s, s:s, s:s, s:s}, s:{s:s, s:s}}", "name",
                  json_sprintf("%c%s", toupper((unsigned char)name[0]), name + 1), "unique_id",
                  json_sprintf("%s_%s_%s", node, camera, name), "device_class",
                  sensor == MQTT_CONNECTIVITY ? "connectivity" : "problem", "state_topic",
                  json_sprintf("%s/%s/%s", topics->base, camera, name), "availability_topic",
                  json_sprintf("%s/status", topics->base), "device", "identifiers",
                  json_sprintf("%s_%s", node, camera), "name", camera, "manufacturer", "framed",
                  "model", "camera", "sw_version", FRAMED_VERSION_TEXT, "origin", "name", "framed",
                  "sw_version", FRAMED_VERSION_TEXT);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    return text;
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
