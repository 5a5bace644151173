// SOAP over HTTP to one camera, by libcurl. One thread.
//
// A password is tried once: the first request goes without it, and once the camera has refused a
// request with it, nothing more is sent. So a camera never locks out framed for repeated failures.
#ifndef FRAMED_DAEMON_ONVIF_SOAP_H
#define FRAMED_DAEMON_ONVIF_SOAP_H

#include <libxml/tree.h>
#include <stdint.h>

struct soap;

struct soap_options {
    const char *user, *password; // user NULL: no login; must outlive the soap
    int64_t deadline_ns;         // CLOCK_MONOTONIC, for all calls together
};

int soap_open(struct soap **ret, const struct soap_options *); // 0 or -ENOMEM
void soap_close(struct soap *);                                // accepts NULL

// Sets the camera's clock minus this box's, since a digest must contain the camera's time. Beyond a
// day no WS-Security digest is sent: somebody could use it when that time comes.
void soap_set_clock(struct soap *, int64_t ahead_s);

// Posts `body`, the content of the SOAP body, to `url`, and sets *ret to the response, for
// xmlFreeDoc. Returns 0; -EACCES: the camera requires a login, or refused it; another negative
// errno: no usable response.
int soap_call(struct soap *, const char *url, const char *body, xmlDoc **ret);

// Why the last failed call failed: a printable clause without secrets.
const char *soap_why(const struct soap *);

#endif
