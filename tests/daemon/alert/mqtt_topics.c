// Topics and payloads of cameras, and Home Assistant's discovery.
#include "daemon/alert/delivery.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

static void test_topics(void)
{
    struct mqtt_topics topics;
    char topic[MQTT_TOPIC_MAX], *payload;
    mqtt_topics_open(&topics, NULL, "homeassistant", "box.example");
    mqtt_topic_state(&topics, "gate", MQTT_CONNECTIVITY, topic);
    CHECK(strcmp(topic, "framed/box.example/gate/connectivity") == 0, "%s", topic);
    mqtt_topic_discovery(&topics, "gate", MQTT_ALARM + ALARM_BLURRED, topic);
    CHECK(strcmp(topic, "homeassistant/binary_sensor/framed_box_example_gate/blurred/config") == 0,
          "%s", topic);
    payload = mqtt_discovery(&topics, "gate", MQTT_CONNECTIVITY);
    CHECK(strstr(payload, "\"device_class\":\"connectivity\"") &&
              strstr(payload, "\"state_topic\":\"framed/box.example/gate/connectivity\"") &&
              strstr(payload, "\"unique_id\":\"framed_box_example_gate_connectivity\"") &&
              payload[strlen(payload) - 1] == '}',
          "%s", payload);
    free(payload);
    mqtt_topics_open(&topics, "a/b", NULL, "box");
    mqtt_topic_state(&topics, "gate", MQTT_PROBLEM, topic);
    CHECK(strcmp(topic, "a/b/gate/problem") == 0, "%s", topic);
    mqtt_topics_open(&topics, NULL, NULL, "b+o#\"x");
    CHECK(strcmp(topics.base, "framed/b_o__x") == 0, "%s", topics.base);
}

// The longest names that fit are not cut, with any contents.
static void test_lengths(void)
{
    static const char camera[] = "0123456789abcdef\\\"23456";
    struct mqtt_topics topics;
    char base[sizeof topics.base], topic[MQTT_TOPIC_MAX];
    memset(base, 'x', sizeof base - 1);
    base[sizeof base - 1] = 0;
    mqtt_topics_open(&topics, base, base, "box");
    for (int i = 0; i < MQTT_SENSORS; i++) {
        char *payload = mqtt_discovery(&topics, camera, i);
        json_error_t error;
        json_t *json = json_loads(payload, 0, &error);
        CHECK(json, "%s: %s", error.text, payload);
        const char *name =
            json_string_value(json_object_get(json_object_get(json, "device"), "name"));
        CHECK(name && strcmp(name, camera) == 0, "%s", name);
        json_decref(json);
        free(payload);
    }
    base[128] = 0;
    mqtt_topics_open(&topics, base, base, "box");
    mqtt_topic_discovery(&topics, "0123456789abcdef0123456", MQTT_CONNECTIVITY, topic);
    CHECK(strcmp(topic + strlen(topic) - 7, "/config") == 0, "%zu bytes", strlen(topic));
}

static void test_states(void)
{
    struct camera_sign sign = {.problem = true, .alarms = 1u << ALARM_GLARE};
    CHECK(!mqtt_is_on(&sign, MQTT_CONNECTIVITY) && mqtt_is_on(&sign, MQTT_PROBLEM), "states");
    CHECK(mqtt_is_on(&sign, MQTT_ALARM + ALARM_GLARE) && !mqtt_is_on(&sign, MQTT_ALARM), "alarms");
    CHECK(mqtt_has(&sign, MQTT_PROBLEM) && !mqtt_has(&sign, MQTT_ALARM), "not analysed");
    sign.analysed = true;
    CHECK(mqtt_has(&sign, MQTT_ALARM), "analysed");
    sign.gone = true;
    CHECK(!mqtt_has(&sign, MQTT_PROBLEM), "gone");
}

int main(void)
{
    TEST(test_topics());
    TEST(test_lengths());
    TEST(test_states());
    return test_end();
}
