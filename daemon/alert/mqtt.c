#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <mosquitto.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/url.h"
#include "daemon/alert/delivery.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"

// --- topics and payloads

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

static const int64_t MS = 1000000;

enum { KEEP_ALIVE_S = 30, FIRST_PAUSE_MS = 500, LONGEST_PAUSE_MS = 30000 };

// Only the delivery's thread calls libmosquitto and runs its callbacks.
struct mqtt {
    struct delivery_context context;
    struct mqtt_url url;
    struct mqtt_topics topics;
    struct mosquitto *client;
    bool open;      // a connection exists or is being made
    bool connected; // the broker has accepted it
    bool fresh;     // everything has to be published again
    int pause_ms;
    int64_t next_ns; // earliest time of the next connection
    int awaited;     // id of the last event's message
    bool acknowledged;
    char why[DELIVERY_WHY_MAX];
    bool complained;
    // The signs last published:
    uint64_t version;
    struct camera_sign *signs;
    int n_signs;
};

static void put_why(struct mqtt *mqtt, const char *why)
{
    snprintf(mqtt->why, sizeof mqtt->why, "%s", why);
}

// --- callbacks

static void connected(struct mosquitto *client, void *opaque, int code)
{
    struct mqtt *mqtt = opaque;
    char birth[MQTT_TOPIC_MAX];
    if (code != 0) {
        put_why(mqtt, mosquitto_connack_string(code));
        return;
    }
    mqtt->connected = mqtt->fresh = true;
    if (!mqtt->topics.discovery)
        return;
    // Home Assistant publishes there after its start, which loses everything not retained.
    snprintf(birth, sizeof birth, "%s/status", mqtt->topics.discovery);
    mosquitto_subscribe(client, NULL, birth, 0);
}

static void disconnected(struct mosquitto *client, void *opaque, int code)
{
    struct mqtt *mqtt = opaque;
    (void)client;
    mqtt->connected = false;
    if (code != 0 && !mqtt->why[0])
        put_why(mqtt, "the connection was lost");
}

// Resets the pause here only: a broker that accepts a client may still disconnect it for a message.
static void was_published(struct mosquitto *client, void *opaque, int number)
{
    struct mqtt *mqtt = opaque;
    (void)client;
    mqtt->pause_ms = 0;
    if (mqtt->complained)
        log_event(LOG_LEVEL_INFO, "connected to the MQTT broker again");
    mqtt->complained = false;
    mqtt->acknowledged |= number == mqtt->awaited;
}

static void message_came(struct mosquitto *client, void *opaque,
                         const struct mosquitto_message *message)
{
    (void)client;
    if (message->payloadlen == 6 && memcmp(message->payload, "online", 6) == 0)
        ((struct mqtt *)opaque)->fresh = true;
}

// --- life

static int set_up(struct mqtt *mqtt)
{
    const struct mqtt_config *config = &mqtt->context.config->notify.mqtt;
    char status[MQTT_TOPIC_MAX];
    int rc = 0;
    snprintf(status, sizeof status, "%s/status", mqtt->topics.base);
    mosquitto_connect_callback_set(mqtt->client, connected);
    mosquitto_disconnect_callback_set(mqtt->client, disconnected);
    mosquitto_publish_callback_set(mqtt->client, was_published);
    mosquitto_message_callback_set(mqtt->client, message_came);
    rc |= mosquitto_will_set(mqtt->client, status, 7, "offline", 1, true);
    if (config->user)
        rc |= mosquitto_username_pw_set(mqtt->client, config->user, config->password);
    if (mqtt->url.tls)
        rc |= mosquitto_tls_set(mqtt->client, config->ca, config->ca ? NULL : "/etc/ssl/certs",
                                NULL, NULL, NULL);
    return rc == MOSQ_ERR_SUCCESS ? 0 : -ENOMEM;
}

static void close_mqtt(void *opaque)
{
    struct mqtt *mqtt = opaque;
    if (mqtt->connected) {
        char status[MQTT_TOPIC_MAX];
        snprintf(status, sizeof status, "%s/status", mqtt->topics.base);
        mosquitto_publish(mqtt->client, NULL, status, 7, "offline", 1, true);
        mosquitto_disconnect(mqtt->client);
        for (int i = 0; i < 10 && mosquitto_loop(mqtt->client, 10, 1) == MOSQ_ERR_SUCCESS; i++)
            ;
    }
    if (mqtt->client)
        mosquitto_destroy(mqtt->client);
    mosquitto_lib_cleanup();
    free(mqtt->signs);
    free(mqtt);
}

static int open_mqtt(void **ret, const struct delivery_context *context)
{
    const struct mqtt_config *config = &context->config->notify.mqtt;
    struct mqtt *mqtt = calloc(1, sizeof *mqtt);
    if (!mqtt)
        return -ENOMEM;
    mosquitto_lib_init();
    mqtt->context = *context;
    mqtt_url_parse(&mqtt->url, config->server);
    mqtt_topics_open(&mqtt->topics, config->topic, config->discovery, context->host);
    mqtt->client = mosquitto_new(NULL, true, mqtt);
    if (!mqtt->client || set_up(mqtt) < 0) {
        close_mqtt(mqtt);
        return -ENOMEM;
    }
    put_why(mqtt, "there is no connection yet");
    *ret = mqtt;
    return 0;
}

// --- the connection

// Drops unacknowledged messages: states are published again, events are retried.
static void lose(struct mqtt *mqtt, int code)
{
    const int error = errno;
    if (mosquitto_reinitialise(mqtt->client, NULL, true, mqtt) != MOSQ_ERR_SUCCESS ||
        set_up(mqtt) < 0)
        log_event(LOG_LEVEL_ERROR, "MQTT: %s", strerror(ENOMEM));
    mqtt->open = mqtt->connected = false;
    if (code == MOSQ_ERR_ERRNO)
        put_why(mqtt, strerror(error));
    else if (code != MOSQ_ERR_CONN_REFUSED)
        put_why(mqtt, mosquitto_strerror(code));
    if (!mqtt->complained)
        log_event(LOG_LEVEL_WARNING, "no connection to the MQTT broker %s port %d: %s",
                  mqtt->url.host, mqtt->url.port, mqtt->why);
    mqtt->complained = true;
    mqtt->pause_ms = mqtt->pause_ms == 0                     ? FIRST_PAUSE_MS
                     : 2 * mqtt->pause_ms > LONGEST_PAUSE_MS ? LONGEST_PAUSE_MS
                                                             : 2 * mqtt->pause_ms;
    mqtt->next_ns = monotonic_ns() + mqtt->pause_ms * MS;
}

// Connects if there is no connection, and lets libmosquitto read and write for up to `ms`.
static void turn(struct mqtt *mqtt, int ms)
{
    struct pollfd stop = {.fd = mqtt->context.stop_fd, .events = POLLIN};
    int code;
    if (!mqtt->open && monotonic_ns() < mqtt->next_ns) {
        poll(&stop, 1, ms);
        return;
    }
    if (!mqtt->open) {
        code = mosquitto_connect_async(mqtt->client, mqtt->url.host, mqtt->url.port, KEEP_ALIVE_S);
        mqtt->open = code == MOSQ_ERR_SUCCESS;
        if (!mqtt->open) {
            lose(mqtt, code);
            return;
        }
        mqtt->why[0] = 0;
    }
    code = mosquitto_loop(mqtt->client, ms, 1);
    if (code != MOSQ_ERR_SUCCESS)
        lose(mqtt, code);
}

// --- states

static void publish(struct mqtt *mqtt, const char *topic, const char *payload)
{
    mosquitto_publish(mqtt->client, NULL, topic, (int)strlen(payload), payload, 1, true);
}

// Publishes the difference from `told`, the sign that the broker has; NULL: it has none.
static void publish_sign(struct mqtt *mqtt, const struct camera_sign *told,
                         const struct camera_sign *sign)
{
    char topic[MQTT_TOPIC_MAX];
    for (int i = 0; i < MQTT_SENSORS; i++) {
        const bool was = told && mqtt_has(told, i), is = mqtt_has(sign, i);
        if (is != was || (!told && sign->gone)) {
            char *payload = is ? mqtt_discovery(&mqtt->topics, sign->name, i) : NULL;
            mqtt_topic_discovery(&mqtt->topics, sign->name, i, topic);
            if (mqtt->topics.discovery && (payload || !is))
                publish(mqtt, topic, payload ? payload : ""); // "": the broker deletes the topic
            free(payload);
        }
        mqtt_topic_state(&mqtt->topics, sign->name, i, topic);
        if (is && (!was || mqtt_is_on(told, i) != mqtt_is_on(sign, i)))
            publish(mqtt, topic, mqtt_is_on(sign, i) ? "ON" : "OFF");
        else if (!is && (was || (!told && sign->gone)))
            publish(mqtt, topic, "");
    }
}

static int compare_signs(const void *a, const void *b)
{
    return strcmp(((const struct camera_sign *)a)->name, ((const struct camera_sign *)b)->name);
}

// Returns NULL if the broker has no sign of the camera.
static const struct camera_sign *find_told(const struct mqtt *mqtt, const struct camera_sign *sign)
{
    return mqtt->n_signs > 0 ? bsearch(sign, mqtt->signs, (size_t)mqtt->n_signs,
                                       sizeof *mqtt->signs, compare_signs)
                             : NULL;
}

static void publish_states(struct mqtt *mqtt)
{
    struct camera_sign *signs;
    if (mqtt->fresh) {
        char status[MQTT_TOPIC_MAX];
        snprintf(status, sizeof status, "%s/status", mqtt->topics.base);
        publish(mqtt, status, "online");
        mqtt->version = 0;
        mqtt->n_signs = 0;
        mqtt->fresh = false;
    }
    const int n = outbox_signs(mqtt->context.outbox, &mqtt->version, &signs);
    if (n < 0)
        return;
    for (int i = 0; i < n; i++)
        publish_sign(mqtt, find_told(mqtt, &signs[i]), &signs[i]);
    free(mqtt->signs);
    mqtt->signs = signs;
    mqtt->n_signs = n;
}

static void keep_mqtt(void *opaque, int ms)
{
    struct mqtt *mqtt = opaque;
    turn(mqtt, ms);
    if (mqtt->connected)
        publish_states(mqtt);
}

// --- events

static int deliver_to_mqtt(void *opaque, const struct alert_event *event, const char *json,
                           char *why, size_t size)
{
    struct mqtt *mqtt = opaque;
    char topic[MQTT_TOPIC_MAX];
    (void)event;
    for (int i = 0; !mqtt->connected && i < 10 && !atomic_load(mqtt->context.stop); i++)
        keep_mqtt(mqtt, 100);
    if (!mqtt->connected) {
        snprintf(why, size, "%s", mqtt->why[0] ? mqtt->why : "there is no connection");
        return -ENOTCONN;
    }
    snprintf(topic, sizeof topic, "%s/events", mqtt->topics.base);
    mqtt->acknowledged = false;
    int code =
        mosquitto_publish(mqtt->client, &mqtt->awaited, topic, (int)strlen(json), json, 1, false);
    if (code != MOSQ_ERR_SUCCESS) {
        snprintf(why, size, "%s", mosquitto_strerror(code));
        return -EIO;
    }
    const int64_t until = monotonic_ns() + DELIVERY_MS * MS;
    while (mqtt->connected && !mqtt->acknowledged && monotonic_ns() < until) {
        if (atomic_load(mqtt->context.stop))
            return -ECANCELED;
        turn(mqtt, 100);
    }
    if (mqtt->acknowledged)
        return 0;
    snprintf(why, size, "the broker did not acknowledge it");
    return -ETIMEDOUT;
}

const struct delivery_driver mqtt_driver = {
    .name = "the MQTT broker",
    .open = open_mqtt,
    .deliver = deliver_to_mqtt,
    .keep = keep_mqtt,
    .close = close_mqtt,
};
