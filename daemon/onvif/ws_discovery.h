// WS-Discovery, by which ONVIF cameras are found: a question to a multicast group on every
// interface of this box, and the answers, which are anybody's.
#ifndef FRAMED_DAEMON_ONVIF_WS_DISCOVERY_H
#define FRAMED_DAEMON_ONVIF_WS_DISCOVERY_H

#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>

enum { WS_DISCOVERY_HOST_MAX = INET6_ADDRSTRLEN + IF_NAMESIZE + 1 };

// What one answer says. Texts are printable UTF-8, "" where it does not say.
struct ws_match {
    char host[WS_DISCOVERY_HOST_MAX]; // the address that the answer came from: "fe80::1%eth0"
    char endpoint[128];               // names the device, whatever its address
    // Where its device service is: the answer's own URL with its host replaced by `host`. Nobody
    // can make framed send something elsewhere than where the answer came from.
    char url[384];
    char secure_url[384];     // the same with https; "": the device offers none
    char name[64], model[64]; // from its scopes
};

// Reads the answer that came from `host`. 0; -EBADMSG: it is none, or not that of a camera.
int ws_discovery_read(struct ws_match *ret, const char *host, const char *data, size_t size);

// Asks several times, since datagrams get lost, and gives each device to `found` as it answers,
// once. Blocks for `seconds`. 0; negative errno: there is no interface to ask on.
int ws_discovery_run(double seconds, void (*found)(void *opaque, const struct ws_match *),
                     void *opaque);

#endif
