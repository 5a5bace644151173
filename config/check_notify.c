#include "config/check_notify.h"

#include <string.h>

#include "config/url.h"

enum { TOPIC_MAX = 128 };

static const struct given *find(const struct given given[], const char *key)
{
    return &given[table_find(&root_table, key) - root_table.rows];
}

static bool is_set(const struct given given[], const char *key)
{
    const struct given *of = find(given, key);
    return of->key.line && !of->wrong;
}

static void check_webhook(struct mistakes *mistakes, const struct config *config,
                          const struct given given[])
{
    const char *url = config->notify.webhook;
    if (!is_set(given, "notify.webhook") || !url)
        return;
    const bool http = strncasecmp(url, "http://", 7) == 0,
               tls = strncasecmp(url, "https://", 8) == 0;
    const char *host = url + (tls ? 8 : 7);
    if ((!http && !tls) || !*host || *host == '/' || strpbrk(url, " \"<>"))
        mistake(mistakes, find(given, "notify.webhook")->value, "notify.webhook",
                "is not a URL that can be posted to (http://HOST/PATH or https://HOST/PATH)");
}

static void check_topic(struct mistakes *mistakes, const struct given given[], const char *key,
                        const char *topic)
{
    if (!is_set(given, key) || !topic)
        return;
    const size_t length = strlen(topic);
    const bool edges = topic[0] == '/' || topic[0] == '$' || (length && topic[length - 1] == '/');
    if (length > TOPIC_MAX || edges || strpbrk(topic, "+#"))
        mistake(mistakes, find(given, key)->value, key,
                "is not what topics can begin with (1 to %d bytes without + and #, no $ at its "
                "begin, no / at its ends)",
                TOPIC_MAX);
}

static void check_mqtt(struct mistakes *mistakes, const struct config *config,
                       const struct given given[])
{
    static const char *const others[] = {"notify.mqtt.user", "notify.mqtt.password",
                                         "notify.mqtt.ca", "notify.mqtt.topic"};
    const struct mqtt_config *mqtt = &config->notify.mqtt;
    const bool server = find(given, "notify.mqtt.server")->key.line;
    struct mqtt_url url;
    for (size_t i = 0; !server && i < sizeof others / sizeof *others; i++)
        if (is_set(given, others[i]))
            mistake(mistakes, find(given, others[i])->key, others[i],
                    "has no effect without notify.mqtt.server (server: mqtt://HOST)");
    if (!is_set(given, "notify.mqtt.server") || !mqtt->server)
        return;
    const char *wrong = mqtt_url_parse(&url, mqtt->server);
    if (wrong)
        mistake(mistakes, find(given, "notify.mqtt.server")->value, "notify.mqtt.server",
                "%s (mqtt://HOST, mqtts://HOST, each with :PORT or without)", wrong);
    if (!wrong && !url.tls && is_set(given, "notify.mqtt.ca"))
        mistake(mistakes, find(given, "notify.mqtt.ca")->key, "notify.mqtt.ca",
                "is only for a broker with TLS (server: mqtts://HOST)");
    if (is_set(given, "notify.mqtt.password") && !find(given, "notify.mqtt.user")->key.line)
        mistake(mistakes, find(given, "notify.mqtt.password")->key, "notify.mqtt.password",
                "has no user beside it (user: NAME)");
    check_topic(mistakes, given, "notify.mqtt.topic", mqtt->topic);
    check_topic(mistakes, given, "notify.mqtt.discovery", mqtt->discovery);
}

void check_notify(struct mistakes *mistakes, const struct config *config,
                  const struct given given[])
{
    check_webhook(mistakes, config, given);
    check_mqtt(mistakes, config, given);
}
