// WS-Discovery, which finds ONVIF cameras: sends a request to a multicast group on every interface
// of this box, and reads the responses, which anybody may send.
#ifndef FRAMED_DAEMON_ONVIF_WS_DISCOVERY_H
#define FRAMED_DAEMON_ONVIF_WS_DISCOVERY_H

#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>

enum { WS_DISCOVERY_HOST_MAX = INET6_ADDRSTRLEN + IF_NAMESIZE + 1 };

// One response. Texts are printable UTF-8, "" if absent.
struct ws_match {
    char host[WS_DISCOVERY_HOST_MAX]; // source address of the response: "fe80::1%eth0"
    char endpoint[128];               // identifies the device at any address
    // URL of the device service: the response's URL with its host replaced by `host`. So nobody can
    // make framed send to another address than the response's source.
    char url[384];
    char secure_url[384];     // the same with https; "": not offered
    char name[64], model[64]; // from its scopes
};

// Parses the response from `host`. Returns 0; -EBADMSG: malformed, or not from a camera.
int ws_discovery_read(struct ws_match *ret, const char *host, const char *data, size_t size);

// Sends several requests, since datagrams get lost, and calls `found` once for each device when it
// responds. Blocks for `seconds`. Returns 0, or a negative errno: no interface to send on.
int ws_discovery_run(double seconds, void (*found)(void *opaque, const struct ws_match *),
                     void *opaque);

#endif
