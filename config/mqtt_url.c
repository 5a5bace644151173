#include "config/mqtt_url.h"

#include <stdlib.h>
#include <string.h>

enum { PORT = 1883, PORT_OF_TLS = 8883 };

const char *mqtt_url_parse(struct mqtt_url *ret, const char *url)
{
    static const char plain[] = "mqtt://", tls[] = "mqtts://";
    *ret = (struct mqtt_url){.port = PORT};
    if (strncasecmp(url, tls, strlen(tls)) == 0)
        *ret = (struct mqtt_url){.port = PORT_OF_TLS, .tls = true};
    else if (strncasecmp(url, plain, strlen(plain)) != 0)
        return "is no address of a broker";
    const char *host = url + strlen(ret->tls ? tls : plain);
    if (strchr(host, '@'))
        return "has a user or a password in it, which stand beside it";
    const bool brackets = *host == '[';
    host += brackets;
    const size_t length = strcspn(host, brackets ? "]" : ":/?#");
    const char *rest = host + length;
    if (length == 0 || length >= sizeof ret->host || (brackets && *rest != ']'))
        return "has no host, or one that cannot be";
    memcpy(ret->host, host, length);
    rest += brackets;
    if (*rest == ':') {
        const size_t digits = strspn(++rest, "0123456789");
        ret->port = digits > 0 && digits <= 5 ? atoi(rest) : 0;
        rest += digits;
    }
    if (ret->port < 1 || ret->port > 65535)
        return "has an invalid port";
    return *rest == 0 || strcmp(rest, "/") == 0 ? NULL : "goes on behind the host";
}
