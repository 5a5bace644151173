#include "daemon/rtsp/rtsp_transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNEL_MAX = 255, PORT_MAX = 65535, TTL_MAX = 255 };

static int read_bounded(const char *text, int low, int high, int otherwise)
{
    char *end;
    const long n = strtol(text, &end, 10);
    return end != text && n >= low && n <= high ? (int)n : otherwise;
}

// Reads "10-11", or the first number alone: then the second one is the next.
static void read_pair(const char *text, int low, int high, int ret[2])
{
    const char *second = strchr(text, '-');
    ret[0] = read_bounded(text, low, high, ret[0]);
    if (second)
        ret[1] = read_bounded(second + 1, low, high, ret[1]);
    else if (ret[0] >= low && ret[0] < high)
        ret[1] = ret[0] + 1;
}

// Reads hexadecimal digits, or decimal ones if there are nine or more, as some cameras write it.
static uint32_t read_ssrc(const char *text)
{
    const size_t digits = strspn(text, "0123456789abcdefABCDEF");
    return digits > 10 ? 0 : (uint32_t)strtoul(text, NULL, digits > 8 ? 10 : 16);
}

// Reads an address, without the brackets that some cameras put around an IPv6 address.
static void read_address(const char *text, char *ret, size_t size)
{
    const char *begin = text + (*text == '[');
    snprintf(ret, size, "%.*s", (int)strcspn(begin, "]"), begin);
}

static void read_parameter(struct rtsp_transport *t, const char *name, const char *value)
{
    if (!strcasecmp(name, "interleaved"))
        read_pair(value, 0, CHANNEL_MAX, t->channels);
    else if (!strcasecmp(name, "server_port"))
        read_pair(value, 2, PORT_MAX, t->server_ports); // 0-1 means none
    else if (!strcasecmp(name, "port"))
        read_pair(value, 1, PORT_MAX, t->ports);
    else if (!strcasecmp(name, "ssrc"))
        t->ssrc = read_ssrc(value);
    else if (!strcasecmp(name, "ttl"))
        t->ttl = read_bounded(value, 1, TTL_MAX, 0);
    else if (!strcasecmp(name, "source"))
        read_address(value, t->source, sizeof t->source);
    else if (!strcasecmp(name, "destination"))
        read_address(value, t->destination, sizeof t->destination);
    else if (!strcasecmp(name, "multicast"))
        t->multicast = true;
    else if (!strcasecmp(name, "RTP/AVP/TCP"))
        t->tcp = true;
}

void rtsp_transport_parse(struct rtsp_transport *ret, const char *value)
{
    char copy[512], *rest, *part, *equals;
    *ret = (struct rtsp_transport){.channels = {-1, -1}};
    snprintf(copy, sizeof copy, "%s", value ? value : "");
    copy[strcspn(copy, ",")] = 0; // only the first of several
    for (part = strtok_r(copy, ";", &rest); part; part = strtok_r(NULL, ";", &rest)) {
        part += strspn(part, " \t");
        equals = part + strcspn(part, "=");
        char *behind = *equals ? equals + 1 : equals;
        behind += strspn(behind, " \t\"");
        behind[strcspn(behind, " \t\"")] = 0;
        *equals = 0;
        part[strcspn(part, " \t")] = 0;
        read_parameter(ret, part, behind);
    }
    ret->tcp = ret->tcp || ret->channels[0] >= 0;
}
