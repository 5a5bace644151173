// SOAP over HTTP to one camera, by libcurl. One thread.
//
// A password is tried once: the camera is asked without it first, and once it has refused a request
// that had it, nothing more is sent. A camera that locks out who is wrong too often never does.
#ifndef FRAMED_DAEMON_ONVIF_SOAP_H
#define FRAMED_DAEMON_ONVIF_SOAP_H

#include <libxml/tree.h>
#include <stdint.h>

struct soap;

struct soap_options {
    const char *user, *password; // user NULL: there is none; outlive it
    int64_t deadline_ns;         // CLOCK_MONOTONIC, of all calls together
};

int soap_open(struct soap **ret, const struct soap_options *); // 0 or -ENOMEM
void soap_close(struct soap *);                                // accepts NULL

// How far the camera's clock is before this box's: a password's digest holds for the camera's time.
// Beyond a day there is no digest by WS-Security, which could be used when that time comes.
void soap_set_clock(struct soap *, int64_t ahead_s);

// Posts `body`, the element that the SOAP body holds, to `url`, and points *ret at the answer, for
// xmlFreeDoc. 0; -EACCES: the camera wants a user and a password, or others; another negative
// errno: no answer that can be used.
int soap_call(struct soap *, const char *url, const char *body, xmlDoc **ret);

// Why the last call that failed did: a clause without secrets, printable.
const char *soap_why(const struct soap *);

#endif
