// RTSP URLs: a camera's configured one, and those in cameras' replies. Pure.
#ifndef FRAMED_DAEMON_RTSP_URL_H
#define FRAMED_DAEMON_RTSP_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "config/url.h"

enum { RTSP_URL_MAX = 2 * URL_TEXT_MAX }; // with a camera's control behind it

struct rtsp_url {
    char text[RTSP_URL_MAX]; // as in a request line: without user and password
    char host[256];          // without brackets
    int port;                // the scheme's default if the URL names none
    bool port_named;         // the URL names it
    bool port_changed;       // rtsp_url_take_other_port changed it
    bool tls;                // rtsps
    // Percent-decoded; "": none.
    char user[URL_LOGIN_MAX], password[URL_LOGIN_MAX];
};

// Returns 0; -EINVAL: no RTSP URL, or too long.
int rtsp_url_parse(struct rtsp_url *ret, const char *url);
// Switches to the second port of rtsps, which UniFi cameras use, if the URL names no port. Returns
// false and changes nothing if there is none, or if it is in use already.
bool rtsp_url_take_other_port(struct rtsp_url *);
// Writes the base for the tracks' URLs: DESCRIBE's `content_base`, else `content_location` (either
// may be NULL), else `asked`. Repairs cameras' mistakes. The base only goes into request lines,
// never into a connect. Returns 0 or -EINVAL.
int rtsp_url_base(char ret[RTSP_URL_MAX], const char *content_base, const char *content_location,
                  const char *asked);
// Writes a track's URL: `control` appended to the base, as cameras expect; with `merged`, resolved
// as in RFC 3986. `control` NULL, "" or "*": the base. 0 or -EINVAL (malformed, too long).
int rtsp_url_of_track(char ret[RTSP_URL_MAX], const char *base, const char *control, bool merged);

#endif
