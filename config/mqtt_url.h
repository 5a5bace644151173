// Addresses of MQTT brokers.
#ifndef FRAMED_CONFIG_MQTT_URL_H
#define FRAMED_CONFIG_MQTT_URL_H

#include <stdbool.h>

struct mqtt_url {
    char host[256]; // a name, or an address without brackets
    int port;
    bool tls;
};

// Parses mqtt://HOST[:PORT] or mqtts://HOST[:PORT]. Returns NULL, or the mistake in the URL.
const char *mqtt_url_parse(struct mqtt_url *ret, const char *url);

#endif
